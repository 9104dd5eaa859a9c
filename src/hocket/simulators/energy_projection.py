"""Balance by energy: a state that follows the agreed energy, and how much of it may be given in one step.

In:  what a simulator stores, and the energies that its bonds agreed on, with what the others at them store
Out: a simulator whose state is moved to where the agreed energies lead; faults of energies that are not such

A simulator gives what it stores, and what is sure to come in meanwhile: power passes through it. Sure is,
of a simulator with n bonds, an n-th of what it stores: so much it gives through each, whatever its other
bonds ask for. All of it is known to both sides before the step, so both limit a bond alike, and no simulator
is left with less than nothing. With one bond it is the limiter of theory, section 5. A declared energy must
grow by the power that comes in, and be nowhere below zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hocket.errors import Fault, Place, SimulatorError
from hocket.model.extrapolators import value_at
from hocket.model.plain_state import is_record
from hocket.model.protocols import Array
from hocket.simulators.energies import NUDGE, Energy, project_to_energy
from hocket.simulators.methods import apply_matrix, dot
from hocket.simulators.ode import Ode
from hocket.simulators.power_balance import (
    Curves,
    IntegratedBalance,
    PartnerView,
    Seat,
    at_rest,
    require_finite_energy,
)
from hocket.simulators.solvers import Equation
from hocket.simulators.state_space import StateSpace


class BondFlow(NamedTuple):
    """The energy that a bond agreed on, into a simulator, and what is at its other end."""

    energy: float
    stored: float
    """By the other one; below zero: not told, and not limited."""
    bonds: int
    """Of the other one."""


def limit_energies(stored: float, flows: Sequence[BondFlow]) -> list[float]:
    """Return the energies of all bonds after this simulator's limit; `stored` below zero: none.

    What there is goes to all bonds that ask, in equal parts, and what one leaves of its part to the others.
    """
    energies = [flow.energy for flow in flows]
    if stored < 0.0:
        return energies
    left = stored
    for flow in flows:
        left += max(_guaranteed_energy(flow), 0.0)
    asked = sorted((-energy, number) for number, energy in enumerate(energies) if energy < 0.0)
    for rank, (energy, number) in enumerate(asked):
        given = min(energy, left / (len(asked) - rank))
        energies[number] = -given
        left = max(left - given, 0.0)
    return energies


def _guaranteed_energy(flow: BondFlow) -> float:
    """Return what the other one gives whatever else it is asked for."""
    return flow.energy if flow.stored < 0.0 else min(flow.energy, flow.stored / flow.bonds)


def settlement_part(owed: float, own: float, theirs: float) -> float:
    """Return one side's part of what both sides of a bond booked and neither gave.

    By what both have at the end of the step, as far as this side knows: one that has nothing pays nothing.
    """
    together = own + max(theirs, 0.0)
    return owed * own / together if together > 0.0 else 0.0


NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)
"""Where and how the powers of a part of a step are summed, on [-1, 1]."""
ROUNDED = 1e-13
"""The part of what it is made of below which a power is zero."""


def works(model: StateSpace, seats: Sequence[Seat], h: float, degree: int) -> Array:
    """Return the forms of the works of the bonds over h seconds; the last is what comes in besides."""
    n, m = len(model.A), len(model.inputs)
    size = n + m * (degree + 1)
    flow = np.zeros((size, size))  # of the state and of the inputs' coefficients, time in steps
    flow[:n, :n], flow[:n, n : n + m] = (h * matrix for matrix in model.state_matrices)
    for k in range(degree):
        row = n + k * m
        flow[row : row + m, row + m : row + 2 * m] = (k + 1) * np.eye(m)
    powers = np.zeros((len(seats) + 1, size, size))
    powers[:, : n + m, : n + m] = _power_forms(model, seats)
    units = np.concatenate([np.ones(n), *(np.full(m, h**k) for k in range(degree + 1))])
    forms: Array = h * units[:, None] * _integrate_forms(flow, powers) * units
    return forms


def _power_forms(model: StateSpace, seats: Sequence[Seat]) -> Array:
    """Return the power of each bond, and that which is of no bond, as forms of state and inputs."""
    (A, B), (C, D) = model.state_matrices, model.output_matrices
    n, m = B.shape
    powers = np.zeros((len(seats) + 1, n + m, n + m))
    for power, seat in zip(powers, seats, strict=False):
        power[:, n + seat.input] = seat.sign * np.concatenate([C[seat.output], D[seat.output]])
    if model.stored_energy is not None:
        rate, Q = np.concatenate([A, B], axis=1), model.stored_energy.Q
        besides, large = -np.sum(powers, axis=0), np.sum(np.abs(powers), axis=0)
        besides[:n], large[:n] = besides[:n] + Q @ rate, large[:n] + np.abs(Q) @ np.abs(rate)
        besides, large = 0.5 * (besides + besides.T), 0.5 * (large + large.T)
        powers[-1] = np.where(np.abs(besides) > ROUNDED * large, besides, 0.0)
    return powers


def _integrate_forms(flow: Array, powers: Array) -> Array:
    """Return the integrals of powers along a flow, over one unit of time.

    Summed over a part in which the state hardly moves, then over twice that until the step is full: neither
    fast oscillations nor fast decays are missed, however long the step.
    """
    from scipy.linalg import expm  # here: the process of an isolated FMU does without

    fastest = float(np.abs(flow).sum(axis=1).max(initial=0.0))
    doublings = 1 + max(math.ceil(math.log2(fastest)), 0) if fastest > 0.0 else 0
    part = 0.5**doublings
    total = np.zeros_like(powers)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        move = expm(0.5 * part * (1.0 + node) * flow)
        total = total + 0.5 * part * weight * (move.T @ powers @ move)
    move = expm(part * flow)
    for _ in range(doublings):
        total, move = total + move.T @ total @ move, move @ move
    return total


LENGTHS = 100
"""Of how many steps the work is kept as a form; step control has many."""


@is_record
class _AgreedStep(NamedTuple):
    """What was agreed for a step of which this simulator makes several."""

    t: float
    """When it began."""
    parts: list[float]
    """Per bond: the part of the nominal energy that is handed over."""
    paid: list[float]
    """Per bond: what is settled besides."""
    work: Array
    """The accounts at its beginning."""


class Projected(IntegratedBalance):
    """The state follows the agreed energy: a plain step, then a move along the gradient of the energy.

    Of exact linear models the native engine has a twin, with the same bits.
    """

    agreed: _AgreedStep | None = None
    brought = 0.0
    """What came in besides bonds in the last step for which energies were agreed."""

    def __init__(self, recipe: Any):
        model: Any = recipe.model
        self.exact = isinstance(model, StateSpace) and model.method == "exact"
        self.stored: Energy = model.stored_energy
        self.forms: dict[tuple[float, int], Array] = {}
        super().__init__(recipe)

    def works(self, h: float, degree: int) -> Array:
        """Return what flows in an exact step, as forms of state and inputs."""
        key = h, degree
        if key not in self.forms:
            if len(self.forms) == LENGTHS:
                self.forms.clear()
            self.forms[key] = works(self.model, self.seats, h, degree)
        return self.forms[key]

    def start(self, t: float) -> None:
        super().start(t)
        self.agreed, self.brought = None, 0.0
        if isinstance(self.model, Ode):
            u0 = np.array([port.start or 0.0 for port in self.model.inputs])
            check_energy_function(self.stored, self.f, self.g, self.seats, t, np.array(self.model.x0), u0)

    def save(self) -> Any:
        return super().save(), self.agreed, self.brought

    def restore(self, state: Any) -> None:
        kept, self.agreed, self.brought = state
        super().restore(kept)

    def _share(self) -> float:
        """Return what it may give: what it stores, and what sources bring besides, as in the last step."""
        return require_finite_energy(super()._share() + max(self.brought, 0.0))

    def _open_inner(self) -> Any:
        if self.exact:
            return self.plain
        model = self.model
        count = len(model.x0)
        return Ode(
            lambda t, x, u: np.concatenate([self.f(t, x[:count], u), self._works(t, x[:count], u)]),
            x0=[*model.x0, *[0.0] * len(self.seats)],
            inputs=model.inputs,
            **self.how,
        ).open()

    def _advance(self, t: float, h: float, u: Array, y: Array, told: Curves, powers: Curves) -> float:
        own, share = u[:, : self.width], self._share()
        began = self._state()
        handed = self._energies_to_hand(t, h, u, powers, share)
        silent = self._starts_from_rest(t, own, told, powers)
        worked, besides = self._plain_step(t, h, own)
        if silent:
            handed = self._limit_to_stored(worked, share, h, u)
        if self.recipe.whole is None:
            handed = self._settle_accounts(handed, share, u)
        x, had = self._state(), self.stored.value(began)
        target = require_finite_energy(_energy_after(had, handed) + besides)
        end = value_at(own, h)
        rate = self.plain.rate(end) if self.exact else self.f(t + h, x, end)
        push = np.asarray(rate, dtype=float).reshape(-1)
        if not push.any():
            push = x - began
        moved = project_to_energy(self.stored, x, target, push)
        self.brought = besides if self.recipe.whole is None else self.brought + besides
        missed = self.stored.value(moved) - target
        if target < 0.0:  # what a damper of its own took is not missing in the bonds
            missed = max(missed - max(-besides, 0.0), 0.0)
        self.work = self.work + np.array(_booked_works(handed, missed))
        if not self.exact:
            self.integrator.x = np.concatenate([moved, np.zeros(len(self.seats))])
        self._show(moved)
        return t + h

    def _energies_to_hand(self, t: float, h: float, u: Array, powers: Curves, share: float) -> list[float]:
        """Return the energies to hand over in this step: those agreed for a longer one, up to its end."""
        whole = self.recipe.whole
        if whole is None:
            return self._limit_to_stored([_integrate_power(power, h) for power in powers], share, h, u)
        if self.agreed is None or not 0.0 <= t - self.agreed.t < whole - 0.5 * h:
            asked = [_integrate_power(power, whole) for power in powers]
            limited = self._limit_to_stored(asked, share, whole, u)
            parts = [one / all_ if all_ else 1.0 for one, all_ in zip(limited, asked, strict=True)]
            paid = [a - b for a, b in zip(self._settle_accounts(limited, share, u), limited, strict=True)]
            self.agreed, self.brought = _AgreedStep(t, parts, paid, self.work.copy()), 0.0
        since, parts, paid, work = self.agreed
        s = t - since
        return [
            part * (_integrate_power(power, h) - _integrate_power(power, -s))
            + pay * (s + h) / whole
            - float(done)
            for part, power, pay, done in zip(parts, powers, paid, self.work - work, strict=True)
        ]

    def _state(self) -> Array:
        x: Array = self.plain.z[: self.plain.size] if self.exact else self.integrator.x[: len(self.model.x0)]
        return np.array(x)

    def _limit_to_stored(self, energies: list[float], stored: float, h: float, u: Array) -> list[float]:
        """Return the energies that are handed over: no simulator gives more than it has."""
        if self.seats[0].share is None:
            return energies
        shares = [float(u[0, seat.share]) for seat in self.seats]
        flows = [
            BondFlow(energy, theirs, 1 + len(seat.beyond))
            for energy, theirs, seat in zip(energies, shares, self.seats, strict=True)
        ]
        limited = limit_energies(stored, flows)
        for number, (energy, theirs, seat) in enumerate(zip(energies, shares, self.seats, strict=True)):
            if energy > 0.0:
                around = [self._flow(view, h, u) for view in seat.beyond]
                here = BondFlow(-energy, stored, len(self.seats))
                limited[number] = -limit_energies(theirs, [here, *around])[0]
        return limited

    def _starts_from_rest(self, t: float, own: Array, told: Curves, powers: Curves) -> bool:
        """Return whether it starts from rest: nothing but zeros was told, and yet an output rises."""
        if not at_rest(powers):
            return False
        if not self.recipe.model.capabilities.slopes:
            return True
        slope = np.asarray(self.plain.slope(t, own), dtype=float).reshape(-1)
        return any(slope[seat.output] != curve[1] for seat, curve in zip(self.seats, told, strict=True))

    def _settle_accounts(self, handed: list[float], stored: float, u: Array) -> list[float]:
        """Return what is handed over after it paid for what it or a partner booked and neither gave."""
        paid, left = list(handed), max(_energy_after(stored, handed), 0.0)
        own = left
        for number, seat in enumerate(self.seats):
            if seat.booked is None or seat.share is None:
                continue
            owed = float(self.work[number]) + float(u[0, seat.booked])
            part = min(settlement_part(owed, own, float(u[0, seat.share]) - handed[number]), left)
            left -= max(part, 0.0)
            paid[number] -= part
        return paid

    def _flow(self, view: PartnerView, h: float, u: Array) -> BondFlow:
        """Return what another bond of a partner agreed on, into the partner."""
        output, given = ([float(c) for c in u[:, column]] for column in (view.output, view.input))
        energy = _integrate_power(self._product(view.sign, output, given), h)
        return BondFlow(energy, float(u[0, view.share]), view.bonds)

    def _plain_step(self, t: float, h: float, u: Array) -> tuple[list[float], float]:
        """Step under the inputs as they are; return the work of each bond, and what came in besides."""
        if not self.exact:
            had = self.stored.value(self._state())
            self.integrator.step(t, h, u)
            worked = [float(work) for work in self.integrator.x[len(self.model.x0) :]]
            return worked, self.stored.value(self._state()) - had - sum(worked)
        forms, z = self.works(h, len(u) - 1), np.concatenate([self.plain.z, u.ravel()])
        self.plain.step(t, h, u)
        pulls = apply_matrix(forms.reshape(-1, z.size), z).reshape(len(forms), -1).tolist()
        *worked, besides = (dot(pull, z.tolist()) for pull in pulls)
        return worked, besides


def _energy_after(stored: float, handed: list[float]) -> float:
    """Return what is stored after energies were handed over."""
    for each in handed:
        stored = stored + each
    return stored


def _booked_works(handed: list[float], missed: float) -> list[float]:
    """Return what each bond really did: a simulator asked for more than it stored ended empty, and gave less.

    One that ended empty because a damper of its own took the rest gave what was agreed: the damper took less.
    """
    total = _energy_after(0.0, [abs(each) for each in handed])
    return [each + missed * abs(each) / total for each in handed] if total > 0.0 else handed


def _integrate_power(power: list[float], h: float) -> float:
    total = 0.0
    for exponent in range(len(power) - 1, -1, -1):
        total = (total + power[exponent] / (exponent + 1)) * h
    return total


CLOSE = 1e-3
"""The part by which energies from differences may miss the power."""
CLOSEST = float(np.finfo(float).eps)
FINER = 16.0
"""How much shorter the second difference is: what both are apart tells how good they are."""
ASIDE = 0.05
"""How far from the start, in parts of the state, it is looked at too: at rest all powers are zero."""


@dataclass(frozen=True, slots=True)
class EnergyFault(Fault):
    """A declared energy that does not grow by the power that comes in."""

    opposite: bool = False
    """It shrinks by that power: the sign of the bond is wrong, not the energy."""


def linear_faults(
    model: StateSpace, sides: Iterable[tuple[str, str, float]], close: float = 1e-6
) -> Iterator[EnergyFault]:
    """Note bonds (output, input, sign) by whose power x'Qx/2 does not grow: Q B u must be sign * y u."""
    outputs, inputs = ([port.name for port in ports] for ports in (model.outputs, model.inputs))
    for output, entry, sign in sides:
        if output not in outputs or entry not in inputs:
            continue
        row, column = outputs.index(output), inputs.index(entry)
        stored = np.array(model.energy, dtype=float) @ np.array([each[column] for each in model.B])
        given = sign * np.array(model.C[row], dtype=float)
        room = close * max(float(np.abs(stored).max()), float(np.abs(given).max()))
        if any(model.D[row]) or np.allclose(stored, given, rtol=0.0, atol=room):
            continue
        opposite = np.allclose(stored, -given, rtol=0.0, atol=room)
        hint = "`reverse` of the bond" if opposite else "`energy` in joules"
        expected = "a matrix Q with Q B = C', up to the sign of the bond"
        yield EnergyFault(
            _growth_message(f"{output}` and `{entry}"), Place(key="Balanced"), expected, hint, opposite
        )


