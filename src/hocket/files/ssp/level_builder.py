"""Systems become composites: models by name, ports, connections.

In:  the tree of systems, with directed connections and values
Out: a Composite for each system
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from hocket.coupling.wiring import describe_loss
from hocket.errors import ScenarioError
from hocket.files.fmus import legal_names
from hocket.files.ssp.annotation import read_annotation
from hocket.files.ssp.connection_ports import FmuPorts, Spot, SystemPorts, select_spots
from hocket.files.ssp.document import (
    Component,
    ConnectionEnd,
    DictionaryReference,
    DirectedConnection,
    SspConnection,
    System,
)
from hocket.files.ssp.package import Node
from hocket.files.ssp.unit_definitions import IDENTITY, AffineMap, unit_conversion
from hocket.files.ssp.vocabulary import LOOKUP
from hocket.model.arguments import free_name
from hocket.model.composite import Composite, traits_of
from hocket.model.ports import Port
from hocket.model.protocols import Extrapolator, Model
from hocket.model.scenario import Connection, Scenario
from hocket.model.units import conversion
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.python import Python
from hocket.simulators.state_space import Gain

_LOSSLESS = {("boolean", "integer"), ("enumeration", "integer"), ("integer", "enumeration")}


class ConnectionBuilder:
    """The connections of one level; models that are needed between are added to its own."""

    def __init__(self, models: dict[str, Model]):
        self.models = models
        self.connections: list[Connection] = []
        self.between: dict[str, str] = {}
        """The models added, and the model that each leads to."""
        self._driven: dict[str, str] = {}

    def connect(
        self, source: Spot, target: Spot, wire: DirectedConnection, extrapolation: Extrapolator | None
    ) -> None:
        node = wire.link.node
        if target.path in self._driven:
            sources = f"`{self._driven[target.path]}` and `{source.path}`"
            node.fault(f"`{target.path}` has two sources, {sources}", "one source per input")
            return
        self._driven[target.path] = source.path
        about = f"`{source.path}` to `{target.path}`: "
        effect = node.attempt(lambda: _wire_effect(source, target, wire), about)
        if effect is None:
            return
        units, told, table = effect
        made = _automatic_conversion(source.port, target.port)
        whole = units.then(told)
        if table or describe_loss(source.port.type, target.port.type, *whole):
            self._insert_model(source, target, _cast(source, target, table, node), whole, extrapolation)
        elif made is None or (source.own and target.own):
            same = Gain(1.0) if target.port.type == "real" else _cast(source, target, {}, node)
            self._insert_model(source, target, same, whole, extrapolation)
        else:
            rest = told if units.is_close(made) else made.inverse().then(units).then(told)
            self.connections.append(Connection(source.path, target.path, extrapolation, *rest))

    def _insert_model(
        self, source: Spot, target: Spot, model: Model, line: AffineMap, extrapolation: Extrapolator | None
    ) -> None:
        """Put a model without units between two ports."""
        wanted = f"to {target.path}"
        name = free_name(legal_names([wanted])[wanted], self.models)
        self.models[name] = model
        self.between[name] = target.path.partition(".")[0]
        self.connections.append(Connection(source.path, f"{name}.u", None, *line))
        self.connections.append(Connection(f"{name}.y", target.path, extrapolation))


def _cast(source: Spot, target: Spot, table: dict[int, int], node: Node) -> Model:
    """Return a model that makes of a value one of the target's type, by a table where there is one."""
    kind, other = source.port.type, target.port.type
    if kind != other and (kind, other) not in _LOSSLESS:
        made = "zero or not" if other == "boolean" else "rounded"
        node.note(f"`{source.path}` is a {kind} and drives the {other} `{target.path}`: it is {made}")
    return Python(LOOKUP, outputs=[Port("y", type=other)], table=sorted(table.items()), to=other)


def _automatic_conversion(source: Port, target: Port) -> AffineMap | None:
    """Return what hocket makes of the units by itself; None if it would refuse the connection."""
    try:
        return AffineMap(*conversion(source.unit, target.unit))
    except ValueError:
        return None


