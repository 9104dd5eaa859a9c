"""One coupling under many outermost steps: it is read once, and its clock is wound.

In:  a Composite of linear models, outermost steps
Out: rho and delta at each of them, the same as if each were read by itself but for rounding
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from hocket.analysis.consistency import connection_defects, relative_consistency
from hocket.analysis.exact import exact_solution
from hocket.analysis.lasting import list_cells, scatter_state
from hocket.analysis.leaps import merge_micro_steps
from hocket.analysis.linear import Reading, read_linear
from hocket.analysis.places import exact_places
from hocket.analysis.rescaling import check_scalable, eigenvalues_at, largest_modulus
from hocket.analysis.variants import FINE, with_cold_starts, with_step
from hocket.clock import Clock, seconds
from hocket.engine.blueprint import clock_of, open_level
from hocket.engine.composite import Composite
from hocket.engine.initialise import initialise, levels_of
from hocket.engine.interpreter import Level
from hocket.errors import HocketError
from hocket.model import Array

RESCALED = ("rho", "delta", "step")
"""What is known of a coupling whose clock is wound."""
STEPS = 2
"""After so many steps delta is taken (formulas, section 1)."""


def read_scalable(composite: Composite) -> ScalableReading | None:
    """Return a coupling that was read for all steps; None: some of its steps cannot change."""
    linear = merge_micro_steps(composite)
    try:
        reading = read_linear(with_cold_starts(linear))
        check_scalable(reading)
    except HocketError:
        return None
    return ScalableReading(linear, reading)


class ScalableReading:
    """A coupling that was read with one step and answers for others."""

    def __init__(self, linear: Composite, reading: Reading):
        self.linear, self.reading = linear, reading

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
        root, columns, before = self._start
        saved, n = root.save(), columns.shape[1] - 1
        ticks = before.ticks(self.reading.period)
        _set_clock(root, Clock(before.tick * (step / self.linear.step), before.start))
        try:
            scatter_state(root, columns)
            for _ in range(STEPS):
                root.advance(root.now, ticks, root.inputs[1])
            after = connection_defects(root).reshape(-1, n + 1)
        finally:
            _set_clock(root, before)
            root.restore(saved)
        return float(np.linalg.norm(after[:, :n] - after[:, n:]))

    @cached_property
    def _start(self) -> tuple[Level, Array, Clock] | None:
        """A live level at its start, z there from unit states, and its clock; None: the start has a past."""
        design = self.linear.blueprint
        root = open_level(design, clock_of(design))
        initialise(root, 0.0)
        rings = [ring for level in levels_of(root) for rings in level.memory.rings for ring in rings]
        if any(len(ring) > 1 or ring[-1][2] is not None for ring in rings):
            return None
        solution = exact_solution(self.linear)
        here = exact_places(solution, root, tuple(list_cells(root)))
        start = np.where(here.moving[:, None], 0.0, here.weights)
        n = len(solution.x0)
        return root, start @ np.vstack([np.eye(n, n + 1), np.ones((1, n + 1))]), root.clock


def _set_clock(root: Any, clock: Clock) -> None:
    for level in levels_of(root):
        level.clock = level.memory.clock = clock
