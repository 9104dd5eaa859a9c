"""How a tangent follows what it stands for: slopes by differences, and what they leave out.

In:  a function of states and inputs that gives rates and outputs, and a point
Out: slopes there; how far the tangent is off at small changes, and whether that is smooth curvature
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from hocket.model.protocols import Array

NUDGE = float(np.finfo(float).eps) ** (1 / 3)
"""Where central differences err least."""
TRIED = 1e-3
"""The change of states and inputs at which a tangent is compared with its model."""
SQUARE = 1.7
"""The power of a change with which what a tangent leaves out falls at least, where all is smooth."""

Look: TypeAlias = Callable[[Array], Array]
"""Rates and outputs, one behind the other, at a point: states and inputs, one behind the other."""


def change_sizes(x: Array, u: Array) -> Iterator[Array]:
    """Yield what a change of one is of each state and input: its value or one; then in smaller units.

    Where all states, or all inputs, are small, they are in units that make them so. What stands at zero tells
    of no units: a gap of half a millimetre is not to be overlooked there.
    """
    point = np.abs(np.concatenate([x, u]))
    ones = np.maximum(point, 1.0)
    yield ones
    small = [float(np.abs(part).max(initial=0.0)) for part in (x, u)]
    if any(0.0 < size < 1.0 for size in small):
        floors = np.repeat([size if 0.0 < size < 1.0 else 1.0 for size in small], (len(x), len(u)))
        yield np.maximum(point, floors)


def central_differences(look: Look, point: Array, sizes: Array) -> Array:
    """Return the slopes of rates and outputs over states and inputs, from central differences."""
    columns = []
    for index, size in enumerate(sizes):
        above, below = point.copy(), point.copy()
        above[index] += NUDGE * size
        below[index] -= NUDGE * size
        columns.append((look(above) - look(below)) / (above[index] - below[index]))
    return np.array(columns).T if columns else np.zeros((len(look(point)), 0))


def tangent_error(look: Look, point: Array, slopes: Array, sizes: Array) -> float:
    """Return how far the tangent is off when a state or an input changes a little, relative to the effect."""
    there, worst = look(point), 0.0
    for change in (sign * row for row in np.diag(TRIED * sizes) for sign in (1.0, -1.0)):
        found, told = look(point + change) - there, slopes @ change
        size = max(float(np.abs(found).max()), float(np.abs(told).max()))
        if size > 1e-12 * float(np.abs(there).max(initial=0.0)):
            worst = max(worst, float(np.abs(found - told).max()) / size)
    return worst if math.isfinite(worst) else math.inf


def curves_smoothly(look: Look, point: Array, slopes: Array, sizes: Array) -> bool:
    """Return whether what the tangent leaves out falls with the square of the change, or faster."""
    there = look(point)

    def left_out(part: float) -> float:
        changes = (sign * row for row in np.diag(part * TRIED * sizes) for sign in (1.0, -1.0))
        return max(float(np.abs(look(point + each) - there - slopes @ each).max()) for each in changes)

    whole, half, quarter = left_out(1.0), left_out(0.5), left_out(0.25)
    if not (math.isfinite(whole) and whole > 0.0 and half > 0.0 and quarter > 0.0):
        return False
    powers = math.log2(whole / half), math.log2(half / quarter)
    return min(powers) >= SQUARE and abs(powers[0] - powers[1]) <= SQUARE - 1.0
