"""What is not beaten in all objectives at once, and the point of it to choose.

In:  objectives of many points, smaller is better
Out: the Pareto front; the space that it dominates; its knee

Dominance is that of Glumac & Kovacic 2019, equation 67, with the signs set right (theory, section 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from hocket.analysis.forced_response import run_solution
from hocket.analysis.linear_models import with_sources
from hocket.errors import HocketError, ScenarioError, SimulatorError, join_names
from hocket.execution.run import run
from hocket.model.composite import Composite
from hocket.model.html import html_lines, html_table, html_view
from hocket.model.protocols import Array
from hocket.planning.parameters import leaves
from hocket.search.case import Case
from hocket.search.tune.objectives import (
    Objective,
    counted_outputs,
    mixed_units_note,
    recorded_errors,
    with_shorter_steps,
)
from hocket.search.tune.point_judge import Numbers
from hocket.search.tune.space import Point, Space, apply_choices
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import StateSpace


def pareto_front(values: Array) -> list[int]:
    """Return the numbers of rows that no other row dominates, in the order of their first objective.

    A row dominates another if it is no worse in all and better in one. Rows with what is not a finite number
    are never in it; of equal rows the first is kept.
    """
    finite = [k for k in range(len(values)) if np.isfinite(values[k]).all()]
    order = sorted(finite, key=lambda k: (*values[k], k))
    kept: list[int] = []
    best = np.empty((0, values.shape[1]))
    for k in order:
        row = values[k]
        if len(best) and bool((best <= row).all(axis=1).any()):
            continue
        kept.append(k)
        best = np.vstack([best, row])
    return kept


def hypervolume(values: Array, worst: Sequence[float] | Array) -> float:
    """Return the volume between points and a worst point that is dominated by the points.

    By slices along the last objective (Fonseca, Paquete & Lopez-Ibanez 2006, in its simplest form).
    """
    corner = np.asarray(worst, float)
    inside = values[np.isfinite(values).all(axis=1)]
    inside = inside[(inside < corner).all(axis=1)]
    if not len(inside):
        return 0.0
    if values.shape[1] == 1:
        return float(corner[0] - inside[:, 0].min())
    order = np.argsort(inside[:, -1], kind="stable")
    heights = [*inside[order, -1], corner[-1]]
    total = 0.0
    for count in range(1, len(order) + 1):
        height = heights[count] - heights[count - 1]
        if height > 0.0:
            total += height * hypervolume(inside[order[:count], :-1], corner[:-1])
    return total


def knee(values: Array) -> int:
    """Return the number of the row of a front to choose.

    Each objective is measured from its best to its worst on the front, by its logarithm where all are
    positive and they span more than a decade; the row nearest to the best of all is the knee.
    """
    if len(values) == 1:
        return 0
    scaled = np.column_stack([_normalise_column(values[:, k]) for k in range(values.shape[1])])
    return int(np.argmin(np.sqrt((scaled**2).sum(axis=1))))


def _normalise_column(column: Array) -> Array:
    low, high = float(column.min()), float(column.max())
    if low > 0.0 and high / low > 10.0:
        column, low, high = np.log(column), math.log(low), math.log(high)
    return (column - low) / (high - low) if high > low else np.zeros_like(column)


EVEN, EXACT = 1.02, 1.0005
"""Times that still count as the same; of `rho`, which counts anew in every step."""
NOUNS = {
    "measured": "measured error",
    "relative": "relative error",
    "radius": "stability radius",
    "seconds": "time to run",
    "time": "computing time",
    "work": "work",
}

SIZES = ("rho", "delta", "step", "stability radius", "relative error")
"""What is large or small, rather than much or little."""


def reason(wanted: Sequence[Objective], new: Sequence[float], old: Sequence[float]) -> str:
    """Return what a coupling gains over that of now: what is better, what stays, and the price."""
    better: list[str] = []
    same: list[str] = []
    worse: list[str] = []
    other: list[str] = []
    for objective, after, before in zip(wanted, new, old, strict=True):
        noun = NOUNS.get(objective.name.partition(":")[0], objective.name)
        if not math.isfinite(before):
            other.append(f"{noun} {after:.3g}, where now has none")
        elif after == before:
            same.append(noun)
        elif before == 0.0 or after == 0.0 or (before < 0.0) != (after < 0.0):
            other.append(f"{noun} {after:.3g} instead of {before:.3g}")
        else:
            times = abs(after / before)
            if max(times, 1.0 / times) <= (EXACT if noun == "rho" else EVEN):
                same.append(noun)
            else:
                gains = objective.cost(after) < objective.cost(before)
                (better if gains else worse).append(_factor_words(noun, times))
    return "; ".join(filter(None, (" ".join(_gain_clauses(better, same, worse)), *other)))


def _factor_words(noun: str, times: float) -> str:
    if noun in SIZES:
        word = "larger" if times > 1.0 else "smaller"
        return f"a {_round(times)} times {word} {noun}"
    return f"{_round(times)} times {'more' if times > 1.0 else 'less'} {noun}"


def _round(times: float) -> str:
    many = max(times, 1.0 / times)
    if 20.0 <= many < 1e6:
        return f"{many:,.0f}"
    return f"{many:.4g}" if many < 1.1 else f"{many:.3g}" if many < 2.0 else f"{many:.2g}"


def _gain_clauses(better: list[str], same: list[str], worse: list[str]) -> Iterator[str]:
    if better:
        yield f"{join_names(better, '')} than now"
    if same:
        kept = f"the same {join_names(same, '')}"
        yield f"at {kept}" if better or worse else f"{kept} as now"
    if worse:
        yield f"{'but ' if better else ''}{join_names(worse, '')}" + ("" if better else " than now")


@dataclass(frozen=True, eq=False)
class TuningResult:
    """What was judged, and what is best of it."""

    composite: Composite
    space: Space
    wanted: tuple[Objective, ...]
    goals: int
    """How many of what is wanted are objectives; the others have limits only."""
    points: tuple[Point, ...]
    numbers: tuple[Numbers, ...]
    now: Numbers
    stop: Fraction | None
    """How long a run is."""
    start: Fraction = Fraction(0)

    @cached_property
    def costs(self) -> Array:
        """Per point its objectives, smaller is better; infinite beyond a limit."""
        found = np.full((len(self.points), self.goals), np.inf)
        for k, row in enumerate(self.numbers):
            if all(each.within(value) for each, value in zip(self.wanted, row, strict=True)):
                found[k] = [each.cost(v) for each, v in zip(self.wanted[: self.goals], row, strict=False)]
        return np.where(np.isnan(found), np.inf, found)

    @cached_property
    def front(self) -> tuple[int, ...]:
        """The numbers of the points on the Pareto front, in the order of the first objective."""
        return tuple(pareto_front(self.costs))

    @cached_property
    def knee(self) -> int:
        """Which row of the front to choose: the best of those no worse than now, else its knee."""
        if not self.front:
            raise ScenarioError(self._why_empty(), "limits", "", "wider limits, or more to choose from")
        costs = self.costs[list(self.front)]
        now = [each.cost(value) for each, value in zip(self.wanted, self.now, strict=True)]
        own = np.array(now[: self.goals])
        most = own + 1e-12 * abs(own)
        better = [k for k, row in enumerate(costs) if np.isfinite(own).all() and (row <= most).all()]
        if not better:
            return knee(costs)
        return better[knee(costs[better])] if self.goals > 2 else min(better, key=lambda k: tuple(costs[k]))

    def _why_empty(self) -> str:
        """Return why the front is empty: which limit none meets, and how near the best comes."""
        for number, each in enumerate(self.wanted):
            values = [row[number] for row in self.numbers if not math.isnan(row[number])]
            if each.limit is not None and not any(map(each.within, values)):
                best = f", the best is {min(values, key=each.cost):.6g}" if values else ""
                return f"no coupling has `{each.name}` within its limit of {each.limit:g}{best}"
        if any(each.limit is not None for each in self.wanted):
            return "no coupling is within all limits at once"
        return "no coupling has finite numbers for all objectives"

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about the numbers."""
        return tuple(filter(None, (mixed_units_note(each, self.composite) for each in self.wanted)))

    def volume(self, worst: Any) -> float:
        """Return the space that the front dominates, up to a worst point in costs."""
        return hypervolume(self.costs[list(self.front)], worst)

    def composite_of(self, row: int) -> Composite:
        """Return the coupling of a row of the front."""
        if not 0 <= row < len(self.front):
            what = f"the front has no row {row}"
            raise ScenarioError(what, "--apply", f"0 to {len(self.front) - 1}")
        return apply_choices(self.composite, self.space.values(self.points[self.front[row]]))

    def rows(self) -> list[dict[str, object]]:
        """Return the front: objectives, then choices."""
        return [
            {
                "row": row,
                **{each.name: value for each, value in zip(self.wanted, self.numbers[k], strict=True)},
                **self.space.words(self.points[k]),
            }
            for row, k in enumerate(self.front)
        ]

    def words(self, row: int | None = None) -> list[str]:
        """Return why to choose a row of the front: what is gained over now, and what changes for it."""
        chosen = self.knee if row is None else row
        point = self.front[chosen]
        changes = list(self._changes(self.points[point]))
        several = f"{len(changes)} choices change"
        count = {0: "nothing changes", 1: "one choice changes"}.get(len(changes), several)
        return [
            f"row {chosen}: {reason(self.wanted, self.numbers[point], self.now)}",
            f"{count} against now:",
            *(f"  {each}" for each in changes),
            *self.notes,
        ]

    def _repr_html_(self) -> str:
        lines = html_lines(self.words()) if self.front else html_lines([self._why_empty()])
        return html_view("TuningResult", {"judged": len(self.points)}, lines, html_table(self.rows()))

    def _changes(self, point: Point) -> Iterator[str]:
        for variable, k in zip(self.space.variables, point, strict=True):
            value = {variable.name: variable.values[k]}
            try:
                same = apply_choices(self.composite, value) == self.composite
            except ScenarioError:
                same = False
            if not same:
                yield f"{variable.name} = {variable.words[k]}"

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the front; of a grid over two numbers, the objectives as maps beside it."""
        from hocket.search.tune.front_plot import draw

        return draw(self, path)


FINER = (16, 12, 10, 8, 6, 5, 4, 3, 2)
"""Times that steps are shorter in the run that stands for the truth where none is known exactly."""

Truth: TypeAlias = Callable[[str, Array], Array]
"""From an output and times from the start to its values."""


@dataclass(frozen=True)
class PredictionCheck:
    """The 2-norm of the largest errors of the outputs that are recorded, and what the coupling costs."""

    predicted: float
    """nan: it cannot be told before a run."""
    found: float
    ports: int
    steps: float
    exchanges: float
    against: str = "the exact solution"

    def row(self) -> dict[str, object]:
        """Return it as a row of a table."""
        return {
            "predicted error": self.predicted,
            "error of the run": self.found,
            "outputs": self.ports,
            "simulator steps [1/s]": self.steps,
            "exchanges [1/s]": self.exchanges,
            "against": self.against,
        }


def check_prediction(composite: Composite, stop: Fraction, start: Fraction = Fraction(0)) -> PredictionCheck:
    """Return what was predicted for a coupling, and what its run shows.

    Systems of linear models and sources have an exact solution. Others are compared with a run of steps that
    are up to 16 times shorter. Of a run that fails, as one that blows up does, there is the reason.
    """
    case = Case(composite, stop, start)
    try:
        made = run(composite, start + stop, start=start, record=["*"])
    except SimulatorError as error:
        return _failed_check(case, error)
    try:
        ports = [port for port in recorded_errors(case) if port.port in made]  # sampled models tell as levels
        predicted = float(np.sqrt(sum(port.largest**2 for port in ports)))
        names = [port.port for port in ports]
    except HocketError:
        predicted = math.nan
        names = counted_outputs(composite, made.ports, ())
    truth, against = _truth(case)
    largest = [
        float(np.max(np.abs(made[name].values - truth(name, made[name].t - float(start))), initial=0.0))
        for name in names
    ]
    try:
        steps, exchanges = case.work.steps, case.work.exchanges
    except HocketError:
        steps = exchanges = math.nan
    return PredictionCheck(predicted, float(np.linalg.norm(largest)), len(names), steps, exchanges, against)


def _failed_check(case: Case, error: SimulatorError) -> PredictionCheck:
    """Return what was predicted for a run that did not get to its end."""
    reason = f"the run failed: {error.faults[0].what}"
    try:
        ports = recorded_errors(case)
        predicted, work = float(np.sqrt(sum(port.largest**2 for port in ports))), case.work
    except HocketError:
        return PredictionCheck(math.nan, math.inf, 0, math.nan, math.nan, reason)
    return PredictionCheck(predicted, math.inf, len(ports), work.steps, work.exchanges, reason)


def _truth(case: Case) -> tuple[Truth, str]:
    assert case.stop is not None
    known = (StateSpace, Table, Csv, Function)
    if all(isinstance(model, known) for _, model in leaves(case.composite)):
        solution = run_solution(with_sources(case.linear, case.stop, case.start), case.stop)
        return lambda name, t: solution.outputs(t)[:, solution.ports.index(name)], "the exact solution"
    finer, part = with_shorter_steps(case.composite, FINER)
    made = run(finer, case.start + case.stop, start=case.start, record=["*"])
    begin = float(case.start)
    interpolate: Truth = lambda name, t: np.interp(t, made[name].t - begin, made[name].values)  # noqa: E731
    return interpolate, f"{part} times shorter steps"
