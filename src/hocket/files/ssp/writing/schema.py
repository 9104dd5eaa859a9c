"""What the XML of an SSP is called, and which version of the standard it needs.

In:  types of FMI, as they are written
Out: names of elements; 1.0 unless something needs 2.0
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, register_namespace

from hocket.files.ssp.terms import NAMESPACES

TAGS = {
    "real": "Real", "float32": "Float32", "integer": "Integer", "int8": "Int8", "uint8": "UInt8",
    "int16": "Int16", "uint16": "UInt16", "int32": "Integer", "uint32": "UInt32", "int64": "Int64",
    "uint64": "UInt64", "boolean": "Boolean", "string": "String", "enumeration": "Enumeration",
    "binary": "Binary",
}  # fmt: skip
_FIRST = ("Real", "Integer", "Boolean", "String", "Enumeration", "Binary")


@dataclass
class Needs:
    """The version, found out on the way; `versioned` are the elements that tell it."""

    reason: str = ""
    """What 2.0 is needed for; empty: 1.0 is enough."""
    versioned: list[Element] = field(default_factory=list)

    def require_version_2(self, reason: str) -> None:
        """Ask for 2.0."""
        self.reason = self.reason or reason

    def tag(self, tag: str) -> str:
        """Return the name of a type, which may be one that 2.0 has only."""
        if tag not in _FIRST:
            self.require_version_2(f"the type {tag}")
        return tag

    def finish(self) -> str:
        """Write the version where it belongs, and return it."""
        version = "2.0" if self.reason else "1.0"
        for element in self.versioned:
            element.set("version", version)
        return version


def register_prefixes(hocket: str) -> None:
    """Let the names have their usual prefixes."""
    for prefix, namespace in {**NAMESPACES, "hocket": hocket}.items():
        register_namespace(prefix, namespace)
