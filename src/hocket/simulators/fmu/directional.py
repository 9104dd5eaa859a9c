"""Directional derivatives of FMUs: their slopes where they stand, as they give them themselves.

In:  a live FMU of FMI 2 or 3, for model exchange or co-simulation, that names its states
Out: how rates and outputs change with states and inputs, a matrix; None where it refuses
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hocket.model.protocols import Array
from hocket.simulators.fmu.live import CoSimulation, state_ranges
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.variables import FmuVariable


def rate_variables(model: Fmu) -> list[FmuVariable]:
    """Return the derivatives of the states, in their order."""
    description = model.description
    return [description.by_name[rate] for _, rate in description.states]


def moving_inputs(model: Fmu, size: int) -> Iterator[tuple[FmuVariable, range]]:
    """Yield the inputs that may move, each with its columns behind those of the states."""
    for variable, places in model.port_layout.input_ranges:
        if variable.moves:
            yield variable, range(size + places.start, size + places.stop)


def gives_directional(live: CoSimulation) -> bool:
    """Return whether an FMU declares directional derivatives, and its binary has the function."""
    return live.model.interface_used.directional and live.driver.gives_directional


def directional_columns(
    live: CoSimulation, unknowns: list[FmuVariable], known: FmuVariable, width: int, count: int
) -> Array | None:
    """Return how the unknowns change with each of the `width` elements of one known variable."""
    references = [variable.reference for variable in unknowns]
    columns = []
    for element in range(width):
        seed = [float(element == other) for other in range(width)]
        column = live.driver.directional(references, [known.reference], seed, count)
        if column is None:
            return None
        columns.append(column)
    return np.array(columns).T.reshape(count, width)


def directional_slopes(live: CoSimulation, width: int) -> tuple[list[int], Array | None]:
    """Return the rows that FMI can tell of, of rates and outputs, and these as the FMU gives them.

    There is a column for each state and each input, `width` in all; None: it refuses.
    """
    model = live.model
    states = state_ranges(model)
    size = sum(len(places) for _, places in states)
    unknowns, rows = rate_variables(model), list(range(size))
    for variable, places in model.port_layout.output_ranges:
        if variable.moves and variable.causality == "output":
            unknowns.append(variable)
            rows += [size + place for place in places]
    given = np.zeros((len(rows), width))
    for variable, columns in (*states, *moving_inputs(model, size)):
        part = directional_columns(live, unknowns, variable, len(columns), len(rows))
        if part is None:
            return rows, None
        given[:, list(columns)] = part
    return rows, given


@dataclass(frozen=True, eq=False)
class CommunicationPoint:
    """Where a co-simulation FMU stands: states, rates, and the slopes of rates and outputs."""

    x: Array
    rates: Array
    slopes: Array
    """Rows are rates and outputs, columns are states and inputs."""


def look_at_point(live: CoSimulation) -> CommunicationPoint | None:
    """Return the states of a co-simulation FMU and its slopes at a communication point.

    None: it does not give them, or what it gives does not tell all of it: an output that is not real, or that
    is none of its variables, has no slope.
    """
    model = live.model
    if not gives_directional(live) or not all(
        variable.moves for variable, _ in model.port_layout.input_ranges
    ):
        return None
    states = state_ranges(model)
    size = sum(len(places) for _, places in states)
    rows, given = directional_slopes(live, size + len(model.inputs))
    if given is None or rows != list(range(size + len(model.outputs))) or not np.isfinite(given).all():
        return None
    read = [_read_values(live, variable, len(places)) for variable, places in states]
    rates = zip(rate_variables(model), states, strict=True)
    moved = [_read_values(live, rate, len(places)) for rate, (_, places) in rates]
    found = [
        np.concatenate([np.zeros(0), *(each for each in part if each is not None)]) for part in (read, moved)
    ]
    if any(len(each) != size or not np.isfinite(each).all() for each in found):
        return None
    return CommunicationPoint(found[0], found[1], given)


def _read_values(live: CoSimulation, variable: FmuVariable, count: int) -> Array | None:
    """Return the values of a variable; None: they cannot be read."""
    values = live.read_reals([variable.reference], count)
    return None if values is None else np.array(values)
