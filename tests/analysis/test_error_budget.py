"""The error budget: parts add up to the true error, and changing the blamed one does what it says."""

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hocket as hk
from command_line import good, invoked
from hocket.errors import ScenarioError
from hocket.model.experiment import Experiment

CLOSE = 0.2
"""The parts add up to the whole within this part of it."""


def mass(t, x, u):
    return [x[1], -4.0 * x[0] - 0.2 * x[1] + u[0]]


def lag(t, x, u):
    return [u[0] - x[0]]


def cubic(t, x, u):
    return [x[1], -x[0] - 0.5 * x[0] ** 3 - 0.3 * x[1] + u[0]]


def prey(t, x, u):
    return [x[0] * (1.0 - u[0])]


def predator(t, x, u):
    return [x[0] * (u[0] - 1.0)]


def pair(f, g, x0, z0, H, first=None, second=None, **more):
    """Return two equations that drive each other by their first states."""
    names = [f"x{number}" for number in range(1, len(x0) + 1)]
    scenario = hk.Scenario(
        {
            "a": hk.Ode(f, x0=x0, inputs=["u"], outputs=names, **(first or {})),
            "b": hk.Ode(g, x0=z0, inputs=["u"], outputs=["z"], **(second or {})),
        },
        [("a.x1", "b.u"), ("b.z", "a.u")],
    )
    return hk.Composite(scenario, H, **more)


def truth(f, g, x0, z0, t):
    """Return both coupled without steps, by DOP853: outputs by port."""
    n = len(x0)

    def rates(time, x):
        return [*f(time, x[:n], x[n:]), *g(time, x[n:], x[:1])]

    found = solve_ivp(rates, (0.0, t[-1]), [*x0, *z0], "DOP853", t, rtol=1e-12, atol=1e-13).y
    return {**{f"a.x{k + 1}": found[k] for k in range(n)}, "b.z": found[n]}


