"""From an experiment to an SSP: systems, with the units and enumerations that they refer to by name.

In:  an Experiment whose models are FMUs, or models that an SSP writes as a part of a connection
Out: an .ssp
"""

from __future__ import annotations

import re
import zipfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement, register_namespace

from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import scenario_faults
from hocket.errors import Fault, FileError, ScenarioError
from hocket.files.atomic_files import replace_file
from hocket.files.ssp.annotation import NAMESPACE, annotate, encode_annotation
from hocket.files.ssp.package import ImportFindings, MalformedError, parse_xml
from hocket.files.ssp.unit_definitions import IDENTITY, AffineMap, fmu_unit, unit_definition
from hocket.files.ssp.vocabulary import (
    DEFAULT,
    FMU,
    INTERFACES,
    LOOKUP,
    NAMESPACES,
    SSC,
    SSD,
    SSV,
    TAGS,
)
from hocket.model.arguments import free_name
from hocket.model.clock import seconds
from hocket.model.composite import Composite, traits_of
from hocket.model.experiment import Experiment
from hocket.model.ports import Port
from hocket.model.protocols import Model, text_ports
from hocket.model.scenario import Connection, Scenario
from hocket.model.units import conversion
from hocket.simulators.fmu.ports import shape
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.variables import BASES, SIZED, FmuVariable, NamedUnit, split_element
from hocket.simulators.python import Python
from hocket.simulators.state_space import StateSpace


@dataclass
class Definitions:
    """Collected while a system is written."""

    units: dict[str, NamedUnit] = field(default_factory=dict)
    enumerations: dict[str, Mapping[str, int]] = field(default_factory=dict)

    def add_unit(self, name: str, fmu: Fmu | None) -> bool:
        """Keep a unit that is referred to; False if it is not known what it is."""
        if not name or name in self.units:
            return bool(name)
        told = fmu_unit(fmu.description, name) if fmu else None
        unit = told if told and told.exponents else unit_definition(name)
        if unit is not None:
            self.units[name] = unit
        return unit is not None

    def add_enumeration(self, name: str, items: Mapping[str, int]) -> str:
        """Return the name of an enumeration with these items."""
        for known, other in self.enumerations.items():
            if other == items:
                return known
        made = free_name(re.sub(r"\W", "_", name), self.enumerations)
        self.enumerations[made] = dict(items)
        return made

    def write(self, root: Element) -> None:
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


_IMPLEMENTATIONS = {name: word for word, name in INTERFACES.items()}


class ConnectedPorts:
    """The ports that the connections of a scenario name."""

    def __init__(self, scenario: Scenario):
        self.targets = {port.name: ("", port) for port in scenario.outputs}
        """By path: the model, empty for the level itself, and the port."""
        self.sources = {port.name: ("", port) for port in scenario.inputs}
        for name, model in scenario.models.items():
            texts_in, texts_out = text_ports(model)
            for port in (*model.inputs, *map(Port, texts_in)):
                self.targets.setdefault(f"{name}.{port.name}", (name, port))
            for port in (*model.outputs, *map(Port, texts_out)):
                self.sources.setdefault(f"{name}.{port.name}", (name, port))
        self.used: dict[str, set[str]] = defaultdict(set)
        """Per model: its ports that are connected."""
        for connection in scenario.connections:
            for owner, port in (self.sources[connection.source], self.targets[connection.target]):
                self.used[owner].add(port.name)

    def effect(self, connection: Connection) -> AffineMap:
        """Return what a connection does to a number, units and all."""
        (_, source), (_, target) = self.sources[connection.source], self.targets[connection.target]
        units = AffineMap(*conversion(source.unit, target.unit))
        return units.then(AffineMap(connection.gain, connection.offset))


