"""Crossings: events on any output, met right behind where they are, on both engines with the same bits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hocket as hk
from crossing_systems import (
    BOUNCES,
    Ball,
    Follower,
    Relay,
    both_engines,
    events,
    integrator,
    lag,
    oscillator,
)
from hocket.plan import Step, walk
from hocket.planning.planner import plan_tree

ALGORITHMS = {
    "jacobi": hk.Jacobi(),
    "gauss-seidel": hk.GaussSeidel(),
    "gauss-seidel backwards": hk.GaussSeidel(["lag", "osc"]),
    "iterate": hk.Iterate(),
    "adaptive": hk.Adaptive(hk.Jacobi(), tolerance=1e-2),
    "multirate": hk.Multirate({"osc": 4}),
    "compound": hk.Multirate({"osc": 4}, "compound"),
    "asynchronous": hk.Asynchronous({"osc": 4, "lag": 3}),
}


def sine(algorithm: Any = "jacobi", step: Any = "100 ms", **crossing: Any) -> hk.Composite:
    scenario = hk.Scenario(
        {"osc": oscillator(), "lag": lag()},
        {"lag.u": "osc.y"},
        crossings={"hit": hk.Crossing("osc.y", **crossing)},
    )
    return hk.Composite(scenario, step, algorithm)


def times_at(level: float, stop: float) -> list[float]:
    """Return when sin t is at a level."""
    first = math.asin(level)
    turns = range(int(stop / math.pi) + 2)
    return sorted(
        t for k in turns for t in (2 * k * math.pi + first, (2 * k + 1) * math.pi - first) if 0 < t < stop
    )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_sine_is_met_right_behind_its_crossings(name: str) -> None:
    run = both_engines(sine(ALGORITHMS[name], at=0.5), stop=10.0)
    t, values = events(run, "hit.event")
    assert t == pytest.approx(times_at(0.5, 10.0), abs=1e-9, rel=0.0)
    assert values == [1.0, -1.0, 1.0, -1.0]


@pytest.mark.parametrize("around", ["jacobi", "gauss-seidel", "iterate", "adaptive"])
def test_crossing_inside_a_level_ends_the_step_of_the_level_around(around: str) -> None:
    wires = {"lag.u": "osc.y", "y": "lag.y", "hit": "cross.event"}
    outputs = ["y", hk.Port("hit", event=True)]
    crossings = {"cross": hk.Crossing("osc.y", "rising", at=0.5)}
    inside = hk.Scenario({"osc": oscillator(), "lag": lag()}, wires, outputs=outputs, crossings=crossings)
    inner = hk.Composite(inside, "50 ms")
    algorithm = ALGORITHMS[around] if around != "gauss-seidel backwards" else "gauss-seidel"
    outer = hk.Scenario({"inner": inner, "after": lag()}, {"after.u": "inner.y"})
    run = both_engines(hk.Composite(outer, "100 ms", algorithm), stop=7.0)
    t, values = events(run, "inner.cross.event")
    assert t == pytest.approx([math.asin(0.5), 2 * math.pi + math.asin(0.5)], abs=1e-9, rel=0.0)
    assert values == [1.0, 1.0]
    there = np.array(run["after.y"].t)
    assert all(np.isclose(there, each, rtol=0.0, atol=1e-9).any() for each in t)  # met outside as well


@pytest.mark.parametrize("step", ["0.4 s", "0.5 s"])
@pytest.mark.parametrize("inner", ["1/60 s", "1/30 s"])
def test_value_that_is_reached_at_the_end_of_a_step_inside_is_passed_behind_it(inner: str, step: str) -> None:
    """1 - t / 2 - t is zero at t = 40 / 60 s, to a rounding that depends on the step of the level around."""
    gap = hk.StateSpace(D=[[1.0, -1.0]], inputs=["a", "b"], outputs=["y"])
    inside = hk.Scenario({"gap": gap}, {}, crossings={"hit": hk.Crossing("gap.y", "falling")})
    models = {
        "a": hk.Function(lambda t: 1.0 - 0.5 * t, outputs=["x"]),
        "b": hk.Function(lambda t: t, outputs=["x"]),
        "in": hk.Composite(inside, inner),
    }
    scenario = hk.Scenario(models, {"in.gap.a": "a.x", "in.gap.b": "b.x"})
    composite = hk.Composite(scenario, step, hk.GaussSeidel(["a", "b", "in"]), extrapolation="linear")
    run = both_engines(composite, stop=2.0)
    assert events(run, "in.hit.event")[0] == pytest.approx([2.0 / 3.0], abs=1e-11)


def test_output_of_a_level_is_watched_from_outside() -> None:
    inner = hk.Composite(hk.Scenario({"osc": oscillator()}), "50 ms")
    crossings = {"hit": hk.Crossing("inner.osc.y", "falling", at=0.5)}
    outer = hk.Scenario({"inner": inner, "lag": lag()}, {"lag.u": "inner.osc.y"}, crossings=crossings)
    run = both_engines(hk.Composite(outer, "100 ms"), stop=3.0)
    assert events(run, "hit.event")[0] == pytest.approx([math.pi - math.asin(0.5)], abs=1e-9, rel=0.0)


def test_directions_count_alone() -> None:
    for direction, chosen in (("rising", slice(0, None, 2)), ("falling", slice(1, None, 2))):
        run = both_engines(sine(direction=direction, at=0.5), stop=10.0)
        assert events(run, "hit.event")[0] == pytest.approx(times_at(0.5, 10.0)[chosen], abs=1e-9, rel=0.0)


def test_hysteresis_is_a_band_that_must_be_passed() -> None:
    run = both_engines(sine(at=0.5, hysteresis=0.4), stop=10.0)
    up, down = math.asin(0.7), math.pi - math.asin(0.3)
    # it begins below the band: up through 0.7, down through 0.3
    expected = [up, down, 2 * math.pi + up, 2 * math.pi + down]
    assert events(run, "hit.event")[0] == pytest.approx(expected, abs=1e-9, rel=0.0)


def test_band_that_is_never_passed_is_never_crossed() -> None:
    run = both_engines(sine(at=0.9, hysteresis=0.4), stop=10.0)
    assert events(run, "hit.event") == ([], [])


def test_start_on_the_value_is_not_a_crossing() -> None:
    run = both_engines(sine(at=0.0), stop=4.0)
    assert events(run, "hit.event")[0] == pytest.approx([math.pi], abs=1e-9, rel=0.0)


def test_time_is_right_of_the_crossing_by_one_place_or_the_tolerance() -> None:
    for tolerance, late in ((None, 2e-13), ("1 us", 1e-6)):
        run = both_engines(sine(at=0.5, tolerance=tolerance), stop=3.0)
        t, _ = events(run, "hit.event")
        for met, exact in zip(t, times_at(0.5, 3.0), strict=True):
            assert -1e-15 <= met - exact <= late


def test_two_crossings_within_one_step_are_found_where_the_output_turns_around() -> None:
    # sin t is above 0.98 from 1.37 to 1.77 s: within one step of a second, on both of whose ends it is below
    run = both_engines(sine(step="1/2 s", at=0.999), stop=3.0)
    assert events(run, "hit.event")[0] == pytest.approx(times_at(0.999, 3.0), abs=1e-9, rel=0.0)


def test_rows_show_both_sides_of_an_event() -> None:
    run = both_engines(bouncing(), stop=0.6)
    t, v = np.array(run["ball.v"].t), np.array(run["ball.v"].values)
    rows = np.flatnonzero(np.abs(t - BOUNCES[0]) < 1e-9)
    speed = 9.81 * BOUNCES[0]
    assert v[rows[0]] == pytest.approx(-speed, abs=1e-9)
    assert v[rows[-1]] == pytest.approx(0.7 * speed, abs=1e-9)
    present = ~np.isnan(np.array(run["bounce.event"].values)[rows])
    assert present.sum() == 1


def bouncing(name: str = "bounce", **more: Any) -> hk.Composite:
    crossings = {name: hk.Crossing("ball.h", "falling")}
    scenario = hk.Scenario({"ball": hk.Python(Ball)}, {"ball.hit": f"{name}.event"}, crossings=crossings)
    return hk.Composite(scenario, "100 ms", **more)


@pytest.mark.parametrize("name", ["abounce", "zbounce"])
def test_ball_is_told_of_its_bounces(name: str) -> None:
    run = both_engines(bouncing(name), stop=2.1)
    assert events(run, f"{name}.event")[0] == pytest.approx(BOUNCES, abs=1e-9, rel=0.0)


def test_relay_with_hysteresis_swings_at_the_rate_of_its_band() -> None:
    crossings = {"turn": hk.Crossing("plant.x", hysteresis=0.1)}
    wires = {"plant.u": "relay.mode", "relay.hit": "turn.event"}
    scenario = hk.Scenario({"plant": integrator(), "relay": hk.Python(Relay)}, wires, crossings=crossings)
    run = both_engines(hk.Composite(scenario, "100 ms"), stop=2.0)
    expected = [1.05 + 0.1 * k for k in range(10)]
    assert events(run, "turn.event")[0] == pytest.approx(expected, abs=1e-9, rel=0.0)


def test_without_rollback_crossings_are_predicted_and_noted() -> None:
    scenario = hk.Scenario(
        {"osc": oscillator(), "end": hk.Python(Follower), "other": hk.Python(Follower)},
        {"end.u": "osc.y", "other.u": "osc.y"},
        crossings={"hit": hk.Crossing("osc.y", at=0.5)},
    )
    composite = hk.Composite(scenario, "100 ms")
    notes = " ".join(plan_tree(composite).plan.all_notes())
    assert "`hit`" in notes
    assert "late by at most 0.1 s" in notes
    assert "`end` cannot roll back, nor can 1 more: at most one can step last" in notes
    run = both_engines(composite, stop=10.0)
    t, _ = events(run, "hit.event")
    for met, exact in zip(t, times_at(0.5, 10.0), strict=True):
        assert 0.0 <= met - exact <= 1e-4  # three values predict it far better than to a step
    assert any("it met 4 crossings late, by at most" in note for note in run.info["notes"])


def test_step_of_one_length_is_late_by_at_most_that() -> None:
    class Rigid(Follower):
        variable_step = False

    scenario = hk.Scenario(
        {"osc": oscillator(), "end": hk.Python(Rigid)},
        {"end.u": "osc.y"},
        crossings={"hit": hk.Crossing("osc.y", at=0.5)},
    )
    run = both_engines(hk.Composite(scenario, "100 ms"), stop=3.0)
    t, _ = events(run, "hit.event")
    assert t == pytest.approx([0.6, 2.7])  # the first multiples of 0.1 s behind 0.5236 and 2.618


def test_detector_steps_behind_what_it_watches_in_every_algorithm() -> None:
    for name, algorithm in ALGORITHMS.items():
        steps = [each.sim for _, each in walk(plan_tree(sine(algorithm)).plan.step) if isinstance(each, Step)]
        assert max(k for k, sim in enumerate(steps) if sim == "hit") > steps.index("osc"), name
        assert steps.count("hit") == 1, name


def test_wrong_crossings_are_refused_by_name() -> None:
    def refusal(**crossing: Any) -> str:
        scenario = hk.Scenario({"osc": oscillator()}, crossings={"hit": hk.Crossing(**crossing)})
        with pytest.raises(hk.ScenarioError) as caught:
            hk.run(hk.Composite(scenario, "100 ms"), stop=1.0)
        return str(caught.value)

    assert "`osc` has no output `z`" in refusal(output="osc.z")
    assert "there is no model `ocs`" in refusal(output="ocs.y")
    assert "crossings.hit" in refusal(output="ocs.y")
    for wrong in (
        {"output": "y"},
        {"output": "osc.y", "direction": "up"},
        {"output": "osc.y", "at": math.nan},
        {"output": "osc.y", "hysteresis": -1.0},
        {"output": "osc.y", "tolerance": "0 s"},
    ):
        with pytest.raises(hk.ScenarioError):
            hk.Crossing(**wrong)  # type: ignore[arg-type]
    with pytest.raises(hk.ScenarioError, match="`tolerance` cannot be -1 ms"):
        hk.Crossing("osc.y", tolerance=Fraction(-1, 1000))
    with pytest.raises(hk.ScenarioError, match="names a crossing and a model"):
        hk.Scenario({"osc": oscillator()}, crossings={"osc": hk.Crossing("osc.y")})
    with pytest.raises(hk.ScenarioError, match="not a crossing"):
        hk.Scenario({"osc": oscillator()}, crossings={"hit": "osc.y"})  # type: ignore[dict-item]


def test_crossing_in_a_sampled_level_is_refused() -> None:
    inside = hk.Scenario({"osc": oscillator()}, crossings={"hit": hk.Crossing("osc.y")})
    sampled = hk.Composite(inside, "100 ms", sampled=True)
    with pytest.raises(hk.ScenarioError, match="a sampled level steps on its own grid only"):
        hk.run(hk.Composite(hk.Scenario({"in": sampled}), "100 ms"), stop=1.0)


def test_file_says_what_a_scenario_says(tmp_path: Any) -> None:
    text = """
step = "100 ms"
on_zeno = "continue"
at_most_instants = 50

[run]
stop = 3

[models.osc]
type = "state-space"
A = [[0, 1], [-1, 0]]
C = [[1, 0]]
x0 = [0, 1]
outputs = ["y"]

[crossings.hit]
output = "osc.y"
direction = "rising"
at = 0.5
hysteresis = 0.2
tolerance = "1 us"
"""
    path = tmp_path / "sine.toml"
    path.write_text(text)
    experiment = hk.read(path)
    level = experiment.composite
    assert level.scenario.crossings["hit"] == hk.Crossing("osc.y", "rising", 0.5, 0.2, "1 us")
    assert (level.on_zeno, level.at_most_instants) == ("continue", 50)
    hk.write(experiment, tmp_path / "again.toml")
    assert hk.read(tmp_path / "again.toml").composite == level
    path.write_text(text.replace('"rising"', '"up"'))
    with pytest.raises(hk.ScenarioError) as caught:
        hk.read(path)
    assert "direction" in str(caught.value)
    assert "line 18" in str(caught.value)
