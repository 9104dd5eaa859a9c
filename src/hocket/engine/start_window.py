"""The start window: a past for the extrapolators, found by letting simulators run ahead and back again.

In:  simulators at the start, with consistent outputs
Out: polynomials of their outputs around the start; the simulators are where they were
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from hocket.coupling.wiring import CONSTANT, OWN
from hocket.engine.host_exchange import CurvePlaces, HostExchange
from hocket.engine.simulator_calls import blame
from hocket.model.clock import Clock
from hocket.model.extrapolators import interpolate_samples, shift_origin, value_at
from hocket.model.protocols import Array, EventSimulator, Sample, Simulator, provides
from hocket.plan.messages import Node, Post
from hocket.planning.tree import Leaves, window_order

Curves: TypeAlias = list[list[list[Any]]]
"""Per leaf and output: coefficients in powers of the time since the start."""

SWEEPS = 40
TRUSTED = 0.25
"""How far the next sample may be from where the curve leads, as a part of the range of the samples."""


@dataclass
class StartWindow:
    """Simulators that run `degree` + 1 steps ahead from the start, and back again, under some curves."""

    leaves: Leaves
    simulators: list[Any]
    frozen: Sequence[bool]
    """Those that do not move: they are sampled, at steps of their own."""
    clock: Clock
    ticks: Fraction
    """Of a step."""
    degree: int
    starts: tuple[float, ...]
    samples: list[Array] = field(init=False)
    """Of the newest run ahead: the outputs at its start and after each step."""

    def __post_init__(self) -> None:
        names, end = self.leaves.wiring.names, (self.degree + 1) * self.ticks
        self.t, self.delta = self.time(0), float(self.clock.tick * self.ticks)
        # who announces an event in the window stands still too: others would take the polynomial through its
        # jump for their past, and act before it
        self.frozen = [
            still or self._is_due(simulator, name, end)
            for still, simulator, name in zip(self.frozen, self.simulators, names, strict=True)
        ]
        self.samples = [np.zeros(0)] * len(names)
        self._saved = []
        for leaf, name in zip(self.simulators, names, strict=True):
            with blame(name, "save", self.t):
                self._saved.append(leaf.save())

    def time(self, step: int) -> float:
        """Return the time after so many steps."""
        return self.clock.time(step * self.ticks)  # type: ignore[arg-type]

    def _is_due(self, simulator: Simulator, name: str, end: Fraction) -> bool:
        """Return whether a simulator announces an event until `end`, in ticks."""
        if not provides(simulator, EventSimulator):
            return False
        with blame(name, "due", self.t):
            due = simulator.due()
        if not isinstance(due, Real) or not math.isfinite(due):
            return False  # what is not a time is refused where it is used
        return self.clock.event_tick(due if isinstance(due, Fraction) else float(due)) <= end

    def restore(self, leaf: int) -> None:
        """Let a simulator be where it was at the start."""
        with blame(self.leaves.wiring.names[leaf], "restore", self.t):
            self.simulators[leaf].restore(self._saved[leaf])

    def restore_all(self) -> None:
        """Let all simulators be where they were at the start."""
        for leaf in range(len(self.simulators)):
            self.restore(leaf)

    def inputs(self, leaf: int, curves: Curves) -> Array:
        """Return the inputs of a simulator under the curves of those that drive it."""
        return _leaf_inputs(self.leaves, leaf, curves, self.degree, self.starts)

    def run_ahead(self, leaf: int, u: Array) -> bool:
        """Sample a simulator from the start on; return whether it shows finite numbers."""
        steps = 0 if self.frozen[leaf] else self.degree + 1
        name = self.leaves.wiring.names[leaf]
        self.samples[leaf] = self._sample_outputs(self.simulators[leaf], name, steps, u)
        return bool(np.isfinite(self.samples[leaf]).all())

    def _sample_outputs(self, simulator: Simulator, name: str, steps: int, u: Array) -> Array:
        """Return the outputs at the start and after each step, a row each."""

        def outputs(step: int) -> Array:
            moved = np.array(shift_origin(list(u), step * self.delta))
            returned = np.asarray(simulator.output(self.time(step), moved), dtype=float)
            return returned.reshape(-1).copy()

        with blame(name, "step", self.t):
            samples = [outputs(0)]
            for k in range(steps):
                simulator.step(self.time(k), self.delta, np.array(shift_origin(list(u), k * self.delta)))
                samples.append(outputs(k + 1))
        return np.array(samples)

    def fit(self, leaf: int, held: frozenset[Node] = frozenset()) -> list[list[Any]]:
        """Return the curves of the outputs that were sampled; constant where they are held."""
        return [
            _fit_curve(column[: 1 if (leaf, port) in held else self.degree + 1], self.delta)
            for port, column in enumerate(self.samples[leaf].T)
        ]

    def doubtful_outputs(self, curves: Curves, leaves: Sequence[int]) -> set[Node]:
        """Return the outputs of some simulators whose next sample is not where the curve leads."""
        return {
            (leaf, port)
            for leaf in leaves
            for port, (curve, column) in enumerate(zip(curves[leaf], self.samples[leaf].T, strict=True))
            if not _predicts_last(curve, column, self.delta)
        }

    def without_past(self, curves: Curves, doubtful: set[Node]) -> Curves:
        """Return the curves; those of doubtful outputs are constant: they have no past worth telling."""
        return [
            [
                [self.samples[leaf][0, port]] if (leaf, port) in doubtful else curve
                for port, curve in enumerate(ours)
            ]
            for leaf, ours in enumerate(curves)
        ]


def window_curves(window: StartWindow, y0: list[Array]) -> Curves:
    """Return polynomials through `degree` steps of delta, around the start.

    An output whose next sample is not where its curve leads (a jump, a motion too fast for these steps)
    keeps a curve of degree 0: it has no past worth telling. So have all if the iteration does not settle.
    What it drives is looked at anew, with that output held: under the polynomial through a jump it would
    move before the jump.
    """
    leaves, held = range(len(window.simulators)), frozenset[Node]()
    drives = window.leaves.wiring.drives
    driving = {(drive.child, drive.port) for each in drives for drive in each if drive is not None}
    while True:
        curves = _settle_curves(window, y0, held)
        if curves is None:
            return _cold(y0)
        doubtful = window.doubtful_outputs(curves, leaves) - held
        if not doubtful & driving:
            return window.without_past(curves, doubtful)
        held |= doubtful


def _settle_curves(window: StartWindow, y0: list[Array], held: frozenset[Node]) -> Curves | None:
    """Return curves that agree with what they lead to; None: there are none, or they are not finite."""
    leaves, curves, best = range(len(window.simulators)), _cold(y0), np.inf
    seen: list[Array | None] = [None] * len(leaves)
    try:
        for sweep in range(SWEEPS):
            fresh = list(curves)
            for leaf in leaves:
                # all see the curves of the sweep before: their order must not matter
                u = window.inputs(leaf, curves)
                before, seen[leaf] = seen[leaf], u
                if before is not None and np.array_equal(u, before):
                    continue  # the same inputs from the same state: the same samples
                window.restore(leaf)
                if not window.run_ahead(leaf, u):
                    return None
                fresh[leaf] = window.fit(leaf, held)
            change = max(
                _curve_change(new, old, window.degree * window.delta)
                for ours, theirs in zip(fresh, curves, strict=True)
                for new, old in zip(ours, theirs, strict=True)
            )
            curves = fresh
            if change <= 1e-14:
                break
            if sweep > window.degree + 2 and change >= 0.9 * best:
                if change > 1e-8:
                    return None
                break
            best = min(best, change)
    finally:
        window.restore_all()
    return curves


def exchanged_curves(window: StartWindow, y0: list[Array], traffic: Post) -> Curves:
    """Return the curves as `window_curves` does, where hosts exchange them: each exchange costs messages.

    There are `degree` sweeps, no more and no fewer; those that react to others come after them and see what
    they have found, so that each sweep gains an order. Doubtful outputs are held in the last sweep only.
    """
    curves = _cold(y0)
    traffic.flush()
    traffic.mark_all_known()
    if isinstance(traffic.carrier, HostExchange):
        traffic.carrier.places = CurvePlaces(curves)
    finite = True
    try:
        for sweep in range(window.degree):
            for leaf in window_order(window.leaves):
                traffic.feed(leaf, window.degree + 1)
                if finite and leaf not in traffic.remote:
                    window.restore(leaf)
                    finite = window.run_ahead(leaf, window.inputs(leaf, curves))
                    if finite:
                        curves[leaf] = window.fit(leaf)
                    elif traffic.carrier is None:
                        return _cold(y0)
                if finite and sweep == window.degree - 1 and leaf not in traffic.remote:
                    curves[:] = window.without_past(curves, window.doubtful_outputs(curves, [leaf]))
                traffic.step(leaf)
                traffic.read(leaf)
        traffic.flush(window.degree + 1)
        traffic.mark_all_known()
    finally:
        window.restore_all()
    return _cold(y0) if any(traffic.agree([not finite])) else curves


def _cold(y0: list[Array]) -> Curves:
    return [[[value] for value in outputs] for outputs in y0]


def _fit_curve(column: Array, delta: float) -> list[Any]:
    return interpolate_samples([Sample(k * delta, value) for k, value in enumerate(column)])


def _predicts_last(curve: list[Any], column: Array, delta: float) -> bool:
    """Return whether a curve through all samples but the last one leads there."""
    missed = abs(value_at(curve, (len(column) - 1) * delta) - column[-1])
    return bool(missed <= TRUSTED * np.ptp(column) + 1e-12 * np.abs(column).max())


def _leaf_inputs(leaves: Leaves, leaf: int, curves: Curves, degree: int, starts: tuple[float, ...]) -> Array:
    model = leaves.wiring.models[leaf]
    honoured = model.capabilities.input_degree
    u = np.zeros((1 + (degree if honoured is None else min(degree, honoured)), len(model.inputs)))
    for index, (port, drive) in enumerate(zip(model.inputs, leaves.wiring.drives[leaf], strict=True)):
        if drive is None:
            u[0, index] = port.start or 0.0
        elif drive.child == CONSTANT:
            u[0, index] = drive.offset
        elif drive.child == OWN:
            u[0, index] = drive.gain * starts[drive.port] + drive.offset
        else:
            for power, coefficient in enumerate(curves[drive.child][drive.port][: len(u)]):
                u[power, index] = drive.gain * coefficient
            u[0, index] += drive.offset
    return u


def _curve_change(fresh: list[Any], old: list[Any], span: float) -> float:
    """Return the largest change over the window, relative to the values."""
    padded = [*old, *[0.0] * (len(fresh) - len(old))]
    scale = max(1.0, abs(fresh[0]))
    moved = sum(abs(a - b) * span**k for k, (a, b) in enumerate(zip(fresh, padded, strict=True)))
    return float(moved / scale)
