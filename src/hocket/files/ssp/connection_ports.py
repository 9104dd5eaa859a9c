"""The ports of a system itself; what its connectors leave open is taken from what they lead to.

In:  a System whose elements are built
Out: Spots by connector, as they are called inside
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hocket.files.ssp.annotation import read_annotation
from hocket.files.ssp.document import Component, ConnectionEnd, Connector, DirectedConnection, System
from hocket.files.ssp.unit_definitions import IDENTITY, fmu_unit, recognised_name, unit_conversion
from hocket.files.ssp.vocabulary import flatten_array
from hocket.model.ports import Port
from hocket.model.protocols import Model
from hocket.simulators.fmu.ports import indices
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.variables import (
    PORT_TYPES,
    FmuVariable,
    NamedUnit,
    element_name,
    split_element,
)


def find_variable(component: Component, name: str) -> FmuVariable | None:
    """Return the variable; of an array written as `x[1]`, `x[2]` ... the first of them."""
    if component.fmu is None:
        return None
    description = component.fmu.description
    elements = description.element_variables.get(name, {})
    return description.by_name.get(name) or next(iter(elements.values()), None)


def find_owning_variable(component: Component, name: str) -> FmuVariable | None:
    """Return the variable; for an element of an array the array."""
    return find_variable(component, name) or find_variable(component, name.partition("[")[0])


@dataclass(frozen=True)
class Spot:
    """A port that can be connected."""

    path: str
    port: Port
    unit: NamedUnit | None
    """As the SSP means it; the port's own is what hocket takes it for."""
    items: Mapping[str, int] = field(default_factory=dict)
    own: bool = False
    """A port of the system itself, seen from inside."""

    @property
    def index(self) -> tuple[int, ...]:
        """Its place in an array; () for a scalar."""
        return split_element(self.port.name)[1]


def select_spots(spots: Sequence[Spot], wanted: tuple[int, ...]) -> list[Spot]:
    """Return the elements that indices name, from 1; all if there are none. Raises ValueError."""
    if not wanted:
        return list(spots)
    if not spots:
        raise ValueError("of 0")
    axes = len(spots[0].index)
    places = [wanted] if len(wanted) == axes else [(index,) for index in wanted] if axes == 1 else []
    by_index = {spot.index: spot for spot in spots}
    if not places or any(index not in by_index for index in places):
        sizes = " x ".join(str(max(axis)) for axis in zip(*by_index, strict=True)) or "1"
        raise ValueError(f"of {sizes}")
    return [by_index[index] for index in places]


class FmuPorts:
    """The ports of an FMU, by connector."""

    def __init__(self, component: Component, model: Fmu, name: str):
        self.component, self.model, self.name = component, model, name
        self.sides: tuple[dict[str, list[Port]], dict[str, list[Port]]] = ({}, {})
        numbers = (model.inputs, model.outputs)
        for side, ports, texts in zip(self.sides, numbers, model.texts, strict=True):
            for port in (*ports, *map(Port, texts)):
                side.setdefault(port.name, []).append(port)
                array, place = split_element(port.name)
                if place:
                    side.setdefault(array, []).append(port)

    def spots(self, end: ConnectionEnd, source: bool) -> list[Spot]:
        """Return what an end of a connection stands for; raises ValueError if there is no such element."""
        found = find_variable(self.component, end.connector)
        connector = self.component.connectors.get(end.connector)
        name = (found.alias_of if found else None) or end.connector
        ports = self.sides[source].get(name, [])
        own = fmu_unit(self.model.description, ports[0].unit) if ports else None
        unit = own or (connector.unit if connector else None)
        if own and connector and connector.unit and connector.unit != own:
            _note_other_unit(self.component, end, connector.unit, own)
        items = found.items if found else {}
        spots = [Spot(f"{self.name}.{port.name}", port, unit, items) for port in ports]
        return select_spots(spots, end.indices)


def _note_other_unit(component: Component, end: ConnectionEnd, written: NamedUnit, own: NamedUnit) -> None:
    """Note that an SSD names another unit than the FMU, which knows better."""
    try:
        same = unit_conversion(written, own).is_close(IDENTITY)
    except ValueError:
        same = False
    if not same:
        what = f"`{component.name}.{end.connector}` is in `{own.name}`, as its FMU says"
        component.node.note(f"{what}, not in `{written.name}`, as the SSD says")


At: TypeAlias = Callable[[ConnectionEnd, bool, DirectedConnection], list[Spot] | None]

_MOST = 1_000_000
_NOT_DURING_A_RUN = ("parameter", "structuralParameter", "", "inout", "unspecified")


