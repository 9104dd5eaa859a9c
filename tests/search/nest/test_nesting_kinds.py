"""`nest` with equations, black boxes and sources, and what it refuses."""

import numpy as np
import pytest
from scipy.linalg import expm

import hocket
from hocket import (
    Adaptive,
    Bond,
    Composite,
    Function,
    Jacobi,
    Multirate,
    Ode,
    Polynomial,
    Scenario,
    StateSpace,
)
from hocket.errors import ScenarioError
from hocket.search.nest.nest import nest
from search.nest.systems import real_errors, three_matrix
from systems import three_masses

START = [1, 0, 2, 0, 3, 0]
MASSES = ("first", "second", "third")


def test_black_boxes_and_equations_are_judged_by_their_linear_models():
    """An Ode in the stiff pair is linearised; the level holds the Ode, and errs as its linear model does."""
    flat = three_masses(2, "0.1 s", outputs="consistent")
    old = flat.scenario.models["third"]
    A, B = np.array(old.A), np.array(old.B)
    ode = Ode(
        lambda t, x, u: A @ x + B @ u,
        g=lambda t, x, u: [x[0], x[1], 10 * (x[0] - u[0]) + (x[1] - u[1])],
        x0=[3, 0],
        inputs=["x2", "v2"],
        outputs=["x", "v", "pull"],
        method="rk4",
    )
    models = {**flat.scenario.models, "third": ode}
    each = nest(flat.with_changes(scenario=flat.scenario.with_models(models)), stop=10, keep=True)
    best = each.proposals[0]
    made = each.composite_of(best)
    assert made.scenario.models["second_third"].scenario.models["third"] is ode
    errors, scales = real_errors(made, three_matrix(2), START, best.step * int(10 / best.step), MASSES)
    assert 0.5 * best.error <= (errors / scales).max() <= 1.001 * best.error


def test_sources_count_as_they_move():
    """At rest until a source pushes: what the connections do wrong comes from there."""
    flat = three_masses(2, "0.1 s", outputs="consistent")
    models = {
        name: StateSpace(
            A=m.A, B=np.hstack([m.B, [[0], [0.1]]]) if name == "third" else m.B, C=m.C,
            D=np.hstack([m.D, [[0]] * 3]) if name == "third" else m.D, x0=[0, 0],
            inputs=[*m.inputs, "push"] if name == "third" else m.inputs, outputs=m.outputs,
        )
        for name, m in flat.scenario.models.items()
    }  # fmt: skip
    models["source"] = Function(np.sin, outputs=["y"])
    wires = [*flat.scenario.connections, hocket.Connection("source.y", "third.push")]
    each = nest(Composite(Scenario(models, wires), "0.1 s"), stop=10, keep=True)
    assert sum(row["error"] for row in each.strengths.rows()) > 0.0
    assert {"second", "third"} <= {name for g in each.proposals[0].tree.groups() for name in g.names()}


def refused(composite, *words, **how):
    with pytest.raises(ScenarioError) as caught:
        nest(composite, **how)
    for word in words:
        assert word in str(caught.value)


def test_refusals():
    flat = three_masses(1, "0.1 s")
    refused(flat, "a tolerance of -1 cannot be kept", "the work is 0", tolerance=-1, work=0)
    lag = StateSpace(A=[[-1]], B=[[1]], C=[[1]], inputs=["u"], outputs=["y"])
    two = Scenario({"a": lag, "b": lag}, {"a.u": "b.y", "b.u": "a.y"})
    refused(Composite(two, 1), "three simulators at least, and there are 2", "hocket check")
    alone = StateSpace(A=[[-1]], C=[[1]], x0=[1], outputs=["y"])
    refused(Composite(Scenario(dict.fromkeys("abc", alone)), 1), "nothing is connected")
    refused(
        flat.with_changes(orchestrator=Multirate({"third": 2})),
        "`Multirate` has steps of its own",
        "`Jacobi`",
    )
    refused(flat.with_changes(orchestrator=Adaptive(Jacobi())), "`Adaptive` chooses its steps as it runs")
    refused(flat, "there is no step before the stop", stop="50 ms")
    refused(flat, "is not a duration", stop="soon")
    refused(3, "cannot be nested")
    tied = flat.scenario.with_changes(constraints={"link": "first.x = second.x"})
    refused(flat.with_changes(scenario=tied), "inputs that equations determine", "constraints.link")
    housed = flat.scenario.with_changes(hosts={"lab": ["first"], "plant": ["second", "third"]})
    refused(flat.with_changes(scenario=housed), "the scenario has hosts", "hocket compile")
    bonds = {"joint": Bond("second.force", "third.v2", unit="", balance="inversion")}
    balanced = flat.with_changes(
        scenario=flat.scenario.with_changes(bonds=bonds), extrapolation=Polynomial(1)
    )
    refused(balanced, "`second` cannot be judged: its bonds are balanced")


class Curved:
    """Answers with the square of what it is given."""

    inputs = ("u",)
    outputs = ("y",)

    def start(self, t):
        self.x = 0.0

    def output(self, t):
        return [self.x]

    def step(self, t, h, u):
        self.x += h * (float(u[0, 0]) ** 2 - self.x)


def test_what_has_no_linear_model_is_refused_with_the_reason():
    lag = StateSpace(A=[[-1]], B=[[1]], C=[[1]], inputs=["u"], outputs=["y"])
    wires = {"box.u": "a.y", "a.u": "b.y", "b.u": "box.y"}
    box = Scenario({"box": hocket.Python(Curved), "a": lag, "b": lag}, wires)
    refused(Composite(box, "0.1 s"), "`box` has no linear model: ", "a linear response", stop=5)


class Lag(Curved):
    """x' = u - x, by Euler's method: a black box with a linear answer."""

    def start(self, t):
        self.x = 1.0

    def step(self, t, h, u):
        n = round(h / 0.005)
        for _ in range(n):
            self.x += 0.005 * (float(u[0, 0]) - self.x)


def test_black_boxes_are_identified_anew_for_each_step():
    """y' = x - y around a black box and a stiff pair: judged at every step, and as a run shows."""
    a = StateSpace(A=[[-1]], B=[[2]], C=[[1]], x0=[1], inputs=["u"], outputs=["y"])
    fast = StateSpace(A=[[-1]], B=[[-2]], C=[[3]], x0=[0], inputs=["u"], outputs=["y"])
    slow = StateSpace(A=[[-1]], B=[[0.1]], C=[[1]], x0=[1], inputs=["u"], outputs=["y"])
    wires = {"box.u": "slow.y", "slow.u": "fast.y", "a.u": "fast.y", "fast.u": "a.y"}
    flat = Composite(
        Scenario({"box": hocket.Python(Lag), "slow": slow, "a": a, "fast": fast}, wires), "20 ms"
    )
    each = nest(flat, stop=4, keep=True)
    assert each.clusters == (("box",), ("slow",), ("a", "fast"))
    steps = {candidate.step for candidate in each.tried}
    assert len(steps) > 1
    best = each.proposals[0]
    run = hocket.run(each.composite_of(best), 4)
    path = "a_fast.a.y"
    t, y = run[path]
    truth = np.array([expm(np.array([[-1.0, 6.0], [-2.0, -1.0]]) * s) @ [1.0, 0.0] for s in t])[:, 0]
    assert np.abs(y - truth).max() / np.abs(truth).max() <= 1.001 * best.error
