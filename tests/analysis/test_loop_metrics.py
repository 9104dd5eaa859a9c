"""Metrics of step responses and margins of loops, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hocket as hk
from hocket.blocks import PID, Gain, TransferFunction, margins, step_metrics


def test_margins_take_a_linear_pid_by_its_way_from_measured_to_control():
    """Its zero is the pole of the plant: what is left is 4 / s."""
    found = margins([PID(K=2.0, Ti="0.5 s"), TransferFunction([1.0], [0.5, 1.0])])
    assert found.stable
    assert found.phase == pytest.approx(90.0)
    assert found.phase_frequency == pytest.approx(4.0)
    assert found.delay == pytest.approx(math.pi / 8.0)


@pytest.mark.parametrize("zeta", [0.2, 0.5, 0.7])
def test_a_second_order_step(zeta):
    t = np.linspace(0.0, 60.0, 200_001)
    wd = math.sqrt(1.0 - zeta**2)
    y = 1.0 - np.exp(-zeta * t) * (np.cos(wd * t) + zeta / wd * np.sin(wd * t))
    found = step_metrics(t, 3.0 + 2.0 * y, final=5.0, initial=3.0)
    assert found.overshoot == pytest.approx(math.exp(-math.pi * zeta / wd), abs=1e-7)
    assert found.peak_time == pytest.approx(math.pi / wd, abs=3e-4)
    # the integral of e^2 for w = 1 is zeta + 1 / (4 zeta), here times the height squared
    assert found.ise == pytest.approx(4.0 * (zeta + 0.25 / zeta), rel=1e-5)


def test_a_first_order_step():
    t = np.linspace(0.0, 30.0, 300_001)
    found = step_metrics(t, 1.0 - np.exp(-t), final=1.0)
    assert found.overshoot == 0.0
    assert found.rise_time == pytest.approx(math.log(9.0), abs=1e-7)
    assert found.settling_time == pytest.approx(math.log(50.0), abs=1e-7)
    assert (found.ise, found.iae, found.itae) == pytest.approx((0.5, 1.0, 1.0), rel=1e-7)


def test_a_fall_and_what_does_not_settle():
    found = step_metrics([0.0, 1.0, 2.0], [1.0, 0.0, -0.5], final=0.0)
    assert (found.overshoot, found.settling_time, found.steady_error) == (0.5, None, 0.5)
    assert step_metrics([0.0, 1.0], [0.0, 0.5], final=1.0).rise_time is None


def test_margins_of_an_integrator_with_a_lag():
    """1 / (s (s + 1)): |L| = 1 at w^2 = (sqrt(5) - 1) / 2, the phase -90 - atan(w) never reaches -180."""
    found = margins(TransferFunction([1.0], [1.0, 1.0, 0.0]))
    w = math.sqrt((math.sqrt(5.0) - 1.0) / 2.0)
    assert found.phase_frequency == pytest.approx(w, rel=1e-9)
    assert found.phase == pytest.approx(90.0 - math.degrees(math.atan(w)), rel=1e-9)
    assert found.delay == pytest.approx(math.radians(found.phase) / w, rel=1e-9)
    assert (found.gain, found.stable) == (math.inf, True)


@pytest.mark.parametrize(("k", "stable"), [(1.0, True), (5.9, True), (6.1, False)])
def test_margins_of_three_lags(k, stable):
    """k / (s (s + 1) (s + 2)): -180 degrees at sqrt(2), where the gain is k / 6."""
    found = margins([Gain(k), TransferFunction([1.0], [1.0, 3.0, 2.0, 0.0])])
    assert found.gain == pytest.approx(6.0 / k, rel=1e-9)
    assert found.gain_frequency == pytest.approx(math.sqrt(2.0), rel=1e-9)
    assert found.stable is stable
    assert (found.phase > 0.0) is stable


@pytest.mark.parametrize(("k", "stable"), [(1.5, True), (1.6, False)])
def test_margins_with_a_delay(k, stable):
    """k exp(-s) / s is stable for k below pi / 2."""
    found = margins(TransferFunction([k], [1.0, 0.0]), delay=1.0)
    assert found.gain == pytest.approx(0.5 * math.pi / k, rel=1e-9)
    assert found.phase == pytest.approx(90.0 - math.degrees(k), rel=1e-7)
    assert found.stable is stable


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: step_metrics([0.0, 1.0], [1.0, 1.0]), "no height"),
        (lambda: step_metrics([0.0, 1.0], [1.0]), "finite value for each"),
        (lambda: step_metrics([1.0, 0.0], [1.0, 2.0]), "decrease"),
        (lambda: step_metrics([0.0, 1.0], [1.0, 2.0], band=0.0), "band"),
        (lambda: step_metrics([0.0, 1.0], [1.0, 2.0], at=5.0), "outside"),
        (lambda: margins(3), "a linear model"),
        (lambda: margins([]), "a linear model"),
        (lambda: margins([PID(K=1.0, high=2.0)]), "without limits"),
        (lambda: margins(Gain(0.0)), "gain is zero"),
        (lambda: margins(hk.Sum("a", "b")), "2 inputs"),
        (lambda: margins(TransferFunction([1.0], [1.0, -2.0]), delay=0.1), "not stable"),
    ],
)
def test_nonsense_is_refused(call, what):
    with pytest.raises(hk.ScenarioError) as caught:
        call()
    assert what in str(caught.value)
