"""The modes of an `Ode` that switches: at its events, or where its equations have a kink.

In:  an Ode, and where it stands
Out: OdeModes: a tangent per mode, what jumps at its events, and whether other modes may have been overlooked

A mode is told by the states that nothing but events changes, and by the Jacobian. Kinks without an event are
looked for along each state and each input; a Jacobian that differs there and is locally constant is a mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from hocket.analysis.linear_models import Tangent
from hocket.analysis.pulse_responses import Truth
from hocket.model.protocols import Array
from hocket.simulators.methods import ORDERS
from hocket.simulators.ode import Event, Ode

NUDGE = float(np.finfo(float).eps) ** (1 / 3)
FAR = (0.1, 1.0, 10.0, 100.0)
"""How far along each state and input kinks are looked for, in units of its value or one."""
BESIDE = 1e-2
"""Places that differ by this part have the same Jacobian in a mode."""
ALIKE = 1e-6
"""How far Jacobians of one mode may differ, relative to the largest number in them."""
DIFFERENT = 1e-3
"""From how far on a place without an event belongs to another mode."""
KINKED, NARROW = 0.3, 1e-3
"""The part of a change of slopes that is left within a piece this long, in units of its value or one, where
there is a kink: what only bends is spread over a longer way."""
MOST = 8
"""Modes of one Ode at the most."""
WIDEST = 30
"""States and inputs up to which kinks are looked for."""
TRIES = 100
"""Points per mode at which what was found is compared with the Ode itself."""
NEWTON = 20
"""Steps towards the surface of an event."""

Point: TypeAlias = Array
"""States and inputs, one behind the other."""


@dataclass(frozen=True, eq=False)
class OdeModes:
    """The modes of one Ode, the one it starts in first, without the states that only events change."""

    tangents: tuple[Tangent, ...]
    names: tuple[str, ...]
    """What tells a mode from the others."""
    resets: tuple[Array, ...]
    """What events make of the states that flow: the matrices of their actions, but for those that are one."""
    whole: bool = True
    """Whether these are all modes, as far as can be seen."""

    @property
    def has_events(self) -> bool:
        """Whether it switches at events."""
        model: Any = self.tangents[0].stands_for
        return bool(model.events)


class _Probe:
    """Evaluates an Ode and its Jacobian anywhere; None where that fails."""

    def __init__(self, model: Ode, t: float, inputs: Array):
        self.model, self.t, self.n, self.u = model, t, len(model.x0), inputs
        self.f = model.function(model.f)
        self.g = None if model.g is None else model.function(model.g)

    def look(self, point: Point) -> Array | None:
        """Return rates and outputs."""
        x, u = point[: self.n].copy(), point[self.n :].copy()
        try:
            with np.errstate(all="ignore"):
                rates = np.array(self.f(self.t, x, u), dtype=float).reshape(self.n)
                y = x if self.g is None else np.array(self.g(self.t, x, u), dtype=float)
        except Exception:  # somebody else's code, far from where it was written for
            return None
        found = np.concatenate([rates, y.reshape(-1)])
        return found if np.isfinite(found).all() else None

    def slopes(self, point: Point) -> Array | None:
        """Return the slopes of rates and outputs, from central differences; None where they fail."""
        columns = []
        for index in range(len(point)):
            size = NUDGE * max(abs(point[index]), 1.0)
            above, below = point.copy(), point.copy()
            above[index] += size
            below[index] -= size
            high, low = self.look(above), self.look(below)
            if high is None or low is None:
                return None
            columns.append((high - low) / (above[index] - below[index]))
        return np.array(columns).T

    def call(self, code: Callable[..., Any] | str, x: Array, u: Array) -> Array | None:
        """Return what an event function or an action gives; None where it fails."""
        try:
            found = np.array(self.model.function(code)(self.t, x.copy(), u.copy()), dtype=float).reshape(-1)
        except Exception:
            return None
        return found if np.isfinite(found).all() else None


@dataclass
class _Mode:
    """A mode that was found: a point in it, and the slopes there."""

    point: Point
    slopes: Array
    there: Array
    key: tuple[float, ...]
    how: str


@dataclass
class _Search:
    """Modes found so far."""

    probe: _Probe
    modes: list[_Mode] = field(default_factory=list)
    resets: list[Array] = field(default_factory=list)
    whole: bool = True

    def add(self, point: Point, discrete: Truth, how: str) -> None:
        """Take a mode that is not known yet; at a kink itself there is none."""
        slopes, there = self.probe.slopes(point), self.probe.look(point)
        if slopes is None or there is None:
            self.whole = False
            return
        key = tuple(point[: self.probe.n][discrete].tolist())
        if any(mode.key == key and _are_alike(mode, slopes, there, point) for mode in self.modes):
            return
        if len(self.modes) >= MOST:
            self.whole = False
            return
        self.modes.append(_Mode(point, slopes, there, key, how))


def _are_alike(mode: _Mode, slopes: Array, there: Array, point: Point, tolerance: float = ALIKE) -> bool:
    """Return whether a point is in a known mode: the same Jacobian, and on the same tangent."""
    scale = max(float(np.abs(mode.slopes).max(initial=0.0)), float(np.abs(slopes).max(initial=0.0)), 1e-300)
    if float(np.abs(mode.slopes - slopes).max(initial=0.0)) > tolerance * scale:
        return False
    return _is_on_tangent(mode, there, point, tolerance)


def _is_on_tangent(mode: _Mode, there: Array, point: Point, tolerance: float = ALIKE) -> bool:
    """Return whether rates and outputs at a point are those that the tangent of a mode tells."""
    change = point - mode.point
    told = mode.there + mode.slopes @ change
    size = np.maximum(np.abs(mode.there) + np.abs(mode.slopes) @ np.abs(change), np.abs(there))
    return bool((np.abs(told - there) <= tolerance * np.maximum(size, 1e-300)).all())


def modes_of_ode(model: Ode, x: Array, u: Array, t: float, kinks: bool = True) -> OdeModes | None:
    """Return the modes of an Ode from where it stands; None: it has one, and nothing happens to it.

    `kinks` looks for modes that no event leads to: that takes many evaluations.
    """
    probe = _Probe(model, t, u)
    start = np.concatenate([x, u])
    search = _Search(probe)
    discrete = _find_discrete_states(model, probe, start)
    search.add(start, discrete, "at the start")
    if not search.modes:
        return None
    explored = 0
    while explored < len(search.modes):
        _follow_events(model, search, search.modes[explored].point, discrete)
        explored += 1
    if kinks and len(start) <= WIDEST:
        for point, index, how in _far_points(model, start, discrete):
            _look_far(search, point, index, discrete, how)
    if len(search.modes) == 1 and not model.events:
        return None
    search.whole = search.whole and _explain_everything(search, start, discrete)
    return _describe_modes(model, search, discrete)


def _find_discrete_states(model: Ode, probe: _Probe, start: Point) -> Truth:
    """Return which states nothing but events changes: their rates are zero wherever they were tried."""
    still = np.full(probe.n, bool(model.events))
    rng = np.random.default_rng(0)
    sizes = np.maximum(np.abs(start), 1.0)
    for point in (start, *(start + sizes * rng.normal(size=len(start)) for _ in range(8))):
        there = probe.look(point)
        if there is not None:
            still &= there[: probe.n] == 0.0
    return still


def _follow_events(model: Ode, search: _Search, point: Point, discrete: Truth) -> None:
    """Look at both sides of each event's surface, and at what its action leads to."""
    probe, n = search.probe, search.probe.n
    for number, event in enumerate(model.events, 1):
        surface, normal = _find_surface(probe, event, point, discrete)
        if surface is None:
            search.whole = False
            continue
        if event.action is None:
            for side in (1.0, -1.0):
                step = BESIDE * side * normal * np.maximum(np.abs(surface), 1.0)
                search.add(surface + step, discrete, f"{'beyond' if side > 0 else 'before'} event {number}")
            continue
        after = probe.call(event.action, surface[:n], surface[n:])
        if after is None or len(after) != n:
            search.whole = False
            continue
        reset = _reset_matrix(probe, event, surface, discrete)
        if reset is None:
            search.whole = False
        elif not any(np.array_equal(reset, known) for known in search.resets):
            search.resets.append(reset)
        if not np.array_equal(after[discrete], point[:n][discrete]):
            search.add(np.concatenate([after, surface[n:]]), discrete, f"after event {number}")


