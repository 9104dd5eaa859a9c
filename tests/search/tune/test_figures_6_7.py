"""Figures 6 and 7 of Glumac and Kovacic: the published points are where they say, and what lies beyond."""

import numpy as np
import pytest

from hocket.search.tune.tune import tune
from systems import two_masses

ALPHA, STEP = "two.F.alpha", "step"
STEPS = "1e-3:9.11162756115489:15:log"
"""Every seventh of the 100 steps of figure 6 between 1 ms and 10 s, the published one among them."""


@pytest.fixture(scope="module")
def control21():
    return two_masses("Control21", 0.1, (0.0, 0.0, 0.5))


@pytest.fixture(scope="module")
def paper(control21):
    return tune(control21, {ALPHA: "0:1.1:12", STEP: STEPS}, ["rho", "delta"], workers=1)


@pytest.fixture(scope="module")
def wide(control21):
    return tune(control21, {ALPHA: "-1:1.1:22", STEP: STEPS}, ["rho", "delta"], workers=1)


def test_figure_6_has_the_published_point_on_its_front(paper):
    assert len(paper.points) == 12 * 15
    (row,) = [row for row in paper.rows() if row[ALPHA] == "0.6" and row[STEP] == "9.11163 s"]
    assert row["rho"] == pytest.approx(0.45042, abs=5e-6)
    assert row["delta"] == pytest.approx(0.78140, abs=5e-6)


def test_figure_6_has_seidel_masters_at_small_steps(paper):
    """The paper: alpha = 0 dominates for smaller steps, alpha > 0 at the top of the map."""
    chosen = [paper.space.values(paper.points[k]) for k in paper.front]
    small = [each[ALPHA] for each in chosen if each[STEP] < 0.5]
    top = [each[ALPHA] for each in chosen if each[STEP] > 5.0]
    assert len(small) > 5
    assert set(small) == {0.0}
    assert top
    assert min(top) > 0.0


def test_figure_6_knows_what_is_unstable(paper):
    """alpha beyond 1 diverges: 1.1 is its own eigenvalue with a tiny step."""
    rho = {point: numbers[0] for point, numbers in zip(paper.points, paper.numbers, strict=True)}
    assert rho[11, 0] == pytest.approx(1.1, abs=1e-3)
    assert all(rho[11, k] > 1.0 for k in range(15))
    assert rho[0, 0] < 1.0


def test_negative_alpha_dominates_the_front_of_the_paper(paper, wide):
    old = paper.costs[list(paper.front)]
    new = wide.costs[list(wide.front)]
    better = 0
    for row in old:
        assert ((new <= row).all(axis=1)).any(), f"{row} is not matched"
        better += bool(((new <= row).all(axis=1) & (new < row).any(axis=1)).any())
    assert better > 0.7 * len(old)
    assert wide.volume([1.0, 2.0]) > 1.005 * paper.volume([1.0, 2.0])
    small = [row for row in old if row[0] > 0.97]
    assert len(small) > 5
    gains = [row[1] / delta_at(new, row[0]) for row in small]
    assert min(gains) > 4.0, "at small steps, delta at equal rho falls to a quarter and less"
    chosen = [wide.space.values(wide.points[k]) for k in wide.front]
    assert all(each[ALPHA] < 0.0 for each in chosen if each[STEP] < 0.5)


@pytest.mark.parametrize("alpha", ["-0.5", "-0.6", "-0.7"])
def test_negative_alpha_beats_the_hold_in_both_at_small_steps(wide, alpha):
    """Formulas, section 1: about -0.5 to -0.7."""
    numbers = dict(zip(wide.points, wide.numbers, strict=True))
    words = wide.space.variables[0].words
    hold, filtered = words.index("0"), words.index(alpha)
    for k in range(8):
        assert numbers[filtered, k][0] < numbers[hold, k][0]
        assert numbers[filtered, k][1] < numbers[hold, k][1]


def delta_at(front, rho):
    """The least delta of what has no larger rho."""
    return front[front[:, 0] <= rho, 1].min(initial=np.inf)


def test_figure_7_prints_what_comes_out():
    """Printed are 0.41 and 1.1; the corrected formulas tell 0.412533 and 1.1031."""
    over = {"one.x2.alpha": "0.59", "one.v2.alpha": "0.36", "step": "8.9"}
    found = tune(two_masses("Control12", 1.0, (0.1, 0.1, 0.0)), over, ["rho", "delta"])
    assert found.numbers[0] == pytest.approx((0.412533, 1.1031), abs=5e-5)


@pytest.mark.slow
def test_figure_7_is_on_the_front_of_a_coarse_grid_and_near_that_of_a_fine_one():
    """Between hundredths of alpha it is beaten by a little in both: by 2 % at the most."""
    control12 = two_masses("Control12", 1.0, (0.1, 0.1, 0.0))
    coarse = {"one.x2.alpha": "0.09:1.09:11", "one.v2.alpha": "0.06:1.06:11", "step": "8.9"}
    made = tune(control12, coarse, ["rho", "delta"], workers=1)
    point = {"one.x2.alpha": "0.59", "one.v2.alpha": "0.36"}
    assert [row for row in made.rows() if point.items() <= row.items()]
    fine = {"one.x2.alpha": "0.58:0.61:4", "one.v2.alpha": "0.35:0.37:3", "step": "8.9"}
    made = tune(control12, fine, ["rho", "delta"], workers=1)
    near = made.costs[list(made.front)] / (0.412533, 1.103074)
    assert 0.98 < near.max(axis=1).min() < 1.0
