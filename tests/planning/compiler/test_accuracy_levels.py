"""Accuracy of scenarios with levels, other algorithms, loops and constraints."""

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from hocket.files.toml import dumps, loads
from hocket.model.constraints import Constraint
from hocket.model.experiment import Experiment
from hocket.planning.compiler.accuracy import Accuracy, accepted_steps
from hocket.planning.compiler.compiler import compile_level
from hocket.planning.compiler.distribution import Distribution
from hocket.planning.compiler.loop_pass import Loops
from hocket.planning.compiler.modularity import Modularity
from planning.compiler.hosts import scenario
from planning.compiler.oscillators import (
    LEFT,
    RIGHT,
    SEEN,
    bare,
    compiled,
    error,
    oscillator,
    run,
)


@pytest.mark.parametrize("estimate", ["richardson", "copy", "defect"])
def test_levels_of_the_same_step_are_told_the_time_too(estimate):
    wires = {"right.x1": "x1", "right.v1": "v1", "force": "right.force"}
    box = hk.Composite(hk.Scenario({"right": RIGHT}, wires, ["x1 [m]", "v1 [m/s]"], ["force [N]"]), 1)
    around = hk.Scenario(
        {"left": LEFT, "box": box}, {"left.force": "box.force", "box.x1": "left.x", "box.v1": "left.v"}
    )
    made = compiled(hk.Composite(around, 1), 1e-2, estimate=estimate)
    assert Accuracy(10).check_postconditions(made) == []
    nested, flat = run(made, 260), run(compiled(None, 1e-2, estimate=estimate), 260)
    assert np.array_equal(nested.t, flat.t)
    assert np.array_equal(nested["box.right.x"], flat["right.x"])


@pytest.mark.parametrize("estimate", ["richardson", "copy", "defect"])
@pytest.mark.parametrize(
    ("step", "orchestrator", "extrapolation"),
    [("1/3 s", "gauss-seidel", "linear"), (1, hk.Iterate(), "hold"), ("0.5 s", hk.Adaptive(), "linear")],
    ids=["in turn", "iterated", "adaptive"],
)
def test_other_levels_are_stepped_as_a_whole(step, orchestrator, extrapolation, estimate):
    """One exact simulator inside: whatever its level does, it does the same as without, on a fine grid."""
    wires = {"right.x1": "x1", "right.v1": "v1", "force": "right.force"}
    inside = hk.Scenario({"right": RIGHT}, wires, ["x1 [m]", "v1 [m/s]"], ["force [N]"])
    wires = {"left.force": "box.force", "box.x1": "left.x", "box.v1": "left.v"}
    box = hk.Composite(inside, step, orchestrator)
    level = hk.Composite(hk.Scenario({"left": LEFT, "box": box}, wires), 1, extrapolation=extrapolation)
    made = compiled(level, 1e-2, estimate=estimate, watch=("left.*", "box.right.[xv]"))
    assert Accuracy(10).check_postconditions(made) == []
    assert bare(loads(dumps(Experiment(made))).composite) == bare(made)
    found = run(made, 260)
    flat = run(compiled(oscillator(extrapolation=extrapolation), 1e-2, estimate=estimate), 260)
    assert found.steps == flat.steps
    assert error(found, ("left.x", "left.v", "box.right.x", "box.right.v")) == pytest.approx(
        error(flat), rel=1e-3
    )


@pytest.mark.parametrize("orchestrator", ["gauss-seidel", hk.Iterate()], ids=["in turn", "iterated"])
def test_other_algorithms_are_stepped_as_a_whole(orchestrator):
    """Of order two under lines, whoever steps first: errors follow tol^(2/3)."""
    level = oscillator(orchestrator=orchestrator, extrapolation="linear")
    tolerances = (1e-3, 1e-4)
    made = [compiled(level, each, watch=("left.[xv]", "right.[xv]")) for each in tolerances]
    assert made[0].scenario.models["clock"].order == 2
    assert set(made[0].scenario.models) == {"clock", "whole"}
    assert "stepped as a whole" in made[0].scenario.inserted["whole"].reason
    wrong = [error(run(each, 450), [f"whole.{port}" for port in SEEN]) for each in made]
    assert np.polyfit(np.log(tolerances), np.log(wrong), 1)[0] == pytest.approx(2 / 3, abs=0.1)


