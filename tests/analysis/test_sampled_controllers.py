"""Sampled P controllers around a lag: verdict and error of 63 combinations against the exact recursion."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import hocket as hk
from systems import slow_after

GAINS = (0.3, 0.7, 1.0, 2.0, 4.0, 8.0, 15.0)
PACES = tuple(
    (Fraction(1, period), Fraction(1, step))
    for period, step in ((10, 10), (10, 20), (10, 50), (5, 10), (5, 20), (2, 10), (2, 20), (20, 20), (20, 40))
)
X0, STOP = 0.2, 5


class Proportional:
    """Shows what follows from its sample at once."""

    def __init__(self, k):
        self.k = k

    def start(self, t):
        pass

    def output(self, t, u):
        return [self.k * (1.0 - float(u[0][0]))]

    def step(self, t, h, u):
        return t + h


class Computed(Proportional):
    """Shows it a period later: by itself it moves only from sample to sample."""

    def start(self, t):
        self.y = 0.0

    def output(self, t):
        return [self.y]

    def step(self, t, h, u):
        self.y = self.k * (1.0 - float(u[0][0]))
        return t + h


def recur(late: bool, k: float, ratio: int, steps: int, factor: float) -> np.ndarray:
    """Return the lag at every step: x becomes factor x + (1 - factor) u, u is sampled every `ratio` steps."""
    x, u, found, path = X0, 0.0, 0.0, [X0]
    for number in range(steps):
        if number % ratio == 0:
            u, found = (found if late else k * (1.0 - x)), k * (1.0 - x)
        x = factor * x + (1.0 - factor) * u
        path.append(x)
    return np.array(path)


def spectral_radius_of(late: bool, k: float, period: float, factor: float, ratio: int) -> float:
    """Return that of a period of the loop, by its characteristic polynomial."""
    a = factor**ratio
    return float(np.abs(np.roots([1.0, -a, (1.0 - a) * k] if late else [1.0, (1.0 - a) * k - a])).max())


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("k", slow_after(1, GAINS[::-1]))
def test_verdict_and_error_are_those_of_the_recursion(k, late):
    for method, (period, step) in product(("exact", "euler"), PACES):
        plant = hk.StateSpace(
            [[-1.0]], [[1.0]], [[1.0]], x0=[X0], inputs=["u"], outputs=["x"], method=method, step=step
        )
        controller = hk.Python(Computed if late else Proportional, ["e"], ["u"], period, k=k)
        scenario = hk.Scenario({"c": controller, "p": plant}, {"c.e": "p.x", "p.u": "c.u"})
        composite = hk.Composite(scenario, step, hk.GaussSeidel(["c", "p"]))
        found = hk.check(composite, STOP, advise=False, robust=False, pilot=False)
        exactly, ratio, steps = float(np.exp(-float(step))), int(period / step), int(STOP / step)
        factor = exactly if method == "exact" else 1.0 - float(step)
        radius = spectral_radius_of(late, k, float(period), factor, ratio)
        assert found.stability.rho == pytest.approx(radius, rel=1e-6)
        assert found.stability.stable == (radius < 1.0)
        exact, made = (recur(late, k, ratio, steps, each) for each in (exactly, factor))
        (error,) = (each.relative for each in found.prediction.ports if each.port == "p.x")
        true = np.abs(made - exact).max() / np.abs(exact).max()
        assert error == pytest.approx(true, rel=1e-3, abs=1e-9)
