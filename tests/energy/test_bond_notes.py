"""What is said of bonds before a run: signs that do not fit, step control that is blind."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hocket as hk
from hocket.analysis.bond_energy import COLUMNS, BondGain, BondTrial, _bond_gains
from hocket.planning.planner import plan_tree
from systems import ENGINES, SPRING_MASS, mass, spring


def pair(bond: hk.Bond, inputs: Any = "linear", how: Any = "jacobi", c: float = 1.0) -> hk.Composite:
    """A spring and a mass, c = m = 1; the energy of the spring may be declared wrong."""
    models = {"spring": spring(energy=c), "mass": mass(energy=1.0)}
    scenario = hk.Scenario(models, SPRING_MASS, bonds={"joint": bond})
    return hk.Composite(scenario, "0.1 s", how, inputs)


def notes(made: hk.Composite) -> list[str]:
    return [note for note in hk.run(made, 1).info["notes"] if "joint" in note]


@pytest.mark.parametrize(
    "bond",
    [
        hk.Bond("mass.f", "spring.v"),
        hk.Bond("spring.v", "mass.f", reverse=True),
        hk.Bond("mass.f", "spring.v", "kW"),
        hk.Bond("mass.f", "spring.v", balance="inversion"),
    ],
    ids=str,
)
def test_where_signs_fit_nothing_is_said(bond: hk.Bond) -> None:
    assert notes(pair(bond)) == []


def test_so_it_is_where_bonds_are_balanced_by_inversion() -> None:
    (note,) = notes(pair(hk.Bond("mass.f", "spring.v", reverse=True, balance="inversion")))
    assert "what is gained counts with the wrong sign" in note


@pytest.mark.parametrize(
    "bond", [hk.Bond("spring.v", "mass.f"), hk.Bond("mass.f", "spring.v", reverse=True)], ids=str
)
def test_power_that_counts_the_wrong_way_is_told(bond: hk.Bond) -> None:
    """The run gains energy, and such a bond would call it lost."""
    made = pair(bond, "hold")
    (note,) = notes(made)
    assert "the bond `joint` and the energy of" in note
    assert "what is gained counts with the wrong sign; look at `reverse` of the bond" in note
    assert hk.run(made, 5).info["bonds"]["joint"]["gained"] < 0.0


def test_an_energy_of_the_wrong_size_is_told() -> None:
    (note,) = notes(pair(hk.Bond("mass.f", "spring.v"), c=1000.0))
    assert "the energy of `spring` do not fit: what is gained is not what is stored; look at `energy`" in note
    assert notes(pair(hk.Bond("mass.f", "spring.v"), c=1.0001)) == []


@pytest.mark.parametrize("unit", ["", "W", "kW"])
def test_units_other_than_si_are_no_misfit(unit: str) -> None:
    """1 kN/m and 1 kg, in kN: energies are in joules all the same, whatever the bond counts in."""
    outer: dict[str, Any] = {"inputs": ["v [m/s]"], "outputs": ["f [kN]"]}
    spring = hk.StateSpace([[0]], [[1]], [[-1]], x0=[1.0], energy=[[1000]], **outer)
    inner: dict[str, Any] = {"inputs": ["f [kN]"], "outputs": ["v [m/s]"]}
    mass = hk.StateSpace([[0]], [[1000]], [[1]], x0=[0.5], energy=[[1]], **inner)
    bonds = {"joint": hk.Bond("mass.f", "spring.v", unit)}
    scenario = hk.Scenario({"spring": spring, "mass": mass}, SPRING_MASS, bonds=bonds)
    assert notes(hk.Composite(scenario, "1 ms")) == []


def test_step_control_by_energy_says_what_it_does_not_see() -> None:
    how = hk.Adaptive(hk.Jacobi(), 0.01, "energy")
    (note,) = notes(pair(hk.Bond("mass.f", "spring.v", balance="energy"), how=how))
    assert "blind" in note
    assert notes(pair(hk.Bond("mass.f", "spring.v"), how=how)) == []


def test_and_what_it_cannot_meet() -> None:
    way = hk.Adaptive(tolerance=0.01, estimate="energy", per="unit", on_jump="stop")
    made = pair(hk.Bond("mass.f", "spring.v"), hk.BalanceCorrection(), way)
    assert any("the correction of `joint` hands on" in note for note in plan_tree(made).plan.all_notes())
    for engine in ENGINES:
        with pytest.raises(hk.ConvergenceError, match=r'BalanceCorrection.*estimate="defect"'):
            hk.run(made, 5, engine=engine)  # type: ignore[arg-type]


def test_shares_of_bonds_are_gains_over_what_flowed():
    """3 of 6 and -1 of 2; all: 4 of 8. Nothing of nothing is none; what is not finite has no bound."""

    def bond(gained, moved):
        return BondGain("b", gained, moved, 1.0, 0.1, "W")

    assert [bond(*each).share for each in ((3.0, 6.0), (-0.25, 0.5), (1.0, 0.0))] == [0.5, -0.5, 0.0]
    assert bond(1.0, math.inf).share == math.inf
    assert BondTrial((bond(3.0, 6.0), bond(-1.0, 2.0)), 1.0, {}).share == 0.5
    assert BondTrial((bond(0.25, 0.5),), 1.0, {}).share == 0.5
    assert BondTrial((bond(0.0, 0.0),), 1.0, {}).share == 0.0
    assert BondTrial((bond(math.nan, 1.0),), 1.0, {}).share == math.inf


def test_the_seconds_of_a_bond_are_those_between_the_first_row_and_the_last():
    width = len(COLUMNS)
    table = SimpleNamespace(columns=[f"spring.{k}" for k in range(width)], units=["W"] * width)
    (found,) = _bond_gains(table, np.array([1.0, 1.5, 4.0]), [(3.0, 10.0), (2.0, 20.0)])
    assert found == BondGain("spring", -1.0, 15.0, 3.0, 1.5, "W")  # two steps of 1.5 s
