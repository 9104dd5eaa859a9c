"""`hocket.sweep`: one co-simulation run many times, with other parameters each time, in parallel.

In:  what `hocket.run` takes, and a list of parameters by path
Out: a list of Runs, in the same order
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

from hocket._native import give_up_waiting
from hocket.errors import Fault, Place, ScenarioError
from hocket.execution.notebook_progress import notebook_progress
from hocket.execution.run import experiment_to_run, run_experiment
from hocket.execution.session import LOOK_INTERVAL, Progress, interruptible
from hocket.execution.sweep_process import GRACE, RunTask, SweepProcess, pack_experiment
from hocket.execution.sweep_results import SweepResults
from hocket.files.experiments import ExperimentLike, vary_experiment
from hocket.files.run_folder import Run, TemporaryFolder
from hocket.model.arguments import (
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


@overload
def sweep(
    what: ExperimentLike,
    parameters: Iterable[Mapping[str, Any]],
    stop: Duration | None = None,
    *,
    workers: int | None = None,
    processes: bool | None = None,
    errors: Literal["raise"] = "raise",
    folder: Path | str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> SweepResults: ...


@overload
def sweep(
    what: ExperimentLike,
    parameters: Iterable[Mapping[str, Any]],
    stop: Duration | None = None,
    *,
    workers: int | None = None,
    processes: bool | None = None,
    errors: Literal["return"],
    folder: Path | str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> SweepResults: ...


def sweep(
    what: ExperimentLike,
    parameters: Iterable[Mapping[str, Any]],
    stop: Duration | None = None,
    *,
    workers: int | None = None,
    processes: bool | None = None,
    errors: Literal["raise", "return"] = "raise",
    folder: Path | str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Run once for each of the parameters, such as [{"k": 20}, {"k": 30}]; return the Runs in their order.

    The parameters of a single FMU go by their names, those of models in a scenario by path: {"spring.k": 20}.
    Further `options` are those of `hocket.run`. `workers` runs are made at a time (None: one per processor).
    With `processes` each worker is a process: an FMU that crashes ends its run only, and Python code runs in
    parallel. Without, it is a thread, and Python code takes turns. (None: processes if there are FMUs, and
    the scenario holds nothing that the script itself defines.) The results are the same. `folder` keeps the
    runs as 001, 002 ... The first error is raised when all runs are done; `errors="return"` puts errors in
    the list instead. `progress` is called with the number of runs done, parts included, and of all. Ctrl-C
    stops all of them between two steps, and what hangs after a second: the list then ends with the last that
    was begun. The list has a method `to_pandas`: parameters, final values or other quantities, status.
    """
    sets = _check_sweep_arguments(parameters, errors, workers, processes)
    expect_folder(folder)
    expect_call("progress", progress, "two numbers: runs done, of all")
    of_experiment = {name: options.pop(name) for name in OF_EXPERIMENT if name in options}
    experiment = experiment_to_run(what, stop=stop, **of_experiment)
    shown = notebook_progress("runs") if progress is None else progress
    results = run_variants(experiment, sets, {}, workers, processes, folder, shown, options)
    failed = next((result for result in results if isinstance(result, Exception)), None)
    if failed is not None and errors == "raise":
        raise failed
    return SweepResults(results, sets)


def run_variants(
    experiment: Experiment,
    sets: list[Mapping[str, Any]],
    done: Mapping[int, Run],
    workers: int | None,
    processes: bool | None,
    folder: Path | str | None,
    progress: Progress | None,
    options: dict[str, Any],
) -> list[Result]:
    """Return what became of the runs with these parameters; those that are `done`, by number, are taken."""
    experiments = _vary_experiments(experiment, sets)
    count = min(workers or len(os.sched_getaffinity(0)), max(1, len(sets)))
    if count > 1:
        options.setdefault("threads", 1)
    packed = _pack(experiment, options, processes) if sets else None
    batch = _Batch(experiments, sets, folder, options, packed, done)
    with interruptible() as interrupted:
        return batch.run(count, progress, interrupted)


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
    """Runs under way, each worker a thread: it makes them itself, or has a process make them."""

    def __init__(
        self,
        experiments: list[Experiment],
        sets: list[Mapping[str, Any]],
        folder: Path | str | None,
        options: dict[str, Any],
        packed: bytes | None,
        done: Mapping[int, Run],
    ):
        self.experiments, self.sets, self.options, self.packed = experiments, sets, options, packed
        self.folder = None if folder is None else Path(folder)
        self.shares = [0.0] * len(experiments)
        """How much of each run is done."""
        self.begun = 0
        self.results: dict[int, Result] = dict(done)
        self.lock = threading.Lock()

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
        process = None if self.packed is None else SweepProcess(self.packed)
        try:
            while self._work_once(process, interrupted):
                pass
        finally:
            if process is not None:
                process.close()

    def _work_once(self, process: SweepProcess | None, interrupted: threading.Event) -> bool:
        """Make the next run; return False where there is none."""
        with self.lock:  # so that those begun are always the first ones
            number = self.begun
            if number == len(self.experiments) or interrupted.is_set():
                return False
            self.begun += 1
        if number in self.results:  # it was made before
            self.shares[number] = 1.0
            return True
        try:
            make = self._run_here if process is None else partial(self._run_there, process)
            self.results[number] = make(number, interrupted)
        except Exception as error:
            self.results[number] = error
        except KeyboardInterrupt:  # it hung, and was given up: its rows are in its folder, if it has one
            if self.folder is not None:
                self.results[number] = Run(self._folder(number))
        self.shares[number] = 1.0
        return True

    def _folder(self, number: int) -> Path:
        assert self.folder is not None
        return (self.folder / f"{number + 1:03}").absolute()

    def _run_there(self, process: SweepProcess, number: int, interrupted: threading.Event) -> Run:
        keep = TemporaryFolder(self.experiments[number].name) if self.folder is None else None
        task = RunTask(number, self.sets[number], self._folder(number) if keep is None else keep.path)

        def update(share: float) -> None:
            self.shares[number] = share

        try:
            process.run(task, update, interrupted)
        except Exception as error:
            if keep is not None and error.__dict__.get("__notes__"):
                del error.__notes__  # of a folder that goes
            raise
        return Run(task.folder, keep)

    def _run_here(self, number: int, interrupted: threading.Event) -> Run:
        experiment = self.experiments[number]
        assert experiment.stop is not None
        start, span = float(experiment.start), float(experiment.stop - experiment.start) or 1.0

        def update(t: float, _stop: float) -> None:
            self.shares[number] = (t - start) / span

        return run_experiment(
            experiment,
            self.sets[number],
            folder=None if self.folder is None else self._folder(number),
            progress=update,
            interrupted=interrupted,
            **self.options,
        )


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


def _vary_experiments(experiment: Experiment, sets: list[Mapping[str, Any]]) -> list[Experiment]:
    """Return an experiment for each of the parameters; raises ScenarioError with everything that is wrong."""
    experiments: list[Experiment] = []
    faults: dict[Fault, Fault] = {}
    for number, one in enumerate(sets):
        try:
            experiments.append(vary_experiment(experiment, one, f"parameters[{number}]"))
        except ScenarioError as error:
            for fault in error.faults:  # a misspelt name is the same fault in all of them
                faults.setdefault(replace(fault, place=Place()), fault)
    if faults:
        raise ScenarioError(list(faults.values()))
    return experiments