@dataclass(frozen=True)
class Fold:
    """A scenario with some models folded into its connections: factors, and the tables of an import."""

    scenario: Scenario
    gone: frozenset[str] = frozenset()
    tables: dict[Connection, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """Of connections that hold the whole effect, so that units are not to be converted again."""

    def level(self, composite: Composite) -> Composite:
        """Return the level around this scenario; an order no longer names the models that are gone."""
        orchestrator: Any = composite.orchestrator
        given = traits_of(orchestrator).order
        if given is not None and given != "auto" and self.gone:
            groups = [
                group if isinstance(group, str) else tuple(name for name in group if name not in self.gone)
                for group in given
                if group not in self.gone
            ]
            orchestrator = replace(orchestrator, order=tuple(group for group in groups if group))
        return composite.with_changes(scenario=self.scenario, orchestrator=orchestrator)


def foldable(name: str, model: Model, driven: Collection[str]) -> bool:
    """Return whether a model is a factor, or a table that an import has made, and something drives it."""
    if isinstance(model, Python):
        return model.cls == LOOKUP and f"{name}.u" in driven
    alone = isinstance(model, StateSpace) and not model.A and len(model.inputs) == len(model.outputs) == 1
    return alone and f"{name}.{model.inputs[0].name}" in driven


def fold_models(scenario: Scenario) -> Fold:
    """Return a scenario without the models that a connection can stand for."""
    driven = {c.target for c in scenario.connections if c.target not in scenario.output_names}
    gone = {name for name, model in scenario.models.items() if foldable(name, model, driven)}
    if not gone:
        return Fold(scenario)
    ends = ConnectedPorts(scenario)
    kept: list[Connection] = []
    tables: dict[Connection, tuple[tuple[int, int], ...]] = {}
    for connection in scenario.connections:
        owner = connection.source.partition(".")[0]
        if connection.target.partition(".")[0] in gone and connection.target not in scenario.output_names:
            continue
        if owner not in gone or connection.source in scenario.input_names:
            kept.append(connection)
            continue
        line, table, source = _trace_source(scenario, connection, gone, ends)
        made = replace(connection, source=source, gain=line.gain, offset=line.offset)
        kept.append(made)
        tables[made] = table
    models = {name: model for name, model in scenario.models.items() if name not in gone}
    left = scenario.with_changes(models=models, connections=kept)
    return Fold(left, frozenset(gone), tables)


def _trace_source(
    scenario: Scenario, connection: Connection, gone: set[str], ends: ConnectedPorts
) -> tuple[AffineMap, tuple[tuple[int, int], ...], str]:
    """Return what happens between the first model that stays and the target, and the first source."""
    line = ends.effect(connection)
    table: tuple[tuple[int, int], ...] = ()
    source = connection.source
    while source not in scenario.input_names and source.partition(".")[0] in gone:
        name = source.partition(".")[0]
        model = scenario.models[name]
        if isinstance(model, StateSpace):
            line = AffineMap(model.D[0][0]).then(line)
        elif isinstance(model, Python):
            table = tuple((int(a), int(b)) for a, b in model.parameters.get("table", ()))
        before = next(c for c in scenario.connections if c.target == f"{name}.{model.inputs[0].name}")
        line, source = ends.effect(before).then(line), before.source
    return line, table, source


class ParameterValue(NamedTuple):
    """A value to be written: flat, with the sizes of its array."""

    name: str
    tag: str
    values: list[Any]
    sizes: tuple[int, ...] = ()


def write_bindings(parent: Element, values: Iterable[ParameterValue], name: str) -> None:
    """Append the bindings of an element; nothing for no values."""
    written = list(values)
    if not written:
        return
    binding = SubElement(SubElement(parent, f"{SSD}ParameterBindings"), f"{SSD}ParameterBinding")
    inline = SubElement(SubElement(binding, f"{SSD}ParameterValues"), f"{SSV}ParameterSet", name=name)
    parameters = SubElement(inline, f"{SSV}Parameters")
    for value in written:
        parameter = SubElement(parameters, f"{SSV}Parameter", name=value.name)
        typed = SubElement(parameter, f"{SSV}{value.tag}")
        texts = [_format_value(value.tag, each) for each in value.values]
        if value.tag in ("String", "Enumeration", "Binary") and len(texts) != 1:
            for text in texts:
                SubElement(typed, f"{SSV}Value", value=text)
        else:
            typed.set("value", " ".join(texts))
        for size in value.sizes:
            SubElement(parameter, f"{SSC}Dimension", size=str(size))


def _format_value(tag: str, value: Any) -> str:
    if tag == "Boolean":
        return "true" if value else "false"
    if tag == "Binary":
        return bytes(value).hex()
    return repr(float(value)) if tag in ("Real", "Float32") else str(value)


def port_values(ports: Iterable[Port]) -> Iterator[ParameterValue]:
    for port in ports:
        if port.start is not None:
            whole = port.type != "real" and float(port.start).is_integer()
            tag = ("Boolean" if port.type == "boolean" else "Integer") if whole else "Real"
            yield ParameterValue(port.name, tag, [int(port.start) if whole else port.start])


def fmu_values(fmu: Fmu) -> Iterator[ParameterValue]:
    """Yield what an FMU is given, arrays whole."""
    for name, given in fmu.settings.given.items():
        variable = fmu.description.by_name[name]
        tag, values = TAGS[variable.type], list(given)
        if variable.type == "enumeration":
            items = {number: item for item, number in variable.items.items()}
            named = [items.get(value) for value in values]
            tag, values = ("Integer", values) if None in named else (tag, named)
        yield ParameterValue(name, tag, values, shape(variable, fmu.settings.sizes))


@dataclass
class SystemWriter:
    """Writes systems, and collects what they refer to."""

    sources: Mapping[Any, str]
    """By file: where the FMU is in the archive."""
    terms: Definitions = field(default_factory=Definitions)
    faults: list[Fault] = field(default_factory=list)

    def write_system(self, parent: Element, name: str, composite: Composite) -> None:
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
        write_bindings(node, port_values(starts), name)
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
        self.annotate(node, "Level", fold.level(composite), name)

    def annotate(self, node: Element, element: str, thing: Any, place: str) -> None:
        """Append what SSP has no words for."""
        table, faults = encode_annotation(thing, element, place)
        self.faults += faults
        annotate(node, element, table)

    def _write_port(self, parent: Element, port: Port, kind: str) -> None:
        connector = SubElement(parent, f"{SSD}Connector", name=port.name, kind=kind)
        if port.type != "enumeration":  # without a type it is of that of what it leads to
            typed = SubElement(connector, f"{SSC}{TAGS[port.type]}")
            if port.type == "real" and self.terms.add_unit(port.unit, None):
                typed.set("unit", port.unit)
        self.annotate(connector, "Connector", port, port.name)

    def _write_component(self, parent: Element, name: str, fmu: Fmu, ends: ConnectedPorts) -> None:
        """Append an FMU. Inputs that nothing drives are left out: not every tool can do with them."""
        source = self.sources[fmu.file]
        node = SubElement(parent, f"{SSD}Component", name=name, type=FMU, source=source)
        if fmu.interface != "auto":
            node.set("implementation", _IMPLEMENTATIONS[fmu.interface])
        connected = {_connector_and_indices(fmu, port)[0] for port in ends.used[name]}
        used = [
            variable
            for variable in fmu.description.variables
            if variable.name in connected or (variable.causality == "output" and variable.numeric)
            if not variable.alias_of
        ]
        if used:
            connectors = SubElement(node, f"{SSD}Connectors")
            for variable in used:
                self._write_variable(connectors, fmu, variable)
        write_bindings(node, fmu_values(fmu), name)
        self.annotate(node, "Model", fmu, name)

    def _write_variable(self, parent: Element, fmu: Fmu, variable: FmuVariable) -> None:
        kind = "local" if variable.causality == "independent" else variable.causality
        connector = SubElement(parent, f"{SSD}Connector", name=variable.name, kind=kind)
        typed = SubElement(connector, f"{SSC}{TAGS[variable.type]}")
        if variable.type == "enumeration":
            typed.set("name", self.terms.add_enumeration(variable.name, variable.items))
        elif variable.unit and self.terms.add_unit(variable.unit, fmu):
            typed.set("unit", variable.unit)
        for size in shape(variable, fmu.settings.sizes):
            SubElement(connector, f"{SSC}Dimension", size=str(size))

    def _write_connection(
        self, parent: Element, connection: Connection, fold: Fold, ends: ConnectedPorts
    ) -> None:
        node = SubElement(parent, f"{SSD}Connection")
        bare, ports = False, []
        source, target = ends.sources[connection.source], ends.targets[connection.target]
        for side, (owner, port) in (("start", source), ("end", target)):
            name = port.name
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
        if (bare and any(port.unit for port in ports)) or connection in fold.tables:
            node.set("suppressUnitConversion", "true")
        line = AffineMap(connection.gain, connection.offset)
        if table := fold.tables.get(connection):
            _write_map_table(node, "Integer", table)
            if line != IDENTITY:
                what = f"`{connection.source}` goes through a table of values and a factor"
                self.faults.append(Fault(what, f"connections.{connection.target}", "one of them"))
        elif line != IDENTITY and {port.type for port in ports} == {"boolean"}:
            _write_map_table(node, "Boolean", [(int(x), int(line.at(x) != 0)) for x in (0.0, 1.0)])
        elif line != IDENTITY:
            gain, offset = repr(connection.gain), repr(connection.offset)
            SubElement(node, f"{SSC}LinearTransformation", factor=gain, offset=offset)
        self.annotate(node, "Connection", connection, connection.target)


def _write_map_table(parent: Element, kind: str, table: Iterable[tuple[int, int]]) -> None:
    mapping = SubElement(parent, f"{SSC}{kind}MappingTransformation")
    for source, target in table:
        texts = (str(bool(n)).lower() if kind == "Boolean" else str(n) for n in (source, target))
        SubElement(mapping, f"{SSC}MapEntry", dict(zip(("source", "target"), texts, strict=True)))


def _connector_and_indices(fmu: Fmu, port: str) -> tuple[str, tuple[int, ...]]:
    """Return the variable a port belongs to, with its place in the array."""
    return (port, ()) if port in fmu.description.by_name else split_element(port)


_WHEN = (2000, 1, 1, 0, 0, 0)
"""The same experiment gives the same bytes."""


def write_ssp(what: Experiment | Composite, path: Path | str) -> None:
    """Write an SSP, 1.0 unless something in it needs 2.0; raises ScenarioError for what is not an FMU.

    Connections that reach into a level get connectors there. A factor (`Gain`) becomes a part of its
    connection. What SSP has no words for stands in annotations, which `read_ssp` reads back.
    """
    file = Path(path)
    experiment = what if isinstance(what, Experiment) else Experiment(what)
    scenario = with_level_ports(experiment.composite.scenario)
    faults = [*_unsupported_models(scenario), *scenario_faults(scenario)]
    if faults:
        raise ScenarioError(faults)
    composite = experiment.composite.with_scenario(scenario)
    sources = _sources(scenario)
    text = ssd_text(replace(experiment, composite=composite, name=experiment.name or file.stem), sources)
    with replace_file(file, FileError) as fresh, zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(DEFAULT, _WHEN), text, zipfile.ZIP_DEFLATED)
        for fmu, name in sources.items():
            _add_fmu(archive, fmu, name)


