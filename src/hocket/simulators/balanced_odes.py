"""Equations that keep the power agreed on their bonds: with the law inside f, or by their stored energy.

In:  a Balanced recipe of an Ode or a StateSpace; the agreed power
Out: simulators whose inputs or states follow from it

Source: Moshagen, SNE 31(1), 2021, section 2, in the robust forms of formulas, section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hocket.errors import SimulatorError
from hocket.model import Array, Port
from hocket.signals import value_at
from hocket.simulators.balancing import Balancing, Seat, corrected, stated
from hocket.simulators.energies import Energy, onto
from hocket.simulators.methods import linear_maps
from hocket.simulators.ode import Ode
from hocket.simulators.solvers import Equation
from hocket.simulators.state_space import StateSpace, StateSpaceSimulator

if TYPE_CHECKING:
    from hocket.simulators.balanced import Balanced

NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)
"""Where and how the work of an exact step is summed, on [-1, 1]."""


CALLS = 20_000
"""Evaluations of the law in one step, beyond which it does not come to an end."""


class _Equations(NamedTuple):
    """A model that hocket integrates, as equations for an Ode."""

    f: Equation
    g: Equation | None
    how: dict[str, Any]


def _equations(model: Any) -> _Equations:
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


class _Integrated(Balancing):
    """Around a model that hocket integrates: `inner` moves the state, `plain` shows it."""

    def __init__(self, recipe: Balanced):
        super().__init__(recipe)
        self.model: Any = recipe.model
        self.f, self.g, self.how = _equations(recipe.model)
        self.inner: Any = self._opened()

    def start(self, t: float) -> None:
        """Start both."""
        super().start(t)
        self.inner.start(t)

    def _opened(self) -> Any:
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


class Closed(_Integrated):
    """The law inside f: x' = f(t, x, u(t, x)), integrated by the model's own method."""

    calls = 0
    """Of the law, in this step."""
    silent = False
    """Nothing but zeros was told: the inputs stay as extrapolated."""

    @property
    def micro(self) -> Any:
        """Called after every micro step."""
        return self.inner.micro

    @micro.setter
    def micro(self, call: Any) -> None:
        self.inner.micro = call

    def _opened(self) -> Any:
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
            law[seat.input] = corrected(seat, given, float(y[seat.output]), reaction, power, soft)
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
        self.silent = not any(any(power) for power in powers)  # at rest, and yet it may start
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


class Projected(_Integrated):
    """The state follows the agreed energy: a plain step, then a move along the gradient of the energy."""

    def __init__(self, recipe: Balanced):
        model: Any = recipe.model
        self.exact = isinstance(model, StateSpace) and model.method == "exact"
        self.stored: Energy = model.stored
        self.ways: dict[tuple[float, int], tuple[Array, Array]] = {}
        super().__init__(recipe)

    def _opened(self) -> Any:
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

    def _advance(
        self, t: float, h: float, u: Array, y: Array, told: list[list[float]], powers: list[list[float]]
    ) -> float:
        own, share = u[:, : self.width], self._share()
        began = self._state()
        handed = [
            self._limited(seat, _integral(p, h), share, u) for seat, p in zip(self.seats, powers, strict=True)
        ]
        worked = self._plain_step(t, h, own)
        if not any(any(power) for power in powers):  # told nothing but zeros: at rest, and yet it may start
            handed = list(worked)
        agreed = sum(handed) - sum(worked)
        x = self._state()
        target = stated(self.stored.value(x)) + agreed
        push = np.asarray(self.f(t + h, x, value_at(list(own), h)), dtype=float).reshape(-1)
        if not push.any():
            push = x - began
        moved = onto(self.stored, x, target, push)
        self.work = self.work + _booked(handed, self.stored.value(moved) - target)
        if not self.exact:
            self.inner.x = np.concatenate([moved, np.zeros(len(self.seats))])
        self._show(moved)
        return t + h

    def _state(self) -> Array:
        """Return a copy of the state."""
        x: Array = self.plain.z[: self.plain.size] if self.exact else self.inner.x[: len(self.model.x0)]
        return np.array(x)

    def _limited(self, seat: Seat, energy: float, share: float, u: Array) -> float:
        """Return the energy that is handed over: nobody gives more than its share, where there is one."""
        theirs = -1.0 if seat.share is None else float(u[0, seat.share])
        energy = energy if theirs < 0.0 else min(energy, theirs)
        return energy if seat.share is None or share < 0.0 else max(-share, energy)

    def _plain_step(self, t: float, h: float, u: Array) -> list[float]:
        """Step under the inputs as they are; return the work of each bond."""
        if not self.exact:
            self.inner.step(t, h, u)
            return [float(work) for work in self.inner.x[len(self.model.x0) :]]
        states, inputs = self._way(h, self.plain.z, u)
        C, D = self.model.output_matrices
        outputs = states @ C.T + inputs @ D.T
        works = [seat.sign * outputs[:, seat.output] * inputs[:, seat.input] for seat in self.seats]
        self.plain.step(t, h, u)
        return [0.5 * h * float(work @ WEIGHTS) for work in works]

    def _way(self, h: float, x: Array, u: Array) -> tuple[Array, Array]:
        """Return states and inputs at the nodes of an exact step."""
        key = h, len(u)
        if key not in self.ways:
            nodes = [0.5 * h * (1.0 + node) for node in NODES]
            every = [linear_maps(self.model.A, self.model.B, s, len(u) - 1, "exact") for s in nodes]
            moved = np.stack([np.concatenate([maps.Phi, *maps.Gamma], axis=1) for maps in every])
            self.ways = {key: (moved, np.vander(nodes, len(u), increasing=True))}  # one: steps may vary
        moved, powers = self.ways[key]
        return moved @ np.concatenate([x, u.ravel()]), powers @ u


def _booked(handed: list[float], missed: float) -> Array:
    """Return what each bond really did: who was asked for more than it stored ended empty, and gave less."""
    sizes = np.abs(handed)
    total = float(sizes.sum())
    return np.array(handed) + (missed * sizes / total if total > 0.0 else 0.0)


def _integral(power: list[float], h: float) -> float:
    """Return the energy of a power over h seconds."""
    total = 0.0
    for exponent in range(len(power) - 1, -1, -1):
        total = (total + power[exponent] / (exponent + 1)) * h
    return total
