"""The largest stable step: loops solved by hand, the golden systems, islands, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from analysis.test_intervals import step as published
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.stability import spectral_radius
from hocket.analysis.stability_intervals import eigenvalues_at, largest_stable_step
from hocket.errors import ScenarioError
from hocket.planning.parameters import with_step
from hocket.planning.planner import plan_tree
from systems import THREE, LinearPen, three_masses, two_masses


def islands(found):
    """Stable intervals with unstable steps below them."""
    return [each for each in found.intervals if not each.from_edge]


def loop(gain: float, step: float, rate: float = 0.0) -> hk.Composite:
    """x' = rate x + u, u = -gain x held over a step."""
    plant = hk.StateSpace([[rate]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    scenario = hk.Scenario(
        {"plant": plant, "gain": hk.Gain(-gain)}, {"plant.u": "gain.y", "gain.u": "plant.x"}
    )
    return hk.Composite(scenario, step)


@pytest.mark.parametrize(("gain", "rate"), [(4.0, 0.0), (0.7, 0.0), (3.0, -1.0), (10.0, -2.0)])
@pytest.mark.parametrize("step", [0.1, 0.45, 1.5])
def test_a_scalar_loop(gain, rate, step):
    """The factor is 1 - gain h, or e + (1 - e) gain / rate with e = exp(rate h): minus one at the end."""
    end = math.log((gain + rate) / (gain - rate)) / rate if rate else 2.0 / gain
    found = largest_stable_step(loop(gain, step, rate))
    (only,) = found.intervals
    assert only.high == pytest.approx(end, rel=1e-6)
    assert (only.low, only.from_edge, only.to_edge) == (pytest.approx(step / 256), True, False)
    assert (found.present_interval is None) == (step > end)
    assert found.largest == pytest.approx(end, rel=1e-6)
    assert islands(found) == []
    assert found.words.startswith(f"stable up to a macro step of {end:.4g} s")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_largest_step_of_the_flat_coupling(number):
    """The golden file has the last stable point of a grid of 5 ms."""
    last = THREE["largest_stable_H_on_0.005_grid_flat"][str(number)]
    found = largest_stable_step(three_masses(number, "0.05 s"))
    assert last <= found.largest < last + 0.005


@pytest.mark.parametrize(("coupling", "ck"), [("Seidel12", 3.0), ("Control21", 8.0)])
def test_islands_against_the_published_matrices(coupling, ck):
    """The factors F, G, H of Glumac & Kovacic (21) to (29) give the radius without any plan."""
    found = largest_stable_step(two_masses(coupling, 8.9, ck=ck), low=4, high=60)

    def rho(h):
        return np.abs(np.linalg.eigvals(published(coupling, h, ck))).max()

    scan = np.geomspace(4.0, 60.0, 1500)
    stable = np.array([rho(h) < 1.0 for h in scan])
    crossed = np.flatnonzero(stable[1:] != stable[:-1])
    ends = [end for each in found.intervals for end in (each.low, each.high) if 4.0 < end < 60.0]
    assert len(ends) == len(crossed) >= 2
    assert len(islands(found)) >= 1
    for end in ends:
        assert (rho(end * (1 - 1e-6)) < 1.0) != (rho(end * (1 + 1e-6)) < 1.0)


def test_an_island_in_words():
    found = largest_stable_step(two_masses("Seidel12", 8.9))
    assert "; also from 11.89 s on" in found.words
    assert [row["present step"] for row in found.rows()] == ["here", ""]
    beyond = largest_stable_step(two_masses("Seidel12", 14.0))
    assert beyond.present_interval == islands(beyond)[0]
    assert beyond.largest == pytest.approx(32 * 14.0)
    between = largest_stable_step(two_masses("Seidel12", 10.0))
    assert between.present_interval is None
    assert between.largest == pytest.approx(found.largest, rel=1e-6)


def test_levels_keep_their_ratios():
    composite = three_masses(2, "0.1 s", "0.025 s")
    end = largest_stable_step(composite).largest
    below, above = (spectral_radius(with_step(composite, Fraction(end * f))) for f in (1 - 1e-5, 1 + 1e-5))
    assert below < 1.0 < above


@pytest.mark.parametrize("seed", range(12))
def test_another_clock_is_another_step(seed):
    """The tree under another clock gives what the scenario with other steps gives, built anew."""
    rng = np.random.default_rng(seed)
    composite = LinearPen(rng).level(Fraction(1, 10), depth=1 + seed % 2, outermost=True)[0]
    reading = read_linear(composite)
    if any(level.composite.sampled for level in plan_tree(composite).levels()):
        pytest.skip("what is sampled keeps its step")
    factor = Fraction(7, 3)
    expected = spectral_radius(with_step(composite, composite.step * factor))
    found = np.abs(eigenvalues_at(reading, factor)).max(initial=0.0)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-7)
    again = np.abs(eigenvalues_at(reading, Fraction(1))).max(initial=0.0)
    assert again == pytest.approx(spectral_radius(reading), rel=1e-9, abs=1e-9)


def test_what_stands_still_by_itself_does_not_count():
    """A counter of distance behind the loop has an eigenvalue of one at every step."""
    inner = loop(4.0, 0.1).scenario
    counter = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], inputs=["v"], outputs=["s"])
    models = {**inner.models, "counter": counter}
    scenario = hk.Scenario(models, [*inner.connections, ("plant.x", "counter.v")])
    assert largest_stable_step(hk.Composite(scenario, 0.1)).largest == pytest.approx(0.5, rel=1e-6)


