"""The error of a run where nothing can be run again: connection defects, and linear models; doubts.

In:  a Run, and its Experiment if that can be had
Out: an ErrorEstimate by the method `defect`: per connection, and per port where linear models follow the run

A defect is how far an input was from the output that drives it, at the end of a step: what the coupling does
wrong in one step, in the unit of the input. What becomes of it later, a stable system forgets and another
does not: it is not the error of the run.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from hocket.analysis.bond_energy import balanced_leaves
from hocket.analysis.consistency import measure_defect, run_defect, worst_defect
from hocket.analysis.error_prediction import PortError, predicted_error, predicted_order
from hocket.analysis.linear_models import named_leaves, with_sources
from hocket.analysis.linear_reading import is_linear
from hocket.analysis.linearisation import linearise
from hocket.analysis.posedness import delayed_inputs, posedness
from hocket.errors import HocketError, ScenarioError, list_names
from hocket.files.error_estimate import ErrorEstimate, InputDefect, PortEstimate, matching_rows
from hocket.files.plotting import Series
from hocket.files.run_folder import Run
from hocket.model.experiment import Experiment
from hocket.model.extrapolators import Hold, Polynomial
from hocket.model.protocols import Array, method_of
from hocket.model.units import conversion
from hocket.planning.parameters import makes_fixed_steps
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
from hocket.simulators.ode import Ode
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import StateSpace
from hocket.simulators.wrappers.balanced import Balanced

SEEN = 0.5
"""An order below this is none: the error does not fall with the steps."""
FAR = (0.5, 1.0)
"""How far an order that is seen may be below, and above, the one that is promised."""
COUNTS = 0.01
"""Ports whose error is below this part of the worst one's do not raise doubts."""
SMALL = 1e-9
"""Relative errors below this are not doubted: what is integrated inside may be no better."""
ROUNDING_BESIDE = 1e-12
"""Of the largest value beside it: what is smaller may be rounding."""
SAME = 1e-6
"""Relative differences at the start above this come from other models, not from other steps."""


def early_end_doubts(run: Run) -> Iterator[str]:
    """Yield that a run did not come to its end."""
    if run.status == "diverged":
        yield "the run has diverged: its values have no digit left of what they were at first"
    elif run.status != "finished":
        reached, last = run.info.get("reached"), last_row_time(run)
        when = "" if reached is None else f" at {reached:g} s"
        lost = reached is not None and last is not None and last < reached - SAME * abs(reached)
        where = f"its last row, at {last:g} s" if lost else "there"
        yield f"the run ended early{when}, {run.status}: it is judged up to {where}, not beyond"


def last_row_time(run: Run) -> float | None:
    """Return the time of the newest row that is kept; None: there is none."""
    return max((float(run[port].t[-1]) for port in run.ports if len(run[port].t)), default=None)


def broken_loop_doubts(experiment: Experiment) -> Iterator[str]:
    """Yield the loops that are broken: differences need not tell the error (theory, section 8.3)."""
    found = posedness(experiment.composite)
    for loop in () if found.solved else found.loops:
        path = " -> ".join(f"`{port}`" for port in loop)
        yield (
            f"feedthrough on both sides: the algebraic loop {path} is broken by a delay, "
            "and an estimate from shorter steps may mislead"
        )


def order_doubts(
    known: Sequence[PortEstimate], promised: int | None, closed: bool, controlled: bool = False
) -> Iterator[str]:
    """Yield why the orders that are seen speak against the estimate; `closed`: not all promise an order.

    `controlled`: a level controls its steps. An error that follows the tolerance has order 2, for that is
    divided by the square of what divides the steps.
    """
    if any(not math.isfinite(each.largest) for each in known):
        yield "some values overflow: their error cannot be estimated"
    worst = max((each.relative for each in known if math.isfinite(each.relative)), default=0.0)
    least = max(SMALL, COUNTS * worst)
    ports = [each for each in known if each.order is not None and each.relative >= least]
    none = [each for each in ports if each.order is not None and each.order < SEEN]
    if none:
        names = list_names([each.port for each in none], 1)
        yield f"no observed order in {names}: it does not converge as the steps get shorter"
    orders = [(each.order, each.port) for each in ports if each.order is not None and each.order >= SEEN]
    if promised is None:
        if orders and not closed:
            names = list_names([port for _, port in orders], 1)
            yield f"no error is expected, yet {names} changes with the steps"
        return
    low, high = promised - FAR[0], (max(promised, 2) if controlled else promised) + FAR[1]
    for far, word in (
        ([each for each in orders if each[0] < low], "something reduces the order"),
        ([each for each in orders if each[0] > high], "the steps are too long to show it, or it is unstable"),
    ):
        if far:
            order, port = max(far, key=lambda each: abs(each[0] - promised))
            yield f"`{port}`: observed order {order:.2f}, expected order {promised}: {word}"


