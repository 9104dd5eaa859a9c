"""Scenarios that cannot be made trivial: each is refused with the condition that is not met, and where."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from command_line import refused
from hocket.model.protocols import Capabilities
from hocket.planning.compiler.accuracy import Accuracy
from hocket.planning.compiler.compiler import compile_level
from hocket.planning.compiler.contract import algebraic_loops
from hocket.planning.compiler.distribution import Distribution
from hocket.planning.compiler.loop_pass import Loops
from hocket.planning.compiler.modularity import Modularity
from hocket.simulators.wrappers.replay import Replay
from planning.compiler.followers import Follower
from planning.compiler.joined import CONNECTIONS, error, models
from systems import LAG


@dataclass(frozen=True)
class Reticent:
    """Another model, whose outputs follow new inputs only with a step."""

    model: Any
    rolls_back: bool = True

    @property
    def inputs(self):
        return self.model.inputs

    @property
    def outputs(self):
        return self.model.outputs

    @property
    def capabilities(self):
        return Capabilities(rollback=self.rolls_back, reevaluates=False)

    def open(self):
        return self.model.open()


class Stubborn(Follower):
    """One step length, though it can go back."""

    variable_step = False

    def save(self):
        return 0

    def restore(self, state):
        pass


def ring(one, other, **more):
    scenario = hk.Scenario({"a": one, "b": other}, {"a.u": "b.y", "b.u": "a.y"}, **more)
    return hk.Composite(scenario, "0.1 s")


def lags(**more):
    return ring(LAG, LAG, **more)


def mass(m=1.0, x0=(1.0, 0.0), inputs=("F",), outputs=("x", "v")):
    """A mass on a spring; only its first input is a force."""
    pushes = [[0.0] * len(inputs), [1.0 / m] + [0.0] * (len(inputs) - 1)]
    return hk.StateSpace(
        [[0, 1], [-1, -0.1]], pushes, [[1, 0], [0, 1]], x0=x0, inputs=inputs, outputs=outputs
    )


RATES = {"a.x": "a.v", "b.x": "b.v"}


def joined(equations=("a.x = b.x", "a.F + b.F = 0"), a=None, b=None, wires=(), rates=RATES, **more):
    rule = {"link": {"equations": list(equations), "rates": dict(rates)}}
    models = {"a": a or mass(), "b": b or mass(2.0)}
    return hk.Composite(hk.Scenario(models, dict(wires), constraints=rule, **more), "0.1 s")


def nested(level):
    """A level inside another."""
    return hk.Composite(hk.Scenario({"car": level, "c": LAG}, {"c.u": "car.a.y"}), "0.1 s")


def thirds():
    """A level that makes three steps in a step."""
    return hk.Composite(hk.Scenario({"c": LAG}, {"c.u": "u", "y": "c.y"}, ["u"], ["y"]), "1/30 s")


def deaf():
    """A body that no force moves."""
    return hk.StateSpace([[-1.0]], C=[[1.0]], x0=[1.0], inputs=["F"], outputs=["x"])


def switch():
    """A port that jumps."""
    return hk.StateSpace(D=[[1.0]], inputs=[hk.Port("F", type="boolean")], outputs=["x"])


HOSTS = {"plant": ["a"], "lab": ["b"]}
CASES = {
    # what is asked for: the scenario, the passes, what is said, where
    "steps made again by one that cannot roll back": (
        lambda: ring(hk.Python(Follower), hk.Gain(0.5)),
        [Loops("steps")],
        "the pass `loops` cannot be run: it cannot make a step again",
        "a",
    ),
    "the same, inside a level": (
        lambda: nested(ring(hk.Gain(0.5), hk.Python(Follower))),
        [Loops("steps")],
        "it cannot make a step again",
        "car.b",
    ),
    "outputs evaluated again by one who does not": (
        lambda: ring(Reticent(hk.Gain(0.5)), hk.Gain(0.5)),
        [Loops("outputs")],
        "it cannot evaluate its outputs again between steps",
        "a",
    ),
    "neither outputs nor steps again": (
        lambda: ring(hk.Gain(0.5), Reticent(hk.Gain(0.5), rolls_back=False)),
        None,
        "it cannot make a step again",
        "b",
    ),
    "a loop of simulators with rates of their own": (
        lambda: ring(hk.Gain(0.5), hk.Gain(0.25)).with_changes(orchestrator=hk.Multirate({"b": 4})),
        [Loops()],
        "it makes 4 steps in a step of the level, and is in a loop",
        "b",
    ),
    "fewer equations than inputs": (
        lambda: joined(["a.x = b.x + 0 * a.F + 0 * b.F"]),
        None,
        "1 equation for 2 inputs: `a.F`, `b.F`",
        "constraints.link",
    ),
    "more equations than inputs": (
        lambda: joined(["a.x = b.x", "a.v = b.v", "a.F + b.F = 0"]),
        None,
        "3 equations for 2 inputs",
        "constraints.link",
    ),
    "an input that influences nothing": (
        lambda: joined(a=deaf(), b=deaf(), rates={}),
        None,
        "`a.x = b.x` does not react to `a.F` and `b.F`",
        "constraints.link",
    ),
    "equations that say the same": (
        lambda: joined(["a.F + b.F = 0", "2 * a.F = -2 * b.F"], rates={}),
        None,
        "cannot tell `a.F` and `b.F` apart",
        "constraints.link",
    ),
    "a port that is not there": (
        lambda: joined(["a.x = b.z", "a.F + b.F = 0"]),
        None,
        "there is no port `b.z`",
        "constraints.link",
    ),
    "an input that something drives": (
        lambda: joined(wires={"a.F": "b.v"}),
        None,
        "`a.F` is driven by `b.v`",
        "constraints.link",
    ),
    "ports that jump": (
        lambda: joined(a=switch(), rates={}),
        None,
        "`a.F` jumps from value to value",
        "constraints.link",
    ),
    "start values that do not agree": (
        lambda: joined(b=mass(2.0, (0.5, 0.0))),
        None,
        "`a.x = b.x` does not hold at the start",
        "constraints.link",
    ),
    "equations across hosts": (
        lambda: joined(hosts=HOSTS),
        None,
        "`a` and `b` live on different hosts",
        "constraints.link",
    ),
    "a small step that does not divide the step": (
        lambda: lags(hosts=HOSTS),
        [Distribution("30 ms")],
        "the small step 30 ms does not divide the step 0.1 s of the level",
        "small_step",
    ),
    "a loop across hosts": (
        lambda: ring(hk.Gain(0.5), hk.Gain(0.5), hosts=HOSTS),
        [Distribution()],
        "the algebraic loop a.y -> b.y runs across",
        "connections",
    ),
    "a loop across hosts that should become a level": (
        lambda: hk.Composite(
            hk.Scenario(
                {"a": hk.Gain(0.5), "b": hk.Gain(0.5), "c": LAG},
                {"a.u": "b.y", "b.u": "a.y", "c.u": "a.y"},
                hosts={"plant": ["a"], "lab": ["b", "c"]},
            ),
            "0.1 s",
        ),
        None,
        "`a` and `b` depend on each other at once, and are on `plant` and `lab`",
        "hosts",
    ),
    "a model on no host": (
        lambda: lags(hosts={"plant": ["a"]}),
        [Distribution()],
        "hosts do not fit the models: `b` is on no host",
        "hosts",
    ),
    "a level on a host whose steps do not fit into the small ones": (
        lambda: ring(LAG, thirds(), hosts=HOSTS),
        [Distribution("10 ms")],
        "the compiled scenario would not run: the step 1/30 s of `lab.b` does not divide the step 10 ms",
        "lab.b.step",
    ),
    "hosts that make steps again with one that cannot roll back": (
        lambda: hk.Composite(
            hk.Scenario({"a": LAG, "b": hk.Python(Follower)}, {"b.u": "a.y", "a.u": "b.y"}, hosts=HOSTS),
            "0.1 s",
        ),
        [Distribution(iterate=2)],
        "`b` cannot roll back",
        "models.b",
    ),
    "steps of any length for one with a step of its own": (
        lambda: ring(LAG, hk.Python(Stubborn)),
        [Accuracy(1)],
        "`b` accepts only its own step",
        "models.b",
    ),
    "steps of any length for a sampled model": (
        lambda: ring(LAG, Replay(hk.Python(Follower, period="50 ms"))),
        [Accuracy(1)],
        "`b` has a period of its own",
        "models.b",
    ),
    "Richardson with one that cannot roll back": (
        lambda: ring(LAG, hk.Python(Follower)),
        [Accuracy(1)],
        "`b` cannot roll back",
        "models.b",
    ),
    "step control over a loop": (
        lambda: ring(hk.Gain(0.5), hk.Gain(0.25)),
        [Accuracy(1)],
        "the algebraic loop",
        "connections",
    ),
    "step control over equations": (
        joined,
        [Accuracy(1)],
        "the constraint `link` is not an assignment",
        "constraints.link",
    ),
    "passes that leave a loop": (
        lambda: ring(hk.Gain(0.5), hk.Gain(0.25)),
        [Modularity()],
        "the scenario is not trivial: `a.y` -> `b.y` -> `a.y`: each depends on itself at once",
        "the outermost level",
    ),
    "passes that leave an equation inside a level": (
        lambda: hk.Composite(hk.Scenario({"car": joined()}), "0.1 s"),
        [Loops()],
        "the scenario is not trivial: `link` is an equation, not an assignment",
        "car.constraints.link",
    ),
    "an input that has no source and no value": (
        lambda: hk.Composite(hk.Scenario({"a": LAG}), "0.1 s"),
        None,
        "the scenario is not trivial: nothing drives `a.u`",
        "models.a",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_condition_that_is_not_met_is_told_with_its_place(name):
    made, passes, what, where = CASES[name]
    with pytest.raises(hk.ScenarioError) as caught:
        compile_level(made(), passes)
    faults = [(fault.what, fault.where) for fault in caught.value.faults]
    assert any(what in told and where == place for told, place in faults), faults


def test_a_model_on_two_hosts_is_refused_at_once():
    with pytest.raises(hk.ScenarioError, match="`a` is on `plant` and `lab`"):
        lags(hosts={"plant": ["a"], "lab": ["a", "b"]})


def test_nothing_is_written_and_the_reason_is_told_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hk.write(ring(hk.Gain(0.5), hk.Gain(0.25)), "ring.toml")
    told = refused("compile", "ring.toml", "--pass", "modularity")
    assert "the scenario is not trivial" in told
    assert "the pass `loops`" in told
    assert sorted(path.name for path in Path().iterdir()) == ["ring.toml"]


def test_who_does_not_evaluate_again_makes_steps_again():
    """A delay where outputs are not evaluated again grows: the second mass is heavier than the first."""

    def level(step):
        parts = {name: Reticent(model) for name, model in models(1, 2).items()}
        return hk.Composite(hk.Scenario(parts, CONNECTIONS), step, extrapolation="linear")

    assert algebraic_loops(level("0.1"))
    assert error(level("0.1"), 1, 2) > 1e9
    wrong = [error(compile_level(level(step)).level, 1, 2) for step in ("0.1", "0.05")]
    assert 3.5 < wrong[0] / wrong[1] < 4.5
    assert wrong[0] < 1.1e-3
