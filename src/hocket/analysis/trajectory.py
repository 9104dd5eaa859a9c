"""Sound, unsound or not judged along the trajectory of the run: what pilot runs say, and what is in doubt.

In:  an Experiment that says when to stop, and how its simulators got their linear models
Out: a TrajectoryVerdict, the first line of a check; predicted errors, and stability along the trajectory
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np

from hocket.analysis.defect_estimate import uncovered_errors
from hocket.analysis.error_prediction import (
    ErrorOrder,
    PortError,
    PredictedError,
    predicted_order,
)
from hocket.analysis.linearisation import LinearisedLeaf
from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.analysis.pilot import FINEST, PilotRun, Pilots, Stopwatch, make_pilots, run_pilot
from hocket.analysis.pilot_error import PilotError, PortPilotError, estimate_pilot_error
from hocket.analysis.scout_runs import ScoutedError, scout_ahead
from hocket.analysis.stability import looping_leaves
from hocket.analysis.variational import (
    StateTrace,
    VariationalReading,
    read_trajectory,
    trajectory_reader,
)
from hocket.errors import HocketError, list_names
from hocket.files.error_estimate import AGREED, WRONG, format_time
from hocket.files.plotting import Series, draw_series
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.units import Share
from hocket.planning.planner import plan_tree
from hocket.simulators.sources import Csv, Function, Table

MAX_ERROR = WRONG
"""Of the peak: a predicted error above this is unsound, unless another limit is given."""
GROWS = 1e3
"""How much more perturbations may grow over the run than in the undivided system."""
PARTS, RISE = 10, 1.2
"""Parts of a run, and the factor by which the peak in each of the last six is larger: more than a ramp's."""
ENDED = "the pilot run ended early"
READING = 0.12
"""Seconds for operating points: after these no more are added."""
MOST_SIMULATORS, MOST_NUMBERS = 20, 80
"""Simulators, and numbers of z, up to which the plan is read along the trajectory."""


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
    beside: bool = False
    """It does not lead, and says what happens in this run only: something else says what may happen."""

    whole_part: int = 0
    """Of a run that fails: by what its steps were divided in the first whole run that is sound."""

    title = "pilot runs"

    @property
    def outcome(self) -> Outcome:
        return self.judgement.outcome if self.leads or self.beside else Outcome.GOOD

    @property
    def span(self) -> str:
        """Over what it holds."""
        return f"along this trajectory, to {format_time(self.pilots.until)} s"

    def verdict(self) -> list[str]:
        """Return one line: the judgement, over what it holds, and what is in doubt."""
        doubt = f"; in doubt: {'; '.join(self.doubts)}" if self.doubts else ""
        if self.beside:
            return [f"this run only, to {format_time(self.pilots.until)} s: {self.reason}{doubt}"]
        if not self.leads:
            return [f"pilot runs agree with the linear models {self.span}"]
        if self.judgement is Judgement.NOT_JUDGED:
            return [f"not judged: {self.reason}{doubt}"]
        sound, more = self.largest_sound_part, []
        if self.judgement is Judgement.UNSOUND and sound:
            length = f"{float(self.pilots.step / sound):.4g} s"
            more = [f"shorter steps: with 1/{sound} of the steps, {length}, the error is below the limit"]
        return [f"{self.judgement} {self.span}: {self.reason}{doubt}", *more]

    @property
    def largest_sound_part(self) -> int:
        """What the steps must be divided by at least, of what was tried, to be sound; 0: not known."""
        if self.pilots.runs[0].failure:
            return self.whole_part  # the others were compared up to there only
        for number, run in enumerate(self.pilots.runs[:-1]):
            bounds = [sum(port.differences[number:]) + port.differences[-1] for port in self.error.ports]
            ports = zip(bounds, self.error.ports, strict=True)
            if number and not run.failure and all(size <= self.limit * port.scale for size, port in ports):
                return int(run.part)
        return 0

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
                    "of peak": None
                    if gap is None or worst is None or not worst.scale
                    else Share(gap / worst.scale),
                    "ended by": run.failure or run.ended_by,
                }
            )
        return found

    def notes(self) -> list[str]:
        worst = self.error.worst
        where = (
            [] if worst is None else [f"differences are those of `{worst.port}`, where the error is largest"]
        )
        late = list_names([each.port for each in self.error.jumps], 3)
        return where + (
            [f"{late}: jumps that come a little early or late count by their times"] if late else []
        )

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


