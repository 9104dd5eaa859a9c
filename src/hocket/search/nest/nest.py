"""A hierarchy for a flat scenario: which simulators should exchange often, how often, and whether that pays.

In:  a flat Composite (or an Experiment, or a file), and a tolerance or so much work
Out: a Nesting: what was compared at equal work, the verdict in words, and the composite that was chosen
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hocket.analysis.bond_energy import balanced_leaves
from hocket.errors import Fault, ScenarioError
from hocket.files.experiments import ExperimentLike, as_experiment
from hocket.files.plotting import BLUE, GREY, RED, import_extra, new_figure, save_figure, set_axes_title
from hocket.model.arguments import expect_call, expect_flags, is_positive
from hocket.model.clock import Duration, format_duration
from hocket.model.composite import Composite, levels
from hocket.model.experiment import Experiment
from hocket.model.html import VerdictView
from hocket.model.scenario import Connections
from hocket.search.nest.candidates import Candidate, CandidateJudge
from hocket.search.nest.clusters import Merge, dendrogram, natural_clusters, partition_tree
from hocket.search.nest.connection_strengths import Strengths
from hocket.search.nest.hierarchy import (
    AS_IT_IS,
    LevelGroup,
    explicit_orchestrator,
    explicit_variants,
    iterative_variants,
)
from hocket.search.nest.step_search import NEAR, WAYS, WORTH, Comparison, trees_of
from hocket.simulators.constraint import Coupler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RUN = 250
"""Steps of a run whose end is not known."""
LONGEST = 10_000
"""Steps of a run that are judged."""
FEW = 3
"""Simulators up to which clusters need no words of their own."""
MOST_NAMED = 40
"""Simulators up to which all are named."""

CountCallback: TypeAlias = Callable[[int, int], None]


def nest(
    what: ExperimentLike,
    tolerance: float | None = None,
    *,
    connections: Connections = (),
    stop: Duration | None = None,
    step: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    work: float = 1.0,
    keep: bool = False,
    progress: CountCallback | None = None,
) -> Nesting:
    """Return a hierarchy for a flat scenario, if one is better than flat at equal work; nothing is run.

    With a tolerance (of the largest error, relative to the values) the fewest exchanges that keep it are
    looked for, without one the least error for `work` times the exchanges of now. `keep` leaves the
    algorithm as it is. `progress` is called with how many couplings were read, and of how many about.
    """
    experiment = as_experiment(what, connections, stop=stop, step=step, parameters=parameters, done="nested")
    expect_call("progress", progress, "two numbers: done, of about")
    expect_flags(keep=keep)
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


@dataclass(frozen=True, eq=False)
class Nesting(VerdictView):
    """What was found. Errors are parts of the largest value of the worst port, over the run."""

    now: Candidate
    equal: Candidate | None
    """Flat with the algorithm of the best hierarchy, and at least its exchanges."""
    flats: tuple[Candidate, ...]
    """The best flat ones, with each algorithm that was tried."""
    proposals: tuple[Candidate, ...]
    """Hierarchies, the best first."""
    chosen: Candidate | None
    """A hierarchy, or flat in another way where no hierarchy helps; None: as it is."""
    composite: Composite | None
    """The chosen one, ready to run."""
    strengths: Strengths
    merges: tuple[Merge, ...]
    """How clusters grow together, the strongest connection first."""
    tried: tuple[Candidate, ...]
    stop: float
    tolerance: float | None = None
    floor: float | None = None
    """The least error that shorter steps reach, where the tolerance was not met."""
    notes: tuple[str, ...] = ()
    _make: Callable[[Candidate], Composite] | None = field(default=None, repr=False)

    def composite_of(self, candidate: Candidate) -> Composite:
        """Return any of the candidates, ready to run."""
        assert self._make is not None
        return self._make(candidate)

    @property
    def clusters(self) -> tuple[tuple[str, ...], ...]:
        """The strongest clusters: those before the widest gap between the strengths that join them."""
        return natural_clusters(tuple(self.now.tree.names()), self.merges)

    @property
    def natural_tree(self) -> LevelGroup:
        """The clusters as a tree."""
        return partition_tree(tuple(self.now.tree.names()), self.clusters)

    @property
    def is_nested(self) -> bool:
        """Whether a hierarchy was chosen."""
        return self.chosen is not None and not self.chosen.tree.flat

    def rows(self) -> list[dict[str, object]]:
        """Return the comparison: flat now, flat at equal work, what was proposed, what was chosen."""
        listed: list[tuple[str, Candidate | None]] = [("flat, now", self.now)]
        listed += [("flat, equal work", self.equal)]
        listed += [("flat, another way", each) for each in self.flats[:3]]
        listed += [("nested", each) for each in self.proposals]
        seen: set[Candidate] = set()
        rows: list[dict[str, object]] = []
        for what, each in listed:
            if each is None or each in seen:
                continue
            seen.add(each)
            rows.append({"": f"{what}, chosen" if each == self.chosen else what, **each.row()})
        return rows

    def verdict(self) -> list[str]:
        """Return the answer in plain words, the most important first."""
        chosen = self.chosen
        if chosen is not None and self.is_nested:
            flat = f", where flat has {_result(self.equal)}" if self.equal is not None else ""
            lines = [f"nesting helps: {_candidate_text(chosen)}: {_result(chosen)}{flat}"]
        else:
            lines = [_why_not_nested(self)]
            lines.append(
                f"what helps: {_candidate_text(chosen)}: {_result(chosen)}"
                if chosen is not None
                else "nothing that was tried is better than the scenario as it is"
            )
        lines += [f"as it is: {_result(self.now)}", *_tolerance(self), _strongest(self)]
        if len(list(self.now.tree.names())) > FEW and max(map(len, self.clusters)) > 1:
            lines.append(f"strongest clusters: {self.natural_tree.words}")
        return [*lines, *self.notes]

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the strengths as a matrix with a frame around each cluster, and error over exchanges."""
        figure, (matrix, plane) = new_figure(11, 5, 2)
        _matrix(self, matrix)
        _plane(self, plane)
        return save_figure(figure, path)