def _unsupported_models(scenario: Scenario, path: str = "") -> Iterator[Fault]:
    """Yield the models that an SSP cannot hold."""
    driven = {connection.target for connection in scenario.connections}
    for name, model in scenario.models.items():
        if isinstance(model, Composite):
            yield from _unsupported_models(model.scenario, f"{path}{name}.")
        elif not isinstance(model, Fmu) and not foldable(name, model, driven):
            what = f"`{path}{name}` is a {type(model).__name__}, and an SSP holds FMUs"
            yield Fault(what, f"models.{path}{name}", "an FMU, or a level of FMUs")


def _fmus(scenario: Scenario) -> Iterator[Fmu]:
    for model in scenario.models.values():
        if isinstance(model, Composite):
            yield from _fmus(model.scenario)
        elif isinstance(model, Fmu):
            yield model


def _sources(scenario: Scenario) -> dict[Path, str]:
    """Return the place of each FMU in the archive, by its file."""
    sources: dict[Path, str] = {}
    for fmu in _fmus(scenario):
        if fmu.file not in sources:
            used = {Path(name).stem for name in sources.values()}
            sources[fmu.file] = f"resources/{free_name(fmu.file.stem, used)}.fmu"
    return sources


def _add_fmu(archive: zipfile.ZipFile, fmu: Path, name: str) -> None:
    if fmu.is_file():
        archive.writestr(zipfile.ZipInfo(name, _WHEN), fmu.read_bytes(), zipfile.ZIP_STORED)
        return
    with archive.open(zipfile.ZipInfo(name, _WHEN), "w") as inner, zipfile.ZipFile(inner, "w") as packed:
        for file in sorted(fmu.rglob("*")):
            if file.is_file():
                entry = zipfile.ZipInfo(file.relative_to(fmu).as_posix(), _WHEN)
                packed.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)


