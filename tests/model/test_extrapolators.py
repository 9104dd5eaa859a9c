"""Polynomials through samples, in fractions wherever the answer must be exact."""

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial as Reference

from hocket.errors import ScenarioError
from hocket.model.extrapolators import (
    Hermite,
    Hold,
    Nepce,
    Polynomial,
    interpolate_samples,
    newton,
    shift_origin,
    value_at,
)
from hocket.model.protocols import Sample
from hocket.model.registry import look_up

few = settings(max_examples=40, deadline=None)
fractions = st.builds(F, st.integers(-50, 50), st.integers(1, 12))
curves = st.lists(fractions, min_size=1, max_size=6)
"""Coefficients, lowest power first."""


def distinct(count):
    return st.lists(fractions, min_size=count, max_size=count, unique=True).map(sorted)


def at(curve, s):
    return sum(c * s**k for k, c in enumerate(curve))


def slope_at(curve, s):
    return sum(k * c * s ** (k - 1) for k, c in enumerate(curve) if k)


def sampled(curve, nodes):
    return [Sample(s, at(curve, s), slope_at(curve, s)) for s in nodes]


@few
@given(curves, st.data())
def test_a_polynomial_is_found_again_from_its_samples(curve, data):
    nodes = data.draw(distinct(len(curve)))
    assert interpolate_samples(sampled(curve, nodes)) == curve


@few
@given(curves, st.data())
def test_more_samples_than_needed_change_nothing(curve, data):
    nodes = data.draw(distinct(len(curve) + 2))
    assert interpolate_samples(sampled(curve, nodes)) == [*curve, 0, 0]


@pytest.mark.parametrize("degree", range(6))
def test_floats_agree_with_the_fit_of_numpy(degree):
    rng = np.random.default_rng(degree)
    s, y = np.arange(-degree, 1) * 0.01, rng.uniform(-1, 1, degree + 1)
    mine = interpolate_samples([Sample(*pair) for pair in zip(s, y, strict=True)])
    reference = Reference.fit(s, y, degree).convert().coef
    here = np.linspace(-0.05, 0.01, 7)
    assert [value_at(mine, x) for x in here] == pytest.approx(
        np.polynomial.polynomial.polyval(here, reference), abs=1e-9
    )


def test_rows_are_fitted_number_by_number():
    """In the linear reading a value is a row."""
    rows = np.array([[1.0, 2.0, -3.0], [0.5, 0.25, 8.0], [4.0, -1.0, 0.0]])
    nodes = [-1.0, -0.5, 0.0]
    together = interpolate_samples([Sample(s, row) for s, row in zip(nodes, rows, strict=True)])
    for column in range(3):
        alone = interpolate_samples([Sample(s, row[column]) for s, row in zip(nodes, rows, strict=True)])
        assert [c[column] for c in together] == alone


@few
@given(curves, fractions)
def test_the_value_is_the_sum_of_the_powers(curve, s):
    assert value_at(curve, s) == at(curve, s)


@few
@given(curves, fractions, fractions)
def test_a_shifted_polynomial_is_the_same_curve(curve, ds, s):
    moved = shift_origin(curve, ds)
    assert at(moved, s - ds) == at(curve, s)
    assert len(moved) == len(curve)
    assert shift_origin(moved, -ds) == curve


@few
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=6), st.integers(-9, 9))
def test_a_shift_is_a_composition_of_polynomials(curve, ds):
    composed = Reference(curve)(Reference([ds, 1])).coef
    assert shift_origin(curve, ds) == [*composed, *[0] * (len(curve) - len(composed))]


def test_a_shift_leaves_its_argument_alone():
    curve = [1.0, 2.0, 3.0]
    for ds in (0.0, 0.5):
        assert shift_origin(curve, ds) is not curve
    assert curve == [1.0, 2.0, 3.0]


@few
@given(st.lists(fractions, min_size=1, max_size=5), st.data())
def test_newton_multiplies_its_factors_out(differences, data):
    nodes = data.draw(st.lists(fractions, min_size=len(differences), max_size=len(differences)))
    s = data.draw(fractions)
    product, total = F(1), F(0)
    for node, difference in zip(nodes, differences, strict=True):
        total += difference * product
        product *= s - node
    assert at(newton(nodes, differences), s) == total


