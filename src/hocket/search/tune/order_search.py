"""The search where orders of many models are to be chosen: by moves that orders have.

In:  a Space with an order that is not listed, and what judges points
Out: the points that were judged

An evolution: children by insertion, exchange, reversal and order crossover (Davis 1985), survival by
dominance and crowding (Deb et al. 2002). The numbers of orders say nothing of which are alike, so that steps
along them, as the genetic search makes them, find little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hocket.model.protocols import Array
from hocket.search.tune.genetic import Ask
from hocket.search.tune.numbered_orders import NumberedOrders
from hocket.search.tune.objectives import Objective
from hocket.search.tune.point_judge import Numbers
from hocket.search.tune.space import Point, Space

PARENTS = 12
"""Points that go on from one generation to the next; with several objectives three times as many."""
CHILDREN = 12
"""Points that a generation judges."""
TRIES = 40
"""How often a child that is known already is made anew."""


def has_numbered_orders(space: Space) -> bool:
    """Return whether an order of a space is not listed: there are too many."""
    return any(isinstance(each.values, NumberedOrders) for each in space.variables)


def search_orders(
    space: Space,
    wanted: Sequence[Objective],
    goals: int,
    ask: Ask,
    budget: int,
    seed: int,
    start: Sequence[Point] = (),
) -> list[Point]:
    """Judge up to `budget` points, beginning with `start`; objectives and limits as in `genetic_search`."""
    evolution = Evolution(space, np.random.default_rng(seed))
    ranking = Ranking(tuple(wanted), goals)
    most = PARENTS if goals == 1 else 3 * PARENTS
    first = list(dict.fromkeys(space.canonical_point(point) for point in start))[: max(1, budget)]
    while len(first) < min(most + CHILDREN, budget) and (point := evolution.random_point(first)):
        first.append(point)
    judged = dict(zip(first, ask(first), strict=True))
    alive = ranking.survivors(judged, most)
    while len(judged) < budget:
        children = evolution.children(alive, judged, min(CHILDREN, budget - len(judged)))
        if not children:
            break
        judged.update(zip(children, ask(children), strict=True))
        alive = ranking.survivors({point: judged[point] for point in (*alive, *children)}, most)
    return list(judged)


@dataclass
class Evolution:
    """Makes new points of a space from known ones."""

    space: Space
    random: np.random.Generator

    def random_point(self, known: Sequence[Point]) -> Point | None:
        """Return a point that is not known; None: none was found."""
        for _ in range(TRIES):
            point = tuple(self._random_place(len(each.values)) for each in self.space.variables)
            point = self.space.canonical_point(point)
            if point not in known:
                return point
        return None

    def children(self, alive: Sequence[Point], judged: dict[Point, Numbers], count: int) -> list[Point]:
        """Return new points, each from one or two that are alive; the better ones are at the front."""
        found: dict[Point, None] = {}
        for _ in range(TRIES * count):
            if len(found) == count:
                break
            one, other = (alive[min(self.random.integers(len(alive), size=2))] for _ in range(2))
            child = self.space.canonical_point(self._change(one, other))
            if child not in judged:
                found[child] = None
        return list(found)

    def _random_place(self, size: int) -> int:
        return int(self.random.integers(size))

    def _change(self, one: Point, other: Point) -> Point:
        """Return a point with some of its values changed: at least one of them."""
        variables = self.space.variables
        chosen = int(self.random.integers(len(variables)))
        point = list(one)
        for number, variable in enumerate(variables):
            values = variable.values
            if isinstance(values, NumberedOrders):
                if number == chosen or self.random.random() < 0.7:
                    point[number] = values.number(self._move(values, one[number], other[number]))
            elif number == chosen or self.random.random() < 1.0 / len(variables):
                point[number] = self._near(one[number], other[number], len(values))
        return tuple(point)

    def _near(self, own: int, other: int, size: int) -> int:
        if self.random.random() < 0.3:
            return other
        far = max(1, round(abs(self.random.normal()) * max(1.0, size / 12.0)))
        return min(size - 1, max(0, own + (far if self.random.random() < 0.5 else -far)))

    def _move(self, values: NumberedOrders, own: int, other: int) -> tuple[str, ...]:
        """Return an order near another: one name elsewhere, two exchanged, a part reversed or taken over."""
        order = list(values[own])
        n = len(order)
        i, j = sorted(int(each) for each in self.random.choice(n, size=2, replace=False))
        kind = self.random.random()
        if kind < 0.5:
            here, there = (i, j) if self.random.random() < 0.5 else (j, i)
            order.insert(there, order.pop(here))
        elif kind < 0.75:
            order[i], order[j] = order[j], order[i]
        elif kind < 0.85 or own == other:
            order[i : j + 1] = reversed(order[i : j + 1])
        else:  # order crossover: a part of one, the rest in the order of the other
            part = order[i : j + 1]
            rest = [name for name in values[other] if name not in part]
            order = [*rest[:i], *part, *rest[i:]]
        return tuple(order)


@dataclass(frozen=True)
class Ranking:
    """Which points go on: within limits first, then those that few others dominate, far from each other."""

    wanted: tuple[Objective, ...]
    goals: int

    def survivors(self, judged: dict[Point, Numbers], count: int) -> list[Point]:
        """Return the best points, the very best first."""
        points = list(judged)
        costs = np.array([self._costs(judged[point]) for point in points], dtype=float)
        excess = np.array([self._excess(judged[point]) for point in points], dtype=float)
        if self.goals == 1:
            ranked = np.lexsort((costs[:, 0], excess))
            return [points[k] for k in ranked[:count]]
        fronts = _dominance_counts(costs, excess)
        ranked = np.lexsort((-_crowding(costs, fronts), fronts, excess))
        return [points[k] for k in ranked[:count]]

    def _costs(self, numbers: Numbers) -> list[float]:
        found = [
            objective.cost(value)
            for objective, value in zip(self.wanted[: self.goals], numbers[: self.goals], strict=True)
        ]
        return [cost if math.isfinite(cost) else math.inf for cost in found]

    def _excess(self, numbers: Numbers) -> float:
        total = 0.0
        for objective, value in zip(self.wanted, numbers, strict=True):
            if objective.limit is not None:
                over = objective.cost(value) - objective.cost(objective.limit)
                total += max(0.0, over) if not math.isnan(over) else math.inf
        return total


def _dominance_counts(costs: Array, excess: Array) -> Array:
    """Return by how many others each point is dominated, among those of equal excess."""
    no_worse = (costs[:, None, :] <= costs[None, :, :]).all(axis=2)
    better = (costs[:, None, :] < costs[None, :, :]).any(axis=2)
    comparable = excess[:, None] <= excess[None, :]
    return np.asarray((no_worse & better & comparable).sum(axis=0))


def _crowding(costs: Array, fronts: Array) -> Array:
    """Return how far from its neighbours each point is, in all objectives together; ends are at infinity."""
    far = np.zeros(len(costs))
    for front in np.unique(fronts):
        members = np.flatnonzero(fronts == front)
        for column in costs[members].T:
            ranked = members[np.argsort(column, kind="stable")]
            values = np.sort(column)
            span = values[-1] - values[0]
            far[ranked[0]] = far[ranked[-1]] = np.inf
            if np.isfinite(span) and span > 0.0 and len(ranked) > 2:
                far[ranked[1:-1]] += (values[2:] - values[:-2]) / span
    return far
