"""Substepped: simulators that step by one length, in levels that step by others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from fmus.build import build
from hocket.files.toml import dumps, loads
from hocket.planning.planner import plan_tree
from hocket.simulators.wrappers.replay import Replay
from hocket.simulators.wrappers.substeps import Substepped
from hocket.testing import check_simulator
from simulators.coupled_halves import COUPLED, X0, half, reacting
from systems import ENGINES


class Held:
    """x'' = -2 x - 0.4 x' + u with u held, exactly, by a step of one length only; it cannot do another."""

    inputs, outputs = ("u",), ("x",)
    variable_step = False
    input_degree = 0

    def __init__(self, h):
        whole = expm(np.array([[0, 1, 0], [-2, -0.4, 1], [0, 0, 0]]) * h)
        self.h, self.Phi, self.Gamma = h, whole[:2, :2], whole[:2, 2]

    def start(self, t):
        self.z = np.array([1.0, 0.0])

    def output(self, t):
        return [self.z[0]]

    def step(self, t, h, u):
        if h != self.h:
            raise ValueError(f"a step of {h}")
        self.z = self.Phi @ self.z + self.Gamma * u[0, 0]

    def save(self):
        return self.z.copy()

    def restore(self, state):
        self.z = state.copy()


class Free(Held):
    variable_step = True


def held(h):
    return Substepped(hk.Python(Held, h=h), h)


def coupled(model, step, *how):
    scenario = hk.Scenario({"a": model, "b": half(3, X0[2:])}, {"a.u": "b.x", "b.u": "a.x"})
    return hk.Composite(scenario, step, *how)


def error(run):
    exact = np.array([expm(COUPLED * t) @ X0 for t in run["a.x"].t])
    return max(np.abs(run[path].values - exact[:, column]).max() for path, column in (("a.x", 0), ("b.x", 2)))


def test_on_its_grid_it_is_a_level_of_its_own():
    """Four sub-steps in each step are what a level with a quarter of the step does, to the bit."""
    inner = hk.Scenario({"own": hk.Python(Held, h=0.025)}, {"own.u": "u", "x": "own.x"}, ["u"], ["x"])
    level = hk.run(coupled(hk.Composite(inner, "25 ms"), "0.1 s"), 3)
    run = hk.run(coupled(held(0.025), "0.1 s"), 3)
    for path in ("a.x", "b.x"):
        assert np.array_equal(run[path].values, level[path].values)


def test_held_inputs_are_taken_at_the_middle_of_sub_steps():
    """u = 3 t: with the middle values the step is of second order, with the first ones of first order."""

    def missed(h):
        simulator = held(h).open()
        simulator.start(0.0)
        simulator.step(0.0, 0.8, np.array([[0.0], [3.0]]))
        whole = expm(np.array([[0, 1, 0, 0], [-2, -0.4, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0.0]]) * 0.8)
        exact = whole @ [1.0, 0.0, 0.0, 3.0]
        return abs(float(simulator.output(0.8, np.zeros((1, 1)))[0]) - exact[0])

    assert abs(math.log2(missed(0.1) / missed(0.05)) - 2.0) < 0.05


def test_between_sub_steps_outputs_are_on_a_line():
    simulator = held(0.2).open()
    simulator.start(0.0)
    u = np.array([[0.0]])
    simulator.step(0.0, 0.05, u)
    early = simulator.output(0.05, u)[0]
    assert simulator.step(0.05, 0.1, u) == pytest.approx(0.15)
    late = simulator.output(0.15, u)[0]
    simulator.step(0.15, 0.05, u)
    exact = (expm(np.array([[0, 1], [-2, -0.4]]) * 0.2) @ [1.0, 0.0])[0]
    assert simulator.output(0.2, u)[0] == pytest.approx(exact, abs=1e-14)
    assert early == pytest.approx(1 + 0.25 * (exact - 1), abs=1e-14)
    assert late == pytest.approx(1 + 0.75 * (exact - 1), abs=1e-14)


