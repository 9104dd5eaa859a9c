"""What may be chosen: values, their words, combinations, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

from hocket import Hermite, Polynomial
from hocket.errors import ScenarioError
from hocket.search.nest.hierarchy import LevelGroup, parse_hierarchy
from hocket.search.tune.space import apply_choices, default_space, near_now, parse_space
from systems import three_masses, two_masses

TWO = two_masses("Control21", 0.1, (0.0, 0.0, 0.5))
THREE = three_masses(2, "100 ms", "25 ms")
FLAT = three_masses(2, "100 ms")


def values(composite, name, text, **more):
    return parse_space(composite, {name: text}, **more).variables[0].values


def test_ranges_and_lists():
    assert values(TWO, "two.F.alpha", "0:1:5") == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert np.allclose(values(TWO, "step", "1 ms:10 s:5:log"), [1e-3, 1e-2, 1e-1, 1.0, 10.0], rtol=1e-12)
    assert values(TWO, "step", "1/4 s, 500 ms, 1") == (0.25, 0.5, 1.0)
    assert values(TWO, "two.F.alpha", "-0.5, 0.5") == (-0.5, 0.5)
    assert values(TWO, "two.F.alpha", "0.5, 0.5, 0.1") == (0.5, 0.1), "each value once"
    assert values(TWO, "two.F.alpha", "0.3:0.3:4") == (0.3,)


def test_choices():
    assert values(THREE, "pair.extrapolation", "linear, hermite2") == (Polynomial(1), Hermite(2))
    assert values(THREE, "pair.outputs", "stale, consistent") == ("stale", "consistent")
    assert values(THREE, "inputs", "clean") == ("clean",)
    assert values(THREE, "sweeps", "1, 3") == (1, 3)


def test_orders_are_all_or_one_of_each_rotation():
    assert len(values(FLAT, "order", "all")) == 6
    kept = values(FLAT, "order", "all", rotations=False)
    turns = [{order[k:] + order[:k] for k in range(3)} for order in kept]
    assert len(kept) == 2
    assert not turns[0] & turns[1]
    assert len(turns[0] | turns[1]) == 6
    assert values(FLAT, "order", "third first second") == (("third", "first", "second"),)


def test_points_are_all_combinations():
    made = parse_space(FLAT, {"step": "0.1, 0.2", "algorithm": "jacobi, gauss-seidel", "order": "all"})
    points = list(made.points())
    assert made.size == len(points) == len(set(points)) == 24
    plain = {made.canonical_point(point) for point in points}
    assert len(plain) == 2 * (1 + 6), "without a sequence there is no order"
    couplings = [apply_choices(FLAT, made.values(point)) for point in plain]
    assert all(a != b for k, a in enumerate(couplings) for b in couplings[:k])
    assert all(apply_choices(FLAT, made.values(p)).step in (Fraction(1, 10), Fraction(1, 5)) for p in points)


def test_a_ratio_says_nothing_without_levels():
    made = parse_space(FLAT, {"nesting": "flat, {first, {second, third}}", "ratio": "1, 2, 4"})
    assert len({made.canonical_point(point) for point in made.points()}) == 1 + 3


def test_hierarchies_are_read():
    assert parse_hierarchy("{first, {second, third}}", ("first", "second", "third"), "") == LevelGroup(
        ("first", LevelGroup(("second", "third")))
    )
    for wrong in (
        "{first, second}",
        "first, second, third",
        "{first, {second, third}",
        "{first, first, third}",
    ):
        with pytest.raises(ScenarioError, match="not a hierarchy"):
            parse_hierarchy(wrong, ("first", "second", "third"), "tune.nesting")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("step", "0:1:0", "0 values"),
        ("step", "0, 1", "is none"),
        ("step", "-1", "is none"),
        ("step", "1:2", "cannot be read"),
        ("step", "1:2:3:linear", "cannot be read"),
        ("step", "1:2:many", "cannot be read"),
        ("step", "0:1:5:log", "cannot be read"),
        ("step", "", "no value"),
        ("two.F.alpha", "nan", "cannot be read"),
        ("two.F.alpha", "1 s", "cannot be read"),
        ("two.G.alpha", "0.1", "two.G"),
        ("steps", "0.1", "steps"),
        ("pair.step", "0.1", "pair"),
        ("pair.outputs", "stale", "no level `pair`"),
        ("extrapolation", "linaer", "did you mean `linear`"),
        ("extrapolation", "", "no value"),
        ("algorithm", "seidel", "gauss-seidel"),
        ("order", "one", "not an order of the models"),
        ("order", " , ", "no order"),
        ("sweeps", "0", "not counts"),
        ("sweeps", "1.5", "not counts"),
        ("nesting", "", "no nesting"),
    ],
)
def test_what_cannot_be_read_is_refused(name, text, message):
    with pytest.raises(ScenarioError, match=message) as caught:
        parse_space(TWO, {name: text})
    assert "tune." in str(caught.value)


def test_all_faults_are_told_at_once():
    with pytest.raises(ScenarioError) as caught:
        parse_space(TWO, {"step": "x", "algorithm": "y", "two.F.alpha": "z"})
    assert len(caught.value.faults) == 3
    with pytest.raises(ScenarioError, match="nothing to choose"):
        parse_space(TWO, {})
    with pytest.raises(ScenarioError, match="has 1,000,000,000 values"):
        parse_space(TWO, {"step": "1:2:1000000000"})


def test_now_is_found_in_the_space():
    over = {"step": "0.05, 0.1, 0.2", "algorithm": "gauss-seidel, jacobi", "extrapolation": "linear, hold"}
    made = parse_space(FLAT, over)
    near = near_now(FLAT, made)
    assert apply_choices(FLAT, made.values(near[0])) == FLAT
    assert near[0] == (1, 1, 1)
    assert set(near[1:]) == {(0, 1, 1), (2, 1, 1), (1, 0, 1), (1, 1, 0)}
    without = parse_space(FLAT, {"step": "0.05, 0.2"})
    assert all(apply_choices(FLAT, without.values(point)) != FLAT for point in near_now(FLAT, without))


def test_the_default_space_is_one_and_holds_now():
    over = default_space(THREE, Fraction(25))
    made = parse_space(THREE, over)
    assert {"step", "pair.step", "algorithm", "pair.order", "extrapolation", "outputs"} <= set(over)
    assert apply_choices(THREE, made.values(near_now(THREE, made)[0])) == THREE
    for step in made.variables[0].values:
        assert (Fraction(25) / Fraction(step).limit_denominator(10**6)).denominator == 1
    assert "hermite" in over["extrapolation"], "linear models tell slopes"
