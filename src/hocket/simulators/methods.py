"""The methods that hocket integrates with: Butcher tableaux, and solvers that choose their own steps.

In:  the name of a method; the rates of a state
Out: its order and coefficients; for x' = A x + B u the matrices of one step; the steps of a solver
"""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from hocket.errors import ScenarioError, SimulatorError
from hocket.model.protocols import Array

MethodName: TypeAlias = Literal["exact", "euler", "implicit-euler", "heun", "rk4", "trapezoid", "ab2"]


@dataclass(frozen=True, slots=True)
class Tableau:
    """A Runge-Kutta method whose stages are explicit or implicit in themselves only."""

    order: int
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    c: tuple[float, ...]


TABLEAUX = {
    "euler": Tableau(1, ((0.0,),), (1.0,), (0.0,)),
    "implicit-euler": Tableau(1, ((1.0,),), (1.0,), (1.0,)),
    "heun": Tableau(2, ((0.0, 0.0), (1.0, 0.0)), (0.5, 0.5), (0.0, 1.0)),
    "rk4": Tableau(
        4,
        ((0.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)),
        (1 / 6, 1 / 3, 1 / 3, 1 / 6),
        (0.0, 0.5, 0.5, 1.0),
    ),
    "trapezoid": Tableau(2, ((0.0, 0.0), (0.5, 0.5)), (0.5, 0.5), (0.0, 1.0)),
}
"""The one-step methods; "ab2" (Adams-Bashforth) and "exact" stand beside them."""

ORDERS: dict[str, int | None] = {
    **{name: tableau.order for name, tableau in TABLEAUX.items()},
    "ab2": 2,
    "exact": None,
}


@dataclass(frozen=True)
class Maps:
    """One micro step of a linear system: z' = Phi z + sum_k Gamma[k] c_k, c_k the input's coefficients.

    z is the state, and for a multistep method its history too. `first` holds for the step that has no
    history yet.
    """

    Phi: Array
    Gamma: Array
    """Shape (degree + 1, states, inputs)."""
    first: Maps | None = None


@lru_cache(maxsize=256)
def linear_maps(
    A: tuple[tuple[float, ...], ...],
    B: tuple[tuple[float, ...], ...],
    h: float,
    degree: int,
    method: str,
) -> Maps:
    """Return the maps of one step of length h of x' = A x + B u, u a polynomial of this degree."""
    n = len(A)
    matrix_A = np.array(A, dtype=float).reshape(n, n)
    matrix_B = np.array(B, dtype=float).reshape(n, -1)
    m = matrix_B.shape[1]
    if method == "exact":
        return _exact_maps(matrix_A, matrix_B, h, degree)
    if method == "ab2":
        rate = np.hstack([matrix_A, matrix_B])
        start = _runge_kutta_maps(matrix_A, matrix_B, h, degree, TABLEAUX["heun"])
        Phi, first = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, 2 * n))
        Gamma, first_Gamma = np.zeros((degree + 1, 2 * n, m)), np.zeros((degree + 1, 2 * n, m))
        Phi[:n, :n], Phi[:n, n:] = np.eye(n) + 1.5 * h * matrix_A, -0.5 * h * np.eye(n)
        Gamma[0, :n] = 1.5 * h * matrix_B
        first[:n, :n], first_Gamma[:, :n] = start.Phi, start.Gamma
        for history, history_Gamma in ((Phi, Gamma), (first, first_Gamma)):
            history[n:, :n], history_Gamma[0, n:] = rate[:, :n], rate[:, n:]
        return Maps(Phi, Gamma, Maps(first, first_Gamma))
    return _runge_kutta_maps(matrix_A, matrix_B, h, degree, TABLEAUX[method])


