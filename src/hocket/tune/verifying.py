"""Prediction and reality of one coupling: it is run, and compared with the exact solution.

In:  a Composite of linear models and sources, how long it runs
Out: the error that was predicted, and that of the run, in the same norm
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hocket.analysis.exact import Exact, exact
from hocket.engine.composite import Composite
from hocket.files.drawing import Series
from hocket.running import run
from hocket.tune.objectives import Case


@dataclass(frozen=True)
class Verified:
    """The 2-norm of the largest errors of all outputs, and how many steps the run made."""

    predicted: float
    found: float
    ports: int
    steps: float
    exchanges: float

    def row(self) -> dict[str, object]:
        """Return it as a row of a table."""
        return {
            "predicted error": self.predicted,
            "error of the run": self.found,
            "outputs": self.ports,
            "simulator steps [1/s]": self.steps,
            "exchanges [1/s]": self.exchanges,
        }


def verified(composite: Composite, stop: Fraction, start: Fraction = Fraction(0)) -> Verified:
    """Return what was predicted for a coupling, and what its run shows."""
    case = Case(composite, stop, start)
    prediction = case.prediction
    made = run(composite, start + stop, start=start, record=["*"])
    solution = exact(case.linear)
    names = [port.port for port in prediction.ports]
    found = sum(_largest(made[name], solution, name, float(start)) ** 2 for name in names)
    predicted = float(np.sqrt(sum(port.largest**2 for port in prediction.ports)))
    return Verified(predicted, float(np.sqrt(found)), len(names), case.work.steps, case.work.exchanges)


def _largest(series: Series, solution: Exact, name: str, start: float) -> float:
    there = solution.outputs(series.t - start)[:, solution.ports.index(name)]
    return float(np.max(np.abs(series.values - there)))
