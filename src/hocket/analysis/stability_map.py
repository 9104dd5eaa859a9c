"""The stability map: the spectral radius over two parameters, and the boundary of stability.

In:  a function from two parameters to a Composite, and a grid; a Composite and the names of what varies
Out: a StabilityMap: spectral radii on a grid, and lines on which they are one; a VariedRadius
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from hocket.analysis.linear_models import merge_micro_steps
from hocket.analysis.linear_reading import Reading, read_linear
from hocket.analysis.linearisation import linearise
from hocket.analysis.measure import Measure, Rows
from hocket.analysis.stability import spectral_radius, spectrum
from hocket.analysis.stability_intervals import (
    CountCallback,
    check_scalable,
    count_still_motions,
    find_crossing,
    largest_modulus,
    radius_at_step,
)
from hocket.errors import ConvergenceError, HocketError, ScenarioError, SimulatorError
from hocket.model.composite import Composite, levels
from hocket.model.extrapolators import Hold, Nepce
from hocket.model.protocols import Array, Extrapolator
from hocket.planning.parameters import (
    FINE,
    change_extrapolation,
    change_level,
    with_cold_starts,
    with_parameters,
    with_step,
)
from hocket.planning.planner import plan_tree

Make: TypeAlias = Callable[[float, float], Composite | float]
Rho: TypeAlias = Callable[[float, float], float]
Point: TypeAlias = tuple[float, float]

EXACT = 1e-8
"""How well a crossing is found, relative to the side of a cell."""


@dataclass(frozen=True, eq=False)
class StabilityMap(Measure):
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

    title = "stability map"
    picture = ""

    def verdict(self) -> list[str]:
        """Return how much of the map is stable."""
        known = np.isfinite(self.rho)
        stable = int((self.rho[known] < 1.0).sum())
        lines = [f"stable at {stable:,} of {self.rho.size:,} points of the map"]
        if (~known).any():
            lines.append(f"not judged, or without a solution: {int((~known).sum()):,} points")
        return lines

    def notes(self) -> list[str]:
        """Return where to see it: its points make no table."""
        return ["--plot PNG draws the map with the boundary of stability, --json FILE writes it"]

    def points(self) -> Rows:
        """Return the spectral radius at each point of the grid."""
        return [
            {self.names[0]: float(x), self.names[1]: float(y), "spectral radius": float(self.rho[j, i])}
            for j, y in enumerate(self.y)
            for i, x in enumerate(self.x)
        ]

    def facts(self) -> dict[str, Any]:
        return {"names": self.names, "points": self.points(), "boundary": self.boundary}

    def draw(self) -> Any:
        """Draw the spectral radius as colours and the boundary as a line."""
        from hocket.files.plotting import import_extra, new_figure, set_axes_title

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
        bar = figure.colorbar(colours, label="spectral radius", ticks=sorted([0.0, *ticks]))
        bar.ax.set_yticklabels([f"{10.0**tick:.4g}" for tick in sorted([0.0, *ticks])])
        axes.set_xlabel(self.names[0], parse_math=False)
        axes.set_ylabel(self.names[1], parse_math=False)
        axes.set_xscale("log" if self.logarithmic[0] else "linear")
        axes.set_yscale("log" if self.logarithmic[1] else "linear")
        axes.set(xlim=(self.x[0], self.x[-1]), ylim=(self.y[0], self.y[-1]))
        line = "on the line the spectral radius is one" if self.boundary else "there is no boundary here"
        set_axes_title(axes, f"stable where blue; {line}")
        return figure


def stability_map(
    what: Make,
    x: Sequence[float],
    y: Sequence[float],
    names: tuple[str, str] = ("x", "y"),
    logarithmic: tuple[bool, bool] = (False, False),
    progress: CountCallback | None = None,
) -> StabilityMap:
    """Return the radius of what two parameters give over a grid, and the boundary between its points.

    That is a composite, or a radius; raises HocketError if it is known nowhere. `progress` is called with how
    many radii are known, and of how many at least.
    """
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    failures: list[HocketError] = []
    count, wanted = 0, len(xs) * len(ys)

    def radius_or_nan(a: float, b: float) -> float:
        nonlocal count
        count += 1
        if progress:
            progress(count, max(wanted, count))
        try:
            found = what(a, b)
            return spectral_radius(found) if isinstance(found, Composite) else found
        except HocketError as error:
            failures.append(error)
            return math.nan

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


STEP = "step"
ALPHA = "alpha"


def is_step(composite: Composite, name: str) -> bool:
    """Return whether a name is that of a level's step, the outermost's or another."""
    return name.endswith(STEP) and name.removesuffix(STEP) in dict(levels(composite))


def variable_names(composite: Composite) -> list[str]:
    """Return what can vary and is not a parameter of a model: steps and filters, as they are typed."""
    inside = [level.path for level in plan_tree(composite).levels() if level.path]
    targets = [connection.target for connection in composite.scenario.connections]
    filtered = (f"{path}.{ALPHA}" for path in (*inside, *targets))
    return [STEP, *(f"{path}.{STEP}" for path in inside), ALPHA, *filtered]


def with_values(composite: Composite, values: Mapping[str, float], where: str = "parameters") -> Composite:
    """Return the composite with other values; raises ScenarioError for names and values that do not fit.

    Levels inside keep their ratios to `step`. A level's own step becomes the next shorter one that divides
    the step around it, or that is a multiple of it. `alpha` is that of a filtered hold: of the outermost
    level, or with a path of another level, or of an input that is driven. Rows and columns count from one.
    """
    steps = {name: value for name, value in values.items() if is_step(composite, name)}
    parameters: dict[str, float] = {}
    for name in [name for name in values if name not in steps]:
        path, _, last = name.rpartition(".")
        change = partial(_change_filter, alpha=values[name], name=name, where=where)
        filtered = change_extrapolation(composite, path, change) if last == ALPHA else None
        if filtered is None:
            parameters[name] = values[name]
        else:
            composite = filtered
    composite = with_parameters(composite, parameters, where)
    if STEP in steps:
        composite = with_step(composite, steps.pop(STEP))
    for name, step in steps.items():
        around, _, inner = name.removesuffix(f".{STEP}").rpartition(".")
        change_step = partial(_with_inner_step, name=inner, step=Fraction(step).limit_denominator(FINE))
        composite = change_level(composite, around, change_step)
    return composite


def _with_inner_step(level: Composite, name: str, step: Fraction) -> Composite:
    inner: Any = level.scenario.models[name]
    around = level.step
    fits = around / math.ceil(around / step) if step < around else around * math.floor(step / around)
    models = {**level.scenario.models, name: with_step(inner, fits)}
    return level.with_scenario(level.scenario.with_models(models))


def _change_filter(extrapolation: Extrapolator, alpha: float, name: str, where: str) -> Nepce:
    """Return another filter in place of a hold or a filter; raises ScenarioError for anything else."""
    if not isinstance(extrapolation, (Hold, Nepce)):
        what = f"`{name}` cannot vary: the extrapolation is {extrapolation!r}"
        raise ScenarioError(what, where, 'a hold, or { type = "nepce", alpha = 0.5 }')
    return Nepce(alpha)


class VariedRadius:
    """The radius of a coupling as a function of some of its values, in the order of their names.

    What is not linear is linearised at the start for each of them. Where only the outermost step differs, the
    reading is used again. Motions that stand still by themselves, as free bodies do, are left out.
    """

    def __init__(
        self,
        composite: Composite,
        names: Sequence[str],
        start: Fraction = Fraction(0),
        where: str = "parameters",
    ):
        self.composite, self.names, self.start, self.where = composite, tuple(names), start, where
        inside = [name for name in names if name != STEP and is_step(composite, name)]
        self.rescales = STEP in names and not inside
        self.readings: dict[tuple[float, ...], tuple[Reading, int]] = {}

    def __call__(self, *values: float) -> float:
        """Return rho; infinite where a loop has no solution, or numbers grow beyond all bounds."""
        given = dict(zip(self.names, values, strict=True))
        try:
            return self._radius_by_rescaling(given) if self.rescales else self._radius_by_reading(given)
        except (ConvergenceError, SimulatorError):
            return math.inf

    def _radius_by_rescaling(self, values: Mapping[str, float]) -> float:
        others = {name: value for name, value in values.items() if name != STEP}
        key = tuple(others.values())
        if key not in self.readings:
            reading, still = self._read(others)
            try:
                check_scalable(reading)
            except ScenarioError:
                self.rescales = False
                return self._radius_by_reading(values)
            self.readings[key] = reading, still
        reading, still = self.readings[key]
        return radius_at_step(reading, still, values[STEP])

    def _radius_by_reading(self, values: Mapping[str, float]) -> float:
        reading, still = self._read(values)
        eigenvalues = spectrum(reading.core, 1 + still, vectors=False)[0]
        return largest_modulus(np.asarray(eigenvalues, complex), still)

    def _read(self, values: Mapping[str, float]) -> tuple[Reading, int]:
        made = with_values(self.composite, values, self.where)
        others = len(plan_tree(made).leaves.places) > 1
        linear = linearise(made, still=others, start=self.start).composite
        reading = read_linear(with_cold_starts(merge_micro_steps(linear)))
        try:
            return reading, count_still_motions(reading)
        except HocketError:
            return reading, 0
