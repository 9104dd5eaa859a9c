"""What is typed about the hosts of a run: whether they run as processes of their own, and what joins them.

In:  options of `hocket run`
Out: a run on all hosts; None where one process does it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from hocket.cli.options import flag, option
from hocket.errors import Fault, raise_faults
from hocket.execution.session import Progress
from hocket.files.run_folder import Run
from hocket.model.experiment import Experiment


class TransportChoice(StrEnum):
    """What joins the hosts."""

    memory = "memory"
    helics = "helics"
    threads = "threads"


MEANS = {"memory": "processes", "helics": "helics", "threads": "threads"}


@dataclass(frozen=True)
class HostChoices:
    """What was typed about hosts, one option for each field."""

    distributed: Annotated[
        bool, flag("--distributed", "Run each host of the scenario as a process of its own.")
    ] = False
    transport: Annotated[
        TransportChoice | None,
        option("NAME", "What joins them: memory (if nothing is said), helics or threads."),
    ] = None
    broker: Annotated[
        str | None, option("ADDRESS", "Wait there for hosts (`hocket host`): tcp://10.0.0.1:23404.")
    ] = None
    patience: Annotated[
        float | None, option("SECONDS", "How long a host waits for another before that is an error: 60.")
    ] = None


NO_HOST_CHOICES = HostChoices()


@dataclass(frozen=True)
class RunChoices:
    """What is kept of a run, and where."""

    record: list[str] | None
    ledger: bool
    folder: Path
    overwrite: bool


def refuse_with_hosts(
    choices: HostChoices, engine: str, realtime: object, every: object, threads: object
) -> None:
    """Refuse options that do not go together with hosts, or that are about hosts where there are none."""
    faults = []
    if choices.broker and (choices.distributed or choices.transport):
        other = "--distributed" if choices.distributed else "--transport"
        faults.append(Fault(f"`--broker` and `{other}` are given", "--broker", "one of them"))
    if choices.distributed or choices.broker:
        given = {"--realtime": realtime, "--checkpoint-every": every, "--threads": threads}
        given["--engine"] = engine if engine != "native" else None
        for name, value in given.items():
            if value is not None:
                faults.append(Fault(f"`{name}` and hosts are given", name, "one of them"))
    else:
        for name, value in (("--transport", choices.transport), ("--patience", choices.patience)):
            if value is not None:
                faults.append(Fault(f"`{name}` is about hosts", name, "`--distributed`"))
    raise_faults(faults)


def run_on_hosts(
    meant: Experiment,
    parameters: Mapping[str, Any],
    choices: HostChoices,
    kept: RunChoices,
    progress: Progress | None,
) -> Run | None:
    """Run on all hosts, if that was asked for."""
    if not choices.distributed and not choices.broker:
        return None
    from hocket.engine.host_exchange import PATIENCE
    from hocket.execution.distributed.lead import run_distributed

    means: Any = MEANS[choices.transport or "memory"]
    patience = PATIENCE if choices.patience is None else choices.patience
    return run_distributed(
        meant,
        means=means,
        broker=choices.broker or "",
        parameters=parameters,
        patience=patience,
        progress=progress,
        **vars(kept),
    )