SYSTEMS = {
    # name: f, g, starts, stop, the coupling, what is to blame, what halves it, by what it divides the error
    "held inputs of a mass": (
        (mass, lag, [1.0, 0.0], [0.5]), 4, {"H": "20 ms"}, "", {"H": "10 ms"}, 2.0,
    ),
    "Euler in a mass": (
        (mass, lag, [1.0, 0.0], [0.5]), 4,
        {"H": "20 ms", "first": {"method": "euler", "step": "10 ms"}, "extrapolation": "linear"}, "a",
        {"first": {"method": "euler", "step": "5 ms"}}, 2.0,
    ),
    "Heun in a hardening spring": (
        (cubic, lag, [2.0, 0.0], [0.0]), 4,
        {"H": "100 ms", "first": {"method": "heun"}, "extrapolation": hk.Polynomial(3)}, "a",
        {"first": {"method": "heun", "step": "50 ms"}}, 4.0,
    ),
    "predator and prey, linear extrapolation": (
        (prey, predator, [1.5], [1.0]), 5, {"H": "50 ms", "extrapolation": "linear"}, "",
        {"H": "25 ms"}, 4.0,
    ),
    "implicit Euler in a lag beside a finer step": (
        (cubic, lag, [2.0, 0.0], [0.0]), 4,
        {"H": "5 ms", "second": {"method": "implicit-euler", "step": "5 ms"}, "extrapolation": "linear"}, "b",
        {"second": {"method": "implicit-euler", "step": "2.5 ms"}}, 2.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SYSTEMS)
def test_parts_add_up_to_the_true_error_and_the_blamed_one_is_to_blame(name):
    system, stop, options, blamed, better, divides = SYSTEMS[name]
    composite = pair(*system, **options)
    run = hk.run(composite, stop)
    budget = hk.error_budget(run, Experiment(composite, stop=Fraction(stop)))
    true = run[budget.port].values - truth(*system, run[budget.port].t)[budget.port]
    largest = np.abs(true).max()
    assert np.abs(budget.sum - true).max() <= CLOSE * largest
    assert np.abs(budget.whole - true).max() <= CLOSE * largest
    assert budget.gap <= CLOSE
    assert budget.outcome.exit_code == 0
    assert budget.blamed.knob.path == blamed
    assert 2.0**budget.blamed.order == pytest.approx(divides, rel=0.15)
    again = hk.run(pair(*system, **{**options, **better}), stop)
    here = np.isin(np.round(again[budget.port].t, 9), np.round(run[budget.port].t, 9))
    finer = again[budget.port].values[here] - truth(*system, run[budget.port].t)[budget.port]
    assert largest / np.abs(finer).max() == pytest.approx(divides, rel=0.15)


def ring(t, x, u):
    return [x[1], -25.0 * x[0]]


def test_a_tolerance_is_to_blame():
    """What rings by itself is integrated at rtol = 0.1: no macro step is at fault, and cos(5 t) is exact."""

    def solved(tolerance):
        loose = {"method": "adaptive", "rtol": tolerance, "atol": tolerance}
        composite = pair(ring, lag, [1.0, 0.0], [0.5], "1 s", first=loose)
        return composite, hk.run(composite, 4)

    composite, run = solved(0.1)
    budget = hk.error_budget(run, Experiment(composite, stop=Fraction(4)), "a.x1")
    exact = np.cos(5.0 * run["a.x1"].t)
    true = run["a.x1"].values - exact
    assert np.abs(budget.whole - true).max() <= CLOSE * np.abs(true).max()
    assert np.abs(budget.sum - true).max() <= CLOSE * np.abs(true).max()
    assert budget.blamed.knob.path == "a"
    assert "divide rtol and atol of `a` by 10" in budget.verdict()[1]
    _, better = solved(0.01)
    assert np.abs(better["a.x1"].values - exact).max() < 0.5 * np.abs(true).max()


def test_levels_have_parts_of_their_own():
    """A slow inner level beside a fast outer one: the inner macro step is to blame, and its part is alone."""
    inner = pair(mass, lag, [1.0, 0.0], [0.5], "20 ms")
    follower = hk.Ode(lag, x0=[0.0], inputs=["u"], outputs=["w"])
    composite = hk.Composite(
        hk.Scenario({"inner": inner, "c": follower}, [("inner.a.x1", "c.u")]), "20 ms", "gauss-seidel"
    )
    run = hk.run(composite, 2)
    budget = hk.error_budget(run, Experiment(composite, stop=Fraction(2)), "inner.a.x2")
    t = run["inner.a.x2"].t
    true = run["inner.a.x2"].values - truth(mass, lag, [1.0, 0.0], [0.5], t)["a.x2"]
    assert budget.blamed.knob.path == "inner"
    np.testing.assert_allclose(budget["inner"].error, true, atol=CLOSE * np.abs(true).max())
    assert budget[""].relative < 1e-9  # nothing comes back from `c`


class Box:
    inputs, outputs = ("u",), ("y",)

    def start(self, t):
        self.y = 0.0

    def close(self):
        pass

    def step(self, t, h, u):
        self.y += h
        return t + h

    def output(self, t, u):
        return self.y


def test_what_cannot_be_tightened_is_named():
    a = hk.Ode(mass, x0=[1.0, 0.0], inputs=["u"], outputs=["x1", "x2"])
    composite = hk.Composite(
        hk.Scenario({"a": a, "box": hk.Python(Box)}, [("a.x1", "box.u"), ("box.y", "a.u")]), "50 ms"
    )
    budget = hk.error_budget(hk.run(composite, 1), Experiment(composite, stop=Fraction(1)))
    assert budget.unjudged == ("box",)
    assert "not judged: what is integrated inside `box`" in budget.verdict()


def test_exact_runs_have_nothing_to_divide():
    still = hk.StateSpace(A=[[-1.0]], B=[[]], C=[[1.0]], x0=[1.0], inputs=[], outputs=["y"])
    composite = hk.Composite(hk.Scenario({"a": still}), "100 ms")
    budget = hk.error_budget(hk.run(composite, 1), Experiment(composite, stop=Fraction(1)))
    assert budget.blamed is None
    assert budget.verdict() == ["error budget of `a.y`: nothing but rounding"]


def test_ports_that_were_not_recorded_are_refused():
    composite = pair(mass, lag, [1.0, 0.0], [0.5], "100 ms")
    with pytest.raises(ScenarioError, match="was not recorded"):
        hk.error_budget(hk.run(composite, 1), Experiment(composite, stop=Fraction(1)), "a.nothing")


TEXT = """
step = "100 ms"
[run]
stop = "2 s"
[models.a]
type = "state-space"
A = [[-1.0]]
B = [[1.0]]
C = [[1.0]]
x0 = [1.0]
inputs = ["u"]
outputs = ["y"]
method = "euler"
[models.b]
type = "state-space"
A = [[-2.0]]
B = [[1.0]]
C = [[1.0]]
x0 = [0.0]
inputs = ["u"]
outputs = ["y"]
[connections]
"a.u" = "b.y"
"b.u" = "a.y"
"""


def test_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it.toml").write_text(TEXT)
    good("run", "it.toml")
    answer = invoked("check", "runs/it-001", "--budget", "--json", "it.json")
    said = answer.stdout
    assert answer.exit_code == 0
    found = json.loads((tmp_path / "it.json").read_text())["error_budget"]
    assert {part["path"] for part in found["parts"]} == {"", "a"}
    assert "error budget" in said
    assert "to change first" in said
