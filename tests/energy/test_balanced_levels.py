"""Balanced bonds inside levels and through their ports; what cannot be balanced there is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocket as hk
from hocket.coupling.level_ports import with_level_ports
from hocket.planning.planner import plan_tree
from systems import ENGINES, SPRING_MASS, spring

BOND = hk.Bond("mass.f", "spring.v", balance="energy")


def mass() -> hk.StateSpace:
    """One that may be pushed besides."""
    inputs, outputs = ["f [N]", "push [N] = 0"], ["v [m/s]"]
    return hk.StateSpace([[0]], [[1, 1]], [[1]], x0=[0.5], inputs=inputs, outputs=outputs, energy=[[1]])


def inside(bonds: dict[str, hk.Bond]) -> hk.Composite:
    scenario = hk.Scenario({"spring": spring(energy=1.0), "mass": mass()}, SPRING_MASS, bonds=bonds)
    return hk.Composite(scenario, "0.2 s", extrapolation="linear")


@pytest.mark.parametrize("bond", [hk.Bond("mass.f", "spring.v"), BOND], ids=["plain", "balanced"])
def test_a_level_that_is_driven_from_outside_keeps_its_bonds_balanced(bond: hk.Bond) -> None:
    """A force that is zero: x^2 + v^2 = 1.25 for ever; without balance lines gain 9 % in 20 s."""
    nothing = hk.Function(lambda t: [0.0], outputs=["y [N]"])
    around = hk.Scenario({"axle": inside({"joint": bond}), "none": nothing}, {"axle.mass.push": "none.y"})
    run = hk.run(hk.Composite(around, "0.2 s", extrapolation="linear"), 20)
    energy = 0.5 * (run["axle.spring.f"].values ** 2 + run["axle.mass.v"].values ** 2)
    if bond.balance:
        assert energy == pytest.approx(np.full(len(energy), 0.625), rel=1e-12)
    else:
        assert energy[-1] > 1.05 * 0.625


def test_a_simulator_in_balanced_bonds_of_two_levels_is_refused() -> None:
    outer = {"axle.mass.push": "far.f", "far.v": "axle.mass.v"}
    bonds = {"link": hk.Bond("axle.mass.push", "far.v", balance="energy")}
    around = hk.Scenario({"axle": inside({"joint": BOND}), "far": spring(energy=1.0)}, outer, bonds=bonds)
    with pytest.raises(hk.ScenarioError, match=r"`axle\.mass` is in balanced bonds of two levels") as caught:
        plan_tree(hk.Composite(around, "0.2 s", extrapolation="linear"))
    assert "bonds.link" in str(caught.value)


def test_slopes_that_are_read_before_the_exchange_are_refused() -> None:
    """They would be those under extrapolated inputs, and grow from step to step whatever is stored."""
    scenario = hk.Scenario({"spring": spring(energy=1.0), "mass": mass()}, SPRING_MASS, bonds={"joint": BOND})
    stale = hk.Jacobi(outputs="stale")
    with pytest.raises(hk.ScenarioError, match="slopes that are read before what was exchanged"):
        plan_tree(hk.Composite(scenario, "0.2 s", stale, hk.Hermite()))
    assert (
        hk.run(hk.Composite(scenario, "0.2 s", stale, "linear"), 1).info["bonds"]["joint"]["gained"] < 1e-12
    )


def test_a_bond_goes_through_ports_that_are_named_after_what_they_lead_to() -> None:
    """A level that comes back from an SSP has such."""
    level = hk.Composite(hk.Scenario({"mass": mass()}), "0.1 s", extrapolation="linear")
    wires = {"axle.mass.f": "spring.f", "spring.v": "axle.mass.v"}
    bonds = {"joint": hk.Bond("axle.mass.f", "spring.v", balance="energy")}
    made = hk.Composite(
        hk.Scenario({"spring": spring(energy=1.0), "axle": level}, wires, bonds=bonds), "0.2 s"
    )
    made = made.with_changes(extrapolation=hk.Polynomial(1))
    runs = [hk.run(each, 5) for each in (made, made.with_scenario(with_level_ports(made.scenario)))]
    assert runs[0].info["bonds"] == runs[1].info["bonds"]
    assert np.array_equal(*(run["axle.mass.v"].values for run in runs))
    assert abs(runs[0].info["bonds"]["joint"]["gained"]) < 1e-12


def test_words_on_connections_of_balanced_bonds() -> None:
    wires = {target: (source, "linear") for target, source in SPRING_MASS.items()}
    scenario = hk.Scenario({"spring": spring(energy=1.0), "mass": mass()}, wires, bonds={"joint": BOND})  # type: ignore[arg-type]
    run, same = hk.run(hk.Composite(scenario, "0.2 s"), 5), hk.run(inside({"joint": BOND}), 5)
    assert np.array_equal(run["mass.v"].values, same["mass.v"].values)


def swinging(inner: str, inside: Any, around: Any, inputs: Any) -> hk.Composite:
    """Return an oscillator with an idle listener in a level, joined to a spring outside; 13 J."""
    A, B, C, Q = [[0, 1], [-25, 0]], [[0], [1]], [[0, 1], [1, 0]], np.diag([25, 1])
    outputs = ["v [m/s]", "x [m]"]
    swing = hk.StateSpace(A, B, C, x0=[1, 0], inputs=["f [N]"], outputs=outputs, energy=Q)
    listener = hk.StateSpace([[-1]], [[1]], [[1]], inputs=["x [m]"], outputs=["z [m]"])
    within = hk.Scenario({"swing": swing, "listener": listener}, {"listener.x": "swing.x"})
    level = hk.Composite(within, inner, inside, inputs)
    wires = {"axle.swing.f": "spring.f", "spring.v": "axle.swing.v"}
    bonds = {"joint": hk.Bond("axle.swing.f", "spring.v", balance="energy")}
    scenario = hk.Scenario({"axle": level, "spring": spring(energy=1.0)}, wires, bonds=bonds)
    return hk.Composite(scenario, "0.2 s", around, inputs)


SEVERAL = [
    hk.Multirate({"swing": 3}),
    hk.Asynchronous({"swing": 4, "listener": 2}),
    hk.Adaptive(hk.Jacobi(), 1e-2),
]


@pytest.mark.parametrize("inside", SEVERAL, ids=str)
@pytest.mark.parametrize("inputs", [hk.Hermite(), hk.Polynomial(1)], ids=str)
def test_algorithms_that_make_several_steps_inside_keep_the_energy(inside: Any, inputs: Any) -> None:
    runs = [
        hk.run(swinging("0.2 s", inside, hk.Jacobi(), inputs), 20, engine=engine)  # type: ignore[arg-type]
        for engine in ENGINES
    ]
    stored = [sum(each[when] for each in runs[0].info["stored"].values()) for when in ("start", "end")]
    assert stored[1] == pytest.approx(stored[0], rel=1e-12)
    assert runs[0].info["stored"] == runs[1].info["stored"]


@pytest.mark.parametrize(
    ("inner", "around", "what"),
    [
        ("0.4 s", hk.Jacobi(), "`axle.swing` makes longer steps than the level of its bond"),
        (
            "0.025 s",
            hk.Adaptive(quantum="1/8", first=1),
            "`axle.swing` makes several steps in one whose length",
        ),
    ],
)
def test_steps_for_which_nothing_was_agreed_are_refused(inner: str, around: Any, what: str) -> None:
    with pytest.raises(hk.ScenarioError) as caught:
        plan_tree(swinging(inner, hk.Jacobi(), around, hk.Polynomial(1)))
    assert what in str(caught.value)
    assert "bonds.joint" in str(caught.value)
