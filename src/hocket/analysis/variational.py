"""Linear models along a trajectory: Phi_k of the plan at operating points, beside the undivided system.

In:  a Reading at the start, and the states of its simulators at the macro steps of a pilot run
Out: a VariationalReading: spectral radii as curves, how far perturbations grow, and switches that were met
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import process_time
from typing import Any, cast

import numpy as np

from hocket.analysis.exact_solution import block_diagonal, leaf_system, wiring_matrices
from hocket.analysis.linear_models import Tangent, named_leaves
from hocket.analysis.linear_reading import Reading, is_linear, leaf_children, read_linear, read_period
from hocket.analysis.tangent_fit import NUDGE
from hocket.engine.reference.level import Level
from hocket.errors import HocketError, ScenarioError
from hocket.files.error_estimate import matching_rows
from hocket.model.composite import Composite
from hocket.model.protocols import Array, Model
from hocket.planning.parameters import with_leaves
from hocket.planning.planner import plan_tree
from hocket.simulators.fmu.directional import look_at_point
from hocket.simulators.fmu.exchange import ModelExchange
from hocket.simulators.fmu.live import CoSimulation
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.methods import ORDERS, MethodName
from hocket.simulators.ode import Ode
from hocket.simulators.sources import Csv, Function, Table

POINTS, FEWEST = 48, 5
"""Operating points at most and at least."""
FIRST = 9
"""Operating points to begin with, equally spaced."""
SCANNED = 129
"""Macro steps at which switches are looked for."""
CHANGES = 0.1
"""Of their size: how much slopes may differ at neighbouring points before there is one in between."""
SWITCHES, HALVINGS, SHARP = 0.2, 3, 0.6
"""The change of slopes within one macro step that is looked into, how often it is halved, and the part of it
that is left in the shortest piece where something switches."""
WINDOWS = 8
"""The run is looked at in windows of one part in so many, which overlap by half."""

Trace = dict[str, list[Array]]
"""The states of simulators, by path, at the start and after each macro step."""


@dataclass(frozen=True, eq=False)
class OperatingSlopes:
    """The slopes of one Ode at a point: A, B, C, D."""

    A: Array
    B: Array
    C: Array
    D: Array

    @property
    def parts(self) -> tuple[Array, Array, Array, Array]:
        """All four matrices."""
        return self.A, self.B, self.C, self.D

    @property
    def sizes(self) -> tuple[float, ...]:
        """The largest slope of each matrix."""
        return tuple(float(np.abs(part).max(initial=0.0)) for part in self.parts)

    def distance(self, other: OperatingSlopes, sizes: Sequence[float]) -> float:
        """Return how far apart two are, in relation to the largest slopes along the trajectory."""
        pairs = zip(self.parts, other.parts, sizes, strict=True)
        return max(
            float(np.abs(a - b).max(initial=0.0)) / size if size > 0.0 else 0.0 for a, b, size in pairs
        )


class SlopeFinder:
    """The slopes of an Ode along a trajectory, in units of how far its states and inputs move there."""

    def __init__(self, model: Ode, states: Array, inputs: Array):
        self.model = model
        self.f = model.function(model.f)
        self.g = None if model.g is None else model.function(model.g)
        ranges = np.concatenate([np.ptp(states, axis=0), np.ptp(inputs, axis=0)])
        peaks = np.concatenate([np.abs(states).max(axis=0), np.abs(inputs).max(axis=0)])
        self.sizes = np.where(np.maximum(ranges, peaks) > 0.0, np.maximum(ranges, 1e-3 * peaks), 1.0)
        self.n = states.shape[1]
        self.largest = (0.0, 0.0, 0.0, 0.0)
        """The largest slopes so far: what changes is small beside these."""

    def distance(self, one: OperatingSlopes, two: OperatingSlopes) -> float:
        """Return how far apart slopes at two points are."""
        return one.distance(two, self.largest)

    def _look(self, t: float, point: Array) -> Array:
        x, u = point[: self.n], point[self.n :]
        rates = np.asarray(self.f(t, x, u), dtype=float).reshape(self.n)
        y = x if self.g is None else np.asarray(self.g(t, x, u), dtype=float).reshape(-1)
        return np.concatenate([rates, y])

    def slopes(self, t: float, x: Array, u: Array) -> OperatingSlopes:
        """Return the slopes from central differences."""
        point, columns = np.concatenate([x, u]), []
        for index, size in enumerate(self.sizes):
            above, below = point.copy(), point.copy()
            above[index] += NUDGE * size
            below[index] -= NUDGE * size
            columns.append((self._look(t, above) - self._look(t, below)) / (above[index] - below[index]))
        found = np.array(columns).T if columns else np.zeros((len(self._look(t, point)), 0))
        n = self.n
        slopes = OperatingSlopes(found[:n, :n], found[:n, n:], found[n:, :n], found[n:, n:])
        a, b, c, d = map(max, self.largest, slopes.sizes)
        self.largest = a, b, c, d
        return slopes


@dataclass(eq=False)
class FmuSlopes:
    """The slopes of an FMU, as it gave them at some macro steps while the pilot run was made."""

    seen: dict[int, OperatingSlopes]
    """By the number of the macro step."""
    peaks: Array
    """The largest value of each state."""
    sizes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        self.numbers = sorted(self.seen)
        self.sizes = tuple(
            max(each) for each in zip(*(found.sizes for found in self.seen.values()), strict=True)
        )

    def at(self, number: int) -> OperatingSlopes:
        """Return the slopes at a macro step: those that were read last."""
        return self.seen[self.numbers[max(0, bisect_right(self.numbers, number) - 1)]]

    def distance(self, one: OperatingSlopes, two: OperatingSlopes) -> float:
        """Return how far apart slopes at two points are."""
        return one.distance(two, self.sizes)


@dataclass(frozen=True, eq=False)
class VariationalReading:
    """Phi_k along a trajectory: each holds from its time until the next."""

    times: Array
    radii: Array
    """The spectral radius of each Phi_k."""
    exact_radii: Array
    """Those of the undivided system, over the same period."""
    growth: float
    """The largest growth of a perturbation of the states, in windows and over all of the run."""
    exact_growth: float
    """The same of the undivided system."""
    final_growth: float
    """The growth over all of the run."""
    final_exact_growth: float
    switches: tuple[tuple[str, float], ...]
    """Simulators that switch, and when first."""

    @property
    def added(self) -> float:
        """How much more perturbations grow over the run than those of the undivided system, or decay less."""
        return self.final_growth / max(1.0, self.final_exact_growth)


@dataclass(eq=False)
class TrajectoryReader:
    """Reads the plan along a pilot run."""

    reading: Reading
    trace: Trace
    inputs: dict[str, Array]
    """The inputs of each simulator at the macro steps."""
    start: float
    step: float
    count: int
    """Macro steps at which it is known where simulators stand."""
    given: dict[str, FmuSlopes] = field(default_factory=dict)
    """The slopes of FMUs, by path."""
    deadline: float = math.inf
    """By process_time."""

    def __post_init__(self) -> None:
        self.leaves: list[tuple[str, Any]] = named_leaves(self.reading.composite)
        self.finders: dict[str, SlopeFinder] = {}
        for name, model in self.leaves:
            if isinstance(model, Tangent) and isinstance(model.stands_for, Ode) and name in self.trace:
                states = np.array(self.trace[name][: self.count]).reshape(self.count, -1)
                self.finders[name] = SlopeFinder(model.stands_for, states, self.inputs[name][: self.count])
        self.known: dict[int, dict[str, OperatingSlopes]] = {}
        L, _ = wiring_matrices(self.reading.composite)
        self.wiring = L

    def slopes_at(self, number: int) -> dict[str, OperatingSlopes]:
        """Return the slopes of all Odes at a macro step."""
        if number not in self.known:
            t = self.start + number * self.step
            self.known[number] = {
                name: finder.slopes(t, self.trace[name][number], self.inputs[name][number])
                for name, finder in self.finders.items()
            } | {name: found.at(number) for name, found in self.given.items()}
        return self.known[number]

    def choose_points(self, most: int) -> list[int]:
        """Return macro steps at which slopes are taken, at most so many: closer where they change."""
        first = min(FIRST, most)
        points = sorted({round(k * (self.count - 1) / (first - 1)) for k in range(first)})
        while len(points) < most and process_time() < self.deadline:
            gaps = [(self._distance(one, two), one, two) for one, two in pairwise(points) if two - one > 1]
            gaps = [each for each in gaps if each[0] > CHANGES]
            if not gaps:
                break
            _, one, two = max(gaps)
            points = sorted({*points, (one + two) // 2})
        return points

    def _distance(self, one: int, two: int) -> float:
        here, there = self.slopes_at(one), self.slopes_at(two)
        known: dict[str, SlopeFinder | FmuSlopes] = {**self.finders, **self.given}
        return max((known[name].distance(here[name], there[name]) for name in here), default=0.0)

    def scan_points(self) -> list[int]:
        """Return macro steps, equally spaced, for a first look at the slopes: these cost little."""
        return sorted({round(k * (self.count - 1) / (SCANNED - 1)) for k in range(SCANNED)})

    def find_switches(self, points: Sequence[int]) -> tuple[tuple[str, float], ...]:
        """Return the Odes whose slopes change all at once within a macro step."""
        found: dict[str, float] = {}
        for name, finder in self.finders.items():
            for one, two in pairwise(points):
                if process_time() > self.deadline:
                    break
                low, high = self._sharpest_step(finder, name, one, two)
                if low is not None and self._is_sharp(finder, name, low, high):
                    found[name] = self.start + low * self.step
                    break
        return tuple(found.items())

    def _sharpest_step(self, finder: SlopeFinder, name: str, one: int, two: int) -> tuple[int | None, int]:
        """Return the macro step between two points in which the slopes of an Ode change most, by halving."""

        def change(a: int, b: int) -> float:
            return finder.distance(self.slopes_at(a)[name], self.slopes_at(b)[name])

        if change(one, two) < SWITCHES:
            return None, 0
        while two - one > 1:
            middle = (one + two) // 2
            one, two = (one, middle) if change(one, middle) >= change(middle, two) else (middle, two)
        if change(one, two) < SWITCHES:
            return None, 0
        return one, two

    def _is_sharp(self, finder: SlopeFinder, name: str, one: int, two: int) -> bool:
        ends = [(self.start + k * self.step, self.trace[name][k], self.inputs[name][k]) for k in (one, two)]
        slopes = [finder.slopes(*end) for end in ends]
        whole = finder.distance(*slopes)
        for _ in range(HALVINGS):
            middle = tuple(0.5 * (a + b) for a, b in zip(*ends, strict=True))
            between = finder.slopes(*middle)
            if finder.distance(slopes[0], between) >= finder.distance(between, slopes[1]):
                ends, slopes = [ends[0], middle], [slopes[0], between]
            else:
                ends, slopes = [middle, ends[1]], [between, slopes[1]]
        return finder.distance(*slopes) >= SHARP * whole

    def phi_at(self, number: int) -> Array:
        """Return Phi of one period with the slopes at a macro step: the live tree has other matrices."""
        root, slopes = self.reading.root, self.slopes_at(number)
        models = dict(self.leaves)
        before = []
        for level, child, simulator in leaf_children(root):
            name = level.name(child)
            if name in slopes:
                before.append((level, child, simulator))
                found = slopes[name]
                model = replace(models[name], A=found.A, B=found.B, C=found.C, D=found.D)
                other = model.open()
                other.start(0.0)
                other.last_h = simulator.last_h
                level.children[child] = other
        saved = root.save()
        try:
            return read_period(root, root.clock.ticks(self.reading.period))[0]
        finally:
            for level, child, simulator in before:
                level.children[child] = simulator
            root.restore(saved)

    def system_at(self, number: int) -> Array:
        """Return A of the undivided system with the slopes at a macro step."""
        slopes = self.slopes_at(number)
        blocks = []
        for name, model in self.leaves:
            found = slopes.get(name)
            parts = leaf_system(name, model)[:4] if found is None else (found.A, found.B, found.C, found.D)
            blocks.append(parts)
        A, B, C, D = (block_diagonal(parts) for parts in zip(*blocks, strict=True))
        loop = D @ self.wiring
        y = np.linalg.solve(np.eye(len(loop)) - loop, C) if loop.any() else C
        return np.asarray(A + B @ self.wiring @ y)


def read_trajectory(reader: TrajectoryReader) -> VariationalReading:
    """Return the plan read along the trajectory; the slopes of a point hold until the next."""
    from scipy.linalg import expm

    switches = reader.find_switches(reader.scan_points())
    begin = process_time()
    reader.phi_at(0)
    affordable = max(FEWEST, _whole((reader.deadline - begin) / (2.0 * (process_time() - begin))))
    points = reader.choose_points(min(POINTS, affordable))
    period, reading = float(reader.reading.period), reader.reading
    stride = max(1, round(period / reader.step))
    maps, flows = [], []
    for number in points:
        maps.append(reader.phi_at(number))
        flows.append(np.asarray(expm(reader.system_at(number) * period)))
    radii = [_radius(Phi) for Phi in maps]
    exact = [_radius(flow) for flow in flows]
    states = [k for k, cell in enumerate(reading.cells) if cell.kind == "state"]
    lengths = [max(1, (b - a) // stride) for a, b in zip(points, [*points[1:], reader.count], strict=True)]
    sizes = _state_sizes(reader, len(states))
    largest, final = _growth(maps, lengths, states, sizes)
    other, last = _growth(flows, lengths, list(range(len(flows[0]))), sizes)
    times = reader.start + reader.step * np.array(points, dtype=float)
    return VariationalReading(times, np.array(radii), np.array(exact), largest, other, final, last, switches)


def _whole(number: float) -> int:
    return int(min(max(number, 0.0), POINTS))


def _radius(matrix: Array) -> float:
    return float(np.abs(np.linalg.eigvals(matrix)).max(initial=0.0)) if len(matrix) else 0.0


def _state_sizes(reader: TrajectoryReader, count: int) -> Array:
    """Return what a perturbation of one is of each state: its peak along the trajectory, or one."""
    found: list[float] = []
    for name, model in reader.leaves:
        kept = reader.trace.get(name, [])
        rows = np.array(kept).reshape(len(kept), -1) if kept else np.zeros((0, 0))
        n = len(model.x0) if not isinstance(model, Tangent) else len(model.A)
        if name in reader.given:
            rows = reader.given[name].peaks[None]
        peaks = np.abs(rows).max(axis=0) if rows.size else np.ones(n)
        found += [float(size) if size > 0.0 else 1.0 for size in peaks]
    return np.array(found) if len(found) == count else np.ones(count)


def _growth(maps: list[Array], lengths: list[int], states: list[int], sizes: Array) -> tuple[float, float]:
    """Return how far perturbed states grow in windows at most, and over the run, in units of `sizes`."""
    total, size = sum(lengths), len(maps[0])
    window = max(1, total // WINDOWS)
    starts = sorted({0, *range(0, total, max(1, window // 2))})
    best, final = 0.0, 0.0
    rows = np.array(states, dtype=int)
    with np.errstate(all="ignore"):
        for begin in starts:
            product, at = np.eye(size)[:, rows] * sizes, 0
            end = total if begin == 0 else min(total, begin + window)
            for Phi, length in zip(maps, lengths, strict=True):
                low, high = max(begin, at), min(end, at + length)
                if high > low:
                    product = np.linalg.matrix_power(Phi, high - low) @ product
                    grown = float(np.abs(product[rows] / sizes[:, None]).max(initial=0.0))
                    grown = grown if math.isfinite(grown) else math.inf
                    best = max(best, grown)
                    final = grown if begin == 0 else final
                at += length
    return best, final


class StateTrace:
    """Keeps the states of Odes while a pilot run is made, and at some macro steps the slopes of FMUs.

    FMUs are asked where they stand: nobody can put them back there later.
    """

    def __init__(self, composite: Composite, steps: int):
        self.rows: Trace = {
            name: [] for name, model in named_leaves(composite) if isinstance(model, Ode) and not model.events
        }
        self.fmus: dict[str, dict[int, OperatingSlopes]] = {
            name: {} for name, model in named_leaves(composite) if _shows_slopes(model)
        }
        self.peaks: dict[str, Array] = {}
        """The largest values of the states of FMUs, by path."""
        self.every = max(1, math.ceil(steps / POINTS))
        self.count = 0
        """Macro steps that were seen, the start included."""

    @property
    def stride(self) -> int:
        """After how many macro steps it looks: states of Odes are kept after each."""
        return 1 if self.rows else self.every

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to keep."""
        return bool(self.rows or self.fmus)

    def __call__(self, level: Level, number: int) -> None:
        """Keep them after so many macro steps."""
        self.count = max(self.count, number + 1)
        for parent, child, simulator in leaf_children(level):
            path = parent.name(child)
            rows = self.rows.get(path)
            if rows is not None and len(rows) == number:
                rows.append(np.array(simulator.x))
            if path in self.fmus and number % self.every == 0:
                self._keep_slopes(path, simulator, number)

    def _keep_slopes(self, path: str, simulator: Any, number: int) -> None:
        """Ask an FMU for its slopes; one that does not give them, or only some, is left out."""
        try:
            found = _slopes_of_fmu(simulator)
        except HocketError:
            found = None
        if found is None:
            del self.fmus[path]
        else:
            x, self.fmus[path][number] = found
            self.peaks[path] = np.maximum(self.peaks.get(path, np.zeros(len(x))), np.abs(x))


