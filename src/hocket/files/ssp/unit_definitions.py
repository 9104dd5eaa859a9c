"""Units as SSP and FMI define them: exponents of the SI base units, a factor and an offset.

In:  <Unit> elements of a file, and units known by their names alone
Out: the straight line that turns a value in one unit into a value in another
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from hocket.files.ssp.package import Node
from hocket.model.units import base_powers, conversion, tidy
from hocket.simulators.fmu.variables import BASES, Description, NamedUnit

_ANGLE = BASES.index("rad")


class AffineMap(NamedTuple):
    """y = gain x + offset."""

    gain: float = 1.0
    offset: float = 0.0

    def then(self, other: AffineMap) -> AffineMap:
        return AffineMap(other.gain * self.gain, other.gain * self.offset + other.offset)

    def inverse(self) -> AffineMap:
        return AffineMap(1.0 / self.gain, -self.offset / self.gain)

    def tidy(self) -> AffineMap:
        """Return round numbers where only the last bits differ from them."""
        return AffineMap(*map(tidy, self))

    def is_close(self, other: AffineMap) -> bool:
        """Return whether both are the same but for rounding."""
        size = max(abs(self.offset), abs(other.offset), abs(self.gain), abs(other.gain))
        return math.isclose(self.gain, other.gain, rel_tol=1e-9) and math.isclose(
            self.offset, other.offset, rel_tol=1e-9, abs_tol=1e-12 * size
        )

    def at(self, x: float) -> float:
        return self.gain * x + self.offset


IDENTITY = AffineMap()


def _to_base(unit: NamedUnit) -> AffineMap:
    return AffineMap(unit.factor, unit.offset)


def unit_conversion(source: NamedUnit | None, target: NamedUnit | None) -> AffineMap:
    """Return how a value in one unit becomes one in another; raises ValueError that says why not.

    Two units of one name are the same, though files define it differently.
    """
    if source is None or target is None or source.name == target.name:
        return IDENTITY
    if source.exponents and target.exponents:
        _check_dimensions(source, target)
        return _to_base(source).then(_to_base(target).inverse()).tidy()
    if source.exponents:
        return _to_base(source).then(AffineMap(*conversion(source.base, target.name))).tidy()
    if target.exponents:
        return AffineMap(*conversion(source.name, target.base)).then(_to_base(target).inverse()).tidy()
    return AffineMap(*conversion(source.name, target.name))


def _check_dimensions(source: NamedUnit, target: NamedUnit) -> None:
    one, other = list(source.exponents), list(target.exponents)
    plain = not any(one[:_ANGLE]) and not any(other[:_ANGLE])
    if one == other or (plain and one[_ANGLE] + other[_ANGLE] in (0, 1)):
        return
    kinds = f"{source.base} against {target.base}"
    raise ValueError(f"`{source.name}` cannot be converted to `{target.name}`: {kinds}")


def recognised_name(unit: NamedUnit | None) -> str:
    """Return the name of a unit if hocket takes it for the same unit; else nothing."""
    if unit is None:
        return ""
    try:
        if not unit.exponents:
            conversion(unit.name, f"{unit.name} ")  # asks whether the name means anything
            return unit.name
        return unit.name if AffineMap(*conversion(unit.name, unit.base)).is_close(_to_base(unit)) else ""
    except ValueError:
        return ""


def read_units(parent: Node) -> dict[str, NamedUnit]:
    units: dict[str, NamedUnit] = {}
    for node in parent.all("Units", "Unit"):
        name = node.attributes.get("name", "")
        base = node.child("BaseUnit")
        if base is None:
            units[name] = NamedUnit(name)
            continue
        try:
            exponents = tuple(int(float(base.get(key) or 0)) for key in BASES)
            factor, offset = float(base.get("factor") or 1), float(base.get("offset") or 0)
        except (ValueError, OverflowError):
            base.fault(f"the unit `{name}` has a base unit that is not a number", "whole exponents")
            continue
        if not factor or not math.isfinite(factor) or not math.isfinite(offset):
            base.fault(f"the unit `{name}` has the factor {base.get('factor')}", "a factor but 0")
            continue
        units[name] = NamedUnit(name, exponents, factor, offset)
    return units


def look_up_unit(name: str, units: Mapping[str, NamedUnit]) -> NamedUnit | None:
    """Return the unit of that name, defined or not, `[m]` as `m`; None for no name."""
    plain = name if name in units else name.removeprefix("[").removesuffix("]").strip()
    return (units.get(plain) or NamedUnit(plain)) if plain else None


def fmu_unit(description: Description, name: str) -> NamedUnit | None:
    """Return a unit as an FMU defines it, else as it is known by its name; None for no name."""
    told = description.units.get(name)
    return told if told and told.exponents else look_up_unit(name, {})


def unit_definition(name: str) -> NamedUnit | None:
    """Return the definition of a unit that hocket knows by name; None if it does not know it."""
    try:
        powers = base_powers(name)
        if not powers.keys() <= set(BASES) or any(power != int(power) for power in powers.values()):
            return None
        found = NamedUnit(name, tuple(int(powers.get(each, 0)) for each in BASES))
        return NamedUnit(name, found.exponents, *conversion(name, found.base))
    except ValueError:
        return None
