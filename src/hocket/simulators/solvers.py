"""The methods behind `Ode`: fixed steps, an adaptive explicit pair, CVODE for stiff systems.

In:  functions and a state
Out: live simulators
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from hocket.errors import SimulatorError
from hocket.model.extrapolators import value_at
from hocket.model.protocols import Array, Simulator
from hocket.simulators.methods import TABLEAUX, Cvode, DormandPrince, micro_steps, solver_error, to_floats
from hocket.simulators.recipes import qualified_name

Equation: TypeAlias = Callable[..., Any]

_FLOAT = np.dtype(float)


def make_solver(model: Any) -> Simulator:
    kinds: dict[str, type[_OdeSimulator]] = {
        "implicit-euler": _Implicit,
        "trapezoid": _Implicit,
        "ab2": _AdamsBashforth,
        "adaptive": _AdaptiveOde,
        "cvode": _CvodeOde,
    }
    return kinds.get(model.method, _RungeKutta)(model)


def _make_read_only(array: Array) -> Array:
    """Protect what f and g are handed: writing to it would change the solution."""
    array.setflags(write=False)
    return array


class _OdeSimulator:
    """The state, the outputs and rollback; the methods differ in how they advance."""

    micro: Callable[[float, Array], None] | None = None
    """Called after every micro step with the time and the outputs there."""
    memory: Any = None
    """What a method keeps beside the state; it is never changed, only replaced."""

    def __init__(self, model: Any):
        self.model = model
        self.f = model.function(model.f)
        self.g = None if model.g is None else model.function(model.g)
        self.x = np.array(model.x0)
        self.longest = None if model.step is None else float(model.step)
        if model.energy is not None:
            self.energy = self._energy
        if self.g is None:
            self.slope = lambda t, u: self._rate(t, _make_read_only(self.x), u[0])

    def start(self, t: float) -> None:
        self.x, self.memory = np.array(self.model.x0), None

    def output(self, t: float, u: Array) -> Array:
        return self._outputs(t, _make_read_only(u[0]))

    def step(self, t: float, h: float, u: Array) -> float:
        if h == 0.0:
            return t
        with np.errstate(all="ignore"):  # numbers that are not finite show in the outputs, which are checked
            self._advance(t, h, _make_read_only(u.view()))
        return t + h

    def save(self) -> Any:
        return self.x.copy(), self.memory

    def restore(self, state: Any) -> None:
        self.x, self.memory = state[0].copy(), state[1]

    def _energy(self) -> float:
        energy: float = self.model.stored_energy.value(_make_read_only(self.x))
        return energy

    def close(self) -> None:
        """Hold nothing."""

    def _advance(self, t: float, h: float, u: Array) -> None:
        raise NotImplementedError

    def _rate(self, t: float, x: Array, u: Array) -> Array:
        returned = self.f(t, x, u)
        rate = np.array(returned)  # f may fill one array again and again
        if rate.dtype is not _FLOAT:
            rate = _floats(returned, x.size, self.model.f)
        return rate if rate.shape == x.shape else _check_count(rate, x.size, self.model.f, "states")

    def _outputs(self, t: float, u: Array) -> Array:
        if self.g is None:
            return self.x
        assert self.model.g is not None
        returned, count = self.g(t, _make_read_only(self.x), u), len(self.model.outputs)
        y = np.asarray(returned)
        if y.dtype is not _FLOAT:
            y = _floats(returned, count, self.model.g)
        return y if y.shape == (count,) else _check_count(y, count, self.model.g, "outputs")

    def _report(self, t: float, s: float, u: Array) -> None:
        if self.micro is not None:
            self.micro(t + s, self._outputs(t + s, value_at(u, s)))


def _floats(returned: Any, count: int, equation: Equation | str) -> Array:
    try:
        return to_floats(returned)
    except (TypeError, ValueError):
        what = f"`{qualified_name(equation)}` returned {returned!r:.60}"
        raise TypeError(f"{what}, expected {count} number{'s' * (count != 1)}") from None


def _check_count(values: Array, size: int, equation: Equation | str, role: str) -> Array:
    if values.size != size:
        what = f"`{qualified_name(equation)}` returned {values.size} numbers"
        raise SimulatorError(what, expected=f"{size}, one for each of the {role}")
    return values.reshape(size)


def _as_jacobian(returned: Any, size: int, equation: Equation | str) -> Array:
    slopes = _floats(returned, size * size, equation)
    return _check_count(slopes, size * size, equation, "slopes").reshape(size, size)


class _RungeKutta(_OdeSimulator):
    """Fixed micro steps; the operations run in the order of `methods`."""

    def __init__(self, model: Any):
        super().__init__(model)
        self.tableau = TABLEAUX.get(model.method, TABLEAUX["heun"])

    def _advance(self, t: float, h: float, u: Array) -> None:
        count = micro_steps(h, self.longest)
        dt = h / count
        for number in range(count):
            _make_read_only(self.x)
            self.x = self._micro_step(t, number * dt, dt, u)
            self._report(t, h if number == count - 1 else (number + 1) * dt, u)

    def _micro_step(self, t: float, s: float, dt: float, u: Array) -> Array:
        """Return the state after the micro step that begins s seconds into the step."""
        x, rates = self.x, list[Array]()
        for row, node in zip(self.tableau.a, self.tableau.c, strict=True):
            stage = x
            for weight, rate in zip(row, rates, strict=False):
                if weight:
                    stage = stage + (dt * weight) * rate
            there = s + node * dt
            rates.append(self._stage_rate(t + there, stage, value_at(u, there), dt * row[len(rates)]))
        for weight, rate in zip(self.tableau.b, rates, strict=True):
            x = x + (dt * weight) * rate
        return x

    def _stage_rate(self, t: float, stage: Array, u: Array, own: float) -> Array:
        return self._rate(t, stage, u)


class _Implicit(_RungeKutta):
    """Stages that contain themselves, solved by Newton's method."""

    def __init__(self, model: Any):
        super().__init__(model)
        self.jacobian = None if model.jacobian is None else model.function(model.jacobian)

    def _stage_rate(self, t: float, stage: Array, u: Array, own: float) -> Array:
        """Return the rate k for which k = f(t, stage + own k, u).

        The unknown is the state z = stage + own k: in a stiff system it is known better than k.
        """
        if not own or not stage.size:
            return self._rate(t, stage, u)
        z, before = stage, math.inf
        for _ in range(25):
            rate = self._rate(t, _make_read_only(z), u)
            system = np.eye(z.size) - own * self._evaluate_jacobian(t, z, u, rate)
            try:
                change = np.linalg.solve(system, stage + own * rate - z)
            except np.linalg.LinAlgError:
                break
            z = z + change
            moved, size = float(np.max(np.abs(change))), float(np.max(np.abs(z)))
            settled = moved <= 1e-11 * size + 1e-4 * self.model.atol
            # round-off keeps the change of a stiff system from shrinking any further
            if settled or before <= moved <= 1e-7 * size + self.model.atol:
                return (z - stage) / own
            before = moved
        hint = "a smaller `step`, or give `jacobian`"
        raise solver_error(self.model.method, t, "Newton's method did not converge", hint)

    def _evaluate_jacobian(self, t: float, x: Array, u: Array, rate: Array) -> Array:
        if self.jacobian is not None:
            return _as_jacobian(self.jacobian(t, x, u), x.size, self.model.jacobian)
        slopes = np.empty((x.size, x.size))
        floor = 1e-3 * float(np.max(np.abs(x))) or 1.0
        for column in range(x.size):
            moved = x.copy()
            moved[column] += 1.5e-8 * max(abs(x[column]), floor)
            slopes[:, column] = (self._rate(t, moved, u) - rate) / (moved[column] - x[column])
        return slopes