def rounding_by_port(run: Run) -> dict[str, float]:
    """Return per port what would be rounding: beside the ports of its simulator, and those in its unit."""
    largest = {port: float(np.abs(run[port].values).max(initial=0.0)) for port in run.ports}
    groups: dict[tuple[str, str], float] = {}
    for port, size in largest.items():
        for key in _comparison_groups(run, port):
            groups[key] = max(groups.get(key, 0.0), size if math.isfinite(size) else 0.0)
    return {
        port: ROUNDING_BESIDE * max(groups[key] for key in _comparison_groups(run, port)) for port in largest
    }


def _comparison_groups(run: Run, port: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("simulator", port.rpartition(".")[0]), ("unit", run[port].unit)


def changed_model_doubts(run: Run, others: Sequence[Run]) -> Iterator[str]:
    """Yield ports that start otherwise: the files or the code behind the scenario are not what was run."""
    moved, rounding = [], rounding_by_port(run)
    guessed = run.info.get("determined", ())  # what equations determine has a value over steps only
    for port in run.ports if others else ():
        if port in guessed:
            continue
        one, other = run[port], others[0][port]
        if len(one) and len(other) and one.t[0] == other.t[0]:
            scale = max(abs(float(one.values[0])), abs(float(other.values[0])))
            if abs(float(one.values[0] - other.values[0])) > max(SAME * scale, rounding[port]):
                moved.append(port)
    if moved:
        names = list_names(moved, 1)
        yield f"{names} starts elsewhere than in the run: the models are not those that were run"


def uncovered_errors(experiment: Experiment) -> Iterator[str]:
    """Yield what no other steps of levels bring to light."""
    inside = [name for name, model in named_leaves(experiment.composite) if not _is_covered(model)]
    if inside:
        yield f"what is integrated inside {list_names(inside, 1)}: the steps there stay as they are"


def _is_covered(model: Any) -> bool:
    """Return whether all that a model does is exact, or done in steps that are shortened too."""
    if isinstance(model, Balanced) and model.linked:
        plain: Any = model.model
        integrated = model.form == "inversion" and (method_of(plain) or "exact") == "exact"
        return isinstance(plain, StateSpace) and not integrated
    return makes_fixed_steps(model) or isinstance(model, (Table, Csv, Function))


def connection_gaps(run: Run, experiment: Experiment) -> tuple[list[InputDefect], list[str]]:
    """Return the worst that is known of each connection, and those of which nothing is."""
    found: dict[str, InputDefect] = {}
    missing: list[str] = []
    for level in plan_tree(experiment.composite).levels():
        for gap in _extrapolation_gaps(run, experiment, level):
            if isinstance(gap, str):
                missing.append(gap)
            else:
                found[gap.input] = gap
    with suppress(ScenarioError):
        for gap in run_defect(run, experiment.composite).connections:
            if gap.input not in found or found[gap.input].largest < gap.largest:
                found[gap.input] = gap
    return list(found.values()), [name for name in missing if name not in found]


def _extrapolation_gaps(run: Run, experiment: Experiment, level: PlanTree) -> Iterator[InputDefect | str]:
    """Yield connections that are extrapolated over a step, from the outputs alone; or their names."""
    inside = f"{level.path}." if level.path else ""
    for child, index, drive, delay in delayed_inputs(level):
        target, source = f"{inside}{delay.target}", f"{inside}{delay.source}"
        how, unit = drive.extrapolation or Hold(), level.wiring.models[child].inputs[index].unit
        y = None
        if delay.lag == 1 and isinstance(how, (Hold, Polynomial)) and source in run:
            y = _series_at_steps(run[source], float(experiment.start), float(level.composite.step))
        if y is None or len(y) < how.degree + 2:
            yield target
            continue
        # the error of a polynomial one place further is the next difference (Newton's forward formula)
        wrong = np.abs(drive.gain * np.diff(y.values, how.degree + 1))
        scale = float(np.abs(drive.gain * y.values + drive.offset).max())
        yield worst_defect(Series(y.t[how.degree + 1 :], wrong, unit, target), source, scale)


def _series_at_steps(series: Series, start: float, step: float) -> Series | None:
    """Return a port at the ends of steps; None if some were not kept."""
    if not len(series.t):
        return None
    count = int((series.t[-1] - start) / step + 1e-6)
    grid: Array = start + step * np.arange(count + 1, dtype=float)
    at, kept = matching_rows(grid, series.t)
    return Series(grid, series.values[at], series.unit, series.name) if kept.all() else None


def gaps_from_text(run: Run) -> tuple[list[InputDefect], list[str]]:
    """Return the defects of inputs that were recorded, by the connections that scenario.toml lists."""
    found, missing = [], []
    for target, source in _written_connections(run):
        gap = None
        if target in run and source in run:
            with suppress(ValueError):  # its units do not fit
                factors = conversion(run[source].unit, run[target].unit)
                gap, _ = measure_defect(run[target], run[source], *factors)
        if gap is None or gap.largest == 0.0:  # it may have been evaluated again after its step
            missing.append(target)
        else:
            found.append(gap)
    return found, missing


def _written_connections(run: Run) -> Iterator[tuple[str, str]]:
    try:
        text = tomllib.loads(run.scenario_text)
    except (HocketError, ValueError):
        return
    yield from _connections_in_table(text, "")


def _connections_in_table(level: Any, inside: str) -> Iterator[tuple[str, str]]:
    """Yield input and output of what is connected, at all levels; not what has factors of its own."""
    listed = level.get("connections", {})
    for target, source in listed.items() if isinstance(listed, dict) else ():
        plain = source if isinstance(source, dict) else {"from": source}
        if isinstance(plain.get("from"), str) and not plain.keys() & {"gain", "offset"}:
            yield f"{inside}{target}", f"{inside}{plain['from']}"
    for name, model in level.get("models", {}).items():
        if isinstance(model, dict) and "connections" in model:
            yield from _connections_in_table(model, f"{inside}{name}.")


FOLLOWS = 0.5
"""Linear models count where they are not further from the run than this part of the error they show."""
ROUNDING = 1e-9
"""Of the largest value: what is closer than this is the same."""
LARGEST = 2**24
"""Numbers in the rows of a run whose linear models are computed."""


def trust_from_defect(run: Run, experiment: Experiment | None, doubts: tuple[str, ...] = ()) -> ErrorEstimate:
    """Return what a run by itself tells of its error; `doubts` are why nothing better could be done."""
    if experiment is None:
        found, missing = gaps_from_text(run)
        ports: list[PortEstimate] = []
        why = ["the models are not available, so that there is no error per port"]
        promised = None
    else:
        found, missing = connection_gaps(run, experiment)
        ports, why = _errors_by_linear_models(run, experiment)
        promised, _ = predicted_order(experiment.composite)
    left_out = [] if experiment is None else list(uncovered_errors(experiment))
    if missing:
        names = list_names(missing, 3)
        left_out.append(f"the defect of {names}: inputs are kept only if --record names them")
    ports.sort(key=lambda each: -each.relative)
    found.sort(key=lambda each: -each.relative)
    return ErrorEstimate(tuple(ports), (*doubts, *why), promised, "defect", tuple(left_out), tuple(found))


def _errors_by_linear_models(run: Run, experiment: Experiment) -> tuple[list[PortEstimate], list[str]]:
    """Return errors by linear models that follow the run, and why there are none.

    The linear models are stepped by the same plan and compared with their exact solution; both differ from
    the run in what is not linear, and that must be small beside the error: it is looked at, port by port.
    """
    balanced = balanced_leaves(experiment.composite)
    if balanced:
        return [], [f"no error per port: bonds of `{balanced[0]}` are balanced, by a law that is not linear"]
    known, leaves = (Ode, Table, Csv, Function), named_leaves(experiment.composite)
    closed = [name for name, model in leaves if not is_linear(model) and not isinstance(model, known)]
    if closed:
        return [], [f"no error per port: `{closed[0]}` is neither a linear model nor an equation"]
    if sum(len(run[port].t) for port in run.ports) > LARGEST:
        return [], ["no error per port: the run has too many rows"]
    try:
        assert experiment.stop is not None
        span = experiment.stop - experiment.start
        made = linearise(experiment.composite, still=True, start=experiment.start).composite
        made = with_sources(made, span, experiment.start)
        predicted = predicted_error(made, span, trajectories=True, measure=False)
    except HocketError as error:
        return [], [f"no error per port: {error.faults[0].what}"]
    found, lost = [], []
    for each in predicted.ports:
        if each.port in run:
            followed = _linear_port_error(run[each.port], each, float(experiment.start))
            found += [followed] if followed else []
            lost += [] if followed else [each.port]
    if lost:
        return [], [f"no error per port: its linear model is too far from `{lost[0]}`"]
    return found, []


def _linear_port_error(run: Series, predicted: PortError, start: float) -> PortEstimate | None:
    """Return the error that the linear models show; None if they are elsewhere than the run."""
    assert predicted.series is not None
    t, values, truth = predicted.series
    at, kept = matching_rows(run.t, t + start)
    here = np.flatnonzero(kept)
    if not len(here):
        return None
    error = (values - truth)[at[here]]
    off = float(np.abs(run.values[here] - values[at[here]]).max())
    scale = float(np.abs(run.values).max(initial=0.0))
    if not off <= max(FOLLOWS * float(np.abs(error).max()), ROUNDING * scale):
        return None
    return PortEstimate(Series(run.t[here], run.values[here], run.unit, run.name), error, None)
