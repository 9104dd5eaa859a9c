"""An SSD as it is written: systems, components, connectors, connections, bindings.

In:  an .ssd in its package
Out: the outermost System, a tree that later stages fill in; every FMU and every parameter set is found, or
     noted as missing
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hocket.errors import FileError, suggest_nearest
from hocket.files.ssp import annotation, foreign_annotations
from hocket.files.ssp.package import Node, Package, open_package
from hocket.files.ssp.parameter_values import (
    ParameterSetting,
    Transformation,
    binding_settings,
    check_version,
    read_mapping,
    read_parameter_set,
    read_transformation,
)
from hocket.files.ssp.unit_definitions import look_up_unit, read_units
from hocket.files.ssp.vocabulary import DEFINITION, FMU, FMU_TYPES, INTERFACES, MAPPING, PACKAGE, SET
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.variables import FLOATS, NamedUnit, element_name, parse_whole


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
    chain: tuple[str, ...] = ()
    """The files and systems that refer to each other down to this one."""

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
    """As an FMU calls it: real, integer ...; empty: not told."""
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
class Tap:
    """A connection to an entry of a signal dictionary: its other end, and the systems down to it."""

    end: ConnectionEnd
    link: SspConnection
    path: tuple[System, ...]
    """From the system that has the dictionary to the one with the connection."""


@dataclass(frozen=True, eq=False)
class SignalDictionary:
    """A signal dictionary: entries that connectors anywhere below its system may share."""

    name: str
    entries: Mapping[str, Connector]
    writers: dict[str, list[Tap]] = field(default_factory=dict)
    """By entry: what is connected to it as a source."""
    readers: dict[str, list[Tap]] = field(default_factory=dict)


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
    asked_step: Fraction | None = None
    """What an annotation of another tool asks for, in seconds."""
    varies_step: bool = False
    """Whether that tool makes shorter steps as well."""


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


_KINDS = (
    "input", "output", "inout", "unspecified", "local", "constant", "parameter", "calculatedParameter",
    "structuralParameter",
)  # fmt: skip


def read_connectors(nodes: Iterable[Node], document: Document) -> dict[str, Connector]:
    """Return connectors, or entries of a dictionary, by name."""
    found: dict[str, Connector] = {}
    for node in nodes:
        name, kind = node.get("name"), node.get("kind")
        if kind and kind not in _KINDS:
            node.fault(f"the connector `{name}` is of the kind `{kind}`", ", ".join(_KINDS))
            kind = ""
        if node.child("Clock"):
            node.fault(f"the connector `{name}` is a clock or has one, which hocket does not tick")
        if name in found:
            node.fault(f"two connectors are named `{name}`", "names that differ")
        typed = next((child for child in node.children if child.tag in FMU_TYPES), None)
        of = FMU_TYPES[typed.tag] if typed else ""
        sizes = tuple(size.get("size") or size.get("sizeConnector") for size in node.all("Dimension"))
        found[name] = Connector(
            name,
            kind,
            of,
            look_up_unit(typed.get("unit"), document.units) if typed and of in FLOATS else None,
            document.enumerations.get(typed.get("name"), {}) if typed else {},
            sizes or None,
            node,
        )
    return found


def read_connection(node: Node) -> SspConnection:
    ends = []
    for side in ("start", "end"):
        written = node.get(f"{side}Indices")
        try:
            indices = tuple(parse_whole(index) for index in written.split())
        except ValueError:
            node.fault(f"the {side}Indices are `{written}`", "whole numbers from 1")
            indices = ()
        ends.append(ConnectionEnd(node.get(f"{side}Element") or None, node.get(f"{side}Connector"), indices))
    start, end = ends
    return SspConnection(start, end, read_transformation(node), node.says("suppressUnitConversion"), node)


def read_enumerations(parent: Node) -> dict[str, dict[str, int]]:
    """Return the enumerations that a file defines: the value of each item."""
    found: dict[str, dict[str, int]] = {}
    for node in parent.all("Enumerations", "Enumeration"):
        items = found.setdefault(node.get("name"), {})
        for item in node.all("Item"):
            name, value = item.get("name"), item.get("value")
            try:
                items[name] = parse_whole(value)
            except ValueError:
                item.fault(f"the item `{name}` is `{value}`", "a whole number")
    return found


_PROXY = re.compile(r"(?:proxyfmu|fmu-proxy)://(?:localhost|127\.0\.0\.1)(?::\d+)?/?\?file=(.+)")
"""An FMU in a process of its own, as other tools write it."""


def read_document(
    package: Package, path: Path, at: Node | None = None, chain: tuple[str, ...] = ()
) -> Document | None:
    """Return an .ssd with its units and enumerations; None after noting what is wrong with it."""
    root = package.root(path, "SystemStructureDescription", at)
    if root is None:
        return None
    check_version(root)
    types = {node.get("type") for node in root.walk() if node.tag == "Annotation"}
    package.findings.foreign |= types - {annotation.TYPE, *foreign_annotations.TYPES}
    ids = {node.get("id"): node for node in root.walk() if node.tag == "System" and node.get("id")}
    units, enumerations = read_units(root), read_enumerations(root)
    return Document(package, path, root, units, enumerations, ids, (*chain, str(path)))


_MEDIA_TYPES = {
    "ParameterSet": ("a parameter binding", SET),
    "ParameterMapping": ("a parameter mapping", MAPPING),
}


def read_bindings(
    element: Node, document: Document, component: Path | None
) -> list[tuple[str, ParameterSetting]]:
    """Return what the bindings of an element set; `component` is where `sourceBase="component"` starts."""
    found: list[tuple[str, ParameterSetting]] = []
    for node in element.all("ParameterBindings", "ParameterBinding"):
        values = _binding_content(node, node.child("ParameterValues"), "ParameterSet", document, component)
        mapping = node.child("ParameterMapping")
        inside = mapping and _binding_content(mapping, mapping, "ParameterMapping", document, component)
        if values is None or (mapping and inside is None):
            continue
        parameters = read_parameter_set(values, document.units)
        mapped = read_mapping(inside) if inside else None
        found += binding_settings(parameters, node.attributes.get("prefix", ""), mapped)
    return found


def _binding_content(
    node: Node, inline: Node | None, tag: str, document: Document, component: Path | None
) -> Node | None:
    """Return the set or mapping that a node refers to, or that stands in it; None after noting a fault."""
    word, media_type = _MEDIA_TYPES[tag]
    if node.get("type") not in ("", media_type):
        node.fault(f"{word} has the type `{node.get('type')}`", f"`{media_type}`")
        return None
    source = node.get("source")
    if not source:
        inside = inline.child(tag) if inline else None
        if inside is None:
            node.fault(f"a <{node.tag}> without a source and without content", f"a <{tag}>")
        return inside
    base, package = document.folder, document.package
    if node.get("sourceBase") == "component":
        if component is None:
            return None  # what is wrong with the component is noted already
        base, package = component, Package(component, "inside the component", True, node.findings)
    path = package.find(source, node, base)
    return package.root(path, tag, node) if path else None


class SystemReader:
    """Reads systems; an FMU that several components refer to is read once."""

    def __init__(self) -> None:
        self.fmus: dict[Path, Fmu | None] = {}

    def outermost(self, document: Document) -> System | None:
        """Return the outermost system of a document; None after noting that it has none."""
        node = document.root.child("System")
        if node is None:
            document.root.fault("there is no <System> in it", "the outermost system")
            return None
        return self.system(node, document)

    def system(self, node: Node, document: Document) -> System:
        """Return a system with everything in it."""
        system = System(node.get("name"), node, document, _own_connectors(node, document))
        system.level = annotation.read_annotation(node, "Level")
        if system.level.get("step") is None:
            system.asked_step, system.varies_step = foreign_annotations.system_step(node)
        system.bindings = read_bindings(node, document, document.folder)
        for child in (child for elements in node.all("Elements") for child in elements.children):
            part = self._read_element(child, document)
            if part is None:
                continue
            if not part.name or part.name in system.parts:
                what = f"two elements are named `{part.name}`" if part.name else "an element has no name"
                child.fault(what, "a name for each element of a system")
                continue
            system.parts[part.name] = part
        system.links = [read_connection(link) for link in node.all("Connections", "Connection")]
        for child in node.all("SignalDictionaries", "SignalDictionary"):
            _read_dictionary(child, system)
        return system

    def _read_element(self, node: Node, document: Document) -> SystemElement | None:
        if node.tag == "System":
            return self.system(node, document)
        if node.tag == "SignalDictionaryReference":
            connectors, dictionary = _own_connectors(node, document), node.get("dictionary")
            return DictionaryReference(node.get("name"), node, document, connectors, dictionary=dictionary)
        if node.tag == "Component":
            # one with a fault has no FMU: connections to it are taken as written
            return self._read_component(node, document) or _new_component(node, document)
        if node.tag != "Annotations":
            known = ("Component", "System", "SignalDictionaryReference")
            node.fault(f"a <{node.tag}> among the elements of a system", "", suggest_nearest(node.tag, known))
        return None

    def _read_component(self, node: Node, document: Document) -> SystemElement | None:
        """Return what a component refers to, an FMU or a system; None after noting a fault."""
        name = node.get("name")
        kind, source = node.get("type").partition(";")[0].strip(), node.get("source")
        if kind not in ("", FMU, PACKAGE, DEFINITION):
            node.fault(f"`{name}` is a component of the type `{kind}`", "an FMU, an SSP or an SSD")
            return None
        if not source:
            node.fault(f"the component `{name}` has no source: there is nothing to run", "an FMU")
            return None
        proxy = _PROXY.fullmatch(source)
        plain, _, fragment = (proxy[1] if proxy else source).partition("#")
        if not plain:
            return self._same_document(node, fragment, document)
        path = document.package.find(plain, node, document.folder)
        if path is None:
            return None
        if kind in (PACKAGE, DEFINITION) or path.suffix.lower() in (".ssp", ".ssd"):
            return self._other_document(node, path, fragment, document)
        component = self._read_fmu(node, path, document)
        if proxy:
            component.options.setdefault("isolate", True)
            node.note(f"`{name}` is run in a process of its own, in place of `{source}`")
        return component

    def _read_fmu(self, node: Node, path: Path, document: Document) -> Component:
        component, wanted = _new_component(node, document), node.get("implementation") or "any"
        component.options = annotation.read_annotation(node, "Model")
        component.asked_step = foreign_annotations.component_step(node)
        if wanted not in INTERFACES:
            node.fault(f"`{component.name}` is to be run by `{wanted}`", "CoSimulation or ModelExchange")
        elif wanted != "any":
            component.options["interface"] = INTERFACES[wanted]
        if path not in self.fmus:
            about = f"`{component.name}`: "
            self.fmus[path] = node.attempt(lambda: Fmu(path.name, folder=path.parent), about)
        component.fmu = self.fmus[path]
        base = component.fmu.unpacked_folder if component.fmu else None
        component.bindings = read_bindings(node, document, base)
        return component

    def _other_document(self, node: Node, path: Path, fragment: str, document: Document) -> System | None:
        """Return the system of another SSP or SSD as an element of this one."""
        try:
            beside = path.suffix.lower() == ".ssd"
            opened = (document.package, path) if beside else open_package(path, node.findings, fragment)
        except FileError as error:
            for fault in error.faults:
                node.fault(f"`{node.get('name')}`: {fault.what}", fault.expected, fault.hint)
            return None
        if str(opened[1]) in document.chain:
            node.fault(f"`{node.get('source')}` holds itself", "files that do not hold themselves")
            return None
        other = read_document(*opened, node, document.chain)
        system = self.outermost(other) if other else None
        return _adopt_system(node, system, document) if system else None

    def _same_document(self, node: Node, fragment: str, document: Document) -> System | None:
        inside = document.ids.get(fragment)
        link = f"{document.path}#{fragment}"
        if inside is None:
            node.fault(f"there is no system with the id `{fragment}`")
        elif link in document.chain:
            node.fault(f"the system `#{fragment}` holds itself")
        else:
            inner = replace(document, chain=(*document.chain, link))
            return _adopt_system(node, self.system(inside, inner), document)
        return None


def _own_connectors(node: Node, document: Document) -> dict[str, Connector]:
    return read_connectors(node.all("Connectors", "Connector"), document)


def _new_component(node: Node, document: Document) -> Component:
    return Component(node.get("name"), node, document, _own_connectors(node, document))


def _read_dictionary(node: Node, system: System) -> None:
    document, inside = system.document, node.child("SignalDictionary")
    if node.get("source"):
        path = document.package.find(node.get("source"), node, document.folder)
        inside = document.package.root(path, "SignalDictionary", node) if path else None
    elif inside is None:
        node.fault("a <SignalDictionary> without a source and without content", "a <SignalDictionary>")
    if inside is None:
        return
    check_version(inside)
    units = {**document.units, **read_units(inside)}
    enumerations = {**document.enumerations, **read_enumerations(inside)}
    own = Document(document.package, document.path, inside, units, enumerations, {})
    entries = read_connectors(inside.all("DictionaryEntry"), own)
    system.dictionaries[node.get("name")] = SignalDictionary(node.get("name"), entries)


def _adopt_system(node: Node, system: System, document: Document) -> System:
    """Return a system under the name of the component that refers to it, whose bindings come last."""
    system.name = node.get("name")
    system.bindings += read_bindings(node, document, system.document.folder)
    return system
