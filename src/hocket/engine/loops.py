"""Algebraic loops: values that agree with themselves, found by Newton's method.

In:  a function from guesses to what they lead to
Out: the values it leaves alone, or a ConvergenceError that names the loop
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hocket.errors import ConvergenceError
from hocket.model import Array

if TYPE_CHECKING:
    from hocket.engine.interpreter import Level

TOLERANCE = 1e-10
"""The residual, relative to the values, that a loop must reach; iteration goes on while it helps."""


def fixed_point(evaluate: Callable[[Array], Array], guess: Array, ports: Sequence[str], t: float) -> Array:
    """Return v with evaluate(v) = v."""
    v = np.array(guess, dtype=float)
    history: list[float] = []
    residual = evaluate(v) - v
    for _ in range(25):
        size = _relative(residual, v)
        history.append(size)
        if not np.isfinite(size):
            break
        if size <= 1e-15 or (len(history) > 2 and size <= TOLERANCE and size > 0.1 * history[-2]):
            return v
        jacobian = np.empty((len(v), len(v)))
        for j in range(len(v)):
            nudge = np.sqrt(np.finfo(float).eps) * max(1.0, abs(v[j]))
            moved = v.copy()
            moved[j] += nudge
            jacobian[:, j] = (evaluate(moved) - moved - residual) / (moved[j] - v[j])
        if not np.isfinite(jacobian).all() or np.linalg.cond(jacobian) > 1e12:
            raise ConvergenceError(
                "an algebraic loop has no solution, or no single one",
                where=f"{' -> '.join(ports)} -> {ports[0]} at t = {t!r} s",
                expected="outputs that, fed back through the loop, agree with themselves",
                hint="break the loop by a simulator whose output does not react at once, or change its gain",
            )
        change = np.linalg.solve(jacobian, -residual)
        for fraction in (1.0, 0.5, 0.25, 0.125, 0.0625):
            trial = v + fraction * change
            trial_residual = evaluate(trial) - trial
            if _relative(trial_residual, trial) < size or fraction == 0.0625:
                break
        v, residual = trial, trial_residual
    if history and history[-1] <= TOLERANCE:
        return v
    raise ConvergenceError(
        "an algebraic loop did not converge",
        where=f"{' -> '.join(ports)} -> {ports[0]} at t = {t!r} s",
        expected=f"a residual of {TOLERANCE:g}; seen were {', '.join(f'{r:.2g}' for r in history[-5:])}",
        hint="better start values for the inputs of the loop",
    )


def _relative(residual: Array, v: Array) -> float:
    return float(np.max(np.abs(residual) / np.maximum(1.0, np.abs(v)), initial=0.0))


class Loop:
    """A loop inside a step of a level."""

    def __init__(self, level: Level, sims: Sequence[str], ports: Sequence[str]):
        self.level = level
        self.ports = ports
        self.children = [level.number[sim] for sim in sims]
        self.nodes: list[tuple[int, int]] = []
        for path in ports:
            sim, _, port = path.partition(".")
            child = level.number[sim]
            names = [output.name for output in level.wiring.models[child].outputs]
            self.nodes.append((child, names.index(port)))

    def solve(self) -> None:
        """Leave the level with samples that agree with themselves."""
        rings = self.level.memory.rings
        guess = np.array([rings[child][port][-1][1] for child, port in self.nodes])
        solution = fixed_point(
            self._evaluate, guess, self.ports, self.level.clock.time(self.level.ticks[self.children[0]])
        )
        self._evaluate(solution)

    def _evaluate(self, values: Array) -> Array:
        rings = self.level.memory.rings
        for (child, port), value in zip(self.nodes, values, strict=True):
            tick, _, slope = rings[child][port][-1]
            rings[child][port][-1] = (tick, value, slope)
        for child in self.children:
            self.level.feed(child)
        for child in self.children:
            self.level.read(child)
        return np.array([rings[child][port][-1][1] for child, port in self.nodes])