def check_energy_function(
    energy: Energy, f: Equation, g: Equation | None, seats: Sequence[Seat], t: float, x0: Array, u: Array
) -> None:
    """Raise SimulatorError where a function of the state is not an energy, as far as the start shows.

    Where equations cannot be evaluated, with inputs not known yet or aside of the start, it says nothing.
    """
    _check_lowest(energy, x0)
    for seat in seats:
        if not seat.reacts:
            tried = (_growth(energy, f, g, seat, t, x, u) for x in (x0, _displace_state(x0)))
            _check_growth(seat, [each for each in tried if each is not None])


def _displace_state(x: Array) -> Array:
    scale = float(np.max(np.abs(x), initial=0.0)) or 1.0
    moved: Array = x + ASIDE * np.where(x < 0.0, -1.0, 1.0) * np.where(x != 0.0, np.abs(x), scale)
    return moved


def _check_lowest(energy: Energy, x: Array) -> None:
    """Where nothing is stored the energy must be at its lowest: what has nothing gives nothing."""
    with suppress(ArithmeticError, ValueError):
        (gradient, _), here, move = energy.shape(x), energy.value(x), 1e-6
        steep = float(np.abs(gradient).max(initial=0.0))
        down = energy.value(x - move * gradient / steep) if steep > 0.0 else here
        if down < -max(0.5 * move * steep, 1e-12):  # what is less is rounding
            raise SimulatorError(
                f"its stored energy is {here:.3g} J at the start, and not the lowest that it can have",
                expected="an energy of 0 J where it is lowest: a simulator gives no more than it stores",
                hint="add a constant to its `energy`",
            )


