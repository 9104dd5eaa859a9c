"""How far the inputs of a run were from the outputs that drive them, from the rows of the run alone.

In:  a Run, and its Study if that can be had
Out: an InputDefect for each connection, and the inputs of which nothing is known

An input that is evaluated again after its step no longer shows what it was during the step; so it is computed
from the rows of the output, where that can be done, and from its own rows, where it has some.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import numpy as np

from hocket.analysis.consistency import run_defect
from hocket.analysis.hidden import delayed_inputs
from hocket.engine.blueprint import PlanTree
from hocket.errors import HocketError, ScenarioError
from hocket.files.drawing import Series
from hocket.files.estimate import time_tolerance
from hocket.files.run import Run
from hocket.files.study import Experiment
from hocket.files.trust import InputDefect
from hocket.model import Array
from hocket.signals import Hold, Polynomial
from hocket.units import conversion


def connection_gaps(run: Run, study: Experiment) -> tuple[list[InputDefect], list[str]]:
    """Return the worst that is known of each connection, and those of which nothing is."""
    found: dict[str, InputDefect] = {}
    missing: list[str] = []
    for level in study.composite.blueprint.levels():
        for gap in _extrapolation_gaps(run, study, level):
            if isinstance(gap, str):
                missing.append(gap)
            else:
                found[gap.input] = gap
    for gap in _recorded_gaps(run, study):
        known = found.get(gap.input)
        if known is None or known.largest < gap.largest:
            found[gap.input] = gap
    return list(found.values()), [name for name in missing if name not in found]


def _recorded_gaps(run: Run, study: Experiment) -> Iterator[InputDefect]:
    try:
        known = run_defect(run, study.composite).connections
    except ScenarioError:
        return
    for each in known:
        yield InputDefect(
            each.target, each.source, each.unit, each.largest, each.at, each.mean, each.relative
        )


def _extrapolation_gaps(run: Run, study: Experiment, level: PlanTree) -> Iterator[InputDefect | str]:
    """Yield connections that are extrapolated over a step, from the outputs alone; or their names."""
    inside = f"{level.path}." if level.path else ""
    for child, index, drive, delay in delayed_inputs(level):
        target, source = f"{inside}{delay.target}", f"{inside}{delay.source}"
        how, unit = drive.extrapolation or Hold(), level.wiring.models[child].inputs[index].unit
        values = None
        if delay.lag == 1 and isinstance(how, (Hold, Polynomial)) and source in run:
            values = _values_at_steps(run[source], float(study.start), float(level.composite.step))
        if values is None or len(values[0]) < how.degree + 2:
            yield target
            continue
        t, y = values
        # the error of a polynomial one place further is the next difference (Newton's forward formula)
        wrong = np.abs(drive.gain * np.diff(y, how.degree + 1))
        scale = float(np.abs(drive.gain * y + drive.offset).max())
        yield _worst_gap(target, source, unit, t[how.degree + 1 :], wrong, scale)


def _worst_gap(target: str, source: str, unit: str, t: Array, wrong: Array, scale: float) -> InputDefect:
    worst = int(np.argmax(wrong))
    largest = float(wrong[worst])
    relative = largest / scale if scale else float("inf") if largest else 0.0
    return InputDefect(target, source, unit, largest, float(t[worst]), float(wrong.mean()), relative)


def _values_at_steps(series: Series, start: float, step: float) -> tuple[Array, Array] | None:
    """Return times and values at the ends of steps; None if some were not kept."""
    if not len(series.t):
        return None
    count = int((series.t[-1] - start) / step + 1e-6)
    grid: Array = start + step * np.arange(count + 1, dtype=float)
    slack = time_tolerance(grid, series.t)
    at = np.searchsorted(series.t, grid + slack, side="right") - 1  # of rows with one time the last counts
    if (at < 0).any() or (np.abs(series.t[at] - grid) > 2.0 * slack).any():
        return None
    return np.asarray(grid, dtype=float), np.asarray(series.values[at])


def gaps_from_text(run: Run) -> tuple[list[InputDefect], list[str]]:
    """Return the defects of inputs that were recorded, by the connections that scenario.toml lists."""
    found, missing = [], []
    for target, source in _written_connections(run):
        gap = _gap_between(run[target], run[source]) if target in run and source in run else None
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


def _gap_between(u: Series, y: Series) -> InputDefect | None:
    times, here, there = np.intersect1d(u.t[::-1], y.t[::-1], return_indices=True)
    try:
        gain, offset = conversion(y.unit, u.unit)
    except ValueError:
        return None
    seen = gain * y.values[::-1][there] + offset
    wrong = np.abs(u.values[::-1][here] - seen)
    if not len(wrong):
        return None
    return _worst_gap(u.name, y.name, u.unit, times, wrong, float(np.abs(seen).max()))
