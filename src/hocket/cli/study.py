"""hocket study: how far results spread where parameters are uncertain, beside the error of the coupling.

In:  files, and distributions: `spring.k=normal(20, 2)`
Out: a verdict, the spread of every port, sensitivities; a picture, or JSON
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hocket.cli import options
from hocket.cli import run_estimate as runs
from hocket.cli.command_arguments import locate_faults, parse_assignments, read_changed, split_assignment
from hocket.cli.options import flag, option
from hocket.cli.output_files import check_outputs
from hocket.cli.terminal import count_progress
from hocket.files.experiments import vary_experiment


def study(
    files: options.Files,
    uncertain: Annotated[
        list[str] | None,
        option("NAME=DISTRIBUTION", "k=normal(20, 2); may be repeated; left out: those of the file."),
    ] = None,
    runs_: Annotated[int, option("N", "How many runs.", "--runs", min=2)] = 200,
    method: Annotated[
        str, option("METHOD", "latin-hypercube, monte-carlo; with sensitivity indices: sobol, chaos.")
    ] = "latin-hypercube",
    quantity: Annotated[
        str, option("WHAT", "What the indices are of: the final, largest, smallest or mean value.")
    ] = "final",
    seed: Annotated[int, option("N", "Of the random numbers.", min=0)] = 1,
    stop: options.Stop = None,
    changes: options.Changes = options.NO_CHANGES,
    estimate: Annotated[
        bool,
        option(
            "", "Estimate the error of the coupling, too.", "--estimate/--no-estimate", show_default=False
        ),
    ] = True,
    folder: Annotated[Path | None, option("DIR", "Keep the runs here; called again, it goes on.")] = None,
    workers: Annotated[int | None, option("N", "Runs at a time, if not one per processor.", min=1)] = None,
    dask: Annotated[str | None, option("ADDRESS", "The address of a Dask scheduler: tcp://...")] = None,
    plot: Annotated[Path | None, option("PNG", "Draw the bands, with the error of the coupling.")] = None,
    as_json: options.Json = None,
    everything: options.AllRows = False,
    quiet: Annotated[bool, flag("--quiet", "Show no progress.")] = False,
) -> None:
    """Run with uncertain parameters: bands, sensitivities, and the share of the macro step.

    The spread of the results stands beside the error of the coupling.

    A distribution is normal(mean, deviation), uniform(low, high), triangular(low, likely, high) or
    lognormal(median, deviation of the logarithm). Ctrl-C stops: with --folder the runs so far are kept, and
    the same command goes on.

    Exit codes: 0 good, 1 runs failed, some parameters make it unstable, or the estimate is not reliable, 2
    bad scenario or command, 3 not judged.

    Examples:
        hocket study car.toml --uncertain "spring.k=normal(2e4, 2e3)" --plot spread.png
        hocket study car.toml --method sobol --runs 1024 --quantity largest --folder runs/car-study
    """
    from hocket.analysis.uncertainty import study as studied

    experiment = read_changed(files, changes, stop)
    experiment = vary_experiment(experiment, parse_assignments(experiment, changes.assign or ()), "--set")
    given = dict(
        split_assignment(text, "--uncertain", "name=distribution, as k=normal(20, 2)")
        for text in uncertain or ()
    )
    check_outputs(as_json, plot)
    shy = quiet or str(as_json) == "-"
    with (
        locate_faults(files, ["stop"] if stop else []),
        count_progress(experiment.name or "study", "runs", shy, runs_) as progress,
    ):
        found = studied(
            experiment,
            given or None,
            stop,
            method=method,  # type: ignore[arg-type]  # it is checked there
            runs=runs_,
            seed=seed,
            quantity=quantity,  # type: ignore[arg-type]
            estimate=estimate,
            folder=folder,
            workers=workers,
            dask=dask,
            progress=progress,
        )
    runs.present_measures(
        [found, found.sensitivities], plot, as_json, everything, found.outcome, verb="study"
    )
