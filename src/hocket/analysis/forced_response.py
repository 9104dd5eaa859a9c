"""The exact solution with sources: their outputs over time as polynomials on pieces, and what they drive.

In:  a Composite with sources that are played, and how long they shall be followed
Out: Curves: values and derivatives at any times; a DrivenSolution
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from hocket.analysis.exact_solution import (
    ExactSolution,
    SampledSystem,
    couple_devices,
    coupled_system,
    devices_of,
)
from hocket.analysis.source_playback import played_sources
from hocket.engine.simulator_calls import simulator_error
from hocket.errors import ScenarioError, SimulatorError
from hocket.model.clock import Duration, seconds
from hocket.model.composite import Composite
from hocket.model.protocols import Array
from hocket.simulators.sources import Csv, Table

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


PIECES = 4000
"""How many pieces there are at least, or as many as steps."""
DERIVATIVES = 4
"""How many time derivatives of the sources are told."""
GRAIN = 64.0 * float(np.finfo(float).eps)
"""Lengths that differ by this part of the whole are the same."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DrivenSolution(ExactSolution):
    """The coupled system with its sources; rows act on [x, 1, s, s', s'' ...]."""

    pushes: Array
    """How the sources act on the states."""
    shares: Array
    """How they act on the outputs."""
    signals: Curves
    devices: SampledSystem | None = None
    """What jumps."""
    _forced_flows: dict[tuple[float, float], tuple[Array, Array]] = field(default_factory=dict, repr=False)

    @property
    def width(self) -> int:
        return super().width + (DERIVATIVES + 1) * self.signals.count

    @cached_property
    def generator(self) -> Array:
        """The matrix of the time derivative of [x, 1, s, s' ...]; the last derivatives are constant."""
        n, k = len(self.x0), self.signals.count
        whole = np.zeros((self.width, self.width))
        whole[: n + 1, : n + 1] = super().generator
        whole[:n, n + 1 : n + 1 + k] = self.pushes
        for row in range(n + 1, self.width - k):
            whole[row, row + k] = 1.0
        return whole

    @property
    def output_rows(self) -> Array:
        rest = np.zeros((len(self.ports), DERIVATIVES * self.signals.count))
        return np.hstack([super().output_rows, self.shares, rest])

    def trajectory(self, times: Array) -> Array:
        """Return [x, 1, s, s' ...], a row for each time."""
        times = self._snap_to_breaks(np.asarray(times, dtype=float))
        where = self.signals.piece_indices(times)
        since = times - self.signals.breaks[where]
        x = self._advance_states(self._states_at_breaks[where], where, since)
        told = [self.signals.at(times, derivative) for derivative in range(DERIVATIVES + 1)]
        return np.hstack([x, np.ones((len(times), 1)), *told])

    def _snap_to_breaks(self, times: Array) -> Array:
        """Return times that are meant as the beginning of a piece as just that: things jump there."""
        breaks = self.signals.breaks
        after = np.clip(np.searchsorted(breaks, times), 1, len(breaks) - 1)
        low, high = breaks[after - 1], breaks[after]
        nearest = np.where(times - low < high - times, low, high)
        return np.where(np.abs(times - nearest) <= GRAIN * breaks[-1], nearest, times)

    @cached_property
    def _states_at_breaks(self) -> Array:
        """The states where the pieces begin."""
        n, count = len(self.x0), len(self.signals.widths)
        found = np.zeros((count + 1, n))
        found[0] = self.x0
        pieces = np.arange(count)
        groups = self._group_equal_spans(self.signals.widths, pieces)
        pushed, flows = np.zeros((count, n)), np.zeros(count, dtype=int)
        kept = []
        for number, chosen in enumerate(groups):
            flow, forced = self._forced_flow(float(self.signals.widths[chosen].mean()), chosen[0])
            pushed[chosen] = self._forcing(chosen) @ forced.T
            flows[chosen] = number
            kept.append(flow)
        jumps = self._jumps_at_breaks()
        for piece in range(count):
            found[piece + 1] = kept[flows[piece]] @ found[piece] + pushed[piece]
            if piece + 1 in jumps:
                jump, told = jumps[piece + 1]
                found[piece + 1] = jump @ np.concatenate([found[piece + 1], told])
        return found

    def _jumps_at_breaks(self) -> dict[int, tuple[Array, Array]]:
        """Return the jumps where pieces begin, each with one and the sources that it looks at."""
        if self.devices is None:
            return {}
        when = self.devices.times(float(self.signals.breaks[-1]))
        told = self.signals.at(np.array(list(when)))
        ones = np.ones((len(told), 1))
        pieces = self.signals.piece_indices(np.array(list(when)))
        jumps = zip(pieces, when.values(), np.hstack([ones, told]), strict=True)
        return {int(piece): (self.devices.jump(who), row) for piece, who, row in jumps}

    def _advance_states(self, x: Array, where: Indices, since: Array) -> Array:
        """Return the states a while after the beginning of their pieces."""
        moved = x.copy()
        for chosen in self._group_equal_spans(since, where):
            span = float(since[chosen].mean())
            if span:
                flow, forced = self._forced_flow(span, where[chosen[0]])
                moved[chosen] = x[chosen] @ flow.T + self._forcing(where[chosen]) @ forced.T
        return moved

    def _group_equal_spans(self, spans: Array, where: Indices) -> list[Indices]:
        """Return groups of equal spans in pieces of equal width; what differs by rounding is equal."""
        grain = GRAIN * self.signals.breaks[-1]
        keys = np.round(np.column_stack([spans, self.signals.widths[where]]) / grain)
        if not len(keys):
            return []
        _, group = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        return list(np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1))

    def _forcing(self, pieces: Indices) -> Array:
        """Return one and the coefficients of the sources in these pieces, a row each."""
        coefficients = self.signals.coefficients[pieces].reshape(len(pieces), -1)
        return np.hstack([np.ones((len(pieces), 1)), coefficients])

    def _forced_flow(self, span: float, piece: int) -> tuple[Array, Array]:
        """Return how the states move on from the beginning of a piece, and how one and coefficients push."""
        width = float(self.signals.widths[piece])
        if (span, width) not in self._forced_flows:
            self._forced_flows[(span, width)] = self._exponential(span, width)
        return self._forced_flows[(span, width)]

    def _exponential(self, span: float, width: float) -> tuple[Array, Array]:
        """Return both for a span and a width of pieces.

        The coefficients seen from a later time change by those of the derivative, and their polynomials are
        taken where the piece begins.
        """
        from scipy.linalg import expm

        n, (_, powers, k) = len(self.x0), self.signals.coefficients.shape
        whole = np.zeros((n + 1 + powers * k, n + 1 + powers * k))
        whole[: n + 1, : n + 1] = span * super().generator
        begin = legendre.legvander(np.array([-1.0]), powers - 1)
        whole[:n, n + 1 :] = span * np.kron(begin, self.pushes)
        slope = np.zeros((powers, powers))
        slope[: powers - 1] = legendre.legder(np.eye(powers), axis=0)
        whole[n + 1 :, n + 1 :] = 2.0 * span / width * np.kron(slope, np.eye(k))
        found = np.asarray(expm(whole))[:n]
        return found[:, :n], found[:, n:]