def _matrix(found: Nesting, axes: Axes) -> None:
    tree = found.chosen.tree if found.chosen is not None and found.is_nested else found.natural_tree
    names = list(tree.names())
    place = {name: number for number, name in enumerate(names)}
    sizes = np.zeros((len(names), len(names)))
    for (source, target), strength in found.strengths.pairs().items():
        sizes[place[target], place[source]] = strength
    shown = np.ma.masked_equal(sizes, 0.0)
    top = float(sizes.max(initial=0.0)) or 1.0
    low = max(float(shown.min()) if shown.count() else top, 1e-4 * top)
    norm = import_extra("matplotlib.colors", "plot").LogNorm(0.3 * low, top)  # the weakest is not white
    colours = axes.imshow(shown, cmap="Blues", norm=norm, aspect="equal")
    figure = axes.get_figure()
    assert figure is not None
    figure.colorbar(colours, ax=axes, label="error it brings, as a part of the value", shrink=0.8)
    chosen = found.is_nested
    for group in tree.groups():
        numbers = [place[name] for name in group.names()]
        first, side = min(numbers), max(numbers) - min(numbers) + 1
        axes.add_patch(
            import_extra("matplotlib.patches", "plot").Rectangle(
                (first - 0.5, first - 0.5), side, side, fill=False, linewidth=1.8,
                edgecolor=RED if chosen else GREY, linestyle="-" if chosen else "--", clip_on=False,
            )
        )  # fmt: skip
    if len(names) <= MOST_NAMED:
        size = "small" if len(names) <= 12 else "xx-small"
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
        axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.set_xlabel("drives")
    axes.set_ylabel("is driven")
    set_axes_title(axes, "strengths, framed: levels" if chosen else "strengths, framed: clusters, no levels")


