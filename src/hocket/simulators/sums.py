"""Sums that run from left to right, so that both engines have the same bits.

In:  matrices and vectors
Out: products
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hocket.model import Array


def apply_matrix(matrix: Array, x: Array, onto: Array | None = None) -> Array:
    """Return onto + matrix x, summed column by column; x may carry columns of its own."""
    shape = (matrix.shape[0], *np.shape(x)[1:])
    total = np.zeros(shape) if onto is None else onto
    for j in range(matrix.shape[1]):
        column = matrix[:, j] if total.ndim == 1 else matrix[:, j, None]
        total = total + column * x[j]
    return total


def dot(one: Iterable[float], other: Iterable[float]) -> float:
    """Return the sum of products."""
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total = total + a * b
    return total
