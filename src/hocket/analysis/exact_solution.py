"""The exact answer: all leaves as one linear system, coupled without steps, solved by the matrix exponential.

In:  a Composite of linear models: StateSpace, or what stands for others
Out: an ExactSolution: x' = A x + b, y = C x + d, at any times; ExactPlaces: where it would stand in z
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hocket.analysis.announced_events import ANNOUNCING_MODELS
from hocket.analysis.linear_models import IdentifiedModel, PlayedSource, Tangent, named_leaves, played_sources
from hocket.analysis.linear_reading import Place, list_places
from hocket.coupling.graph import strong_components
from hocket.coupling.wiring import CONSTANT, OWN, Drive
from hocket.engine.algebraic_loops import no_solution
from hocket.engine.initialise import levels_of
from hocket.engine.reference.level import Level
from hocket.errors import ScenarioError
from hocket.model.composite import Composite
from hocket.model.protocols import Array, state_count
from hocket.planning.planner import plan_tree
from hocket.simulators.state_space import StateSpace

SINGULAR = 1e-12
"""A loop whose gain is this close to one has no single solution."""
EQUAL = 1e-12
"""Times are equally spaced if none is further off than this part of the last one."""
KEPT = 2**22
"""Solutions of up to so many numbers are kept, for whoever asks at the same times again."""
BLOCK = 64
"""Small systems advance by so many steps at a time."""
THIN = 0.1
"""Larger ones are kept sparse if fewer of their numbers than this are not zero."""


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """The coupled system without any co-simulation (Glumac & Kovacic 2019, equation 16, with constants)."""

    A: Array
    b: Array
    C: Array
    d: Array
    x0: Array
    states: tuple[str, ...]
    ports: tuple[str, ...]
    """The outputs of all leaves, in the order of the rows of C."""
    _flows: dict[float, Array] = field(default_factory=dict, repr=False)
    _orbits: dict[float, Array] = field(default_factory=dict, repr=False)

    @property
    def width(self) -> int:
        """How many numbers rows act on: [x, 1]."""
        return len(self.x0) + 1

    @property
    def generator(self) -> Array:
        """The matrix of the time derivative of what rows act on; the constant part is a state that is one."""
        n = len(self.A)
        whole = np.zeros((n + 1, n + 1))
        whole[:n, :n], whole[:n, n] = self.A, self.b
        return whole

    @property
    def output_rows(self) -> Array:
        """The outputs as rows."""
        return np.hstack([self.C, self.d[:, None]])

    def weights(self, derivative: int = 0) -> Array:
        """Return the outputs, or their time derivatives, as rows."""
        rows = self.output_rows
        for _ in range(derivative):
            rows = rows @ self.generator
        return rows

    def flow(self, span: float) -> Array:
        """Return the matrix that moves [x, 1] on by a time span."""
        if span not in self._flows:
            from scipy.linalg import expm

            self._flows[span] = np.asarray(expm(self.generator * span))
        return self._flows[span]

    def outputs(self, times: Array) -> Array:
        """Return the outputs, a row for each time."""
        return np.asarray(self.trajectory(times) @ self.weights().T)

    def trajectory(self, times: Array) -> Array:
        """Return what rows act on at each of rising times; equally spaced ones cost one exponential."""
        x = np.append(self.x0, 1.0)
        times = np.asarray(times, dtype=float)
        if not len(times):
            return np.zeros((0, len(x)))
        spacing = _uniform_spacing(times)
        if spacing is not None:
            before = round(times[0] / spacing)
            if abs(times[0] - before * spacing) <= EQUAL * abs(times[-1]) and 0 <= before <= 10 * len(times):
                return self._cached_orbit(spacing, before + len(times))[before : before + len(times)]
            return orbit(self.flow(spacing), self.flow(float(times[0])) @ x, len(times) - 1)
        found = [self.flow(float(times[0])) @ x]
        unit = 16.0 * np.finfo(float).eps * max(abs(times[0]), abs(times[-1]))
        for span in np.round(np.diff(times) / unit) * unit:
            found.append(self.flow(float(span)) @ found[-1])
        return np.array(found)

    def _cached_orbit(self, spacing: float, count: int) -> Array:
        """Return [x, 1] at so many equally spaced times or more, from the start on; they are kept."""
        known = [each for each in self._orbits if abs(each - spacing) <= EQUAL * spacing]
        spacing = known[0] if known else spacing
        found = self._orbits.get(spacing, np.append(self.x0, 1.0)[None])
        if len(found) < count:
            more = orbit(self.flow(spacing), found[-1], count - len(found))
            found = np.concatenate([found, more[1:]])
            if found.size <= KEPT:
                self._orbits[spacing] = found
        return found


def _uniform_spacing(times: Array) -> float | None:
    """Return the time between equally spaced times; None if they are not, or too few."""
    if len(times) < 2:
        return None
    even = np.linspace(times[0], times[-1], len(times))
    off = float(np.abs(times - even).max())
    spacing = float((times[-1] - times[0]) / (len(times) - 1))
    return spacing if spacing > 0.0 and off <= EQUAL * np.abs(times).max() else None


def orbit(step: Array, x: Array, count: int) -> Array:
    """Return x, step x, step^2 x ... up to `count` steps, a row each."""
    size = len(x)
    block = BLOCK if size <= BLOCK and count > BLOCK else 1
    powers = [step]
    for _ in range(block - 1):
        powers.append(step @ powers[-1])
    stack: Any = np.vstack(powers)
    if size > BLOCK and np.count_nonzero(step) < THIN * step.size:
        from scipy.sparse import csr_array

        stack = csr_array(step)
    found = np.empty((count + 1, size))
    found[0] = x
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, count, block):
            reached = min(block, count - start)
            following = stack[: reached * size] @ found[start]
            found[start + 1 : start + 1 + reached] = following.reshape(reached, size)
    return found


def exact_solution(composite: Composite) -> ExactSolution:
    """Return the coupled system of all leaves, wired directly to each other; extrapolation plays no part.

    What is sampled counts as if it flowed, what was identified as the slowest motion that makes its steps,
    what is played as it is at the start. Raises ConvergenceError for an algebraic loop without a single
    solution, and ScenarioError for a model that is not linear.
    """
    solution, pushes, shares = coupled_system(composite)
    if not pushes.shape[1]:
        return solution
    first = np.concatenate([source.first for _, source in played_sources(composite)])
    return replace(solution, b=solution.b + pushes @ first, d=solution.d + shares @ first)


def coupled_system(composite: Composite, held: Collection[str] = ()) -> tuple[ExactSolution, Array, Array]:
    """Return the coupled system without what is played or held, and how this acts on states and on outputs.

    x' = A x + b + pushes s, y = C x + d + shares s, where s are the outputs of what is played or named here.
    """
    leaves = named_leaves(composite)
    outside = [name in held or isinstance(model, PlayedSource) for name, model in leaves]
    blocks = [
        leaf_system(name, Tangent.static(model) if out else model)
        for (name, model), out in zip(leaves, outside, strict=True)
    ]
    A, B, C, D = (block_diagonal(parts) for parts in zip(*(block[:4] for block in blocks), strict=True))
    x0, rate, shift = (np.concatenate(parts) for parts in zip(*(block[4:] for block in blocks), strict=True))
    L, g = wiring_matrices(composite)
    sizes = zip(leaves, blocks, strict=True)
    states = tuple(f"{name}.x{k + 1}" for (name, _), block in sizes for k in range(len(block[4])))
    ports = tuple(f"{name}.{port.name}" for name, model in leaves for port in model.outputs)
    outer = [out for (_, model), out in zip(leaves, outside, strict=True) for _ in model.outputs]
    loop, n = D @ L, len(x0)
    check_singular_loops(loop, ports)
    right = np.hstack([C, (D @ g + shift)[:, None], np.eye(len(ports))[:, outer]])
    y = np.linalg.solve(np.eye(len(loop)) - loop, right) if loop.any() else right
    u = L @ y
    u[:, n] += g
    solution = ExactSolution(A + B @ u[:, :n], B @ u[:, n] + rate, y[:, :n], y[:, n], x0, states, ports)
    return solution, B @ u[:, n + 1 :], y[:, n + 1 :]


_System = tuple[Array, Array, Array, Array, Array, Array, Array]
"""A, B, C, D, x0, rate and shift: x' = A x + B u + rate, y = C x + D u + shift."""


