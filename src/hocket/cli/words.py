"""How numbers are said on the screen.

In:  numbers
Out: a few signs each
"""

from __future__ import annotations

from hocket.simulators.fmu.probe.words import count as count


def format_significant(number: float) -> str:
    """Return a number with three digits that mean something: 0.0213, 1.24, 35,700."""
    rounded = float(f"{number:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def format_with_prefix(number: float) -> str:
    """Return a number in few signs: 950, 1.20k, 34.0M."""
    for scale, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:#.3g}".rstrip(".") + sign
    return f"{number:#.3g}".rstrip(".")
