"""Verdicts: what the coupling does, and what the system would do anyway."""

import math
import subprocess
import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import hocket as hk
from hocket.analysis.coupling_check import _judge_stability, check
from hocket.analysis.exact_solution import exact_solution
from hocket.analysis.linear_reading import read_linear
from hocket.errors import ScenarioError
from hocket.model.experiment import Experiment
from systems import lag

MASS = {"inputs": ["f"], "outputs": ["x", "v"], "C": np.eye(2), "x0": [1.0, 0.0]}


def masses(drift: float, step: str) -> hk.Composite:
    mass = hk.StateSpace(A=[[0, 1], [0, drift]], B=[[0], [1]], **MASS)
    spring = hk.StateSpace(D=[[-1000.0]], inputs=["x"], outputs=["f"])
    return hk.Composite(hk.Scenario({"m": mass, "s": spring}, {"m.f": "s.f", "s.x": "m.x"}), step)


def test_a_little_growth_of_its_own_does_not_excuse_the_coupling():
    """Held forces of an undamped spring grow by (omega h)^2 / 4 per step; the system hardly grows."""
    found = check(masses(1e-5, "1 ms"), Fraction(20))
    assert found.stability.exact_rho is not None
    assert 1.0 < found.stability.exact_rho < 1.0 + 1e-7
    assert not found.good
    assert found.verdict()[0].startswith("unstable")


def test_a_system_that_grows_by_itself():
    model = hk.StateSpace(A=[[0.5]], C=[[1.0]], x0=[1.0], outputs=["y"])
    found = check(hk.Composite(hk.Scenario({"a": model}), "0.1 s"), Fraction(1))
    assert found.good
    assert found.verdict()[0].startswith(
        "the exact system is unstable, spectral radius 1.05127, and the coupling follows it"
    )
    assert found.changes is None


def test_a_free_body_drifts_by_itself():
    body = hk.StateSpace(A=[[0, 1], [0, 0]], B=[[0], [1]], **{**MASS, "x0": [0.0, 1.0]})
    force = hk.StateSpace(D=[[0.0, 0.0]], inputs=["x", "v"], outputs=["f"])
    scenario = hk.Scenario({"m": body, "s": force}, {"m.f": "s.f", "s.x": "m.x", "s.v": "m.v"})
    found = check(hk.Composite(scenario, "0.1 s"), Fraction(5))
    assert found.good
    assert found.verdict()[0].startswith("the exact system drifts, as a free body does")


def test_states_that_depend_on_time_are_not_predicted_by_linear_models():
    lag = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], inputs=["u"], outputs=["y"])
    driven = hk.Ode(lambda t, x, u: [-x[0] + u[0] + 5 * np.sin(10 * t)], None, [0.0], ["u"], ["y"])
    scenario = hk.Scenario({"a": lag, "b": driven}, {"a.u": "b.y", "b.u": "a.y"})
    found = check(hk.Composite(scenario, "0.1 s"), Fraction(5), pilot=False)
    assert found.prediction is None
    assert any("`b` depends on time" in reason for reason in found.unjudged)


# other steps, robustness, consistency


def loop(gain: float, step: str | float) -> hk.Composite:
    """x' = -x + u, u = -gain x held over a step: the factor is e - gain (1 - e), e = exp(-h)."""
    plant = hk.StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    scenario = hk.Scenario(
        {"plant": plant, "gain": hk.Gain(-gain)}, {"plant.u": "gain.y", "gain.u": "plant.x"}
    )
    return hk.Composite(scenario, step)


def test_other_steps_are_told():
    """Stable while e > (gain - 1) / (gain + 1): with a gain of 3 up to ln 2."""
    found = check(loop(3.0, 0.1))
    assert found.largest is not None
    assert found.largest.largest == pytest.approx(math.log(2.0), rel=1e-6)
    assert (
        "other macro steps: stable up to a macro step of 0.6931 s (search range 0.000391 s to 3.2 s)"
        in found.verdict()
    )
    unstable = check(loop(3.0, 1))
    assert not unstable.good
    assert unstable.robustness == ()
    assert any("stable up to a macro step of 0.6931 s" in line for line in unstable.verdict())


def test_the_radius_of_a_scalar_loop():
    """The step map is [e, 1 - e]; balanced it is [1, 1], and its norm is sqrt 2.

    A change d of that size by the unit vector (a, b) moves the factor by d sqrt 2 (e a - gain (1 - e) b).
    """
    gain, h = 3.0, 0.1
    found = check(loop(gain, h))
    e = math.exp(-h)
    factor = e - gain * (1.0 - e)
    expected = (1.0 - factor) / (math.sqrt(2.0) * math.hypot(e, gain * (1.0 - e)))
    (only,) = found.robustness
    assert only.radius == pytest.approx(expected, rel=1e-6)
    assert abs(only.radius - (1.0 - found.stability.rho)) > 0.01
    size = f"{100 * expected:.2g} % of the step map of `plant`, instability with no oscillation"
    said = f"stability radius (structured): {size}; no smaller"
    assert any(line.startswith(said) for line in found.verdict())


