"""The ports that a connector stands for: one, or the elements of an array.

In:  an end of a connection, and the model or the system it belongs to
Out: Spots: paths with unit and type
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hocket.files.ssp.findings import ImportFindings
from hocket.files.ssp.reading.parts import Component, ConnectionEnd
from hocket.files.ssp.reading.variables import find_variable
from hocket.files.ssp.units import IDENTITY, NamedUnit, fmu_unit, unit_conversion
from hocket.model import Port
from hocket.simulators.fmu.recipe import Fmu

_ELEMENT = re.compile(r"(.+)\[([\d, ]+)\]")


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
        match = _ELEMENT.fullmatch(self.port.name)
        return tuple(int(number) for number in match[2].split(",")) if match else ()


def select_spots(spots: Sequence[Spot], indices: tuple[int, ...]) -> list[Spot]:
    """Return the elements that indices name, from 1; all if there are none. Raises ValueError."""
    if not indices:
        return list(spots)
    if not spots:
        raise ValueError("of 0")
    axes = len(spots[0].index)
    wanted = [indices] if len(indices) == axes else [(index,) for index in indices] if axes == 1 else []
    by_index = {spot.index: spot for spot in spots}
    if not wanted or any(index not in by_index for index in wanted):
        sizes = " x ".join(str(max(axis)) for axis in zip(*by_index, strict=True)) or "1"
        raise ValueError(f"of {sizes}")
    return [by_index[index] for index in wanted]


class FmuPorts:
    """The ports of an FMU, by connector."""

    def __init__(self, component: Component, model: Fmu, name: str):
        self.component, self.model, self.name = component, model, name
        self.sides: tuple[dict[str, list[Port]], dict[str, list[Port]]] = ({}, {})
        numbers = (model.inputs, model.outputs)
        for side, ports, texts in zip(self.sides, numbers, model.texts, strict=True):
            for port in (*ports, *map(Port, texts)):
                side.setdefault(port.name, []).append(port)
                match = _ELEMENT.fullmatch(port.name)
                if match:
                    side.setdefault(match[1], []).append(port)

    def spots(self, end: ConnectionEnd, source: bool, findings: ImportFindings) -> list[Spot]:
        """Return what an end of a connection stands for; raises ValueError if there is no such element."""
        found = find_variable(self.component, end.connector)
        connector = self.component.connectors.get(end.connector)
        name = (found.alias_of if found else None) or end.connector
        ports = self.sides[source].get(name, [])
        own = fmu_unit(self.model, ports[0].unit) if ports else None
        unit = own or (connector.unit if connector else None)
        if own and connector and connector.unit and connector.unit != own:
            _note_other_unit(self.component, end, connector.unit, own, findings)
        items = found.items if found else {}
        return select_spots(
            [Spot(f"{self.name}.{port.name}", port, unit, items) for port in ports], end.indices
        )


def _note_other_unit(
    component: Component, end: ConnectionEnd, written: NamedUnit, own: NamedUnit, findings: ImportFindings
) -> None:
    """Note that an SSD names another unit than the FMU, which knows better."""
    try:
        same = unit_conversion(written, own).is_close(IDENTITY)
    except ValueError:
        same = False
    if not same:
        what = f"`{component.name}.{end.connector}` is in `{own.name}`, as its FMU says"
        findings.note(f"{what}, not in `{written.name}`, as the SSD says")
