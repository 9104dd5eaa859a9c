"""Physical units: what a connection must multiply and add so that both ends mean the same.

In:  two units as text ("km/h", "m/s")
Out: gain and offset, or a ValueError that says why not

Equal and missing units cost nothing: pint is only loaded when two units differ.
"""

from __future__ import annotations

import math
import re
from functools import cache
from itertools import count
from typing import Any

_PRODUCT = re.compile(r"(?<=[A-Za-z0-9)])\.(?=[A-Za-z(])")
_POWER = re.compile(r"([A-Za-z])(-?[0-9]+)")

_MEANT = {"Nm": "N*m", "Nms": "N*m*s", "Nm/rad": "N*m/rad", "Nm.s/rad": "N*m*s/rad", "Nms/rad": "N*m*s/rad"}
"""Units as tools write them, which would be read as something else: pint takes `Nm` for numbers of metres."""


class Share(float):
    """A part of a whole: a plain number in JSON, per cent to people."""

    def __str__(self) -> str:
        return f"{self:.3g}"

    def __format__(self, digits: str) -> str:
        """Return it in per cent, without exponents for what is large."""
        if not math.isfinite(self):
            return "" if math.isnan(self) else "unbounded"
        text = format(100.0 * float(self), digits or ".3g")
        return f"{float(text):,.0f} %" if 100.0 <= abs(float(text)) < 1e6 else f"{text} %"


_DELTA = "delta_"
_numbers = count()
_taught: dict[str, set[tuple[str, float, float]]] = {}
"""Units that models define: base, factor and offset."""


def define_unit(unit: str, base: str, factor: float, offset: float) -> None:
    """Learn a unit that a model defines, factor * value + offset in base units; a name known anyway stays."""
    _taught.setdefault(unit, set()).add((base, factor, offset))


def difference(unit: str) -> str:
    """Return the unit of a difference: that of `degC` is not counted from the freezing point."""
    try:
        counted = bool(unit) and not _registry().Quantity(1.0, _parse_unit(unit))._is_multiplicative
    except ValueError:
        return unit
    return _DELTA + unit if counted else unit


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)


@cache
def is_unit(text: str) -> bool:
    """Return whether a text is a physical unit that is known."""
    if not text[:1].isalpha() and text[:1] not in ("°", "%", "1"):
        return False
    try:
        return _parse_unit(text) is not None
    except ValueError:
        return False


@cache
def conversion(source: str, target: str) -> tuple[float, float]:
    """Return (gain, offset): target value = gain * source value + offset."""
    if not source or not target or source.removeprefix(_DELTA) == target.removeprefix(_DELTA):
        return 1.0, 0.0
    import pint

    registry = _registry()
    sides = [_parse_unit(unit) for unit in (source, target)]
    if sides[0] == sides[1]:
        return 1.0, 0.0
    angles = [registry.get_root_units(side)[1]._units.get("radian", 0) for side in sides]
    if angles[0] != angles[1] and sides[0].dimensionality:
        # pint takes a radian for the number 1: rpm would become Hz with a factor of 2 pi
        raise ValueError(f"`{source}` cannot be converted to `{target}`: one of them counts an angle")
    try:
        zero = registry.Quantity(0.0, sides[0]).to(sides[1]).magnitude
        half = registry.Quantity(500.0, sides[0]).to(sides[1]).magnitude
        thousand = registry.Quantity(1000.0, sides[0]).to(sides[1]).magnitude
    except pint.DimensionalityError:
        raise ValueError(f"`{source}` cannot be converted to `{target}`: {_kind(sides)}") from None
    if not math.isclose(thousand - half, half - zero, rel_tol=1e-9):
        raise ValueError(f"`{source}` cannot be converted to `{target}` by a factor and an offset")
    return tidy((thousand - zero) / 1000.0), tidy(zero)


@cache
def product_factor(one: str, other: str, target: str) -> float:
    """Return the factor that makes a product of two units one in another: 1 N times 1 km/h is 0.278 W.

    A radian counts as 1: a torque times an angular speed is a power. Missing units cost nothing.
    """
    if not one or not other or not target:
        return 1.0
    import pint

    both = _parse_unit(one) * _parse_unit(other)
    try:
        made = _registry().Quantity(1.0, both).to(_parse_unit(target)).magnitude
    except (pint.DimensionalityError, pint.OffsetUnitCalculusError):
        kinds = _kind([both, _parse_unit(target)])
        raise ValueError(f"`{one}` times `{other}` is not `{target}`: {kinds}") from None
    return tidy(float(made))


def _parse_unit(unit: str) -> Any:
    """Return a unit as pint knows it; also read are `N.m`, `m/s2` and `kg.m-3`, and `-` for none."""
    unit = _MEANT.get(unit, unit)
    plain = _POWER.sub(r"\1**\2", _PRODUCT.sub("*", unit))
    for written in ("dimensionless",) if unit in ("-", "1") else (unit, plain):
        try:
            return _registry().parse_units(written)
        except Exception as error:  # pint raises many kinds, tokenising errors among them
            reason = error
    if unit in _taught:
        return _register_defined_unit(unit, frozenset(_taught[unit]))
    raise ValueError(f"`{unit}` is not a known physical unit") from reason


@cache
def _register_defined_unit(unit: str, definitions: frozenset[tuple[str, float, float]]) -> Any:
    if len(definitions) > 1:
        raise ValueError(f"`{unit}` is not a known physical unit, and two models define it in different ways")
    ((base, factor, offset),) = definitions
    name = f"taught_{next(_numbers)}"
    _registry().define(f"{name} = {factor!r} * {base or 'dimensionless'}; offset: {offset!r}")
    return _registry().parse_units(name)


def base_powers(unit: str) -> dict[str, float]:
    """Return the base units that a unit is a product of, by symbol, with their powers; raises ValueError."""
    registry = _registry()
    base = registry.Quantity(1.0, _parse_unit(unit)).to_base_units()
    return {registry.get_symbol(each): power for each, power in base._units.items()}


def _kind(sides: list[Any]) -> str:
    return " against ".join(str(side.dimensionality) for side in sides)


def tidy(value: float) -> float:
    """Return a round number that differs in the last bits only: 0.30000000000000004 is meant as 0.3."""
    rounded = float(f"{value:.12g}")
    return rounded if abs(rounded - value) <= 4 * math.ulp(value) else value


_SI = {
    "kilogram": "kg",
    "meter": "m",
    "second": "s",
    "ampere": "A",
    "kelvin": "K",
    "mole": "mol",
    "candela": "cd",
    "radian": "rad",
}


@cache
def base_unit(unit: str) -> tuple[dict[str, int], float, float] | None:
    """Return a unit in those of SI: exponents by name, factor and offset; None: it is not made of whole ones.

    A value in SI units = factor * value + offset.
    """
    import pint

    try:
        meant = _parse_unit(unit)
        zero = _registry().Quantity(0.0, meant).to_base_units()
        thousand = _registry().Quantity(1000.0, meant).to_base_units()
    except (ValueError, pint.PintError):
        return None
    powers = dict(zero.units._units.items())
    if not all(name in _SI and power == int(power) for name, power in powers.items()):
        return None
    offset = tidy(float(zero.magnitude))
    factor = tidy((float(thousand.magnitude) - float(zero.magnitude)) / 1000.0)
    return {_SI[name]: int(power) for name, power in powers.items()}, factor, offset
