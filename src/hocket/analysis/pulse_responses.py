"""What a black box answers when pushed: whether the answers agree, how long they tell, how well they fit.

In:  outputs after each step, less those of the undisturbed run
Out: Markov parameters with their noise; relative errors
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hocket.engine.simulator_calls import output_array
from hocket.model.extrapolators import shift_origin
from hocket.model.protocols import Array, InitialisationSimulator, Model, provides

ALIKE = 0.2
"""How far answers to much smaller pushes may differ from those before."""
ROUNDING = 1e-13
"""Answers below this part of an output's values are rounding."""
SILENT = 1e-10
"""An output that moves by less than this part of its values does not count in a fit."""
EARLY, FIRST, FEWEST = 8, 3, 8
"""Steps in which an answer shows its size, or if it grows fast; and steps that are kept however it grows."""

Truth: TypeAlias = NDArray[np.bool_]


@dataclass
class PulseResponses:
    """The answers to pulses, per unit of push: shape (pushed, steps + 1, rows)."""

    markov: Array
    size: float
    """The size of the push they were taken at, in units of the inputs."""
    noise: float
    """How far they are off, relative to the largest answer to the same push."""


def responses_agree(one: Array, other: Array) -> bool:
    """Return whether answers to pushes of quite different sizes are about the same."""
    length = min(one.shape[1], other.shape[1])
    one, other = one[:, :length], other[:, :length]
    largest = np.maximum(np.abs(one), np.abs(other)).max(axis=(0, 1))
    return bool((np.abs(one - other).max(axis=(0, 1)) <= ALIKE * largest).all())


def choose_responses(answers: Array, top: Array, sizes: tuple[float, float]) -> PulseResponses:
    """Return the means of up and down, of the size that errs less.

    Rounding and the noise of solvers count less in larger pushes, what is crooked counts more.
    """
    small, large = answers.mean(axis=1)
    apart = np.abs(large - small) / top
    bent = (np.abs(answers[:, 0] - answers[:, 1]) / top).max(axis=(1, 2, 3), initial=0.0)
    each = np.abs(large / top).max(axis=(1, 2), initial=0.0)
    noise = float((apart.max(axis=(1, 2)) / np.where(each > 0.0, each, 1.0)).max(initial=ROUNDING))
    if bent[1] <= bent[0] and apart.max(initial=0.0) <= 2.0 * bent[0]:
        return PulseResponses(large, sizes[1], noise)
    return PulseResponses(small, sizes[0], max(noise / 50.0, ROUNDING))


def relative_error(predicted: Array, measured: Array, scale: Array) -> float:
    """Return the relative error of the row where it is largest, of those that answer at all."""
    seen: Truth = np.abs(measured).max(axis=0) > SILENT * scale
    if not seen.any():
        return 0.0
    with np.errstate(all="ignore"):  # a poor model may be off by any amount
        off = np.linalg.norm((predicted - measured)[:, seen], axis=0)
        worst = float((off / np.linalg.norm(measured[:, seen], axis=0)).max())
    return worst if math.isfinite(worst) else math.inf


def informative_steps(rows: Array, most: int, growth: float) -> int:
    """Return how many steps tell of more than the fastest growth."""
    sizes = np.abs(rows)
    early, first = (sizes[: count + 1].max(axis=0) for count in (EARLY, FIRST))
    grown = ((sizes > growth * early) & (early > 0.0)) | ((sizes > growth**2 * first) & (first > 0.0))
    after = grown.any(axis=1)
    return min(max(int(np.argmax(after)), FEWEST), most) if after.any() else most


class RefusedError(Exception):
    """Why a model cannot be judged."""


@dataclass(frozen=True)
class OperatingPoint:
    """Where a black box stands, and how its level steps it."""

    model: Model
    simulator: Any
    """The live one in its level: used where it can roll back."""
    t: Fraction
    h: Fraction
    u: Array
    powers: int
    """Rows of coefficients that its inputs have."""
    sloped: bool
    """Whether its slopes are asked for."""
    started: bool
    """Whether it stands elsewhere than at its start."""


