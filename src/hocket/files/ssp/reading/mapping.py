"""What a binding sets: parameters under their own names, or under those that a mapping (.ssm) gives them.

In:  Parameters, a prefix, a <ParameterMapping>
Out: Settings: what a name in the element is to become
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hocket.files.ssp.findings import ImportFindings, list_names
from hocket.files.ssp.nodes import Node
from hocket.files.ssp.reading.parameters import Parameter, check_version
from hocket.files.ssp.reading.transformations import NONE, TRUTHS, Transformation, read_transformation
from hocket.files.ssp.units import IDENTITY, AffineMap, NamedUnit, unit_conversion


@dataclass(frozen=True, eq=False)
class ParameterSetting:
    """What a parameter or variable is to become, before it is converted to that one's unit."""

    parameter: Parameter
    value: Any
    unit: NamedUnit | None
    transformation: Transformation = NONE
    suppress: bool = False
    """Whether the unit is not to be converted."""

    @property
    def node(self) -> Node:
        """Where it stands."""
        return self.parameter.node

    def convert_value(self, unit: NamedUnit | None) -> Any:
        """Return the value in that unit, transformed; raises ValueError if the units do not convert."""
        self.parameter.used = True
        value = self.value
        if not self.suppress and _numeric(value):
            convert = unit_conversion(self.unit, unit)
            value = value if convert == IDENTITY else _convert_each(convert, value)
        return self.transformation.apply(value)

    def pass_through(
        self, value: Any, unit: NamedUnit | None, transformation: Transformation, suppress: bool
    ) -> ParameterSetting:
        """Return what a connection makes of the value that a connector has."""
        return replace(self, value=value, unit=unit, transformation=transformation, suppress=suppress)


def _numeric(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_numeric, value))
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _convert_each(convert: AffineMap, value: Any) -> Any:
    return [_convert_each(convert, item) for item in value] if isinstance(value, list) else convert(value)


@dataclass(frozen=True)
class MappingEntry:
    """One line of a mapping."""

    source: str
    target: str
    transformation: Transformation
    suppress: bool
    node: Node


def read_mapping(node: Node, findings: ImportFindings) -> list[MappingEntry]:
    """Return the entries of a mapping."""
    check_version(node, findings)
    entries: dict[str, MappingEntry] = {}
    for entry in node.all("MappingEntry"):
        target = entry.get("target")
        if target in entries:
            findings.fault(entry, f"`{target}` is mapped from two parameters", "one entry for each target")
        entries[target] = MappingEntry(
            entry.get("source"),
            target,
            read_transformation(entry, findings),
            TRUTHS.get(entry.get("suppressUnitConversion").lower(), False),
            entry,
        )
    return list(entries.values())


def binding_settings(
    found: Mapping[str, Parameter], prefix: str, mapping: list[MappingEntry] | None, findings: ImportFindings
) -> Iterator[tuple[str, ParameterSetting]]:
    """Yield what a binding sets, by the names in the element it is bound to."""
    named_here = {f"{prefix}{name}": parameter for name, parameter in found.items()}
    if mapping is None:
        for name, parameter in named_here.items():
            yield name, ParameterSetting(parameter, parameter.value, parameter.unit)
        return
    for parameter in found.values():
        parameter.used = True  # what is not mapped is left out on purpose
    missing: list[str] = []
    for entry in mapping:
        source = named_here.get(entry.source)
        if source is None:
            missing += [entry.source] if entry.source else []
            continue
        # the target says whether it took it: a copy, since a parameter may have several targets
        copy = replace(source, name=entry.target, node=entry.node, used=False)
        yield (
            entry.target,
            ParameterSetting(copy, source.value, source.unit, entry.transformation, entry.suppress),
        )
    if missing:
        what = f"a mapping names {list_names(missing)}, which no parameter is called"
        findings.note(f"{what} ({mapping[0].node.file})")
