"""`hocket.run`: a co-simulation is run from start to stop, and what it computed is kept.

In:  a Composite, an Fmu, or the path of a file, and a stop time
Out: a Run; on a failure or Ctrl-C every row so far is kept
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from hocket.engine.selection import choose_tables
from hocket.errors import Fault, ScenarioError
from hocket.execution.checkpoint_identity import refuse_unportable
from hocket.execution.notebook_progress import notebook_progress
from hocket.execution.session import EngineName, Execution, Job, Progress, pause_collector
from hocket.files.experiments import ExperimentLike, as_experiment, vary_experiment
from hocket.files.run_folder import Run, RunFolder
from hocket.files.source_hashes import hash_sources
from hocket.model.arguments import (
    as_texts,
    expect,
    expect_call,
    expect_count,
    expect_flags,
    expect_folder,
    expect_texts,
    is_one_of,
    is_positive,
)
from hocket.model.clock import Clock, Duration, format_duration
from hocket.model.experiment import Experiment
from hocket.model.scenario import Connections
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
from hocket.simulators.recipes import parse_seconds

MOST_STEPS = 2**53
"""Steps of a run: years of computing, and the last number up to which floats count each one."""


def run(
    what: ExperimentLike,
    stop: Duration | None = None,
    *,
    connections: Connections = (),
    start: Duration | None = None,
    step: Duration | None = None,
    every: Duration | Literal["micro"] | None = None,
    parameters: Mapping[str, Any] | None = None,
    record: Iterable[str] | None = None,
    ledger: bool = False,
    folder: Path | str | None = None,
    overwrite: bool = False,
    name: str = "",
    engine: EngineName = "native",
    threads: int | None = None,
    realtime: float | None = None,
    checkpoint_every: Duration | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run a composite, FMUs or a file (.toml, .ssp, .fmu) from start to stop and return what was recorded.

    `connections` couple several FMUs: run(["a.fmu", "b.fmu"], connections={"a.u": "b.y"}). What is not given
    is taken from the [run] table of the file, or from the default experiment. `step` is that of the outermost
    level, and of those that have none of their own; `every` the time between rows (default: each step;
    "micro": also the micro steps of the simulators that hocket integrates). `parameters` are set by path:
    {"spring.k": 20}. `record`
    overrides the ports that the scenario records, `ledger` adds the accounts of its power bonds. `folder`
    keeps the run (default: a temporary folder that goes with the returned Run). `threads`: None decides by
    measured cost. `realtime=1.0` keeps pace with the clock, 2.0 with twice its speed. `checkpoint_every`
    writes the state of everything into the folder each time so much real time has passed, and at the end:
    `hocket.resume(folder)` goes on from there. Ctrl-C, or SIGTERM,
    ends the run between two steps, or within one that does not end soon, and returns the rows that are final,
    with the status "stopped"; a second one ends it at once. A simulator that asks to
    end the simulation ends the run well: "ended by `stair`".
    """
    experiment = experiment_to_run(
        what, connections, start=start, stop=stop, step=step, every=every, name=name
    )
    return run_experiment(
        vary_experiment(experiment, {} if parameters is None else parameters),
        parameters or {},
        record=record,
        ledger=ledger,
        folder=folder,
        overwrite=overwrite,
        engine=engine,
        threads=threads,
        realtime=realtime,
        checkpoint_every=checkpoint_every,
        progress=notebook_progress("seconds") if progress is None else progress,
    )


def run_experiment(
    experiment: Experiment,
    parameters: Mapping[str, Any],
    *,
    record: Iterable[str] | None = None,
    ledger: bool = False,
    folder: Path | str | None = None,
    overwrite: bool = False,
    engine: EngineName = "native",
    threads: int | None = None,
    realtime: float | None = None,
    checkpoint_every: Duration | None = None,
    progress: Progress | None = None,
    interrupted: threading.Event | None = None,
) -> Run:
    """Run an experiment that says when to stop; the parameters were set, and are written down.

    `interrupted` ends it in place of Ctrl-C, which reaches the main thread only.
    """
    expect_folder(folder)
    expect_call("progress", progress, "two numbers: the time reached, the stop")
    expect_flags(ledger=ledger, overwrite=overwrite)
    every = check_every(checkpoint_every)
    facts: dict[str, Any] = {} if every is None else {"checkpoint_every": every}
    if parameters:
        facts["parameters"] = {path: json_value(value) for path, value in parameters.items()}
    facts |= origin_facts(experiment, folder is not None)
    job = replace(prepare_job(experiment, record, ledger), facts=facts, checkpoint_every=every)
    check_choices(engine, threads, realtime)
    if every is not None:
        refuse_unportable(job.design)
    output = RunFolder.create(folder, job.experiment.name, overwrite)
    return execute(job, output, engine, threads, realtime, progress, interrupted, folder is not None)


def origin_facts(experiment: Experiment, named: bool) -> dict[str, Any]:
    """Return what run.json says of dates, and of the files a run in a `named` folder was made from."""
    facts: dict[str, Any] = {"origin": experiment.origin} if experiment.origin else {}
    if named and (sources := hash_sources(experiment.composite)):
        facts["sources"] = sources
    return facts


def check_every(every: Duration | None) -> float | None:
    """Return the real time between checkpoints in seconds; refuses what is not above zero."""
    if every is None:
        return None
    length = parse_seconds(every, "checkpoint_every")
    expect(length > 0, "checkpoint_every", every, "a duration above zero, of real time")
    return float(length)


