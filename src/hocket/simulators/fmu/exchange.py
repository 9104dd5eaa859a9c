"""A model exchange FMU at work: hocket integrates it, and lets it handle its events.

In:  an Fmu
Out: a live simulator; with a fixed-step method `native` is what a level steps without Python
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from hocket.model.protocols import Array, Simulator
from hocket.simulators.fmu.live import (
    ELSEWHERE,
    CoSimulation,
    _contiguous_array,
    element_count,
    load_fmu,
    port_ranges,
    state_count,
)
from hocket.simulators.fmu.variables import FmuVariable

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu


_NUDGE = float(np.finfo(float).eps) ** (1 / 3)
"""Where central differences err least."""


def jacobian(live: ModelExchange, u: Array) -> tuple[Array, Array, Array, Array]:
    """Return the slopes of rates and outputs over states and inputs, at the present time and state."""
    exchange, model = live.exchange, live.model
    x, kept = exchange.x, exchange.inputs
    size, point = len(x), np.concatenate([x, u])
    whole = np.zeros((size + len(model.outputs), len(point)))
    unknowns, rows = _rates(live), list(range(size))
    if gives_directional(live):
        for variable, places in port_ranges(model, "output"):
            if variable.moves:
                unknowns.append(variable)
                rows += [size + place for place in places]
        _evaluate_at(live, point, size)
        for variable, columns in _knowns(live, size):
            whole[np.ix_(rows, list(columns))] = directional_columns(live, unknowns, variable, len(rows))
    else:
        rows = []
    reals = [size + number for number, port in enumerate(model.outputs) if port.type == "real"]
    missing = [row for row in (*range(size), *reals) if row not in rows]
    if missing:
        whole[missing] = _differences(live, point, size)[missing]
    _evaluate_at(live, np.concatenate([x, kept]), size)
    return whole[:size, :size], whole[:size, size:], whole[size:, :size], whole[size:, size:]


def gives_directional(live: ModelExchange) -> bool:
    """Return whether it tells directional derivatives."""
    return live.model.interface_used.directional and bool(live.exchange.has_directional)


def state_slopes(live: ModelExchange) -> Array:
    """Return A where it stands, from directional derivatives."""
    unknowns = _rates(live)
    size = sum(element_count(live.model, variable) for variable in unknowns)
    states = [columns for columns in _knowns(live, size) if columns[1].start < size]
    return np.hstack([directional_columns(live, unknowns, variable, size) for variable, _ in states])


def directional_columns(
    live: ModelExchange, unknowns: list[FmuVariable], known: FmuVariable, count: int
) -> Array:
    """Return how the unknowns change with each element of one known variable."""
    width = element_count(live.model, known)
    references = [variable.reference for variable in unknowns]
    columns = []
    for element in range(width):
        seed = [float(element == other) for other in range(width)]
        column = live.exchange.directional(references, [known.reference], seed, count)
        if column is None:
            raise live.fault()
        columns.append(column)
    return np.array(columns).T.reshape(count, width)


def _rates(live: ModelExchange) -> list[FmuVariable]:
    description = live.model.description
    return [description.by_name[rate] for _, rate in description.states]


def _knowns(live: ModelExchange, size: int) -> Iterator[tuple[FmuVariable, range]]:
    """Yield the states and the inputs that may move, each with its columns."""
    description, place = live.model.description, 0
    for state, _ in description.states:
        variable = description.by_name[state]
        count = element_count(live.model, variable)
        yield variable, range(place, place + count)
        place += count
    for variable, places in port_ranges(live.model, "input"):
        if variable.moves:
            yield variable, range(size + places.start, size + places.stop)


def _differences(live: ModelExchange, point: Array, size: int) -> Array:
    """Return the slopes of rates and outputs, from central differences scaled by nominal values."""
    nominals = live.exchange.nominals()
    if nominals is None:
        raise live.fault()
    slopes = np.zeros((size + len(live.model.outputs), len(point)))
    for variable, columns in _knowns(live, size):
        for column in columns:
            scale = nominals[column] if column < size else variable.nominal or 1.0
            ends, moved = [], []
            for sign in (1.0, -1.0):
                there = point.copy()
                there[column] += sign * _NUDGE * max(abs(point[column]), abs(scale))
                moved.append(there[column])
                ends.append(_evaluate_at(live, there, size))
            slopes[:, column] = (ends[0] - ends[1]) / (moved[0] - moved[1])
    return slopes


def _evaluate_at(live: ModelExchange, point: Array, size: int) -> Array:
    """Return rates and outputs at other states and inputs."""
    found = live.exchange.probe(point[:size].copy(), point[size:].copy(), len(live.model.outputs))
    if found is None:
        raise live.fault()
    return np.concatenate(found)


def open_simulator(model: Fmu) -> Simulator:
    """Load the FMU; nothing is instantiated yet."""
    exchange = load_fmu(ModelExchange, model)
    if model.method not in ELSEWHERE or not state_count(model):
        return exchange
    from hocket.simulators.fmu.model_exchange_solvers import Cvode, DormandPrince

    return Cvode(exchange) if model.method == "cvode" else DormandPrince(exchange)


class ModelExchange(CoSimulation):
    """A live model exchange FMU, integrated by compiled code with a fixed-step method."""

    @property
    def exchange(self) -> Any:
        """What a solver elsewhere calls; the FMU leaves initialisation, if that is still to do."""
        self._require_success(self.native.ready())
        return self.native.exchange

    def jacobian(self, t: float, u: Array) -> tuple[Array, Array, Array, Array]:
        """Return A, B, C, D where it stands: x' = A x + B u, y = C x + D u for small changes.

        Inputs that only change at events have columns of zeros, outputs that are no reals rows of zeros.
        """
        return jacobian(self, _contiguous_array(u)[0])
