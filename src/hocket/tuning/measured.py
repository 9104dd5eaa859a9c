"""Objectives of systems without linear models: what short runs show.

In:  a Composite and how long it runs
Out: how far its outputs are from those of half the steps; the seconds that its run, or a step, takes
"""

from __future__ import annotations

import math
import tempfile
from fractions import Fraction
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from hocket.analysis.variants import scale_steps
from hocket.engine.composite import Composite
from hocket.errors import ScenarioError
from hocket.files.run import Run
from hocket.model import Array, Model
from hocket.running import run

PARTS = (2, 3, 4, 5)
"""Of the steps of a run, in the run that it is compared with."""
SMALL = 1e-3
STEPS = 9
"""Steps of which the time of one is the median."""


def measured_error(composite: Composite, stop: Fraction | None, start: Fraction = Fraction(0)) -> float:
    """Return the largest difference to a run with half the steps, of each port over its largest value.

    That is the smaller one of both runs at the times they share: where one of them blows up, its size is no
    measure. Where simulators have steps of their own that halves do not fit, shorter ones are tried. What
    stays below a thousandth of the largest value of all ports, as what should be zero does, is compared with
    that.
    """
    with tempfile.TemporaryDirectory() as folder:
        coarse = _run(composite, stop, start, Path(folder) / "coarse")
        fine = _finer(composite, stop, start, Path(folder))
        gaps, sizes = [], []
        for port in coarse.ports:
            here, better = coarse[port], fine[port]
            there = np.interp(here.t, better.t, better.values)
            gaps.append(_largest(here.values - there))
            sizes.append(min(_largest(here.values), _largest(there)))
    if any(map(math.isnan, gaps)):
        return math.inf
    least = SMALL * max(sizes, default=0.0)
    return max(
        (_relative_gap(gap, max(size, least)) for gap, size in zip(gaps, sizes, strict=True)), default=0.0
    )


def _largest(values: Array) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _relative_gap(gap: float, size: float) -> float:
    return gap / size if size > 0.0 else math.inf if gap > 0.0 else 0.0


def _finer(composite: Composite, stop: Fraction | None, start: Fraction, folder: Path) -> Run:
    for part in PARTS[:-1]:
        try:
            return _run(scale_steps(composite, Fraction(1, part)), stop, start, folder / f"finer{part}")
        except ScenarioError:
            continue
    return _run(scale_steps(composite, Fraction(1, PARTS[-1])), stop, start, folder / "finest")


def measured_seconds(composite: Composite, stop: Fraction | None, start: Fraction = Fraction(0)) -> float:
    """Return how long the steps of a run take."""
    with tempfile.TemporaryDirectory() as folder:
        timings = _run(composite, stop, start, Path(folder) / "run").info["timings"]
    return float(timings["phases"]["steps"])


def step_seconds(composite: Composite, start: Fraction = Fraction(0)) -> dict[str, float]:
    """Return how long a step of each simulator takes, by itself, with its inputs at their start values."""
    found: dict[str, float] = {}
    for level in composite.blueprint.levels():
        for child, model in enumerate(level.wiring.models):
            if child not in level.inner:
                found[level.name(child)] = _step_seconds(model, float(start), float(level.composite.step))
    return found


def _step_seconds(model: Model, t: float, h: float) -> float:
    u = np.array([[float(port.start or 0.0) for port in model.inputs]])
    simulator, spent = model.open(), []
    try:
        simulator.start(t)
        for number in range(STEPS):
            before = perf_counter()
            simulator.step(t + number * h, h, u)
            spent.append(perf_counter() - before)
            simulator.output(t + (number + 1) * h, u)
    finally:
        simulator.close()
    return median(spent)


def _run(composite: Composite, stop: Fraction | None, start: Fraction, folder: Path) -> Run:
    if stop is None:
        raise ScenarioError("nothing says how long to run", "objectives", "a stop time", "--stop 10")
    return run(composite, start + stop, start=start, folder=folder)
