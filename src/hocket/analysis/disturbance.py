"""Simulators that are not known exactly: what a disturbance of their steps does to everything else.

In:  a Reading, and the simulators that are uncertain
Out: z' = Phi z + B w, q = C z + D w: w is added to their new states, q is what they saw before their steps

The very plan that is run is run once more, with a tap on each of these simulators and a column for each
disturbance. A change Delta of a simulator's step map is then w = Delta q (formulas, section 2). Polynomial
inputs are seen in powers of time over the simulator's step, so all their coefficients have the input's unit.
Outputs and slopes are taken as known: how they follow from state and inputs does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocket.analysis.circle import Transfer
from hocket.analysis.lasting import gather_state, scatter_state
from hocket.analysis.linear import Indices, Reading
from hocket.engine.initialise import levels_of
from hocket.engine.interpreter import Level
from hocket.errors import ScenarioError, suggest_nearest
from hocket.model import Array
from hocket.plan import Repeat, walk


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


class _Tap:
    """Stands before a live simulator: notes what it sees, and adds a disturbance to each new state."""

    def __init__(self, simulator: Any):
        self.inner = simulator
        self.seen: list[Array] = []
        self.first: int | None = None
        """The column of the first disturbance; None: only count."""
        self.own: Array = np.zeros((0, 0))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def z(self) -> Array:
        state: Array = self.inner.z
        return state

    @z.setter
    def z(self, value: Array) -> None:
        self.inner.z = value

    def step(self, t: float, h: float, u: Array) -> float:
        """Step, and note; each call disturbs in columns of its own."""
        z = self.z
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
        """Go back: a step that is made again to a limit is the same step, disturbed alike."""
        self.inner.restore(state[0])
        del self.seen[state[1] :]

    def _step_map(self, t: float, h: float, u: Array) -> Array:
        """Return the step map of the simulator alone: what units of state and input do."""
        before = self.inner.save()
        states, inputs = len(self.z), u.shape[0] * u.shape[1]
        width = 1 + states + inputs  # the first column is for what does not depend on anything
        self.z = np.eye(states, width, 1)
        units = np.eye(inputs, width, 1 + states).reshape(*u.shape[:2], width)
        self.inner.step(t, h, units / h ** np.arange(len(u))[:, None, None])
        found = (self.z - self.z[:, :1])[:, 1:]
        self.inner.restore(before)
        return found


def disturbance_model(reading: Reading, names: Sequence[str]) -> DisturbanceModel:
    """Return where disturbances of the steps of these simulators go; a level's name means all in it."""
    root, named = reading.root, _find_simulators(reading.root, names)
    places = [(level, child) for level, child in named if len(_simulator_state(level, child))]
    stateless = [level.name(child) for level, child in named if not len(_simulator_state(level, child))]
    _check_sweeps(root)
    saved = root.save()
    taps = [_Tap(level.children[child]) for level, child in places]
    try:
        for (level, child), tap in zip(places, taps, strict=True):
            level.children[child] = tap
        size = len(reading.z)
        _advance_period(reading, np.zeros((size, 1)))
        first = 1 + size
        for tap in taps:
            tap.first, calls, tap.seen = first, len(tap.seen), []
            first += calls * len(tap.z)
        after = _advance_period(reading, np.eye(size, first, 1))
    finally:
        for (level, child), tap in zip(places, taps, strict=True):
            level.children[child] = tap.inner
        root.restore(saved)
    seen = np.vstack([rows for tap in taps for rows in tap.seen] or [np.zeros((0, first))])
    moved, seen = (after - after[:, :1])[:, 1:], (seen - seen[:, :1])[:, 1:]
    B, C, D = moved[:, size:], seen[:, :size], seen[:, size:]
    kept = _relevant_cells(reading.Phi, C)
    transfer = Transfer(np.asarray(reading.Phi[np.ix_(kept, kept)]), B[kept], C[:, kept], D)
    blocks = [_block_of_tap(level.name(child), tap) for (level, child), tap in zip(places, taps, strict=True)]
    return DisturbanceModel(transfer, tuple(blocks), tuple(tap.own for tap in taps), tuple(stateless))


def _check_sweeps(root: Level) -> None:
    """Refuse sweeps that see different things: each would be disturbed in another way."""
    for level in levels_of(root):
        for _, each in walk(level.plan.step):
            if isinstance(each, Repeat) and each.until is None and each.at_most > 1:
                where = f" of `{level.path}`" if level.path else ""
                raise ScenarioError(
                    f"the steps{where} are made again a fixed number of times: their radius is not known",
                    expected="an iteration to a tolerance, or none",
                )


def _simulator_state(level: Level, child: int) -> Array:
    simulator: Any = level.children[child]
    state: Array = simulator.z
    return state


def _block_of_tap(name: str, tap: _Tap) -> UncertainBlock:
    moves, sees = tap.own.shape
    return UncertainBlock(name, moves, sees, len(tap.seen), float(np.linalg.norm(tap.own, 2)))


def _advance_period(reading: Reading, z: Array) -> Array:
    root = reading.root
    scatter_state(root, z)
    root.advance(root.now, root.clock.ticks(reading.period), root.inputs[1])
    return gather_state(root).reshape(z.shape)


def _find_simulators(root: Level, names: Iterable[str]) -> list[tuple[Level, int]]:
    leaves = {
        level.name(child): (level, child)
        for level in levels_of(root)
        for child, simulator in enumerate(level.children)
        if not isinstance(simulator, Level)
    }
    found: dict[str, tuple[Level, int]] = {}
    for name in names:
        meant = {path: where for path, where in leaves.items() if path == name or path.startswith(f"{name}.")}
        if not meant:
            raise ScenarioError(f"there is no simulator `{name}`", hint=suggest_nearest(name, leaves))
        found |= meant
    return list(found.values())


def _relevant_cells(Phi: Array, C: Array) -> Indices:
    """Return the places of z that later steps or the uncertain simulators depend on."""
    kept: Indices = np.arange(len(Phi), dtype=np.int64)
    while True:
        used = (Phi[np.ix_(kept, kept)] != 0.0).any(axis=0) | (C[:, kept] != 0.0).any(axis=0)
        if used.all():
            return kept
        kept = kept[used]
