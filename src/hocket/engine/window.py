"""A past for the extrapolators: the first steps are iterated as one window, then rewound.

In:  leaves at the start, able to rewind
Out: per output a polynomial around the start, as accurate as the extrapolators can use

Without it a first step has one sample to extrapolate from, and the order of the whole run is at most 2
(formulas, section 4). Each sweep over the window gains one order.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from hocket.engine.blueprint import Leaves
from hocket.model import Array, Sample, Simulator
from hocket.signals import shifted, through
from hocket.wiring import OWN

Curves: TypeAlias = list[list[list[Any]]]
"""Per leaf and output: coefficients in powers of the time since the start."""

SWEEPS = 40


def window(
    leaves: Leaves,
    simulators: list[Simulator],
    t: float,
    delta: float,
    degree: int,
    curves: Curves,
    starts: tuple[float, ...],
) -> Curves | None:
    """Return polynomials of this degree through `degree` steps of delta; None if the sweeps do not settle."""
    saved = [simulator.save() for simulator in simulators]  # type: ignore[attr-defined]
    best = np.inf
    try:
        for sweep in range(SWEEPS):
            # all leaves see the curves of the sweep before: their order must not matter
            fresh: Curves = []
            for leaf, simulator in enumerate(simulators):
                simulator.restore(saved[leaf])  # type: ignore[attr-defined]
                samples = _sampled(simulator, t, delta, degree, _inputs(leaves, leaf, curves, degree, starts))
                if not np.isfinite(samples).all():
                    return None
                points = [
                    [Sample(k * delta, value) for k, value in enumerate(column)] for column in samples.T
                ]
                fresh.append([through(column) for column in points])
            change = max(
                _difference(new, old, degree * delta)
                for ours, theirs in zip(fresh, curves, strict=True)
                for new, old in zip(ours, theirs, strict=True)
            )
            curves = fresh
            if change <= 1e-14:
                break
            if sweep > degree + 2 and change >= 0.9 * best:
                return curves if change < 1e-8 else None
            best = min(best, change)
        return curves
    finally:
        for simulator, state in zip(simulators, saved, strict=True):
            simulator.restore(state)  # type: ignore[attr-defined]


def _inputs(leaves: Leaves, leaf: int, curves: Curves, degree: int, starts: tuple[float, ...]) -> Array:
    model = leaves.wiring.models[leaf]
    honoured = model.abilities.input_degree
    u = np.zeros((1 + (degree if honoured is None else min(degree, honoured)), len(model.inputs)))
    for index, (port, drive) in enumerate(zip(model.inputs, leaves.wiring.drives[leaf], strict=True)):
        if drive is None:
            u[0, index] = port.start or 0.0
        elif drive.child == OWN:
            u[0, index] = drive.gain * starts[drive.port] + drive.offset
        else:
            for power, coefficient in enumerate(curves[drive.child][drive.port][: len(u)]):
                u[power, index] = drive.gain * coefficient
            u[0, index] += drive.offset
    return u


def _sampled(simulator: Simulator, t: float, delta: float, degree: int, u: Array) -> Array:
    samples = [np.asarray(simulator.output(t, u), dtype=float).reshape(-1)]
    for k in range(degree):
        simulator.step(t + k * delta, delta, np.array(shifted(list(u), k * delta)))
        now = (k + 1) * delta
        samples.append(
            np.asarray(simulator.output(t + now, np.array(shifted(list(u), now))), dtype=float).reshape(-1)
        )
    return np.array(samples)


def _difference(fresh: list[Any], old: list[Any], span: float) -> float:
    """Return the largest change over the window, relative to the values."""
    padded = [*old, *[0.0] * (len(fresh) - len(old))]
    scale = max(1.0, abs(fresh[0]))
    moved = sum(abs(a - b) * span**k for k, (a, b) in enumerate(zip(fresh, padded, strict=True)))
    return float(moved / scale)
