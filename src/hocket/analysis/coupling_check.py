"""`hocket check`: is it well posed, stable, how wrong will it be, and what to change.

In:  a Composite, a Study, an Fmu or the path of a file, and when its run stops
Out: a Check: the verdict in plain words, and the measures behind it
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

import numpy as np

from hocket.analysis.bond_energy import BondCheck, balanced_leaves, bond_check
from hocket.analysis.consistency import Consistency, relative_consistency
from hocket.analysis.error_prediction import PredictedError, predicted_error
from hocket.analysis.exact_solution import ExactSolution, exact_solution
from hocket.analysis.identification import MUTE
from hocket.analysis.linear_models import merge_micro_steps
from hocket.analysis.linear_reading import Reading, read_linear
from hocket.analysis.linearisation import LinearisedLeaf, linearise
from hocket.analysis.posedness import Posedness, posedness
from hocket.analysis.recommended_change import CouplingChange, best_change, suggest_changes
from hocket.analysis.source_playback import played_sources, with_sources
from hocket.analysis.stability import (
    EDGE,
    MARGIN,
    IterationConvergence,
    Stability,
    iteration_convergence,
    powers_grow,
    stability,
)
from hocket.analysis.stability_intervals import LargestStep, largest_stable_step
from hocket.analysis.stability_radius import StabilityRadius, radius_per_simulator
from hocket.analysis.zero_stability import ZeroStability, zero_stability
from hocket.errors import ConvergenceError, HocketError, ScenarioError
from hocket.files.bond_flows import KEEPS
from hocket.files.error_estimate import format_time
from hocket.files.experiments import ExperimentLike, as_experiment
from hocket.model.clock import Duration, format_duration, seconds
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.plan import adapts
from hocket.planning.compiler.contract import insertions
from hocket.planning.planner import plan_tree
from hocket.planning.prepare import without_constraints

FOLLOWS = 0.8
"""Of the rate at which a system grows: a coupling that grows slower than this is elsewhere."""


def verdict_lines(found: Check) -> list[str]:
    """Return what was found, the most important first."""
    if found.ill_posed:
        return [f"ill posed: {found.ill_posed}"]
    refused = [leaf for leaf in found.leaves if leaf.how == "refused"]
    if refused:
        first = f"not judged: `{refused[0].path}`: {refused[0].refused}"
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        return [first + more, *_energy_lines(found.bonds), *_unjudged_lines(found)]
    lines = [_stability_line(found)] if found.stability else []
    if not found.is_conclusive:
        worst = max(found.leaves, key=lambda leaf: leaf.fit)
        doubt = f"the linear model of `{worst.path}` is good to {worst.fit:.2g} only"
        lines[0] = f"not sure, for {doubt}: {lines[0]}"
    if found.zero and not found.zero.stable:
        lines.append(found.zero.reason)
    lines = [*_iteration_lines(found), *lines]
    lines += [_error_line(found.prediction)] if found.prediction else []
    lines += [f"other steps: {found.largest.words}"] if found.largest else []
    lines += _robustness_lines(found)
    lines += _energy_lines(found.bonds)
    lines += _unjudged_lines(found)
    lines += [_advice_line(found.best, found.prediction)] if found.best else []
    return lines


def _unjudged_lines(found: Check) -> list[str]:
    return [f"not judged: {reason}" for reason in found.unjudged]


def _iteration_lines(found: Check) -> list[str]:
    """Return what is to be said of iterations that do not settle: nothing that follows will be reached."""
    return [
        f"does not settle: each sweep of {each.name}, {each.how}, makes what is wrong {each.factor:.3g} "
        'times as large; try accelerate = "quasi-newton"'
        for each in found.iterations
        if not each.settles
    ]


def _robustness_lines(found: Check) -> list[str]:
    """Return the line on the radius; 1 - rho is not it, and is never shown for it."""
    first = next((each for each in found.robustness if not each.inserted), None)
    if first is None or not math.isfinite(first.at_least) or first.at_most == 0.0:
        return []
    size = f"{100.0 * first.at_least:.2g}%"
    if not first.exact:
        size += f" to {100.0 * first.at_most:.2g}%"
    mode = f"swing up at {first.frequency:.3g} Hz" if first.angle > 1e-6 else "grow"
    rest = "no smaller change of one simulator can"
    return [f"robust: a change of `{first.what}` by {size} of its step could make it {mode}; {rest}"]


def _stability_line(found: Check) -> str:
    measured = found.stability
    assert measured is not None
    rho = f"the largest factor per step is {measured.rho:.6g}"
    if measured.stable:
        return f"stable: {rho}" + (", on the edge" if measured.rho > 1.0 - MARGIN else "")
    if found.own_growth and found.drifts:
        return f"the system itself moves on and on, as a free body does, and the coupling follows it: {rho}"
    if found.own_growth:
        assert found.own is not None
        follows = math.log(measured.rho) > FOLLOWS * math.log(found.own)
        how = "and the coupling follows it" if follows else "and the coupling does not follow it"
        return f"the system itself grows, by {found.own:.6g} per step, {how}: {rho}"
    mode = measured.modes[0]
    doubling = math.log(2.0) / math.log(mode.radius) * measured.period if mode.radius > 1.0 else math.inf
    who = ", ".join(f"`{part.name}` {part.share:.0%}" for part in mode.parts[:3])
    pace = (
        f"doubled every {doubling:.3g} s, at {mode.frequency:.3g} Hz" if math.isfinite(doubling) else "slowly"
    )
    return f"unstable: {rho}: what is wrong grows, {pace}; in it are {who}"


def _error_line(found: PredictedError) -> str:
    worst = found.worst
    if not any(each.scale for each in found.ports) and not any(each.largest for each in found.ports):
        return "expected error: none: nothing moves"
    if all(each.rounding for each in found.ports):
        return "expected error: none but rounding"
    if found.worthless:
        return "the error grows without bound: the run will be worthless"
    unit = f" {worst.unit}" if worst.unit else ""
    share = f", {worst.relative:.2g} of its largest value"
    if worst.stays_zero:
        share = ", which should stay zero"
    order = f"; order {found.order.measured:.2g}" if found.order.measured is not None else ""
    size = f"at most {worst.largest:.2g}{unit} in `{worst.port}`{share}"
    return f"expected error: {size}, at {format_time(worst.at)} s{order}"


def _energy_lines(found: BondCheck | None) -> list[str]:
    """Return what is to be said of the power bonds: the one that gains or loses most, and what helps."""
    if found is None or not found.gains:
        return []
    if not any(gain.moved for gain in found.gains):
        return ["energy: nothing flows through the bonds in a trial run, so nothing is said of them"]
    now, size = found.now, f"{100.0 * found.now.share:.2g}% of what flows"
    if now.keeps_energy:
        return [f"energy: the bonds keep it, to {size}"]
    worst = max(found.gains, key=lambda gain: abs(gain.gained) if math.isfinite(gain.gained) else math.inf)
    if not math.isfinite(worst.gained):
        lines = [f"energy: what the bond `{worst.bond}` gains grows beyond all numbers in a trial run"]
    elif now.share > KEEPS:
        made = f"{abs(worst.per_step):.2g} {worst.unit} in every step, {abs(worst.share):.1%} of what flows"
        lines = [f"energy: the bond `{worst.bond}` {'gains' if worst.gained > 0.0 else 'loses'} {made}"]
    elif now.grows:
        lines = [f"energy: the bonds make or lose {size}, and it adds up: a factor of {now.rho:.9g} per step"]
    else:
        lines = [f"energy: the bonds keep it, to {size}"]
    if now.share <= KEEPS and now.off is not None:
        lines.append(f"stored energy: off by {now.off:.2g} of its largest, against an iteration")
    best = found.best
    if best is not None:
        cost = f", for {best.work:.2g} times the steps" if best.work > 1.0 else ""
        what = "what keeps the energy" if best.keeps_energy else "what comes nearest to keeping the energy"
        lines.append(f"{what}: {best.words}: {best.share:.2g} of what flows{cost}")
    return lines


def _advice_line(change: CouplingChange, predicted: PredictedError | None) -> str:
    now = "" if predicted is None or predicted.worthless else f" instead of {predicted.worst.relative:.2g}"
    what = ""
    if change.error is not None and math.isfinite(change.error) and (change.error or now != " instead of 0"):
        what = f"the largest error is {change.error:.2g} of the value{now}"
    cost = f", for {change.steps:g} times the steps" if change.steps > 1.0 else ""
    return f"what helps most: {change.words}: factor {change.rho:.6g}{', ' if what else ''}{what}{cost}"


T = TypeVar("T")

LARGE = 300
"""Numbers in a step above which changes are not tried: that takes as many readings."""
WIDE, MANY = 100, 20
"""Numbers in a step, and simulators, up to which other steps and robustness are judged unasked."""
DISTURBANCES = 32
"""States of a simulator times its steps per period, up to which changes of it are judged unasked."""
NUMBERS = 2**21
"""Of all steps together, up to which the error of a run is predicted: some seconds."""
SOURCE = 100
"""Numbers that a source counts for: it is asked in every step."""
STATES = 200
"""States up to which relative consistency may start the engine once for each."""


@dataclass(frozen=True, eq=False)
class Check:
    """What can be said before the run, from the very plan that will be run."""

    posedness: Posedness
    leaves: tuple[LinearisedLeaf, ...]
    """How each simulator got its linear model."""
    ill_posed: str = ""
    """Why nothing can start; then there is nothing more."""
    stability: Stability | None = None
    zero: ZeroStability | None = None
    own: float | None = None
    """The factor per step of the exact coupled system: what grows by itself is not the coupling's fault."""
    drifts: bool = False
    """The exact system moves on and on by itself, as a free body does."""
    prediction: PredictedError | None = None
    advice: tuple[CouplingChange, ...] = ()
    best: CouplingChange | None = None
    unjudged: tuple[str, ...] = ()
    """Measures that could not be had, and why."""
    largest: LargestStep | None = None
    """Which other steps are stable."""
    robustness: tuple[StabilityRadius, ...] = ()
    """How much each simulator's step may change, relative to itself, before it grows.

    The nearest first; those that a pass inserted come last.
    """
    consistency: Consistency | None = None
    iterations: tuple[IterationConvergence, ...] = ()
    """How the iterations of levels settle."""
    bonds: BondCheck | None = None
    """What the power bonds gain, and what would keep their energy."""

    @property
    def good(self) -> bool:
        """Whether the coupling may be run: well posed, and it adds no growth."""
        if self.ill_posed or self.stability is None or not self.is_conclusive:
            return False
        if not all(each.settles for each in self.iterations):
            return False
        if self.own_growth:
            return self.prediction is None or not self.prediction.worthless
        return self.stability.stable

    @property
    def is_conclusive(self) -> bool:
        """Whether the factor is further from one than the linear models may be wrong."""
        fit = max((leaf.fit for leaf in self.leaves if leaf.how != "exact"), default=0.0)
        return self.stability is None or fit <= MARGIN or abs(self.stability.rho - 1.0) > fit

    @property
    def own_growth(self) -> bool:
        """Whether the system itself grows, and at least as fast as the coupling."""
        if self.stability is None or self.own is None:
            return False
        if self.drifts and self.stability.rho <= 1.0 + EDGE:
            return True
        return self.own > 1.0 + MARGIN and math.log(self.stability.rho) <= 1.05 * math.log(self.own) + MARGIN

    def verdict(self) -> list[str]:
        """Return the answer in plain words."""
        return verdict_lines(self)


