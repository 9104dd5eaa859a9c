"""Whether a declared energy is one: it grows by the power that comes in, and is nowhere below zero.

In:  a model that is balanced by energy, and its bonds
Out: nothing, or what is wrong
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from hocket.errors import Fault, SimulatorError
from hocket.model import Array
from hocket.simulators.balancing import Seat
from hocket.simulators.energies import Energy
from hocket.simulators.solvers import Equation
from hocket.simulators.state_space import StateSpace

CLOSE = 1e-3
"""The part by which energies from differences may miss the power."""
ASIDE = 0.05
"""How far from the start, in parts of the state, it is looked at too: at rest all powers are zero."""


def linear_faults(model: StateSpace, sides: Iterable[tuple[str, str, float]]) -> Iterator[Fault]:
    """Note bonds (output, input, sign) by whose power x'Qx/2 does not grow: Q B u must be sign * y u."""
    outputs, inputs = ([port.name for port in ports] for ports in (model.outputs, model.inputs))
    for output, entry, sign in sides:
        if output not in outputs or entry not in inputs:
            continue
        row, column = outputs.index(output), inputs.index(entry)
        stored = np.array(model.energy, dtype=float) @ np.array([each[column] for each in model.B])
        given = sign * np.array(model.C[row], dtype=float)
        room = 1e-6 * max(float(np.abs(stored).max()), float(np.abs(given).max()))
        if any(model.D[row]) or np.allclose(stored, given, rtol=0.0, atol=room):
            continue
        opposite = np.allclose(stored, -given, rtol=0.0, atol=room)
        hint = "`reverse` of the bond" if opposite else "`energy` in joules"
        expected = "a matrix Q with Q B = C', up to the sign of the bond"
        yield Fault(_grows(f"{output}` and `{entry}"), "Balanced", expected, hint)


def check_declared(
    energy: Energy, f: Equation, g: Equation | None, seats: Sequence[Seat], t: float, x0: Array, u: Array
) -> None:
    """Raise SimulatorError where a function of the state is no energy, as far as the start shows."""
    scale = float(np.max(np.abs(x0), initial=0.0)) or 1.0
    for x in (x0, x0 + ASIDE * np.where(x0 < 0.0, -1.0, 1.0) * np.maximum(np.abs(x0), scale)):
        gradient, _ = energy.shape(x)
        if not np.isfinite(gradient).all():
            continue
        if x is x0:
            _check_lowest(energy, x, gradient)
        for seat in seats:
            if not seat.reacts:
                _check_growth(seat, gradient, f, g, t, x, u)


def _check_lowest(energy: Energy, x: Array, gradient: Array) -> None:
    """Where nothing is stored the energy must be at its lowest: who has nothing gives nothing."""
    here, steep, move = energy.value(x), float(np.abs(gradient).max(initial=0.0)), 1e-6
    down = energy.value(x - move * gradient / steep) if steep > 0.0 else here
    if down < -max(0.5 * move * steep, 1e-12):  # what is less is rounding
        raise SimulatorError(
            f"its stored energy is {here:.3g} J at the start, and not the lowest that it can have",
            expected="an energy of 0 J where it is lowest: a simulator gives no more than it stores",
            hint="add a constant to its `energy`",
        )


def _check_growth(
    seat: Seat, gradient: Array, f: Equation, g: Equation | None, t: float, x: Array, u: Array
) -> None:
    nudge = np.zeros(u.size)
    nudge[seat.input] = 1e-3 * max(1.0, abs(float(u[seat.input])))
    ends = [np.asarray(f(t, x, each), dtype=float).reshape(-1) for each in (u + nudge, u - nudge)]
    grows = float(gradient @ (ends[0] - ends[1])) / (2.0 * float(nudge[seat.input]))
    y = x if g is None else np.asarray(g(t, x, u), dtype=float).reshape(-1)
    given = seat.sign * float(y[seat.output])
    large = max(abs(grows), abs(given))
    if np.isfinite(large) and abs(grows - given) > CLOSE * large:
        raise SimulatorError(
            _grows(seat.names),
            expected=f"{given:.4g} W per unit of input, as output times input says; it is {grows:.4g}",
            hint="`reverse` of the bond" if abs(grows + given) <= CLOSE * large else "`energy` in joules",
        )


def _grows(names: str) -> str:
    return f"the declared energy does not grow by the power that comes in through `{names}`"
