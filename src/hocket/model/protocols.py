"""What is coupled with what: ports, connections, scenarios, and the protocols every part is written against.

In:  names, units and recipes of simulators
Out: frozen data; nothing is opened here
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hocket.model.ports import Port

Array: TypeAlias = NDArray[np.float64]
Value: TypeAlias = Any
"""A number in the exchange memory: a float in a run, a row of floats in the linear reading."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a simulator can do beyond stepping; `hocket.testing` checks that it is true."""

    rollback: bool = False
    """save() and restore()."""
    variable_step: bool = True
    """Any step is accepted, not only the one of its level."""
    input_degree: int | None = None
    """The highest power of time in an input that is honoured; None: any."""
    slopes: bool = False
    """slope(t, u) gives the time derivatives of the outputs."""
    micro: bool = False
    """It reports its micro steps to `micro(t, y)`, where that attribute is set."""
    order: int | None = None
    """The order of its solver; None: exact, or not known."""
    reevaluates: bool = True
    """output() between steps follows new inputs; False: only at the start and after a step."""
    stops_early: bool = False
    """A step may end before its time, where an event is; steps are then rewound and shortened."""


class Simulator(Protocol):
    """The live thing. The caller owns the clock.

    `u` has one column per input and one row per power of (time - t): `u[0]` are the values at t, `u[1]`
    the slopes. It belongs to the caller: copy what must outlast the call. In the linear reading every
    number is a row, so `u` has a third axis.
    """

    def start(self, t: float) -> None:
        """Go to the initial state, at time t."""

    def output(self, t: float, u: Array) -> Array:
        """Return the outputs at t. No time passes; may be called repeatedly."""

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance from t by h seconds; return the time reached."""

    def close(self) -> None:
        """Let go of everything held."""


@runtime_checkable
class RollbackSimulator(Protocol):
    """A simulator that can go back; capabilities.rollback says so."""

    def save(self) -> Any:
        """Return the state, to be kept by the caller."""

    def restore(self, state: Any) -> None:
        """Go back to a saved state; it may be restored many times."""


class OutputDerivativeSimulator(Protocol):
    """A simulator that knows the time derivatives of its outputs; capabilities.slopes says so."""

    def slope(self, t: float, u: Array) -> Array:
        """Return the time derivatives of the outputs at t."""


class Model(Protocol):
    """What can be coupled: a frozen recipe of a simulator. It may be opened many times, in parallel."""

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The input ports, known before anything is loaded."""

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The output ports, each with the inputs it directly depends on."""

    @property
    def capabilities(self) -> Capabilities:
        """What its simulators can do."""

    def open(self) -> Simulator:
        """Make a live simulator."""


@runtime_checkable
class CheckableModel(Protocol):
    """A model that can look at its own code before it is opened."""

    def check(self) -> None:
        """Raise ScenarioError with what is wrong."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A value with its time, in seconds from the start of the step that is fed; perhaps with its slope."""

    s: float
    value: Value
    slope: Value = None


class Extrapolator(Protocol):
    """Turns the newest samples of a signal into a polynomial over the coming step."""

    @property
    def samples(self) -> int:
        """How many samples it looks back."""

    @property
    def degree(self) -> int:
        """The degree of its polynomials."""

    @property
    def slopes(self) -> bool:
        """Whether the samples must carry slopes."""

    def start(self, y0: Value) -> Value:
        """Return the memory w that belongs to a first sample y0; None if it keeps none."""

    def fit(self, samples: Sequence[Sample], w: Value) -> tuple[list[Value], Value]:
        """Return the coefficients in powers of time, and the new memory.

        The samples come oldest first, at most `samples` of them, fewer at a cold start. `w` is the memory
        before the newest sample: the engine advances it once per sample, however often it is fed.
        """
