"""What both sides of a bond agree on: the product of two signals, or the mean of two views of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hocket as hk
from scenarios.spring_and_mass import balanced, energies, pair, plain, states
from systems import ENGINES, spring

BOND = hk.Bond("mass.f", "spring.v")
TANGENTS = [("spring.f", "mass.f", hk.Hermite()), ("mass.v", "spring.v", hk.Hermite())]


def bonded(balance, power, models=None):
    first, second = models or pair()
    bond = replace(BOND, balance=balance, power=power)
    return hk.Scenario({"spring": first, "mass": second}, TANGENTS, bonds={"joint": bond})


def test_the_mean_of_both_views_is_the_product_without_its_last_term():
    """Moshagen 2021, equation 16 and table 2, for a spring c and a mass m at random states."""
    rng = np.random.default_rng(24)
    for _ in range(50):
        c, m = rng.uniform(0.2, 5.0, 2)
        s, v = rng.normal(size=2)
        f = -c * s
        a, f_rate = f / m, -c * v
        into_spring = c * s * v, c * (v * v + s * a)
        into_mass = f * v, m * (a * a + v * f_rate / m)
        agreed = [0.5 * (two - one) for one, two in zip(into_spring, into_mass, strict=True)]
        product = np.polynomial.polynomial.polymul([f, f_rate], [v, a])
        assert agreed == pytest.approx(product[:2], rel=1e-12, abs=1e-12)
        assert product[2] == pytest.approx(f_rate * a)


@pytest.mark.parametrize("form", ["inversion", "energy"])
def test_a_bond_says_which_power(form):
    """`power` of a bond is that of the wrapper, whose inversion has golden trajectories."""
    for word, own in (("mean", "linear"), ("product", "product")):
        by_bond, by_hand = (
            states(scenario, stop=20) for scenario in (bonded(form, word), balanced(form, power=own))
        )
        assert by_bond == pytest.approx(by_hand, abs=1e-9)
    assert states(bonded(form, "mean"), stop=20) != pytest.approx(
        states(bonded(form, "product"), stop=20), abs=1e-4
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_figure_3_for_both_powers_and_three_forms(engine):
    """E/E0 at most over T = 75, H = 0.2. The paper shows no gain: only the energy form has none."""
    most = {"plain": energies(states(plain(hk.Hermite()), engine=engine)).max()}
    for form in ("inversion", "energy"):
        for power in ("product", "mean"):
            most[form, power] = energies(states(bonded(form, power), engine=engine)).max()
    assert most["plain"] == pytest.approx(1.162, abs=5e-4)
    assert most["inversion", "product"] == pytest.approx(1.021, abs=2e-3)
    assert most["inversion", "mean"] == pytest.approx(1.06, abs=2e-3)
    assert most["energy", "product"] == pytest.approx(1.0, abs=1e-9)
    assert most["energy", "mean"] == pytest.approx(1.0, abs=1e-9)


def test_two_springs_on_one_mass_keep_their_energy():
    """Three subsystems, two bonds on one side: the energy form keeps the sum, with both powers."""
    models = {
        "a": spring(1.0, 1.0, energy=1.0),
        "b": spring(-0.4, 3.0, energy=3.0),
        "mass": hk.StateSpace(
            [[0.0]], [[1.0, 1.0]], [[1.0]], x0=[0.5], inputs=["fa [N]", "fb [N]"], outputs=["v [m/s]"],
            energy=[[1.0]],
        ),
    }  # fmt: skip
    wires = [("a.f", "mass.fa"), ("b.f", "mass.fb"), ("mass.v", "a.v"), ("mass.v", "b.v")]
    connections = [(*wire, hk.Hermite()) for wire in wires]
    for power in ("product", "mean"):
        bonds = {
            f"on_{side}": hk.Bond(f"mass.f{side}", f"{side}.v", balance="energy", power=power)
            for side in ("a", "b")
        }
        scenario = hk.Scenario(models, connections, bonds=bonds)
        run = hk.run(hk.Composite(scenario, 0.2), 40)
        s, t, v = -run["a.f"].values, -run["b.f"].values / 3.0, run["mass.v"].values
        E = s**2 + 3.0 * t**2 + v**2
        assert np.abs(E / E[0] - 1.0).max() < 1e-9


def test_step_control_keeps_the_agreed_energy():
    for power in ("product", "mean"):
        composite = hk.Composite(bonded("energy", power), 0.2, hk.Adaptive(hk.Jacobi(), 1e-3))
        run = hk.run(composite, 20)
        E = run["spring.f"].values ** 2 + run["mass.v"].values ** 2
        assert np.abs(E / E[0] - 1.0).max() < 1e-9


def test_files_have_the_agreed_power(tmp_path):
    hk.write(hk.Composite(bonded("energy", "mean"), 0.2), tmp_path / "a.toml")
    assert 'power = "mean"' in (tmp_path / "a.toml").read_text()
    assert hk.read(tmp_path / "a.toml").composite.scenario.bonds["joint"].power == "mean"


def test_a_power_that_is_none_and_two_on_one_simulator():
    with pytest.raises(hk.ScenarioError, match=r"`power` cannot be 'sum'"):
        hk.Bond("mass.f", "spring.v", power="sum")  # type: ignore[arg-type]
    models = {
        "a": spring(1.0, 1.0, energy=1.0),
        "b": spring(1.0, 1.0, energy=1.0),
        "mass": hk.StateSpace(
            [[0.0]], [[1.0, 1.0]], [[1.0]], x0=[0.5], inputs=["fa [N]", "fb [N]"], outputs=["v [m/s]"],
            energy=[[1.0]],
        ),
    }  # fmt: skip
    wires = [("a.f", "mass.fa"), ("b.f", "mass.fb"), ("mass.v", "a.v"), ("mass.v", "b.v")]
    bonds = {
        "one": hk.Bond("mass.fa", "a.v", balance="energy", power="mean"),
        "two": hk.Bond("mass.fb", "b.v", balance="energy"),
    }
    scenario = hk.Scenario(models, [(*wire, hk.Hermite()) for wire in wires], bonds=bonds)
    with pytest.raises(hk.ScenarioError, match="agree on the product and on the mean"):
        hk.run(hk.Composite(scenario, 0.2), 1)
