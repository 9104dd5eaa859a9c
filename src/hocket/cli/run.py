"""hocket run: a scenario, or FMUs, are run and what they computed is kept.

In:  files; options that win over what they say
Out: a run folder, and a summary
"""

from __future__ import annotations

import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import hocket
from hocket.cli import options
from hocket.cli.command_arguments import (
    fmu_options,
    folder_stem,
    locate_faults,
    parse_assignments,
    read_for_run,
    record_patterns,
)
from hocket.cli.host_options import (
    NO_HOST_CHOICES,
    HostChoices,
    RunChoices,
    refuse_with_hosts,
    run_on_hosts,
)
from hocket.cli.options import flag, option
from hocket.cli.output_files import check_outputs, print_written, run_folder, write_json
from hocket.cli.run_estimate import announce_reruns, more_rows, print_summary
from hocket.cli.terminal import print_err, print_measures, print_out, relay_fmu_logs, run_progress
from hocket.errors import HocketError, ScenarioError
from hocket.execution.run import experiment_to_run
from hocket.files.error_estimate import ErrorEstimate, write_estimate
from hocket.files.experiments import vary_experiment
from hocket.model.experiment import Experiment
from hocket.planning.parameters import leaves
from hocket.simulators.state_space import StateSpace


class EngineChoice(StrEnum):
    """What executes the plan."""

    native = "native"
    interpreter = "interpreter"


INSTANT = 40
"""States of a linear scenario whose stability is known at once."""
MOST = 12
"""Rows of each table of a run."""


def run(
    files: options.Files,
    stop: options.Stop = None,
    start: options.Start = None,
    changes: options.Changes = options.NO_CHANGES,
    every: options.Every = None,
    record: options.Record = None,
    ledger: options.Ledger = False,
    folder: Annotated[Path | None, option("DIR", "Where to keep the run, if not in runs/FILE-001.")] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace the run in --folder.")] = False,
    realtime: Annotated[float | None, option("FACTOR", "Keep pace with the clock; 2: twice as fast.")] = None,
    engine: Annotated[
        EngineChoice, option("NAME", "native, or interpreter: slow, the same numbers.")
    ] = EngineChoice.native,
    threads: Annotated[int | None, option("N", "Threads, if not as many as pay off.", min=1)] = None,
    checkpoint_every: options.CheckpointEvery = None,
    trust: Annotated[bool, flag("--trust", "Estimate the global error, by two more runs.")] = False,
    strict: Annotated[
        bool, flag("--strict", "Exit with 1 if values leave their ranges or grow without bound.")
    ] = False,
    quiet: Annotated[bool, flag("--quiet", "Print the folder of the run only.")] = False,
    plot: Annotated[Path | None, option("[PNG]", "Then draw it; alone: in the folder of the run.")] = None,
    csv: options.Csv = None,
    as_json: options.Json = None,
    fmus: options.FmuChoices = options.NO_FMU_CHOICES,
    hosts: HostChoices = NO_HOST_CHOICES,
) -> None:
    """Run a scenario, or FMUs, and keep what was computed; options win over the file.

    FMUs are named after their files, a second one of the same name gets _2. Ctrl-C ends the run after the
    current step, or within one that does not end soon: every row that is final is kept, and the exit code is
    1. It is 1 too when the run fails, and 2 when the scenario or the command is wrong; an FMU that asks to
    end the simulation ends the run well.

    Examples:
        hocket run car.toml --stop 10 --record 'axle.*' --plot car.png
        hocket run demo.toml --algorithm 'iterate(tolerance=1e-6)' --extrapolation linear
        hocket run ball.fmu --set e=0.8 --observe resting --plot
        hocket run a.fmu b.fmu --connect b.u=a.y --connect a.u=b.y
        hocket run car.toml --checkpoint-every "10 min"
        hocket run two_hosts.toml --distributed
    """
    if str(csv) == str(as_json) == "-":
        raise ScenarioError("`--csv -` and `--json -` are given", "", "one of them on standard output")
    alone = "-" in (str(csv), str(as_json))  # on standard output, which then has nothing else
    quiet = quiet or alone
    experiment = read_for_run("run", files, changes, fmus.observe or (), fmu_options(fmus), stop, ledger)
    check_outputs(plot=Path("plot.png") if plot == options.IN_FOLDER else plot, others=[csv, as_json])
    refuse_with_hosts(hosts, engine.value, realtime, checkpoint_every, threads)
    typed = {"start": start, "stop": stop, "every": every, "record": record}
    with (
        run_folder(folder, folder_stem(files, experiment), overwrite) as place,
        locate_faults(files, [name for name, value in typed.items() if value]),
        relay_fmu_logs(fmus.log),
        run_progress(experiment, quiet, start) as progress,
    ):
        parameters = parse_assignments(experiment, changes.assign or ())
        meant = experiment_to_run(experiment, start=start, stop=stop, every=every)
        if not quiet:
            _announce_instability(vary_experiment(meant, parameters))
        kept = RunChoices(record_patterns(experiment, record), ledger, place, overwrite)
        done = run_on_hosts(meant, parameters, hosts, kept, progress) or hocket.run(
            meant,
            parameters=parameters,
            **vars(kept),
            engine=engine.value,
            threads=threads,
            realtime=realtime,
            checkpoint_every=checkpoint_every,
            progress=progress,
        )
    if done.status == "stopped":
        within = "within the step from" if done.info.get("within_step") else "at"
        rows = "every row that is final" if done.info.get("within_step") else "every row so far"
        print_err(f"stopped by Ctrl-C {within} t = {done.info['reached']:g} s; {rows} is kept")
    if alone:
        print_err(str(place))
    elif quiet:
        print_out(str(place))
    else:
        print_summary(done, place)
    picture = place / "plot.png" if plot == options.IN_FOLDER else plot
    believed = _estimate_trust(vary_experiment(meant, parameters), done, quiet) if trust else None
    if str(csv) == "-":
        done.to_csv(sys.stdout.buffer)
    elif csv:
        done.to_csv(csv)
    if picture and believed and believed.ports:
        believed.plot(picture)
    elif picture:
        done.plot(path=picture)
    if not quiet:
        print_written(csv, picture, as_json)
    if as_json:
        write_json(as_json, "run", _run_facts(done, place))
    wrong = believed is not None and believed.is_wrong
    if not done.is_complete or wrong or (strict and done.info.get("findings")):
        raise typer.Exit(1)


