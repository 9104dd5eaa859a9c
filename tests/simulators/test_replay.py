"""Replay: simulators that cannot roll back do so by making their steps again."""

from __future__ import annotations

import numpy as np
import pytest

import hocket
from fmus.build import build
from hocket import (
    Composite,
    Fmu,
    GaussSeidel,
    Iterate,
    Jacobi,
    Polynomial,
    Python,
    Scenario,
    ScenarioError,
    SimulatorError,
    StateSpace,
)
from hocket.files.toml import dumps, loads
from hocket.planning.parameters import with_parameters
from hocket.planning.planner import plan_tree
from hocket.simulators.wrappers.replay import Replay
from hocket.testing import LawBroken, check_simulator
from scenarios.test_fmus import halves
from systems import ENGINES, TWO_MASS_WIRES


class Swing:
    """x'' = -k x - 0.1 x' + u, by eight steps of Heun in each; it cannot roll back."""

    inputs = ("u",)
    outputs = ("x", "v")
    order = 2

    def __init__(self, k=2.0):
        self.k = k

    def start(self, t):
        self.x, self.v = 1.0, 0.0

    def output(self, t):
        return [self.x, self.v]

    def rates(self, x, v, s, u):
        force = sum(float(row[0]) * s**power for power, row in enumerate(u))
        return v, -self.k * x - 0.1 * v + force

    def step(self, t, h, u):
        part = h / 8
        for number in range(8):
            a, b = self.rates(self.x, self.v, number * part, u)
            c, d = self.rates(self.x + part * a, self.v + part * b, (number + 1) * part, u)
            self.x, self.v = self.x + part / 2 * (a + c), self.v + part / 2 * (b + d)


class Returning(Swing):
    def save(self):
        return self.x, self.v

    def restore(self, state):
        self.x, self.v = state


def pair(one, other):
    return Scenario({"a": one, "b": other}, {"a.u": "b.x", "b.u": "a.x"})


def same(one, other):
    assert one.ports == other.ports
    for port in one.ports:
        assert np.array_equal(one[port].values, other[port].values), port


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("inner", [Jacobi(), GaussSeidel()])
def test_it_ends_where_one_ends_that_can_go_back(inner, engine):
    how = "0.1 s", Iterate(inner, 1e-10), Polynomial(2)
    returning = hocket.run(Composite(pair(Python(Returning), Python(Returning, k=3.0)), *how), 3)
    replayed = pair(Replay(Python(Swing)), Replay(Python(Swing, k=3.0)))
    run = hocket.run(Composite(replayed, *how), 3, engine=engine)
    assert run.info["engine"] == engine
    same(run, returning)
    assert run.info["counts"]["sweeps"] == returning.info["counts"]["sweeps"]


def test_without_it_the_iteration_is_refused():
    with pytest.raises(ScenarioError, match="`a` cannot roll back"):
        plan_tree(Composite(pair(Python(Swing), Replay(Python(Swing))), "0.1 s", Iterate()))


def test_a_start_window_becomes_possible():
    bare = plan_tree(Composite(pair(Python(Swing), Python(Swing)), "0.1 s", Jacobi(), Polynomial(2))).plan
    assert "the order is capped at 2: `a` and 1 more cannot roll back, so the start is cold" in bare.notes
    models = Replay(Python(Swing)), Replay(Python(Swing, k=3.0))
    composite = Composite(pair(*models), "0.1 s", Jacobi(), Polynomial(2))
    assert not any("capped" in note for note in plan_tree(composite).plan.notes)
    others = Composite(pair(Python(Returning), Python(Returning, k=3.0)), "0.1 s", Jacobi(), Polynomial(2))
    same(hocket.run(composite, 2), hocket.run(others, 2))


@pytest.mark.parametrize(
    "model", [Python(Swing), Python(Returning), halves()["first"]], ids=["stuck", "able", "linear"]
)
def test_the_laws_hold(model):
    check_simulator(Replay(model))


class Restless:
    """Its outputs depend on how often one was made."""

    inputs, outputs = ("u",), ("y",)
    made = 0

    def __init__(self):
        Restless.made += 1
        self.step_size = Restless.made

    def start(self, t):
        self.y = 1.0

    def output(self, t):
        return [self.y]

    def step(self, t, h, u):
        self.y += h * self.step_size


