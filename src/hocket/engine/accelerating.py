"""The next guess of an iteration, from what the sweeps so far were given and found.

In:  an Accelerator; after each sweep what it was given and what it found
Out: what the next one is given

The native engine repeats every operation here in the same order, so that the bits agree. Numbers of
different units are made comparable by their size in the first sweep of a step.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, Protocol

from hocket.engine.loops import NUDGE, solved
from hocket.plan import Accelerator, Aitken, Newton, QuasiNewton, Relax

Values = list[float]
Sweep = Callable[[Values], Values]
"""Gives numbers to a sweep, and returns what it finds."""


class Live(Protocol):
    """An accelerator at work in one Repeat of one level."""

    def begin(self) -> None:
        """Begin a step."""

    def next(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Return the next guess; may try sweeps of its own."""


def live(accelerator: Accelerator | None) -> Live:
    """Return an accelerator at work."""
    match accelerator:
        case Relax(factor):
            return Relaxing(factor)
        case Aitken(first):
            return Following(first)
        case QuasiNewton(reuse, limit):
            return Learning(reuse, limit)
        case Newton(falls):
            return Probing(falls)
    return Plain()


def saved(each: Live) -> dict[str, Any]:
    """Return a copy of all that an accelerator remembers."""
    return copy.deepcopy(vars(each))


def restored(each: Live, state: dict[str, Any]) -> None:
    """Let an accelerator remember just what it did."""
    vars(each).update(copy.deepcopy(state))


class Plain:
    """What was found is given."""

    def begin(self) -> None:
        """Forget nothing: nothing is known."""

    def next(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Return what was found."""
        return found


class Relaxing:
    """Only a part of the way."""

    def __init__(self, factor: float):
        self.factor = factor

    def begin(self) -> None:
        """Forget nothing: nothing is known."""

    def next(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Go a part of the way."""
        return [g + self.factor * (f - g) for g, f in zip(given, found, strict=True)]


class Following:
    """Aitken's factor: w' = -w r.(r' - r) / |r' - r|^2."""

    def __init__(self, first: float):
        self.first = first
        self.factor = first
        self.scale: Values = []
        self.before: Values = []

    def begin(self) -> None:
        """Begin with the first factor."""
        self.factor, self.scale, self.before = self.first, [], []

    def next(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Go a part of the way that the last two residuals tell."""
        self.scale = self.scale or scale_of(found)
        residual = scaled(_minus(found, given), self.scale)
        if self.before:
            change = _minus(residual, self.before)
            size = _dot(change, change)
            if size > 0.0:
                self.factor = -self.factor * _dot(self.before, change) / size
        self.before = residual
        return [g + self.factor * (f - g) for g, f in zip(given, found, strict=True)]


class Learning:
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

    def next(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Return where the residual would vanish if all were as the columns say."""
        self.scale = self.scale or scale_of(found)
        residual = _minus(found, given)
        if self.last is not None:
            column = (0, _minus(residual, self.last[0]), _minus(found, self.last[1]))
            self.columns = [column, *self.columns][: len(found)]
        self.last = residual, found
        directions, R = self._orthogonal()
        rest, weights = scaled(residual, self.scale), []
        for direction in directions:
            weight = _dot(direction, rest)
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

    def _orthogonal(self) -> tuple[list[Values], list[Values]]:
        """Return orthonormal directions of the columns, and R column by column; dependent ones go."""
        kept: list[tuple[int, Values, Values]] = []
        directions: list[Values] = []
        R: list[Values] = []
        for column in self.columns:
            rest = scaled(column[1], self.scale)
            whole = math.sqrt(_dot(rest, rest))
            entries = []
            for direction in directions:
                part = _dot(direction, rest)
                rest = [a - part * b for a, b in zip(rest, direction, strict=True)]
                entries.append(part)
            size = math.sqrt(_dot(rest, rest))
            if size > self.limit * whole:
                kept.append(column)
                directions.append([a / size for a in rest])
                R.append([*entries, size])
        self.columns = kept
        return directions, R


class Probing:
    """Newton's method: the matrix I - K is found by moving one number after the other."""

    def __init__(self, falls: float):
        self.falls = falls
        self.matrix: list[Values] = []
        self.before = math.inf

    def begin(self) -> None:
        """Keep the matrix."""
        self.before = math.inf

    def next(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Return given - (I - K)^-1 (given - found)."""
        residual = _minus(found, given)
        scale = scale_of(found)
        size = math.sqrt(_dot(scaled(residual, scale), scaled(residual, scale)))
        if not self.matrix or size > self.falls * self.before:
            columns = []
            for j in range(len(given)):
                moved = list(given)
                moved[j] = given[j] + NUDGE * max(1.0, abs(given[j]), abs(residual[j]))
                after = _minus(sweep(moved), moved)
                columns.append(
                    [(r - a) / (moved[j] - given[j]) for a, r in zip(after, residual, strict=True)]
                )
            self.matrix = [[column[i] for column in columns] for i in range(len(given))]
        self.before = size
        change = solved([list(row) for row in self.matrix], residual)
        return [g + c for g, c in zip(given, change, strict=True)]


def scale_of(found: Values) -> Values:
    """Return what makes numbers comparable: one over their size; those below one count as one."""
    return [1.0 / max(1.0, abs(f)) for f in found]


def scaled(numbers: Values, scale: Values) -> Values:
    """Return numbers as parts of their size."""
    return [n * s for n, s in zip(numbers, scale, strict=True)]


def _minus(one: Values, other: Values) -> Values:
    return [a - b for a, b in zip(one, other, strict=True)]


def _dot(one: Values, other: Values) -> float:
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total = total + a * b
    return total
