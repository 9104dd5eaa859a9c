"""Scenario files with sampled classes, DEVS models and SimPy environments: read, written, run, refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocket as hk
from command_line import good
from hocket.files.toml import dumps, loads, read

CODE = """
import hocket as hk

class Control:
    inputs, outputs = ["x"], ["u"]
    def __init__(self, k=1.0): self.k = k
    def start(self, t): self.u = 0.0
    def output(self, t): return [self.u]
    def step(self, t, h, u): self.u = -self.k * u[0, 0]

class Beat(hk.Atomic):
    outputs = ["beat"]
    def __init__(self, period): self.period = period
    def time_advance(self): return self.period
    def output(self): return {"beat": 1.0}
    def internal(self): pass

def shop(env, ports, service):
    def serve():
        while True:
            yield ports["order"].wait()
            yield env.timeout(service)
            ports["served"].value += 1
    env.process(serve())
"""
SCENARIO = """
step = "1/2 s"

[run]
stop = "4 s"

[models.plant]
type = "state-space"
A = [[0]]
B = [[1]]
C = [[1]]
x0 = [1]
inputs = ["u"]
outputs = ["x"]

[models.control]
type = "python"
class = "code.py:Control"
period = "1 s"
offset = "0.25 s"
delay = "0.25 s"
jitter = { uniform = "1 ms" }
seed = 4
parameters = { k = 0.5 }

[models.beat]
type = "devs"
atomic = "code.py:Beat"
parameters = { period = 1 }

[models.shop]
type = "simpy"
factory = "code.py:shop"
inputs = [{ name = "order", event = true }]
outputs = ["served"]
parameters = { service = 0.5 }

[connections]
plant.u = "control.u"
control.x = "plant.x"
shop.order = "beat.beat"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "code.py").write_text(CODE)
    (tmp_path / "all.toml").write_text(SCENARIO)
    return tmp_path


def test_what_is_read(folder: Path) -> None:
    models = read(folder / "all.toml").composite.scenario.models
    here = str(folder)
    order = hk.Port("order", event=True)
    jitter = {"uniform": "1 ms"}
    assert models["control"] == hk.Python(
        "code.py:Control", None, None, 1, "1/4 s", "1/4 s", jitter, 4, folder=here, k=0.5
    )
    assert models["beat"] == hk.Devs("code.py:Beat", folder=here, period=1)
    assert models["shop"] == hk.SimPy("code.py:shop", [order], ["served"], folder=here, service=0.5)


def test_what_is_written_is_read_back(folder: Path) -> None:
    experiment = read(folder / "all.toml")
    again = loads(dumps(experiment))
    assert again == experiment
    assert 'jitter = { uniform = "1 ms" }' in dumps(experiment)


def test_it_runs(folder: Path) -> None:
    pytest.importorskip("simpy")
    run = hk.run(folder / "all.toml", folder=folder / "run")
    assert run.final("shop.served") == 3.0
    assert run.final("plant.x") < 0.5


def test_wrong_values_have_their_lines(folder: Path) -> None:
    (folder / "all.toml").write_text(SCENARIO.replace('{ uniform = "1 ms" }', '{ even = "1 ms" }'))
    with pytest.raises(hk.ScenarioError) as caught:
        read(folder / "all.toml")
    assert "`jitter` cannot be" in str(caught.value)
    assert "line" in str(caught.value)
    (folder / "all.toml").write_text(SCENARIO.replace('delay = "0.25 s"', 'delay = "-1 s"'))
    with pytest.raises(hk.ScenarioError, match="`delay` is -1"):
        read(folder / "all.toml")


def test_event_ports_of_a_level(folder: Path) -> None:
    written = """
step = "1/2 s"

[models.in]
type = "composite"
step = "1/4 s"
outputs = [{ name = "y", event = true }]
[models.in.models.beat]
type = "devs"
atomic = "code.py:Beat"
parameters = { period = 1 }
[models.in.connections]
y = "beat.beat"
"""
    (folder / "level.toml").write_text(written)
    composite = read(folder / "level.toml").composite
    assert composite.scenario.models["in"].outputs[0].event
    assert loads(dumps(composite), folder=folder).composite == composite


def test_show_tells_how_it_is_sampled(folder: Path) -> None:
    found = good("show", str(folder / "all.toml"), "--code")
    assert "sampled every 1 s, offset 0.25 s, delay 0.25 s, uniform jitter 1 ms" in " ".join(found.split())
