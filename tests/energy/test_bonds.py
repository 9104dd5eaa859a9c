"""What a bond may join, what its power is in watts, and what is refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import hocket as hk
from hocket import Bond, Connection, Scenario, ScenarioError, StateSpace
from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import wire
from systems import ENGINES


def part(entry, exit, x0=1.0, gain=1.0):
    """x' = u, y = gain x."""
    return StateSpace([[0]], [[1]], [[gain]], x0=[x0], inputs=[entry], outputs=[exit])


def pair(force="N", speed="m/s", force_in=None, speed_in=None, connections=None, **bond):
    """A spring that gives a force, a mass that gives a speed."""
    models = {
        "spring": part(f"v [{speed_in or speed}]", f"f [{force}]", gain=-1.0),
        "mass": part(f"f [{force_in or force}]", f"v [{speed}]", 0.5),
    }
    bonds = {"joint": Bond("mass.f", "spring.v", **bond)}
    return Scenario(models, connections or {"mass.f": "spring.f", "spring.v": "mass.v"}, bonds=bonds)


def refused(scenario):
    with pytest.raises(ScenarioError) as caught:
        wire(with_level_ports(scenario))
    return caught.value


# what the factors are


def test_who_gives_the_effort_gives_the_power():
    (joint,) = wire(pair()).bonds
    assert (joint.name, joint.unit, joint.energy_unit) == ("joint", "W", "J")
    assert joint.given == (0, 0, 0, 1.0)
    assert joint.taken == (1, 0, 0, 1.0)


@pytest.mark.parametrize(
    ("force", "speed", "unit", "factor"),
    [
        ("N", "km/h", "W", 1 / 3.6),
        ("kN", "m/s", "W", 1e3),
        ("kN", "m/s", "kW", 1.0),
        ("N.m", "rpm", "W", 2 * np.pi / 60),
        ("N.m", "rad/s", "W", 1.0),
        ("Nm", "deg/s", "W", np.pi / 180),
        ("V", "mA", "W", 1e-3),
        ("bar", "L/min", "W", 1e5 * 1e-3 / 60),
        ("Pa", "m3/s", "W", 1.0),
        ("K", "W/K", "W", 1.0),
        ("kg", "1/s", "kg/s", 1.0),
    ],
)
def test_units_become_a_factor(force, speed, unit, factor):
    (joint,) = wire(pair(force, speed, unit=unit)).bonds
    assert joint.given.factor == pytest.approx(factor, rel=1e-12)
    assert joint.taken.factor == pytest.approx(factor, rel=1e-12)


def test_each_side_counts_in_its_own_units():
    """The spring sees N and km/h, the mass kN and m/s: the same watts."""
    (joint,) = wire(pair(force="N", speed="m/s", force_in="kN", speed_in="km/h")).bonds
    assert joint.given.factor == pytest.approx(1 / 3.6, rel=1e-12)
    assert joint.taken.factor == pytest.approx(1e3, rel=1e-12)


@pytest.mark.parametrize(("unit", "energy"), [("W", "J"), ("kW", "kW.s"), ("", "")])
def test_the_unit_of_the_energy(unit, energy):
    assert wire(pair(unit=unit)).bonds[0].energy_unit == energy


def test_missing_units_cost_nothing():
    (joint,) = wire(pair(force="N", speed="")).bonds
    assert (joint.given.factor, joint.taken.factor) == (1.0, 1.0)


def test_reverse_counts_the_other_way():
    (joint,) = wire(pair(reverse=True)).bonds
    assert (joint.given.factor, joint.taken.factor) == (-1.0, -1.0)


@pytest.mark.parametrize(
    ("effort", "flow", "given", "taken"),
    [
        (1.0, 1.0, 1.0, 1.0),
        (-1.0, 1.0, 1.0, -1.0),
        (1.0, -1.0, 1.0, -1.0),
        (-1.0, -1.0, 1.0, 1.0),
        (5.0, 5.0, 1.0, 1.0),
        (-0.25, -0.25, 1.0, 1.0),
        (5.0, -5.0, 1.0, -1.0),
    ],
)
def test_gains_and_gears(effort, flow, given, taken):
    """A sign in one connection turns one port around; a gear has its ratio in both."""
    connections = [
        Connection("spring.f", "mass.f", gain=effort),
        Connection("mass.v", "spring.v", gain=flow),
    ]
    (joint,) = wire(pair(connections=connections)).bonds
    assert (joint.given.factor, joint.taken.factor) == (given, taken)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("turned", ["force", "speed"])