def _shows_slopes(model: Model) -> bool:
    """Return whether an FMU in this process may be asked for its slopes."""
    if not isinstance(model, Fmu) or model.is_isolated or model.ticks or not model.inputs:
        return False
    if any(port.held for port in (*model.inputs, *model.outputs)) or model.description.event_indicators:
        return False
    return bool(model.exchange) or model.interface_used.directional


def _slopes_of_fmu(simulator: Any) -> tuple[Array, OperatingSlopes] | None:
    """Return states and slopes of a live FMU; for model exchange these are differences if it gives none."""
    if isinstance(simulator, ModelExchange):
        parts = simulator.jacobian(0.0, simulator.exchange.inputs[np.newaxis])
        known = all(np.isfinite(part).all() for part in parts)
        return (simulator.exchange.x, OperatingSlopes(*parts)) if known else None
    if not isinstance(simulator, CoSimulation):
        return None
    found = look_at_point(simulator)
    if found is None:
        return None
    n, whole = len(found.x), found.slopes
    return found.x, OperatingSlopes(whole[:n, :n], whole[:n, n:], whole[n:, :n], whole[n:, n:])


def trajectory_reader(
    composite: Composite,
    linear: Composite | None,
    kept: StateTrace,
    ports: Mapping[str, tuple[Array, Array]],
    start: float,
) -> TrajectoryReader:
    """Return what reads the plan along a pilot run; raises ScenarioError where some simulator has no model.

    `linear` is the composite with linear models at the start, if all have one; `ports` are the outputs of the
    pilot run.
    """
    trace = kept.rows
    count = min((len(rows) for rows in trace.values()), default=kept.count)
    if count < 2:
        raise ScenarioError("no states are known along the trajectory")
    step = float(composite.step)
    inputs = _inputs_along(composite, ports, np.array([start + step * k for k in range(count)]))
    known = dict(named_leaves(linear)) if linear is not None else {}
    changed: dict[str, Model] = {}
    for name, model in named_leaves(composite):
        if name in trace:
            states = np.array(trace[name][:count]).reshape(count, -1)
            first = SlopeFinder(model, states, inputs[name]).slopes(start, states[0], inputs[name][0])
            changed[name] = _tangent(model, first, states[0])
        elif kept.fmus.get(name):
            first = kept.fmus[name][0]
            changed[name] = _tangent(model, first, np.zeros(len(first.A)))
        elif is_linear(model):
            continue
        elif name in known:
            changed[name] = known[name]
        elif isinstance(model, (Function, Table, Csv)):
            changed[name] = Tangent.static(model)
        else:
            raise ScenarioError(f"`{name}` has no linear model")
    reading = read_linear(with_leaves(plan_tree(composite).composite, changed))
    given = {name: FmuSlopes(seen, kept.peaks[name]) for name, seen in kept.fmus.items() if seen}
    return TrajectoryReader(reading, trace, inputs, start, step, count, given)


