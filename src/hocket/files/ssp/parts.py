"""An SSD as it is written: systems, components, connectors, connections, bindings.

In:  the nodes of an SSD
Out: Parts, a tree that the later stages fill in
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hocket.files.ssp.package import Node, Package
from hocket.files.ssp.parameter_values import ParameterSetting, Transformation
from hocket.files.ssp.unit_definitions import NamedUnit
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.variables import element_name


@dataclass(frozen=True, eq=False)
class Document:
    """One .ssd: what holds for everything in it."""

    package: Package
    path: Path
    root: Node
    units: Mapping[str, NamedUnit]
    enumerations: Mapping[str, Mapping[str, int]]
    ids: Mapping[str, Node]
    """The systems that can be referred to as `#id`."""

    @property
    def folder(self) -> Path:
        return self.path.parent


@dataclass(frozen=True, eq=False)
class Connector:
    """A connector as it is written; what it leaves open is asked of the FMU, or of what is connected."""

    name: str
    kind: str
    """input, output, parameter ...; empty: not told."""
    type: str
    """Real, Integer ...; empty: not told."""
    unit: NamedUnit | None
    items: Mapping[str, int]
    """Of an enumeration."""
    sizes: tuple[str, ...] | None
    """Of an array: numbers, or names of the connectors that hold them, or nothing; None: a scalar."""
    node: Node


@dataclass(frozen=True)
class ConnectionEnd:
    """One end of a connection."""

    element: str | None
    """None: the system itself."""
    connector: str
    indices: tuple[int, ...]

    def __str__(self) -> str:
        name = element_name(self.connector, self.indices)
        return name if self.element is None else f"{self.element}.{name}"


@dataclass(frozen=True, eq=False)
class SspConnection:
    """A connection; which of the ends is the source follows from what they are."""

    start: ConnectionEnd
    end: ConnectionEnd
    transformation: Transformation
    suppress: bool
    node: Node


@dataclass(frozen=True, eq=False)
class DirectedConnection:
    """A connection with its direction."""

    source: ConnectionEnd
    target: ConnectionEnd
    link: SspConnection
    constant: bool = False
    """Whether it passes a parameter on, before the start, and nothing during the run."""
    then: SspConnection | None = None
    """Of a way through a signal dictionary: the second connection."""
    via: NamedUnit | None = None
    """The unit between the two."""


@dataclass(frozen=True, eq=False)
class SignalDictionary:
    """A signal dictionary: entries that connectors anywhere below its system may share."""

    name: str
    entries: Mapping[str, Connector]
    system: System


@dataclass(eq=False)
class SystemElement:
    """An element of a system."""

    name: str
    node: Node
    document: Document
    connectors: dict[str, Connector] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    """Of connectors that do not tell: what follows from what they are connected with."""
    bindings: list[tuple[str, ParameterSetting]] = field(default_factory=list)
    """What its own bindings set, by the names in it, in the order they are written."""
    values: dict[str, Any] = field(default_factory=dict)
    """What is set in the end: of a system by connector, of a component by variable."""
    settings: dict[str, ParameterSetting] = field(default_factory=dict)
    """Where the values come from."""


@dataclass(eq=False)
class Component(SystemElement):
    """An FMU."""

    fmu: Fmu | None = None
    """As it is, without parameters; None: it could not be read."""
    observed: dict[str, None] = field(default_factory=dict)
    """Variables that are not outputs but are connected."""
    options: dict[str, Any] = field(default_factory=dict)
    """How it is run."""


@dataclass(eq=False)
class DictionaryReference(SystemElement):
    """A place where signals of a dictionary are connected."""

    dictionary: str = ""


@dataclass(eq=False)
class System(SystemElement):
    """A level."""

    parts: dict[str, SystemElement] = field(default_factory=dict)
    links: list[SspConnection] = field(default_factory=list)
    wires: list[DirectedConnection] = field(default_factory=list)
    dictionaries: dict[str, SignalDictionary] = field(default_factory=dict)
    level: dict[str, Any] = field(default_factory=dict)
    """What hocket's own annotation says."""

    def components(self) -> Iterator[Component]:
        """Yield the FMUs in it, at any depth."""
        for part in self.parts.values():
            if isinstance(part, Component):
                yield part
            elif isinstance(part, System):
                yield from part.components()
