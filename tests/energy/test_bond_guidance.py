"""What keeps the energy, says a trial: by the accounts of bonds, and by what simulators store."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import hocket as hk
from energy.systems import motor, spring_mass
from energy.test_balanced_several import PUSHED
from hocket.analysis.bond_trials import Trial
from hocket.analysis.energy import OFF, BondCheck, Remedy, bond_check

ENERGY = 'balance = "energy"'
ITERATION = "iteration, with linear waveforms"


def unbalanced(scenario: hk.Scenario) -> hk.Scenario:
    bonds = {
        name: hk.Bond(bond.effort, bond.flow, bond.unit, reverse=bond.reverse)
        for name, bond in scenario.bonds.items()
    }
    return scenario.changed(bonds=bonds)


def judged(scenario: hk.Scenario, step: str, inputs: Any, stop: Fraction) -> BondCheck:
    return bond_check(hk.Composite(scenario, step, "jacobi", inputs), Fraction(0), stop, False)


def named(found: BondCheck, words: str) -> Remedy:
    (one,) = (each for each in found.remedies if each.words == words)
    return one


@pytest.mark.parametrize("step", ["0.1 s", "0.05 s"])
def test_a_start_that_gains_is_seen_in_what_is_stored(step: str) -> None:
    """Held inputs become lines: the second mass starts with energy that nobody gave, and bonds even out."""
    found = judged(unbalanced(PUSHED.joined(PUSHED.models())), step, "hold", Fraction(5))
    energy = named(found, ENERGY)
    assert energy.share < 1e-9
    assert energy.off is not None
    assert energy.off > OFF
    assert not energy.keeps
    assert found.best is not None
    assert found.best.words == ITERATION
    assert found.now.astray


@pytest.mark.parametrize("step", ["0.1 s", "0.05 s"])
def test_with_tangents_the_energy_form_is_advised(step: str) -> None:
    found = judged(unbalanced(PUSHED.joined(PUSHED.models())), step, hk.Hermite(), Fraction(5))
    assert named(found, ENERGY).off == pytest.approx(0.0, abs=1e-12)
    assert found.best is not None
    assert found.best.words == ENERGY


def test_energy_drawn_from_a_source_is_seen() -> None:
    """The motor with lines at 1 ms: bonds hand over what they agree on, and the supply swings ever more."""
    found = judged(motor().scenario(), "1 ms", "linear", Fraction(1, 10))
    energy = named(found, ENERGY)
    assert energy.share < 1e-9
    assert energy.astray
    assert found.best is not None
    assert found.best.words != ENERGY
    now = judged(motor().scenario("energy"), "1 ms", "linear", Fraction(1, 10))
    assert now.now.astray
    assert now.best is not None
    assert now.best.words == f"{ITERATION}, without balance"


def test_a_spring_and_a_mass() -> None:
    """80 steps of 0.2: stored energy of a hold is 1.04^100 of what it was, that of an iteration stays."""
    found = judged(spring_mass().scenario(), "0.2 s", "hold", Fraction(20))
    assert found.now.off == pytest.approx(1.04**100 - 1, rel=1e-9)
    assert found.best is not None
    assert found.best.words == ENERGY


def test_what_is_stored_is_compared_where_both_looked() -> None:
    true = Trial((), 1.0, {0: 2.0, 10: 4.0, 20: 1.0})
    assert Trial((), 1.0, {0: 2.0, 10: 5.0, 15: 99.0}).off(true) == 0.25
    assert Trial((), 1.0, {0: 2.0, 10: float("nan")}).off(true) == float("inf")
    assert Trial((), 1.0, {5: 2.0}).off(true) is None
    assert Trial((), 1.0, {0: 1.0}).off(Trial((), 1.0, {0: 0.0})) is None
