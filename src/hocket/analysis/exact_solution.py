"""The exact answer: all leaves as one linear system, coupled without steps, solved by the matrix exponential.

In:  a Composite of linear models: StateSpace, or what stands for others
Out: an ExactSolution: x' = A x + b, y = C x + d, at any times
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from hocket.analysis.linear_models import IdentifiedModel, Tangent
from hocket.analysis.linear_reading import named_leaves
from hocket.analysis.source_playback import PlayedSource, played_sources
from hocket.coupling.graph import strong_components
from hocket.coupling.wiring import CONSTANT
from hocket.engine.algebraic_loops import no_solution
from hocket.errors import ScenarioError
from hocket.model.composite import Composite
from hocket.model.protocols import Array, state_count
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
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
    _check_singular_loops(loop, ports)
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
    n, m, p = state_count(model) or 0, len(model.inputs), len(model.outputs)
    rate, shift = _constant_terms(model)
    if isinstance(model, (StateSpace, Tangent)):
        shapes = zip("ABCD", ((n, n), (n, m), (p, n), (p, m)), strict=True)
        A, B, C, D = (np.array(getattr(model, key), dtype=float).reshape(shape) for key, shape in shapes)
    elif isinstance(model, IdentifiedModel):
        A, B, rate = _continuous_system(name, model, rate)
        C, D = model.C[:p], model.D[0][:p]
    else:
        raise ScenarioError(f"`{name}` is not linear", expected="linear models: see `linearise`")
    return A, B, C, D, np.array(model.x0, dtype=float), rate, shift[:p]


def _constant_terms(model: Any) -> tuple[Array, Array]:
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


def _check_singular_loops(gains: Array, ports: tuple[str, ...]) -> None:
    """Refuse loops for which I - D L is singular; each by itself, so that scales do not matter."""
    targets, sources = np.nonzero(gains)
    edges = list(zip(sources.tolist(), targets.tolist(), strict=True))
    for group in strong_components(len(ports), edges) if edges else ():
        around = np.linalg.eigvals(gains[np.ix_(group, group)])
        if (np.abs(1.0 - around) <= SINGULAR * np.maximum(1.0, np.abs(around))).any():
            raise no_solution([ports[place] for place in group], 0.0)


@dataclass(frozen=True, eq=False)
class SampledDevice:
    """A model that is stepped once in a period: x' = F x + G u + rate, y = C x + D u + shift."""

    name: str
    period: Fraction
    F: Array
    G: Array
    C: Array
    D: Array
    rate: Array
    shift: Array
    x0: Array


@dataclass(frozen=True, eq=False)
class SampledSystem:
    """The system between jumps, with what is shown, kept and seen by devices behind its own states."""

    system: ExactSolution
    devices: tuple[SampledDevice, ...]
    seen: Array
    """The inputs of the devices as rows that act on the outputs, and on one."""
    places: tuple[tuple[slice, slice, slice], ...]
    """Of each device: where the states have what it shows, keeps and sees."""
    shares: Array
    """How sources act on the outputs."""
    _jumps: dict[tuple[int, ...], Array] = field(default_factory=dict, repr=False)

    def times(self, end: float) -> dict[float, tuple[int, ...]]:
        """Return when devices jump, and which."""
        found: dict[Fraction, tuple[int, ...]] = {}
        for number, device in enumerate(self.devices):
            for count in range(1, int(end / float(device.period)) + 1):
                at = count * device.period
                found[at] = (*found.get(at, ()), number)
        return {float(at): found[at] for at in sorted(found) if float(at) < end}

    def jump(self, who: tuple[int, ...]) -> Array:
        """Return the states after a jump, as rows that act on [x, 1, s]: all end a period, then all look."""
        if who not in self._jumps:
            self._jumps[who] = self._build_jump([self.devices[k] for k in who], [self.places[k] for k in who])
        return self._jumps[who]

    def _build_jump(self, devices: list[SampledDevice], places: list[tuple[slice, slice, slice]]) -> Array:
        n, k = len(self.system.x0), self.shares.shape[1]
        whole = np.eye(n + 1 + k)
        for device, (shows, keeps, saw) in zip(devices, places, strict=True):
            whole[keeps] = 0.0
            whole[keeps, keeps], whole[keeps, saw], whole[keeps, n] = device.F, device.G, device.rate
            whole[shows] = device.C @ whole[keeps]
            whole[shows, n] += device.shift
        shown = np.concatenate([np.arange(n)[shows] for shows, _, _ in places])
        looks = np.concatenate([np.arange(n)[saw] for _, _, saw in places])
        seen = self.seen[looks - self.places[0][2].start]
        inputs = seen[:, :-1] @ np.hstack([self.system.C, self.system.d[:, None], self.shares]) @ whole
        inputs[:, n] += seen[:, -1]
        D = block_diagonal([device.D for device in devices])
        back = seen[:, :-1] @ self.system.C[:, shown]
        more = np.linalg.solve(np.eye(len(shown)) - D @ back, D @ inputs)
        whole[shown] += more
        whole[looks] = inputs + back @ more
        return whole[:n]


