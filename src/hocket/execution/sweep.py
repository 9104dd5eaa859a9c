"""`hocket.sweep`: one co-simulation run many times, with other parameters each time, in parallel.

In:  what `hocket.run` takes, and a list of parameters by path
Out: a list of Runs, in the same order, which is a table too
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

from hocket._native import give_up_waiting
from hocket.errors import Fault, Place, ScenarioError
from hocket.execution.dask_cluster import DaskCluster, DaskHand
from hocket.execution.notebook_progress import notebook_progress
from hocket.execution.run import experiment_to_run
from hocket.execution.session import LOOK_INTERVAL, Progress, interruptible
from hocket.execution.sweep_folder import (
    SWEEP,
    begin_sweep_folder,
    completed_runs,
    digest_experiment,
    digest_file,
    parse_shard,
)
from hocket.execution.sweep_process import (
    GRACE,
    LostProcessError,
    RunTask,
    SweepProcess,
    make_varied_run,
    pack_experiment,
)
from hocket.execution.sweep_results import SweepResults
from hocket.files.experiments import ExperimentLike, vary_experiment
from hocket.files.run_folder import Run, TemporaryFolder
from hocket.model.arguments import (
    as_path,
    expect,
    expect_call,
    expect_count,
    expect_folder,
    is_flag,
    is_one_of,
)
from hocket.model.clock import Duration
from hocket.model.experiment import Experiment
from hocket.planning.parameters import leaves
from hocket.simulators.fmu.recipe import Fmu

OF_EXPERIMENT = ("start", "step", "every", "name")
"""Options that belong to the experiment, not to the run."""

Result: TypeAlias = Run | Exception

TRIES = 3
"""Times that a run is made whose process is ended from outside."""


@overload
def sweep(
    what: ExperimentLike,
    parameters: Iterable[Mapping[str, Any]],
    stop: Duration | None = None,
    *,
    errors: Literal["raise"] = "raise",
    **options: Any,
) -> SweepResults: ...


@overload
def sweep(
    what: ExperimentLike,
    parameters: Iterable[Mapping[str, Any]],
    stop: Duration | None = None,
    *,
    errors: Literal["return"],
    **options: Any,
) -> SweepResults: ...


def sweep(
    what: ExperimentLike,
    parameters: Iterable[Mapping[str, Any]],
    stop: Duration | None = None,
    *,
    workers: int | None = None,
    processes: bool | None = None,
    dask: str | None = None,
    errors: Literal["raise", "return"] = "raise",
    folder: Path | str | None = None,
    again: bool = False,
    shard: str | tuple[int, int] | None = None,
    checkpoint: Path | str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Run once for each of the parameters, such as [{"k": 20}, {"k": 30}]; return the Runs in their order.

    The parameters of a single FMU go by their names, those of models in a scenario by path: {"spring.k": 20}.
    Further `options` are those of `hocket.run`. `workers` runs are made at a time (None: one per processor).
    With `processes` each worker is a process: an FMU that crashes ends its run only, and Python code runs in
    parallel; a process that is killed loses nothing, its run is made again. Without, it is a thread, and
    Python code takes turns. (None: processes if there are FMUs, and the scenario holds nothing that the
    script itself defines.) `dask` is the address of a Dask scheduler, whose workers make the runs: models and
    their files must be there too. The results are the same.

    `folder` keeps the runs as 001, 002 ... With `again` those that have come to their end there are taken,
    the others are made: a sweep that was stopped, or killed, goes on. `shard="3/10"` makes the third of ten
    parts only, which may share a folder. With a `checkpoint` every run begins there, with its parameters from
    then on. The list has `to_pandas()` (parameters, final values or other quantities, status) and
    `to_parquet(path)`: one row per run. The first error is raised
    when all runs are done; `errors="return"` puts errors in the list instead. `progress` is called with the
    number of runs done, parts included, and of all. Ctrl-C stops all of them between two steps, and what
    hangs after a second: the list then ends with the last that was begun.
    """
    sets = _check_sweep_arguments(parameters, errors, workers, processes)
    expect_folder(folder)
    expect_call("progress", progress, "two numbers: runs done, of all")
    expect(is_flag(again), "again", again, "True or False")
    expect(not again or folder is not None, "again", again, "with a `folder`, in which the runs are")
    expect(dask is None or isinstance(dask, str), "dask", dask, 'an address such as "tcp://host:8786"')
    part, parts = parse_shard(shard)
    of_experiment = {name: options.pop(name) for name in OF_EXPERIMENT if name in options}
    experiment = experiment_to_run(what, stop=stop, **of_experiment)
    if checkpoint is not None:
        options = _options_from_checkpoint(options) | {"checkpoint": as_path(checkpoint).absolute()}
    variants = Variants(experiment, sets, {}, folder, again, tuple(range(part - 1, len(sets), parts)))
    check_variants(variants)
    if folder is not None:
        variants = replace(variants, done=_begin_folder(Path(folder), variants, options))
    shown = notebook_progress("runs") if progress is None else progress
    results = run_variants(variants, workers, processes, shown, options, dask)
    numbers = variants.numbers[: len(results)]
    failed = next((result for result in results if isinstance(result, Exception)), None)
    if failed is not None and errors == "raise":
        raise failed
    return SweepResults(results, [sets[number] for number in numbers], numbers)


