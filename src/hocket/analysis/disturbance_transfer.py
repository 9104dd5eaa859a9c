"""How much a stable map amplifies on the unit circle: the peak of M(z) = D + C (z I - Phi)^-1 B.

In:  Phi, B, C, D with rho(Phi) < 1
Out: the peak over |z| = 1, where it is, and a level that M does not reach anywhere on the circle

Phi is real, so the upper half of the circle tells everything: angles go from 0 to pi.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hocket.analysis.linear_models import IgnoredTexts, InnerAttribute
from hocket.analysis.linear_reading import (
    Reading,
    advance_ticks,
    gather_state,
    leaf_children,
    live_columns,
    scatter_state,
)
from hocket.analysis.sampled_models import SampledStandInSimulator
from hocket.engine.reference.level import Level
from hocket.errors import ScenarioError, suggest_nearest
from hocket.model.protocols import Array, OutputDerivativeSimulator, hand_on
from hocket.plan import Repeat

Complex: TypeAlias = NDArray[np.complex128]
Real: TypeAlias = NDArray[np.float64]

GAP = 1e-7
"""How far above the peak, relative to it, the level is that is shown not to be reached."""
LARGEST = 200
"""The size of Phi up to which that is shown: the pencil is twice as large, the cost its cube."""
BATCH = 64
"""The size of Phi up to which many points are tried in one call of LAPACK."""
NEAR = 1e-3
"""Eigenvalues of the pencil this near the circle are looked at; those not on it do no harm."""
NOTHING = 1e-100
"""Gains below this are zero, and level sets of them are not looked for."""
ROUNDS = 30
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""The part of a range that is kept when it is cut by the golden section."""
EPSILON = 2.0**-52


@dataclass(frozen=True, eq=False)
class Transfer:
    """M(z) = D + C (z I - Phi)^-1 B."""

    Phi: Array
    B: Array | Complex
    C: Array | Complex
    D: Array | Complex
    plain: bool = False
    """M(z) = (z I - Phi)^-1."""

    @classmethod
    def resolvent(cls, Phi: Array) -> Transfer:
        """Return (z I - Phi)^-1: every number may be disturbed, and is seen."""
        n = len(Phi)
        return cls(Phi, np.eye(n), np.eye(n), np.zeros((n, n)), plain=True)

    def at(self, angle: float) -> Complex:
        """Return M at a point of the unit circle."""
        shifted = np.exp(1j * angle) * np.eye(len(self.Phi)) - self.Phi
        return np.asarray(self.D + self.C @ np.linalg.solve(shifted, self.B.astype(complex)))

    def gain(self, angle: float) -> float:
        """Return the largest singular value of M at a point of the unit circle."""
        return float(self.gains(np.array([angle]))[0])

    def gains(self, angles: Real) -> Real:
        """Return the gain at many points."""
        if not self.D.size:
            return np.zeros(len(angles))
        if len(self.Phi) > BATCH and len(angles) > 1:
            return np.array([self.gain(float(angle)) for angle in angles])
        z = np.exp(1j * np.asarray(angles))[:, None, None]
        shifted = z * np.eye(len(self.Phi)) - self.Phi
        if self.plain:
            values = np.linalg.svd(shifted, compute_uv=False)
            return np.asarray(1.0 / np.maximum(values[:, -1], EPSILON * values[:, 0]))
        B = np.broadcast_to(self.B.astype(complex), (len(angles), *self.B.shape))
        M = self.D + self.C @ np.linalg.solve(shifted, B)
        return np.asarray(np.linalg.svd(M, compute_uv=False)[:, 0])

    def crossings(self, level: float) -> Real:
        """Return every angle where a singular value of M may equal the level, in ascending order.

        They are the eigenvalues on the unit circle of a symplectic pencil (Hinrichsen & Son, 1989; with D
        after Bruinsma & Steinbuch, 1990): z v = A v + Q p, p = z (P v + A* p).
        """
        n = len(self.Phi)
        B, C, D = self.B, self.C, self.D
        solve, squared = np.linalg.solve, level * level
        R = squared * np.eye(D.shape[1]) - D.conj().T @ D
        S = squared * np.eye(D.shape[0]) - D @ D.conj().T
        A = self.Phi + B @ solve(R, D.conj().T @ C)
        Q = level * B @ solve(R, B.conj().T)
        P = level * C.conj().T @ solve(S, C)
        left = np.block([[A, Q], [np.zeros((n, n)), np.eye(n)]])
        right = np.block([[np.eye(n), np.zeros((n, n))], [P, A.conj().T]])
        above, below = scipy.linalg.eig(left, right, right=False, homogeneous_eigvals=True)
        near = np.abs(np.abs(above) - np.abs(below)) <= NEAR * np.abs(below)
        angles = np.angle(above[near] / below[near])
        return np.asarray(np.unique(angles[(angles > 0) & (angles < np.pi)]))

    @cached_property
    def eigenvalues(self) -> Complex:
        """The spectrum of Phi."""
        return np.asarray(np.linalg.eigvals(self.Phi), dtype=complex)

    def angles(self, uniform: int = 33, spectral: int = 24) -> Real:
        """Return where to look first: all around, and beside the eigenvalues nearest to the circle."""
        largest = self.eigenvalues[np.argsort(-np.abs(self.eigenvalues))][:spectral]
        beside = np.abs(np.angle(largest))
        return np.asarray(np.unique(np.concatenate([np.linspace(0.0, np.pi, uniform), beside])))


