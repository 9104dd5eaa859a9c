"""The linear reading against published radii, and against the runs of the same plans."""

import numpy as np
import pytest

import hocket as hk
from hocket.analysis.linear_reading import gather_state, read_linear
from hocket.analysis.stability import spectral_radius, stability
from hocket.errors import ConvergenceError, ScenarioError
from hocket.planning.parameters import with_step
from native.random_scenarios import METHODS
from systems import THREE, TWO, drawn_linear, random_linear, slow_after, three_masses, two_masses

GOLDEN = {
    name: each["rho"] for name, each in TWO["values"].items() if isinstance(each, dict) and "rho" in each
}


def golden_coupling(name):
    given = TWO["values"][name]
    if name == "Control21_0.6_9.11":
        return two_masses("Control21", 9.11)
    if name == "Control12_0.59_0.36_8.9":
        return two_masses("Control12", 8.9)
    if "alpha" in given:
        return two_masses("Control12", given["h"], (*given["alpha"], 0.0))
    if "h" in given:
        return two_masses("Control21", given["h"])
    coupling, h = name.split("_h")
    return two_masses(coupling, float(h))


@pytest.mark.parametrize("name", GOLDEN)
def test_two_masses(name):
    assert spectral_radius(golden_coupling(name)) == pytest.approx(GOLDEN[name], abs=1e-9)


@pytest.mark.parametrize(
    ("number", "steps", "rho"),
    [
        (int(number), steps, rho)
        for number, radii in THREE["spectral_radius_of_one_outer_step"].items()
        for steps, rho in radii.items()
    ],
)
def test_three_masses(number, steps, rho):
    found = spectral_radius(three_masses(number, *(f"{step} s" for step in steps.split("/"))))
    assert found == pytest.approx(rho, abs=1e-6)


@pytest.mark.parametrize(
    ("steps", "rho"),
    [(("0.1 s",), 0.997564), (("0.1 s", "0.025 s"), 0.997564), (("0.2 s", "0.05 s"), 0.995173)],
)
def test_consistent_outputs_are_stable(steps, rho):
    """Requirements, section 5.2: scenario 2 grows with stale outputs, and not with consistent ones."""
    assert spectral_radius(three_masses(2, *steps, outputs="consistent")) == pytest.approx(rho, abs=2e-6)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_largest_stable_step_of_the_flat_coupling(number):
    largest = THREE["largest_stable_H_on_0.005_grid_flat"][str(number)]
    for step, stable in ((largest, True), (largest + 0.005, False)):
        composite = three_masses(number, f"{step:.3f} s")
        assert (spectral_radius(composite) < 1.0) == stable


def scale(reading):
    """Return how large states and samples are; slopes and coefficients have other units."""
    return [place for place, cell in enumerate(reading.cells) if cell.kind in ("state", "sample", "memory")]


MOST = 10
"""Simulators of the 300: the time of a reading grows with their square, and with long common periods."""
LARGE = (23, 51, 104, 141, 219)
"""Seeds of 15 to 21 simulators in 5 to 8 levels."""


@pytest.mark.parametrize("block", slow_after(1, range(10)))
def test_the_map_and_the_run_agree(block):
    for seed in range(30 * block, 30 * (block + 1)):
        compare(seed, random_linear(seed, 0.4, MOST))


@pytest.mark.parametrize("seed", LARGE)
def test_the_map_and_the_run_of_a_large_scenario_agree(seed):
    compare(seed, random_linear(seed, 0.4))


def compare(seed, composite):
    """Phi applied again and again to where the start phase ended is the run."""
    reading = read_linear(composite)
    z, places = reading.z, scale(reading)
    ticks = reading.root.clock.ticks(reading.period)
    for _ in range(8 if len(z) < 100 else 3):  # large ones take long
        z = reading.Phi @ z + reading.c
        reading.root.advance(reading.root.now, ticks, reading.root.inputs[1])
        there = gather_state(reading.root)[places]
        assert np.abs(z[places] - there).max() <= 1e-9 * np.abs(there).max(), f"seed {seed}"