def _find_surface(probe: _Probe, event: Event, point: Point, discrete: Truth) -> tuple[Point | None, Array]:
    """Return a point where an event function is zero, and the normal; what only events change stays."""
    moves = np.concatenate([~discrete, np.ones(len(point) - probe.n, dtype=bool)])
    here, normal = point.copy(), np.zeros(len(point))

    def value(at: Point) -> float | None:
        found = probe.call(event.g, at[: probe.n], at[probe.n :])
        return None if found is None else float(found[0])

    for _ in range(NEWTON):
        g = value(here)
        if g is None:
            return None, normal
        slope = np.zeros(len(point))
        for index in np.flatnonzero(moves):
            size = NUDGE * max(abs(here[index]), 1.0)
            above, below = here.copy(), here.copy()
            above[index] += size
            below[index] -= size
            high, low = value(above), value(below)
            if high is None or low is None:
                return None, normal
            slope[index] = (high - low) / (2.0 * size)
        squared = float(slope @ slope)
        if squared == 0.0:
            return (here if g == 0.0 else None), normal
        normal = slope / np.sqrt(squared)
        if abs(g) <= 1e-12 * max(1.0, float(np.abs(here).max())) * np.sqrt(squared):
            return here, normal
        here = here - g / squared * slope
    return None, normal


