"""Simulators from equations in residual form: 0 = f(t, x, x', u), of index 1, integrated by IDA.

In:  a function of residuals, an initial state, and which of its entries are algebraic
Out: a Model; its simulators keep the algebraic equations at every time

IDA (SUNDIALS, through scikit-sundae) takes backward differentiation formulas; every step of the level begins
anew, from consistent values (theory, section 17).
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from hocket.errors import Fault, Place, ScenarioError, SimulatorError, raise_faults
from hocket.model.arguments import is_number, is_whole, set_fields
from hocket.model.extrapolators import value_at
from hocket.model.ports import Port, PortLike, parse_value_ports
from hocket.model.protocols import Array, Capabilities, Simulator
from hocket.simulators.methods import solver_error, vector
from hocket.simulators.recipes import Recipe, load, qualified_name, with_feedthrough

Residual: TypeAlias = Callable[..., Any]
"""f(t, x, dx, u, **parameters): one residual for each entry of x."""

NUDGE = 2.0**-26
"""How far a value is moved to see what it does, relative to its size."""
CONSISTENT = 1e-10
"""The residual, relative to the size of what is in it, of values that are consistent."""
ITERATIONS = 20


@dataclass(frozen=True, init=False, eq=False)
class Dae(Recipe):
    """0 = f(t, x, dx, u), a system of index 1; further keywords are parameters, handed to f.

    `algebraic` are the places of x, from 0 on, whose derivatives do not occur. `x0` is the state at the
    start; its algebraic entries are guesses, and are made to fit. The outputs are the states, named x1,
    x2 ... unless `outputs` names them; every input has direct feedthrough to the algebraic ones. f is a
    function, or a text such as "plant.py:residual".
    """

    f: Residual | str
    x0: tuple[float, ...]
    algebraic: tuple[int, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    rtol: float
    atol: float
    values: tuple[tuple[str, Any], ...]
    folder: str

    def __init__(
        self,
        f: Residual | str,
        x0: Sequence[float],
        algebraic: Sequence[int] = (),
        inputs: Iterable[PortLike] = (),
        outputs: Iterable[PortLike] | None = None,
        rtol: float = 1e-8,
        atol: float = 1e-10,
        *,
        folder: str | Path = "",
        **parameters: Any,
    ):
        where = f"`Dae` of `{qualified_name(f)}`"
        try:
            state = vector(x0, "x0")
        except ValueError as error:
            raise ScenarioError(str(error), where, "a list of numbers, one per entry of x") from None
        entries = parse_value_ports(inputs, where)
        names = [f"x{n}" for n in range(1, len(state) + 1)] if outputs is None else outputs
        shown = parse_value_ports(names, where)
        places = tuple(algebraic) if isinstance(algebraic, Sequence) else (algebraic,)
        faults = []
        if not (is_number(rtol) and is_number(atol) and 1e-13 <= rtol < 1.0 and atol > 0.0):
            what = f"tolerances rtol = {rtol}, atol = {atol}"
            faults.append(Fault(what, where, "1e-13 <= rtol < 1, 0 < atol"))
        if not all(is_whole(place) and place < len(state) for place in places) or len({*places}) < len(
            places
        ):
            faults.append(
                Fault(f"`algebraic` is {list(places)}", where, f"places of x, from 0 to {len(state) - 1}")
            )
        if len(shown) != len(state):
            faults.append(Fault(f"{len(shown)} outputs for {len(state)} entries of x", where, "one for each"))
        if not callable(f) and not isinstance(f, str):
            faults.append(Fault(f"`f` is `{f!r:.40}`", Place(key="f", detail=where), "f(t, x, dx, u)"))
        raise_faults(faults)
        reacting = {shown[place].name: [port.name for port in entries] for place in sorted(places)}
        set_fields(
            self,
            f=f,
            x0=state,
            algebraic=tuple(sorted(int(place) for place in places)),
            inputs=entries,
            outputs=with_feedthrough(shown, entries, reacting, where),
            rtol=float(rtol),
            atol=float(atol),
            values=tuple(sorted(parameters.items())),
            folder=str(folder),
        )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What f is called with, beside t, x, dx and u."""
        return dict(self.values)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(rollback=True)

    def residual(self) -> Residual:
        """Return f, loaded and with the parameters filled in."""
        found: Any = load(self.f, self.folder) if isinstance(self.f, str) else self.f
        if not callable(found):
            raise ScenarioError(f"`{qualified_name(self.f)}` is not a function", expected="f(t, x, dx, u)")
        return partial(found, **self.parameters)

    def open(self) -> Simulator:
        return DaeSimulator(self)


