"""Algebraic loops: values that agree with themselves, found by Newton's method.

In:  a function from guesses to what they lead to
Out: the values it leaves alone, or a ConvergenceError that names the loop

The native engine repeats every operation here in the same order, so that the bits agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from hocket.engine.protocol import LiveLevel
from hocket.errors import ConvergenceError
from hocket.model.composite import as_level
from hocket.model.protocols import Array, Value

Unknown: TypeAlias = tuple[int, int, int]
"""Child, output, and whether its value (1) or its slope (2) is meant."""
VALUE, SLOPE = 1, 2


class Unknowns:
    """Slopes are told as changes over a step of the level, so that all numbers are of a size."""

    def __init__(self, level: LiveLevel, places: Sequence[Unknown]):
        self.level = level
        self.places = places
        self.length = level.clock.span(level.length)

    def newest(self) -> list[Value]:
        """Return the numbers; where some are rows, in the linear reading, all are, those of sources too."""
        found = []
        for child, port, what in self.places:
            number = self.level.memory.rings[child][port][-1][what]
            found.append(number if what == VALUE else number * self.length)
        row = next((each.shape for each in found if isinstance(each, np.ndarray) and each.ndim), None)
        return found if row is None else [np.broadcast_to(each, row) for each in found]

    def put(self, numbers: Sequence[Value]) -> None:
        """Put others where they were."""
        for (child, port, what), number in zip(self.places, numbers, strict=True):
            ring = self.level.memory.rings[child][port]
            tick, value, slope = ring[-1]
            ring[-1] = (tick, number, slope) if what == VALUE else (tick, value, number / self.length)

    def name(self, place: Unknown) -> str:
        """Return the path of an output."""
        child, port, _ = place
        return f"{self.level.name(child)}.{self.level.wiring.models[child].outputs[port].name}"


def relative_residual(residual: Sequence[float], v: Sequence[float]) -> float:
    """Return the largest of some differences, each over its value; values below one count as one."""
    size = 0.0
    for r, x in zip(residual, v, strict=True):
        part = abs(r) / max(1.0, abs(x))
        if not part <= size:  # a NaN must come through
            size = part
    return size


Values = list[float]

TOLERANCE = 1e-10
"""The residual, relative to the values, that a loop must reach; iteration goes on while it helps."""
NUDGE = 2.0**-26
"""How far a value is moved to see what it does, relative to its size: the root of the rounding error."""
SINGULAR = 1e-12
"""A pivot this small against the largest entry means that the loop has no single solution."""
SMALL = 40
"""Unknowns up to which a system is solved by hand, with a test for what is singular."""
ITERATIONS = 25
FRACTIONS = (1.0, 0.5, 0.25, 0.125, 0.0625)
"""How much of Newton's step is tried."""


class SingularError(ArithmeticError):
    """A matrix cannot be solved with."""


class StuckError(ArithmeticError):
    """Newton's method did not reach the tolerance; the argument is the last residual."""


def solve_linear(matrix: list[Values], right: list[Value]) -> list[Value]:
    """Return x with matrix x = right, by elimination with partial pivoting; both are overwritten.

    `right` may hold rows.
    """
    size = len(right)
    largest = 0.0
    for row in matrix:
        for entry in row:
            largest = max(largest, abs(entry))
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if abs(matrix[i][k]) > abs(matrix[best][k]):
                best = i
        if not abs(matrix[best][k]) > SINGULAR * largest:
            raise SingularError
        matrix[k], matrix[best] = matrix[best], matrix[k]
        right[k], right[best] = right[best], right[k]
        for i in range(k + 1, size):
            factor = matrix[i][k] / matrix[k][k]
            for j in range(k + 1, size):
                matrix[i][j] = matrix[i][j] - factor * matrix[k][j]
            right[i] = right[i] - factor * right[k]
    for k in range(size - 1, -1, -1):
        for j in range(k + 1, size):
            right[k] = right[k] - matrix[k][j] * right[j]
        right[k] = right[k] / matrix[k][k]
    return right


def newton(evaluate: Callable[[Values], Sequence[Value]], guess: Values) -> Values:
    """Return v with evaluate(v) = v; raises SingularError or StuckError."""
    v = list(guess)
    residual = _loop_residual(evaluate(v), v)
    before = 0.0
    size = relative_residual(residual, v)
    for iteration in range(ITERATIONS):
        if not size < float("inf"):
            break
        if size <= 1e-15 or (iteration > 1 and size <= TOLERANCE and size > 0.1 * before):
            return v
        columns: list[Values] = []
        for j in range(len(v)):
            moved = list(v)
            moved[j] = v[j] + NUDGE * max(1.0, abs(v[j]), abs(residual[j]))
            after = _loop_residual(evaluate(moved), moved)
            columns.append([(a - r) / (moved[j] - v[j]) for a, r in zip(after, residual, strict=True)])
        rows = [[column[i] for column in columns] for i in range(len(v))]
        change = solve_linear(rows, [-r for r in residual])
        before = size
        for fraction in FRACTIONS:
            trial = [x + fraction * c for x, c in zip(v, change, strict=True)]
            trial_residual = _loop_residual(evaluate(trial), trial)
            if relative_residual(trial_residual, v) < before:  # on the old scale, where running away shows
                break
        v, residual = trial, trial_residual
        size = relative_residual(residual, v)
    if size <= TOLERANCE:
        return v
    raise StuckError(size)