def check(
    what: ExperimentLike,
    stop: Duration | None = None,
    *,
    start: Duration | None = None,
    advise: bool = True,
    robust: bool | None = None,
) -> Check:
    """Return what can be said of a coupling before it is run; raises ScenarioError for what is none.

    `stop` and `start` are in seconds, or as in "500 ms", and in place of those of a file; without a stop no
    error of a run is predicted. What is not linear is linearised at the start. `advise` looks for changes
    that help; `robust` judges other steps and changes of simulators (None: where that takes little time).
    """
    study = _study_to_check(what, start, stop)
    found = _judge_study(study, advise, robust)
    if not any(level.wiring.bonds for level in plan_tree(study.composite).levels()) or found.ill_posed:
        return found
    tried = _MeasureAttempts()
    linear = found.stability is not None and all(leaf.how == "exact" for leaf in found.leaves)
    bonds = tried("the energy of bonds", lambda: bond_check(study.composite, study.start, study.stop, linear))
    return replace(found, bonds=bonds, unjudged=(*found.unjudged, *tried.failed))


def _judge_study(study: Experiment, advise: bool, robust: bool | None) -> Check:
    composite, posed = study.composite, posedness(study.composite)
    balanced = balanced_leaves(composite)
    if balanced:
        why = "its bonds are balanced, by a law that is not linear"
        return Check(posed, tuple(LinearisedLeaf(path, "refused", math.nan, 0, why) for path in balanced))
    try:
        # what has no inputs may stand still, as long as others are coupled
        still = len(plan_tree(composite).leaves.places) > 1
        inserted = _inserting_passes(composite)
        made = linearise(composite, still=still, start=study.start)
        made = replace(made, leaves=tuple(_note_insertion(leaf, inserted) for leaf in made.leaves))
        if any(leaf.how == "refused" for leaf in made.leaves):
            return Check(posed, made.leaves)
        linear = merge_micro_steps(made.composite)
        reading = read_linear(linear)
    except ConvergenceError as error:
        fault = error.faults[0]
        return Check(posed, (), ill_posed=f"{fault.what}: {fault.where}" if fault.where else fault.what)
    tried = _MeasureAttempts()
    zero = tried("zero-stability", lambda: zero_stability(linear))
    solution = tried("the exact solution", lambda: exact_solution(linear))
    own, drifts = (None, False) if solution is None else _exact_growth(solution, reading)
    found = Check(posed, made.leaves, "", stability(reading), zero, own, drifts)
    found = replace(found, iterations=iteration_convergence(reading))
    length = _predictable_length(study, reading, made.leaves, tried)
    moving = linear if length is None else with_sources(linear, length, study.start)
    unpredictable = _unpredictable_reason(moving, made.leaves)
    if unpredictable and length is not None:
        tried.failed.append(f"the error: {unpredictable}")
    elif length is not None and solution is not None:
        predicted = tried("the error", lambda: _predict_run_error(reading, moving, length, study.start))
        found = replace(found, prediction=predicted)
    if robust or (robust is None and len(reading.core) <= WIDE and len(made.leaves) <= MANY):
        found = _with_robustness(found, reading, tried, None if robust else DISTURBANCES, inserted)
    elif robust is None and not found.own_growth:
        size = f"the step has {len(reading.core):,} numbers, and that takes a while"
        tried.failed.append(f"other steps and robustness: {size}; `robust=True` judges it")
    tried.failed += [
        f"what `{leaf.path}` does to the others: it {note}; perhaps it switches"
        for leaf in made.leaves
        for note in leaf.notes
        if note.startswith(MUTE)
    ]
    consistency = tried("relative consistency", lambda: relative_consistency(reading, most=STATES))
    found = replace(found, consistency=consistency)
    if advise and len(reading.core) <= LARGE and not found.own_growth:
        only = any(leaf.how == "identified" for leaf in made.leaves)
        found = _with_advice(found, moving, length, only)
    return replace(found, unjudged=tuple(_explain_insertions(reason, inserted) for reason in tried.failed))


