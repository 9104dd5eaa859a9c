"""Step control keeps its word: errors follow the tolerance, and steps are spent where they are needed."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hocket
from hocket import Composite, GaussSeidel, Hold, Iterate, Jacobi, Ode, Polynomial, Scenario, StateSpace
from hocket.orchestrators.adaptive import Adaptive
from order.test_orders import NESTS, exact, nest
from systems import TWO, slow_after, two_masses

FOUR_DECADES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def slope_of(tolerances, errors):
    """The power of the tolerance with which the error falls: the straight line through all, in logarithms."""
    return np.polyfit(np.log(tolerances), np.log(errors), 1)[0]


def shown(what, tolerances, errors):
    ratios = np.array(errors) / np.array(tolerances)
    print(f"{what}: slope {slope_of(tolerances, errors):.3f}, error/tolerance {ratios.round(3)}")
    return ratios


# oscillators that push each other: the exact answer is known


def oscillators(orchestrator, extrapolation, levels=1):
    return nest(NESTS[levels], Fraction(1), None, "exact", orchestrator, extrapolation)


def error_of_oscillators(composite, end=6, engine="native", paths="abcd"):
    return largest_error(hocket.run(composite, end, engine=engine), paths)


def largest_error(run, paths="abcd"):
    """The largest error of a position of the oscillators, at the times that were kept."""
    return max(np.abs(exact(run[f"{path}.x"].t)[path[-1]] - run[f"{path}.x"].values).max() for path in paths)


@pytest.mark.parametrize(
    ("inner", "extrapolation"),
    [
        (Jacobi(), Hold()),
        (Jacobi(), Polynomial(1)),
        (Jacobi(), Polynomial(2)),
        (GaussSeidel(), Polynomial(1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("estimate", ["defect", "orders"])
def test_the_error_of_oscillators_is_in_proportion_to_the_tolerance(estimate, extrapolation, inner):
    """Held inputs would need a million steps for all four decades, and get two."""
    tolerances = (1e-1, 1e-2, 1e-3) if extrapolation == Hold() else FOUR_DECADES
    errors = [
        error_of_oscillators(oscillators(Adaptive(inner, each, estimate), extrapolation))
        for each in tolerances
    ]
    ratios = shown(f"oscillators, {estimate}, {extrapolation}", tolerances, errors)
    assert 0.9 < slope_of(tolerances, errors) < 1.1
    assert min(ratios) > 0.1
    assert max(ratios) < 10


@pytest.mark.parametrize("controller", ["I", "PID"])
def test_the_other_controllers_keep_the_tolerance_too(controller):
    errors = [
        error_of_oscillators(oscillators(Adaptive(Jacobi(), each, controller=controller), Polynomial(2)))
        for each in FOUR_DECADES
    ]
    ratios = shown(controller, FOUR_DECADES, errors)
    assert 0.9 < slope_of(FOUR_DECADES, errors) < 1.1
    assert min(ratios) > 0.1
    assert max(ratios) < 10


@pytest.mark.parametrize("q", [1, 2])
def test_per_step_the_error_falls_with_a_lower_power(q):
    """A step h may miss h^(q + 1) for h seconds: tol = h^(q + 2), and the whole error is h^(q + 1)."""
    errors = [
        error_of_oscillators(oscillators(Adaptive(Jacobi(), each, per="step"), Polynomial(q)), 10)
        for each in FOUR_DECADES
    ]
    shown(f"per step, degree {q}", FOUR_DECADES, errors)
    assert slope_of(FOUR_DECADES, errors) == pytest.approx((q + 1) / (q + 2), abs=0.06)


def test_an_iteration_is_controlled_by_what_it_corrected():
    """What is predicted misses by more than what is corrected: errors stay below, and still in proportion."""
    inner = Iterate(Jacobi(), 1e-10)
    errors = [
        error_of_oscillators(oscillators(Adaptive(inner, each), Polynomial(1))) for each in FOUR_DECADES
    ]
    ratios = shown("oscillators, iterated", FOUR_DECADES, errors)
    assert 0.9 < slope_of(FOUR_DECADES, errors) < 1.1
    assert max(ratios) < 1


def exactly(A, x0, t):
    """The states of x' = A x at the times t, one row each."""
    values, vectors = np.linalg.eig(A)
    modes = np.linalg.solve(vectors, np.array(x0, dtype=complex))
    return np.real((vectors * modes) @ np.exp(np.outer(values, t)))


