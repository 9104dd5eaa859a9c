"""Bonds that are refused: what is said, where, and what is near."""

from __future__ import annotations

import numpy as np
import pytest

from energy.test_bonds import pair, part, refused
from hocket import Bond, Connection, Scenario, ScenarioError, StateSpace
from hocket.coupling.wiring import wire


def test_units_that_make_no_power():
    error = refused(pair("N", "m"))
    assert "`N` times `m` is not `W`" in str(error)
    assert "bonds.joint" in str(error)
    assert "unit" in str(error)


def test_units_that_do_not_make_the_declared_one():
    assert "is not `kg/s`" in str(refused(pair(unit="kg/s")))


def test_a_unit_that_is_none():
    assert "`wat` is not a known physical unit" in str(refused(pair(unit="wat")))


def test_an_offset():
    connections = [Connection("spring.f", "mass.f", offset=0.1), Connection("mass.v", "spring.v")]
    assert "the connection to `mass.f` adds" in str(refused(pair(connections=connections)))


def test_an_offset_of_a_unit():
    scenario = Scenario(
        {"a": part("q [W/K]", "T [degC]"), "b": part("T [K]", "q [W/K]")},
        {"b.T": "a.T", "a.q": "b.q"},
        bonds={"heat": Bond("b.T", "a.q")},
    )
    assert "the connection to `b.T` adds 273.15" in str(refused(scenario))


@pytest.mark.parametrize(
    ("effort", "flow", "told"), [(5.0, 1.0, "0.2"), (1.0, -3.0, "3"), (2.0, 0.5, "0.25")]
)
def test_gains_that_do_not_keep_the_power(effort, flow, told):
    connections = [
        Connection("spring.f", "mass.f", gain=effort),
        Connection("mass.v", "spring.v", gain=flow),
    ]
    assert f"sees {told} times the power" in str(refused(pair(connections=connections)))


def test_a_gain_of_nothing():
    connections = [Connection("spring.f", "mass.f", gain=0.0), Connection("mass.v", "spring.v")]
    assert "power" in str(refused(pair(connections=connections)))


def test_two_connections_the_same_way():
    two = StateSpace(
        np.zeros((2, 2)), np.eye(2), np.eye(2), x0=[0, 0], inputs=["f [N]", "v [m/s]"], outputs=["p", "q"]
    )
    scenario = Scenario(
        {"a": two, "b": two},
        {"a.f": "b.p", "a.v": "b.q", "b.f": "a.p", "b.v": "a.q"},
        bonds={"joint": Bond("a.f", "a.v")},
    )
    assert "do not lead there and back" in str(refused(scenario))
    assert len(wire(scenario.with_changes(bonds={"joint": Bond("a.f", "b.v")})).bonds) == 1


def test_connections_of_a_ring_of_three():
    models = {name: part("u [N]", "y [N]") for name in "abc"}
    ring = {"b.u": "a.y", "c.u": "b.y", "a.u": "c.y"}
    error = refused(Scenario(models, ring, bonds={"joint": Bond("b.u", "a.u", unit="")}))
    assert "do not lead there and back between two simulators" in str(error)


def test_a_simulator_with_itself():
    own = StateSpace(np.zeros((2, 2)), np.eye(2), np.eye(2), x0=[0, 0], inputs=["f", "v"], outputs=["p", "q"])
    scenario = Scenario({"a": own}, {"a.f": "a.p", "a.v": "a.q"}, bonds={"joint": Bond("a.f", "a.v")})
    assert "two simulators" in str(refused(scenario))


def test_every_wrong_bond_is_told_at_once():
    bonds = {"one": Bond("mas.f", "spring.v"), "two": Bond("mass.f", "spring.w")}
    text = str(refused(pair().with_changes(bonds=bonds)))
    assert "there is no model `mas`" in text
    assert "bonds.one.effort" in text
    assert "`mass`" in text
    assert "`spring` has no input `w`" in text
    assert "bonds.two.flow" in text


@pytest.mark.parametrize("ends", [("mass.f", "spring.v"), ("spring.v", "mass.f")], ids=["same", "exchanged"])
def test_two_bonds_of_the_same_connections(ends):
    bonds = {"joint": Bond("mass.f", "spring.v"), "again": Bond(*ends, reverse=True)}
    text = str(refused(pair().with_changes(bonds=bonds)))
    assert "`joint` and `again` are bonds of the same two inputs" in text
    assert "bonds.again" in text


def test_two_bonds_between_the_same_simulators_by_other_connections():
    two = StateSpace(np.zeros((2, 2)), np.eye(2), np.eye(2), x0=[0, 0], inputs=["f", "M"], outputs=["p", "q"])
    bonds = {"push": Bond("a.f", "b.f", unit=""), "twist": Bond("a.M", "b.M", unit="")}
    wires = {"a.f": "b.p", "a.M": "b.q", "b.f": "a.p", "b.M": "a.q"}
    scenario = Scenario({"a": two, "b": two}, wires, bonds=bonds)
    assert [joint.name for joint in wire(scenario).bonds] == ["push", "twist"]


def test_an_output_is_not_what_a_bond_names():
    text = str(refused(pair().with_changes(bonds={"joint": Bond("spring.f", "spring.v")})))
    assert "`spring` has no input `f`" in text
    assert "a bond names the inputs that are driven, here `mass.f`" in text


def test_an_input_that_nothing_drives():
    models = pair().models | {"mass": part("f [N] = 0", "v [m/s]")}
    scenario = Scenario(models, {"spring.v": "mass.v"}, bonds={"joint": Bond("mass.f", "spring.v")})
    assert "`mass.f` is not driven by a simulator" in str(refused(scenario))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"effort": 1, "flow": "a.v"}, "two inputs"),
        ({"effort": "a.f", "flow": "b.v", "balance": "energie"}, '"energy"'),
        ({"effort": "a.f", "flow": "b.v", "eps": 0.0}, "`eps` cannot be 0.0"),
        ({"effort": "a.f", "flow": "b.v", "eps": True}, "`eps` cannot be True"),
        ({"effort": "a.f", "flow": "b.v", "reverse": "no"}, "`reverse` cannot be 'no'"),
        ({"effort": "a.f", "flow": "b.v", "eps": float("nan")}, "`eps` cannot be nan"),
    ],
)
def test_a_bond_that_cannot_be(arguments, told):
    with pytest.raises(ScenarioError, match=told):
        Bond(**arguments)


@pytest.mark.parametrize(
    ("bonds", "told"),
    [
        ([Bond("mass.f", "spring.v")], "have names"),
        ({"a.b": Bond("mass.f", "spring.v")}, "cannot name a bond"),
        ({"mass": Bond("mass.f", "spring.v")}, "names a bond and a model"),
        ({"joint": ("mass.f", "spring.v")}, "is not a bond"),
    ],
)
def test_bonds_that_cannot_be(bonds, told):
    with pytest.raises(ScenarioError, match=told):
        pair().with_changes(bonds=bonds)
