"""Sampled models in the linear reading: what they keep, show and will show later are numbers of z.

In:  a linear model of what a sample does, and when samples are taken
Out: a stand-in whose simulator announces its samples as the original does, and carries columns

Their events depend on nothing but time, so that the very instants of a run are read: periods, offsets and
delays are unrolled over the least common multiple of all periods and steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hocket.analysis.linear_models import IdentifiedModel, IgnoredTexts, ModelStandIn
from hocket.model.clock import seconds
from hocket.model.protocols import Array
from hocket.simulators.sampling import Sampling, is_not_after, is_same_time


@dataclass(frozen=True, eq=False)
class SampledStandIn(ModelStandIn):
    """A model that is sampled at times that it announces, with what it computes from a sample."""

    inside: IdentifiedModel
    """One step of it lasts a period, under held inputs; its outputs have the feedthrough of the class."""
    sampling: Sampling

    @property
    def x0(self) -> Array:
        """The states that last from sample to sample."""
        return self.inside.x0

    @property
    def event_period(self) -> Fraction:
        """Seconds from a sample to the next."""
        return self.sampling.period

    def open(self) -> SampledStandInSimulator:
        return SampledStandInSimulator(self)


class SampledStandInSimulator(IgnoredTexts):
    """A SampledSimulator on rows: z is the state inside, what is shown, and what will be shown later."""

    last_h = None

    def __init__(self, model: SampledStandIn):
        self.model, self.sampling = model, model.sampling
        self.inner: Any = model.inside.open()
        ports = model.inside.outputs
        self.states, self.count = len(model.inside.F), len(ports)
        self.at_once = np.array([bool(port.feedthrough) for port in ports], dtype=bool)
        self.starts = np.array([port.start or 0.0 for port in model.inputs])
        self.length = float(self.sampling.period)
        period, delay = self.sampling.period, self.sampling.delay
        split = [(Fraction(0), self.at_once), (period, ~self.at_once)]
        changes = split if delay is None else [(delay, np.ones(self.count, dtype=bool))]
        self.changes = [(after, ports) for after, ports in changes if ports.any()]
        self.z: Array = np.zeros(0)
        self.waiting: tuple[tuple[Fraction, Array], ...] = ()
        """When outputs will change, and which; what they will become stands in z."""

    @property
    def size(self) -> int:
        """All numbers are states of it, but for what the level keeps."""
        return len(self.z)

    def start(self, t: float) -> None:
        self.inner.start(t)
        self.begin, self.number = seconds(t), 0
        self.next = self._sample_time(0)
        self.waiting, self.armed, self.reached = (), False, t
        self.u = self.starts
        self._write(self.inner.z, self._outputs(t, self.starts))

    def _sample_time(self, number: int) -> Fraction:
        time = self.sampling.time(self.begin, number)
        assert isinstance(time, Fraction)  # what has jitter has no stand-in
        return time

    def close(self) -> None:
        """Nothing is held."""

    def output(self, t: float, u: Array) -> Array:
        return self.z[self.states : self.states + self.count].copy()

    def step(self, t: float, h: float, u: Array) -> float:
        """Time passes; samples that nobody has reacted to are taken, as while a start window is computed."""
        while float(self.announced) < t and not is_same_time(float(self.announced), t):
            self.u = np.array(u[0])
            limit = float(self.announced)
            self._change_outputs(limit)
            self._take_samples(limit)
        return t + h

    def save(self) -> Any:
        return self.z.copy(), self.number, self.next, self.waiting, self.armed, self.reached, self.u.copy()

    def restore(self, state: Any) -> None:
        z, self.number, self.next, self.waiting, self.armed, self.reached, self.u = state
        self.z = z.copy()

    @property
    def announced(self) -> Fraction:
        """The time of the next sample, or of the next change of an output."""
        return min(self.next, *(at for at, _ in self.waiting)) if self.waiting else self.next

    def due(self) -> Fraction:
        return self.announced

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> None:
        """Look at the inputs."""
        self.u = np.array(u)
        self.reached = t if any(present) else max(t, float(self.announced))

    def commit(self) -> bool:
        """Change outputs, and ask for another instant where a sample is due; or take the sample."""
        if self.armed:
            self._take_samples(self.reached)
        else:
            self._change_outputs(self.reached)
            self.armed = is_not_after(self.next, self.reached)
        return self.armed

    def time_layout(self, now: Fraction) -> Iterator[Any]:
        """Yield when its next events are, seen from now."""
        yield self.next - now
        for at, ports in self.waiting:
            yield at - now
            yield tuple(ports.tolist())
        yield self.armed

    def shift_time(self, by: Fraction) -> None:
        """Stand elsewhere in time, so many whole periods later, with the same numbers."""
        self.number += int(by / self.sampling.period)
        self.next += by
        self.waiting = tuple((at + by, ports) for at, ports in self.waiting)

    # numbers, or rows of them

    def _shown(self) -> Array:
        return self.z[self.states : self.states + self.count]

    def _later(self) -> list[Array]:
        """Return what will be shown, in the order of `waiting`."""
        first = self.states + self.count
        return [self.z[first + k * self.count :][: self.count] for k in range(len(self.waiting))]

    def _write(self, states: Array, shown: Array, later: Sequence[Array] = ()) -> None:
        columns = np.broadcast_shapes(states.shape[1:], shown.shape[1:], *(each.shape[1:] for each in later))
        parts = [
            np.broadcast_to(_spread(each, columns), (len(each), *columns)) for each in (states, shown, *later)
        ]
        self.z = np.concatenate(parts)

    def _outputs(self, t: float, u: Array) -> Array:
        return np.asarray(self.inner.output(t, u[np.newaxis]))

    def _change_outputs(self, limit: float) -> None:
        states, shown, later = self.z[: self.states], self._shown(), self._later()
        while self.waiting and is_not_after(self.waiting[0][0], limit):
            shown = _choose_rows(self.waiting[0][1], later[0], shown)
            self.waiting, later = self.waiting[1:], later[1:]
        self._write(states, shown, later)

    def _take_samples(self, limit: float) -> None:
        self.armed = False
        while is_not_after(self.next, limit):
            shown, later = self._shown(), self._later()
            self.inner.z = self.z[: self.states].copy()
            values = self._outputs(float(self.next), self.u)
            self.inner.step(float(self.next), self.length, self.u[np.newaxis])
            values = _choose_rows(self.at_once, values, self._outputs(float(self.next), self.u))
            queue = list(zip(self.waiting, later, strict=True))
            for delay, ports in self.changes:
                if delay == 0:
                    shown = _choose_rows(ports, values, shown)
                else:
                    queue.append(((self.next + delay, ports), values))
            queue.sort(key=lambda each: each[0][0])
            self.waiting = tuple(change for change, _ in queue)
            self._write(self.inner.z, shown, [rows for _, rows in queue])
            self.number += 1
            self.next = self._sample_time(self.number)


def _spread(rows: Array, columns: tuple[int, ...]) -> Array:
    """Return numbers as rows that are the same in all columns."""
    return rows if rows.ndim == 1 + len(columns) else rows[:, np.newaxis]


def _choose_rows(chosen: Array, one: Array, other: Array) -> Array:
    """Return the chosen rows of one, and the rest of the other."""
    columns = np.broadcast_shapes(one.shape[1:], other.shape[1:])
    one, other = _spread(one, columns), _spread(other, columns)
    return np.where(chosen.reshape(-1, *(1 for _ in columns)), one, other)


HYPERPERIOD = 20_000
"""Events and steps in a period of all that is periodic, up to which they are unrolled."""


def count_events(models: Sequence[SampledStandIn], period: Fraction) -> int:
    """Return how many events there are in so many seconds."""
    return sum(math.ceil(period / model.sampling.period) * (1 + len(model.outputs)) for model in models)
