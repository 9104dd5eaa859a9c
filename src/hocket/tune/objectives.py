"""What a coupling is worth: numbers that need no run, numbers of short runs, and numbers of one's own.

In:  a Composite, how long it runs, and the names of objectives
Out: a number for each; infinite where it has none
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from hocket.analysis.consistency import relative_consistency
from hocket.analysis.leaps import leaping
from hocket.analysis.linear import Reading, read_linear
from hocket.analysis.models import linearised
from hocket.analysis.played import with_sources
from hocket.analysis.prediction import PredictedError, predicted_error
from hocket.analysis.radius import stability_radius, structured_radius
from hocket.analysis.settling import settling
from hocket.analysis.stability import radius
from hocket.analysis.variants import cold
from hocket.engine.composite import Composite
from hocket.errors import HocketError, ScenarioError, nearest
from hocket.parameters import leaves
from hocket.simulators.loading import load
from hocket.simulators.state_space import StateSpace
from hocket.tune.measured import measured_error, measured_seconds
from hocket.tune.work import Work, work_of

Own: TypeAlias = Callable[[Composite], float]


class Case:
    """One coupling; what several objectives need is worked out once."""

    def __init__(
        self,
        composite: Composite,
        stop: Fraction | None,
        start: Fraction = Fraction(0),
        now: Work | None = None,
    ):
        self.composite, self.stop, self.start, self.now = composite, stop, start, now

    @cached_property
    def linear(self) -> Composite:
        """The composite with linear models in place of all others."""
        if all(type(model) is StateSpace for _, model in leaves(self.composite)):
            return leaping(self.composite)
        others = len(self.composite.scenario.models) > 1
        return leaping(linearised(self.composite, still=others, start=self.start).composite)

    @cached_property
    def reading(self) -> Reading:
        """Its step as a matrix; how it starts does not matter to that."""
        return read_linear(cold(self.linear) if _looks_back(self.linear) else self.linear)

    @cached_property
    def prediction(self) -> PredictedError:
        """Its error over the run."""
        if self.stop is None:
            what = "an error is that of a run, and nothing says how long that is"
            raise ScenarioError(what, "objectives", "a stop time", "--stop 10, or `stop` under [run]")
        reading = read_linear(with_sources(self.linear, self.stop, self.start))
        return predicted_error(reading, self.stop, measure=False)

    @cached_property
    def work(self) -> Work:
        """Exchanges and steps per second; iterations to the end with the sweeps they should take."""
        try:
            sweeps = {each.level: each.sweeps for each in settling(self.reading)}
        except HocketError:
            sweeps = {}
        return work_of(self.composite, sweeps)


def _looks_back(composite: Composite) -> bool:
    """Return whether inputs anywhere are fitted to more than the newest sample."""
    own = [composite.extrapolation, *(each.extrapolation for each in composite.scenario.connections)]
    inner = (model for model in composite.scenario.models.values() if isinstance(model, Composite))
    return any(each is not None and each.samples > 1 for each in own) or any(map(_looks_back, inner))


@dataclass(frozen=True)
class Objective:
    """A number to be made small, or large; `limit` is one that may not be passed."""

    name: str
    larger: bool = False
    limit: float | None = None

    def cost(self, value: float) -> float:
        """Return the number as one to be made small."""
        return -value if self.larger else value

    def within(self, value: float) -> bool:
        """Return whether a number is within the limit."""
        return self.limit is None or self.cost(value) <= self.cost(self.limit)

    @property
    def words(self) -> str:
        """What it is, for people."""
        return WORDS.get(self.name.partition(":")[0], self.name)


def _error(case: Case) -> float:
    """The 2-norm of the largest errors of all outputs, in their units."""
    return float(np.sqrt(sum(port.largest**2 for port in case.prediction.ports)))


def _times(case: Case) -> float:
    """Work as a multiple of that of now: of exchanges or of simulator steps, whichever grew more."""
    if case.now is None:
        raise ScenarioError("nothing is known of now", "objectives", "exchanges, or steps")
    return max(case.work.exchanges / case.now.exchanges, case.work.steps / case.now.steps)


MEASURES: dict[str, Callable[[Case], float]] = {
    "rho": lambda case: radius(case.reading),
    "delta": lambda case: relative_consistency(case.linear).delta,
    "error": _error,
    "relative": lambda case: case.prediction.worst.relative,
    "radius": lambda case: stability_radius(case.reading).radius,
    "work": _times,
    "exchanges": lambda case: case.work.exchanges,
    "steps": lambda case: case.work.steps,
    "step": lambda case: float(case.composite.step),
    "measured": lambda case: measured_error(case.composite, case.stop, case.start),
    "seconds": lambda case: measured_seconds(case.composite, case.stop, case.start),
}
LARGER = ("radius", "step")
WORDS = {
    "rho": "spectral radius of a step",
    "delta": "relative consistency",
    "error": "2-norm of the largest errors",
    "relative": "largest error over largest value",
    "radius": "stability radius",
    "work": "work, in that of now",
    "exchanges": "values exchanged per second",
    "steps": "simulator steps per second",
    "step": "outermost step [s]",
    "measured": "difference to half the steps, in a run",
    "seconds": "seconds of a run",
}


def objectives(names: Sequence[str], limits: Mapping[str, float] | None = None) -> tuple[Objective, ...]:
    """Return objectives by name: one of MEASURES, `radius:one,two`, or `file.py:function`.

    The radius with names is that of changes in these simulators only. A function takes the composite; it is
    made small. A limit on something that is no objective is one all the same. Raises ScenarioError.
    """
    wanted = {name: (limits or {}).get(name) for name in (*names, *(limits or {}))}
    for name in wanted:
        known = name.partition(":")[0]
        if known not in MEASURES and ".py:" not in name and "." not in name:
            hint = nearest(name, MEASURES)
            raise ScenarioError(f"there is no objective `{name}`", "objectives", "", hint)
    if not names:
        raise ScenarioError("there is no objective", "objectives", ", ".join(MEASURES))
    return tuple(Objective(name, name.partition(":")[0] in LARGER, limit) for name, limit in wanted.items())


def judged(case: Case, wanted: Sequence[Objective]) -> tuple[float, ...]:
    """Return the number of each objective; nan where there is none."""
    return tuple(_number(case, objective.name) for objective in wanted)


def _number(case: Case, name: str) -> float:
    try:
        found = float(_measure(name)(case))
    except (HocketError, np.linalg.LinAlgError, OverflowError):
        return math.nan
    return found


def _measure(name: str) -> Callable[[Case], float]:
    if name in MEASURES:
        return MEASURES[name]
    kind, _, rest = name.partition(":")
    if kind == "radius":
        sims = [each.strip() for each in rest.split(",")]
        return lambda case: structured_radius(case.reading, *sims).radius
    own: Any = load(name, "")
    return lambda case: float(own(case.composite))
