"""How iterations settle: factors that can be worked out by hand, and what a run then needs."""

import numpy as np
import pytest

import hocket as hk
from hocket import GaussSeidel, Iterate, Jacobi
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.stability import IterationConvergence, iteration_convergence, stability
from hocket.plan.accelerators import Relax
from systems import INTEGRATOR, lag


def loop(one, other):
    """Two lags whose outputs react at once: y = x + gain u."""
    models = {
        name: hk.StateSpace(
            A=[[-1.0]], B=[[0.0]], C=[[1.0]], D=[[gain]], x0=[1.0], inputs=["u"], outputs=["y"]
        )
        for name, gain in (("a", one), ("b", other))
    }
    return hk.Scenario(models, {"a.u": "b.y", "b.u": "a.y"})


def found(scenario, **how):
    stale = Jacobi(outputs="stale")
    (each,) = iteration_convergence(
        read_linear(hk.Composite(scenario, 0.1, Iterate(how.pop("inner", stale), **how)))
    )
    return each


@pytest.mark.parametrize(("one", "other"), [(0.5, 0.4), (0.9, -0.9), (3.0, -2.0)])
def test_factors_of_a_loop_of_gains(one, other):
    plain = np.sqrt(abs(one * other))
    assert found(loop(one, other), accelerate=None).factor == pytest.approx(plain, rel=1e-9)
    sequence = found(loop(one, other), accelerate=None, inner=GaussSeidel(outputs="stale"))
    assert sequence.factor == pytest.approx(abs(one * other), rel=1e-9)
    relaxed = found(loop(one, other), accelerate=Relax(0.3))
    roots = np.roots([1.0, 0.0, -one * other])  # the eigenvalues of K
    assert relaxed.factor == pytest.approx(np.abs(0.7 + 0.3 * roots).max(), rel=1e-9)
    assert relaxed.plain == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("accelerate", [None, Relax(0.8)])
def test_the_sweeps_that_were_foretold_are_needed(accelerate):
    told = found(loop(0.7, 0.6), accelerate=accelerate, tolerance=1e-9)
    scenario = loop(0.7, 0.6)
    how = Iterate(Jacobi(outputs="stale"), 1e-9, 100, accelerate)
    run = hk.run(hk.Composite(scenario, 0.1, how), 1)
    counted = run.info["counts"]["sweeps"][""]
    # what is wrong at first is well below one
    assert told.sweeps - 15 <= counted["most"] <= told.sweeps


def test_a_check_says_that_an_iteration_does_not_settle():
    checked = hk.check(hk.Composite(loop(3.0, -2.0), 0.1, Iterate(Jacobi(outputs="stale"), accelerate=None)))
    assert not checked.good
    first = checked.verdict()[0]
    assert first.startswith("iteration diverges: contraction factor 2.45 in the outermost level ")
    assert "(acceleration: none)" in first
    led = hk.check(hk.Composite(loop(3.0, -2.0), 0.1, Iterate(Jacobi(outputs="stale"))))
    assert led.good
    assert led.iterations[0].how == "quasi-Newton"


def test_the_run_that_was_called_hopeless_is():
    how = Iterate(Jacobi(outputs="stale"), accelerate=None)
    with pytest.raises(hk.ConvergenceError, match="does not contract"):
        hk.run(hk.Composite(loop(3.0, -2.0), 0.1, how), 1)
    run = hk.run(hk.Composite(loop(3.0, -2.0), 0.1, Iterate(Jacobi(outputs="stale"))), 1)
    # y_a = x + 3 y_b and y_b = x - 2 y_a: y_a = 4 x / 7
    assert run.final("a.y") == pytest.approx(4.0 / 7.0 * np.exp(-1.0), rel=1e-7)


@pytest.mark.parametrize(
    ("one", "other", "tolerance", "sweeps"),
    [
        (0.5, 0.5, 1e-3, 2 + 10),  # 2^-10 is the first power below 1e-3
        (0.5, 0.5, 1e-6, 2 + 20),
        (0.1, 0.1, 5e-4, 2 + 4),
        (0.9, 0.9, 1e-9, 2 + 197),
        (0.5, 0.0, 1e-3, 2 + 1),  # what was given is found at once
        (1.0, -1.0, 1e-3, None),
        (3.0, 2.0, 1e-3, None),
    ],
)
def test_sweeps_follow_from_the_factor(one, other, tolerance, sweeps):
    each = found(loop(one, other), accelerate=None, tolerance=tolerance)
    assert each.sweeps == sweeps
    assert each.settles is (sweeps is not None)
    assert each.unknowns == 2


@pytest.mark.parametrize(
    ("one", "other", "accelerate", "how", "sweeps"),
    [
        (0.5, 0.4, "quasi-newton", "quasi-Newton", 2 + 3),  # the eigenvalues differ by their sign
        (3.0, -2.0, "quasi-newton", "quasi-Newton", 2 + 3),  # a pair that is conjugate complex
        (0.5, 0.0, "quasi-newton", "quasi-Newton", 3),  # zeros are no direction
        (1e-3, 1e-3, "quasi-newton", "quasi-Newton", 2 + 3),
        (1e-7, 1e-7, "quasi-newton", "quasi-Newton", 3),
        (0.5, 0.4, "newton", "Newton", 3),
        (0.5, 0.4, "aitken", "Aitken", None),
    ],
)
def test_what_learns_on_the_way_has_no_factor(one, other, accelerate, how, sweeps):
    each = found(loop(one, other), accelerate=accelerate)
    assert (each.factor, each.how, each.sweeps, each.settles) == (None, how, sweeps, True)


def test_a_factor_of_one_does_not_settle():
    assert not IterationConvergence("", 1.0, 1.0, "plain", 1, None).settles
    assert IterationConvergence("", 1.0, np.nextafter(1.0, 0.0), "plain", 1, None).settles


def test_where_the_whole_is_on_the_edge_the_feedback_loop_is_judged_by_itself():
    """An integrator behind two lags in a loop: it keeps what it has, which says nothing of the loop."""
    models = {"a": lag(1.0, 0.5, 1.0), "b": lag(3.0, 1.5, -1.0)}
    loop = {"a.u": "b.y", "b.u": "a.y"}
    alone = stability(hk.Composite(hk.Scenario(models, loop), "0.1 s"))
    assert alone.feedback_rho is None  # rho below one tells all
    whole = hk.Scenario({**models, "sum": INTEGRATOR}, {**loop, "sum.u": "a.y"})
    found = stability(hk.Composite(whole, "0.1 s"))
    assert (found.rho, found.stable) == (pytest.approx(1.0, abs=1e-12), True)
    assert found.feedback_rho == pytest.approx(alone.rho, rel=1e-9)
    assert found.feedback_rho < 0.99
