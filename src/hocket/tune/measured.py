"""Objectives of systems without linear models: what short runs show.

In:  a Composite and how long it runs
Out: how far its outputs are from those of half the steps; the seconds that its run takes
"""

from __future__ import annotations

import math
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

from hocket.analysis.variants import scaled
from hocket.engine.composite import Composite
from hocket.errors import ScenarioError
from hocket.files.run import Run
from hocket.running import run


def measured_error(composite: Composite, stop: Fraction | None, start: Fraction = Fraction(0)) -> float:
    """Return the largest difference to a run with half the steps, of each port over its largest value."""
    with tempfile.TemporaryDirectory() as folder:
        coarse = _run(composite, stop, start, Path(folder) / "coarse")
        fine = _run(scaled(composite, Fraction(1, 2)), stop, start, Path(folder) / "fine")
        worst = 0.0
        for port in coarse.ports:
            t, y = coarse[port]
            at, better = fine[port]
            size = float(np.max(np.abs(better), initial=0.0))
            gap = float(np.max(np.abs(y - np.interp(t, at, better)), initial=0.0))
            worst = max(worst, gap / size if size > 0.0 else (math.inf if gap > 0.0 else 0.0))
    return worst


def measured_seconds(composite: Composite, stop: Fraction | None, start: Fraction = Fraction(0)) -> float:
    """Return how long the steps of a run take."""
    with tempfile.TemporaryDirectory() as folder:
        timings = _run(composite, stop, start, Path(folder) / "run").info["timings"]
    return float(timings["phases"]["steps"])


def _run(composite: Composite, stop: Fraction | None, start: Fraction, folder: Path) -> Run:
    if stop is None:
        raise ScenarioError("nothing says how long to run", "objectives", "a stop time", "--stop 10")
    return run(composite, stop, start=start, folder=folder)
