"""BalanceCorrection: golden numbers of the spring and mass, what flows in a step, what bonds gain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import hocket as hk
from hocket import BalanceCorrection, Bond, Composite, GaussSeidel, Hold, Jacobi, Polynomial, Scenario
from hocket.analysis.stability import spectral_radius
from hocket.model.protocols import Sample
from systems import ENGINES, golden

FACTORS = golden("spring_mass")["energy_factor_per_step"]
REFERENCE = golden("spring_mass")["springmass_ref"]


def spring_and_mass(extrapolation, c=1.0, step="0.2", orchestrator=None):
    spring = hk.StateSpace([[0]], [[1]], [[-c]], x0=[1.0], inputs=["v [m/s]"], outputs=["f [N]"])
    mass = hk.StateSpace([[0]], [[1]], [[1]], x0=[0.5], inputs=["f [N]"], outputs=["v [m/s]"])
    scenario = Scenario(
        {"spring": spring, "mass": mass},
        {"mass.f": "spring.f", "spring.v": "mass.v"},
        bonds={"joint": Bond("mass.f", "spring.v")},
    )
    return Composite(scenario, step, orchestrator or Jacobi(), extrapolation, "cold")


def states(run, c=1.0):
    return np.stack([-run["spring.f"].values / c, run["mass.v"].values], axis=1)


@dataclass(frozen=True)
class DoubleCount:
    """What the correction must not be: the error of the hold taken against the corrected input."""

    samples = 2
    degree = 0
    slopes = False

    def start(self, y0):
        return y0

    def fit(self, samples, w):
        newest = samples[-1].value
        if len(samples) == 1:
            return [newest], newest
        u = newest + 0.5 * (samples[0].value + newest) - w
        return [u], u


def expected(name):
    return {int(step): values for step, values in REFERENCE[name].items() if step.isdigit()}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_golden_trajectory(engine):
    seen = states(hk.run(spring_and_mass(BalanceCorrection(1.0)), 75, engine=engine))
    assert set(expected("nepce")) == {1, 10, 100, 375}
    for step, values in expected("nepce").items():
        assert seen[step] == pytest.approx(values, rel=0, abs=1e-12), step


@pytest.mark.parametrize("engine", ENGINES)
def test_energy_grows_by_half_and_not_by_thousands(engine):
    """T = 75, H = 0.2: 1.4421 of the golden trajectory; 1862 where the error is counted twice."""
    seen = states(hk.run(spring_and_mass(BalanceCorrection()), 75, engine=engine))
    E = (seen**2).sum(axis=1)
    golden, twice = (
        sum(np.square(REFERENCE[name]["375"])) / 1.25 for name in ("nepce", "nepce_double_count")
    )
    assert E[-1] / E[0] == pytest.approx(golden, rel=1e-12)
    assert round(golden, 2) == 1.44
    assert round(twice) == 1862


def test_counting_twice_is_what_the_golden_numbers_say():
    """So that the test above tells the two apart: the wrong element, written here, meets the wrong column."""
    seen = states(hk.run(spring_and_mass(DoubleCount()), 75, engine="interpreter"))
    for step, values in expected("nepce_double_count").items():
        assert seen[step] == pytest.approx(values, rel=1e-9), step


@pytest.mark.parametrize("product", FACTORS)
def test_growth_per_step_is_read_off_the_plan(product):
    """The same omega H = 0.2 sqrt(c), for half of the correction and for all of it."""
    c = (float(product) / 0.2) ** 2
    for alpha, name in ((0.0, "rho_const"), (0.5, "rho_nepce_half"), (1.0, "rho_nepce_1")):
        found = spectral_radius(spring_and_mass(BalanceCorrection(alpha), c))
        assert found == pytest.approx(FACTORS[product][name], rel=1e-9), name
    assert abs(FACTORS[product]["rho_nepce_double_count"] / FACTORS[product]["rho_nepce_1"] - 1) > 1e-4


@pytest.mark.parametrize("engine", ENGINES)
def test_growth_of_a_run_is_the_one_read_off(engine):
    """Over many steps the energy grows by rho squared in each, up to a swing that does not add up."""
    seen = states(hk.run(spring_and_mass(BalanceCorrection(0.5)), 400, engine=engine))
    E = (seen**2).sum(axis=1)
    rate = np.polyfit(np.arange(200, 2001), np.log(E[200:]), 1)[0]
    assert rate == pytest.approx(2 * np.log(FACTORS["0.2"]["rho_nepce_half"]), rel=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0, -0.5])
def test_the_formula(alpha):
    """u = y + alpha (mean of y over the last step - y before), y a line between its samples."""
    samples = [Sample(-0.5, 3.0), Sample(0.0, 5.0)]
    assert BalanceCorrection(alpha).fit(samples, None)[0] == pytest.approx([5.0 + alpha * (4.0 - 3.0)])
    assert BalanceCorrection(alpha).fit(samples[1:], None)[0] == [5.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_without_alpha_it_is_the_hold(engine):
    runs = [hk.run(spring_and_mass(each), 20, engine=engine) for each in (BalanceCorrection(0.0), Hold())]
    assert np.array_equal(*(states(run) for run in runs))


@pytest.mark.parametrize("engine", ENGINES)
def test_as_much_flows_as_under_a_line(engine):
    """An integrator under any signal: alpha = 1 hands on what a linear extrapolation does, step by step."""
    source = hk.Function(lambda t: [np.sin(3 * t) + t * t], ["y"])
    tank = hk.StateSpace([[0]], [[1]], [[1]], x0=[0.2], inputs=["u"], outputs=["level"])
    levels = []
    for extrapolation in (BalanceCorrection(1.0), Polynomial(1)):
        scenario = Scenario({"source": source, "tank": tank}, {"tank.u": "source.y"})
        run = hk.run(Composite(scenario, "0.1", Jacobi(), extrapolation, "cold"), 3, engine=engine)
        levels.append(run["tank.level"].values)
    y = np.sin(0.3 * np.arange(30)) + (0.1 * np.arange(30)) ** 2
    held = y + 0.5 * np.diff(y, prepend=y[0])
    assert levels[0] == pytest.approx(0.2 + np.append(0.0, np.cumsum(0.1 * held)), abs=1e-12)
    assert levels[0] == pytest.approx(levels[1], abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_steps_of_different_length(engine):
    """Half of the last change, however long the last step was."""
    way = hk.Adaptive(Jacobi(), 0.05, first=1)
    run = hk.run(spring_and_mass(BalanceCorrection(1.0), orchestrator=way), 4, engine=engine)
    t, f, v = run["spring.f"].t, run["spring.f"].values, run["mass.v"].values
    assert len(set(np.diff(t).round(12))) > 2
    push = f + 0.5 * np.diff(f, prepend=f[0])
    assert np.diff(v) == pytest.approx(np.diff(t) * push[:-1], abs=1e-12)


def test_both_engines_agree_to_the_bit_in_all_orders():
    for way in (Jacobi(), GaussSeidel(), hk.Multirate({"spring": 3}), hk.Iterate(Jacobi(), None, 3)):
        composite = spring_and_mass(BalanceCorrection(0.7), orchestrator=way)
        native, plain = (hk.run(composite, 6, engine=engine, ledger=True) for engine in ENGINES)
        assert native.info["engine"] == "native"
        for port in plain.ports:
            assert np.array_equal(plain[port].values, native[port].values), (way, port)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_ledger_shows_what_the_correction_saves(engine):
    """The bond gains what the golden trajectories gain: 0.625 J times 1.44 - 1, against 2.4 million."""
    corrected, held = (
        hk.run(spring_and_mass(each), 75, engine=engine).info["bonds"]["joint"]["gained"]
        for each in (BalanceCorrection(1.0), Hold())
    )
    growth = [sum(np.square(REFERENCE[name]["375"])) / 1.25 - 1 for name in ("nepce", "const")]
    assert [corrected, held] == pytest.approx([0.625 * each for each in growth], rel=1e-9)


@pytest.mark.parametrize("alpha", [float("nan"), float("inf")])
def test_no_number(alpha):
    with pytest.raises(hk.ScenarioError, match="alpha"):
        BalanceCorrection(alpha)
