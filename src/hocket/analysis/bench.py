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

from hocket.engine.calls import numbers
from hocket.model import Array, Model
from hocket.signals import shifted


class RefusedError(Exception):
    """Why a model cannot be judged."""


@dataclass(frozen=True)
class Place:
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


class Bench:
    """Runs from one and the same state: by rewinding where possible, else with fresh instances.

    The state is `later` steps after the place where the simulator stands.
    """

    def __init__(self, place: Place, later: int = 0):
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
            self._go(place.simulator)
            self.saved = place.simulator.save()

    def leave(self) -> None:
        """Put the simulator back to where it stood."""
        if self.rewinds:
            self.place.simulator.restore(self.before)

    def _go(self, simulator: Any) -> None:
        place, u = self.place, self._inputs(self.still)
        for number in range(self.later):
            simulator.step(float(place.t + number * place.h), float(place.h), u.copy())

    def run(self, pushes: Sequence[Array]) -> Array:
        """Return the outputs (and slopes) before the first step and after each, a row each.

        Pushes of shape (powers, inputs) are added to the inputs of a step each. Rows are under the inputs of
        the coming step where outputs are evaluated again, else under those of the step just made.
        """
        simulator = self._begun()
        try:
            return self._run(simulator, pushes)
        finally:
            if self.rewinds:
                simulator.restore(self.saved)
            else:
                with suppress(Exception):  # what it said before counts
                    simulator.close()

    def _begun(self) -> Any:
        place = self.place
        if self.rewinds:
            place.simulator.restore(self.saved)
            return place.simulator
        simulator: Any = place.model.open()
        simulator.start(float(place.t))
        simulator.output(float(place.t), self._inputs(self.still))
        if hasattr(simulator, "ready"):
            simulator.ready()
        self._go(simulator)
        return simulator

    def _inputs(self, push: Array) -> Array:
        u = push.copy()
        u[0] += self.place.u
        return u

    def _run(self, simulator: Any, pushes: Sequence[Array]) -> Array:
        place, again = self.place, self.place.model.abilities.reevaluates
        rows = [self._read(simulator, self.t, self._inputs(pushes[0]))]
        h = float(place.h)
        for number, push in enumerate(pushes):
            t, u = float(self.t + number * place.h), self._inputs(push)
            end = self.t + (number + 1) * place.h
            reached = simulator.step(t, h, u)
            if reached is not None and abs(reached - float(end)) > 1e-9 * max(h, abs(t)):
                raise RefusedError(f"it stopped inside a step, at {reached:.9g} s: it has events")
            coming = pushes[number + 1] if number + 1 < len(pushes) else self.still
            seen = self._inputs(coming) if again else np.array(shifted(list(u), h))
            rows.append(self._read(simulator, end, seen))
        return np.array(rows)

    def _read(self, simulator: Any, t: Fraction, u: Array) -> Array:
        outputs = self.place.model.outputs
        y = numbers(simulator.output(float(t), u), len(outputs)).copy()
        if self.place.sloped:
            y = np.concatenate([y, numbers(simulator.slope(float(t), u), len(outputs))])
        if not np.isfinite(y).all():
            port = outputs[int(np.argmin(np.isfinite(y))) % len(outputs)]
            raise RefusedError(f"`{port.name}` is not finite at {float(t):.9g} s")
        return y
