"""What keeps the energy, says a trial: by the accounts of bonds, and by what simulators store."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

import hocket as hk
from energy.systems import motor, spring_mass
from energy.test_balanced_several import PUSHED
from hocket.analysis.bond_energy import OFF, BondCheck, BondTrial, Remedy, bond_check

ENERGY = 'balance = "energy"'
ITERATION = "iteration, with linear waveforms"


def unbalanced(scenario: hk.Scenario) -> hk.Scenario:
    bonds = {
        name: hk.Bond(bond.effort, bond.flow, bond.unit, reverse=bond.reverse)
        for name, bond in scenario.bonds.items()
    }
    return scenario.with_changes(bonds=bonds)


def judged(scenario: hk.Scenario, step: str, inputs: Any, stop: Fraction) -> BondCheck:
    return bond_check(hk.Composite(scenario, step, "jacobi", inputs), Fraction(0), stop, False)


def named(found: BondCheck, words: str) -> Remedy:
    (one,) = (each for each in found.remedies if each.words == words)
    return one


@pytest.mark.parametrize("step", ["0.1 s", "0.05 s"])
def test_a_start_that_gains_is_seen_in_what_is_stored(step: str) -> None:
    """With lines the second mass starts with energy that nobody gave, and bonds even out."""
    found = judged(unbalanced(PUSHED.joined(PUSHED.models())), step, "linear", Fraction(5))
    energy = named(found, ENERGY)
    assert energy.share < 1e-9
    assert energy.off is not None
    assert energy.off > OFF
    assert not energy.keeps_energy
    assert found.best is not None
    assert found.best.words == ITERATION
    assert found.now.stores_wrong_energy


@pytest.mark.parametrize("step", ["0.1 s", "0.05 s"])
@pytest.mark.parametrize(("inputs", "words"), [(hk.Hermite(), ENERGY), ("hold", f"{ENERGY} and tangents")])
def test_with_tangents_the_energy_form_is_advised(step: str, inputs: Any, words: str) -> None:
    """Held inputs are not balanced: they become tangents where simulators tell slopes."""
    found = judged(unbalanced(PUSHED.joined(PUSHED.models())), step, inputs, Fraction(5))
    assert named(found, words).off == pytest.approx(0.0, abs=1e-12)
    assert found.best is not None
    assert found.best.words == words


def test_energy_drawn_from_a_source_is_seen() -> None:
    """The motor with lines at 1 ms: bonds hand over what they agree on, and the supply swings ever more."""
    found = judged(motor().scenario(), "1 ms", "linear", Fraction(1, 10))
    energy = named(found, ENERGY)
    assert energy.share < 1e-9
    assert energy.stores_wrong_energy
    assert found.best is not None
    assert found.best.words != ENERGY
    now = judged(motor().scenario("energy"), "1 ms", "linear", Fraction(1, 10))
    assert now.now.stores_wrong_energy
    assert now.best is not None
    assert now.best.words == f"{ITERATION}, without balance"


def test_a_spring_and_a_mass() -> None:
    """80 steps of 0.2: stored energy of a hold is 1.04^100 of what it was, that of an iteration stays."""
    found = judged(spring_mass().scenario(), "0.2 s", "hold", Fraction(20))
    assert found.now.off == pytest.approx(1.04**100 - 1, rel=1e-9)
    assert found.best is not None
    assert found.best.words == f"{ENERGY} and tangents"
    tangents = named(found, "tangents (hermite) on the bonds")  # 1 + 0.2^4 / 4 per step
    assert tangents.off == pytest.approx((1 + 0.2**4 / 4) ** 100 - 1, rel=1e-9)


def test_what_is_stored_is_compared_where_both_looked() -> None:
    true = BondTrial((), 1.0, {0: 2.0, 10: 4.0, 20: 1.0})
    assert BondTrial((), 1.0, {0: 2.0, 10: 5.0, 15: 99.0}).stored_energy_error(true) == 0.25
    assert BondTrial((), 1.0, {0: 2.0, 10: float("nan")}).stored_energy_error(true) == float("inf")
    assert BondTrial((), 1.0, {5: 2.0}).stored_energy_error(true) is None
    assert BondTrial((), 1.0, {0: 1.0}).stored_energy_error(BondTrial((), 1.0, {0: 0.0})) is None


class Springy:
    """A spring in Python that tells what it stores, and does not go back."""

    inputs = ("v [m/s]",)
    outputs = ("f [N]",)

    def start(self, t: float) -> None:
        self.s = 1.0

    def output(self, t: float) -> list[float]:
        return [-self.s]

    def step(self, t: float, h: float, u: Any) -> None:
        slope = float(u[1, 0]) if len(u) > 1 else 0.0
        self.s += h * float(u[0, 0]) + 0.5 * h * h * slope

    def energy(self) -> float:
        return 0.5 * self.s**2


class Returning(Springy):
    """One that goes back."""

    def save(self) -> float:
        return self.s

    def restore(self, state: float) -> None:
        self.s = state


def python_pair(kind: type) -> hk.Scenario:
    mass = hk.StateSpace([[0]], [[1]], [[1]], x0=[0.5], inputs=["f [N]"], outputs=["v [m/s]"], energy=[[1]])
    wires = {"mass.f": "spring.f", "spring.v": "mass.v"}
    return hk.Scenario(
        {"spring": hk.Python(kind), "mass": mass}, wires, bonds={"j": hk.Bond("mass.f", "spring.v")}
    )


def test_what_python_classes_store_is_compared_too() -> None:
    """E grows by 1.04 in every step of 0.2 s under a hold, and by nothing in an iteration."""
    found = judged(python_pair(Returning), "0.2 s", "hold", Fraction(20))
    assert found.now.off == pytest.approx(1.04**100 - 1.0, rel=1e-2)


def test_what_fails_says_why() -> None:
    found = judged(python_pair(Springy), "0.2 s", "hold", Fraction(2))
    (why,) = found.failures
    assert why.startswith(f"{ITERATION} fails: ")
    assert "`spring` cannot roll back" in why


def test_the_steps_of_step_control_are_counted() -> None:
    """Lines need far fewer than holds for the same tolerance."""
    made = hk.Composite(
        spring_mass().scenario(None),
        "0.2 s",
        hk.Adaptive(tolerance=0.05, estimate="energy", per="unit"),
        "hold",
    )
    found = bond_check(made, Fraction(0), Fraction(20), False)
    runs = [
        hk.run(made.with_changes(extrapolation=inputs), 20).info["counts"]["adapted"][""]
        for inputs in (hk.Hold(), hk.Polynomial(1))
    ]
    hold, lines = (each["accepted"] + each["rejected"] for each in runs)
    assert named(found, "linear extrapolation on the bonds").work == pytest.approx(lines / hold, rel=1e-9)
    assert lines < 0.5 * hold


def test_what_is_little_of_what_flows_may_add_up() -> None:
    """Lines make 0.1 % of what flows at omega H = 0.1, which grows by 4 % in 80 s."""
    made = hk.Composite(spring_mass().scenario(None), "0.1 s", "jacobi", "linear")
    assert not bond_check(made, Fraction(0), Fraction(10), True).now.grows
    found = bond_check(made, Fraction(0), Fraction(80), True)
    assert found.now.share < 1e-2
    assert found.now.grows
    assert not found.now.keeps_energy
    assert found.best is not None
    assert found.best.words == ENERGY
    (line, *_) = (each for each in hk.check(made, 80).verdict() if each.startswith("energy residual: "))
    assert "it accumulates: spectral radius 1.0000" in line


@pytest.mark.parametrize(
    "how", [hk.Jacobi(), hk.Iterate(), hk.Adaptive(tolerance=1e-4), hk.Multirate({"mass": 2})], ids=str
)
def test_what_grows_by_itself_does_not_count(how: Any) -> None:
    """A mass on a spring that pushes itself: motion grows by exp(t/4), in an iteration too."""
    wild = hk.StateSpace([[0.5]], [[1]], [[1]], x0=[0.5], inputs=["f [N]"], outputs=["v [m/s]"])
    spring = hk.StateSpace([[0]], [[1]], [[-1]], x0=[1], inputs=["v [m/s]"], outputs=["f [N]"])
    wires, bonds = {"mass.f": "spring.f", "spring.v": "mass.v"}, {"joint": hk.Bond("mass.f", "spring.v")}
    scenario = hk.Scenario({"mass": wild, "spring": spring}, wires, bonds=bonds)
    found = bond_check(hk.Composite(scenario, "0.01 s", how, "linear"), Fraction(0), Fraction(5), True)
    assert found.now.rho == pytest.approx(math.exp(0.0025), rel=1e-4)
    assert not found.now.grows
    assert found.now.keeps_energy


def test_a_trial_beyond_all_numbers_keeps_nothing() -> None:
    """A spring of 1e4 N/m at 0.1 s: 15 times more in every step."""
    spring = hk.StateSpace([[0]], [[1]], [[-1e4]], x0=[1], inputs=["v [m/s]"], outputs=["f [N]"])
    mass = hk.StateSpace([[0]], [[1]], [[1]], inputs=["f [N]"], outputs=["v [m/s]"])
    wires, bonds = {"mass.f": "spring.f", "spring.v": "mass.v"}, {"joint": hk.Bond("mass.f", "spring.v")}
    made = hk.Composite(
        hk.Scenario({"mass": mass, "spring": spring}, wires, bonds=bonds), "0.1 s", "jacobi", "linear"
    )
    found = bond_check(made, Fraction(0), Fraction(20), False)
    assert found.now.share == math.inf
    assert not found.now.keeps_energy
    (line,) = (each for each in hk.check(made, 20).verdict() if each.startswith("energy residual: "))
    assert line == "energy residual: that of the bond `joint` overflows in a trial run"


def test_at_rest_nothing_is_said() -> None:
    spring = hk.StateSpace([[0]], [[1]], [[-1]], inputs=["v [m/s]"], outputs=["f [N]"])
    mass = hk.StateSpace([[0]], [[1]], [[1]], inputs=["f [N]"], outputs=["v [m/s]"])
    wires, bonds = {"mass.f": "spring.f", "spring.v": "mass.v"}, {"joint": hk.Bond("mass.f", "spring.v")}
    made = hk.Composite(hk.Scenario({"mass": mass, "spring": spring}, wires, bonds=bonds), "0.1 s")
    assert any(
        each.startswith("energy residual: not judged, no power flows")
        for each in hk.check(made, 20).verdict()
    )
