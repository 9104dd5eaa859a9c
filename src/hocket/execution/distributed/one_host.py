"""One host of a run: its part of the plan is executed, and its rows are kept in a folder of its own.

In:  the experiment as all hosts know it, the name of this one, a transport
Out: a Run with the rows of its own simulators; or the error, told to the others too
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

from hocket.engine.host_exchange import PATIENCE, HostExchange, Transport
from hocket.engine.ledger import LEDGER
from hocket.engine.recording import SampleTable
from hocket.engine.selection import TableChoice
from hocket.errors import Fault, HocketError, HostError, ScenarioError, list_names, raise_faults
from hocket.execution.checkpoint_identity import own_version, plan_hash
from hocket.execution.run import prepare_job
from hocket.execution.session import Execution, Job
from hocket.files.run_folder import Run, RunFolder
from hocket.files.toml import dumps
from hocket.model.experiment import Experiment
from hocket.planning.choreography import project, projection_faults
from hocket.planning.cost import hosts_of
from hocket.planning.tree import PlanTree

HOSTS = "hosts"
"""The folder, in that of the run, with a folder for each host."""
_PATHS = ("path", "file", "folder")
"""Keys that may differ from host to host: where files are."""


def whole_job(experiment: Experiment, record: Iterable[str] | None, ledger: bool) -> Job:
    """Return what all hosts do together; raises ScenarioError where it cannot be divided among them."""
    job = prepare_job(experiment, record, ledger)
    raise_faults(projection_faults(job.design))
    _refuse_shared_accounts(job)
    return job


def host_names(design: PlanTree) -> list[str]:
    """Return the hosts of a tree, in the order of the scenario."""
    return list(hosts_of(design).models)


def _refuse_shared_accounts(job: Job) -> None:
    homes, wiring = hosts_of(job.design).host_by_model(), job.design.wiring
    for choice in job.choices:
        if choice.level:
            continue
        for child, number, _ in choice.columns:
            if child != LEDGER:
                continue
            joint = wiring.bonds[number // 3]
            ends = [homes[wiring.names[side.child]] for side in (joint.given, joint.taken)]
            if ends[0] != ends[1]:
                what = f"the accounts of `{joint.name}` are kept on two hosts, {list_names(ends, 2)}"
                raise ScenarioError(what, "record", "accounts of bonds inside a host", "record ports only")


def own_choices(choices: Iterable[TableChoice], design: PlanTree) -> list[TableChoice]:
    """Return the tables that a host keeps, with the columns of its own simulators."""
    levels = {level.path: level for level in design.levels()}
    found = []
    for choice in choices:
        level = levels[choice.level]

        def is_own(child: int, number: int, level: PlanTree = level) -> bool:
            owner = level.wiring.bonds[number // 3].given.child if child == LEDGER else child
            return owner not in level.remote

        if choice.child is not None and choice.child in level.remote:
            continue
        kept = [at for at, (child, number, _) in enumerate(choice.columns) if is_own(child, number)]
        if not kept:
            continue
        table = choice.table
        columns, units, kinds = (
            tuple(each[at] for at in kept) for each in (table.columns, table.units, table.kinds)
        )
        part = SampleTable(table.name, columns, units, kinds)
        found.append(replace(choice, table=part, columns=[choice.columns[at] for at in kept]))
    return found


def host_job(job: Job, host: str) -> Job:
    """Return the part of a job that one host does."""
    design = project(job.design, host)
    return replace(job, design=design, choices=own_choices(job.choices, design))


def identity_card(job: Job, host: str) -> dict[str, Any]:
    """Return what a host says of itself: whatever is not equal on all of them makes them refuse to begin."""
    start, stop = job.experiment.start, job.experiment.stop
    return {
        "host": host,
        "hocket": own_version(),
        "plan": plan_hash(job.design),
        "values": _values_hash(job.experiment),
        "tables": {choice.table.name: list(choice.table.columns) for choice in job.choices},
        "run": f"{start} to {stop}",
        "hosts": {name: list(models) for name, models in hosts_of(job.design).models.items()},
    }


_MEANINGS = {
    "hocket": "another version of hocket: {0} here, {1} there",
    "hosts": "other hosts",
    "run": "another start or stop: {0} s here, {1} s there",
    "plan": "other simulators, ports, connections, steps or another algorithm",
    "values": "other values of parameters, start values or options",
    "tables": "other ports to record",
}
"""What it means that two cards differ, in the order in which it is looked for."""


def compare_cards(own: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise HostError for the first host that has another version or another scenario."""
    for name, card in others.items():
        for key, meaning in _MEANINGS.items():
            if card.get(key) != own[key] and not (key == "values" and not (own[key] and card.get(key))):
                what = f"`{name}` has {meaning.format(own[key], card.get(key))}"
                hint = "the same scenario file on all hosts; paths of models may differ"
                error = HostError(what, f"host `{own['host']}`, the start", "", hint)
                error.host = name
                raise error


def _values_hash(experiment: Experiment) -> str:
    """Return what tells the values of a scenario from others, but for where files are; empty: not known."""
    try:
        plain = tomllib.loads(dumps(Experiment(experiment.composite, start=experiment.start)))
    except (HocketError, tomllib.TOMLDecodeError):
        return ""
    text = json.dumps(_without_paths(plain), sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _without_paths(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_paths(each) for key, each in value.items() if key not in _PATHS}
    return [_without_paths(each) for each in value] if isinstance(value, list) else value


def run_host(
    job: Job,
    host: str,
    transport: Transport,
    folder: Path,
    *,
    patience: float = PATIENCE,
    progress: Callable[[float, int], None] | None = None,
    interrupted: Event | None = None,
) -> Run:
    """Do the part of one host and return its run; the others are told how it ended, and so is a leader.

    `progress` is called with the time reached and the number of the exchange.
    """

    def report(t: float, _stop: float) -> None:
        if progress is not None:
            progress(t, exchange.number)

    names = host_names(job.design)
    if host not in names:
        raise_faults([Fault(f"there is no host `{host}`", "hosts", f"one of {list_names(names, 8)}")])
    exchange = HostExchange(host, [name for name in names if name != host], transport, patience)
    card = identity_card(job, host)
    output = RunFolder.create(folder, job.experiment.name)
    output.add({"host_name": host})
    execution = Execution(host_job(job, host), output, exchange=exchange)
    exchange.where = lambda: execution.time_reached
    if interrupted is not None:
        exchange.attend = lambda: _hear(interrupted)
    farewell: tuple[str, str, str] = ("failed", "", "")
    try:
        compare_cards(card, exchange.meet(card))
        execution.start("interpreter", None)
        status = execution.proceed(report, interrupted)
        sent = {" to ".join(pair): [load.messages, load.values] for pair, load in exchange.sent.items()}
        output.add({"sent": sent, "exchanges": exchange.number})
        done = execution.end(status)
        farewell = (status, str(done.info.get("ended_by", "")), "")
        return done
    except BaseException as error:
        farewell = ("stopped" if isinstance(error, KeyboardInterrupt) else "failed", "", str(error))
        execution.fail(error, named=True)
        raise
    finally:
        exchange.leave(*farewell)
        execution.close()


def _hear(interrupted: Event) -> None:
    """End a wait for others when this host was asked to stop."""
    if interrupted.is_set():
        error = HostError("stopped while it waited for another host")
        error.status = "stopped"
        raise error