def lags(tolerance, extrapolation):
    """Two lags that drive each other, by half steps; what they show is all there is."""
    A = np.array([[-1.0, 0.9], [-1.2, -0.5]])
    models = {
        name: StateSpace(
            A=[[A[n, n]]], B=[[A[n, 1 - n]]], C=[[1.0]], x0=[1.0 - n], inputs=["u"], outputs=["y"]
        )
        for n, name in enumerate("ab")
    }
    scenario = Scenario(models, {"a.u": "b.y", "b.u": "a.y"})
    run = hocket.run(Composite(scenario, 1, Adaptive(Jacobi(), tolerance, "richardson"), extrapolation), 8)
    expected = exactly(A, [1.0, 0.0], run["a.y"].t)
    return np.abs(np.stack([run["a.y"].values, run["b.y"].values]) - expected).max()


@pytest.mark.parametrize("extrapolation", [Hold(), Polynomial(1)], ids=str)
def test_half_steps_tell_the_error_of_what_is_shown(extrapolation):
    tolerances = FOUR_DECADES[:3] if extrapolation == Hold() else (*FOUR_DECADES[1:], 1e-7)
    errors = [lags(each, extrapolation) for each in tolerances]
    ratios = shown(f"lags, richardson, {extrapolation}", tolerances, errors)
    assert 0.9 < slope_of(tolerances, errors) < 1.1
    assert min(ratios) > 0.1
    assert max(ratios) < 10


# two masses on springs


def two_mass_errors(tolerances, estimate="defect", **parameters):
    """The largest error of what the masses of Glumac and Kovacic exchange: place, speed and force."""
    p = TWO["parameters"] | parameters
    one, two = (p["ck"] / p["m1"], p["dk"] / p["m1"]), (p["ck"] / p["m2"], p["dk"] / p["m2"])
    A = np.array(
        [
            [0, 1, 0, 0],
            [-one[0] - p["c1"] / p["m1"], -one[1] - p["d1"] / p["m1"], *one],
            [0, 0, 0, 1],
            [*two, -two[0] - p["c2"] / p["m2"], -two[1] - p["d2"] / p["m2"]],
        ]
    )
    models = two_masses("Seidel12", 1.0, **parameters).scenario.models
    scenario = Scenario(models, {"one.x2": "two.x", "one.v2": "two.v", "two.F": "one.F"})
    for tolerance in tolerances:
        run = hocket.run(Composite(scenario, 1, Adaptive(Jacobi(), tolerance, estimate), Polynomial(1)), 10)
        x1, v1, x2, v2 = exactly(A, TWO["conventions"]["x0 two mass"], run["two.x"].t)
        force = p["ck"] * (x1 - x2) + p["dk"] * (v1 - v2)
        pairs = (("two.x", x2), ("two.v", v2), ("one.F", force))
        yield max(np.abs(run[port].values - expected).max() for port, expected in pairs)


def test_the_error_of_two_light_masses_is_in_proportion_to_the_tolerance():
    errors = list(two_mass_errors(FOUR_DECADES, m1=1, m2=1))
    ratios = shown("two masses of 1 kg", FOUR_DECADES, errors)
    assert 0.9 < slope_of(FOUR_DECADES, errors) < 1.1
    assert min(ratios) > 0.1
    assert max(ratios) < 10


def test_the_error_of_two_heavy_masses_is_below_the_tolerance():
    """Masses of 10 kg answer a wrong force with a tenth: the error is smaller than what was allowed.

    They move by 0.1 m, so a tolerance of 1e-2 is no small one: it begins with 1e-3.
    """
    tolerances = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
    errors = list(two_mass_errors(tolerances))
    ratios = shown("two masses of 10 kg", tolerances, errors)
    assert 0.9 < slope_of(tolerances, errors) < 1.1
    assert min(ratios) > 0.05
    assert max(ratios) < 1


# a stiff oscillator of Van der Pol with a load on a spring

MU, SPRING, STIFF, DAMPING, END = 20.0, 0.1, 4.0, 0.4, 20


def van_der_pol(t, x, u):
    place, speed = x.tolist()
    return [speed, MU * (1.0 - place * place) * speed - place + SPRING * (u.item() - place)]


def loaded(orchestrator, extrapolation, **how):
    machine = Ode(van_der_pol, x0=[2.0, 0.0], inputs=["z"], outputs=["x", "v"], **how)
    load = StateSpace(
        A=[[0, 1], [-STIFF, -DAMPING]], B=[[0], [STIFF]], C=[[1, 0]], inputs=["x"], outputs=["z"]
    )
    scenario = Scenario({"machine": machine, "load": load}, {"machine.z": "load.z", "load.x": "machine.x"})
    return Composite(scenario, 1, orchestrator, extrapolation)