class _AdamsBashforth(_RungeKutta):
    """Two steps, second order; a Heun step where there is no past of the same step length.

    The memory is the rate at the start of the last micro step, and its length.
    """

    def _micro_step(self, t: float, s: float, dt: float, u: Array) -> Array:
        rate = self._rate(t + s, self.x, value_at(u, s))
        if self.memory is None or self.memory[1] != dt:
            x = super()._micro_step(t, s, dt, u)
        else:
            x = (self.x + (1.5 * dt) * rate) - (0.5 * dt) * self.memory[0]
        self.memory = rate.copy(), dt
        return x


class _AdaptiveOde(_OdeSimulator):
    """Integrated by Dormand and Prince's pair; the memory is the internal step to begin with."""

    def _advance(self, t: float, h: float, u: Array) -> None:
        if not self.x.size:
            self._report(t, h, u)
            return

        def rates(s: float, x: Array) -> Array:
            return self._rate(t + s, _make_read_only(x), value_at(u, s))

        pair = DormandPrince(self.model.rtol, self.longest, self.memory)
        for solver in pair.steps(rates, t, 0.0, self.x, h, self.model.atol):
            self.x = solver.y
            self._report(t, solver.t, u)
        self.memory = pair.size


class _CvodeOde(_OdeSimulator):
    """Integrated by CVODE, begun anew in every step."""

    def __init__(self, model: Any):
        super().__init__(model)
        self.now: tuple[float, Array] = (0.0, np.zeros((1, 0)))
        jacobian = None if model.jacobian is None else model.function(model.jacobian)

        def fill_rates(s: float, x: Array, rates: Array) -> None:
            t, u = self.now
            rates[:] = self._rate(t + s, _make_read_only(x.view()), value_at(u, s))

        def fill_slopes(s: float, x: Array, _: Array, slopes: Array) -> None:
            t, u = self.now
            assert jacobian is not None
            found = jacobian(t + s, _make_read_only(x.view()), value_at(u, s))
            slopes[:] = _as_jacobian(found, x.size, model.jacobian)

        slopes = None if jacobian is None else fill_slopes
        self.solver: Cvode | None = Cvode(fill_rates, model.rtol, model.atol, self.longest, slopes)

    def close(self) -> None:
        self.solver = None

    def _advance(self, t: float, h: float, u: Array) -> None:
        if not self.x.size:
            self._report(t, h, u)
            return
        assert self.solver is not None
        self.now = t, u
        self.solver.begin(0.0, self.x)
        reached, way = 0.0, "normal" if self.micro is None else "onestep"
        while reached < h:
            reached, self.x = self.solver.step(t, h, way, h)
            self._report(t, reached, u)
