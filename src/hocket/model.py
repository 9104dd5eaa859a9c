"""What is coupled with what: ports, connections, scenarios, and the protocols every part is written against.

In:  names, units and recipes of simulators
Out: frozen data; nothing is opened here
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hocket.arguments import normalise_record
from hocket.bonds import Bond, named_bonds
from hocket.constraints import Constraint, named_constraints
from hocket.errors import ScenarioError
from hocket.hosts import Hosts

Array: TypeAlias = NDArray[np.float64]
Value: TypeAlias = Any
"""A number in the exchange memory: a float in a run, a row of floats in the linear reading."""

PortType: TypeAlias = Literal["real", "integer", "boolean", "enumeration"]

_PORT = re.compile(r"\s*([^\s\[\]=]+)\s*(?:\[([^\]]*)\])?\s*(?:=\s*(\S+))?\s*")
_NAME = re.compile(r"[^\W\d][\w-]*")


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: `Port("force", "N")`, or read from text: `Port.of("force [N] = 0.5")`."""

    name: str
    unit: str = ""
    start: float | None = None
    """Of an input: its value while nothing drives it."""
    feedthrough: tuple[str, ...] = ()
    """Of an output: the inputs it reacts to at once."""
    type: PortType = "real"
    """What its numbers mean; all travel as float64, whole numbers exactly up to 2^53."""
    held: bool = False
    """Of a real: it changes at events only. It is never extrapolated, as what is no real."""

    @property
    def discrete(self) -> bool:
        """Whether it jumps from value to value."""
        return self.held or self.type != "real"

    @staticmethod
    def of(written: str | Port) -> Port:
        """Return the port that a text such as `force [N]` or `x [m] = 1.0` describes."""
        if isinstance(written, Port):
            return written
        match = _PORT.fullmatch(written) if isinstance(written, str) else None
        if match is None:
            raise ScenarioError(f"`{written}` is not a port", expected='text such as "force [N]"')
        try:
            start = float(match[3]) if match[3] else None
        except ValueError:
            start = math.nan
        if start is not None and not math.isfinite(start):
            where, expected = f"port `{written}`", "a finite number, such as 0.5"
            raise ScenarioError(f"`{match[3]}` is not a start value", where, expected)
        return Port(match[1], (match[2] or "").strip(), start)


PortLike: TypeAlias = str | Port


