"""The stability map: the radius over two parameters, with its boundary drawn where it is.

In:  a function from two parameters to a Composite, and where to look
Out: a StabilityMap: radii on a grid, and lines on which the radius is one
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from hocket.analysis.intervals import CountCallback
from hocket.analysis.search import find_crossing
from hocket.analysis.stability import spectral_radius
from hocket.engine.composite import Composite
from hocket.errors import HocketError
from hocket.model import Array

Make: TypeAlias = Callable[[float, float], Composite]
Rho: TypeAlias = Callable[[float, float], float]
Point: TypeAlias = tuple[float, float]

EXACT = 1e-8
"""How well a crossing is found, relative to the side of a cell."""


@dataclass(frozen=True, eq=False)
class StabilityMap:
    """Radii over x and y; `boundary` has pieces of the line where the radius is one, as pairs of points.

    Each point of the boundary is searched for on a side of a cell, not between colours. What is narrower than
    a cell may be missed.
    """

    x: Array
    y: Array
    rho: Array
    """A row for each y; NaN where the scenario cannot run."""
    boundary: tuple[tuple[Point, Point], ...]
    names: tuple[str, str] = ("x", "y")
    logarithmic: tuple[bool, bool] = (False, False)

    def rows(self) -> list[dict[str, object]]:
        """Return one row for each point of the grid."""
        return [
            {self.names[0]: float(x), self.names[1]: float(y), "rho": float(self.rho[j, i])}
            for j, y in enumerate(self.y)
            for i, x in enumerate(self.x)
        ]

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the radius as colours and the boundary as a line."""
        from hocket.analysis.pictures import new_figure, save_figure, set_axes_title
        from hocket.files.drawing import import_extra

        figure, (axes,) = new_figure(7, 4.5)
        shown = np.ma.masked_invalid(np.log10(np.clip(self.rho, 1e-3, 1e3)))
        reach = max(0.01, float(np.abs(shown).max() if shown.count() else 0.0))
        smooth: Literal["nearest", "gouraud"] = "nearest" if np.ma.is_masked(shown) else "gouraud"
        # colours tell one side of the boundary from the other, and so change fastest there
        norm = import_extra("matplotlib.colors", "plot").AsinhNorm(reach / 200.0, vmin=-reach, vmax=reach)
        colours = axes.pcolormesh(
            self.x, self.y, shown, cmap="RdBu_r", norm=norm, shading=smooth, rasterized=True
        )
        for (x1, y1), (x2, y2) in self.boundary:
            axes.plot([x1, x2], [y1, y2], color="black", linewidth=1.2, solid_capstyle="round")
        ticks = [side * reach * part for side in (-1, 1) for part in (0.01, 0.1, 1.0)]
        bar = figure.colorbar(colours, label="factor per step", ticks=sorted([0.0, *ticks]))
        bar.ax.set_yticklabels([f"{10.0**tick:.4g}" for tick in sorted([0.0, *ticks])])
        axes.set_xlabel(self.names[0].replace("$", r"\$"))
        axes.set_ylabel(self.names[1].replace("$", r"\$"))
        axes.set_xscale("log" if self.logarithmic[0] else "linear")
        axes.set_yscale("log" if self.logarithmic[1] else "linear")
        axes.set_xlim(self.x[0], self.x[-1])
        axes.set_ylim(self.y[0], self.y[-1])
        line = "on the line the factor is one" if self.boundary else "there is no boundary here"
        set_axes_title(axes, f"stable where blue; {line}")
        return save_figure(figure, path)


def stability_map(
    make: Make, x: Sequence[float], y: Sequence[float], names: tuple[str, str] = ("x", "y")
) -> StabilityMap:
    """Return the radius over a grid, and the boundary of stability between its points."""
    return map_radius(lambda a, b: spectral_radius(make(a, b)), x, y, names)


def map_radius(
    rho: Rho,
    x: Sequence[float],
    y: Sequence[float],
    names: tuple[str, str] = ("x", "y"),
    logarithmic: tuple[bool, bool] = (False, False),
    told: CountCallback | None = None,
) -> StabilityMap:
    """Return the same for a radius that is a function of two parameters; raises if it is known nowhere.

    `told` is called with how many radii are known, and of how many at least.
    """
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    failures: list[HocketError] = []
    count, wanted = 0, len(xs) * len(ys)

    def radius_or_nan(a: float, b: float) -> float:
        nonlocal count
        count += 1
        if told:
            told(count, max(wanted, count))
        try:
            return rho(a, b)
        except HocketError as error:
            failures.append(error)
            return float("nan")

    grid = np.array([[radius_or_nan(a, b) for a in xs] for b in ys])
    if len(failures) == grid.size and failures:
        raise failures[0]
    wanted += 8 * _count_crossed_sides(grid)
    return StabilityMap(xs, ys, grid, tuple(_trace_boundary(radius_or_nan, xs, ys, grid)), names, logarithmic)


def _count_crossed_sides(grid: Array) -> int:
    """Return how many sides of cells the boundary crosses."""
    stable = grid < 1.0
    return int((stable[1:] != stable[:-1]).sum() + (stable[:, 1:] != stable[:, :-1]).sum())


def _trace_boundary(rho: Rho, x: Array, y: Array, grid: Array) -> list[tuple[Point, Point]]:
    """Return pieces of the line, cell by cell (marching squares with exact crossings)."""
    sides: dict[tuple[int, int, int], Point | None] = {}

    def side_crossing(i: int, j: int, along_x: int) -> Point | None:
        """Return where the radius is one on the side that begins at a corner; None: nowhere, or twice."""
        key = (i, j, along_x)
        if key not in sides:
            ends = ((i, j), (i + 1, j) if along_x else (i, j + 1))
            values = [grid[b, a] - 1.0 for a, b in ends]
            crossed = not np.isnan(values).any() and (values[0] < 0.0) != (values[1] < 0.0)
            corners = [(float(x[a]), float(y[b])) for a, b in ends]
            sides[key] = _find_side_crossing(rho, corners[0], corners[1]) if crossed else None
        return sides[key]

    pieces: list[tuple[Point, Point]] = []
    for j in range(len(y) - 1):
        for i in range(len(x) - 1):
            around = (
                side_crossing(i, j, 1),
                side_crossing(i + 1, j, 0),
                side_crossing(i, j + 1, 1),
                side_crossing(i, j, 0),
            )
            points = [point for point in around if point is not None]
            pieces += [(points[k], points[k + 1]) for k in range(0, len(points) - 1, 2)]
    return pieces


def _find_side_crossing(rho: Rho, one: Point, other: Point) -> Point:
    """Return where the radius passes one between two points; where there is none it counts as large."""

    def at(s: float) -> Point:
        return one[0] + s * (other[0] - one[0]), one[1] + s * (other[1] - one[1])

    def height(s: float) -> float:
        value = rho(*at(s))
        return min(value - 1.0, 1.0) if value == value else 1.0

    return at(find_crossing(height, 0.0, 1.0, EXACT))
