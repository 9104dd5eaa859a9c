"""The words of SSP: namespaces, media types, types of values; and arrays, nested or flat.

In:  words of an SSP, nested lists
Out: what hocket calls them; values in order, the last index running fastest
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hocket.simulators.fmu.variables import SIZED


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
FMU_TYPES = {tag: "real" if tag == "Float64" else tag.lower() for tag in (*SIZED, *_FIRST)}
"""By the tag of a typed element: what an FMU calls the type."""
TAGS = {kind: tag for tag, kind in FMU_TYPES.items()} | {"int32": "Integer"}
"""The tags that are written: those of 1.0 where they serve."""
