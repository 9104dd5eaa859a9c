"""`hocket fit` finds the parameters of a system that is known, and refuses what it cannot use."""

from __future__ import annotations

import json
import math
import random

import pytest

import hocket as hk
from command_line import good, invoked, refused

GAIN, LAG, NOISE = 2.0, 1.5, 0.01
LOOP = """step = "20 ms"

[run]
stop = "6 s"

[models]
valve = { type = "step", at = "1 s" }
tank = { type = "transfer-function", numerator = [1.0], denominator = [1.0, 1.0] }

[connections]
"tank.u" = "valve.y"
"""
WANTED = ("--parameter", "tank.numerator[1]=0.5:5", "--parameter", "tank.denominator[1]=0.1:1:10")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """y = 2 (1 - exp(-(t - 1) / 1.5)), measured every 0.1 s with a noise of 0.01."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.toml").write_text(LOOP)
    noise = random.Random(5)
    rows = [
        f"{k / 10},{max(0.0, GAIN * (1 - math.exp(-(k / 10 - 1) / LAG))) * (k > 10) + noise.gauss(0, NOISE)}"
        for k in range(1, 60)
    ]
    (tmp_path / "measured.csv").write_text("t,tank.y\n" + "\n".join(rows) + "\n")
    return tmp_path


def test_it_finds_gain_and_lag(place):
    text = good(
        "fit", "loop.toml", "--data", "measured.csv", *WANTED, "--out", "fitted.toml", "--json", "a.json"
    )
    assert "tank.numerator[1] = 2.0" in text
    found = json.loads((place / "a.json").read_text())
    gain, lag = found["fitted_parameters"]
    assert gain["from"] < GAIN < gain["to"]
    assert lag["from"] < LAG < lag["to"]
    assert lag["standard_deviation"] < 0.02
    assert found["residuals"][0]["residual"] == pytest.approx(NOISE, rel=0.3)
    run = hk.run("fitted.toml")
    assert run.final("tank.y") == pytest.approx(GAIN * (1 - math.exp(-5 / LAG)), abs=0.01)
    assert 'type = "transfer-function"' in (place / "fitted.toml").read_text()


def test_what_cannot_be_told_is_not_judged(place):
    """The start of a step that is over before the first measurement."""
    found = invoked(
        "fit", "loop.toml", "--data", "measured.csv", "--parameter", "valve.before=0:1", "--stop", "6"
    )
    assert found.exit_code == 0
    (place / "flat.csv").write_text("t,tank.y\n" + "".join(f"{k / 10},0\n" for k in range(1, 10)))
    found = invoked("fit", "loop.toml", "--data", "flat.csv", "--parameter", "valve.after=0.5:1")
    assert found.exit_code == 3
    assert "`valve.after` cannot be told from these measurements" in found.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--data", "none.csv", *WANTED), "none.csv"),
        (("--data", "measured.csv", "--parameter", "tank.gain=1:2"), "has no parameter `gain`"),
        (("--data", "measured.csv", "--parameter", "tank.numerator[1]=a:b"), "`a` is not a number"),
        (("--data", "measured.csv", "--parameter", "tank.numerator[1]=1:2:3:4"), "4 numbers"),
        (("--data", "measured.csv", "--parameter", "tank.numerator[1]"), "NAME=LOW:HIGH"),
        (("--data", "measured.csv", "--parameter", "tank.numerator[1]=5:1"), "low <= start <= high"),
        (("--data", "measured.csv", *WANTED, "--deviation", "tank.z=1"), "deviations"),
        (("--data", "measured.csv", *WANTED, "--out", "loop.toml"), "loop.toml"),
        (("--data", "measured.csv", *WANTED, "--stop", "2 s"), "times of the run, 0 s to 2 s"),
    ],
)
def test_bad_input_is_refused(place, words, told):
    assert told in refused("fit", "loop.toml", *words)
