"""Equations between ports: what is read, what it is worth, how it changes; and what is not an equation."""

import math

import pytest

from hocket.errors import ScenarioError
from hocket.model.equations import FUNCTIONS, Equation


def refused(text):
    with pytest.raises(ScenarioError) as caught:
        Equation.of(text)
    return str(caught.value)


def test_the_residual_is_left_minus_right():
    equation = Equation.of("2 * left.x + 1 = right.x / 4 - (3 - pi)")
    assert equation.paths == ("left.x", "right.x")
    assert equation.residual({"left.x": 5.0, "right.x": 8.0}) == pytest.approx(11.0 - (2.0 - 3.0 + math.pi))
    assert equation.linear


def test_odd_names_stand_in_backticks():
    equation = Equation.of("`left-arm.pos[1]` = `in.x` + car.axle.x - u")
    assert equation.paths == ("left-arm.pos[1]", "in.x", "car.axle.x", "u")
    assert equation.plain == equation.paths


@pytest.mark.parametrize(
    ("text", "at", "by_hand"),
    [
        ("a.x * b.y = 0", (2.0, 3.0), (3.0, 2.0)),
        ("a.x / b.y = 0", (2.0, 4.0), (0.25, -0.125)),
        ("a.x ** 3 = b.y ** 0.5", (2.0, 4.0), (12.0, -0.25)),
        ("a.x ** b.y = 0", (2.0, 3.0), (12.0, 8.0 * math.log(2.0))),
        ("a.x = sin(b.y)", (2.0, 0.3), (1.0, -math.cos(0.3))),
        ("cos(2 * a.x) = b.y", (0.4, 0.0), (-2.0 * math.sin(0.8), -1.0)),
        ("tan(a.x) = exp(b.y)", (0.4, 0.3), (1.0 / math.cos(0.4) ** 2, -math.exp(0.3))),
        ("sqrt(a.x) = log(b.y)", (4.0, 5.0), (0.25, -0.2)),
        ("abs(a.x) = -b.y", (-4.0, 5.0), (-1.0, 1.0)),
        ("a.x ** 2 + b.y ** 2 = 1", (0.6, -0.8), (1.2, -1.6)),
    ],
)
def test_derivatives_are_exact(text, at, by_hand):
    equation = Equation.of(text)
    values = {"a.x": at[0], "b.y": at[1]}
    for path, expected in zip(values, by_hand, strict=True):
        assert equation.partial(path, values) == pytest.approx(expected, rel=1e-14)
    rates = {"a.x": 0.7, "b.y": -0.2}
    along = equation.residual_and_rate(values, rates)[1]
    assert along == pytest.approx(0.7 * by_hand[0] - 0.2 * by_hand[1], rel=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_their_derivatives_agree_with_differences(name):
    equation = Equation.of(f"{name}(a.x) = 0")
    x, e = 0.37, 1e-6
    slope = (equation.residual({"a.x": x + e}) - equation.residual({"a.x": x - e})) / (2 * e)
    assert equation.partial("a.x", {"a.x": x}) == pytest.approx(slope, rel=1e-8)


def test_what_has_no_value_is_no_number():
    assert math.isnan(Equation.of("sqrt(a.x) = 0").residual({"a.x": -1.0}))
    assert math.isnan(Equation.of("1 / a.x = 0").residual({"a.x": 0.0}))
    assert math.isnan(Equation.of("exp(a.x) = 0").residual({"a.x": 1e6}))


@pytest.mark.parametrize(
    ("text", "linear"),
    [("a.x = 2 * b.x", True), ("sqrt(2) * a.x = 2 ** 3 + b.x / 4", True), ("a.x * b.x = 1", False),
     ("a.x = 1 / b.x", False), ("a.x = sin(b.x)", False), ("a.x ** 2 = 1", False)],
)  # fmt: skip
def test_what_is_linear(text, linear):
    assert Equation.of(text).linear is linear


def test_what_is_no_equation_is_refused():
    assert "is not an equation" in refused("left.x")
    assert "is not an equation" in refused("left.x == right.x")
    assert "is not an equation" in refused("a.x = b.x = c.x")
    assert "has no ports" in refused("1 = 2")
    assert "did you mean `sin`?" in refused("a.x = sinn(b.x)")
    assert "`sin` takes one number" in refused("a.x = sin(b.x, 2)")
    assert "powers are written with `**`" in refused("a.x = b.x ^ 2")
    assert "has no place" in refused("a.x = b.x[0]")
    assert "has no place" in refused("a.x = b.x if 1 else 2")
    assert "has no place" in refused("a.x = 'text'")
    assert "backticks" in refused("a.x = left arm.x")
    assert "backtick" in refused("a.x = `b.x")


def test_nothing_in_an_equation_is_run():
    assert "cannot be evaluated" in refused("a.x = open('file')")
    assert "has no place" in refused("a.x = (lambda: 1)()")
    assert "cannot be read" in refused("a.x = import os")


def test_what_is_added_must_have_one_unit():
    equation = Equation.of("a.x + b.x = 2 * c.x")

    def faults(**units):
        return [fault.what for fault in equation.unit_faults({f"{k}.x": u for k, u in units.items()}, "here")]

    assert faults(a="m", b="m", c="km") == []
    assert faults(a="m", b="") == []
    assert "in `m`, `b.x` in `mm`" in faults(a="m", b="mm")[0]
    assert "cannot be converted" in faults(a="m", b="N")[0]
