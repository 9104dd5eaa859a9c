"""Linear models: x' = A x + B u, y = C x + D u, integrated exactly or by a fixed-step method.

In:  matrices, an initial state, ports
Out: a simulator; the native engine has its twin, with the same bits
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.errors import ScenarioError, suggest_nearest
from hocket.model.arguments import expect, is_one_of, set_fields
from hocket.model.clock import Duration, seconds
from hocket.model.extrapolators import shift_origin, value_at
from hocket.model.ports import Port, PortLike, parse_ports, parse_value_ports
from hocket.model.protocols import Array, Capabilities, Model, Recipe
from hocket.simulators.methods import (
    ORDERS,
    EntryError,
    Maps,
    MethodName,
    apply_matrix,
    linear_maps,
    matrix,
    micro_steps,
    vector,
)

if TYPE_CHECKING:
    from hocket.simulators.energies import QuadraticEnergy

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, init=False)
class StateSpace:
    """A linear model. `method="exact"` is exact for polynomial inputs; the others have an own `step`.

    Matrices that are left out are zero; with no A there is no state and y = D u. `energy` is a symmetric
    matrix Q, where the state stores x'Qx/2 joules.
    """

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    x0: tuple[float, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    method: MethodName = "exact"
    step: Fraction | None = None
    energy: Matrix | None = None
    recipe: Recipe | None = field(init=False, default=None, compare=False, repr=False)
    """None: it is made of its matrices, as it also is once one of them was changed."""

    def __init__(
        self,
        A: Sequence[Sequence[float]] = (),
        B: Sequence[Sequence[float]] = (),
        C: Sequence[Sequence[float]] = (),
        D: Sequence[Sequence[float]] = (),
        x0: Sequence[float] | None = None,
        inputs: Iterable[PortLike] = (),
        outputs: Iterable[PortLike] = (),
        method: MethodName = "exact",
        step: Duration | None = None,
        energy: Sequence[Sequence[float]] | None = None,
    ):
        driven, seen = (parse_value_ports(each, "a `StateSpace`") for each in (inputs, outputs))
        m, p, given = len(driven), len(seen), {"B": B, "C": C, "D": D}
        _check_port_names(given, m, p)
        try:
            n = len(matrix(A, "A"))
            shapes = {"B": (n, m), "C": (p, n), "D": (p, m)}
            set_fields(
                self,
                A=matrix(A, "A", (n, n)),
                **{
                    name: matrix(rows if _is_given(rows) else np.zeros(shapes[name]), name, shapes[name])
                    for name, rows in given.items()
                },
                x0=vector([0.0] * n if x0 is None else x0, "x0", n),
                inputs=driven,
                method=method,
                step=None if step is None else seconds(step),
                energy=None if energy is None else _check_energy_matrix(energy, n),
            )
        except ValueError as error:
            sizes = f"A n x n, B n x {m}, C {p} x n, D {p} x {m}, n in x0"
            more = "" if energy is None else "; `energy` n x n, symmetric, not negative"
            key = error.name if isinstance(error, EntryError) else ""
            raise ScenarioError(f"a StateSpace cannot be built: {error}", key, f"{sizes}{more}") from None
        if not is_one_of(method, ORDERS):
            raise ScenarioError(
                f"there is no method `{method}`", "method", "", suggest_nearest(method, ORDERS)
            )
        if self.step is not None and self.step <= 0:
            raise ScenarioError(f"the step {step} of a StateSpace is not positive", "step")
        feeding = (tuple(i.name for i, d in zip(driven, row, strict=True) if d) for row in self.D)
        pairs = zip(seen, feeding, strict=True)
        set_fields(self, outputs=tuple(replace(port, start=None, feedthrough=names) for port, names in pairs))

    @cached_property
    def capabilities(self) -> Capabilities:
        return Capabilities(rollback=True, slopes=True, micro=True, order=ORDERS[self.method])

    @cached_property
    def state_matrices(self) -> tuple[Array, Array]:
        """A and B as arrays, shared by all simulators of the model."""
        A = np.array(self.A, dtype=float).reshape(len(self.A), len(self.A))
        return A, np.array(self.B, dtype=float).reshape(len(self.A), len(self.inputs))

    @cached_property
    def output_matrices(self) -> tuple[Array, Array]:
        """C and D as arrays, shared by all simulators of the model."""
        C = np.array(self.C, dtype=float).reshape(len(self.outputs), len(self.A))
        return C, np.array(self.D, dtype=float).reshape(len(self.outputs), len(self.inputs))

    @cached_property
    def stored_energy(self) -> QuadraticEnergy | None:
        """The stored energy of a state; None: not declared."""
        if self.energy is None:
            return None
        from hocket.simulators.energies import QuadraticEnergy

        return QuadraticEnergy(np.array(self.energy, dtype=float).reshape(len(self.A), len(self.A)))

    def with_recipe(self, name: str, make: Callable[..., Model], **arguments: Any) -> StateSpace:
        """Return it, and remember what makes it again."""
        set_fields(self, recipe=Recipe(name, make, arguments))
        return self

    def open(self) -> StateSpaceSimulator:
        return StateSpaceSimulator(self)


def _check_energy_matrix(energy: Sequence[Sequence[float]], size: int) -> Matrix:
    """Return Q; raises ValueError if x'Qx/2 is not an energy."""
    rows = matrix(energy, "energy", (size, size))
    Q = np.array(rows, dtype=float).reshape(size, size)
    large = float(np.max(np.abs(Q), initial=0.0))
    if float(np.max(np.abs(Q - Q.T), initial=0.0)) > 1e-12 * large:
        raise EntryError("energy", "is not symmetric")
    if size and float(np.linalg.eigvalsh(Q)[0]) < -1e-12 * large:
        raise EntryError("energy", "is below zero for some states: x'Qx/2 must not be")
    return rows