def test_a_sign_in_one_connection(turned, reverse, engine):
    """A spring that gives f = +s: its power counts from the mass to it, until it is counted in reverse."""
    models = {"spring": part("v [m/s]", "f [N]"), "mass": part("f [N]", "v [m/s]", 0.5)}
    connections = [
        Connection("spring.f", "mass.f", gain=-1.0 if turned == "force" else 1.0),
        Connection("mass.v", "spring.v", gain=-1.0 if turned == "speed" else 1.0),
    ]
    scenario = Scenario(models, connections, bonds={"joint": Bond("mass.f", "spring.v", reverse=reverse)})
    run = hk.run(hk.Composite(scenario, "0.1"), 3, ledger=True, engine=engine)
    stored = 0.5 * (run["spring.f"].values ** 2 + run["mass.v"].values ** 2)
    sign = 1.0 if reverse else -1.0
    assert run["joint.gained"].values == pytest.approx(sign * (stored - stored[0]), abs=1e-13)
    assert stored[-1] / stored[0] == pytest.approx(1.01**30, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_watts_in_other_units(engine):
    """1 N is 1e-3 kN, 1 m/s is 3.6 km/h: the energies of a run do not know."""
    plain = hk.run(hk.Composite(pair(), "0.1"), 3, engine=engine).info["bonds"]["joint"]
    mixed = pair("N", "m/s", "kN", "km/h")
    slow = StateSpace([[0]], [[1 / 3.6]], [[-1]], x0=[1.0], inputs=["v [km/h]"], outputs=["f [N]"])
    heavy = StateSpace([[0]], [[1e3]], [[1]], x0=[0.5], inputs=["f [kN]"], outputs=["v [m/s]"])
    mixed = mixed.with_models({"spring": slow, "mass": heavy})
    other = hk.run(hk.Composite(mixed, "0.1"), 3, engine=engine).info["bonds"]["joint"]
    for name in ("given", "taken", "gained"):
        assert other[name] == pytest.approx(plain[name], abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_gear(engine):
    """A wheel behind a gear of 5: the shaft's torque times its speed is the wheel's, through both gains."""
    models = {"shaft": part("w [rad/s]", "T [N.m]", gain=-1.0), "wheel": part("T [N.m]", "w [rad/s]", 0.5)}
    connections = [
        Connection("shaft.T", "wheel.T", gain=5.0),
        Connection("wheel.w", "shaft.w", gain=5.0),
    ]
    scenario = Scenario(models, connections, bonds={"gear": Bond("wheel.T", "shaft.w")})
    run = hk.run(hk.Composite(scenario, "0.02"), 2, ledger=True, engine=engine)
    stored = 0.5 * (run["shaft.T"].values ** 2 + run["wheel.w"].values ** 2)
    assert run["gear.gained"].values == pytest.approx(stored - stored[0], abs=1e-13)
    factor = (1 + 25 * 0.02**2) ** 100  # omega H = 5 H: held inputs, Moshagen 2021
    assert stored[-1] / stored[0] == pytest.approx(factor, rel=1e-12)


# several, and across levels


def chain():
    """Spring, mass and spring: the mass in the middle stands in two bonds."""
    mass = StateSpace([[0]], [[1, 1]], [[1]], x0=[0.5], inputs=["left [N]", "right [N]"], outputs=["v [m/s]"])
    spring = part("v [m/s]", "f [N]", gain=-1.0)
    return Scenario(
        {"one": spring, "mass": mass, "two": spring},
        {"mass.left": "one.f", "mass.right": "two.f", "one.v": "mass.v", "two.v": "mass.v"},
        bonds={"first": Bond("mass.left", "one.v"), "second": Bond("mass.right", "two.v")},
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
def test_two_bonds_of_one_simulator(extrapolation, engine):
    run = hk.run(hk.Composite(chain(), "0.1", "jacobi", extrapolation), 3, ledger=True, engine=engine)
    stored = 0.5 * sum(run[name].values ** 2 for name in ("one.f", "two.f", "mass.v"))
    both = run["first.gained"].values + run["second.gained"].values
    assert both == pytest.approx(stored - stored[0], abs=1e-13)
    assert np.array_equal(run["first.gained"].values, run["second.gained"].values)


def test_one_connection_in_two_bonds():
    """One speed drives both springs' ends of the mass: every bond has its own pair."""
    bonds = wire(chain()).bonds
    assert [(bond.given.child, bond.taken.child, bond.taken.input) for bond in bonds] == [
        (0, 1, 0),
        (2, 1, 1),
    ]


def across():
    axle = hk.Composite(Scenario({"spring": part("speed [m/s]", "force [N]", gain=-1.0)}), "0.05")
    body = hk.Composite(Scenario({"mass": part("force [N]", "speed [m/s]", 0.5)}), "0.1")
    return Scenario(
        {"axle": axle, "body": hk.Composite(Scenario({"upper": body}), "0.1")},
        {"body.upper.mass.force": "axle.spring.force", "axle.spring.speed": "body.upper.mass.speed"},
        bonds={"joint": Bond("body.upper.mass.force", "axle.spring.speed")},
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bond_across_levels(engine):
    run = hk.run(hk.Composite(across(), "0.1"), 3, ledger=True, engine=engine)
    factor = (1 + 0.1**2) ** 30
    assert run.info["bonds"]["joint"]["gained"] == pytest.approx(0.625 * (factor - 1), rel=1e-12)
    assert run["joint.gained"].t == pytest.approx(np.arange(31) / 10)


def test_a_bond_across_levels_with_units():
    axle = hk.Composite(Scenario({"spring": part("speed [km/h]", "force [N]", gain=-1.0)}), "0.05")
    changed = across().with_models(across().models | {"axle": axle})
    (joint,) = wire(with_level_ports(changed)).bonds
    assert joint.given.factor == pytest.approx(1 / 3.6, rel=1e-12)
    assert joint.taken.factor == 1.0


@pytest.mark.parametrize(
    ("effort", "flow", "near"),
    [
        ("body.upper.mass.force", "axle.spring.sped", "spring.speed"),
        ("body.upper.mass.force", "axl.spring.speed", "axle"),
        ("body.upper.mas.force", "axle.spring.speed", "upper.mass.force"),
    ],
)
def test_wrong_paths_have_a_nearest_match(effort, flow, near):
    text = str(refused(across().with_changes(bonds={"joint": Bond(effort, flow)})))
    assert f"`{near}`" in text


def test_a_bond_of_an_inner_level_is_faulted_with_its_path():
    inner = hk.Composite(pair("N", "m"), "0.1")
    with pytest.raises(ScenarioError, match=r"axle\.bonds\.joint"):
        hk.run(hk.Composite(Scenario({"axle": inner}), "0.1"), 1)


def test_a_bond_from_inside_a_level_to_outside_is_told_where_it_belongs():
    """Its input is driven by the level around: the bond must stand there."""
    inside = Scenario(
        {"spring": part("v [m/s]", "f [N]", gain=-1.0), "mass": part("f [N]", "v [m/s]")},
        {"mass.f": "spring.f", "spring.v": "v"},
        inputs=["v [m/s]"],
        bonds={"joint": Bond("mass.f", "spring.v")},
    )
    assert "not driven by a simulator of this level" in str(refused(inside))


# as data


def test_scenarios_with_bonds_are_compared_and_copied():
    one, same, other = pair(), pair(), pair(reverse=True)
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != one.with_changes(bonds={})
    assert one != one.with_changes(bonds={"seam": one.bonds["joint"]})
    for copied in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert copied == one
        assert copied.bonds == {"joint": Bond("mass.f", "spring.v")}
        assert hash(copied) == hash(one)


def test_bonds_cannot_be_changed_from_outside():
    given = {"joint": Bond("mass.f", "spring.v")}
    scenario = pair().with_changes(bonds=given)
    given.clear()
    assert list(scenario.bonds) == ["joint"]
    with pytest.raises(TypeError):
        scenario.bonds["more"] = Bond("mass.f", "spring.v")


def test_bonds_are_equal_by_what_they_join():
    assert Bond("a.f", "b.v") == Bond("a.f", "b.v", "W", False)
    assert len({Bond("a.f", "b.v"), Bond("a.f", "b.v"), Bond("b.v", "a.f")}) == 2


def test_a_pickled_composite_with_bonds_runs_to_the_same_bits():
    composite = hk.Composite(pair(), "0.1", "jacobi", "linear")
    runs = [hk.run(each, 2) for each in (composite, pickle.loads(pickle.dumps(composite)))]
    assert runs[0].info["bonds"] == runs[1].info["bonds"]
