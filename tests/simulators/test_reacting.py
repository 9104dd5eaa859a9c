"""Reacting: which outputs follow which inputs at once, told or tried out."""

from __future__ import annotations

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.files.toml import dumps, loads
from hocket.planning.compiler.capabilities import feedthrough_origin
from hocket.planning.planner import plan_tree
from hocket.simulators.wrappers.feedthrough_probe import Reacting, probe_feedthrough
from hocket.simulators.wrappers.replay import Replay
from hocket.testing import check_simulator


def with_probed_feedthrough(model, h):
    return Reacting(model, probe_feedthrough(model, h), probed=True)


class Plant:
    """At rest y does not react to w, though it does: it is a product with the state."""

    inputs, outputs = ("u", "w"), ("x", "y")

    def start(self, t):
        self.x = 0.0

    def output(self, t, u):
        return [self.x, self.x * u[0, 1]]

    def step(self, t, h, u):
        self.x += h * (u[0, 0] - self.x)


@pytest.mark.parametrize("seed", range(20))
def test_matrices_are_found_out(seed):
    """The reactions of y = C x + D u are where D is not zero."""
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(4, 3)) * (rng.random((4, 3)) < 0.4)
    A = rng.normal(size=(2, 2)) - 2 * np.eye(2)
    inputs, outputs = ["a", "b", "c"], ["p", "q", "r", "s"]
    model = hk.StateSpace(
        A, rng.normal(size=(2, 3)), rng.normal(size=(4, 2)), D, inputs=inputs, outputs=outputs
    )
    seen = probe_feedthrough(model, 0.1)
    for row, name in enumerate(outputs):
        assert seen[name] == tuple(inputs[column] for column in np.flatnonzero(D[row]))


def test_a_reaction_that_rest_hides_is_seen():
    model = hk.Python(Plant)
    assert feedthrough_origin(model) == "assumed: all"
    made = with_probed_feedthrough(model, 0.1)
    assert made == Reacting(model, {"y": ["w"]}, probed=True)
    assert [port.feedthrough for port in made.outputs] == [(), ("w",)]
    assert feedthrough_origin(made) == "emulated: probing"
    check_simulator(made)


def test_a_loop_that_is_none_is_not_solved():
    """Taken to react to all, both plants are in a loop; as tried, none is, and the numbers are the same."""

    def couple(model):
        wires = {"a.u": "b.x", "a.w": "b.x", "b.u": "a.y", "b.w": "a.x"}
        return hk.Composite(hk.Scenario({"a": model, "b": model}, wires), "0.1 s")

    taken, tried = couple(hk.Python(Plant)), couple(with_probed_feedthrough(hk.Python(Plant), 0.1))
    assert any("algebraic loop" in note for note in plan_tree(taken).plan.notes)
    assert not any("algebraic loop" in note for note in plan_tree(tried).plan.notes)
    assert any("feedthrough by probing" in note for note in plan_tree(tried).plan.notes)


def test_an_fmu_is_tried_after_its_initialisation(tmp_path):
    """`first` puts out a force that reacts to both inputs; FMI 1 declares it here."""
    model = hk.Fmu(build("first", 1, folder=tmp_path))
    declared = {port.name: port.feedthrough for port in model.outputs}
    assert probe_feedthrough(model, 0.01) == declared
    made = with_probed_feedthrough(model, 0.01)
    assert made.open().native is not None  # it runs as before, without Python


def test_what_cannot_be_is_refused(tmp_path):
    for told, message in (({"z": ["u"]}, "`z`"), ({"x": ["v"]}, "`v`")):
        with pytest.raises(hk.ScenarioError, match=message):
            Reacting(hk.Python(Plant), told)
    with pytest.raises(hk.ScenarioError, match="is not a model"):
        Reacting(Plant, {})
    mute = hk.Fmu(build("first", 2, folder=tmp_path), reevaluate=False)
    with pytest.raises(hk.ScenarioError, match="nothing can be seen"):
        probe_feedthrough(mute, 0.1)


FILE = """
step = "0.1 s"

[models.thermostat]
type = "python"
class = "examples/thermostat.py:Thermostat"
feedthrough = { heat = ["temperature"] }
probed = true
replay = true

[connections]
thermostat.temperature = "room.temperature"

[models.room]
type = "table"
t = [0, 1]
columns = { temperature = [18, 20] }
outputs = ["temperature [degC]"]
"""


def decay(t, x, u):
    return [u[0] - x[0]]


def shown(t, x, u):
    return [x[0], x[0] + u[0]]


def test_equations_that_were_tried_are_marked_in_files():
    code = f"{__name__}:decay", f"{__name__}:shown"
    ode = hk.Ode(*code, x0=[1.0], inputs=["u = 0"], outputs=["x", "y"])
    assert feedthrough_origin(ode) == "assumed: all"
    made = with_probed_feedthrough(ode, 0.1)
    assert made == Reacting(ode, {"y": ["u"]}, probed=True)
    composite = hk.Composite(hk.Scenario({"a": made}), "0.1 s")
    text = dumps(composite)
    assert 'feedthrough = { y = ["u"] }' in text
    assert "probed = true" in text
    assert loads(text).composite == composite
    told = loads(text.replace("probed = true", "")).composite.scenario.models["a"]
    assert isinstance(told, hk.Ode)
    assert [port.feedthrough for port in told.outputs] == [(), ("u",)]


def test_files_know_it():
    experiment = loads(FILE)
    bare = hk.Python("examples/thermostat.py:Thermostat")
    told = {"heat": ["temperature"]}
    assert experiment.composite.scenario.models["thermostat"] == Replay(Reacting(bare, told, probed=True))
    assert loads(dumps(experiment)) == experiment
    for wrong, message, line in (
        ('feedthrough = { heat = ["temprature"] }', "did you mean `temperature`", 7),
        ("", "`probed` stands without `feedthrough`", 8),
    ):
        with pytest.raises(hk.ScenarioError, match=message) as caught:
            loads(FILE.replace('feedthrough = { heat = ["temperature"] }', wrong))
        assert f"line {line}" in str(caught.value)
