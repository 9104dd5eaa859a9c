"""Fronts, their volume and their knee, against definitions and what one can count by hand."""

from fractions import Fraction

import numpy as np
import pytest

from hocket.errors import ScenarioError
from hocket.search.tune.objectives import Objective
from hocket.search.tune.space import parse_space
from hocket.search.tune.tuning_result import TuningResult, hypervolume, knee, pareto_front
from systems import two_masses


def by_definition(values):
    """Glumac & Kovacic 2019, equation 67: no other is no worse in all and better in one."""
    kept = []
    for k, row in enumerate(values):
        beaten = any((other <= row).all() and (other < row).any() for other in values)
        first = not any((other == row).all() for other in values[:k])
        if not beaten and first and np.isfinite(row).all():
            kept.append(k)
    return sorted(kept, key=lambda k: tuple(values[k]))


@pytest.mark.parametrize("goals", [1, 2, 3, 4])
def test_it_is_what_the_definition_says(goals):
    rng = np.random.default_rng(goals)
    values = rng.integers(0, 12, (200, goals)).astype(float)
    values[::17] = np.inf
    assert pareto_front(values) == by_definition(values)


def test_volumes_by_hand():
    assert hypervolume(np.array([[1.0], [2.0]]), [5.0]) == 4.0
    assert hypervolume(np.array([[1.0, 3.0], [2.0, 1.0]]), [4.0, 4.0]) == 3.0 + 6.0 - 2.0
    assert hypervolume(np.array([[0.0, 0.0, 0.0]]), [1.0, 2.0, 3.0]) == 6.0
    assert hypervolume(np.array([[2.0, 0.0], [np.inf, 0.0]]), [1.0, 1.0]) == 0.0


def test_the_volume_of_three_objectives_by_chance():
    rng = np.random.default_rng(4)
    values = rng.random((15, 3))
    tries = rng.random((200_000, 3))
    share = (tries[:, None, :] >= values).all(axis=2).any(axis=1).mean()
    assert hypervolume(values, [1.0, 1.0, 1.0]) == pytest.approx(share, abs=4e-3)


def test_the_knee_is_near_the_best_of_all():
    assert knee(np.array([[0.0, 10.0], [1.0, 1.0], [10.0, 0.0]])) == 1
    assert knee(np.array([[1e-6, 10.0], [1e-3, 1.0], [1.0, 0.9]])) == 1, "wide ranges count by decades"
    assert knee(np.array([[3.0, 1.0]])) == 0


def tuned(numbers, wanted, now=(2.0, 2.0), goals=2):
    two = two_masses("Control21", 0.1)
    chosen = parse_space(two, {"step": f"0.1:1:{len(numbers)}"})
    points = tuple((k,) for k in range(len(numbers)))
    return TuningResult(two, chosen, tuple(wanted), goals, points, tuple(numbers), now, Fraction(1))


RHO, STEP = Objective("rho"), Objective("step", larger=True)


def test_what_is_proposed_is_no_worse_than_now_where_possible():
    numbers = [(1.0, 3.0), (1.5, 1.9), (1.9, 1.0), (5.0, 0.1)]
    both = Objective("error"), Objective("work")
    assert tuned(numbers, both).knee == 1, "the least error of those that are no worse in both"
    assert tuned(numbers, both, now=(0.5, 0.5)).knee in range(4)


def test_limits_leave_out_and_what_shall_be_large_is():
    numbers = [(0.5, 1.0), (0.9, 4.0), (1.1, 9.0), (float("nan"), 9.0)]
    made = tuned(numbers, (Objective("rho", limit=1.0), STEP))
    assert [made.numbers[k] for k in made.front] == [(0.5, 1.0), (0.9, 4.0)]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ((Objective("rho", limit=0.1), STEP), "`rho` within its limit of 0.1, the best is 0.5"),
        ((RHO, Objective("step", larger=True, limit=7.0)), "`step` within its limit of 7, the best is 4"),
        ((Objective("rho", limit=0.6), Objective("step", larger=True, limit=3.0)), "all limits at once"),
    ],
)
def test_limits_that_nobody_meets_are_named(wanted, message):
    made = tuned([(0.5, 1.0), (0.9, 4.0)], wanted)
    assert made.front == ()
    assert made.rows() == []
    with pytest.raises(ScenarioError, match=message):
        made.words()


def test_rows_beyond_the_front_are_refused():
    made = tuned([(0.5, 1.0), (0.9, 4.0)], (RHO, STEP))
    assert made.composite_of(1).step == 1
    for row in (-1, 2):
        with pytest.raises(ScenarioError, match="0 to 1"):
            made.composite_of(row)
