"""Factors and offsets between units, against the definitions of the units."""

import subprocess
import sys
from math import pi

import pytest

from hocket.model.units import conversion, define_unit, difference

FACTORS = {
    ("km/h", "m/s"): 1 / 3.6,
    ("knot", "m/s"): 1852 / 3600,
    ("inch", "m"): 0.0254,
    ("mile", "km"): 1.609344,
    ("lb", "kg"): 0.45359237,
    ("lbf", "N"): 0.45359237 * 9.80665,
    ("psi", "Pa"): 0.45359237 * 9.80665 / 0.0254**2,
    ("bar", "kPa"): 100.0,
    ("atm", "Pa"): 101325.0,
    ("kWh", "MJ"): 3.6,
    ("cal", "J"): 4.184,
    ("eV", "J"): 1.602176634e-19,
    ("rpm", "rad/s"): 2 * pi / 60,
    ("deg", "rad"): pi / 180,
    ("turn", "deg"): 360.0,
    ("L/min", "m^3/s"): 1e-3 / 60,
    ("mm^2", "m^2"): 1e-6,
    ("percent", "1"): 0.01,
    ("mF", "uF"): 1000.0,
    ("N*m", "kN*mm"): 1.0,
    ("degF/s", "K/s"): 5 / 9,
    ("W/degC", "W/K"): 1.0,
}


@pytest.mark.parametrize(("units", "factor"), FACTORS.items(), ids=map(" to ".join, FACTORS))
def test_factors_are_those_of_the_definitions(units, factor):
    source, target = units
    gain, offset = conversion(source, target)
    assert gain == pytest.approx(factor, rel=1e-14)
    assert offset == 0.0
    back, offset = conversion(target, source)
    assert back == pytest.approx(1 / factor, rel=1e-14)
    assert offset == 0.0


@pytest.mark.parametrize(
    ("source", "target", "points"),
    [
        ("degC", "K", {-273.15: 0.0, 0.0: 273.15, 100.0: 373.15}),
        ("K", "degC", {0.0: -273.15, 273.16: 0.01}),
        ("degF", "degC", {32.0: 0.0, 212.0: 100.0, -40.0: -40.0}),
        ("degC", "degF", {0.0: 32.0, 100.0: 212.0, -40.0: -40.0}),
        ("degF", "K", {32.0: 273.15, -459.67: 0.0}),
        ("degR", "degC", {491.67: 0.0}),
        ("mK", "degC", {273150.0: 0.0}),
    ],
)
def test_temperatures_are_shifted_too(source, target, points):
    gain, offset = conversion(source, target)
    for given, expected in points.items():
        assert gain * given + offset == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("source", "target", "exact"),
    [
        ("mm", "m", (0.001, 0.0)),
        ("m", "mm", (1000.0, 0.0)),
        ("kW", "W", (1000.0, 0.0)),
        ("m/s", "km/h", (3.6, 0.0)),
        ("degC", "K", (1.0, 273.15)),
        ("K", "degC", (1.0, -273.15)),
        ("ms", "s", (0.001, 0.0)),
    ],
)
def test_round_factors_come_out_round(source, target, exact):
    assert conversion(source, target) == exact


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("m/s", "m * s^-1"),
        ("N", "kg*m/s^2"),
        ("m", "meter"),
        ("Pa", "N/m^2"),
        ("rad", "radian"),
        ("1", "-"),
        ("N*m", "J"),
        ("N.m", "N*m"),
    ],
)
def test_one_unit_written_in_two_ways_changes_nothing(source, target):
    assert conversion(source, target) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("source", "target"), [("", "m"), ("m", ""), ("", ""), ("frobs", ""), ("frobs", "frobs")]
)
def test_a_missing_or_equal_unit_is_taken_as_it_is(source, target):
    assert conversion(source, target) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("m", "kg", "`m` cannot be converted to `kg`: [length] against [mass]"),
        (
            "m/s",
            "m/s^2",
            "`m/s` cannot be converted to `m/s^2`: [length] / [time] against [length] / [time] ** 2",
        ),
        ("degC", "s", "`degC` cannot be converted to `s`: [temperature] against [time]"),
        ("rpm", "Hz", "`rpm` cannot be converted to `Hz`: one of them counts an angle"),
        ("Hz", "rad/s", "`Hz` cannot be converted to `rad/s`: one of them counts an angle"),
        ("furlogs", "m", "`furlogs` is not a known physical unit"),
        ("m", "furlogs", "`furlogs` is not a known physical unit"),
        ("m/", "m", "`m/` is not a known physical unit"),
        ("3 m", "m", "`3 m` is not a known physical unit"),
    ],
)
def test_units_that_do_not_convert_are_refused_with_the_reason(source, target, message):
    with pytest.raises(ValueError) as caught:
        conversion(source, target)
    assert str(caught.value) == message


def test_equal_and_missing_units_cost_no_import():
    script = """
import sys
from hocket.model.units import conversion, difference
conversion("m/s", "m/s"), conversion("", "m")
assert "pint" not in sys.modules
conversion("m", "mm")
assert "pint" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("modelica", "plain"),
    [
        ("m/s2", "m/s**2"),
        ("kg/m3", "kg/m**3"),
        ("kg.m-3", "kg/m^3"),
        ("N.m.s/rad", "N*m*s/rad"),
        ("W/(m2.K)", "W/(m**2*K)"),
    ],
)
def test_units_as_modelica_writes_them(modelica, plain):
    assert conversion(modelica, plain) == (1.0, 0.0)


def test_a_difference_has_no_zero_point():
    assert difference("degC") == "delta_degC"
    assert difference("K") == "K"
    assert difference("") == ""
    assert difference("furlongs per fortnight squared") == "furlongs per fortnight squared"
    assert conversion("delta_degC", "K") == (1.0, 0.0)
    assert conversion("delta_degC", "delta_degF") == (pytest.approx(1.8), 0.0)
    assert conversion("delta_degC", "degC") == (1.0, 0.0)  # a model that does not say so


def test_a_model_may_define_a_unit():
    with pytest.raises(ValueError, match="not a known physical unit"):
        conversion("frame@60", "s")
    define_unit("frame@60", "s**1", 0.5, 0.0)
    assert conversion("frame@60", "ms") == (500.0, 0.0)
    define_unit("s", "s**1", 0.5, 0.0)  # known anyway
    assert conversion("s", "ms") == (1000.0, 0.0)
    define_unit("warmth", "K**1", 2.0, 100.0)
    assert conversion("warmth", "K") == (2.0, 100.0)
    define_unit("frame@60", "s**1", 0.25, 0.0)
    with pytest.raises(ValueError, match="two models define it in different ways"):
        conversion("frame@60", "min")
