"""hocket host: one host of a scenario runs on this machine, and meets the others at a HELICS broker.

In:  the name of the host, a scenario file, the address of a broker
Out: the rows of its own simulators, in a folder here; the same for who leads the run
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hocket.cli import options
from hocket.cli.command_arguments import folder_stem, parse_assignments, read_for_run, record_patterns
from hocket.cli.options import argument, flag, option
from hocket.cli.output_files import run_folder
from hocket.cli.run_estimate import print_summary
from hocket.cli.terminal import print_out
from hocket.execution.run import experiment_to_run
from hocket.files.experiments import vary_experiment


def host(
    name: Annotated[str, argument("NAME", "The host, as the scenario calls it.")],
    files: options.Files,
    broker: Annotated[str, option("ADDRESS", "Where the hosts meet: tcp://10.0.0.1:23404.")],
    stop: options.Stop = None,
    start: options.Start = None,
    changes: options.Changes = options.NO_CHANGES,
    every: options.Every = None,
    record: options.Record = None,
    folder: Annotated[Path | None, option("DIR", "Where to keep its rows, if not in runs/FILE-001.")] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace the run in --folder.")] = False,
    patience: Annotated[
        float, option("SECONDS", "How long it waits for another before that is an error.")
    ] = 60.0,
    quiet: Annotated[bool, flag("--quiet", "Print the folder of its rows only.")] = False,
) -> None:
    """Run one host of a scenario here; it meets the others at a HELICS broker.

    All hosts, and who leads with `hocket run FILE --broker ADDRESS`, have the same scenario with the same
    options; where files are may differ. Anybody who reaches the broker can take part: use a private network,
    or an SSH tunnel. The exit code is 1 when the run fails or is stopped, 2 when the scenario is wrong.

    Examples:
        hocket host lab two_hosts.toml --broker tcp://10.0.0.1:23404
    """
    from hocket.execution.distributed.helics_transport import FEDERATION, HelicsTransport
    from hocket.execution.distributed.one_host import host_names, identity_card, run_host, whole_job
    from hocket.execution.session import interruptible

    experiment = read_for_run("host", files, changes, (), {}, stop, False)
    meant = experiment_to_run(experiment, start=start, stop=stop, every=every)
    meant = vary_experiment(meant, parse_assignments(experiment, changes.assign or ()))
    job = whole_job(meant, record_patterns(experiment, record), False)
    with run_folder(folder, f"{folder_stem(files, experiment)}-{name}", overwrite) as place:
        card = identity_card(job, name)
        link = HelicsTransport(broker, FEDERATION, host_names(job.design), name, place, card)
        with interruptible() as stopping:
            done = run_host(job, name, link, place, patience=patience, interrupted=stopping)
    print_out(str(place)) if quiet else print_summary(done, place)
    if not done.is_complete:
        raise typer.Exit(1)