def _reset_matrix(probe: _Probe, event: Event, surface: Point, discrete: Truth) -> Array | None:
    """Return how the states that flow follow from themselves at an event; None: not known."""
    assert event.action is not None
    flowing, n = np.flatnonzero(~discrete), probe.n
    columns = []
    for index in flowing:
        size = NUDGE * max(abs(surface[index]), 1.0)
        above, below = surface[:n].copy(), surface[:n].copy()
        above[index] += size
        below[index] -= size
        high, low = (probe.call(event.action, each, surface[n:]) for each in (above, below))
        if high is None or low is None:
            return None
        columns.append((high - low)[flowing] / (above[index] - below[index]))
    found = np.array(columns).T if columns else np.zeros((0, 0))
    found = np.where(np.abs(found - np.round(found)) <= ALIKE, np.round(found), found)
    return found if _is_linear_action(probe, event, surface, discrete, found) else None


def _is_linear_action(probe: _Probe, event: Event, surface: Point, discrete: Truth, reset: Array) -> bool:
    """Return whether an action does the same everywhere: what it sets does not depend on what flows."""
    assert event.action is not None
    rng, n = np.random.default_rng(2), probe.n
    before, after = surface[:n], probe.call(event.action, surface[:n], surface[n:])
    if after is None:
        return False
    for _ in range(TRIES):
        x = before + ~discrete * np.maximum(np.abs(before), 1.0) * rng.normal(size=n)
        found = probe.call(event.action, x, surface[n:])
        if found is None or not np.array_equal(found[discrete], after[discrete]):
            return False
        told = after[~discrete] + reset @ (x - before)[~discrete]
        size = np.abs(after[~discrete]) + np.abs(reset) @ np.abs(x - before)[~discrete]
        if (np.abs(found[~discrete] - told) > ALIKE * np.maximum(size, 1.0)).any():
            return False
    return True


def _far_points(model: Ode, start: Point, discrete: Truth) -> Iterator[tuple[Point, int, str]]:
    """Yield points along each state that flows and each input, with its number and what it is there."""
    names = [*(f"x{k + 1}" for k in range(len(model.x0))), *(port.name for port in model.inputs)]
    moves = np.concatenate([~discrete, np.ones(len(model.inputs), dtype=bool)])
    for index in np.flatnonzero(moves):
        for far in FAR:
            for sign in (1.0, -1.0):
                point = start.copy()
                point[index] += sign * far * max(abs(start[index]), 1.0)
                yield point, int(index), f"{names[index]} = {point[index]:.3g}"


def _look_far(search: _Search, point: Point, index: int, discrete: Truth, how: str) -> None:
    """Take a far point as one of another mode if the Jacobian is constant around it: it is not on a kink."""
    here = search.probe.slopes(point)
    for side in (1.0, -1.0):
        near = point.copy()
        near[index] += side * BESIDE * max(abs(point[index]), 1.0)
        there = search.probe.slopes(near)
        if here is None or there is None:
            return
        scale = max(float(np.abs(here).max(initial=0.0)), float(np.abs(there).max(initial=0.0)))
        if float(np.abs(here - there).max(initial=0.0)) > ALIKE * scale:
            return
    value = search.probe.look(point)
    if here is None or value is None:
        return
    # what is but slightly curved is not another mode, nor is what fades smoothly far away
    if any(_are_alike(mode, here, value, point, DIFFERENT) for mode in search.modes):
        return
    if _meets_kink(search.probe, search.modes[0].point, point, index):
        search.add(point, discrete, how)


