"""`hocket.sweep`: one co-simulation run many times, with other parameters each time, in parallel.

In:  what `hocket.run` takes, and a list of parameters by path
Out: a list of Runs, in the same order
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

from hocket.errors import Fault, Place, ScenarioError
from hocket.execution.run import experiment_to_run, run_experiment
from hocket.execution.session import LOOK_INTERVAL, Progress, interruptible
from hocket.files.experiments import ExperimentLike, vary_experiment
from hocket.files.run_folder import Run
from hocket.model.arguments import (
    expect,
    expect_call,
    expect_count,
    expect_folder,
    is_one_of,
)
from hocket.model.clock import Duration
from hocket.model.experiment import Experiment

_OF_EXPERIMENT = ("start", "step", "every", "name")

Result: TypeAlias = Run | Exception


@overload
def sweep(
    what: ExperimentLike,
    parameters: Iterable[Mapping[str, Any]],
    stop: Duration | None = None,
    *,
    workers: int | None = None,
    errors: Literal["raise"] = "raise",
    folder: Path | str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[Run]: ...


@overload
def sweep(
    what: ExperimentLike,
    parameters: Iterable[Mapping[str, Any]],
    stop: Duration | None = None,
    *,
    workers: int | None = None,
    errors: Literal["return"],
    folder: Path | str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[Run | Exception]: ...


def sweep(
    what: ExperimentLike,
    parameters: Iterable[Mapping[str, Any]],
    stop: Duration | None = None,
    *,
    workers: int | None = None,
    errors: Literal["raise", "return"] = "raise",
    folder: Path | str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Run once for each of the parameters, such as [{"k": 20}, {"k": 30}]; return the Runs in their order.

    The parameters of a single FMU go by their names, those of models in a scenario by path: {"spring.k": 20}.
    Further `options` are those of `hocket.run`. The runs share `workers` threads (None: one per processor):
    what is compiled runs in parallel, Python code takes turns. `folder` keeps them as 001, 002 ... The first
    error is raised when all runs are done; `errors="return"` puts errors in the list instead. `progress` is
    called with the number of runs done, parts included, and of all. Ctrl-C stops all of them between two
    steps: the list then ends with the last that was begun.
    """
    sets = _check_sweep_arguments(parameters, errors, workers)
    expect_folder(folder)
    expect_call("progress", progress, "two numbers: runs done, of all")
    of_experiment = {name: options.pop(name) for name in _OF_EXPERIMENT if name in options}
    experiment = experiment_to_run(what, stop=stop, **of_experiment)
    experiments = _vary_experiments(experiment, sets)
    count = min(workers or len(os.sched_getaffinity(0)), max(1, len(sets)))
    if count > 1:
        options.setdefault("threads", 1)
    batch = _Batch(experiments, sets, folder, options)
    with interruptible() as interrupted:
        results = batch.run(count, progress, interrupted)
    failed = next((result for result in results if isinstance(result, Exception)), None)
    if failed is not None and errors == "raise":
        raise failed
    return results


class _Batch:
    """Runs under way in a pool of threads."""

    def __init__(
        self,
        experiments: list[Experiment],
        sets: list[Mapping[str, Any]],
        folder: Path | str | None,
        options: dict[str, Any],
    ):
        self.experiments, self.sets, self.options = experiments, sets, options
        self.folder = None if folder is None else Path(folder)
        self.shares = [0.0] * len(experiments)
        """How much of each run is done."""
        self.begun = 0
        self.results: dict[int, Result] = {}
        self.lock = threading.Lock()

    def run(self, workers: int, progress: Progress | None, interrupted: threading.Event) -> list[Result]:
        """Run all; return what became of those that were begun."""
        pool = ThreadPoolExecutor(workers, "hocket-sweep")
        try:
            left: set[Future[None]] = {pool.submit(self._work, interrupted) for _ in range(workers)}
            while left:
                done, left = wait(left, LOOK_INTERVAL)
                for future in done:
                    future.result()
                if progress is not None:
                    progress(sum(self.shares), len(self.shares))
        except BaseException:
            interrupted.set()
            pool.shutdown(wait=False)
            raise
        pool.shutdown()
        return [self.results[number] for number in sorted(self.results)]

    def _work(self, interrupted: threading.Event) -> None:
        """Run one after the other, as long as there are any."""
        while True:
            with self.lock:  # so that those begun are always the first ones
                number = self.begun
                if number == len(self.experiments) or interrupted.is_set():
                    return
                self.begun += 1
            try:
                self.results[number] = self._run_one(number, interrupted)
            except Exception as error:
                self.results[number] = error
            self.shares[number] = 1.0

    def _run_one(self, number: int, interrupted: threading.Event) -> Run:
        experiment = self.experiments[number]
        assert experiment.stop is not None
        start, span = float(experiment.start), float(experiment.stop - experiment.start) or 1.0

        def update(t: float, _stop: float) -> None:
            self.shares[number] = (t - start) / span

        folder = None if self.folder is None else self.folder / f"{number + 1:03}"
        return run_experiment(
            experiment,
            self.sets[number],
            folder=folder,
            progress=update,
            interrupted=interrupted,
            **self.options,
        )


def _check_sweep_arguments(
    parameters: Iterable[Mapping[str, Any]], errors: str, workers: int | None
) -> list[Mapping[str, Any]]:
    expected = 'a list such as [{"k": 20}, {"k": 30}]'
    listed = isinstance(parameters, Iterable) and not isinstance(parameters, str | bytes)
    expect(listed, "parameters", parameters, expected)
    sets = [parameters] if isinstance(parameters, Mapping) else list(parameters)
    for one in sets:
        expect(isinstance(one, Mapping), "parameters", one, expected)
    expect(is_one_of(errors, ("raise", "return")), "errors", errors, '"raise" or "return"')
    expect_count("workers", workers)
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
