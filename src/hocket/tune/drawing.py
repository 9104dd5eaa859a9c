"""The front as a picture: over its objectives, and over what was chosen where that are two numbers.

In:  a Tuned
Out: a figure
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.analysis.pictures import saved
from hocket.files.drawing import extra
from hocket.model import Array

if TYPE_CHECKING:
    from hocket.tune.tuned import Tuned

ORANGE, BLUE, GREY, RED = "#d95f02", "#1f5fa8", "#b5b5b5", "#c0252b"
WIDE = 30.0
"""From this ratio on an axis is logarithmic."""


def draw(tuned: Tuned, path: Path | str | None = None) -> Any:
    """Draw the front; of a whole grid over two numbers, each objective as a map with the front on it too."""
    extra("matplotlib", "plot")
    import matplotlib.pyplot as plt

    maps = _is_map(tuned)
    count = 1 + (tuned.goals if maps else 0)
    figure, axes = plt.subplots(1, count, figsize=(5.2 * count, 4.4), squeeze=False, layout="constrained")
    for k in range(tuned.goals if maps else 0):
        _map(figure, axes[0][k], tuned, k)
    _objectives(axes[0][-1], tuned)
    return saved(figure, path)


def _is_map(tuned: Tuned) -> bool:
    numeric = [all(isinstance(v, float) for v in each.values) for each in tuned.space.variables]
    return len(numeric) == 2 and all(numeric) and len(tuned.points) == tuned.space.size


def _far(values: Array) -> bool:
    kept = values[np.isfinite(values)]
    return bool(len(kept) and kept.min() > 0.0 and kept.max() / kept.min() > WIDE)


def _map(figure: Any, axes: Any, tuned: Tuned, number: int) -> None:
    x, y = (np.array(each.values) for each in tuned.space.variables)
    grid = np.array([row[number] for row in tuned.numbers]).reshape(len(x), len(y))
    far = _far(grid.ravel())
    drawn = np.log10(np.where(grid > 0.0, grid, np.nan)) if far else grid
    low, high = np.nanpercentile(drawn[np.isfinite(drawn)], (1, 97))
    mesh = axes.pcolormesh(
        x, y, drawn.T, shading="nearest", cmap="Greys", vmin=low, vmax=high, rasterized=True
    )
    name = tuned.wanted[number].name
    figure.colorbar(mesh, ax=axes, label=f"log10 {name}" if far else name)
    if name == "rho" and grid.min() < 1.0 < np.nanmax(grid):
        axes.contour(x, y, grid.T, [1.0], colors=RED, linestyles="dashed", linewidths=1.2)
    chosen = [tuned.space.values(tuned.points[k]) for k in tuned.front]
    names = [each.name for each in tuned.space.variables]
    places = np.array([[each[name] for name in names] for each in chosen])
    if len(places):
        axes.plot(places[:, 0], places[:, 1], "o", ms=3.5, color=ORANGE, label="front")
        axes.plot(*places[tuned.knee], "o", ms=8, mfc="none", mec=BLUE, mew=1.8, label="proposed")
    for scale, values in ((axes.set_xscale, x), (axes.set_yscale, y)):
        if _far(values):
            scale("log")
    axes.set(xlabel=names[0], ylabel=names[1], title=tuned.wanted[number].words)
    axes.legend(loc="best", fontsize=8)


def _objectives(axes: Any, tuned: Tuned) -> None:
    """Draw the first two objectives of every point within the limits."""
    first, second = 0, min(1, tuned.goals - 1)
    numbers = np.array(tuned.numbers)[:, [first, second]]
    inside = np.isfinite(tuned.costs).all(axis=1)
    front = list(tuned.front)
    shown = np.array([k for k in np.flatnonzero(inside) if k not in set(front)], int)
    axes.plot(*numbers[shown].T, ".", ms=2, color=GREY, label="judged", rasterized=True)
    axes.plot(*numbers[front].T, "o-", ms=3.5, lw=0.8, color=ORANGE, label="front")
    if front:
        axes.plot(*numbers[front[tuned.knee]], "o", ms=9, mfc="none", mec=BLUE, mew=1.8, label="proposed")
    now = np.array(tuned.now)[[first, second]]
    if np.isfinite(now).all():
        axes.plot(*now, "k*", ms=10, label="now")
    for scale, column, limits in ((axes.set_xscale, 0, axes.set_xlim), (axes.set_yscale, 1, axes.set_ylim)):
        values = numbers[front, column] if front else numbers[:, column]
        if _far(values):
            scale("log")
        spread = [*values, *([now[column]] if np.isfinite(now[column]) else [])]
        _fitted(limits, np.array(spread), _far(values))
    names = [tuned.wanted[k].words for k in (first, second)]
    axes.set(xlabel=names[0], ylabel=names[1], title="what was judged")
    axes.legend(loc="best", fontsize=8)


def _fitted(limits: Any, values: Array, far: bool) -> None:
    """Leave room around the front, whatever lies far from it."""
    low, high = float(values.min()), float(values.max())
    if far and low > 0.0:
        limits(low / 1.6, high * 4.0)
    elif high > low:
        limits(low - 0.1 * (high - low), high + 0.6 * (high - low))
