"""The answer of a search: the front, the coupling to choose, and why.

In:  points with their numbers, and the numbers of now
Out: rows, words, a picture; the composite of any point of the front; what its run shows
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hocket.engine.composite import Composite
from hocket.errors import ScenarioError
from hocket.model import Array
from hocket.tuning.front import hypervolume, knee, pareto_front
from hocket.tuning.judge import Numbers
from hocket.tuning.objectives import Objective, mixed_units_note
from hocket.tuning.settings import apply_choices
from hocket.tuning.space import Point, Space

SAME_RATIO = 1.02
"""Times that still count as the same."""


@dataclass(frozen=True, eq=False)
class TuningResult:
    """What was judged, and what is best of it."""

    composite: Composite
    space: Space
    wanted: tuple[Objective, ...]
    goals: int
    """How many of what is wanted are objectives; the others have limits only."""
    points: tuple[Point, ...]
    numbers: tuple[Numbers, ...]
    now: Numbers
    stop: Fraction | None
    """How long a run is."""
    start: Fraction = Fraction(0)

    @cached_property
    def costs(self) -> Array:
        """Per point its objectives, smaller is better; infinite beyond a limit."""
        found = np.full((len(self.points), self.goals), np.inf)
        for k, row in enumerate(self.numbers):
            if all(each.within(value) for each, value in zip(self.wanted, row, strict=True)):
                found[k] = [each.cost(v) for each, v in zip(self.wanted[: self.goals], row, strict=False)]
        return np.where(np.isnan(found), np.inf, found)

    @cached_property
    def front(self) -> tuple[int, ...]:
        """The numbers of the points on the Pareto front, in the order of the first objective."""
        return tuple(pareto_front(self.costs))

    @cached_property
    def knee(self) -> int:
        """Which row of the front to choose: the best of those no worse than now, else its knee."""
        if not self.front:
            raise ScenarioError(self._why_empty(), "limits", "", "wider limits, or more to choose from")
        costs = self.costs[list(self.front)]
        own = np.array(
            [each.cost(value) for each, value in zip(self.wanted, self.now, strict=True)][: self.goals]
        )
        better = [
            k
            for k, row in enumerate(costs)
            if np.isfinite(own).all() and (row <= own + 1e-12 * abs(own)).all()
        ]
        if better:
            return (
                better[knee(costs[better])] if self.goals > 2 else min(better, key=lambda k: tuple(costs[k]))
            )
        return knee(costs)

    def _why_empty(self) -> str:
        """Return why the front is empty: which limit nobody meets, and how near the best comes."""
        for number, each in enumerate(self.wanted):
            values = [row[number] for row in self.numbers if not math.isnan(row[number])]
            if each.limit is not None and not any(map(each.within, values)):
                best = f", the best is {min(values, key=each.cost):.6g}" if values else ""
                return f"no coupling has `{each.name}` within its limit of {each.limit:g}{best}"
        if any(each.limit is not None for each in self.wanted):
            return "no coupling is within all limits at once"
        return "no coupling has finite numbers for all objectives"

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about the numbers."""
        return tuple(filter(None, (mixed_units_note(each, self.composite) for each in self.wanted)))

    def volume(self, worst: Any) -> float:
        """Return the space that the front dominates, up to a worst point in costs."""
        return hypervolume(self.costs[list(self.front)], worst)

    def composite_of(self, row: int) -> Composite:
        """Return the coupling of a row of the front."""
        if not 0 <= row < len(self.front):
            what = f"the front has no row {row}"
            raise ScenarioError(what, "--apply", f"0 to {len(self.front) - 1}")
        return apply_choices(self.composite, self.space.values(self.points[self.front[row]]))

    def rows(self) -> list[dict[str, object]]:
        """Return the front: objectives, then choices."""
        return [
            {
                "row": row,
                **{each.name: value for each, value in zip(self.wanted, self.numbers[k], strict=True)},
                **self.space.words(self.points[k]),
            }
            for row, k in enumerate(self.front)
        ]

    def words(self, row: int | None = None) -> list[str]:
        """Return why to choose a row of the front: what is gained over now, and what changes for it."""
        chosen = self.knee if row is None else row
        numbers = self.numbers[self.front[chosen]]
        gains = [
            _compare_number(each, new, old)
            for each, new, old in zip(self.wanted, numbers, self.now, strict=True)
        ]
        changes = list(self._changes(self.points[self.front[chosen]]))
        told = "; ".join(gains)
        count = {0: "nothing changes", 1: "one choice changes"}.get(
            len(changes), f"{len(changes)} choices change"
        )
        return [
            f"row {chosen}: {told}",
            f"{count} against now:",
            *(f"  {each}" for each in changes),
            *self.notes,
        ]

    def _changes(self, point: Point) -> Iterator[str]:
        for variable, k in zip(self.space.variables, point, strict=True):
            value = {variable.name: variable.values[k]}
            try:
                same = apply_choices(self.composite, value) == self.composite
            except ScenarioError:
                same = False
            if not same:
                yield f"{variable.name} = {variable.words[k]}"

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the front; of a grid over two numbers, the objectives as maps beside it."""
        from hocket.tuning.drawing import draw

        return draw(self, path)


def _compare_number(objective: Objective, new: float, old: float) -> str:
    if not (math.isfinite(new) and math.isfinite(old)) or min(abs(new), abs(old)) == 0.0:
        return f"{objective.name} {new:.4g} (now {old:.4g})"
    times = abs(old / new) if not objective.larger else abs(new / old)
    if max(times, 1.0 / times) <= SAME_RATIO:
        return f"the same {objective.name}, {new:.4g}"
    better = "times better" if times > 1.0 else "times worse"
    return f"{objective.name} {new:.4g}, {max(times, 1.0 / times):.3g} {better} than now ({old:.4g})"
