"""What judges a point of a space; it is sent to those who do the work.

In:  points of a Space
Out: the numbers of each, whoever asks
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from random import Random
from typing import Any, TypeAlias

import numpy as np

from hocket.engine.composite import Composite
from hocket.errors import HocketError
from hocket.nesting.work import Work
from hocket.parameters import leaves
from hocket.simulators.state_space import StateSpace
from hocket.tuning.case import Case
from hocket.tuning.objectives import Objective, evaluate_objectives, failure
from hocket.tuning.rescaled import RESCALED, ScalableReading, read_scalable
from hocket.tuning.settings import apply_choices
from hocket.tuning.space import Point, Space

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
        """Return the numbers of some points; nan where a point is no coupling."""
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

    def with_changes(self, **parts: Any) -> PointJudge:
        """Return the same with other parts."""
        return replace(self, **parts)

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
