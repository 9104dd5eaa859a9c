"""Predicted errors of controllers that announce their samples: delay, inside levels; exact recursions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk

X0, STOP = 0.2, 3
LOOP = {"c.e": "p.x", "p.u": "c.u"}


class Proportional:
    """Shows what follows from its sample."""

    def __init__(self, k):
        self.k = k

    def start(self, t):
        pass

    def output(self, t, u):
        return [self.k * (1.0 - float(u[0][0]))]

    def step(self, t, h, u):
        return t + h


def build_loop(k: float, period: Fraction, step: Fraction, method: str, delay: Fraction, level: bool):
    own = None if method == "exact" else step
    plant = hk.StateSpace(
        [[-1.0]], [[1.0]], [[1.0]], x0=[X0], inputs=["u"], outputs=["x"], method=method, step=own
    )
    controller = hk.Python(Proportional, ["e"], ["u"], period, delay=delay, k=k)
    if not level:
        return hk.Composite(hk.Scenario({"c": controller, "p": plant}, LOOP), step, hk.Jacobi())
    inside = hk.Composite(hk.Scenario({"c": controller}), step, hk.Jacobi())
    wires = {"in.c.e": "p.x", "p.u": "in.c.u"}
    return hk.Composite(hk.Scenario({"in": inside, "p": plant}, wires), step, hk.Jacobi())


def recur(k: float, ratio: int, late: int, steps: int, factor: float) -> np.ndarray:
    """Return the lag at every step; a sample every `ratio` steps is seen `late` steps later, k before."""
    x, u, path, shown = X0, k, [X0], {}
    for number in range(steps):
        if number % ratio == 0:
            shown[number + late] = k * (1.0 - x)
        u = shown.get(number, u)
        x = factor * x + (1.0 - factor) * u
        path.append(x)
    return np.array(path)


@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize(("k", "ratio", "late"), [(0.7, 2, 1), (2.0, 4, 3), (4.0, 2, 2), (8.0, 4, 6)])
def test_verdict_and_error_are_those_of_the_recursion(k, ratio, late, level):
    step = Fraction(1, 20)
    for method in ("exact", "euler"):
        composite = build_loop(k, ratio * step, step, method, late * step, level)
        found = hk.check(composite, STOP, advise=False, robust=False, pilot=False)
        exactly = float(np.exp(-float(step)))
        factor = exactly if method == "exact" else 1.0 - float(step)
        count = int(STOP / step)
        exact, made = (recur(k, ratio, late, count, each) for each in (exactly, factor))
        error = next(each for each in found.prediction.ports if each.port == "p.x")
        assert error.largest == pytest.approx(np.abs(made - exact).max(), rel=1e-6, abs=1e-11)
        assert error.scale == pytest.approx(np.abs(exact).max(), rel=1e-6)
        tail = np.abs(np.diff(recur(k, ratio, late, 4000, factor)))
        grows = tail[2000:].max() > tail[:500].max() or not np.isfinite(tail).all()
        assert found.stability.stable != grows


def test_rows_at_samples_inside_a_macro_step_are_predicted():
    """The output changes in the middle of each step, where a run keeps a row: a kink of the lag's motion."""
    step = Fraction(1, 10)
    plants = {
        "p": hk.StateSpace([[-1.0]], [[1.0, 1.0]], [[1.0]], x0=[X0], inputs=["u", "v"], outputs=["x"]),
        "q": hk.StateSpace([[-0.5]], [[-1.0]], [[1.0]], x0=[1.0], inputs=["x"], outputs=["v"]),
        "c": hk.Python(Proportional, ["e"], ["u"], step, delay=step / 2, k=1.0),
    }
    wires = {**LOOP, "p.v": "q.v", "q.x": "p.x"}
    composite = hk.Composite(hk.Scenario(plants, wires), step, hk.Jacobi())
    found = hk.check(composite, 1, advise=False, robust=False, pilot=False)
    run = hk.run(composite, 1)
    A, B = np.array([[-1.0, 1.0], [-1.0, -0.5]]), np.array([1.0, 0.0])
    half = expm(np.block([[A, B[:, None]], [np.zeros((1, 3))]]) * 0.05)
    x, shown, exact = np.array([X0, 1.0]), 1.0, {0.0: X0}
    for number in range(20):
        if number % 2 == 0:
            taken = 1.0 - x[0]
        else:
            shown = taken
        x = (half @ np.append(x, shown))[:2]
        exact[round(0.05 * (number + 1), 9)] = x[0]
    t, values = run["p.x"]
    true = max(abs(v - exact[round(at, 9)]) for at, v in zip(t, values, strict=True))
    assert found.prediction["p.x"].largest == pytest.approx(true, rel=1e-9)
    assert len({round(at, 9) for at in t}) == 21
