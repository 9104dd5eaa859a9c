"""The state of a whole tree between two steps as bytes, for another process.

In:  an engine and what it records
Out: bytes; from bytes of the same tree, an engine that goes on from there with the same bits

What lasts is listed once per engine, where it is saved: `Level::save` and `list_lasting` in compiled code,
`save_tree` and `LastingState` in the interpreter. Rows that wait are kept apart: a run that goes on with
other tables leaves them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import hocket._native as _native
from hocket.engine.initialise import levels_of
from hocket.engine.native.engine import NativeEngine
from hocket.engine.reference.engine import InterpreterEngine
from hocket.engine.reference.level import Level
from hocket.engine.reference.stepper import restore_whole, save_whole, whole_from_file, whole_to_file
from hocket.engine.selection import RecordedTable
from hocket.errors import HocketError, SimulatorError
from hocket.model.plain_state import StateError, decode, encode
from hocket.model.protocols import native_twin

Engine: TypeAlias = NativeEngine | InterpreterEngine

HINT = (
    "save() may return numbers, texts, lists, tables and NumPy arrays; or `Replay(model)`, replay = true in a"
    " file: it makes all steps again"
)


def dump_state(engine: Engine) -> bytes:
    """Return all that lasts of a tree; raises SimulatorError that names what cannot be written down."""
    if isinstance(engine, NativeEngine):
        return _dump_native(engine)
    state = whole_to_file(engine.root, save_whole(engine.root))
    try:
        return encode(state)
    except StateError as error:
        raise _find_unfit(engine.root, error) from None


def load_state(engine: Engine, content: bytes) -> None:
    """Go on from a state; raises StateError where it is not one of this tree."""
    state = decode(content)
    if isinstance(engine, NativeEngine):
        _load_native(engine, state)
        return
    try:
        restore_whole(engine.root, whole_from_file(engine.root, state))
    except (HocketError, StateError):
        raise
    except Exception as error:  # numbers of another shape, or from elsewhere
        raise StateError(f"it is not the state of these simulators: {error}") from error


def _dump_native(engine: NativeEngine) -> bytes:
    told = engine.engine.dump()
    if told is None:
        error = engine.blame_failure()
        engine.engine.forget_failures()
        raise error
    numbers, states = told
    found = [_encode_of(path, state) for path, state in zip(engine.in_python, states, strict=True)]
    away = [
        _encode_of(level.name(child), level.call_child("save", child))
        for level, child in isolated_children(engine.root)
    ]
    return encode((numbers, found, away))


def _load_native(engine: NativeEngine, state: Any) -> None:
    known = list(isolated_children(engine.root))
    match state:
        case (bytes() as numbers, list() as states, list() as away) if len(away) == len(known):
            pass
        case _:
            raise StateError("it is not the state of this tree in compiled code")
    for (level, child), kept in zip(known, away, strict=True):
        level.call_child("restore", child, decode(kept))
    done = engine.engine.load(numbers, [decode(each) for each in states])
    if done is None:
        error = engine.blame_failure()
        engine.engine.forget_failures()
        raise error
    if not done:
        raise StateError("it is not the state of this tree: other simulators, or of other sizes")


def isolated_children(root: Level) -> Iterator[tuple[Level, int]]:
    """Yield the simulators in processes of their own: a level, and a number of a child."""
    for level in levels_of(root):
        for child, each in enumerate(level.children):
            if not isinstance(each, Level) and isinstance(native_twin(each), _native.Isolated):
                yield level, child


def _encode_of(path: str, state: Any) -> bytes:
    try:
        return encode(state)
    except StateError as error:
        raise _unfit(path, error) from None


def _unfit(path: str, error: StateError) -> SimulatorError:
    what = f"`{path}` saves what cannot be written down: {error}"
    return SimulatorError(what, "checkpoint", "a state of plain data", HINT)


def _find_unfit(root: Level, error: StateError) -> SimulatorError:
    """Return the error that names the simulator whose state is not plain."""
    for level in levels_of(root):
        for child, each in enumerate(level.children):
            if isinstance(each, Level):
                continue
            try:
                encode(level.call_child("save", child))
            except StateError as found:
                return _unfit(level.name(child), found)
    return _unfit("the level", error)


# rows that wait


def dump_rows(engine: Engine, recorded: list[RecordedTable]) -> list[Any]:
    """Return per table how far its rows are, and those that are not final: plain data."""
    return [
        ((entry.rows.newest, entry.rows.newest_n), [each.dump() for each in engine.waiting_rows(index)])
        for index, entry in enumerate(recorded)
    ]


def load_rows(engine: Engine, recorded: list[RecordedTable], told: list[Any]) -> None:
    """Have the rows of every table be where they were; raises StateError for those of other tables."""
    try:
        for (index, entry), (newest, buffers) in zip(enumerate(recorded), told, strict=True):
            entry.rows.newest, entry.rows.newest_n = newest
            for buffer, (taken, tick, n, data) in zip(engine.waiting_rows(index), buffers, strict=True):
                buffer.load(taken, tick, n, data)
    except (ValueError, TypeError) as error:
        raise StateError(f"its rows are those of other tables: {error}") from error


def drop_rows(engine: Engine, recorded: list[RecordedTable]) -> None:
    """Forget the rows of the start, for a run that goes on from a later time with tables of its own."""
    for index, entry in enumerate(recorded):
        entry.rows.newest, entry.rows.newest_n = -1, 0
        for buffer in engine.waiting_rows(index):
            buffer.load(0, -1, 0, b"")
