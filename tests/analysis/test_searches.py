"""Small searches: functions whose crossings and valleys are known."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from hocket.analysis.disturbance_transfer import _refine_peak, find_minimum
from hocket.analysis.stability_intervals import _midpoints_to_refine, find_crossing


def counted(f):
    def g(x):
        g.calls += 1
        return f(x)

    g.calls = 0
    return g


@pytest.mark.parametrize(
    ("f", "low", "high", "root"),
    [
        (lambda x: x**3 - 2.0, 0.0, 5.0, 2.0 ** (1 / 3)),
        (lambda x: 2.0 - x**3, 0.0, 5.0, 2.0 ** (1 / 3)),
        (lambda x: math.exp(20.0 * x) - 3.0, -4.0, 4.0, math.log(3.0) / 20.0),
        (lambda x: -1.0 if x < 0.3 else 1.0, 0.0, 1.0, 0.3),
        (lambda x: -1e-9 if x < 0.7 else 1e3, 0.0, 1.0, 0.7),
        (lambda x: x - 1.0, 1.0 - 1e-7, 3.0, 1.0),
    ],
)
def test_crossings(f, low, high, root):
    g = counted(f)
    assert find_crossing(g, low, high, 1e-10) == pytest.approx(root, abs=1e-10)
    assert g.calls < 160


def test_a_smooth_crossing_takes_few_steps():
    g = counted(lambda x: math.tanh(3.0 * x) - 0.2)
    find_crossing(g, -1.0, 1.0, 1e-9)
    assert g.calls <= 14


def test_valleys():
    place, height = find_minimum(math.cos, 2.0, 5.0, 1e-6)
    assert place == pytest.approx(math.pi, abs=1e-6)
    assert height == pytest.approx(-1.0, abs=1e-11)
    assert find_minimum(lambda x: x, 0.0, 1.0, 1e-9)[0] == pytest.approx(0.0, abs=1e-8)
    assert find_minimum(lambda x: 1.0, 2.0, 2.0, 1e-9) == (2.0, 1.0)


@pytest.mark.parametrize("root", [0.1, 0.2, 0.3, 0.6, 0.7])
def test_a_crossing_is_closed_in_on_until_no_number_is_left_between(root):
    g = counted(lambda x: -1.0 if x < root else 1.0)

    def limited(x):
        assert g.calls < 200
        return g(x)

    assert abs(find_crossing(limited, 0.0, 1.0, 0.0) - root) <= math.ulp(root)
    assert abs(find_crossing(lambda x: -limited(x), 0.0, 1.0, 0.0) - root) <= math.ulp(root)


def test_a_straight_line_is_followed_to_its_crossing():
    """Its two ends tell where: the ends of the range then close in from both sides."""
    g = counted(lambda x: 3.0 * x - 1.0)
    assert find_crossing(g, 0.0, 1.0, 1e-6) == pytest.approx(1.0 / 3.0, abs=1e-6)
    assert g.calls <= 4


def test_parts_are_refined_where_the_slopes_beside_them_could_reach_one():
    """Where |a| + |b| is below twice the steepest slope around times the width: 0.7 and 0.2 below 1."""
    known = {0.0: -0.6, 0.25: -0.1, 0.5: -0.1, 0.75: -0.1, 1.0: -0.1}  # rho - 1; slopes of 2, 0, 0, 0
    assert _midpoints_to_refine(known) == [0.125, 0.375]
    assert _midpoints_to_refine({**known, 0.25: 0.1}) == [0.625]  # parts in which one is crossed are not
    assert _midpoints_to_refine({0.0: -0.6, 0.25: -0.4}) == []  # 1.0 is not below 0.4


@pytest.mark.parametrize("count", [1, 3])
def test_the_highest_top_of_a_grid_is_refined_first(count):
    """Tops at 1.05 (5, on the grid 3) and at 2 (2.9, on the grid); then at the edges of the grid."""
    transfer = SimpleNamespace(eigenvalues=np.array([0.5]), Phi=np.eye(1))

    def refine(gain, angles):
        transfer.gain = gain
        return _refine_peak(transfer, angles, np.array([gain(each) for each in angles]), count)

    sharp = lambda a: max(5.0 - 40.0 * abs(a - 1.05), 2.9 - 10.0 * abs(a - 2.0), 0.0)  # noqa: E731
    assert refine(sharp, np.linspace(0.0, 3.0, 31)) == pytest.approx((1.05, 5.0), abs=5e-3)
    for peak in (0.2, 2.9):  # the highest point of the grid is its first, or its last
        found = refine(lambda a, peak=peak: 5.0 - (a - peak) ** 2, np.array([0.0, 1.0, 2.0, 3.0]))
        assert found == (pytest.approx(peak, abs=1e-3), pytest.approx(5.0, abs=1e-6))
