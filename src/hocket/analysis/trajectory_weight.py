"""What pilot runs weigh beside the linear reading: they lead, confirm it, or hold for this run only.

In:  what was found along a trajectory, and the measures of linear models
Out: the measures in the order in which they are told, each with where it holds
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hocket.analysis.announced_events import ReactorStandIn
from hocket.analysis.error_prediction import PredictedError
from hocket.analysis.linear_models import named_leaves
from hocket.analysis.linearisation import LinearModels
from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.analysis.pilot import PilotRun, run_pilot
from hocket.analysis.pilot_error import SMALL, PilotError
from hocket.analysis.trajectory import ErrorLimit, Followed, Judgement
from hocket.errors import HocketError, list_names
from hocket.model.experiment import Experiment

HOLDS = 1.1
"""The factor within which the error of linear models must agree with that of the pilot runs to count."""
REPEATED = 0.3
"""Seconds that a run of the linear models may take, or as long as that of the plan."""
SAME = 1e-6
"""Of the peak: how far a run of linear models may be from that of the plan to count as the same."""
CARRIES = 0.1
"""Of the largest error: ports with more than this must show an order."""
LINEAR = 1e-4
"""The fit residual up to which a linear model may stand for its simulator along all of a run."""


def linear_models_hold(prediction: PredictedError | None, error: PilotError, models: LinearModels) -> bool:
    """Return whether linear models tell the error of each port as pilot runs do: then their digits count."""
    if prediction is None or any(leaf.fit > LINEAR or leaf.refused for leaf in models.leaves):
        return False
    known = {each.port: each for each in prediction.ports}
    for each in error.ports:
        other = known.get(each.port)
        if other is None:
            continue
        one, two, off = each.relative, other.relative, each.relative_doubt
        if max(one, two) <= SMALL * 10:
            continue
        if not (math.isfinite(one) and math.isfinite(two)):
            if math.isfinite(one) != math.isfinite(two) and min(one, two) < 1e3:
                return False
            continue
        near = (HOLDS - 1.0) * max(one, two)
        if off > max(one, two) or abs(one - two) > near + 2.0 * off:  # what is not known agrees with all
            return False
    return True


@dataclass(frozen=True, eq=False)
class AtStart(Measure):
    """A measure that was taken of the linear models at the start: it is said so, and decides nothing."""

    inner: Measure
    silent: bool = False
    """Whether it has no line in the verdict: what it compares with is not so along the run."""

    @property
    def title(self) -> str:
        """As that of the measure."""
        return self.inner.title

    def verdict(self) -> list[str]:
        """Return the lines, with where they hold."""
        return [] if self.silent else [f"at the start: {line}" for line in self.inner.verdict()]

    def rows(self) -> Rows:
        return self.inner.rows()

    def notes(self) -> list[str]:
        return self.inner.notes()

    def facts(self) -> dict[str, Any]:
        return self.inner.facts()

    def draw(self) -> Any:
        return self.inner.draw()


@dataclass(frozen=True, eq=False)
class InThisRun(Measure):
    """A measure of pilot runs beside an answer about all that may happen: it holds for this run only."""

    inner: Measure

    @property
    def title(self) -> str:
        """As that of the measure."""
        return self.inner.title

    def verdict(self) -> list[str]:
        """Return the lines, with where they hold."""
        return [f"this run only: {line}" for line in self.inner.verdict()]

    def rows(self) -> Rows:
        return self.inner.rows()

    def notes(self) -> list[str]:
        return self.inner.notes()

    def facts(self) -> dict[str, Any]:
        return self.inner.facts()

    def draw(self) -> Any:
        return self.inner.draw()


@dataclass(frozen=True)
class OnePoint(Measure):
    """The answer of linear models alone where not all is linear: what they say holds where they were made."""

    simulators: tuple[str, ...]
    why: str = ""
    """Why pilot runs could not be made, where they were asked for."""
    title = "at the initial state only"

    @property
    def outcome(self) -> Outcome:
        """Not judged where pilot runs were asked for and are not possible: one point is not the run."""
        return Outcome.NOT_JUDGED if self.why else Outcome.GOOD

    def verdict(self) -> list[str]:
        named = list_names(list(self.simulators), 3)
        made = f"no pilot run was made{self.why and f' ({self.why})'}"
        return [f"{self.title}; in doubt: {named} may be different later in the run, and {made}"]

    def facts(self) -> dict[str, Any]:
        return {self.title: self.simulators}


def arrange_measures(
    measures: Sequence[Measure],
    followed: Followed,
    whole: tuple[type[Measure], ...],
    silent: tuple[type[Measure], ...],
) -> list[Measure]:
    """Return the measures with those of the trajectory first; predictions of one point give way to them.

    `whole` are the kinds that do not rest on linear models, `silent` those that are tables only.
    """
    verdict = followed.verdict
    others = (followed.prediction, followed.stability)
    if verdict.beside:
        *before, reasons = measures  # why something was not taken comes last
        return [*before, verdict, *(InThisRun(each) for each in others if each is not None), reasons]
    if not verdict.leads:
        return [*measures, verdict]
    found: list[Measure] = [verdict, *(each for each in others if each is not None)]
    for each in measures:
        if isinstance(each, whole):
            found.append(each)
        elif not isinstance(each, (PredictedError, ErrorLimit)):
            found.append(AtStart(each, isinstance(each, silent)))
    return found


def stand_beside(followed: Followed, doubts: tuple[str, ...]) -> Followed:
    """Return what was found as a statement on this run, beside an answer that leads."""
    return replace(followed, verdict=replace(followed.verdict, leads=False, beside=True, doubts=doubts))


def add_doubt(followed: Followed, doubt: str) -> Followed:
    """Return what was found, with one more doubt, the first."""
    return replace(followed, verdict=replace(followed.verdict, doubts=(doubt, *followed.verdict.doubts)))


def pilots_suffice(followed: Followed, stable_modes: bool) -> bool:
    """Return whether pilot runs alone may call this run of a switched system sound, with a doubt.

    They reach its end and converge, and either all modes are stable and no switch is met, or each port that
    carries the error shows an order: switches that runs meet in another sequence leave none. Three runs show
    an order, the third one with shorter steps or, where these cost too much, with longer ones.
    """
    verdict, error = followed.verdict, followed.verdict.error
    third = error.refinements > 1 or verdict.pilots.coarser is not None
    known = error.settled and error.converges and third
    if verdict.judgement is not Judgement.SOUND or not (known and verdict.pilots.is_whole):
        return False
    read = followed.stability
    smooth = read is not None and not read.reading.switches and not error.jumps and not error.switching
    if smooth and stable_modes and error.refinements > 1:
        return True
    chosen = [each for each in error.flowing if each.relative > max(SMALL, CARRIES * error.relative)]
    return not error.switching and all(each.order is not None for each in chosen)


def repeats_run(linear: Experiment, first: PilotRun) -> bool:
    """Return whether a linear composite, run as the plan is, gives the rows of the first pilot run."""
    if first.failure or first.ended_by:
        return False
    try:
        other = run_pilot(linear, Fraction(1), first.steps, max(REPEATED, first.seconds))
    except HocketError:
        return False
    if other.failure or other.steps < first.steps:
        return False
    left_out = {
        f"{path}.{name}"
        for path, model in named_leaves(linear.composite)
        if isinstance(model, ReactorStandIn)
        for name in model.constant_outputs
    }
    for port, (t, values) in first.ports.items():
        if port in left_out:
            continue
        if port not in other.ports or len(other.ports[port][0]) != len(t):
            return False
        peak = float(np.abs(values).max(initial=0.0))
        times, found = other.ports[port]
        if not (np.array_equal(times, t) and bool((np.abs(found - values) <= SAME * peak).all())):
            return False
    return True


def confirm(followed: Followed) -> Followed:
    """Return what was found as a confirmation of linear models, which lead."""
    return replace(followed, verdict=replace(followed.verdict, leads=False))
