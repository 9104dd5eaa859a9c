"""What an SSD defines once and refers to by name: units and enumerations.

In:  the units and enumerations of ports and variables
Out: <Units> and <Enumerations>
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from hocket.errors import Fault
from hocket.files.ssp.annotation import annotate, encode_annotation
from hocket.files.ssp.folding import Fold, fold_models
from hocket.files.ssp.parameter_writer import fmu_values, port_values, write_bindings
from hocket.files.ssp.unit_definitions import BASES, IDENTITY, AffineMap, NamedUnit, fmu_unit, unit_definition
from hocket.files.ssp.vocabulary import FMU, INTERFACES, SSC, SSD, TAGS, Needs
from hocket.model.composite import Composite
from hocket.model.ports import Port
from hocket.model.scenario import Connection, Scenario
from hocket.simulators.fmu.ports import shape
from hocket.simulators.fmu.recipe import Fmu


@dataclass
class Definitions:
    """Collected while a system is written."""

    units: dict[str, NamedUnit] = field(default_factory=dict)
    enumerations: dict[str, Mapping[str, int]] = field(default_factory=dict)

    def add_unit(self, name: str, fmu: Fmu | None) -> bool:
        """Keep a unit that is referred to; False if nobody knows what it is."""
        if not name or name in self.units:
            return bool(name)
        told = fmu_unit(fmu, name) if fmu else None
        unit = told if told and told.exponents else unit_definition(name)
        if unit is not None:
            self.units[name] = unit
        return unit is not None

    def add_enumeration(self, name: str, items: Mapping[str, int]) -> str:
        """Return the name of an enumeration with these items."""
        for known, other in self.enumerations.items():
            if other == items:
                return known
        made = re.sub(r"\W", "_", name)
        while made in self.enumerations:
            made += "_"
        self.enumerations[made] = dict(items)
        return made

    def write(self, root: Element) -> None:
        """Append the enumerations and units that were referred to."""
        if self.enumerations:
            parent = SubElement(root, f"{SSD}Enumerations")
            for name, items in self.enumerations.items():
                node = SubElement(parent, f"{SSC}Enumeration", name=name)
                for item, value in items.items():
                    SubElement(node, f"{SSC}Item", name=item, value=str(value))
        if self.units:
            parent = SubElement(root, f"{SSD}Units")
            for name, unit in self.units.items():
                node = SubElement(parent, f"{SSC}Unit", name=name)
                SubElement(node, f"{SSC}BaseUnit", dict(_base_unit_attributes(unit)))


def _base_unit_attributes(unit: NamedUnit) -> Iterator[tuple[str, str]]:
    yield from ((base, str(power)) for base, power in zip(BASES, unit.exponents, strict=True) if power)
    if unit.factor != 1.0:
        yield "factor", repr(unit.factor)
    if unit.offset:
        yield "offset", repr(unit.offset)


_TAGS = {"real": "Real", "integer": "Integer", "boolean": "Boolean"}
_IMPLEMENTATIONS = {name: word for word, name in INTERFACES.items()}


class ConnectedPorts:
    """The ports that the connections of a scenario name."""

    def __init__(self, scenario: Scenario):
        self.scenario = scenario
        self.own = [{port.name: port for port in ports} for ports in (scenario.outputs, scenario.inputs)]
        self.ports: dict[int, list[dict[str, Port]]] = {}
        self.used: dict[str, list[str]] = {}
        """Per model: its ports that are connected."""
        for connection in scenario.connections:
            for path, source in ((connection.source, True), (connection.target, False)):
                owner, name, _ = self.find_port(path, source)
                self.used.setdefault(owner, []).append(name)

    def find_port(self, path: str, source: bool) -> tuple[str, str, Port]:
        """Return the model, empty for the level itself, the name of the port, and the port."""
        if path in self.own[source]:
            return "", path, self.own[source][path]
        owner, _, name = path.partition(".")
        model = self.scenario.models[owner]
        if id(model) not in self.ports:
            texts = getattr(model, "texts", ((), ()))
            sides = zip((model.inputs, model.outputs), texts, strict=True)
            self.ports[id(model)] = [
                {port.name: port for port in (*ports, *map(Port, names))} for ports, names in sides
            ]
        return owner, name, self.ports[id(model)][source][name]


@dataclass
class SystemWriter:
    """Writes systems, and collects what they refer to."""

    sources: Mapping[Any, str]
    """By file: where the FMU is in the archive."""
    needs: Needs = field(default_factory=Needs)
    terms: Definitions = field(default_factory=Definitions)
    faults: list[Fault] = field(default_factory=list)

    def write_system(self, parent: Element, name: str, composite: Composite) -> None:
        """Append a system with everything in it."""
        fold = fold_models(composite.scenario)
        scenario = fold.scenario
        node = SubElement(parent, f"{SSD}System", name=name)
        if scenario.inputs or scenario.outputs:
            connectors = SubElement(node, f"{SSD}Connectors")
            for kind, ports in (("input", scenario.inputs), ("output", scenario.outputs)):
                for port in ports:
                    self._write_port(connectors, port, kind)
        # a name such as `mass.force` would set the variable of `mass` too
        starts = [port for port in scenario.inputs if port.name.partition(".")[0] not in scenario.models]
        write_bindings(node, port_values(starts), name, self.needs)
        ends = ConnectedPorts(scenario)
        elements = SubElement(node, f"{SSD}Elements")
        for model_name, model in scenario.models.items():
            if isinstance(model, Composite):
                self.write_system(elements, model_name, model)
            elif isinstance(model, Fmu):
                self._write_component(elements, model_name, model, ends)
        if scenario.connections:
            connections = SubElement(node, f"{SSD}Connections")
            for connection in scenario.connections:
                self._write_connection(connections, connection, fold, ends)
        table, faults = encode_annotation(fold.level(composite), "Level", name)
        self.faults += faults
        annotate(node, "Level", table)

    def _write_port(self, parent: Element, port: Port, kind: str) -> None:
        connector = SubElement(parent, f"{SSD}Connector", name=port.name, kind=kind)
        if port.type == "enumeration":
            return  # without a type it is of that of what it leads to
        typed = SubElement(connector, f"{SSC}{_TAGS[port.type]}")
        if port.type == "real" and self.terms.add_unit(port.unit, None):
            typed.set("unit", port.unit)

    def _write_component(self, parent: Element, name: str, fmu: Fmu, ends: ConnectedPorts) -> None:
        """Append an FMU. Inputs that nothing drives are left out: not every tool can do with them."""
        source = self.sources[fmu.file]
        node = SubElement(parent, f"{SSD}Component", name=name, type=FMU, source=source)
        if fmu.interface != "auto":
            node.set("implementation", _IMPLEMENTATIONS[fmu.interface])
        connected = {_connector_and_indices(fmu, port)[0] for port in ends.used.get(name, ())}
        used = [
            variable
            for variable in fmu.description.variables
            if variable.name in connected or (variable.causality == "output" and variable.numeric)
            if not variable.alias_of
        ]
        if used:
            connectors = SubElement(node, f"{SSD}Connectors")
            for variable in used:
                self._write_variable(connectors, fmu, variable.name)
        write_bindings(node, fmu_values(fmu), name, self.needs)
        table, faults = encode_annotation(fmu, "Model", name)
        self.faults += faults
        annotate(node, "Model", table)

    def _write_variable(self, parent: Element, fmu: Fmu, name: str) -> None:
        """Append the connector of a variable."""
        variable = fmu.description.by_name[name]
        if variable.causality in ("local", "independent", "structuralParameter"):
            self.needs.require_version_2(f"a connector of the kind {variable.causality}")
        kind = "local" if variable.causality == "independent" else variable.causality
        connector = SubElement(parent, f"{SSD}Connector", name=name, kind=kind)
        typed = SubElement(connector, f"{SSC}{self.needs.tag(TAGS[variable.type])}")
        if variable.type == "enumeration":
            typed.set("name", self.terms.add_enumeration(name, variable.items))
        elif variable.unit and self.terms.add_unit(variable.unit, fmu):
            typed.set("unit", variable.unit)
        for size in shape(variable, fmu.settings.sizes):
            self.needs.require_version_2("an array")
            SubElement(connector, f"{SSC}Dimension", size=str(size))

    def _write_connection(
        self, parent: Element, connection: Connection, fold: Fold, ends: ConnectedPorts
    ) -> None:
        node = SubElement(parent, f"{SSD}Connection")
        bare, ports = False, []
        for side, path in (("start", connection.source), ("end", connection.target)):
            owner, name, port = ends.find_port(path, side == "start")
            model = fold.scenario.models[owner] if owner else None
            indices: tuple[int, ...] = ()
            if owner:
                node.set(f"{side}Element", owner)
            if isinstance(model, Fmu):
                name, indices = _connector_and_indices(model, name)
            node.set(f"{side}Connector", name)
            if indices:
                node.set(f"{side}Indices", " ".join(map(str, indices)))
            bare = bare or (not isinstance(model, Fmu) and not port.unit)
            ports.append(port)
        # a connector of a system without a unit would take that of the other end
        if (bare and any(port.unit for port in ports)) or connection in fold.suppressed:
            node.set("suppressUnitConversion", "true")
        line = AffineMap(connection.gain, connection.offset)
        if connection in fold.tables:
            _write_map_table(node, "Integer", fold.tables[connection])
            if line != IDENTITY:
                what = f"`{connection.source}` goes through a table of values and a factor"
                self.faults.append(Fault(what, f"connections.{connection.target}", "one of them"))
        elif line != IDENTITY and {port.type for port in ports} == {"boolean"}:
            _write_map_table(node, "Boolean", [(int(x), int(line(x) != 0)) for x in (0.0, 1.0)])
        elif line != IDENTITY:
            gain, offset = repr(connection.gain), repr(connection.offset)
            SubElement(node, f"{SSC}LinearTransformation", factor=gain, offset=offset)
        own_table, faults = encode_annotation(connection, "Connection", connection.target)
        self.faults += faults
        annotate(node, "Connection", own_table)


def _write_map_table(parent: Element, kind: str, table: Iterable[tuple[int, int]]) -> None:
    mapping = SubElement(parent, f"{SSC}{kind}MappingTransformation")
    for source, target in table:
        texts = (str(bool(n)).lower() if kind == "Boolean" else str(n) for n in (source, target))
        SubElement(mapping, f"{SSC}MapEntry", dict(zip(("source", "target"), texts, strict=True)))


def _connector_and_indices(fmu: Fmu, port: str) -> tuple[str, tuple[int, ...]]:
    """Return the variable a port belongs to, with its place in the array."""
    if port in fmu.description.by_name:
        return port, ()
    base, _, inside = port.rpartition("[")
    return base, tuple(int(number) for number in inside.rstrip("]").split(","))
