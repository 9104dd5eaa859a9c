"""Columns of several rates on one time axis, and what they are over spans of time.

In:  columns by rate: times, which may repeat at events, and values
Out: values at other times; means, integrals and extremes between edges

A row of a time that repeats is an instant of its own: the n-th of one rate meets the n-th of another.
Between two rows what moves is a straight line, what is held keeps the value of the earlier row, and an event
is absent. Nothing is known before the first row and after the last one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hocket.engine.recording import EVENT, HELD
from hocket.model.protocols import Array

LAST = np.iinfo(np.int64).max
"""The number of whichever instant of a time is the last."""


@dataclass(frozen=True, eq=False)
class Rate:
    """Columns with the same times: `values` has a column for each kind."""

    t: Array
    values: Array
    kinds: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Rows:
    """Times of rows, and the number of each among those of its time."""

    t: Array
    n: NDArray[np.int64]

    @staticmethod
    def of(t: Array) -> Rows:
        """Return rows whose times are written one below the other."""
        return Rows(t, np.arange(len(t)) - np.searchsorted(t, t))

    @staticmethod
    def after(t: Array) -> Rows:
        """Return rows that show what is after all events of their times."""
        return Rows(t, np.full(len(t), LAST))


def union_rows(rates: Iterable[Rate]) -> Rows:
    """Return the rows of all rates, each once, in their order."""
    every = [Rows.of(rate.t) for rate in rates]
    pairs = np.zeros(sum(len(rows.t) for rows in every), [("t", float), ("n", np.int64)])
    pairs["t"] = np.concatenate([rows.t for rows in every])
    pairs["n"] = np.concatenate([rows.n for rows in every])
    order = np.lexsort((pairs["n"], pairs["t"]))
    pairs = pairs[order]
    new = np.r_[True, pairs[1:] != pairs[:-1]][: len(pairs)]
    return Rows(pairs["t"][new].copy(), pairs["n"][new].copy())


def values_at(rate: Rate, rows: Rows, interpolate: bool) -> Array:
    """Return the columns of a rate at rows, NaN where nothing is known; `interpolate` fills between its own.

    At a time that it has, a later instant than its own ones shows the last of them, if it fills.
    """
    found = np.full((len(rows.t), len(rate.kinds)), np.nan)
    if not len(rate.t):
        return found
    first, after = np.searchsorted(rate.t, rows.t), np.searchsorted(rate.t, rows.t, side="right")
    there = first < after
    late = rows.n >= after - first
    exact = there & ~(late & (rows.n != LAST))
    row = np.where(late, after - 1, first + np.minimum(rows.n, len(rate.t)))
    found[exact] = rate.values[row[exact]]
    if not interpolate:
        return found
    fills = np.array([kind != EVENT for kind in rate.kinds])
    stays = there & ~exact
    found[np.ix_(stays, fills)] = rate.values[np.ix_(after[stays] - 1, fills)]
    between = ~there & (after > 0) & (after < len(rate.t))
    low, high = after[between] - 1, after[between]
    weight = (rows.t[between] - rate.t[low]) / (rate.t[high] - rate.t[low])
    for column, kind in enumerate(rate.kinds):
        values = rate.values[:, column]
        if kind == HELD:
            found[between, column] = values[low]
        elif kind != EVENT:
            found[between, column] = values[low] + (values[high] - values[low]) * weight
    return found


@dataclass(frozen=True, eq=False)
class Pieces:
    """A column cut at edges, as straight pieces: how long each is, where it begins and ends, in which bin."""

    length: Array
    begin: Array
    end: Array
    bin: NDArray[np.intp]
    count: int

    @staticmethod
    def cut(t: Array, values: Array, kind: str, edges: Array) -> Pieces:
        """Return the pieces of a column between the first edge and the last."""
        rate = Rate(t, values.reshape(-1, 1), (kind,))
        inside = edges[(edges >= t[0]) & (edges <= t[-1])] if len(t) else edges[:0]
        times = np.unique(np.concatenate([t, inside]))
        times = times[(times >= edges[0]) & (times <= edges[-1])]
        right = values_at(rate, Rows.after(times), True)[:, 0]
        left = values_at(rate, Rows(times, np.zeros(len(times), np.int64)), True)[:, 0]
        begin = right[:-1]
        end = begin if kind == HELD else left[1:]
        number = np.searchsorted(edges, times[:-1], side="right") - 1
        return Pieces(np.diff(times), begin, end, number, len(edges) - 1)

    def integral(self) -> Array:
        """Return the integral over each bin; NaN where nothing is known of it."""
        areas = self.length * 0.5 * (self.begin + self.end)
        return np.where(self.lengths() > 0.0, self._sum(areas), np.nan)

    def mean(self) -> Array:
        """Return the mean over the known part of each bin."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.integral() / self.lengths()

    def lengths(self) -> Array:
        """Return how much of each bin is known, in seconds."""
        return self._sum(self.length)

    def above(self, level: float) -> Array:
        """Return for how long the column is above a level in each bin; lines cross it where they cross it."""
        low, high = np.minimum(self.begin, self.end), np.maximum(self.begin, self.end)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.where(low > level, 1.0, np.clip((high - level) / (high - low), 0.0, 1.0))
        part = np.where(high <= level, 0.0, part)
        return self._sum(self.length * np.where(np.isnan(low + high), np.nan, part))

    def extreme(self, what: np.ufunc, t: Array, values: Array, edges: Array) -> Array:
        """Return the least or the largest value of each bin, of events of no length too."""
        found = np.full(self.count, np.nan)
        bins = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, self.count - 1)
        inside = (t >= edges[0]) & (t <= edges[-1])
        _, repeats = np.unique(t, return_counts=True)
        own = np.repeat(repeats > 1, repeats)
        own[-1:] = True  # a value that is held from the last row on lasts for no time
        own &= inside & ((edges[bins] < t) | (bins == 0))
        numbers = np.concatenate([self.bin, bins[own]])
        ends = np.concatenate([what(self.begin, self.end), values[own]])
        order = np.argsort(numbers, kind="stable")
        numbers, ends = numbers[order], ends[order]
        if len(numbers):
            starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
            found[numbers[starts]] = what.reduceat(ends, starts)
        return found

    def _sum(self, values: Array) -> Array:
        return _sum_by_bin(self.bin, values, self.count)


