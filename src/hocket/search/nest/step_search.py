"""Flat and nested, side by side: the best of each kind, and which one is chosen.

In:  a CandidateJudge, the trees that were suggested, a tolerance or so much work
Out: flat candidates and hierarchies, the best first; the choice among them; the composite with its reasons
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from hocket.model.clock import format_duration
from hocket.model.composite import Composite
from hocket.search.nest.candidates import RATIOS, Candidate, CandidateJudge
from hocket.search.nest.clusters import Promise, promising_trees
from hocket.search.nest.hierarchy import AS_IT_IS, AlgorithmVariant, LevelGroup

SAME = 1.0 + 1e-9
INNER = RATIOS[1:]
"""Ratios of levels inside: one with a ratio of 1 is none of its own."""
USED = 0.75
"""Of the work that is allowed: steps that use less are looked at only where there are no others."""
SEVERAL = 4
"""Levels up to which the ratio of each is tried by itself."""
PATIENCE = 2
"""Ratios without progress after which none is looked for beyond them."""


class _Option(NamedTuple):
    ratio: int
    tree: LevelGroup
    step: Fraction
    used: float


def rank(each: Candidate) -> tuple[bool, float, float]:
    """Return what candidates of equal work are ordered by."""
    error = each.error if math.isfinite(each.error) else math.inf
    return (not each.stable, float(f"{error:.6g}"), each.work.steps)


def _scale_ratios(tree: LevelGroup, ratio: int) -> LevelGroup:
    """Return the tree with its largest ratio as given, the others in proportion."""
    ratios = tree.ratios()
    top = max(ratios.values())
    near = {
        group: min(INNER, key=lambda known: abs(math.log(known / max(2.0, own * ratio / top))))
        for group, own in ratios.items()
    }
    return tree.with_ratios(near)


WORTH = 0.9
"""Of the error of flat at equal work: a level must bring it below this, or it is not worth its trouble."""
TREES = 4
"""Hierarchies that are read, the most promising ones."""
SHOWN = 2
"""Of those that promise nothing: so many are read too, to be sure."""
SLIGHT = 0.98
"""A promise below this part of what flat costs is one."""
WAYS = 2
"""Other algorithms that hierarchies are tried with: those that are best for the flat scenario."""
MUCH = 16.0
"""Times the exchanges of now that a hierarchy may take where no flat one keeps a tolerance."""
LESS = (0.5, 0.7, 0.9)
"""Of the exchanges of a hierarchy that keeps a tolerance: so many are tried next, in large strides first."""
NEAR = 1.25
"""Times the least error that can be had: what is looked for where a tolerance cannot be kept."""


def trees_of(judge: CandidateJudge) -> tuple[LevelGroup, ...]:
    """Return the hierarchies to read: those that promise something, and a few to be sure."""
    found: list[Promise] = promising_trees(tuple(judge.flat.names()), judge.strengths)
    good = [each.tree for each in found if each.part < SLIGHT][: SHOWN if judge.large else TREES]
    return tuple(dict.fromkeys([*good, *(each.tree for each in found[:SHOWN])]))


@dataclass(frozen=True, eq=False)
class Comparison:
    """What is looked for, and where."""

    judge: CandidateJudge
    trees: tuple[LevelGroup, ...]
    tolerance: float | None
    work: float

    def compare(
        self, tried: list[AlgorithmVariant], more: list[AlgorithmVariant]
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return flat candidates and hierarchies; `more` ways are tried where none is good enough."""
        flats, proposals = self._best_of_each(tried)
        if more and not self.any_meets(flats, proposals):
            flats = sorted([*flats, *self._best_of_each(more, flat_only=True)[0]], key=self.rank)
        return flats, proposals

    def _best_of_each(
        self, all_ways: list[AlgorithmVariant], flat_only: bool = False
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return flat candidates and hierarchies, each the best of its kind, the best first."""
        flat = self.judge.flat
        flats = [each for way in all_ways if (each := self._best(flat, way, math.inf)) is not None]
        flats.sort(key=self.rank)
        most = flats[0].times if flats and self.meets(flats[0]) else MUCH
        good = [each.way for each in flats if each.way != AS_IT_IS][: 1 if self.judge.large else WAYS]
        proposals: list[Candidate] = []
        for tree in () if flat_only else self.trees:
            tried = [each for way in (AS_IT_IS, *good) if (each := self._best(tree, way, most)) is not None]
            proposals += sorted(tried, key=self.rank)[:1]
            proposals += [each for each in tried if each.way == AS_IT_IS and each not in proposals]
        return flats, sorted(proposals, key=self.rank)

    def rank(self, each: Candidate) -> tuple[float, ...]:
        """Return what candidates are ordered by: the fewest exchanges of those that keep the tolerance."""
        if self.tolerance is None:
            return (0.0, *rank(each))
        return (0.0, round(each.times, 6), each.error) if self.meets(each) else (1.0, *rank(each))

    def meets(self, each: Candidate) -> bool:
        """Return whether a candidate keeps the tolerance."""
        return each.stable and (self.tolerance is None or each.error <= self.tolerance)

    def any_meets(self, flats: list[Candidate], proposals: list[Candidate]) -> bool:
        """Return whether there is something that is stable and keeps the tolerance."""
        return any(map(self.meets, [*flats, *proposals]))

    def _best(self, tree: LevelGroup, way: AlgorithmVariant, most: float) -> Candidate | None:
        """Return the best steps: for the work that is allowed, or with less than `most` for the tolerance."""
        if self.tolerance is None:
            return self.best_at_work(tree, way, self.work)
        if tree.flat:
            return self.cheapest_for_error(tree, way, self.tolerance) or self.best_at_work(
                tree, way, self.work
            )
        best = self.best_at_work(tree, way, most / SAME)
        for part in LESS:
            while best is not None and self.meets(best):
                fewer = self.best_at_work(tree, way, part * best.times)
                if fewer is None or not self.meets(fewer):
                    break
                best = fewer
        return best

    def choice(
        self, flats: list[Candidate], proposals: list[Candidate]
    ) -> tuple[Candidate | None, Candidate | None]:
        """Return what is chosen, and the flat one at equal work that the best hierarchy had to beat.

        What is looked at closely is judged with the start it will have, and takes its place in the lists.
        """
        now, equal = self.judge.now, None
        if flats:
            flats[0] = self.judge.judge_with_start(flats[0]) or flats[0]
        best = flats[0] if flats else now
        for number, quick in enumerate(proposals):
            each = proposals[number] = self.judge.judge_with_start(quick) or quick
            same = self._flat_at(each.way, each.times)
            equal = equal or same
            others = (self._flat_at(flat.way, each.times) for flat in flats[: WAYS + 1])
            rivals = [flat for flat in (same, *others) if flat is not None]
            if self._beats(each, rivals) and self.rank(each) < self.rank(best):
                return each, same
        return (best if self._helps(best, now) else None), equal

    def _helps(self, best: Candidate, now: Candidate) -> bool:
        """Return whether a flat one in another way is better than what there is."""
        if self.tolerance is not None and self.meets(best):
            return not self.meets(now) or best.times < WORTH * now.times
        return (best.stable, -best.error) > (now.stable, -WORTH * now.error)

    def _flat_at(self, way: AlgorithmVariant, times: float) -> Candidate | None:
        quick = self.flat_at_work(way, times)
        return None if quick is None else self.judge.judge_with_start(quick)

    def _beats(self, each: Candidate, rivals: list[Candidate]) -> bool:
        """Return whether a hierarchy is better than every flat one at equal work."""
        worse = [not flat.stable or each.error < WORTH * flat.error for flat in rivals]
        return each.stable and bool(worse) and all(worse)

    def best_at_work(self, tree: LevelGroup, way: AlgorithmVariant, times: float) -> Candidate | None:
        """Return the best steps for at most so many times the exchanges of now; ratios are tried around."""
        if tree.flat:
            step = self._shortest(tree, way, times)
            return None if step is None else self.judge(tree, step[0], way)
        options = self._options(tree, way, times)
        if not options:
            return None
        suggested = max(2, *tree.ratios().values())
        start = min(range(len(options)), key=lambda n: abs(math.log(options[n].ratio / suggested)))
        best = self._climb(options[start:], way, None)
        best = self._climb(options[start - 1 :: -1] if start else [], way, best)
        several = 1 < len(tree.ratios()) <= SEVERAL and not self.judge.large
        return self._refine_ratios(best, way, times) if best and several else best

    def flat_at_work(self, way: AlgorithmVariant, times: float) -> Candidate | None:
        """Return the flat scenario with at least so many times the exchanges of now, as few as there are."""
        flat = self.judge.flat
        for step in self.judge.outer_steps(flat, whole=False):
            cost = self.judge.cost(flat, way, step)
            if cost is not None and cost * SAME >= times:
                return self.judge(flat, step, way)
        return None

    def cheapest_for_error(
        self, tree: LevelGroup, way: AlgorithmVariant, tolerance: float
    ) -> Candidate | None:
        """Return the tree at its longest steps that meet a tolerance, and are stable; its ratios stay."""
        steps = self.judge.outer_steps(tree)
        low, high, best = 0, len(steps) - 1, None
        while low <= high:
            middle = (low + high) // 2
            found = self.judge(tree, steps[middle], way)
            if found is not None and found.stable and found.error <= tolerance:
                best, high = found, middle - 1
            else:
                low = middle + 1
        return best

    def _options(self, tree: LevelGroup, way: AlgorithmVariant, times: float) -> list[_Option]:
        """Return ratios with the shortest steps they may have, those that waste work left out."""
        found: list[_Option] = []
        for ratio in INNER:
            scaled = _scale_ratios(tree, ratio)
            step = self._shortest(scaled, way, times)
            if step is not None:
                found.append(_Option(ratio, scaled, *step))
        return [option for option in found if option.used >= USED] or found

    def _climb(
        self, options: list[_Option], way: AlgorithmVariant, best: Candidate | None
    ) -> Candidate | None:
        """Return the best of options in a row, looked at while they get better."""
        left = PATIENCE
        for option in options:
            found = self.judge(option.tree, option.step, way)
            if found is not None and (best is None or rank(found) < rank(best)):
                best, left = found, PATIENCE
            else:
                left -= 1
            if not left:
                break
        return best

    def _refine_ratios(self, best: Candidate, way: AlgorithmVariant, times: float) -> Candidate:
        """Return a candidate with the ratio of one level after the other changed where that helps."""
        for group in best.tree.ratios():
            for change in (1, -1):
                ratios = best.tree.ratios()
                place = INNER.index(ratios[group]) + change
                if not 0 <= place < len(INNER):
                    continue
                other = best.tree.with_ratios({**ratios, group: INNER[place]})
                step = self._shortest(other, way, times)
                found = self.judge(other, step[0], way) if step else None
                if found is not None and rank(found) < rank(best):
                    best = found
        return best

    def _shortest(
        self, tree: LevelGroup, way: AlgorithmVariant, times: float
    ) -> tuple[Fraction, float] | None:
        """Return the shortest step that costs no more than this, and how much of it is used."""
        for step in reversed(self.judge.outer_steps(tree)):
            cost = self.judge.cost(tree, way, step)
            if cost is None:
                return None
            if cost <= times * SAME:
                return step, cost / times
        return None

    def floor(self) -> float | None:
        """Return the least error that the shortest steps reach: what the simulators do by themselves."""
        flat = self.judge.flat
        step = min(self.judge.outer_steps(flat), default=self.judge.composite.step)
        smooth = [each.way for each in self.judge.known.values() if each and each.way.extrapolation]
        found = [self.judge(flat, step, way) for way in dict.fromkeys([AS_IT_IS, *smooth[:1]])]
        known = [
            each.error for each in (*found, *self.judge.known.values()) if each is not None and each.stable
        ]
        return min(known, default=None)

    def composite(self, chosen: Candidate) -> Composite:
        """Return what was chosen, with the reason for each level."""
        whole = sum(each.error for each in self.judge.strengths.connections) or 1.0
        reasons: dict[LevelGroup, str] = {}
        for group, rate in chosen.tree.rates():
            inside = set(group.names())
            own = [each for each in self.judge.strengths.connections if inside.issuperset(each.ends)]
            share = sum(each.error for each in own) / whole
            reasons[group] = (
                f"{share:.0%} of what the connections do wrong is between them: they exchange every "
                f"{format_duration(chosen.step / rate)}, {group.ratio} times per step around them"
            )
        return self.judge.build_candidate(self.judge.composite, chosen.tree, chosen.step, chosen.way, reasons)