def parse_ports(written: Iterable[PortLike]) -> tuple[Port, ...]:
    """Return ports from texts or ports."""
    if isinstance(written, str):
        raise ScenarioError(f"ports are a list, not the text `{written}`", expected=f'["{written}"]')
    if not isinstance(written, Iterable):
        raise ScenarioError(f"ports are a list, not {written!r:.60}", expected='["force [N]"]')
    return tuple(Port.of(port) for port in written)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a simulator can do beyond stepping; `hocket.testing` checks that it is true."""

    rewind: bool = False
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
    """A simulator that can go back; abilities.rewind says so."""

    def save(self) -> Any:
        """Return the state, to be kept by the caller."""

    def restore(self, state: Any) -> None:
        """Go back to a saved state; it may be restored many times."""


class OutputDerivativeSimulator(Protocol):
    """A simulator that knows the time derivatives of its outputs; abilities.slopes says so."""

    def slope(self, t: float, u: Array) -> Array:
        """Return the time derivatives of the outputs at t."""


class Model(Protocol):
    """A frozen recipe of a simulator: may be opened many times, in parallel."""

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The input ports, known before anything is loaded."""

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The output ports, each with the inputs it reacts to at once."""

    @property
    def abilities(self) -> Capabilities:
        """What its simulators can do."""

    def open(self) -> Simulator:
        """Make a live simulator."""


class LevelModel(Model, Protocol):
    """A model that holds a scenario: paths reach into it."""

    @property
    def scenario(self) -> Scenario:
        """What is inside."""

    def with_scenario(self, scenario: Scenario) -> LevelModel:
        """Return the same level around another scenario."""


def as_level(model: object) -> LevelModel | None:
    """Return a model that is a level as such, and None for any other."""
    return cast("LevelModel", model) if hasattr(model, "with_scenario") else None


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


@dataclass(frozen=True, slots=True)
class Connection:
    """An input is an output: `target` is driven by `source`, both as paths (`axle.wheel.force`).

    A name without a dot is a port of the scenario itself. The target gets gain * value + offset, after the
    units are converted.
    """

    source: str
    target: str
    extrapolation: Extrapolator | None = None
    """None: that of the level."""
    gain: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Insertion:
    """Why something is there that the author of the scenario did not write."""

    by: str
    """The name of a pass: "loops"."""
    reason: str


Connections: TypeAlias = (
    Mapping[str, "str | tuple[str, Extrapolator | None]"]
    | Iterable["Connection | tuple[str, str] | tuple[str, str, Extrapolator]"]
)


def _connections(written: Connections) -> Iterator[Connection]:
    expected = 'paths: {"right.force": "left.force"}, or ("left.force", Polynomial(1)) as the source'
    if isinstance(written, str) or not isinstance(written, Iterable):
        raise ScenarioError(f"connections cannot be {written!r:.80}", "connections", expected)
    pairs: Iterable[Any] = written
    if isinstance(written, Mapping):
        pairs = [
            (s[0], t, *s[1:]) if s and isinstance(s, (tuple, list)) else (s, t) for t, s in written.items()
        ]
    for pair in pairs:
        ends = (pair.source, pair.target) if isinstance(pair, Connection) else pair
        if not _are_ends(ends):
            raise ScenarioError(f"a connection cannot be made of {pair!r:.80}", "connections", expected)
        yield pair if isinstance(pair, Connection) else Connection(*pair)


def _are_ends(given: Any) -> bool:
    """Return whether what a connection is made of begins with two names."""
    listed = isinstance(given, (tuple, list)) and 2 <= len(given) <= len(fields(Connection))
    return listed and all(isinstance(end, str) for end in given[:2])


@dataclass(frozen=True, init=False)
class Scenario:
    """Models, what connects them, and what is seen from outside.

    `connections` may be given as `{"right.force": "left.force"}` (input: output), as Connections or as
    (source, target) pairs. `record` lists the ports to keep, as paths with wildcards. `bonds` names pairs of
    connections that carry power, `constraints` equations between ports that are no assignments, `hosts` the
    machines that models live on. `inserted` tells which pass of the compiler made a model or a connection.
    """

    models: Mapping[str, Model]
    connections: tuple[Connection, ...] = ()
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    record: tuple[str, ...] = ("*",)
    bonds: Mapping[str, Bond] = field(default_factory=dict)
    constraints: Mapping[str, Constraint] = field(default_factory=dict)
    hosts: Hosts | None = None
    inserted: Mapping[str, Insertion] = field(default_factory=dict)

    def __init__(
        self,
        models: Mapping[str, Model],
        connections: Connections = (),
        inputs: Iterable[PortLike] = (),
        outputs: Iterable[PortLike] = (),
        record: Iterable[str] = ("*",),
        bonds: Mapping[str, Bond] | None = None,
        constraints: Mapping[str, Any] | None = None,
        hosts: Hosts | Mapping[str, Any] | None = None,
        inserted: Mapping[str, Insertion] | None = None,
    ):
        if not isinstance(models, Mapping):
            raise ScenarioError(
                "the models of a scenario have names", expected='{"left": left, "right": right}'
            )
        for name, model in models.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                expected = "letters, digits, _ and -, no dots: dots join paths"
                raise ScenarioError(f"`{name}` cannot name a model", expected=expected)
            if isinstance(model, type) or not hasattr(model, "open"):
                raise ScenarioError(
                    f"`{name}` is no model but {model!r:.60}", expected="such as a StateSpace(...)"
                )
        for name, value in (
            ("models", MappingProxyType(dict(models))),
            ("connections", tuple(_connections(connections))),
            ("inputs", parse_ports(inputs)),
            ("outputs", parse_ports(outputs)),
            ("record", normalise_record(record)),
            ("bonds", MappingProxyType(named_bonds(bonds or {}, models))),
            ("constraints", MappingProxyType(named_constraints(constraints or {}, models))),
            ("hosts", Hosts.of(hosts) if hosts else None),
            ("inserted", MappingProxyType(dict(inserted or {}))),
        ):
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash((tuple(self.models), *self._facts()[1:]))

    def __reduce__(self) -> tuple[Any, ...]:
        return _scenario, ({name: _plain(getattr(self, name)) for name in PARTS},)

    def _facts(self) -> tuple[Any, ...]:
        parts = (getattr(self, name) for name in PARTS)
        return tuple(tuple(part.items()) if isinstance(part, Mapping) else part for part in parts)

    def with_models(self, models: Mapping[str, Model]) -> Scenario:
        """Return the same scenario with other models."""
        return self.with_changes(models=models)

    def with_changes(self, **parts: Any) -> Scenario:
        """Return the same scenario with other parts."""
        return Scenario(**{name: getattr(self, name) for name in PARTS} | parts)

    @cached_property
    def input_names(self) -> frozenset[str]:
        """The names of the scenario's own inputs."""
        return frozenset(port.name for port in self.inputs)

    @cached_property
    def output_names(self) -> frozenset[str]:
        """The names of the scenario's own outputs."""
        return frozenset(port.name for port in self.outputs)


PARTS = tuple(part.name for part in fields(Scenario))
"""The names of what a scenario is made of."""


def _plain(part: Any) -> Any:
    return dict(part) if isinstance(part, Mapping) else part


def _scenario(parts: Mapping[str, Any]) -> Scenario:
    return Scenario(**parts)


class Orchestrator(Protocol):
    """Writes the plan of a level: pure, starts nothing."""

    def plan(self, scenario: Scenario) -> Any:
        """Return the Plan (hocket.plan) of one step of the level."""
