"""A seeded search over smooth signals: crossings are met within a place of their roots, none is missed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import hocket as hk
from crossing_systems import both_engines, events
from hocket.model.clock import seconds
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree

SECONDS = 5
STEPS = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(1, 3))


class Signal:
    """A function of time."""

    inputs: tuple[str, ...] = ()
    outputs = ("y",)
    function: Callable[[float], float]

    def start(self, t: float) -> None: ...

    def output(self, t: float) -> list[float]:
        return [type(self).function(t)]

    def step(self, t: float, h: float, u: Any) -> None: ...

    def save(self) -> None: ...

    def restore(self, state: None) -> None: ...


def smooth_function(seed: int) -> Callable[[float], float]:
    """Return two sines, a decay, or a cubic with a simple root and two that touch zero, or nearly do."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        (a, b), (w, v), (p, q) = rng.uniform(0.2, 2, 2), rng.uniform(0.3, 9, 2), rng.uniform(0, 6.3, 2)
        c = rng.uniform(-0.8, 0.8)
        return lambda t: a * math.sin(w * t + p) + b * math.sin(v * t + q) - c
    if seed % 3 == 1:
        size, rate, part = rng.uniform(0.5, 300), 10 ** rng.uniform(-2, 1), rng.uniform(0.05, 0.9)
        return lambda t: float(size * math.exp(-rate * t) - part * size)
    (near, root), gap = rng.uniform(0.3, 4.5, 2), 10 ** rng.uniform(-8, -1)
    size, sign = rng.choice([-1, 1]) * 10 ** rng.uniform(-2, 2), rng.choice([-1.0, 1.0])
    return lambda t: float(size * ((t - near) ** 2 + sign * gap * gap) * (t - root))


def watched(seed: int, start: int) -> tuple[hk.Composite, Callable[[float], float]]:
    function = smooth_function(seed)

    def moved(t: float) -> float:
        return function(t - start)

    kind = type("Moved", (Signal,), {"function": staticmethod(moved)})
    scenario = hk.Scenario({"s": hk.Python(kind)}, {}, crossings={"hit": hk.Crossing("s.y")})
    return hk.Composite(scenario, STEPS[seed % 4]), moved


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_crossings_of_smooth_signals_are_met_within_a_place(first: int) -> None:
    met = 0
    for seed in range(first, first + 50):
        start = (0, 0, 1000)[seed // 4 % 3]
        composite, function = watched(seed, start)
        run = hk.run(composite, stop=start + SECONDS, start=start)
        clock = clock_of(plan_tree(composite), start=Fraction(start), stop=Fraction(start + SECONDS))
        place = max(clock.span(clock.quantum), 16.0 * 2.0**-52 * (start + SECONDS))
        found = events(run, "hit.event")
        for t, direction in zip(*found, strict=True):
            # the same floats decide: behind the crossing at t, and not yet a place before it
            before = t - 1.01 * place
            assert direction * function(t) > 0.0 >= direction * function(before), (seed, t)
            root = brentq(function, before, t, xtol=1e-16, rtol=1e-15) if function(before) else before
            assert 0.0 <= t - root <= 1.02 * place, (seed, t)
            met += 1
        ends = [float(start + k * composite.step) for k in range(int(SECONDS / composite.step) + 1)]
        for begin, end in itertools.pairwise(ends):
            crossings = sum(begin < t <= end for t in found[0])
            assert crossings % 2 == (function(begin) * function(end) < 0.0), (seed, begin)
    assert met > 100


@pytest.mark.parametrize("seed", [0, 71, 81, 86, 140, 345])  # where ends were missed, or asked for in vain
def test_both_engines_meet_them_alike(seed: int) -> None:
    composite, _ = watched(seed, 0)
    assert events(both_engines(composite, stop=SECONDS), "hit.event")[0]


@pytest.mark.parametrize("tolerance", ["1 ns", "1 us", "10 ms"])
def test_tolerance_bounds_how_late_a_crossing_is_met(tolerance: str) -> None:
    late = float(seconds(tolerance))
    for seed in range(0, 60, 3):
        composite, function = watched(seed, 0)
        crossings = {"hit": hk.Crossing("s.y", tolerance=tolerance)}
        composite = composite.with_scenario(composite.scenario.with_changes(crossings=crossings))
        found = events(hk.run(composite, stop=SECONDS), "hit.event")
        for t, direction in zip(*found, strict=True):
            assert direction * function(t) > 0.0 >= direction * function(t - late), (seed, t)


def test_value_exactly_on_the_level_at_an_end_tried_is_not_taken_for_the_far_side() -> None:
    # a ramp in steps of 2^-20: it is exactly zero on a whole stretch before it crosses at t = 1/2 + 2^-20
    kind = type(
        "Stairs", (Signal,), {"function": staticmethod(lambda t: math.floor((t - 0.5) * 2.0**20) * 2.0**-20)}
    )
    scenario = hk.Scenario({"s": hk.Python(kind)}, {}, crossings={"hit": hk.Crossing("s.y", "rising")})
    run = both_engines(hk.Composite(scenario, "100 ms"), stop=1.0)
    (t,), _ = events(run, "hit.event")
    assert 0.0 <= t - (0.5 + 2.0**-20) <= 1e-12
