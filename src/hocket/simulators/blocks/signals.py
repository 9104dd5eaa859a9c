"""Signals: step, ramp, sine, pulses, noise.

In:  sizes, times, a seed
Out: models without inputs; what jumps announces its jumps
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from hocket.errors import ScenarioError, raise_faults
from hocket.model.arguments import choice_faults, expect, is_whole, set_fields
from hocket.model.clock import Duration
from hocket.model.ports import Port
from hocket.model.protocols import Simulator
from hocket.simulators.block import Block, Remade
from hocket.simulators.blocks.parameter_checks import as_duration, as_number, as_positive, as_time, as_units
from hocket.simulators.formulas import Number, Program, Tape, Term, greatest, select
from hocket.simulators.sources import Function, Table, _FunctionSource, _TableSource

Distribution: TypeAlias = Literal["normal", "uniform"]


@dataclass(frozen=True, init=False, eq=False)
class Step(Remade, Table):
    """A signal `y` that jumps from one value to another, at a time that it announces."""

    at: float
    before: float
    after: float
    unit: str

    def __init__(self, at: Duration = 0.0, before: float = 0.0, after: float = 1.0, unit: str = ""):
        as_units(unit=unit)
        time, values = as_time("at", at), [as_number("before", before), as_number("after", after)]
        super().__init__([time, time], {"y": values}, outputs=[Port("y", unit)])
        set_fields(self, at=time, before=values[0], after=values[1], unit=unit)

    def open(self) -> Simulator:
        return _StepSource(self)


class _StepSource(_TableSource):
    """A table of two rows, with a twin in compiled code."""

    def __init__(self, model: Step):
        super().__init__(model.times, model.values, "linear", "hold", [False])
        self.model = model

    def due(self) -> float | None:  # type: ignore[override]
        """Return the time of the jump, as its twin knows it."""
        return self.model.at if self.next < len(self.jumps) else None

    @property
    def native(self) -> Any:
        """The twin in compiled code, in the state reached."""
        model = _StepBlock(self.model.at, self.model.before, self.model.after, bool(self.jumps))
        live: Any = model.open()
        live.state, live.event_grid = [float(self.next)], self.event_grid
        return live.native


@dataclass(frozen=True)
class _StepBlock(Block):
    """What a step does, as formulas."""

    at: float
    before: float
    after: float
    jumps: bool

    inputs, outputs = (), (Port("y"),)
    states = 1
    announces = reacts = True

    def show(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        return [select(x[0], self.after, self.before)]

    def next(self, x: Sequence[Term]) -> Number:
        return select(x[0], math.inf, self.at) if self.jumps else math.inf

    def react(
        self, t: Term, due: Term, x: Sequence[Term], u: Sequence[Term], present: Sequence[Term]
    ) -> Sequence[Number]:
        return [1.0]


@dataclass(frozen=True)
class _Signal(Block):
    """A function of time as a program."""

    program: Program

    inputs, outputs = (), (Port("y"),)

    def __call__(self, t: float) -> float:
        return self.program([t])[0]

    @property
    def programs(self) -> Any:
        return {"show": self.program}


class _SignalSource(_FunctionSource):
    """A function of time with a twin in compiled code."""

    f: _Signal

    @property
    def native(self) -> Any:
        """The twin; it keeps nothing."""
        live: Any = self.f.open()
        return live.native


class _Formula(Remade, Function):
    """What ramps and sines share: functions of time that compiled code evaluates."""

    def open(self) -> Simulator:
        return _SignalSource(self.f)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        own = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__annotations__)
        return f"{type(self).__name__}({own})"


def _signal(result: Term) -> _Signal:
    return _Signal(result.tape.program([result]))


@dataclass(frozen=True, init=False, repr=False)
class Ramp(_Formula):
    """A signal `y` that grows at a constant rate from a time on: by `slope` per second."""

    slope: float
    at: float
    initial: float
    unit: str

    def __init__(self, slope: float = 1.0, at: Duration = 0.0, initial: float = 0.0, unit: str = ""):
        as_units(unit=unit)
        rate, begin, first = as_number("slope", slope), as_time("at", at), as_number("initial", initial)
        (t,) = Tape(1).given
        super().__init__(_signal(first + rate * greatest(t - begin, 0.0)), [Port("y", unit)])
        set_fields(self, slope=rate, at=begin, initial=first, unit=unit)


@dataclass(frozen=True, init=False, repr=False)
class Sine(_Formula):
    """A signal `y` = offset + amplitude sin(2 pi frequency t + phase), frequency in Hz, phase in rad."""

    amplitude: float
    frequency: float
    phase: float
    offset: float
    unit: str

    def __init__(
        self,
        amplitude: float = 1.0,
        frequency: float = 1.0,
        phase: float = 0.0,
        offset: float = 0.0,
        unit: str = "",
    ):
        as_units(unit=unit)
        given = {"amplitude": amplitude, "phase": phase, "offset": offset}
        known = {name: as_number(name, value) for name, value in given.items()}
        rate = 2.0 * math.pi * as_positive("frequency", frequency)
        (t,) = Tape(1).given
        wave = t.tape.note("sin", rate * t + known["phase"])
        super().__init__(_signal(known["offset"] + known["amplitude"] * wave), [Port("y", unit)])
        set_fields(self, frequency=float(frequency), unit=unit, **known)


@dataclass(frozen=True)
class _Train(Block):
    """A signal that jumps again and again, at times that it announces; the state counts the jumps."""

    inputs = ()
    states = 1
    announces = reacts = True
    unit: str
    interval: float
    """What it is made with as `period`, which of a model is that of its samples."""

    @property
    def arguments(self) -> dict[str, Any]:
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, "interval" if name == "period" else name) for name in names}

    @property
    def outputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        return (Port("y", self.unit, held=True),)

    def react(
        self, t: Term, due: Term, x: Sequence[Term], u: Sequence[Term], present: Sequence[Term]
    ) -> Sequence[Number]:
        return [x[0] + due]


@dataclass(frozen=True, init=False)
class Pulse(_Train):
    """A signal `y` that is `high` for `width` at the start of each period, and `low` otherwise."""

    width: float
    at: float
    low: float
    high: float

    def __init__(
        self,
        period: Duration,
        width: Duration,
        at: Duration = 0.0,
        low: float = 0.0,
        high: float = 1.0,
        unit: str = "",
    ):
        as_units(unit=unit)
        length, part = as_duration("period", period), as_duration("width", width)
        if part >= length:
            raise ScenarioError(f"pulses of {part:g} s in periods of {length:g} s", "width", "below `period`")
        levels = {"low": as_number("low", low), "high": as_number("high", high)}
        set_fields(self, interval=length, width=part, at=as_time("at", at), unit=unit, **levels)

    def begin(self, t: float) -> tuple[float, ...]:
        return (max(0.0, 2.0 * math.floor((t - self.at) / self.interval) - 2.0),)

    def _is_high(self, x: Sequence[Term]) -> Term:
        """Return 1 after an odd number of jumps."""
        return x[0] - 2.0 * x[0].tape.note("floor", 0.5 * x[0])

    def show(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        return [select(self._is_high(x), self.high, self.low)]

    def next(self, x: Sequence[Term]) -> Number:
        begin = self.at + self.interval * x[0].tape.note("floor", 0.5 * x[0])
        return select(self._is_high(x), begin + self.width, begin)


@dataclass(frozen=True, init=False)
class Noise(_Train):
    """A signal `y` that has another random value in each period, the same for the same seed.

    `std` is its standard deviation, whatever the distribution.
    """

    std: float
    mean: float
    seed: int
    distribution: Distribution

    def __init__(
        self,
        period: Duration,
        std: float = 1.0,
        mean: float = 0.0,
        seed: int = 0,
        distribution: Distribution = "normal",
        unit: str = "",
    ):
        as_units(unit=unit)
        raise_faults(choice_faults("distribution", distribution, get_args(Distribution)))
        expect(is_whole(seed) and seed < 2**53, "seed", seed, "a whole number of zero or above, below 2^53")
        numbers = {"std": as_positive("std", std), "mean": as_number("mean", mean)}
        length = as_duration("period", period)
        set_fields(self, interval=length, seed=int(seed), distribution=distribution, unit=unit, **numbers)

    def begin(self, t: float) -> tuple[float, ...]:
        return (max(0.0, math.floor(t / self.interval) - 1.0),)

    def show(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        tape = x[0].tape
        if self.distribution == "normal":
            return [self.mean + self.std * tape.note("normal", float(self.seed), x[0])]
        return [self.mean + self.std * math.sqrt(12.0) * (tape.note("uniform", float(self.seed), x[0]) - 0.5)]

    def next(self, x: Sequence[Term]) -> Number:
        return self.interval * (x[0] + 1.0)