def leaf_system(name: str, model: Any) -> _System:
    """Return a linear leaf by itself: A, B, C, D, x0, rate and shift."""
    if isinstance(model, ANNOUNCING_MODELS):
        raise ScenarioError(f"`{name}` announces its samples, and is not compared with an exact solution")
    n, m, p = state_count(model) or 0, len(model.inputs), len(model.outputs)
    rate, shift = constant_terms(model)
    if isinstance(model, (StateSpace, Tangent)):
        shapes = zip("ABCD", ((n, n), (n, m), (p, n), (p, m)), strict=True)
        A, B, C, D = (np.array(getattr(model, key), dtype=float).reshape(shape) for key, shape in shapes)
    elif isinstance(model, IdentifiedModel):
        A, B, rate = _continuous_system(name, model, rate)
        C, D = model.C[:p], model.D[0][:p]
    else:
        raise ScenarioError(f"`{name}` is not linear", expected="linear models: see `linearise`")
    return A, B, C, D, np.array(model.x0, dtype=float), rate, shift[:p]


def constant_terms(model: Any) -> tuple[Array, Array]:
    """Return what is added to the rate of the state and to the outputs: nothing for what is linear itself."""
    if isinstance(model, (Tangent, IdentifiedModel)):
        return np.array(model.rate, dtype=float), np.array(model.shift, dtype=float)
    return np.zeros(state_count(model) or 0), np.zeros(len(model.outputs))


