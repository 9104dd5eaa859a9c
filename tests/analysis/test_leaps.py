"""Leaps over micro steps: they are the micro steps, but for rounding."""

from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from hocket.analysis.linear_models import LeapingModel, merge_micro_steps
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import linearise
from hocket.planning.parameters import leaves
from systems import three_masses


def pair(method: str, extrapolation: str, start: str = "window") -> hk.Composite:
    one = hk.StateSpace(
        [[0, 1], [-2, -0.3]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["u"], outputs=["y"],
        method=method, step="10 ms",
    )  # fmt: skip
    two = hk.StateSpace([[-3.0]], [[1.0]], [[1.0]], x0=[0.5], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"one": one, "two": two}, {"one.u": "two.y", "two.u": "one.y"})
    return hk.Composite(scenario, "0.1 s", extrapolation=extrapolation, start=start)


@pytest.mark.parametrize("method", ["euler", "implicit-euler", "heun", "rk4", "trapezoid", "ab2"])
@pytest.mark.parametrize("extrapolation", ["hold", "linear", "quadratic"])
def test_the_reading_is_the_same(method, extrapolation):
    plain = read_linear(pair(method, extrapolation))
    leapt = read_linear(merge_micro_steps(pair(method, extrapolation)))
    assert plain.cells == leapt.cells
    np.testing.assert_allclose(leapt.Phi, plain.Phi, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(leapt.z, plain.z, rtol=1e-11, atol=1e-12)


def test_nested_levels():
    plain, leapt = (read_linear(c) for c in (three_masses(2, "0.1 s", "0.025 s"),) * 2)
    leapt = read_linear(merge_micro_steps(plain.composite))
    np.testing.assert_allclose(leapt.Phi, plain.Phi, rtol=1e-11, atol=1e-13)
    assert all(isinstance(model, LeapingModel) for _, model in leaves(leapt.composite))


def test_what_stands_for_an_ode_leaps_too():
    ode = hk.Ode(
        lambda t, x, u: [1.0 - 2.0 * x[0] + u[0]], None, [0.3], ["u"], ["y"], method="euler", step="10 ms"
    )
    back = hk.StateSpace([[-1.0]], [[1.0]], [[-0.5]], inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"ode": ode, "back": back}, {"ode.u": "back.y", "back.u": "ode.y"})
    made = linearise(hk.Composite(scenario, "0.1 s")).composite
    plain, leapt = read_linear(made), read_linear(merge_micro_steps(made))
    np.testing.assert_allclose(leapt.Phi, plain.Phi, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(leapt.c, plain.c, rtol=1e-12, atol=1e-14)
    factor = (1.0 - 2.0 * 0.01) ** 10
    assert leapt.Phi[:, 0].max() == pytest.approx(factor, rel=1e-6)


def test_micro_steps_that_are_looked_at_are_made():
    model = next(model for _, model in leaves(merge_micro_steps(pair("euler", "hold"))))
    seen = []
    simulator = model.open()
    simulator.start(0.0)
    simulator.micro = lambda t, y: seen.append(t)
    simulator.step(0.0, float(Fraction(1, 10)), np.zeros((1, 1)))
    assert len(seen) == 10