@dataclass(frozen=True, eq=False)
class TrajectoryStability(Measure):
    """How far perturbations grow along the trajectory, in the coupling and in the undivided system."""

    reading: VariationalReading
    title = "stability along the trajectory"

    @property
    def grows(self) -> bool:
        """Whether the coupling lets perturbations grow that the undivided system does not."""
        return not self.reading.switches and self.reading.added > GROWS

    def verdict(self) -> list[str]:
        """Return the growth of perturbations, and the range of the spectral radius."""
        found = self.reading
        low, high = float(found.radii.min()), float(found.radii.max())
        grown = f"{found.growth:.2g} at most, {found.final_growth:.2g} over all of it"
        other = f"{found.exact_growth:.2g} and {found.final_exact_growth:.2g}"
        radii = f"spectral radius {low:.4g} to {high:.4g}"
        return [f"perturbations grow by {grown} (exact system: {other}); {radii}"]

    def rows(self) -> Rows:
        """Return a row for each operating point."""
        found = self.reading
        return [
            {"from [s]": float(t), "spectral radius": float(rho), "exact system": float(other)}
            for t, rho, other in zip(found.times, found.radii, found.exact_radii, strict=True)
        ]

    def notes(self) -> list[str]:
        """Return what the radii are, and where slopes jump."""
        said = ["the spectral radius of each operating point; the growth is that of their product"]
        return said + [
            f"the slopes of `{name}` jump after {format_time(t)} s" for name, t in self.reading.switches
        ]

    def facts(self) -> dict[str, Any]:
        found = self.reading
        return {
            self.title: {
                "growth": found.growth,
                "growth of the exact system": found.exact_growth,
                "growth over the run": found.final_growth,
                "growth of the exact system over the run": found.final_exact_growth,
                "switches": [{"simulator": name, "at": t} for name, t in found.switches],
                "spectral radii": self.rows(),
            }
        }

    def draw(self) -> Any:
        found = self.reading
        lines = [
            Series(found.times, found.radii, "", "spectral radius"),
            Series(found.times, found.exact_radii, "", "exact system"),
        ]
        return draw_series(lines, self.title)


@dataclass(frozen=True)
class PilotPredictedError(PredictedError):
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
    """Return whether something is coupled, and the linear models of it may be wrong later in the run."""
    wiring = plan_tree(experiment.composite).leaves.wiring
    coupled = any(drive is not None and drive.child >= 0 for drives in wiring.drives for drive in drives)
    if experiment.stop is None or not coupled:
        return False
    sources = {
        name
        for name, model in zip(wiring.names, wiring.models, strict=True)
        if isinstance(model, (Function, Table, Csv))
    }
    return any(leaf.how != "exact" and leaf.path not in sources for leaf in leaves)


@dataclass(frozen=True, eq=False)
class Followed:
    """What was found along a trajectory."""

    verdict: TrajectoryVerdict
    prediction: PilotPredictedError | None
    stability: TrajectoryStability | None


def judge_trajectory(
    experiment: Experiment,
    linear: Composite | None,
    seconds: float,
    limit: float,
    tell: Callable[[str], None],
) -> Followed:
    """Return what pilot runs say; raises HocketError where they do not start.

    `linear` is the composite with linear models at the start, where all have one; `tell` is called with what
    is run.
    """
    composite = experiment.composite
    promised, why = predicted_order(composite)
    tell("pilot run")
    trace = StateTrace(composite, _count_steps(experiment))
    with np.errstate(all="ignore"):  # what overflows is the verdict's to say, not a warning's
        pilots = make_pilots(
            experiment,
            seconds,
            lambda each: estimate_pilot_error(each, promised).sure,
            trace if trace.is_needed else None,
            lambda part: tell(f"pilot run with {part}"),
        )
    error = estimate_pilot_error(pilots, promised)
    stability = _read_stability(composite, linear, trace, pilots)
    doubts = tuple(_doubts(experiment, pilots, error, stability))
    judgement, reason = _judge(pilots, error, stability, limit)
    growing = find_growth(composite, pilots) if judgement is Judgement.SOUND else None
    if growing is not None:
        judgement, reason = Judgement.NOT_JUDGED, f"{growing}; {reason}"
    scouted = None
    if judgement is Judgement.SOUND and not pilots.is_whole and not pilots.runs[0].ended_by:
        with np.errstate(all="ignore"):
            scouted = scout_ahead(experiment, pilots, error, promised)
        doubts = tuple(
            f"{each}, {scouted.suggestion}" if each.startswith(ENDED) and scouted.suggestion else each
            for each in doubts
        )
        if objection := scouted.objection(limit, pilots.until):
            judgement, reason = Judgement.NOT_JUDGED, f"{objection}; up to there {reason}"
            doubts = tuple(each for each in doubts if not each.startswith(ENDED))
    whole_part = _find_sound_part(experiment, pilots, limit, seconds / 2.0)
    verdict = TrajectoryVerdict(judgement, reason, doubts, pilots, error, limit, whole_part=whole_part)
    ports = tuple(_port_error(each, scouted) for each in error.ports)
    prediction = None
    if ports:
        order = _order(error, promised, why)
        until, step = float(pilots.steps * pilots.step), float(pilots.step)
        prediction = PilotPredictedError(ports, until, step, order, limit=limit)
    return Followed(verdict, prediction, stability)


