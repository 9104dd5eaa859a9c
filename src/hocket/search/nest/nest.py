"""A hierarchy for a flat scenario: which simulators should exchange often, how often, and whether that pays.

In:  a flat Composite (or an Experiment, or a file), and a tolerance or so much work
Out: a Nesting: what was compared at equal work, the verdict in words, and the composite that was chosen
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from hocket.analysis.bond_energy import balanced_leaves
from hocket.errors import Fault, ScenarioError
from hocket.files.experiments import ExperimentLike, as_experiment
from hocket.model.arguments import expect_call, is_positive
from hocket.model.clock import Duration, format_duration
from hocket.model.composite import Composite, levels
from hocket.model.experiment import Experiment
from hocket.search.nest.candidates import CandidateJudge
from hocket.search.nest.clusters import dendrogram
from hocket.search.nest.hierarchy import (
    AS_IT_IS,
    LevelGroup,
    explicit_orchestrator,
    explicit_variants,
    iterative_variants,
)
from hocket.search.nest.nesting_summary import Nesting
from hocket.search.nest.step_search import NEAR, WAYS, Comparison, trees_of
from hocket.simulators.constraint import Coupler

RUN = 250
"""Steps of a run whose end is not known."""
LONGEST = 10_000
"""Steps of a run that are judged."""

CountCallback: TypeAlias = Callable[[int, int], None]


def nest(
    what: ExperimentLike,
    tolerance: float | None = None,
    *,
    stop: Duration | None = None,
    work: float = 1.0,
    keep: bool = False,
    progress: CountCallback | None = None,
) -> Nesting:
    """Return a hierarchy for a flat scenario, if one is better than flat at equal work; nothing is run.

    With a tolerance (of the largest error, relative to the values) the fewest exchanges that keep it are
    looked for, without one the least error for `work` times the exchanges of now. `keep` leaves the
    algorithm as it is. `progress` is called with how many couplings were read, and of how many about.
    """
    experiment = as_experiment(what, stop=stop, done="nested")
    expect_call("progress", progress, "two numbers: done, of about")
    _check_nestable(experiment.composite, tolerance, work)
    span, notes = _span(experiment)
    judge = CandidateJudge(experiment.composite, span, experiment.start)
    if not judge.strengths.connections:
        raise ScenarioError("nothing is connected, so there is nothing to exchange more often", "connections")
    trees = trees_of(judge)
    if progress:
        judge.progress = _progress_reporter(progress, trees, keep)
    found = Comparison(judge, trees, tolerance, work)
    tried = [AS_IT_IS, *(() if keep else explicit_variants(experiment.composite))]
    more = [] if keep else list(iterative_variants(experiment.composite))
    flats, proposals = found.compare(tried, more)
    floor = None
    if tolerance is not None and not found.any_meets(flats, proposals):
        floor = found.floor()
        found = replace(found, tolerance=NEAR * floor if floor is not None else None)
        flats, proposals = found.compare(tried, more)
    chosen, equal = found.choice(flats, proposals)
    made = found.composite(chosen) if chosen else None
    merges = dendrogram(tuple(judge.flat.names()), judge.strengths.pairs())
    return Nesting(
        judge.now, equal, tuple(flats), tuple(proposals), chosen, made, judge.strengths, tuple(merges),
        tuple(each for each in judge.known.values() if each is not None), float(span), tolerance,
        floor, notes, found.composite,
    )  # fmt: skip


def _progress_reporter(
    progress: CountCallback, trees: tuple[LevelGroup, ...], keep: bool
) -> Callable[[int], None]:
    several = 1 if keep else 1 + WAYS
    expected = 10 + 10 * several * len(trees)
    return lambda done: progress(done, max(expected, done))


def _check_nestable(composite: Composite, tolerance: float | None, work: float) -> None:
    """Refuse what cannot be nested, or not be judged, with every reason."""
    scenario, faults = composite.scenario, []
    if tolerance is not None and not is_positive(tolerance):
        expected = "a number above 0, such as 1e-3: a part of the largest value"
        faults.append(Fault(f"a tolerance of {tolerance!r} cannot be kept", "tolerance", expected))
    if not is_positive(work):
        expected = "a multiple of the exchanges of now, such as 1.5"
        faults.append(Fault(f"the work is {work!r}", "work", expected))
    if (count := len(scenario.models)) < 3:
        what = (
            f"levels inside need three simulators at least, and there {'is' if count == 1 else 'are'} {count}"
        )
        hint = "`hocket check` says which algorithm and step would be better"
        faults.append(Fault(what, "models", "", hint))
    faults += _equations(composite)
    if scenario.hosts:
        what = "the scenario has hosts, and they say which levels there are"
        hint = "leave `hosts` out to look for levels; `hocket compile` makes a level of each host"
        faults.append(Fault(what, "hosts", "one machine", hint))
    if not faults:  # what cannot be planned has other faults to tell
        hint = "bonds without `balance` while a hierarchy is looked for"
        for path in balanced_leaves(composite):
            what = f"`{path}` cannot be judged: its bonds are balanced, by a law that is not linear"
            faults.append(Fault(what, path, "", hint))
    if faults:
        raise ScenarioError(faults)
    explicit_orchestrator(composite)


def _equations(composite: Composite) -> Iterator[Fault]:
    """Yield equations between ports, as they were written or compiled: no connections to weigh against."""
    for path, each in levels(composite):
        models = each.scenario.models.items()
        found = [f"constraints.{name}" for name in each.scenario.constraints]
        found += [f"models.{name}" for name, model in models if isinstance(model, Coupler)]
        if found:
            what = "inputs that equations determine have no exact solution to judge levels by"
            hint = "`hocket compile` makes a level of those they couple; `hocket check RUN` judges a run"
            yield Fault(what, f"{path}{found[0]}", "connections only", hint)


def _span(experiment: Experiment) -> tuple[Fraction, tuple[str, ...]]:
    """Return how much of the run is judged, and what is to be said of that."""
    step = experiment.composite.step
    if experiment.stop is None:
        return RUN * step, (f"without a stop, a run of {format_duration(RUN * step)} is judged",)
    span = experiment.stop - experiment.start
    if span < step:
        when = format_duration(experiment.stop)
        raise ScenarioError(f"there is no step before the stop at {when}", "stop")
    if span > LONGEST * step:
        shown = LONGEST * step
        return shown, (f"of {format_duration(span)}, the first {format_duration(shown)} are judged",)
    return span, ()
