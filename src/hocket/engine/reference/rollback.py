"""Rollback, and steps that end early: roll back, and step to there first.

In:  a level whose simulators can all roll back, a part of its plan
Out: the end of the step, reached in as many parts as its simulators want
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from hocket.engine.ledger import State
from hocket.engine.memory import FilterMemory, Ring
from hocket.engine.protocol import LiveLevel
from hocket.engine.reference.acceleration import restore_accelerator, save_accelerator
from hocket.engine.reference.instants import end_before, is_level
from hocket.engine.rows import Rows
from hocket.engine.simulator_calls import EarlyError
from hocket.errors import SimulatorError
from hocket.model.plain_state import is_record
from hocket.model.protocols import Array, Value
from hocket.plan import Body, Step, Try, walk

ATTEMPTS = 50
"""How often one step is made shorter."""
EPSILON = 2.0**-52


def run_try(level: LiveLevel, instruction: Try) -> None:
    """Do a body to the end of the step, in as many parts as there are events on the way.

    With step control only the first part: what is to come has steps of its own.
    """
    body, end = instruction.body, level.reached
    rest = None if level.adaptive or not instruction.found else rest_of_lone_step(level, body)
    while True:
        start = level.now
        if instruction.announced:
            level.reached = end_before(level, start, end)
        saved = level.save() if instruction.found and rest is None else None
        if saved is not None:
            level.restorable.append(saved)
        early_end, limit = False, level.reached
        for _ in range(ATTEMPTS):
            level.span = level.reached - start
            try:
                level.run(body)
                break
            except EarlyError as early:
                if not instruction.found or (level.last is not None and level.ticks[level.last] != start):
                    raise
                early_end = True
                if rest is None:
                    level.restore(saved)
                level.reached = _early_tick(level, early, start, limit)
                if rest is not None:
                    level.ticks[0] = level.reached
                    level.span = level.reached - start
                    level.run(rest)
                    break
        else:
            raise never_whole(level, start)
        if saved is not None:
            level.restorable.pop()
        if early_end and level.instants.taken != level.reached:
            _forget_past(level)
        if level.reached == end or level.adaptive:
            level.span = level.reached - start if level.adaptive else level.length
            return
        level.now, level.reached = level.reached, end


def never_whole(level: LiveLevel, start: int) -> SimulatorError:
    """Return the error for a step that no length is short enough for."""
    return SimulatorError(
        f"the step was made shorter {ATTEMPTS} times, and one still ended early",
        where=f"`{level.path}`, t = {level.clock.time(start)!r} s",
    )


def _forget_past(level: LiveLevel) -> None:
    """Let nothing from before an event lead beyond it, where what stopped does not tell what jumps."""
    level.memory.forget_past()
    for simulator in level.children:
        if is_level(simulator):
            _forget_past(simulator)


def rest_of_lone_step(level: LiveLevel, body: Body) -> Body | None:
    """Return what follows the step of a simulator that has no partner and goes on from where it stopped.

    None: what stops early is met by others, which roll back, or is to be stepped again itself.
    """
    models = level.wiring.models
    if len(models) > 1 or not models[0].capabilities.resumes:
        return None
    places = [place for place, each in enumerate(body) if isinstance(each, Step)]
    whole = len(places) == 1 and sum(isinstance(each, Step) for _, each in walk(body)) == 1
    return body[places[0] + 1 :] if whole else None


def _early_tick(level: LiveLevel, early: EarlyError, start: int, limit: int) -> int:
    """Return the first place for events that is not before the time where a simulator stopped.

    One that watches may ask for a later end than that of a step which was made shorter: at most the limit.
    """
    tick, last = level.clock.event_tick(Fraction(early.reached)), level.clock.time(limit)
    if tick > limit and early.reached <= last + 4.0 * EPSILON * abs(last):
        tick = limit  # beyond it by a rounding of the time
    if not start < tick <= limit or level.clock.time(tick) <= level.clock.time(start):
        raise early
    return tick


def normalise_ticks(ticks: Fraction | int) -> int:
    """Return ticks as they are counted: whole, but for a step that ended early."""
    return ticks if isinstance(ticks, int) or ticks.denominator != 1 else ticks.numerator  # type: ignore[return-value]


@dataclass(slots=True)
class SavedChild:
    """Where a child stood."""

    state: Any
    tick: int
    rings: list[list[tuple[int, Value, Value]]]
    filters: dict[tuple[int, int], tuple[int, Value, Value]]
    micro: tuple[int, int, int] | None
    """Of the rows of its micro steps."""
    accounts: dict[int, State]


def save_children(level: LiveLevel, children: Iterable[int]) -> None:
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


def restore_children(level: LiveLevel, children: Iterable[int]) -> None:
    """Roll children back to where they were saved."""
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


@is_record
class SavedTree(NamedTuple):
    """The state of a whole tree."""

    children: list[Any]
    memory: Any
    accounts: Any
    ticks: list[int]
    now: int
    inputs: list[tuple[int, Array]]
    rows: list[tuple[int, int, int]]
    accelerators: dict[int, Any]
    pace: Any


def save_tree(level: LiveLevel) -> SavedTree:
    """Return the state of a whole tree."""
    children = [
        None if child == level.last else level.call_child("save", child)
        for child in range(len(level.children))
    ]
    inputs = [(tick, u.copy()) for tick, u in (level.inputs, level.offered)]
    rows = [each.mark() for each in level_rows(level)]
    led = {key: save_accelerator(each) for key, each in level.accelerators.items()}
    pace = None if level.pace is None else level.pace.state()
    kept = level.memory.save(), level.ledger.save()
    return SavedTree(children, *kept, list(level.ticks), level.now, inputs, rows, led, pace)


def restore_tree(level: LiveLevel, state: SavedTree) -> None:
    """Bring a tree back to a state; rows kept since then are dropped."""
    children, memory, accounts, ticks, level.now, inputs, rows, led, pace = state
    for child, kept in enumerate(children):
        if child != level.last:  # it has not stepped since
            level.call_child("restore", child, kept)
    level.memory.restore(memory)
    level.ledger.restore(accounts)
    level.instants.floors.clear()  # its events are met once more, and perhaps at other times
    level.ticks = list(ticks)
    level.inputs, level.offered = [(tick, u.copy()) for tick, u in inputs]
    for each, mark in zip(level_rows(level), rows, strict=True):
        each.back_to(mark)
    level.accelerators = {key: each for key, each in level.accelerators.items() if key in led}
    for key, remembered in led.items():
        restore_accelerator(level.accelerators[key], remembered)
    if level.pace is not None and pace is not None:
        level.pace.restore(pace)
    elif pace is None:
        level.pace = None


def settle_level_rows(level: LiveLevel, state: SavedTree | None, inside: bool) -> dict[int, Any]:
    """Find out which rows of a level are final; return the states that its children may be rolled back to.

    Final are rows before the state that the level may be rolled back to; without one all of them, but for a
    row that is replaced when outputs are evaluated again at its time: `inside` a step of the level around, or
    at an event.
    """
    if state is not None:
        for rows, mark in zip(level_rows(level), state.rows, strict=True):
            rows.settle(mark)
        return dict(enumerate(state.children))
    kept = level.kept if level.under_way else {}
    if level.rows is not None:
        instants = level.instants.instruction is not None
        replaced = instants if level.under_way else inside and (instants or bool(level.plan.output))
        level.rows.settle(None, replaced)
    for child, rows in level.micro_rows.items():
        rows.settle(kept[child].micro if child in kept else None)
    return {child: saved.state for child, saved in kept.items()}


def level_rows(level: LiveLevel) -> list[Rows]:
    """Return the rows that a level keeps: its own, and those of micro steps."""
    return [*(() if level.rows is None else (level.rows,)), *level.micro_rows.values()]
