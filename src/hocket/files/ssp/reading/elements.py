"""What stands in a system or component: connectors, connections; and what a whole file defines.

In:  nodes of an SSD
Out: Connectors and Links, as they are written
"""

from __future__ import annotations

from collections.abc import Iterable

from hocket.files.ssp.findings import ImportFindings
from hocket.files.ssp.nodes import Node
from hocket.files.ssp.reading.parameters import REALS, TYPES
from hocket.files.ssp.reading.parts import ConnectionEnd, Connector, Document, SspConnection
from hocket.files.ssp.reading.transformations import TRUTHS, read_transformation
from hocket.files.ssp.units import look_up_unit

_KINDS = (
    "input", "output", "inout", "unspecified", "local", "constant", "parameter", "calculatedParameter",
    "structuralParameter",
)  # fmt: skip


def read_connectors(
    nodes: Iterable[Node], document: Document, findings: ImportFindings
) -> dict[str, Connector]:
    """Return connectors, or entries of a dictionary, by name."""
    found: dict[str, Connector] = {}
    for node in nodes:
        name, kind = node.get("name"), node.get("kind")
        if kind and kind not in _KINDS:
            findings.fault(node, f"the connector `{name}` is of the kind `{kind}`", ", ".join(_KINDS))
            kind = ""
        if node.child("Clock"):
            findings.fault(node, f"the connector `{name}` is a clock or has one, which hocket does not tick")
        if name in found:
            findings.fault(node, f"two connectors are named `{name}`", "names that differ")
        typed = next((child for child in node.children if child.tag in TYPES), None)
        sizes = tuple(size.get("size") or size.get("sizeConnector") for size in node.all("Dimension"))
        found[name] = Connector(
            name,
            kind,
            typed.tag if typed else "",
            look_up_unit(typed.get("unit"), document.units) if typed and typed.tag in REALS else None,
            document.enumerations.get(typed.get("name"), {}) if typed else {},
            sizes or None,
            node,
        )
    return found


def read_connection(node: Node, findings: ImportFindings) -> SspConnection:
    """Return a connection."""
    ends = []
    for side in ("start", "end"):
        written = node.get(f"{side}Indices")
        try:
            indices = tuple(int(index) for index in written.split())
        except ValueError:
            findings.fault(node, f"the {side}Indices are `{written}`", "whole numbers from 1")
            indices = ()
        ends.append(ConnectionEnd(node.get(f"{side}Element") or None, node.get(f"{side}Connector"), indices))
    suppress = TRUTHS.get(node.get("suppressUnitConversion").lower(), False)
    return SspConnection(ends[0], ends[1], read_transformation(node, findings), suppress, node)


def read_enumerations(parent: Node, findings: ImportFindings) -> dict[str, dict[str, int]]:
    """Return the enumerations that a file defines: the value of each item."""
    found: dict[str, dict[str, int]] = {}
    for node in parent.all("Enumerations", "Enumeration"):
        items = found.setdefault(node.get("name"), {})
        for item in node.all("Item"):
            name, value = item.get("name"), item.get("value")
            try:
                items[name] = int(value)
            except ValueError:
                findings.fault(item, f"the item `{name}` is `{value}`", "a whole number")
    return found
