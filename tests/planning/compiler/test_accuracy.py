"""Accuracy as a pass: steps as long as their error allows, by one more simulator."""

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from fmus.build import build
from hocket.files.toml import dumps, loads
from hocket.model.experiment import Experiment
from hocket.planning.compiler.accuracy import Accuracy, accepted_steps
from hocket.simulators.wrappers.replay import Replay
from hocket.simulators.wrappers.substeps import Substepped
from planning.compiler.oscillators import (
    LAGGED,
    SEEN,
    WHOLE,
    Mass,
    bare,
    compiled,
    error,
    oscillator,
    run,
)
from systems import ENGINES


@pytest.mark.parametrize(
    ("tolerance", "steps", "taken_back", "wrong"),
    [(1e-2, 51, 0, 1.41e-2), (1e-3, 134, 0, 5.11e-3), (1e-4, 403, 1, 1.67e-3), (1e-5, 1264, 1, 5.29e-4)],
)
def test_the_worked_example(tolerance, steps, taken_back, wrong):
    """requirements.md 1.2, computed there apart from hocket."""
    found = run(compiled(tolerance=tolerance), 4 * steps + 20)
    assert found.steps == pytest.approx(steps, rel=0.02)
    assert found.rejected <= taken_back
    assert error(found) == pytest.approx(wrong, rel=0.02)
    assert found.faults() == []


@pytest.mark.parametrize(("h", "wrong"), [(0.1, 2.90e-2), (0.05, 1.41e-2), (0.025, 6.95e-3)])
def test_told_steps_of_one_length_are_the_fixed_ones(h, wrong):
    level = compiled(tolerance=1e9, estimate="defect", first=h, smallest=h, largest=h)
    assert error(run(level, round(10 / h) + 1)) == pytest.approx(wrong, rel=2e-3)


@pytest.mark.parametrize(
    ("estimate", "extrapolation", "per", "tolerances", "steps", "power"),
    [
        ("richardson", "hold", "step", (1e-2, 1e-3, 1e-4), (230, 600, 1700), 1 / 2),
        ("copy", "hold", "step", (1e-2, 1e-3), (150, 400), 1 / 2),
        ("defect", "hold", "step", (1e-2, 1e-3, 1e-4), (100, 250, 720), 1 / 2),
        ("richardson", "hold", "unit", (0.02, 0.005), (440, 1500), 1),
        ("richardson", "linear", "unit", (1e-2, 1e-3, 1e-4), (200, 470, 1350), 1),
        ("richardson", "linear", "step", (1e-3, 1e-4, 1e-5), (260, 500, 1000), 2 / 3),
        ("copy", "linear", "step", (1e-3, 1e-4), (180, 350), 2 / 3),
        ("defect", "linear", "step", (1e-3, 1e-4, 1e-5), (120, 230, 460), 2 / 3),
    ],
)
def test_the_error_follows_the_tolerance(estimate, extrapolation, per, tolerances, steps, power):
    """Local errors of order p + 1 and global ones of order p: tol^(p/(p+1)) per step, tol per unit."""
    level = oscillator(extrapolation=extrapolation)
    made = [compiled(level, each, estimate=estimate, per=per, first=1e-3) for each in tolerances]
    wrong = [error(run(each, count)) for each, count in zip(made, steps, strict=True)]
    assert np.polyfit(np.log(tolerances), np.log(wrong), 1)[0] == pytest.approx(power, abs=0.12)


def test_lines_need_far_fewer_steps():
    held, led = (
        run(compiled(oscillator(extrapolation=how), 1e-3), steps)
        for how, steps in (("hold", 580), ("linear", 250))
    )
    assert 2 * led.steps < held.steps
    assert 5 * error(led) < error(held)


def test_it_is_as_good_as_the_adaptive_algorithm():
    """Of first order, error times steps is what a choice of steps is worth."""
    found = run(compiled(tolerance=1e-3), 600)
    control = hk.Adaptive(
        tolerance=1e-3, estimate="richardson", per="step", first="1/100", quantum="1/1000000"
    )
    other = hk.run(oscillator(orchestrator=control), stop=10)
    exact = np.array([expm(WHOLE * t)[:, 0] for t in other["left.x"].t])
    wrong = float(np.max(np.abs(np.array([other[port].values for port in SEEN]).T - exact)))
    steps = other.info["counts"]["adapted"][""]["accepted"]
    assert error(found) * found.steps < 1.15 * wrong * steps


@pytest.mark.parametrize("estimate", ["richardson", "copy", "defect"])
def test_black_boxes_do_the_same(estimate):
    boxed = Replay(hk.Python(Mass)) if estimate == "richardson" else hk.Python(Mass)
    made = run(compiled(oscillator(boxed), 5e-2, estimate=estimate, rejects=False), 150)
    open_one = run(compiled(None, 5e-2, estimate=estimate, rejects=False), 150)
    assert made.steps == open_one.steps
    for port in SEEN:
        assert made[port] == pytest.approx(open_one[port], abs=1e-12)


def test_black_boxes_that_hold_their_inputs_are_of_second_order_under_lines():
    level = oscillator(hk.Python(Mass), extrapolation="linear")
    tolerances = (1e-3, 1e-4)
    made = [compiled(level, each, estimate="copy", first=1e-3) for each in tolerances]
    wrong = [error(run(each, 400)) for each in made]
    assert np.polyfit(np.log(tolerances), np.log(wrong), 1)[0] == pytest.approx(2 / 3, abs=0.1)