def driven_solution(composite: Composite, stop: Duration, start: Duration = 0) -> DrivenSolution:
    """Return the exact solution of a composite with sources over a run of this length.

    `start` is the time at which the run starts; times of the solution count from there.
    """
    span, begin = seconds(stop), seconds(start)
    devices = devices_of(composite)
    if not devices:
        system, pushes, shares = coupled_system(composite)
        signals, jumping = _source_curves(composite, span, begin), None
    else:
        jumping, pushes = couple_devices(composite, devices)
        system, shares = jumping.system, jumping.shares
        signals = _source_curves(composite, span, begin, jumping.times(float(span + composite.step)))
    return DrivenSolution(**vars(system), pushes=pushes, shares=shares, signals=signals, devices=jumping)


def _source_curves(
    composite: Composite, stop: Fraction, start: Fraction, jumps: Iterable[float] = ()
) -> Curves:
    """Return what the sources do, and a little more: at the end they may jump."""
    played, first, step = played_sources(composite), float(start), composite.step
    live = [(name, model.open()) for name, model in played]
    try:
        for name, simulator in live:
            _query_source(name, simulator.start, first)

        def value(t: float) -> Array:
            told = [_query_source(name, each.sample_at, t + first) for name, each in live]
            return np.concatenate(told) if told else np.zeros(0)

        straight = all(isinstance(model.stands_for, (Table, Csv)) for _, model in played)
        apart = step * max(1, int(stop / step / PIECES))
        begins = [float(number * apart) for number in range(int(stop / apart) + 1)]
        for _, simulator in live:
            begins += [knot - first for knot in simulator.knots]
        try:
            end = float(stop + step)
            value(end)
        except SimulatorError:
            end = float(stop)
        return fit_curves(value, end, [*begins, *jumps, float(stop)], straight)
    finally:
        for _, simulator in live:
            simulator.close()


def _query_source(name: str, call: Callable[[float], Any], t: float) -> Any:
    try:
        return call(t)
    except Exception as error:
        raise simulator_error(name, "output", t, error) from error