def _loop_residual(one: Sequence[Value], other: Values) -> Values:
    return [float(a - b) for a, b in zip(one, other, strict=True)]


def fixed_point(
    evaluate: Callable[[Values], Sequence[Value]], guess: Values, ports: Sequence[str], t: float
) -> Values:
    """Return v with evaluate(v) = v, or say which loop has none."""
    try:
        return newton(evaluate, guess)
    except SingularError:
        raise no_solution(ports, t) from None
    except StuckError as stuck:
        raise no_convergence(ports, t, stuck.args[0]) from None


def linear_fixed_point(
    evaluate: Callable[[Sequence[Value]], list[Value]], like: Sequence[Value]
) -> tuple[list[Value], Array]:
    """Return v with evaluate(v) = v, where evaluate is K v and what does not depend on v, and K.

    v is rows. Columns do not know of each other, so each is good for another column of K at the same time.
    """
    zeros = [np.zeros(np.shape(number)) for number in like]
    size, width = len(like), len(zeros[0])
    apart = np.array(evaluate(zeros))
    K = np.zeros((size, size))
    for first in range(0, size, width):
        some = min(width, size - first)
        units = np.zeros((size, width))
        units[first + np.arange(some), np.arange(some)] = 1.0
        K[:, first : first + some] = (np.array(evaluate(list(units))) - apart)[:, :some]
    matrix = np.eye(size) - K
    if size <= SMALL:
        return solve_linear(matrix.tolist(), list(apart)), K
    try:
        return list(np.linalg.solve(matrix, apart)), K
    except np.linalg.LinAlgError:
        raise SingularError from None


def no_solution(ports: Sequence[str], t: float) -> ConvergenceError:
    """Return the error for a loop that has no solution, or many."""
    return ConvergenceError(
        "an algebraic loop has no solution, or no single one",
        where=f"{' -> '.join(ports)} -> {ports[0]} at t = {t!r} s",
        expected="outputs that, fed back through the loop, agree with themselves",
        hint="break the loop by a simulator without direct feedthrough, or change its gain"
        + _sampled_advice(ports),
    )


def no_convergence(ports: Sequence[str], t: float, residual: float) -> ConvergenceError:
    """Return the error for a loop whose numbers do not settle."""
    return ConvergenceError(
        "an algebraic loop did not converge",
        where=f"{' -> '.join(ports)} -> {ports[0]} at t = {t!r} s",
        expected=f"a residual of {TOLERANCE:g}; it stayed at {residual:.2g}",
        hint="better start values for the inputs of the loop" + _sampled_advice(ports),
    )


def _sampled_advice(ports: Sequence[str]) -> str:
    """Return what else breaks a loop of models with a period; each is a level with one child, `sampled`."""
    models = [path for path, _, _ in (port.rpartition(".sampled.") for port in ports) if path]
    if not models:
        return ""
    return (
        f"; or let `step` of `{models[0]}` compute what `output(t)` shows: of a model with a period"
        " that is seen a period later, and breaks the loop"
    )


def _by_path(level: LiveLevel, nodes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted(nodes, key=lambda node: level.wiring.output_path(*node))


def _count_levels(model: object) -> int:
    """Return how many levels a model consists of; none if it is a simulator."""
    level = as_level(model)
    return 0 if level is None else 1 + sum(map(_count_levels, level.scenario.models.values()))


class AlgebraicLoop:
    """A loop inside a step of a level."""

    def __init__(self, level: LiveLevel, sims: Sequence[str], ports: Sequence[str]):
        self.level = level
        self.names = [f"{level.path}.{path}" if level.path else path for path in ports]
        self.children = [level.number[sim] for sim in sims]
        within = [
            drive
            for child in self.children
            for drive in level.wiring.drives[child]
            if drive is not None and drive.child in self.children
        ]
        slopes = {(d.child, d.port) for d in within if d.extrapolation is not None and d.extrapolation.slopes}
        nodes = [level.wiring.output_places[path] for path in ports]
        beside = {(d.child, d.port) for d in within} - set(nodes)
        # a slope follows every input at once, so with slopes all that is handed on inside is in the loop
        more = beside if slopes else set()
        beneath = sum(_count_levels(level.wiring.models[child]) for child in self.children)
        self.passes = 1 + len(beside - more) + beneath
        """Evaluations after which what hangs on the loop in no cycle follows it, in levels inside too."""
        values = [*nodes, *_by_path(level, more)]
        places = [*((*node, VALUE) for node in values), *((*node, SLOPE) for node in _by_path(level, slopes))]
        self.unknowns = Unknowns(level, places)

    def solve(self) -> None:
        """Leave the level with samples that agree with themselves."""
        t = self.level.clock.time(self.level.ticks[self.children[0]])
        guess = self.unknowns.newest()
        if not np.ndim(guess[0]):
            self._evaluate(fixed_point(self._evaluate, [float(value) for value in guess], self.names, t))
            return
        try:
            found = linear_fixed_point(self._evaluate, guess)[0]
            for _ in range(self.passes):  # the last guesses were units, of which nothing may be left
                self._evaluate(found)
        except SingularError:
            raise no_solution(self.names, t) from None

    def _evaluate(self, numbers: Sequence[Value]) -> list[Value]:
        self.unknowns.put(numbers)
        for child in self.children:
            self.level.feed(child)
        for child in self.children:
            self.level.read(child)
        return self.unknowns.newest()