def _exact_maps(A: Array, B: Array, h: float, degree: int) -> Maps:
    """One exponential of A and a chain of integrators (theory, section 1): works for singular A."""
    n = len(A)
    # with more inputs than states the chain is of states, and B comes after it
    many = B.shape[1] > n
    driven = np.eye(n) if many else B
    m = driven.shape[1]
    size = n + m * (degree + 1)
    generator = np.zeros((size, size))
    generator[:n, :n], generator[:n, n : n + m] = A, driven
    for k in range(degree):
        row = n + k * m
        generator[row : row + m, row + m : row + 2 * m] = np.eye(m)
    from scipy.linalg import expm  # here: the process of an isolated FMU does without

    flow = np.asarray(expm(generator * h), dtype=float)
    factorial, Gamma = 1.0, np.zeros((degree + 1, n, m))
    for k in range(degree + 1):
        factorial *= max(k, 1)
        # the chain carries derivatives, a coefficient c_k is the k-th derivative over k!
        Gamma[k] = factorial * flow[:n, n + k * m : n + (k + 1) * m]
    return Maps(flow[:n, :n].copy(), Gamma @ B if many else Gamma)


def _runge_kutta_maps(A: Array, B: Array, h: float, degree: int, tableau: Tableau) -> Maps:
    n, m = B.shape
    width = n + m * (degree + 1)
    x = np.eye(n, width)  # every quantity is a matrix that acts on [x, c_0, c_1, ...]
    rates: list[Array] = []
    for row, node in zip(tableau.a, tableau.c, strict=True):
        stage = x.copy()
        for weight, rate in zip(row, rates, strict=False):
            if weight:
                stage = stage + (h * weight) * rate
        driven = np.zeros((n, width))
        for k in range(degree + 1):
            driven[:, n + k * m : n + (k + 1) * m] = B * (node * h) ** k
        own = row[len(rates)]
        right = A @ stage + driven
        rates.append(np.asarray(np.linalg.solve(np.eye(n) - h * own * A, right)) if own and n else right)
    for weight, rate in zip(tableau.b, rates, strict=True):
        x = x + (h * weight) * rate
    Gamma = x[:, n:].reshape(n, degree + 1, m).transpose(1, 0, 2)
    return Maps(x[:, :n].copy(), np.ascontiguousarray(Gamma))


