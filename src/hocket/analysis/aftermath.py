"""How wrong a run was, when nothing can be run again: the defects of its connections, and linear models.

In:  a Run, and its Study if that can be had
Out: an ErrorEstimate by the method `defect`: gaps per connection; errors per port where linear models follow the run

A defect is how far an input was from the output that drives it, at the end of a step: what the coupling does
wrong in one step, in the unit of the input. What becomes of it later, a stable system forgets and another
does not: it is not the error of the run.
"""

from __future__ import annotations

import numpy as np

from hocket.analysis.doubts import uncovered_errors
from hocket.analysis.energy import balanced_leaves
from hocket.analysis.gaps import connection_gaps, gaps_from_text
from hocket.analysis.linear import is_linear
from hocket.analysis.models import linearise
from hocket.analysis.order import predicted_order
from hocket.analysis.played import with_sources
from hocket.analysis.prediction import PortError, predicted_error
from hocket.errors import HocketError
from hocket.files.drawing import Series
from hocket.files.estimate import time_tolerance
from hocket.files.run import Run
from hocket.files.study import Experiment
from hocket.files.trust import ErrorEstimate, PortEstimate
from hocket.simulators.ode import Ode
from hocket.simulators.sources import Csv, Function, Table

FOLLOWS = 0.5
"""Linear models count where they are not further from the run than this part of the error they show."""
ROUNDING = 1e-9
"""Of the largest value: what is closer than this is the same."""
LARGEST = 2**24
"""Numbers in the rows of a run whose linear models are computed."""


def trust_from_defect(run: Run, study: Experiment | None, doubts: tuple[str, ...] = ()) -> ErrorEstimate:
    """Return what a run by itself tells of its error; `doubts` are why nothing better could be done."""
    if study is None:
        found, missing = gaps_from_text(run)
        ports: list[PortEstimate] = []
        why = ["the models are not at hand, so that no error per port can be told"]
        promised = None
    else:
        found, missing = connection_gaps(run, study)
        ports, why = _errors_by_linear_models(run, study)
        promised, _ = predicted_order(study.composite)
    left_out = [] if study is None else list(uncovered_errors(study))
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        left_out.append(f"the defect of {listed}{more}: inputs are kept only if --record names them")
    ports.sort(key=lambda each: -each.relative)
    found.sort(key=lambda each: -each.relative)
    return ErrorEstimate(tuple(ports), (*doubts, *why), promised, "defect", tuple(left_out), tuple(found))


def _errors_by_linear_models(run: Run, study: Experiment) -> tuple[list[PortEstimate], list[str]]:
    """Return errors by linear models that follow the run, and why there are none.

    The linear models are stepped by the same plan and compared with their exact solution; both differ from
    the run in what is not linear, and that must be small beside the error: it is looked at, port by port.
    """
    balanced = balanced_leaves(study.composite)
    if balanced:
        return [], [f"no error per port: bonds of `{balanced[0]}` are balanced, by a law that is not linear"]
    leaves = study.composite.blueprint.leaves.wiring
    named = zip(leaves.names, leaves.models, strict=True)
    known = (Ode, Table, Csv, Function)
    closed = [name for name, model in named if not is_linear(model) and not isinstance(model, known)]
    if closed:
        return [], [f"no error per port: `{closed[0]}` is no linear model and no equation"]
    if sum(len(run[port].t) for port in run.ports) > LARGEST:
        return [], ["no error per port: the run has too many rows"]
    try:
        assert study.stop is not None
        span = study.stop - study.start
        made = linearise(study.composite, still=True, start=study.start).composite
        made = with_sources(made, span, study.start)
        predicted = predicted_error(made, span, trajectories=True, measure=False)
    except HocketError as error:
        return [], [f"no error per port: {error.faults[0].what}"]
    found, lost = [], []
    for each in predicted.ports:
        if each.port in run:
            followed = _linear_port_error(run[each.port], each, float(study.start))
            found += [followed] if followed else []
            lost += [] if followed else [each.port]
    if lost:
        return [], [f"no error per port: its linear model is too far from `{lost[0]}`"]
    return found, []


def _linear_port_error(run: Series, predicted: PortError, start: float) -> PortEstimate | None:
    """Return the error that the linear models show; None if they are elsewhere than the run."""
    assert predicted.series is not None
    t, values, truth = predicted.series
    if not len(t):
        return None
    slack = time_tolerance(run.t, t)
    at = np.clip(np.searchsorted(t + start, run.t - slack), 0, len(t) - 1)
    here = np.flatnonzero(np.abs(t[at] + start - run.t) <= 2.0 * slack)
    if not len(here):
        return None
    error = (values - truth)[at[here]]
    off = float(np.abs(run.values[here] - values[at[here]]).max())
    scale = float(np.abs(run.values).max(initial=0.0))
    if not off <= max(FOLLOWS * float(np.abs(error).max()), ROUNDING * scale):
        return None
    return PortEstimate(Series(run.t[here], run.values[here], run.unit, run.name), error, None)
