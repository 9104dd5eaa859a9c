"""The state of a level and of all inside it, to go back to.

In:  a Level
Out: what it would have to be again; and the Level as it was
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hocket.engine.accelerating import restore_accelerator, save_accelerator
from hocket.engine.rows import Rows

if TYPE_CHECKING:
    from hocket.engine.interpreter import Level


def save_tree(level: Level) -> Any:
    """Return the state of a whole tree."""
    children = [level.call_child("save", child) for child in range(len(level.children))]
    inputs = [(tick, u.copy()) for tick, u in (level.inputs, level.offered)]
    rows = [each.mark() for each in _level_rows(level)]
    led = {key: save_accelerator(each) for key, each in level.accelerators.items()}
    pace = None if level.pace is None else level.pace.state()
    kept = level.memory.save(), level.ledger.save()
    return children, kept, list(level.ticks), level.now, inputs, rows, led, pace


def restore_tree(level: Level, state: Any) -> None:
    """Bring a tree back to a state; rows kept since then are dropped."""
    children, (memory, accounts), ticks, level.now, inputs, rows, led, pace = state
    for child, kept in enumerate(children):
        level.call_child("restore", child, kept)
    level.memory.restore(memory)
    level.ledger.restore(accounts)
    level.ticks = list(ticks)
    level.inputs, level.offered = [(tick, u.copy()) for tick, u in inputs]
    for each, mark in zip(_level_rows(level), rows, strict=True):
        each.back_to(mark)
    level.accelerators = {key: each for key, each in level.accelerators.items() if key in led}
    for key, remembered in led.items():
        restore_accelerator(level.accelerators[key], remembered)
    if level.pace is not None and pace is not None:
        level.pace.restore(pace)
    elif pace is None:
        level.pace = None


def _level_rows(level: Level) -> list[Rows]:
    return [*(() if level.rows is None else (level.rows,)), *level.micro_rows.values()]
