"""Values of arrays: nested as they are given, flat as they are written.

In:  nested lists; or values and sizes
Out: the values in order, the last index running fastest; or nested lists
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element


def flatten_array(value: Any) -> list[Any]:
    """Return the values of nested lists, or of one value."""
    if not isinstance(value, (list, tuple)):
        return [value]
    return [each for item in value for each in flatten_array(item)]


def map_array(function: Callable[[Any], Any], value: Any) -> Any:
    """Return what a function makes of each value of nested lists, or of one value."""
    return [map_array(function, item) for item in value] if isinstance(value, list) else function(value)


def nest_array(values: list[Any], sizes: Sequence[int]) -> list[Any]:
    """Return as many values as the sizes say, as nested lists."""
    for size in reversed(sizes[1:]):
        values = [values[start : start + size] for start in range(0, len(values), size)]
    return values


NAMESPACES = {
    prefix: f"http://ssp-standard.org/SSP1/SystemStructure{name}"
    for prefix, name in (("ssd", "Description"), ("ssc", "Common"), ("ssv", "ParameterValues"))
}
SSD, SSC, SSV = (f"{{{namespace}}}" for namespace in NAMESPACES.values())
"""In front of the names of elements."""
DEFAULT = "SystemStructure.ssd"
FMU = "application/x-fmu-sharedlibrary"
PACKAGE = "application/x-ssp-package"
DEFINITION = "application/x-ssp-definition"
SET = "application/x-ssp-parameter-set"
MAPPING = "application/x-ssp-parameter-mapping"
INTERFACES = {"any": "auto", "CoSimulation": "co-simulation", "ModelExchange": "model-exchange"}
"""What a component says of how it is to be run, and what hocket calls it."""
LOOKUP = "hocket.files.ssp.lookup:Lookup"
"""The model that stands for a table in a connection."""


_FIRST = ("Real", "Integer", "Boolean", "String", "Enumeration", "Binary")
_SECOND = ("Float32", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")
KINDS = {"Float64": "real", **{tag: tag.lower() for tag in (*_FIRST, *_SECOND)}}
"""By the tag of a typed element: what an FMU calls the type."""
TAGS = {kind: tag for tag, kind in KINDS.items()} | {"int32": "Integer"}
"""The tags that are written: those of 1.0 where they serve."""


@dataclass
class Needs:
    """The version, found out on the way; `versioned` are the elements that tell it."""

    reason: str = ""
    """What 2.0 is needed for; empty: 1.0 is enough."""
    versioned: list[Element] = field(default_factory=list)

    def require_version_2(self, reason: str) -> None:
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