@dataclass(frozen=True, eq=False)
class Peak:
    """The largest gain, where it is, and the level that is reached nowhere."""

    angle: float
    gain: float
    level: float
    certified: bool
    angles: Real
    gains: Real


def peak(transfer: Transfer) -> Peak:
    """Return the largest gain on the unit circle: found by search, shown to be global by level sets."""
    large = len(transfer.Phi) > LARGEST
    angles = transfer.angles(9, 6) if large else transfer.angles()
    gains = transfer.gains(angles)
    angle, gain = _refine_peak(transfer, angles, gains, 1 if large else 3)
    if gain <= NOTHING:
        return Peak(angle, gain, gain, True, angles, gains)
    for _ in range(0 if large else ROUNDS):
        level = gain * (1.0 + GAP)
        higher = _angle_above_level(transfer, level)
        if higher is None:
            return Peak(angle, gain, level, True, angles, gains)
        angles = np.unique(np.append(angles, higher))
        gains = transfer.gains(angles)
        angle, gain = _refine_peak(transfer, angles, gains, 1)
    return Peak(angle, gain, gain, False, angles, gains)


def _angle_above_level(transfer: Transfer, level: float) -> float | None:
    """Return an angle with a gain above the level, or None where there is none.

    Between neighbouring crossings the gain stays on one side, so one point of each arc decides.
    """
    ends = np.concatenate([[0.0], transfer.crossings(level), [np.pi]])
    middles = (ends[1:] + ends[:-1]) / 2.0
    gains = transfer.gains(middles)
    best = int(np.argmax(gains))
    return float(middles[best]) if gains[best] > level else None


def _refine_peak(transfer: Transfer, angles: Real, gains: Real, count: int) -> tuple[float, float]:
    """Return the best point near the highest points of a grid."""
    padded = np.concatenate([[-np.inf], gains, [-np.inf]])
    tops = np.flatnonzero((padded[1:-1] >= padded[:-2]) & (padded[1:-1] >= padded[2:]))
    best = int(np.argmax(gains))
    angle, gain = float(angles[best]), float(gains[best])
    # peaks are as wide as the eigenvalues behind them are inside the circle
    width = 1.0 - float(np.abs(transfer.eigenvalues).max(initial=0.0))
    exact = max(1e-9, (1e-4 if len(transfer.Phi) <= LARGEST else 1e-2) * width)
    for top in tops[np.argsort(-gains[tops])][:count]:
        low, high = angles[max(top - 1, 0)], angles[min(top + 1, len(angles) - 1)]
        place, height = find_minimum(lambda a: -transfer.gain(a), float(low), float(high), exact)
        if -height > gain:
            angle, gain = place, -height
    return angle, gain


