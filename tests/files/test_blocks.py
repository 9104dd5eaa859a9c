"""Blocks in scenario files."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocket as hk
from hocket.blocks import (
    PID,
    Delay,
    Expression,
    Integrator,
    Noise,
    Product,
    Pulse,
    Ramp,
    RateLimiter,
    Relay,
    Saturation,
    Sine,
    Step,
    TransferFunction,
)
from systems import ROOT


@pytest.mark.parametrize(
    "model",
    [
        Step("1/3 s", 1.0, 2.0, "m"),
        Ramp(2.0, 0.5, 1.0),
        Sine(2.0, 3.0, 0.1, 4.0, "V"),
        Pulse("0.3 s", "0.1 s", 0.05, -1.0, 2.0),
        Noise("50 ms", 2.0, 1.0, 7, "uniform"),
        Product(["a [V]", "b [A]"], "W"),
        Saturation(high=0.4),
        Expression("p = u * i", ["u [V]", "i [A]"], ["p [W]"]),
        Integrator(2.0, low=-1.0, high=1.0),
        Integrator(reset=True),
        RateLimiter(1.0, 2.0),
        Delay("0.13 s", 1.0),
        PID(2.0, 1.0, 0.1, low=-1.0, high=1.0, Tt=0.3, unit="K", out="W"),
        PID(2.0, 1.0, period="50 ms"),
        Relay(-1.0, 1.0, starts_on=True),
        TransferFunction([1.0, 2.0], [1.0, 3.0, 4.0]),
        PID(2.0, 1.0, 0.1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_written_is_read(model, tmp_path):
    file = tmp_path / "it.toml"
    driven = [port for port in model.inputs if not port.event]
    sources = {f"source_{port.name}": Step(unit=port.unit) for port in driven}
    wires = {f"it.{port.name}": f"source_{port.name}.y" for port in driven}
    resets = any(port.name == "reset" for port in model.inputs)
    crossings = {"crossing": hk.Crossing("source_u.y")} if resets else {}
    wires |= {"it.reset": "crossing.event"} if resets else {}
    level = hk.Composite(hk.Scenario({"it": model, **sources}, wires, crossings=crossings), "10 ms")
    hk.write(hk.Experiment(level, stop=1), file)
    assert hk.read(file).composite.scenario.models["it"] == model


def test_the_file_of_the_page_runs_as_its_python_does(tmp_path):
    page = (ROOT / "docs" / "blocks.md").read_text(encoding="utf-8")
    file = Path(tmp_path / "loop.toml")
    file.write_text(page.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    models = {
        "reference": Step(at="0.1 s", after=1.0),
        "pid": PID(K=4.0, Ti="0.5 s", low=-2.0, high=2.0),
        "plant": TransferFunction([1.0], [0.5, 1.0]),
    }
    wires = {"pid.reference": "reference.y", "pid.measured": "plant.y", "plant.u": "pid.control"}
    one, other = hk.run(file), hk.run(hk.Composite(hk.Scenario(models, wires), "1 ms"), "5 s")
    assert one["plant.y"].values.tobytes() == other["plant.y"].values.tobytes()
