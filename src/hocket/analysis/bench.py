"""Runs of a black box from one and the same state, with nothing but start, step and output.

In:  a model and where it stands; pushes to add to its inputs
Out: its outputs after each step
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hocket.engine.calls import output_array
from hocket.model import Array, Model
from hocket.signals import shift_origin


class RefusedError(Exception):
    """Why a model cannot be judged."""


@dataclass(frozen=True)
class OperatingPoint:
    """Where a black box stands, and how its level steps it."""

    model: Model
    simulator: Any
    """The live one in its level: used where it can rewind."""
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
    """Runs from one and the same state: by rewinding where possible, else with fresh instances.

    The state is `later` steps after the place where the simulator stands.
    """

    def __init__(self, place: OperatingPoint, later: int = 0):
        self.place = place
        self.later = later
        self.t = place.t + later * place.h
        self.rewinds = place.model.abilities.rewind
        if place.started and not self.rewinds:
            raise RefusedError("it cannot rewind, so it can be tried at its start only")
        self.still = np.zeros((place.powers, len(place.u)))
        self.before = place.simulator.save() if self.rewinds else None
        self.saved = self.before
        if self.rewinds and later:
            self._advance_to_start(place.simulator)
            self.saved = place.simulator.save()

    def restore_simulator(self) -> None:
        """Put the simulator back to where it stood."""
        if self.rewinds:
            self.place.simulator.restore(self.before)

    def _advance_to_start(self, simulator: Any) -> None:
        place, u = self.place, self._add_push(self.still)
        for number in range(self.later):
            simulator.step(float(place.t + number * place.h), float(place.h), u.copy())

    def run(self, pushes: Sequence[Array]) -> Array:
        """Return the outputs (and slopes) before the first step and after each, a row each.

        Pushes of shape (powers, inputs) are added to the inputs of a step each. Rows are under the inputs of
        the coming step where outputs are evaluated again, else under those of the step just made.
        """
        simulator = self._start_simulator()
        try:
            return self._run_steps(simulator, pushes)
        finally:
            if self.rewinds:
                simulator.restore(self.saved)
            else:
                with suppress(Exception):  # what it said before counts
                    simulator.close()

    def _start_simulator(self) -> Any:
        place = self.place
        if self.rewinds:
            place.simulator.restore(self.saved)
            return place.simulator
        simulator: Any = place.model.open()
        simulator.start(float(place.t))
        simulator.output(float(place.t), self._add_push(self.still))
        if hasattr(simulator, "ready"):
            simulator.ready()
        self._advance_to_start(simulator)
        return simulator

    def _add_push(self, push: Array) -> Array:
        u = push.copy()
        u[0] += self.place.u
        return u

    def _run_steps(self, simulator: Any, pushes: Sequence[Array]) -> Array:
        place, again = self.place, self.place.model.abilities.reevaluates
        rows = [self._read_outputs(simulator, self.t, self._add_push(pushes[0]))]
        h = float(place.h)
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

    def _read_outputs(self, simulator: Any, t: Fraction, u: Array) -> Array:
        outputs = self.place.model.outputs
        y = output_array(simulator.output(float(t), u), len(outputs)).copy()
        if self.place.sloped:
            y = np.concatenate([y, output_array(simulator.slope(float(t), u), len(outputs))])
        if not np.isfinite(y).all():
            port = outputs[int(np.argmin(np.isfinite(y))) % len(outputs)]
            raise RefusedError(f"`{port.name}` is not finite at {float(t):.9g} s")
        return y
