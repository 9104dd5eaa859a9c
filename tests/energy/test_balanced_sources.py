"""Balanced by energy beside sources: what weights and pumps bring is theirs to give too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocket as hk

INPUTS = [hk.Hermite(), hk.Polynomial(1)]


def hanging(balance: Any, step: float, inputs: Any) -> float:
    """Return the largest error of 1 kg on 1 N/m under a weight of 1 N, let go: x = 1 - cos t."""
    spring = hk.StateSpace([[0]], [[1]], [[-1]], inputs=["v [m/s]"], outputs=["f [N]"], energy=[[1]])
    ports: dict[str, Any] = {"inputs": ["f [N]", "weight [N] = 1"], "outputs": ["v [m/s]"]}
    mass = hk.StateSpace([[0]], [[1, 1]], [[1]], energy=[[1]], **ports)
    bonds = {"joint": hk.Bond("mass.f", "spring.v", balance=balance)}
    wires = {"mass.f": "spring.f", "spring.v": "mass.v"}
    scenario = hk.Scenario({"spring": spring, "mass": mass}, wires, bonds=bonds)
    x = -hk.run(hk.Composite(scenario, step, extrapolation=inputs), 20)["spring.f"].values
    return float(np.abs(x - (1 - np.cos(np.linspace(0, 20, len(x))))).max())


@pytest.mark.parametrize("inputs", INPUTS, ids=str)
def test_a_weight_does_not_hold_the_mass_where_it_turns(inputs: Any) -> None:
    """There the mass has nothing of its own, and gives what its weight brings. Of order 2, as without."""
    errors = [hanging("energy", step, inputs) for step in (0.1, 0.05, 0.025)]
    plain = [hanging(None, step, inputs) for step in (0.1, 0.05, 0.025)]
    assert all(one < 1.6 * other for one, other in zip(errors, plain, strict=True))
    assert errors[0] / errors[2] > 12


@pytest.mark.parametrize("inputs", INPUTS, ids=str)
@pytest.mark.parametrize("step", ["8 ms", "5 ms", "2.5 ms"])
def test_a_pump_fills_an_accumulator_as_far_as_it_goes(step: str, inputs: Any) -> None:
    """At rest 20 q = 0.01 (50 - p) and 0.5 p = 1e4 q: p = 50 bar / 1.1."""
    ports: dict[str, Any] = {"inputs": ["pump [bar] = 50", "p [bar]"], "outputs": ["q [m3/s]"]}
    line = hk.StateSpace([[-20]], [[1e-2, -1e-2]], [[1]], energy=[[1e7]], **ports)
    accu = hk.StateSpace(
        [[-0.5]], [[1e4]], [[1]], x0=[10], inputs=["q [m3/s]"], outputs=["p [bar]"], energy=[[10]]
    )
    bonds = {"port": hk.Bond("line.p", "accu.q", reverse=True, balance="energy")}
    scenario = hk.Scenario(
        {"line": line, "accu": accu}, {"line.p": "accu.p", "accu.q": "line.q"}, bonds=bonds
    )
    run = hk.run(hk.Composite(scenario, step, extrapolation=inputs), 3)
    assert run.final("accu.p") == pytest.approx(50 / 1.1, rel=1e-6)
    assert abs(run.info["bonds"]["port"]["gained"]) < 1e-9 * run.info["bonds"]["port"]["moved"]
