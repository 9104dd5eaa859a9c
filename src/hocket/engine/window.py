"""A past for the extrapolators: the first steps are iterated as one window, then rewound.

In:  leaves at the start, able to rewind
Out: per output a polynomial around the start, as accurate as the extrapolators can use

Without it a first step has one sample to extrapolate from, and the order of the whole run is at most 2
(formulas, section 4). Each sweep over the window gains one order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from hocket.engine.blueprint import Leaves
from hocket.engine.calls import simulator_error
from hocket.feedthrough import Feedthrough
from hocket.graph import strong_components
from hocket.model import Array, Sample, Simulator
from hocket.plan.post import Post
from hocket.signals import interpolate_samples, shift_origin, value_at
from hocket.wiring import CONSTANT, OWN

Curves: TypeAlias = list[list[list[Any]]]
"""Per leaf and output: coefficients in powers of the time since the start."""

SWEEPS = 40
TRUSTED = 0.25
"""How far the next sample may be from where the curve leads, as a part of the range of the samples."""


def window_curves(
    leaves: Leaves,
    simulators: list[Simulator],
    frozen: Sequence[bool],
    t: float,
    delta: float,
    degree: int,
    y0: list[Array],
    starts: tuple[float, ...],
    traffic: Post | None = None,
) -> Curves:
    """Return polynomials of this degree through `degree` steps of delta, around the start.

    Between hosts there are `degree` sweeps, no more and no fewer, for each costs messages; then those that
    react to others come after them and see what they have found, so that each sweep gains an order.

    An output whose next sample is not where its curve leads (a jump, a motion too fast for these steps)
    keeps a curve of degree 0: it has no past worth telling. So have all if the sweeps do not settle.
    `frozen` leaves do not move: they are sampled, at steps of their own.
    """
    names = leaves.wiring.names
    rewinding: Any = simulators
    saved = [_call_leaf(leaf.save, name, "save", t) for leaf, name in zip(rewinding, names, strict=True)]
    cold: Curves = [[[value] for value in outputs] for outputs in y0]
    curves, best = cold, np.inf
    samples: list[Array] = [np.zeros(0)] * len(names)
    seen: list[Array | None] = [None] * len(names)
    if traffic:
        traffic.flush()
        traffic.mark_all_known()
    try:
        for sweep in range(degree if traffic else SWEEPS):
            fresh = list(curves)
            for leaf in _feedthrough_order(leaves) if traffic else range(len(names)):
                simulator = rewinding[leaf]
                # on one host all leaves see the curves of the sweep before: their order must not matter
                u = _leaf_inputs(leaves, leaf, fresh if traffic else curves, degree, starts)
                before, seen[leaf] = seen[leaf], u
                if not traffic and before is not None and np.array_equal(u, before):
                    continue  # the same inputs from the same state: the same samples
                _call_leaf(partial(simulator.restore, saved[leaf]), names[leaf], "restore", t)
                if traffic:
                    traffic.feed(leaf, degree + 1)
                steps = 0 if frozen[leaf] else degree + 1
                samples[leaf] = _sample_outputs(simulator, names[leaf], t, delta, steps, u)
                if not np.isfinite(samples[leaf]).all():
                    return cold
                if traffic:
                    traffic.step(leaf)
                    traffic.read(leaf)
                fresh[leaf] = [_fit_curve(column[: degree + 1], delta) for column in samples[leaf].T]
            change = max(
                _curve_change(new, old, degree * delta)
                for ours, theirs in zip(fresh, curves, strict=True)
                for new, old in zip(ours, theirs, strict=True)
            )
            curves = fresh
            if traffic:
                continue
            if change <= 1e-14:
                break
            if sweep > degree + 2 and change >= 0.9 * best:
                if change > 1e-8:
                    return cold
                break
            best = min(best, change)
        if traffic:
            traffic.flush(degree + 1)
            traffic.mark_all_known()
    finally:
        for simulator, state, name in zip(rewinding, saved, names, strict=True):
            _call_leaf(partial(simulator.restore, state), name, "restore", t)
    return [
        [
            curve if _predicts_last(curve, column, delta) else [column[0]]
            for curve, column in zip(ours, each.T, strict=True)
        ]
        for ours, each in zip(curves, samples, strict=True)
    ]


def _feedthrough_order(leaves: Leaves) -> list[int]:
    """Return the leaves, those with outputs that react to others after these."""
    sources = Feedthrough(leaves.wiring, at_start=True).sources
    edges = {(source[0], node[0]) for node, reacts in sources.items() for source in reacts}
    return [leaf for group in strong_components(len(leaves.places), edges) for leaf in group]


def _call_leaf(call: Callable[[], Any], name: str, word: str, t: float) -> Any:
    try:
        return call()
    except Exception as error:
        raise simulator_error(name, word, t, error) from error


def _fit_curve(column: Array, delta: float) -> list[Any]:
    return interpolate_samples([Sample(k * delta, value) for k, value in enumerate(column)])


def _predicts_last(curve: list[Any], column: Array, delta: float) -> bool:
    """Return whether a curve through all samples but the last one leads there."""
    missed = abs(value_at(curve, (len(column) - 1) * delta) - column[-1])
    return bool(missed <= TRUSTED * np.ptp(column) + 1e-12 * np.abs(column).max())


def _leaf_inputs(leaves: Leaves, leaf: int, curves: Curves, degree: int, starts: tuple[float, ...]) -> Array:
    model = leaves.wiring.models[leaf]
    honoured = model.abilities.input_degree
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


def _sample_outputs(simulator: Simulator, name: str, t: float, delta: float, steps: int, u: Array) -> Array:
    """Return the outputs at the start and after each step, a row each."""

    def outputs(s: float) -> Array:
        returned = np.asarray(simulator.output(t + s, np.array(shift_origin(list(u), s))), dtype=float)
        return returned.reshape(-1).copy()

    try:
        samples = [outputs(0.0)]
        for k in range(steps):
            simulator.step(t + k * delta, delta, np.array(shift_origin(list(u), k * delta)))
            samples.append(outputs((k + 1) * delta))
    except Exception as error:
        raise simulator_error(name, "step", t, error) from error
    return np.array(samples)


def _curve_change(fresh: list[Any], old: list[Any], span: float) -> float:
    """Return the largest change over the window, relative to the values."""
    padded = [*old, *[0.0] * (len(fresh) - len(old))]
    scale = max(1.0, abs(fresh[0]))
    moved = sum(abs(a - b) * span**k for k, (a, b) in enumerate(zip(fresh, padded, strict=True)))
    return float(moved / scale)
