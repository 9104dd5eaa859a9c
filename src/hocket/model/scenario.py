"""What is coupled with what: models, connections between their ports, and what is seen from outside.

In:  models by name, connections as paths
Out: frozen data; nothing is opened here
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from hocket.errors import ScenarioError, count, list_names
from hocket.model.arguments import (
    check_names,
    expect,
    is_number,
    normalise_record,
    set_fields,
)
from hocket.model.bonds import Bond, named_bonds
from hocket.model.constraints import Constraint, named_constraints
from hocket.model.hosts import Hosts
from hocket.model.memo import Remembering
from hocket.model.ports import Port, PortLike, parse_ports
from hocket.model.protocols import Extrapolator, Model, is_model
from hocket.model.terminals import connect_terminals, has_terminals

if TYPE_CHECKING:
    from hocket.model.crossings import Crossing


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

    def __post_init__(self) -> None:
        for name, value in (("gain", self.gain), ("offset", self.offset)):
            expect(is_number(value), name, value, "a finite number", where=f"connection of `{self.target}`")


@dataclass(frozen=True, slots=True)
class Insertion:
    """Why something is there that the author of the scenario did not write."""

    by: str
    """The name of a pass: "loops"."""
    reason: str


def _insertions(inserted: object) -> dict[str, Insertion]:
    expected = '{"solver": Insertion("loops", "why")}'
    fits = isinstance(inserted, Mapping) and all(isinstance(each, Insertion) for each in inserted.values())
    expect(fits, "inserted", inserted, expected)
    return dict(inserted)  # type: ignore[call-overload, no-any-return]


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


def _port_connections(written: Connections, models: Mapping[str, Any]) -> tuple[Connection, ...]:
    """Return connections between ports: those between terminals become those of their members."""
    found = tuple(_connections(written))
    if not any(map(has_terminals, models.values())):
        return found
    return connect_terminals(models, found)


def _are_ends(given: Any) -> bool:
    """Return whether what a connection is made of begins with two names."""
    listed = isinstance(given, (tuple, list)) and 2 <= len(given) <= len(fields(Connection))
    return listed and all(isinstance(end, str) for end in given[:2])


def _named_crossings(crossings: Any, models: Mapping[str, Model]) -> dict[str, Crossing]:
    if crossings is None or (isinstance(crossings, Mapping) and not crossings):
        return {}
    from hocket.model.crossings import named_crossings  # here: few scenarios have any

    return named_crossings(crossings, models)


@dataclass(frozen=True, init=False, repr=False)
class Scenario(Remembering):
    """Models, what connects them, and what is seen from outside.

    `connections` may be given as `{"right.force": "left.force"}` (input: output), as Connections or as
    (source, target) pairs. `record` lists the ports to keep, as paths with wildcards. `bonds` names pairs of
    connections that carry power, `constraints` equations between ports that are not assignments, `hosts` the
    machines that models live on. `inserted` tells which pass of the compiler made a model or a connection.
    `crossings` names events where an output passes a value: `{"bounce": Crossing("ball.h", "falling")}`.
    Two terminals of FMUs are connected by their names, `{"node.CanChannel": "bus.Node1"}`: what is kept are
    the connections of their members.
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
    crossings: Mapping[str, Crossing] = field(default_factory=dict)

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
        crossings: Mapping[str, Crossing] | None = None,
    ):
        check_names(models, "model", '{"left": left, "right": right}')
        for name, model in models.items():
            if not is_model(model):
                what = f"`{name}` is not a model but {model!r:.60}"
                raise ScenarioError(what, expected="such as a StateSpace(...)")
        set_fields(
            self,
            models=MappingProxyType(dict(models)),
            connections=_port_connections(connections, models),
            inputs=parse_ports(inputs),
            outputs=parse_ports(outputs),
            record=normalise_record(record),
            bonds=MappingProxyType(named_bonds({} if bonds is None else bonds, models)),
            constraints=MappingProxyType(
                named_constraints({} if constraints is None else constraints, models)
            ),
            hosts=None if hosts is None or (isinstance(hosts, Mapping) and not hosts) else Hosts.of(hosts),
            inserted=MappingProxyType(_insertions({} if inserted is None else inserted)),
            crossings=MappingProxyType(_named_crossings(crossings, models)),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash((tuple(self.models), *self._facts()[1:]))

    def __reduce__(self) -> tuple[Any, ...]:
        return _scenario, ({name: _plain(getattr(self, name)) for name in PARTS},)

    def __repr__(self) -> str:
        return f"<Scenario: {list_names(self.models, 8)}; {count(len(self.connections), 'connection')}>"

    def _repr_html_(self) -> str:
        from hocket.model.html import html_view  # here: notebooks only

        return html_view("Scenario", {}, self.html_parts())

    def html_parts(self) -> str:
        """Return what notebooks show of it: its models and its connections, as HTML."""
        from hocket.model.html import html_details, html_table

        models = [
            {
                "model": name,
                "kind": type(model).__name__,
                "inputs": ", ".join(str(port.name) for port in model.inputs),
                "outputs": ", ".join(str(port.name) for port in model.outputs),
            }
            for name, model in self.models.items()
        ]
        wires = [{"input": wire.target, "output": wire.source} for wire in self.connections]
        return html_table(models) + html_details("connections", html_table(wires))

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
    def has_terminals(self) -> bool:
        """Whether one of the models has terminals, also inside a level."""
        return any(map(has_terminals, self.models.values()))

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