def test_stable_at_no_step():
    """Two outputs that react at once to each other, with a gain of -4 around and stale: it grows by 2."""
    lag = hk.StateSpace([[-1.0]], [[0.1]], [[1.0]], [[2.0]], inputs=["u"], outputs=["y"])
    other = hk.StateSpace([[-1.0]], [[0.1]], [[1.0]], [[-2.0]], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"a": lag, "b": other}, {"a.u": "b.y", "b.u": "a.y"})
    found = largest_stable_step(hk.Composite(scenario, 0.1, hk.Jacobi(outputs="stale")))
    assert found.intervals == ()
    assert found.largest is None
    assert found.words.startswith("stable at no macro step (search range ")


def test_stable_at_every_step():
    found = largest_stable_step(loop(0.5, 0.1, -1.0))
    assert found.largest == pytest.approx(3.2)
    assert found.words.startswith("stable at every macro step (search range ")


def test_what_is_refused():
    with pytest.raises(ScenarioError, match="the exact system is unstable"):
        largest_stable_step(loop(-1.0, 0.1))
    swing = hk.StateSpace([[0, 1], [-1, 0]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["u"], outputs=["x"])
    alone = hk.Scenario({"swing": swing, "gain": hk.Gain(0.0)}, {"swing.u": "gain.y", "gain.u": "swing.x"})
    with pytest.raises(ScenarioError, match="undamped"):
        largest_stable_step(hk.Composite(alone, 0.1))
    device = hk.Composite(hk.Scenario({"g": hk.Gain(-0.5)}), "0.2 s", sampled=True)
    plant = loop(1.0, 0.1).scenario.models["plant"]
    sampled = hk.Scenario({"plant": plant, "c": device}, {"plant.u": "c.g.y", "c.g.u": "plant.x"})
    with pytest.raises(ScenarioError, match=r"`c` is sampled every 0\.2 s"):
        largest_stable_step(hk.Composite(sampled, "0.1 s"))
    with pytest.raises(ScenarioError, match="cannot go from"):
        largest_stable_step(loop(1.0, 0.1), low=2, high=1)


def test_the_reading_is_left_as_it_was():
    reading = read_linear(three_masses(2, "0.1 s", "0.025 s"))
    before = reading.root.clock, reading.root.now, [leaf.z.copy() for leaf in reading.root.children[:1]]
    largest_stable_step(reading)
    assert (reading.root.clock, reading.root.now) == before[:2]
    np.testing.assert_array_equal(reading.root.children[0].z, before[2][0])


def test_a_picture(tmp_path):
    found = largest_stable_step(two_masses("Seidel12", 8.9))
    axes = found.plot(tmp_path / "steps.png").axes[0]
    assert (tmp_path / "steps.png").read_bytes()[:4] == b"\x89PNG"
    assert axes.get_xscale() == "log"


def test_beyond_the_search_range_no_step_is_called_stable():
    """The factor of the loop is 1 - 4 h: unstable from 0.5 s on, and steps up to 0.32 s are searched."""
    found = largest_stable_step(loop(4.0, 0.01))
    assert found.largest == pytest.approx(0.32)
    assert spectral_radius(loop(4.0, 0.51)) > 1.0
