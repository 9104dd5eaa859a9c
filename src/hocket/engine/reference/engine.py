"""The slow engine: the interpreter, step by step.

In:  a Level after its start
Out: the same rows as the native engine, to the last bit
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from time import perf_counter
from typing import Any

import numpy as np

import hocket._native as _native
from hocket._native import LookWhileWaiting, RowBuffer
from hocket.engine.initialise import ended_simulator, levels_of
from hocket.engine.ledger import stored_energies
from hocket.engine.message_counter import message_counts
from hocket.engine.reference.iteration import SweepCounts
from hocket.engine.reference.level import Level
from hocket.engine.reference.step_control import StepCounts
from hocket.engine.selection import RecordedTable, attach_micro_rows
from hocket.engine.watch import Attend, StoppedError, Watch
from hocket.model.protocols import Array


class InterpreterEngine:
    """Runs a started tree in Python."""

    name = "interpreter"

    def __init__(self, root: Level, recorded: list[RecordedTable]):
        self.root = root
        self.recorded = recorded
        self.ended_by = ""
        """The path of the simulator that has asked to end the simulation."""
        self._end_requests = _native.count_end_requests()
        attach_micro_rows(recorded)

    def run(self, steps: int, seconds: float, attend: Attend | None = None) -> int:
        """Run up to so many steps for about so long; return how many were done: none, if one has ended it.

        `attend` is called about as often within a step that lasts longer.
        """
        begin, done = perf_counter(), 0
        watch = None if attend is None else Watch(attend, seconds)
        for level in levels_of(self.root):
            level.watch = watch
        with (
            suppress(StoppedError),
            nullcontext() if watch is None else LookWhileWaiting(watch.look),
            np.errstate(all="ignore"),  # numbers that overflow are reported when they are read
        ):
            while done < steps and not self.ended_by and (not done or perf_counter() - begin < seconds):
                self.root.advance(self.root.now, self.root.length, self.root.offered[1])
                done += 1
                if self._end_requests != _native.count_end_requests():
                    self._end_requests = _native.count_end_requests()
                    self.ended_by = ended_simulator(self.root)
        return done

    def keep_last_rows(self) -> None:
        """Keep the last row of every level, though none may be due; within a step none is final."""
        if self.within_step:
            return
        for entry in self.recorded:
            level, rows = entry.level, entry.rows
            if entry.child is None and level.now > 0 and rows.newest != level.now:
                rows.keep(level, level.now, due=True)

    def sweeps(self) -> dict[str, SweepCounts]:
        """Return how often the steps of each level were made again."""
        return {level.path: level.sweeps for level in levels_of(self.root)}

    def steps(self) -> dict[str, StepCounts]:
        """Return how many steps each adaptive level made."""
        return {level.path: level.steps for level in levels_of(self.root)}

    def energies(self) -> dict[str, list[tuple[float, float]]]:
        """Return what flowed and what moved through the bonds of each level: given and taken in turn."""
        return {level.path: level.ledger.energies() for level in levels_of(self.root) if level.wiring.bonds}

    def messages(self) -> dict[str, Any]:
        """Return what passed from host to host."""
        return message_counts(levels_of(self.root))

    def stored_energy(self) -> dict[str, float]:
        """Return the stored energy of every simulator that tells it."""
        return stored_energies(self.root)

    @property
    def now(self) -> int:
        """The tick reached."""
        return self.root.now

    @property
    def within_step(self) -> bool:
        """Whether the run was stopped, or failed, within a macro step."""
        return self.root.under_way

    def settle_rows(self) -> None:
        """Find out which rows are final: within a step, those that no rollback reaches."""
        self.root.settle_rows()

    def waiting_rows(self, index: int) -> list[RowBuffer]:
        """Return where the rows of a recorded table wait, the oldest first."""
        return [self.recorded[index].rows.waiting]

    def rows(self, index: int) -> Array:
        """Return the final rows that wait for a recorded table, and forget them."""
        return self.recorded[index].rows.take()