def test_all_orchestrators_and_extrapolators_are_among_them():
    found, depths = set(), set()
    for seed in range(300):
        _, depth, features = drawn_linear(seed, 0.4, MOST)
        depths.add(depth)
        found |= features
    assert depths == {1, 2, 3}
    wanted = {
        *METHODS, *("Jacobi", "sequence", "groups", "auto", "iterated to None", "iterated to 1e-13"),
        *("Hold of degree 0", "Nepce of degree 0", "Hermite of degree 1", "Hermite of degree 3"),
        *(f"Polynomial of degree {degree}" for degree in (1, 2, 3)),
        *("outputs stale", "outputs consistent", "inputs clean", "inputs delayed", "loop"),
        *("start window", "start cold"),
        *(f"step times {ratio}" for ratio in ("1", "1/2", "1/3", "2", "3")),
    }  # fmt: skip
    assert wanted - found == set()


def test_a_scenario_without_outputs():
    """Without a state either, nothing lasts: z is empty."""
    sink = hk.StateSpace(A=[[-1.0]], B=[[1.0]], x0=[1.0], inputs=["u = 0"])
    found = stability(hk.Composite(hk.Scenario({"sink": sink}), "0.1 s"))
    assert found.rho == pytest.approx(np.exp(-0.1), rel=1e-12)
    nothing = hk.StateSpace(inputs=["u = 0"])
    reading = read_linear(hk.Composite(hk.Scenario({"nothing": nothing}), "0.1 s"))
    assert reading.Phi.shape == (0, 0)


@pytest.mark.parametrize("block", range(4))
def test_what_is_called_unstable_grows(block):
    """A long run from a random start grows by rho per step, or decays, as the radius says."""
    for seed in range(1000 + 15 * block, 1000 + 15 * (block + 1)):
        reading = read_linear(random_linear(seed, at_most=MOST))
        rho = spectral_radius(reading)
        if abs(rho - 1.0) < 1e-3 or rho == 0.0:
            continue
        rng = np.random.default_rng(seed)
        z = rng.normal(size=len(reading.core))
        grown = 0.0
        for _ in range(3000):
            z = reading.core @ z
            size = float(np.abs(z).max())
            grown += np.log(size)
            z = z / size
        assert (grown > 0.0) == (rho > 1.0), f"seed {seed}"


def test_the_real_run_grows_where_the_radius_says_so():
    for steps in (("0.1 s",), ("0.1 s", "0.025 s")):
        composite = three_masses(3, *steps)
        run = hk.run(composite, 800)
        x = run["third.x" if len(steps) == 1 else "pair.third.x"].values
        rho, quarter = spectral_radius(composite), len(x) // 4  # of which each is 2,000 outer steps
        before, after = np.abs(x[2 * quarter : 3 * quarter]).max(), np.abs(x[3 * quarter :]).max()
        assert rho > 1.0
        assert after / before == pytest.approx(rho**2000, rel=0.1)


def test_numbers_that_nothing_depends_on_are_left_out():
    reading = read_linear(two_masses("Seidel12", 1.0))
    names = {str(reading.cells[place]) for place in reading.live}
    states = {f"{owner}.{x} (state)" for owner in ("one", "two") for x in ("x1", "x2")}
    assert names == states | {"two.x (sample)", "two.v (sample)"}
    full = np.sort_complex(np.linalg.eigvals(reading.Phi))
    kept = np.linalg.eigvals(reading.core)
    for value in kept:
        assert np.abs(full - value).min() < 1e-9


def test_offsets_are_no_part_of_the_map():
    def reading(kelvin, celsius):
        a = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], inputs=[f"T{kelvin}"], outputs=[f"y{celsius}"])
        b = hk.StateSpace(A=[[-2.0]], B=[[0.5]], C=[[1.0]], inputs=[f"T{kelvin}"], outputs=[f"y{kelvin}"])
        scenario = hk.Scenario({"a": a, "b": b}, {"a.T": "b.y", "b.T": "a.y"})
        return read_linear(hk.Composite(scenario, "0.1 s"))

    one, other = reading(" [K]", " [degC]"), reading("", "")
    np.testing.assert_allclose(one.Phi, other.Phi, atol=1e-12)
    assert np.abs(one.c).max() > 1.0
    assert np.abs(other.c).max() == 0.0


