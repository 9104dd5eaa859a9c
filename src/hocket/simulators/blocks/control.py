"""Controllers: PID with limits and anti-windup, continuous or sampled; a relay with hysteresis.

In:  gains, times, limits
Out: a linear model where it is linear; else a block
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from hocket.errors import ScenarioError
from hocket.model.arguments import expect, expect_flags, set_fields
from hocket.model.clock import Duration
from hocket.model.ports import Port
from hocket.model.protocols import Model
from hocket.simulators.block import Block, Watch
from hocket.simulators.blocks.parameter_checks import as_duration, as_limits, as_number, as_positive, as_units
from hocket.simulators.formulas import Number, Term, clip, less, select
from hocket.simulators.recipes import positive_duration
from hocket.simulators.state_space import StateSpace

MICRO = 4.0
"""Micro steps in the shortest time constant of a controller."""


def PID(
    K: float,
    Ti: Duration | None = None,
    Td: Duration | None = None,
    N: float = 10.0,
    b: float = 1.0,
    c: float = 0.0,
    low: float | None = None,
    high: float | None = None,
    Tt: Duration | None = None,
    i0: float = 0.0,
    y0: float = 0.0,
    period: Duration | None = None,
    unit: str = "",
    out: str = "",
) -> StateSpace | LimitedPID:
    """A PID controller from `reference` and `measured` to `control`.

    control = K (b r - y + integral of (r - y) / Ti + Td d(c r - y)/dt), the derivative filtered by Td / N,
    within `low` and `high`. At a limit the integral part is led back with the time constant `Tt` (anti-windup
    by back-calculation; left out: the root of Ti Td, or Ti). Without Ti, or Td, that part is missing. `i0` is
    the integral part at the start, `y0` the measured value from which the derivative begins. With a `period`
    it is sampled: inputs are taken, and the output changes, once per period.
    """
    made = LimitedPID(K, Ti, Td, N, b, c, low, high, Tt, i0, y0, period, unit, out)
    return made if made.is_limited or made.period is not None else made.linear()


@lru_cache(maxsize=64)
def _pid_ports(unit: str, out: str) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Return the inputs and outputs of a controller: planning asks for them some forty times."""
    control = Port("control", out, feedthrough=("reference", "measured"))
    return (Port("reference", unit), Port("measured", unit)), (control,)