def find_minimum(f: Callable[[float], float], low: float, high: float, exact: float) -> tuple[float, float]:
    """Return where f is lowest between two ends, to within `exact`, and how low: golden section.

    (Kiefer 1953.) Of several valleys one is found.
    """
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = f(left), f(right)
    while high - low > exact:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = f(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = f(right)
        if not low < left <= right < high:
            break
    return (left, at_left) if at_left <= at_right else (right, at_right)


@dataclass(frozen=True)
class UncertainBlock:
    """One uncertain simulator: its step maps `sees` numbers to `moves` numbers, `times` times per period."""

    name: str
    moves: int
    sees: int
    times: int
    norm: float
    """The norm of the step map itself, the 2-norm."""


@dataclass(frozen=True, eq=False)
class DisturbanceModel:
    """The map from disturbances to what uncertain simulators see; rows and columns block by block."""

    transfer: Transfer
    blocks: tuple[UncertainBlock, ...]
    maps: tuple[Array, ...]
    """The step map of each block, from (state, input coefficients) to new state."""
    stateless: tuple[str, ...]
    """Those named that have no state, so that nothing of their steps can change."""


class _Tap(IgnoredTexts):
    """Stands before a live simulator: notes what it sees, and adds a disturbance to each new state."""

    z, last_h, size = InnerAttribute(), InnerAttribute(), InnerAttribute()

    def __init__(self, level: Level, child: int, simulator: Any):
        self.level, self.child, self.inner = level, child, simulator
        self.seen: list[Array] = []
        self.first: int | None = None
        """The column of the first disturbance; None: only count."""
        self.own: Array = np.zeros((0, 0))
        self.start, self.output, self.close = simulator.start, simulator.output, simulator.close
        hand_on(simulator, self, (OutputDerivativeSimulator,))

    def step(self, t: float, h: float, u: Array) -> float:
        """Step, and note; each call disturbs in columns of its own."""
        z: Array = self.z
        if not self.seen:
            self.own = self._step_map(t, h, u)
        lengths = h ** np.arange(len(u))[:, None, None]
        self.seen.append(np.vstack([z, (u * lengths).reshape(-1, z.shape[1])]))
        reached: float = self.inner.step(t, h, u)
        if self.first is not None:
            disturbed = self.z.copy()
            rows = np.arange(len(disturbed))
            disturbed[rows, self.first + (len(self.seen) - 1) * len(disturbed) + rows] += 1.0
            self.z = disturbed
        return reached

    def save(self) -> Any:
        """Return the state, and how many steps were seen."""
        return self.inner.save(), len(self.seen)

    def restore(self, state: Any) -> None:
        """Roll back: a step that is made again to a limit is the same step, disturbed alike."""
        self.inner.restore(state[0])
        del self.seen[state[1] :]

    @property
    def block(self) -> UncertainBlock:
        """The simulator, as a block that may change."""
        moves, sees = self.own.shape
        norm = float(np.linalg.norm(self.own, 2))
        return UncertainBlock(self.level.name(self.child), moves, sees, len(self.seen), norm)

    def _step_map(self, t: float, h: float, u: Array) -> Array:
        """Return the step map of the simulator alone: what units of state and input do."""
        before = self.inner.save()
        states, inputs = len(self.z), u.shape[0] * u.shape[1]
        width = 1 + states + inputs  # the first column is for what does not depend on anything
        self.z = np.eye(states, width, 1)
        units = np.eye(inputs, width, 1 + states).reshape(*u.shape[:2], width)
        self.inner.step(t, h, units / h ** np.arange(len(u))[:, None, None])
        found: Array = (self.z - self.z[:, :1])[:, 1:]
        self.inner.restore(before)
        return found


def disturbance_model(reading: Reading, names: Sequence[str]) -> DisturbanceModel:
    """Return where disturbances of the steps of these simulators go; a level's name means all in it."""
    root, taps = reading.root, []
    named = _find_simulators(root, names)
    stateless = tuple(level.name(child) for level, child, simulator in named if not len(simulator.z))
    _check_iterations(root)
    _check_equal_steps(root)
    saved = root.save()
    try:
        for level, child, simulator in named:
            if len(simulator.z):
                taps.append(_Tap(level, child, simulator))
                level.children[child] = taps[-1]
        size = len(reading.z)
        _advance_period(reading, np.zeros((size, 1)))
        first = 1 + size
        for tap in taps:
            tap.first, calls, tap.seen = first, len(tap.seen), []
            first += calls * len(tap.z)
        after = _advance_period(reading, np.eye(size, first, 1))
    finally:
        for tap in taps:
            tap.level.children[tap.child] = tap.inner
        root.restore(saved)
    seen = np.vstack([rows for tap in taps for rows in tap.seen] or [np.zeros((0, first))])
    moved, seen = (after - after[:, :1])[:, 1:], (seen - seen[:, :1])[:, 1:]
    B, C, D = moved[:, size:], seen[:, :size], seen[:, size:]
    kept = live_columns(reading.Phi, C)
    transfer = Transfer(np.asarray(reading.Phi[np.ix_(kept, kept)]), B[kept], C[:, kept], D)
    blocks, maps = tuple(tap.block for tap in taps), tuple(tap.own for tap in taps)
    return DisturbanceModel(transfer, blocks, maps, stateless)


def _check_iterations(root: Level) -> None:
    """Refuse iterations that see different things: each would be disturbed in another way."""
    for level, loop in root.tree.instructions(Repeat):
        if loop.until is None and loop.at_most > 1:
            where = f" of `{level.path}`" if level.path else ""
            what = f"the steps{where} are made again a fixed number of times: their radius is not known"
            raise ScenarioError(what, expected="an iteration to a tolerance, or none")


def _check_equal_steps(root: Level) -> None:
    """Refuse steps that end at samples: those of one simulator have several lengths, and maps."""
    for level, child, simulator in leaf_children(root):
        if isinstance(simulator, SampledStandInSimulator):
            what = f"steps end at the samples of `{level.name(child)}`, so that they are not all alike"
            raise ScenarioError(f"{what}: their radius is not known", expected="steps of one length")


def _advance_period(reading: Reading, z: Array) -> Array:
    scatter_state(reading.root, z)
    advance_ticks(reading.root, reading.root.clock.ticks(reading.period))
    return gather_state(reading.root).reshape(z.shape)


def _find_simulators(root: Level, names: Iterable[str]) -> list[tuple[Level, int, Any]]:
    leaves = {level.name(child): (level, child, simulator) for level, child, simulator in leaf_children(root)}
    found: dict[str, tuple[Level, int, Any]] = {}
    for name in names:
        meant = {path: leaf for path, leaf in leaves.items() if path == name or path.startswith(f"{name}.")}
        if not meant:
            raise ScenarioError(f"there is no simulator `{name}`", hint=suggest_nearest(name, leaves))
        found |= meant
    return list(found.values())
