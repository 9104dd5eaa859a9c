"""Predicted and estimated error of a run, side by side: what was said before it, and what is found after.

In:  a Check of what was run, and the ErrorEstimate of its run
Out: the estimate with the prediction beside it; how far they are apart, by port
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hocket.analysis.coupling_check import Check, check
from hocket.errors import HocketError
from hocket.files.error_estimate import ErrorEstimate
from hocket.model.experiment import Experiment

APART = 2.0
"""By this factor predicted and estimated error may differ."""
WEIGHS = 0.1
"""Ports whose error is below this part of the worst one's are not compared."""
SMALL = 1e-6
"""Of the peak: errors below this are not compared."""


@dataclass(frozen=True)
class Disagreement:
    """One port: its predicted and its estimated error, parts of the peak."""

    port: str
    predicted: float
    estimated: float

    @property
    def factor(self) -> float:
        """The larger over the smaller."""
        low, high = sorted((self.predicted, self.estimated))
        return high / low if low > 0.0 else math.inf


def predicted_errors(found: Check) -> tuple[tuple[str, float], ...]:
    """Return what a check predicts for each port, a part of its peak: by pilot runs where they lead."""
    if found.trajectory is not None and found.trajectory.leads:
        if not found.trajectory.pilots.is_whole:
            return ()
        return tuple((each.port, float(each.relative)) for each in found.trajectory.error.flowing)
    if found.prediction is None:
        return ()
    return tuple((each.port, float(each.relative)) for each in found.prediction.ports)


def add_prediction(estimate: ErrorEstimate, experiment: Experiment) -> ErrorEstimate:
    """Return the estimate with what `hocket check` predicts beside it, where it predicts anything."""
    if estimate.method != "Richardson" or not estimate.ports:
        return estimate
    try:
        found = check(experiment, advise=False, robust=False)
    except HocketError:
        return estimate
    return replace(estimate, prediction=predicted_errors(found) or estimate.prediction)


def compare_errors(estimate: ErrorEstimate) -> tuple[Disagreement, ...]:
    """Return the ports that matter with both errors, those that are furthest apart first."""
    said = dict(estimate.prediction) if estimate.method == "Richardson" else {}
    both = [
        Disagreement(each.port, said[each.port], each.relative)
        for each in estimate.ports
        if each.port in said
    ]
    finite = [value for each in both for value in (each.predicted, each.estimated) if math.isfinite(value)]
    least = max(SMALL, WEIGHS * max(finite, default=0.0))
    counted = [each for each in both if max(each.predicted, each.estimated) >= least]
    return tuple(sorted(counted, key=lambda each: -each.factor))
