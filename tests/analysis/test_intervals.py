"""Intervals of a parameter: those of Glumac and Kovacic both ways, and islands that a grid steps over."""

from functools import cache

import numpy as np
import pytest

from hocket import Composite, Scenario, StateSpace
from hocket.analysis.stability_intervals import STABLE, Interval, radius_at_value, stable_intervals
from hocket.errors import ScenarioError
from systems import FILTERS, TWO, two_masses

GRID = TWO["values"]["intervals_h8.9_last_stable_grid_point_logspace(-5,5,100)"]
CROSSINGS = TWO["values"]["intervals_h8.9_exact_first_crossing"]
ISLANDS = TWO["values"]["intervals_h8.9_stable_islands_above"]


def varied(coupling, parameter):
    return lambda value: two_masses(coupling, 8.9, **{parameter: value})


@cache
def intervals_of(coupling, parameter):
    return stable_intervals(varied(coupling, parameter), 1e-5, 1e5, logarithmic=True, name=parameter)


@pytest.mark.parametrize("which", GRID)
def test_the_last_stable_points_of_the_paper(which):
    """Equations (63) and (64)."""
    make, last = varied(*which.split(".")), None
    for value in np.logspace(-5, 5, 100):
        if not radius_at_value(make, float(value)) < STABLE:
            break
        last = value
    assert last == pytest.approx(GRID[which], rel=1e-9)


@pytest.mark.parametrize("which", CROSSINGS)
def test_the_true_ends(which):
    found = intervals_of(*which.split("."))
    first = found.intervals[0]
    assert (first.low, first.from_edge) == (1e-5, True)
    if CROSSINGS[which] is None:
        assert found.intervals == (Interval(1e-5, 1e5, True, True),)
    else:
        assert first.high == pytest.approx(CROSSINGS[which], rel=1e-6)
        assert not first.to_edge


@pytest.mark.parametrize("which", ISLANDS)
def test_the_islands_hold_the_stable_grid_points_and_no_others(which):
    found = intervals_of(*which.split("."))
    grid = np.logspace(-5, 5, 100).clip(found.low, found.high)  # some processors miss its ends by a bit
    stable = [value for value in grid if value in found]
    assert stable[-2:] == pytest.approx(ISLANDS[which], rel=1e-9)
    assert stable[-3] == pytest.approx(GRID[which], rel=1e-9)
    assert len(stable) == 2 + np.searchsorted(grid, GRID[which] * 1.01)


@pytest.mark.parametrize("coupling", ["Seidel12", "Control21"])
def test_all_intervals_against_a_fine_scan_of_the_published_matrices(coupling):
    """The scan has its own matrices, from the factors F, G, H of (21) to (29), and sees the islands."""
    low, high = 1.0, 40.0
    values = np.exp(np.linspace(np.log(low), np.log(high), 1201))
    stable = np.array([np.abs(np.linalg.eigvals(step(coupling, 8.9, ck))).max() < 1.0 for ck in values])
    changes = np.flatnonzero(stable[1:] != stable[:-1])
    found = intervals_of(coupling, "ck").intervals
    ends = [end for each in found for end in (each.low, each.high) if low < end < high]
    assert len(ends) == len(changes)
    assert all(values[k] <= end <= values[k + 1] for k, end in zip(changes, ends, strict=True))


def step(coupling, h, ck):
    """Phi on z = [x1 v1 x2 v2, F x v, u], factor by factor; h a number, dk = 2."""
    from scipy.linalg import expm

    p = {**TWO["parameters"], "ck": ck}
    one = [[0, 1, 0, 0], [-(p["c1"] + ck) / 10, -(p["d1"] + p["dk"]) / 10, ck / 10, p["dk"] / 10]]
    two = [[0, 1, 0], [-p["c2"] / 10, -p["d2"] / 10, 1 / 10]]
    alpha = FILTERS[coupling]
    maps = []
    for rows, states, inputs, sources in ((one, [0, 1], [7, 8], [5, 6]), (two, [2, 3], [9], [4])):
        F, G, H = np.eye(10), np.eye(10), np.eye(10)
        for u, y in zip(inputs, sources, strict=True):
            F[u, u], F[u, y] = alpha[u - 7], 1.0 - alpha[u - 7]
        generator = np.zeros((len(rows[0]), len(rows[0])))
        generator[:2] = rows
        G[np.ix_(states, states + inputs)] = expm(generator * h)[:2]
        if len(inputs) == 2:
            H[4] = 0.0
            H[4, [0, 1, 7, 8]] = [ck, p["dk"], -ck, -p["dk"]]
        else:
            H[5:7] = 0.0
            H[5, 2] = H[6, 3] = 1.0
        maps.append(H @ G @ F)
    return maps[1] @ maps[0] if coupling.endswith("12") else maps[0] @ maps[1]


def decay(rate, method="euler"):
    """x' = -rate x by explicit Euler at h = 1: the factor is 1 - rate."""
    model = StateSpace(A=[[-rate]], C=[[1.0]], outputs=["x"], x0=[1.0], method=method)
    return Composite(Scenario({"it": model}), 1)


def test_ends_that_are_known():
    found = stable_intervals(decay, -1.0, 5.0, name="rate")
    (only,) = found.intervals
    assert only.low == pytest.approx(0.0, abs=1e-6)
    assert only.high == pytest.approx(2.0, rel=1e-6)
    assert found.rows() == [{"parameter": "rate", "from": only.low, "to": only.high, "ends": "both found"}]
    assert 1.0 in found
    assert 2.1 not in found


def test_islands_are_counted():
    """The factor is 1 - rate with rate = 0.1 + 2.02 sin^2 a: unstable only where the rate exceeds 2."""
    found = stable_intervals(lambda a: decay(0.1 + 2.02 * np.sin(a) ** 2), 0.0, 20.0)
    edge = np.arcsin(np.sqrt(1.9 / 2.02))
    middle = [k * np.pi + side * edge for k in range(1, 6) for side in (-1, 1)]
    ends = [0.0, edge, *middle, 6 * np.pi - edge, 20.0]
    got = [end for each in found.intervals for end in (each.low, each.high)]
    assert got == pytest.approx(ends, rel=1e-6)


def test_nothing_is_stable():
    found = stable_intervals(decay, 3.0, 4.0)
    assert found.intervals == ()
    assert found.rows() == []
    assert (found.rho > 1.0).all()


def test_what_stays_on_the_circle_is_not_stable():
    """An integrator: rho = 1 for every value, and rounding must not draw stripes."""

    def make(value):
        model = StateSpace(A=[[0.0, value], [0.0, 0.0]], C=[[1.0, 0.0]], outputs=["x"])
        return Composite(Scenario({"it": model}), 1)

    assert stable_intervals(make, 0.1, 1.0).intervals == ()


def test_a_range_that_is_none():
    for low, high, logarithmic in ((2.0, 1.0, False), (0.0, 1.0, True), (0.0, float("inf"), False)):
        with pytest.raises(ScenarioError, match="cannot go from"):
            stable_intervals(decay, low, high, logarithmic)


def test_a_picture(tmp_path):
    found = stable_intervals(decay, -1.0, 5.0, name="rate")
    found.plot(tmp_path / "intervals.png")
    assert (tmp_path / "intervals.png").stat().st_size > 5000
