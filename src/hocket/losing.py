"""What a connection between ports of different types would lose silently.

In:  two types of ports, a gain and an offset
Out: why not, in words; empty if nothing is lost
"""

from __future__ import annotations

A = {
    "real": "a real",
    "integer": "an integer",
    "boolean": "a boolean",
    "enumeration": "an enumeration",
    "string": "a string",
    "binary": "a binary",
}
_FITS = {("boolean", "integer"), ("enumeration", "integer")}


def describe_loss(source: str, target: str, gain: float, offset: float) -> str:
    """Return what a connection would lose silently; empty if nothing."""
    if target == "real":
        return ""
    if source != target and (source, target) not in _FITS:
        return f"and {A[target]} cannot hold all its values"
    whole = gain == int(gain) and offset == int(offset)
    if (gain, offset) != (1.0, 0.0) and not (target == "integer" and whole):
        return f"and {gain:g} times it{f' plus {offset:g}' if offset else ''} is not always {A[target]}"
    return ""
