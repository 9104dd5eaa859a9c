"""The variables of FMUs by the names that an SSP uses: whole arrays, and elements of them.

In:  a Component and the name of a connector or parameter
Out: a Variable; None if its FMU has none of that name, or could not be read
"""

from __future__ import annotations

import re
from functools import lru_cache

from hocket.files.ssp.reading.parts import Component
from hocket.simulators.fmu.facts import Description, FmuVariable

_ARRAY_ELEMENT = re.compile(r"(.+)\[[\d, ]+\]")


def find_variable(component: Component, name: str) -> FmuVariable | None:
    """Return the variable; of an array written as `x[1]`, `x[2]` ... the first of them."""
    if component.fmu is None:
        return None
    description = component.fmu.description
    return description.by_name.get(name) or _arrays(description).get(name)


def find_owning_variable(component: Component, name: str) -> FmuVariable | None:
    """Return the variable; for an element of an array the array."""
    return find_variable(component, name) or find_variable(component, name.partition("[")[0])


@lru_cache(maxsize=64)
def _arrays(description: Description) -> dict[str, FmuVariable]:
    """Return the first element of every array that is written as single variables, by the array's name."""
    arrays: dict[str, FmuVariable] = {}
    for name, found in description.by_name.items():
        match = _ARRAY_ELEMENT.fullmatch(name)
        if match:
            arrays.setdefault(match[1], found)
    return arrays
