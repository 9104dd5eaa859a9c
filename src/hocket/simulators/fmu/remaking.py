"""An FMU made again: the same one, with other parameters and options.

In:  an Fmu, and what is to be different
Out: an Fmu
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hocket.simulators.fmu.elements import array_of
from hocket.simulators.fmu.recipe import Fmu


def remake_fmu(
    fmu: Fmu, parameters: Mapping[str, Any] | None = None, *, kind: type[Fmu] = Fmu, **options: Any
) -> Fmu:
    """Return the FMU with more parameters and other options; `kind` makes another kind of model of it."""
    more = dict(parameters or {})
    given = {name: value for name, value in fmu.parameters.items() if not _is_covered(fmu, name, more)}
    return kind(fmu.path, {**given, **more}, folder=fmu.folder, **{**fmu.options, **options})


def _is_covered(fmu: Fmu, name: str, more: Mapping[str, Any]) -> bool:
    """Return whether a name is an element of an array that is now set whole."""
    array, known = array_of(name), fmu.description.by_name
    # FMI 3 has a variable for the array, FMI 1 and 2 for each element; where both exist they are strangers
    return array in more and (array in known) != (name in known)
