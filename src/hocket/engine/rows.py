"""The rows a level keeps while it runs, until the recorder takes them.

In:  a level at the end of a step it has accepted
Out: blocks of rows: time, then one value per recorded port
"""

from __future__ import annotations

import math

import hocket._native as _native
from hocket.engine.ledger import LEDGER
from hocket.engine.protocol import LiveLevel
from hocket.model.extrapolators import value_at
from hocket.model.protocols import Array

Column = tuple[int, int, bool]
"""Child, port, and whether the port is an input; of LEDGER in place of a child, a number of its bonds."""


class Rows:
    """Rows of one level, or of the micro steps of one simulator."""

    def __init__(self, columns: list[Column], interval: int = 1):
        self.columns = columns
        self.interval = interval
        """In ticks; 1: every step is kept, also one that ended early, between two ticks."""
        self.waiting = _native.RowBuffer(width=len(columns) + 1, interval=1)
        """Compiled code holds them: a crash must not take them along."""
        self.newest = -1
        """The tick of the newest row,"""
        self.newest_n = 0
        """and which instant of that time it shows."""

    @property
    def count(self) -> int:
        """How many rows wait."""
        return len(self.waiting)

    def mark(self) -> tuple[int, int, int]:
        """Return how far the rows go."""
        return self.waiting.size, self.newest, self.newest_n

    def back_to(self, mark: tuple[int, int, int]) -> None:
        """Forget the rows that came after a mark."""
        count, self.newest, self.newest_n = mark
        self.waiting.truncate(count)

    def settle(self, mark: tuple[int, int, int] | None, but_newest: bool = False) -> None:
        """Take the rows before a mark as final, or all of them, or all but the newest."""
        size = self.waiting.size if mark is None else mark[0]
        self.waiting.settle(size - (but_newest and self.count > 0))

    def keep(self, level: LiveLevel, tick: int, due: bool = False) -> None:
        """Keep a row, if one is due; it replaces one of the same tick and instant that still waits."""
        n = level.instants.n
        if not due and n == 0 and self.interval > 1 and tick % self.interval:
            return
        if n and not level.instants.reacted:  # the last look at an event: nothing new has happened
            n = self.newest_n if self.newest == tick else 0
        if self.newest == tick and self.newest_n == n and self.count:
            self.waiting.truncate(self.waiting.size - 1)
        self.newest, self.newest_n = tick, n
        values = (_column_value(level, column, tick) for column in self.columns)
        self.waiting.append([level.clock.time(tick), *values])

    def keep_micro(self, t: float, y: Array) -> None:
        """Keep a row of a micro step: the outputs among the columns."""
        self.waiting.append([t, *(float(y[port]) for _, port, _ in self.columns)])

    def take(self) -> Array:
        """Return the waiting rows that are final, and forget them."""
        return self.waiting.take()


def _column_value(level: LiveLevel, column: Column, tick: int) -> float:
    child, port, is_input = column
    if child == LEDGER:
        recorded: float = level.ledger.recorded_value(port)
        return recorded
    if not is_input:
        if level.wiring.models[child].outputs[port].event and (child, port) not in level.instants.shown:
            return math.nan
        return float(level.memory.rings[child][port][-1][1])
    drive = level.wiring.drives[child][port] if level.wiring.models[child].inputs[port].event else None
    if drive is not None and (drive.child, drive.port) not in level.instants.shown:
        return math.nan
    return input_value(level, child, port, tick)


def input_value(level: LiveLevel, child: int, port: int, tick: int) -> float:
    """Return what an input of a child has at a tick."""
    u, base = level.memory.u[child], level.memory.base[child]
    return float(value_at(list(u[:, port]), level.clock.span(tick - base)))
