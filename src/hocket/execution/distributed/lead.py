"""A scenario is run on all its hosts: they are begun, watched, and what they kept becomes one run.

In:  an experiment with hosts; threads, processes that share memory, or processes that HELICS joins
Out: a Run as one process would have made it; or an error that names the host, with all rows kept
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from hocket.engine.host_exchange import PATIENCE
from hocket.engine.recording import ArrowRecorder
from hocket.errors import HocketError, HostError, ScenarioError
from hocket.execution.distributed.gather import gather_facts, gather_rows, open_parts
from hocket.execution.distributed.helics_broker import Broker, local_broker
from hocket.execution.distributed.helics_leader import broker_at, collect
from hocket.execution.distributed.host_process import HostProcess
from hocket.execution.distributed.in_process import Exchanges
from hocket.execution.distributed.one_host import HOSTS, host_names, identity_card, run_host, whole_job
from hocket.execution.distributed.processes import GRACE
from hocket.execution.distributed.shared_memory import prepare_folder
from hocket.execution.run import experiment_to_run, json_value, origin_facts
from hocket.execution.session import Job, Progress, interruptible
from hocket.files.experiments import ExperimentLike, vary_experiment
from hocket.files.run_facts import Status
from hocket.files.run_folder import Run, RunFolder
from hocket.files.toml import dumps
from hocket.model.arguments import (
    as_texts,
    expect,
    expect_call,
    expect_flags,
    expect_folder,
    is_one_of,
    is_positive,
)
from hocket.model.clock import Duration
from hocket.model.experiment import Experiment

Means: TypeAlias = Literal["threads", "processes", "helics"]
"""What joins the hosts: threads of this process, processes that share memory, processes that HELICS joins."""
_LOOK = 0.05
Outcome: TypeAlias = "Exception | str | None"


def run_distributed(
    what: ExperimentLike,
    stop: Duration | None = None,
    *,
    means: Means = "processes",
    broker: str = "",
    start: Duration | None = None,
    every: Duration | Literal["micro"] | None = None,
    parameters: Mapping[str, Any] | None = None,
    record: Iterable[str] | None = None,
    ledger: bool = False,
    folder: Path | str | None = None,
    overwrite: bool = False,
    patience: float = PATIENCE,
    progress: Progress | None = None,
    interrupted: threading.Event | None = None,
) -> Run:
    """Run a scenario on its hosts and return the run: the same numbers as `hocket.run`.

    `means` is what joins the hosts, all on this machine: "processes" that share memory, "threads" of this
    process, which need no scenario that can be written as a file, or "helics". With a `broker`
    ("tcp://10.0.0.1:23404") no host is begun here: they come to it from where they are (`hocket host`), and
    what they have kept is collected. `patience` is how many seconds a host waits for another before that is
    an error. The folder of the run has one for each host inside, `hosts/NAME`, with the rows that this host
    kept. The other arguments are those of `hocket.run`.
    """
    given = {} if parameters is None else parameters
    meant = experiment_to_run(what, start=start, stop=stop, every=every)
    experiment = vary_experiment(meant, given)
    expect(is_one_of(means, get_args(Means)), "distributed", means, '"threads", "processes" or "helics"')
    expect(isinstance(broker, str), "broker", broker, 'an address such as "tcp://10.0.0.1:23404"')
    expect(is_positive(patience), "patience", patience, "seconds, above 0")
    expect_folder(folder)
    expect_call("progress", progress, "two numbers: the time reached, the stop")
    expect_flags(ledger=ledger, overwrite=overwrite)
    record = None if record is None else as_texts(record, "record", "names of ports, or patterns")
    job = whole_job(experiment, record, ledger)
    names = host_names(job.design)
    text = "" if means == "threads" or broker else _scenario_text(experiment)
    output = RunFolder.create(folder, experiment.name, overwrite)
    output.add(origin_facts(experiment, folder is not None))
    output.add({"parameters": {path: json_value(value) for path, value in given.items()}} if given else {})
    try:
        folders = {name: output.path / HOSTS / name for name in names}
    except OSError as error:
        raise ScenarioError(str(error)) from error
    output.begin(
        [choice.table for choice in job.choices],
        scenario=text or _text_or_reason(experiment),
        plan=f"{job.design.plan}\n",
        engine="interpreter",
        start=float(experiment.start),
        stop=job.stop,
        notes=[*experiment.notes, *job.design.plan.all_notes()],
    )
    begun = time.perf_counter()
    asked = interruptible() if interrupted is None else nullcontext(interrupted)
    outcomes: dict[str, Outcome]
    try:
        with asked as stopping:
            if broker:
                outcomes = _collect_hosts(job, broker, folders, patience, stopping)
            elif means == "threads":
                outcomes = _run_threads(job, folders, patience, progress, stopping)
            else:
                task = {"record": record, "ledger": ledger, "patience": patience}
                outcomes = _run_processes(job, means, folders, task, text, progress, stopping)
    except BaseException as error:
        _finish(job, output, folders, {}, begun, error)
        raise
    return _finish(job, output, folders, outcomes, begun)


def _scenario_text(experiment: Experiment) -> str:
    """Return what the processes of hosts read; raises where it cannot be written."""
    try:
        return dumps(experiment)
    except HocketError as error:
        hint = 'distributed="threads"; or classes and functions that have a name in a module'
        what = "the scenario cannot be written as text, which is what the process of a host reads"
        raise ScenarioError(
            what, str(error.faults[0].what), "models that a file can describe", hint
        ) from error


def _text_or_reason(experiment: Experiment) -> str:
    with suppress(HocketError):
        return dumps(experiment, strict=False)
    return "# not written: it holds what has no name in a file\n"


def _run_threads(
    job: Job,
    folders: Mapping[str, Path],
    patience: float,
    progress: Progress | None,
    stopping: threading.Event,
) -> dict[str, Outcome]:
    exchanges, outcomes = Exchanges(list(folders)), dict[str, Outcome].fromkeys(folders)
    times = dict.fromkeys(folders, float(job.experiment.start))

    def serve(host: str) -> None:
        def update(t: float, _number: int) -> None:
            times[host] = t

        try:
            done = run_host(
                job,
                host,
                exchanges.transport(host),
                folders[host],
                patience=patience,
                progress=update,
                interrupted=stopping,
            )
            outcomes[host] = str(done.info["status"])
        except Exception as error:
            outcomes[host] = error

    threads = [threading.Thread(target=serve, args=(host,), daemon=True) for host in folders]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(_LOOK)
        if progress is not None:
            progress(min(times.values()), job.stop)
    return outcomes


def _collect_hosts(
    job: Job, broker: str, folders: Mapping[str, Path], patience: float, stopping: threading.Event
) -> dict[str, Outcome]:
    """Wait for hosts at a broker, which is begun where there is none, and collect what they have kept."""
    with broker_at(broker, len(folders)):
        return collect(broker, folders, identity_card(job, "(leader)"), patience, stopping, lambda _: None)


def _run_processes(
    job: Job,
    means: Means,
    folders: Mapping[str, Path],
    task: Mapping[str, Any],
    text: str,
    progress: Progress | None,
    stopping: threading.Event,
) -> dict[str, Outcome]:
    with _private_folder() as place, _transport_facts(means, place, list(folders)) as (transport, broker):
        scenario = place / "scenario.toml"
        scenario.write_text(text, encoding="utf-8")
        processes: list[HostProcess] = []
        try:
            for host, folder in folders.items():
                more = {
                    "host": host,
                    "folder": str(folder),
                    "scenario": str(scenario),
                    "transport": transport,
                }
                processes.append(HostProcess(host, {**task, **more}, folder))
            lost = _watch(processes, lambda t: progress and progress(t, job.stop), stopping, broker)
        finally:
            for each in processes:
                each.close(0.0 if each.ended is None else GRACE)
        outcomes: dict[str, Outcome] = {} if lost is None else {"broker": lost}
        return outcomes | {each.host: each.ended for each in processes}


def _watch(
    processes: list[HostProcess],
    update: Callable[[float], object],
    stopping: threading.Event,
    broker: Broker | None,
) -> HostError | None:
    """Wait until all hosts have ended; who does not follow when one is lost is ended a moment later.

    Returns the error for a broker that is gone.
    """
    lost: float | None = None
    no_broker: HostError | None = None
    asked = False
    while True:
        for each in processes:
            each.listen()
        update(min(each.time for each in processes))
        if all(each.ended is not None for each in processes):
            return no_broker
        now = time.monotonic()
        if lost is None and broker is not None:
            no_broker = broker.loss()
            lost = None if no_broker is None else now
        if lost is None and any(isinstance(each.ended, Exception) for each in processes):
            lost = now
        if stopping.is_set() and not asked:
            asked = True
            lost = now
            for each in processes:
                each.ask_to_stop()
        if lost is not None and now > lost + GRACE:
            for each in processes:
                if each.ended is None and not asked:
                    each.ask_to_stop()
            if now > lost + 2 * GRACE:
                return no_broker
        time.sleep(_LOOK)


@contextmanager
def _private_folder() -> Iterator[Path]:
    """Make a folder that only this user can look into, in memory where there is such a place."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="hocket-hosts-", dir=memory if memory.is_dir() else None))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _transport_facts(
    means: Means, place: Path, hosts: list[str]
) -> Iterator[tuple[dict[str, Any], Broker | None]]:
    if means == "helics":
        with local_broker(len(hosts)) as broker:
            yield {"kind": "helics", "broker": broker.address, "federation": place.name}, broker
        return
    prepare_folder(place, hosts)
    yield {"kind": "shared", "folder": str(place)}, None


