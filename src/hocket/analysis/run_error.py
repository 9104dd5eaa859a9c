"""The global error of a run, estimated from two more with half the steps and a quarter (Richardson).

In:  an Experiment that was run, and its Run; or a run folder alone
Out: an ErrorEstimate: an error per recorded port over time, and why it is not reliable
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from hocket.analysis.defect_estimate import (
    SEEN,
    broken_loop_doubts,
    changed_model_doubts,
    early_end_doubts,
    last_row_time,
    order_doubts,
    rounding_by_port,
    trust_from_defect,
    uncovered_errors,
)
from hocket.analysis.error_prediction import predicted_order
from hocket.analysis.pilot import tighten_tolerance
from hocket.errors import HocketError, ScenarioError
from hocket.execution.run import run_experiment
from hocket.execution.session import EngineName, Progress
from hocket.files.error_estimate import ErrorEstimate, PortEstimate, matching_rows
from hocket.files.formats import read
from hocket.files.plotting import Series
from hocket.files.run_clearing import SCENARIO
from hocket.files.run_folder import Run
from hocket.model.composite import traits_of
from hocket.model.experiment import Experiment
from hocket.model.protocols import Array
from hocket.planning.parameters import change_levels, scale_steps
from hocket.planning.planner import plan_tree

PARTS = (2, 4)
"""Of the steps, in the runs beside the first."""
NOISE = 1e-11
"""Relative differences below this are rounding."""

Watch: TypeAlias = Callable[[Experiment, str], AbstractContextManager[Progress | None]]
"""Told what is run next, and how; gives what is called with its progress."""


def estimate_error(
    experiment: Experiment, run: Run, engine: EngineName | None = None, watch: Watch | None = None
) -> ErrorEstimate:
    """Return how wrong a run is, from two more with shorter steps: six times its cost.

    Ctrl-C ends the run under way: what there is counts, with a doubt. The order is the one that is seen;
    where none is, what the parts promise counts. A run that ended early is judged up to there.
    """
    run = run.without_accounts()  # what a bond gains has no exact value but zero
    doubts = list(early_end_doubts(run))
    experiment = truncate_experiment(experiment, run)
    doubts += broken_loop_doubts(experiment)
    others: list[Run] = []
    for part in PARTS:
        other, why = _run_shorter_steps(experiment, run, part, engine or engine_of(run), watch)
        doubts += why
        others += [other] if other else []
        if why:
            break
    promised, _ = predicted_order(experiment.composite)
    rounding = rounding_by_port(run)
    found = [
        _estimate_port_error(run[port], [other[port] for other in others], promised, rounding[port])
        for port in run.ports
    ]
    known = sorted((each for each in found if each is not None), key=lambda each: -each.relative)
    left_out = tuple(uncovered_errors(experiment))
    if not run.ports:
        doubts.append("nothing was recorded")
    elif others and not known:
        doubts.append("the runs with shorter steps have no rows at the times of this one")
    if len(others) == len(PARTS):
        controlled = any(
            traits_of(level.composite.orchestrator).adaptive
            for level in plan_tree(experiment.composite).levels()
        )
        doubts += order_doubts(known, promised, bool(left_out), controlled)
    doubts += changed_model_doubts(run, others)
    whole = sum(other.status == "finished" for other in others)
    return ErrorEstimate(
        tuple(known), tuple(dict.fromkeys(doubts)), promised, "Richardson", left_out, runs=whole
    )


def estimate_run_error(run: Run, quick: bool = False, watch: Watch | None = None) -> ErrorEstimate:
    """Return how wrong the run in a folder is, from what the folder says was run.

    With `quick`, or where that cannot be run again, from its connections and linear models: no run is made.
    """
    try:
        experiment = experiment_of(run)
    except ScenarioError as error:
        return trust_from_defect(run, None, (*early_end_doubts(run), error.faults[0].what))
    doubts = tuple(early_end_doubts(run))
    if not quick:
        found = estimate_error(experiment, run, watch=watch)
        if found.ports:
            return found
        doubts = found.doubts
    return trust_from_defect(run, truncate_experiment(experiment, run), doubts)


def experiment_of(run: Run) -> Experiment:
    """Return what was run, as the folder of the run has it: options of the command line are in it."""
    try:
        return read(run.path / SCENARIO)
    except HocketError as error:
        fault = error.faults[0]
        what = f"the scenario cannot be opened again ({fault.where}): {fault.what}"
        raise ScenarioError(what, str(run.path / SCENARIO), hint=fault.hint) from error


def engine_of(run: Run) -> EngineName:
    """Return which engine was asked for."""
    info = run.info
    return (
        "interpreter" if info.get("engine") == "interpreter" and not info.get("why_interpreted") else "native"
    )


def truncate_experiment(experiment: Experiment, run: Run) -> Experiment:
    """Return the experiment up to the last whole step of the run."""
    if run.status == "finished":
        return experiment
    begun, step = float(experiment.start), float(experiment.composite.step)
    last, reached = last_row_time(run), run.info.get("reached")
    steps = 0 if last is None else math.floor((last - begun) / step + 1e-6)
    if steps < 1:
        what = "the run ended before its first step"
        if reached is not None and reached - begun > (1.0 - 1e-6) * step:
            what = f"the run came to {reached:g} s, {run.status}, and no row after its first step is kept"
        raise ScenarioError(what, str(run.path), "rows to compare with")
    return replace(experiment, stop=experiment.start + steps * experiment.composite.step)


def _run_shorter_steps(
    experiment: Experiment, run: Run, part: int, engine: EngineName, watch: Watch | None
) -> tuple[Run | None, list[str]]:
    """Return the same with a part of the steps, as far as it came; and why no further."""
    words = f"1/{part} of the steps"
    try:
        scaled = scale_steps(experiment.composite, Fraction(1, part), own=True)
        # a level that controls its steps would make the same ones: its tolerance decides
        scaled = change_levels(scaled, lambda level: tighten_tolerance(level, Fraction(part)))
        shorter = replace(experiment, composite=scaled)
        rows = min(level.composite.step for level in plan_tree(experiment.composite).levels())
        shorter = replace(shorter, every=experiment.every or rows)
        with watch(shorter, f"with {words}") if watch else nullcontext() as progress:
            other = run_experiment(shorter, {}, record=run.ports, engine=engine, progress=progress)
    except KeyboardInterrupt:
        return None, [f"the run with {words} was interrupted"]
    except HocketError as error:
        return None, [f"there is no run with {words}: {error.faults[0].what}"]
    if other.status != "finished":
        how = "was interrupted" if other.status == "stopped" else other.status
        when = f"the run with {words} {how} at {other.info['reached']:g} s"
        return other, [f"{when}: what was compared is shorter than the run"]
    return other, []


def _estimate_port_error(
    run: Series, others: Sequence[Series], promised: int | None, rounding: float
) -> PortEstimate | None:
    """Return the error of one port, at the times that its run shares with the one of half the steps.

    What is smaller than `rounding` and shows no order is taken for that of other ports.
    """
    if not others:
        return None
    shared = [shared_rows(run, other) for other in others]
    here, half = shared[0]
    if not len(here):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        error, order = _richardson_error(run.values[here], half, promised), None
        if len(others) > 1 and len(shared[1][0]):
            places, quarter = shared[1]
            both = np.isin(here, places)
            middle = half[both]
            quarter = quarter[np.isin(places, here)]
            order = _observed_order(run.values[here][both] - middle, middle - quarter, run.values)
            if both.all():
                error = run.values[here] - middle + _richardson_error(middle, quarter, promised, order)
            else:
                error = _richardson_error(run.values[here], half, promised, order)
    series = Series(run.t[here], run.values[here], run.unit, run.name)
    seen = PortEstimate(series, error, order, rounding)
    if seen.relative == 0.0 and (order is None or order < SEEN):
        return replace(seen, order=None)
    return PortEstimate(series, error, order)


def shared_rows(run: Series, other: Series) -> tuple[Any, Array]:
    """Return which rows of a run another has too, and the values it has there."""
    at, kept = matching_rows(run.t, other.t)
    last = np.append(np.diff(run.t) > 0.0, True)[: len(run.t)]  # of rows with one time the last counts
    here = np.flatnonzero(last & kept)
    return here, other.values[at[here]]


def _richardson_error(coarse: Array, fine: Array, promised: int | None, order: float | None = None) -> Array:
    """Return how far values are from where half the steps lead, if the error falls with the order.

    Richardson & Gaunt 1927: e(H) = (y(H) - y(H/2)) 2^p / (2^p - 1).
    """
    power = order if order is not None and order >= SEEN else float(promised or 1)
    return np.asarray((coarse - fine) * (2.0**power / (2.0**power - 1.0)))


def _observed_order(first: Array, second: Array, values: Array) -> float | None:
    """Return with which power differences fall when the steps are halved; None: they are rounding."""
    noise = NOISE * float(np.abs(values).max(initial=1e-300))
    scale = float(np.abs(first).max(initial=0.0))
    if not math.isfinite(scale) or scale <= noise:
        return None
    one, other = (float(np.sqrt(np.mean((part / scale) ** 2))) for part in (first, second))
    return math.log2(one / other) if other * scale > noise and math.isfinite(other) else None
