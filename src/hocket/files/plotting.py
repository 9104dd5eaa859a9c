"""Pictures: what all of them share, and that of a run, with one axes per unit and one line per port.

In:  series of values over time
Out: a Matplotlib figure; nothing global is touched and no display is needed
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.errors import FileError, ScenarioError, suggest_nearest
from hocket.files.atomic_files import replace_file
from hocket.model.arguments import as_path, expect
from hocket.model.protocols import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


BLUE, RED, GREY = "#0072B2", "#D55E00", "#444444"
_COLOURS = (BLUE, RED, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", GREY, "#8C6D1F")
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


def draw_series(
    series: Sequence[Series], title: str, path: Path | str | None = None, axes: Axes | None = None
) -> Figure:
    """Return the picture; `path` also saves it, in the format of its ending. `axes` take all of its lines."""
    if path is not None:
        check_drawable(path)
    if axes is not None:
        return save_figure(_draw_on_axes(axes, series), path)
    by_unit: dict[str, list[Series]] = {}
    for each in series:
        by_unit.setdefault(each.unit, []).append(each)
    figure, stack = new_figure(9, 0.9 + 2.1 * len(by_unit), rows=len(by_unit))
    for axes, lines in zip(stack, by_unit.values(), strict=True):
        _draw_lines(axes, lines)
    set_axes_title(stack[0], _shorten(title))
    stack[-1].set_xlabel("time [s]")
    figure.align_ylabels()
    return save_figure(figure, path)


def _draw_on_axes(axes: Axes, series: Sequence[Series]) -> Figure:
    """Draw lines beside those that axes have; return their figure."""
    from matplotlib.axes import Axes as KnownAxes

    expect(isinstance(axes, KnownAxes), "ax", axes, "axes of Matplotlib")
    units = {each.unit for each in series}
    for each in series:
        name = each.name if len(units) == 1 or not each.unit else f"{each.name} [{each.unit}]"
        style = "." if len(each.t) == 1 or _is_event(each) else "-"
        axes.plot(*decimate(each), style, label=_fit_label(name), linewidth=1.3)
    if not axes.get_ylabel() and len(units) == 1:
        axes.set_ylabel(_fit_label(f"[{units.pop() or '-'}]"))
    if not axes.get_xlabel():
        axes.set_xlabel("time [s]")
    axes.legend(frameon=False, fontsize="small")
    return axes.get_figure(root=True)  # type: ignore[return-value]


def new_figure(
    width: float, height: float, columns: int = 1, widths: Sequence[float] | None = None, *, rows: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure with axes side by side, of equal or of these relative widths, or in rows."""
    import_extra("matplotlib.figure", "plot")
    from hocket.files.figures import ShownFigure

    figure: Figure = ShownFigure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=rows > 1, width_ratios=widths)
    axes: list[Axes] = list(grid.ravel())
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_figure(figure: Figure, path: Path | str | None) -> Figure:
    """Return the figure; `path` also saves it, in the format of its ending."""
    if path is not None:
        check_drawable(path)
        with replace_file(path) as file:
            figure.savefig(file, format=Path(path).suffix[1:].lower(), dpi=150)
    return figure


def set_axes_title(axes: Axes, title: str) -> None:
    """Put a title at the left; a `$` in it does not begin a formula."""
    axes.set_title(
        _write_out_controls(title), loc="left", fontsize="medium", fontweight="bold", parse_math=False
    )


def draw_share_bars(axes: Axes, names: Sequence[str], shares: Sequence[float], colour: str = BLUE) -> None:
    """Draw shares as lying bars, the largest on top."""
    places = np.arange(len(names))[::-1]
    axes.barh(places, finite_values(np.array(shares)), color=colour)
    axes.set_yticks(places, list(map(_write_out_controls, names)), parse_math=False)
    axes.grid(axis="x", alpha=0.3)


def check_drawable(path: Path | str) -> None:
    """Refuse a picture that could not be drawn, by the ending of its name or for want of Matplotlib."""
    canvas = import_extra("matplotlib.figure", "plot").Figure().canvas
    kinds, kind = canvas.get_supported_filetypes(), as_path(path).suffix[1:].lower()
    if kind not in kinds:
        what = f"cannot draw a `{kind}` file" if kind else f"`{Path(path).name}` has no ending"
        raise FileError(
            what,
            str(path),
            "a name that ends in .png, .svg or .pdf",
            suggest_nearest(kind, kinds, listing=False),
        )


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
        lone = len(series.t) == 1 or _is_event(series)
        axes.plot(*decimate(series), "." if lone else style, color=_COLOURS[i % len(_COLOURS)], linewidth=1.3)
    last_names = {series.name.partition(": ")[0].rpartition(".")[2] for series in lines}
    shared = f"{last_names.pop()} " if len(last_names) == 1 else ""
    axes.set_ylabel(_fit_label(f"{shared}[{lines[0].unit or '-'}]"))
    axes.margins(x=0)
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    labels = [_fit_label(series.name) for series in lines]
    handles = list(axes.lines)
    if len(labels) > _LABELS:
        labels[_LABELS - 1 :] = [f"and {len(labels) - _LABELS + 1} more"]
        handles[_LABELS - 1 :] = axes.plot([], [], " ")
    outside = (1.0, 1.03)
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=outside, frameon=False, fontsize="small")


def _is_event(series: Series) -> bool:
    """Return whether a series has values at single instants only; a value that is absent is not a number."""
    return bool(np.isnan(series.values).any())


def finite_values(values: Array) -> Array:
    """Return values with gaps where they are too large to be drawn."""
    return np.where(np.abs(values) < _HUGE, values, np.nan)


def decimate(series: Series) -> tuple[Array, Array]:
    """Return a line that looks like the series: of many samples the extremes in each of many short spans."""
    t, low, high = envelope(series.t, series.values, series.values)
    if len(t) == len(series.t):
        return t, low
    return t.repeat(2), np.stack([low, high], axis=1).ravel()


def envelope(t: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Return the lowest and the highest value in each of many short spans, if there are more samples."""
    low, high = finite_values(low), finite_values(high)
    if len(t) <= 2 * _BINS:
        return t, low, high
    edges = np.linspace(0, len(t), _BINS, endpoint=False).astype(np.intp)
    return t[edges], np.fmin.reduceat(low, edges), np.fmax.reduceat(high, edges)


def _write_out_controls(text: str) -> str:
    """Return a text whose control characters are written out: no font has a sign for them."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _shorten(text: str) -> str:
    text = _write_out_controls(text)
    return text if len(text) <= 40 else f"…{text[-39:]}"


def _fit_label(text: str) -> str:
    """Return text that fits beside the axes and that Matplotlib does not take for a formula."""
    return _shorten(text).replace("$", r"\$")
