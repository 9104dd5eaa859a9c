"""What is noticed of the numbers of a run: ranges that are left, growth without bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

import hocket as hk
from command_line import good, invoked
from fmus.build import build
from hocket.model.validity import ValidRange


def oscillator(damping: float) -> hk.Composite:
    """Return x'' = -4 x - d x', in two halves."""
    mass = hk.StateSpace(
        [[0.0, 1.0], [-4.0, -damping]], [[0.0], [1.0]], [[1.0, 0.0]], x0=[1.0, 0.0],
        inputs=["f"], outputs=["x [m]"],
    )  # fmt: skip
    gain = hk.StateSpace(
        np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), [[-1e-3]], inputs=["x"], outputs=["f"]
    )
    return hk.Composite(hk.Scenario({"m": mass, "g": gain}, {"m.f": "g.f", "g.x": "m.x"}), "1/50 s")


@pytest.mark.parametrize(
    ("text", "low", "high", "unit"),
    [
        ("0 < p < 10 bar", 0.0, 10.0, "bar"),
        ("0 to 10 bar", 0.0, 10.0, "bar"),
        ("-1e3<=plant.x<= .5", -1e3, 0.5, ""),
        ("> 0", 0.0, np.inf, ""),
        ("p <= 5 V", -np.inf, 5.0, "V"),
    ],
)
def test_ranges_as_they_are_written(text: str, low: float, high: float, unit: str) -> None:
    assert ValidRange.parse(text) == ValidRange(low, high, unit)
    assert ValidRange.parse(str(ValidRange(low, high, unit))) == ValidRange(low, high, unit)


@pytest.mark.parametrize("text", ["10 to 0", "p", "0 < < 1", "1", 5, "a to b"])
def test_what_is_not_a_range(text: Any) -> None:
    with pytest.raises(hk.ScenarioError, match="is not a range"):
        ValidRange.parse(text)


@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_the_first_time_outside_a_range_is_named(engine: Any) -> None:
    """cos 2 t, hardly disturbed, passes -0.5 at t = pi / 3, that is in the row at 1.06 s."""
    experiment = hk.Experiment(oscillator(0.0), stop=2, valid={"m.x": "> -50 cm"})
    run = hk.run(experiment, engine=engine)
    (finding,) = run.info["findings"]
    assert finding["port"] == "m.x"
    assert finding["t"] == pytest.approx(1.06)
    assert finding["value"] == pytest.approx(np.cos(2.12), abs=1e-3)
    assert run.info["notes"][-1].endswith("outside >= -50 cm")
    assert "findings" not in hk.run(hk.Experiment(oscillator(0.0), stop=1, valid={"m.x": "> -50 cm"})).info


def test_growth_is_noticed_and_a_ramp_is_not() -> None:
    run = hk.run(oscillator(-0.5), stop=60)
    assert {each["kind"] for each in run.info["findings"]} == {"growth"}
    assert run.info["findings"][0]["port"] == "m.x"
    assert "findings" not in hk.run(oscillator(0.1), stop=60).info
    ramp = hk.Table([0.0, 100.0], {"y": [0.0, 1e9]})
    lag = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[0.0], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"r": ramp, "l": lag}, {"l.u": "r.y"})
    assert "findings" not in hk.run(hk.Composite(scenario, "1/10 s"), stop=100).info


def test_the_limits_of_an_fmu_are_ranges(tmp_path: Path) -> None:
    """Its Euler steps give 0.9^k: below the declared 0.5 from k = 7 on, that is at 0.7 s."""
    archive = build("lag", 3, folder=tmp_path)
    limited = tmp_path / "limited.fmu"
    with ZipFile(archive) as old, ZipFile(limited, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "modelDescription.xml":
                assert content.count(b'<Float64 name="y"') == 1
                content = content.replace(b'<Float64 name="y"', b'<Float64 name="y" min="0.5"')
            new.writestr(old.getinfo(name), content)
    run = hk.run(hk.Composite(hk.Scenario({"lag": hk.Fmu(limited, y0=1.0)}), "1/10 s"), stop=1)
    (finding,) = run.info["findings"]
    assert (finding["port"], finding["range"]) == ("lag.y", ">= 0.5")
    assert finding["t"] == pytest.approx(0.7)


def test_files_and_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hk.write(hk.Experiment(oscillator(0.02), stop=2, valid={"m.x": "> -50 cm"}), tmp_path / "m.toml")
    assert '"m.x" = ">= -50 cm"' in (tmp_path / "m.toml").read_text()
    assert "outside >= -50 cm" in good("run", "m.toml")
    assert invoked("run", "m.toml", "--strict").exit_code == 1
    assert good("run", "m.toml", "--strict", "--stop", "1")


@pytest.mark.parametrize(
    ("valid", "words"),
    [({"m.y": "> 0"}, "`m.y` has a range and is not recorded"), ({"m.x": "> 0 kg"}, "cannot be converted")],
)
def test_ranges_that_cannot_be_watched(valid: Any, words: str) -> None:
    with pytest.raises(hk.ScenarioError, match=words):
        hk.run(hk.Experiment(oscillator(0.0), stop=1, valid=valid))


def test_an_unstable_coupling_is_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, damping in (("grows", -0.5), ("decays", 0.5)):
        hk.write(hk.Experiment(oscillator(damping), stop=1), tmp_path / f"{name}.toml")
        said = invoked("run", f"{name}.toml").output
        assert ("before the run: unstable: spectral radius 1.0" in said) == (name == "grows")