def _finish(
    job: Job,
    output: RunFolder,
    folders: Mapping[str, Path],
    outcomes: Mapping[str, Outcome],
    begun: float,
    error: BaseException | None = None,
) -> Run:
    """Gather what the hosts have kept; raise what went wrong first."""
    parts = open_parts(folders)
    recorder = ArrowRecorder(output.path)
    cause = error or _first_cause(outcomes)
    reached = job.clock.time(0)
    try:
        reached = gather_rows(job, parts, recorder)
    except HocketError as found:
        cause = cause or found
    finally:
        recorder.close()
    facts = gather_facts(job, parts)
    if not facts["notes"]:
        del facts["notes"]
    output.add({key: value for key, value in facts.items() if key != "counts"})
    for run in parts.values():
        if run.info.get("ended_by"):
            output.add({"ended_by": run.info["ended_by"]})
    ended = {each for each in outcomes.values() if isinstance(each, str)}
    status: Status = "failed" if cause else "ended" if "ended" in ended else "finished"
    if "stopped" in ended and status == "finished":
        status = "stopped"
    if isinstance(cause, KeyboardInterrupt):
        status = "stopped"
    phases = {"hosts": time.perf_counter() - begun}
    done = output.end(status, reached=reached, counts=facts["counts"], phases=phases, error=str(cause or ""))
    if cause is not None and error is None:
        cause.add_note(f"rows of all hosts are kept in {output.path / HOSTS}")
        raise cause
    return done


def _first_cause(outcomes: Mapping[str, Outcome]) -> BaseException | None:
    """Return what went wrong first: not that a host has left, but why it has."""
    failed = {host: each for host, each in outcomes.items() if isinstance(each, Exception)}
    silent = [host for host, each in outcomes.items() if each is None]
    for each in failed.values():
        if not isinstance(each, HostError):
            return each
    for host, each in failed.items():
        if isinstance(each, HostError) and each.host == host:
            return each  # its process is gone
    for each in failed.values():
        if isinstance(each, HostError) and each.host in silent:
            return each  # another has waited for it in vain
    if silent:
        what = f"`{silent[0]}` did not end within {2 * GRACE:g} s of the others, and was ended"
        return HostError(what, f"host `{silent[0]}`", "", "look for a step that hangs there")
    return next(iter(failed.values()), None)