def _is_given(rows: Sequence[Sequence[float]]) -> bool:
    try:
        return np.size(rows) > 0
    except ValueError:
        return True  # rows of unequal length


def _check_port_names(given: Mapping[str, Sequence[Sequence[float]]], inputs: int, outputs: int) -> None:
    """Refuse a matrix that is given while the ports it is about have no names."""
    for role, example, count, names in (("outputs", "y", outputs, "CD"), ("inputs", "u", inputs, "BD")):
        named = [name for name in names if _is_given(given[name])]
        if named and not count:
            what = f"a StateSpace cannot be built: `{named[0]}` is given, but it has no {role}"
            raise ScenarioError(what, named[0], f'name the {role}, as in {role}=["{example}", ...]')


class StateSpaceSimulator:
    """The specification of the native twin: sums run column by column, left to right.

    `z` is the state, with the history of a multistep method behind it; it may carry columns.
    """

    def __init__(self, model: StateSpace):
        self.model = model
        self.size = len(model.A)
        self.step_length = None if model.step is None else float(model.step)
        self.C, self.D = model.output_matrices
        self.feeds_through = any(port.feedthrough for port in model.outputs)
        self.micro: Callable[[float, Array], None] | None = None
        self.z: Array = np.zeros(0)
        self.last_h: float | None = None
        if model.energy is not None:
            self.energy = self._energy

    def start(self, t: float) -> None:
        x0 = np.array(self.model.x0, dtype=float)
        self.z = np.concatenate([x0, np.zeros(self.size)]) if self.model.method == "ab2" else x0
        self.last_h = None

    def maps(self, h: float, degree: int) -> Maps:
        """Return the matrices of one micro step of length h."""
        if not self.size:
            return Maps(np.zeros((0, 0)), np.zeros((degree + 1, 0, len(self.model.inputs))))
        return linear_maps(self.model.A, self.model.B, h, degree, self.model.method)

    def step(self, t: float, h: float, u: Array) -> float:
        if h == 0.0:
            return t
        count = micro_steps(h, self.step_length)
        length = h / count
        maps = self.maps(length, len(u) - 1)
        for k in range(count):
            used = maps if maps.first is None or self.last_h == length else maps.first
            coefficients = shift_origin(u, k * length)
            self.z = apply_matrix(used.Phi, self.z)
            for Gamma, c in zip(used.Gamma, coefficients, strict=True):
                self.z = apply_matrix(Gamma, c, self.z)
            self.last_h = length
            if self.micro is not None:
                done = k + 1 == count
                end = h if done else (k + 1) * length
                self.micro(t + end, self._outputs_at(value_at(u, end)))
        return t + h

    def output(self, t: float, u: Array) -> Array:
        """Return C x + D u."""
        return self._outputs_at(u[0] if len(self.model.inputs) else np.zeros(0))

    def _outputs_at(self, u: Array) -> Array:
        y = apply_matrix(self.C, self.z[: self.size])
        return apply_matrix(self.D, u, y) if self.feeds_through else y

    def slope(self, t: float, u: Array) -> Array:
        """Return C (A x + B u) + D u'."""
        slope = apply_matrix(self.C, self.rate(u[0]))
        return apply_matrix(self.D, u[1], slope) if len(u) > 1 else slope

    def rate(self, u: Array) -> Array:
        A, B = self.model.state_matrices
        return apply_matrix(B, u, apply_matrix(A, self.z[: self.size]))

    def _energy(self) -> float:
        assert self.model.stored_energy is not None
        return self.model.stored_energy.value(self.z[: self.size])

    def save(self) -> tuple[Array, float | None]:
        return self.z.copy(), self.last_h

    def restore(self, state: tuple[Array, float | None]) -> None:
        self.z, self.last_h = state[0].copy(), state[1]

    def close(self) -> None:
        """Nothing is held."""


