"""hocket resume: a run goes on from its newest checkpoint.

In:  the folder of a run that was made with --checkpoint-every
Out: the same folder with the rows of the rest, and a summary
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import hocket
from hocket.cli import options
from hocket.cli.command_arguments import parse_assignments, read_for_run
from hocket.cli.options import argument, flag, option
from hocket.cli.run_estimate import print_summary
from hocket.cli.terminal import print_err, print_out, run_progress
from hocket.execution.resume import experiment_of


def resume(
    run: Annotated[Path, argument("RUN", "The folder of a run, or a checkpoint.")],
    scenario: Annotated[
        Path | None, option("FILE", "What was run, if the folder does not say it.", "--scenario")
    ] = None,
    stop: options.Stop = None,
    assign: options.Set = None,
    folder: Annotated[
        Path | None, option("DIR", "A new run there, which begins at the checkpoint; RUN stays as it is.")
    ] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace the run in --folder.")] = False,
    checkpoint_every: options.CheckpointEvery = None,
    threads: Annotated[int | None, option("N", "Threads, if not as many as pay off.", min=1)] = None,
    quiet: Annotated[bool, flag("--quiet", "Print the folder of the run only.")] = False,
) -> None:
    """Go on with a run from its newest checkpoint: the same numbers as if it had never ended.

    Rows after the checkpoint are cut off and made again. With a later --stop a run that has finished goes on,
    too. With --set (entries of matrices of linear models, parameters of equations) a new run begins at the
    checkpoint, in --folder. A checkpoint that is torn is left out, and the one before it is used. The exit
    code is 1 when the run fails or is stopped, and 2 when there is no checkpoint that fits.

    Examples:
        hocket run car.toml --checkpoint-every "10 min"
        hocket resume runs/car-001
        hocket resume runs/car-001 --stop "2 h"
        hocket resume runs/car-001 --set spring.D[1,1]=-5 --folder runs/stiffer
    """
    given = (
        None
        if scenario is None
        else read_for_run("resume", [scenario], options.NO_CHANGES, (), {}, stop, False)
    )
    experiment = given if given is not None else experiment_of(run)
    parameters = parse_assignments(experiment, assign or ())
    with run_progress(experiment, quiet, None) as progress:
        done = hocket.resume(
            run,
            experiment,
            stop=stop,
            parameters=parameters,
            folder=folder,
            overwrite=overwrite,
            checkpoint_every=checkpoint_every,
            threads=threads,
            progress=progress,
        )
    if done.status == "stopped":
        print_err(f"stopped by Ctrl-C at t = {done.info['reached']:g} s; every row so far is kept")
    if quiet:
        print_out(str(done.path))
    else:
        print_summary(done, done.path)
    if not done.is_complete:
        raise typer.Exit(1)