def test_who_does_not_repeat_itself_is_found_out():
    with pytest.raises(SimulatorError) as caught:
        hocket.run(Composite(pair_of_one(Restless), "0.1 s", Iterate(tolerance=None, at_most=2)), 1)
    text = str(caught.value)
    assert "it does not repeat itself when it is replayed: its outputs at 0.1 s were [1." in text
    assert "`a`, restore() at t = 0.2 s" in text
    with pytest.raises(LawBroken):
        check_simulator(Replay(Python(Restless)))


def pair_of_one(cls):
    lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    return Scenario({"a": Replay(Python(cls)), "b": lag}, {"a.u": "b.y", "b.u": "a.y"})


class Counted:
    """Counts what is open, and fails in the step it is told to."""

    inputs, outputs = ("u",), ("y",)
    opened = closed = steps = 0
    fails = 10**9

    def __init__(self):
        Counted.opened += 1

    def start(self, t):
        self.y = 1.0

    def output(self, t):
        return [self.y]

    def step(self, t, h, u):
        Counted.steps += 1
        if Counted.steps == Counted.fails:
            raise ValueError("enough")
        self.y += h * (u[0, 0] - self.y)

    def close(self):
        Counted.closed += 1


@pytest.fixture
def counted(monkeypatch):
    for name in ("opened", "closed", "steps", "fails"):
        monkeypatch.setattr(Counted, name, Counted.__dict__[name])
    return Counted


@pytest.mark.parametrize("engine", ENGINES)
def test_what_it_costs_and_that_all_is_closed(counted, engine):
    """Step k is made, then once more after the k - 1 before it: n + n (n + 1) / 2 in all."""
    n = 12
    composite = Composite(pair_of_one(Counted), "0.1 s", Iterate(tolerance=None, at_most=2))
    hocket.run(composite, "1.2 s", engine=engine)
    assert counted.steps == n + n * (n + 1) // 2
    assert counted.opened == counted.closed == 1 + n


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("fails", "call"),
    [
        (1, "step() at t = 0.0 s"),
        (2, "step() at t = 0.0 s"),
        (3, "step() at t = 0.1 s"),
        (4, "restore() at t = 0.2 s"),
    ],
)
def test_errors_are_blamed_on_it(counted, monkeypatch, engine, fails, call):
    """Step 1 is made, and made again; step 2 is made, and step 1 replayed before it is made again."""
    monkeypatch.setattr(counted, "fails", fails)
    composite = Composite(pair_of_one(Counted), "0.1 s", Iterate(tolerance=None, at_most=2))
    with pytest.raises(SimulatorError) as caught:
        hocket.run(composite, 1, engine=engine)
    text = str(caught.value)
    assert "`a` raised ValueError: enough" in text
    assert f"`a`, {call}, test_replay.py line " in text
    assert counted.opened == counted.closed


def test_states_may_be_restored_in_any_order():
    simulator = Replay(Python(Swing)).open()
    straight = Python(Swing).open()
    u, other = np.array([[1.0]]), np.array([[-2.0], [3.0]])
    for each in (simulator, straight):
        each.start(0.0)
        each.step(0.0, 0.1, u)
    one = simulator.save()
    u[0, 0] = 7.0  # it belongs to the caller
    straight.step(0.1, 0.1, other)
    simulator.step(0.1, 0.1, other)
    two = simulator.save()
    simulator.restore(one)
    simulator.step(0.1, 0.05, np.array([[5.0]]))
    three = simulator.save()
    simulator.restore(two)
    assert simulator.output(0.2, other) == straight.output(0.2, other)
    simulator.restore(three)
    simulator.restore(two)
    straight.step(0.2, 0.1, other)
    simulator.step(0.2, 0.1, other)
    assert simulator.output(0.3, other) == straight.output(0.3, other)
    simulator.close()
    simulator.close()


class Settling:
    """As an FMU: its initial state follows its inputs until `ready`."""

    settles = True

    def __init__(self):
        self.stop_time = None

    def start(self, t):
        self.stopping, self.given, self.open = self.stop_time, [], True

    def output(self, t, u):
        if self.open:
            self.given.append(float(u[0, 0]))
        return [sum(self.given)]

    def ready(self):
        self.open = False

    def step(self, t, h, u):
        self.given.append(h * float(u[0, 0]) * self.stopping)
        return t + h

    def close(self):
        pass


class Recipe:
    inputs = (hocket.Port.of("u"),)
    outputs = (hocket.Port("y"),)
    capabilities = Python(Swing).capabilities

    def open(self):
        return Settling()


