"""FMUs with nothing but set, step and get: their coupling is judged as if the matrices were known."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from fmus.build import build
from hocket.analysis.coupling_check import check
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import linearise
from hocket.errors import ScenarioError
from systems import FALLING, INTEGRATOR, TWO, TWO_MASS_WIRES, spectral_radius

STEPS = [0.1, 0.3, 1.0, 3.0, 10.0]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Builds each FMU once."""
    folder = tmp_path_factory.mktemp("fmus")

    @cache
    def path(name, version=2):
        return build(name, version, folder=folder / str(version))

    return path


def identified_spectral_radius(composite):
    return spectral_radius(read_linear(linearise(composite).composite).core)


def masses(built, h, orchestrator, version=2, substeps=1, **options):
    models = {
        name: hk.Fmu(built(name, version), substeps=substeps, **options) for name in ("first", "second")
    }
    return hk.Composite(hk.Scenario(models, TWO_MASS_WIRES), h, orchestrator)


def runge_kutta(A, B, h, substeps=1):
    """The classical method for x' = A x + B u, u held: x' = R x + S u."""
    A, B, h = np.array(A, dtype=float), np.array(B, dtype=float), h / substeps
    powers = [np.linalg.matrix_power(h * A, k) for k in range(5)]
    R = sum(power / math.factorial(k) for k, power in enumerate(powers))
    S = h * sum(power / math.factorial(k + 1) for k, power in enumerate(powers[:4])) @ B
    return np.linalg.matrix_power(R, substeps), sum(np.linalg.matrix_power(R, k) for k in range(substeps)) @ S


def exponential(A, B, h):
    """The same without an error: of x and u together, u held."""
    n, m = np.shape(B)
    whole = expm(h * np.block([[np.array(A, dtype=float), np.array(B)], [np.zeros((m, n + m))]]))
    return whole[:n, :n], whole[:n, n:]


def exact_spectral_radius(h, orchestrator, substeps=1, exactly=False):
    """By hand: the masses of the FMUs under held inputs, force = C x1 + D x2."""
    step = exponential if exactly else partial(runge_kutta, substeps=substeps)
    R1, S1 = step([[0, 1], [-0.2, -0.3]], [[0, 0], [0.1, 0.2]], h)
    R2, S2 = step([[0, 1], [-0.1, -0.2]], [[0], [0.1]], h)
    C, D = np.array([[1.0, 2.0]]), np.array([[-1.0, -2.0]])
    if orchestrator == "jacobi":
        return spectral_radius(np.block([[R1, S1], [S2 @ C, R2 + S2 @ D]]))
    return spectral_radius(np.block([[R1, S1], [S2 @ C @ R1, R2 + S2 @ (C @ S1 + D)]]))


SEIDEL = hk.GaussSeidel(["first", "second"])


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("h", STEPS)
def test_the_coupling_of_two_fmus_is_that_of_their_matrices(built, h, version):
    for orchestrator in ("jacobi", SEIDEL):
        expected = exact_spectral_radius(h, orchestrator)
        assert identified_spectral_radius(masses(built, h, orchestrator, version)) == pytest.approx(
            expected, rel=1e-8
        )


def test_the_verdict_is_right_at_every_step(built):
    steps = [1.0, 2.0, 4.0, 5.0, 5.5, 6.0, 6.25, 6.5, 7.0, 8.0]
    expected = [exact_spectral_radius(h, "jacobi") < 1.0 for h in steps]
    assert len(set(expected)) == 2
    assert [identified_spectral_radius(masses(built, h, "jacobi")) < 1.0 for h in steps] == expected


@pytest.mark.parametrize("orchestrator", ["jacobi", SEIDEL], ids=["jacobi", "seidel"])
def test_from_a_tenth_to_ten_seconds_the_radius_and_the_verdict_are_right(built, orchestrator):
    """By `hocket check`, at 25 steps: against matrix exponentials, which 20 steps inside come near."""
    verdicts = set()
    for h in np.geomspace(0.1, 10.0, 25):
        step = Fraction(float(h)).limit_denominator(10_000)
        found = check(masses(built, step, orchestrator, substeps=20), advise=False, robust=False)
        expected = exact_spectral_radius(float(step), orchestrator, exactly=True)
        assert found.stability.rho == pytest.approx(expected, abs=1e-3)
        assert abs(expected - 1.0) > 1e-3
        assert found.good == (expected < 1.0)
        assert found.verdict()[0].startswith("stable" if expected < 1.0 else "unstable")
        verdicts.add(found.good)
    assert verdicts == {True, False}


@pytest.mark.parametrize("h", [0.1, 1.0, 3.0, 8.9])
@pytest.mark.parametrize("order", ["12", "21"])
def test_the_published_radii_come_out_of_black_boxes(built, h, order):
    names = ["first", "second"] if order == "12" else ["second", "first"]
    composite = masses(built, h, hk.GaussSeidel(names, outputs="stale"), substeps=200)
    published = TWO["values"][f"Seidel{order}_h{h}"]["rho"]
    assert identified_spectral_radius(composite) == pytest.approx(published, rel=1e-6)


def test_an_fmu_that_is_not_evaluated_again_remembers_its_inputs(built):
    """The force is then as old as the step: C x1 + D x2 of the step before."""
    h = 1.0
    composite = masses(built, h, "jacobi", reevaluate=False)
    R1, S1 = runge_kutta([[0, 1], [-0.2, -0.3]], [[0, 0], [0.1, 0.2]], h)
    R2, S2 = runge_kutta([[0, 1], [-0.1, -0.2]], [[0], [0.1]], h)
    C, D = np.array([[1.0, 2.0]]), np.array([[-1.0, -2.0]])
    zero = np.zeros
    Phi = np.block([[R1, S1, zero((2, 1))], [zero((2, 2)), R2, S2], [C @ R1, C @ S1 + D, zero((1, 1))]])
    assert identified_spectral_radius(composite) == pytest.approx(spectral_radius(Phi), rel=1e-8)


@pytest.mark.parametrize("h", ["1 ms", 0.1, 1, 10])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_bouncing_ball_is_refused_with_the_reason(built, h, version):
    ball = hk.Fmu(built("ball", version))
    found = linearise(hk.Composite(hk.Scenario({"ball": ball}), h))
    (leaf,) = found.leaves
    assert leaf.how == "refused"
    assert math.isnan(leaf.fit)
    assert "bounces" in leaf.refused or "events" in leaf.refused
    with pytest.raises(ScenarioError, match="`ball` has no linear model"):
        _ = found.composite


def test_an_fmu_takes_polynomials(built):
    ramp = hk.Fmu(built("ramp"))

    def coupled(model):
        wires = {"it.u": "lag.y", "lag.u": "it.y"}
        scenario = hk.Scenario({"it": model, "lag": FALLING}, wires)
        return hk.Composite(scenario, 0.3, extrapolation=hk.Polynomial(2))

    assert identified_spectral_radius(coupled(ramp)) == pytest.approx(
        spectral_radius(read_linear(coupled(INTEGRATOR)).core), abs=1e-9
    )
