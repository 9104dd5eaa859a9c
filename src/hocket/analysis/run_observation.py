"""What a run shows, step by step: its start phase as it is, and one period as rows that act on z.

In:  a Reading, and whether micro steps count
Out: an ObservedRun: outputs of all leaves with their times; samples of sources as numbers beside z
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    shift_time,
    time_layout,
)
from hocket.analysis.sampled_models import SampledStandInSimulator
from hocket.engine.initialise import initialise, levels_of
from hocket.engine.opening import open_level
from hocket.engine.reference.instants import take_first_instants
from hocket.engine.reference.level import Level
from hocket.engine.simulator_calls import simulator_error
from hocket.errors import ScenarioError
from hocket.model.clock import Clock
from hocket.model.protocols import Array, MicroStepSimulator, provides
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree

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
    z: Array | None
    """Where z stands after the start phase; None: as the tree of the `stretches` does."""
    tape: SourceTape
    since: int
    """Periods of the start phase."""
    stretches: EventStretches | None = None
    """The tree itself, for the periods in which sources jump."""

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


class EventStretches:
    """Steps the tree through the periods in which sources jump, and until all is as regular as before.

    Steps end where a source jumps, so that the matrix of a period does not hold there; and after a jump
    extrapolators begin anew.
    """

    def __init__(
        self, reading: Reading, micro: bool, start: Fraction, span: Fraction, layout: tuple[Any, ...]
    ):
        design = plan_tree(reading.composite)
        self.root = _start_tree(design, start)
        self.layout = layout
        self.first, self.ticks = start, self.root.clock.ticks(reading.period)
        self.earliest = int(reading.since / reading.period)
        """Periods after which the start phase is over."""
        self.jumps = sorted(
            {
                math.ceil((time - start) / reading.period) - 1
                for _, simulator in _live_sources(self.root)
                for time in simulator.jump_times(start, start + span)
            }
        )
        """The periods in which sources jump, at their end for one."""
        if len(self.jumps) > MOST_JUMPS:
            what = (
                f"its sources jump in {len(self.jumps):,} macro steps: the tree would be run through them all"
            )
            raise ScenarioError(what, expected=f"jumps in at most {MOST_JUMPS:,} macro steps")
        clock = self.root.clock
        for _, simulator in _live_sources(self.root):
            if simulator.model.jumps:
                simulator.announce_jumps(clock.span(clock.quantum))
        self.seen = _watch_outputs(self.root, micro)
        for level in levels_of(self.root):
            _OutputWatch(self.seen).keep(level, 0)
        take_first_instants(self.root)
        self.steady: tuple[int, Any] | None = None
        """A period at whose beginning all was regular, and the state of the tree there."""

    def quiet_until(self, period: int) -> int | None:
        """Return the next period in which a source jumps, from one on; None: there is none."""
        place = bisect_left(self.jumps, period)
        return self.jumps[place] if place < len(self.jumps) else None

    def is_quiet(self, period: int, before: int) -> bool:
        """Return whether no source jumps in a period and in so many before it."""
        upcoming = self.quiet_until(period - before)
        return upcoming is None or upcoming > period

    def take_rows(self) -> Seen:
        """Return what was seen since it was asked for last; times count from the start."""
        begin = self.root.clock.time(0)
        found: Seen = {name: {t - begin: y for t, y in rows.items()} for name, rows in self.seen.items()}
        for rows in self.seen.values():
            rows.clear()
        return found

    def run(self, period: int, z: Array | None, last: int) -> tuple[int, Array | None]:
        """Step from the beginning of a period until all is regular again; return the period reached, and z.

        Without z the tree goes on from where it stands; it is None where it goes on after `last` or many.
        """
        root = self.root
        if z is not None:
            assert self.steady is not None
            where, state = self.steady
            root.restore(state)
            shift_time(root, (period - where) * self.ticks)
            scatter_state(root, z)
        for reached in range(period + 1, min(last, period + MOST_PERIODS) + 1):
            advance_ticks(root, self.ticks)
            regular = reached >= self.earliest and time_layout(root) == self.layout
            if regular and self.quiet_until(reached) != reached:
                self.steady = self.steady or (reached, root.save())
                return reached, gather_state(root)
        return min(last, period + MOST_PERIODS), None

    def close(self) -> None:
        """Close the tree."""
        self.root.close()


MOST_JUMPS = 20_000
"""Periods with jumps through which a tree is run."""
MOST_PERIODS = 4096
"""Periods after which rows are handed over."""


def _start_tree(design: PlanTree, start: Fraction) -> Level:
    root = open_level(design, clock_of(design, start=start))
    try:
        initialise(root, float(start))
    except BaseException:
        root.close()
        raise
    return root


def observe_run(reading: Reading, micro: bool, start: Fraction, span: Fraction = Fraction(0)) -> ObservedRun:
    """Return the start phase, and one period of steady operation read as a matrix.

    The time at which the run starts matters to sources only, and how long it is to those that jump: with
    such there is no start phase, `stretches` begin with it.
    """
    played = played_sources(reading.composite)
    if micro or start != 0 or played:
        fresh = _start_tree(plan_tree(reading.composite), start)
        try:
            take_first_instants(fresh)
            found = _observe_tree(fresh, reading, micro)
        finally:
            fresh.close()
        if span and any(source.jumps for _, source in played):
            stretches = EventStretches(reading, micro, start, span, time_layout(reading.root))
            if stretches.jumps:
                return replace(found, early=stretches.take_rows(), z=None, since=0, stretches=stretches)
            stretches.close()
        return found
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
    # those that announce samples end steps, and rows are kept there too
    announced = any(isinstance(each, SampledStandInSimulator) for _, _, each in leaf_children(root))
    if ends and not played and not announced:
        tape = SourceTape((), root.clock, ticks)
        whole = np.column_stack([reading.Phi, reading.c])
        since = int(reading.since / reading.period)
        return ObservedRun(early, _period_end_outputs(reading, whole), whole, reading.z, tape, since)
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
    since = int(reading.since / reading.period)
    return ObservedRun(early, inside, after, z, SourceTape(keys, root.clock, ticks), since)


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

    def keep(self, level: Level, tick: int, due: bool = False) -> None:
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