def test_the_initialisation_is_replayed_too():
    simulator = Replay(Recipe()).open()
    assert simulator.settles
    simulator.stop_time = 10.0
    simulator.start(0.0)
    for value in (1.0, 3.0):
        simulator.output(0.0, np.array([[value]]))
    simulator.ready()
    begun = simulator.save()
    simulator.step(0.0, 0.5, np.array([[4.0]]))
    assert simulator.output(0.5, np.array([[9.0]])) == [1.0 + 3.0 + 20.0]
    simulator.restore(begun)
    assert simulator.output(0.0, np.array([[9.0]])) == [1.0 + 3.0]
    assert not hasattr(Replay(Python(Swing)).open(), "ready")
    assert not hasattr(Replay(Python(Swing)).open(), "stop_time")


@pytest.mark.parametrize("engine", ENGINES)
def test_fmus_without_a_state_to_save(engine, tmp_path):
    """FMI 1 has none at all; FMI 2 need not have one."""
    how = "0.1 s", Iterate(Jacobi(), 1e-12)
    models = {
        "first": Replay(Fmu(build("first", 1, folder=tmp_path))),
        "second": Replay(Fmu(build("second", 2, folder=tmp_path, canGetAndSetFMUstate=None))),
    }
    assert not any(model.model.capabilities.rollback for model in models.values())
    run = hocket.run(Composite(Scenario(models, TWO_MASS_WIRES), *how), 3, engine=engine)
    own = {name: Fmu(build(name, 2, folder=tmp_path, file=f"{name}_own.fmu")) for name in ("first", "second")}
    same(run, hocket.run(Composite(Scenario(own, TWO_MASS_WIRES), *how), 3))
    matrices = hocket.run(Composite(Scenario(halves(), TWO_MASS_WIRES), *how), 3)
    assert np.abs(run["second.x"].values - matrices["second.x"].values).max() < 1e-9


def test_an_fmu_of_which_there_can_be_one_only(tmp_path):
    model = Replay(Fmu(build("single", 1, folder=tmp_path)))
    simulator = model.open()
    try:
        simulator.start(0.0)
        simulator.output(0.0, np.zeros((1, 1)))
        simulator.ready()
        begun = simulator.save()
        simulator.step(0.0, 0.5, np.zeros((1, 1)))
        assert simulator.output(0.5, np.zeros((1, 1))) == [0.5]
        simulator.restore(begun)
        assert simulator.output(0.0, np.zeros((1, 1))) == [0.0]
    finally:
        simulator.close()


def test_it_keeps_what_the_model_tells():
    model = Replay(Python(Swing, period="0.2 s", k=5.0))
    assert (model.inputs, model.outputs) == (model.model.inputs, model.model.outputs)
    assert model.capabilities.rollback
    assert model.capabilities.order == 2
    assert model.without_period() == Replay(Python(Swing, k=5.0))
    composite = Composite(pair(model, Replay(Python(Swing))), "0.1 s")
    assert any("a.sampled" in line for line in str(plan_tree(composite).plan).splitlines())
    other = with_parameters(composite, {"a.k": 6.0}).scenario.models["a"]
    assert other == Replay(Python(Swing, period="0.2 s", k=6.0))


def test_levels_and_what_is_no_model_are_refused():
    level = Composite(pair(Python(Swing), Python(Swing)), "0.1 s")
    for wrong, message in ((level, "a level is not replayed as a whole"), (Swing, "is not a model")):
        with pytest.raises(ScenarioError, match=message):
            Replay(wrong)


CLASS = "tests/sampled_thermostat.py:Thermostat"
FILE = f"""
step = "0.1 s"
orchestrator = "iterate"

[models.room]
type = "state-space"
A = [[-1]]
B = [[1]]
C = [[1]]
x0 = [293]
inputs = ["heat [W]"]
outputs = ["temperature [K]"]

[models.thermostat]
type = "python"
class = "{CLASS}"
parameters = {{ low = 18 }}
replay = true

[connections]
room.heat = "thermostat.heat"
thermostat.temperature = "room.temperature"
"""


def test_files_know_it():
    experiment = loads(FILE)
    model = experiment.composite.scenario.models["thermostat"]
    assert model == Replay(Python(CLASS, low=18))
    text = dumps(experiment)
    assert "replay = true" in text
    assert loads(text) == experiment
    with pytest.raises(ScenarioError, match="`thermostat` cannot roll back"):
        loads(FILE.replace("replay = true", "replay = false"))


def test_what_files_cannot_say_is_refused():
    lag = Replay(StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["u"], outputs=["y"]))
    with pytest.raises(ScenarioError, match="replay"):
        dumps(Composite(Scenario({"a": lag}, {"a.u": "a.y"}), "0.1 s"))