def devices_of(composite: Composite) -> tuple[SampledDevice, ...]:
    """Return what is sampled; raises ScenarioError for what cannot be told apart from its steps."""
    return tuple(_read_device(level) for level in plan_tree(composite).levels() if level.composite.sampled)


def _read_device(level: PlanTree) -> SampledDevice:
    model: Any = level.wiring.models[0]
    name, period = level.name(0), level.composite.step
    if len(level.wiring.models) != 1 or level.inner:
        raise ScenarioError(f"`{level.path}` is sampled, and what is in it is more than one simulator")
    n, m, p = state_count(model) or 0, len(model.inputs), len(model.outputs)
    rate, shift = _constant_terms(model)
    if isinstance(model, IdentifiedModel) and model.h == period:
        return SampledDevice(
            name, period, model.F, model.G[0], model.C[:p], model.D[0][:p], rate, shift[:p], model.x0
        )
    if isinstance(model, (StateSpace, Tangent, IdentifiedModel)) and not n:
        D = np.array(model.D, dtype=float).reshape(p, m)
        none = np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0))
        return SampledDevice(name, period, *none, D, np.zeros(0), np.asarray(shift), np.zeros(0))
    raise ScenarioError(f"`{level.path}` is sampled, and moves between its samples")


def couple_devices(composite: Composite, devices: tuple[SampledDevice, ...]) -> tuple[SampledSystem, Array]:
    """Return the system with its devices, and how the sources push its states."""
    leaves, names = named_leaves(composite), {device.name for device in devices}
    inner, pushes, shares = coupled_system(composite, names)
    outside = [each for each in leaves if each[0] in names or isinstance(each[1], PlayedSource)]
    held = np.array([name in names for name, model in outside for _ in model.outputs], dtype=bool)
    L, g = wiring_matrices(composite)
    rows = [name in names for name, model in leaves for _ in model.inputs]
    seen = np.hstack([L[rows], g[rows, None]])
    first = np.concatenate([np.zeros(0), *(source.first for _, source in played_sources(composite))])
    base = inner.C @ inner.x0 + inner.d + shares[:, ~held] @ first
    shown, looked = _start_outputs(devices, seen, base, shares[:, held])
    x0 = np.concatenate([inner.x0, shown, *(device.x0 for device in devices), looked])
    n, more = len(inner.x0), len(x0) - len(inner.x0)
    A = np.zeros((len(x0), len(x0)))
    A[:n, :n], A[:n, n : n + len(shown)] = inner.A, pushes[:, held]
    C = np.hstack([inner.C, shares[:, held], np.zeros((len(base), more - len(shown)))])
    kept = [f"{device.name}.x{number + 1}" for device in devices for number in range(len(device.x0))]
    ends = [f"shown {number}" for number in range(len(shown))], [f"seen {k}" for k in range(len(looked))]
    states = (*inner.states, *ends[0], *kept, *ends[1])
    system = ExactSolution(A, np.append(inner.b, np.zeros(more)), C, inner.d, x0, states, inner.ports)
    moved = np.vstack([pushes[:, ~held], np.zeros((more, (~held).sum()))])
    return SampledSystem(system, devices, seen, _device_slices(devices, n), shares[:, ~held]), moved


def _start_outputs(
    devices: tuple[SampledDevice, ...], seen: Array, base: Array, shares: Array
) -> tuple[Array, Array]:
    """Return what devices show and see at the start, where all agree."""
    own = np.concatenate([device.C @ device.x0 + device.shift for device in devices])
    D = block_diagonal([device.D for device in devices])
    right = own + D @ (seen[:, :-1] @ base + seen[:, -1])
    shown = np.asarray(np.linalg.solve(np.eye(len(own)) - D @ seen[:, :-1] @ shares, right), dtype=float)
    return shown, np.asarray(seen[:, :-1] @ (base + shares @ shown) + seen[:, -1])


def _device_slices(devices: tuple[SampledDevice, ...], first: int) -> tuple[tuple[slice, slice, slice], ...]:
    shown, kept = [len(each.D) for each in devices], [len(each.F) for each in devices]
    ends = (first + np.cumsum([0, *shown, *kept, *(each.D.shape[1] for each in devices)])).tolist()
    slices = [slice(a, b) for a, b in pairwise(ends)]
    count = len(devices)
    return tuple(zip(slices[:count], slices[count : 2 * count], slices[2 * count :], strict=True))
