"""Sound, unsound or not judged along the trajectory of the run: what pilot runs say, and what is in doubt.

In:  an Experiment that says when to stop, and how its simulators got their linear models
Out: a TrajectoryVerdict, the first line of a check, and a PilotPrediction: the predicted errors of the run
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from hocket.analysis.defect_estimate import uncovered_errors
from hocket.analysis.error_prediction import (
    ErrorOrder,
    PortError,
    PredictedError,
    predicted_order,
)
from hocket.analysis.linearisation import LinearisedLeaf, LinearModels
from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.analysis.pilot import Pilots, make_pilots
from hocket.analysis.pilot_error import SMALL, PilotError, PortPilotError, estimate_pilot_error
from hocket.errors import list_names
from hocket.files.error_estimate import AGREED, WRONG, format_time
from hocket.files.plotting import Series, draw_series
from hocket.model.experiment import Experiment
from hocket.model.units import Share
from hocket.planning.planner import plan_tree
from hocket.simulators.sources import Csv, Function, Table

MAX_ERROR = WRONG
"""Of the peak: a predicted error above this is unsound, unless another limit is given."""
HOLDS = 1.1
"""The factor within which the error of linear models must agree with that of the pilot runs to count."""
LINEAR = 1e-4
"""The fit residual up to which a linear model may stand for its simulator along all of a run."""


class Judgement(StrEnum):
    """What is said of a coupling."""

    SOUND = "sound"
    UNSOUND = "unsound"
    NOT_JUDGED = "not judged"

    @property
    def outcome(self) -> Outcome:
        """What it means for the whole."""
        return {"sound": Outcome.GOOD, "unsound": Outcome.BAD}.get(self.value, Outcome.NOT_JUDGED)


@dataclass(frozen=True, eq=False)
class TrajectoryVerdict(Measure):
    """Whether the coupling is sound along the trajectory of the run, and why that may be wrong."""

    judgement: Judgement
    reason: str
    """Why it is unsound, or not judged; of a sound one the error."""
    doubts: tuple[str, ...]
    """What is not known, the most important first."""
    pilots: Pilots
    error: PilotError
    limit: float
    leads: bool = True
    """Whether it is the answer; else linear models, which agree with it, are."""

    title = "pilot runs"

    @property
    def outcome(self) -> Outcome:
        return self.judgement.outcome if self.leads else Outcome.GOOD

    @property
    def span(self) -> str:
        """Over what it holds."""
        return f"along this trajectory, to {format_time(self.pilots.until)} s"

    def verdict(self) -> list[str]:
        """Return one line: the judgement, over what it holds, and what is in doubt."""
        if not self.leads:
            return [f"pilot runs agree with the linear models {self.span}"]
        doubt = f"; in doubt: {'; '.join(self.doubts)}" if self.doubts else ""
        if self.judgement is Judgement.NOT_JUDGED:
            return [f"not judged: {self.reason}{doubt}"]
        return [f"{self.judgement} {self.span}: {self.reason}{doubt}"]

    def rows(self) -> Rows:
        """Return a row for each run."""
        worst = self.error.worst
        found: Rows = []
        for number, run in enumerate(self.pilots.runs):
            last = number == len(self.pilots.runs) - 1
            gap = None if worst is None or last else worst.differences[number]
            found.append(
                {
                    "steps": "as given" if run.part == 1 else f"1/{run.part}",
                    "reached [s]": self.pilots.start + float(run.steps * self.pilots.step),
                    "difference to the next": gap,
                    "of peak": None if gap is None or worst is None or not worst.scale else Share(gap / worst.scale),
                    "ended by": run.failure or run.ended_by,
                }
            )
        return found

    def notes(self) -> list[str]:
        worst = self.error.worst
        where = [] if worst is None else [f"differences are those of `{worst.port}`, where the error is largest"]
        late = list_names([each.port for each in self.error.jumps], 3)
        return where + ([f"{late}: jumps that come a little early or late count by their times"] if late else [])

    def facts(self) -> dict[str, Any]:
        return {
            "along the trajectory": {
                "judgement": str(self.judgement),
                "until": self.pilots.until,
                "whole run": self.pilots.is_whole,
                "reason": self.reason,
                "doubts": list(self.doubts),
                "predicted error": self.error.relative,
                "may be off by": self.error.doubt,
                "limit": self.limit,
            },
            self.title: self.rows(),
        }


@dataclass(frozen=True)
class PilotPrediction(PredictedError):
    """The predicted error of a run, port by port, from pilot runs with shorter steps."""

    limit: float = MAX_ERROR

    @property
    def outcome(self) -> Outcome:
        """The judgement of the trajectory decides."""
        return Outcome.GOOD

    def verdict(self) -> list[str]:
        worst, head = self.worst, "predicted global error"
        if not any(each.scale or each.largest for each in self.ports):
            return [f"{head}: none, nothing moves"]
        if worst.largest == 0.0:
            return [f"{head}: none was seen, shorter steps change nothing"]
        return super().verdict()

    def rows(self) -> Rows:
        """Return a row for each port; what a single step adds is not known."""
        return [{key: value for key, value in row.items() if key != "local error"} for row in super().rows()]

    def draw(self) -> Any:
        kept = [(each, each.series) for each in self.ports[:8] if each.series is not None]
        lines = [Series(t, values - limit, each.unit, each.port) for each, (t, values, limit) in kept]
        return draw_series(lines, "predicted error")


def needs_pilot(experiment: Experiment, leaves: Sequence[LinearisedLeaf]) -> bool:
    """Return whether the linear models of some simulators may be wrong later in the run."""
    if experiment.stop is None:
        return False
    wiring = plan_tree(experiment.composite).leaves.wiring
    sources = {
        name
        for name, model in zip(wiring.names, wiring.models, strict=True)
        if isinstance(model, (Function, Table, Csv))
    }
    return any(leaf.how != "exact" and leaf.path not in sources for leaf in leaves)


def judge_trajectory(
    experiment: Experiment, models: LinearModels, seconds: float, limit: float
) -> tuple[TrajectoryVerdict, PilotPrediction | None]:
    """Return what pilot runs say; raises HocketError where they do not start."""
    promised, why = predicted_order(experiment.composite)
    pilots = make_pilots(experiment, seconds, lambda each: estimate_pilot_error(each, promised).sure)
    error = estimate_pilot_error(pilots, promised)
    doubts = tuple(_doubts(experiment, pilots, error, models))
    judgement, reason = _judge(pilots, error, limit)
    verdict = TrajectoryVerdict(judgement, reason, doubts, pilots, error, limit)
    ports = tuple(_port_error(each) for each in error.ports)
    if not ports:
        return verdict, None
    order = _order(error, promised, why)
    until, step = float(pilots.steps * pilots.step), float(pilots.step)
    return verdict, PilotPrediction(ports, until, step, order, limit=limit)


def _port_error(each: PortPilotError) -> PortError:
    series = each.t, each.values, each.values - each.error
    return PortError(each.port, each.unit, math.nan, each.largest, each.at, each.scale, series, each.scale)


def _order(error: PilotError, promised: int | None, why: str) -> ErrorOrder:
    """Return the order that the pilot runs show in the worst port."""
    seen = None if error.worst is None else error.worst.order
    if seen is None:
        return ErrorOrder(promised, why, None, "no observed order")
    if promised is not None and abs(seen - promised) <= AGREED:
        return ErrorOrder(promised, why, seen, f"observed order {seen:.2f} matches the expected order {promised}")
    return ErrorOrder(promised, why, seen, f"observed order {seen:.2f}, expected order {promised}")


def _judge(pilots: Pilots, error: PilotError, limit: float) -> tuple[Judgement, str]:
    """Return the judgement, and its reason."""
    first, *others = pilots.runs
    if first.failure:
        beyond = [run for run in others if not run.failure or run.steps > 1.05 * first.steps + 1]
        how = f"; with 1/{beyond[0].part} of the steps it does not" if beyond else "; with shorter steps as well"
        return Judgement.UNSOUND, f"the run fails, {first.failure}{how}"
    worst = error.worst
    if worst is None:
        return Judgement.NOT_JUDGED, "the pilot runs have no rows in common"
    found, off = error.relative, error.doubt
    said = _describe_error(worst)
    if found - off > limit or (found > limit and (error.settled or not error.converges)):
        return Judgement.UNSOUND, f"{said}, above the limit of {Share(limit):.3g}"
    if found + off < limit or (found <= limit and error.settled):
        return Judgement.SOUND, said
    return Judgement.NOT_JUDGED, f"{said}, may be off by {Share(off):.2g}; the limit is {Share(limit):.3g}"


def _describe_error(worst: PortPilotError) -> str:
    if worst.largest == 0.0:
        return "shorter steps change nothing"
    if worst.relative > 1e3:
        return "the predicted global error grows without bound"
    return f"predicted global error {Share(worst.relative):.2g} of peak"


def _doubts(
    experiment: Experiment, pilots: Pilots, error: PilotError, models: LinearModels
) -> Iterator[str]:
    """Yield what is not known, the most important first."""
    if pilots.runs[0].failure:
        return
    if not pilots.is_whole:
        assert experiment.stop is not None
        whole = format_time(float(experiment.stop))
        yield f"the pilot run ended early, at {format_time(pilots.until)} s of {whole} s"
    if not error.converges:
        yield "the runs with shorter steps do not converge"
    elif not error.settled:
        yield f"the error is known to within {Share(error.doubt):.2g} of peak only"
    switching = [each.port for each in error.ports if each.switches or each.jumps]
    if switching:
        yield f"{list_names(switching, 2)} jumps: a switch was met"
    yield from (f"{each} is not included" for each in _unseen(experiment))


def _unseen(experiment: Experiment) -> Iterator[str]:
    for text in uncovered_errors(experiment):
        yield text.partition(":")[0]


def linear_models_hold(prediction: PredictedError | None, error: PilotError, models: LinearModels) -> bool:
    """Return whether linear models tell the error of each port as the pilot runs do: then their digits count."""
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
        if abs(one - two) > (HOLDS - 1.0) * max(one, two) + 2.0 * off:
            return False
    return True


class AtStart(Measure):
    """A measure that was taken of the linear models at the start: it is said so, and decides nothing."""

    def __init__(self, inner: Measure):
        self.inner = inner

    @property
    def title(self) -> str:
        """As that of the measure."""
        return self.inner.title

    def verdict(self) -> list[str]:
        """Return the lines, with where they hold."""
        return [f"at the start: {line}" for line in self.inner.verdict()]

    def rows(self) -> Rows:
        return self.inner.rows()

    def notes(self) -> list[str]:
        return self.inner.notes()

    def facts(self) -> dict[str, Any]:
        return self.inner.facts()

    def draw(self) -> Any:
        return self.inner.draw()


def arrange_measures(
    measures: Sequence[Measure],
    verdict: TrajectoryVerdict,
    prediction: PilotPrediction | None,
    whole: tuple[type[Measure], ...],
) -> list[Measure]:
    """Return the measures with those of the trajectory first; predictions of one point give way to them.

    `whole` are the kinds that do not rest on linear models.
    """
    if not verdict.leads:
        return [*measures, verdict]
    found: list[Measure] = [verdict]
    found += [] if prediction is None else [prediction]
    for each in measures:
        if isinstance(each, whole):
            found.append(each)
        elif not isinstance(each, PredictedError):
            found.append(AtStart(each))
    return found


def follow(verdict: TrajectoryVerdict) -> TrajectoryVerdict:
    """Return the verdict as a confirmation of linear models."""
    return replace(verdict, leads=False)
