"""`hocket check`: is it well posed, stable, how large is the global error, and what to change.

In:  a Composite, an Experiment, an Fmu or the path of a file, and when its run stops
Out: a Check: the measures that were taken, in one list, and the verdict they make up
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from hocket.analysis.announced_events import ANNOUNCING_MODELS
from hocket.analysis.bond_energy import BondCheck, BondResiduals, balanced_leaves, bond_check
from hocket.analysis.consistency import Consistency, relative_consistency
from hocket.analysis.deadline import Deadline, find_deadline
from hocket.analysis.eigenfrequency import EigenfrequencyStep, eigenfrequency_step
from hocket.analysis.error_prediction import PredictedError, predicted_error
from hocket.analysis.exact_solution import ExactSolution, exact_solution
from hocket.analysis.forced_response import has_devices
from hocket.analysis.linear_models import merge_micro_steps, named_leaves, played_sources, with_sources
from hocket.analysis.linear_reading import Reading, read_linear
from hocket.analysis.linearisation import SURE, LinearisedLeaf, LinearModels, linearise
from hocket.analysis.measure import Measure, Outcome, Unjudged, verdict_lines, worst_outcome
from hocket.analysis.missed_pulses import MissedPulses, find_missed_pulses
from hocket.analysis.pilot import SECONDS
from hocket.analysis.posedness import Posedness, posedness
from hocket.analysis.recommended_change import RecommendedChanges, best_change, suggest_changes
from hocket.analysis.stability import (
    EDGE,
    MARGIN,
    IterationTable,
    LevelStability,
    Stability,
    driven_leaves,
    iteration_convergence,
    looping_leaves,
    powers_grow,
    stability,
)
from hocket.analysis.stability_intervals import LargestStep, largest_stable_step
from hocket.analysis.stability_radius import ON_REQUEST, StabilityRadii, radius_per_simulator
from hocket.analysis.switched_modes import OdeModes
from hocket.analysis.switched_stability import SwitchedStability, switched_stability
from hocket.analysis.trajectory import (
    MAX_ERROR,
    ErrorLimit,
    Followed,
    Judgement,
    TrajectoryStability,
    TrajectoryVerdict,
    judge_trajectory,
    needs_pilot,
)
from hocket.analysis.trajectory_weight import (
    AtStart,
    OnePoint,
    add_doubt,
    arrange_measures,
    confirm,
    linear_models_hold,
    pilots_suffice,
    repeats_run,
    stand_beside,
)
from hocket.analysis.zero_stability import ZeroStability, zero_stability
from hocket.errors import ConvergenceError, HocketError, ScenarioError
from hocket.execution.run import whole_steps
from hocket.files.experiments import ExperimentLike, as_experiment, check_times
from hocket.model.arguments import expect, expect_call, expect_flags, is_flag, is_positive
from hocket.model.clock import Duration, format_duration
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.html import html_details, html_lines, html_table, html_view
from hocket.model.scenario import Connections
from hocket.plan import Adapt
from hocket.planning.compiler.contract import insertions
from hocket.planning.planner import plan_tree
from hocket.planning.prepare import without_constraints
from hocket.simulators.crossing import Detector

M = TypeVar("M", bound=Measure)
T = TypeVar("T")

LARGE = 300
"""Numbers in a step above which changes are not tried: that takes as many readings."""
WIDE, MANY = 100, 20
"""Numbers in a step, and simulators, up to which other steps and stability radii are computed unasked."""
SMALL = 24
"""The same numbers where pilot runs decide: there they hold at the start only."""
DISTURBANCES = 32
"""States of a simulator times its steps per period, up to which its radius is computed unasked."""
NUMBERS = 2**21
"""Of all steps together, up to which the error of a run is predicted: some seconds."""
SOURCE = 100
"""Numbers that a source counts for: it is asked in every step."""
STATES = 200
"""States up to which relative consistency may start the engine once for each."""


class _Named(Generic[M]):
    """The measure of one kind, as an attribute of a Check; None if it was not taken."""

    def __init__(self, kind: type[M]):
        self.kind = kind

    def __get__(self, check: Check, owner: object = None) -> M | None:
        return check.get(self.kind)


class _Entries(Generic[M, T]):
    """What a measure lists, as an attribute of a Check; nothing if it was not taken."""

    def __init__(self, kind: type[M], entries: Callable[[M], tuple[T, ...]]):
        self.kind, self.entries = kind, entries

    def __get__(self, check: Check, owner: object = None) -> tuple[T, ...]:
        found = check.get(self.kind)
        return () if found is None else self.entries(found)


@dataclass(frozen=True, eq=False)
class Check:
    """What can be said before the run, from the very plan that will be run."""

    measures: tuple[Measure, ...]
    """Everything that is said, in the order in which it is told."""

    posedness = _Named(Posedness)
    stability = _Named(Stability)
    switched = _Named(SwitchedStability)
    zero = _Named(ZeroStability)
    prediction = _Named(PredictedError)
    largest = _Named(LargestStep)
    consistency = _Named(Consistency)
    bonds = _Named(BondCheck)
    changes = _Named(RecommendedChanges)
    trajectory = _Named(TrajectoryVerdict)
    variation = _Named(TrajectoryStability)
    leaves = _Entries(LinearModels, lambda found: found.leaves)
    iterations = _Entries(IterationTable, lambda found: found.levels)
    robustness = _Entries(StabilityRadii, lambda found: found.radii)
    unjudged = _Entries(Unjudged, lambda found: found.reasons)

    def get(self, kind: type[M]) -> M | None:
        """Return the measure of a kind; None: it was not taken."""
        plain = (each.inner if isinstance(each, AtStart) else each for each in self.measures)
        return next((each for each in plain if isinstance(each, kind)), None)

    @property
    def outcome(self) -> Outcome:
        """The worst of all measures; without a spectral radius or a pilot run nothing is judged."""
        led = self.trajectory is not None and self.trajectory.leads
        known = led or self.stability is not None or self.switched is not None
        return max(worst_outcome(self.measures), Outcome.GOOD if known else Outcome.NOT_JUDGED)

    @property
    def judgement(self) -> Judgement:
        """Sound, unsound or not judged."""
        return {0: Judgement.SOUND, 1: Judgement.UNSOUND}.get(self.outcome.exit_code, Judgement.NOT_JUDGED)

    @property
    def good(self) -> bool:
        """Whether the coupling may be run: well posed, and it adds no growth."""
        return self.outcome.exit_code == 0

    def verdict(self) -> list[str]:
        """Return the answer, the most important first."""
        return verdict_lines(self.measures)

    def _repr_html_(self) -> str:
        tables = (html_details(each.title, html_table(each.rows())) for each in self.measures)
        return html_view("Check", {}, html_lines(self.verdict()), *tables)


def check(
    what: ExperimentLike,
    stop: Duration | None = None,
    *,
    connections: Connections = (),
    start: Duration | None = None,
    step: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    advise: bool = True,
    robust: bool | None = None,
    pilot: bool = True,
    pilot_seconds: float = SECONDS,
    max_error: float = MAX_ERROR,
    deadline: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Check:
    """Return what can be said of a coupling before it is run; raises ScenarioError for what is none.

    `connections` couple several FMUs; `start`, `step` and `parameters` are those of `hocket.run`.
    `stop` and `start` are in seconds, or as in "500 ms", and in place of those of a file; without a stop no
    error of a run is predicted. What is not linear is linearised at the start. `advise` tries changes;
    `robust` computes other macro steps and stability radii (None: where that takes little time).

    Where not all is linear the plan is run in memory, with its steps and with shorter ones, for about
    `pilot_seconds` of computing time: what these runs say counts, along their trajectory. `pilot=False`
    keeps to the linear models at the start. A predicted error above `max_error`, a part of the peak, is
    unsound. With a `deadline`, the real-time factor that is to be kept (1 keeps pace with the clock), it is
    said whether every macro step is computed in time, from execution times that are declared or measured.
    `progress` is called with what is looked at, as that begins.
    """
    expect_flags(advise=advise, pilot=pilot)
    expect(is_positive(pilot_seconds), "pilot_seconds", pilot_seconds, "seconds, above zero")
    expect(is_positive(max_error), "max_error", max_error, "a part of the peak, above zero: 0.5 is 50 %")
    expect(robust is None or is_flag(robust), "robust", robust, "True, False or None")
    expect_call("progress", progress, "words: what is looked at")
    experiment = as_experiment(
        what, connections, start=start, stop=stop, step=step, parameters=parameters, done="checked"
    )
    check_times(experiment)
    if experiment.stop is not None:
        whole_steps(experiment.start, experiment.stop, experiment.composite.step)
    tell = progress or (lambda _: None)
    tell("linear models")
    posed = posedness(experiment.composite)
    try:
        coupling = _read_coupling(experiment, advise, robust)
    except ConvergenceError as error:
        fault = error.faults[0]
        why = f"{fault.what}: {fault.where}" if fault.where else fault.what
        return Check((replace(posed, ill_posed=why),))
    late = find_deadline(experiment, deadline)
    coupling.limit, coupling.tell = max_error, tell
    own = [leaf for leaf in coupling.models.leaves if leaf.path not in coupling.inserted or leaf.fit > SURE]
    coupling.piloted = needs_pilot(experiment, own) and pilot
    coupling.found += [*find_missed_pulses(experiment), *late, posed, coupling.models]
    for name, take in SWITCHED if coupling.modes else MEASURES if coupling.linear else BLIND:
        coupling.attempt(name, take)
    piloted = needs_pilot(experiment, own)
    followed = _follow(coupling, pilot_seconds, max_error) if piloted and pilot else None
    led = followed is not None and followed.verdict.leads
    if coupling.get(Stability) is not None and not led:
        # many predictions, with sources the most costly part: of no use where the start decides nothing
        coupling.attempt("changes", _try_changes)
    if piloted:
        if followed is not None:
            whole = (MissedPulses, Deadline, Posedness, BondCheck, BondResiduals, Unjudged)
            return Check(
                tuple(arrange_measures(coupling.all_measures(), followed, whole, (RecommendedChanges,)))
            )
        bent = tuple(leaf.path for leaf in own if leaf.how not in ("exact", "constant", "refused"))
        why = "its steps cannot be shortened, or it does not start" if pilot else ""
        return Check((*([OnePoint(bent, why)] if bent else []), *coupling.all_measures()))
    return Check(coupling.all_measures())


def _follow(coupling: Coupling, seconds: float, limit: float) -> Followed | None:
    """Return what pilot runs say, with the weight it has; None: they were not possible, and why is noted."""
    followed = coupling.guard(
        "pilot runs",
        lambda: judge_trajectory(coupling.experiment, coupling.linear, seconds, limit, coupling.tell),
    )
    return None if followed is None else _weigh(coupling, followed)


def _weigh(coupling: Coupling, followed: Followed) -> Followed:
    """Return what pilot runs say with the weight it has: first, as a confirmation, or of this run only."""
    judgement, doubts = followed.verdict.judgement, followed.verdict.doubts
    # what ended early confirms what is linear anyway, not what is only so where it starts
    seen = followed.verdict.pilots.is_whole or all(leaf.fit <= SURE for leaf in coupling.models.leaves)
    if seen and linear_models_hold(coupling.get(PredictedError), followed.verdict.error, coupling.models):
        return confirm(followed)
    if coupling.is_sampled and repeats_run(coupling.linear_experiment, followed.verdict.pilots.runs[0]):
        # the reading is that of the run itself, only errors of the steps are not in it
        stable = coupling.stability.outcome.exit_code == 0
        if judgement is Judgement.UNSOUND and stable:
            return followed
        return stand_beside(followed, () if judgement is Judgement.SOUND else doubts)
    switched, stable_start = coupling.get(SwitchedStability), coupling.get(Stability)
    if switched is not None and not switched.proven:
        if judgement is Judgement.UNSOUND or pilots_suffice(followed, switched.all_stable):
            return add_doubt(followed, switched.doubt)
        return stand_beside(followed, doubts)
    if coupling.has_crossings and judgement is not Judgement.UNSOUND:
        return stand_beside(followed, doubts)
    silent = "" if stable_start is None else stable_start.silent
    if silent and judgement is Judgement.NOT_JUDGED:
        return stand_beside(followed, doubts)
    if silent:
        return add_doubt(followed, f"`{silent}` does not respond where it starts, and may switch later")
    return followed


@dataclass(eq=False)
class Coupling:
    """What measures are taken of, and what was found so far."""

    experiment: Experiment
    models: LinearModels
    inserted: Mapping[str, str]
    """The passes that inserted a simulator, by its path."""
    advise: bool
    robust: bool | None
    limit: float = math.inf
    """Of the peak: a predicted error above this is unsound."""
    piloted: bool = False
    """Whether pilot runs are made."""
    linear: Composite | None = None
    """With linear models, micro steps merged; None: some simulator has none."""
    modes: Mapping[str, OdeModes] = field(default_factory=dict)
    """By path: the modes of what switches, if everything has a linear model."""
    tell: Callable[[str], None] = lambda _: None
    """Called with what is looked at."""
    found: list[Measure] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Why measures could not be taken."""

    @cached_property
    def reading(self) -> Reading:
        """The linear reading; raises ConvergenceError for what is ill posed."""
        assert self.linear is not None
        return read_linear(self.linear)

    @cached_property
    def solution(self) -> ExactSolution | None:
        """The exact solution without samples; None: not known, and why is noted, or a device has none."""
        if self.has_devices:
            with suppress(HocketError):
                return exact_solution(self.reading.composite)
            return None
        return self.guard("exact solution", lambda: exact_solution(self.reading.composite))

    @property
    def has_devices(self) -> bool:
        """Whether some models are sampled: a run's exact solution jumps there."""
        return has_devices(self.reading.composite)

    @cached_property
    def length(self) -> Fraction | None:
        """How much of the run is predicted, from its start on; what is left out is noted."""
        experiment, step, period = self.experiment, self.experiment.composite.step, self.reading.period
        if experiment.stop is None:
            return None
        rows = sum(
            math.ceil(period / level.composite.step) * len(model.outputs)
            for level in plan_tree(self.reading.composite).levels()
            for model in level.wiring.models
        )
        sources = sum(leaf.how == "constant" for leaf in self.models.leaves)
        numbers = len(self.reading.cells) + rows + SOURCE * sources
        shown = max(1, NUMBERS // max(1, numbers)) * math.ceil(period / step) * step
        whole = experiment.stop - experiment.start
        if shown < whole:
            many = f"the run has {int(whole / step):,} macro steps, only the first are predicted"
            self.failed.append(f"global error after {format_duration(experiment.start + shown)}: {many}")
        return min(whole, shown)

    @cached_property
    def moving(self) -> Composite:
        """The linear composite with its sources played, as far as the run is predicted."""
        linear = self.reading.composite
        return linear if self.length is None else with_sources(linear, self.length, self.experiment.start)

    @property
    def is_sampled(self) -> bool:
        """Whether all has linear models, and some of them are sampled at times that they announce."""
        if self.linear is None or self.modes or any(leaf.mute for leaf in self.models.leaves):
            return False
        return any(isinstance(model, ANNOUNCING_MODELS) for _, model in named_leaves(self.linear))

    @property
    def linear_experiment(self) -> Experiment:
        """The run that the linear models would make, with their sources."""
        return replace(self.experiment, composite=self.moving)

    @property
    def has_crossings(self) -> bool:
        """Whether steps end where a value crosses another, and something may react to it."""
        leaves = plan_tree(self.experiment.composite).leaves.wiring.models
        return any(isinstance(model, Detector) for model in leaves)

    def get(self, kind: type[M]) -> M | None:
        """Return a measure that was taken before."""
        return Check(tuple(self.found)).get(kind)

    @property
    def stability(self) -> Stability:
        """The stability, which is taken before whatever asks for it."""
        found = self.get(Stability)
        if found is None:
            raise ScenarioError("it needs the spectral radius")
        return found

    def attempt(self, name: str, take: Callable[[Coupling], Measure | None]) -> None:
        """Take a measure, or note why there is none."""
        self.tell(name)
        found = self.guard(name, lambda: take(self))
        self.found += [] if found is None else [found]

    def guard(self, name: str, compute: Callable[[], T]) -> T | None:
        """Return what is computed; None: not possible, and why is noted."""
        try:
            return compute()
        except HocketError as error:
            fault = error.faults[0]
            self.failed.append(f"{name}: {fault.what}" + (f"; try {fault.hint}" if fault.hint else ""))
        except (np.linalg.LinAlgError, OverflowError) as error:
            self.failed.append(f"{name}: its numbers are too large or too small ({error})")
        return None

    def all_measures(self) -> tuple[Measure, ...]:
        """Return what was found, and why other measures could not be taken."""
        predicted, stable = self.get(PredictedError), self.get(Stability)
        if (
            predicted is not None
            and predicted.above_limit
            and stable is not None
            and stable.outcome.exit_code == 0
            and not (predicted.worthless and predicted.decides)
        ):
            self.found.insert(0, ErrorLimit(predicted.worst.relative, predicted.limit))
        return (*self.found, Unjudged(tuple(map(self.explain_insertions, self.failed))))

    def explain_insertions(self, reason: str) -> str:
        """Return a reason that says which of the simulators it names are not the author's."""
        for path, by in self.inserted.items():
            reason = reason.replace(f"`{path}`", f"`{path}`, inserted by the pass {by},")
        return reason


def _read_coupling(experiment: Experiment, advise: bool, robust: bool | None) -> Coupling:
    """Return a coupling with linear models; raises ConvergenceError for what is ill posed."""
    composite = experiment.composite
    inserted = {path: note.by for path, note in insertions(without_constraints(composite)).items()}
    balanced = balanced_leaves(composite)
    if balanced:
        why = "its bonds are balanced, by a law that is not linear"
        leaves = tuple(LinearisedLeaf(path, "refused", math.nan, 0, why) for path in balanced)
        return Coupling(experiment, LinearModels(leaves), inserted, advise, robust)
    # what has no inputs may stand still, as long as others are coupled
    still = len(plan_tree(composite).leaves.places) > 1
    made = linearise(composite, still=still, start=experiment.start, kinks=True)
    leaves = tuple(
        replace(leaf, notes=(f"inserted by the pass {inserted[leaf.path]}", *leaf.notes))
        if leaf.path in inserted
        else leaf
        for leaf in made.leaves
    )
    found = Coupling(experiment, LinearModels(leaves), inserted, advise, robust)
    if not found.models.refused:
        found.linear, found.modes = merge_micro_steps(made.made), made.modes
        _ = found.reading
    found.failed += [
        f"effect of `{leaf.path}` on the others: {leaf.notes[-1]}; it may switch later"
        for leaf in leaves
        if leaf.mute
    ]
    return found


def _judge_stability(coupling: Coupling) -> Stability:
    """Return the stability, beside that of the exact system, and how far the linear models may be off."""
    found, period = stability(coupling.reading), float(coupling.reading.period)
    solution = coupling.solution
    if solution is not None:
        factor, drifts = 0.0, False
        if len(solution.A):
            from scipy.linalg import eigvals, expm

            factor = math.exp(min(700.0, float(np.real(eigvals(solution.A)).max()) * period))
            near = abs(factor - 1.0) <= EDGE and len(solution.A) <= LARGE
            drifts = near and powers_grow(expm(solution.A * period))
        found = replace(found, exact_rho=factor, drifts=drifts)
    loops = {name for group in looping_leaves(coupling.reading.composite) for name in group}
    silent = [leaf.path for leaf in coupling.models.leaves if leaf.mute and leaf.path in loops]
    found = replace(found, silent=silent[0] if silent else "")
    approximate = [leaf for leaf in coupling.models.leaves if leaf.how != "exact"]
    worst = max(approximate, key=lambda leaf: leaf.fit, default=None)
    return found if worst is None else replace(found, residual=worst.fit, poorest=worst.path)


def _judge_modes(coupling: Coupling) -> SwitchedStability:
    """Return the stability of each mode; a proof needs others that are linear, not only linearised."""
    certain = all(
        leaf.how in ("exact", "constant") or (leaf.path in coupling.modes and not leaf.depends_on_time)
        for leaf in coupling.models.leaves
    )
    return switched_stability(coupling.reading.composite, coupling.modes, certain)


def _predict_error(coupling: Coupling) -> PredictedError | None:
    """Return the error of the run, at times as its clock shows them; sources move."""
    reading, length, moving = coupling.reading, coupling.length, coupling.moving
    if length is None:
        return None
    played = {name for name, _ in played_sources(moving)}
    for level, _ in plan_tree(moving).instructions(Adapt):
        name = f"`{level.path}`" if level.path else "the outermost level"
        raise ScenarioError(f"{name} controls its step size, and is judged at the step it begins with")
    for leaf in coupling.models.leaves:
        if leaf.how == "constant" and leaf.path not in played:
            raise ScenarioError(f"`{leaf.path}` moves by its steps, its motion between them is not known")
        if leaf.mute and leaf.path in driven_leaves(moving):
            raise ScenarioError(f"`{leaf.path}` does not respond where it starts, and may switch later")
        if leaf.depends_on_time:
            raise ScenarioError(f"`{leaf.path}` depends on time and has states, which is not predicted")
    if coupling.solution is None and not coupling.has_devices:
        return None
    found = predicted_error(moving if played else reading, length, measure=len(reading.core) <= LARGE)
    ports = tuple(replace(port, at=port.at + float(coupling.experiment.start)) for port in found.ports)
    decides = coupling.stability.grows_by_itself
    return replace(found, ports=ports, decides=decides, limit=coupling.limit)


def _find_stable_steps(coupling: Coupling) -> LargestStep | None:
    if coupling.robust is False or coupling.stability.grows_by_itself:
        return None
    if _is_costly(coupling):
        size = f"the macro step has {len(coupling.reading.core):,} numbers"
        coupling.failed.append(f"other macro steps and stability radii: {size}; try {ON_REQUEST}")
        return None
    return largest_stable_step(coupling.reading)


def _offer_step(coupling: Coupling) -> EigenfrequencyStep | None:
    exact = coupling.solution
    return None if exact is None else eigenfrequency_step(exact, coupling.experiment.composite.step)


def _find_stability_radii(coupling: Coupling) -> StabilityRadii | None:
    found = coupling.stability
    if coupling.robust is False or found.grows_by_itself or found.rho >= 1.0 - MARGIN or _is_costly(coupling):
        return None
    radii = radius_per_simulator(coupling.reading, None if coupling.robust else DISTURBANCES)
    named = [replace(each, inserted=coupling.inserted.get(each.what, "")) for each in radii]
    return StabilityRadii(tuple(sorted(named, key=lambda each: bool(each.inserted))))


def _is_costly(coupling: Coupling) -> bool:
    wide = (
        len(coupling.reading.core) > (SMALL if coupling.piloted else WIDE)
        or len(coupling.models.leaves) > MANY
    )
    return wide and not coupling.robust


def _check_bonds(coupling: Coupling) -> BondCheck | None:
    experiment = coupling.experiment
    if not any(level.wiring.bonds for level in plan_tree(experiment.composite).levels()):
        return None
    linear = coupling.linear is not None and all(leaf.how == "exact" for leaf in coupling.models.leaves)
    return bond_check(experiment.composite, experiment.start, experiment.stop, linear)


def _list_bonds(coupling: Coupling) -> BondResiduals | None:
    bonds = coupling.get(BondCheck)
    return None if bonds is None else BondResiduals(bonds.gains)


def _try_changes(coupling: Coupling) -> RecommendedChanges | None:
    found, predicted = coupling.stability, coupling.get(PredictedError)
    if not coupling.advise or len(coupling.reading.core) > LARGE or found.grows_by_itself:
        return None
    fixed = any(leaf.how == "identified" for leaf in coupling.models.leaves)
    iterations = coupling.get(IterationTable)
    now = iterations.levels if iterations else ()
    changes = suggest_changes(coupling.moving, coupling.length if predicted else None, fixed, now)
    best = best_change(changes, found.rho, predicted.worst.relative if predicted else None)
    error = None if predicted is None or predicted.worthless else predicted.worst.relative
    return RecommendedChanges(tuple(changes), best, error)


BLIND: tuple[tuple[str, Callable[[Coupling], Measure | None]], ...] = (
    ("energy residual", _check_bonds),
    ("energy residual of bonds", _list_bonds),
)
"""Measures that need no linear models."""

SWITCHED: tuple[tuple[str, Callable[[Coupling], Measure | None]], ...] = (
    ("stability per mode", _judge_modes),
    *BLIND,
)
"""Measures of what switches: one step that stands for all steps is not known."""

MEASURES: tuple[tuple[str, Callable[[Coupling], Measure | None]], ...] = (
    ("iteration convergence", lambda coupling: IterationTable(iteration_convergence(coupling.reading))),
    ("stability", _judge_stability),
    ("stability of levels", lambda coupling: LevelStability(coupling.stability.levels)),
    ("zero-stability", lambda coupling: zero_stability(coupling.reading.composite)),
    ("global error", _predict_error),
    ("other macro steps", _find_stable_steps),
    ("stability radii", _find_stability_radii),
    ("eigenfrequency rule", _offer_step),
    ("relative consistency", lambda coupling: relative_consistency(coupling.reading, most=STATES)),
    *BLIND,
)
"""Every measure before changes are tried, in this order: its name where it fails, how it is taken."""