class _Growth(NamedTuple):
    """How much energy grows with an input, in W per unit of it, at one state."""

    given: float
    """As output times input says."""
    grows: float
    """As the declared energy says."""
    error: float
    """Of that: what two differences are apart, and rounding."""


def _growth(
    energy: Energy, f: Equation, g: Equation | None, seat: Seat, t: float, x: Array, u: Array
) -> _Growth | None:
    """Return it, from differences along the way that the input drives the state; None: it cannot be told."""
    nudge = np.zeros(u.size)
    nudge[seat.input] = 1e-3 * max(1.0, abs(float(u[seat.input])))
    with suppress(ArithmeticError, ValueError, SimulatorError), np.errstate(all="ignore"):
        one, other = (np.asarray(f(t, x, each), dtype=float).reshape(-1) for each in (u + nudge, u - nudge))
        d = (one - other) / (2.0 * float(nudge[seat.input]))
        y = x if g is None else np.asarray(g(t, x, u), dtype=float).reshape(-1)
        given, here = seat.sign * float(y[seat.output]), energy.value(x)
        grows, error = 0.0, 0.0
        if d.any():
            moved = np.abs(x[d != 0.0])
            sizes = np.where(moved > 0.0, moved, float(moved.max()) or 1.0)
            far = NUDGE * float((sizes / np.abs(d[d != 0.0])).min())
            rough, grows = (
                (energy.value(x + h * d) - energy.value(x - h * d)) / (2.0 * h) for h in (far, far / FINER)
            )
            error = abs(rough - grows) + 4.0 * CLOSEST * abs(here) * FINER / far
        found = _Growth(given, grows, error)
        return found if np.isfinite(found).all() else None
    return None


def _check_growth(seat: Seat, found: Sequence[_Growth]) -> None:
    large = max((max(abs(each.given), abs(each.grows)) for each in found), default=0.0)
    for given, grows, error in found:
        room = CLOSE * large + 2.0 * error
        if abs(grows - given) > room:
            raise SimulatorError(
                _growth_message(seat.names),
                expected=f"{given:.4g} W per unit of input, as output times input says; it is {grows:.4g}",
                hint="`reverse` of the bond" if abs(grows + given) <= room else "`energy` in joules",
            )


def _growth_message(names: str) -> str:
    return f"the declared energy does not grow by the power that comes in through `{names}`"