class BlackBoxBench:
    """Runs from one and the same state: by rollback where possible, else with fresh instances.

    The state is `later` steps after the place where the simulator stands.
    """

    phases = 1
    """Steps of the simulator in one of the bench."""

    def __init__(self, place: OperatingPoint, later: int = 0):
        self.place = place
        self.later = later
        self.t = place.t + later * place.h
        self.rollbacks = place.model.capabilities.rollback
        if place.started and not self.rollbacks:
            raise RefusedError("it cannot roll back, so it can be tried at its start only")
        self.quiet = np.zeros((place.powers, len(place.u)))
        """No push."""
        self.still = self.quiet
        """No push, in a step of the bench."""
        self.before = place.simulator.save() if self.rollbacks else None
        self.saved = self.before
        if self.rollbacks and later:
            self._advance_to_start(place.simulator)
            self.saved = place.simulator.save()

    def restore_simulator(self) -> None:
        """Put the simulator back to where it stood."""
        if self.rollbacks:
            self.place.simulator.restore(self.before)

    def _advance_to_start(self, simulator: Any) -> None:
        place, u = self.place, self._add_push(self.quiet)
        for number in range(self.later):
            simulator.step(float(place.t + number * place.h), float(place.h), u.copy())

    def run(self, pushes: Sequence[Array]) -> Array:
        """Return the outputs (and slopes) before the first step and after each, a row each.

        Pushes of shape (powers, inputs) are added to the inputs of a step each. Rows are under the inputs of
        the coming step where outputs are evaluated again, else under those of the step just made.
        """
        place, h, again = self.place, float(self.place.h), self.place.model.capabilities.reevaluates
        simulator = self._start_simulator()
        try:
            rows = [self._read_outputs(simulator, self.t, self._add_push(pushes[0]))]
            for number, push in enumerate(pushes):
                t, u = float(self.t + number * place.h), self._add_push(push)
                end = self.t + (number + 1) * place.h
                reached = simulator.step(t, h, u)
                if reached is not None and abs(reached - float(end)) > 1e-9 * max(h, abs(t)):
                    raise RefusedError(f"it stopped inside a step, at {reached:.9g} s: it has events")
                coming = pushes[number + 1] if number + 1 < len(pushes) else self.still
                seen = self._add_push(coming) if again else np.array(shift_origin(list(u), h))
                rows.append(self._read_outputs(simulator, end, seen))
            return np.array(rows)
        finally:
            if self.rollbacks:
                simulator.restore(self.saved)
            else:
                with suppress(Exception):  # what it said before counts
                    simulator.close()

    def _start_simulator(self) -> Any:
        place = self.place
        if self.rollbacks:
            place.simulator.restore(self.saved)
            return place.simulator
        simulator = self._open()
        simulator.start(float(place.t))
        simulator.output(float(place.t), self._add_push(self.quiet))
        if provides(simulator, InitialisationSimulator):
            simulator.ready()
        self._advance_to_start(simulator)
        return simulator

    def _open(self) -> Any:
        return self.place.model.open()

    def _add_push(self, push: Array) -> Array:
        u = push.copy()
        u[0] += self.place.u
        return u

    def _read_outputs(self, simulator: Any, t: Fraction, u: Array) -> Array:
        outputs = self.place.model.outputs
        y = output_array(simulator.output(float(t), u), len(outputs)).copy()
        if self.place.sloped:
            y = np.concatenate([y, output_array(simulator.slope(float(t), u), len(outputs))])
        if not np.isfinite(y).all():
            port = outputs[int(np.argmin(np.isfinite(y))) % len(outputs)]
            raise RefusedError(f"`{port.name}` is not finite at {float(t):.9g} s")
        return y


class LiftedBench:
    """The same with several steps as one: pushes and rows of its steps, one behind the other."""

    def __init__(self, bench: BlackBoxBench, phases: int):
        self.bench, self.phases = bench, phases
        self.t, self.later = bench.t, bench.later
        self.still = np.tile(bench.still, phases)
        self.restore_simulator = bench.restore_simulator

    def run(self, pushes: Sequence[Array]) -> Array:
        """Return the outputs before each step of a period, a row for each period and one more."""
        each = [part for push in pushes for part in np.split(push, self.phases, axis=1)]
        rows = self.bench.run([*each, *[self.bench.still] * (self.phases - 1)])
        return rows.reshape(len(pushes) + 1, -1)
