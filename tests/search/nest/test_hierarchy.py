"""Levels made of a flat scenario: the same runs as levels written by hand, and what moves along."""

from fractions import Fraction

import numpy as np
import pytest

import hocket
from hocket import Bond, Composite, GaussSeidel, Jacobi, Polynomial, Scenario, StateSpace
from hocket.files.toml import dumps, loads
from hocket.model.hosts import Hosts, Link
from hocket.model.scenario import Connection, Insertion
from hocket.planning.cost import Work, plan_work
from hocket.planning.planner import plan_tree
from hocket.search.nest.hierarchy import (
    AS_IT_IS,
    AlgorithmVariant,
    LevelGroup,
    build_hierarchy,
    explicit_variants,
)
from systems import three_masses

TREE = LevelGroup(("first", LevelGroup(("second", "third"), 4)))


def level(composite, tree, step, way=AS_IT_IS, weights=None):
    return build_hierarchy(composite, tree, Fraction(step), way, weights)


def test_the_levels_are_those_written_by_hand():
    made = level(three_masses(2, "0.1 s", outputs="consistent"), TREE, "0.1")
    by_hand = three_masses(2, "0.1 s", "0.025 s", outputs="consistent")
    ours, theirs = hocket.run(made, 3), hocket.run(by_hand, 3)
    for port in ("second.x", "second.v", "third.x", "third.pull"):
        assert np.array_equal(ours[f"second_third.{port}"][1], theirs[f"pair.{port}"][1])
    assert np.array_equal(ours["first.x"][1], theirs["first.x"][1])


@pytest.mark.parametrize("outputs", ["stale", "consistent"])
def test_a_level_with_the_same_step_is_the_flat_scenario(outputs):
    """Formulas, section 4: clean inputs and H2 = H1 reproduce the flat run exactly."""
    flat = three_masses(1, "0.1 s", outputs=outputs)
    made = level(flat, LevelGroup(("first", LevelGroup(("second", "third"), 1))), "0.1")
    ours, theirs = hocket.run(made, 5), hocket.run(flat, 5)
    assert np.array_equal(ours["second_third.third.v"][1], theirs["third.v"][1])
    assert np.array_equal(ours["first.v"][1], theirs["first.v"][1])


@pytest.mark.parametrize(
    ("steps", "exchanges", "sims"),
    [(("0.1 s",), 60, 30), (("0.1 s", "0.025 s"), 150, 90), (("0.2 s", "0.05 s"), 75, 45)],
)
def test_exchanges_and_steps_counted_by_hand(steps, exchanges, sims):
    """Three values between I and II and three between II and III, each at the rate of its level."""
    assert plan_work(plan_tree(three_masses(1, *steps))) == Work(
        pytest.approx(exchanges), pytest.approx(sims)
    )


def test_consistent_outputs_cost_another_exchange():
    """Five inputs of outputs that react are set again: 11 values a step."""
    assert plan_work(plan_tree(three_masses(1, "0.1 s", outputs="consistent"))).exchanges == pytest.approx(
        110
    )


def test_what_belongs_to_connections_and_simulators_moves_along():
    flat = three_masses(1, "0.1 s")
    connections = [
        Connection(c.source, c.target, Polynomial(1) if c.target == "second.force" else None, 1.0, 0.0)
        for c in flat.scenario.connections
    ]
    scenario = flat.scenario.with_changes(
        connections=connections,
        record=("second.*", "first.x", "third.v"),
        bonds={"joint": Bond("second.force", "third.v2")},
        inserted={"third": Insertion("loops", "why"), "second.force": Insertion("accuracy", "also")},
    )
    made = level(flat.with_changes(scenario=scenario), TREE, "0.1")
    inner = made.scenario.models["second_third"]
    assert made.scenario.record == ("second_third.second.*", "first.x", "second_third.third.v")
    assert dict(made.scenario.bonds) == {}
    assert dict(inner.scenario.bonds) == {"joint": Bond("second.force", "third.v2")}
    kept = {each.target: each for each in inner.scenario.connections}
    assert kept["second.force"].extrapolation == Polynomial(1)
    assert inner.scenario.inserted["third"].by == "loops"
    assert inner.scenario.inserted["second.force"].by == "accuracy"
    assert made.scenario.inserted["second_third"].by == "nesting"
    run = hocket.run(made, 1)
    assert "first.v" not in run.ports
    assert "second_third.second.pull" in run.ports


