"""The exact solution with sources, as polynomials on pieces, and with devices that are sampled and jump.

In:  a Composite with sources that are played, and how long they shall be followed
Out: a DrivenSolution; Curves of the sources: values and derivatives at any times
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from hocket.analysis.announced_samples import AnnouncedDevice, Change
from hocket.analysis.exact_solution import (
    ExactSolution,
    block_diagonal,
    constant_terms,
    coupled_system,
    exact_solution,
    wiring_matrices,
)
from hocket.analysis.linear_models import IdentifiedModel, PlayedSource, Tangent, named_leaves, played_sources
from hocket.analysis.sampled_models import SampledStandIn
from hocket.engine.simulator_calls import simulator_error
from hocket.errors import ScenarioError, SimulatorError
from hocket.model.clock import Duration, seconds
from hocket.model.composite import Composite
from hocket.model.protocols import Array, state_count
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree
from hocket.simulators.sources import Csv, Table
from hocket.simulators.state_space import StateSpace

Indices: TypeAlias = NDArray[np.int64]

CLOSE = 1e-12
"""How far a piece may be from its source, relative to the largest value of each output."""
LEAST = 1e-13
"""Pieces shorter than this part of the whole are not halved: there is a jump in them."""
NOISE = 1e-14
"""Coefficients below this part of the largest value are rounding: derivatives would see them."""
MOST = 30_000
"""How often pieces may be halved."""
CURVED, STRAIGHT = 10, 2
"""Coefficients of a piece: of functions, and where all sources are tables."""
TRIED = np.array([-0.991, -0.55, 0.06, 0.62, 0.987])
"""Where a piece is compared with its source: between the nodes."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Several signals over time, from 0 on, continuous from the right."""

    breaks: Array
    """Where pieces begin, and the end of the last one; seconds."""
    coefficients: Array
    """Of Legendre polynomials over each piece: shape (pieces, powers, signals)."""

    @property
    def count(self) -> int:
        """How many signals there are."""
        return int(self.coefficients.shape[2])

    @cached_property
    def widths(self) -> Array:
        """How long each piece is."""
        return np.diff(self.breaks)

    def piece_indices(self, times: Array) -> Indices:
        """Return in which piece each of these times is; where two meet, in the later one."""
        found = np.searchsorted(self.breaks, times, side="right") - 1
        return np.asarray(np.clip(found, 0, len(self.widths) - 1), dtype=np.int64)

    def at(self, times: Array, derivative: int = 0) -> Array:
        """Return the signals, or a time derivative of them, a row for each time."""
        where = self.piece_indices(times)
        width = self.widths[where]
        place = 2.0 * (times - self.breaks[where]) / width - 1.0
        powers = self.coefficients.shape[1]
        basis = legendre.legder(np.eye(powers), derivative, axis=0)
        values = legendre.legvander(place, len(basis) - 1) @ basis
        found = np.einsum("tk,tks->ts", values, self.coefficients[where])
        return np.asarray(found * (2.0 / width[:, None]) ** derivative)


def fit_curves(
    value: Callable[[float], Array], span: float, begins: Iterable[float], straight: bool = False
) -> Curves:
    """Return pieces that follow a function over a span; they begin as given, and are halved as needed.

    With `straight` the function is a line on each piece. Raises ScenarioError if it jumps everywhere.
    """
    waiting = np.unique([0.0, span, *(each for each in begins if 0.0 < each < span)]).tolist()[::-1]
    count = STRAIGHT if straight else CURVED
    nodes, weights = legendre.leggauss(count)
    # the coefficients of the polynomial through the nodes: Gauss' formula is exact for them
    fit = legendre.legvander(nodes, count - 1).T * weights * (np.arange(count) + 0.5)[:, None]
    check = legendre.legvander(TRIED, count - 1)
    breaks: list[float] = [waiting.pop()]
    found: list[Array] = []
    largest, halved = np.abs(value(0.0)), 0
    while waiting:
        begin, end = breaks[-1], waiting[-1]
        middle, half = 0.5 * (begin + end), 0.5 * (end - begin)
        samples = np.array([value(middle + half * node) for node in nodes])
        piece = fit @ samples
        largest = np.maximum(largest, np.abs(samples).max(axis=0))
        if not straight and end - begin > LEAST * span:
            tried = np.array([value(middle + half * node) for node in TRIED])
            off = np.abs(check @ piece - tried).max(axis=0)
            if (off > CLOSE * largest).any() and begin < middle < end:
                waiting.append(middle)
                halved += 1
                if halved > MOST:
                    raise ScenarioError(
                        "what it does between the steps cannot be known: it jumps too often",
                        expected="functions of time that are smooth but for a few jumps",
                    )
                continue
        breaks.append(waiting.pop())
        found.append(np.where(np.abs(piece) > NOISE * largest, piece, 0.0))
    return Curves(np.array(breaks), np.array(found))


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

    @property
    def own(self) -> Array:
        """What it shows at the start without its inputs."""
        return np.asarray(self.C @ self.x0 + self.shift)


