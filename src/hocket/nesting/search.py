"""The best steps of a hierarchy: with so much work, or for a tolerance.

In:  a CandidateJudge, a tree, a way
Out: the Candidate with the least error at that work, or with the least work at that error
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from hocket.nesting.hierarchy import LevelGroup
from hocket.nesting.judging import Candidate, CandidateJudge
from hocket.nesting.steps import RATIOS
from hocket.nesting.ways import AlgorithmVariant

SAME = 1.0 + 1e-9
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


@dataclass(frozen=True, eq=False)
class StepSearch:
    """Finds steps with the help of a judge."""

    judge: CandidateJudge

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
        for step in self.judge.steps.outer_steps(flat, whole=False):
            cost = self.judge.cost(flat, way, step)
            if cost is not None and cost * SAME >= times:
                return self.judge(flat, step, way)
        return None

    def cheapest_for_error(
        self, tree: LevelGroup, way: AlgorithmVariant, tolerance: float
    ) -> Candidate | None:
        """Return the tree at its longest steps that meet a tolerance, and are stable; its ratios stay."""
        steps = self.judge.steps.outer_steps(tree)
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
        for ratio in RATIOS[1:]:
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
            if found is not None and (best is None or is_better(found, best)):
                best, left = found, PATIENCE
            else:
                left -= 1
            if not left:
                break
        return best

    def _refine_ratios(self, best: Candidate, way: AlgorithmVariant, times: float) -> Candidate:
        """Return a candidate with the ratio of one level after the other changed where that helps."""
        for group in best.tree.ratios():
            for up in (True, False):
                ratios = best.tree.ratios()
                other = best.tree.with_ratios({**ratios, group: _next(ratios[group], up)})
                step = self._shortest(other, way, times)
                found = self.judge(other, step[0], way) if step else None
                if found is not None and is_better(found, best):
                    best = found
        return best

    def _shortest(
        self, tree: LevelGroup, way: AlgorithmVariant, times: float
    ) -> tuple[Fraction, float] | None:
        """Return the shortest step that costs no more than this, and how much of it is used."""
        for step in reversed(self.judge.steps.outer_steps(tree)):
            cost = self.judge.cost(tree, way, step)
            if cost is None:
                return None
            if cost <= times * SAME:
                return step, cost / times
        return None


def is_better(one: Candidate, other: Candidate) -> bool:
    """Return whether a candidate is stable or more accurate where the other is not; or else cheaper."""
    return rank(one) < rank(other)


def rank(each: Candidate) -> tuple[bool, float, float]:
    """Return what candidates of equal work are ordered by."""
    error = each.error if math.isfinite(each.error) else math.inf
    return (not each.stable, float(f"{error:.6g}"), each.work.steps)


def _scale_ratios(tree: LevelGroup, ratio: int) -> LevelGroup:
    """Return the tree with its largest ratio as given, the others in proportion."""
    ratios = tree.ratios()
    top = max(ratios.values())
    near = {group: _nearest(max(2.0, own * ratio / top)) for group, own in ratios.items()}
    return tree.with_ratios(near)


def _nearest(ratio: float) -> int:
    return min(RATIOS[1:], key=lambda known: abs(math.log(known / ratio)))


def _next(ratio: int, up: bool) -> int:
    """Return the next ratio; 1 is no level of its own."""
    return next(_after(ratio, up), ratio)


def _after(ratio: int, up: bool) -> Iterator[int]:
    known = RATIOS[1:] if up else RATIOS[:0:-1]
    return (each for each in known if (each > ratio if up else each < ratio))
