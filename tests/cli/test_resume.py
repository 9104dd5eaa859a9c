"""hocket run --checkpoint-every and hocket resume: exit codes, what is printed, the folder goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocket as hk
from command_line import good, refused
from systems import lag


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pair = hk.Scenario({"a": lag(), "b": lag()}, {"a.u": "b.y", "b.u": "a.y"})
    hk.write(hk.Experiment(hk.Composite(pair, "1/10"), stop=1), "pair.toml")
    return tmp_path / "pair.toml"


def test_a_run_goes_on_in_its_folder(scenario: Path) -> None:
    good("run", scenario, "--checkpoint-every", "10 min", "--folder", "r")
    said = good("resume", "r", "--stop", "2")
    assert "finished" in said
    whole, resumed = hk.run("pair.toml", 2), hk.open_run("r")
    for port in whole:
        assert list(resumed[port].values) == list(whole[port].values)


def test_a_warm_start_is_a_run_of_its_own(scenario: Path) -> None:
    good("run", scenario, "--checkpoint-every", "10 min", "--folder", "r")
    good("resume", "r", "--stop", "2", "--set", "a.A[1,1]=-3", "--folder", "w", "--quiet")
    assert hk.open_run("w")["a.y"].t[0] == 1.0
    assert hk.open_run("r").info["stop"] == 1.0


def test_what_cannot_be_resumed_is_said(scenario: Path) -> None:
    good("run", scenario, "--folder", "r")
    assert "has no checkpoint" in refused("resume", "r")
    assert "there is no" in refused("resume", "nowhere")
    assert "duration above zero" in refused("run", scenario, "--checkpoint-every", "0", "--folder", "q")
