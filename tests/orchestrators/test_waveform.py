"""Windows of many steps, iterated until the curves agree: exact answers, whatever the window is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from hocket.analysis.measure import Outcome
from hocket.planning.curves import with_curves
from hocket.planning.planner import plan_tree
from hocket.simulators.wrappers.windowed import Windowed
from systems import ENGINES, lag

A = np.array([[0.0, 1.0, 0.0], [-4.0, -0.4, 2.0], [1.2, 0.0, -1.5]])
START = [1.0, 0.0, -0.5]
OSCILLATOR = hk.StateSpace(
    [[0.0, 1.0], [-4.0, -0.4]], [[0.0], [2.0]], [[1.0, 0.0]], x0=[1.0, 0.0], inputs=["u"], outputs=["y"]
)
PAIR = hk.Scenario({"a": OSCILLATOR, "b": lag(1.5, 1.2, -0.5)}, {"a.u": "b.y", "b.u": "a.y"})


def exact(t):
    return float((expm(A * t) @ START)[0])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", ["plain", "quasi-newton", "aitken", "newton"])
def test_windows_of_a_second_are_as_good_as_steps_of_ten_milliseconds(how, engine):
    """Below 1e-8, where values handed on at the end of such windows are off by more than 0.01."""
    samples = 20 if how == "newton" else 100
    window = hk.Composite(PAIR, "1 s", hk.Waveform(samples, accelerate=how))
    assert hk.run(window, 4, engine=engine).final("a.y") == pytest.approx(
        exact(4.0), abs=1e-6 if samples == 20 else 1e-8
    )
    ends = hk.run(hk.Composite(PAIR, "1 s", hk.Iterate(), extrapolation="cubic"), 4, engine=engine)
    assert abs(ends.final("a.y") - exact(4.0)) > 1e-2


@pytest.mark.parametrize(("degree", "order"), [(1, 2), (2, 3), (3, 4)])
def test_the_order_is_that_of_the_curves(degree, order):
    off = []
    for samples in (20, 40):
        run = hk.run(hk.Composite(PAIR, "1 s", hk.Waveform(samples, degree, tolerance=1e-12)), 3)
        off.append(abs(run.final("a.y") - exact(3.0)))
    assert np.log2(off[0] / off[1]) == pytest.approx(order, abs=0.35)


def test_the_length_of_the_window_does_not_matter():
    """The limit is the fine coupling: windows of 1, 5 and 20 samples end alike."""
    ends = [
        hk.run(hk.Composite(PAIR, window, hk.Waveform(samples, 1, tolerance=1e-12)), 2).final("a.y")
        for window, samples in (("50 ms", 1), ("250 ms", 5), ("1 s", 20))
    ]
    assert ends[1] == pytest.approx(ends[0], abs=1e-9)
    assert ends[2] == pytest.approx(ends[0], abs=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_plain_iteration_converges_as_the_convolution_says(engine):
    """a' = b, b' = a in one window T: the error of iteration k is at most T^k / k!."""
    keep = {"rate": 0.0, "gain": 1.0}
    scenario = hk.Scenario({"a": lag(**keep, x0=1.0), "b": lag(**keep, x0=1.0)}, {"a.u": "b.y", "b.u": "a.y"})
    factorial = 1.0
    for k in range(1, 9):
        factorial *= k
        how = hk.Waveform(64, tolerance=None, at_most=k, accelerate="plain")
        found = hk.run(hk.Composite(scenario, 1, how), 1, engine=engine).final("a.y")
        assert abs(found - np.e) <= 1.05 / factorial + 1e-7


@pytest.mark.parametrize("engine", ENGINES)
def test_values_within_a_window_are_micro_steps(engine):
    run = hk.run(hk.Composite(PAIR, "1 s", hk.Waveform(20)), 3, record=["a.y"], every="micro", engine=engine)
    series = run["a.y"]
    assert len(series.t) == 61
    assert series.values == pytest.approx([exact(t) for t in series.t], abs=1e-5)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_algebraic_loop_is_solved_by_the_windows(engine):
    """y_a = x + 0.5 y_b, y_b = x + 0.4 y_a with x = exp(-t), from the first row on."""
    models = {
        name: hk.StateSpace([[-1.0]], [[0.0]], [[1.0]], [[gain]], x0=[1.0], inputs=["u"], outputs=["y"])
        for name, gain in (("a", 0.5), ("b", 0.4))
    }
    scenario = hk.Scenario(models, {"a.u": "b.y", "b.u": "a.y"})
    run = hk.run(hk.Composite(scenario, "1 s", hk.Waveform(8)), 2, engine=engine)
    assert run["a.y"].values == pytest.approx(1.5 / 0.8 * np.exp(-np.array(run["a.y"].t)), rel=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
def test_gains_sequences_and_inputs_from_outside(engine):
    """Connections keep their gain; Gauss-Seidel iterates too; a level is driven from outside."""
    connections = [
        hk.Connection("b.y", "a.u", gain=2.0, offset=0.5),
        hk.Connection("a.y", "b.u", gain=-1.0),
        ("drive", "a.w"),
    ]
    summed = hk.StateSpace([[-1.0]], [[1.0, 1.0]], [[1.0]], x0=[1.0], inputs=["u", "w"], outputs=["y"])
    models = {"a": summed, "b": lag(2.0, 1.0, 0.0)}
    inner = hk.Scenario(models, connections, inputs=["drive"])
    how = hk.Waveform(50, inner=hk.GaussSeidel(["b", "a"], outputs="stale"))
    level = hk.Composite(inner, "1 s", how)
    top = hk.Scenario(
        {"level": level, "one": hk.Table([0.0, 10.0], {"y": [1.0, 1.0]})}, {"level.drive": "one.y"}
    )
    run = hk.run(hk.Composite(top, "1 s"), 3, engine=engine)
    whole = np.array([[-1.0, 2.0, 1.5], [-1.0, -2.0, 0.0], [0.0, 0.0, 0.0]])
    assert run.final("level.a.y") == pytest.approx((expm(whole * 3.0) @ [1.0, 0.0, 1.0])[0], abs=1e-7)


def test_black_boxes_hand_on_curves():
    """An Ode that hocket integrates in micro steps, and a class in Python."""

    class Lagging:
        inputs = ("u",)
        outputs = ("y",)

        def start(self, t):
            self.x = -0.5

        def output(self, t):
            return [self.x]

        def step(self, t, h, u):
            # the exact answer to a cubic in time, by Gauss-Legendre
            nodes, weights = np.polynomial.legendre.leggauss(4)
            s = 0.5 * h * (nodes + 1.0)
            drive = sum(u[k, 0] * s**k for k in range(len(u)))
            self.x = float(
                np.exp(-1.5 * h) * self.x + 1.2 * 0.5 * h * (weights * np.exp(-1.5 * (h - s)) * drive).sum()
            )

        def save(self):
            return self.x

        def restore(self, state):
            self.x = state

    models = {
        "a": hk.Ode(
            lambda t, x, u: [x[1], -4.0 * x[0] - 0.4 * x[1] + 2.0 * u[0]],
            x0=[1.0, 0.0], inputs=["u"], outputs=["y"], g=lambda t, x, u: [x[0]], step="10 ms",
        ),
        "b": hk.Python(Lagging),
    }  # fmt: skip
    scenario = hk.Scenario(models, {"a.u": "b.y", "b.u": "a.y"})
    run = hk.run(hk.Composite(scenario, "1 s", hk.Waveform(50)), 2)
    assert run.final("a.y") == pytest.approx(exact(2.0), abs=1e-6)


def test_what_it_says_before_it_runs():
    composite = hk.Composite(PAIR, "1 s", hk.Waveform(10))
    plan = str(plan_tree(composite).plan)
    assert "repeat until the values agree to 1e-09, at most 100 times" in plan
    found = hk.check(composite, 4)
    assert found.outcome is Outcome.GOOD
    again = plan_tree(composite).composite
    assert plan_tree(again).composite.scenario == again.scenario


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 0}, "`samples` is 0"),
        ({"degree": 9}, "`degree` is 9"),
        ({"inner": hk.Jacobi()}, "stale outputs"),
        ({"inner": hk.Multirate({"a": 2})}, "stale outputs"),
        ({"tolerance": -1.0}, "never met"),
        ({"accelerate": "no"}, "no"),
    ],
)
def test_windows_that_are_none(arguments, message):
    with pytest.raises(hk.ScenarioError, match=message):
        hk.Waveform(**arguments)


def test_what_hands_on_no_curves_is_refused():
    class Forward:
        inputs = ("u",)
        outputs = ("y",)

        def start(self, t):
            self.x = 0.0

        def output(self, t):
            return [self.x]

        def step(self, t, h, u):
            self.x += h

    wires = {"a.u": "b.y", "b.u": "a.y"}
    inside = hk.Scenario({"c": OSCILLATOR}, [("u", "c.u"), ("c.y", "y")], inputs=["u"], outputs=["y"])
    cases = (
        (hk.Python(Forward), "cannot roll back"),
        (hk.Composite(inside, "1 s"), "a level hands on no curves"),
    )
    for model, message in cases:
        scenario = hk.Scenario({"a": OSCILLATOR, "b": model}, wires)
        with pytest.raises(hk.ScenarioError, match=message):
            hk.run(hk.Composite(scenario, "1 s", hk.Waveform(4)), 1)
    with pytest.raises(hk.ScenarioError, match="in no other algorithm"):
        hk.run(hk.Composite(PAIR, "1 s", hk.Adaptive(hk.Waveform(4))), 1)


def test_curves_take_the_place_of_values():
    made = with_curves(PAIR, hk.Waveform(2))
    assert [port.name for port in made.models["a"].inputs] == ["u@0", "u@1", "u@2"]
    assert [port.name for port in made.models["b"].outputs] == ["y", "y@0", "y@1", "y@2"]
    assert isinstance(made.models["a"], Windowed)
    assert {each.target: each.source for each in made.connections}["a.u@1"] == "b.y@1"
    assert replace(made.models["a"], degree=1) != made.models["a"]


def test_files_have_it(tmp_path):
    how = hk.Waveform(25, 2, accelerate="aitken")
    hk.write(hk.Composite(PAIR, "1 s", how), tmp_path / "a.toml")
    assert hk.read(tmp_path / "a.toml").composite.orchestrator == how
    run = hk.run(tmp_path / "a.toml", 2)
    assert run.final("a.y") == pytest.approx(exact(2.0), abs=1e-4)
