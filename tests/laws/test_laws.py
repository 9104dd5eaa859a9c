"""One list of implementations, one set of laws."""

import numpy as np
import pytest

import hocket as hk
from hocket.model.extrapolators import Latch
from hocket.simulators.methods import ORDERS
from hocket.simulators.ode import METHODS
from hocket.simulators.state_space import StandIn
from hocket.simulators.wrappers.derivatives import Sloped
from hocket.simulators.wrappers.feedthrough_probe import Reacting
from hocket.simulators.wrappers.replay import Replay
from hocket.simulators.wrappers.substeps import Substepped
from hocket.testing import check_extrapolator, check_orchestrator, check_simulator

A = [[0.0, 1.0], [-2.0, -0.4]]
B = [[0.0, 0.1], [1.0, 0.5]]
PORTS = {"inputs": ["p", "q"], "outputs": ["x", "v"]}


class Rigid:
    """x' = u - x, exactly for a held input, in steps of one length; it cannot roll back."""

    inputs = ("u",)
    outputs = ("y",)
    input_degree = 0
    variable_step = False

    def start(self, t):
        self.x = 0.5

    def output(self, t):
        return [self.x]

    def step(self, t, h, u):
        self.x = u[0, 0] + (self.x - u[0, 0]) * float(np.exp(-h))


class Lag(Rigid):
    """The same in any steps."""

    variable_step = True

    def save(self):
        return self.x

    def restore(self, state):
        self.x = state


class Clock(hk.Atomic):
    """Counts its beats, and starts anew when it is told to."""

    inputs = ("begin",)
    outputs = ("beat", hk.Port("count"))

    def __init__(self, period):
        self.period, self.count = period, 0

    def time_advance(self):
        return self.period

    def output(self):
        return {"beat": 1.0, "count": self.count + 1}

    def internal(self):
        self.count += 1

    def external(self, elapsed, inputs):
        self.count = 0


def linear(method="exact", **more):
    return hk.StateSpace(A, B, np.eye(2), x0=[1.0, -0.5], method=method, **PORTS, **more)


def equations(method, **more):
    return hk.Ode(
        lambda t, x, u: np.array(A) @ x + np.array(B) @ u,
        lambda t, x, u: [x[0], x[1] + 0.3 * u[0]],
        x0=[1.0, -0.5],
        feedthrough={"v": ["p"]},
        method=method,
        **PORTS,
        **more,
    )


def level(step="0.1 s", **more):
    damped = hk.StateSpace(A, B, np.eye(2), [[0, 0], [0.2, 0]], [1.0, 0.0], **PORTS)
    scenario = hk.Scenario(
        {"a": damped, "b": linear("rk4", step="50 ms")},
        {"a.p": "b.x", "a.q": "q", "b.p": "p", "b.q": "a.v", "x": "a.x", "v": "b.v"},
        **PORTS,
    )
    return hk.Composite(scenario, step, **more)


def table(tmp_path):
    path = tmp_path / "road.csv"
    path.write_text("time,height [m]\n0,0\n1,0.5\n2,0.25\n")
    return path


MODELS = {
    **{f"state space, {method}": lambda _, m=method: linear(m) for method in ORDERS},
    "state space, micro steps": lambda _: linear("heun", step="20 ms"),
    "state space, feedthrough": lambda _: hk.StateSpace(
        A, B, np.eye(2), [[0.5, 0], [0, 0]], [1, 0], inputs=["p", "q"], outputs=["x", "v"]
    ),
    "gain": lambda _: hk.Gain(3.0),
    "sum": lambda _: hk.Sum("a", "b", gains=[1.0, -2.0]),
    "stand-in": lambda _: StandIn(["force [N]", "x = 0.5"], "right"),
    **{f"ode, {method}": lambda _, m=method: equations(m) for method in METHODS},
    "python": lambda _: hk.Python(Lag),
    "python, sampled": lambda _: hk.Python(Lag, period="70 ms", offset="20 ms", delay="10 ms"),
    "python, sampled with jitter": lambda _: hk.Python(Lag, period="70 ms", jitter={"normal": "5 ms"}),
    "devs": lambda _: hk.Devs(Clock, period="70 ms"),
    "rollback by replay": lambda _: Replay(hk.Python(Lag)),
    "output derivatives by trial steps": lambda _: Sloped(equations("rk4"), "10 us"),
    "output derivatives by backward differences": lambda _: Sloped(hk.Python(Rigid)),
    "any step by sub-steps": lambda _: Substepped(hk.Python(Rigid), "40 ms"),
    "any step by sub-steps, feedthrough": lambda _: Substepped(equations("rk4"), "30 ms"),
    "all of these": lambda _: Sloped(Substepped(Replay(hk.Python(Rigid)), "40 ms"), "1 us"),
    "feedthrough as told": lambda _: Reacting(equations("heun"), {"v": ["p"]}),
    "table": lambda _: hk.Table([0, 1, 2], {"y": [0.0, 0.5, 0.25]}),
    "csv": lambda folder: hk.Csv(table(folder)),
    "function": lambda _: hk.Function(lambda t: [t * t], ["y"]),
    "level": lambda _: level(),
    "level, own inner step": lambda _: level("50 ms", extrapolation="linear"),
    "level, stale": lambda _: level(orchestrator=hk.Jacobi(outputs="stale")),
    "level, in turn": lambda _: level(orchestrator=hk.GaussSeidel(["b", "a"])),
    "level in a level": lambda _: hk.Composite(
        hk.Scenario(
            {"inner": level("50 ms")}, {"inner.p": "p", "inner.q": "q", "x": "inner.x"}, ["p", "q"], ["x"]
        ),
        "0.1 s",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_simulators(name, tmp_path):
    check_simulator(MODELS[name](tmp_path))


EXTRAPOLATORS = [
    hk.Hold(),
    Latch(),
    *(hk.Polynomial(degree) for degree in range(6)),
    *(hk.Hermite(samples) for samples in (1, 2, 3)),
    *(hk.Nepce(alpha) for alpha in (0.0, 0.6, -0.5)),
]


@pytest.mark.parametrize("extrapolator", EXTRAPOLATORS, ids=str)
def test_extrapolators(extrapolator):
    check_extrapolator(extrapolator)


ORCHESTRATORS = [
    hk.Jacobi(),
    hk.Jacobi(outputs="stale"),
    hk.Jacobi(inputs="delayed"),
    hk.GaussSeidel(),
    hk.GaussSeidel(["b", "a"]),
    hk.GaussSeidel([["a", "b"]], outputs="stale"),
    hk.Iterate(),
    hk.Iterate(hk.GaussSeidel(outputs="stale"), tolerance=None, at_most=2),
    hk.PredictorCorrector(),
    hk.Adaptive(),
    hk.Multirate({"b": 2}),
    hk.Asynchronous({"a": 2}),
]


@pytest.mark.parametrize("orchestrator", ORCHESTRATORS, ids=str)
def test_orchestrators_write_plans_that_verify_and_repeat(orchestrator):
    check_orchestrator(orchestrator, level().scenario)