def _meets_kink(probe: _Probe, start: Point, end: Point, index: int) -> bool:
    """Return whether slopes or values change all at once on the way between two points, by halving.

    The half in which they change more is followed: what only bends is spread over a longer way.
    """
    ends = [start, end]
    first, last = (_look_around(probe, each) for each in ends)
    if first is None or last is None:
        return True
    known = [first, last]
    largest = left = _change_between(ends, known)
    while abs(ends[1][index] - ends[0][index]) > NARROW * max(abs(ends[0][index]), abs(ends[1][index]), 1.0):
        middle = 0.5 * (ends[0] + ends[1])
        between = _look_around(probe, middle)
        if between is None:
            return True
        changes = [
            _change_between([ends[0], middle], [known[0], between]),
            _change_between([middle, ends[1]], [between, known[1]]),
        ]
        side = 0 if changes[0] >= changes[1] else 1
        ends[1 - side], known[1 - side], left = middle, between, changes[side]
        largest = max(largest, left)
    return left >= KINKED * largest


def _look_around(probe: _Probe, point: Point) -> tuple[Array, Array] | None:
    """Return rates and outputs at a point, and their slopes; None where they fail."""
    there, slopes = probe.look(point), probe.slopes(point)
    return None if there is None or slopes is None else (there, slopes)


def _change_between(ends: Sequence[Point], known: Sequence[tuple[Array, Array]]) -> float:
    """Return how far slopes at two points differ, or the way between them from the tangent at either."""
    (here, slopes), (there, others) = known
    step = ends[1] - ends[0]
    length = float(np.abs(step).max(initial=0.0)) or 1.0
    off = min(
        float(np.abs(there - here - each @ step).max(initial=0.0)) / length for each in (slopes, others)
    )
    return max(float(np.abs(others - slopes).max(initial=0.0)), off)


def _explain_everything(search: _Search, start: Point, discrete: Truth) -> bool:
    """Return whether what was found holds far from there too: each of many points is in a known mode."""
    rng, n = np.random.default_rng(1), search.probe.n
    sizes = np.maximum(np.abs(start), 1.0)
    for mode in list(search.modes):
        for _ in range(TRIES):
            point = start + sizes * rng.normal(size=len(start)) * 10.0 ** rng.uniform(-1.0, 2.0)
            point[:n][discrete] = mode.point[:n][discrete]
            there = search.probe.look(point)
            known = [each for each in search.modes if each.key == mode.key]
            if there is None or not any(_is_on_tangent(each, there, point) for each in known):
                return False
    return True


def _describe_modes(model: Ode, search: _Search, discrete: Truth) -> OdeModes:
    """Return tangents without the states that only events change."""
    n, flow = search.probe.n, np.flatnonzero(~discrete)
    fixed = model.method in ORDERS
    tangents, names = [], []
    for mode in search.modes:
        x, u = mode.point[:n], mode.point[n:]
        rates, outputs = mode.slopes[:n], mode.slopes[n:]
        A, B = rates[np.ix_(flow, flow)], rates[flow, n:]
        C, D = outputs[:, flow], outputs[:, n:]
        rate = mode.there[flow] - A @ x[flow] - B @ u
        shift = mode.there[n:] - C @ x[flow] - D @ u
        method: Any = model.method if fixed else "exact"
        step = model.step if fixed else None
        tangents.append(Tangent(model, A, B, C, D, x[flow], rate, shift, method, step))
        values = [f"x{k + 1} = {x[k]:.6g}" for k in np.flatnonzero(discrete)]
        names.append(", ".join(values) or mode.how)
    resets = tuple(each for each in search.resets if not np.array_equal(each, np.eye(len(flow))))
    return OdeModes(tuple(tangents), tuple(names), resets, search.whole)


def mode_combinations(modes: Sequence[int], most: int) -> tuple[list[tuple[int, ...]], bool]:
    """Return which mode each of several is in, all combinations of them; or one after the other, if too many.

    The flag says whether these are all.
    """
    count = int(np.prod(modes))
    if count <= most:
        return [tuple(int(k) for k in each) for each in np.ndindex(*modes)], True
    start = (0,) * len(modes)
    single = [(*start[:k], mode, *start[k + 1 :]) for k, many in enumerate(modes) for mode in range(1, many)]
    return [start, *single][:most], False
