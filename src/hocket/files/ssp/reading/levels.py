"""Systems become composites: models by name, ports, connections.

In:  the tree of Parts, with wires and values
Out: a Composite for each system
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from hocket.engine.composite import Composite
from hocket.files.ssp.annotation import read_annotation
from hocket.files.ssp.findings import Findings
from hocket.files.ssp.names import legal
from hocket.files.ssp.reading.parameters import REALS, WHOLES
from hocket.files.ssp.reading.parts import Component, Connector, End, System, Wire
from hocket.files.ssp.reading.spots import Ports, Spot, chosen
from hocket.files.ssp.units import known
from hocket.files.ssp.reading.wires import Wires
from hocket.model import Model, Port, PortType, Scenario
from hocket.simulators.fmu.recipe import Fmu

_INPUTS, _PARAMETERS = ("input",), ("parameter", "structuralParameter")


class Level:
    """One system while it is built. `spots` are the ports of its connectors, as they are called inside."""

    def __init__(self, system: System, path: str, findings: Findings):
        self.system, self.path, self.findings = system, path, findings
        self.models: dict[str, Model] = {}
        self.inside: dict[str, Level] = {}
        self.ports: dict[str, Ports] = {}
        self.spots: dict[str, list[Spot]] = {}
        self.names = legal(system.parts)
        for part, name in self.names.items():
            if part != name and not hasattr(system.parts[part], "dictionary"):
                findings.names[f"{path}{name}"] = part
                findings.note(f"`{part}` is called `{name}` here: a name of a model has no dots and spaces")

    def composite(self, step: Fraction) -> Composite | None:
        """Return the system as a level; None if there is nothing in it, or something wrong with it."""
        chosen_here = {key: value for key, value in self.system.level.items() if value is not None}
        step = chosen_here.pop("step", step)
        record = chosen_here.pop("record", ("*",))
        self._build(step)
        if not self.models:
            return None
        for name, connector in self.system.connectors.items():
            self._own(name, connector)
        wires = Wires(self.models, self.findings)
        for wire in self.system.wires:
            if not wire.constant:
                self._wire(wire, wires)
        driven = {connection.target for connection in wires.connections}
        inputs = [
            spot.port for name in self.spots if self._kind(name) in _INPUTS for spot in self.spots[name]
        ]
        outputs = [
            spot.port
            for name in self.spots
            if self._kind(name) not in _INPUTS
            for spot in self.spots[name]
            if spot.path in driven
        ]
        return self.findings.tried(
            self.system.node,
            lambda: Composite(
                Scenario(self.models, wires.connections, inputs, outputs, record), step, **chosen_here
            ),
        )

    def _build(self, step: Fraction) -> None:
        for part in self.system.parts.values():
            name = self.names[part.name]
            if isinstance(part, System):
                level = self.inside[part.name] = Level(part, f"{self.path}{name}.", self.findings)
                inner = level.composite(step)
                if inner is not None:
                    self.models[name] = inner
                elif not any(part.components()):
                    self.findings.note(f"the system `{part.name}` is left out: there is nothing in it")
            elif isinstance(part, Component) and part.fmu is not None:
                model = self._fmu(part, part.fmu)
                if model is not None:
                    self.models[name] = model
                    self.ports[part.name] = Ports(part, model, name)

    def _fmu(self, component: Component, fmu: Fmu) -> Fmu | None:
        options = {key: value for key, value in component.options.items() if value is not None}
        observe = dict.fromkeys([*options.pop("observe", ()), *component.observed])
        about = f"`{component.name}`: "
        return self.findings.tried(
            component.node,
            lambda: Fmu(fmu.path, component.values, observe=observe, **options),
            about,
        )

    def _kind(self, name: str) -> str:
        connector = self.system.connectors[name]
        return self.system.kinds.get(name) or connector.kind

    def _own(self, name: str, connector: Connector) -> None:
        """Make the ports of a connector of the system, with what it leaves open taken from what is inside."""
        if self._kind(name) in (*_PARAMETERS, "", "inout", "unspecified"):
            return
        others = list(self._others(name))
        units = {unit for spot, wire in others if (unit := spot.unit) and not wire.link.suppress}
        unit = connector.unit or (units.pop() if len(units) == 1 else None)
        types = {spot.port.type for spot, _ in others}
        kind = _type(connector) or (types.pop() if len(types) == 1 else "real")
        items = connector.items or next((spot.items for spot, _ in others if spot.items), {})
        values = self._starts(name, items)
        called = self._called(name)
        self.spots[name] = []
        for number, index in enumerate(self._indices(name, connector)):
            inside = f"[{','.join(map(str, index))}]" if index else ""
            start = values[number] if number < len(values) else None
            port = Port(f"{called}{inside}", known(unit), start, (), kind)
            self.spots[name].append(Spot(port.name, port, unit, items, own=True))

    def _called(self, name: str) -> str:
        """Return the name of a port that no path into a model has."""
        source = self._kind(name) in _INPUTS
        for model_name, model in self.models.items():
            ports = model.outputs if source else model.inputs
            if any(f"{model_name}.{port.name}" == name for port in ports):
                self.findings.note(f"the connector `{name}` is called `{name.replace('.', '_')}` here")
                return name.replace(".", "_")
        return name

    def _others(self, name: str) -> Iterator[tuple[Spot, Wire]]:
        """Yield the ports of elements that a connector of the system is connected with."""
        for wire in self.system.wires:
            for end, other, source in ((wire.source, wire.target, False), (wire.target, wire.source, True)):
                if end.element is None and end.connector == name and other.element is not None:
                    for spot in self._at(other, source, wire) or ():
                        yield spot, wire

    def _starts(self, name: str, items: Any) -> list[float]:
        if self._kind(name) not in _INPUTS or name not in self.system.values:
            return []
        value = self.system.values[name]
        values = _flat(value)
        try:
            return [float(items.get(each, each)) for each in values]
        except ValueError:
            node = self.system.settings[name].node
            self.findings.fault(node, f"`{name}` is {value!r:.40}", "a number")
            return []

    def _indices(self, name: str, connector: Connector) -> list[tuple[int, ...]]:
        """Return the indices of a connector's elements; [()] for a scalar."""
        if connector.sizes is None:
            return [()]
        sizes = []
        for size in connector.sizes:
            told = self.system.values.get(size, size)
            if not str(told).isdigit():
                others = [spot.index for spot, _ in self._others(name)]
                if others:
                    return list(dict.fromkeys(others))
                what = f"nothing says how many values the connector `{name}` has"
                self.findings.fault(connector.node, what, 'such as <Dimension size="3"/>')
                return []
            sizes.append(range(1, int(told) + 1))
        if math.prod(map(len, sizes)) > 1_000_000:
            self.findings.fault(connector.node, f"the connector `{name}` has too many values", "a million")
            return []
        return list(product(*sizes))

    def _at(self, end: End, source: bool, wire: Wire) -> list[Spot] | None:
        """Return what an end stands for; None after noting that it is nothing."""
        node = wire.link.node
        try:
            if end.element is None:
                return chosen(self.spots.get(end.connector, []), end.indices)
            if end.element in self.ports:
                return self.ports[end.element].spots(end, source, self.findings)
        except ValueError as error:
            self.findings.fault(node, f"there is no `{end}` in an array {error}", "indices from 1")
            return None
        inner = self.inside.get(end.element)
        name = self.names[end.element]
        if inner is None or name not in self.models:
            if inner is not None and source and not any(inner.system.components()):
                what = f"`{end}` is an output of a system with nothing in it"
                self.findings.fault(node, what, "a system that computes it")
            return None
        shown = {port.name for port in (self.models[name].outputs if source else self.models[name].inputs)}
        spots = [s for s in inner.spots.get(end.connector, []) if s.port.name in shown]
        if not spots:
            self.findings.fault(
                node, f"`{end}` is an output that nothing drives inside", "a connection to it"
            )
            return None
        moved = [replace(spot, path=f"{name}.{spot.port.name}", own=False) for spot in spots]
        try:
            return chosen(moved, end.indices)
        except ValueError as error:
            self.findings.fault(node, f"there is no `{end}` in an array {error}", "indices from 1")
            return None

    def _wire(self, wire: Wire, wires: Wires) -> None:
        sources, targets = self._at(wire.source, True, wire), self._at(wire.target, False, wire)
        if sources is None or targets is None:
            return
        if len(sources) != len(targets):
            what = f"`{wire.source}` has {len(sources)} values and `{wire.target}` has {len(targets)}"
            self.findings.fault(wire.link.node, what, "as many on both sides")
            return
        own = {**read_annotation(wire.link.node, "Connection", self.findings)}
        for source, target in zip(sources, targets, strict=True):
            wires.connect(source, target, wire, own.get("extrapolation"))


def _flat(value: Any) -> list[Any]:
    return [each for item in value for each in _flat(item)] if isinstance(value, list) else [value]


def _type(connector: Connector) -> PortType | None:
    if connector.type in REALS:
        return "real"
    if connector.type in WHOLES:
        return "integer"
    types: dict[str, PortType] = {"Boolean": "boolean", "Enumeration": "enumeration"}
    return types.get(connector.type)
