"""What sources do between samples: their outputs over time, as polynomials on pieces.

In:  functions of time, where they may jump or bend, and how long they shall be followed
Out: Curves: values and derivatives at any times
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from hocket.errors import ScenarioError
from hocket.model import Array

Indices: TypeAlias = NDArray[np.int64]

CLOSE = 1e-12
"""How far a piece may be from its source, relative to the largest value of each output."""
LEAST = 1e-13
"""Pieces shorter than this part of the whole are not halved: there is a jump in them."""
NOISE = 1e-14
"""Coefficients below this part of the largest value are rounding: derivatives would see them."""
MOST = 30_000
"""How often pieces may be halved."""
CURVED, STRAIGHT = 10, 2
"""Coefficients of a piece: of functions, and where all sources are tables."""
TRIED = np.array([-0.991, -0.55, 0.06, 0.62, 0.987])
"""Where a piece is compared with its source: between the nodes."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Several signals over time, from 0 on, continuous from the right."""

    breaks: Array
    """Where pieces begin, and the end of the last one; seconds."""
    coefficients: Array
    """Of Legendre polynomials over each piece: shape (pieces, powers, signals)."""

    @property
    def count(self) -> int:
        """How many signals there are."""
        return int(self.coefficients.shape[2])

    @cached_property
    def widths(self) -> Array:
        """How long each piece is."""
        return np.diff(self.breaks)

    def piece_indices(self, times: Array) -> Indices:
        """Return in which piece each of these times is; where two meet, in the later one."""
        found = np.searchsorted(self.breaks, times, side="right") - 1
        return np.asarray(np.clip(found, 0, len(self.widths) - 1), dtype=np.int64)

    def at(self, times: Array, derivative: int = 0) -> Array:
        """Return the signals, or a time derivative of them, a row for each time."""
        where = self.piece_indices(times)
        width = self.widths[where]
        place = 2.0 * (times - self.breaks[where]) / width - 1.0
        powers = self.coefficients.shape[1]
        basis = legendre.legder(np.eye(powers), derivative, axis=0)
        values = legendre.legvander(place, len(basis) - 1) @ basis
        found = np.einsum("tk,tks->ts", values, self.coefficients[where])
        return np.asarray(found * (2.0 / width[:, None]) ** derivative)


def fit_curves(
    value: Callable[[float], Array], span: float, begins: Iterable[float], straight: bool = False
) -> Curves:
    """Return pieces that follow a function over a span; they begin as given, and are halved as needed.

    With `straight` the function is a line on each piece. Raises ScenarioError if it jumps everywhere.
    """
    waiting = np.unique([0.0, span, *(each for each in begins if 0.0 < each < span)]).tolist()[::-1]
    count = STRAIGHT if straight else CURVED
    nodes, weights = legendre.leggauss(count)
    # the coefficients of the polynomial through the nodes: Gauss' formula is exact for them
    fit = legendre.legvander(nodes, count - 1).T * weights * (np.arange(count) + 0.5)[:, None]
    check = legendre.legvander(TRIED, count - 1)
    breaks: list[float] = [waiting.pop()]
    found: list[Array] = []
    largest, halved = np.abs(value(0.0)), 0
    while waiting:
        begin, end = breaks[-1], waiting[-1]
        middle, half = 0.5 * (begin + end), 0.5 * (end - begin)
        samples = np.array([value(middle + half * node) for node in nodes])
        piece = fit @ samples
        largest = np.maximum(largest, np.abs(samples).max(axis=0))
        if not straight and end - begin > LEAST * span:
            tried = np.array([value(middle + half * node) for node in TRIED])
            off = np.abs(check @ piece - tried).max(axis=0)
            if (off > CLOSE * largest).any() and begin < middle < end:
                waiting.append(middle)
                halved += 1
                if halved > MOST:
                    raise ScenarioError(
                        "what it does between the steps cannot be known: it jumps too often",
                        expected="functions of time that are smooth but for a few jumps",
                    )
                continue
        breaks.append(waiting.pop())
        found.append(np.where(np.abs(piece) > NOISE * largest, piece, 0.0))
    return Curves(np.array(breaks), np.array(found))
