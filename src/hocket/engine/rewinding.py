"""Going back within a step: simulators, their clocks, what was exchanged of them.

In:  a level and some of its children
Out: the same children where they were saved; only the newest samples stay, for the repetition to start from
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hocket.engine.ledger import State
from hocket.engine.memory import FilterMemory, Ring
from hocket.model import Value

if TYPE_CHECKING:
    from hocket.engine.interpreter import Level


@dataclass(slots=True)
class SavedChild:
    """Where a child stood."""

    state: Any
    tick: int
    rings: list[list[tuple[int, Value, Value]]]
    filters: dict[tuple[int, int], tuple[int, Value, Value]]
    micro: tuple[int, int] | None
    """Of the rows of its micro steps."""
    accounts: dict[int, State]


def save_children(level: Level, children: Iterable[int]) -> None:
    """Keep where children stand."""
    memory = level.memory
    for child in children:
        rows = level.micro_rows.get(child)
        level.kept[child] = SavedChild(
            level.call_child("save", child),
            level.ticks[child],
            [list(ring) for ring in memory.rings[child]],
            {
                key: (kept.seen, kept.before, kept.after)
                for key, kept in memory.filters.items()
                if key[0] == child
            },
            None if rows is None else rows.mark(),
            level.ledger.save_child(level, child),
        )


def restore_children(level: Level, children: Iterable[int]) -> None:
    """Go back to where children were saved."""
    memory = level.memory
    for child in children:
        kept = level.kept[child]
        level.call_child("restore", child, kept.state)
        level.ticks[child] = kept.tick
        level.ledger.restore(kept.accounts)
        for ring, samples in zip(memory.rings[child], kept.rings, strict=True):
            _restore_ring(ring, samples, keep=level.repeating > 0)
        for key in [key for key in memory.filters if key[0] == child]:
            del memory.filters[key]
        memory.filters |= {key: FilterMemory(*numbers) for key, numbers in kept.filters.items()}
        rows = level.micro_rows.get(child)
        if rows is not None and kept.micro is not None:
            rows.back_to(kept.micro)


def _restore_ring(ring: Ring, samples: list[tuple[int, Value, Value]], keep: bool) -> None:
    """Give a ring the samples it had; in a Repeat a newer one stays: the next sweep begins with it."""
    newest = ring[-1]
    ring.clear()
    ring.extend(samples)
    if keep and newest[0] > samples[-1][0]:
        ring.append(newest)