def _options_from_checkpoint(options: dict[str, Any]) -> dict[str, Any]:
    """Return what may be asked for beside a checkpoint; refuses what is that of the run that wrote it."""
    kept = {name: value for name, value in options.items() if value is not None and value is not False}
    others = sorted(set(kept) - {"overwrite", "threads"})
    if others:
        what = f"`{others[0]}` is that of the run that has written the checkpoint"
        raise ScenarioError(what, others[0], "none, beside a checkpoint")
    return kept


def _begin_folder(place: Path, variants: Variants, options: Mapping[str, Any]) -> dict[int, Run]:
    """Return the runs that an earlier sweep of the same has brought to their end in a folder."""
    experiment, checkpoint = variants.experiment, options.get("checkpoint")
    facts = {
        "scenario": digest_experiment(experiment),
        "start": str(experiment.start),
        "stop": str(experiment.stop),
        "checkpoint": None if checkpoint is None else digest_file(checkpoint),
    }
    if not variants.again:
        if options.get("overwrite"):
            (place / SWEEP).unlink(missing_ok=True)
        elif place.exists() and (not place.is_dir() or any(place.iterdir())):
            return {}  # whatever is there is found by the runs
    begun = begin_sweep_folder(place, facts, SWEEP, "sweep")
    return completed_runs(place, variants.sets) if begun else {}


@dataclass(frozen=True)
class Variants:
    """What is run many times, and which of the runs are made."""

    experiment: Experiment
    sets: list[Mapping[str, Any]]
    done: Mapping[int, Run] = field(default_factory=dict)
    """Those that need not be made, by number."""
    folder: Path | str | None = None
    again: bool = False
    """What did not come to its end in the folder is replaced."""
    chosen: tuple[int, ...] | None = None
    """None: all."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The runs that are made, from 0 on."""
        return tuple(range(len(self.sets))) if self.chosen is None else self.chosen


def run_variants(
    variants: Variants,
    workers: int | None,
    processes: bool | None,
    progress: Progress | None,
    options: dict[str, Any],
    dask: str | None = None,
) -> list[Result]:
    """Return what became of the runs, in the order of their numbers; they were checked."""
    numbers = variants.numbers
    cluster = None if dask is None else DaskCluster(dask)
    try:
        hands = 2 * cluster.size if cluster is not None else len(os.sched_getaffinity(0))
        count = min(workers or hands, max(1, len(numbers)))
        if count > 1 and "checkpoint" not in options:
            options.setdefault("threads", 1)
        packed = _pack(variants.experiment, options, True if dask else processes) if numbers else None
        with interruptible() as interrupted:
            return _Batch(variants, options, packed, cluster).run(count, progress, interrupted)
    finally:
        if cluster is not None:
            cluster.close()


def _pack(experiment: Experiment, options: Mapping[str, Any], processes: bool | None) -> bytes | None:
    """Return what processes are sent; None: the runs are made in threads of this one."""
    fmus = [model for _, model in leaves(experiment.composite) if isinstance(model, Fmu)]
    for fmu in fmus:
        fmu.make_contact()  # once, before many do
    if processes is False or (processes is None and not fmus):
        return None
    packed = pack_experiment(experiment, options) if os.name == "posix" else None
    if packed is None and processes:
        what = "the scenario cannot be sent to other processes: it holds what has no name there"
        hint = "what it is made of in a file of its own, or processes=False"
        raise ScenarioError(what, "processes", "models that can be pickled", hint)
    return packed


