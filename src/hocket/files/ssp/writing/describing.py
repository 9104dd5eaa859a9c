"""Systems, components and connections as XML.

In:  a Composite whose models are FMUs and composites, every level with the ports its connections need
Out: the <System> of an SSD; units and enumerations that it refers to
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from hocket.engine.composite import Composite
from hocket.errors import Fault
from hocket.files.ssp.annotation import annotate, written
from hocket.files.ssp.terms import FMU, INTERFACES
from hocket.files.ssp.units import BASES, Unit, defined, fmu_unit
from hocket.files.ssp.writing.folding import Fold, folded
from hocket.files.ssp.writing.schema import SSC, SSD, TAGS, Needs
from hocket.files.ssp.writing.sets import bound, of_fmu, of_ports
from hocket.model import Port, Scenario
from hocket.simulators.fmu.ports import shape
from hocket.simulators.fmu.recipe import Fmu

_NAMESPACE = SSD[1:-1]
_TAGS = {"real": "Real", "integer": "Integer", "boolean": "Boolean", "enumeration": "Integer"}
_IMPLEMENTATIONS = {name: word for word, name in INTERFACES.items()}


@dataclass
class Writer:
    """Writes systems, and collects what they refer to."""

    sources: Mapping[Any, str]
    """By file: where the FMU is in the archive."""
    needs: Needs = field(default_factory=Needs)
    units: dict[str, Unit] = field(default_factory=dict)
    enumerations: dict[str, Mapping[str, int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def system(self, parent: Element, name: str, composite: Composite) -> None:
        """Append a system with everything in it."""
        fold = folded(composite.scenario)
        scenario = fold.scenario
        node = SubElement(parent, f"{SSD}System", name=name)
        ends = [(port, "input") for port in scenario.inputs] + [(port, "output") for port in scenario.outputs]
        if ends:
            connectors = SubElement(node, f"{SSD}Connectors")
            for port, kind in ends:
                self._port(connectors, port, kind)
        # a name such as `mass.force` would set the variable of `mass` too
        starts = [port for port in scenario.inputs if port.name.partition(".")[0] not in scenario.models]
        bound(node, of_ports(starts), name, self.needs)
        elements = SubElement(node, f"{SSD}Elements")
        for model_name, model in scenario.models.items():
            if isinstance(model, Composite):
                self.system(elements, model_name, model)
            elif isinstance(model, Fmu):
                self._component(elements, model_name, model, scenario)
        if scenario.connections:
            connections = SubElement(node, f"{SSD}Connections")
            for connection in scenario.connections:
                self._connection(connections, connection, fold)
        table, faults = written(fold.level(composite), "Level", name)
        self.faults += faults
        annotate(node, _NAMESPACE, "Level", table)

    def _port(self, parent: Element, port: Port, kind: str) -> None:
        connector = SubElement(parent, f"{SSD}Connector", name=port.name, kind=kind)
        typed = SubElement(connector, f"{SSC}{_TAGS[port.type]}")
        if port.type == "real" and self._unit(port.unit, None):
            typed.set("unit", port.unit)

    def _unit(self, name: str, fmu: Fmu | None) -> bool:
        """Keep a unit that is referred to; False if nobody knows what it is."""
        if not name or name in self.units:
            return bool(name)
        told = fmu_unit(fmu, name) if fmu else None
        unit = told if told and told.exponents else defined(name)
        if unit is not None:
            self.units[name] = unit
        return unit is not None

    def _component(self, parent: Element, name: str, fmu: Fmu, scenario: Scenario) -> None:
        source = self.sources[fmu.file]
        node = SubElement(parent, f"{SSD}Component", name=name, type=FMU, source=source)
        if fmu.interface != "auto":
            node.set("implementation", _IMPLEMENTATIONS[fmu.interface])
        targets, sources = (
            {
                _connector(fmu, path.removeprefix(f"{name}."))[0]
                for path in paths
                if path.startswith(f"{name}.")
            }
            for paths in ([c.target for c in scenario.connections], [c.source for c in scenario.connections])
        )
        outputs = {v.name for v in fmu.description.variables if v.causality == "output" and v.numeric}
        used = [
            v for v in fmu.description.variables if v.name in targets | sources | outputs and not v.alias_of
        ]
        if used:
            connectors = SubElement(node, f"{SSD}Connectors")
            for variable in used:
                self._variable(connectors, fmu, variable.name)
        bound(node, of_fmu(fmu), name, self.needs)
        table, faults = written(fmu, "Model", name)
        self.faults += faults
        annotate(node, _NAMESPACE, "Model", table)

    def _variable(self, parent: Element, fmu: Fmu, name: str) -> None:
        """Append the connector of a variable."""
        variable = fmu.description.by_name[name]
        if variable.causality in ("local", "independent", "structuralParameter"):
            self.needs.second(f"a connector of the kind {variable.causality}")
        kind = "local" if variable.causality == "independent" else variable.causality
        connector = SubElement(parent, f"{SSD}Connector", name=name, kind=kind)
        typed = SubElement(connector, f"{SSC}{self.needs.tag(TAGS[variable.type])}")
        if variable.type == "enumeration":
            typed.set("name", self._enumeration(name, variable.items))
        elif variable.unit and self._unit(variable.unit, fmu):
            typed.set("unit", variable.unit)
        for size in shape(variable, fmu.settings.sizes):
            self.needs.second("an array")
            SubElement(connector, f"{SSC}Dimension", size=str(size))

    def _enumeration(self, name: str, items: Mapping[str, int]) -> str:
        """Return the name of an enumeration with these items."""
        for known, other in self.enumerations.items():
            if other == items:
                return known
        made = re.sub(r"\W", "_", name)
        while made in self.enumerations:
            made += "_"
        self.enumerations[made] = dict(items)
        return made

    def _connection(self, parent: Element, connection: Any, fold: Fold) -> None:
        scenario = fold.scenario
        node = SubElement(parent, f"{SSD}Connection")
        bare = False
        for side, path in (("start", connection.source), ("end", connection.target)):
            own = scenario.input_names if side == "start" else scenario.output_names
            owner, _, name = path.partition(".")
            model = None if path in own else scenario.models[owner]
            indices: tuple[int, ...] = ()
            if model is None:
                name = path
            else:
                node.set(f"{side}Element", owner)
            if isinstance(model, Fmu):
                name, indices = _connector(model, name)
            node.set(f"{side}Connector", name)
            if indices:
                node.set(f"{side}Indices", " ".join(map(str, indices)))
            bare = bare or (not isinstance(model, Fmu) and not _unit_of(scenario, path, side == "start"))
        units = [_unit_of(scenario, connection.source, True), _unit_of(scenario, connection.target, False)]
        # a system's connector without a unit would take that of the other end
        if (bare and any(units)) or connection in fold.suppressed:
            node.set("suppressUnitConversion", "true")
        table = fold.tables.get(connection)
        if table:
            mapping = SubElement(node, f"{SSC}IntegerMappingTransformation")
            for source, target in table:
                SubElement(mapping, f"{SSC}MapEntry", source=str(source), target=str(target))
        elif (connection.gain, connection.offset) != (1.0, 0.0):
            gain, offset = repr(connection.gain), repr(connection.offset)
            SubElement(node, f"{SSC}LinearTransformation", factor=gain, offset=offset)
        own_table, faults = written(connection, "Connection", connection.target)
        self.faults += faults
        annotate(node, _NAMESPACE, "Connection", own_table)

    def definitions(self, root: Element) -> None:
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
                SubElement(node, f"{SSC}BaseUnit", dict(_base(unit)))


def _base(unit: Unit) -> Iterator[tuple[str, str]]:
    yield from ((base, str(power)) for base, power in zip(BASES, unit.exponents, strict=True) if power)
    if unit.factor != 1.0:
        yield "factor", repr(unit.factor)
    if unit.offset:
        yield "offset", repr(unit.offset)


def _connector(fmu: Fmu, port: str) -> tuple[str, tuple[int, ...]]:
    """Return the variable a port belongs to, with its place in the array."""
    if port in fmu.description.by_name:
        return port, ()
    base, _, inside = port.rpartition("[")
    return base, tuple(int(number) for number in inside.rstrip("]").split(","))


def _unit_of(scenario: Scenario, path: str, source: bool) -> str:
    own = scenario.inputs if source else scenario.outputs
    owner, _, name = path.partition(".")
    found = [port for port in own if port.name == path]
    if not found:
        model = scenario.models[owner]
        found = [port for port in (model.outputs if source else model.inputs) if port.name == name]
    return found[0].unit if found else ""
