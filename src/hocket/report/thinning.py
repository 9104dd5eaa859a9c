"""Long series made short for a page: the lowest and the highest value of each of many short spans.

In:  series of any length
Out: at most so many points, extremes kept; numbers as JSON in few digits
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hocket.model import Array

Edges: TypeAlias = NDArray[np.intp]


def span_edges(rows: int, points: int) -> Edges | None:
    """Return where the spans begin, two points each; None: all rows fit."""
    if rows <= points:
        return None
    return np.linspace(0, rows, max(1, points // 2), endpoint=False).astype(np.intp)


def thin_times(t: Array, edges: Edges | None) -> Array:
    """Return the times of the points: of each span its first sample and its last."""
    if edges is None:
        return t
    ends = np.append(edges[1:], len(t)) - 1
    return np.stack([t[edges], t[ends]], axis=1).ravel()


def thin_values(values: Array, edges: Edges | None) -> Array:
    """Return the lowest and the highest of each span, in the order in which they occur."""
    if edges is None:
        return values
    low, high = np.fmin.reduceat(values, edges), np.fmax.reduceat(values, edges)
    falls = _first_places(values, high, edges) < _first_places(values, low, edges)
    return np.stack([np.where(falls, high, low), np.where(falls, low, high)], axis=1).ravel()


def thin_band(values: Array, error: Array, edges: Edges | None) -> tuple[Array, Array]:
    """Return the lower and upper edge of a band; of a span the lowest and the highest, twice each."""
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = values - np.abs(error), values + np.abs(error)
    if edges is None:
        return low, high
    return np.fmin.reduceat(low, edges).repeat(2), np.fmax.reduceat(high, edges).repeat(2)


def json_numbers(values: Array, digits: int = 6) -> list[float | None]:
    """Return numbers as JSON holds them, in few digits; it has neither infinity nor what is no number."""
    return [float(f"{x:.{digits}g}") if math.isfinite(x) else None for x in values.tolist()]


def _first_places(values: Array, wanted: Array, edges: Edges) -> Edges:
    """Return where in each span its wanted value is first seen."""
    lengths = np.diff(edges, append=len(values))
    places = np.where(values == wanted.repeat(lengths), np.arange(len(values)), len(values))
    found: Edges = np.minimum.reduceat(places, edges)
    return found