def test_large_systems_are_not_kept_waiting():
    count = 60
    lags = {
        f"m{k}": hk.StateSpace(-np.eye(2), np.ones((2, 1)), np.eye(2)[:1], inputs=["u"], outputs=["y"])
        for k in range(count)
    }
    links = {f"m{k}.u": f"m{(k + 1) % count}.y" for k in range(count)}
    found = check(hk.Composite(hk.Scenario(lags, links), "0.1 s"), advise=False)
    assert found.largest is None
    assert found.robustness == ()
    assert any("numbers; try `--robust` (in Python robust=True)" in why for why in found.unjudged)
    assert found.consistency is not None


def test_many_starts_are_not_made_unasked():
    """With a past at the start, relative consistency starts the engine for each state."""
    rng = np.random.default_rng(1)
    big = hk.StateSpace(
        -np.eye(210), rng.normal(size=(210, 1)), rng.normal(size=(1, 210)) / 210, inputs=["u"], outputs=["y"]
    )
    scenario = hk.Scenario({"a": big, "b": hk.Gain(-0.1)}, {"a.u": "b.y", "b.u": "a.y"})
    found = check(hk.Composite(scenario, "0.1 s", extrapolation="linear"), advise=False)
    assert found.consistency is None
    assert any("a start of the engine for each of 210 states" in why for why in found.unjudged)


# what can be checked


def test_an_experiment_is_linearised_where_it_starts():
    """x' = -(1 + t) x by Euler steps of 0.1 s: from 3 s on the factor is 1 - 0.4."""
    ode = hk.Ode(lambda t, x, u: [-(1.0 + t) * x[0]], None, [1.0], [], ["y"], method="euler", step="0.1 s")
    composite = hk.Composite(hk.Scenario({"a": ode}), "0.1 s")
    assert check(composite).stability.rho == pytest.approx(0.9, abs=1e-6)
    late = Experiment(composite, start=Fraction(3), stop=Fraction(4))
    assert check(late).stability.rho == pytest.approx(0.6, abs=1e-6)
    assert check(composite, start=3).stability.rho == pytest.approx(0.6, abs=1e-6)


def test_times_are_those_of_the_run():
    early = check(loop(3.0, 0.1), 2)
    late = check(Experiment(loop(3.0, 0.1), start=Fraction(10), stop=Fraction(12)))
    assert late.prediction.worst.largest == pytest.approx(early.prediction.worst.largest, rel=1e-9)
    assert late.prediction.worst.at == pytest.approx(10.0 + early.prediction.worst.at)


def test_it_is_a_public_name(tmp_path):
    file = tmp_path / "loop.toml"
    hk.write(Experiment(loop(3.0, 0.1), stop=Fraction(2)), file)
    expected = check(loop(3.0, 0.1), Fraction(2)).verdict()
    assert hk.check(loop(3.0, 0.1), "2 s").verdict() == expected
    assert hk.check(file).verdict() == hk.check(str(file)).verdict() == expected
    with pytest.raises(ScenarioError, match="cannot be checked"):
        hk.check(3.0)
    with pytest.raises(ScenarioError, match="stops at 1 s and starts at 2 s"):
        hk.check(loop(3.0, 0.1), 1, start=2)
    with pytest.raises(AttributeError, match="no attribute"):
        _ = hk.chekc


def test_importing_hocket_does_not_import_the_analysis():
    code = "import sys, hocket; print('check' in hocket.__all__, any('analysis' in m for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


@pytest.mark.parametrize("order", [1, -1], ids=["source first", "source last"])
def test_an_iteration_with_a_source_is_judged_as_the_one_without(order):
    """A source hands on one number where others hand on a row of them."""
    one = hk.StateSpace([[-1]], [[1, -1]], [[1]], inputs=["s = 0", "b"], outputs=["y"])
    other = hk.StateSpace([[-2]], [[3]], [[1]], inputs=["a"], outputs=["y"])
    models = {"source": hk.Function(lambda t: [t], outputs=["y"]), "one": one, "other": other}
    wires = {"one.b": "other.y", "other.a": "one.y"}
    driven = hk.Scenario(dict(list(models.items())[::order]), {**wires, "one.s": "source.y"})
    alone = hk.Scenario({"one": one, "other": other}, wires)
    rho = [
        hk.check(hk.Composite(each, "0.1", hk.Iterate(), "linear"), 5).stability.rho
        for each in (driven, alone)
    ]
    assert rho[0] == pytest.approx(rho[1], rel=1e-12)


def test_no_changes_are_tried_where_none_are_asked_for():
    models = {"a": lag(1.0, 0.5), "b": lag(2.0, -0.3)}
    composite = hk.Composite(
        hk.Scenario(models, {"a.u": "b.y", "b.u": "a.y"}), "0.1 s", extrapolation="linear"
    )
    quick, slow = check(composite, advise=False), check(composite)
    assert quick.changes is None
    assert len(slow.changes.changes) > 1


def test_growth_beyond_all_floats_is_unstable_and_no_error():
    """exp(8000 * 0.1) is no float; the exact system counts as growing by exp(700) per step."""
    wild = hk.StateSpace([[8e3]], C=[[1.0]], x0=[1.0], outputs=["y"])
    found = _judge_stability(
        SimpleNamespace(
            reading=read_linear(hk.Composite(hk.Scenario({"calm": FREE}), "0.1 s")),
            solution=exact_solution(hk.Composite(hk.Scenario({"wild": wild}), "0.1 s")),
            models=SimpleNamespace(leaves=()),
        )
    )
    assert found.exact_rho == math.exp(700.0)


FREE = hk.StateSpace([[-1.0]], C=[[1.0]], x0=[1.0], outputs=["y"])
