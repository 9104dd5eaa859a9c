"""Equations that keep the power agreed on their bonds, with the law inside f.

In:  a Balanced recipe of an Ode or a StateSpace; the agreed power
Out: simulators whose inputs follow from it

Source: Moshagen, SNE 31(1), 2021, section 2, in the robust forms of formulas, section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hocket.errors import SimulatorError
from hocket.model import Array, Port
from hocket.simulators.balancing import BalancedSimulator, Seat, at_rest, corrected_input
from hocket.simulators.ode import Ode
from hocket.simulators.solvers import Equation
from hocket.simulators.state_space import StateSpace, StateSpaceSimulator

if TYPE_CHECKING:
    from hocket.simulators.balanced import Balanced

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
    n, m = len(model.A), len(model.inputs)
    A, B = np.array(model.A, dtype=float).reshape(n, n), np.array(model.B, dtype=float).reshape(n, m)
    C, D = model.output_matrices
    exact = model.method == "exact"
    how = {"method": "adaptive" if exact else model.method, "step": None if exact else model.step}
    return _Equations(
        lambda _, x, u: A @ x + B @ u, lambda _, x, u: C @ x + D @ u, {**how, "rtol": 1e-9, "atol": 1e-12}
    )


class IntegratedBalance(BalancedSimulator):
    """Around a model that hocket integrates: `inner` moves the state, `plain` shows it."""

    def __init__(self, recipe: Balanced):
        super().__init__(recipe)
        self.model: Any = recipe.model
        self.f, self.g, self.how = _equations_of_model(recipe.model)
        self.inner: Any = self._open_inner()

    def start(self, t: float) -> None:
        """Start both."""
        super().start(t)
        self.inner.start(t)

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

    def _save(self) -> Any:
        return self.plain.save(), self.inner.save()

    def _restore(self, state: Any) -> None:
        self.plain.restore(state[0])
        self.inner.restore(state[1])


class InversionBalance(IntegratedBalance):
    """The law inside f: x' = f(t, x, u(t, x)), integrated by the model's own method."""

    calls = 0
    """Of the law, in this step."""
    silent = False
    """At rest: the inputs stay as extrapolated."""

    @property
    def micro(self) -> Any:
        """Called after every micro step."""
        return self.inner.micro

    @micro.setter
    def micro(self, call: Any) -> None:
        self.inner.micro = call

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
        model = self.model
        if isinstance(model, StateSpace):
            return float(model.D[seat.output][seat.input])
        nudge = 1e-5 * max(1.0, abs(float(u[seat.input])))
        moved = [u.copy(), u.copy()]
        moved[0][seat.input] += nudge
        moved[1][seat.input] -= nudge
        above, below = (float(self._outputs(t, x, each)[seat.output]) for each in moved)
        return (above - below) / (2.0 * nudge)

    def _advance(
        self, t: float, h: float, u: Array, y: Array, told: list[list[float]], powers: list[list[float]]
    ) -> float:
        self.calls = 0
        self.silent = at_rest(powers)
        rows = max(len(u), *map(len, powers))
        given = np.zeros((rows, self.width + len(powers)))
        given[: len(u), : self.width] = u[:, : self.width]
        for number, power in enumerate(powers):
            given[: len(power), self.width + number] = power
        reached: float = self.inner.step(t, h, given)
        count = len(self.model.x0)
        self._show(self.inner.x[:count])
        self.work = np.array(self.inner.x[count:])
        return reached