def _wire_effect(
    source: Spot, target: Spot, wire: DirectedConnection
) -> tuple[AffineMap, AffineMap, dict[int, int]]:
    """Return what a wire does: to the units, then by its transformation; or a table.

    Raises ScenarioError for units that do not convert, and for a table that cannot be had.
    """
    links = [wire.link, *([wire.then] if wire.then else [])]
    tables = [link.transformation for link in links if link.transformation.kind != "Linear"]
    try:
        units, told = _wire_lines(source, target, wire, links)
    except ValueError as error:
        hint = 'suppressUnitConversion="true", if the numbers are meant as they are'
        raise ScenarioError(str(error), expected="units that convert", hint=hint) from None
    if not tables:
        return units, told, {}
    if len(tables) > 1:
        raise ScenarioError("two tables of values in a row", expected="one of them")
    if not units.then(told).is_close(IDENTITY):
        what = "a table of values, and a factor or a conversion of units"
        raise ScenarioError(what, expected="one of them")
    try:
        numbers = tables[0].numbers(source.items, target.items)
    except ValueError as error:
        raise ScenarioError(str(error), expected="items of both enumerations") from None
    if tables[0].kind != "Boolean":
        return IDENTITY, IDENTITY, numbers
    no, yes = numbers.get(0, 0), numbers.get(1, 1)
    return IDENTITY, AffineMap(float(yes - no), float(no)), {}


def _wire_lines(
    source: Spot, target: Spot, wire: DirectedConnection, links: list[SspConnection]
) -> tuple[AffineMap, AffineMap]:
    """Return what happens to the units on the way, then what the last transformation does."""
    stops = [source.unit, *([wire.via] if wire.then and wire.via else []), target.unit]
    if len(stops) == len(links):  # a dictionary without a unit: converted at once
        suppressed = any(link.suppress for link in links)
        told = links[0].transformation.line.then(links[1].transformation.line)
        return IDENTITY if suppressed else unit_conversion(stops[0], stops[1]), told
    units = IDENTITY
    for number, link in enumerate(links):
        if number:
            units = units.then(links[number - 1].transformation.line)
        units = units if link.suppress else units.then(unit_conversion(stops[number], stops[number + 1]))
    return units, links[-1].transformation.line