def _continuous_system(name: str, model: Any, rate: Array) -> tuple[Array, Array, Array]:
    """Return A, B and the rate whose step under held inputs is the identified one: its matrix logarithm."""
    from scipy.linalg import logm

    n, m = len(model.F), len(model.inputs)
    if not n:
        return np.zeros((0, 0)), np.zeros((0, m)), rate
    whole = np.eye(n + m + 1)
    whole[:n] = np.hstack([model.F, model.G[0], rate[:, None]])
    values = np.linalg.eigvals(model.F)
    if ((values.real <= 0.0) & (np.abs(values.imag) <= SINGULAR * np.abs(values).max())).any():
        how = "changes its sign in every step" if values.real.min() < -SINGULAR else "ends within one step"
        what = f"`{name}` was identified with a motion that {how}"
        raise ScenarioError(what, expected="steps that show how it moves between them", hint="shorter steps")
    generator = np.real(logm(whole)) / float(model.h)
    return generator[:n, :n], generator[:n, n : n + m], generator[:n, -1]


def block_diagonal(parts: Sequence[Any]) -> Any:
    """Return blocks on a diagonal, real or complex; some may be empty."""
    # scipy.linalg.block_diag may make a row of an empty block: here it keeps its shape
    whole = np.zeros(np.sum([part.shape for part in parts], axis=0), dtype=np.result_type(float, *parts))
    row = column = 0
    for part in parts:
        whole[row : row + part.shape[0], column : column + part.shape[1]] = part
        row, column = row + part.shape[0], column + part.shape[1]
    return whole


def wiring_matrices(composite: Composite) -> tuple[Array, Array]:
    """Return L and g: the inputs of all leaves are u = L y + g."""
    wiring = plan_tree(composite).leaves.wiring
    first = np.cumsum([0, *(len(model.outputs) for model in wiring.models)])
    drives = [drive for drives in wiring.drives for drive in drives]
    ports = [port for model in wiring.models for port in model.inputs]
    L, g = np.zeros((len(drives), first[-1])), np.zeros(len(drives))
    for row, (drive, port) in enumerate(zip(drives, ports, strict=True)):
        if drive is None:
            g[row] = port.start or 0.0
            continue
        g[row] = drive.offset
        if drive.child >= 0:
            L[row, first[drive.child] + drive.port] = drive.gain
        elif drive.child != CONSTANT:  # an input of the whole: it never changes
            g[row] = drive.gain * (composite.inputs[drive.port].start or 0.0) + drive.offset
    return L, g


def check_singular_loops(gains: Array, ports: tuple[str, ...]) -> None:
    """Refuse loops for which I - D L is singular; each by itself, so that scales do not matter."""
    targets, sources = np.nonzero(gains)
    edges = list(zip(sources.tolist(), targets.tolist(), strict=True))
    for group in strong_components(len(ports), edges) if edges else ():
        around = np.linalg.eigvals(gains[np.ix_(group, group)])
        if (np.abs(1.0 - around) <= SINGULAR * np.maximum(1.0, np.abs(around))).any():
            raise no_solution([ports[place] for place in group], 0.0)


@dataclass(frozen=True, eq=False)
class ExactPlaces:
    """What the exact solution puts into z: row i of `weights`, acting on [x, 1, ...] at `ago[i]` before."""

    weights: Array
    ago: Array
    """Seconds."""
    moving: Array
    """Whether a number is about motion (a slope, a power of time, a history) and is none at a cold start."""

    def states_at(self, solution: ExactSolution, times: Array) -> Array:
        """Return z at each of these times, a row each, as if all of the past had been exact."""
        z = np.zeros((len(times), len(self.ago)))
        for ago in np.unique(self.ago):
            chosen = self.ago == ago
            z[:, chosen] = solution.trajectory(times - ago) @ self.weights[chosen].T
        return z