def micro_steps(h: float, step: float | None) -> int:
    """Return how many micro steps of at most `step` seconds make up h; 1 if there is no own step."""
    if step is None:
        return 1
    return max(1, -int(-(h / step) * (1.0 - 1e-9) // 1))


def to_floats(values: object) -> Array:
    """Return a new array of floats; TypeError or ValueError for texts and whatever else is not a number."""
    array = np.array(values)
    if array.dtype.kind == "O":
        if any(item is None or isinstance(item, (str, bytes)) for item in array.flat):
            raise TypeError("not a number")
    elif array.dtype.kind not in "fiub":
        raise TypeError("not a number")
    try:
        return array.astype(float, copy=False)
    except OverflowError:
        raise ValueError("a number that is beyond all floats") from None


class EntryError(ValueError):
    """An argument is not what it should be; `name` is that of the argument."""

    def __init__(self, name: str, what: str):
        super().__init__(f"`{name}` {what}")
        self.name = name


def matrix(
    rows: object, name: str, shape: tuple[int | None, int | None] = (None, None)
) -> tuple[tuple[float, ...], ...]:
    """Return a matrix as hashable rows; raises EntryError if it is not one of this shape."""
    array = _finite_array(rows, name, "a matrix of numbers", "a list of rows such as [[{:g}]]")
    if array.ndim == 1 and array.size:
        raise EntryError(name, "is a list of numbers, not a list of rows such as [[1, 0], [0, 1]]")
    if array.size == 0:
        array = array.reshape(tuple(size or 0 for size in shape))
    pairs = zip(shape, array.shape, strict=False)
    if array.ndim != 2 or any(want not in (None, have) for want, have in pairs):
        wanted = " x ".join("any" if size is None else str(size) for size in shape)
        raise EntryError(name, f"has shape {' x '.join(map(str, array.shape))}, expected {wanted}")
    return tuple(tuple(row) for row in array.tolist())


def vector(values: Sequence[float], name: str, size: int | None = None) -> tuple[float, ...]:
    """Return a vector as a hashable tuple; raises EntryError if it is not one of this size."""
    array = _finite_array(values, name, "a list of numbers", "a list such as [{:g}]")
    if array.ndim > 1:
        raise EntryError(name, "is a list of lists, not a list of numbers")
    if size not in (None, len(array)):
        raise EntryError(name, f"has {len(array)} entries, expected {size}")
    return tuple(array.tolist())


def _finite_array(values: object, name: str, what: str, example: str) -> Array:
    try:
        array = to_floats(values)
    except (TypeError, ValueError):
        raise EntryError(name, f"is not {what}") from None
    if array.ndim == 0:
        raise EntryError(name, f"is the single number {array:g}, not {example.format(float(array))}")
    if not np.isfinite(array).all():
        raise EntryError(name, "has an entry that is not a finite number")
    return array


def apply_matrix(matrix: Array, x: Array, onto: Array | None = None) -> Array:
    """Return onto + matrix x, summed column by column; x may carry columns of its own."""
    shape = (matrix.shape[0], *np.shape(x)[1:])
    total = np.zeros(shape) if onto is None else onto
    for j in range(matrix.shape[1]):
        column = matrix[:, j] if total.ndim == 1 else matrix[:, j, None]
        total = total + column * x[j]
    return total


def dot(one: Iterable[float], other: Iterable[float]) -> float:
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total = total + a * b
    return total


Rates: TypeAlias = Callable[..., Any]
"""Of a state at a time; what CVODE calls fills an array."""


class DormandPrince:
    """Dormand and Prince's pair of order 5, or of order 8 where rtol < 1e-8."""

    def __init__(self, rtol: float, longest: float | None, size: float | None = None):
        self.rtol, self.longest = rtol, longest
        self.size = size
        """The internal step to begin with; None: the whole step."""

    def steps(
        self, rates: Rates, t: float, begin: float, x: Array, end: float, atol: float | Array
    ) -> Iterator[Any]:
        """Yield SciPy's solver after each of its steps; its times are counted from t."""
        from scipy.integrate import DOP853, RK45

        solver = (RK45 if self.rtol >= 1e-8 else DOP853)(
            rates,
            begin,
            x,
            end,
            rtol=self.rtol,
            atol=atol,
            max_step=self.longest or math.inf,
            first_step=min(self.size or end - begin, end - begin),
        )
        while solver.status == "running":
            why = solver.step()
            if solver.status == "failed":
                hint = "method `cvode` if it is stiff; larger tolerances"
                raise solver_error("adaptive", t + solver.t, why or "", hint)
            self.size = float(solver.h_abs)
            yield solver


def import_cvode() -> Any:
    """Return the class that wraps CVODE; raises ScenarioError where it is not installed."""
    try:
        from sksundae.cvode import CVODE
    except ImportError:
        what = "method `cvode` needs the package scikit-sundae, which is not installed"
        raise ScenarioError(what, hint="pip install hocket[stiff]") from None
    os.environ.setdefault("SUNLOGGER_WARNING_FILENAME", os.devnull)  # else it prints on standard output
    return CVODE


class Cvode:
    """Backward differentiation formulas of SUNDIALS; `rates` and `slopes` fill their last argument."""

    def __init__(
        self, rates: Rates, rtol: float, atol: float | Array, longest: float | None, slopes: Rates | None
    ):
        options = {} if slopes is None else {"jacfn": slopes}
        limits = {"max_step": longest or 0.0, "max_num_steps": 100_000}
        self.solver = import_cvode()(rates, rtol=rtol, atol=atol, **limits, **options)

    def begin(self, s: float, x: Array) -> None:
        self.solver.init_step(s, x)

    def step(self, t: float, s: float, way: str, stop: float | None) -> tuple[float, Array]:
        """Go to s, or with the way "onestep" by one internal step; times are counted from t."""
        with contextlib.redirect_stdout(io.StringIO()) as said:  # it prints what went wrong
            result = self.solver.step(s, method=way, tstop=stop)
        if not result.success:
            why = " ".join(said.getvalue().split()) or result.message
            raise solver_error("cvode", t + result.t, why, "larger tolerances; check for jumps")
        print(said.getvalue(), end="")
        return float(result.t), np.array(result.y, dtype=float)


def solver_error(method: str, t: float, why: str, hint: str) -> SimulatorError:
    return SimulatorError(f"`{method}` failed at t = {t:.9g}: {why}", hint=hint)
