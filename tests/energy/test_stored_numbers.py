"""Stored energies that are no numbers: refused at the start, left out and told at the end."""

from __future__ import annotations

import json
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from systems import ENGINES, SPRING_MASS, spring

WRONG = pytest.mark.parametrize("wrong", [nan, inf, -inf])


class Mass:
    """One kilogram, whose energy is lost above a speed."""

    inputs = ("f [N]",)
    outputs = ("v [m/s]",)

    def __init__(self, limit: float, wrong: float):
        self.limit, self.wrong, self.v = limit, wrong, 0.5

    def start(self, t: float) -> None:
        self.v = 0.5

    def output(self, t: float) -> list[float]:
        return [self.v]

    def step(self, t: float, h: float, u: Any) -> None:
        self.v += h * u[0][0]

    def energy(self) -> float:
        return 0.5 * self.v**2 if abs(self.v) < self.limit else self.wrong


def as_class(limit: float, wrong: float) -> hk.Python:
    return hk.Python(Mass, limit=limit, wrong=wrong)


def as_ode(limit: float, wrong: float) -> hk.Ode:
    return hk.Ode(
        lambda t, x, u: [u[0]],
        x0=[0.5],
        inputs=["f [N]"],
        outputs=["v [m/s]"],
        energy=lambda x: 0.5 * x[0] ** 2 if abs(x[0]) < limit else wrong,
    )


def pair(mass: Any, balance: Any = None, extrapolation: str = "hold") -> hk.Composite:
    bonds = {"joint": hk.Bond("mass.f", "spring.v", balance=balance)}
    scenario = hk.Scenario({"spring": spring(energy=1.0), "mass": mass}, SPRING_MASS, bonds=bonds)
    return hk.Composite(scenario, "0.2 s", extrapolation=extrapolation)


@WRONG
@pytest.mark.parametrize("made", [as_class, as_ode])
def test_at_the_start_it_is_refused(made: Any, wrong: float) -> None:
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(pair(made(0.1, wrong)), 2)
    text = str(caught.value)
    assert f"`mass` says that it stores {wrong} J" in text
    assert "energy() at t = 0.0 s" in text


@WRONG
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("made", [as_class, as_ode])
def test_at_the_end_it_is_left_out_and_told(made: Any, engine: Any, wrong: float, tmp_path: Path) -> None:
    """Held inputs make 1.04 times the energy in each step: 20 s end above 2 m/s, in 31.57 J."""
    run = hk.run(pair(made(2.0, wrong)), 20, engine=engine, folder=tmp_path / "run")
    (note,) = run.info["notes"]
    assert f"`mass` says {wrong} J" in note
    spring = run.info["stored"].pop("spring")
    assert run.info["stored"] == {}
    assert spring["start"] == 0.5
    v = run.final("mass.v")
    assert spring["end"] == pytest.approx(0.625 * 1.04**100 - 0.5 * v * v, rel=1e-9)
    assert abs(v) > 2.0

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads((tmp_path / "run" / "run.json").read_text(), parse_constant=refuse)


def test_where_all_is_well_nothing_is_noted() -> None:
    run = hk.run(pair(as_class(1e9, nan)), 2)
    assert run.info["notes"] == []
    assert set(run.info["stored"]) == {"spring", "mass"}


@WRONG
def test_a_state_cannot_follow_an_energy_that_is_none(wrong: float) -> None:
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(pair(as_ode(0.1, wrong), "energy", "linear"), 2)
    assert f"its stored energy is {wrong} J" in str(caught.value)
    assert "`mass`, output() at t = 0.0 s" in str(caught.value)


def test_nor_one_that_is_lost_on_the_way() -> None:
    """The mass passes 0.9 m/s: |v| goes up to the root of 1.25."""
    with pytest.raises(hk.SimulatorError, match="its stored energy is nan J") as caught:
        hk.run(pair(as_ode(0.9, nan), "energy", "linear"), 20)
    assert "`mass`" in str(caught.value)
