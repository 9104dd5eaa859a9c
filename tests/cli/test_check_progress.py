"""What `hocket check` is looking at, while that takes longer than a second."""

from __future__ import annotations

import io
import time

import hocket as hk
from hocket.cli import terminal


def slow_pair():
    """Return two equations in a loop that are not linear."""
    models = {
        "a": hk.Ode(lambda t, x, u: [-(x[0] ** 3) - u[0]], x0=[1.0], inputs=["u"], outputs=["y"]),
        "b": hk.Ode(lambda t, x, u: [u[0] - x[0]], x0=[0.0], inputs=["u"], outputs=["y"]),
    }
    return hk.Composite(hk.Scenario(models, {"a.u": "b.y", "b.u": "a.y"}), 0.01)


def test_check_tells_what_it_looks_at():
    told = []
    hk.check(slow_pair(), 1.0, progress=told.append)
    assert told[0] == "linear models"
    assert [each for each in told if each.startswith("pilot run")][:2] == [
        "pilot run",
        "pilot run with 1/2 of the steps",
    ]


def test_the_stage_is_shown_late_and_taken_away(monkeypatch):
    from rich.console import Console

    seen = io.StringIO()
    shown = Console(file=seen, force_terminal=True, width=80)
    monkeypatch.setattr(terminal, "is_terminal", lambda stderr=False: True)
    monkeypatch.setattr(terminal, "console", lambda **_: shown)
    monkeypatch.setattr(terminal, "LATE", 0.05)
    with terminal.stage_progress("car[1]", quiet=False) as told:
        told("pilot run")
        assert seen.getvalue() == ""
        deadline = time.monotonic() + 10.0
        while "car[1]" not in seen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert "pilot run" in seen.getvalue()
    with terminal.stage_progress("car", quiet=True) as told:
        assert told is None
