"""Bonds that are balanced, as users write them: units, refusals, several levels."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket.model.composite import OrchestratorTraits
from hocket.planning.planner import plan_tree
from systems import SPRING_MASS, mass, spring


def pair(
    bond: hk.Bond, orchestrator: object = "jacobi", extrapolation: object = "linear", energy: Any = None
) -> hk.Composite:
    """A spring and a mass, c = m = 1."""
    models = {"spring": spring(energy=1.0), "mass": mass(energy=energy)}
    scenario = hk.Scenario(models, SPRING_MASS, bonds={"joint": bond})
    return hk.Composite(scenario, "0.2 s", orchestrator, extrapolation)  # type: ignore[arg-type]


@pytest.mark.parametrize(("unit", "scale"), [("W", 1.0), ("kW", 1e-3), ("", 1.0)])
def test_the_unit_of_the_account_is_not_that_of_the_law(unit: str, scale: float) -> None:
    bond = hk.Bond("mass.f", "spring.v", unit, balance="energy")
    run = hk.run(pair(bond, energy=1.0), 20)
    stored = run.info["stored"]
    assert sum(each["end"] for each in stored.values()) == pytest.approx(0.625, rel=1e-9)
    taken = stored["mass"]["end"] - stored["mass"]["start"]
    assert run.info["bonds"]["joint"]["taken"] == pytest.approx(scale * taken, rel=1e-9)


class Together:
    """An algorithm of somebody else, in which all step together: it says so."""

    traits = OrchestratorTraits("parallel", outputs="consistent")

    def plan(self, scenario: hk.Scenario) -> Any:
        return hk.Jacobi().plan(scenario)


def test_an_algorithm_is_judged_by_what_it_says_of_itself() -> None:
    bond = hk.Bond("mass.f", "spring.v", balance="energy")
    ours, theirs = (hk.run(pair(bond, each, energy=1.0), 2) for each in ("jacobi", Together()))
    assert (ours["mass.v"].values == theirs["mass.v"].values).all()


@pytest.mark.parametrize(
    ("bond", "options", "said"),
    [
        (hk.Bond("mass.f", "spring.v", balance="energy"), {}, "needs the stored energy"),
        (hk.Bond("mass.f", "spring.v", balance="inversion"), {"extrapolation": "hold"}, "freezes the motion"),
        (hk.Bond("mass.f", "spring.v", balance="inversion"), {"orchestrator": "gauss-seidel"}, "step tog"),
        (hk.Bond("mass.f", "spring.v", "kg/s", balance="inversion"), {}, "kg/s"),
    ],
)  # fmt: skip
def test_what_cannot_be_balanced_is_refused(bond: hk.Bond, options: dict[str, object], said: str) -> None:
    with pytest.raises(hk.ScenarioError, match=said):
        plan_tree(pair(bond, **options))


def test_an_energy_that_does_not_fit_the_ports_is_refused() -> None:
    bond = hk.Bond("mass.f", "spring.v", reverse=True, balance="energy")
    with pytest.raises(hk.ScenarioError, match=r"does not grow by the power(.*\n)*.*`reverse` of the bond"):
        plan_tree(pair(bond, energy=1.0))
    with pytest.raises(hk.ScenarioError, match=r"through `v` and `f`(.*\n)*.*in joules"):
        plan_tree(pair(hk.Bond("mass.f", "spring.v", balance="energy"), energy=2.0))


@pytest.mark.parametrize(
    ("energy", "reverse", "what", "hint"),
    [
        (lambda x: 0.5 * x[0] ** 2, True, "does not grow by the power that comes in", "`reverse`"),
        (lambda x: x[0] ** 2, False, "does not grow by the power that comes in", "`energy` in joules"),
        (lambda x: 0.5 * x[0] ** 2 - 1.0, False, "its stored energy is -0.875 J at the start", "a constant"),
    ],
)
def test_nor_is_an_energy_that_is_a_function(energy: Any, reverse: bool, what: str, hint: str) -> None:
    mass = hk.Ode(lambda t, x, u: [u[0]], x0=[0.5], inputs=["f [N]"], outputs=["v [m/s]"], energy=energy)
    bonds = {"joint": hk.Bond("mass.f", "spring.v", reverse=reverse, balance="energy")}
    spring = hk.Ode(
        lambda t, x, u: [u[0]],
        lambda t, x, u: [-x[0]],
        [0.0],
        ["v [m/s]"],
        ["f [N]"],
        feedthrough={},
        energy=lambda x: 0.5 * x[0] ** 2,
    )
    scenario = hk.Scenario(
        {"mass": mass, "spring": spring}, {"mass.f": "spring.f", "spring.v": "mass.v"}, bonds=bonds
    )
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(hk.Composite(scenario, "0.1 s", extrapolation="linear"), 1)
    assert what in str(caught.value)
    assert hint in str(caught.value)


def test_nothing_falls_from_where_its_energy_is_said_to_be_zero() -> None:
    """A mass under its weight, with W = g x + v^2 / 2: at x = 0 it has nothing to give, and stood still."""
    weight = hk.Ode(
        lambda t, x, u: [x[1], u[0] - 1.0],
        lambda t, x, u: [x[1]],
        [0.0, 0.0],
        ["f [N]"],
        ["v [m/s]"],
        feedthrough={},
        energy=lambda x: x[0] + 0.5 * x[1] ** 2,
    )
    spring = hk.StateSpace([[0]], [[1]], [[-1]], inputs=["v [m/s]"], outputs=["f [N]"], energy=[[1]])
    bonds = {"joint": hk.Bond("mass.f", "spring.v", balance="energy")}
    wires = {"mass.f": "spring.f", "spring.v": "mass.v"}
    scenario = hk.Scenario({"mass": weight, "spring": spring}, wires, bonds=bonds)
    with pytest.raises(hk.SimulatorError, match="and not the lowest that it can have"):
        hk.run(hk.Composite(scenario, "0.1 s", extrapolation="linear"), 1)


def test_an_output_that_is_named_like_an_account_is_none() -> None:
    spring = hk.StateSpace([[0]], [[1]], [[-1]], x0=[1.0], inputs=["v [m/s]"], outputs=["f [N]"])
    mass = hk.StateSpace(
        [[0]], [[1]], [[1], [7]], x0=[0.5], inputs=["f [N]"], outputs=["v [m/s]", "f_work [J]"]
    )
    scenario = hk.Scenario(
        {"spring": spring, "mass": mass},
        {"mass.f": "spring.f", "spring.v": "mass.v"},
        bonds={"joint": hk.Bond("mass.f", "spring.v")},
    )
    run = hk.run(hk.Composite(scenario, "0.2 s"), 2)
    v = run["mass.v"].values
    assert run.info["bonds"]["joint"]["taken"] == pytest.approx(0.5 * (v[-1] ** 2 - v[0] ** 2), rel=1e-12)


def test_a_law_that_does_not_come_to_an_end_is_said() -> None:
    def rate(t: float, x: object, u: list[float]) -> list[float]:
        return [u[0]]

    duffing = hk.Ode(
        rate,
        lambda t, x, u: [-x[0] - x[0] ** 3],
        [2.0],
        ["v [m/s]"],
        ["f [N]"],
        feedthrough={},
        step="0.01 s",
    )
    mass = hk.StateSpace([[0]], [[1]], [[1]], x0=[0.0], inputs=["f [N]"], outputs=["v [m/s]"])
    scenario = hk.Scenario(
        {"spring": duffing, "mass": mass},
        {"mass.f": "spring.f", "spring.v": "mass.v"},
        bonds={"joint": hk.Bond("mass.f", "spring.v", balance="inversion")},
    )
    with pytest.raises(hk.SimulatorError, match="evaluations in one step"):
        hk.run(hk.Composite(scenario, "1 s", extrapolation="linear"), 50)


class Broken:
    """Its energy cannot be told."""

    inputs = ("f [N]",)
    outputs = ("v [m/s]",)

    def start(self, t: float) -> None:
        self.v = 0.5

    def output(self, t: float) -> list[float]:
        return [self.v]

    def step(self, t: float, h: float, u: list[list[float]]) -> None:
        self.v += h * u[0][0]

    def energy(self) -> float:
        return 1.0 / 0.0


def test_an_energy_that_fails_names_its_simulator() -> None:
    spring = hk.StateSpace([[0]], [[1]], [[-1]], x0=[1.0], inputs=["v [m/s]"], outputs=["f [N]"])
    scenario = hk.Scenario(
        {"spring": spring, "mass": hk.Python(Broken)},
        {"mass.f": "spring.f", "spring.v": "mass.v"},
        bonds={"joint": hk.Bond("mass.f", "spring.v")},
    )
    with pytest.raises(hk.SimulatorError, match=r"`mass`, energy\(\) at t = 0\.0 s"):
        hk.run(hk.Composite(scenario, "0.2 s"), 2)


@pytest.mark.parametrize("extrapolation", ["linear", hk.Hermite()])
@pytest.mark.parametrize("stiffness", [10.0, 1000.0, 1e5])
def test_fast_oscillations_inside_a_simulator_make_no_energy(stiffness: float, extrapolation: object) -> None:
    """A mass on a spring turns by 2, 20 and 200 rad in a step; with the other mass it stores 0.475 J."""
    near = hk.StateSpace(
        [[0, -10], [stiffness, 0]],
        [[0], [-stiffness]],
        [[0, 1]],
        x0=[3.0, 0.0],
        inputs=["v [m/s]"],
        outputs=["f [N]"],
        energy=[[0.1, 0], [0, 1 / stiffness]],
    )
    far = hk.StateSpace(
        [[0]], [[2]], [[1]], x0=[0.4**0.5 / 2], inputs=["f [N]"], outputs=["v [m/s]"], energy=[[0.5]]
    )
    wires = {"near.v": ("far.v", extrapolation), "far.f": ("near.f", extrapolation)}
    bond = hk.Bond("far.f", "near.v", balance="energy")
    scenario = hk.Scenario({"near": near, "far": far}, wires, bonds={"joint": bond})  # type: ignore[arg-type]
    run = hk.run(hk.Composite(scenario, "0.2 s"), 20, record=["near.*", "far.*"])
    stored = run.info["stored"]
    assert sum(each["start"] for each in stored.values()) == pytest.approx(0.475, rel=1e-12)
    assert sum(each["end"] for each in stored.values()) == pytest.approx(0.475, rel=1e-6)
