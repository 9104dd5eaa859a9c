"""The names of the elements of arrays: `x[1]`, `A[1,2]`; some tools write `A[1, 2]`.

In:  a name
Out: the name of the array
"""

from __future__ import annotations

import re

INDICES = re.compile(r"\[\d+(?:,\s*\d+)*\]")


def array_of(name: str) -> str:
    """Return the array whose element a name would be; empty if it ends in no indices."""
    array, bracket, rest = name.rpartition("[")
    return array if INDICES.fullmatch(bracket + rest) else ""
