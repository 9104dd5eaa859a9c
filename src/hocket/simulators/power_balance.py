"""Equations that keep the power agreed on their bonds, with the law inside f.

In:  a Balanced recipe of an Ode or a StateSpace; the agreed power
Out: simulators whose inputs follow from it

Source: Moshagen, SNE 31(1), 2021, section 2, in the robust forms of theory, section 5.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hocket.errors import SimulatorError
from hocket.model.extrapolators import shift_origin, value_at
from hocket.model.ports import Port
from hocket.model.protocols import Array, TextSimulator
from hocket.simulators.ode import Ode
from hocket.simulators.solvers import Equation
from hocket.simulators.state_space import StateSpace, StateSpaceSimulator
from hocket.simulators.wrappers.emulation import UNCHANGED, LiveWrapper

Curves: TypeAlias = list[list[float]]
"""One signal per bond, each in powers of time."""


class PartnerView(NamedTuple):
    """Another bond of a partner, by the numbers of the inputs that tell of it."""

    output: int
    input: int
    share: int
    sign: float
    bonds: int


class Seat(NamedTuple):
    """A side of a bond, by the numbers of its ports."""

    output: int
    input: int
    sign: float
    eps: float
    scale: float | None
    told: int | None
    share: int | None
    reacts: bool
    """Whether the input has direct feedthrough to the output."""
    names: str
    beyond: tuple[PartnerView, ...] = ()
    booked: int | None = None


class BalancedSimulator(LiveWrapper):
    """What all forms share: outputs as they are, and the power that both sides agree on."""

    def __init__(self, recipe: Any):
        """Open the model of a `Balanced`, whose module imports this one."""
        super().__init__(recipe.model, *UNCHANGED, TextSimulator)
        self.plain = self.inner
        self.recipe = recipe
        self.seats: tuple[Seat, ...] = recipe.seats
        self.width = len(recipe.model.inputs)
        self.shares = any(seat.share is not None for seat in self.seats)
        self.slopes: tuple[float, Array] | None = None
        """When slopes were last read, and what they were."""
        self.before: tuple[float, Array] | None = None
        """When the last step began, and the outputs then."""
        self.largest = [0.0] * len(self.seats)
        self.work = np.zeros(len(self.seats))
        """Per bond: the energy that came in."""
        if recipe.model.capabilities.slopes:
            self.slope = self._slope

    def start(self, t: float) -> None:
        super().start(t)
        self.slopes = self.before = None
        self.largest = [0.0] * len(self.seats)
        self.work = np.zeros(len(self.seats))

    def output(self, t: float, u: Array) -> Array:
        y: Array = np.asarray(self.plain.output(t, u[:, : self.width]))
        if not self.recipe.linked:
            return y
        return np.concatenate([y, [self._share()] if self.shares else [], self.work])

    def step(self, t: float, h: float, u: Array) -> float:
        own = u[:, : self.width]
        if h == 0.0:
            return float(self.plain.step(t, h, own))
        if len(u) == 1:
            raise SimulatorError(
                f"the bond of `{self.seats[0].names}` is given held inputs: held power freezes the motion",
                expected="extrapolation linear or Hermite",
                hint='extrapolation = "linear" for the two connections of the bond',
            )
        y = np.array(self.plain.output(t, own), dtype=float).reshape(-1)
        told = self._told_outputs(t, y, u)
        powers = [self._power(seat, curve, u) for seat, curve in zip(self.seats, told, strict=True)]
        for number, curve in enumerate(told):
            seen = abs(curve[0]), abs(value_at(curve, h)), self.largest[number]
            self.largest[number] = max(seen)
        reached = self._advance(t, h, u, y, told, powers)
        self.before = t, y
        return reached

    def save(self) -> Any:
        return self.plain.save(), self.slopes, self.before, list(self.largest), self.work.copy()

    def restore(self, state: Any) -> None:
        kept, self.slopes, self.before, largest, work = state
        self.largest, self.work = list(largest), work.copy()
        self.plain.restore(kept)

    def _slope(self, t: float, u: Array) -> Array:
        slope: Array = np.array(self.plain.slope(t, u[:, : self.width]), dtype=float)
        self.slopes = t, slope
        return np.concatenate([slope, np.zeros(len(self.recipe.outputs) - len(slope))])

    def _share(self) -> float:
        return max(require_finite_energy(float(self.plain.energy())), 0.0)

    def _told_outputs(self, t: float, y: Array, u: Array) -> Curves:
        """Return per bond the own output over the step as the partner extrapolates it."""
        if self.recipe.linked:
            return [[float(c) for c in u[:, seat.told]] for seat in self.seats]
        slope = np.zeros(y.size)
        if self.slopes is not None and self.slopes[0] == t:
            slope = self.slopes[1]
        elif self.before is not None:
            slope = (y - self.before[1]) / (t - self.before[0])
        return [[float(y[seat.output]), float(slope[seat.output])] for seat in self.seats]

    def _power(self, seat: Seat, told: list[float], u: Array) -> list[float]:
        """Return the agreed power into this side, in powers of time."""
        given = [float(c) for c in (u if self.recipe.linked else u[:2])[:, seat.input]]
        return self._product(seat.sign, told, given)

    def _product(self, sign: float, output: list[float], given: list[float]) -> list[float]:
        """Return the power of two signals, in powers of time."""
        power = [0.0] * (len(output) + len(given) - 1)
        for i, a in enumerate(output):
            for j, b in enumerate(given):
                power[i + j] = power[i + j] + sign * (a * b)
        return power[:2] if self.recipe.power == "linear" else power

    def _softness(self, number: int) -> float:
        """Return eps in the unit of dp/du."""
        seat = self.seats[number]
        return abs(seat.sign) * seat.eps * (self.largest[number] if seat.scale is None else seat.scale)

    def _advance(self, t: float, h: float, u: Array, y: Array, told: Curves, powers: Curves) -> float:
        raise NotImplementedError


def at_rest(powers: Curves) -> bool:
    """Return whether nothing but zeros was agreed: inputs stay as extrapolated, or nothing would start."""
    return not any(any(power) for power in powers)


def require_finite_energy(energy: float) -> float:
    """Return a stored energy; raises SimulatorError where it is not finite: no state can follow it."""
    if not isfinite(energy):
        raise energy_error(energy)
    return energy


def energy_error(energy: float) -> SimulatorError:
    """Return the error for a stored energy that is not a finite number."""
    return SimulatorError(
        f"its stored energy is {energy} J: no state can follow it",
        expected="a finite number of joules",
        hint="look into its `energy`",
    )


def corrected_input(seat: Seat, u: float, y: float, reaction: float, power: float, soft: float) -> float:
    """Return the input that makes the power: u + d (P - p) / (d^2 + eps^2) (theory, section 5).

    `reaction` is dy/du, zero without feedthrough.
    """
    d = seat.sign * (y + u * reaction)
    below = d * d + soft * soft
    return u if below == 0.0 else u + d * (power - seat.sign * (y * u)) / below


class SubsteppedBalance(BalancedSimulator):
    """For black boxes: several steps in place of one, each with the inputs of its middle."""

    def _advance(self, t: float, h: float, u: Array, y: Array, told: Curves, powers: Curves) -> float:
        count, own = self.recipe.substeps, u[:, : self.width]
        length = h / count
        honoured = self.recipe.model.capabilities.input_degree
        ahead = np.zeros(y.size)
        for seat, curve in zip(self.seats, told, strict=True):
            ahead[seat.output] = value_at(curve, length / 2.0) - curve[0]
        for number in range(count):
            s = number * length
            given = np.array(shift_origin(own, s))
            middle = np.array(value_at(own, s + length / 2.0))
            if number:
                last, y = y, np.array(self.plain.output(t + s, given), dtype=float).reshape(-1)
                ahead = (y - last) / 2.0
            if honoured is not None and honoured < len(given) - 1:
                given = middle[np.newaxis].copy()
            for seat, power, index in zip(self.seats, powers, range(len(powers)), strict=True):
                now = float(value_at(power, s + length / 2.0))
                reaction = self._reaction(seat, t + s, given) if seat.reacts else 0.0
                there, soft = float(y[seat.output] + ahead[seat.output]), self._softness(index)
                law = corrected_input(seat, float(middle[seat.input]), there, reaction, now, soft)
                given[:, seat.input] = 0.0
                given[0, seat.input] = law
            end = t + (h if number == count - 1 else s + length)
            begun = y
            returned = self.plain.step(t + s, end - (t + s), given)
            reached = end if returned is None else float(returned)
            if abs(reached - end) > 1e-9 * length:
                return reached
            done = np.array(self.plain.output(end, given), dtype=float).reshape(-1)
            for index, seat in enumerate(self.seats):
                shown = 0.5 * (begun[seat.output] + done[seat.output])
                self.work[index] += length * seat.sign * float(shown * given[0, seat.input])
        return t + h

    def _reaction(self, seat: Seat, t: float, given: Array) -> float:
        """Return dy/du, by a difference, where outputs follow inputs between steps."""
        if not self.recipe.model.capabilities.reevaluates:
            return 0.0

        def moved_outputs(u: Array) -> Array:
            return np.asarray(self.plain.output(t, np.vstack([u, given[1:]]))).reshape(-1)

        reaction = _output_slope(seat, given[0], moved_outputs)
        self.plain.output(t, given)
        return reaction


def _output_slope(seat: Seat, u: Array, outputs: Callable[[Array], Array]) -> float:
    """Return dy/du of a bond, by a central difference."""
    nudge = 1e-5 * max(1.0, abs(float(u[seat.input])))
    ends = []
    for sign in (1.0, -1.0):
        moved = u.copy()
        moved[seat.input] += sign * nudge
        ends.append(float(outputs(moved)[seat.output]))
    return (ends[0] - ends[1]) / (2.0 * nudge)


CALLS = 20_000
"""Evaluations of the law in one step, beyond which it does not come to an end."""


class _Equations(NamedTuple):
    """A model that hocket integrates, as equations for an Ode."""

    f: Equation
    g: Equation | None
    how: dict[str, Any]


def _equations_of_model(model: Any) -> _Equations:
    if isinstance(model, Ode):
        how = {"method": model.method, "step": model.step, "rtol": model.rtol, "atol": model.atol}
        return _Equations(model.function(model.f), None if model.g is None else model.function(model.g), how)
    (A, B), (C, D) = model.state_matrices, model.output_matrices
    exact = model.method == "exact"
    how = {"method": "adaptive" if exact else model.method, "step": None if exact else model.step}
    return _Equations(
        lambda _, x, u: A @ x + B @ u, lambda _, x, u: C @ x + D @ u, {**how, "rtol": 1e-9, "atol": 1e-12}
    )


class IntegratedBalance(BalancedSimulator):
    """Around a model that hocket integrates: `integrator` moves the state, `plain` shows it."""

    def __init__(self, recipe: Any):
        super().__init__(recipe)
        self.model: Any = recipe.model
        self.f, self.g, self.how = _equations_of_model(recipe.model)
        self.integrator: Any = self._open_inner()

    def start(self, t: float) -> None:
        super().start(t)
        self.integrator.start(t)

    def _open_inner(self) -> Any:
        raise NotImplementedError

    def _outputs(self, t: float, x: Array, u: Array) -> Array:
        return x if self.g is None else np.asarray(self.g(t, x, u), dtype=float).reshape(-1)

    def _works(self, t: float, x: Array, u: Array) -> list[float]:
        """Return the power of each bond under these inputs."""
        y = self._outputs(t, x, u)
        return [seat.sign * float(y[seat.output]) * float(u[seat.input]) for seat in self.seats]

    def _show(self, x: Array) -> None:
        """Let the plain simulator have the state."""
        if isinstance(self.plain, StateSpaceSimulator):
            self.plain.z = np.concatenate([x, self.plain.z[self.plain.size :]])
        else:
            self.plain.x = np.array(x)

    def save(self) -> Any:
        return super().save(), self.integrator.save()

    def restore(self, state: Any) -> None:
        super().restore(state[0])
        self.integrator.restore(state[1])


class InversionBalance(IntegratedBalance):
    """The law inside f: x' = f(t, x, u(t, x)), integrated by the model's own method."""

    calls = 0
    """Of the law, in this step."""
    silent = False
    """At rest: the inputs stay as extrapolated."""

    @property
    def micro(self) -> Any:
        """Called after every micro step."""
        return self.integrator.micro

    @micro.setter
    def micro(self, call: Any) -> None:
        self.integrator.micro = call

    def _open_inner(self) -> Any:
        model, count = self.model, len(self.model.x0)
        powers = [Port(f"power {number}") for number in range(len(self.seats))]
        return Ode(
            self._rates,
            lambda t, x, u: self._outputs(t, x[:count], u[: self.width]),
            [*model.x0, *[0.0] * len(self.seats)],
            [*model.inputs, *powers],
            model.outputs,
            feedthrough={},
            **self.how,
        ).open()

    def _rates(self, t: float, x: Array, u: Array) -> Array:
        """Return the rates of the states, and the power of each bond."""
        state = x[: len(self.model.x0)]
        law = self._law(t, state, u)
        return np.concatenate([self.f(t, state, law), self._works(t, state, law)])

    def _law(self, t: float, x: Array, u: Array) -> Array:
        own = u[: self.width]
        y, law = self._outputs(t, x, own), own.copy()
        if self.silent:
            return law
        self.calls += 1
        if self.calls > CALLS:
            raise SimulatorError(
                f"the agreed power asked for {CALLS:,} evaluations in one step",
                hint="a shorter step of the level, or a larger `eps`",
            )
        for number, seat in enumerate(self.seats):
            given, power = float(own[seat.input]), float(u[self.width + number])
            reaction = self._reaction(seat, t, x, own) if seat.reacts else 0.0
            soft = self._softness(number)
            law[seat.input] = corrected_input(seat, given, float(y[seat.output]), reaction, power, soft)
        return law

    def _reaction(self, seat: Seat, t: float, x: Array, u: Array) -> float:
        """Return dy/du."""
        if isinstance(self.model, StateSpace):
            return float(self.model.D[seat.output][seat.input])
        return _output_slope(seat, u, lambda moved: self._outputs(t, x, moved))

    def _advance(self, t: float, h: float, u: Array, y: Array, told: Curves, powers: Curves) -> float:
        self.calls = 0
        self.silent = at_rest(powers)
        rows = max(len(u), *map(len, powers))
        given = np.zeros((rows, self.width + len(powers)))
        given[: len(u), : self.width] = u[:, : self.width]
        for number, power in enumerate(powers):
            given[: len(power), self.width + number] = power
        reached: float = self.integrator.step(t, h, given)
        count = len(self.model.x0)
        self._show(self.integrator.x[:count])
        self.work = np.array(self.integrator.x[count:])
        return reached
