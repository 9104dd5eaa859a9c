"""Step control and simulators with a mind of their own: events inside a step, preferred steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from systems import LAG_AT_REST

PERIOD = 0.37
"""No multiple of any quantum."""


class Relay:
    """Puts out 1 and -1 in turn; it stops at each change."""

    outputs = ("y",)
    stops_early = True

    def start(self, t: float) -> None:
        self.changes = 0

    def output(self, t: float) -> list[float]:
        return [1.0 if self.changes % 2 == 0 else -1.0]

    def step(self, t: float, h: float, u: object) -> float:
        change = (self.changes + 1) * PERIOD
        if t + h < change - 1e-12:
            return t + h
        self.changes += 1
        return min(t + h, change)

    def save(self) -> int:
        return self.changes

    def restore(self, state: int) -> None:
        self.changes = state


OSCILLATOR = hk.StateSpace(
    [[0.0, 1.0], [-1.0, 0.0]], [[0.0], [1.0]], [[1.0, 0.0]], x0=[1.0, 0.0], inputs=["u"], outputs=["x"]
)


def exact(t: float) -> tuple[float, float]:
    """Return the lag and the position, under 1 and -1 in turn: the exponential from change to change."""
    rates = np.array([[-1.0, 0, 0, 1], [0, 0, 1, 0], [1, -1, 0, 0], [0, 0, 0, 0]])
    z, at = np.array([0.0, 1.0, 0.0, 1.0]), 0.0
    while at + PERIOD < t:
        z, at = expm(rates * PERIOD) @ z, at + PERIOD
        z[3] = -z[3]
    z = expm(rates * (t - at)) @ z
    return float(z[0]), float(z[1])


@pytest.mark.parametrize("estimate", ["defect", "orders", "richardson"])
@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
def test_events_are_met_exactly_and_do_not_stop_the_run(estimate: str, extrapolation: str) -> None:
    models = {"relay": hk.Python(Relay), "lag": LAG_AT_REST, "load": OSCILLATOR}
    control = hk.Adaptive(hk.Jacobi(), 1e-2, estimate)
    root = hk.Composite(
        hk.Scenario(models, {"lag.u": "relay.y", "load.u": "lag.y"}), 1, control, extrapolation=extrapolation
    )
    run = hk.run(root, stop=3)
    t = run["lag.y"].t
    for k in range(1, 9):
        assert np.min(np.abs(t - k * PERIOD)) < 1e-12, k
    # the lag is exact, and is told of every change when it happens
    few = slice(None, None, len(t) // 20)
    assert np.max(np.abs(run["lag.y"].values[few] - [exact(at)[0] for at in t[few]])) < 1e-9
    assert (run.info["engine"], run.info["why_interpreted"]) == ("native", "")


@pytest.mark.parametrize("tolerance", [1e-2, 1.0])
def test_a_step_that_ends_at_an_event_is_not_judged(tolerance: float) -> None:
    """From macro steps on, each is cut at the next event; half steps up to there would say nothing."""
    models = {"relay": hk.Python(Relay), "lag": LAG_AT_REST, "load": OSCILLATOR}
    scenario = hk.Scenario(models, {"lag.u": "relay.y", "load.u": "lag.y"})
    control = hk.Adaptive(hk.Jacobi(), tolerance, "richardson", first=1)
    run = hk.run(hk.Composite(scenario, 1, control, extrapolation="linear"), stop=3)
    assert all(np.min(np.abs(run["lag.y"].t - k * PERIOD)) < 1e-12 for k in range(1, 9))
    assert run.info["counts"]["adapted"][""]["rejected"] == 0


def test_the_error_after_events_is_within_the_tolerance() -> None:
    models = {"relay": hk.Python(Relay), "lag": LAG_AT_REST, "load": OSCILLATOR}
    connections = {"lag.u": "relay.y", "load.u": "lag.y"}
    seen = []
    for tolerance in (1e-2, 1e-3, 1e-4):
        root = hk.Composite(
            hk.Scenario(models, connections),
            1,
            hk.Adaptive(hk.Jacobi(), tolerance),
            extrapolation="linear",
        )
        run = hk.run(root, stop=3)
        seen.append(abs(run.final("load.x") - exact(3.0)[1]) / tolerance)
    assert max(seen) < 3, seen  # 3 s of steps, each within the tolerance per second


class Choosy:
    """A ramp that likes short steps in [1, 1.5)."""

    outputs = ("y",)

    def start(self, t: float) -> None:
        self.t = t

    def output(self, t: float) -> list[float]:
        return [self.t]

    def step(self, t: float, h: float, u: object) -> None:
        self.t = t + h

    def prefers(self, t: float) -> float:
        return 1.0 / 64.0 if 1.0 <= t < 1.5 else 0.25

    def save(self) -> float:
        return self.t

    def restore(self, state: float) -> None:
        self.t = state


def test_preferred_steps_are_honoured() -> None:
    models = {"choosy": hk.Python(Choosy), "lag": LAG_AT_REST}
    control = hk.Adaptive(hk.Jacobi(), 1.0, first="1/4")
    root = hk.Composite(hk.Scenario(models, {"lag.u": "choosy.y"}), 1, control, extrapolation="linear")
    run = hk.run(root, stop=2)
    t = run["lag.y"].t
    lengths = np.diff(t)
    short = (t[:-1] >= 1.0) & (t[:-1] < 1.5)
    assert np.allclose(lengths[short], 1.0 / 64.0)
    assert np.max(lengths) == 0.25
    assert lengths[list(short).index(True) + sum(short)] == 0.25  # what was liked does not slow what comes


def test_a_preference_that_is_none_is_refused() -> None:
    class Confused(Choosy):
        def prefers(self, t: float) -> float:
            return 0.0

    root = hk.Composite(
        hk.Scenario({"choosy": hk.Python(Confused), "lag": LAG_AT_REST}, {"lag.u": "choosy.y"}),
        1,
        hk.Adaptive(hk.Jacobi(), 1.0),
    )
    with pytest.raises(hk.SimulatorError, match=r"a step of 0\.0 s is preferred, expected one above 0"):
        hk.run(root, stop=1)
