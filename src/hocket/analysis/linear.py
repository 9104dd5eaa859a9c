"""The linear reading: the very plan that is run, run once on the identity, is the matrix of its step.

In:  a Composite whose models are linear
Out: a Reading: z' = Phi z + c over one period, and what each number of z is
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hocket.analysis.lasting import Cell, gather_state, list_cells, scatter_state, time_layout
from hocket.engine.blueprint import PlanTree, clock_of, open_level
from hocket.engine.composite import Composite
from hocket.engine.initialise import initialise, levels_of
from hocket.engine.interpreter import Level
from hocket.errors import ScenarioError
from hocket.model import Array
from hocket.plan import Repeat, walk

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
    design = composite.blueprint
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
    return hasattr(model, "A") or hasattr(model, "stands_for")
