"""Loops are lifted into levels that solve them (requirements 1.3: two masses rigidly joined)."""

import numpy as np
import pytest

import hocket as hk
from hocket.planning.compiler.compiler import compile_level
from hocket.planning.compiler.contract import algebraic_loops, triviality_faults
from hocket.planning.compiler.loop_pass import Loops
from planning.compiler.followers import Follower
from planning.compiler.joined import CONNECTIONS, error, joined, models
from systems import ENGINES

TABLE = [(1, 0.5, "0.1", 0.228), (1, 2, "0.1", 0.2096), (1, 2, "0.05", 0.1118), (1, 2, "0.025", 0.0578)]
"""m1, m2, H, and the error of the solved loop."""


@pytest.mark.parametrize(("m1", "m2", "step", "printed"), TABLE)
def test_the_worked_example(m1, m2, step, printed):
    made = compile_level(joined(m1, m2, step)).level
    assert error(made, m1, m2) == pytest.approx(printed, rel=2e-3)


@pytest.mark.parametrize("step", ["0.1", "0.05", "0.025"])
def test_a_delay_diverges_where_the_second_mass_is_heavier(step):
    made = compile_level(joined(1, 2, step), [Loops("delay")]).level
    assert error(made, 1, 2) > 1e9


def test_a_plain_fixed_point_diverges_and_secants_do_not():
    plain = compile_level(joined(1, 2, "0.1"), [Loops("steps", accelerate="plain")]).level
    with pytest.raises(hk.ConvergenceError):
        hk.run(plain, 1)
    secant = compile_level(joined(1, 2, "0.1"), [Loops("steps")])
    run = hk.run(secant.level, 10)
    assert run.info["counts"]["sweeps"][""]["total"] <= 4 * run.info["counts"]["steps"]


def test_steps_made_again_converge_in_second_order_on_lines():
    errors = [
        error(compile_level(joined(1, 2, step, "linear"), [Loops("steps")]).level, 1, 2)
        for step in ("0.1", "0.05")
    ]
    assert errors[0] < 1.1e-3
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


def among_others(how=None):
    """Return the joined masses in the midst of others, and the level made of it."""
    parts = models(1, 2)
    probe = hk.StateSpace([[-1]], [[1]], [[1]], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario(
        {"before": hk.Function(abs, ["y"]), "one": parts["one"], "two": parts["two"], "after": probe},
        {**CONNECTIONS, "after.u": "one.x"},
        record=["one.x", "after.*"],
    )
    return hk.Composite(scenario, "0.1"), compile_level(hk.Composite(scenario, "0.1"), [Loops(how)])


@pytest.mark.parametrize("how", ["outputs", "steps"])
def test_only_those_of_the_loop_are_lifted(how):
    flat, made = among_others(how)
    assert set(made.level.scenario.models) == {"before", "one_two", "after"}
    assert algebraic_loops(flat)
    assert not algebraic_loops(made.level)
    assert not triviality_faults(made.level)
    inner = made.level.scenario.models["one_two"]
    assert isinstance(inner.orchestrator, hk.Iterate) == (how == "steps")
    assert type(made.level.orchestrator) is hk.Jacobi
    row = next(row for row in made.rows() if row["inserted"] == "one_two")
    assert row["pass"] == "loops"
    assert "`one.a`" in row["reason"]
    assert "`two.F`" in row["reason"]


def test_the_lifted_loop_gives_the_same_numbers_as_the_solved_one():
    flat, made = among_others("outputs")
    one, other = hk.run(flat, 5), hk.run(made.level, 5)
    assert np.allclose(one["one.x"], other["one_two.one.x"], rtol=0, atol=1e-12)
    assert np.allclose(one["after.y"], other["after.y"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("how", ["outputs", "steps"])
def test_a_loop_inside_a_level_that_others_reach_into(how):
    parts = models(1, 2)
    bystander = hk.StateSpace([[-1]], [[0]], [[1]], inputs=["u = 0"], outputs=["y"])
    inner = hk.Composite(hk.Scenario({**parts, "third": bystander}, CONNECTIONS), "0.05")
    probe = hk.StateSpace([[-1]], [[1]], [[1]], inputs=["u"], outputs=["y"])
    flat = hk.Composite(hk.Scenario({"pair": inner, "after": probe}, {"after.u": "pair.one.x"}), "0.1")
    made = compile_level(flat, [Loops(how)]).level
    assert set(made.scenario.models["pair"].scenario.models) == {"one_two", "third"}
    one, other = hk.run(flat, 2), hk.run(made, 2)
    tolerance = 1e-12 if how == "outputs" else 0.05
    assert np.allclose(one["after.y"], other["after.y"], rtol=0, atol=tolerance)


@pytest.mark.parametrize("how", ["outputs", "steps", "delay"])
def test_both_engines_agree_on_a_lifted_loop(how):
    _, made = among_others(how)
    stop = 1
    runs = [hk.run(made.level, stop, engine=engine) for engine in ENGINES]
    assert np.array_equal(runs[0]["one_two.one.x"], runs[1]["one_two.one.x"])


def test_who_cannot_go_back_is_refused_where_steps_are_made_again():
    pair = {name: hk.Python(Follower) for name in ("a", "b")}
    flat = hk.Composite(hk.Scenario(pair, {"a.u": "b.y", "b.u": "a.y"}), "0.1")
    with pytest.raises(hk.ScenarioError, match="cannot make a step again") as caught:
        compile_level(flat, [Loops("steps")])
    assert "Replay" in str(caught.value)
    assert not triviality_faults(compile_level(flat).level)


def test_a_scenario_without_loops_is_left_alone():
    flat = hk.Composite(hk.Scenario({"one": models(1, 2)["one"]}, {}), "0.1")
    ported = flat.with_changes(scenario=hk.Scenario({"one": hk.Gain(1.0)}, {}, ["u"], []))
    assert not Loops().reasons(ported)


def test_a_wrong_way_is_refused():
    with pytest.raises(hk.ScenarioError, match="did you mean `steps`"):
        Loops("step")
