"""Guards: events that pile up or chatter are named within a moment, or passed with fewer of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocket as hk
from crossing_systems import (
    BOUNCES,
    ENGINES,
    LIMIT,
    Ball,
    Follower,
    G,
    Relay,
    ball_ode,
    both_engines,
    integrator,
    lag,
    refusals,
    relay_ode,
)
from hocket.model.event_pace import EventPace, Pace
from hocket.planning.planner import plan_tree

SPACING = 0.1 / 256


def level(models: dict[str, Any], wires: dict[str, str] | None = None, **more: Any) -> hk.Composite:
    crossings = more.pop("crossings", {})
    return hk.Composite(hk.Scenario(models, wires or {}, crossings=crossings), "100 ms", **more)


def relay_loop(hysteresis: float = 0.0, **more: Any) -> hk.Composite:
    crossings = {"turn": hk.Crossing("plant.x", hysteresis=hysteresis)}
    wires = {"plant.u": "relay.mode", "relay.hit": "turn.event"}
    return level({"plant": integrator(), "relay": hk.Python(Relay)}, wires, crossings=crossings, **more)


def bouncing(**more: Any) -> hk.Composite:
    crossings = {"bounce": hk.Crossing("ball.h", "falling")}
    return level({"ball": hk.Python(Ball)}, {"ball.hit": "bounce.event"}, crossings=crossings, **more)


def inside(inner: hk.Composite) -> hk.Composite:
    return hk.Composite(hk.Scenario({"in": inner, "lag": lag()}, {"lag.u": "in.ball.h"}), "100 ms")


ZENO = {
    "alone": (lambda: level({"ball": ball_ode()}), "`ball`"),
    "with a partner": (lambda: level({"ball": ball_ode(), "lag": lag()}, {"lag.u": "ball.h"}), "`ball`"),
    "as a crossing": (bouncing, "`bounce`"),
    "inside": (lambda: inside(level({"ball": ball_ode()})), "`in.ball`"),
}


@pytest.mark.parametrize("case", ZENO)
def test_zeno_is_named_with_its_limit(case: str) -> None:
    make, name = ZENO[case]
    words = refusals(make(), stop=3.0)
    assert f"the events of {name} pile up (Zeno)" in words
    assert f"before t = {LIMIT} s" in words
    assert "continue" in words


def test_run_that_ends_before_the_limit_meets_all_its_events() -> None:
    run = both_engines(level({"ball": ball_ode()}), stop=2.1)
    t = np.array(run["ball.v"].t)
    twice = t[1:][np.diff(t) == 0.0]
    assert twice.tolist() == pytest.approx(BOUNCES, abs=1e-9, rel=0.0)


def test_rows_before_the_refusal_are_kept(tmp_path: Any) -> None:
    for engine in ENGINES:
        folder = tmp_path / engine
        with pytest.raises(hk.SimulatorError):
            hk.run(level({"ball": ball_ode()}), stop=3.0, engine=engine, folder=folder)
        kept = hk.open_run(folder)
        assert kept.status == "failed"
        assert 2.4 <= np.array(kept["ball.h"].t)[-1] < LIMIT


@pytest.mark.parametrize("both", [False, True])
def test_sliding_along_a_surface_is_named_as_chattering(both: bool) -> None:
    words = refusals(level({"relay": relay_ode(both=both)}), stop=2.0)
    assert "the events of `relay` chatter at t = 1 s" in words
    assert "hysteresis" in words
    assert "slides" in words


def test_chattering_of_a_crossing_is_named() -> None:
    assert "the events of `turn` chatter at t = 1 s" in refusals(relay_loop(), stop=2.0)


def test_hysteresis_helps_against_chattering() -> None:
    run = both_engines(relay_loop(hysteresis=0.02), stop=2.0)
    x = np.array(run["plant.x"].values)[np.array(run["plant.x"].t) > 1.0]
    assert np.abs(x).max() == pytest.approx(0.01, abs=1e-9)


def test_zeno_is_passed_with_events_that_are_apart() -> None:
    run = both_engines(level({"ball": ball_ode()}, on_zeno="continue"), stop=4.0)
    h, t = np.array(run["ball.h"].values), np.array(run["ball.h"].t)
    # the ball falls for at most one spacing before it is put back
    assert np.abs(h[t > LIMIT]).max() <= G * SPACING**2
    assert t[-1] == 4.0
    assert any("its events piled up" in note for note in run.info["notes"])


def test_zeno_of_a_crossing_is_passed() -> None:
    run = both_engines(bouncing(on_zeno="continue"), stop=3.0)
    h, t = np.array(run["ball.h"].values), np.array(run["ball.h"].t)
    assert np.abs(h[t > LIMIT]).max() <= G * SPACING**2


@pytest.mark.parametrize("make", [lambda **k: level({"relay": relay_ode()}, **k), relay_loop])
def test_chattering_is_passed_along_the_surface(make: Any) -> None:
    run = both_engines(make(on_zeno="continue"), stop=1.5)
    port = "relay.x" if "relay.x" in run.ports else "plant.x"
    x, t = np.array(run[port].values), np.array(run[port].t)
    assert np.abs(x[t > 1.0 + SPACING]).max() <= SPACING * (1.0 + 1e-6)


# a level that cannot roll back: the Ode handles its events itself


def flight(t: float) -> tuple[float, float]:
    """Return height and speed of the ball between its bounces."""
    count = sum(bounce < t for bounce in BOUNCES)
    since = t - BOUNCES[count - 1] if count else t
    height, speed = (0.0, 0.7**count * G * BOUNCES[0]) if count else (1.0, 0.0)
    return height + speed * since - G * since**2 / 2, speed - G * since


BESIDE_TWO = {"ball": ball_ode(), "end": hk.Python(Follower), "other": hk.Python(Follower)}
"""One of these alone would step last."""


def test_ode_handles_its_events_itself_where_the_level_cannot() -> None:
    composite = level(BESIDE_TWO, {"end.u": "ball.v", "other.u": "ball.v"})
    run = both_engines(composite, stop=2.1)
    t = np.array(run["ball.h"].t)
    assert t.tolist() == pytest.approx([k / 10 for k in range(22)])  # no row but those of the macro steps
    exact = np.array([flight(each) for each in t])
    assert np.array(run["ball.h"].values) == pytest.approx(exact[:, 0], abs=1e-9)
    assert np.array(run["ball.v"].values) == pytest.approx(exact[:, 1], abs=1e-9)


def test_what_partners_hear_late_is_noted() -> None:
    composite = level(BESIDE_TWO, {"end.u": "ball.v", "other.u": "ball.v"})
    notes = " ".join(plan_tree(composite).plan.all_notes())
    assert "events that `ball` finds within a step act on others at the end of it" in notes
    assert "late by at most 0.1 s: `end` cannot roll back" in notes


def test_zeno_within_a_step_is_named_too() -> None:
    composite = level(BESIDE_TWO, {"end.u": "ball.h", "other.u": "ball.h"})
    words = refusals(composite, stop=3.0)
    assert "`ball`" in words
    assert f"before t = {LIMIT} s" in words
    models = {"relay": relay_ode(), "end": hk.Python(Follower), "other": hk.Python(Follower)}
    relay = level(models, {"end.u": "relay.x", "other.u": "relay.x"})
    assert "chatter at t = 1 s" in refusals(relay, stop=3.0)


# instants at one time, and the counters themselves


class Endless:
    """It asks for another instant, always."""

    inputs = ()
    outputs = ("y",)
    rollback = events = True

    def start(self, t: float) -> None:
        pass

    def output(self, t: float, u: Any) -> list[float]:
        return [0.0]

    def step(self, t: float, h: float, u: Any) -> None:
        pass

    def save(self) -> None:
        return None

    def restore(self, state: Any) -> None:
        pass

    def due(self) -> float:
        return 0.25

    def react(self, t: float, n: int, u: Any, present: Any) -> None:
        pass

    def commit(self) -> bool:
        return True


def test_instants_at_one_time_are_limited() -> None:
    words = refusals(level({"it": hk.Python(Endless)}, at_most_instants=7), stop=1.0)
    assert "7 instants follow each other at t = 0.25 s" in words


def test_wrong_limits_are_refused() -> None:
    for wrong in ({"on_zeno": "go"}, {"at_most_instants": 0}, {"at_most_instants": 1.5}):
        with pytest.raises(hk.ScenarioError):
            level({"ball": ball_ode()}, **wrong)


def count_all(pace: EventPace, times: list[float]) -> list[Pace]:
    return [pace.count(time, 1.0) for time in times]


def test_pace_of_events() -> None:
    periodic = count_all(EventPace(1000.0), [10.0 * k for k in range(500)])
    assert set(periodic) == {Pace.FINE}
    # intervals of 2^20 * 0.5^k: the limit is 2^21
    ticks = [2.0**21 - 2.0 ** (21 - k) for k in range(20)]
    pace = EventPace(1000.0)
    found = count_all(pace, ticks)
    assert found.index(Pace.ZENO) == 14  # what is left is 2^-13 of what has been
    assert ticks[-1] + pace.left == 2.0**21
    # harmonic intervals shrink, but by no stable ratio, and never end
    harmonic = np.cumsum([1e6 / k for k in range(1, 400)]).tolist()
    assert Pace.ZENO not in count_all(EventPace(1.0), harmonic)
    assert count_all(EventPace(1000.0), [float(k) for k in range(40)]).index(Pace.CHATTERING) == 32


def test_events_that_were_rolled_back_do_not_count() -> None:
    pace = EventPace(1000.0)
    for _ in range(100):
        assert count_all(pace, [1.0, 2.0, 3.0]) == [Pace.FINE] * 3
