"""What a black box answers when pushed: whether the answers agree, how long they tell, how well they fit.

In:  outputs after each step, less those of the undisturbed run
Out: Markov parameters with their noise; relative errors
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hocket.model import Array

ALIKE = 0.2
"""How far answers to much smaller pushes may differ from those before."""
ROUNDING = 1e-13
"""Answers below this part of an output's values are rounding."""
SILENT = 1e-10
"""An output that moves by less than this part of its values does not count in a fit."""
EARLY, FIRST, FEWEST = 8, 3, 8
"""Steps in which an answer shows its size, or if it grows fast; and steps that are kept however it grows."""

Truth: TypeAlias = NDArray[np.bool_]


@dataclass
class PulseResponses:
    """The answers to pulses, per unit of push: shape (pushed, steps + 1, rows)."""

    markov: Array
    size: float
    """The size of the push they were taken at, in units of the inputs."""
    noise: float
    """How far they are off, relative to the largest answer to the same push."""


def responses_agree(one: Array, other: Array) -> bool:
    """Return whether answers to pushes of quite different sizes are about the same."""
    length = min(one.shape[1], other.shape[1])
    one, other = one[:, :length], other[:, :length]
    largest = np.maximum(np.abs(one), np.abs(other)).max(axis=(0, 1))
    return bool((np.abs(one - other).max(axis=(0, 1)) <= ALIKE * largest).all())


def choose_responses(answers: Array, top: Array, sizes: tuple[float, float]) -> PulseResponses:
    """Return the means of up and down, of the size that errs less.

    Rounding and the noise of solvers count less in larger pushes, what is crooked counts more.
    """
    small, large = answers.mean(axis=1)
    apart = np.abs(large - small) / top
    bent = (np.abs(answers[:, 0] - answers[:, 1]) / top).max(axis=(1, 2, 3), initial=0.0)
    each = np.abs(large / top).max(axis=(1, 2), initial=0.0)
    noise = float((apart.max(axis=(1, 2)) / np.where(each > 0.0, each, 1.0)).max(initial=ROUNDING))
    if bent[1] <= bent[0] and apart.max(initial=0.0) <= 2.0 * bent[0]:
        return PulseResponses(large, sizes[1], noise)
    return PulseResponses(small, sizes[0], max(noise / 50.0, ROUNDING))


def relative_error(predicted: Array, measured: Array, scale: Array) -> float:
    """Return the relative error of the row where it is largest, of those that answer at all."""
    seen: Truth = np.abs(measured).max(axis=0) > SILENT * scale
    if not seen.any():
        return 0.0
    with np.errstate(all="ignore"):  # a poor model may be off by any amount
        off = np.linalg.norm((predicted - measured)[:, seen], axis=0)
        worst = float((off / np.linalg.norm(measured[:, seen], axis=0)).max())
    return worst if math.isfinite(worst) else math.inf


def informative_steps(rows: Array, most: int, growth: float) -> int:
    """Return how many steps tell of more than the fastest growth."""
    sizes = np.abs(rows)
    early, first = (sizes[: count + 1].max(axis=0) for count in (EARLY, FIRST))
    grown = ((sizes > growth * early) & (early > 0.0)) | ((sizes > growth**2 * first) & (first > 0.0))
    after = grown.any(axis=1)
    return min(max(int(np.argmax(after)), FEWEST), most) if after.any() else most