def _count_steps(experiment: Experiment) -> int:
    assert experiment.stop is not None
    return int((experiment.stop - experiment.start) / experiment.composite.step)


def _find_sound_part(experiment: Experiment, pilots: Pilots, limit: float, allowed: float) -> int:
    """Return what the steps of a run that fails must be divided by to be sound to its end; 0: not found.

    A run counts as sound where twice its difference to one with half its steps is below the limit: that is
    its error where the order is one, and more where it is higher.
    """
    if not pilots.runs[0].failure:
        return 0
    before: PilotRun | None = None
    watch, part = Stopwatch(experiment.composite), 2
    with np.errstate(all="ignore"), suppress(HocketError):
        while part <= 2 * FINEST and watch.seconds < allowed:
            run = run_pilot(experiment, Fraction(part), pilots.asked, allowed - watch.seconds)
            if not run.failure and run.steps < pilots.asked:
                return 0  # time is up
            if not run.failure and before is not None:
                pair = Pilots((before, run), pilots.step, pilots.asked, pilots.start)
                ports = estimate_pilot_error(pair, None).ports
                if ports and all(2.0 * each.differences[0] <= limit * each.scale for each in ports):
                    return int(before.part)
            before, part = None if run.failure else run, 2 * part
    return 0


def _read_stability(
    composite: Composite, linear: Composite | None, trace: StateTrace, pilots: Pilots
) -> TrajectoryStability | None:
    """Return Phi_k along the first pilot run; None: some simulator has no slopes, or it would take long."""
    wiring = plan_tree(composite).leaves.wiring
    if not trace.is_needed or pilots.runs[0].failure or len(wiring.models) > MOST_SIMULATORS:
        return None
    ports, begin = pilots.runs[0].ports, pilots.start
    try:
        reader = trajectory_reader(composite, linear, trace, ports, begin)
        if len(reader.reading.cells) > MOST_NUMBERS:
            return None
        reader.deadline = process_time() + READING
        return TrajectoryStability(read_trajectory(reader))
    except (HocketError, ArithmeticError, ValueError, np.linalg.LinAlgError):
        return None  # a second opinion only: the pilot runs are the first


def _port_error(each: PortPilotError, scouted: ScoutedError | None) -> PortError:
    """Return the predicted error of a port; in what the pilots have not seen, as longer steps suggest it."""
    series = each.t, each.values, each.values - each.error
    largest, at = each.largest, each.at
    if scouted is not None and scouted.suggestion:
        later, when = scouted.ports.get(each.port, (0.0, at))
        if later > each.relative:
            largest, at = later * each.scale, when
    return PortError(each.port, each.unit, math.nan, largest, at, each.scale, series, each.scale)


def _order(error: PilotError, promised: int | None, why: str) -> ErrorOrder:
    """Return the order that the pilot runs show in the worst port."""
    seen = None if error.worst is None else error.worst.order
    if seen is None:
        return ErrorOrder(promised, why, None, "no observed order")
    if promised is not None and abs(seen - promised) <= AGREED:
        return ErrorOrder(
            promised, why, seen, f"observed order {seen:.2f} matches the expected order {promised}"
        )
    return ErrorOrder(promised, why, seen, f"observed order {seen:.2f}, expected order {promised}")


