"""Pilot runs: the plan itself, run in memory as far as a time budget allows, then again with shorter steps.

In:  an Experiment that says when to stop, and how many seconds may be spent
Out: Pilots: the outputs of all simulators at the rows of the run, for the steps of the user and shorter ones
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter, process_time
from typing import Any, Protocol

import numpy as np

from hocket.engine.initialise import initialise
from hocket.engine.native.engine import NativeEngine, native_obstacle
from hocket.engine.opening import open_level
from hocket.engine.reference.engine import InterpreterEngine
from hocket.engine.reference.instants import take_first_instants
from hocket.engine.reference.level import Level
from hocket.engine.selection import bind_tables, choose_tables, keep_start_rows
from hocket.errors import EndRequestError, HocketError
from hocket.files.error_estimate import matching_rows
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.protocols import Array, Model
from hocket.orchestrators.adaptive import Adaptive
from hocket.planning.clocks import clock_of
from hocket.planning.parameters import change_levels, leaves, scale_steps, with_leaves
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
from hocket.simulators.constraint import Coupler, gap_names
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.ode import Ode

SECONDS = 2.0
"""That all pilot runs together may take, unless told otherwise."""
FREE = 0.2
"""Seconds that pilots may take beyond three times the first: a short run is refined further."""
FINEST = 64
"""The largest part that steps are divided by."""
SLICE = 0.02
"""Seconds between two looks at the clock."""
TIGHTEST = 1e-12
"""The smallest tolerance that a solver is given."""


class Look(Protocol):
    """Shown the live tree and how many macro steps were made, before the first and after some."""

    @property
    def stride(self) -> int:
        """It is shown the tree after so many macro steps, and may be after others."""

    def __call__(self, level: Level, number: int) -> None: ...


@dataclass(frozen=True, eq=False)
class PilotRun:
    """One run of the plan, with a part of the steps."""

    part: Fraction
    """What the steps were divided by."""
    ports: dict[str, tuple[Array, Array]]
    """Times and values of each output, in the order of the scenario."""
    units: dict[str, str]
    steps: int
    """Macro steps of the user that were made, whole ones."""
    failure: str = ""
    """Why it failed before its time."""
    ended_by: str = ""
    """The simulator that asked to end the simulation."""
    seconds: float = 0.0
    """Of real time that it took, opening included."""


@dataclass(frozen=True, eq=False)
class Pilots:
    """The first run with the steps of the user, and those with shorter steps, on the rows of the first."""

    runs: tuple[PilotRun, ...]
    step: Fraction
    asked: int
    """Macro steps of the whole run."""
    start: float
    coarser: PilotRun | None = None
    """With twice the steps, where shorter ones would cost too much: it shows the order."""

    @property
    def steps(self) -> int:
        """Macro steps that all of them made."""
        return min(run.steps for run in self.runs)

    @property
    def until(self) -> float:
        """The time up to which they are compared, in seconds."""
        return self.start + float(self.steps * self.step)

    @property
    def is_whole(self) -> bool:
        """Whether they came to the end of the run."""
        return self.steps >= self.asked

    def shared_rows(self, port: str) -> tuple[Array, list[Array]]:
        """Return the times at which all runs have a row of an output, and the values of each run there."""
        t, values = self.runs[0].ports[port]
        kept = (np.append(np.diff(t) > 0.0, True)[: len(t)]) & (t <= self.until * (1.0 + 1e-12) + 1e-12)
        found: list[Array] = []
        places: list[Any] = []
        for run in self.runs[1:]:
            other_t, other = run.ports[port]
            at, known = matching_rows(t, other_t)
            kept = kept & known
            found.append(other)
            places.append(at)
        rows = [values[kept], *(other[at[kept]] for other, at in zip(found, places, strict=True))]
        return t[kept], rows


def refine_steps(composite: Composite, part: Fraction) -> Composite:
    """Return the composite with all steps divided, and tolerances of what chooses its own steps tightened."""
    if part == 1:
        return composite
    shorter = scale_steps(composite, 1 / part, own=True)
    changed: dict[str, Model] = {}
    for path, model in leaves(shorter):
        if isinstance(model, Ode) and model.method in ("adaptive", "cvode"):
            changed[path] = _tighten_ode(model, part)
    return change_levels(with_leaves(shorter, changed), lambda level: tighten_tolerance(level, part))


def _tighten_ode(model: Ode, part: Fraction) -> Ode:
    made: Any = object.__new__(Ode)
    made.__dict__.update(vars(model))
    for name, value in (("rtol", model.rtol), ("atol", model.atol)):
        object.__setattr__(made, name, max(min(TIGHTEST, value), value / float(part) ** 2))
    return made  # type: ignore[no-any-return]


def tighten_tolerance(level: Composite, part: Fraction) -> Composite:
    """Return a level that controls its steps with its tolerance divided by the square; others as they are."""
    how = level.orchestrator
    if not isinstance(how, Adaptive):
        return level
    return level.with_changes(orchestrator=replace(how, tolerance=how.tolerance / float(part) ** 2))


class Stopwatch:
    """Measures what a run costs: computing time, so that verdicts do not depend on what else is running.

    Waiting counts a quarter where a simulator in a process of its own computes there, else a sixteenth.
    """

    def __init__(self, composite: Composite) -> None:
        models = (model for _, model in leaves(composite))
        elsewhere = any(isinstance(model, Fmu) and model.is_isolated for model in models)
        self._waiting = 4.0 if elsewhere else 16.0
        self._computed, self._began = process_time(), perf_counter()

    @property
    def seconds(self) -> float:
        """How much has passed."""
        return max(process_time() - self._computed, (perf_counter() - self._began) / self._waiting)


def run_pilot(
    experiment: Experiment, part: Fraction, steps: int, allowed: float, look: Look | None = None
) -> PilotRun:
    """Run the plan in memory with its steps divided by `part`, for so many macro steps or seconds.

    What fails on the way ends it: rows up to there count. Raises HocketError where it does not even start.
    """
    watch = Stopwatch(experiment.composite)
    composite = refine_steps(experiment.composite, part)
    design = plan_tree(composite)
    every = max(_row_interval(experiment), composite.step) if part < 1 else _row_interval(experiment)
    assert experiment.stop is not None
    clock = clock_of(design, every, start=experiment.start, stop=experiment.stop)
    choices = choose_tables(design, clock, ("*",), every)
    level = open_level(design, clock)
    blocks: dict[int, list[Array]] = {}
    done, failure, ended_by, due = 0, "", "", int(steps * part)
    try:
        initialise(level, clock.time(0), float(experiment.stop))
        recorded = bind_tables(level, choices)
        keep_start_rows(recorded)
        take_first_instants(level)
        engine: NativeEngine | InterpreterEngine
        if native_obstacle(level, due * level.length):
            engine = InterpreterEngine(level, recorded)
        else:
            engine = NativeEngine(level, recorded, 1)
        if look is not None:
            look(level, 0)

        def drain() -> None:
            engine.settle_rows()
            for index in range(len(recorded)):
                block = engine.rows(index)
                if len(block):
                    blocks.setdefault(index, []).append(block)

        try:
            while done < due and watch.seconds < allowed:
                made = engine.run(due - done if look is None else _until_look(look, done, part), SLICE)
                if not made:
                    ended_by = engine.ended_by
                    break
                done += made
                drain()
                if look is not None:
                    look(level, int(done / part))
        except EndRequestError as request:
            ended_by = request.by
        except HocketError as error:
            failure = error.faults[0].what
            where = error.faults[0].where
            failure = f"{where}: {failure}" if where else failure
        with suppress(HocketError):
            done = max(done, engine.now // level.length)
            engine.keep_last_rows()
            drain()
    finally:
        level.close()
    ports, units = _gather_ports(design, [choice.table for choice in choices], blocks)
    return PilotRun(part, ports, units, int(done / part), failure, ended_by, watch.seconds)


def _until_look(look: Look, done: int, part: Fraction) -> int:
    """Return how many steps there are until the next look."""
    stride = int(look.stride * part)
    return stride - done % stride


def _row_interval(experiment: Experiment) -> Fraction:
    """Return the time between rows: that of the run, or the shortest step of all levels."""
    if isinstance(experiment.every, Fraction):
        return experiment.every
    return min(level.composite.step for level in plan_tree(experiment.composite).levels())


def _gather_ports(
    design: PlanTree, tables: list[Any], blocks: dict[int, list[Array]]
) -> tuple[dict[str, tuple[Array, Array]], dict[str, str]]:
    ports: dict[str, tuple[Array, Array]] = {}
    units: dict[str, str] = {}
    levels = {level.path for level in design.levels()}
    events = {
        f"{level.name(child)}.{port.name}"
        for level in design.levels()
        for child, model in enumerate(level.wiring.models)
        for port in model.outputs
        if port.event
    }
    residuals = {
        f"{level.name(child)}.{gap}"
        for level in design.levels()
        for child, model in enumerate(level.wiring.models)
        if isinstance(model, Coupler)
        for gap in gap_names(len(model.equations))
    }
    for index, table in enumerate(tables):
        rows = np.concatenate(blocks[index]) if index in blocks else np.zeros((0, 1 + len(table.columns)))
        for column, (port, unit) in enumerate(zip(table.columns, table.units, strict=True)):
            # the ports of a level repeat those inside; a residual has no exact value but zero; an event is
            # absent in nearly all rows, and its instants are not those of other runs
            if port.rpartition(".")[0] not in levels and port not in residuals | events:
                ports[port], units[port] = (rows[:, 0], rows[:, column + 1]), unit
    return ports, units


def make_pilots(
    experiment: Experiment,
    seconds: float = SECONDS,
    enough: Callable[[Pilots], bool] | None = None,
    look: Look | None = None,
    watch: Callable[[str], None] | None = None,
) -> Pilots:
    """Run the plan, then with half the steps, then with shorter ones while that costs little.

    All together take at most three times the first plus `FREE`, and about `seconds`; `enough` is asked after
    each whether shorter steps would tell more. What is left of the run when time is up is not run.
    """
    assert experiment.stop is not None
    step = experiment.composite.step
    steps = int((experiment.stop - experiment.start) / step)
    first = run_pilot(experiment, Fraction(1), steps, seconds / 3.0, look)
    runs = [first]
    spent, part = first.seconds, 1
    due = first.steps if not first.failure else min(steps, first.steps + 1 + math.ceil(0.1 * first.steps))
    while part < FINEST:
        part *= 2
        cost = 2.0 * runs[-1].seconds
        if part > 2 and (spent + cost > 3.0 * first.seconds + FREE or spent + cost > seconds):
            break
        if watch is not None:
            watch(f"1/{part} of the steps")
        try:
            run = run_pilot(experiment, Fraction(part), due, max(seconds - spent, cost))
        except HocketError:
            if part == 2:
                raise
            break
        if part > 2 and run.steps < min(each.steps for each in runs) and not run.failure:
            break  # time was up: it would cost rows of the others
        runs.append(run)
        spent += run.seconds
        pilots = Pilots(tuple(runs), step, steps, float(experiment.start))
        if run.failure and run.steps < first.steps:
            break
        if part > 2 and enough is not None and enough(pilots):
            break
    coarser = None
    if len(runs) == 2 and not runs[1].failure and first.steps >= 8:
        with suppress(HocketError):
            coarser = run_pilot(experiment, Fraction(1, 2), runs[1].steps, first.seconds)
            coarser = None if coarser.failure else coarser
    return Pilots(tuple(runs), step, steps, float(experiment.start), coarser)