def _tangent(model: Any, slopes: OperatingSlopes, x0: Array) -> Tangent:
    fixed = model.method in ORDERS and (isinstance(model, Ode) or model.exchange)
    solver = (cast("MethodName", model.method), model.step) if fixed else ("exact", None)
    zero = np.zeros(len(x0)), np.zeros(len(slopes.C))
    return Tangent(model, slopes.A, slopes.B, slopes.C, slopes.D, x0, *zero, *solver)


def _inputs_along(
    composite: Composite, ports: Mapping[str, tuple[Array, Array]], times: Array
) -> dict[str, Array]:
    """Return the inputs of all simulators at these times, as their sources show them then."""
    leaves = named_leaves(composite)
    columns = []
    for name, model in leaves:
        for port in model.outputs:
            if f"{name}.{port.name}" not in ports:
                raise ScenarioError(f"`{name}.{port.name}` is not recorded")
            t, values = ports[f"{name}.{port.name}"]
            at, known = matching_rows(times, t)
            if not known.all():
                raise ScenarioError("the pilot run has no rows at its macro steps")
            columns.append(values[at])
    L, g = wiring_matrices(composite)
    y = np.array(columns).reshape(len(columns), len(times))
    u = (L @ y + g[:, None]).T
    ends = np.cumsum([0, *(len(model.inputs) for _, model in leaves)])
    return {name: u[:, a:b] for (name, _), a, b in zip(leaves, ends, ends[1:], strict=False)}
