"""Sampled systems: inputs are taken at announced times, and outputs change a delay later.

In:  a period, an offset, a delay, a jitter; a simulator that computes an output from a sample
Out: a simulator that announces its samples as events
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from hocket.errors import Fault, ScenarioError
from hocket.model.arguments import expect, is_whole
from hocket.model.clock import Duration, format_duration, seconds
from hocket.model.ports import Port
from hocket.model.protocols import Array, Capabilities, Simulator
from hocket.simulators.recipes import parse_seconds, positive_duration

Distribution: TypeAlias = Literal["uniform", "normal"]
JitterLike: TypeAlias = Mapping[str, Duration]
ROUNDINGS = 4.0
"""By how many roundings a time may be before another and still mean the same."""


@dataclass(frozen=True)
class Jitter:
    """How far samples are from their times.

    "uniform": late by 0 to `width` seconds. "normal": early or late with the standard deviation `width`,
    by less than half a period.
    """

    distribution: Distribution
    width: Fraction

    def draw(self, seed: int, number: int, period: Fraction) -> float:
        """Return by how many seconds a sample is late: the same whenever it is asked for."""
        chance = random.Random(f"{seed} {number}").random()
        width = float(self.width)
        if self.distribution == "uniform":
            return width * chance
        normal = NormalDist(0.0, width)
        least = normal.cdf(-float(period) / 2.0)
        return normal.inv_cdf(min(max(least + (1.0 - 2.0 * least) * chance, 1e-300), 1.0 - 2.0**-53))


@dataclass(frozen=True)
class Sampling:
    """When inputs are taken (offset + k period after the start) and how much later outputs change.

    Without a `delay` outputs with direct feedthrough change at once, and the others a period later.
    """

    period: Fraction
    offset: Fraction | None = None
    delay: Fraction | None = None
    jitter: Jitter | None = None
    seed: int | None = None

    @staticmethod
    def of(
        period: Duration,
        offset: Duration | None = None,
        delay: Duration | None = None,
        jitter: JitterLike | None = None,
        seed: int | None = None,
    ) -> Sampling:
        """Return what was written; raises ScenarioError."""
        length = positive_duration(period, "period")
        expect(seed is None or is_whole(seed), "seed", seed, "a whole number")
        return Sampling(
            length,
            None if offset is None else _duration(offset, "offset"),
            None if delay is None else _duration(delay, "delay"),
            None if jitter is None else _read_jitter(jitter, length),
            None if seed is None else int(seed),
        )

    @property
    def written_options(self) -> list[str]:
        """Which options were written beside the period."""
        options = {"offset": self.offset, "delay": self.delay, "jitter": self.jitter, "seed": self.seed}
        return [name for name, value in options.items() if value is not None]

    def time(self, start: Fraction, number: int) -> Fraction | float:
        """Return when a sample is taken, in seconds; they are numbered from 0."""
        nominal = start + (self.offset or 0) + number * self.period
        if self.jitter is None:
            return nominal
        return max(float(nominal) + self.jitter.draw(self.seed or 0, number, self.period), float(start))

    @property
    def words(self) -> str:
        """What is shown to people."""
        parts = [f"sampled every {format_duration(self.period)}"]
        parts += [f"offset {format_duration(self.offset)}"] if self.offset else []
        parts += [] if self.delay is None else [f"delay {format_duration(self.delay)}"]
        if self.jitter is not None:
            parts.append(f"{self.jitter.distribution} jitter {format_duration(self.jitter.width)}")
        return ", ".join(parts)


def _duration(written: Duration, name: str) -> Fraction:
    length = parse_seconds(written, name)
    if length < 0:
        raise ScenarioError(f"`{name}` is {written}", name, "a duration of zero or above")
    return length


def _read_jitter(written: Any, period: Fraction) -> Jitter:
    expected = '{"uniform": "1 ms"} (late by 0 to 1 ms) or {"normal": "1 ms"} (the standard deviation)'
    fits = isinstance(written, Mapping) and len(written) == 1 and {*written} <= {*get_args(Distribution)}
    expect(fits, "jitter", written, expected)
    ((distribution, width),) = written.items()
    length = positive_duration(width, "jitter")
    if length >= period:
        what = f"the jitter {format_duration(length)} is not below the period {format_duration(period)}"
        raise ScenarioError(what, "jitter", "samples that keep their order")
    return Jitter(distribution, length)


def sampled_ports(outputs: Iterable[Port]) -> tuple[Port, ...]:
    """Return the outputs of a model as they are when it is sampled: held, and changed by samples alone."""
    return tuple(replace(port, feedthrough=(), held=port.type == "real") for port in outputs)


def sampled_capabilities(inside: Capabilities) -> Capabilities:
    """Return what a sampled simulator can do."""
    return Capabilities(rollback=inside.rollback, input_degree=0, events=True)


def sampling_faults(
    inputs: Iterable[Port], outputs: Iterable[Port], inside: Capabilities, where: str
) -> Iterator[Fault]:
    """Yield why a model cannot be sampled."""
    if inside.events or inside.stops_early:
        yield Fault(
            "a model that has events of its own cannot be sampled", where, "events, or a period, not both"
        )
    for port in (*inputs, *outputs):
        if port.event:
            what = f"`{port.name}` is an event, and a sampled model has held values"
            yield Fault(what, where, "ports that always have a value")


class SampledSimulator:
    """A simulator that takes samples.

    At the time of a sample, instant n = 1 is for what is announced: outputs that are due change. At n = 2 it
    takes its inputs, so that it sees those changes, of its own and of others. What it computes without delay
    is seen from n = 3 on: two that drive each other are a period apart.
    """

    def __init__(self, inner: Simulator, sampling: Sampling, inputs: Sequence[Port], outputs: Sequence[Port]):
        self.inner: Any = inner
        self.sampling = sampling
        self.starts = np.array([[port.start or 0.0 for port in inputs]])
        self.at_once = [number for number, port in enumerate(outputs) if port.feedthrough]
        """The outputs that follow from the sample itself; the others from the step that is made with it."""
        self.later = [number for number in range(len(outputs)) if number not in self.at_once]
        self.length = float(sampling.period)
        both, delay = range(len(outputs)), sampling.delay
        self.changes: list[tuple[Fraction, Sequence[int]]] = (
            [(Fraction(0), self.at_once), (sampling.period, self.later)] if delay is None else [(delay, both)]
        )
        """How much later than a sample which outputs change."""

    def start(self, t: float) -> None:
        self.inner.start(t)
        self.begin, self.number = seconds(t), 0
        self.next = self.sampling.time(self.begin, 0)
        self.waiting: tuple[tuple[Fraction | float, Sequence[int], list[float]], ...] = ()
        """What outputs will become, and when."""
        self.shown = self._compute(t, self.starts)
        self.armed = False
        """Whether the next instant takes a sample."""
        self.reached, self.u = t, self.starts
        self._announce()

    def close(self) -> None:
        self.inner.close()

    def output(self, t: float, u: Array) -> Any:
        return self.shown

    def step(self, t: float, h: float, u: Array) -> float:
        while float(self.announced) < t and not is_same_time(float(self.announced), t):  # nobody has reacted
            self.u = np.array(u[:1])
            limit = float(self.announced)
            self._change_outputs(limit)
            self._take_samples(limit)
        return t + h

    def save(self) -> Any:
        kept = self.inner.save()
        return kept, self.number, self.next, self.waiting, self.shown, self.armed, self.reached, self.u

    def restore(self, state: Any) -> None:
        kept, self.number, self.next, self.waiting, self.shown, self.armed, self.reached, self.u = state
        self.inner.restore(kept)
        self._announce()

    def due(self) -> Fraction | float:
        """Return the time of the next sample, or of the next change of an output."""
        return self.announced

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> None:
        """Look at the inputs."""
        self.u = np.array([u])
        # a time that is announced may be rounded: without anything present it is the reason of this call
        self.reached = t if any(present) else max(t, float(self.announced))

    def commit(self) -> bool:
        """Change outputs, and ask for another instant where a sample is due; or take the sample."""
        if self.armed:
            self._take_samples(self.reached)
        else:
            self._change_outputs(self.reached)
            self.armed = is_not_after(self.next, self.reached)
        return self.armed

    def _change_outputs(self, limit: float) -> None:
        while self.waiting and is_not_after(self.waiting[0][0], limit):
            _, ports, values = self.waiting[0]
            self.waiting = self.waiting[1:]
            self._show(ports, values)
        self._announce()

    def _show(self, ports: Sequence[int], values: list[float]) -> None:
        self.shown = list(self.shown)
        for port in ports:
            self.shown[port] = values[port]

    def _take_samples(self, limit: float) -> None:
        self.armed = False
        while is_not_after(self.next, limit):
            values = self._compute(float(self.next), self.u, moves=True)
            for delay, ports in self.changes:
                if not ports:
                    continue
                if delay == 0:
                    self._show(ports, values)
                else:
                    self.waiting = (*self.waiting, (self.next + delay, ports, values))
            self.waiting = tuple(sorted(self.waiting, key=_change_time))
            self.number += 1
            self.next = self.sampling.time(self.begin, self.number)
        self._announce()

    def _compute(self, t: float, u: Array, moves: bool = False) -> list[float]:
        """Return the outputs that follow from inputs; `moves`: those without feedthrough after the step."""
        first = _floats(self.inner.output(t, u)) if self.at_once or not moves else []
        if not moves:
            return first
        self.inner.step(t, self.length, u)
        if not self.later:
            return first
        values = _floats(self.inner.output(t + self.length, u))
        for port in self.at_once:
            values[port] = first[port]
        return values

    def _announce(self) -> None:
        first = self.waiting[0][0] if self.waiting else math.inf
        self.announced = self.next if self.next <= first else first


def _change_time(change: tuple[Fraction | float, Any, Any]) -> Fraction | float:
    return change[0]


def _floats(y: Any) -> list[float]:
    found: list[float] = np.array(y, dtype=float).reshape(-1).tolist()
    return found


def is_same_time(one: float, other: float) -> bool:
    """Return whether two times differ by rounding at most."""
    return abs(one - other) <= ROUNDINGS * max(math.ulp(one), math.ulp(other))


def is_not_after(time: Fraction | float, limit: float) -> bool:
    """Return whether a time is reached, rounding aside."""
    return float(time) <= limit or is_same_time(float(time), limit)