@dataclass(frozen=True, init=False)
class LimitedPID(Block):
    """A PID controller that has limits or is sampled; see `PID`, which makes it."""

    K: float
    Ti: float | None
    Td: float | None
    N: float
    b: float
    c: float
    low: float | None
    high: float | None
    Tt: float | None
    i0: float
    y0: float
    period: Fraction | None
    """For the engine to sample it with; None: it is continuous, or is what happens at a sample."""
    unit: str
    out: str
    sample: float | None = field(init=False)
    """What happens at a sample, so many seconds apart; None: it is continuous."""

    moves = True

    def __init__(
        self,
        K: float,
        Ti: Duration | None = None,
        Td: Duration | None = None,
        N: float = 10.0,
        b: float = 1.0,
        c: float = 0.0,
        low: float | None = None,
        high: float | None = None,
        Tt: Duration | None = None,
        i0: float = 0.0,
        y0: float = 0.0,
        period: Duration | None = None,
        unit: str = "",
        out: str = "",
    ):
        as_units(unit=unit, out=out)
        given = {"K": K, "b": b, "c": c, "i0": i0, "y0": y0}
        numbers = {name: as_number(name, value) for name, value in given.items()}
        times = {
            name: None if value is None else as_duration(name, value)
            for name, value in (("Ti", Ti), ("Td", Td), ("Tt", Tt))
        }
        below, above = as_limits(low, high)
        length = None if period is None else positive_duration(period, "period")
        if times["Tt"] is not None and (times["Ti"] is None or (below is None and above is None)):
            what = "`Tt` is given, and there is no integral part to be led back from a limit"
            raise ScenarioError(what, "Tt", "`Ti`, and `low` or `high`")
        set_fields(self, low=below, high=above, N=as_positive("N", N), period=length, unit=unit, out=out)
        set_fields(self, sample=None, **numbers, **times)

    @property
    def is_limited(self) -> bool:
        """Whether it has a limit."""
        return self.low is not None or self.high is not None

    @property
    def degree(self) -> int:  # type: ignore[override]
        """A sample is held."""
        return 0 if self.sample is not None else 1

    @property
    def is_smooth(self) -> bool:  # type: ignore[override]
        """Whether it is continuous: a sampled one is no equation."""
        return self.sample is None and self.period is None

    @property
    def inputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        return _pid_ports(self.unit, self.out)[0]

    @property
    def outputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        return _pid_ports(self.unit, self.out)[1]

    @property
    def tracking(self) -> float:
        """The time constant with which the integral part is led back, in seconds; infinite: it has none."""
        if self.Ti is None:
            return math.inf
        if self.Tt is not None:
            return self.Tt
        return self.Ti if self.Td is None else math.sqrt(self.Ti * self.Td)

    @property
    def filtered(self) -> float:
        """The time constant of the filter of the derivative, in seconds."""
        return 0.0 if self.Td is None else self.Td / self.N

    @property
    def longest(self) -> float | None:
        constants = [self.filtered] if self.Td is not None else []
        if self.is_limited and self.Ti is not None:
            constants.append(self.tracking)
        return None if self.sample is not None or not constants else min(constants) / MICRO

    @property
    def states(self) -> int:  # type: ignore[override]
        """The integral part, what the derivative was of, and in a sampled one the derivative part."""
        return 2 if self.sample is None else 3

    @property
    def initial_state(self) -> tuple[float, ...]:
        return (self.i0, -self.y0, 0.0)[: self.states]

    def without_period(self) -> LimitedPID:
        """Return what happens at a sample."""
        bare = object.__new__(LimitedPID)
        known = {name: getattr(self, name) for name in self.__dataclass_fields__}
        known |= {"period": None, "sample": None if self.period is None else float(self.period)}
        set_fields(bare, **known)
        return bare

    def linear(self) -> StateSpace:
        """Return the same without limits, as a linear model that is integrated exactly."""
        K, rate = self.K, 0.0 if self.Ti is None else self.K / self.Ti
        fast = 0.0 if self.Td is None else 1.0 / self.filtered
        kick = 0.0 if self.Td is None else K * self.N
        # a part that is missing has no state: one that stands still has the spectral radius 1
        has = [k for k, moves in enumerate((rate != 0.0 or self.i0 != 0.0, self.Td is not None)) if moves]
        A, B, C = [[0.0, 0.0], [0.0, -fast]], [[rate, -rate], [self.c * fast, -fast]], [1.0, -kick]
        return StateSpace(
            A=[[A[row][k] for k in has] for row in has],
            B=[B[row] for row in has],
            C=[[C[k] for k in has]] if has else (),
            D=[[K * self.b + kick * self.c, -K - kick]],
            x0=[self.initial_state[k] for k in has],
            inputs=self.inputs,
            outputs=[Port("control", self.out)],
        ).with_recipe("pid", PID, **self.arguments)

    def remake(self, arguments: Mapping[str, Any]) -> Model:
        """Return one made with other arguments: a linear model where nothing limits it."""
        return PID(**arguments)

    def _parts(self, x: Sequence[Term], u: Sequence[Term]) -> tuple[Term, Number, Term]:
        """Return the output before limits, the derivative part, and what the derivative is of."""
        reference, measured = u
        seen = self.c * reference - measured
        # of a sampled one the second state is what the derivative was of, and a third its value
        slope: Number = 0.0
        if self.Td is not None and self.sample is None:
            slope = self.K * self.N * (seen - x[1])
        elif self.Td is not None and self.sample is not None:
            span = self.Td + self.N * self.sample
            slope = self.Td / span * x[2] + self.K * self.Td * self.N / span * (seen - x[1])
        return self.K * (self.b * reference - measured) + x[0] + slope, slope, seen

    def rates(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        whole, _, seen = self._parts(x, u)
        integral: Number = 0.0
        if self.Ti is not None:
            integral = self.K / self.Ti * (u[0] - u[1])
            if self.is_limited:
                integral = integral + (clip(whole, self.low, self.high) - whole) / self.tracking
        return [integral, 0.0 if self.Td is None else (seen - x[1]) / self.filtered]

    def advance(self, t: Term, h: Term, x: Sequence[Term], u: Sequence[Sequence[Term]]) -> Sequence[Number]:
        if self.sample is None:
            return super().advance(t, h, x, u)
        whole, slope, seen = self._parts(x, u[0])
        integral: Number = x[0]
        if self.Ti is not None:
            integral = x[0] + self.K * self.sample / self.Ti * (u[0][0] - u[0][1])
            if self.is_limited:
                led = min(1.0, self.sample / self.tracking)
                integral = integral + led * (clip(whole, self.low, self.high) - whole)
        return [integral, seen, slope]

    def show(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        return [clip(self._parts(x, u)[0], self.low, self.high)]


@dataclass(frozen=True, init=False)
class Relay(Block):
    """An output `y` that becomes `on` where `u` rises above `high`, and `off` where it falls below `low`.

    Between them it stays as it is; it starts off unless `starts_on`. hocket watches what drives u, so that
    the crossings are met where they are: its inputs `rises` and `falls` are connected by itself.
    """

    low: float
    high: float
    off: float
    on: float
    starts_on: bool
    unit: str
    out: str

    states = 1
    moves = True
    degree = 0
    is_smooth = False
    reacts = True
    switches = "it is a relay: it switches where its input crosses a threshold"

    def __init__(
        self,
        low: float,
        high: float,
        off: float = 0.0,
        on: float = 1.0,
        starts_on: bool = False,
        unit: str = "",
        out: str = "",
    ):
        as_units(unit=unit, out=out)
        expect_flags(starts_on=starts_on)
        below, above = as_limits(low, high)
        expect(below is not None, "low", low, "a finite number")
        expect(above is not None, "high", high, "a finite number")
        set_fields(self, low=below, high=above, off=as_number("off", off), on=as_number("on", on))
        set_fields(self, starts_on=bool(starts_on), unit=unit, out=out)

    @property
    def initial_state(self) -> tuple[float, ...]:
        return (float(self.starts_on),)

    @property
    def inputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        return Port("u", self.unit), Port("rises", event=True), Port("falls", event=True)

    @property
    def outputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        return (Port("y", self.out, held=True),)

    @property
    def watched(self) -> Mapping[str, Watch]:
        return {"rises": Watch("u", "rising", self.high), "falls": Watch("u", "falling", self.low)}

    def advance(self, t: Term, h: Term, x: Sequence[Term], u: Sequence[Sequence[Term]]) -> Sequence[Number]:
        # what nobody has told it, as where its input comes from outside of its level
        return [select(less(self.high, u[0][0]), 1.0, select(less(u[0][0], self.low), 0.0, x[0]))]

    def show(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        return [select(x[0], self.on, self.off)]

    def react(
        self, t: Term, due: Term, x: Sequence[Term], u: Sequence[Term], present: Sequence[Term]
    ) -> Sequence[Number]:
        return [select(present[1], 1.0, select(present[2], 0.0, x[0]))]