def test_fmus_are_told_the_time(tmp_path):
    """The two masses of Glumac and Kovacic (2023), with the FMUs' own state saved and restored."""
    models = {name: hk.Fmu(build(name, 2, folder=tmp_path)) for name in ("first", "second")}
    wires = {"first.x": "second.x", "first.v": "second.v", "second.force": "first.force"}
    level = hk.Composite(hk.Scenario(models, wires), 2, extrapolation="linear")
    made = Accuracy(20, 1e-4, first=0.05).apply(level)
    found, plain = (accepted_steps(hk.run(made, stop=240, engine=each)) for each in ENGINES)
    A = np.array([[0, 1, 0, 0], [-0.2, -0.3, 0.1, 0.2], [0, 0, 0, 1], [0.1, 0.2, -0.2, -0.4]])
    exact = np.array([expm(A * t) @ [0.1, 0.1, 0.2, 0.1] for t in found.t])
    assert found.faults() == []
    assert np.max(np.abs(found["second.x"] - exact[:, 2])) < 5e-4
    assert np.max(np.abs(found["second.v"] - exact[:, 3])) < 2e-4
    assert all(np.array_equal(found[port], plain[port]) for port in found.values)


class Stubborn(Mass):
    """It goes back, and accepts one step."""

    variable_step = False

    def save(self):
        return self.z, self.t

    def restore(self, state):
        self.z, self.t = state

    def step(self, t, h, u):
        assert h == pytest.approx(0.01)
        super().step(t, h, u)


def test_a_simulator_with_a_step_of_its_own_is_sub_stepped():
    level = oscillator(Substepped(hk.Python(Stubborn), "10 ms"))
    found = run(compiled(level, 1e-2, smallest="5 ms", largest=0.5), 320)
    assert error(found) < 1.41e-2 + 0.01  # a sub-step of lag, at speeds below one


def test_sources_are_asked_at_the_told_time():
    """y' = cos(t) - y: the exact solution is (cos t + sin t + e^-t) / 2."""
    scenario = hk.Scenario({"wave": hk.Function(np.cos, ["y"]), "lag": LAGGED}, {"lag.u": "wave.y"})
    level = Accuracy(6, 1e-4, begin=1, first=0.01, per="unit").apply(
        hk.Composite(scenario, 1, extrapolation="linear")
    )
    found = accepted_steps(hk.run(level, stop=1200))
    t = found.t
    exact = (np.cos(t) + np.sin(t)) / 2 + (1 - (np.cos(1) + np.sin(1)) / 2) * np.exp(1 - t)
    assert found.finished
    assert found.faults() == []
    assert (t[0], t[-1]) == (1.0, 6.0)
    assert np.max(np.abs(found["lag.y"] - exact)) < 1e-4
    assert np.array_equal(found["wave.y"], np.cos(t))


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_stay_within_the_tolerance(seed):
    """A contracts in the largest norm: errors of `tolerance` a second add up to tolerance * T."""
    rng = np.random.default_rng(seed)
    size, stop, tolerance = int(rng.integers(2, 5)), 4.0, 5e-3
    A = rng.uniform(-1, 1, (size, size))
    np.fill_diagonal(A, 0.0)
    np.fill_diagonal(A, -np.abs(A).sum(axis=1) - rng.uniform(0.1, 1, size))
    x0 = rng.uniform(-1, 1, size)
    others = [[j for j in range(size) if j != i] for i in range(size)]
    models = {
        f"m{i}": hk.StateSpace(
            [[A[i, i]]],
            [A[i, others[i]]],
            [[1]],
            x0=[x0[i]],
            inputs=[f"u{j}" for j in others[i]],
            outputs=["x"],
        )
        for i in range(size)
    }
    wires = {f"m{i}.u{j}": f"m{j}.x" for i in range(size) for j in others[i]}
    estimate = ("richardson", "copy", "defect")[seed % 3]
    how = Accuracy(stop, tolerance, per="unit", estimate=estimate, first=1e-4)
    level = hk.Composite(hk.Scenario(models, wires), "0.5 s", extrapolation="linear")
    assert how.check_preconditions(level) == []
    made = how.apply(level)
    assert how.check_postconditions(made) == []
    found = accepted_steps(hk.run(made, stop=600))
    exact = np.array([expm(A * t) @ x0 for t in found.t])
    assert found.t[-1] == stop
    assert np.max(np.abs(np.array([found[f"m{i}.x"] for i in range(size)]).T - exact)) < tolerance * stop


@pytest.mark.parametrize("estimate", ["richardson", "copy", "defect"])
@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
def test_both_engines_and_files_agree_to_the_bit(estimate, extrapolation):
    level = compiled(oscillator(extrapolation=extrapolation), 1e-2, estimate=estimate, relative=1e-3)
    text = dumps(Experiment(level))
    again = loads(text).composite
    assert dumps(Experiment(again)) == text
    assert bare(again) == bare(level)
    native = hk.run(level, stop=60)
    plain = hk.run(again, stop=60, engine="interpreter")
    assert native.info["engine"] == "native"
    for port in native.ports:
        assert np.array_equal(native[port].values, plain[port].values), port
