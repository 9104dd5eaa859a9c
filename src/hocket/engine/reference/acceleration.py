"""The next guess of an iteration, from what the sweeps so far were given and found.

In:  an Accelerator; after each sweep what it was given and what it found
Out: what the next one is given

The native engine repeats every operation here in the same order, so that the bits agree. Numbers of
different units are made comparable by their size in the first sweep of a step.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from hocket.engine.algebraic_loops import NUDGE, solve_linear
from hocket.plan.accelerators import (
    Accelerator,
    Aitken,
    LiveAccelerator,
    Newton,
    QuasiNewton,
    Relax,
    Sweep,
    Values,
)

SETTLED = 1e-10
"""A residual that is as small as rounding errors: whether it falls says nothing."""


def save_accelerator(each: LiveAccelerator) -> dict[str, Any]:
    """Return a copy of all that an accelerator remembers."""
    return copy.deepcopy(vars(each))


def restore_accelerator(each: LiveAccelerator, state: dict[str, Any]) -> None:
    """Let an accelerator remember just what it did."""
    vars(each).update(copy.deepcopy(state))


class PlainIteration:
    """What was found is given."""

    def begin(self) -> None:
        """Forget nothing: nothing is known."""

    def next_guess(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Return what was found."""
        return found


class FixedRelaxation(PlainIteration):
    """Only a part of the way."""

    def __init__(self, factor: float):
        self.factor = factor

    def next_guess(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Go a part of the way."""
        return [g + self.factor * (f - g) for g, f in zip(given, found, strict=True)]


class AitkenRelaxation:
    """Aitken's factor: w' = -w r.(r' - r) / |r' - r|^2."""

    def __init__(self, first: float):
        self.first = first
        self.factor = first
        self.scale: Values = []
        self.before: Values = []

    def begin(self) -> None:
        """Begin with the first factor."""
        self.factor, self.scale, self.before = self.first, [], []

    def next_guess(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Go a part of the way that the last two residuals tell."""
        self.scale = self.scale or inverse_sizes(found)
        residual = apply_scale(_subtract(found, given), self.scale)
        if self.before:
            change = _subtract(residual, self.before)
            size = _scalar_product(change, change)
            if size > 0.0:
                self.factor = -self.factor * _scalar_product(self.before, change) / size
        self.before = residual
        return [g + self.factor * (f - g) for g, f in zip(given, found, strict=True)]


class IqnIls:
    """The least-squares inverse of the Jacobian, from differences between sweeps, newest first."""

    def __init__(self, reuse: int, limit: float):
        self.reuse = reuse
        self.limit = limit
        self.columns: list[tuple[int, Values, Values]] = []
        """How many steps ago, how the residual changed, how what was found changed."""
        self.scale: Values = []
        self.last: tuple[Values, Values] | None = None

    def begin(self) -> None:
        """Let the columns age; forget the oldest."""
        aged = [(age + 1, dr, dx) for age, dr, dx in self.columns]
        self.columns = [column for column in aged if column[0] <= self.reuse]
        self.scale, self.last = [], None

    def next_guess(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Return where the residual would vanish if all were as the columns say."""
        self.scale = self.scale or inverse_sizes(found)
        residual = _subtract(found, given)
        if self.last is not None:
            column = (0, _subtract(residual, self.last[0]), _subtract(found, self.last[1]))
            self.columns = [column, *self.columns][: len(found)]
        self.last = residual, found
        directions, R = self._orthonormalise()
        rest, weights = apply_scale(residual, self.scale), []
        for direction in directions:
            weight = _scalar_product(direction, rest)
            rest = [a - weight * b for a, b in zip(rest, direction, strict=True)]
            weights.append(-weight)
        for k in range(len(weights) - 1, -1, -1):
            for j in range(k + 1, len(weights)):
                weights[k] = weights[k] - R[j][k] * weights[j]
            weights[k] = weights[k] / R[k][k]
        guess = list(found)
        for weight, (_, _, dx) in zip(weights, self.columns, strict=True):
            guess = [a + weight * b for a, b in zip(guess, dx, strict=True)]
        return guess

    def _orthonormalise(self) -> tuple[list[Values], list[Values]]:
        """Return orthonormal directions of the columns, and R column by column; dependent ones go."""
        kept: list[tuple[int, Values, Values]] = []
        directions: list[Values] = []
        R: list[Values] = []
        for column in self.columns:
            rest = apply_scale(column[1], self.scale)
            whole = math.sqrt(_scalar_product(rest, rest))
            entries = []
            for direction in directions:
                part = _scalar_product(direction, rest)
                rest = [a - part * b for a, b in zip(rest, direction, strict=True)]
                entries.append(part)
            size = math.sqrt(_scalar_product(rest, rest))
            if size > self.limit * whole:
                kept.append(column)
                directions.append([a / size for a in rest])
                R.append([*entries, size])
        self.columns = kept
        return directions, R


class NewtonIteration:
    """Newton's method: the matrix I - K is given, or found by moving one number after the other."""

    def __init__(self, falls: float, jacobian: Sequence[Sequence[float]] | None = None):
        self.falls = falls
        self.given = jacobian is not None
        rows = jacobian or ()
        self.matrix: list[Values] = [
            [(1.0 if i == j else 0.0) - entry for j, entry in enumerate(row)] for i, row in enumerate(rows)
        ]
        self.before = math.inf
        self.span = self.samples = 0

    def begin(self) -> None:
        """Keep the matrix."""
        self.before = math.inf

    def check_step(self, span: int, samples: int) -> None:
        """Forget a matrix that was found in steps of another length, or with other polynomials."""
        if (span != self.span or samples != self.samples) and not self.given:
            self.matrix = []
        self.span, self.samples = span, samples

    def finish(self, given: Values, found: Values) -> None:
        """Forget the matrix where the last iteration did not make the residual fall."""
        residual = _subtract(found, given)
        size = _scaled_size(residual, found)
        if not self.given and size > self.falls * self.before and size > SETTLED:
            self.matrix = []

    def next_guess(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Return given - (I - K)^-1 (given - found)."""
        residual = _subtract(found, given)
        size = _scaled_size(residual, found)
        if not self.matrix or (size > self.falls * self.before and not self.given):
            columns = []
            for j in range(len(given)):
                moved = list(given)
                moved[j] = given[j] + NUDGE * max(1.0, abs(given[j]), abs(residual[j]))
                after = _subtract(sweep(moved), moved)
                columns.append(
                    [(r - a) / (moved[j] - given[j]) for a, r in zip(after, residual, strict=True)]
                )
            self.matrix = [[column[i] for column in columns] for i in range(len(given))]
        self.before = size
        change = solve_linear([list(row) for row in self.matrix], residual)
        return [g + c for g, c in zip(given, change, strict=True)]


LIVE: Mapping[type[Accelerator], Callable[..., LiveAccelerator]] = {
    Relax: FixedRelaxation,
    Aitken: AitkenRelaxation,
    QuasiNewton: IqnIls,
    Newton: NewtonIteration,
}
"""Those at work, made from the fields of the frozen ones in their order."""


def make_accelerator(accelerator: Accelerator | None) -> LiveAccelerator:
    """Return an accelerator at work; one of another package brings its own."""
    if accelerator is None:
        return PlainIteration()
    live = LIVE.get(type(accelerator))
    return live(*astuple(accelerator)) if live else accelerator.start()


def inverse_sizes(found: Values) -> Values:
    """Return what makes numbers comparable: one over their size; those below one count as one."""
    return [1.0 / max(1.0, abs(f)) for f in found]


def apply_scale(numbers: Values, scale: Values) -> Values:
    """Return numbers as parts of their size."""
    return [n * s for n, s in zip(numbers, scale, strict=True)]


def _scaled_size(residual: Values, found: Values) -> float:
    parts = apply_scale(residual, inverse_sizes(found))
    return math.sqrt(_scalar_product(parts, parts))


def _subtract(one: Values, other: Values) -> Values:
    return [a - b for a, b in zip(one, other, strict=True)]


def _scalar_product(one: Values, other: Values) -> float:
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total = total + a * b
    return total
