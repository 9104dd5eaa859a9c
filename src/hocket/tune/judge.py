"""What judges a point of a space; it is sent to those who do the work.

In:  points of a Space
Out: the numbers of each, whoever asks
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from hocket.engine.composite import Composite
from hocket.errors import HocketError
from hocket.tune.case import Case
from hocket.tune.objectives import Objective, failure, judged
from hocket.tune.settings import applied
from hocket.tune.space import Point, Space
from hocket.tune.work import Work

Numbers: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class Judging:
    """Everything it takes to judge a point."""

    composite: Composite
    space: Space
    wanted: tuple[Objective, ...]
    stop: Fraction | None
    start: Fraction = Fraction(0)
    now: Work | None = None
    times: Mapping[str, float] | None = field(default=None, hash=False)
    """Seconds that a step of each simulator takes, where that counts."""

    def __call__(self, points: Sequence[Point]) -> list[Numbers]:
        """Return the numbers of some points; nan where a point is no coupling."""
        return [self._numbers(point) for point in points]

    def changed(self, **parts: Any) -> Judging:
        """Return the same with other parts."""
        return replace(self, **parts)

    def of_now(self) -> Numbers:
        """Return the numbers of the composite as it is."""
        return self._judged(self._case(self.composite))

    def failure(self, objective: Objective, point: Point | None = None) -> str:
        """Return why an objective has no number at a point, or now; empty: it has one."""
        try:
            values = {} if point is None else self.space.values(point)
            return failure(self._case(applied(self.composite, values)), objective)
        except HocketError as error:
            return str(error)

    def _numbers(self, point: Point) -> Numbers:
        try:
            made = applied(self.composite, self.space.values(point))
        except HocketError:
            return (float("nan"),) * len(self.wanted)
        return self._judged(self._case(made))

    def _judged(self, case: Case) -> Numbers:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return judged(case, self.wanted)

    def _case(self, made: Composite) -> Case:
        return Case(made, self.stop, self.start, self.now, self.times)
