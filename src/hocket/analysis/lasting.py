"""What lasts from step to step: the numbers of a tree of levels, as one vector z.

In:  a live tree of levels whose simulators are linear
Out: z with a name for each number; the same tree with other numbers in the same places

States, histories, samples, the memory of extrapolators, polynomials in use and inputs of levels all count.
Numbers may be rows, one column per point that is tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocket.engine.initialise import levels_of
from hocket.engine.interpreter import Level
from hocket.engine.memory import FilterMemory
from hocket.model import Array


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of z: of which simulator, and what it is."""

    kind: str
    """state, history, sample, slope, memory, input or outside."""
    owner: str
    """The path of the simulator."""
    name: str
    """The state, the output, or the input it belongs to."""
    back: int = 0
    """Of a sample: how many are newer; of an input: the power of time."""

    def __str__(self) -> str:
        mark = {"sample": f" {self.back} back", "input": f" s^{self.back}", "outside": f" s^{self.back}"}
        return f"{self.owner}.{self.name} ({self.kind}{mark.get(self.kind, '') if self.back else ''})"


def list_cells(root: Level) -> list[Cell]:
    """Return what each number of z is."""
    found: list[Cell] = []
    for level in levels_of(root):
        for child, simulator in enumerate(level.children):
            if not isinstance(simulator, Level):
                found += _simulator_cells(level.name(child), simulator)
        for child, port, ring in _sample_rings(level):
            name = level.wiring.models[child].outputs[port].name
            for back, (_, _, slope) in enumerate(reversed(ring)):
                found.append(Cell("sample", level.name(child), name, back))
                if slope is not None:
                    found.append(Cell("slope", level.name(child), name, back))
        for child, index in _active_filters(level):
            owner, name = level.name(child), level.wiring.models[child].inputs[index].name
            found += [Cell("memory", owner, name, 1), Cell("memory", owner, name)]
        for child, power, index in _driven_inputs(level):
            found.append(
                Cell("input", level.name(child), level.wiring.models[child].inputs[index].name, power)
            )
        for which, power, index in _level_inputs(level, root):
            name = level.blueprint.composite.inputs[index].name
            found.append(Cell("outside", level.path, name, power + which * (level.degree + 1)))
    return found


def _simulator_cells(owner: str, simulator: Any) -> Iterator[Cell]:
    for index in range(len(simulator.z)):
        history = index >= simulator.size
        number = index - simulator.size if history else index
        yield Cell("history" if history else "state", owner, f"x{number + 1}")


def _sample_rings(level: Level) -> Iterator[tuple[int, int, Any]]:
    for child, rings in enumerate(level.memory.rings):
        for port, ring in enumerate(rings):
            yield child, port, ring


def _active_filters(level: Level) -> list[tuple[int, int]]:
    return sorted(key for key, kept in level.memory.filters.items() if kept.after is not None)


def _driven_inputs(level: Level) -> Iterator[tuple[int, int, int]]:
    """Yield child, power and number of the inputs that something drives; the others are constants."""
    for child, drives in enumerate(level.wiring.drives):
        for power in range(level.memory.degrees[child] + 1):
            for index, drive in enumerate(drives):
                if drive is not None:
                    yield child, power, index


def _level_inputs(level: Level, root: Level) -> Iterator[tuple[int, int, int]]:
    """Yield 0 (in use) or 1 (offered), power and number of a level's inputs; the root's are constants."""
    if level is not root:
        for which in (0, 1):
            for power in range(level.degree + 1):
                for index in range(len(level.starts)):
                    yield which, power, index


def gather_state(root: Level) -> Array:
    """Return z; numbers that are rows become its rows."""
    found: list[Any] = []
    for level in levels_of(root):
        for simulator in level.children:
            if not isinstance(simulator, Level):
                found += list(simulator.z)  # type: ignore[attr-defined]
        for _, _, ring in _sample_rings(level):
            for _, value, slope in reversed(ring):
                found += [value] if slope is None else [value, slope]
        for key in _active_filters(level):
            kept = level.memory.filters[key]
            found += [kept.before, kept.after]
        found += [level.memory.u[child][power, index] for child, power, index in _driven_inputs(level)]
        outside = level.inputs[1], level.offered[1]
        found += [outside[which][power, index] for which, power, index in _level_inputs(level, root)]
    shape = max((np.shape(number) for number in found), key=len, default=())
    return np.array([np.broadcast_to(number, shape) for number in found], dtype=float).reshape(
        len(found), *shape
    )


def scatter_state(root: Level, z: Array) -> None:
    """Put numbers, or rows of them, where they belong."""
    rows = iter(z)
    shape = z.shape[1:]
    for level in levels_of(root):
        level.ledger.pause()  # power is no linear function of anything
        for simulator in level.children:
            if not isinstance(simulator, Level):
                size = len(simulator.z)  # type: ignore[attr-defined]
                simulator.z = np.array([next(rows) for _ in range(size)]).reshape(size, *shape)  # type: ignore[attr-defined]
        for _, _, ring in _sample_rings(level):
            kept = list(ring)
            ring.clear()
            filled = [
                (tick, next(rows), None if slope is None else next(rows)) for tick, _, slope in reversed(kept)
            ]
            ring.extend(reversed(filled))
        for key in _active_filters(level):
            old = level.memory.filters[key]
            before, after = next(rows), next(rows)
            level.memory.filters[key] = FilterMemory(old.seen, before, after)
        level.memory.u = [_widen_columns(u, shape) for u in level.memory.u]
        for child, power, index in _driven_inputs(level):
            level.memory.u[child][power, index] = next(rows)
        outside = [(tick, _widen_columns(u, shape)) for tick, u in (level.inputs, level.offered)]
        for which, power, index in _level_inputs(level, root):
            outside[which][1][power, index] = next(rows)
        level.inputs, level.offered = outside


def _widen_columns(u: Array, shape: tuple[int, ...]) -> Array:
    """Return coefficients with room for columns; constants are the same in all of them."""
    first = u if u.ndim == 2 else u[:, :, 0]
    if not shape:
        return first.copy()
    return np.repeat(first[:, :, None], shape[0], axis=2)


def time_layout(root: Level) -> tuple[Any, ...]:
    """Return where in time the numbers belong, seen from now: the same after a period in steady operation."""
    now = root.now
    found: list[Any] = []
    for level in levels_of(root):
        found.append(level.now - now)
        found += [tick - now for tick in level.ticks]
        found += [tick - now for _, _, ring in _sample_rings(level) for tick, _, _ in ring]
        found += [len(ring) for _, _, ring in _sample_rings(level)]
        found += [(key, kept.seen - now) for key, kept in sorted(level.memory.filters.items())]
        drives = level.wiring.drives
        found += [base - now for child, base in enumerate(level.memory.base) if any(drives[child])]
        own = (level.inputs, level.offered) if level is not root and level.starts else ()
        found += [tick - now for tick, _ in own]
        found += [getattr(simulator, "last_h", None) for simulator in level.children]
    return tuple(found)
