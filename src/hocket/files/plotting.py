"""Pictures of a run: one axes per unit, one line per port.

In:  series of values over time
Out: a Matplotlib figure; nothing global is touched and no display is needed
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.errors import FileError, ScenarioError, suggest_nearest
from hocket.files.atomic_files import replace_file
from hocket.model.protocols import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444", "#8C6D1F")
_LABELS = 12
_BINS = 2000  # pairs of points in a line at the most: more than a screen can show
_HUGE = 1e100  # an unstable run may leave numbers for which Matplotlib finds no scale


@dataclass(frozen=True, eq=False, repr=False)
class Series:
    """One port over time, in seconds: `t, x = run["axle.x"]`; as an array it is its values."""

    t: Array
    values: Array
    unit: str
    name: str

    def __iter__(self) -> Iterator[Array]:
        return iter((self.t, self.values))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, samples: Any) -> Any:
        return self.values[samples]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    def __repr__(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        span = f", {self.t[0]:g} to {self.t[-1]:g} s" if len(self.t) else ""
        return f"<Series {self.name}{unit}: {len(self.t)} samples{span}>"


def draw_series(series: Sequence[Series], title: str, path: Path | str | None = None) -> Figure:
    """Return the picture; `path` also saves it, in the format of its ending."""
    if path is not None:
        check_drawable(path)
    figures = import_extra("matplotlib.figure", "plot")
    by_unit: dict[str, list[Series]] = {}
    for each in series:
        by_unit.setdefault(each.unit, []).append(each)
    figure: Figure = figures.Figure(figsize=(9, 0.9 + 2.1 * len(by_unit)), layout="constrained")
    stack = figure.subplots(len(by_unit), 1, sharex=True, squeeze=False)[:, 0]
    for axes, lines in zip(stack, by_unit.values(), strict=True):
        _draw_lines(axes, lines)
    stack[0].set_title(_fit_label(title), loc="left", fontsize="medium", fontweight="bold")
    stack[-1].set_xlabel("time [s]")
    figure.align_ylabels()
    if path is not None:
        with replace_file(path) as file:
            figure.savefig(file, format=Path(path).suffix[1:].lower(), dpi=150)
    return figure


def check_drawable(path: Path | str) -> None:
    """Refuse a picture that could not be drawn, by the ending of its name or for want of Matplotlib."""
    canvas = import_extra("matplotlib.figure", "plot").Figure().canvas
    kinds, kind = canvas.get_supported_filetypes(), Path(path).suffix[1:].lower()
    if kind not in kinds:
        what = f"cannot draw a `{kind}` file" if kind else f"`{Path(path).name}` has no ending"
        raise FileError(
            what, str(path), "a name that ends in .png, .svg or .pdf", _suggest_ending(kind, kinds)
        )


def _suggest_ending(kind: str, kinds: Iterable[str]) -> str:
    return suggest_nearest(kind, kinds, listing=False)


def import_extra(module: str, name_of_extra: str) -> Any:
    """Import a module that only some users need, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        what = f"`{name}` is not installed"
        raise ScenarioError(what, hint=f"pip install hocket[{name_of_extra}]") from None


def _draw_lines(axes: Axes, lines: Sequence[Series]) -> None:
    for i, series in enumerate(lines):
        style = ("-", "--", ":", "-.")[i // len(_COLOURS) % 4]
        marker = "." if len(series.t) == 1 else ""
        axes.plot(*_decimate(series), marker + style, color=_COLOURS[i % len(_COLOURS)], linewidth=1.3)
    last_names = {series.name.rpartition(".")[2] for series in lines}
    shared = f"{last_names.pop()} " if len(last_names) == 1 else ""
    axes.set_ylabel(_fit_label(f"{shared}[{lines[0].unit or '-'}]"))
    axes.margins(x=0)
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    labels = [_fit_label(series.name) for series in lines]
    handles = list(axes.lines)
    if len(labels) > _LABELS:
        labels[_LABELS - 1 :] = [f"and {len(labels) - _LABELS + 1} more"]
        handles[_LABELS - 1 :] = axes.plot([], [], " ")
    outside = (1.0, 1.03)
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=outside, frameon=False, fontsize="small")


def _decimate(series: Series) -> tuple[Array, Array]:
    """Return the lowest and the highest value in each of many short spans, if there are more samples."""
    t, x = series.t, np.where(np.abs(series.values) < _HUGE, series.values, np.nan)
    if len(t) <= 2 * _BINS:
        return t, x
    edges = np.linspace(0, len(t), _BINS, endpoint=False).astype(np.intp)
    envelope = np.stack([np.fmin.reduceat(x, edges), np.fmax.reduceat(x, edges)], axis=1)
    return t[edges].repeat(2), envelope.ravel()


def _fit_label(text: str) -> str:
    """Return text that fits beside the axes and that Matplotlib does not take for a formula."""
    return (text if len(text) <= 40 else f"…{text[-39:]}").replace("$", r"\$")
