"""Strengths of connections against responses worked out by hand, real runs, and the factors of real steps."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hocket
from hocket import Composite, Jacobi, Polynomial, Scenario, StateSpace
from hocket.analysis.stability import spectral_radius
from hocket.search.nest.connection_strengths import strengths
from systems import three_masses


def cascade(step, extrapolation="hold"):
    """An oscillator y'' = -4 y drives x' = -x + y: one connection, so its strength is the whole error."""
    a = StateSpace(A=[[0, 1], [-4, 0]], C=[[1, 0]], x0=[1, 0], outputs=["y"])
    b = StateSpace(A=[[-1]], B=[[1]], C=[[1]], inputs=["u"], outputs=["x"])
    return Composite(Scenario({"a": a, "b": b}, {"b.u": "a.y"}), step, Jacobi(), extrapolation)


@pytest.mark.parametrize(
    ("extrapolation", "defect"),
    [
        ("hold", lambda H, t: -H / 2 * -2 * np.sin(2 * t)),
        (Polynomial(1), lambda H, t: -5 / 12 * H**2 * -4 * np.cos(2 * t)),
    ],
)
def test_the_error_is_the_response_to_the_defect(extrapolation, defect):
    """e' = -e + d(t) with the mean defect of a hold, of a line: solved by an integrator."""
    H, stop = 0.05, 10.0
    (found,) = strengths(cascade(Fraction(H).limit_denominator(), extrapolation), Fraction(10)).connections
    t = np.linspace(0, stop, 4001)
    e = solve_ivp(lambda s, e: -e + defect(H, s), (0, stop), [0.0], t_eval=t, rtol=1e-10, atol=1e-13).y[0]
    x = (np.cos(2 * t) + 2 * np.sin(2 * t) - np.exp(-t)) / 5
    assert (found.source, found.target) == ("a.y", "b.u")
    assert found.ends == ("a", "b")
    assert found.error == pytest.approx(np.abs(e).max() / np.abs(x).max(), rel=2e-3)


@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
def test_the_error_is_that_of_a_run(extrapolation):
    """With short steps the first order is all there is."""
    composite = cascade("5 ms", extrapolation)
    (found,) = strengths(composite, Fraction(5)).connections
    t, x = hocket.run(composite, 5)["b.x"]
    truth = (np.cos(2 * t) + 2 * np.sin(2 * t) - np.exp(-t)) / 5  # x' = -x + cos 2t, x(0) = 0
    assert found.error == pytest.approx(np.abs(x - truth).max() / np.abs(truth).max(), rel=0.02)


@pytest.mark.parametrize("outputs", ["stale", "consistent"])
@pytest.mark.parametrize("scenario", [1, 2, 3])
def test_growth_is_that_of_real_steps(scenario, outputs):
    """What all connections add is what the factor of a short step shows, but for the second order."""

    def exactly(step):
        flat = three_masses(scenario, step, outputs=outputs)
        models = {
            name: StateSpace(A=m.A, B=m.B, C=m.C, D=m.D, x0=m.x0, inputs=m.inputs, outputs=m.outputs)
            for name, m in flat.scenario.models.items()
        }
        return flat.with_changes(scenario=flat.scenario.with_models(models))

    wrong = []
    for step in ("2 ms", "1 ms"):
        composite = exactly(step)
        found = strengths(composite, Fraction(5))
        own = found.growth - sum(each.growth for each in found.connections)
        real = math.log(spectral_radius(composite)) / float(composite.step)
        added = sum(each.growth for each in found.connections)
        wrong.append(abs(real - own - added) / abs(added))
    assert wrong[1] < 0.02
    assert wrong[1] < 0.6 * wrong[0]


def test_the_stiff_pair_is_the_strong_one():
    """Scenario 2 of the thesis: c23 is a hundred times c12."""
    found = strengths(three_masses(2, "0.1 s"), Fraction(25))
    sums = {}
    for (a, b), error in found.pairs().items():
        sums[frozenset((a, b))] = sums.get(frozenset((a, b)), 0.0) + error
    stiff, soft = sums[frozenset(("second", "third"))], sums[frozenset(("first", "second"))]
    assert stiff > 10 * soft
    assert [row["error"] for row in found.rows()] == sorted((r["error"] for r in found.rows()), reverse=True)
    assert sum(row["of all"] for row in found.rows()) == pytest.approx(1.0)
    assert found.counts() == {
        ("first", "second"): 2,
        ("second", "first"): 1,
        ("second", "third"): 2,
        ("third", "second"): 1,
    }