def _import_ida() -> Any:
    try:
        from sksundae.ida import IDA
    except ImportError:
        what = "a `Dae` needs the package scikit-sundae, which is not installed"
        raise ScenarioError(what, hint="pip install hocket[stiff]") from None
    os.environ.setdefault("SUNLOGGER_WARNING_FILENAME", os.devnull)  # else it prints on standard output
    return IDA


class DaeSimulator:
    """A state whose algebraic entries and derivatives fit the inputs."""

    def __init__(self, model: Dae):
        self.model = model
        self.f = model.residual()
        self.x: Array = np.array(model.x0, dtype=float)
        self.algebraic = np.zeros(len(self.x), dtype=bool)
        self.algebraic[list(model.algebraic)] = True
        self.now: tuple[float, Array] = (0.0, np.zeros((1, 0)))
        self.solver: Any = None

        def fill(s: float, x: Array, dx: Array, found: Array) -> None:
            t, u = self.now
            found[:] = self._residual(t + s, x, dx, np.asarray(value_at(u, s)))

        limits = {"max_num_steps": 100_000, "algebraic_idx": list(model.algebraic) or None}
        self.solver = _import_ida()(fill, rtol=model.rtol, atol=model.atol, **limits)

    def start(self, t: float) -> None:
        self.x = np.array(self.model.x0, dtype=float)

    def output(self, t: float, u: Array) -> Array:
        return self._consistent(t, np.array(u[0], dtype=float))[0]

    def step(self, t: float, h: float, u: Array) -> float:
        if h == 0.0:
            return t
        x, dx = self._consistent(t, np.array(u[0], dtype=float))
        self.now = t, np.array(u, dtype=float)
        with contextlib.redirect_stdout(io.StringIO()) as said:  # it prints what went wrong
            self.solver.init_step(0.0, x, dx)
            result = self.solver.step(h, method="normal", tstop=h)
        if not result.success:
            why = " ".join(said.getvalue().split()) or result.message
            raise solver_error("ida", t + float(result.t), why, "larger tolerances; is its index one?")
        self.x = np.array(result.y, dtype=float)
        return t + h

    def save(self) -> Array:
        return self.x.copy()

    def restore(self, state: Array) -> None:
        self.x = state.copy()

    def close(self) -> None:
        self.solver = None

    def _residual(self, t: float, x: Array, dx: Array, u: Array) -> Array:
        found = np.array(self.f(t, x, dx, u), dtype=float).reshape(-1)
        if found.shape != self.x.shape:
            what = f"`f` returned {found.size} residuals for {self.x.size} entries of x"
            raise SimulatorError(what, expected="one residual for each entry of x")
        return found

    def _consistent(self, t: float, u: Array) -> tuple[Array, Array]:
        """Return x with algebraic entries that fit, and its derivative: Newton's method (index 1)."""
        x, dx = self.x.copy(), np.zeros(len(self.x))
        unknown = np.where(self.algebraic, x, dx)

        def spread(w: Array) -> tuple[Array, Array]:
            return np.where(self.algebraic, w, x), np.where(self.algebraic, 0.0, w)

        for _ in range(ITERATIONS):
            found = self._residual(t, *spread(unknown), u)
            columns = []
            for place in range(len(x)):
                moved = unknown.copy()
                moved[place] += NUDGE * max(1.0, abs(unknown[place]))
                change = self._residual(t, *spread(moved), u) - found
                columns.append(change / (moved[place] - unknown[place]))
            matrix = np.array(columns).T
            sizes = np.linalg.svd(matrix, compute_uv=False) if len(x) else np.ones(1)
            if not np.isfinite(matrix).all() or sizes[-1] <= 1e-12 * sizes[0]:
                what = f"the derivatives and the algebraic entries do not follow from f at t = {t!r} s"
                raise SimulatorError(
                    what, expected="a system of index 1", hint="differentiate its constraints"
                )
            step = np.linalg.solve(matrix, -found)
            unknown = unknown + step
            if np.abs(step).max(initial=0.0) <= CONSISTENT * max(1.0, np.abs(unknown).max(initial=0.0)):
                return spread(unknown)
        what = f"no algebraic entries fit the equations at t = {t!r} s"
        raise SimulatorError(what, expected="values near `x0`, or near those before, that fit")
