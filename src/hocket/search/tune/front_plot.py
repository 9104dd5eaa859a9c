"""The front as a picture: over its objectives, and over what was chosen where that are two numbers.

In:  a TuningResult
Out: a Matplotlib figure
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hocket.files.plotting import BLUE, import_extra, new_figure, save_figure
from hocket.model.protocols import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Front: TypeAlias = Any
"""A TuningResult, which draws itself by this module and can therefore not be imported."""

ORANGE, PALE, RED = "#E69F00", "#B8B8B8", "#C0252B"
WIDE = 30.0
"""From this ratio on an axis is logarithmic."""
MANY = 1000
"""Points beyond which their dots are small."""
PLANES = 3
"""Pairs of objectives that are drawn, at the most."""
MARKS: dict[str, dict[str, Any]] = {
    "judged": {"marker": ".", "ms": 2.5, "color": PALE, "ls": "", "mec": "none"},
    "front": {"marker": "o", "ms": 4, "color": ORANGE, "ls": "", "mec": "white", "mew": 0.3},
    "proposed": {"marker": "o", "ms": 10, "mfc": "none", "mec": BLUE, "mew": 2, "ls": ""},
    "now": {"marker": "*", "ms": 12, "color": "black", "ls": "", "mec": "white", "mew": 0.6},
    "limit": {"color": RED, "ls": "--", "lw": 1.3},
}

BIG = {"judged": {"ms": 8}}
"""Marks that are larger in the legend."""


def draw(tuned: Front, path: Path | str | None = None) -> Any:
    """Draw the front; of a whole grid over two numbers, each objective as a map with the front on it too."""
    maps = tuned.goals if _is_map(tuned) else 0
    planes = max(1, min(PLANES, tuned.goals - 1))
    figure, axes = new_figure(4.7 * (maps + planes), 4.6, maps + planes)
    for number in range(maps):
        _map(figure, axes[number], tuned, number)
    for number in range(planes):
        _plane(axes[maps + number], tuned, 0, min(number + 1, tuned.goals - 1))
    used = dict.fromkeys(label for each in axes for label in each.get_legend_handles_labels()[1])
    handles = [
        import_extra("matplotlib.lines", "plot").Line2D(
            [], [], label=label, **MARKS[label if label in MARKS else "limit"] | BIG.get(label, {})
        )
        for label in used
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return save_figure(figure, path)


def _is_map(tuned: Front) -> bool:
    numeric = [all(isinstance(v, float) for v in each.values) for each in tuned.space.variables]
    sizes = [len(each) for each in tuned.space.variables]
    return len(sizes) == 2 and all(numeric) and min(sizes) > 2 and len(tuned.points) == tuned.space.size


def _far(values: Array) -> bool:
    kept = values[np.isfinite(values)]
    return bool(len(kept) and kept.min() > 0.0 and kept.max() / kept.min() > WIDE)


def _map(figure: Figure, axes: Axes, tuned: Front, number: int) -> None:
    """Draw an objective in grey over two numbers, dark where it is large."""
    first, second = tuned.space.variables
    x, y = np.array(first.values), np.array(second.values)
    grid = np.full((len(x), len(y)), np.nan)
    for (i, j), row in zip(tuned.points, tuned.numbers, strict=True):
        grid[i, j] = row[number]
    order = np.argsort(x), np.argsort(y)
    x, y, grid = x[order[0]], y[order[1]], grid[np.ix_(*order)]
    seen = grid[np.isfinite(grid)]
    if len(seen):
        low, high = (float(each) for each in np.percentile(seen, (1, 97)))
        far = _far(seen) and low > 0.0
        norm = import_extra("matplotlib.colors", "plot")
        scale = (norm.LogNorm if far else norm.Normalize)(low, high if high > low else low + 1.0)
        mesh = axes.pcolormesh(x, y, grid.T, shading="nearest", cmap="Greys", norm=scale, rasterized=True)
        figure.colorbar(mesh, ax=axes, label=tuned.wanted[number].name, extend="both", pad=0.02)
    _boundary(axes, x, y, grid, tuned, number)
    places = np.array(
        [[first.values[i], second.values[j]] for i, j in (tuned.points[k] for k in tuned.front)]
    )
    if len(places):
        axes.plot(*places.T, label="front", clip_on=False, zorder=4, **MARKS["front"])
        axes.plot(*places[tuned.knee], label="proposed", clip_on=False, zorder=5, **MARKS["proposed"])
    for scale_by, values in ((axes.set_xscale, x), (axes.set_yscale, y)):
        if _far(values):
            scale_by("log")
    axes.set_xlabel(_axis_label(first.name))
    axes.set_ylabel(_axis_label(second.name))
    _set_title(axes, tuned.wanted[number].words)


def _set_title(axes: Axes, title: str) -> None:
    """Put a title where it is out of the way of marks on the edge."""
    axes.set_title(title, loc="left", fontsize="medium", fontweight="bold", pad=12)


def _axis_label(name: str) -> str:
    return f"{name} [s]" if name.rpartition(".")[2] == "step" else name


def _edge(tuned: Front, number: int) -> float | None:
    """Return where a line is drawn for an objective: at its limit, or where couplings become unstable."""
    objective = tuned.wanted[number]
    return objective.limit if objective.limit is not None else 1.0 if objective.name == "rho" else None


def _label(tuned: Front, number: int) -> str:
    return "boundary of stability" if tuned.wanted[number].name == "rho" else "limit"


def _boundary(axes: Axes, x: Array, y: Array, grid: Array, tuned: Front, number: int) -> None:
    """Draw the line at which an objective passes its limit."""
    edge = _edge(tuned, number)
    seen = grid[np.isfinite(grid)]
    if edge is not None and len(seen) and seen.min() < edge < seen.max():
        axes.contour(x, y, grid.T, [edge], colors=RED, linestyles="dashed", linewidths=1.3)
        axes.plot([], [], label=_label(tuned, number), **MARKS["limit"])


def _plane(axes: Axes, tuned: Front, across: int, up: int) -> None:
    """Draw two objectives of all that was judged; of one alone, its values in their order."""
    numbers = np.array(tuned.numbers, float).reshape(len(tuned.points), len(tuned.wanted))
    now = np.array(tuned.now, float)
    if across == up:
        ranks = np.argsort(np.argsort(numbers[:, up])).astype(float) + 1.0
        columns, own = np.column_stack([ranks, numbers[:, up]]), np.array([np.nan, now[up]])
        names = ("couplings, in their order", tuned.wanted[up].words)
    else:
        columns, own = numbers[:, [across, up]], now[[across, up]]
        names = (tuned.wanted[across].words, tuned.wanted[up].words)
    front = list(tuned.front)
    size = 2.5 if len(columns) > MANY else 6.0
    axes.plot(*columns.T, label="judged", rasterized=True, zorder=1, **MARKS["judged"] | {"ms": size})
    if front:
        if tuned.goals == 2:
            axes.plot(*columns[front].T, color=ORANGE, lw=0.9, zorder=3)
        axes.plot(*columns[front].T, label="front", zorder=4, **MARKS["front"])
        axes.plot(*columns[front[tuned.knee]], label="proposed", zorder=5, **MARKS["proposed"])
    if np.isfinite(own).all():
        axes.plot(*own, label="now", zorder=6, **MARKS["now"])
    for side, goal in enumerate((across, up)):
        seen = [*(columns[front, side] if front else columns[:, side]), own[side]]
        edge = None if across == up else _edge(tuned, goal)
        _fit(axes, side, np.array([value for value in seen if np.isfinite(value)]), edge, _label(tuned, goal))
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    _set_title(axes, "what was judged")


def _fit(axes: Any, side: int, values: Array, edge: float | None, label: str) -> None:
    """Leave room around what must be seen, whatever lies far from it; draw a line at an edge that is near."""
    name = "xy"[side]
    low, high = _axis_range(values)
    if _far(values):
        getattr(axes, f"set_{name}scale")("log")
    getattr(axes, f"set_{name}lim")(low, high)
    if edge is not None and low < edge < high:
        line = axes.axvline if name == "x" else axes.axhline
        line(edge, label=label, zorder=2, **MARKS["limit"])


def _axis_range(values: Array) -> tuple[float, float]:
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if _far(values):
        room = (high / low) ** 0.08
        return low / room, high * room**3
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + 3.0 * room
