"""What compiled code must know of an FMU that hocket integrates: states, indicators, which inputs may move.

In:  an Fmu for model exchange
Out: numbers, and the calls that set moving inputs
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hocket.simulators.fmu.facts import FLOATS, FmuVariable
from hocket.simulators.fmu.ports import ValueGroup, shape
from hocket.simulators.methods import TABLEAUX

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu

ELSEWHERE = ("adaptive", "cvode")
"""The methods whose steps are made in Python."""


def element_count(model: Fmu, variable: FmuVariable) -> int:
    """Return how many numbers a variable holds."""
    return math.prod(shape(variable, model.settings.sizes))


def state_count(model: Fmu) -> int:
    """Return how many continuous states it has."""
    description = model.description
    return sum(element_count(model, description.by_name[state]) for state, _ in description.states)


def exchange_facts(model: Fmu) -> dict[str, Any]:
    """Return what the integrator needs to know; `moving` are the calls for the inputs that may move."""
    count = state_count(model)
    method = "euler" if model.method in ELSEWHERE and count == 0 else model.method
    tableau = None if method in ELSEWHERE else TABLEAUX.get(method, TABLEAUX["heun"])
    every, moving = _moving_groups(model)
    return {
        "states": count,
        "indicators": model.description.event_indicators,
        "completed_step": model.interface_used.completed_step,
        "all_move": every,
        "moving": moving,
        "a": [] if tableau is None else [weight for row in tableau.a for weight in row],
        "b": [] if tableau is None else list(tableau.b),
        "c": [] if tableau is None else list(tableau.c),
        "multistep": method == "ab2",
        "longest": 0.0 if model.step is None else float(model.step),
        "atol": model.atol,
    }


def port_ranges(model: Fmu, causality: str) -> list[tuple[FmuVariable, range]]:
    """Return the numeric inputs or outputs, each with the numbers of its ports."""
    found, place = [], 0
    for variable in model.description.variables:
        if variable.causality == causality and variable.alias_of is None and variable.numeric:
            count = element_count(model, variable)
            found.append((variable, range(place, place + count)))
            place += count
    return found


def _moving_groups(model: Fmu) -> tuple[bool, tuple[ValueGroup, ...]]:
    every = port_ranges(model, "input")
    chosen = [(variable, places) for variable, places in every if variable.moves]
    groups = []
    for kind in FLOATS:
        own = [(variable, places) for variable, places in chosen if variable.type == kind]
        if own:
            references = tuple(variable.reference for variable, _ in own)
            groups.append(ValueGroup(kind, references, tuple(place for _, places in own for place in places)))
    return len(chosen) == len(every), tuple(groups)