def test_reactions_follow_new_inputs_between_sub_steps():
    """y = C x + D u: between two sub-steps x is on a line, and u is the one that is asked about."""
    model, u = reacting(), np.array([[1.0, 2.0], [0.5, 0.0]])
    simulator, straight = Substepped(model, "0.2 s").open(), model.open()
    for each in (simulator, straight):
        each.start(0.0)
    before = straight.z.copy()
    straight.step(0.0, 0.2, u)
    simulator.step(0.0, 0.15, u)
    x = before + 0.75 * (straight.z - before)
    for other in ([[1.075, 2.0]], [[-4.0, 2.0]], [[7.0, 0.0]]):
        y = simulator.output(0.15, np.array(other))
        assert y == pytest.approx([x[0] + 0.5 * other[0][0], x[1]], abs=1e-12)


def test_what_jumps_is_held():
    class Counter:
        inputs, outputs = (), (hk.Port("n", type="integer"), hk.Port("y"))

        def start(self, t):
            self.n = 0

        def output(self, t):
            return [self.n, float(self.n)]

        def step(self, t, h, u):
            self.n += 1

    simulator = Substepped(hk.Python(Counter), "0.2 s").open()
    simulator.start(1.0)
    none = np.zeros((1, 0))
    simulator.step(1.0, 0.3, none)
    assert list(simulator.output(1.3, none)) == pytest.approx([1, 1.5])
    simulator.step(1.3, 0.1, none)
    assert list(simulator.output(1.4, none)) == [2, 2]


@pytest.mark.parametrize("h", [0.01, 0.005])
def test_in_a_level_with_step_control(h):
    """Without it the level is refused; with it the error goes to that of a simulator that takes any step."""
    how = "0.5 s", hk.Adaptive(tolerance=1e-3), hk.Polynomial(1)
    with pytest.raises(hk.ScenarioError, match="`a`"):
        plan_tree(coupled(hk.Python(Held, h=h), *how))
    free = error(hk.run(coupled(half(2, X0[:2]), *how), 4))
    run = hk.run(coupled(held(h), *how), 4)
    assert free < 4e-4
    assert error(run) < free + 0.02 * h
    assert run.info["counts"]["adapted"][""]["longest"] > 5 * run.info["counts"]["adapted"][""]["shortest"]


def test_its_error_in_steps_of_another_length_falls_with_the_sub_step():
    """Steps of 0.1 s do not fit sub-steps of 0.03 s and less: what is lost is of first order in these."""
    how = "0.1 s", "iterate", hk.Polynomial(2)
    errors = [error(hk.run(coupled(held(h), *how), 4)) for h in (0.06, 0.03, 0.015)]
    assert errors[0] < 0.02
    assert errors[1] < 0.6 * errors[0]
    assert errors[2] < 0.6 * errors[1]


@pytest.mark.parametrize("how", [hk.Adaptive(tolerance=1e-3), hk.Iterate(), hk.Multirate({"a": 5})], ids=str)
def test_both_engines_agree(how):
    composite = coupled(held(0.03), "0.5 s", how, hk.Polynomial(1))
    runs = [hk.run(composite, 2, engine=engine) for engine in ENGINES]
    assert [run.info["engine"] for run in runs] == list(ENGINES)
    for port in ("a.x", "b.x"):
        assert np.array_equal(runs[0][port].values, runs[1][port].values)


@pytest.mark.parametrize("substep", ["0.1 s", "30 ms", "10 ms", "0.7 s"])
def test_the_laws_hold(substep):
    check_simulator(Substepped(reacting(), substep))


def test_the_laws_hold_around_others():
    check_simulator(held(0.03))
    check_simulator(Substepped(Replay(hk.Python(Free, h=0.03)), "30 ms"))