def _inserting_passes(composite: Composite) -> dict[str, str]:
    """Return the passes that inserted something, by its path: equations become simulators of their own."""
    return {path: note.by for path, note in insertions(without_constraints(composite)).items()}


def _note_insertion(leaf: LinearisedLeaf, inserted: Mapping[str, str]) -> LinearisedLeaf:
    if leaf.path not in inserted:
        return leaf
    return replace(leaf, notes=(f"inserted by the pass {inserted[leaf.path]}", *leaf.notes))


def _explain_insertions(reason: str, inserted: Mapping[str, str]) -> str:
    """Return a reason that says which of the simulators it names are not the author's."""
    for path, by in inserted.items():
        reason = reason.replace(f"`{path}`", f"`{path}`, inserted by the pass {by},")
    return reason


def _study_to_check(what: ExperimentLike, start: Duration | None, stop: Duration | None) -> Experiment:
    study = as_experiment(what, done="checked")
    times = {"start": study.start if start is None else start, "stop": study.stop if stop is None else stop}
    exactly: dict[str, Fraction] = {}
    for name, time in times.items():
        try:
            exactly |= {} if time is None else {name: seconds(time)}
        except ValueError as error:
            raise ScenarioError(str(error), name) from None
    if "stop" in exactly and exactly["stop"] <= exactly["start"]:
        when = f"the run stops at {format_duration(exactly['stop'])} and starts at {format_duration(exactly['start'])}"
        raise ScenarioError(when, "stop")
    if "stop" in exactly:
        _check_whole_steps(exactly["start"], exactly["stop"], study.composite.step)
    return replace(study, start=exactly["start"], stop=exactly.get("stop"))