@pytest.mark.parametrize("samples", [1, 2, 3, 4])
@few
@given(data=st.data())
def test_hermite_finds_a_polynomial_of_its_degree_again(samples, data):
    extrapolator = Hermite(samples)
    assert extrapolator.degree == 2 * samples - 1
    curve = data.draw(st.lists(fractions, min_size=2 * samples, max_size=2 * samples))
    nodes = data.draw(distinct(samples))
    assert extrapolator.fit(sampled(curve, nodes), None) == (curve, None)


def test_two_samples_and_their_slopes_are_a_cubic():
    """2 s^3 - s^2 + 3 at s = -1 and 0."""
    samples = [Sample(-1.0, 0.0, 8.0), Sample(0.0, 3.0, 0.0)]
    assert Hermite(2).fit(samples, None)[0] == [3.0, 0.0, -1.0, 2.0]


def test_one_sample_and_its_slope_are_a_tangent():
    assert Hermite(1).fit([Sample(-0.5, 3.0, 4.0)], None)[0] == [5.0, 4.0]


@pytest.mark.parametrize("degree", range(9))
def test_a_polynomial_looks_back_one_sample_more_than_its_degree(degree):
    extrapolator = Polynomial(degree)
    assert (extrapolator.degree, extrapolator.samples, extrapolator.slopes) == (degree, degree + 1, False)
    curve = [F(k + 1) for k in range(degree + 1)]
    assert extrapolator.fit(sampled(curve, [F(k - degree) for k in range(degree + 1)]), None)[0] == curve


@pytest.mark.parametrize("extrapolator", [Polynomial(3), Hermite(3)], ids=str)
def test_a_cold_start_goes_through_what_is_there(extrapolator):
    samples = sampled([F(1), F(2), F(3)], [F(-2), F(-1), F(0)])
    for count in (1, 2, 3):
        curve, _ = extrapolator.fit(samples[:count], extrapolator.start(samples[0].value))
        assert len(curve) == count * (2 if extrapolator.slopes else 1)
        for sample in samples[:count]:
            assert at(curve, sample.s) == sample.value
            if extrapolator.slopes:
                assert slope_at(curve, sample.s) == sample.slope


def test_a_hold_takes_the_newest_value_wherever_it_is():
    assert Hold().fit([Sample(-0.1, 7.0)], None) == ([7.0], None)
    assert Hold().fit([Sample(-0.1, 7.0), Sample(0.1, 9.0)], None) == ([9.0], None)


@few
@given(
    st.sampled_from([0.5, -0.25, 0.75, 0.0, 1.0, -1.5]), st.lists(st.integers(-9, 9), min_size=1, max_size=8)
)
def test_nepce_forgets_the_past_step_by_step(alpha, values):
    """After n values w = a^n y_0 + (1 - a) sum_k a^(n - 1 - k) y_k; exact, for a is a dyadic fraction."""
    extrapolator, n = Nepce(alpha), len(values)
    w = extrapolator.start(float(values[0]))
    for value in values:
        (held,), w = extrapolator.fit([Sample(0.0, float(value))], w)
        assert held == w
    a = F(alpha)
    assert F(w) == a**n * values[0] + (1 - a) * sum(a ** (n - 1 - k) * y for k, y in enumerate(values))


def test_nepce_begins_settled():
    extrapolator = Nepce(0.7)
    assert extrapolator.fit([Sample(0.0, 4.0)], extrapolator.start(4.0))[0] == pytest.approx([4.0])


@pytest.mark.parametrize(("word", "degree"), [("hold", 0), ("linear", 1), ("quadratic", 2), ("cubic", 3)])
def test_words_for_extrapolators(word, degree):
    curve = [F(k + 1) for k in range(degree + 1)]
    samples = sampled(curve, [F(k) for k in range(degree + 1)])
    assert look_up("extrapolators", word).fit(samples, None)[0] == curve


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polynomial(-1), "`degree` cannot be -1\n  where:    Polynomial\n  expected: 0 to 8"),
        (lambda: Polynomial(9), "`degree` cannot be 9\n  where:    Polynomial\n  expected: 0 to 8"),
        (lambda: Hermite(0), "`samples` cannot be 0\n  where:    Hermite\n  expected: 1 to 4"),
        (lambda: Hermite(1.5), "`samples` cannot be 1.5\n  where:    Hermite\n  expected: 1 to 4"),
        (lambda: Hermite(5), "`samples` cannot be 5\n  where:    Hermite\n  expected: 1 to 4"),
    ],
)
def test_what_cannot_be_fitted_is_refused(make, message):
    with pytest.raises(ScenarioError) as caught:
        make()
    assert str(caught.value) == message
