"""Sloped: slopes by differences, against those of matrices and against coupled runs with exact answers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from fmus.build import build
from hocket.files.toml import dumps, loads
from hocket.planning.parameters import with_parameters
from hocket.planning.planner import plan_tree
from hocket.simulators.wrappers.derivatives import Sloped
from hocket.simulators.wrappers.emulation import innermost_model
from hocket.simulators.wrappers.replay import Replay
from hocket.simulators.wrappers.substeps import Substepped
from hocket.testing import LawBroken, check_simulator
from simulators.coupled_halves import COUPLED, X0, Fixed, Stuck, half, halves, reacting
from systems import ENGINES


def wanted(t):
    return np.array([[1 + 0.3 * t, 2 - 0.1 * t], [0.3, -0.1]])


def missed(model, h, steps):
    """Return how far the slopes are from those of the matrices, after some steps."""
    one, exact = model.open(), innermost_model(model).open()
    for simulator in (one, exact):
        simulator.start(0.0)
        for number in range(steps):
            simulator.step(number * h, h, wanted(number * h))
    t = steps * h
    return float(np.abs(one.slope(t, wanted(t)) - exact.slope(t, wanted(t))).max())


def test_trial_steps_are_of_second_order():
    errors = [missed(Sloped(reacting(), trial), 0.1, 3) for trial in ("4 ms", "2 ms", "1 ms")]
    for coarse, fine in pairwise(errors):
        assert abs(math.log2(coarse / fine) - 2.0) < 0.05
    assert missed(Sloped(reacting(), "10 us"), 0.1, 0) < 1e-9
    assert missed(Sloped(reacting(), "10 us"), 0.1, 5) < 1e-9


def test_backward_differences_are_of_second_order():
    errors = [missed(Sloped(reacting()), h, round(0.8 / h)) for h in (0.1, 0.05, 0.025)]
    for coarse, fine in pairwise(errors):
        assert abs(math.log2(coarse / fine) - 2.0) < 0.1
    assert errors[0] < 4e-3


def test_backward_differences_of_uneven_steps():
    """A parabola is met exactly, whatever the steps; a line after one step; at the start nothing is known."""
    curve = hk.Function(lambda t: [1 + 2 * t - 3 * t * t], ["y"])
    simulator = Sloped(curve).open()
    simulator.start(0.0)
    none = np.zeros((1, 0))
    assert simulator.slope(0.0, none) == [0.0]
    simulator.step(0.0, 0.3, none)
    assert simulator.slope(0.3, none) == pytest.approx([2 - 3 * 0.3])
    simulator.step(0.3, 0.1, none)
    state = simulator.save()
    simulator.step(0.4, 0.45, none)
    assert simulator.slope(0.85, none) == pytest.approx([2 - 6 * 0.85])
    simulator.restore(state)
    assert simulator.slope(0.4, none) == pytest.approx([2 - 6 * 0.4])


def error(scenario, h, extrapolation, engine="native"):
    run = hk.run(hk.Composite(scenario, h, "jacobi", extrapolation), 4, engine=engine)
    exact = np.array([expm(COUPLED * t) @ X0 for t in run["a.x"].t])
    return max(np.abs(run[path].values - exact[:, column]).max() for path, column in (("a.x", 0), ("b.x", 2)))


def test_a_coupling_by_slopes_keeps_its_order():
    """Hermite 1 is of order 2, Hermite 2 of order 4; trial steps keep both, backward differences only 2."""
    for samples, order in ((1, 2), (2, 4)):
        own = [error(halves(), h, hk.Hermite(samples)) for h in (0.2, 0.1)]
        tried = [error(halves(lambda m: Sloped(m, "10 us")), h, hk.Hermite(samples)) for h in (0.2, 0.1)]
        assert abs(math.log2(own[0] / own[1]) - order) < 0.15
        assert tried == pytest.approx(own, rel=1e-5)
    for samples in (1, 2):
        late = [error(halves(Sloped), h, hk.Hermite(samples)) for h in (0.1, 0.05)]
        assert abs(math.log2(late[0] / late[1]) - 2.0) < 0.2
    assert error(halves(Sloped), 0.1, hk.Hermite(1)) < error(halves(), 0.1, hk.Hold()) / 10


@pytest.mark.parametrize("wrap", [Sloped, lambda model: Sloped(model, "10 us")], ids=["backward", "trial"])
def test_both_engines_agree(wrap):
    for orchestrator in ("jacobi", "gauss-seidel", "iterate"):
        composite = hk.Composite(halves(wrap), "0.1 s", orchestrator, hk.Hermite(2))
        runs = [hk.run(composite, 2, engine=engine) for engine in ENGINES]
        assert [run.info["engine"] for run in runs] == list(ENGINES)
        for port in ("a.x", "b.x"):
            assert np.array_equal(runs[0][port].values, runs[1][port].values)


@pytest.mark.parametrize(
    "model",
    [
        Sloped(reacting(), "10 us"),
        Sloped(hk.Python(Fixed)),
        Sloped(Replay(hk.Python(Stuck)), "10 us"),
        Sloped(Substepped(Replay(hk.Python(Fixed)), "30 ms"), "1 us"),
    ],
    ids=["trial", "backward", "replayed", "all"],
)
def test_the_laws_hold(model):
    check_simulator(model)


def test_backward_differences_are_no_exact_slopes():
    """Where steps can be short the law is checked, and inputs that jump break it: they come late."""
    with pytest.raises(LawBroken, match="slope"):
        check_simulator(Sloped(hk.Python(Stuck)))


def test_an_fmu_without_derivatives(tmp_path):
    """Its slopes by trial steps are those of the same system as matrices."""
    model = Sloped(hk.Fmu(build("second", 2, folder=tmp_path)), "10 us")
    assert model.model.capabilities.rollback
    assert not model.model.capabilities.slopes
    simulator = model.open()
    try:
        simulator.start(0.0)
        u = np.array([[2.0]])
        simulator.output(0.0, u)
        simulator.ready()
        before = simulator.output(0.0, u)
        told = simulator.slope(0.0, u)
        assert np.array_equal(simulator.output(0.0, u), before)
        names = [port.name for port in model.outputs]
        at = dict(zip(names, before, strict=True))
        assert told[names.index("x")] == pytest.approx(at["v"], abs=1e-8)
    finally:
        simulator.close()


def test_what_jumps_has_no_slope():
    class Counter:
        inputs, outputs = (), (hk.Port("n", type="integer"), hk.Port("y"))

        def start(self, t):
            self.n = 0

        def output(self, t):
            return [self.n, 2.0 * self.n]

        def step(self, t, h, u):
            self.n += 1

    simulator = Sloped(hk.Python(Counter)).open()
    simulator.start(0.0)
    for number in range(3):
        simulator.step(number * 0.5, 0.5, np.zeros((1, 0)))
    assert list(simulator.slope(1.5, np.zeros((1, 0)))) == [0.0, 4.0]


def test_what_cannot_be_is_refused():
    level = hk.Composite(halves(), "0.1 s")
    for wrong, options, message in (
        (level, (), "a level is not given output derivatives as a whole"),
        (Stuck, (), "is not a model"),
        (hk.Python(Stuck), ("1 ms",), "`Python` cannot roll back"),
        (Replay(hk.Python(Fixed)), ("1 ms",), "accepts only the step of its level"),
        (reacting(), ("0 s",), "above zero"),
        (reacting(), ("soon",), "soon"),
    ):
        with pytest.raises(hk.ScenarioError, match=message):
            Sloped(wrong, *options)


def test_it_says_what_it_is():
    tried, late = Sloped(reacting(), "10 us"), Sloped(hk.Python(Stuck, gain=2.0))
    assert tried.emulation == "output derivatives by trial steps of 10 us"
    assert late.emulation == "output derivatives by backward differences"
    composite = hk.Composite(
        hk.Scenario({"a": late, "b": half(2, [1, 0])}, {"a.u": "b.x", "b.u": "a.y"}), "0.1 s"
    )
    assert any(
        "`a` has output derivatives by backward differences" in note
        for note in plan_tree(composite).plan.notes
    )
    other = with_parameters(composite, {"a.gain": 3.0}).scenario.models["a"]
    assert other == Sloped(hk.Python(Stuck, gain=3.0))


FILE = """
step = "0.1 s"
extrapolation = "hermite"

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
replay = true
slopes = "1 ms"

