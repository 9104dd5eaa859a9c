"""Deadlines: are the steps of a co-simulation computed in time, and which simulator is late?

In:  an Experiment, with execution times that are declared, and the real-time factor that is wanted
Out: a measure of `hocket check`: the factor in the worst case, proven from declared times or seen in steps

All simulators compute one after the other, on one processor: threads and hosts can only be faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.errors import HocketError, ScenarioError, list_names, suggest_nearest
from hocket.execution.live import open as open_live
from hocket.model.arguments import expect, is_positive
from hocket.model.experiment import Experiment
from hocket.model.protocols import Model
from hocket.plan import Adapt, Instant, Repeat, walk
from hocket.planning.cost import plan_cost
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree

STEPS = 9
"""Steps of a simulator by itself of which the median and the longest count."""
MACRO_STEPS, SECONDS = 400, 1.0
"""Macro steps that are measured at the most, and for how long."""


@dataclass(frozen=True)
class StepCost:
    """What the steps of one simulator cost in a macro step of the outermost level, at the most."""

    path: str
    steps: Fraction
    each: float
    """Seconds of a step: declared, or the longest that was seen."""
    declared: bool

    @property
    def seconds(self) -> float:
        """Seconds of all of them."""
        return float(self.steps) * self.each


@dataclass(frozen=True)
class Deadline(Measure):
    """Whether every macro step is computed in time."""

    costs: tuple[StepCost, ...]
    step: float
    """The macro step of the outermost level, in seconds."""
    wanted: float
    """The real-time factor that is to be kept."""
    expected: float | None = None
    """Seconds that a macro step took, in the middle; None: it was not measured."""
    unbounded: tuple[str, ...] = ()
    """Why there is no bound."""

    title = "deadline"

    @property
    def worst(self) -> float:
        """Seconds of a macro step in the worst case."""
        return sum(cost.seconds for cost in self.costs)

    @property
    def is_proven(self) -> bool:
        """Whether all execution times are declared: then nothing is later than what is said here."""
        return all(cost.declared for cost in self.costs) and not self.unbounded

    @property
    def is_missed(self) -> bool:
        """Whether a macro step may take longer than it is given."""
        return self.worst * self.wanted > self.step

    @property
    def outcome(self) -> Outcome:
        if self.is_missed:
            return Outcome.BAD
        return Outcome.NOT_JUDGED if self.unbounded else Outcome.GOOD

    @property
    def late(self) -> StepCost:
        """The simulator that takes most of a macro step."""
        return max(self.costs, key=lambda cost: cost.seconds)

    def verdict(self) -> list[str]:
        factors = [] if self.expected is None else [f"{_factor(self.step, self.expected)} expected"]
        worst = "in the worst case" if self.is_proven else "at the worst seen"
        line = f"real-time factor {', '.join([*factors, f'{_factor(self.step, self.worst)} {worst}'])}"
        if self.is_missed:
            late, given = self.late, self.step / self.wanted
            line += f": deadline missed by `{late.path}`, {late.seconds:.3g} s of each {given:.3g} s"
        elif self.unbounded:
            line += f"; not judged: {self.unbounded[0]}"
        else:
            line += f": every deadline of {self.step / self.wanted:.3g} s is kept"
        return [line]

    def rows(self) -> Rows:
        return [
            {
                "simulator": cost.path,
                "steps": float(cost.steps),
                "longest [s]": cost.each,
                "per macro step [s]": cost.seconds,
                "execution time": "declared" if cost.declared else "measured",
            }
            for cost in sorted(self.costs, key=lambda cost: -cost.seconds)
        ]

    def notes(self) -> list[str]:
        measured = [cost.path for cost in self.costs if not cost.declared]
        if not measured:
            return [*self.unbounded]
        told = f"the steps of {list_names(measured, 4)} were measured here: that is no bound"
        return [f"{told}; `[wcet]` in the file declares them", *self.unbounded]

    def facts(self) -> dict[str, Any]:
        facts = {
            "wanted": self.wanted,
            "worst": self.step / self.worst if self.worst else None,
            "expected": self.step / self.expected if self.expected else None,
            "proven": self.is_proven,
            "missed by": self.late.path if self.is_missed else None,
            "simulators": self.rows(),
        }
        return {self.title: facts}


def _factor(step: float, spent: float) -> str:
    return f"{step / spent:.3g}" if spent > 0.0 else "without limit"


def find_deadline(experiment: Experiment, wanted: float | None) -> list[Measure]:
    """Return the measure, where a real-time factor is wanted; what has no declared time is measured."""
    if wanted is None:
        return []
    expect(is_positive(wanted), "deadline", wanted, "a real-time factor above zero: 1 keeps pace")
    design = plan_tree(experiment.composite)
    leaves = design.leaves.wiring
    for path in experiment.wcet:
        if path not in leaves.names:
            hint = suggest_nearest(path, leaves.names)
            raise ScenarioError(f"there is no simulator `{path}`", f"wcet.{path}", "", hint)
    steps = plan_cost(design, _most_iterations(design)).steps
    homes = {
        level.name(child): float(level.composite.step)
        for level in design.levels()
        for child in range(len(level.wiring.names))
    }
    costs = []
    for path, model in zip(leaves.names, leaves.models, strict=True):
        declared = experiment.wcet.get(path)
        each = float(declared.longest) if declared else _longest_step(path, model, experiment, homes)
        costs.append(StepCost(path, steps.get(path, Fraction(0)), each, declared is not None))
    step = float(experiment.composite.step)
    measured = any(not cost.declared for cost in costs)
    expected = _measured_macro_step(experiment) if measured else None
    return [Deadline(tuple(costs), step, float(wanted), expected, tuple(_unbounded(design)))]


def _most_iterations(design: PlanTree) -> dict[str, float | None]:
    """Return how many iterations each level makes at the most that iterates to a tolerance, by path."""
    return {
        level.path: float(each.at_most)
        for level in design.levels()
        for _, each in walk(level.plan.step)
        if isinstance(each, Repeat)
    }


def _unbounded(design: PlanTree) -> list[str]:
    """Return why the number of steps has no bound."""
    found = []
    for level in design.levels():
        name = f"`{level.path}`" if level.path else "the outermost level"
        kinds = {type(each) for _, each in walk(level.plan.step)}
        if Adapt in kinds:
            found.append(f"{name} chooses its steps by their error: how many there are is not bounded")
        elif Instant in kinds:
            found.append(f"steps of {name} end at events: how many there are is not bounded")
    return found


def _longest_step(path: str, model: Model, experiment: Experiment, homes: dict[str, float]) -> float:
    """Return how long a step of a simulator took at the most, by itself, inputs at their start values."""
    u = np.array([[float(port.start or 0.0) for port in model.inputs]])
    t, h = float(experiment.start), homes[path]
    simulator, spent = model.open(), []
    try:
        simulator.start(t)
        for number in range(STEPS):
            before = perf_counter()
            simulator.step(t + number * h, h, u)
            simulator.output(t + (number + 1) * h, u)
            spent.append(perf_counter() - before)
    finally:
        simulator.close()
    return max(spent)


def _measured_macro_step(experiment: Experiment) -> float | None:
    """Return how long a macro step took in memory, in the middle; None: it could not be stepped."""
    spent: list[float] = []
    try:
        with open_live(experiment) as live:
            until = perf_counter() + SECONDS
            while len(spent) < MACRO_STEPS and perf_counter() < until and not live.ended_by:
                before = perf_counter()
                live.step()
                spent.append(perf_counter() - before)
    except HocketError:
        pass
    return median(spent) if spent else None
