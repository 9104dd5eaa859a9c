"""From the nodes of an SSD to Parts; components become FMUs, or the systems of the SSPs they refer to.

In:  an .ssd in its package
Out: the outermost System, with every FMU and every parameter set found, or noted as missing
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from hocket.errors import FileError
from hocket.files.ssp import annotation
from hocket.files.ssp.bindings import read_bindings
from hocket.files.ssp.findings import Findings
from hocket.files.ssp.nodes import Node
from hocket.files.ssp.package import Package, opened
from hocket.files.ssp.parameters import REALS, TYPES, check_version
from hocket.files.ssp.parts import (
    Component,
    Connector,
    Dictionary,
    Document,
    End,
    Link,
    Part,
    Reference,
    System,
)
from hocket.files.ssp.transformations import TRUTHS, read_transformation
from hocket.files.ssp.units import Unit, named, read_units
from hocket.simulators.fmu.recipe import Fmu

FMU, PACKAGE, DEFINITION = (
    f"application/x-{kind}" for kind in ("fmu-sharedlibrary", "ssp-package", "ssp-definition")
)
_INTERFACES = {"": "auto", "any": "auto", "CoSimulation": "co-simulation", "ModelExchange": "model-exchange"}
_KINDS = (
    "input", "output", "inout", "unspecified", "local", "constant", "parameter", "calculatedParameter",
    "structuralParameter",
)  # fmt: skip


def read_document(package: Package, path: Path, at: Node | None, findings: Findings) -> Document | None:
    """Return an .ssd with its units and enumerations; None after noting what is wrong with it."""
    root = package.root(path, "SystemStructureDescription", at, findings)
    if root is None:
        return None
    check_version(root, findings)
    annotation.foreign(root, findings)
    ids = {node.get("id"): node for node in _systems(root) if node.get("id")}
    return Document(package, path, root, read_units(root, findings), read_enumerations(root, findings), ids)


def read_enumerations(parent: Node, findings: Findings) -> dict[str, dict[str, int]]:
    """Return the enumerations that a file defines: the value of each item."""
    found: dict[str, dict[str, int]] = {}
    for node in parent.all("Enumerations", "Enumeration"):
        items = found.setdefault(node.get("name"), {})
        for item in node.all("Item"):
            try:
                items[item.get("name")] = int(item.get("value"))
            except ValueError:
                findings.fault(
                    item, f"the item `{item.get('name')}` is `{item.get('value')}`", "a whole number"
                )
    return found


def _systems(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.tag == "System":
            yield child
        yield from _systems(child)


class Reader:
    """Reads systems; `chain` are the documents and systems that refer to each other down to here."""

    def __init__(self, findings: Findings):
        self.findings = findings
        self.fmus: dict[Path, Fmu | None] = {}

    def outermost(self, document: Document, chain: tuple[str, ...] = ()) -> System | None:
        """Return the system of a document."""
        node = document.root.child("System")
        if node is None:
            self.findings.fault(document.root, "there is no <System> in it", "the outermost system")
            return None
        return self.system(node, document, (*chain, str(document.path)))

    def system(self, node: Node, document: Document, chain: tuple[str, ...]) -> System:
        """Return a system with everything in it."""
        findings = self.findings
        system = System(node.get("name"), node, document, self.connectors(node, document))
        system.level = annotation.read_annotation(node, "Level", findings)
        system.bindings = read_bindings(node, document, document.folder, findings)
        for child in (child for elements in node.all("Elements") for child in elements.children):
            part = self._part(child, document, chain)
            if part is None:
                continue
            if not part.name or part.name in system.parts:
                what = f"two elements are named `{part.name}`" if part.name else "an element has no name"
                findings.fault(child, what, "a name for each element of a system")
                continue
            system.parts[part.name] = part
        system.links = [self._link(link) for link in node.all("Connections", "Connection")]
        for child in node.all("SignalDictionaries", "SignalDictionary"):
            self._dictionary(child, system)
        return system

    def _part(self, node: Node, document: Document, chain: tuple[str, ...]) -> Part | None:
        if node.tag == "System":
            return self.system(node, document, chain)
        if node.tag == "SignalDictionaryReference":
            connectors = self.connectors(node, document)
            return Reference(node.get("name"), node, document, connectors, dictionary=node.get("dictionary"))
        if node.tag == "Component":
            return self._component(node, document, chain)
        return None

    def connectors(self, node: Node, document: Document, tag: str = "Connector") -> dict[str, Connector]:
        """Return the connectors of an element, or the entries of a dictionary."""
        found: dict[str, Connector] = {}
        entries = node.all("Connectors", tag) if tag == "Connector" else node.all(tag)
        for entry in entries:
            name, kind = entry.attributes.get("name", ""), entry.get("kind")
            if kind and kind not in _KINDS:
                self.findings.fault(
                    entry, f"the connector `{name}` is of the kind `{kind}`", ", ".join(_KINDS)
                )
                kind = ""
            if entry.child("Clock"):
                self.findings.fault(entry, f"the connector `{name}` is a clock, which hocket does not tick")
            typed = next((child for child in entry.children if child.tag in TYPES), None)
            sizes = tuple(size.get("size") or size.get("sizeConnector") for size in entry.all("Dimension"))
            found[name] = Connector(
                name,
                kind,
                typed.tag if typed else "",
                named(typed.get("unit"), document.units) if typed and typed.tag in REALS else None,
                document.enumerations.get(typed.get("name"), {}) if typed else {},
                sizes or None,
                entry,
            )
        return found

    def _link(self, node: Node) -> Link:
        ends = []
        for side in ("start", "end"):
            try:
                indices = tuple(int(index) for index in node.get(f"{side}Indices").split())
            except ValueError:
                self.findings.fault(
                    node, f"the {side}Indices are `{node.get(f'{side}Indices')}`", "numbers from 1"
                )
                indices = ()
            element = node.attributes.get(f"{side}Element") or None
            ends.append(End(element, node.attributes.get(f"{side}Connector", ""), indices))
        suppress = TRUTHS.get(node.get("suppressUnitConversion").lower(), False)
        return Link(ends[0], ends[1], read_transformation(node, self.findings), suppress, node)

    def _dictionary(self, node: Node, system: System) -> None:
        document = system.document
        inside: Node | None = node.child("SignalDictionary")
        if node.get("source"):
            path = document.package.find(node.get("source"), node, document.folder, self.findings)
            inside = document.package.root(path, "SignalDictionary", node, self.findings) if path else None
        if inside is None:
            return
        check_version(inside, self.findings)
        units: Mapping[str, Unit] = {**document.units, **read_units(inside, self.findings)}
        enumerations = {**document.enumerations, **read_enumerations(inside, self.findings)}
        own = Document(document.package, document.path, inside, units, enumerations, {})
        entries = self.connectors(inside, own, "DictionaryEntry")
        system.dictionaries[node.get("name")] = Dictionary(node.get("name"), entries, system)

    def _component(self, node: Node, document: Document, chain: tuple[str, ...]) -> Part | None:
        findings, name = self.findings, node.get("name")
        kind, source = node.get("type").partition(";")[0].strip(), node.get("source")
        if kind not in ("", FMU, PACKAGE, DEFINITION):
            what = f"`{name}` is a component of the type `{kind}`"
            findings.fault(node, what, "an FMU, an SSP or an SSD")
            return self._unread(node, document)
        if not source:
            findings.fault(node, f"the component `{name}` has no source: there is nothing to run", "an FMU")
            return self._unread(node, document)
        plain, _, fragment = source.partition("#")
        if not plain:
            return self._same_document(node, fragment, document, chain)
        path = document.package.find(plain, node, document.folder, findings)
        if path is None:
            return self._unread(node, document)
        ending = path.suffix.lower()
        if kind in (PACKAGE, DEFINITION) or ending in (".ssp", ".ssd"):
            return self._inner(node, path, fragment, document, chain)
        return self._fmu(node, path, document)

    def _unread(self, node: Node, document: Document) -> Component:
        """Return a component that stands for one with a fault, so that connections to it are understood."""
        return Component(node.get("name"), node, document, self.connectors(node, document))

    def _fmu(self, node: Node, path: Path, document: Document) -> Component:
        findings, wanted = self.findings, node.get("implementation")
        component = Component(node.get("name"), node, document, self.connectors(node, document))
        component.options = annotation.read_annotation(node, "Model", findings)
        if wanted not in _INTERFACES:
            what = f"`{component.name}` is to be run by `{wanted}`"
            findings.fault(node, what, "CoSimulation or ModelExchange")
        elif wanted not in ("", "any"):
            component.options["interface"] = _INTERFACES[wanted]
        if path not in self.fmus:
            self.fmus[path] = findings.tried(node, lambda: Fmu(path), f"`{component.name}`: ")
        component.fmu = self.fmus[path]
        base = component.fmu.unpacked if component.fmu else document.folder
        component.bindings = read_bindings(node, document, base, findings)
        return component

    def _inner(
        self, node: Node, path: Path, fragment: str, document: Document, chain: tuple[str, ...]
    ) -> Part | None:
        """Return the system of another SSP or SSD as an element of this one."""
        findings = self.findings
        try:
            package, inside = (
                (document.package, path) if path.suffix.lower() == ".ssd" else opened(path, fragment)
            )
        except FileError as error:
            for fault in error.faults:
                findings.fault(node, f"`{node.get('name')}`: {fault.what}", fault.expected, fault.hint)
            return self._unread(node, document)
        if str(inside) in chain:
            findings.fault(node, f"`{node.get('source')}` holds itself", "files that do not hold themselves")
            return self._unread(node, document)
        other = read_document(package, inside, node, findings)
        system = self.outermost(other, chain) if other else None
        return self._named(node, system, document) if system else self._unread(node, document)

    def _same_document(
        self, node: Node, fragment: str, document: Document, chain: tuple[str, ...]
    ) -> Part | None:
        inside = document.ids.get(fragment)
        link = f"{document.path}#{fragment}"
        if inside is None:
            self.findings.fault(node, f"there is no system with the id `{fragment}`")
            return self._unread(node, document)
        if link in chain:
            self.findings.fault(node, f"the system `#{fragment}` holds itself")
            return self._unread(node, document)
        return self._named(node, self.system(inside, document, (*chain, link)), document)

    def _named(self, node: Node, system: System, document: Document) -> System:
        """Return a system under the name of the component that refers to it, whose bindings come last."""
        system.name = node.get("name")
        system.bindings += read_bindings(node, document, system.document.folder, self.findings)
        return system