Device: TypeAlias = SampledDevice | AnnouncedDevice
Jump: TypeAlias = tuple[tuple[int, Change | None], ...]
"""What happens at one time: the numbers of devices, with the change of those that announce their samples."""


@dataclass(frozen=True, eq=False)
class SampledSystem:
    """The system between jumps, with what is shown, kept and seen by devices behind its own states."""

    system: ExactSolution
    devices: tuple[Device, ...]
    seen: Array
    """The inputs of the devices as rows that act on the outputs, and on one."""
    places: tuple[tuple[slice, slice, slice], ...]
    """Of each device: where the states have what it shows, keeps and sees."""
    shares: Array
    """How sources act on the outputs."""
    _jumps: dict[Jump, Array] = field(default_factory=dict, repr=False)

    def times(self, end: float) -> dict[float, Jump]:
        """Return when devices jump, and which; those that announce their samples may do so at the start."""
        found: dict[Fraction, list[tuple[int, Change | None]]] = {}
        for number, device in enumerate(self.devices):
            if isinstance(device, AnnouncedDevice):
                for at, change in device.changes_until(end):
                    found.setdefault(at, []).append((number, change))
                continue
            for count in range(1, int(end / float(device.period)) + 1):
                found.setdefault(count * device.period, []).append((number, None))
        return {float(at): tuple(found[at]) for at in sorted(found) if float(at) < end}

    def jump(self, which: Jump) -> Array:
        """Return the states after a jump, as rows that act on [x, 1, s].

        What is due is shown, then all that are stepped end a period and look, then samples are taken.
        """
        if which not in self._jumps:
            n = len(self.system.x0)
            whole = np.eye(n + 1 + self.shares.shape[1])
            met = [(self.devices[k], self.places[k], change) for k, change in which]
            stepped = [(each, place) for each, place, _ in met if isinstance(each, SampledDevice)]
            announced = [
                (each, place, change)
                for each, place, change in met
                if change and not isinstance(each, SampledDevice)
            ]
            for device, (shows, keeps, _), change in announced:
                if not change.samples:
                    whole = device.show(shows, keeps, whole)
            if stepped:
                devices, places = [each for each, _ in stepped], [place for _, place in stepped]
                whole[:n] = self._build_jump(devices, places) @ whole
            after = whole
            for device, (shows, keeps, saw), change in announced:
                if change.samples:
                    after = device.sample(change, shows, keeps, self._inputs(saw) @ whole, n, after)
            self._jumps[which] = after[:n]
        return self._jumps[which]

    def _inputs(self, saw: slice) -> Array:
        """Return what a device sees, as rows that act on [x, 1, s]."""
        first = self.places[0][2].start
        seen = self.seen[saw.start - first : saw.stop - first]
        inputs = seen[:, :-1] @ np.hstack([self.system.C, self.system.d[:, None], self.shares])
        inputs[:, len(self.system.x0)] += seen[:, -1]
        return np.asarray(inputs)

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


def devices_of(composite: Composite) -> tuple[Device, ...]:
    """Return what is sampled, in the order of the leaves.

    Raises ScenarioError for what cannot be told apart from its steps.
    """
    levels = [level for level in plan_tree(composite).levels() if level.composite.sampled]
    for level in levels:
        _check_single(level)
    stepped = {level.name(0): level for level in levels}
    return tuple(
        AnnouncedDevice.of(name, model) if isinstance(model, SampledStandIn) else _read_device(stepped[name])
        for name, model in named_leaves(composite)
        if isinstance(model, SampledStandIn) or name in stepped
    )