def _plane(found: Nesting, axes: Axes) -> None:
    finite = [each for each in found.tried if 0.0 < each.error < 1e3]
    kinds = (
        ("flat", GREY, "o", [each for each in finite if each.tree.flat]),
        ("nested", BLUE, "s", [each for each in finite if not each.tree.flat]),
    )
    for label, colour, mark, some in kinds:
        for stable in (True, False):
            chosen = [each for each in some if each.stable is stable]
            if chosen:
                fill = colour if stable else "none"
                words = label if stable else f"{label}, unstable"
                x, y = _points(chosen)
                axes.plot(
                    x, y, mark, color=colour, markerfacecolor=fill, markersize=5, alpha=0.7, label=words
                )
    for each, words, mark in ((found.now, "now", "D"), (found.chosen, "chosen", "*")):
        if each is not None and each in finite:
            size = 8 if mark == "D" else 15
            axes.plot(*_points([each]), mark, color=RED, markersize=size, label=words, linestyle="none")
    if found.tolerance is not None:
        axes.axhline(found.tolerance, color=GREY, linewidth=0.8, linestyle="--", label="tolerance")
    spread = [each.work.exchanges for each in finite]
    if max(spread, default=1.0) > 10.0 * min(spread, default=1.0):
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("exchanges per second")
    axes.set_ylabel("largest error, as a part of the value")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    set_axes_title(axes, "what was tried")


def _points(some: list[Candidate]) -> tuple[list[float], list[float]]:
    return [each.work.exchanges for each in some], [each.error for each in some]


def _why_not_nested(found: Nesting) -> str:
    """Return why no hierarchy is proposed: the best of them, and flat at equal work."""
    if not found.proposals:
        return "nesting does not help: no steps fit the levels that strengths suggest"
    best, flat = found.proposals[0], found.equal
    versus = f", and flat has {_result(flat)}" if flat is not None else ""
    less = flat is not None and best.stable and (not flat.stable or best.error < WORTH * flat.error)
    word = "nesting helps less than another algorithm" if less else "nesting does not help"
    return f"{word}: {_candidate_text(best)}: {_result(best)}{versus}"


def _candidate_text(each: Candidate) -> str:
    way = "" if each.way == AS_IT_IS else f", {each.way.words}"
    steps = ", ".join(dict.fromkeys(each.steps.split(", ")))  # each once: of many levels most are alike
    return f"{each.tree.words} at {steps}{way}"


def _result(each: Candidate) -> str:
    error = f"an error of {each.error:.2g}" if math.isfinite(each.error) and each.error < 1e3 else "no answer"
    return f"{error}{'' if each.stable else ', unstable,'} for {each.work.exchanges:.4g} exchanges per second"


def _tolerance(found: Nesting) -> list[str]:
    if found.tolerance is None:
        return []
    best = found.chosen or found.now
    if best.stable and best.error <= found.tolerance:
        return [f"the tolerance {found.tolerance:g} is kept with {best.times:.3g} times the exchanges of now"]
    reached = ""
    if found.floor is not None:
        reached = (
            f": with the shortest steps an error of {found.floor:.2g} stays, whatever the coupling does; "
            f"what comes within {NEAR - 1.0:.0%} of that was looked for instead"
        )
    return [f"nothing that was tried keeps the tolerance {found.tolerance:g}{reached}"]


def _strongest(found: Nesting) -> str:
    """Return which connections matter most, and which simulators they connect."""
    pairs: dict[frozenset[str], float] = {}
    for each in found.strengths.connections:
        key = frozenset(each.ends)
        pairs[key] = pairs.get(key, 0.0) + each.error
    whole = sum(pairs.values()) or 1.0
    ranked = sorted(pairs.items(), key=lambda item: -item[1])[:3]
    order = {name: place for place, name in enumerate(found.now.tree.names())}
    shares = [
        f"{share / whole:.0%} between " + " and ".join(f"`{n}`" for n in sorted(pair, key=order.__getitem__))
        for pair, share in ranked
    ]
    return f"what the connections do wrong: {', '.join(shares)}"
