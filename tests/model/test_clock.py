"""Time is exact until a simulator asks for it."""

from decimal import Decimal
from fractions import Fraction as F
from math import gcd, inf, nan, ulp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hocket.model.clock import Clock, common_tick, format_duration, seconds

few = settings(deadline=None)
durations = st.builds(F, st.integers(-(10**12), 10**12), st.integers(1, 10**12))
short = st.builds(F, st.integers(1, 1000), st.integers(1, 10**5))
"""With these, numerators and denominators of a Clock stay below 2^53 for 10^5 ticks."""


@pytest.mark.parametrize(
    ("given_as", "exact"),
    [
        ("2.5 ms", F(1, 400)),
        ("1/3 s", F(1, 3)),
        ("1/3", F(1, 3)),
        ("  1.5 / 4ms ", F(3, 8000)),
        ("7 us", F(7, 10**6)),
        ("7 µs", F(7, 10**6)),
        ("7 ns", F(7, 10**9)),
        ("1.5 min", F(90)),
        ("2 h", F(7200)),
        ("1 d", F(86400)),
        ("-2 s", F(-2)),
        ("+.5", F(1, 2)),
        ("5.", F(5)),
        ("1e-3", F(1, 1000)),
        ("2.5E2 ms", F(1, 4)),
        ("0.1000000000000000055511151231257827 s", F("0.1000000000000000055511151231257827")),
        (3, F(3)),
        (F(2, 7), F(2, 7)),
        (0.1, F(1, 10)),
        (1e-9, F(1, 10**9)),
        (np.float64(0.01), F(1, 100)),
        (np.int64(4), F(4)),
    ],
)
def test_durations_mean_what_is_written(given_as, exact):
    assert seconds(given_as) == exact


@pytest.mark.parametrize(
    "given_as",
    [
        "",
        "ms",
        "1 fortnight",
        "1 MS",
        "1/0 s",
        "1..2 s",
        ".",
        "1 2 s",
        "1e",
        "1/2/3 s",
        "0x10",
        "nan",
        "inf s",
    ],
)
def test_text_that_is_no_duration_is_refused_by_name(given_as):
    with pytest.raises(ValueError, match=f"^`{given_as}` is not a "):
        seconds(given_as)


@pytest.mark.parametrize("given_as", [nan, inf, -inf, True, None, [1], Decimal(1), 1j])
def test_what_is_neither_text_nor_number_is_refused(given_as):
    with pytest.raises(ValueError, match=r"is not a (finite )?duration"):
        seconds(given_as)


@few
@given(st.integers(-(10**9), 10**9), st.integers(0, 4))
def test_a_float_is_the_short_decimal_it_prints_as(digits, places):
    exact = F(digits, 10**places)
    assert seconds(float(exact)) == exact


@few
@given(st.integers(-1000, 1000), st.integers(1, 1000))
def test_a_float_that_is_a_simple_fraction_means_it(p, q):
    assert seconds(p / q) == F(p, q)


@few
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_keeps_its_value(x):
    assert float(seconds(x)) == x


@few
@given(durations)
def test_what_is_written_is_read_back_exactly(duration):
    assert seconds(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (F(0), "0 s"),
        (F(10), "10 s"),
        (F(1, 10), "0.1 s"),
        (F(3600), "3600 s"),
        (F(10**5), "100000 s"),
        (F(1, 400), "2.5 ms"),
        (F(-1, 100), "-10 ms"),
        (F(1, 8000), "0.125 ms"),
        (F(1, 10**5), "10 us"),
        (F(1, 10**7), "0.1 us"),
        (F(3, 10**9), "3 ns"),
        (F(1, 3), "1/3 s"),
        (F(1, 300), "1/300 s"),
        (F("123.456789012"), "123.456789012 s"),
        (F(1, 10**400), f"1/{10**400} s"),
    ],
)
def test_durations_are_written_in_the_unit_that_reads_best(duration, text):
    assert format_duration(duration) == text
    assert seconds(text) == duration


@few
@given(st.lists(short, min_size=1, max_size=6))
def test_the_common_tick_is_the_longest_that_divides_all(steps):
    counts = [step / common_tick(steps) for step in steps]
    assert all(count.denominator == 1 for count in counts)
    assert gcd(*(count.numerator for count in counts)) == 1


@pytest.mark.parametrize(
    ("steps", "tick"),
    [
        ([F(1, 4), F(1, 6)], F(1, 12)),
        ([F(3, 2), F(5, 2)], F(1, 2)),
        ([F(1, 100)], F(1, 100)),
        ([F(6), F(10), F(15)], F(1)),
    ],
)
def test_common_ticks(steps, tick):
    assert common_tick(steps) == tick


@few
@given(short, short, st.integers(-(10**5), 10**5))
def test_time_is_the_exact_time_rounded_once(tick, start, ticks):
    """float(Fraction) rounds correctly."""
    clock = Clock(tick, start)
    assert clock.time(ticks) == float(start + ticks * tick)
    assert clock.span(ticks) == float(ticks * tick)


@pytest.mark.parametrize("ticks", [3, 10**6, 10**7 + 1, 2**52 + 1])
def test_tenths_of_a_second_do_not_drift(ticks):
    assert Clock(F(1, 10)).time(ticks) == ticks / 10


@few
@given(short, st.integers(-(10**12), 10**12))
def test_whole_durations_are_counted(tick, count):
    assert Clock(tick).ticks(count * tick) == count


def test_a_broken_number_of_ticks_is_refused():
    with pytest.raises(ValueError, match=r"^25 ms is not a whole number of ticks of 10 ms$"):
        Clock(F(1, 100)).ticks(F(1, 40))


@pytest.mark.parametrize("count", [3, 7, 60, 123, 1000])
@pytest.mark.parametrize("step", ["0.1", "0.41", "0.013", "1/3", "1/7"])
def test_multiples_of_a_float_are_multiples(step, count):
    """3 * 0.1 is 0.30000000000000004: a run of three steps."""
    assert seconds(count * float(F(step))) == count * F(step)


def test_long_decimals_are_written_as_such():
    assert format_duration(F("1.2345678901234")) == "1.2345678901234 s"
    assert format_duration(F(1, 3)) == "1/3 s"


@pytest.mark.parametrize(
    ("meant", "off", "near"),
    [
        (F(49, 2), 4, True),  # exactly four units in the last place
        (F(49, 2), -4, True),
        (F(49, 2), 5, False),
        (F(49, 2), -5, False),
        (F(1, 3), 4, True),  # the float is a third of a unit below
        (F(1, 3), 5, False),
        (F(1, 3), -3, True),
        (F(1, 3), -4, False),
    ],
)
def test_a_float_is_meant_as_a_fraction_four_units_in_the_last_place_away(meant, off, near):
    value = float(meant)
    value += off * ulp(value)
    assert (seconds(value) == meant) is near
    assert near or seconds(value) == F(repr(value))


def test_a_float_of_few_digits_is_meant_as_it_is_written():
    """0.33333333333333 has fourteen digits, and is no third though far fewer than four units would say so."""
    assert seconds(0.33333333333333) == F("0.33333333333333")
    assert seconds(0.333333333333333) == F("0.333333333333333")  # fifteen, but 1500 units away
    assert seconds(999999.0 / 1000000.0) == F(999999, 10**6)
    assert seconds(1.0 / 999983.0) == F(1, 999983)
    assert seconds(1.0 / 1000003.0) == F(repr(1.0 / 1000003.0))  # the denominator is too large to be meant
