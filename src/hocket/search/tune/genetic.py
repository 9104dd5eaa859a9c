"""The search: every point where there are few, a genetic algorithm where there are many.

In:  a Space, and what judges points
Out: the points that were judged

NSGA-II (Deb et al. 2002) for up to three objectives, NSGA-III (Deb & Jain 2014) for more, both from pymoo, on
the numbers of values: a search over steps between 1 ms and 10 s is one over the places of a list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import Any, TypeAlias

import numpy as np

from hocket.errors import ScenarioError
from hocket.model.protocols import Array
from hocket.search.tune.objectives import Objective
from hocket.search.tune.point_judge import Numbers
from hocket.search.tune.space import Point, Space

Ask: TypeAlias = Callable[[Sequence[Point]], list[Numbers]]
"""From points to their numbers; what is known is not judged again."""

FEW = 20_000
"""Points up to which all are judged unless another way is asked for."""
FEWER = 2_000
"""The same where judging takes longer: errors and runs."""
POPULATION = 30
CROWDED = 3
"""Objectives up to which NSGA-II found more: reference points leave a small population little room."""
ROUNDS = 12
"""Generations at the least, where the budget is small."""
WIDE = 60
"""The population where more than three things may be chosen."""
AWFUL = 1e30
"""In place of what is not a number."""


def all_points(space: Space) -> list[Point]:
    """Return the points that are different couplings."""
    return list(dict.fromkeys(space.canonical_point(point) for point in space.points()))


def genetic_search(
    space: Space,
    wanted: Sequence[Objective],
    goals: int,
    ask: Ask,
    budget: int,
    seed: int,
    start: Sequence[Point] = (),
) -> list[Point]:
    """Judge up to `budget` points, chosen by what those before them were worth; the first are `start`.

    The first `goals` of what is wanted are objectives, limits are conditions.
    """
    seen: dict[Point, None] = {}

    def evaluate(X: Array) -> tuple[Array, Array]:
        points = [space.canonical_point(tuple(int(k) for k in row)) for row in X]
        seen.update(dict.fromkeys(points))
        numbers = ask(points)
        costs = [
            [objective.cost(value) for objective, value in zip(wanted, row, strict=True)] for row in numbers
        ]
        limits = [
            [_limit_excess(objective, value) for objective, value in zip(wanted, row, strict=True)
             if objective.limit is not None]
            for row in numbers
        ]  # fmt: skip
        return np.nan_to_num(np.array(costs, float)[:, :goals], nan=AWFUL, posinf=AWFUL), np.array(
            limits, float
        )

    wide = POPULATION if len(space.variables) <= 3 else WIDE
    population = min(wide, max(budget // ROUNDS, 8), budget, space.size)
    first = np.array(_first_population(space, start, population, seed))
    limits = sum(each.limit is not None for each in wanted)
    _run_pymoo(space, evaluate, goals, limits, first, budget, seed)
    return list(seen)


def _first_population(space: Space, start: Sequence[Point], count: int, seed: int) -> list[Point]:
    """Return the first population: up to half of it as given, the others by chance."""
    random = np.random.default_rng(seed)
    found = dict.fromkeys(start[: max(1, count // 2)])
    for _ in range(50 * count):
        if len(found) >= count:
            break
        found[tuple(int(random.integers(len(each))) for each in space.variables)] = None
    return list(found)


def _limit_excess(objective: Objective, value: float) -> float:
    """Return how far beyond its limit a number is; at most zero: it is within."""
    assert objective.limit is not None
    over = objective.cost(value) - objective.cost(objective.limit)
    return AWFUL if np.isnan(over) else float(min(over, AWFUL))


def _run_pymoo(
    space: Space, judged: Any, goals: int, limits: int, first: Array, budget: int, seed: int
) -> None:
    try:
        from pymoo.algorithms.moo.nsga2 import NSGA2
        from pymoo.algorithms.moo.nsga3 import NSGA3
        from pymoo.core.problem import Problem
        from pymoo.operators.crossover.sbx import SBX
        from pymoo.operators.mutation.pm import PM
        from pymoo.operators.repair.rounding import RoundingRepair
        from pymoo.optimize import minimize
        from pymoo.util.ref_dirs import get_reference_directions
    except ImportError:
        what = "there are too many points to judge them all, and the genetic search needs pymoo"
        raise ScenarioError(what, "search", "", "pip install 'hocket[tune]', or a smaller space") from None

    class CouplingProblem(Problem):  # type: ignore[misc]
        def __init__(self) -> None:
            last = [len(each) - 1 for each in space.variables]
            super().__init__(n_var=len(last), n_obj=goals, n_ieq_constr=limits, xl=0, xu=last, vtype=int)

        def _evaluate(self, x: Array, out: dict[str, Array], *_: Any, **__: Any) -> None:
            out["F"], found = judged(x)
            if limits:
                out["G"] = found

    how: dict[str, Any] = {
        "sampling": first,
        "crossover": SBX(prob=0.9, eta=10, vtype=float, repair=RoundingRepair()),
        "mutation": PM(eta=10, vtype=float, repair=RoundingRepair()),
        "eliminate_duplicates": True,
    }
    if goals > CROWDED:
        parts = max(p for p in range(1, 1 + len(first)) if p == 1 or comb(p + goals - 1, p) <= len(first))
        directions = get_reference_directions("das-dennis", goals, n_partitions=parts)
        algorithm: Any = NSGA3(directions, max(len(first), len(directions)), **how)
    else:
        algorithm = NSGA2(len(first), **how)
    rounds = max(1, budget // len(first))
    minimize(CouplingProblem(), algorithm, ("n_gen", rounds), seed=seed, verbose=False)