def has_devices(composite: Composite) -> bool:
    """Return whether something is sampled: then the exact solution jumps."""
    return any(level.composite.sampled for level in plan_tree(composite).levels()) or any(
        isinstance(model, SampledStandIn) for _, model in named_leaves(composite)
    )


def _check_single(level: PlanTree) -> None:
    if len(level.wiring.models) != 1 or level.inner:
        raise ScenarioError(f"`{level.path}` is sampled, and what is in it is more than one simulator")


def _read_device(level: PlanTree) -> SampledDevice:
    model: Any = level.wiring.models[0]
    name, period = level.name(0), level.composite.step
    n, m, p = state_count(model) or 0, len(model.inputs), len(model.outputs)
    rate, shift = constant_terms(model)
    if isinstance(model, IdentifiedModel) and model.h == period:
        return SampledDevice(
            name, period, model.F, model.G[0], model.C[:p], model.D[0][:p], rate, shift[:p], model.x0
        )
    if isinstance(model, (StateSpace, Tangent, IdentifiedModel)) and not n:
        D = np.array(model.D, dtype=float).reshape(p, m)
        none = np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0))
        return SampledDevice(name, period, *none, D, np.zeros(0), np.asarray(shift), np.zeros(0))
    raise ScenarioError(f"`{level.path}` is sampled, and moves between its samples")


def couple_devices(composite: Composite, devices: tuple[Device, ...]) -> tuple[SampledSystem, Array]:
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
    named = [_state_names(device) for device in devices]
    looks = [f"seen {k}" for k in range(len(looked))]
    states = (
        *inner.states,
        *(n for shows, _ in named for n in shows),
        *(n for _, keeps in named for n in keeps),
    )
    states = (*states, *looks)
    system = ExactSolution(A, np.append(inner.b, np.zeros(more)), C, inner.d, x0, states, inner.ports)
    moved = np.vstack([pushes[:, ~held], np.zeros((more, (~held).sum()))])
    return SampledSystem(system, devices, seen, _device_slices(devices, n), shares[:, ~held]), moved


def _start_outputs(
    devices: tuple[Device, ...], seen: Array, base: Array, shares: Array
) -> tuple[Array, Array]:
    """Return what devices show and see at the start, where all agree but those that announce samples."""
    announced = [isinstance(device, AnnouncedDevice) for device in devices]
    own = np.concatenate([device.own for device in devices])
    D = block_diagonal(
        [0.0 * each.D if waits else each.D for each, waits in zip(devices, announced, strict=True)]
    )
    right = own + D @ (seen[:, :-1] @ base + seen[:, -1])
    shown = np.asarray(np.linalg.solve(np.eye(len(own)) - D @ seen[:, :-1] @ shares, right), dtype=float)
    return shown, np.asarray(seen[:, :-1] @ (base + shares @ shown) + seen[:, -1])


def _state_names(device: Device) -> tuple[list[str], list[str]]:
    """Return the names of what a device shows and keeps."""
    if isinstance(device, AnnouncedDevice):
        return device.places
    shown = [f"shown by {device.name} {number}" for number in range(len(device.D))]
    return shown, [f"{device.name}.x{number + 1}" for number in range(len(device.x0))]


def _device_slices(devices: tuple[Device, ...], first: int) -> tuple[tuple[slice, slice, slice], ...]:
    shown, kept = [len(each.D) for each in devices], [len(each.x0) for each in devices]
    ends = (first + np.cumsum([0, *shown, *kept, *(each.D.shape[1] for each in devices)])).tolist()
    slices = [slice(a, b) for a, b in pairwise(ends)]
    count = len(devices)
    return tuple(zip(slices[:count], slices[count : 2 * count], slices[2 * count :], strict=True))


