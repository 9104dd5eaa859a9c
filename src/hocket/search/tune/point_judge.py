"""What judges a point of a space; it is sent to the workers.

In:  points of a Space
Out: the numbers of each, whoever asks
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from random import Random
from typing import Any, TypeAlias

import numpy as np

from hocket.analysis.consistency import defects_of_columns, open_at_unit_states, relative_consistency
from hocket.analysis.linear_models import merge_micro_steps
from hocket.analysis.linear_reading import Reading, read_linear
from hocket.analysis.stability_intervals import check_scalable, eigenvalues_at, largest_modulus, scaled_clock
from hocket.engine.reference.level import Level
from hocket.errors import HocketError
from hocket.model.clock import seconds
from hocket.model.composite import Composite
from hocket.model.protocols import Array
from hocket.planning.cost import Work
from hocket.planning.parameters import FINE, leaves, with_cold_starts, with_step
from hocket.search.case import Case
from hocket.search.tune.objectives import Objective, evaluate_objectives, failure
from hocket.search.tune.space import Point, Space, apply_choices
from hocket.simulators.state_space import StateSpace

RESCALED = ("rho", "delta", "step")
"""What is known of a coupling under other steps."""
STEPS = 2
"""After so many steps delta is taken (theory, section 1)."""


def read_scalable(composite: Composite) -> ScalableReading | None:
    """Return a coupling that was read for all steps; None: some of its steps cannot change."""
    linear = merge_micro_steps(composite)
    try:
        reading = read_linear(with_cold_starts(linear))
        check_scalable(reading)
    except HocketError:
        return None
    return ScalableReading(linear, reading)


@dataclass(eq=False)
class ScalableReading:
    """A coupling that was read with one step and answers for others."""

    linear: Composite
    reading: Reading

    def numbers(self, step: float, names: Sequence[str]) -> tuple[float, ...]:
        """Return what is asked for at an outermost step in seconds; nan where there is no number."""
        length = seconds(step).limit_denominator(FINE)
        with np.errstate(over="ignore", invalid="ignore"):
            return tuple(self._number(name, length) for name in names)

    def _number(self, name: str, step: Fraction) -> float:
        known: dict[str, Callable[[Fraction], float]] = {"rho": self.rho, "delta": self.delta, "step": float}
        try:
            return known[name](step)
        except (HocketError, np.linalg.LinAlgError, OverflowError):
            return math.nan

    def rho(self, step: Fraction) -> float:
        """Return the spectral radius of a step."""
        return largest_modulus(eigenvalues_at(self.reading, step / self.linear.step))

    def delta(self, step: Fraction) -> float:
        """Return relative consistency, Glumac & Kovacic 2019, equation 59: see `relative_consistency`."""
        if self._start is None:
            return relative_consistency(with_step(self.linear, step)).delta
        root, columns = self._start
        ticks = root.clock.ticks(self.reading.period)
        with scaled_clock(root, step / self.linear.step):
            return float(np.linalg.norm(defects_of_columns(root, columns, ticks, STEPS)))

    @cached_property
    def _start(self) -> tuple[Level, Array] | None:
        return open_at_unit_states(self.linear)


Numbers: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class PointJudge:
    """Everything it takes to judge a point."""

    composite: Composite
    space: Space
    wanted: tuple[Objective, ...]
    stop: Fraction | None
    start: Fraction = Fraction(0)
    now: Work | None = None
    times: Mapping[str, float] | None = field(default=None, hash=False)
    """Seconds that a step of each simulator takes, where that counts."""

    _kept: dict[Point, ScalableReading | None] = field(default_factory=dict, repr=False, compare=False)
    """What was read, by points without their step; one at a time."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}

    def __call__(self, points: Sequence[Point]) -> list[Numbers]:
        """Return the numbers of some points; nan where a point is not a coupling."""
        return [self._numbers(point) for point in points]

    def judging_order(self, points: Sequence[Point]) -> list[Point]:
        """Return points in the order in which to judge them: those that are read once in a row.

        Else they are mixed, always in the same way, so that answers before the end are about all of them.
        """
        if self._rescales:
            return sorted(points, key=self._but_step)
        mixed = list(points)
        Random(len(mixed)).shuffle(mixed)
        return mixed

    @cached_property
    def _rescales(self) -> bool:
        names = [each.name for each in self.space.variables]
        others = any(name.endswith(".step") or name.rpartition(".")[2] == "nesting" for name in names)
        linear = all(type(model) is StateSpace for _, model in leaves(self.composite))
        asked = all(each.name in RESCALED for each in self.wanted)
        return "step" in names and not others and linear and asked

    def _but_step(self, point: Point) -> Point:
        place = [each.name for each in self.space.variables].index("step")
        return (*point[:place], 0, *point[place + 1 :])

    def _scalable_reading(self, point: Point) -> ScalableReading | None:
        """Return the coupling of a point with its own step: it is the same for all points of its row."""
        key = self._but_step(point)
        if key not in self._kept:
            values = {name: value for name, value in self.space.values(point).items() if name != "step"}
            self._kept.clear()
            self._kept[key] = read_scalable(apply_choices(self.composite, values))
        return self._kept[key]

    def of_now(self) -> Numbers:
        """Return the numbers of the composite as it is."""
        return self._case_numbers(self._case(self.composite))

    def failure(self, objective: Objective, point: Point | None = None) -> str:
        """Return why an objective has no number at a point, or now; empty: it has one."""
        try:
            values = {} if point is None else self.space.values(point)
            return failure(self._case(apply_choices(self.composite, values)), objective)
        except HocketError as error:
            return str(error)

    def _numbers(self, point: Point) -> Numbers:
        values = self.space.values(point)
        try:
            if self._rescales and (known := self._scalable_reading(point)) is not None:
                return known.numbers(values["step"], [each.name for each in self.wanted])
            made = apply_choices(self.composite, values)
        except HocketError:
            return (float("nan"),) * len(self.wanted)
        return self._case_numbers(self._case(made))

    def _case_numbers(self, case: Case) -> Numbers:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return evaluate_objectives(case, self.wanted)

    def _case(self, made: Composite) -> Case:
        return Case(made, self.stop, self.start, self.now, self.times)