@cache
def reference():
    def rate(t, s):
        x, v, z, w = s
        pull = SPRING * (z - x)
        return [v, MU * (1.0 - x * x) * v - x + pull, w, STIFF * (x - z) - DAMPING * w]

    solved = solve_ivp(
        rate, (0, END), [2, 0, 0, 0], method="LSODA", rtol=1e-11, atol=1e-12, dense_output=True
    )
    assert solved.y[0].min() < -1.9, "it must have jumped"
    return solved.sol


def test_the_error_of_a_stiff_oscillator_is_in_proportion_to_the_tolerance():
    errors = []
    for tolerance in FOUR_DECADES:
        composite = loaded(
            Adaptive(Jacobi(), tolerance), Polynomial(2), method="adaptive", rtol=1e-9, atol=1e-10
        )
        run = hocket.run(composite, END)
        x, _, z, _ = reference()(run["machine.x"].t)
        errors.append(max(np.abs(run["machine.x"].values - x).max(), np.abs(run["load.z"].values - z).max()))
    ratios = shown("Van der Pol", FOUR_DECADES, errors)
    assert 0.9 < slope_of(FOUR_DECADES, errors) < 1.1
    assert min(ratios) > 0.1
    assert max(ratios) < 10


# steps where they are needed

DECAY = 40.0
"""Of a pulse that drives an oscillator: over in a tenth of a second, while the rest takes 20 s."""
TRANSIENT_END = 20


def transient(orchestrator, step):
    source = StateSpace(
        A=[[-DECAY, 0], [0, -0.2]],
        B=[[0], [0.5]],
        C=[[1, 1]],
        x0=[20, 0],
        inputs=["u"],
        outputs=["y"],
    )
    swing = StateSpace(
        A=[[0, 1], [-1, -0.2]], B=[[0], [1]], C=[[1, 0]], x0=[0, 0], inputs=["u"], outputs=["y"]
    )
    scenario = Scenario({"source": source, "swing": swing}, {"source.u": "swing.y", "swing.u": "source.y"})
    return Composite(scenario, step, orchestrator, Polynomial(1))


def transient_error(run):
    """The largest error of what both show, at the times that were kept."""
    A = np.array([[-DECAY, 0, 0, 0], [0, -0.2, 0.5, 0], [0, 0, 0, 1], [1, 1, -1, -0.2]])
    x = exactly(A, [20, 0, 0, 0], run["swing.y"].t)
    return max(np.abs(run["swing.y"].values - x[2]).max(), np.abs(run["source.y"].values - x[0] - x[1]).max())


def adaptive_work(tolerance):
    """Return the error, and the steps of simulators: those taken back count too."""
    run = hocket.run(transient(Adaptive(Jacobi(), tolerance, first="1/1024"), 1), TRANSIENT_END)
    counted = run.info["counts"]["adapted"][""]
    return transient_error(run), 2 * (counted["accepted"] + counted["rejected"])


def fixed_error(per_second):
    """Return the error with so many fixed steps per second."""
    return transient_error(hocket.run(transient(Jacobi(), Fraction(1, per_second)), TRANSIENT_END))


def fixed_work(error):
    """Return the error and the steps of simulators with the longest fixed step whose error is not larger.

    Steps of 1/n s, n whole, are tried from the long ones on: by 2 % shorter each, then all in the last gap.
    """
    longer, per_second = 0, 1
    while fixed_error(per_second) > error:
        longer, per_second = per_second, per_second + max(1, per_second // 50)
    best = next(each for each in range(longer + 1, per_second + 1) if fixed_error(each) <= error)
    return fixed_error(best), 2 * best * TRANSIENT_END


@pytest.mark.parametrize("tolerance", slow_after(2, [1e-1, 1e-2, 1e-3]))
def test_a_transient_takes_half_the_steps_at_the_most(tolerance):
    error, steps = adaptive_work(tolerance)
    fixed, fixed_steps = fixed_work(error)
    print(f"{tolerance:g}: {error:.3g} in {steps}, {fixed:.3g} in {fixed_steps}: {fixed_steps / steps:.1f}")
    assert fixed <= error
    assert fixed >= 0.9 * error, "the step of the other could be longer"
    assert fixed_steps >= 2 * steps
