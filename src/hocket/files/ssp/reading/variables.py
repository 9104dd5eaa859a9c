"""The variables of FMUs by the names that an SSP uses: whole arrays, and elements of them.

In:  a Component and the name of a connector or parameter
Out: a Variable; None if its FMU has none of that name, or could not be read
"""

from __future__ import annotations

import re
from functools import lru_cache

from hocket.files.ssp.reading.parts import Component
from hocket.simulators.fmu.facts import Description, Variable

_ELEMENT = re.compile(r"(.+)\[[\d, ]+\]")


def variable(component: Component, name: str) -> Variable | None:
    """Return the variable; of an array written as `x[1]`, `x[2]` ... the first of them."""
    if component.fmu is None:
        return None
    description = component.fmu.description
    return description.by_name.get(name) or _arrays(description).get(name)


def around(component: Component, name: str) -> Variable | None:
    """Return the variable; for an element of an array the array."""
    return variable(component, name) or variable(component, name.partition("[")[0])


@lru_cache(maxsize=64)
def _arrays(description: Description) -> dict[str, Variable]:
    """Return the first element of every array that is written as single variables, by the array's name."""
    arrays: dict[str, Variable] = {}
    for name, found in description.by_name.items():
        match = _ELEMENT.fullmatch(name)
        if match:
            arrays.setdefault(match[1], found)
    return arrays
