"""Pictures of runs with the bands in which they are expected to be.

In:  an ErrorEstimate; series, and the figure they are drawn in
Out: a Matplotlib figure; nothing global is touched and no display is needed
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.files.drawing import Series, check_drawable, import_extra
from hocket.files.whole import replace_file
from hocket.model import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hocket.files.estimate import ErrorEstimate, PortEstimate

BLUE = "#0072B2"
SHOWN = 6
"""Ports in a picture of a trust, the worst ones."""
_BINS = 2000
_HUGE = 1e100  # an unstable run may leave numbers for which Matplotlib finds no scale


def draw_bands(trust: ErrorEstimate, path: Path | str | None = None) -> Any:
    """Draw the worst ports, each in axes of its own; without any, defects. `path` also saves the picture."""
    if not trust.ports:
        return _draw_defect_bars(trust, path)
    shown = trust.ports[:SHOWN]
    figures, size = import_extra("matplotlib.figure", "plot"), (9, 0.9 + 1.7 * max(1, len(shown)))
    figure: Figure = figures.Figure(figsize=size, layout="constrained")
    stack = list(figure.subplots(max(1, len(shown)), 1, sharex=True, squeeze=False)[:, 0])
    for axes, each in zip(stack, shown, strict=False):
        fill_band(axes, each, BLUE)
        t, low, high = _band_envelope(each.run.t, each.run.values, each.run.values)
        axes.plot(np.repeat(t, 2), np.stack([low, high], axis=1).ravel(), color=BLUE, linewidth=1.2)
        unit = f" [{each.run.unit}]" if each.run.unit else ""
        title = f"{each.port}{unit}: {each.largest:.2g} at most, {each.relative:.2g} of its largest value"
        axes.set_title(title.replace("$", r"\$"), loc="left", fontsize="medium", fontweight="bold")
    for axes in stack:
        axes.grid(alpha=0.3)
        axes.margins(x=0)
        axes.spines[["top", "right"]].set_visible(False)
    stack[-1].set_xlabel("time [s]")
    return save_figure(figure, path)


def _draw_defect_bars(trust: ErrorEstimate, path: Path | str | None) -> Any:
    gaps = trust.gaps[:30]
    size = 9, 1.2 + 0.3 * len(gaps)
    figure: Figure = import_extra("matplotlib.figure", "plot").Figure(figsize=size, layout="constrained")
    axes, places = figure.subplots(), np.arange(len(gaps))[::-1]
    axes.barh(places, [gap.relative if gap.relative < _HUGE else np.nan for gap in gaps], color=BLUE)
    axes.set_yticks(places, [gap.input.replace("$", r"\$") for gap in gaps])
    axes.set_xlabel("largest defect over the largest value")
    title = "how far inputs were from the outputs that drive them"
    axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return save_figure(figure, path)


def add_bands(figure: Figure, series: Sequence[Series], trust: ErrorEstimate) -> int:
    """Fill the bands around series that `draw_series` drew in a figure, one axes per unit; return how many."""
    axes = dict(zip(dict.fromkeys(each.unit for each in series), figure.axes, strict=False))
    numbers: dict[str, int] = {}
    found = 0
    for each in series:
        number = numbers[each.unit] = numbers.get(each.unit, -1) + 1
        if each.name in trust:
            place = axes[each.unit]
            fill_band(place, trust[each.name], str(place.lines[number].get_color()))
            found += 1
    if found:
        words = "with its estimated error" + (", not to be trusted" if trust.doubts else "")
        title = figure.axes[0].get_title(loc="left")
        figure.axes[0].set_title(f"{title}, {words}", loc="left", fontsize="medium", fontweight="bold")
    return found


def save_figure(figure: Figure, path: Path | str | None) -> Figure:
    """Return the figure; `path` also saves it, in the format of its ending."""
    if path is not None:
        check_drawable(path)
        with replace_file(path) as file:
            figure.savefig(file, format=Path(path).suffix[1:].lower(), dpi=150)
    return figure


def fill_band(axes: Axes, each: PortEstimate, colour: str) -> None:
    """Fill the band around one port."""
    band = np.abs(each.error)
    with np.errstate(over="ignore", invalid="ignore"):
        t, low, high = _band_envelope(each.run.t, each.run.values - band, each.run.values + band)
    axes.fill_between(t, low, high, color=colour, alpha=0.22, linewidth=0.0)


def _band_envelope(t: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Return the lowest and the highest in each of many short spans, if there are more samples."""
    low, high = (np.where(np.abs(part) < _HUGE, part, np.nan) for part in (low, high))
    if len(t) <= 2 * _BINS:
        return t, low, high
    edges = np.linspace(0, len(t), _BINS, endpoint=False).astype(np.intp)
    return t[edges], np.fmin.reduceat(low, edges), np.fmax.reduceat(high, edges)
