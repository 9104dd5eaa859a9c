"""Simulators from equations: x' = f(t, x, u), y = g(t, x, u), integrated by hocket.

In:  two functions, an initial state, ports and a method
Out: a Model; its simulators advance the state and may report every micro step
"""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.integrate import DOP853, RK45

from hocket.clock import Duration
from hocket.errors import ScenarioError, SimulatorError, nearest
from hocket.model import Abilities, Array, Port, PortLike, Simulator, ports
from hocket.simulators.methods import ORDERS, TABLEAUX, micro_steps, vector
from hocket.simulators.python import Feedthrough, Recipe, load, named, positive, reacting

Equation: TypeAlias = Callable[..., Any]

IMPLICIT = ("implicit-euler", "trapezoid")
METHODS = (*TABLEAUX, "ab2", "adaptive", "cvode")


@dataclass(frozen=True, init=False, eq=False)
class Ode(Recipe):
    """x' = f(t, x, u), y = g(t, x, u); further keywords are parameters, handed to f, g and the Jacobian.

    x and u are 1-D arrays, u the input values at that t. Without `g` the outputs are the states, named
    x1, x2 ... unless `outputs` names them. f, g and `jacobian` (df/dx, for the implicit methods) are
    functions or texts such as "plant.py:rate".

    `method`: euler, heun, rk4, ab2, implicit-euler or trapezoid, with micro steps of at most `step` (None:
    one per macro step); adaptive (explicit, error kept below rtol and atol) or cvode (the same for stiff
    systems), whose internal steps are at most `step`. With `g` and without `feedthrough` every output is
    taken to react to every input at once; `{}` says that none does.
    """

    f: Equation | str
    g: Equation | str | None
    x0: tuple[float, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    method: str
    step: Fraction | None
    rtol: float
    atol: float
    jacobian: Equation | str | None
    values: tuple[tuple[str, Any], ...]
    folder: str

    def __init__(
        self,
        f: Equation | str,
        g: Equation | str | None = None,
        x0: Sequence[float] = (),
        inputs: Iterable[PortLike] = (),
        outputs: Iterable[PortLike] | None = None,
        method: str = "rk4",
        step: Duration | None = None,
        feedthrough: Feedthrough | None = None,
        rtol: float = 1e-6,
        atol: float = 1e-9,
        jacobian: Equation | str | None = None,
        *,
        folder: str | Path = "",
        **parameters: Any,
    ):
        where = f"`Ode` of `{named(f)}`"
        if method not in METHODS:
            hint = "`exact` is for `StateSpace`" if method == "exact" else nearest(method, METHODS)
            raise ScenarioError(f"`{method}` is not a method", where, ", ".join(METHODS), hint)
        if not (1e-13 <= rtol < 1.0 and 0.0 < atol < math.inf):
            raise ScenarioError(
                f"tolerances rtol = {rtol}, atol = {atol}", where, "1e-13 <= rtol < 1, 0 < atol"
            )
        try:
            state = vector(x0, "x0", np.size(x0))
        except ValueError as error:
            raise ScenarioError(str(error), where, "a list of numbers, one per state") from None
        entries = ports(inputs)
        for name, value in (
            ("f", f),
            ("g", g),
            ("x0", state),
            ("inputs", entries),
            ("outputs", _outputs(g, state, entries, outputs, feedthrough, where)),
            ("method", method),
            ("step", None if step is None else positive(step, "step")),
            ("rtol", float(rtol)),
            ("atol", float(atol)),
            ("jacobian", jacobian),
            ("values", tuple(sorted(parameters.items()))),
            ("folder", str(folder)),
        ):
            object.__setattr__(self, name, value)

    @property
    def abilities(self) -> Abilities:
        """It rewinds; where the outputs are the states, their slopes are f."""
        return Abilities(rewind=True, slopes=self.g is None, order=ORDERS.get(self.method))

    @property
    def parameters(self) -> dict[str, Any]:
        """What f, g and the Jacobian are called with, beside t, x and u."""
        return dict(self.values)

    def open(self) -> Simulator:
        """Load the functions and make a simulator of the method."""
        if self.method == "cvode":
            return _Cvode(self)
        if self.method == "adaptive":
            return _Adaptive(self)
        if self.method == "ab2":
            return _AdamsBashforth(self)
        return _Implicit(self) if self.method in IMPLICIT else _RungeKutta(self)

    def function(self, equation: Equation | str) -> Equation:
        """Return f, g or the Jacobian, loaded and with the parameters filled in."""
        found = load(equation, self.folder) if isinstance(equation, str) else equation
        if not callable(found):
            raise ScenarioError(f"`{named(equation)}` is not a function", expected="a function of t, x and u")
        return partial(found, **self.parameters) if self.values else found


def _outputs(
    g: Equation | str | None,
    x0: tuple[float, ...],
    inputs: tuple[Port, ...],
    outputs: Iterable[PortLike] | None,
    feedthrough: Feedthrough | None,
    where: str,
) -> tuple[Port, ...]:
    if outputs is None:
        if g is not None:
            raise ScenarioError("the outputs of `g` have no names", where, 'outputs=["y1", ...]')
        outputs = [f"x{number}" for number in range(1, len(x0) + 1)]
    written = ports(outputs)
    if g is None:
        if len(written) != len(x0):
            what = f"{len(written)} outputs for {len(x0)} states"
            raise ScenarioError(what, where, "without `g` every state is an output", "give `x0` or `g`")
        written, feedthrough = tuple(replace(port, feedthrough=()) for port in written), {}
    return reacting(written, inputs, feedthrough, where)


def _at(u: Array, s: float) -> Array:
    """Return the input values s seconds after the time that the coefficients are about."""
    value: Array = u[-1]
    for power in range(len(u) - 2, -1, -1):
        value = value * s + u[power]
    return value


class _Live:
    """The state, the outputs and rewinding; the methods differ in how they advance."""

    micro: Callable[[float, Array], None] | None = None
    """Called after every micro step with the time and the outputs there."""

    def __init__(self, model: Ode):
        self.model = model
        self.f = model.function(model.f)
        self.g = None if model.g is None else model.function(model.g)
        self.x = np.array(model.x0)
        self.longest = None if model.step is None else float(model.step)
        if self.g is None:
            self.slope = lambda t, u: self._rate(t, self.x, u[0])

    def start(self, t: float) -> None:
        self.x = np.array(self.model.x0)

    def output(self, t: float, u: Array) -> Array:
        return self._outputs(t, u[0])

    def step(self, t: float, h: float, u: Array) -> float:
        if h == 0.0:
            return t
        with np.errstate(all="ignore"):  # numbers that are not finite show in the outputs, which are checked
            self._advance(t, h, u)
        return t + h

    def save(self) -> Any:
        return self.x.copy()

    def restore(self, state: Any) -> None:
        self.x = state.copy()

    def close(self) -> None:
        """Hold nothing."""

    def _advance(self, t: float, h: float, u: Array) -> None:
        raise NotImplementedError

    def _rate(self, t: float, x: Array, u: Array) -> Array:
        rate = np.array(self.f(t, x, u), dtype=float)  # f may fill one array again and again
        return rate if rate.shape == x.shape else _fitted(rate, x.size, self.model.f, "states")

    def _outputs(self, t: float, u: Array) -> Array:
        if self.g is None:
            return self.x
        assert self.model.g is not None
        y, count = np.asarray(self.g(t, self.x, u), dtype=float), len(self.model.outputs)
        return y if y.shape == (count,) else _fitted(y, count, self.model.g, "outputs")

    def _report(self, t: float, s: float, u: Array) -> None:
        if self.micro is not None:
            self.micro(t + s, self._outputs(t + s, _at(u, s)))

    def _failed(self, t: float, why: str, hint: str) -> SimulatorError:
        return SimulatorError(f"`{self.model.method}` failed at t = {t:.9g}: {why}", hint=hint)


def _fitted(values: Array, size: int, equation: Equation | str, role: str) -> Array:
    if values.size != size:
        what = f"`{named(equation)}` returned {values.size} numbers"
        raise SimulatorError(what, expected=f"{size}, one for each of the {role}")
    return values.reshape(size)


class _RungeKutta(_Live):
    """Fixed micro steps; the operations run in the order of `methods`."""

    def __init__(self, model: Ode):
        super().__init__(model)
        self.tableau = TABLEAUX.get(model.method, TABLEAUX["heun"])

    def _advance(self, t: float, h: float, u: Array) -> None:
        count = micro_steps(h, self.longest)
        dt = h / count
        for number in range(count):
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
            rates.append(self._stage_rate(t + there, stage, _at(u, there), dt * row[len(rates)]))
        for weight, rate in zip(self.tableau.b, rates, strict=True):
            x = x + (dt * weight) * rate
        return x

    def _stage_rate(self, t: float, stage: Array, u: Array, own: float) -> Array:
        return self._rate(t, stage, u)


class _Implicit(_RungeKutta):
    """Stages that contain themselves, solved by Newton's method."""

    def __init__(self, model: Ode):
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
            rate = self._rate(t, z, u)
            system = np.eye(z.size) - own * self._slopes(t, z, u, rate)
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
        raise self._failed(t, "Newton's method did not converge", "a smaller `step`, or give `jacobian`")

    def _slopes(self, t: float, x: Array, u: Array, rate: Array) -> Array:
        if self.jacobian is not None:
            return np.asarray(self.jacobian(t, x, u), dtype=float).reshape(x.size, x.size)
        slopes = np.empty((x.size, x.size))
        floor = 1e-3 * float(np.max(np.abs(x))) or 1.0
        for column in range(x.size):
            moved = x.copy()
            moved[column] += 1.5e-8 * max(abs(x[column]), floor)
            slopes[:, column] = (self._rate(t, moved, u) - rate) / (moved[column] - x[column])
        return slopes


class _AdamsBashforth(_RungeKutta):
    """Two steps, second order; a Heun step where there is no past of the same step length."""

    past: tuple[Array, float] | None = None
    """The rate at the start of the last micro step, and its length."""

    def start(self, t: float) -> None:
        super().start(t)
        self.past = None

    def save(self) -> Any:
        return self.x.copy(), self.past

    def restore(self, state: Any) -> None:
        self.x, self.past = state[0].copy(), state[1]

    def _micro_step(self, t: float, s: float, dt: float, u: Array) -> Array:
        rate = self._rate(t + s, self.x, _at(u, s))
        if self.past is None or self.past[1] != dt:
            x = super()._micro_step(t, s, dt, u)
        else:
            x = (self.x + (1.5 * dt) * rate) - (0.5 * dt) * self.past[0]
        self.past = rate.copy(), dt
        return x


class _Adaptive(_Live):
    """Dormand and Prince's pair of order 5, or of order 8 where rtol < 1e-8."""

    size: float | None = None
    """The internal step to begin with; None: the whole step."""

    def start(self, t: float) -> None:
        super().start(t)
        self.size = None

    def save(self) -> Any:
        return self.x.copy(), self.size

    def restore(self, state: Any) -> None:
        self.x, self.size = state[0].copy(), state[1]

    def _advance(self, t: float, h: float, u: Array) -> None:
        if not self.x.size:
            self._report(t, h, u)
            return
        kind = RK45 if self.model.rtol >= 1e-8 else DOP853
        solver = kind(
            lambda s, x: self._rate(t + s, x, _at(u, s)),
            0.0,
            self.x,
            h,
            rtol=self.model.rtol,
            atol=self.model.atol,
            max_step=self.longest or math.inf,
            first_step=min(self.size or h, h),
        )
        while solver.status == "running":
            why = solver.step()
            if solver.status == "failed":
                raise self._failed(
                    t + solver.t, why or "", "method `cvode` if it is stiff; larger tolerances"
                )
            self.x = solver.y
            self._report(t, solver.t, u)
        self.size = float(solver.h_abs)


class _Cvode(_Live):
    """Backward differentiation formulas of SUNDIALS, begun anew in every step."""

    def __init__(self, model: Ode):
        super().__init__(model)
        try:
            from sksundae.cvode import CVODE
        except ImportError:
            what = "method `cvode` needs the package scikit-sundae, which is not installed"
            raise ScenarioError(what, hint="pip install hocket[stiff]") from None
        os.environ.setdefault("SUNLOGGER_WARNING_FILENAME", os.devnull)  # else it prints on standard output
        self.now: tuple[float, Array] = (0.0, np.zeros((1, 0)))
        options: dict[str, Any] = {}
        if model.jacobian is not None:
            jacobian = model.function(model.jacobian)

            def fill(s: float, x: Array, _: Array, slopes: Array) -> None:
                t, u = self.now
                slopes[:] = jacobian(t + s, x, _at(u, s))

            options["jacfn"] = fill
        self.solver: Any = CVODE(
            self._fill,
            rtol=model.rtol,
            atol=model.atol,
            max_step=self.longest or 0.0,
            max_num_steps=100_000,
            **options,
        )

    def close(self) -> None:
        self.solver = None

    def _fill(self, s: float, x: Array, rates: Array) -> None:
        t, u = self.now
        rates[:] = self._rate(t + s, x, _at(u, s))

    def _advance(self, t: float, h: float, u: Array) -> None:
        if not self.x.size:
            self._report(t, h, u)
            return
        self.now = t, u
        self.solver.init_step(0.0, self.x)
        reached, way = 0.0, "normal" if self.micro is None else "onestep"
        while reached < h:
            with contextlib.redirect_stdout(io.StringIO()) as said:  # it prints what went wrong
                result = self.solver.step(h, method=way, tstop=h)
            if not result.success:
                why = " ".join(said.getvalue().split()) or result.message
                raise self._failed(t + result.t, why, "larger tolerances; check f for jumps")
            print(said.getvalue(), end="")
            self.x, reached = np.array(result.y, dtype=float), result.t
            self._report(t, reached, u)
