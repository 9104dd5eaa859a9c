"""What a connection or a mapping does to a value: a factor and an offset, or a table of other values.

In:  <LinearTransformation> and the three mapping transformations
Out: lines and tables of numbers
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hocket.errors import suggest_nearest
from hocket.files.ssp.findings import ImportFindings
from hocket.files.ssp.nodes import Node
from hocket.files.ssp.units import IDENTITY, AffineMap

_TABLES = {
    "BooleanMappingTransformation": "boolean",
    "IntegerMappingTransformation": "integer",
    "EnumerationMappingTransformation": "enumeration",
}
TRUTHS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Transformation:
    """A line, or a table by the texts of the file; values that are not in the table stay as they are."""

    line: AffineMap = IDENTITY
    table: tuple[tuple[str, str], ...] = ()
    kind: str = "linear"
    """linear, boolean, integer or enumeration."""

    def numbers(self, source: Mapping[str, int], target: Mapping[str, int]) -> dict[int, int]:
        """Return the table as numbers, items by the enumerations of both ends; raises ValueError."""
        pairs = ((_number(a, self.kind, source), _number(b, self.kind, target)) for a, b in self.table)
        return dict(pairs)

    def apply(self, value: Any) -> Any:
        """Return a value of a parameter, transformed; an item is a text here."""
        if isinstance(value, list):
            return [self.apply(item) for item in value]
        if self.kind == "linear":
            return value if self.line == IDENTITY else self.line(float(value))
        text = str(value).lower() if isinstance(value, bool) else str(value)
        for one, other in self.table:
            if self.kind == "enumeration" and one == text:
                return other
            if self.kind == "boolean" and TRUTHS[one] is bool(value):
                return TRUTHS[other]
            if self.kind == "integer" and int(one) == int(value):
                return int(other)
        return value


NONE = Transformation()


def _number(text: str, kind: str, items: Mapping[str, int]) -> int:
    if kind == "boolean":
        return int(TRUTHS[text])
    if kind == "integer":
        return int(text)
    if text not in items:
        raise ValueError(f"there is no item `{text}`; {suggest_nearest(text, items)}".rstrip("; "))
    return items[text]


def read_transformation(parent: Node, findings: ImportFindings) -> Transformation:
    """Return the transformation that stands in a connection or a mapping entry; nothing is the identity."""
    for node in parent.children:
        if node.tag == "LinearTransformation":
            try:
                line = AffineMap(float(node.get("factor") or 1), float(node.get("offset") or 0))
            except ValueError:
                findings.fault(node, "the factor or the offset is no number", 'such as factor="2.5"')
                return NONE
            return Transformation(line)
        if node.tag in _TABLES:
            return _read_map_table(node, _TABLES[node.tag], findings)
    return NONE


def _read_map_table(node: Node, kind: str, findings: ImportFindings) -> Transformation:
    entries: dict[str, str] = {}
    for entry in node.all("MapEntry"):
        pair = entry.get("source"), entry.get("target")
        try:
            if kind == "integer":
                pair = str(int(pair[0])), str(int(pair[1]))
            if kind == "boolean":
                _ = [TRUTHS[text] for text in pair]
        except (ValueError, KeyError):
            expected = "whole numbers" if kind == "integer" else "true or false"
            findings.fault(entry, f"`{pair[0]}` is mapped to `{pair[1]}`", expected)
            continue
        if pair[0] in entries:
            findings.fault(entry, f"`{pair[0]}` is mapped twice", "one entry for each value")
        entries[pair[0]] = pair[1]
    return Transformation(table=tuple(entries.items()), kind=kind)
