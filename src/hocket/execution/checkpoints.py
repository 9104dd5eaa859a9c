"""Checkpoints of a run under way: when one is due, how it is written, how a run goes on from one.

In:  an engine between two macro steps
Out: files that `hocket.resume` and `hocket.open` go on from, in another process, with the same bits
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from hocket.engine.portable_state import (
    Engine,
    drop_rows,
    dump_rows,
    dump_state,
    load_rows,
    load_state,
)
from hocket.engine.selection import RecordedTable
from hocket.errors import FileError
from hocket.execution.checkpoint_identity import Identity
from hocket.files.checkpoint import CHECKPOINT, Checkpoint, write_checkpoint
from hocket.model.plain_state import StateError, decode, encode

SHARE = 50.0
"""A checkpoint is not begun before so many times as long have passed as the last one took: at most 2 %."""


def go_on(engine: Engine, checkpoint: Checkpoint) -> None:
    """Bring an engine to the state of a checkpoint; raises FileError where it is of another tree."""
    try:
        load_state(engine, checkpoint.state)
    except StateError as error:
        raise _unfit(checkpoint, error) from error
    if engine.now != checkpoint.header["tick"]:
        raise _unfit(checkpoint, "its time is another than its header says")


def go_on_with_rows(
    engine: Engine, recorded: list[RecordedTable], checkpoint: Checkpoint, same: bool
) -> None:
    """Have rows go on where they were, or (another run) begin at the time of the checkpoint."""
    if not same:
        if engine.now > 0:
            drop_rows(engine, recorded)
            engine.keep_last_rows()
        return
    try:
        load_rows(engine, recorded, decode(checkpoint.rows))
    except StateError as error:
        raise _unfit(checkpoint, error) from error


def _unfit(checkpoint: Checkpoint, why: object) -> FileError:
    what = f"`{checkpoint.path.name}` does not fit what is run: {why}"
    return FileError(what, str(checkpoint.path), "a checkpoint of the same co-simulation")


class Checkpoints:
    """Writes checkpoints of a run into its folder, every so many seconds of real time."""

    def __init__(self, folder: Path, every: float, identity: Identity, facts: Mapping[str, Any]):
        self.path = folder / CHECKPOINT
        self.every = every
        self.identity = identity
        self.facts = facts
        """What else the header says."""
        self.written = 0
        self._due = perf_counter() + every
        self._newest = -1

    @property
    def is_due(self) -> bool:
        """Whether one is to be written at the next end of a macro step."""
        return perf_counter() >= self._due

    def write(self, engine: Engine, recorded: list[RecordedTable], position: list[int]) -> None:
        """Write one; the rows up to `position` are on the disk."""
        if engine.now == self._newest or engine.within_step:
            return
        began = perf_counter()
        header = self.identity.header(engine, **self.facts, position=position)
        write_checkpoint(self.path, header, dump_state(engine), encode(dump_rows(engine, recorded)))
        self._newest = engine.now
        self.written += 1
        self.wait(perf_counter() - began)

    def wait(self, took: float) -> None:
        """Have the next one wait for its interval, and for so long that it costs no more than a fiftieth."""
        self._due = perf_counter() + max(self.every, SHARE * took)