PIECES = 4000
"""How many pieces there are at least, or as many as steps."""
DERIVATIVES = 4
"""How many time derivatives of the sources are told."""
GRAIN = 64.0 * float(np.finfo(float).eps)
"""Lengths that differ by this part of the whole are the same."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DrivenSolution(ExactSolution):
    """The coupled system with its sources; rows act on [x, 1, s, s', s'' ...]."""

    pushes: Array
    """How the sources act on the states."""
    shares: Array
    """How they act on the outputs."""
    signals: Curves
    devices: SampledSystem | None = None
    """What jumps."""
    _forced_flows: dict[tuple[float, float], tuple[Array, Array]] = field(default_factory=dict, repr=False)

    @property
    def width(self) -> int:
        return super().width + (DERIVATIVES + 1) * self.signals.count

    @cached_property
    def generator(self) -> Array:
        """The matrix of the time derivative of [x, 1, s, s' ...]; the last derivatives are constant."""
        n, k = len(self.x0), self.signals.count
        whole = np.zeros((self.width, self.width))
        whole[: n + 1, : n + 1] = super().generator
        whole[:n, n + 1 : n + 1 + k] = self.pushes
        for row in range(n + 1, self.width - k):
            whole[row, row + k] = 1.0
        return whole

    @property
    def output_rows(self) -> Array:
        rest = np.zeros((len(self.ports), DERIVATIVES * self.signals.count))
        return np.hstack([super().output_rows, self.shares, rest])

    def trajectory(self, times: Array) -> Array:
        """Return [x, 1, s, s' ...], a row for each time."""
        times = self._snap_to_breaks(np.asarray(times, dtype=float))
        where = self.signals.piece_indices(times)
        since = times - self.signals.breaks[where]
        x = self._advance_states(self._states_at_breaks[where], where, since)
        told = [self.signals.at(times, derivative) for derivative in range(DERIVATIVES + 1)]
        return np.hstack([x, np.ones((len(times), 1)), *told])

    def _snap_to_breaks(self, times: Array) -> Array:
        """Return times that are meant as the beginning of a piece as just that: things jump there."""
        breaks = self.signals.breaks
        after = np.clip(np.searchsorted(breaks, times), 1, len(breaks) - 1)
        low, high = breaks[after - 1], breaks[after]
        nearest = np.where(times - low < high - times, low, high)
        return np.where(np.abs(times - nearest) <= GRAIN * breaks[-1], nearest, times)

    @cached_property
    def _states_at_breaks(self) -> Array:
        """The states where the pieces begin."""
        n, count = len(self.x0), len(self.signals.widths)
        found = np.zeros((count + 1, n))
        found[0] = self.x0
        pieces = np.arange(count)
        groups = self._group_equal_spans(self.signals.widths, pieces)
        pushed, flows = np.zeros((count, n)), np.zeros(count, dtype=int)
        kept = []
        for number, chosen in enumerate(groups):
            flow, forced = self._forced_flow(float(self.signals.widths[chosen].mean()), chosen[0])
            pushed[chosen] = self._forcing(chosen) @ forced.T
            flows[chosen] = number
            kept.append(flow)
        jumps = self._jumps_at_breaks()
        if 0 in jumps:
            jump, told = jumps[0]
            found[0] = jump @ np.concatenate([self.x0, told])
        for piece in range(count):
            found[piece + 1] = kept[flows[piece]] @ found[piece] + pushed[piece]
            if piece + 1 in jumps:
                jump, told = jumps[piece + 1]
                found[piece + 1] = jump @ np.concatenate([found[piece + 1], told])
        return found

    def _jumps_at_breaks(self) -> dict[int, tuple[Array, Array]]:
        """Return the jumps where pieces begin, each with one and the sources that it looks at."""
        if self.devices is None:
            return {}
        when = self.devices.times(float(self.signals.breaks[-1]))
        told = self.signals.at(np.array(list(when)))
        ones = np.ones((len(told), 1))
        pieces = self.signals.piece_indices(np.array(list(when)))
        jumps = zip(pieces, when.values(), np.hstack([ones, told]), strict=True)
        return {int(piece): (self.devices.jump(which), row) for piece, which, row in jumps}

    def _advance_states(self, x: Array, where: Indices, since: Array) -> Array:
        """Return the states a while after the beginning of their pieces."""
        moved = x.copy()
        for chosen in self._group_equal_spans(since, where):
            span = float(since[chosen].mean())
            if span:
                flow, forced = self._forced_flow(span, where[chosen[0]])
                moved[chosen] = x[chosen] @ flow.T + self._forcing(where[chosen]) @ forced.T
        return moved

    def _group_equal_spans(self, spans: Array, where: Indices) -> list[Indices]:
        """Return groups of equal spans in pieces of equal width; what differs by rounding is equal."""
        grain = GRAIN * self.signals.breaks[-1]
        keys = np.round(np.column_stack([spans, self.signals.widths[where]]) / grain)
        if not len(keys):
            return []
        _, group = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        return list(np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1))

    def _forcing(self, pieces: Indices) -> Array:
        """Return one and the coefficients of the sources in these pieces, a row each."""
        coefficients = self.signals.coefficients[pieces].reshape(len(pieces), -1)
        return np.hstack([np.ones((len(pieces), 1)), coefficients])

    def _forced_flow(self, span: float, piece: int) -> tuple[Array, Array]:
        """Return how the states move on from the beginning of a piece, and how one and coefficients push."""
        width = float(self.signals.widths[piece])
        if (span, width) not in self._forced_flows:
            self._forced_flows[(span, width)] = self._exponential(span, width)
        return self._forced_flows[(span, width)]

    def _exponential(self, span: float, width: float) -> tuple[Array, Array]:
        """Return both for a span and a width of pieces.

        The coefficients seen from a later time change by those of the derivative, and their polynomials are
        taken where the piece begins.
        """
        from scipy.linalg import expm

        n, (_, powers, k) = len(self.x0), self.signals.coefficients.shape
        whole = np.zeros((n + 1 + powers * k, n + 1 + powers * k))
        whole[: n + 1, : n + 1] = span * super().generator
        begin = legendre.legvander(np.array([-1.0]), powers - 1)
        whole[:n, n + 1 :] = span * np.kron(begin, self.pushes)
        slope = np.zeros((powers, powers))
        slope[: powers - 1] = legendre.legder(np.eye(powers), axis=0)
        whole[n + 1 :, n + 1 :] = 2.0 * span / width * np.kron(slope, np.eye(k))
        found = np.asarray(expm(whole))[:n]
        return found[:, :n], found[:, n:]


