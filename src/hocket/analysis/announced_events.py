"""Simulators that announce periodic events, in the linear reading: classes with due(), FMUs with clocks.

In:  the linear map of a period of its events, and when they are
Out: a stand-in that announces the same events and carries rows
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hocket.analysis.linear_models import IgnoredTexts, ModelStandIn, StepResponse
from hocket.analysis.sampled_models import SampledStandIn
from hocket.errors import SimulatorError
from hocket.model.clock import format_duration, seconds
from hocket.model.event_pace import ROUNDINGS
from hocket.model.protocols import (
    Array,
)

PHASES = 24
"""Events of a pattern, at most."""
DIGITS = 10**9
"""Intervals are fractions with at most this denominator, or what floats make of them."""


@dataclass(frozen=True)
class EventPattern:
    """When something happens, seen from the start: at `first` + `offsets[k]` + n `period`."""

    first: Fraction
    offsets: tuple[Fraction, ...]
    period: Fraction

    @property
    def phases(self) -> int:
        return len(self.offsets)

    def repeat(self, count: int) -> EventPattern:
        """Return the same times as a pattern that is longer."""
        offsets = tuple(self.time(number) - self.first for number in range(count * self.phases))
        return EventPattern(self.first, offsets, count * self.period)

    def time(self, number: int) -> Fraction:
        """Return when an event is, counted from 0, after the start."""
        periods, phase = divmod(number, self.phases)
        return self.first + self.offsets[phase] + periods * self.period


def find_pattern(times: Sequence[Fraction]) -> EventPattern | None:
    """Return the pattern of times after the start; None: they do not repeat."""
    for phases in range(1, min(PHASES, (len(times) - 1) // 3) + 1):
        period = _round_interval(times[phases] - times[0])
        offsets = tuple(_round_interval(time - times[0]) for time in times[:phases])
        pattern = EventPattern(_round_interval(times[0]), offsets, period)
        if period > 0 and all(
            is_same_time(float(pattern.time(number)), float(time)) for number, time in enumerate(times)
        ):
            return pattern
    return None


def is_same_time(one: float, other: float) -> bool:
    """Return whether two times differ by what floats that were added up miss."""
    return abs(one - other) <= ROUNDINGS * max(abs(one), abs(other), 1e-9)


def _round_interval(length: Fraction) -> Fraction:
    """Return what a difference of floats means: the simplest fraction that it may be."""
    simple = length.limit_denominator(DIGITS)
    return simple if is_same_time(float(simple), float(length)) else length


@dataclass(frozen=True, eq=False)
class ReactorStandIn(ModelStandIn):
    """What changes at periodic events alone, linear from period to period.

    x' = F x + sum_j G[j] u_j + rate over a period, with the inputs u_j at event j; after that event
    y = C[j] x + sum_i D[j, i] u_i + shift[j], i up to j.
    """

    inside: StepResponse
    """The map of a period: of one event, or of several as a PeriodicModel with one power."""
    pattern: EventPattern
    rows: tuple[int, ...]
    """The outputs that are carried; the others stay as they are at the start."""
    first: Array
    """All outputs before the first event."""
    at_once: Array
    flags: tuple[tuple[bool, ...], ...]
    minds_jumps: bool

    @property
    def x0(self) -> Array:
        """The states that last from event to event."""
        return self.inside.x0

    @property
    def event_period(self) -> Fraction:
        """Seconds from an event to the one that repeats it."""
        return self.pattern.period

    @property
    def constant_outputs(self) -> list[str]:
        """The outputs that are not carried, and drive nothing."""
        return [port.name for number, port in enumerate(self.outputs) if number not in self.rows]

    def open(self) -> ReactorStandInSimulator:
        return ReactorStandInSimulator(self)


class ReactorStandInSimulator(IgnoredTexts):
    """A simulator on rows: z is the state, the inputs of the events since the period began, what is shown."""

    last_h = None

    def __init__(self, model: ReactorStandIn):
        self.model, self.pattern = model, model.pattern
        inside, phases = model.inside, model.pattern.phases
        self.inputs = len(model.inputs)
        n, p = len(inside.F), len(model.rows)
        single = phases == 1
        self.G = inside.G[np.newaxis, 0] if single else inside.G[:, 0]
        self.C = inside.C[np.newaxis] if single else inside.C
        self.D = inside.D[np.newaxis, np.newaxis, 0] if single else inside.D[:, :, 0]
        self.shift = np.reshape(inside.shift, (phases, p))
        self.states, self.past = n, phases * self.inputs
        self.z: Array = np.zeros(0)

    @property
    def size(self) -> int:
        """All numbers are states of it, but for what the level keeps."""
        return len(self.z)

    def start(self, t: float) -> None:
        self.begin, self.number = seconds(t), 0
        self.u = np.zeros(self.inputs)
        self.called = False
        self.z = np.concatenate([self.model.x0, np.zeros(self.past), self.model.first[list(self.model.rows)]])

    def close(self) -> None:
        """Nothing is held."""

    def output(self, t: float, u: Array) -> Array:
        shown = self.z[self.states + self.past :]
        y = np.zeros((len(self.model.outputs), *shown.shape[1:]))
        y[:] = _column(self.model.first, shown)
        y[list(self.model.rows)] = shown
        return y

    def step(self, t: float, h: float, u: Array) -> float:
        """Time passes; events that nobody has reacted to happen, as while a start window is computed."""
        while float(self.due()) < t and not is_same_time(float(self.due()), t):
            self.u = np.array(u[0])
            self._happen()
        return t + h

    def save(self) -> Any:
        return self.z.copy(), self.number, self.called, self.u.copy()

    def restore(self, state: Any) -> None:
        z, self.number, self.called, self.u = state
        self.z = z.copy()

    def due(self) -> Fraction:
        return self.begin + self.pattern.time(self.number)

    def is_due(self, t: float) -> bool:
        """Return whether its next event is at a time, or before."""
        return float(self.due()) <= t or is_same_time(float(self.due()), t)

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> list[bool]:
        """Look at the inputs; what follows at once is shown at once."""
        self.called = self.is_due(t)
        if not self.called:
            if self.model.minds_jumps and any(present):
                raise SimulatorError("its inputs jump between its events, and it reacts to that")
            return [False] * len(self.model.outputs)
        self.u = np.array(u)
        flags = self.model.flags[self.number % self.pattern.phases]
        if self.model.at_once.any():
            self._show(self.model.at_once)
        return list(flags)

    def commit(self) -> bool:
        """Let the event happen, where it is due."""
        if self.called:
            self._happen()
        self.called = False
        return False

    def time_layout(self, now: Fraction) -> Iterator[Any]:
        """Yield when its next event is, and which, seen from now."""
        yield self.due() - now
        yield self.number % self.pattern.phases

    def shift_time(self, by: Fraction) -> None:
        """Stand elsewhere in time, so many whole periods later, with the same numbers."""
        self.number += int(by / self.pattern.period) * self.pattern.phases

    # numbers, or rows of them

    def _happen(self) -> None:
        phase = self.number % self.pattern.phases
        self._show(np.ones(len(self.model.rows), dtype=bool))
        self.number += 1
        z = self.z
        if phase == self.pattern.phases - 1:
            x = self.model.inside.F @ z[: self.states] + _column(self.model.inside.rate, z)
            for G, u in zip(self.G, self._past(z), strict=True):
                x = x + G @ u
            z = z.copy()
            z[: self.states] = x
            z[self.states : self.states + self.past] = 0.0
            self.z = z

    def _show(self, chosen: Any) -> None:
        """Write down the inputs of this event, and show the chosen rows after it."""
        phase, z, u = self.number % self.pattern.phases, self.z, self.u
        if u.ndim > z.ndim:
            z = np.repeat(z[:, np.newaxis], u.shape[-1], axis=1)
        z = z.copy()
        self._past(z)[phase] = u if u.ndim == z.ndim else u[:, np.newaxis]
        y = self.C[phase] @ z[: self.states] + _column(self.shift[phase], z)
        for D, past in zip(self.D[phase, : phase + 1], self._past(z), strict=False):
            y = y + D @ past
        z[self.states + self.past :][chosen] = y[chosen]
        self.z = z

    def _past(self, z: Array) -> Array:
        part = z[self.states : self.states + self.past]
        return part.reshape(self.pattern.phases, self.inputs, *z.shape[1:])


def _column(constant: Array, z: Array) -> Array:
    return constant if z.ndim == 1 else constant[:, np.newaxis]


def describe_pattern(pattern: EventPattern) -> str:
    """Return when its events are, for people."""
    period = format_duration(pattern.period)
    each = f"{pattern.phases} events every {period}" if pattern.phases > 1 else f"an event every {period}"
    return f"identified from event to event: {each}"


ANNOUNCING_MODELS = (SampledStandIn, ReactorStandIn)
"""What stands for models whose events depend on time alone."""


def hyperperiod_events(stand_in: ReactorStandIn, period: Fraction) -> int:
    """Return how many events there are in so many seconds."""
    return math.ceil(period / stand_in.pattern.period) * stand_in.pattern.phases
