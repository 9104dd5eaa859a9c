"""Models that stand for others: linear, with the ports and abilities of the original.

In:  matrices, and the model they were taken from
Out: Models whose simulators carry rows, so that the plan of the originals can be read as a matrix
"""

# ruff: noqa: ARG002  (a linear simulator need not look at t)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from hocket.clock import format_duration
from hocket.errors import SimulatorError
from hocket.model import Array, Capabilities, Model, Port
from hocket.signals import shift_origin
from hocket.simulators.methods import MethodName
from hocket.simulators.state_space import StateSpace, StateSpaceSimulator


@dataclass(frozen=True, eq=False)
class ModelStandIn:
    """What stand-ins share: to an orchestrator they are the original."""

    stands_for: Model

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs of the original."""
        return self.stands_for.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs of the original, with their feedthrough."""
        return self.stands_for.outputs

    @property
    def abilities(self) -> Capabilities:
        """Those of the original: the plan depends on them."""
        return self.stands_for.abilities

    @property
    def texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Strings and binaries are wired as they were, and not carried: no linear model has them."""
        texts: tuple[tuple[str, ...], tuple[str, ...]] = getattr(self.stands_for, "texts", ((), ()))
        return texts


class IgnoredTexts:
    """Ends of the wires that carry texts."""

    def text(self, port: int) -> bytes:
        """Return nothing."""
        return b""

    def set_text(self, port: int, value: bytes) -> None:
        """Take no notice."""


@dataclass(frozen=True, eq=False)
class Tangent(ModelStandIn):
    """x' = A x + B u + rate, y = C x + D u + shift, in the units of the original, from x0 on."""

    A: Array
    B: Array
    C: Array
    D: Array
    x0: Array
    rate: Array
    """What is left of f at the operating point: zero for a linear model."""
    shift: Array
    method: MethodName = "exact"
    step: Fraction | None = None

    @staticmethod
    def constant(stands_for: Model, y: Array) -> Tangent:
        """Return a model whose outputs stay what they are, whatever happens."""
        p, m = len(y), len(stands_for.inputs)
        none = np.zeros(0)
        nothing = np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0)), np.zeros((p, m))
        return Tangent(stands_for, *nothing, none, none, np.array(y, dtype=float))

    @cached_property
    def linear(self) -> StateSpace:
        """The same with a last input that is always one, and carries what is constant."""
        n, m, p = len(self.A), self.B.shape[1], len(self.C)
        return StateSpace(
            A=self.A.tolist(),
            B=np.hstack([self.B, self.rate.reshape(n, 1)]).tolist() if n else (),
            C=self.C.tolist() if n else (),
            D=np.hstack([self.D, self.shift.reshape(p, 1)]).tolist(),
            x0=self.x0.tolist(),
            inputs=[f"u{number}" for number in range(m + 1)],
            outputs=[f"y{number}" for number in range(p)],
            method=self.method,
            step=self.step,
        )

    def open(self) -> TangentSimulator:
        """Make a live simulator."""
        return TangentSimulator(self)


class TangentSimulator(IgnoredTexts):
    """A StateSpaceSimulator whose last input is one."""

    def __init__(self, model: Tangent, inner: StateSpaceSimulator | None = None):
        self.inner = inner or StateSpaceSimulator(model.linear)
        self.size = self.inner.size
        self.start = self.inner.start
        self.save, self.restore, self.close = self.inner.save, self.inner.restore, self.inner.close

    @property
    def z(self) -> Array:
        """The state, perhaps with the history of the method; it may carry columns."""
        return self.inner.z

    @z.setter
    def z(self, z: Array) -> None:
        self.inner.z = z

    @property
    def last_h(self) -> float | None:
        """The length of the last micro step."""
        return self.inner.last_h

    @property
    def micro(self) -> Callable[[float, Array], None] | None:
        """Who is told of every micro step."""
        return self.inner.micro

    @micro.setter
    def micro(self, told: Callable[[float, Array], None] | None) -> None:
        self.inner.micro = told

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h."""
        return self.inner.step(t, h, _append_unit_input(u))

    def output(self, t: float, u: Array) -> Array:
        """Return the outputs."""
        return self.inner.output(t, _append_unit_input(u))

    def slope(self, t: float, u: Array) -> Array:
        """Return the time derivatives of the outputs."""
        return self.inner.slope(t, _append_unit_input(u))


def _append_unit_input(u: Array) -> Array:
    one = np.zeros((len(u), 1, *u.shape[2:]))
    one[0] = 1.0
    return np.concatenate([u, one], axis=1)


@dataclass(frozen=True, eq=False)
class IdentifiedModel(ModelStandIn):
    """x' = F x + sum_k G[k] c_k + rate over one step h; y = C x + sum_k D[k] c_k + shift.

    c_k are the coefficients of the inputs. The rows of C, D and shift are the outputs, and below them their
    slopes where these were asked for.
    """

    h: Fraction
    F: Array
    G: Array
    """Shape (powers, states, inputs)."""
    C: Array
    D: Array
    """Shape (powers, rows, inputs)."""
    x0: Array
    rate: Array
    shift: Array
    singular: Array = field(default_factory=lambda: np.zeros(0))
    """The singular values of the Hankel matrix: the order is where they fall."""

    def open(self) -> IdentifiedSimulator:
        """Make a live simulator."""
        return IdentifiedSimulator(self)


class IdentifiedSimulator(IgnoredTexts):
    """Steps of one length; a longer one is made of several."""

    def __init__(self, model: IdentifiedModel):
        self.model = model
        self.size = len(model.F)
        self.length = float(model.h)
        self.z: Array = np.zeros(0)
        self.last_h = None

    def start(self, t: float) -> None:
        """Go to where the original started."""
        self.z = self.model.x0.copy()

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h, a whole number of steps as they were identified."""
        if h == 0.0:
            return t
        model, count = self.model, round(h / self.length)
        if count < 1 or abs(h - count * self.length) > 1e-9 * h:
            what = f"it was identified for steps of {format_duration(model.h)}, and is stepped by {h:.9g} s"
            raise SimulatorError(what, hint="`linearise` of the composite with the steps it shall have")
        if np.any(u[len(model.G) :]):
            what = f"it was identified for inputs of degree {len(model.G) - 1}, and gets degree {len(u) - 1}"
            raise SimulatorError(what, hint="`linearise` of the composite with its extrapolation")
        for number in range(count):
            coefficients = shift_origin(list(u), number * self.length)
            self.z = _add_constant(model.F @ self.z, model.rate)
            for Gamma, c in zip(model.G, coefficients, strict=False):
                self.z = self.z + Gamma @ c
        return t + h

    def output(self, t: float, u: Array) -> Array:
        """Return the outputs."""
        return self._output_rows(u)[: len(self.model.outputs)]

    def slope(self, t: float, u: Array) -> Array:
        """Return the time derivatives of the outputs."""
        count = len(self.model.outputs)
        if len(self.model.C) < 2 * count:
            raise SimulatorError("its slopes were not identified: no connection asked for them")
        return self._output_rows(u)[count:]

    def _output_rows(self, u: Array) -> Array:
        y = _add_constant(self.model.C @ self.z, self.model.shift)
        for D, c in zip(self.model.D, u, strict=False):
            y = y + D @ c
        return y

    def save(self) -> Array:
        """Return the state."""
        return self.z.copy()

    def restore(self, state: Array) -> None:
        """Go back to a saved state."""
        self.z = state.copy()

    def close(self) -> None:
        """Nothing is held."""


def _add_constant(columns: Array, constant: Array) -> Array:
    return columns + (constant if columns.ndim == 1 else constant[:, None])