class _Batch:
    """Runs under way, each worker a thread: it makes them itself, or has another process make them."""

    def __init__(
        self,
        variants: Variants,
        options: dict[str, Any],
        packed: bytes | None,
        cluster: DaskCluster | None,
    ):
        self.variants, self.numbers = variants, variants.numbers
        self.options, self.packed, self.cluster = options, packed, cluster
        self.folder = None if variants.folder is None else Path(variants.folder)
        self.experiments = self._vary() if packed is None else []
        """Where this process makes the runs: varied before there are threads."""
        self.shares = [0.0] * len(self.numbers)
        """How much of each run is done."""
        self.begun = 0
        self.results: dict[int, Result] = {}
        self.lock = threading.Lock()

    def _vary(self) -> list[Experiment]:
        experiment, sets = self.variants.experiment, self.variants.sets
        if "checkpoint" in self.options:
            return [experiment] * len(self.numbers)
        return [vary_experiment(experiment, sets[number]) for number in self.numbers]

    def run(self, workers: int, progress: Progress | None, interrupted: threading.Event) -> list[Result]:
        """Run all; return what became of those that were begun."""
        pool, patience = ThreadPoolExecutor(workers, "hocket-sweep"), 0.0
        try:
            left: set[Future[None]] = {pool.submit(self._work, interrupted) for _ in range(workers)}
            while left:
                done, left = wait(left, LOOK_INTERVAL)
                for future in done:
                    future.result()
                if progress is not None:
                    progress(sum(self.shares), len(self.shares))
                if interrupted.is_set():
                    patience = patience or time.monotonic() + GRACE
                    if time.monotonic() > patience:
                        give_up_waiting()  # FMUs that hang in processes of their own
        except BaseException:
            interrupted.set()
            pool.shutdown(wait=False)
            raise
        pool.shutdown()
        return [self.results[number] for number in sorted(self.results)]

    def _work(self, interrupted: threading.Event) -> None:
        """Run one after the other, as long as there are any."""
        process: SweepProcess | DaskHand | None = None
        if self.packed is not None:
            process = (
                SweepProcess(self.packed) if self.cluster is None else DaskHand(self.cluster, self.packed)
            )
        try:
            while self._work_once(process, interrupted):
                pass
        finally:
            if process is not None:
                process.close()

    def _work_once(self, process: SweepProcess | DaskHand | None, interrupted: threading.Event) -> bool:
        """Make the next run; return False where there is none."""
        with self.lock:  # so that those begun are always the first ones
            place = self.begun
            if place == len(self.numbers) or interrupted.is_set():
                return False
            self.begun += 1
        number = self.numbers[place]
        if number in self.variants.done:  # it was made before
            self.results[number], self.shares[place] = self.variants.done[number], 1.0
            return True
        try:
            self.results[number] = self._make(process, place, interrupted)
        except Exception as error:
            self.results[number] = error
        except KeyboardInterrupt:  # it hung, and was given up: its rows are in its folder, if it has one
            if self.folder is not None:
                self.results[number] = Run(self._folder(number))
        self.shares[place] = 1.0
        return True

    def _folder(self, number: int) -> Path:
        assert self.folder is not None
        return (self.folder / f"{number + 1:03}").absolute()

    def _make(self, process: SweepProcess | DaskHand | None, place: int, interrupted: threading.Event) -> Run:
        """Make a run; one whose process was ended from outside is made again, by another one."""
        number, variants = self.numbers[place], self.variants
        keep = TemporaryFolder(variants.experiment.name) if self.folder is None else None
        folder = self._folder(number) if keep is None else keep.path
        task = RunTask(number, variants.sets[number], folder, variants.again)
        assert variants.experiment.stop is not None
        start = float(variants.experiment.start)
        span = float(variants.experiment.stop - variants.experiment.start) or 1.0

        def update(share: float) -> None:
            self.shares[place] = share

        def update_time(t: float, _stop: float) -> None:
            update((t - start) / span)

        try:
            if process is None:
                make_varied_run(self.experiments[place], self.options, task, update_time, interrupted)
            for attempt in range(TRIES if process is not None else 0):
                try:
                    process.run(task, update, interrupted)  # type: ignore[union-attr]
                    break
                except LostProcessError:
                    if attempt == TRIES - 1 or interrupted.is_set():
                        raise
                    task = replace(task, overwrite=True)
        except Exception as error:
            if keep is not None and error.__dict__.get("__notes__"):
                del error.__notes__  # of a folder that goes
            raise
        return Run(folder, keep)


def _check_sweep_arguments(
    parameters: Iterable[Mapping[str, Any]], errors: str, workers: int | None, processes: bool | None
) -> list[Mapping[str, Any]]:
    expected = 'a list such as [{"k": 20}, {"k": 30}]'
    listed = isinstance(parameters, Iterable) and not isinstance(parameters, str | bytes)
    expect(listed, "parameters", parameters, expected)
    sets = [parameters] if isinstance(parameters, Mapping) else list(parameters)
    for one in sets:
        expect(isinstance(one, Mapping), "parameters", one, expected)
    expect(is_one_of(errors, ("raise", "return")), "errors", errors, '"raise" or "return"')
    expect_count("workers", workers)
    expect(processes is None or is_flag(processes), "processes", processes, "True, False or None")
    return sets


def check_variants(variants: Variants) -> None:
    """Raise ScenarioError with everything that is wrong with parameters."""
    faults: dict[Fault, Fault] = {}
    for number in variants.numbers:
        try:
            vary_experiment(variants.experiment, variants.sets[number], f"parameters[{number}]")
        except ScenarioError as error:
            for fault in error.faults:  # a misspelt name is the same fault in all of them
                faults.setdefault(replace(fault, place=Place()), fault)
    if faults:
        raise ScenarioError(list(faults.values()))
