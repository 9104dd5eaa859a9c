"""Boundaries of stability, drawn where they are."""

from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.stability import spectral_radius
from hocket.analysis.stability_intervals import stable_intervals
from hocket.analysis.stability_map import VariedRadius, stability_map, variable_names, with_values
from hocket.errors import ScenarioError
from hocket.planning.parameters import with_cold_starts
from systems import THREE, TWO, LinearPen, three_masses, two_masses


def test_the_boundary_is_where_the_radius_is_one():
    crossing = TWO["values"]["intervals_h8.9_exact_first_crossing"]["Seidel12.ck"]
    found = stability_map(
        lambda ck, m: two_masses("Seidel12", 8.9, ck=ck, m1=m), [0.5, 1.0, 1.5], [10.0, 10.5], ("ck", "m1")
    )
    assert found.rho.shape == (2, 3)
    on_the_side = [point for piece in found.boundary for point in piece if point[1] == 10.0]
    assert [x for x, _ in on_the_side] == [pytest.approx(crossing, abs=1e-7)]


def test_a_filter_beyond_one_diverges_at_any_step():
    """Formulas, section 1: alpha = 1 initialises inconsistently, beyond it diverges."""
    found = stability_map(
        lambda alpha, h: two_masses("Control21", h, (0.0, 0.0, alpha)), [0.85, 1.05], [0.5, 2.0, 4.0]
    )
    points = np.array([point for piece in found.boundary for point in piece])
    np.testing.assert_allclose(points[:, 0], 1.0, atol=1e-7)


def test_it_can_be_drawn(tmp_path):
    found = stability_map(lambda ck, h: two_masses("Seidel12", h, ck=ck), [0.5, 1.5], [8.0, 9.0], ("ck", "h"))
    found.plot(tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"
    assert found.points()[0].keys() == {"ck", "h", "spectral radius"}


def integrator(gain=4.0, step=0.1):
    """x' = u, u = -gain x held over a step: the factor is 1 - gain h."""
    plant = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    models = {"plant": plant, "gain": hk.Gain(-gain)}
    return hk.Composite(hk.Scenario(models, {"plant.u": "gain.y", "gain.u": "plant.x"}), step)


def test_a_hyperbola():
    """Over step and gain the boundary is where their product is 2, on every side of a cell it crosses."""
    rho = VariedRadius(integrator(), ["step", "gain.D[1,1]"])
    steps, gains = np.geomspace(0.1, 1.0, 9), np.linspace(-10.0, -1.0, 8)
    told = []
    found = stability_map(
        rho, steps, gains, ("step", "gain"), (True, False), lambda *counts: told.append(counts)
    )
    expected = np.abs(1.0 + gains[:, None] * steps)
    np.testing.assert_allclose(found.rho, expected, rtol=1e-9, atol=1e-7)
    points = np.array([point for piece in found.boundary for point in piece])
    np.testing.assert_allclose(points[:, 0] * -points[:, 1], 2.0, rtol=1e-7)
    assert len(found.boundary) >= 8
    assert told[-1][0] == len(told)
    assert all(done <= wanted for done, wanted in told)


def test_filters_vary_by_the_input_they_drive():
    """Beyond alpha = 1 a filter diverges (formulas, section 1), and below -1 it swings up."""
    composite = two_masses("Control21", 0.5)
    found = stable_intervals(VariedRadius(composite, ["two.F.alpha"]), 0.2, 1.5, name="two.F.alpha")
    assert found.intervals[-1].high == pytest.approx(1.0, abs=1e-6)
    here = VariedRadius(composite, ["two.F.alpha", "step"])(0.6, 0.5)
    assert here == pytest.approx(spectral_radius(composite), rel=1e-9)


def test_steps_of_levels():
    """They become the next shorter ones that divide the step around them: rho as in the golden file."""
    golden = THREE["spectral_radius_of_one_outer_step"]["2"]
    rho = VariedRadius(three_masses(2, "0.1 s", "0.1 s"), ["pair.step"])
    assert rho(0.025) == pytest.approx(golden["0.1/0.025"], abs=1e-6)
    assert rho(0.0333) == rho(0.025)
    assert rho(0.034) != rho(0.025)
    both = VariedRadius(three_masses(2, "0.1 s", "0.05 s"), ["step", "pair.step"])
    assert both(0.2, 0.025) == pytest.approx(golden["0.2/0.025"], abs=1e-6)
    scaled = VariedRadius(three_masses(2, "0.1 s", "0.025 s"), ["step"])
    assert scaled(0.2) == pytest.approx(golden["0.2/0.05"], abs=1e-6)


def test_parameters_of_models_that_are_not_linear():
    """x' = -k x^2 from x = 1 by Euler steps of 0.1: the factor is 1 - 0.2 k."""
    ode = hk.Ode(
        lambda t, x, u, k: [-k * x[0] ** 2], None, [1.0], [], ["y"], method="euler", step="0.1 s", k=1.0
    )
    composite = hk.Composite(hk.Scenario({"a": ode}), "0.1 s")
    found = stable_intervals(VariedRadius(composite, ["a.k"]), 1.0, 30.0, name="a.k")
    (only,) = found.intervals
    assert only.high == pytest.approx(10.0, rel=1e-5)


def test_what_cannot_vary():
    composite = three_masses(2, "0.1 s", "0.025 s")
    for name, what in (
        ("pair.third.A[3,1]", "has no entry"),
        ("pair.third.alpha", "has no parameter `alpha`"),
        ("pair.fourth.k", "does not lead to a model"),
    ):
        with pytest.raises(ScenarioError, match=what):
            with_values(composite, {name: 1.0})
    smooth = hk.Composite(integrator().scenario, 0.1, extrapolation="linear")
    with pytest.raises(ScenarioError, match="the extrapolation is Polynomial"):
        with_values(smooth, {"plant.u.alpha": 0.5})


def test_a_map_that_is_known_nowhere_says_why():
    with pytest.raises(ScenarioError, match="has no entry"):
        stability_map(VariedRadius(integrator(), ["step", "gain.D[2,2]"]), [0.1, 0.2], [1.0, 2.0])


def test_gaps_are_drawn_as_gaps(tmp_path):
    def rho(x, y):
        if x < 1.5:
            raise ScenarioError("not here")
        return x * y

    found = stability_map(rho, [1.0, 2.0, 3.0], [0.2, 0.4, 0.6])
    assert np.isnan(found.rho[:, 0]).all()
    assert all(x >= 2.0 for piece in found.boundary for x, _ in piece)
    found.plot(tmp_path / "gaps.png")
    assert (tmp_path / "gaps.png").stat().st_size > 5000


@pytest.mark.parametrize("seed", range(6))
def test_a_cold_start_has_the_same_steps(seed):
    """Maps are read without a past at the start: Phi is that of steady operation."""
    pen = LinearPen(np.random.default_rng(seed))
    composite = pen.level(Fraction(1, 10), depth=1 + seed % 2, outermost=True)[0]
    np.testing.assert_allclose(
        read_linear(with_cold_starts(composite)).Phi, read_linear(composite).Phi, rtol=1e-12, atol=1e-12
    )


def test_the_filter_of_a_level_inside_varies():
    nested = three_masses(1, "0.2 s", "0.05 s")
    made = with_values(nested, {"pair.alpha": 0.5})
    assert made.scenario.models["pair"].extrapolation == hk.Nepce(0.5)
    assert made.extrapolation == nested.extrapolation
    assert "pair.alpha" in variable_names(nested)
