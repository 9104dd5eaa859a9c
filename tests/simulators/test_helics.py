"""A foreign federation, written in plain `helics`: what passes, both ways, at every step, and when."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

import hocket as hk
from hocket.simulators.helics import Helics
from systems import lag

pytest.importorskip("helics")

FOREIGN = """
import sys, helics as h
address, steps, delta = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
info = h.helicsCreateFederateInfo()
h.helicsFederateInfoSetCoreTypeFromString(info, "zmq")
h.helicsFederateInfoSetCoreInitString(info, f"--federates=1 --broker={address} --loglevel=no_print")
h.helicsFederateInfoSetTimeProperty(info, h.HELICS_PROPERTY_TIME_PERIOD, delta)
federate = h.helicsCreateValueFederate("grid", info)
out = h.helicsFederateRegisterGlobalPublication(federate, "grid/v", h.HELICS_DATA_TYPE_DOUBLE, "V")
heard = h.helicsFederateRegisterSubscription(federate, "hocket/i", "A")
h.helicsFederateEnterInitializingMode(federate)
h.helicsPublicationPublishDouble(out, 100.0)  # v(0)
h.helicsFederateEnterExecutingMode(federate)
for k in range(steps):
    h.helicsPublicationPublishDouble(out, 100.0 + (k + 1) ** 2)  # v at the end of the step that begins
    t = h.helicsFederateRequestTime(federate, (k + 1) * delta)
    print(repr(t), repr(h.helicsInputGetDouble(heard)), flush=True)
h.helicsFederateDisconnect(federate)
"""


@pytest.fixture
def broker():
    from hocket.execution.distributed.helics_broker import local_broker

    with local_broker(2) as found:
        yield found.address


def foreign(address, steps, delta):
    words = [sys.executable, "-c", FOREIGN, address, str(steps), str(delta)]
    return subprocess.Popen(words, stdout=subprocess.PIPE)


def neighbour(address, **more):
    return Helics(
        ["i [A]"],
        ["v [V]"],
        ["hocket/i"],
        ["grid/v"],
        broker=address,
        patience=more.pop("patience", 30),
        **more,
    )


def test_values_pass_both_ways_at_every_step_without_a_delay(broker):
    """The grid says 100 + k^2 at the end of step k; hocket says 3 t + 1, the ramp, at the end of its own."""
    steps, delta = 8, 0.25
    ramp = hk.Function(lambda t: 3.0 * t + 1.0, outputs=["i [A]"])
    scenario = hk.Scenario({"ramp": ramp, "grid": neighbour(broker)}, {"grid.i": "ramp.i"})
    process = foreign(broker, steps, delta)
    try:
        level = hk.Composite(scenario, "0.25 s", hk.GaussSeidel(["ramp", "grid"]))
        run = hk.run(level, steps * delta, record=["*", "grid.i"])
        said = process.communicate(timeout=30)[0].decode().split()
    finally:
        process.kill()
        process.communicate()
    assert run["grid.v"].values.tolist() == [100.0 + k**2 for k in range(steps + 1)]
    times, heard = np.array(said, float).reshape(-1, 2).T
    assert times.tolist() == [(k + 1) * delta for k in range(steps)]
    assert heard.tolist() == [3.0 * t + 1.0 for t in times]


@pytest.mark.slow
def test_under_jacobi_a_held_value_is_one_step_old_as_documented(broker):
    ramp = hk.Function(lambda t: 3.0 * t + 1.0, outputs=["i [A]"])
    scenario = hk.Scenario({"ramp": ramp, "grid": neighbour(broker)}, {"grid.i": "ramp.i"})
    process = foreign(broker, 4, 0.25)
    try:
        hk.run(hk.Composite(scenario, "0.25 s", hk.Jacobi()), 1.0)
        said = process.communicate(timeout=30)[0].decode().split()
    finally:
        process.kill()
        process.communicate()
    assert np.array(said, float).reshape(-1, 2)[:, 1].tolist() == [1.0, 1.75, 2.5, 3.25]


@pytest.mark.slow
def test_a_federation_that_never_begins_is_an_error_in_time(broker):
    scenario = hk.Scenario(
        {"grid": neighbour(broker, patience=2), "lag": lag()}, {"grid.i": "lag.y", "lag.u": "grid.v"}
    )
    begun = time.monotonic()
    with pytest.raises(hk.SimulatorError, match="has not begun within 2 s"):
        hk.run(hk.Composite(scenario, "0.1 s"), 1)
    assert time.monotonic() - begun < 10


def test_names_and_ports_must_match():
    with pytest.raises(hk.ScenarioError, match="1 publications for 2 inputs") as caught:
        Helics(["a", "b"], ["y"], ["a"], [])
    assert "0 subscriptions for 1 outputs" in str(caught.value)
    with pytest.raises(hk.ScenarioError, match="2 values for 1 outputs"):
        Helics([], ["y"], [], ["y"], initial=[1, 2])


def test_a_file_describes_it(tmp_path):
    model = Helics(
        ["i [A]"], ["v [V]"], ["hocket/i"], ["grid/v"], broker="tcp://10.0.0.1:23404", initial=[7.5]
    )
    level = hk.Composite(
        hk.Scenario({"grid": model, "lag": lag()}, {"grid.i": "lag.y", "lag.u": "grid.v"}), "0.1 s"
    )
    hk.write(level, tmp_path / "scene.toml")
    assert 'type = "helics"' in (tmp_path / "scene.toml").read_text()
    assert hk.read(tmp_path / "scene.toml").composite.scenario.models["grid"] == model
