"""The global error of the first pilot run, from those with shorter steps: how large, how sure.

In:  Pilots
Out: a PilotError: per port the error over time and its peak, whether the runs converge, where ports jump
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from hocket.analysis.pilot import Pilots
from hocket.files.error_estimate import matching_rows
from hocket.model.protocols import Array

ROUNDING_BESIDE = 1e-12
"""Of the largest value beside it: what is smaller may be rounding."""
SMALL = 1e-9
"""Relative errors below this are those of the arithmetic, or of tolerances inside."""
SEEN, STEEPEST = 0.4, 6.0
"""Between these an observed order is used to extrapolate."""
SETTLED, SURE = 0.25, 0.1
"""Of the error: how far off it may be to be settled, and where shorter steps would tell nothing new."""
STEADY = 0.35
"""How far two observed orders in a row may be apart to count as one."""
BEYOND = 0.5
"""By how much an order seen with longer steps may exceed the expected one."""
DECLINES = 0.75
"""Of a difference: what the next one is at most where the runs converge."""
JUMP, AGAIN = 0.25, 4.0
"""Of its range: what a port does between two rows to count as a jump, and times its usual change."""
LATE = 2
"""Rows that a jump may be early or late: its time is off, not its height."""
SWITCHES = 0.9
"""Of all that a port moves: what it does in jumps, to count as a switching one."""
FEW, ROWS_EACH = 8, 4
"""Values that a port takes at most, and rows that each has on average, to count as a switching one."""
ALONE = 0.3
"""Of the largest difference: what the rows beside have at most where it stands alone, as at a jump."""


@dataclass(frozen=True, eq=False)
class PortPilotError:
    """One output of the first run: how far it is from where shorter steps lead."""

    port: str
    unit: str
    t: Array
    values: Array
    error: Array
    """The run less the limit, row by row; nothing where it only jumps a little early or late."""
    differences: tuple[float, ...]
    """The largest between each run and the next one with shorter steps."""
    doubt: float
    """How far the limit itself may be off."""
    scale: float
    """The peak of the limit; of an output that is rounding beside others, theirs."""
    order: float | None
    jumps: int
    """Rows that were left out: the port jumps there, in one of the runs a little earlier."""
    switches: bool = False
    """It moves by jumps only: one that comes a row late is an error as large as the jump."""

    @property
    def mean(self) -> float:
        """The mean error over the peak: how much of the run a port that switches is elsewhere."""
        size = np.abs(self.error)
        if not np.isfinite(size).all() or not math.isfinite(self.scale):
            return math.inf
        return float(size.mean()) / self.scale if len(size) and self.scale else 0.0

    @property
    def largest(self) -> float:
        """The largest error, in the unit of the port."""
        size = np.abs(self.error)
        return math.inf if not np.isfinite(size).all() else float(size.max(initial=0.0))

    @property
    def at(self) -> float:
        """When it is largest."""
        size = np.where(np.isfinite(self.error), np.abs(self.error), np.inf)
        return float(self.t[int(np.argmax(size))]) if len(size) else 0.0

    @property
    def relative(self) -> float:
        """The largest error over the peak."""
        if not math.isfinite(self.largest) or not math.isfinite(self.scale):
            return math.inf
        return self.largest / self.scale if self.scale else math.inf if self.largest else 0.0

    @property
    def relative_doubt(self) -> float:
        """How far the limit may be off, over the peak."""
        if not math.isfinite(self.doubt):
            return math.inf
        return self.doubt / self.scale if self.scale else 0.0


@dataclass(frozen=True, eq=False)
class PilotError:
    """All ports, the worst in relation to its peak first."""

    ports: tuple[PortPilotError, ...]
    refinements: int
    """Runs with shorter steps."""

    @cached_property
    def flowing(self) -> tuple[PortPilotError, ...]:
        """The ports that do not only jump: shorter steps tell their errors; all, where all only jump."""
        return tuple(each for each in self.ports if not each.switches) or self.ports

    @cached_property
    def switching(self) -> tuple[PortPilotError, ...]:
        """The ports that only jump."""
        return tuple(each for each in self.ports if each.switches)

    @property
    def worst(self) -> PortPilotError | None:
        """The port with the largest error in relation to its peak, of those that do not only jump."""
        return self.flowing[0] if self.flowing else None

    @property
    def relative(self) -> float:
        """The largest error in relation to the peak, of those that do not only jump."""
        return self.flowing[0].relative if self.flowing else 0.0

    @cached_property
    def doubt(self) -> float:
        """How far that may be off."""
        return max((each.relative_doubt for each in self.flowing), default=0.0)

    @property
    def settled(self) -> bool:
        """Whether it is known well enough."""
        return self.relative <= SMALL or self.doubt <= SETTLED * self.relative

    @property
    def sure(self) -> bool:
        """Whether shorter steps would tell nothing new."""
        return self.refinements > 2 and (self.relative <= SMALL or self.doubt <= SURE * self.relative)

    @property
    def converges(self) -> bool:
        """Whether the differences of the worst ports decline."""
        if self.refinements < 2:
            return True
        chosen = [each for each in self.flowing if each.relative_doubt >= 0.25 * max(self.relative, SMALL)]
        return all(each.differences[-1] <= DECLINES * max(each.differences[:-1]) for each in chosen)

    @property
    def jumps(self) -> tuple[PortPilotError, ...]:
        """Ports that jump a little early or late."""
        return tuple(each for each in self.ports if each.jumps)


def estimate_pilot_error(pilots: Pilots, promised: int | None) -> PilotError:
    """Return how wrong the first run is, where the order is observed or, with one more run only, promised."""
    with np.errstate(all="ignore"):
        first = pilots.runs[0]
        rows = {port: pilots.shared_rows(port) for port in first.ports}
        beside = _largest_beside({port: values for port, (_, values) in rows.items()}, first.units)
        found = [
            _estimate_port(
                port,
                first.units[port],
                t,
                values,
                beside[port],
                promised,
                _coarser_order(pilots, port, t, values),
            )
            for port, (t, values) in rows.items()
            if len(t)
        ]
    return PilotError(tuple(sorted(found, key=lambda each: -each.relative)), len(pilots.runs) - 1)


def _largest_beside(rows: dict[str, list[Array]], units: dict[str, str]) -> dict[str, float]:
    """Return per port the largest value of its simulator and of its unit."""
    groups: dict[tuple[str, str], float] = {}

    def keys(port: str) -> tuple[tuple[str, str], ...]:
        return ("simulator", port.rpartition(".")[0]), ("unit", units[port])

    for port, values in rows.items():
        size = float(np.abs(values[-1]).max(initial=0.0))
        for key in keys(port) if math.isfinite(size) else ():
            groups[key] = max(groups.get(key, 0.0), size)
    return {port: max((groups.get(key, 0.0) for key in keys(port)), default=0.0) for port in rows}


def _estimate_port(
    port: str,
    unit: str,
    t: Array,
    values: list[Array],
    beside: float,
    promised: int | None,
    coarser: float | None,
) -> PortPilotError:
    coarse, *_, finest = values
    switches = all(_moves_by_jumps(each) for each in (coarse, finest)) or _takes_few_values(values)
    left_out = np.zeros(len(t), dtype=bool)
    for other in () if switches else values[:-1]:
        left_out |= _shifted_jumps(other, finest)
    kept = ~left_out
    gaps = [np.where(kept, one - other, 0.0) for one, other in pairwise(values)]
    differences = tuple(_largest(gap) for gap in gaps)
    order = _observed_order(gaps) if len(gaps) > 1 else coarser
    if len(gaps) == 1 and order is not None and promised is not None:
        order = min(order, promised + BEYOND)  # longer steps show more than the asymptotic order
    power = order if order is not None else None if len(gaps) > 1 else float(promised or 1)
    rest = np.zeros(len(t)) if power is None else gaps[-1] / (2.0**power - 1.0)
    if switches:
        rest, order = np.zeros(len(t)), None  # a jump is at a row or not: no power of the steps tells
    elif len(rest):
        rest[_lonely_rows(gaps[-1])] = 0.0
    error = np.where(kept, coarse - finest, 0.0) + rest
    if not np.isfinite(error).all():
        error = np.where(kept, coarse - finest, 0.0)
    before = _observed_order(gaps[:-1]) if len(gaps) > 2 else None if promised is None else float(promised)
    doubt = differences[-1] if switches else _limit_doubt(differences, order, before)
    scale = float(np.abs(finest - rest).max(initial=0.0))
    if max(scale, _largest(error)) <= ROUNDING_BESIDE * beside:
        scale = beside
    return PortPilotError(
        port, unit, t, coarse, error, differences, doubt, scale, order, int(left_out.sum()), switches
    )


def _limit_doubt(differences: tuple[float, ...], order: float | None, before: float | None) -> float:
    """Return how far the limit may be off: a part of the last difference, less where an order is steady."""
    last = differences[-1]
    if not math.isfinite(last):
        return math.inf
    if order is None:
        return 2.0 * last if len(differences) > 1 else last
    steady = before is not None and abs(before - order) <= STEADY
    return float((0.2 if steady else 0.5) * last / (2.0**order - 1.0))


def _coarser_order(pilots: Pilots, port: str, t: Array, values: list[Array]) -> float | None:
    """Return the order that shows beside the run with longer steps."""
    if pilots.coarser is None or port not in pilots.coarser.ports:
        return None
    other_t, other = pilots.coarser.ports[port]
    at, known = matching_rows(t, other_t)
    if known.sum() < 4:
        return None
    return _observed_order([(other[at] - values[0])[known], (values[0] - values[1])[known]])


def _largest(values: Array) -> float:
    size = np.abs(values)
    return math.inf if not np.isfinite(size).all() else float(size.max(initial=0.0))


def _observed_order(gaps: list[Array]) -> float | None:
    """Return the power with which the last two differences fall; None: there is none to use."""
    if len(gaps) < 2:
        return None
    one, other = (float(np.sqrt(np.mean(gap**2))) if len(gap) else 0.0 for gap in gaps[-2:])
    if not (math.isfinite(one) and math.isfinite(other) and one > 0.0 and other > 0.0):
        return None
    order = math.log2(one / other)
    return order if SEEN <= order <= STEEPEST else None


def _moves_by_jumps(values: Array) -> bool:
    """Return whether a series moves in jumps, and rests in between."""
    if len(values) < 4 or not np.isfinite(values).all():
        return False
    size = np.abs(np.diff(values))
    if not size.any():
        return False
    return bool(size[_jumps(values, float(np.ptp(values))) != 0.0].sum() >= SWITCHES * size.sum())


def _takes_few_values(values: list[Array]) -> bool:
    """Return whether series take the same few values only, however often they change between them."""
    together = np.concatenate(values)
    if not np.isfinite(together).all():
        return False
    found = np.unique(together)
    return 1 < len(found) <= FEW and len(values[0]) >= ROWS_EACH * len(found)


def _lonely_rows(gap: Array) -> Array:
    """Return at which rows a difference stands alone: no power of the steps tells how it goes on."""
    size = np.abs(gap)
    beside = np.maximum(np.append(0.0, size[:-1]), np.append(size[1:], 0.0))
    return np.asarray((size > 0.5 * size.max(initial=0.0)) & (beside < ALONE * size))


def _shifted_jumps(values: Array, limit: Array) -> Array:
    """Return at which rows two series differ only because the same jump comes a little earlier in one."""
    found = np.zeros(len(limit), dtype=bool)
    if len(limit) < 4 or not (np.isfinite(values).all() and np.isfinite(limit).all()):
        return found
    span = float(np.ptp(limit))
    if float(np.ptp(values)) > 2.0 * span:
        return found
    one, other = _jumps(values, span), _jumps(limit, span)
    for row in np.flatnonzero(other).tolist():
        near = [k for k in range(max(0, row - LATE), min(len(one), row + LATE + 1)) if one[k] == other[row]]
        if near and one[row] != other[row]:
            other_row = min(near, key=lambda k: abs(k - row))
            found[min(row, other_row) + 1 : max(row, other_row) + 1] = True
    return found


def _jumps(values: Array, span: float) -> Array:
    """Return after which rows a series jumps: up 1, down -1; it changes little before and after."""
    change = np.diff(values)
    size = np.abs(change)
    before, after = np.append(0.0, size[:-1]), np.append(size[1:], 0.0)
    sudden = (size > JUMP * span) & (size > AGAIN * np.maximum(before, after))
    return np.where(sudden, np.sign(change), 0.0)
