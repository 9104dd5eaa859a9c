"""Time is exact: fractions of a second in the scenario, ticks in the plan, floats at a simulator's door.

In:  durations as people write them ("2.5 ms", 0.1, 1/3)
Out: Fractions, and a Clock that turns ticks into seconds
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Rational, Real

Duration = Fraction | int | float | str

_SCALES = {
    "": Fraction(1),
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_WRITTEN = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)(?:\s*/\s*([0-9.]+))?\s*([a-zµμ]*)\s*")

LONGEST = int(sys.float_info.max)
"""Seconds that a time or a duration may have: the largest float."""

ROUNDINGS = 4
"""By how many roundings a float may miss the time that it means."""

_EXAMPLES = 'write 0.01, "1/3 s" or "2.5 ms"'


def seconds(duration: Duration) -> Fraction:
    """Return a duration in seconds, exactly: 0.1 is a tenth, "2.5 ms" is 1/400, "1/3 s" and 1/3 are a third.

    Raises ValueError for anything else, and for what no float can hold.
    """
    found = _read_duration(duration)
    if abs(found) > LONGEST:
        raise ValueError(f"`{duration!s:.40}` is longer than any time can be: at most 1.8e308 s")
    return found


def _read_duration(duration: Duration) -> Fraction:
    if isinstance(duration, str):
        match = _WRITTEN.fullmatch(duration)
        if match is None or match[3] not in _SCALES:
            raise ValueError(f"`{duration}` is not a duration: {_EXAMPLES} (ns, us, ms, s, min, h, d)")
        try:
            written, parts = Decimal(match[1]), Decimal(match[2] or "1")
            if abs(written.adjusted()) > 330:  # too many digits to even write it out
                raise ValueError
            return Fraction(written) / Fraction(parts) * _SCALES[match[3]]
        except (ArithmeticError, ValueError):
            raise ValueError(f"`{duration}` is not a number") from None
    if isinstance(duration, bool) or not isinstance(duration, Real):
        raise ValueError(f"`{duration!r:.60}` is not a duration: {_EXAMPLES}")
    if not isinstance(duration, Rational):
        if not math.isfinite(duration):
            raise ValueError(f"`{duration}` is not a finite duration")
        return _intended_fraction(float(duration))
    return Fraction(int(duration)) if isinstance(duration, Integral) else Fraction(duration)


def _intended_fraction(duration: float) -> Fraction:
    """Return what a float was meant as: the decimal it is written as, or a fraction such as 1/3.

    60 * 0.41 is 24.599999999999998, and was meant as 24.6.
    """
    decimal = Decimal(repr(duration))
    digits = len(decimal.as_tuple().digits)
    simple = Fraction(duration).limit_denominator(1_000_000)
    if digits > 13 and float(simple) == duration:
        return simple
    # rounding on the way is forgiven only where few fractions are near: else it would change the value
    rounded = Fraction(duration).limit_denominator(10_000)
    near = abs(rounded - Fraction(duration)) <= 4 * Fraction(math.ulp(duration))
    return rounded if digits > 14 and near else Fraction(decimal)


def format_duration(duration: Fraction) -> str:
    """Return a duration as text that `seconds` reads back exactly."""
    for unit in ("s", "ms", "us", "ns"):
        scaled = duration / _SCALES[unit]
        value = float(scaled)
        if (
            (1e-1 <= abs(value) < 1e4 or (unit == "s" and not value))
            and len(text := f"{value:.12g}") < 10
            and Fraction(Decimal(text)) == scaled
        ):
            return f"{text} {unit}"
    text = repr(float(duration))
    decimal = duration.denominator > 1 and Fraction(Decimal(text)) == duration
    return f"{text} s" if decimal else f"{duration} s"


def common_tick(durations: Iterable[Fraction]) -> Fraction:
    """Return the longest tick of which every duration is a whole multiple."""
    tick = Fraction(0)
    for duration in durations:
        numerator = math.gcd(tick.numerator * duration.denominator, duration.numerator * tick.denominator)
        tick = Fraction(numerator, tick.denominator * duration.denominator)
    return tick


@dataclass(frozen=True)
class Clock:
    """Ticks of one length, counted from a start time."""

    tick: Fraction
    start: Fraction = Fraction(0)
    quantum: int = 1
    """Events happen at multiples of so many ticks."""
    coarse: int = 0
    """Floats that cannot tell such places apart mean the one at a multiple of so many ticks, if it is as near
    as their rounding; 0: they can."""

    def event_tick(self, time: Fraction | float) -> int:
        """Return the tick of an event: the place next to a float, and the first one not before a fraction."""
        since = Fraction(time) - self.start
        if not isinstance(time, float):
            return math.ceil(since / (self.tick * self.quantum)) * self.quantum
        if self.coarse:
            meant = round(since / (self.tick * self.coarse)) * self.coarse
            if abs(meant * self.tick - since) <= ROUNDINGS * Fraction(2) ** (math.frexp(time)[1] - 53):
                return meant
        return round(since / (self.tick * self.quantum)) * self.quantum

    def ticks(self, duration: Fraction) -> int:
        """Return a duration in ticks; it must be a whole number of them."""
        count = duration / self.tick
        if count.denominator != 1:
            raise ValueError(
                f"{format_duration(duration)} is not a whole number of ticks of {format_duration(self.tick)}"
            )
        return count.numerator

    def span(self, ticks: int) -> float:
        """Return the length of so many ticks in seconds."""
        numerator, _, denominator = self.integer_ratio
        return float(ticks * numerator) / float(denominator)

    def time(self, ticks: int) -> float:
        """Return the time so many ticks after the start, in seconds.

        One rounded division: the native engine computes the same bits.
        """
        numerator, offset, denominator = self.integer_ratio
        return float(ticks * numerator + offset) / float(denominator)

    @cached_property
    def integer_ratio(self) -> tuple[int, int, int]:
        """Tick, start and the denominator they share, as whole numbers."""
        denominator = math.lcm(self.tick.denominator, self.start.denominator)
        return int(self.tick * denominator), int(self.start * denominator), denominator
