"""The radius chooses another coupling than rho, and it stands more of what was not known."""

import numpy as np
import pytest

from hocket.search.tune.tune import tune
from systems import two_masses

OVER = {
    "order": "one two, two one",
    "one.x2.alpha": "0, 0.59",
    "one.v2.alpha": "0, 0.36",
    "two.F.alpha": "0, 0.6",
}
"""The filters of Glumac and Kovacic at 8.9 s: all combinations of Control12 and Control21."""


def chosen(goal):
    """Return the coupling that is best in one number, as `two_masses` names it."""
    made = tune(two_masses("Control21", 8.9, (0.59, 0.36, 0.6)), OVER, [goal], workers=1)
    assert len(made.front) == 1
    words = made.space.words(made.points[made.front[0]])
    alphas = tuple(float(words[name]) for name in ("one.x2.alpha", "one.v2.alpha", "two.F.alpha"))
    return ("Control12" if words["order"] == "one two" else "Control21"), alphas


def matrix(coupling, alphas, ck):
    """Phi of section 1 of the formulas by hand: held steps, filters, stale outputs, one after the other.

    z = [x1 v1 x2 v2 | F | w of x2, v2, F]; simulator two tells its own states.
    """
    one = hold([[0, 1], [-(1 + ck) / 10, -0.3]], [[0, 0], [ck / 10, 0.2]])
    two = hold([[0, 1], [-0.1, -0.2]], [[0], [0.1]])
    a1, a2, a3 = alphas
    first, second = np.eye(8), np.eye(8)
    first[5, [5, 2]] = a1, 1 - a1
    first[6, [6, 3]] = a2, 1 - a2
    stepped = np.eye(8)
    stepped[:2] = 0.0
    stepped[:2, [0, 1]], stepped[:2, [5, 6]] = one
    told = np.eye(8)
    told[4] = 0.0
    told[4, [0, 1, 5, 6]] = ck, 2.0, -ck, -2.0
    first = told @ stepped @ first
    second[7, [7, 4]] = a3, 1 - a3
    stepped = np.eye(8)
    stepped[2:4] = 0.0
    stepped[2:4, [2, 3]] = two[0]
    stepped[2:4, [7]] = two[1]
    second = stepped @ second
    return second @ first if coupling == "Control12" else first @ second


def hold(A, B, h=8.9):
    from scipy.linalg import expm

    n, m = len(A), len(B[0])
    whole = np.zeros((n + m, n + m))
    whole[:n, :n], whole[:n, n:] = A, B
    moved = expm(whole * h)
    return moved[:n, :n], moved[:n, n:]


def rho(coupling, alphas, ck=1.0):
    return float(np.abs(np.linalg.eigvals(matrix(coupling, alphas, ck))).max())


def first_unstable(coupling, alphas):
    """Return the least stiffness c_k above 1 at which it grows, from a sweep."""
    for ck in np.arange(1.0, 8.0, 0.01):
        if rho(coupling, alphas, ck) >= 1.0:
            return ck
    return np.inf


def test_the_sweep_knows_the_published_crossings():
    assert rho("Control12", (0.59, 0.36, 0.0)) == pytest.approx(0.412533, abs=1e-6)
    assert first_unstable("Control12", (0.59, 0.36, 0.0)) == pytest.approx(3.761454, abs=0.02)
    assert first_unstable("Control21", (0.0, 0.0, 0.6)) == pytest.approx(4.417339, abs=0.02)
    assert first_unstable("Control21", (0.0, 0.0, 0.0)) == pytest.approx(1.123037, abs=0.02)


def test_rho_chooses_control12_of_the_paper():
    assert chosen("rho") == ("Control12", (0.59, 0.36, 0.0))


@pytest.mark.parametrize("goal", ["radius:one", "radius"])
def test_radii_choose_another_that_stands_more(goal):
    by_rho, by_radius = chosen("rho"), chosen(goal)
    assert by_radius != by_rho
    assert rho(*by_radius) > rho(*by_rho)
    assert first_unstable(*by_radius) > 1.15 * first_unstable(*by_rho)


def test_the_radius_of_everything_chooses_control21_of_the_paper():
    assert chosen("radius") == ("Control21", (0.0, 0.0, 0.6))
