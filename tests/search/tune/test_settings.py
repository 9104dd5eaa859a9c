"""Composites with other choices are those that one would write."""

from dataclasses import replace
from fractions import Fraction

import pytest

from hocket import Composite, GaussSeidel, Hermite, Iterate, Jacobi, Nepce, Polynomial
from hocket.errors import ScenarioError
from hocket.search.tune.space import apply_choices, parse_space
from systems import three_masses, two_masses

NESTED = three_masses(2, "100 ms", "25 ms")
FLAT = three_masses(2, "100 ms")


def chosen(composite, over):
    made = parse_space(composite, over)
    return apply_choices(composite, made.values((0,) * len(made.variables)))


def test_nothing_chosen_changes_nothing():
    assert apply_choices(NESTED, {}) == NESTED


def test_steps_algorithms_and_modes_of_levels():
    made = chosen(
        NESTED,
        {
            "step": "200 ms",
            "pair.step": "50 ms",
            "algorithm": "gauss-seidel",
            "order": "pair first",
            "outputs": "consistent",
            "pair.inputs": "clean",
            "extrapolation": "cubic",
            "pair.extrapolation": "hermite",
        },
    )
    inner = made.scenario.models["pair"]
    assert isinstance(inner, Composite)
    assert (made.step, inner.step) == (Fraction(1, 5), Fraction(1, 20))
    assert made.orchestrator == GaussSeidel(["pair", "first"], outputs="consistent", inputs="delayed")
    assert inner.orchestrator == Jacobi(outputs="stale", inputs="clean")
    assert (made.extrapolation, inner.extrapolation) == (Polynomial(3), Hermite())


def test_an_order_is_nothing_to_jacobi():
    assert chosen(FLAT, {"order": "third second first"}) == FLAT


def test_one_connection_gets_its_own_extrapolation():
    made = chosen(NESTED, {"pair.third.x2.extrapolation": "linear", "first.force.extrapolation": "quadratic"})
    inner = made.scenario.models["pair"]
    own = {
        each.target: each.extrapolation for each in (*made.scenario.connections, *inner.scenario.connections)
    }
    assert own["first.force"] == Polynomial(2)
    assert own["third.x2"] == Polynomial(1)
    assert [each for each in own.values() if each is not None] == [Polynomial(2), Polynomial(1)]


def test_filters_and_sweeps():
    two = two_masses("Control21", 0.1)
    made = chosen(two, {"two.F.alpha": "-0.5", "sweeps": "3", "outputs": "consistent"})
    assert made.scenario.connections[2].extrapolation == Nepce(-0.5)
    plain = replace(two.orchestrator, outputs="consistent")
    assert made.orchestrator == Iterate(plain, tolerance=None, at_most=3, accelerate=None)
    assert chosen(made, {"sweeps": "1"}).orchestrator == plain


def test_a_nesting_is_that_of_hand():
    made = chosen(FLAT, {"nesting": "{first, {second, third}}", "ratio": "4"})
    inner = next(model for model in made.scenario.models.values() if isinstance(model, Composite))
    assert (made.step, inner.step) == (Fraction(1, 10), Fraction(1, 40))
    assert set(inner.scenario.models) == {"second", "third"}
    assert {each.target for each in inner.scenario.connections} == {"second.force", "third.x2", "third.v2"}


def test_what_does_not_fit_is_refused():
    with pytest.raises(ScenarioError, match="nothing drives"):
        apply_choices(NESTED, {"first.x.extrapolation": Polynomial(1)})
