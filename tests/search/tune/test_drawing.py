"""The picture of a front: what is drawn is what was judged."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hocket.search.tune.objectives import Objective
from hocket.search.tune.space import parse_space
from hocket.search.tune.tuning_result import TuningResult
from systems import two_masses


def judged(over, goals, number, now=None, limits=()):
    composite = two_masses("Control21", 8.9)
    chosen = parse_space(composite, over)
    points = tuple(chosen.points())
    numbers = tuple(number(chosen.values(point)) for point in points)
    wanted = tuple(Objective(name, limit=dict(limits).get(name)) for name in goals)
    return TuningResult(
        composite, chosen, wanted, len(goals), points, numbers, now or numbers[0], Fraction(10)
    )


def lines(axes, label):
    return [line for line in axes.get_lines() if line.get_label() == label]


GRID = {"two.F.alpha": "0:1:5", "step": "0.1:10:7:log"}


def test_a_grid_over_two_numbers_has_maps():
    tuned = judged(GRID, ("rho", "delta"), lambda v: (0.5 + v["two.F.alpha"], v["step"]), now=(0.7, 3.0))
    figure = tuned.plot()
    rho, delta, plane = figure.axes[:3]
    assert [each.get_xlabel() for each in (rho, delta)] == ["two.F.alpha", "two.F.alpha"]
    assert [each.get_ylabel() for each in (rho, delta)] == ["step [s]", "step [s]"]
    assert rho.get_yscale() == "log"
    mesh = np.asarray(rho.collections[0].get_array()).reshape(7, 5)
    assert mesh == pytest.approx(np.tile(0.5 + np.linspace(0, 1, 5), (7, 1)))
    (best,) = lines(rho, "front")  # the least of both is alone on the front
    assert best.get_xydata().tolist() == [[0.0, 0.1]]
    assert len(lines(rho, "boundary of stability")) == 1
    assert not lines(delta, "boundary of stability")
    (now,) = lines(plane, "now")
    assert now.get_xydata().tolist() == [[0.7, 3.0]]
    (all_of_them,) = lines(plane, "judged")
    assert len(all_of_them.get_xydata()) == 35


def test_values_in_any_order_are_drawn_in_theirs():
    over = {"two.F.alpha": "1, 0, 0.5", "step": "3, 1, 2"}
    tuned = judged(over, ("rho", "delta"), lambda v: (v["two.F.alpha"], v["step"]))
    figure = tuned.plot()
    assert figure.axes[0].collections[0].get_array().reshape(3, 3)[0].tolist() == [0.0, 0.5, 1.0]
    assert figure.axes[1].collections[0].get_array().reshape(3, 3)[:, 0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("goals", "planes"), [(("rho",), 1), (("rho", "delta"), 1), (("rho", "delta", "work"), 2)]
)
def test_other_spaces_have_planes_only(goals, planes, tmp_path):
    over = {"step": "1, 2, 4", "extrapolation": "hold, linear"}
    tuned = judged(over, goals, lambda v: (v["step"], 1 / v["step"], 2.0)[: len(goals)])
    figure = tuned.plot(tmp_path / "front.svg")
    assert len(figure.axes) == planes
    assert (tmp_path / "front.svg").stat().st_size > 1000


def test_without_numbers_and_without_a_front():
    none = judged(GRID, ("rho", "delta"), lambda v: (math.nan, math.nan), now=(math.nan, math.nan))
    assert len(none.plot().axes) == 3
    beyond = judged(GRID, ("rho", "delta"), lambda v: (2.0, v["step"]), limits={"rho": 1.0})
    figure = beyond.plot()
    assert not lines(figure.axes[2], "front")
