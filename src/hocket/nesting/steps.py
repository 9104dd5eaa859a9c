"""Steps that a hierarchy may have: short fractions of the step of now that fit the run and the simulators.

In:  a Composite, how long it runs, and a tree of groups
Out: outer steps, the longest first; every one divides the run, and what has a step of its own divides it
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

from hocket.engine.composite import Composite
from hocket.model import Model, as_level
from hocket.nesting.hierarchy import LevelGroup

REACH = 64
"""Times shorter or longer than now that steps may be."""
SHARES = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64)
"""Denominators: with these a decimal stays one."""


def smooth_numbers(most: int) -> list[int]:
    """Return the numbers up to `most` without prime factors above 5."""
    found = []
    for number in range(1, most + 1):
        rest = number
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            found.append(number)
    return found


TIMES = tuple(smooth_numbers(REACH))
RATIOS = SHARES
"""Steps of a level in one of the level around it."""


class StepGrid:
    """The steps of one scenario."""

    def __init__(self, composite: Composite, stop: Fraction):
        self.composite, self.stop = composite, stop

    @cached_property
    def grain(self) -> Fraction:
        """The shortest step that all who insist on one divide."""
        own = [step for model in self.composite.scenario.models.values() if (step := own_step(model))]
        if not own:
            return self.composite.step
        return Fraction(math.lcm(*(s.numerator for s in own)), math.gcd(*(s.denominator for s in own)))

    @cached_property
    def nearby_steps(self) -> tuple[Fraction, ...]:
        """Steps around that of now, the longest first."""
        now = self.composite.step
        return tuple(sorted({now * Fraction(p, q) for p in TIMES for q in SHARES}, reverse=True))

    def outer_steps(self, tree: LevelGroup, whole: bool = True) -> tuple[Fraction, ...]:
        """Return the outer steps that a tree with its ratios may have, the longest first.

        Steps that are only compared with need not divide the run: `whole=False` tells them too.
        """
        fitting = (step for step in self.nearby_steps if not whole or (self.stop / step).denominator == 1)
        return tuple(step for step in fitting if step <= self.stop and self._fits(tree, step))

    def _fits(self, group: LevelGroup, step: Fraction) -> bool:
        models = self.composite.scenario.models
        for member in group.members:
            if isinstance(member, LevelGroup):
                if not self._fits(member, step / member.ratio):
                    return False
            elif (own := own_step(models[member])) is not None and not _divides(own, step, models[member]):
                return False
        return True


def _divides(own: Fraction, step: Fraction, model: Model) -> bool:
    """Return whether a step of one's own goes with that of the level; those of levels may be longer."""
    inside = as_level(model) is not None or getattr(model, "period", None) is not None
    return (step / own).denominator == 1 or (inside and (own / step).denominator == 1)


def own_step(model: Model) -> Fraction | None:
    """Return the step that a simulator or a level insists on."""
    given: Any = model
    for name in ("period", "step"):
        own = getattr(given, name, None)
        if isinstance(own, Fraction):
            return own
    return None
