"""What a run shows, step by step: its start phase as it is, and one period as rows that act on z.

In:  a Reading, and whether micro steps count
Out: an ObservedRun: outputs of all leaves with their times; samples of sources as numbers beside z
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hocket.analysis.exact_solution import orbit
from hocket.analysis.linear_models import (
    Key,
    PlayedSource,
    PlayedSourceSimulator,
    named_leaves,
    played_sources,
)
from hocket.analysis.linear_reading import (
    Reading,
    advance_ticks,
    gather_state,
    leaf_children,
    scatter_state,
)
from hocket.engine.initialise import initialise, levels_of
from hocket.engine.opening import open_level
from hocket.engine.reference.level import Level
from hocket.engine.simulator_calls import simulator_error
from hocket.model.clock import Clock
from hocket.model.protocols import Array, MicroStepSimulator, provides
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree

Seen = dict[str, dict[float, Any]]
"""Per leaf and time: its outputs, as numbers or as rows."""
Asked = tuple[str, PlayedSource, str, int]
"""A source by its path, which call, and the tick of its sample from the beginning of the period."""


@dataclass(frozen=True, eq=False)
class ObservedRun:
    """A run as the engine would make it, in two parts; times count from its start."""

    early: Seen
    """The start phase."""
    inside: dict[str, tuple[Array, Array]]
    """Per leaf the times from the beginning of a period, and outputs as rows that act on [z, 1, samples]."""
    whole: Array
    """z after a period, as rows that act on [z, 1, samples]."""
    z: Array
    """Where z stands after the start phase."""
    tape: SourceTape

    def orbit(self, first: int, z: Array, count: int, end: float) -> tuple[Array, Array]:
        """Return z and what it acts with, a row for each of so many periods, and z after them."""
        if not self.tape.asked:
            size = len(z)
            square = np.zeros((size + 1, size + 1))
            square[:size], square[size, size] = self.whole, 1.0
            steps = orbit(square, np.append(z, 1.0), count)
            return steps[:-1], steps[-1, :-1]
        rows = np.hstack(
            [np.zeros((count, len(z))), np.ones((count, 1)), self.tape.samples(first, count, end)]
        )
        pushed = rows[:, len(z) :] @ self.whole[:, len(z) :].T
        step = self.whole[:, : len(z)]
        for number in range(count):
            rows[number, : len(z)] = z
            z = step @ z + pushed[number]
        return rows, z


@dataclass(frozen=True, eq=False)
class SourceTape:
    """The samples that sources give in every period, in the order of their columns."""

    asked: tuple[Asked, ...]
    clock: Clock
    ticks: int
    """The length of a period."""

    def samples(self, first: int, count: int, end: float) -> Array:
        """Return the samples in periods from this one on, a row each; what comes after the end is zero."""
        width = sum(len(source.outputs) for _, source, _, _ in self.asked)
        found = np.zeros((count, width))
        until = self.clock.time(0) + end
        column = 0
        for name, source, call, tick in self.asked:
            live, stop = source.open(), column + len(source.outputs)
            try:
                live.start(self.clock.time(0))
                for number in range(count):
                    t = self.clock.time(tick + (first + number) * self.ticks)
                    if t <= until:
                        found[number, column:stop] = live.sample_at(t, call)
            except Exception as error:
                raise simulator_error(name, call, t, error) from error
            finally:
                live.close()
            column = stop
        return found


def observe_run(reading: Reading, micro: bool, start: Fraction) -> ObservedRun:
    """Return the start phase, and one period of steady operation read as a matrix.

    The time at which the run starts matters to sources only.
    """
    if micro or start != 0 or played_sources(reading.composite):
        design = plan_tree(reading.composite)
        fresh = open_level(design, clock_of(design, start=start))
        try:
            initialise(fresh, float(start))
            return _observe_tree(fresh, reading, micro)
        finally:
            fresh.close()
    root, now = reading.root, reading.root.save()  # to start anew would take as long as to read it
    root.restore(reading.begun)
    try:
        return _observe_tree(root, reading, micro)
    finally:
        for level in levels_of(root):
            level.rows = None
        root.restore(now)


def _observe_tree(root: Level, reading: Reading, micro: bool) -> ObservedRun:
    """Follow a tree from its start into steady operation, and through one period of that."""
    ticks = root.clock.ticks(reading.period)
    seen = _watch_outputs(root, micro)
    for level in levels_of(root):
        _OutputWatch(seen).keep(level, 0)
    while root.now < root.clock.ticks(reading.since):
        advance_ticks(root, ticks)
    begin = root.clock.time(0)
    early: Seen = {name: {t - begin: y for t, y in rows.items()} for name, rows in seen.items()}
    for rows in seen.values():
        rows.clear()
    ends = not micro and all(level.length == ticks for level in levels_of(root))
    played = _live_sources(root)
    if ends and not played:
        tape = SourceTape((), root.clock, ticks)
        whole = np.column_stack([reading.Phi, reading.c])
        return ObservedRun(early, _period_end_outputs(reading, whole), whole, reading.z, tape)
    return _read_period(root, reading, early, seen, played)


def _live_sources(root: Level) -> list[tuple[str, PlayedSourceSimulator]]:
    return [
        (level.name(child), simulator)
        for level, child, simulator in leaf_children(root)
        if isinstance(simulator, PlayedSourceSimulator)
    ]


def _read_period(
    root: Level, reading: Reading, early: Seen, seen: Seen, played: list[tuple[str, PlayedSourceSimulator]]
) -> ObservedRun:
    """Run one period on the identity: columns for z, for nothing, and for each sample of a source."""
    ticks, z = root.clock.ticks(reading.period), gather_state(root)
    asked = _requested_samples(root, played, ticks) if played else []
    for rows in seen.values():
        rows.clear()
    size = len(z)
    columns, column = size + 1 + sum(simulator.count for simulator, _ in asked), size + 1
    for _, simulator in played:
        simulator.rows, simulator.asked = {}, None
    for simulator, key in asked:
        assert simulator.rows is not None
        simulator.rows[key] = np.eye(simulator.count, columns, column)
        column += simulator.count
    scatter_state(root, np.eye(size, columns))
    begin, now = root.clock.time(root.now), root.now
    advance_ticks(root, ticks)
    after = _affine_rows(gather_state(root).reshape(size, columns), size)
    inside = {}
    for name, rows in seen.items():
        wide = [np.broadcast_to(each, (len(each), columns)) for each in rows.values()]
        inside[name] = np.array(list(rows)) - begin, np.array([_affine_rows(each, size) for each in wide])
    names = {id(simulator): name for name, simulator in played}
    keys = tuple(
        (names[id(simulator)], simulator.model, call, root.tick_at(t) - now) for simulator, (call, t) in asked
    )
    return ObservedRun(early, inside, after, z, SourceTape(keys, root.clock, ticks))


def _affine_rows(rows: Array, size: int) -> Array:
    """Return rows whose column for nothing was added to all others."""
    found = np.array(rows)
    nothing = found[:, size].copy()
    found -= nothing[:, None]
    found[:, size] = nothing
    return found


def _requested_samples(
    root: Level, played: list[tuple[str, PlayedSourceSimulator]], ticks: int
) -> list[tuple[PlayedSourceSimulator, Key]]:
    """Return which samples are asked for in a period, by making it once."""
    saved = root.save()
    for _, simulator in played:
        simulator.asked = {}
    advance_ticks(root, ticks)
    root.restore(saved)
    return [(simulator, key) for _, simulator in played for key in simulator.asked or ()]


def _period_end_outputs(reading: Reading, whole: Array) -> dict[str, tuple[Array, Array]]:
    """Return the outputs at the end of a period: the newest samples are a part of z."""
    end = np.array([float(reading.period)])
    return {
        name: (end, whole[[reading.newest[f"{name}.{port.name}"] for port in model.outputs]][None])
        for name, model in named_leaves(reading.composite)
    }


class _OutputWatch:
    """Stands where a level keeps its rows, and keeps the outputs of its leaves by time."""

    def __init__(self, seen: Seen):
        self.seen = seen

    def keep(self, level: Level, tick: int) -> None:
        """Keep the outputs at a tick; they replace those of the same time."""
        for child in range(len(level.children)):
            if level.name(child) in self.seen:
                newest = [ring[-1][1] for ring in level.memory.rings[child]]
                self.seen[level.name(child)][level.clock.time(tick)] = np.array(newest)

    def mark(self) -> None:
        """Whatever was kept may stay."""

    def back_to(self, mark: None) -> None:
        """What is repeated replaces what was kept."""


def _watch_outputs(root: Level, micro: bool) -> Seen:
    """Let levels, or simulators with micro steps, report outputs from now on; return where they will be."""
    seen: Seen = {}
    for level in levels_of(root):
        coarse: Seen = {}
        for child, simulator in enumerate(level.children):
            if isinstance(simulator, Level):
                continue
            kept = seen[level.name(child)] = {}
            if micro and provides(simulator, MicroStepSimulator):
                simulator.micro = kept.__setitem__
            else:
                coarse[level.name(child)] = kept
        watch: Any = _OutputWatch(coarse)
        level.rows = watch
    return seen


def outputs_by_leaf(reading: Reading) -> Iterator[tuple[str, list[str]]]:
    """Yield the leaves that have outputs, each with the paths of these."""
    for name, model in named_leaves(reading.composite):
        if model.outputs:
            yield name, [f"{name}.{port.name}" for port in model.outputs]


def last_row_times(reading: Reading, span: Fraction) -> dict[str, float]:
    """Return per leaf when a run of this length keeps its last row: no level shows steps that do not end."""
    found: dict[str, Fraction] = {}
    design = plan_tree(reading.composite)
    for level in design.levels():
        above = found.get(level.path, span)
        ended = level.composite.step * (above // level.composite.step)
        for child in range(len(level.wiring.models)):
            found[level.name(child)] = ended
    return {name: float(end) * (1.0 + 1e-12) for name, end in found.items()}
