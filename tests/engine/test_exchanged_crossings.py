"""An event function of an input: its crossings where the input jumps at an exchange, with no instant."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

import hocket as hk
from fmus.build import build
from systems import ENGINES


class Switching:
    """Shows -1, and from t = 0.5 on 1: a value like any other, that is exchanged and not announced."""

    inputs: ClassVar[list[str]] = []
    outputs: ClassVar = ["y"]

    def start(self, t: float) -> None:
        self.y = -1.0

    def output(self, t: float) -> list[float]:
        return [self.y]

    def step(self, t: float, h: float, u: Any) -> None:
        self.y = 1.0 if t + h > 0.499 else -1.0

    def save(self) -> Any:
        return self.y

    def restore(self, state: Any) -> None:
        self.y = state


def counter(direction: str) -> hk.Ode:
    """Return a state that rests, and is one more for each crossing of its input."""
    return hk.Ode(
        lambda t, x, u: [0.0], x0=[0.0], inputs=["u = -1"], outputs=["x"], method="rk4",
        events=[hk.Event(lambda t, x, u: u[0], direction, lambda t, x, u: [x[0] + 1.0])],  # type: ignore[arg-type]
    )  # fmt: skip


def flat(direction: str) -> hk.Composite:
    models = {"source": hk.Python(Switching), "counter": counter(direction)}
    return hk.Composite(hk.Scenario(models, {"counter.u": "source.y"}), "1/10", "jacobi")


def in_a_level(direction: str) -> hk.Composite:
    ports = {"inputs": [hk.Port("u", start=-1.0)], "outputs": ["x"]}
    scenario = hk.Scenario({"counter": counter(direction)}, {"counter.u": "u", "x": "counter.x"}, **ports)
    inner = hk.Composite(scenario, "1/20", "jacobi")
    return hk.Composite(
        hk.Scenario({"source": hk.Python(Switching), "counter": inner}, {"counter.u": "source.y"}), "1/10",
        "jacobi",
    )  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_crossing_between_two_exchanged_values_is_met_at_the_exchange(engine: str) -> None:
    """The input is 1 in the step from 0.5, which shows the count at its end, once and for all."""
    cases = [(flat("both"), 1), (flat("rising"), 1), (flat("falling"), 0), (in_a_level("both"), 1)]
    for composite, count in cases:
        shown = hk.run(composite, stop=1, engine=engine)["counter.x"]
        assert shown.values.tolist() == [0.0 if t < 0.55 else float(count) for t in shown.t]


class Pulse(Switching):
    """Shows 3 from 0.5 to 0.6 s, else -1."""

    def step(self, t: float, h: float, u: Any) -> None:
        self.y = 3.0 if 0.499 < t + h < 0.599 else -1.0


def relay(folder: Path, version: int, method: str, level: bool) -> hk.Composite:
    """Return a pulse that is exchanged, and an FMU with an event indicator of what it is given."""
    fmu = hk.Fmu(build("relay", version, folder=folder, interfaces=("me",)), method=method)
    models: dict[str, Any] = {"source": hk.Python(Pulse), "relay": fmu}
    if level:
        ports = {"inputs": [hk.Port("u", start=-1.0)], "outputs": ["x", "y", "changes"]}
        wires = {"relay.u": "u"} | {name: f"relay.{name}" for name in ports["outputs"]}
        models["relay"] = hk.Composite(hk.Scenario({"relay": fmu}, wires, **ports), "1/20", "jacobi")
    return hk.Composite(hk.Scenario(models, {"relay.u": "source.y"}), "1/10", "jacobi")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("version", "method", "level"), [(1, "rk4", False), (2, "adaptive", True), (3, "euler", False)]
)
def test_indicator_of_a_held_input_is_met_at_the_exchange(
    engine: str, version: int, method: str, level: bool, tmp_path: Path
) -> None:
    """The step from 0.5 s is made with 3 and the next with -1: the relay is on in that step alone."""
    shown = hk.run(relay(tmp_path, version, method, level), stop=1, engine=engine)
    ends = shown["relay.y"].t
    assert shown["relay.y"].values.tolist() == [1.0 if 0.55 < t < 0.65 else -1.0 for t in ends]
    assert shown["relay.changes"].values.tolist() == [
        0.0 if t < 0.55 else 1.0 if t < 0.65 else 2.0 for t in ends
    ]
    assert shown["relay.x"].values[-1] == pytest.approx(-0.8, abs=1e-9)
