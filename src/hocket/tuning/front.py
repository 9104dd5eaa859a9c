"""What is not beaten in all objectives at once, and the point of it to choose.

In:  objectives of many points, smaller is better
Out: the Pareto front; the space that it dominates; its knee

Dominance is that of Glumac & Kovacic 2019, equation 67, with the signs set right (formulas, section 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hocket.model import Array


def pareto_front(values: Array) -> list[int]:
    """Return the numbers of rows that no other row dominates, in the order of their first objective.

    A row dominates another if it is no worse in all and better in one. Rows with what is not a finite number
    are never in it; of equal rows the first is kept.
    """
    finite = [k for k in range(len(values)) if np.isfinite(values[k]).all()]
    order = sorted(finite, key=lambda k: (*values[k], k))
    kept: list[int] = []
    best = np.empty((0, values.shape[1]))
    for k in order:
        row = values[k]
        if len(best) and bool((best <= row).all(axis=1).any()):
            continue
        kept.append(k)
        best = np.vstack([best, row])
    return kept


def hypervolume(values: Array, worst: Sequence[float] | Array) -> float:
    """Return the volume between points and a worst point that is dominated by the points.

    By slices along the last objective (Fonseca, Paquete & Lopez-Ibanez 2006, in its simplest form).
    """
    corner = np.asarray(worst, float)
    inside = values[np.isfinite(values).all(axis=1)]
    inside = inside[(inside < corner).all(axis=1)]
    if not len(inside):
        return 0.0
    if values.shape[1] == 1:
        return float(corner[0] - inside[:, 0].min())
    if values.shape[1] == 2:
        return _area(inside, corner)
    order = np.argsort(inside[:, -1], kind="stable")
    heights = [*inside[order, -1], corner[-1]]
    total = 0.0
    for count in range(1, len(order) + 1):
        height = heights[count] - heights[count - 1]
        if height > 0.0:
            total += height * hypervolume(inside[order[:count], :-1], corner[:-1])
    return total


def _area(points: Array, corner: Array) -> float:
    total, low = 0.0, float(corner[1])
    for x, y in sorted(map(tuple, points)):
        if y < low:
            total += (float(corner[0]) - x) * (low - y)
            low = y
    return total


def knee(values: Array) -> int:
    """Return the number of the row of a front to choose.

    Each objective is measured from its best to its worst on the front, by its logarithm where all are
    positive and they span more than a decade; the row nearest to the best of all is the knee.
    """
    if len(values) == 1:
        return 0
    scaled = np.column_stack([_normalise_column(values[:, k]) for k in range(values.shape[1])])
    return int(np.argmin(np.sqrt((scaled**2).sum(axis=1))))


def _normalise_column(column: Array) -> Array:
    low, high = float(column.min()), float(column.max())
    if low > 0.0 and high / low > 10.0:
        column, low, high = np.log(column), math.log(low), math.log(high)
    return (column - low) / (high - low) if high > low else np.zeros_like(column)