def _is_new(node: Element) -> bool:
    """Return whether SSP 1.0 does not have an element: arrays, some types, some kinds of connectors."""
    tag = node.tag.partition("}")[2]
    return tag in ("Dimension", *SIZED) or node.get("kind") in ("local", "structuralParameter")


def ssd_text(experiment: Experiment, sources: dict[Path, str]) -> bytes:
    for prefix, namespace in {**NAMESPACES, "hocket": NAMESPACE}.items():
        register_namespace(prefix, namespace)
    writer = SystemWriter(sources)
    root = Element(f"{SSD}SystemStructureDescription", name=experiment.name)
    root.set("generationTool", "hocket")
    writer.write_system(root, "root", experiment.composite)
    writer.terms.write(root)
    element = SubElement(root, f"{SSD}DefaultExperiment")
    run: dict[str, Any] = {"every": experiment.every, "origin": experiment.origin}
    for name, time in (("start", experiment.start), ("stop", experiment.stop)):
        decimal = None if time is None else float(time)
        if decimal is not None:
            element.set(f"{name}Time", repr(decimal))
        # a time that its decimal does not tell
        run[name] = None if decimal is None or seconds(decimal) == time else time
    writer.annotate(element, "Run", SimpleNamespace(**run), "run")
    if writer.faults:
        raise ScenarioError(writer.faults)
    version = "2.0" if any(map(_is_new, root.iter())) else "1.0"
    for versioned in (root, *root.iter(f"{SSV}ParameterSet")):
        versioned.set("version", version)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    try:
        parse_xml(text, DEFAULT, ImportFindings())
    except MalformedError as error:
        line = text.split(b"\n")[error.line - 1].decode().strip()
        raise ScenarioError(f"a name or text cannot be written as XML: {line!r:.80}") from None
    return text