[connections]
room.heat = { from = "thermostat.heat", extrapolation = "hermite" }
thermostat.temperature = "room.temperature"
"""


def test_files_know_it():
    for written, model in (
        ('"1 ms"', Sloped(Replay(hk.Python("tests/sampled_thermostat.py:Thermostat")), "1 ms")),
        ('"backward"', Sloped(Replay(hk.Python("tests/sampled_thermostat.py:Thermostat")))),
    ):
        experiment = loads(FILE.replace('"1 ms"', written))
        assert experiment.composite.scenario.models["thermostat"] == model
        text = dumps(experiment)
        assert f"slopes = {written}" in text
        assert loads(text) == experiment


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ('slopes = "soon"', "duration"),
        ("slopes = 0", "above zero"),
        ("slopes = true", "true"),
    ],
)
def test_faults_of_files_have_their_line(wrong, message):
    with pytest.raises(hk.ScenarioError, match=message) as caught:
        loads(FILE.replace('slopes = "1 ms"', wrong))
    assert "line 18" in str(caught.value)


def test_a_trial_in_a_file_wants_a_way_back():
    with pytest.raises(hk.ScenarioError, match="`Python` cannot roll back") as caught:
        loads(FILE.replace("replay = true", "replay = false"))
    assert "line 18" in str(caught.value)
    assert "replay = true" in str(caught.value)


def test_wrappers_in_another_order_cannot_be_written():
    scenario = hk.Scenario({"a": Replay(Sloped(hk.Python("tests/sampled_thermostat.py:Thermostat")))})
    with pytest.raises(hk.ScenarioError, match="cannot be written"):
        dumps(hk.Composite(scenario, "0.1 s"))
