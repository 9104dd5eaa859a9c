"""Work over an exact step, against integrals in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hocket as hk
from hocket.simulators.energy_projection import works
from hocket.simulators.power_balance import Seat


def flows(model: hk.StateSpace, h: float, x: list[float], u: list[list[float]]) -> list[float]:
    """Return the work of the first output and input, and what comes in besides."""
    seat = Seat(0, 0, 1.0, 0.05, None, None, None, False, "y` and `u")
    z = np.concatenate([x, np.ravel(u)])
    return [float(z @ form @ z) for form in works(model, [seat], h, len(u) - 1)]


def work(model: hk.StateSpace, h: float, x: list[float], u: list[list[float]]) -> float:
    return flows(model, h, x, u)[0]


@pytest.mark.parametrize("angle", [0.01, 1.0, 20.0, 1000.0])
def test_an_oscillator_works_as_its_cosine_does(angle: float) -> None:
    """x = (cos ws, sin ws) is not moved by u = 2 + 3 s: the integral of cos(ws) (2 + 3 s)."""
    h = 0.2
    w = angle / h
    model = hk.StateSpace([[0, -w], [w, 0]], [[0], [0]], [[1, 0]], inputs=["u"], outputs=["y"])
    sine, cosine = math.sin(angle), math.cos(angle)
    exact = 2 * sine / w + 3 * (h * sine / w + (cosine - 1) / w**2)
    assert work(model, h, [1.0, 0.0], [[2.0], [3.0]]) == pytest.approx(exact, abs=1e-13)


@pytest.mark.parametrize("rate", [1.0, 1e3, 1e8])
def test_a_lag_works_as_its_exponential_does(rate: float) -> None:
    """x' = rate (u - x) with x = 0 at first under u = 2: the integral of 2 * 2 (1 - exp(-rate s))."""
    model = hk.StateSpace([[-rate]], [[rate]], [[1]], inputs=["u"], outputs=["y"])
    exact = 4 * (0.5 + math.expm1(-0.5 * rate) / rate)
    assert work(model, 0.5, [0.0], [[2.0]]) == pytest.approx(exact, rel=1e-12)


def test_what_reacts_at_once_works_too() -> None:
    """y = 5 u under u = 1 + 2 s + 3 s^2 for 2 s, no state: 5 times the integral of the square."""
    model = hk.StateSpace([], [], [[]], [[5.0]], inputs=["u"], outputs=["y"])
    square = np.polynomial.Polynomial([1, 2, 3]) ** 2
    assert work(model, 2.0, [], [[1.0], [2.0], [3.0]]) == pytest.approx(5 * square.integ()(2.0), rel=1e-14)


def test_what_comes_in_besides_bonds() -> None:
    """x' = u - 3 x + 2 f stores x^2 / 2: a damper takes 3 x^2, f brings 2 f x; x = 1 stays there for 1 s."""
    inputs, outputs = ["u", "f"], ["y"]
    model = hk.StateSpace([[-3]], [[1, 2]], [[1]], x0=[1], inputs=inputs, outputs=outputs, energy=[[1]])
    assert flows(model, 1.0, [1.0], [[3.0, 0.0]]) == pytest.approx([3.0, -3.0], rel=1e-13)
    assert flows(model, 1.0, [1.0], [[1.0, 1.0]]) == pytest.approx([1.0, -1.0], rel=1e-13)


def test_what_loses_nothing_has_nothing_besides() -> None:
    """To the last bit, whatever the numbers: 0.1 kg on 1000 N/m."""
    A, Q = [[0, -10], [1000 / 3, 0]], [[0.1, 0], [0, 0.003]]
    model = hk.StateSpace(A, [[10], [0]], [[1, 0]], inputs=["u"], outputs=["y"], energy=Q)
    assert flows(model, 7.0, [1e6, 3e5], [[1e5], [2e4]])[1] == 0.0
