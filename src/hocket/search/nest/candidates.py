"""Candidates, judged by the linear reading of the plan that would be run: error, factor and work.

In:  a flat Composite, how long it runs; a tree, an outer step and a way
Out: a Candidate, or None where there is no such scenario
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from hocket.analysis.exact_solution import exact_solution
from hocket.analysis.linear_models import merge_micro_steps, with_sources
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import LinearisedLeaf, linearise
from hocket.analysis.stability import EDGE, iteration_convergence, spectral_radius
from hocket.errors import HocketError, ScenarioError
from hocket.model.clock import format_duration
from hocket.model.composite import Composite, as_level, traits_of
from hocket.model.protocols import Model, period_of, step_of
from hocket.planning.cost import LEAST, Work, plan_work
from hocket.planning.parameters import with_cold_starts
from hocket.planning.planner import plan_tree
from hocket.search.case import Case, looks_back
from hocket.search.nest.connection_strengths import Strengths, strengths
from hocket.search.nest.hierarchy import AS_IT_IS, AlgorithmVariant, LevelGroup, build_hierarchy

REACH = 64
"""Times shorter or longer than now that steps may be."""
SHARES = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64)
"""Denominators: with these a decimal stays one."""


TIMES = tuple(
    sorted(n for a in range(7) for b in range(4) for c in range(3) if (n := 2**a * 3**b * 5**c) <= REACH)
)
"""Numerators: those without prime factors above 5."""
RATIOS = SHARES
"""Steps of a level in one of the level around it."""


def fits_own_step(model: Model, step: Fraction) -> bool:
    """Return whether the own step of a model fits that of its level; those of levels may be longer."""
    own = own_step(model)
    if own is None or (step / own).denominator == 1:
        return True
    inside = as_level(model) is not None or period_of(model) is not None
    return inside and (own / step).denominator == 1


def own_step(model: Model) -> Fraction | None:
    """Return the step that a simulator or a level insists on."""
    return period_of(model) or step_of(model)


LARGE = 40
"""States from which on candidates are compared with cold starts: to make a past takes longest of all."""
FOLLOWS = 1.05
"""Times the growth of the exact system that a coupling may grow by."""


@dataclass(frozen=True)
class Candidate:
    """A hierarchy with its steps and its algorithm, and what it is worth."""

    tree: LevelGroup
    step: Fraction
    """Of the outermost level."""
    way: AlgorithmVariant
    error: float
    """The largest error of the run, as a part of the largest value of its port."""
    rho: float
    """The spectral radius of one period, which is the outer step unless something inside has a longer one."""
    growth: float
    """Growth rate of the least-damped mode, in 1/s."""
    stable: bool
    work: Work
    times: float
    """The exchanges, as a multiple of those of now."""

    @property
    def steps(self) -> str:
        """The steps in words, the outermost first."""
        return ", ".join(
            format_duration(self.step / rate) for rate in (1, *(r for _, r in self.tree.rates()))
        )

    def row(self) -> dict[str, object]:
        """Return it as a row of a table."""
        return {
            "levels": self.tree.words,
            "steps": self.steps,
            "algorithm": self.way.words,
            "error": self.error,
            "factor": self.rho,
            "per second": math.exp(min(self.growth, 700.0)),
            "exchanges [1/s]": self.work.exchanges,
            "steps [1/s]": self.work.steps,
            "exchanges of now": self.times,
        }


@dataclass(eq=False)
class CandidateJudge:
    """Judges candidates of one flat scenario; each is read once."""

    composite: Composite
    stop: Fraction
    """How long it runs, in seconds from its start."""
    start: Fraction = Fraction(0)
    progress: Callable[[int], None] | None = None
    """Called with how many candidates were read."""
    known: dict[tuple[LevelGroup, Fraction, AlgorithmVariant, bool], Candidate | None] = field(
        default_factory=dict
    )
    costs: dict[tuple[LevelGroup, AlgorithmVariant], _Shares | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        made = linearise(self.composite, still=len(self.composite.scenario.models) > 1, start=self.start)
        _ = made.composite  # raises with the reasons if one cannot be judged
        self.leaves: tuple[LinearisedLeaf, ...] = made.leaves
        self.identified = any(leaf.how == "identified" for leaf in made.leaves)
        self.base = self.composite if self.identified else self._without_sampled_levels(made.made)
        self.linear = with_sources(merge_micro_steps(made.made), self.stop, self.start)
        own = exact_solution(self.linear).A
        self.growth = float(np.linalg.eigvals(own).real.max(initial=0.0)) if len(own) else 0.0
        self.large = len(own) >= LARGE
        self.strengths: Strengths = strengths(self.linear, self.stop)
        self.weights = self.strengths.pairs()
        self.flat = LevelGroup(tuple(self.composite.scenario.models))
        self.sweeps = self._sweeps()
        self.now_work = self._work(self.composite)

    def _sweeps(self) -> int:
        """Return how often steps are made again now, about: as often as levels inside will make theirs."""
        if not traits_of(self.composite.orchestrator).iterates:
            return LEAST
        return max(
            (each.sweeps or LEAST for each in iteration_convergence(read_linear(self.linear))), default=LEAST
        )

    def _work(self, composite: Composite, sweeps: Mapping[str, int | None] | None = None) -> Work:
        """Return the work of a composite; levels of which nothing is known iterate as often as now."""
        design = plan_tree(composite)
        known = {path: count for path, count in (sweeps or {}).items() if count is not None}
        return plan_work(design, {level.path: self.sweeps for level in design.levels()} | known)

    def _without_sampled_levels(self, made: Composite) -> Composite:
        """Return the linear composite without the levels around sampled devices: these are made anew."""
        models = dict(made.scenario.models)
        own = self.composite.scenario.models
        models = {name: own[name] if period_of(own[name]) else models[name] for name in own}
        return self.composite.with_changes(scenario=self.composite.scenario.with_models(models))

    @cached_property
    def grain(self) -> Fraction:
        """The shortest step that all divide which insist on one."""
        own = [step for model in self.composite.scenario.models.values() if (step := own_step(model))]
        if not own:
            return self.composite.step
        return Fraction(math.lcm(*(s.numerator for s in own)), math.gcd(*(s.denominator for s in own)))

    @cached_property
    def nearby_steps(self) -> tuple[Fraction, ...]:
        """Steps around that of now, the longest first."""
        now = self.composite.step
        return tuple(sorted({now * Fraction(p, q) for p in TIMES for q in SHARES}, reverse=True))

    def outer_steps(self, tree: LevelGroup, whole: bool = True) -> tuple[Fraction, ...]:
        """Return the outer steps that a tree with its ratios may have, the longest first.

        Steps that are only compared with need not divide the run: `whole=False` tells them too.
        """
        fitting = (step for step in self.nearby_steps if not whole or (self.stop / step).denominator == 1)
        return tuple(step for step in fitting if step <= self.stop and self._fits(tree, step))

    def _fits(self, tree: LevelGroup, step: Fraction) -> bool:
        models = self.composite.scenario.models
        return all(
            fits_own_step(models[member], step / rate)
            for group, rate in ((tree, 1), *tree.rates())
            for member in group.members
            if isinstance(member, str)
        )

    @property
    def now(self) -> Candidate:
        """The scenario as it is."""
        found = self._look_up_candidate(self.flat, self.composite.step, AS_IT_IS, False)
        if found is None:
            raise ScenarioError("the scenario as it is cannot be read", hint="`hocket check` says more")
        return found

    def build_candidate(
        self,
        base: Composite,
        tree: LevelGroup,
        step: Fraction,
        way: AlgorithmVariant,
        reasons: Mapping[LevelGroup, str] | None = None,
    ) -> Composite:
        """Return the composite of a candidate."""
        return build_hierarchy(base, tree, step, way, self.weights, reasons)

    def __call__(
        self, tree: LevelGroup, step: Fraction, way: AlgorithmVariant = AS_IT_IS
    ) -> Candidate | None:
        """Return a candidate, judged; None if it has no plan or no reading."""
        return self._look_up_candidate(tree, step, way, self.large)

    def judge_with_start(self, each: Candidate) -> Candidate | None:
        """Return a candidate judged with the start that it will have."""
        return self._look_up_candidate(each.tree, each.step, each.way, False)

    def _look_up_candidate(
        self, tree: LevelGroup, step: Fraction, way: AlgorithmVariant, quick: bool
    ) -> Candidate | None:
        smooth = way.extrapolation or self.composite.extrapolation
        key = (tree, step, way, quick and looks_back(self.composite.with_changes(extrapolation=smooth)))
        if key not in self.known:
            try:
                self.known[key] = self._judge_candidate(*key)
            except (HocketError, np.linalg.LinAlgError, OverflowError):
                self.known[key] = None
            if self.progress:
                self.progress(len(self.known))
        return self.known[key]

    def _judge_candidate(
        self, tree: LevelGroup, step: Fraction, way: AlgorithmVariant, quick: bool
    ) -> Candidate:
        made = self.build_candidate(self.base, tree, step, way)
        made = with_cold_starts(made) if quick else made
        if self.identified:
            made = linearise(made, still=True, start=self.start).composite
        case = Case(made, self.stop, self.start, linear=merge_micro_steps(made))
        error, reading = case.prediction.worst.relative, case.reading
        rho = spectral_radius(reading)
        growth = math.log(rho) / float(reading.period) if rho > 0.0 else -math.inf
        allowed = EDGE / float(reading.period) + FOLLOWS * max(self.growth, 0.0)
        stable = all(each.settles for each in case.iterations) and growth <= allowed
        work = self._work(made, case.sweeps)
        error = math.inf if math.isnan(error) else error
        times = work.exchanges / self.now_work.exchanges
        return Candidate(tree, step, way, error, rho, growth, stable, work, times)

    def cost(self, tree: LevelGroup, way: AlgorithmVariant, step: Fraction) -> float | None:
        """Return the exchanges of a candidate, as a multiple of those of now, without reading it.

        None: there is no such plan. They are a sum over levels, each at its rate, and over levels that were
        there before, which keep theirs; so a few plans tell those of all steps and ratios.
        """
        key = (tree.with_ratios({}), way)
        if key not in self.costs:
            try:
                self.costs[key] = self._shares(*key)
            except HocketError:
                self.costs[key] = None
        shares = self.costs[key]
        if shares is None:
            return None
        each = shares.outermost + sum(
            shares.groups[frozenset(group.names())] * rate for group, rate in tree.rates()
        )
        return (each / float(step) + shares.kept) / self.now_work.exchanges

    def _shares(self, shape: LevelGroup, way: AlgorithmVariant) -> _Shares:
        step = 2 * self.grain  # halves of it fit too

        def exchanges(tree: LevelGroup, times: int = 1) -> float:
            return self._work(self.build_candidate(self.composite, tree, times * step, way)).exchanges

        once = exchanges(shape)
        moving = 2.0 * (once - exchanges(shape, 2))
        groups: dict[frozenset[str], float] = {}
        for group in reversed(list(shape.groups())):  # those inside first
            name = frozenset(group.names())
            more = exchanges(shape.with_ratios({name: 2})) - once
            groups[name] = more - sum(share for inner, share in groups.items() if inner < name)
        length = float(step)
        scaled = {name: share * length for name, share in groups.items()}
        return _Shares((moving - sum(groups.values())) * length, scaled, once - moving)


@dataclass(frozen=True)
class _Shares:
    """Exchanges: per step of the outermost level, per step of each group, and per second of what stays."""

    outermost: float
    groups: Mapping[frozenset[str], float]
    kept: float
