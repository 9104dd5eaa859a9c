"""Values of arrays: nested as they are given, flat as they are written.

In:  nested lists; or values and sizes
Out: the values in order, the last index running fastest; or nested lists
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def flatten_array(value: Any) -> list[Any]:
    """Return the values of nested lists, or of one value."""
    return (
        [each for item in value for each in flatten_array(item)]
        if isinstance(value, (list, tuple))
        else [value]
    )


def nest_array(values: list[Any], sizes: Sequence[int]) -> list[Any]:
    """Return as many values as the sizes say, as nested lists."""
    for size in reversed(sizes[1:]):
        values = [values[start : start + size] for start in range(0, len(values), size)]
    return values
