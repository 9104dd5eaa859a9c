"""Verdicts: what the coupling does, and what the system would do anyway."""

from fractions import Fraction

import numpy as np

import hocket as hk
from hocket.analysis.checking import check

MASS = {"inputs": ["f"], "outputs": ["x", "v"], "C": np.eye(2), "x0": [1.0, 0.0]}


def masses(drift: float, step: str) -> hk.Composite:
    mass = hk.StateSpace(A=[[0, 1], [0, drift]], B=[[0], [1]], **MASS)
    spring = hk.StateSpace(D=[[-1000.0]], inputs=["x"], outputs=["f"])
    return hk.Composite(hk.Scenario({"m": mass, "s": spring}, {"m.f": "s.f", "s.x": "m.x"}), step)


def test_a_little_growth_of_its_own_does_not_excuse_the_coupling():
    """Held forces of an undamped spring grow by (omega h)^2 / 4 per step; the system hardly grows."""
    found = check(masses(1e-5, "1 ms"), Fraction(20))
    assert found.own is not None
    assert 1.0 < found.own < 1.0 + 1e-7
    assert not found.good
    assert found.verdict()[0].startswith("unstable")


def test_a_system_that_grows_by_itself():
    model = hk.StateSpace(A=[[0.5]], C=[[1.0]], x0=[1.0], outputs=["y"])
    found = check(hk.Composite(hk.Scenario({"a": model}), "0.1 s"), Fraction(1))
    assert found.good
    assert found.verdict()[0].startswith("the system itself grows, by 1.05127 per step")
    assert found.best is None


def test_a_free_body_drifts_by_itself():
    body = hk.StateSpace(A=[[0, 1], [0, 0]], B=[[0], [1]], **{**MASS, "x0": [0.0, 1.0]})
    force = hk.StateSpace(D=[[0.0, 0.0]], inputs=["x", "v"], outputs=["f"])
    scenario = hk.Scenario({"m": body, "s": force}, {"m.f": "s.f", "s.x": "m.x", "s.v": "m.v"})
    found = check(hk.Composite(scenario, "0.1 s"), Fraction(5))
    assert found.good
    assert found.verdict()[0].startswith("the system itself moves on and on")


def test_time_and_samples_are_not_predicted():
    lag = hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], inputs=["u"], outputs=["y"])
    driven = hk.Ode(lambda t, x, u: [-x[0] + u[0] + 5 * np.sin(10 * t)], None, [0.0], ["u"], ["y"])
    scenario = hk.Scenario({"a": lag, "b": driven}, {"a.u": "b.y", "b.u": "a.y"})
    found = check(hk.Composite(scenario, "0.1 s"), Fraction(5))
    assert found.prediction is None
    assert any("`b` depends on time" in reason for reason in found.unjudged)
    device = hk.Composite(hk.Scenario({"g": hk.Gain(-0.5)}), "0.2 s", sampled=True)
    sampled = hk.Scenario({"a": lag, "c": device}, {"a.u": "c.g.y", "c.g.u": "a.y"})
    told = check(hk.Composite(sampled, "0.1 s"), Fraction(5))
    assert told.prediction is None
    assert any("is sampled" in reason for reason in told.unjudged)
