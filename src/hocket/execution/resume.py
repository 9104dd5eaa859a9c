"""`hocket.resume`: a run goes on from its newest checkpoint, in another process, with the same bits.

In:  the folder of a run, or a checkpoint; what was run, if the folder does not say it
Out: the Run, its rows continued; or a new run that begins at the checkpoint
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hocket.engine.recording import check_position
from hocket.errors import FileError, HocketError, ScenarioError
from hocket.execution.checkpoint_identity import (
    check_identity,
    check_values,
    checkpoint_clock,
    refuse_overrides,
)
from hocket.execution.run import check_choices, check_every, execute, origin_facts, prepare_job
from hocket.execution.session import Job, Progress
from hocket.files.checkpoint import PREVIOUS, Checkpoint, checkpoints_of, read_checkpoint
from hocket.files.experiments import ExperimentLike, as_experiment, vary_experiment
from hocket.files.run_folder import Run, RunFolder
from hocket.files.toml import loads
from hocket.model.arguments import as_path, expect, expect_call, expect_flags, expect_folder
from hocket.model.clock import Duration
from hocket.model.experiment import Experiment
from hocket.planning.parameters import is_level_step, leaves, split_parameter_path
from hocket.simulators.ode import Ode
from hocket.simulators.recipes import parse_seconds
from hocket.simulators.state_space import StateSpace


@dataclass(frozen=True)
class _Source:
    """Where a run is resumed from."""

    run: Run | None
    files: list[Path]
    """The checkpoints that are there, the newest first."""


def resume(
    source: Path | str,
    what: ExperimentLike | None = None,
    *,
    stop: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    folder: Path | str | None = None,
    overwrite: bool = False,
    checkpoint_every: Duration | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Run:
    """Go on with a run from its newest checkpoint, and return it; the same bits as if it had never ended.

    `source` is the folder of a run that was made with `checkpoint_every`, or a checkpoint file. `what` is
    needed where the folder does not say what was run (functions and classes of Python have no text), and for
    a file elsewhere. Start, stop and times of rows are those of the checkpoint. Rows after the checkpoint are
    cut off and made again in the same folder. With a `stop` time later than before it goes on beyond; with
    `parameters` (entries of matrices of a StateSpace, those of an Ode) or a `folder` of its own a new run
    begins at the time of the checkpoint. `checkpoint_every` is that of `run`; a run in its own folder keeps
    the one it had.
    """
    expect_folder(folder)
    expect_call("progress", progress, "two numbers: the time reached, the stop")
    expect_flags(overwrite=overwrite)
    check_choices("native", threads)
    given = {} if parameters is None else parameters
    fits = isinstance(given, Mapping) and all(isinstance(path, str) for path in given)
    expect(fits, "parameters", parameters, 'values by path: {"spring.k": 20}')
    found = _find(as_path(source))
    appends = found.run is not None and folder is None and not given
    experiment = _what_was_run(found, what)
    until = None if stop is None else parse_seconds(stop, "stop")
    every = check_every(checkpoint_every)
    job = _newest_fit(found, experiment, given, appends, until)
    if appends and every is None and found.run is not None:
        every = found.run.info.get("checkpoint_every")
    facts: dict[str, Any] = {} if every is None else {"checkpoint_every": every}
    if given:
        facts["parameters"] = {path: _plain(value) for path, value in given.items()}
    if not appends:
        facts |= origin_facts(experiment, folder is not None)
    job = replace(job, appends=appends, checkpoint_every=every, facts=facts)
    assert job.resumes is not None
    if appends:
        assert found.run is not None
        output = RunFolder.reopen(found.run.path, float(job.resumes.time))
    else:
        output = RunFolder.create(folder, job.experiment.name or "run", overwrite)
        output.add({"resumed": [float(job.resumes.time)]})
    return execute(
        job, output, job.resumes.header["engine"], threads, None, progress, None, folder is not None
    )


def run_from_checkpoint(
    experiment: Experiment,
    parameters: Mapping[str, Any],
    source: Path | str,
    *,
    folder: Path | str | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    interrupted: threading.Event | None = None,
) -> Run:
    """Run an experiment from a checkpoint on, with other parameters: one of many, which share their past.

    `source` is the checkpoint, or the folder of the run that has written it; the stop time is that of the
    experiment.
    """
    found = _find(as_path(source))
    job = _newest_fit(found, experiment, parameters, False, experiment.stop)
    facts: dict[str, Any] = {path: _plain(value) for path, value in parameters.items()}
    job = replace(job, facts={"parameters": facts} | origin_facts(experiment, folder is not None))
    assert job.resumes is not None
    output = RunFolder.create(folder, job.experiment.name or "run", overwrite)
    output.add({"resumed": [float(job.resumes.time)]})
    engine = job.resumes.header["engine"]
    return execute(job, output, engine, threads, None, progress, interrupted, folder is not None)


def experiment_of(source: Path | str) -> Experiment:
    """Return what was run in a folder, as the folder says it."""
    return _what_was_run(_find(as_path(source)), None)


def _find(path: Path) -> _Source:
    if not path.exists():
        raise FileError(f"there is no `{path.name}`", str(path), "the folder of a run, or a checkpoint")
    if path.is_dir():
        run = Run(path)
        if run.status == "running":
            what = f"the run in `{path.name}` is still under way"
            raise FileError(what, str(path), "a run that has ended", "stop it first, or wait for it")
        files = list(checkpoints_of(path))
        if not files:
            hint = 'run(..., checkpoint_every="10 min"), hocket run --checkpoint-every "10 min"'
            raise FileError(f"the run in `{path.name}` has no checkpoint", str(path), "a checkpoint", hint)
        return _Source(run, files)
    before = path.with_name(path.name + PREVIOUS.removeprefix("checkpoint"))
    return _Source(None, [path, *([before] if before.is_file() else [])])


def _what_was_run(found: _Source, what: ExperimentLike | None) -> Experiment:
    if what is not None:
        return as_experiment(what)
    hint = "resume(source, what): hand over what was run"
    if found.run is None:
        at = str(found.files[0])
        raise ScenarioError(
            "a checkpoint does not say what was run", "resume", "what was run", hint + f" ({at})"
        )
    try:
        read = loads(found.run.scenario_text, folder=found.run.path)
    except HocketError as error:
        what_is_wrong = f"the folder does not say all that was run: {error.faults[0].what}"
        raise ScenarioError(what_is_wrong, "resume", "what was run", hint) from error
    return replace(read, name=read.name or found.run.name)


def _newest_fit(
    found: _Source,
    experiment: Experiment,
    parameters: Mapping[str, Any],
    appends: bool,
    until: Fraction | None,
) -> Job:
    """Return the job that goes on from the newest checkpoint that is whole, and whose rows are there."""
    faults: list[FileError] = []
    for path in found.files:
        try:
            checkpoint = read_checkpoint(path)
            refuse_overrides(checkpoint)
            job = _job_from(checkpoint, experiment, parameters, until)
            if appends:
                if checkpoint.header["position"] is None:
                    raise FileError(f"`{path.name}` is not the checkpoint of a run", str(path))
                check_position(
                    path.parent, [each.table for each in job.choices], checkpoint.header["position"]
                )
        except FileError as error:
            faults.append(error)
            continue
        notes = (f"{error.faults[0].what}; the one before it is gone on from" for error in faults)
        return replace(job, experiment=replace(job.experiment, notes=(*job.experiment.notes, *notes)))
    raise faults[0]


def _job_from(
    checkpoint: Checkpoint, experiment: Experiment, parameters: Mapping[str, Any], until: Fraction | None
) -> Job:
    header = checkpoint.header
    told = header["every"]
    experiment = replace(
        experiment,
        start=checkpoint_clock(checkpoint).start,
        every=Fraction(*told) if isinstance(told, list) else told,
    )
    if until is None and header["stop"] is not None:
        until = Fraction(*header["stop"])
    if until is not None:
        experiment = replace(experiment, stop=until)
    if experiment.stop is None:
        raise ScenarioError("nothing says when the run stops", "stop", "a stop time", "resume(..., stop=10)")
    _refuse_frozen(experiment, parameters)
    varied = vary_experiment(experiment, parameters)
    assert varied.stop is not None
    if varied.stop < checkpoint.time:
        ends, at = float(varied.stop), float(checkpoint.time)
        what = f"the run stops at {ends!r} s, before its checkpoint at {at!r} s"
        raise ScenarioError(what, "stop", "a later time", "resume(..., stop=...)")
    job = prepare_job(varied, header["record"], header["ledger"], clock=checkpoint_clock(checkpoint))
    check_identity(checkpoint, varied, job.design)
    check_values(checkpoint, experiment)
    return replace(job, resumes=checkpoint)


def _refuse_frozen(experiment: Experiment, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters whose change a state would undo, or that act at the start only."""
    models = dict(leaves(experiment.composite))
    for path in parameters:
        if is_level_step(experiment.composite, path):
            what = f"`{path}` cannot change at a checkpoint: states and samples are those of its steps"
            raise ScenarioError(what, "parameters", "the same steps", "run it anew")
        owner, name = split_parameter_path(experiment.composite, path, "parameters")
        if type(models[owner]) not in (StateSpace, Ode) or name == "x0":
            what = (
                f"`{path}` cannot change at a checkpoint: it is part of the state, or acts at the start only"
            )
            expected = "entries of matrices of a StateSpace, parameters of an Ode"
            raise ScenarioError(what, "parameters", expected, "make it an input, or run it anew")


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str)) else str(value)