def _run_facts(done: hocket.Run, place: Path) -> dict[str, object]:
    """Return how it went, and the last value of each port."""
    info, rows = done.info, sum(done.table(table.name).num_rows for table in done.tables)
    known = {key: info.get(key) for key in ("start", "stop", "reached", "engine", "error", "counts")}
    ports = (
        [{"port": port, "unit": done[port].unit, "last": done.final(port)} for port in done.ports]
        if rows
        else []
    )
    return {
        "name": done.name,
        "status": done.status,
        "good": done.is_complete,
        "folder": str(place),
        **known,
        "wall seconds": info["timings"]["wall"],
        "rows": rows,
        "ports": ports,
        "notes": list(map(str, info.get("notes", ()))),
        "findings": info.get("findings", []),
        "sources": info.get("sources", []),
    }


def _announce_instability(experiment: Experiment) -> None:
    """Say before the run that its coupling is unstable, where the linear reading tells it at once."""
    models = [model for _, model in leaves(experiment.composite)]
    linear = [model for model in models if isinstance(model, StateSpace)]
    if len(linear) < len(models) or sum(len(model.x0) for model in linear) > INSTANT:
        return
    from hocket.analysis.stability import stability

    with suppress(HocketError):
        found = stability(experiment.composite)
        if found.outcome.exit_code == 1:
            print_err(f"before the run: {found.verdict()[0]}")


def _estimate_trust(experiment: Experiment, done: hocket.Run, quiet: bool) -> ErrorEstimate | None:
    """Estimate the global error of the run, keep it with the run, and print it."""
    from hocket.analysis.reconciliation import add_prediction
    from hocket.analysis.run_error import estimate_error
    from hocket.analysis.run_measures import run_measures

    if done.status != "finished":
        how = "has diverged" if done.status == "diverged" else "was not finished"
        print_err(f"the run {how}: `hocket check {done.path}` estimates its error up to here")
        return None
    found = estimate_error(experiment, done.without_accounts(), watch=announce_reruns(quiet))
    found = add_prediction(found, experiment)
    write_estimate(done.path, found)
    if not quiet:
        print_out("")
        print_measures(run_measures(done, found), MOST, more_rows(done))
    return found
