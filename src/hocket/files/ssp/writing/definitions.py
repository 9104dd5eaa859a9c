"""What an SSD defines once and refers to by name: units and enumerations.

In:  the units and enumerations of ports and variables
Out: <Units> and <Enumerations>
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, SubElement

from hocket.files.ssp.terms import SSC, SSD
from hocket.files.ssp.units import BASES, NamedUnit, fmu_unit, unit_definition
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