def _sum_by_bin(bins: NDArray[np.intp], values: Array, count: int) -> Array:
    found: Array = np.zeros(count)
    np.add.at(found, bins, values)
    return found


def event_bins(t: Array, values: Array, edges: Array, how: str) -> Array:
    """Return what an event was in each bin, of the values that were present; NaN where there were none."""
    found = np.full(len(edges) - 1, np.nan)
    here = ~np.isnan(values) & (t >= edges[0]) & (t <= edges[-1])
    bins = np.clip(np.searchsorted(edges, t[here], side="right") - 1, 0, len(edges) - 2)
    present = values[here]
    if how == "count":
        return _sum_by_bin(bins, np.ones(len(bins)), len(edges) - 1)
    if not len(bins) or how in ("mean", "integral"):
        return found
    starts = np.flatnonzero(np.r_[True, bins[1:] != bins[:-1]])
    match how:
        case "min":
            found[bins[starts]] = np.minimum.reduceat(present, starts)
        case "max":
            found[bins[starts]] = np.maximum.reduceat(present, starts)
        case "first":
            found[bins[starts]] = present[starts]
        case "last":
            found[bins[starts]] = present[np.r_[starts[1:], len(bins)] - 1]
    return found


HOWS = ("mean", "integral", "min", "max", "first", "last", "count")


def bin_column(t: Array, values: Array, kind: str, edges: Array, how: str) -> Array:
    """Return a column over bins: `how` is one of HOWS; `count` is of the rows that were recorded."""
    if kind == EVENT:
        return event_bins(t, values, edges, how)
    if how == "count":
        return event_bins(t, np.zeros(len(t)), edges, how)
    if how in ("first", "last"):
        return _bin_ends(t, values, kind, edges, how)
    pieces = Pieces.cut(t, values, kind, edges)
    if not len(pieces.length) and len(t):  # one instant: it has values, and no length
        return np.full(len(edges) - 1, 0.0 if how == "integral" else values[-1])
    match how:
        case "mean":
            return pieces.mean()
        case "integral":
            return pieces.integral()
        case "min":
            return pieces.extreme(np.minimum, t, values, edges)
        case _:
            return pieces.extreme(np.maximum, t, values, edges)


def _bin_ends(t: Array, values: Array, kind: str, edges: Array, how: str) -> Array:
    """Return the value with which each bin begins, after the events there, or ends, before them."""
    if not len(t):
        return np.full(len(edges) - 1, np.nan)
    rate = Rate(t, values.reshape(-1, 1), (kind,))
    outside = (edges[:-1] > t[-1]) | (edges[1:] < t[0])
    if how == "first":
        found = values_at(rate, Rows.after(np.clip(edges[:-1], t[0], t[-1])), True)[:, 0]
        return np.where(outside, np.nan, found)
    times = np.clip(edges[1:], t[0], t[-1])
    if kind == HELD:  # just before the edge
        before = np.maximum(np.searchsorted(t, times) - 1, 0)
        found = np.where(times < t[-1], values[before], values[-1])
    else:  # the run's own end shows all that happened there
        found = values_at(rate, Rows(times, np.where(times < t[-1], 0, LAST)), True)[:, 0]
    return np.where(outside, np.nan, found)


def grid_times(start: Fraction, step: Fraction, stop: Fraction) -> Array:
    """Return times from start to stop, a step apart: each the float that is nearest, as rows have it."""
    count = (stop - start) // step + 1
    whole = math.lcm(start.denominator, step.denominator)
    first, apart = int(start * whole), int(step * whole)
    largest = max(abs(first), abs(first + apart * count), whole)
    if largest < 1 << 53:  # both are floats exactly, and a quotient is rounded once
        times: Array = (first + apart * np.arange(count, dtype=np.int64)) / whole
        return times
    return np.array([float(start + step * k) for k in range(count)])
