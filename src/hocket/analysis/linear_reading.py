"""What lasts from step to step: the numbers of a tree of levels, as one vector z.

In:  a live tree of levels whose simulators are linear
Out: z with a name for each number; the same tree with other numbers in the same places

States, histories, samples, the memory of extrapolators, polynomials in use and inputs of levels all count.
Numbers may be rows, one column per point that is tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hocket.analysis.linear_models import ModelStandIn
from hocket.engine.initialise import initialise, levels_of
from hocket.engine.memory import FilterMemory
from hocket.engine.opening import open_level
from hocket.engine.reference.level import Level
from hocket.errors import ScenarioError
from hocket.model.composite import Composite
from hocket.model.protocols import Array, last_micro_step
from hocket.plan import Repeat, walk
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree, clock_of
from hocket.simulators.state_space import StateSpace


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
            name = level.tree.composite.inputs[index].name
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
        found += map(last_micro_step, level.children)
    return tuple(found)


Indices: TypeAlias = NDArray[np.int64]

LIMITS = 64
"""Columns while an iteration comes into steady operation."""
SETTLING = 40
"""Periods after which samples and memories must have taken their places."""


@dataclass(frozen=True, eq=False)
class Reading:
    """One period of a composite as an affine map of z, everything that lasts from step to step."""

    composite: Composite
    Phi: Array
    c: Array
    cells: tuple[Cell, ...]
    period: Fraction
    """Seconds: the step of the outermost level, or the least common multiple with longer ones inside."""
    z: Array
    """Where the scenario itself stands when it has come into steady operation."""
    since: Fraction
    """Seconds from the start until then."""
    root: Level = field(repr=False)
    sweeps: tuple[tuple[str, Array], ...] = ()
    """Per level that iterates to a tolerance: its path, and the matrix K of a sweep."""
    begun: Any = field(default=None, repr=False)
    """The state of the tree at its start."""

    @cached_property
    def contractions(self) -> tuple[tuple[str, float], ...]:
        """Per level that iterates: the factor by which a sweep of plain iteration changes what is wrong."""
        return tuple((path, float(np.abs(np.linalg.eigvals(K)).max())) for path, K in self.sweeps)

    @cached_property
    def live(self) -> Indices:
        """The numbers of z that anything depends on; the others are computed anew before they are used."""
        return live_columns(self.Phi)

    @cached_property
    def core(self) -> Array:
        """Phi without what nothing depends on: the same spectrum but for zeros."""
        return np.asarray(self.Phi[np.ix_(self.live, self.live)])

    def place_of(self, port: str, kind: str = "sample") -> int:
        """Return where the newest value of an output is in z."""
        for index, cell in enumerate(self.cells):
            if cell.kind == kind and cell.back == 0 and f"{cell.owner}.{cell.name}" == port:
                return index
        raise ScenarioError(f"there is no `{port}` in the linear reading")


def live_columns(Phi: Array) -> Indices:
    """Return the places whose columns count, whatever is read again and again from them."""
    kept: Indices = np.arange(len(Phi), dtype=np.int64)
    while True:
        used = (Phi[np.ix_(kept, kept)] != 0.0).any(axis=0)
        if used.all():
            return kept
        kept = kept[used]


def read_linear(composite: Composite) -> Reading:
    """Return the linear reading of a composite whose models are all linear."""
    design = plan_tree(composite)
    _check_all_linear(design)
    root = open_level(design, clock_of(design))
    initialise(root, 0.0)
    begun = root.save()
    ticks = _period_ticks(design, root)
    # rows, all columns alike: an iteration is its limit from here on, also one that would not get there
    scatter_state(root, np.repeat(gather_state(root)[:, None], _settling_width(design), axis=1))
    for _ in range(SETTLING):
        before = time_layout(root)
        _advance_ticks(root, ticks)
        if time_layout(root) == before:
            break
    else:
        raise ScenarioError("the scenario does not come into steady operation", expected="steps that repeat")
    standing = gather_state(root)
    z = standing[:, 0] if len(standing) else np.zeros(0)
    since = root.clock.tick * root.now
    named = tuple(list_cells(root))
    size = len(z)
    saved = root.save()
    scatter_state(root, np.hstack([np.zeros((size, 1)), np.eye(size)]))
    _advance_ticks(root, ticks)
    after = gather_state(root).reshape(size, size + 1)
    root.restore(saved)
    scatter_state(root, z)
    sweeps = [(each.path, each.sweep_matrix) for each in levels_of(root) if each.sweep_matrix is not None]
    c = after[:, 0].copy()
    Phi, period = after[:, 1:] - after[:, :1], root.clock.tick * ticks
    return Reading(composite, Phi, c, named, period, z, since, root, tuple(sweeps), begun)


def _settling_width(design: PlanTree) -> int:
    """Return how many columns pay before there are many: limits are found with several at a time."""
    plans = (level.plan.step for level in design.levels())
    return LIMITS if any(isinstance(each, Repeat) for plan in plans for _, each in walk(plan)) else 1


def _advance_ticks(root: Level, ticks: int) -> None:
    root.advance(root.now, ticks, root.inputs[1])


def _period_ticks(design: PlanTree, root: Level) -> int:
    """Return the ticks after which all levels are at the end of a step."""
    lengths = [root.clock.ticks(level.composite.step) for level in design.levels()]
    return math.lcm(*lengths)


def _check_all_linear(design: PlanTree) -> None:
    leaves = design.leaves.wiring
    others = [name for name, model in zip(leaves.names, leaves.models, strict=True) if not is_linear(model)]
    if others:
        raise ScenarioError(f"`{others[0]}` is not linear", expected="linear models: see `linearise`")


def is_linear(model: Any) -> bool:
    """Return whether simulators of the model carry rows: they have a `z`."""
    return isinstance(model, (StateSpace, ModelStandIn))