def _judge(
    pilots: Pilots, error: PilotError, stability: TrajectoryStability | None, limit: float
) -> tuple[Judgement, str]:
    """Return the judgement, and its reason."""
    first, *others = pilots.runs
    if first.failure:
        beyond = [run for run in others if not run.failure or run.steps > 1.05 * first.steps + 1]
        how = (
            f"; with 1/{beyond[0].part} of the steps it does not"
            if beyond
            else "; with shorter steps as well"
        )
        return Judgement.UNSOUND, f"the run fails, {first.failure}{how}"
    worst = error.worst
    if worst is None:
        return Judgement.NOT_JUDGED, "the pilot runs have no rows in common"
    found, off = error.relative, error.doubt
    said = _describe_error(worst)
    late = next((each for each in error.switching if each.relative + each.relative_doubt > limit), None)
    if worst.switches and late is not None:
        return Judgement.NOT_JUDGED, _describe_jumps(late)
    if found - off > limit or (found > limit and (error.settled or not error.converges)):
        return Judgement.UNSOUND, f"{said}, above the limit of {Share(limit):.3g}"
    if stability is not None and stability.grows:
        grown = f"{stability.reading.final_growth:.2g}"
        other = f"those of the exact system by {stability.reading.final_exact_growth:.2g}"
        return Judgement.UNSOUND, f"unstable: perturbations grow by {grown} over the run, {other}; {said}"
    if found + off < limit or (found <= limit and error.settled):
        if late is not None:
            return Judgement.NOT_JUDGED, f"{_describe_jumps(late)}; beside it {said}"
        return Judgement.SOUND, said
    return Judgement.NOT_JUDGED, f"{said}, may be off by {Share(off):.2g}; the limit is {Share(limit):.3g}"


def find_growth(composite: Composite, pilots: Pilots) -> str | None:
    """Return which port of a feedback loop with events grows from part to part of the run; None: none does.

    Steps of any length meet the events at the same times, so that pilot runs agree however unstable the loop
    is: a gain that is too large for its period is not seen by comparing them.
    """
    wiring = plan_tree(composite).leaves.wiring
    eventful = {
        name for name, model in zip(wiring.names, wiring.models, strict=True) if model.capabilities.events
    }
    loops = {name for group in looping_leaves(composite) if group & eventful for name in group}
    for port, (t, values) in pilots.runs[0].ports.items():
        if port.rpartition(".")[0] not in loops or not len(t):
            continue
        part = (t - pilots.start) / max(pilots.until - pilots.start, math.ulp(pilots.until)) * PARTS
        part = np.clip(part.astype(int), 0, PARTS - 1)
        peaks = [np.abs(values[part == number]) for number in range(PARTS // 2 - 1, PARTS)]
        sizes = np.array([np.nanmax(each, initial=0.0) for each in peaks])
        if (sizes[1:] > RISE * sizes[:-1]).all() and sizes[0] > 0.0:
            where = f"`{port}`, in a feedback loop with events, grows to {sizes[-1]:.3g}"
            return f"{where}: whether the exact system does is not known"
    return None


def _describe_jumps(port: PortPilotError) -> str:
    """Return how far a port that only jumps is off where a jump comes early or late."""
    size = max(port.relative, port.relative_doubt)
    when = f"{Share(size):.2g} of peak off while a jump comes early or late"
    return f"`{port.port}` only jumps, and is {when}, {Share(port.mean):.2g} on average"


def _describe_error(worst: PortPilotError) -> str:
    if worst.largest == 0.0:
        return "shorter steps change nothing"
    if worst.relative > 1e3:
        return "the predicted global error grows without bound"
    return f"predicted global error {Share(worst.relative):.2g} of peak"


def _doubts(
    experiment: Experiment, pilots: Pilots, error: PilotError, stability: TrajectoryStability | None
) -> Iterator[str]:
    """Yield what is not known, the most important first."""
    if pilots.runs[0].failure:
        return
    if not pilots.is_whole:
        assert experiment.stop is not None
        whole = format_time(float(experiment.stop))
        yield f"{ENDED}, at {format_time(pilots.until)} s of {whole} s"
    if not error.converges:
        yield "the runs with shorter steps do not converge"
    elif not error.settled:
        yield f"the error is known to within {Share(error.doubt):.2g} of peak only"
    switching = [each.port for each in error.ports if each.switches or each.jumps]
    switched = [] if stability is None else [name for name, _ in stability.reading.switches]
    if switched:
        t = min(at for _, at in stability.reading.switches) if stability is not None else 0.0
        yield f"a switch was met: {list_names(switched, 2)} after {format_time(t)} s"
    elif switching:
        yield f"a switch was met: {list_names(switching, 2)} jumps"
    yield from (f"{each} is not included" for each in _unseen(experiment))


def _unseen(experiment: Experiment) -> Iterator[str]:
    for text in uncovered_errors(experiment):
        yield text.partition(":")[0]


@dataclass(frozen=True, eq=False)
class ErrorLimit(Measure):
    """A linear coupling that is stable, and whose predicted error is too large."""

    relative: float
    limit: float
    title = "limit of the predicted error"

    @property
    def outcome(self) -> Outcome:
        return Outcome.BAD

    def verdict(self) -> list[str]:
        above = f"is above the limit of {Share(self.limit):.3g}"
        return [f"unsound: the predicted global error, {Share(self.relative):.2g} of peak, {above}"]

    def facts(self) -> dict[str, Any]:
        return {self.title: self.limit}
