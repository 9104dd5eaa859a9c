"""Blocks with a state that moves: transfer functions, integrators, rate limiters.

In:  polynomials, limits, rates
Out: linear models where they are linear; else blocks whose motion is exact under held inputs
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hocket.errors import ScenarioError
from hocket.model.arguments import expect, expect_flags, set_fields
from hocket.model.ports import Port
from hocket.simulators.block import Block
from hocket.simulators.blocks.parameter_checks import as_limits, as_number, as_positive, as_units
from hocket.simulators.formulas import Number, Term, clip, greatest, least, less, select
from hocket.simulators.methods import vector
from hocket.simulators.state_space import StateSpace


def polynomial(name: str, coefficients: object) -> list[float]:
    """Return coefficients, the highest power first, without zeros before them; raises ScenarioError."""
    expected = "a list of finite numbers, the highest power of s first: [1, 0.5, 2]"
    expect(isinstance(coefficients, Iterable), name, coefficients, expected)
    try:
        numbers = list(vector(list(coefficients), name))  # type: ignore[call-overload]
    except (ValueError, TypeError):
        raise ScenarioError(f"`{name}` cannot be {coefficients!r:.60}", name, expected) from None
    while numbers and numbers[0] == 0.0:
        numbers = numbers[1:]
    return numbers


def TransferFunction(
    numerator: Sequence[float], denominator: Sequence[float], unit: str = "", out: str = ""
) -> StateSpace:
    """A linear model from `u` to `y` by polynomials in s, the highest power first.

    [1], [0.5, 1] is 1 / (0.5 s + 1); it starts at rest. `out` is the unit of y; left out: that of u.
    """
    as_units(unit=unit, out=out)
    above, below = polynomial("numerator", numerator), polynomial("denominator", denominator)
    if not below:
        raise ScenarioError("the denominator of a transfer function is zero", "denominator", "[1] at least")
    if len(above) > len(below):
        what = f"the transfer function is improper: degree {len(above) - 1} over degree {len(below) - 1}"
        expected = "a numerator whose degree is not above that of the denominator"
        raise ScenarioError(what, "numerator", expected, "a pole far away, as in s / (0.001 s + 1)")
    n = len(below) - 1
    a = np.array(below[1:]) / below[0]
    b = np.concatenate([np.zeros(n + 1 - len(above)), above]) / below[0]
    ports = {"inputs": [Port("u", unit)], "outputs": [Port("y", out or unit)]}
    given = {"numerator": above, "denominator": below, "unit": unit, "out": out}
    if not n:
        direct = StateSpace(D=[[float(b[0])]], **ports)  # type: ignore[arg-type]
        return direct.with_recipe("transfer-function", TransferFunction, **given)
    A = np.eye(n, k=1)  # controllable canonical form
    A[-1] = -a[::-1]
    C = (b[1:] - b[0] * a)[::-1]
    B = np.zeros((n, 1))
    B[-1, 0] = 1.0
    matrices = {"A": A.tolist(), "B": B.tolist(), "C": [C.tolist()], "D": [[float(b[0])]]}
    return StateSpace(**matrices, **ports).with_recipe("transfer-function", TransferFunction, **given)  # type: ignore[arg-type]


def Integrator(
    gain: float = 1.0,
    x0: float = 0.0,
    low: float | None = None,
    high: float | None = None,
    reset: bool = False,
    unit: str = "",
    out: str = "",
) -> StateSpace | LimitedIntegrator:
    """A model whose output `y` changes by gain times its input `u` per second.

    With `low` or `high` it stops there, and leaves when u turns. With `reset` it has an input `reset`, an
    event, at which y becomes x0 again. `out` is the unit of y; left out: that of u.
    """
    if low is not None or high is not None or reset is not False:
        return LimitedIntegrator(gain, x0, low, high, reset, unit, out)
    as_units(unit=unit, out=out)
    ports = {"inputs": [Port("u", unit)], "outputs": [Port("y", out or unit)]}
    rate, first = as_number("gain", gain), as_number("x0", x0)
    made = StateSpace([[0.0]], [[rate]], [[1.0]], x0=[first], **ports)  # type: ignore[arg-type]
    given = {"low": low, "high": high, "reset": reset, "unit": unit, "out": out}
    return made.with_recipe("integrator", Integrator, gain=rate, x0=first, **given)


@dataclass(frozen=True, init=False)
class LimitedIntegrator(Block):
    """An integrator with limits, a reset, or both; see `Integrator`, which makes it."""

    gain: float
    x0: float
    low: float | None
    high: float | None
    reset: bool
    unit: str
    out: str

    states = 1
    moves = True

    def __init__(
        self,
        gain: float = 1.0,
        x0: float = 0.0,
        low: float | None = None,
        high: float | None = None,
        reset: bool = False,
        unit: str = "",
        out: str = "",
    ):
        as_units(unit=unit, out=out)
        expect_flags(reset=reset)
        below, above = as_limits(low, high)
        first = as_number("x0", x0)
        if (below is not None and first < below) or (above is not None and first > above):
            raise ScenarioError(f"`x0` is {first:g}, beyond the limits", "x0", "a start within the limits")
        set_fields(self, gain=as_number("gain", gain), x0=first, low=below, high=above, reset=bool(reset))
        set_fields(self, unit=unit, out=out)

    @property
    def is_limited(self) -> bool:
        """Whether it has a limit."""
        return self.low is not None or self.high is not None

    @property
    def degree(self) -> int:  # type: ignore[override]
        """Under inputs that are not held, a limit may be met and left within a step."""
        return 0 if self.is_limited else 3

    @property
    def switches(self) -> str:  # type: ignore[override]
        """Its reset is an event."""
        return "its state is reset by events" if self.reset else ""

    @property
    def reacts(self) -> bool:  # type: ignore[override]
        """Whether it has a reset."""
        return self.reset

    @property
    def initial_state(self) -> tuple[float, ...]:
        return (self.x0,)

    @property
    def inputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        ports = (Port("u", self.unit),)
        return (*ports, Port("reset", event=True)) if self.reset else ports

    @property
    def outputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        return (Port("y", self.out or self.unit),)

    def advance(self, t: Term, h: Term, x: Sequence[Term], u: Sequence[Sequence[Term]]) -> Sequence[Number]:
        moved, power = x[0], h
        for k in range(self.rows):
            moved = moved + self.gain * u[k][0] * power / float(k + 1)
            power = power * h
        return [clip(moved, self.low, self.high)]

    def rates(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        rate = self.gain * u[0]
        if self.high is not None:
            rate = select(less(x[0], self.high), rate, least(rate, 0.0))
        if self.low is not None:
            rate = select(less(self.low, x[0]), rate, greatest(rate, 0.0))
        return [rate]

    def show(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        return [x[0]]

    def react(
        self, t: Term, due: Term, x: Sequence[Term], u: Sequence[Term], present: Sequence[Term]
    ) -> Sequence[Number]:
        return [select(present[1], self.x0, x[0])]


@dataclass(frozen=True, init=False)
class RateLimiter(Block):
    """An output `y` that follows its input `u`, no faster than `rising` and `falling` per second.

    Both are sizes; `falling` left out is `rising`. It starts at `y0`. Its motion is exact for inputs that are
    held or linear in time.
    """

    rising: float
    falling: float
    y0: float
    unit: str

    states = 1
    moves = True
    degree = 1
    is_smooth = False
    switches = "it limits a rate: what it does depends on how fast its input changes"

    def __init__(self, rising: float, falling: float | None = None, y0: float = 0.0, unit: str = ""):
        as_units(unit=unit)
        up = as_positive("rising", rising)
        down = up if falling is None else as_positive("falling", falling)
        set_fields(self, rising=up, falling=down, y0=as_number("y0", y0), unit=unit)

    @property
    def initial_state(self) -> tuple[float, ...]:
        return (self.y0,)

    @property
    def inputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        return (Port("u", self.unit),)

    @property
    def outputs(self) -> tuple[Port, ...]:  # type: ignore[override]
        return (Port("y", self.unit),)

    def advance(self, t: Term, h: Term, x: Sequence[Term], u: Sequence[Sequence[Term]]) -> Sequence[Number]:
        value, slope, y = u[0][0], u[1][0], x[0]
        gap = value - y
        rate = select(less(gap, 0.0), -self.falling, self.rising)
        closing = rate - slope  # of the same sign as the gap where they meet
        meets = less(0.0, gap * closing)
        when = select(meets, least(gap / select(meets, closing, 1.0), h), h)
        when = select(less(0.0, gap * gap), when, 0.0)
        after = clip(slope, -self.falling, self.rising)
        chased = y + rate * when + after * (h - when)
        held = clip_between(value, y - self.falling * h, y + self.rising * h)
        return [select(less(0.0, slope * slope), chased, held)]

    def show(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        return [x[0]]


def clip_between(value: Term, low: Term, high: Term) -> Term:
    """Return a value within limits that are terms themselves."""
    return least(greatest(value, low), high)