def exact_places(solution: ExactSolution, root: Level) -> ExactPlaces:
    """Return what each number of z is in the exact solution; the tree tells how old each one is."""
    finder = _PlaceFinder(solution, root)
    found = [finder.find(place) for place in list_places(root)]
    weights = np.array([row for row, _, _ in found]).reshape(len(found), solution.width)
    ago, moving = (
        np.array([ago for _, ago, _ in found]),
        np.array([moves for _, _, moves in found], dtype=bool),
    )
    return ExactPlaces(weights, ago, moving)


class _PlaceFinder:
    """Looks up in a tree what the places of z show."""

    def __init__(self, solution: ExactSolution, root: Level):
        self.solution, self.root = solution, root
        self.rows: dict[int, Array] = {}
        self.number = {port: row for row, port in enumerate(solution.ports)}
        self.state = {name: row for row, name in enumerate(solution.states)}
        self.home = {
            level.name(child): (level, child)
            for level in levels_of(root)
            for child in range(len(level.children))
        }

    def find(self, place: Place) -> tuple[Array, float, bool]:
        """Return the row, how many seconds before now it holds, and whether the number is about motion."""
        kind, level, child, index, back = place
        memory = level.memory
        if kind in ("state", "history"):
            state = self.state[f"{place.cell.owner}.{place.cell.name}"]
            if kind == "state":
                return np.eye(1, self.solution.width, state)[0], 0.0, False
            simulator: Any = level.children[child]
            return self.solution.generator[state], simulator.last_h or 0.0, True
        if kind in ("sample", "slope"):
            tick, moving = memory.rings[child][index][-1 - back][0], kind == "slope"
            return self.output(level, child, index, int(moving)), self._ago(tick), moving
        if kind == "memory":
            drive: Any = level.wiring.drives[child][index]
            tick = memory.filters[child, index].seen - back * level.length
            return self.output(level, drive.child, drive.port), self._ago(tick), False
        if kind == "input":
            return self.input(level, child, index, back), self._ago(memory.base[child]), back > 0
        which, power = divmod(back, level.degree + 1)
        row = self.input(*self.home[level.path], index, power)
        return row, self._ago((level.inputs, level.offered)[which][0]), power > 0

    def _ago(self, tick: int) -> float:
        return self.root.clock.span(self.root.now - tick)

    def output(self, level: Level, child: int, port: int, derivative: int = 0) -> Array:
        """Return an output of a child, which may be a level, as a row that acts on [x, 1]."""
        simulator = level.children[child]
        if isinstance(simulator, Level):
            return self._drive_row(simulator, simulator.wiring.outputs[port], derivative)
        if derivative not in self.rows:
            self.rows[derivative] = self.solution.weights(derivative)
        name = f"{level.name(child)}.{level.wiring.models[child].outputs[port].name}"
        return np.asarray(self.rows[derivative][self.number[name]])

    def input(self, level: Level, child: int, index: int, power: int) -> Array:
        """Return the coefficient of a power of time in what drives an input."""
        return self._input_row(level, child, index, power) / float(math.factorial(power))

    def _input_row(self, level: Level, child: int, index: int, derivative: int) -> Array:
        drive = level.wiring.drives[child][index]
        if drive is None:
            return self._constant_row(level.wiring.models[child].inputs[index].start, derivative)
        return self._drive_row(level, drive, derivative)

    def _drive_row(self, level: Level, drive: Drive, derivative: int) -> Array:
        if drive.extrapolation is not None and derivative > drive.extrapolation.degree:
            return self._constant_row(0.0, derivative)
        if drive.child != OWN:
            row = self.output(level, drive.child, drive.port, derivative)
        elif level is self.root:
            row = self._constant_row(level.starts[drive.port], derivative)
        else:
            row = self._input_row(*self.home[level.path], drive.port, derivative)
        row = drive.gain * row
        if derivative == 0:
            row[len(self.solution.x0)] += drive.offset
        return np.asarray(row)

    def _constant_row(self, value: float | None, derivative: int) -> Array:
        row = np.zeros(self.solution.width)
        row[len(self.solution.x0)] = (value or 0.0) if derivative == 0 else 0.0
        return row