def Gain(gain: float, unit: str = "", out: str = "") -> StateSpace:
    """Return a model with one input `u` and one output `y` = gain * u."""
    ports = {"inputs": [Port("u", unit)], "outputs": [Port("y", unit if is_one_of(out, ("",)) else out)]}
    return StateSpace(D=[[gain]], **ports).with_recipe("gain", Gain, gain=gain, unit=unit, out=out)  # type: ignore[arg-type]


def Sum(*inputs: PortLike, gains: Sequence[float] | None = None, unit: str = "") -> StateSpace:
    """Return a model whose output `y` is the sum of its inputs, each times its gain."""
    expect(gains is None or isinstance(gains, Iterable), "gains", gains, "a list of numbers, or None")
    weights = [1.0] * len(inputs) if gains is None else list(gains)
    made = StateSpace(D=[weights], inputs=inputs, outputs=[Port("y", unit)])
    return made.with_recipe("sum", _sum_of, inputs=made.inputs, gains=weights, unit=unit)


def _sum_of(inputs: Iterable[PortLike], **options: Any) -> StateSpace:
    return Sum(*inputs, **options)


SENT = "_sent"
"""What the input is called that an output shows: `force_sent` of `force`."""


@dataclass(frozen=True, init=False)
class StandIn(StateSpace):
    """Stands in for a simulator on another host: it shows what was sent last, extrapolated to now.

    Each of its inputs, `force_sent`, is the output `force` of the simulator `of`. Inputs come as polynomials,
    fitted by the extrapolator of the connection that ends in it; outputs are these polynomials at the time
    they are asked for (Gomes 2016, section 3.3: the artificial simulators S'). So it is linear, has no state,
    and is judged by the linear reading like any other model.
    """

    of: str = ""

    def __init__(self, shows: Iterable[PortLike], of: str = ""):
        shown = parse_ports(shows)
        names = [port.name for port in shown]
        sent = [name + SENT for name in names]
        twice = sorted({name for name in names + sent if (names + sent).count(name) > 1})
        if not shown or twice:
            what = f"two of its ports would be named `{twice[0]}`" if twice else "it has no ports"
            raise ScenarioError(
                f"a stand-in for `{of}` cannot be built: {what}", "shows", "names that differ"
            )
        super().__init__(
            D=np.eye(len(shown)).tolist(),
            inputs=[replace(port, name=port.name + SENT, feedthrough=()) for port in shown],
            outputs=shown,
        )
        set_fields(self, of=of)

    @property
    def shows(self) -> tuple[Port, ...]:
        pairs = zip(self.outputs, self.inputs, strict=True)
        return tuple(replace(port, start=sent.start, feedthrough=()) for port, sent in pairs)
