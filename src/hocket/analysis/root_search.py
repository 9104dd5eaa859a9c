"""Where a function of one number crosses zero, and where it is lowest: small searches that load quickly.

In:  a function and two ends
Out: a number between them
"""

from __future__ import annotations

import math
from collections.abc import Callable

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""The part of a range that is kept when it is cut by the golden section."""


def find_crossing(f: Callable[[float], float], low: float, high: float, exact: float) -> float:
    """Return where f changes its sign between two ends at which it differs, to within `exact`.

    Regula falsi, the weight of an end that stays twice being halved (the Illinois algorithm; Dowell &
    Jarratt 1971), and a bisection wherever two such steps do not halve the range: jumps are found too.
    """
    at_low, at_high = f(low), f(high)
    stayed, goal, tries = 0, 0.5 * (high - low), 0
    while high - low > exact:
        middle = 0.5 * (low + high)
        if tries < 2 and at_low != at_high:
            margin = min(0.5 * exact, 0.25 * (high - low))  # the last step closes in from the other side
            straight = high - at_high * (high - low) / (at_high - at_low)
            middle = min(max(straight, low + margin), high - margin)
        if not low < middle < high:
            break
        value = f(middle)
        if (value < 0.0) == (at_low < 0.0):
            low, at_low = middle, value
            at_high *= 0.5 if stayed == 1 else 1.0
            stayed = 1
        else:
            high, at_high = middle, value
            at_low *= 0.5 if stayed == -1 else 1.0
            stayed = -1
        tries += 1
        if high - low <= goal:
            goal, tries = 0.5 * (high - low), 0
    return 0.5 * (low + high)


def find_minimum(f: Callable[[float], float], low: float, high: float, exact: float) -> tuple[float, float]:
    """Return where f is lowest between two ends, to within `exact`, and how low: golden section.

    (Kiefer 1953.) Of several valleys one is found.
    """
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = f(left), f(right)
    while high - low > exact:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = f(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = f(right)
        if not low < left <= right < high:
            break
    return (left, at_left) if at_left <= at_right else (right, at_right)