def test_constraints_are_compiled_first():
    """Two masses joined by a massless link are one: m = 2, c = 3, d = 0.8 (requirements.md 1.5)."""
    forces = {
        "inputs": ["F [N]"],
        "outputs": ["x [m]", "v [m/s]"],
        "x0": [1, 0],
        "C": np.eye(2),
        "B": [[0], [1]],
    }
    models = {
        "left": hk.StateSpace([[0, 1], [-1, -0.5]], **forces),
        "right": hk.StateSpace([[0, 1], [-2, -0.3]], **forces),
    }
    link = Constraint(
        ("left.x = right.x", "left.F + right.F = 0"), {"left.x": "left.v", "right.x": "right.v"}
    )
    level = hk.Composite(hk.Scenario(models, constraints={"link": link}), "0.2 s")
    how = Accuracy(10, 1e-3, first=0.01, estimate="copy", watch=("left.*", "right.*"))
    found = accepted_steps(hk.run(compile_level(level, [how, Modularity()]).level, stop=160))
    exact = np.array([expm(np.array([[0, 1], [-1.5, -0.4]]) * t)[0, 0] for t in found.t])
    assert found.finished
    assert np.max(np.abs(found["whole.left.x"] - exact)) < 1e-3
    assert np.max(np.abs(found["whole.left.x"] - found["whole.right.x"])) < 1e-3


def test_hosts_start_as_they_would_together():
    """The double oscillator on two hosts: what these hold over their small steps is all that is wrong."""
    how = Accuracy(10, 1e-2, first=0.01, largest=1, estimate="defect")
    made = compile_level(hk.Composite(scenario(), "0.1 s"), [how, Distribution()]).level
    found = accepted_steps(hk.run(made, stop=80))
    assert found.finished
    assert found["lab.right.force"][0] == pytest.approx(-1.0)
    assert error(found, ("plant.left.x", "plant.left.v", "lab.right.x", "lab.right.v")) < 2.5e-3


def test_loops_that_are_solved_are_told_the_time():
    """y1 = x1 + 0.6 y2 and y2 = x2 - 0.7 y1: lifted or not, the estimate holds, and says what it rests on."""
    one = hk.StateSpace([[-1]], [[1]], [[1]], [[0.6]], [1], ["u"], ["y"])
    two = hk.StateSpace([[-2]], [[-3]], [[1]], [[-0.7]], [0.5], ["u"], ["y"])
    lag = hk.StateSpace([[-1]], [[1]], [[1]], x0=[0], inputs=["u"], outputs=["y"])
    wires = {"one.u": "two.y", "two.u": "one.y"}
    inverse = np.linalg.inv([[1, -0.6], [0.7, 1]])
    A = np.zeros((3, 3))
    A[:2, :2] = np.diag([-1, -2]) + np.array([[0, 1], [-3, 0]]) @ inverse
    A[2] = [*inverse[0], -1]
    for models, wired in (
        ({"one": one, "two": two}, wires),
        ({"one": one, "two": two, "lag": lag}, wires | {"lag.u": "one.y"}),
    ):
        level = hk.Composite(hk.Scenario(models, wired), 1, extrapolation="hold")
        made = compile_level(
            level, [Accuracy(5, 5e-3, per="unit", first=1e-3, estimate="defect"), Loops()]
        ).level
        found = accepted_steps(hk.run(made, stop=700))
        x = np.array([expm(A * t) @ [1, 0.5, 0] for t in found.t])
        inside = "" if len(models) == 2 else "one_two."
        assert found.finished
        assert np.max(np.abs(found[f"{inside}one.y"] - x[:, :2] @ inverse[0])) < 5e-3
        if inside:
            assert np.max(np.abs(found["lag.y"] - x[:, 2])) < 5e-3
    flat = hk.Composite(hk.Scenario({"one": one, "two": two}, wires), 1)
    made = compile_level(flat, [Accuracy(5, 1e-3), Loops()]).level
    assert "`one` and `two` have direct feedthrough" in made.scenario.inserted["clock"].reason
