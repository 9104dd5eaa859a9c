"""Whether a declared energy is one: it grows by the power that comes in, and is nowhere below zero.

In:  a model that is balanced by energy, and its bonds
Out: nothing, or what is wrong
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hocket.errors import Fault, Place, SimulatorError
from hocket.model.protocols import Array
from hocket.simulators.energies import NUDGE, Energy
from hocket.simulators.power_balance import Seat
from hocket.simulators.solvers import Equation
from hocket.simulators.state_space import StateSpace

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