def test_an_fmu_with_one_step(tmp_path):
    """FMI: canHandleVariableCommunicationStepSize is not declared."""
    path = build("second", 2, folder=tmp_path, canHandleVariableCommunicationStepSize=None)
    model = hk.Fmu(path)
    assert not model.capabilities.variable_step
    lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["y"])
    scenario = {"fmu": Substepped(model, "5 ms"), "lag": lag}, {"fmu.force": "lag.y", "lag.u": "fmu.x"}
    composite = hk.Composite(hk.Scenario(*scenario), "0.1 s", hk.Multirate({"fmu": 4}))
    runs = [hk.run(composite, 1, engine=engine) for engine in ENGINES]
    fine = hk.Composite(hk.Scenario({"fmu": model}, {"fmu.force": "u", "x": "fmu.x"}, ["u"], ["x"]), "5 ms")
    levels = {"fmu": fine, "lag": lag}, {"fmu.u": "lag.y", "lag.u": "fmu.x"}
    nested = hk.run(hk.Composite(hk.Scenario(*levels), "0.1 s", hk.Multirate({"fmu": 4})), 1)
    assert np.array_equal(runs[0]["lag.y"].values, runs[1]["lag.y"].values)
    assert np.array_equal(runs[0]["lag.y"].values, nested["lag.y"].values)


class Early(Held):
    stops_early = True


class Short(Held):
    def step(self, t, h, u):
        return t + h / 2


def test_what_cannot_be_is_refused():
    ode = hk.Ode(lambda t, x, u: -x, x0=[1.0], step="20 ms")
    for wrong, substep, message in (
        (hk.Composite(coupled(held(0.1), "0.1 s").scenario, "0.1 s"), "0.1 s", "not sub-stepped as a whole"),
        (Held, "0.1 s", "is not a model"),
        (hk.Python(Held, h=0.1), "-1 s", "above zero"),
        (hk.Python(Held, h=0.1), "soon", "soon"),
        (hk.Python(Early, h=0.1), "0.1 s", "may stop inside a step"),
        (ode, "50 ms", "the micro step 20 ms of the model does not divide"),
    ):
        with pytest.raises(hk.ScenarioError, match=message):
            Substepped(wrong, substep)


def test_a_sub_step_that_ends_early_is_an_error():
    model = Substepped(hk.Python(Short, h=0.1), "0.1 s")
    with pytest.raises(hk.SimulatorError, match=r"a sub-step from 0.0 s ended at 0.05 s, not at 0.1 s"):
        hk.run(coupled(model, "0.1 s"), 1)


def test_it_says_what_it_is_and_loses():
    model = held(0.03)
    assert model.emulation == "any step by sub-steps of 30 ms"
    assert model.capabilities.variable_step
    assert model.capabilities.input_degree is None
    sloped = Substepped(reacting(), "10 ms")
    assert not sloped.capabilities.slopes
    assert sloped.capabilities.order is None
    notes = plan_tree(coupled(model, "0.1 s")).plan.notes
    assert any("`a` has any step by sub-steps of 30 ms" in note for note in notes)


FILE = """
step = "0.1 s"
orchestrator = { type = "multirate", rates = { thermostat = 2 } }

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
class = "tests/sampled_thermostat.py:Thermostat"
substep = "25 ms"

[connections]
room.heat = "thermostat.heat"
thermostat.temperature = "room.temperature"
"""


def test_files_know_it():
    experiment = loads(FILE)
    model = experiment.composite.scenario.models["thermostat"]
    assert model == Substepped(hk.Python("tests/sampled_thermostat.py:Thermostat"), "25 ms")
    text = dumps(experiment)
    assert 'substep = "25 ms"' in text
    assert loads(text) == experiment
    for wrong, message in (("substep = 0", "above zero"), ('substep = "soon"', "duration")):
        with pytest.raises(hk.ScenarioError, match=message) as caught:
            loads(FILE.replace('substep = "25 ms"', wrong))
        assert "line 17" in str(caught.value)