def test_a_level_with_a_longer_step_makes_the_period_longer():
    slow = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    inner = hk.Composite(hk.Scenario({"m": slow}), "60 ms")
    scenario = hk.Scenario({"a": slow, "b": inner}, {"a.u": "b.m.y", "b.m.u": "a.y"})
    reading = read_linear(hk.Composite(scenario, "20 ms"))
    assert float(reading.period) == pytest.approx(0.06)


def test_a_loop_without_solution_is_refused():
    gain = hk.Gain(1.0)
    scenario = hk.Scenario({"a": gain, "b": gain}, {"a.u": "b.y", "b.u": "a.y"})
    with pytest.raises(ConvergenceError, match="no solution"):
        read_linear(hk.Composite(scenario, "0.1 s"))


def test_what_is_not_linear_is_named():
    pendulum = hk.Ode(lambda t, x, u: [x[1], -np.sin(x[0])], None, [1.0, 0.0])
    with pytest.raises(ScenarioError, match="`p` is not linear"):
        read_linear(hk.Composite(hk.Scenario({"p": pendulum}), "0.1 s"))


def test_who_takes_part():
    """Two pairs that know nothing of each other: only one grows."""

    def lag(gain):
        return hk.StateSpace(A=[[-1.0]], B=[[gain]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])

    models = {"calm1": lag(0.5), "calm2": lag(0.5), "wild1": lag(3.0), "wild2": lag(-3.0)}
    links = {f"{kind}{k}.u": f"{kind}{3 - k}.y" for kind in ("calm", "wild") for k in (1, 2)}
    found = stability(hk.Composite(hk.Scenario(models, links), "0.5 s", hk.Jacobi(outputs="stale")))
    # a step of one lag under a held input; the pair has x' = e x +- 3 (1 - e) x of the other
    e = np.exp(-0.5)
    assert found.rho == pytest.approx(np.hypot(e, 3 * (1 - e)), abs=1e-12)
    assert not found.stable
    parts = found.modes[0].parts
    assert sum(part.share for part in parts) == pytest.approx(1.0, abs=1e-5)
    assert all(part.name.startswith("wild") for part in parts)
    assert found.modes[0].frequency == pytest.approx(np.arctan2(3 * (1 - e), e) / np.pi, abs=1e-12)


def test_levels_by_themselves():
    found = stability(three_masses(3, "0.1 s", "0.025 s"))
    assert [path for path, _ in found.levels] == ["pair"]
    assert found.levels[0][1] < 1.0 < found.rho


def test_another_step_keeps_the_ratios():
    composite = with_step(three_masses(2, "0.1 s", "0.025 s"), "0.2 s")
    assert spectral_radius(composite) == pytest.approx(0.9953392, abs=1e-6)


@pytest.mark.parametrize("step", ["100 ms", "1 ms", "10 us"])
@pytest.mark.parametrize(("power", "stable"), [(1, True), (2, False)])
def test_eigenvalues_on_the_circle(power, stable, step):
    """A double integrator grows though its radius is one; a single one does not, whatever the step."""
    A = [[0.0]] if power == 1 else [[0.0, 1.0], [0.0, 0.0]]
    C = [[1.0]] if power == 1 else [[1.0, 0.0]]
    model = hk.StateSpace(A=A, C=C, outputs=["y"])
    found = stability(hk.Composite(hk.Scenario({"m": model}), step))
    assert found.rho == pytest.approx(1.0, abs=1e-7)
    assert found.stable == stable


@pytest.mark.parametrize("step", ["100 ms", "10 ms", "1 ms"])
def test_a_slow_lag_beside_an_integrator_is_bounded(step):
    lag = hk.StateSpace(A=[[-0.01]], C=[[1.0]], x0=[1.0], outputs=["y"])
    integrator = hk.StateSpace(A=[[0.0]], B=[[1.0]], C=[[1.0]], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"lag": lag, "sum": integrator}, {"sum.u": "lag.y"})
    assert stability(hk.Composite(scenario, step)).stable