def _check_whole_steps(start: Fraction, stop: Fraction, step: Fraction) -> None:
    """Refuse what no run could end at."""
    count = (stop - start) / step
    if count.denominator != 1:
        below = start + step * math.floor(count)
        near = f"{format_duration(below)} or " * (below > start) + format_duration(below + step)
        what = f"the step {format_duration(step)} does not divide the run from {format_duration(start)} to {format_duration(stop)}"
        hint = f"stop at {near}, or choose another step"
        raise ScenarioError(what, "stop", "a whole number of steps", hint)


def _predictable_length(
    study: Experiment, reading: Reading, leaves: tuple[LinearisedLeaf, ...], tried: _MeasureAttempts
) -> Fraction | None:
    """Return how much of a run is predicted, from its start on; what is left out is noted."""
    if study.stop is None:
        return None
    length, step, period = study.stop - study.start, study.composite.step, reading.period
    rows = sum(
        math.ceil(period / level.composite.step) * sum(len(model.outputs) for model in level.wiring.models)
        for level in plan_tree(reading.composite).levels()
    )
    numbers = len(reading.cells) + rows + SOURCE * sum(leaf.how == "constant" for leaf in leaves)
    shown = max(1, NUMBERS // max(1, numbers)) * math.ceil(period / step) * step
    if shown < length:
        many = f"the run has {int(length / step):,} steps, and that takes a while"
        tried.failed.append(f"the error after {format_duration(study.start + shown)}: {many}")
    return min(length, shown)


def _unpredictable_reason(composite: Composite, leaves: tuple[LinearisedLeaf, ...]) -> str:
    """Return why no error can be predicted; empty: it can."""
    for level in plan_tree(composite).levels():
        if adapts(level.plan.step):
            name = f"`{level.path}`" if level.path else "the outermost level"
            return f"{name} chooses its steps by their error, and is judged at the step it begins with"
    played = {name for name, _ in played_sources(composite)}
    for leaf in leaves:
        if leaf.how == "constant" and leaf.path not in played:
            return f"`{leaf.path}` moves by its steps, and what it does between them is not known"
        if _depends_on_time(leaf):
            return f"`{leaf.path}` depends on time and has states: the prediction knows no such models"
    return ""


def _predict_run_error(
    reading: Reading, moving: Composite, length: Fraction, start: Fraction
) -> PredictedError:
    """Return the error of a run of this length, at times as its clock shows them; sources move."""
    what = moving if played_sources(moving) else reading
    found = predicted_error(what, length, measure=len(reading.core) <= LARGE)
    return replace(found, ports=tuple(replace(port, at=port.at + float(start)) for port in found.ports))


class _MeasureAttempts:
    """Takes a measure, or notes why there is none."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def __call__(self, what: str, measure: Callable[[], T]) -> T | None:
        try:
            return measure()
        except HocketError as error:
            self.failed.append(f"{what}: {str(error).splitlines()[0]}")
        except (np.linalg.LinAlgError, OverflowError) as error:
            self.failed.append(f"{what}: its numbers are too large or too small ({error})")
        return None


def _with_robustness(
    found: Check, reading: Reading, tried: _MeasureAttempts, most: int | None, inserted: Mapping[str, str]
) -> Check:
    if found.own_growth or found.stability is None:
        return found
    largest = tried("other steps", lambda: largest_stable_step(reading))
    if found.stability.rho >= 1.0 - MARGIN:
        return replace(found, largest=largest)
    radii = tried("robustness", lambda: radius_per_simulator(reading, most))
    if radii is None and most is not None and tried.failed[-1].endswith("a while"):
        tried.failed[-1] += "; `robust=True` judges it"
    radii = tuple(replace(each, inserted=inserted.get(each.what, "")) for each in radii or ())
    ordered = sorted(radii, key=lambda each: bool(each.inserted))
    return replace(found, largest=largest, robustness=tuple(ordered))


def _with_advice(found: Check, linear: Composite, length: Fraction | None, fixed_steps: bool) -> Check:
    advice = suggest_changes(linear, length if found.prediction else None, fixed_steps, found.iterations)
    assert found.stability is not None
    error = found.prediction.worst.relative if found.prediction else None
    return replace(found, advice=tuple(advice), best=best_change(advice, found.stability.rho, error))


def _exact_growth(solution: ExactSolution, reading: Reading) -> tuple[float, bool]:
    """Return the factor per step of the exact system, and whether it moves on and on."""
    from scipy.linalg import eigvals, expm

    if not len(solution.A):
        return 0.0, False
    fastest = float(np.real(eigvals(solution.A)).max())
    factor = math.exp(min(700.0, fastest * float(reading.period)))
    near = abs(factor - 1.0) <= EDGE and len(solution.A) <= LARGE
    return factor, near and powers_grow(expm(solution.A * float(reading.period)))


def _depends_on_time(leaf: LinearisedLeaf) -> bool:
    return any("depends on time" in note for note in leaf.notes)