def run_solution(composite: Composite, stop: Duration) -> ExactSolution:
    """Return the exact solution of a run of this length: with what its sources play, and with what jumps."""
    played = played_sources(composite)
    if played or has_devices(composite):
        return driven_solution(composite, stop, played[0][1].began if played else 0)
    return exact_solution(composite)


def driven_solution(composite: Composite, stop: Duration, start: Duration = 0) -> DrivenSolution:
    """Return the exact solution of a composite with sources over a run of this length.

    `start` is the time at which the run starts; times of the solution count from there.
    """
    span, begin = seconds(stop), seconds(start)
    devices = devices_of(composite)
    if not devices:
        system, pushes, shares = coupled_system(composite)
        signals, jumping = _source_curves(composite, span, begin), None
    else:
        jumping, pushes = couple_devices(composite, devices)
        system, shares = jumping.system, jumping.shares
        signals = _source_curves(composite, span, begin, jumping.times(float(span + composite.step)))
    return DrivenSolution(**vars(system), pushes=pushes, shares=shares, signals=signals, devices=jumping)


def _source_curves(
    composite: Composite, stop: Fraction, start: Fraction, jumps: Iterable[float] = ()
) -> Curves:
    """Return what the sources do, and a little more: at the end they may jump."""
    played, first, step = played_sources(composite), float(start), composite.step
    live = [(name, model.open()) for name, model in played]
    try:
        for name, simulator in live:
            _query_source(name, simulator.start, first)

        def value(t: float) -> Array:
            told = [_query_source(name, each.sample_at, t + first) for name, each in live]
            return np.concatenate(told) if told else np.zeros(0)

        straight = all(isinstance(model.stands_for, (Table, Csv)) for _, model in played)
        apart = step * max(1, int(stop / step / PIECES))
        begins = [float(number * apart) for number in range(int(stop / apart) + 1)]
        for _, simulator in live:
            begins += [knot - first for knot in simulator.knots]
        try:
            end = float(stop + step)
            value(end)
        except SimulatorError:
            end = float(stop)
        return fit_curves(value, end, [*begins, *jumps, float(stop)], straight)
    finally:
        for _, simulator in live:
            simulator.close()


def _query_source(name: str, call: Callable[[float], Any], t: float) -> Any:
    try:
        return call(t)
    except Exception as error:
        raise simulator_error(name, "output", t, error) from error