class SystemPorts:
    """`at` tells the ports that an end of a connection at an element stands for."""

    def __init__(self, system: System, models: Mapping[str, Model], at: At):
        self.system, self.models, self.at = system, models, at
        self.spots: dict[str, list[Spot]] = {}
        """Without those that a fault was noted of."""
        self.wires: dict[str, list[tuple[DirectedConnection, ConnectionEnd, bool]]] = {}
        """Per connector: the wires to elements, the other end, and whether that is the source."""
        for wire in system.wires:
            for end, other, source in ((wire.source, wire.target, False), (wire.target, wire.source, True)):
                if end.element is None and other.element is not None:
                    self.wires.setdefault(end.connector, []).append((wire, other, source))
        for name, connector in system.connectors.items():
            if self.kind(name) in _NOT_DURING_A_RUN:
                self.spots[name] = []
            elif (places := self._indices(name, connector)) is not None:
                self.spots[name] = list(self._make_spots(name, connector, places))

    def kind(self, name: str) -> str:
        """Return the kind of a connector, told or concluded."""
        return self.system.kinds.get(name) or self.system.connectors[name].kind

    def inputs(self) -> list[Port]:
        return [spot.port for name in self.spots if self.kind(name) == "input" for spot in self.spots[name]]

    def outputs(self, driven: Collection[str]) -> list[Port]:
        """Return the outputs of the level, as far as something drives them."""
        names = [name for name in self.spots if self.kind(name) != "input"]
        return [spot.port for name in names for spot in self.spots[name] if spot.path in driven]

    def _make_spots(self, name: str, connector: Connector, places: list[tuple[int, ...]]) -> Iterator[Spot]:
        others = list(self._connected_spots(name))
        units = {unit for spot, wire in others if (unit := spot.unit) and not wire.link.suppress}
        unit = connector.unit or (units.pop() if len(units) == 1 else None)
        types = {spot.port.type for spot, _ in others}
        kind = PORT_TYPES.get(connector.type) or (types.pop() if len(types) == 1 else "real")
        held = kind == "real" and bool(others) and all(spot.port.held for spot, _ in others)
        items = connector.items or next((spot.items for spot, _ in others if spot.items), {})
        starts = self._starts(name, items)
        declared = read_annotation(connector.node, "Connector").get("reactivity")
        called = self._port_name(name)
        for number, index in enumerate(places):
            start = starts[number] if number < len(starts) else None
            shown = element_name(called, index), recognised_name(unit), start
            port = Port(*shown, (), kind, held, declared)
            yield Spot(port.name, port, unit, items, own=True)

    def _connected_spots(self, name: str) -> Iterator[tuple[Spot, DirectedConnection]]:
        """Yield the ports of elements that a connector is connected with."""
        for wire, other, source in self.wires.get(name, ()):
            for spot in self.at(other, source, wire) or ():
                yield spot, wire

    def _port_name(self, name: str) -> str:
        """Return the name of a port that no path into a model has."""
        owner, _, port = name.partition(".")
        if port and owner in self.models:
            model = self.models[owner]
            ports = model.outputs if self.kind(name) == "input" else model.inputs
            if any(each.name == port for each in ports):
                plain = name.replace(".", "_")
                said = f"the connector `{name}` is called `{plain}` here: `{name}` is a port"
                self.system.node.note(said)
                return plain
        return name

    def _starts(self, name: str, items: Mapping[str, int]) -> list[float]:
        if self.kind(name) != "input" or name not in self.system.values:
            return []
        value = self.system.values[name]
        try:
            return [float(items.get(each, each)) for each in flatten_array(value)]
        except ValueError:
            self.system.settings[name].node.fault(f"`{name}` is {value!r:.40}", "a number")
            return []

    def _indices(self, name: str, connector: Connector) -> list[tuple[int, ...]] | None:
        """Return the indices of a connector's elements, [()] for a scalar; None after noting a fault."""
        if connector.sizes is None:
            return [()]
        sizes = []
        for size in connector.sizes:
            told = str(self.system.values.get(size, size)).removesuffix(".0")
            if not told.isdecimal():
                return self._like_others(name, connector)
            sizes.append(int(told))
        if math.prod(sizes) > _MOST:
            connector.node.fault(f"`{name}` has {math.prod(sizes)} values", f"at most {_MOST}")
            return None
        return list(indices(tuple(sizes)))

    def _like_others(self, name: str, connector: Connector) -> list[tuple[int, ...]] | None:
        places = list(dict.fromkeys(spot.index for spot, _ in self._connected_spots(name)))
        if not places:
            what = f"nothing says how many values the connector `{name}` has"
            connector.node.fault(what, 'such as <Dimension size="3"/>')
        return places or None
