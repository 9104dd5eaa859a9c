"""The stability map: the radius over two parameters, with its boundary drawn where it is.

In:  a function from two parameters to a Composite, and where to look
Out: a StabilityMap: radii on a grid, and lines on which the radius is one
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from hocket.analysis.stability import radius
from hocket.engine.composite import Composite
from hocket.errors import HocketError
from hocket.model import Array

Make: TypeAlias = Callable[[float, float], Composite]
Point: TypeAlias = tuple[float, float]

EXACT = 1e-9
"""How well a crossing is found, relative to the side of a cell."""


@dataclass(frozen=True, eq=False)
class StabilityMap:
    """Radii over x and y; `boundary` has pieces of the line where the radius is one, as pairs of points.

    Each point of the boundary is found by bisection on a side of a cell, not between colours.
    """

    x: Array
    y: Array
    rho: Array
    """A row for each y; NaN where the scenario cannot run."""
    boundary: tuple[tuple[Point, Point], ...]
    names: tuple[str, str] = ("x", "y")

    def rows(self) -> list[dict[str, object]]:
        """Return one row for each point of the grid."""
        return [
            {self.names[0]: float(x), self.names[1]: float(y), "rho": float(self.rho[j, i])}
            for j, y in enumerate(self.y)
            for i, x in enumerate(self.x)
        ]

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the radius as colours and the boundary as a line."""
        from hocket.analysis.pictures import saved, sheet, titled

        figure, (axes,) = sheet(7, 4.5)
        reach = float(np.nanmax(np.abs(np.log10(np.clip(self.rho, 1e-3, 1e3))), initial=0.01))
        colours = axes.pcolormesh(
            self.x,
            self.y,
            np.log10(np.clip(self.rho, 1e-3, 1e3)),
            cmap="RdBu_r",
            vmin=-reach,
            vmax=reach,
            shading="gouraud",
        )
        for (x1, y1), (x2, y2) in self.boundary:
            axes.plot([x1, x2], [y1, y2], color="black", linewidth=1.2)
        figure.colorbar(colours, label="log10 of the factor per step")
        axes.set_xlabel(self.names[0])
        axes.set_ylabel(self.names[1])
        titled(axes, "stable where blue; the line is exact")
        return saved(figure, path)


def stability_map(
    make: Make, x: Sequence[float], y: Sequence[float], names: tuple[str, str] = ("x", "y")
) -> StabilityMap:
    """Return the radius over a grid, and the boundary of stability between its points."""
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)

    def rho(a: float, b: float) -> float:
        try:
            return radius(make(a, b))
        except HocketError:
            return float("nan")

    grid = np.array([[rho(a, b) for a in xs] for b in ys])
    return StabilityMap(xs, ys, grid, tuple(_boundary(rho, xs, ys, grid)), names)


def _boundary(
    rho: Callable[[float, float], float], x: Array, y: Array, grid: Array
) -> list[tuple[Point, Point]]:
    """Return pieces of the line, cell by cell (marching squares with exact crossings)."""
    sides: dict[tuple[int, int, int], Point | None] = {}

    def crossing(i: int, j: int, along_x: int) -> Point | None:
        """Return where the radius is one on the side that begins at a corner; None: nowhere, or twice."""
        key = (i, j, along_x)
        if key not in sides:
            ends = ((i, j), (i + 1, j) if along_x else (i, j + 1))
            values = [grid[b, a] - 1.0 for a, b in ends]
            crossed = bool(np.isfinite(values).all()) and (values[0] < 0.0) != (values[1] < 0.0)
            corners = [(float(x[a]), float(y[b])) for a, b in ends]
            sides[key] = _bisected(rho, corners[0], corners[1], values[0] < 0.0) if crossed else None
        return sides[key]

    pieces: list[tuple[Point, Point]] = []
    for j in range(len(y) - 1):
        for i in range(len(x) - 1):
            around = (crossing(i, j, 1), crossing(i + 1, j, 0), crossing(i, j + 1, 1), crossing(i, j, 0))
            points = [point for point in around if point is not None]
            pieces += [(points[k], points[k + 1]) for k in range(0, len(points) - 1, 2)]
    return pieces


def _bisected(rho: Callable[[float, float], float], one: Point, other: Point, stable: bool) -> Point:
    low, high = 0.0, 1.0
    while high - low > EXACT:
        middle = 0.5 * (low + high)
        there = rho(one[0] + middle * (other[0] - one[0]), one[1] + middle * (other[1] - one[1]))
        if (there < 1.0) == stable:
            low = middle
        else:
            high = middle
    middle = 0.5 * (low + high)
    return one[0] + middle * (other[0] - one[0]), one[1] + middle * (other[1] - one[1])