class LevelBuilder:
    """One system while it is built; `path` leads to it, with a dot at the end."""

    def __init__(self, system: System, path: str):
        self.system, self.path = system, path
        self.models: dict[str, Model] = {}
        self.inside: dict[str, LevelBuilder] = {}
        self.ports: dict[str, FmuPorts] = {}
        self.own: SystemPorts | None = None
        parts = system.parts.items()
        self.names = legal_names(name for name, part in parts if not isinstance(part, DictionaryReference))
        for written, name in self.names.items():
            if written != name:
                system.node.findings.names[f"{path}{name}"] = written
                reason = "models have no dots and spaces in a name"
                system.node.note(f"`{written}` is called `{name}` here: {reason}")

    def composite(self, step: Fraction) -> Composite | None:
        """Return the system as a level; None if there is nothing in it, or something is wrong with it."""
        how: dict[str, Any] = {key: value for key, value in self.system.level.items() if value is not None}
        told, record = how.pop("step", None) or self._asked_step(step), how.pop("record", ("*",))
        inherits, step = told is None and self.path != "", told or step
        more = {key: how.pop(key, None) for key in ("bonds", "constraints", "crossings")}
        self._build_models(step)
        if not self.models:
            return None
        self.own = own = SystemPorts(self.system, self.models, self._spots_at)
        wires = ConnectionBuilder(self.models)
        for wire in self.system.wires:
            if not wire.constant:
                self._connect_wire(wire, wires)
        if "orchestrator" in how:
            how["orchestrator"] = _extend_order(how["orchestrator"], wires.between)
        outputs = own.outputs({connection.target for connection in wires.connections})

        def build() -> Composite:
            parts = self.models, wires.connections, own.inputs(), outputs, record
            return Composite(Scenario(*parts, **more), step, **how, inherits_step=inherits)

        return self.system.node.attempt(build)

    def _asked_step(self, around: Fraction) -> Fraction | None:
        """Return the step that another tool asks for, or the next shorter one that divides that around it.

        None: it is that of the level around, which other tools stop at.
        """
        asked = self.system.asked_step
        return None if asked is None or asked >= around else around / (around / asked).__ceil__()

    def _build_models(self, step: Fraction) -> None:
        for part in self.system.parts.values():
            if isinstance(part, System):
                name = self.names[part.name]
                level = self.inside[part.name] = LevelBuilder(part, f"{self.path}{name}.")
                inner = level.composite(step)
                if inner is not None:
                    self.models[name] = inner
                elif not any(part.components()):
                    part.node.note(f"the system `{part.name}` is left out: there is nothing in it")
            elif isinstance(part, Component) and part.fmu is not None:
                name = self.names[part.name]
                model = self._fmu(part, part.fmu)
                if model is not None:
                    self.models[name] = model
                    self.ports[part.name] = FmuPorts(part, model, name)

    def _fmu(self, component: Component, fmu: Fmu) -> Fmu | None:
        options = {key: value for key, value in component.options.items() if value is not None}
        observe = dict.fromkeys([*options.pop("observe", ()), *component.observed])
        return component.node.attempt(
            lambda: Fmu(fmu.path, component.values, observe=observe, folder=fmu.folder, **options),
            f"`{component.name}`: ",
        )

    def _connect_wire(self, wire: DirectedConnection, wires: ConnectionBuilder) -> None:
        sources, targets = self._spots_at(wire.source, True, wire), self._spots_at(wire.target, False, wire)
        if sources is None or targets is None:
            return
        if len(sources) != len(targets):
            counts = f"{len(sources)} to {len(targets)} values"
            what = f"`{wire.source}` and `{wire.target}` are connected: {counts}"
            wire.link.node.fault(what, "as many on both sides")
            return
        extrapolation = read_annotation(wire.link.node, "Connection").get("extrapolation")
        for source, target in zip(sources, targets, strict=True):
            wires.connect(source, target, wire, extrapolation)

    def _spots_at(self, end: ConnectionEnd, source: bool, wire: DirectedConnection) -> list[Spot] | None:
        """Return what an end stands for; None after noting that it is nothing."""
        try:
            if end.element is None:
                own = self.own.spots if self.own else {}
                return select_spots(own[end.connector], end.indices) if end.connector in own else None
            if end.element in self.ports:
                return self.ports[end.element].spots(end, source)
            return self._inner_spots(end, end.element, source, wire)
        except ValueError as error:
            wire.link.node.fault(f"there is no `{end}` in an array {error}", "indices from 1")
            return None

    def _inner_spots(
        self, end: ConnectionEnd, element: str, source: bool, wire: DirectedConnection
    ) -> list[Spot] | None:
        inner, name = self.inside.get(element), self.names[element]
        if inner is None or inner.own is None or name not in self.models:
            if inner is not None and source and not any(inner.system.components()):
                what = f"`{end}` is an output of a system with nothing in it"
                wire.link.node.fault(what, "a system that computes it")
            return None
        if end.connector not in inner.own.spots:
            return None
        shown = {port.name for port in (self.models[name].outputs if source else self.models[name].inputs)}
        spots = [spot for spot in inner.own.spots[end.connector] if spot.port.name in shown]
        if not spots:
            what = f"`{end}` is an output that nothing drives inside"
            wire.link.node.fault(what, "a connection to it")
            return None
        moved = [replace(spot, path=f"{name}.{spot.port.name}", own=False) for spot in spots]
        return select_spots(moved, end.indices)


def _extend_order(orchestrator: Any, between: dict[str, str]) -> Any:
    """Return an orchestrator whose order names also the models between others: each before its target."""
    given = traits_of(orchestrator).order
    if given is None or given == "auto" or not between:
        return orchestrator
    named = {name for group in given for name in ((group,) if isinstance(group, str) else group)}
    order: list[Any] = []
    left = {name: target for name, target in between.items() if name not in named}
    for group in given:
        members = (group,) if isinstance(group, str) else group
        order += [name for name, target in left.items() if target in members]
        order.append(group)
    order += [name for name in left if name not in order]
    return replace(orchestrator, order=tuple(order))
