"""The linear reading: one period of a composite as an affine map of z, all that lasts from step to step.

In:  a Composite whose models are linear
Out: a Reading: Phi and c of the very plan that is run, z with a name for each number, and the live tree

States, histories, samples, the memory of extrapolators, polynomials in use and inputs of levels all count.
Numbers may be rows, one column per point that is tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hocket.analysis.announced_events import ReactorStandIn, ReactorStandInSimulator, hyperperiod_events
from hocket.analysis.linear_models import (
    ModelStandIn,
    PeriodicModel,
    PlayedSourceSimulator,
    named_leaves,
)
from hocket.analysis.sampled_models import (
    HYPERPERIOD,
    SampledStandIn,
    SampledStandInSimulator,
    count_events,
)
from hocket.coupling.wiring import OWN
from hocket.engine.initialise import initialise, levels_of
from hocket.engine.opening import open_level
from hocket.engine.reference.instants import take_first_instants
from hocket.engine.reference.level import Level
from hocket.errors import ScenarioError
from hocket.model.clock import Clock, format_duration
from hocket.model.composite import Composite
from hocket.model.protocols import Array, last_micro_step
from hocket.plan import Repeat
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
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


class Place(NamedTuple):
    """Where a live tree has one number of z."""

    kind: str
    level: Level
    child: int
    """The number of the simulator in its level; of what comes from outside, that of no simulator."""
    number: int
    """The number of the state, the output or the input."""
    back: int = 0

    @property
    def cell(self) -> Cell:
        """What the number is."""
        kind, level, child, index, back = self
        if kind == "outside":
            return Cell(kind, level.path, level.tree.composite.inputs[index].name, back)
        if kind in ("state", "history"):
            simulator: Any = level.children[child]
            return Cell(kind, level.name(child), f"x{index % simulator.size + 1}")
        model = level.wiring.models[child]
        ports = model.outputs if kind in ("sample", "slope") else model.inputs
        return Cell(kind, level.name(child), ports[index].name, back)

    def _array_place(self) -> tuple[Array, Any]:
        """Return the array that has the number of a state or an input, and where."""
        kind, level, child, index, back = self
        if kind == "input":
            return level.memory.u[child], (back, index)
        if kind == "outside":
            which, power = divmod(back, level.degree + 1)
            return (level.inputs, level.offered)[which][1], (power, index)
        simulator: Any = level.children[child]
        return simulator.z, index

    def read(self) -> Any:
        """Return the number, or its row."""
        kind, level, child, index, back = self
        if kind in ("sample", "slope"):
            return level.memory.rings[child][index][-1 - back][1 if kind == "sample" else 2]
        if kind == "memory":
            kept = level.memory.filters[child, index]
            return kept.before if back else kept.after
        array, where = self._array_place()
        return array[where]

    def write(self, row: Any) -> None:
        """Put another number there, or its row."""
        kind, level, child, index, back = self
        if kind in ("sample", "slope"):
            ring = level.memory.rings[child][index]
            tick, value, slope = ring[-1 - back]
            ring[-1 - back] = (tick, row, slope) if kind == "sample" else (tick, value, row)
        elif kind == "memory":
            change = {"before" if back else "after": row}
            level.memory.filters[child, index] = replace(level.memory.filters[child, index], **change)
        else:
            array, where = self._array_place()
            array[where] = row


def leaf_children(root: Level) -> Iterator[tuple[Level, int, Any]]:
    """Yield each live simulator that is not a level, with its level and its number there."""
    for level in levels_of(root):
        for child, simulator in enumerate(level.children):
            if not isinstance(simulator, Level):
                yield level, child, simulator


def list_places(root: Level) -> list[Place]:
    """Return where the numbers of z are: level by level, in one order for whoever reads or writes them.

    Inputs that nothing drives, and those of the root, are constants; events are absent between instants.
    """
    found: list[Place] = []
    for level in levels_of(root):
        memory, drives = level.memory, level.wiring.drives
        simulator: Any
        for child, simulator in enumerate(level.children):
            for index in range(0 if isinstance(simulator, Level) else len(simulator.z)):
                found.append(Place("state" if index < simulator.size else "history", level, child, index))
        for child, rings in enumerate(memory.rings):
            outputs = level.wiring.models[child].outputs
            for port, ring in enumerate(rings):
                for back, (_, _, slope) in enumerate(() if outputs[port].event else reversed(ring)):
                    kinds = ("sample",) if slope is None else ("sample", "slope")
                    found += [Place(kind, level, child, port, back) for kind in kinds]
        active = sorted(key for key, kept in memory.filters.items() if kept.after is not None)
        found += [Place("memory", level, *key, back) for key in active for back in (1, 0)]
        for child, degree in enumerate(memory.degrees):
            driven = [index for index, drive in enumerate(drives[child]) if drive is not None]
            found += [Place("input", level, child, index, k) for k in range(degree + 1) for index in driven]
        for back in range(2 * (level.degree + 1) if level is not root else 0):  # in use, then offered
            found += [Place("outside", level, OWN, index, back) for index in range(len(level.starts))]
    return found


def gather_state(root: Level, places: list[Place] | None = None) -> Array:
    """Return z; numbers that are rows become its rows. In steady operation the places stay the same."""
    found = [place.read() for place in places or list_places(root)]
    shape = max((np.shape(number) for number in found), key=len, default=())
    z = np.array([np.broadcast_to(number, shape) for number in found], dtype=float)
    return z.reshape(len(found), *shape)


def scatter_state(root: Level, z: Array, places: list[Place] | None = None) -> None:
    """Put numbers, or rows of them, where they belong."""
    shape = z.shape[1:]
    for level in levels_of(root):
        level.ledger.pause()  # power is not a linear function of anything
        level.memory.u = [_widen_columns(u, shape) for u in level.memory.u]
        level.inputs, level.offered = (
            (tick, _widen_columns(u, shape)) for tick, u in (level.inputs, level.offered)
        )
    for _, _, simulator in leaf_children(root):
        simulator.z = np.zeros((len(simulator.z), *shape))
    for place, row in zip(places or list_places(root), z, strict=True):
        place.write(row)


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
        rings = [
            ring
            for rings, model in zip(level.memory.rings, level.wiring.models, strict=True)
            for ring, port in zip(rings, model.outputs, strict=True)
            if not port.event
        ]
        found += [tick - now for ring in rings for tick, _, _ in ring]
        found += [len(ring) for ring in rings]
        found += [(key, kept.seen - now) for key, kept in sorted(level.memory.filters.items())]
        drives = level.wiring.drives
        found += [base - now for child, base in enumerate(level.memory.base) if any(drives[child])]
        own = (level.inputs, level.offered) if level is not root and level.starts else ()
        found += [tick - now for tick, _ in own]
        found += map(last_micro_step, level.children)
        for simulator in level.children:
            if isinstance(simulator, ANNOUNCING):
                found += simulator.time_layout(level.clock.start + now * level.clock.tick)
    return tuple(found)


def shift_time(root: Level, ticks: int) -> None:
    """Let a live tree stand as it stands, so many ticks later: whole periods of it."""
    for level in levels_of(root):
        level.now, level.reached = level.now + ticks, level.reached + ticks
        level.ticks = [tick + ticks for tick in level.ticks]
        level.inputs, level.offered = ((tick + ticks, u) for tick, u in (level.inputs, level.offered))
        memory = level.memory
        memory.base = [tick + ticks for tick in memory.base]
        for ring in (ring for rings in memory.rings for ring in rings):
            samples = [(tick + ticks, value, slope) for tick, value, slope in ring]
            ring.clear()
            ring.extend(samples)
        for kept in memory.filters.values():
            kept.seen += ticks
        for simulator in level.children:
            if isinstance(simulator, ANNOUNCING):
                simulator.shift_time(ticks * level.clock.tick)
            elif isinstance(simulator, PlayedSourceSimulator):
                simulator.start(level.clock.time(level.now))


ANNOUNCING = (SampledStandInSimulator, ReactorStandInSimulator)
"""What announces events that depend on time alone."""
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
    """Seconds: the step of the outermost level, or the least common multiple with longer ones inside and with
    the periods of simulators."""
    z: Array
    """Where the scenario itself stands when it has come into steady operation."""
    since: Fraction
    """Seconds from the start until then."""
    root: Level = field(repr=False)
    begun: Any = field(repr=False)
    """The state of the tree at its start."""
    sweeps: tuple[tuple[str, Array], ...] = ()
    """Per level that iterates to a tolerance: its path, and the matrix K of an iteration."""

    @cached_property
    def live(self) -> Indices:
        """The numbers of z that anything depends on; the others are computed anew before they are used."""
        return live_columns(self.Phi)

    @cached_property
    def core(self) -> Array:
        """Phi without what nothing depends on: the same spectrum but for zeros."""
        return np.asarray(self.Phi[np.ix_(self.live, self.live)])

    @cached_property
    def newest(self) -> dict[str, int]:
        """Where in z the newest sample of each output is."""
        return {
            f"{cell.owner}.{cell.name}": index
            for index, cell in enumerate(self.cells)
            if cell.kind == "sample" and cell.back == 0
        }


def live_columns(Phi: Array, *others: Array) -> Indices:
    """Return the places of z that later steps, or other rows that act on z, depend on."""
    kept: Indices = np.arange(len(Phi), dtype=np.int64)
    while True:
        used = (Phi[np.ix_(kept, kept)] != 0.0).any(axis=0)
        for rows in others:
            used |= (rows[:, kept] != 0.0).any(axis=0)
        if used.all():
            return kept
        kept = kept[used]


def read_linear(composite: Composite) -> Reading:
    """Return the linear reading of a composite whose models are all linear."""
    design = plan_tree(composite)
    _check_all_linear(composite)
    root = open_level(design, clock_of(design))
    initialise(root, 0.0)
    take_first_instants(root)
    begun = root.save()
    ticks = period_ticks(root)
    # rows, all columns alike: an iteration is its limit from here on, also one that would not get there
    settling = np.repeat(gather_state(root)[:, None], _settling_width(design), axis=1)
    scatter_state(root, _with_moving_column(settling) if root.instants.taking else settling)
    for _ in range(SETTLING):
        before = time_layout(root)
        advance_ticks(root, ticks)
        if time_layout(root) == before:
            break
    else:
        raise ScenarioError("the scenario does not come into steady operation", expected="steps that repeat")
    standing = gather_state(root)
    z = standing[:, 0] if len(standing) else np.zeros(0)
    since = root.clock.tick * root.now
    cells = tuple(place.cell for place in list_places(root))
    saved = root.save()
    Phi, c = read_period(root, ticks)
    root.restore(saved)
    scatter_state(root, z)
    sweeps = [(each.path, each.sweep_matrix) for each in levels_of(root) if each.sweep_matrix is not None]
    period = root.clock.tick * ticks
    return Reading(composite, Phi, c, cells, period, z, since, root, begun, tuple(sweeps))


def read_period(root: Level, ticks: int) -> tuple[Array, Array]:
    """Return Phi and c of so many ticks from now on: the tree itself runs, on zero and on the identity."""
    places = list_places(root)
    size = len(places)
    scatter_state(root, np.eye(size, size + 1, 1), places)
    advance_ticks(root, ticks)
    after = gather_state(root, places).reshape(size, size + 1)
    return after[:, 1:] - after[:, :1], after[:, 0].copy()


def _settling_width(design: PlanTree) -> int:
    """Return how many columns pay before there are many: limits are found with several at a time."""
    return LIMITS if any(design.instructions(Repeat)) else 1


def _with_moving_column(columns: Array) -> Array:
    """Return columns and one more in which everything moves: what jumps at an event does so there."""
    moved = np.random.default_rng(0).normal(size=len(columns))
    return np.column_stack([columns, columns[:, 0] + moved * np.maximum(np.abs(columns[:, 0]), 1.0)])


def advance_ticks(root: Level, ticks: int) -> None:
    """Advance a live tree; what drives its own inputs stays as it is."""
    root.advance(root.now, ticks, root.inputs[1])


def period_ticks(root: Level) -> int:
    """Return the ticks after which all levels are at the end of a step, and simulators of their period."""
    periods = [level.length for level in levels_of(root)]
    for level, child, _ in leaf_children(root):
        model = level.wiring.models[child]
        if isinstance(model, PeriodicModel):
            periods.append(int(model.phases * model.h / level.clock.tick))
        elif isinstance(model, SampledStandIn):
            periods.append(_sampling_ticks(level.name(child), model, level.clock))
        elif isinstance(model, ReactorStandIn):
            periods.append(_pattern_ticks(level.name(child), model, level.clock))
    ticks = math.lcm(*periods)
    _check_hyperperiod(root, ticks)
    return ticks


def _sampling_ticks(name: str, model: SampledStandIn, clock: Clock) -> int:
    """Return a period in ticks; raises ScenarioError where samples are not at whole ticks."""
    sampling = model.sampling
    for length in (sampling.period, sampling.offset or Fraction(0), sampling.delay or Fraction(0)):
        if (length / clock.tick).denominator != 1:
            step = "the macro step has no common tick with it"
            raise ScenarioError(f"`{name}` is sampled at multiples of {format_duration(length)}, and {step}")
    return int(sampling.period / clock.tick)


def _pattern_ticks(name: str, model: ReactorStandIn, clock: Clock) -> int:
    """Return a period of events in ticks; raises ScenarioError where they are not at whole ticks."""
    pattern = model.pattern
    for length in (pattern.period, pattern.first, *pattern.offsets):
        if (length / clock.tick).denominator != 1:
            step = "the macro step has no common tick with it"
            raise ScenarioError(
                f"an event of `{name}` is {format_duration(length)} after another, and {step}"
            )
    return int(pattern.period / clock.tick)


def _check_hyperperiod(root: Level, ticks: int) -> None:
    """Refuse to unroll periods that have hardly a common multiple."""
    models = [simulator.model for _, _, simulator in leaf_children(root) if isinstance(simulator, ANNOUNCING)]
    period = ticks * root.clock.tick
    steps = sum(ticks // level.length for level in levels_of(root)) if models else 0
    sampled = [model for model in models if isinstance(model, SampledStandIn)]
    reacting = [model for model in models if isinstance(model, ReactorStandIn)]
    events = count_events(sampled, period) + sum(hyperperiod_events(model, period) for model in reacting)
    if steps + events > HYPERPERIOD:
        what = f"the least common multiple of all periods and steps is {format_duration(period)}"
        raise ScenarioError(what, expected="periods with a shorter common multiple")


def _check_all_linear(composite: Composite) -> None:
    others = [name for name, model in named_leaves(composite) if not is_linear(model)]
    if others:
        raise ScenarioError(f"`{others[0]}` is not linear", expected="linear models: see `linearise`")


def is_linear(model: Any) -> bool:
    """Return whether simulators of the model carry rows: they have a `z`."""
    return isinstance(model, (StateSpace, ModelStandIn))