def execute(
    job: Job,
    output: RunFolder,
    engine: EngineName,
    threads: int | None,
    realtime: float | None,
    progress: Progress | None,
    interrupted: threading.Event | None,
    named: bool,
) -> Run:
    """Do a job and return its run; on a failure every row so far is kept.

    `named`: the user has named the folder.
    """
    execution = Execution(job, output)
    try:
        execution.start(engine, threads, realtime)
        return execution.end(execution.proceed(progress, interrupted))
    except BaseException as error:
        execution.fail(error, named=named)
        raise
    finally:
        execution.close()


def experiment_to_run(
    what: ExperimentLike,
    connections: Connections = (),
    *,
    start: Duration | None = None,
    stop: Duration | None = None,
    step: Duration | None = None,
    every: Duration | Literal["micro"] | None = None,
    name: str = "",
) -> Experiment:
    """Return what is to be run, with what was asked for in place of its own defaults."""
    experiment = as_experiment(what, connections, start=start, stop=stop, step=step)
    expect_texts(name=name)
    if every is not None:
        experiment = replace(
            experiment, every="micro" if is_one_of(every, ("micro",)) else _output_interval(every)
        )
    if experiment.stop is None:
        raise ScenarioError("nothing says when the run stops", "stop", "a stop time", "run(..., stop=10)")
    if experiment.stop < experiment.start:
        stop_time, start_time = format_duration(experiment.stop), format_duration(experiment.start)
        when = f"the run stops at {stop_time}, before it starts at {start_time}"
        raise ScenarioError(when, where="stop")
    return replace(experiment, name=name or experiment.name or "run")


def json_value(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [json_value(one) for one in value]
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _output_interval(every: Duration) -> Fraction:
    length = parse_seconds(every, "every")
    if length <= 0:
        raise ScenarioError(f"rows every {format_duration(length)}", "every", "a duration above zero")
    return length


def prepare_job(
    experiment: Experiment,
    record: Iterable[str] | None,
    ledger: bool,
    clock: Clock | None = None,
    driven: bool = True,
) -> Job:
    """Return what follows from an experiment; raises ScenarioError with every fault.

    `clock`: that of the run which is gone on with; its ticks are those that a checkpoint counts. `driven`:
    all inputs are driven or have start values; else somebody will set them.
    """
    composite = experiment.composite
    record = None if record is None else as_texts(record, "record", "names of ports, or patterns")
    if record is not None:  # so that they mean what they did before constraints were compiled
        composite = composite.with_scenario(composite.scenario.with_changes(record=record))
    with pause_collector():
        design = plan_tree(composite)
    if driven:
        refuse_undriven(experiment)
    assert experiment.stop is not None
    steps = whole_steps(experiment.start, experiment.stop, design.composite.step)
    step = _shortest_step(design, experiment.stop - experiment.start)
    farthest = float(max(abs(experiment.start), abs(experiment.stop)))
    if step < math.ulp(farthest):
        apart = f"{math.ulp(farthest):.2g} s at {farthest:g} s"
        note = (
            f"steps of {format_duration(step)} are shorter than the distance of two floats, {apart}: "
            "times repeat in the rows, and simulators are told equal times"
        )
        experiment = replace(experiment, notes=(*experiment.notes, note))
    clock = experiment_clock(experiment, design) if clock is None else clock
    kept = design.composite.scenario.record
    return Job(
        experiment,
        design,
        clock,
        steps,
        choose_tables(design, clock, kept, experiment.every, ledger),
        options={"record": None if record is None else list(record), "ledger": ledger},
    )


def refuse_undriven(experiment: Experiment) -> None:
    """Refuse an experiment with an input that nothing drives and that has no start value."""
    undriven = [port.name for port in experiment.composite.inputs if port.start is None]
    if undriven:
        hint = f'drive it by a source, or give it a start value: "{undriven[0]} = 0"'
        what = "nothing drives the input `{}` of the scenario"
        raise ScenarioError([Fault(what.format(name), "inputs", "", hint) for name in undriven])


def experiment_clock(experiment: Experiment, design: PlanTree) -> Clock:
    """Return the clock of an experiment: its steps, and the times of its rows, are whole ticks."""
    more = [experiment.every] if isinstance(experiment.every, Fraction) else []
    return clock_of(design, *more, start=experiment.start, stop=experiment.stop)


def _shortest_step(design: PlanTree, span: Fraction) -> Fraction:
    """Return the shortest step of all levels, sampled models among them; refuses a run that never ends."""
    level = min(design.levels(), key=lambda each: each.composite.step)
    step = level.composite.step
    if span / step > MOST_STEPS:
        name = f"`{level.path}`" if level.path else "the run"
        digits = math.log10(span // step)  # the number itself may be beyond all floats
        what = f"{name} would make 1e{digits:.0f} steps of {format_duration(step)}: it never ends"
        raise ScenarioError(what, "stop", "at most 2^53 steps", "a longer step or period, or an earlier stop")
    return step


def whole_steps(start: Fraction, stop: Fraction, step: Fraction) -> int:
    """Return how many steps a run has; raises ScenarioError where it would end inside one."""
    count = (stop - start) / step
    if count.denominator != 1:
        below = start + step * math.floor(count)
        near = f"{format_duration(below)} or " * (below > start) + format_duration(below + step)
        span = f"the run from {format_duration(start)} to {format_duration(stop)}"
        what = f"the step {format_duration(step)} does not divide {span}"
        hint = f"stop at {near}, or choose another step"
        raise ScenarioError(what, "stop", "a whole number of steps", hint)
    return count.numerator


def check_choices(engine: str, threads: int | None, realtime: float | None = None) -> None:
    """Refuse an engine, a number of threads or a pace that there is not."""
    expect(is_one_of(engine, get_args(EngineName)), "engine", engine, '"native" or "interpreter"')
    expect_count("threads", threads)
    paced = realtime is None or is_positive(realtime)
    expect(paced, "realtime", realtime, "a number above zero: 1 keeps pace with the clock")
