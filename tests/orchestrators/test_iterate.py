"""Iterate: steps made again until what is exchanged agrees, and what happens when it does not."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

import hocket
from fmus.build import build
from hocket import (
    Composite,
    ConvergenceError,
    Fmu,
    GaussSeidel,
    Iterate,
    Jacobi,
    Ode,
    Polynomial,
    Python,
    Scenario,
    ScenarioError,
    StateSpace,
)
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.stability import iteration_convergence
from hocket.plan import Feed, Plan, Read, Record, Repeat, Restore, Save, Step
from hocket.plan.verify.verifier import find_delays
from hocket.planning.planner import plan_tree
from scenarios.test_fmus import halves
from systems import ENGINES, lag


def gains(one, other):
    """A loop of two gains, each with a lag so that there is something to step: y = x + gain u."""
    models = {
        name: StateSpace(A=[[-1.0]], C=[[1.0]], D=[[gain]], B=[[0.0]], x0=[1.0], inputs=["u"], outputs=["y"])
        for name, gain in (("a", one), ("b", other))
    }
    return Scenario(models, {"a.u": "b.y", "b.u": "a.y"})


PAIR = Scenario({"a": lag(1.0, 2.0, 1.0), "b": lag(3.0, 1.5, -1.0)}, {"a.u": "b.y", "b.u": "a.y"})


def test_the_plan():
    assert str(
        plan_tree(Composite(PAIR, "0.1 s", Iterate(GaussSeidel(["a", "b"]), 1e-6, 20, None))).plan
    ).splitlines()[3:] == [
        "  each step:",
        "    save a, b",
        "    repeat until the values agree to 1e-06, at most 20 times:",
        "      restore a, b",
        "      feed a",
        "      step a",
        "      read a",
        "      feed b",
        "      step b",
        "      read b",
        "    record",
    ]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("inner", [Jacobi(), GaussSeidel(), GaussSeidel(["b", "a"])])
def test_the_hold_of_the_new_value_is_what_all_sweeps_lead_to(inner, engine):
    """With held inputs the limit is x' = e x + (1 - e) g/r y', solved for both: an implicit step."""
    h = 0.25
    e = np.exp(-h * np.array([1.0, 3.0]))
    drive = (1.0 - e) * np.array([2.0 / 1.0, 1.5 / 3.0])
    step = np.linalg.solve(np.array([[1.0, -drive[0]], [-drive[1], 1.0]]), np.diag(e))
    run = hocket.run(Composite(PAIR, h, Iterate(inner, 1e-13)), 5, engine=engine)
    expected = np.linalg.matrix_power(step, 20) @ [1.0, -1.0]
    assert [run.final("a.y"), run.final("b.y")] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("engine", ENGINES)
def test_sweeps_are_counted(engine):
    run = hocket.run(Composite(PAIR, 0.25, Iterate(Jacobi(), None, 3)), 5, engine=engine)
    assert run.info["counts"]["sweeps"] == {"": {"repeats": 20, "total": 60, "most": 3}}
    run = hocket.run(Composite(PAIR, 0.25, Iterate(Jacobi(), 1e-9)), 5, engine=engine)
    counted = run.info["counts"]["sweeps"][""]
    assert counted["repeats"] == 20
    assert 2 * 20 < counted["total"] <= 20 * counted["most"]


def test_the_linear_reading_tells_how_fast_it_settles():
    """A sweep of Jacobi over a loop of gains multiplies what is wrong by the root of their product."""
    for one, other in ((0.5, 0.4), (0.9, -0.9), (3.0, -2.0)):
        composite = Composite(gains(one, other), 0.1, Iterate(Jacobi(outputs="stale"), 1e-9))
        (found,) = iteration_convergence(read_linear(composite))
        assert found.level == ""
        assert found.plain == pytest.approx(np.sqrt(abs(one * other)), rel=1e-9)
        composite = Composite(gains(one, other), 0.1, Iterate(GaussSeidel(outputs="stale"), 1e-9))
        (found,) = iteration_convergence(read_linear(composite))
        assert found.plain == pytest.approx(abs(one * other), rel=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_that_the_iteration_solves(engine):
    """y_a = x + 0.5 y_b, y_b = x + 0.4 y_a with x = exp(-t)."""
    composite = Composite(gains(0.5, 0.4), 0.1, Iterate(Jacobi(outputs="stale"), 1e-12, accelerate=None))
    (note,) = plan_tree(composite).plan.notes
    assert note.endswith("is solved by the iteration, if its gain is below one")
    run = hocket.run(composite, 2, engine=engine)
    assert run.final("a.y") == pytest.approx(1.5 / 0.8 * np.exp(-2.0), rel=1e-10)
    assert run.final("b.y") == pytest.approx(1.4 / 0.8 * np.exp(-2.0), rel=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_does_not_settle_is_told_with_its_residuals(engine, tmp_path):
    composite = Composite(gains(3.0, -2.0), 0.1, Iterate(Jacobi(outputs="stale"), 1e-9, 12, None))
    with pytest.raises(ConvergenceError) as caught:
        hocket.run(composite, 1, engine=engine, folder=tmp_path / "run")
    text = str(caught.value)
    assert "the iteration of `a.y`, `b.y` does not contract in 12 iterations" in text
    assert "step from t = 0.0 s; the last residuals: " in text
    assert "a residual of 1e-09" in text
    assert hocket.open_run(tmp_path / "run").status == "failed"


@pytest.mark.parametrize("engine", ENGINES)
def test_too_few_sweeps_are_an_error(engine):
    with pytest.raises(ConvergenceError, match="did not converge in 3 iterations"):
        hocket.run(Composite(PAIR, 0.25, Iterate(Jacobi(), 1e-13, 3)), 5, engine=engine)


def test_a_step_made_again_is_not_extrapolated():
    plans = {what: Composite(PAIR, 0.1, what) for what in (Jacobi(), Iterate(Jacobi(), None, 1), Iterate())}
    found = [len(find_delays(plan_tree(composite).plan, PAIR)) for composite in plans.values()]
    assert found == [2, 2, 0]


class Stuck:
    inputs, outputs = ("u",), ("y",)

    def start(self, t):
        self.y = 1.0

    def output(self, t):
        return self.y

    def step(self, t, h, u):
        self.y *= 0.5


def test_who_cannot_go_back_is_named():
    scenario = Scenario({"a": lag(1, 1, 1), "b": Python(Stuck)}, {"a.u": "b.y", "b.u": "a.y"})
    with pytest.raises(ScenarioError, match="an iteration makes steps again, and `b` cannot roll back"):
        hocket.run(Composite(scenario, 0.1, Iterate()), 1)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"tolerance": 0.0}, "a tolerance of 0.0 is never met"),
        ({"tolerance": float("nan")}, "a tolerance of nan is never met"),
        ({"at_most": 0}, "`at_most` is 0"),
        ({"inner": "jacobi"}, "`'jacobi'` is not an orchestrator"),
        ({"inner": Iterate()}, "an iteration of an iteration"),
    ],
)
def test_bad_choices(wrong, what):
    with pytest.raises(ScenarioError, match=what.replace("(", r"\(")):
        Iterate(**wrong)


def test_the_most_sweeps_are_those_that_the_message_says():
    assert Iterate(at_most=2**31 - 1).at_most == 2**31 - 1
    with pytest.raises(ScenarioError, match=r"expected: a whole number from 1 to 2\^31 - 1"):
        Iterate(at_most=2**31)


class Noted:
    """A lag in Python that counts how often it was taken back."""

    inputs, outputs = ("u",), ("y",)
    feedthrough = {}  # noqa: RUF012
    back = 0

    def start(self, t):
        self.y, self.integral = 1.0, 0.0

    def output(self, t, u):
        return self.y

    def step(self, t, h, u):
        self.y = 0.9 * self.y + h * float(u[0, 0])

    def save(self):
        return self.y

    def restore(self, state):
        type(self).back += 1
        self.y = state


@pytest.mark.parametrize("engine", ENGINES)
def test_python_simulators_go_back(engine):
    Noted.back = 0
    scenario = Scenario({"a": Python(Noted), "b": Python(Noted)}, {"a.u": "b.y", "b.u": "a.y"})
    run = hocket.run(Composite(scenario, 0.1, Iterate(Jacobi(), None, 4)), 1, engine=engine)
    assert Noted.back == 2 * 4 * 10
    # both begin alike and see each other's new value: y' = 0.9 y + h y'(of the sweep before)
    y = 1.0
    for _ in range(10):
        new = y
        for _ in range(4):
            new = 0.9 * y + 0.1 * new
        y = new
    assert run.final("a.y") == pytest.approx(y, rel=1e-14)


class Failing(Noted):
    def restore(self, state):
        raise RuntimeError("no way back")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_simulator_that_fails_to_go_back(engine):
    scenario = Scenario({"a": Python(Noted), "b": Python(Failing)}, {"a.u": "b.y", "b.u": "a.y"})
    with pytest.raises(hocket.SimulatorError) as caught:
        hocket.run(Composite(scenario, 0.1, Iterate()), 1, engine=engine)
    assert "`b` raised RuntimeError: no way back" in str(caught.value)
    assert "`b`, restore() at t = " in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("every", [None, "micro"])
def test_only_the_last_sweep_leaves_rows(engine, every):
    """Rows of an inner level, of micro steps in C++ and in Python: one per time."""
    ode = Ode(lambda t, x, u: [-x[0] + u[0]], None, [1.0], ["u"], ["y"], "rk4", "0.025 s")
    fine = StateSpace(A=[[-2.0]], B=[[1.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["y"], step="0.05 s")
    inner = Composite(Scenario({"fine": fine, "ode": ode}, {"fine.u": "ode.y"}), "0.1 s")
    scenario = Scenario({"a": lag(1, 1, 1), "in": inner}, {"a.u": "in.fine.y", "in.ode.u": "a.y"})
    run = hocket.run(Composite(scenario, "0.1 s", Iterate(Jacobi(), None, 3)), 1, engine=engine, every=every)
    lengths = {port: len(run[port].t) for port in run.ports}
    assert lengths["a.y"] == 11
    assert lengths["in.ode.y"] == (41 if every else 11)
    for port in run.ports:
        assert np.all(np.diff(run[port].t) > 0.0), port


@pytest.mark.parametrize("version", [2, 3])
def test_fmus_go_back_in_both_engines(version, tmp_path):
    """Two masses as co-simulation FMUs, iterated, against the same masses as matrices."""
    models = {name: Fmu(build(name, version, folder=tmp_path)) for name in ("first", "second")}
    wires = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    how = 0.1, Iterate(Jacobi(), 1e-13)
    matrices = hocket.run(Composite(Scenario(halves(), wires), *how), 20)
    runs = [hocket.run(Composite(Scenario(models, wires), *how), 20, engine=engine) for engine in ENGINES]
    assert [run.info["engine"] for run in runs] == list(ENGINES)
    for port in runs[0].ports:
        assert np.array_equal(runs[0][port].values, runs[1][port].values), port
        assert np.abs(runs[0][port].values - matrices[port].values).max() < 1e-9
    assert runs[0].info["counts"]["sweeps"] == runs[1].info["counts"]["sweeps"]


def test_three_levels_iterate_each():
    """The exact solution of three lags in a ring, each level an iteration of its own."""
    inmost = Composite(
        Scenario({"c": lag(2.0, 1.0, 0.5), "d": lag(1.5, -1.0, 0.2)}, {"c.u": "d.y", "d.u": "c.y"}),
        0.025,
        Iterate(Jacobi(), 1e-12),
        Polynomial(1),
    )
    middle = Composite(
        Scenario({"b": lag(3.0, 1.5, -1.0), "in": inmost}, {"b.u": "in.c.y"}),
        0.05,
        Iterate(GaussSeidel(), 1e-12),
        Polynomial(1),
    )
    outer = Composite(
        Scenario({"a": lag(1.0, 2.0, 1.0), "in": middle}, {"a.u": "in.b.y"}),
        0.1,
        Iterate(GaussSeidel(), 1e-12),
        Polynomial(1),
    )
    runs = [hocket.run(outer, 2, engine=engine) for engine in ENGINES]
    A = np.array([[-1.0, 2.0, 0, 0], [0, -3.0, 1.5, 0], [0, 0, -2.0, 1.0], [0, 0, -1.0, -1.5]])
    exact = expm(2.0 * A) @ [1.0, -1.0, 0.5, 0.2]
    for port, value in zip(("a.y", "in.b.y", "in.in.c.y", "in.in.d.y"), exact, strict=True):
        assert runs[0].final(port) == runs[1].final(port)
        assert runs[0].final(port) == pytest.approx(value, abs=2e-3)


class OnlyTwo:
    """Iterates b and c; a steps after them, once."""

    def plan(self, scenario):
        pair = ("b", "c")
        sweep = (Restore(pair), *(each for sim in pair for each in (Feed(sim), Step(sim), Read(sim))))
        return Plan((Save(pair), Repeat(sweep, 1e-12, 50), Feed("a"), Step("a"), Read("a"), Record()))


def test_hand_written_plans_may_repeat_part_of_a_level():
    models = {"a": lag(1.0, 2.0, 1.0), "b": lag(3.0, 1.5, -1.0), "c": lag(2.0, -1.0, 0.5)}
    scenario = Scenario(models, {"a.u": "b.y", "b.u": "c.y", "c.u": "b.y"})
    runs = [hocket.run(Composite(scenario, 0.1, OnlyTwo(), "linear"), 2, engine=engine) for engine in ENGINES]
    A = np.array([[-1.0, 2.0, 0], [0, -3.0, 1.5], [0, -1.0, -2.0]])
    exact = expm(2.0 * A) @ [1.0, -1.0, 0.5]
    for port, value in zip(("a.y", "b.y", "c.y"), exact, strict=True):
        assert runs[0].final(port) == runs[1].final(port)
        assert runs[0].final(port) == pytest.approx(value, abs=1e-3)


def test_what_is_meant_where_nothing_is_said():
    assert Iterate() == Iterate(Jacobi(), 1e-8, 50, "quasi-newton")
    assert Iterate().tolerance == 1e-8


def test_what_is_not_an_orchestrator_cannot_be_iterated():
    with pytest.raises(ScenarioError, match="`'jacobi'` is not an orchestrator") as raised:
        Iterate("jacobi")
    assert len(raised.value.faults) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("iterations", [2, 3, 5])
def test_what_acceleration_changes_is_not_sent(engine, iterations):
    """Each iteration ends with the values it found; what acceleration makes of them is known to all hosts."""
    models = {"a": lag(1.0, 2.0, 1.0), "b": lag(3.0, 1.5, -1.0), "c": lag(2.0, 1.0, 0.5)}
    connections = {"a.u": "b.y", "b.u": "a.y", "c.u": "b.y"}
    scenario = Scenario(models, connections, hosts={"one": ["a", "c"], "two": ["b"]})
    steps = 3
    for accelerate in ("plain", "relax"):
        algorithm = Iterate(GaussSeidel(["a", "b", "c"]), None, iterations, accelerate)
        run = hocket.run(Composite(scenario, "0.1 s", algorithm), stop=0.3, engine=engine)
        links = run.info["counts"]["messages"]
        assert links["one to two"]["messages"] == 1 + steps * iterations
        assert links["two to one"]["messages"] == 1 + steps * iterations


def test_a_copy_of_a_fixed_number_of_iterations_is_not_taken_for_accelerated():
    """Sweeps in other processes change orchestrators that were sent there."""
    sent = pickle.loads(pickle.dumps(Iterate(tolerance=None, at_most=3)))
    assert replace(sent, inner=GaussSeidel()) == Iterate(GaussSeidel(), tolerance=None, at_most=3)
    assert sent.accelerator is None
