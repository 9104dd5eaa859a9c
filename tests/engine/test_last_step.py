"""One simulator of a level cannot roll back: it steps last, when the others know where the step ends.

The second master algorithm of Broman et al. 2013, as in section 3.3.2 of Hafner's thesis (2021).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hocket as hk
from crossing_systems import BOUNCES, Ball, Follower, G, ball_ode, both_engines, events, oscillator
from hocket.plan import Feed, Instant, Plan, Read, Record, Step, Try, walk
from hocket.plan.plan import NoteKind
from hocket.plan.verify.verifier import verify_plan
from hocket.planning.planner import plan_tree

ALGORITHMS = {
    "jacobi": hk.Jacobi(),
    "gauss-seidel": hk.GaussSeidel(["ball", "meter"]),
    "gauss-seidel backwards": hk.GaussSeidel(["meter", "ball"]),
    "multirate": hk.Multirate({"ball": 4}),
    "adaptive": hk.Adaptive(hk.Jacobi(), tolerance=1e-2),
}


class Meter(Follower):
    """Adds up the time of its steps; one that was made twice, or taken back, would show."""

    outputs = ("time", "seen")

    def start(self, t: float) -> None:
        self.time, self.seen = 0.0, 0.0

    def output(self, t: float, u: Any) -> list[float]:
        return [self.time, self.seen]

    def step(self, t: float, h: float, u: Any) -> None:
        assert t == pytest.approx(self.time, abs=1e-12)
        self.time, self.seen = self.time + h, float(u[0, 0])


def metered(algorithm: Any, ball: Any = None) -> hk.Composite:
    scenario = hk.Scenario({"ball": ball or ball_ode(), "meter": hk.Python(Meter)}, {"meter.u": "ball.v"})
    return hk.Composite(scenario, "100 ms", algorithm)


def notes_of(composite: hk.Composite, kind: NoteKind) -> list[str]:
    return [str(note) for note in plan_tree(composite).plan.notes if note.kind is kind]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_ball_bounces_on_time_beside_one_that_cannot_roll_back(name: str) -> None:
    composite = metered(ALGORITHMS[name])
    run = both_engines(composite, stop=2.1)
    t, v = np.array(run["ball.v"].t), np.array(run["ball.v"].values)
    jumps = np.flatnonzero((np.diff(t) == 0.0) & (np.diff(v) > 1e-3))
    assert t[jumps] == pytest.approx(BOUNCES, abs=1e-9, rel=0.0)
    assert v[jumps[0]] == pytest.approx(-G * BOUNCES[0], abs=1e-9)
    assert v[jumps[0] + 1] == pytest.approx(0.7 * G * BOUNCES[0], abs=1e-9)
    rows = np.array(run["meter.time"].t)
    assert np.array(run["meter.time"].values) == pytest.approx(rows, abs=1e-12)
    assert notes_of(composite, NoteKind.STEPS_LAST) == [
        "`meter` cannot roll back: it steps last, when the others have found where the step ends"
    ]
    assert not notes_of(composite, NoteKind.EARLY_END)


def test_what_the_last_one_sees_is_what_the_algorithm_hands_on() -> None:
    # held over a step: the ball's speed at the start of it (Jacobi), at the end of it (Gauss-Seidel)
    for algorithm, at in (("jacobi", 0.4), (hk.GaussSeidel(["ball", "meter"]), BOUNCES[0])):
        run = both_engines(metered(algorithm), stop=0.5)
        t, seen = np.array(run["meter.seen"].t), np.array(run["meter.seen"].values)
        before = np.flatnonzero(np.abs(t - BOUNCES[0]) < 1e-9)[0]
        assert seen[before] == pytest.approx(-G * at, abs=1e-9)


@pytest.mark.parametrize("name", ["osc", "zosc"])
def test_crossing_is_located_beside_one_that_cannot_roll_back(name: str) -> None:
    scenario = hk.Scenario(
        {name: oscillator(), "meter": hk.Python(Meter)},
        {"meter.u": f"{name}.y"},
        crossings={"hit": hk.Crossing(f"{name}.y", at=0.5)},
    )
    run = both_engines(hk.Composite(scenario, "100 ms"), stop=3.0)
    exact = [math.asin(0.5), math.pi - math.asin(0.5)]
    assert events(run, "hit.event")[0] == pytest.approx(exact, abs=1e-11, rel=0.0)
    assert run.final("meter.time") == pytest.approx(3.0, abs=1e-12)
    assert not any("late" in note for note in run.info["notes"])


def test_ball_that_is_told_by_one_that_cannot_roll_back_keeps_its_order_and_the_note() -> None:
    crossings = {"bounce": hk.Crossing("ball.h", "falling")}
    models = {"ball": hk.Python(Ball), "end": hk.Python(Follower)}
    driven = hk.Scenario(
        {"ball": ball_ode_with_push(), "end": hk.Python(Follower)}, {"end.u": "ball.h", "ball.push": "end.y"}
    )
    composite = hk.Composite(driven, "100 ms", hk.GaussSeidel(["end", "ball"]))
    (note,) = notes_of(composite, NoteKind.EARLY_END)
    assert "late by at most 0.1 s" in note
    assert "`end` cannot roll back, and steps before `ball`, which takes what it puts out" in note
    other = hk.Composite(driven, "100 ms", hk.GaussSeidel(["ball", "end"]))
    assert notes_of(other, NoteKind.STEPS_LAST)
    told = hk.Scenario(models, {"ball.hit": "bounce.event", "end.u": "ball.v"}, crossings=crossings)
    run = both_engines(hk.Composite(told, "100 ms"), stop=2.1)
    assert events(run, "bounce.event")[0] == pytest.approx(BOUNCES, abs=1e-9, rel=0.0)


def ball_ode_with_push() -> hk.Ode:
    return hk.Ode(
        lambda t, x, u: [x[1], -G + 0.0 * u[0]],
        x0=[1.0, 0.0],
        inputs=["push"],
        outputs=["h", "v"],
        events=[hk.Event(lambda t, x, u: x[0], "falling", lambda t, x, u: [0.0, -0.7 * x[1]])],
    )


def test_output_of_the_one_that_cannot_roll_back_is_watched_late_and_said_so() -> None:
    scenario = hk.Scenario(
        {"osc": oscillator(), "end": hk.Python(Follower)},
        {"end.u": "osc.y"},
        crossings={"hit": hk.Crossing("end.y", at=0.5)},
    )
    (note,) = notes_of(hk.Composite(scenario, "100 ms"), NoteKind.EARLY_END)
    assert "`end` cannot roll back, and steps before `hit`, which takes what it puts out" in note


def test_one_that_may_stop_early_itself_cannot_be_last() -> None:
    class Stopping(Follower):
        stops_early = True

    scenario = hk.Scenario({"ball": ball_ode(), "end": hk.Python(Stopping)}, {"end.u": "ball.h"})
    (note,) = notes_of(hk.Composite(scenario, "100 ms"), NoteKind.EARLY_END)
    assert "`end` cannot roll back, and may end a step early itself" in note


def test_verifier_wants_all_that_may_stop_before_the_last_one() -> None:
    scenario = hk.Scenario({"ball": ball_ode(), "meter": hk.Python(Meter)}, {"meter.u": "ball.v"})
    instant = [each for _, each in walk(plan_tree(metered("jacobi")).plan.step) if isinstance(each, Instant)]

    def kinds(*steps: Any, last: str) -> set[str]:
        body = (*steps, Read("ball"), Read("meter"), Record(), *instant)
        plan = Plan(step=(Try(body, found=True, announced=True, last=last),), outputs="stale")
        return {violation.kind for violation in verify_plan(plan, scenario)}

    good, wrong = (Step("ball"), Step("meter")), (Step("meter"), Step("ball"))
    assert kinds(Feed("meter"), *good, last="meter") == set()
    assert kinds(Feed("meter"), *wrong, last="meter") == {"stop behind last"}
    assert kinds(Feed("meter"), *good, last="") == {"try without rollback"}
    assert kinds(Feed("meter"), *wrong, last="ball") == {"try without rollback", "last may stop"}
    assert kinds(Feed("meter"), *good, last="nobody") >= {"unknown simulator"}
