"""Sets of parameters (.ssv): values of every type, with units, arrays among them.

In:  a <ParameterSet>, inline or of a file
Out: Parameters by name
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hocket.errors import suggest_nearest
from hocket.files.ssp.nodes import ImportFindings, Node
from hocket.files.ssp.unit_definitions import NamedUnit, look_up_unit, read_units
from hocket.files.ssp.vocabulary import TRUTHS, nest_array

REALS = ("Real", "Float64", "Float32")
WHOLES = ("Integer", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")
TYPES = (*REALS, *WHOLES, "Boolean", "String", "Enumeration", "Binary")


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


def read_parameter_set(
    node: Node, units: Mapping[str, NamedUnit], findings: ImportFindings
) -> dict[str, Parameter]:
    """Return the parameters of a set by name; `units` are those of the file around an inline set."""
    check_version(node, findings)
    own = {**units, **read_units(node, findings)}
    found: dict[str, Parameter] = {}
    for entry in node.all("Parameters", "Parameter"):
        name = entry.get("name")
        typed = next((child for child in entry.children if child.tag in TYPES), None)
        if not name or typed is None:
            known = [child.tag for child in entry.children]
            hint = suggest_nearest(known[0], TYPES) if known else ""
            findings.fault(entry, f"the parameter `{name}` has no value", "such as <Real value=...>", hint)
            continue
        if name in found:
            findings.note(f"`{name}` is given twice in one set, the later value counts ({entry.where})")
        try:
            value = _parse_value(typed, _sizes(entry))
        except ValueError as error:
            findings.fault(typed, f"`{name}` is {error}", _EXPECTED[_value_kind(typed.tag)])
            continue
        unit = look_up_unit(typed.get("unit"), own) if typed.tag in REALS else None
        found[name] = Parameter(name, value, unit, entry)
    return found


def check_version(node: Node, findings: ImportFindings) -> None:
    """Note a fault if a file is of a version that is not known; 1.0 and 2.0 may be mixed."""
    version = node.get("version")
    if not version:
        findings.note(f"the version is missing, 1.0 is assumed ({node.where})")
    elif version.split(".")[:2] not in (["1", "0"], ["2", "0"]):
        findings.fault(node, f"the version is `{version}`", '"1.0" or "2.0"')


_EXPECTED = {
    "real": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "text": "a text",
    "binary": "hexadecimal digits",
}


def _value_kind(tag: str) -> str:
    if tag in REALS:
        return "real"
    if tag in WHOLES:
        return "integer"
    return {"Boolean": "boolean", "Binary": "binary"}.get(tag, "text")


def _sizes(entry: Node) -> list[int]:
    try:
        return [int(dimension.get("size")) for dimension in entry.all("Dimension")]
    except ValueError:
        raise ValueError("an array without a size") from None


def _parse_value(node: Node, sizes: list[int]) -> Any:
    """Return the value of a typed element; raises ValueError with what is there instead."""
    inner = [child.attributes.get("value", "") for child in node.all("Value")]
    if inner:
        texts = inner
    elif "value" not in node.attributes:
        raise ValueError("without a value")
    elif _value_kind(node.tag) == "text":
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
    kind = _value_kind(tag)
    try:
        if kind == "real":
            return float(text)
        if kind == "integer":
            return int(text)
        if kind == "boolean":
            return TRUTHS[text.lower()]
        if kind == "binary":
            return bytes.fromhex(text)
    except (ValueError, KeyError):
        raise ValueError(f"`{text}`") from None
    return text
