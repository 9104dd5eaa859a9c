"""Parameters: sets of values (.ssv), and what mappings and connections do to a value.

In:  a <ParameterSet>, inline or of a file; <LinearTransformation> and the three mapping transformations
Out: Parameters by name; lines and tables of numbers; what parameters are to become
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hocket.errors import list_names, suggest_nearest
from hocket.files.ssp.package import Node
from hocket.files.ssp.unit_definitions import (
    IDENTITY,
    AffineMap,
    look_up_unit,
    read_units,
    unit_conversion,
)
from hocket.files.ssp.vocabulary import FMU_TYPES, flatten_array, map_array, nest_array
from hocket.simulators.fmu.variables import FLOATS, VALUE_PARSERS, NamedUnit, parse_boolean, parse_whole

TEXTS = ("String", "Enumeration")
MAPPING_ENTRY = "MappingEntry"
_MORE = ("Annotations", "MetaData", "Signature", "Signatures")
"""What may stand in any element, and says nothing of values."""


@dataclass(eq=False)
class Parameter:
    """One value of a set."""

    name: str
    value: Any
    """A number, a truth, a text (of an enumeration: the item), bytes; for an array nested lists of them."""
    unit: NamedUnit | None
    node: Node
    used: bool = False
    """Whether something in the system took it."""


def read_parameter_set(node: Node, units: Mapping[str, NamedUnit]) -> dict[str, Parameter]:
    """Return the parameters of a set by name; `units` are those of the file around an inline set."""
    check_version(node)
    check_content(node, "Parameters", "Enumerations", "Units")
    if node.child("Parameters") is None:
        node.fault("a <ParameterSet> without <Parameters>", "<Parameters>, though there may be none in them")
    for inner in node.all("Parameters"):
        check_content(inner, "Parameter")
    own = {**units, **read_units(node)}
    found: dict[str, Parameter] = {}
    for entry in node.all("Parameters", "Parameter"):
        name = entry.get("name")
        typed = next((child for child in entry.children if child.tag in FMU_TYPES), None)
        if not name or typed is None:
            known = [child.tag for child in entry.children]
            hint = suggest_nearest(known[0], FMU_TYPES) if known else ""
            entry.fault(f"the parameter `{name}` has no value", "such as <Real value=...>", hint)
            continue
        if name in found:
            entry.note(f"`{name}` is given twice in one set, the later value counts ({entry.place})")
        try:
            value = _parse_value(typed, _sizes(entry))
        except ValueError as error:
            typed.fault(f"`{name}` is {error}", _parser(typed.tag)[1])
            continue
        unit = look_up_unit(typed.get("unit"), own) if FMU_TYPES[typed.tag] in FLOATS else None
        found[name] = Parameter(name, value, unit, entry)
    return found


def check_content(node: Node, *known: str) -> None:
    """Note a fault for each element inside that cannot stand there."""
    for child in node.children:
        if child.tag not in known and child.tag not in _MORE:
            hint = suggest_nearest(child.tag, known)
            child.fault(f"a <{child.tag}> in a <{node.tag}>", " or ".join(f"<{tag}>" for tag in known), hint)


def check_version(node: Node) -> None:
    """Note a fault if a file is of a version that is not known; 1.0 and 2.0 may be mixed."""
    version = node.get("version")
    if not version:
        node.note(f"the version is missing, 1.0 is assumed ({node.place})")
    elif version.split(".")[:2] not in (["1", "0"], ["2", "0"]):
        node.fault(f"the version is `{version}`", '"1.0" or "2.0"')


def _sizes(entry: Node) -> list[int]:
    try:
        return [parse_whole(dimension.get("size")) for dimension in entry.all("Dimension")]
    except ValueError:
        raise ValueError("an array without a size") from None


def _parse_value(node: Node, sizes: list[int]) -> Any:
    """Return the value of a typed element; raises ValueError with what is there instead."""
    inner = [child.attributes.get("value", "") for child in node.all("Value")]
    if inner:
        texts = inner
    elif "value" not in node.attributes:
        raise ValueError("without a value")
    elif node.tag in TEXTS:
        texts = [node.attributes["value"]]
    else:
        texts = node.attributes["value"].split() or [""]
    values = [_parse_single(node.tag, text) for text in texts]
    if not sizes:
        return values[0] if len(values) == 1 else values
    if len(values) != math.prod(sizes):
        shape = " x ".join(map(str, sizes))
        raise ValueError(f"{len(values)} values for an array of {shape}")
    return nest_array(values, sizes)


def _parse_single(tag: str, text: str) -> Any:
    try:
        return _parser(tag)[0](text)
    except ValueError:
        raise ValueError(f"`{text}`") from None


def _parser(tag: str) -> tuple[Callable[[str], Any], str]:
    """Return what reads a value of a typed element, and what it expects; items go by their names."""
    return VALUE_PARSERS["string" if tag in TEXTS else FMU_TYPES[tag]]


_TABLES: dict[str, Callable[[str], Any]] = {
    "Boolean": parse_boolean,
    "Integer": parse_whole,
    "Enumeration": str,
}
"""By the beginning of a tag, `BooleanMappingTransformation`: what reads the values in a table."""


@dataclass(frozen=True)
class Transformation:
    """A line, or a table of values; values that are not in the table stay as they are."""

    line: AffineMap = IDENTITY
    table: tuple[tuple[Any, Any], ...] = ()
    kind: str = "Linear"
    """Linear, Boolean, Integer or Enumeration."""

    def numbers(self, source: Mapping[str, int], target: Mapping[str, int]) -> dict[int, int]:
        """Return the table as numbers, items by the enumerations of both ends; raises ValueError."""
        return {_item_number(one, source): _item_number(other, target) for one, other in self.table}

    def apply(self, value: Any) -> Any:
        """Return a value of a parameter, transformed; an item is a text here."""
        if self.kind == "Linear":
            return value if self.line == IDENTITY else self.line.at(float(value))
        if self.kind == "Enumeration":
            key: Any = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            key = bool(value) if self.kind == "Boolean" else int(value)
        return dict(self.table).get(key, value)


NONE = Transformation()


def _item_number(value: Any, items: Mapping[str, int]) -> int:
    if isinstance(value, str) and value not in items:
        raise ValueError(f"there is no item `{value}`; {suggest_nearest(value, items)}".rstrip("; "))
    return items[value] if isinstance(value, str) else int(value)


def read_transformation(parent: Node) -> Transformation:
    """Return the transformation that stands in a connection or a mapping entry; nothing is the identity."""
    for node in parent.children:
        if node.tag == "LinearTransformation":
            try:
                line = AffineMap(float(node.get("factor") or 1), float(node.get("offset") or 0))
            except ValueError:
                node.fault("the factor or the offset is not a number", 'such as factor="2.5"')
                return NONE
            return Transformation(line)
        kind = node.tag.removesuffix("MappingTransformation")
        if kind != node.tag and kind in _TABLES:
            return _read_map_table(node, kind)
    return NONE


def _read_map_table(node: Node, kind: str) -> Transformation:
    entries: dict[Any, Any] = {}
    for entry in node.all("MapEntry"):
        source, target = entry.get("source"), entry.get("target")
        try:
            one, other = _TABLES[kind](source), _TABLES[kind](target)
        except ValueError:
            expected = "whole numbers" if kind == "Integer" else "true or false"
            entry.fault(f"`{source}` is mapped to `{target}`", expected)
            continue
        if one in entries:
            entry.fault(f"`{source}` is mapped twice", "one entry for each value")
        entries[one] = other
    return Transformation(table=tuple(entries.items()), kind=kind)


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
        return self.parameter.node

    @property
    def is_mapped(self) -> bool:
        """Whether a line of a mapping says what it becomes."""
        return self.node.tag == MAPPING_ENTRY

    def is_same(self, other: ParameterSetting) -> bool:
        """Return whether another makes the same of a variable."""
        means = [(each.value, each.unit, each.transformation, each.suppress) for each in (self, other)]
        return means[0] == means[1]

    def convert_value(self, unit: NamedUnit | None) -> Any:
        """Return the value in that unit, transformed; raises ValueError if the units do not convert."""
        self.parameter.used = True
        value = self.value
        if not self.suppress and _numeric(value):
            convert = unit_conversion(self.unit, unit)
            value = value if convert == IDENTITY else map_array(convert.at, value)
        return map_array(self.transformation.apply, value)


def _numeric(value: Any) -> bool:
    numbers = flatten_array(value)
    return all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in numbers)


@dataclass(frozen=True)
class MappingEntry:
    """One line of a mapping."""

    source: str
    target: str
    transformation: Transformation
    suppress: bool
    node: Node


def read_mapping(node: Node) -> list[MappingEntry]:
    check_version(node)
    check_content(node, MAPPING_ENTRY)
    entries: dict[str, MappingEntry] = {}
    for entry in node.all(MAPPING_ENTRY):
        target = entry.get("target")
        if not target or "source" not in entry.attributes:  # some tools write source="" for none
            missing = "source" if target else "target"
            entry.fault(f"a line of a mapping has no {missing}", "the names of both")
            continue
        if target in entries:
            entry.fault(f"`{target}` is mapped from two parameters", "one entry for each target")
        entries[target] = MappingEntry(
            entry.get("source"),
            target,
            read_transformation(entry),
            entry.says("suppressUnitConversion"),
            entry,
        )
    return list(entries.values())


def binding_settings(
    found: Mapping[str, Parameter], prefix: str, mapping: list[MappingEntry] | None
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
        what = f"a mapping names {list_names(dict.fromkeys(missing), 3)}, which no parameter is called"
        mapping[0].node.note(f"{what} ({mapping[0].node.file})")