def test_levels_inside_levels_and_names_that_are_taken():
    one = StateSpace(A=[[-1]], B=[[1]], C=[[1]], x0=[1], inputs=["u"], outputs=["y"])
    names = ["a", "b", "c", "d", "c_d"]
    wires = {f"{b}.u": f"{a}.y" for a, b in zip(names, [*names[1:], names[0]], strict=True)}
    flat = Composite(Scenario(dict.fromkeys(names, one), wires), "0.1 s")
    made = level(flat, LevelGroup(("a", LevelGroup(("b", LevelGroup(("c", "d"), 2)), 5), "c_d")), "0.1")
    outer = made.scenario.models["b_c_d"]
    assert outer.step == Fraction(1, 50)
    assert outer.scenario.models["c_d_2"].step == Fraction(1, 100)
    wired = {(c.source, c.target) for c in made.scenario.connections}
    assert wired == {("a.y", "b_c_d.b.u"), ("b_c_d.c_d_2.d.y", "c_d.u"), ("c_d.y", "a.u")}
    assert loads(dumps(made)).composite == made
    hocket.run(made, 1)


def test_ports_of_the_scenario_itself_stay_outside():
    one = StateSpace(A=[[-1]], B=[[1]], C=[[1]], x0=[1], inputs=["u"], outputs=["y"])
    wires = {"b.u": "a.y", "c.u": "b.y", "a.u": "push", "seen": "c.y"}
    flat = Composite(
        Scenario(dict.fromkeys("abc", one), wires, inputs=["push = 2"], outputs=["seen"]), "0.1 s"
    )
    made = level(flat, LevelGroup(("a", LevelGroup(("b", "c"), 2))), "0.1")
    assert [port.name for port in made.inputs] == ["push"]
    assert [port.name for port in made.outputs] == ["seen"]
    assert np.allclose(hocket.run(made, 1)["a.y"][1], hocket.run(flat, 1)["a.y"][1], rtol=0, atol=0)


def test_orders_of_gauss_seidel():
    flat = three_masses(1, "0.1 s").with_changes(orchestrator=GaussSeidel(["third", ["first", "second"]]))
    made = level(flat, TREE, "0.1")
    assert made.orchestrator.order == ("second_third", "first")
    assert made.scenario.models["second_third"].orchestrator.order == ("third", "second")
    way = AlgorithmVariant("", sequential=True)
    weights = {
        ("first", "second"): 1.0,
        ("third", "second"): 5.0,
        ("second", "third"): 0.1,
        ("second", "first"): 0.2,
    }
    made = level(three_masses(1, "0.1 s"), TREE, "0.1", way, weights)
    assert made.orchestrator.order == ("first", "second_third")
    assert made.scenario.models["second_third"].orchestrator.order == ("third", "second")


def test_ways_suit_the_scenario():
    words = [way.words for way in explicit_variants(three_masses(1, "0.1 s"))]
    assert 'outputs = "consistent"' in words
    smooth = three_masses(1, "0.1 s", outputs="consistent").with_changes(extrapolation=Polynomial(1))
    assert [way.words for way in explicit_variants(smooth)] == ['"gauss-seidel"']
    assert list(explicit_variants(smooth.with_changes(orchestrator=GaussSeidel()))) == []
    assert isinstance(level(smooth, TREE, "0.1").orchestrator, Jacobi)


def test_hosts_follow_into_the_levels():
    flat = three_masses(1, "0.1 s")
    hosts = Hosts({"here": ("first",), "there": ("second", "third")}, Link("1 ms"))
    made = level(flat.with_scenario(flat.scenario.with_changes(hosts=hosts)), TREE, "0.1")
    assert made.scenario.hosts is not None
    assert made.scenario.hosts.models == {"here": ("first",), "there": ("second_third",)}
