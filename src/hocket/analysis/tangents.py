"""Tangents of equations: the linear model of an Ode or of a model exchange FMU at an operating point.

In:  a model, its live simulator, a point (state, inputs, time)
Out: a stand-in with the fit in one number, or the reason why there is none
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from hocket.analysis.answers import relative_error
from hocket.analysis.bench import BlackBoxBench, OperatingPoint, RefusedError
from hocket.analysis.identify import ALONE, POOR
from hocket.analysis.stand_ins import Tangent
from hocket.errors import ScenarioError
from hocket.model import Array
from hocket.simulators.fmu import Fmu
from hocket.simulators.methods import ORDERS, MethodName
from hocket.simulators.ode import Ode

NUDGE = float(np.finfo(float).eps) ** (1 / 3)
"""Where central differences err least."""
TRIED = 1e-3
"""The change of states and inputs at which a tangent is compared with its model."""
REST = 1e-9
"""Rates below this part of the state in a second are those of an equilibrium."""

Look: TypeAlias = Callable[[Array, Array], Array]
"""Rates and outputs, one behind the other, at states and inputs."""


@dataclass(frozen=True)
class LinearisationPoint:
    """Where an Ode is linearised: what is left out is as it is in the scenario."""

    x: Sequence[float] | None = None
    u: Sequence[float] | None = None
    t: float | None = None


@dataclass(frozen=True)
class TangentFit:
    """A tangent, how far it is off at small changes, and what the user should know."""

    tangent: Tangent
    fit: float
    notes: tuple[str, ...]


def tangent_of_ode(model: Ode, simulator: Any, point: LinearisationPoint, t: float, u: Array) -> TangentFit:
    """Return the tangent of an Ode: by its Jacobian where it has one, else by central differences."""
    x = np.array(simulator.x if point.x is None else point.x, dtype=float)
    u = u if point.u is None else np.array(point.u, dtype=float)
    t = t if point.t is None else point.t
    if (x.shape, u.shape) != ((len(model.x0),), (len(model.inputs),)):
        expected = f"{len(model.x0)} states and {len(model.inputs)} inputs"
        raise ScenarioError("the point does not fit the Ode", "at", expected)
    f = model.function(model.f)
    g = None if model.g is None else model.function(model.g)

    def rates_and_outputs(x: Array, u: Array, t: float = t) -> Array:
        y = x if g is None else _call_function(g, t, x, u, len(model.outputs))
        return np.concatenate([_call_function(f, t, x, u, len(x)), y])

    same = np.array_equal(rates_and_outputs(x, u, t + 1.0), rates_and_outputs(x, u))
    notes: tuple[str, ...] = () if same else (f"it depends on time itself: as at {t:g} s",)
    refusal: RefusedError | None = None
    for sizes in _change_sizes(x, u):
        slopes = _central_differences(rates_and_outputs, x, u, sizes)
        if model.jacobian is not None:
            given = _call_function(model.function(model.jacobian), t, x, u, len(x) ** 2)
            slopes[: len(x), : len(x)] = given.reshape(len(x), len(x))
        try:
            return _fit_tangent(model, rates_and_outputs, x, u, slopes, notes, sizes)
        except CurvedError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _change_sizes(x: Array, u: Array) -> Iterator[Array]:
    """Yield what a change of one is of each state and input: its value or one; then in smaller units.

    Where all states, or all inputs, are small, they are in units that make them so. What stands at zero tells
    of no units: a gap of half a millimetre is not to be overlooked there.
    """
    point = np.abs(np.concatenate([x, u]))
    ones = np.maximum(point, 1.0)
    yield ones
    small = [float(np.abs(part).max(initial=0.0)) for part in (x, u)]
    if any(0.0 < size < 1.0 for size in small):
        floors = np.repeat([size if 0.0 < size < 1.0 else 1.0 for size in small], (len(x), len(u)))
        yield np.maximum(point, floors)


class CurvedError(RefusedError):
    """Its tangent does not follow it: perhaps it does closer to the point."""


def _call_function(function: Callable[..., Any], t: float, x: Array, u: Array, count: int) -> Array:
    """Return what a function of the user's gives: so many numbers, in one row."""
    try:
        return np.array(function(t, x, u), dtype=float).reshape(count)
    except Exception as error:  # somebody else's code
        raise RefusedError(f"it failed when it was tried: {type(error).__name__}: {error}") from error


def tangent_of_fmu(model: Fmu, place: OperatingPoint) -> TangentFit:
    """Return the tangent of a model exchange FMU, from its directional derivatives or from differences."""
    live = getattr(place.simulator, "live", place.simulator)
    if model.description.event_indicators:
        moved = BlackBoxBench(place).run([np.zeros((place.powers, len(place.u)))] * ALONE)
    A, B, C, D = live.jacobian(float(place.t), place.u[np.newaxis])
    exchange = live.exchange

    def rates_and_outputs(x: Array, u: Array) -> Array:
        found = exchange.probe(x.copy(), u.copy(), len(model.outputs))
        if found is None:
            raise live.fault()
        return np.concatenate(found)

    touch = _fit_tangent(
        model, rates_and_outputs, np.array(exchange.x), place.u, np.block([[A, B], [C, D]]), ()
    )
    if model.description.event_indicators:
        _check_events(touch.tangent, moved, place)
    return touch


def _check_events(tangent: Tangent, moved: Array, place: OperatingPoint) -> None:
    """Refuse an FMU with events whose motion is not that of its tangent: events are not seen in slopes."""
    live, u, h = tangent.open(), place.u[np.newaxis], float(place.h)
    live.start(0.0)
    rows = [live.output(0.0, u)]
    for _ in range(len(moved) - 1):
        live.step(0.0, h, u)
        rows.append(live.output(0.0, u))
    off = relative_error(np.array(rows) - moved[0], moved - moved[0], np.abs(moved).max(axis=0))
    if off > POOR:
        span = f"{(len(moved) - 1) * h:.3g} s"
        raise RefusedError(f"it has events, and does not move as its tangent within {span}")


def _fit_tangent(
    model: Ode | Fmu,
    look: Look,
    x: Array,
    u: Array,
    slopes: Array,
    notes: tuple[str, ...],
    sizes: Array | None = None,
) -> TangentFit:
    n, there = len(x), look(x, u)
    if not (np.isfinite(there).all() and np.isfinite(slopes).all()):
        raise RefusedError("its rates or slopes are not finite at this point")
    constant = there - slopes @ np.concatenate([x, u])
    moving = np.abs(there[:n]) > REST * np.maximum(np.abs(x), 1.0)
    if moving.any():
        state = int(np.argmax(moving))
        notes = (*notes, f"not an equilibrium: x{state + 1} moves by {there[state]:.3g} per second")
    ones = np.maximum(np.abs(np.concatenate([x, u])), 1.0)
    fit = _tangent_error(look, x, u, slopes, ones if sizes is None else sizes)
    if fit > POOR:
        what = f"its tangent is off by {min(fit, 1.0):.0%} at changes of {TRIED:g}"
        raise CurvedError(f"{what}: it is not smooth at this point")
    if sizes is not None and (sizes < ones).any():
        notes = (*notes, f"linear for changes of about {TRIED * sizes.min():.2g} only")
    fixed = model.method in ORDERS
    tangent = Tangent(
        model,
        A=slopes[:n, :n],
        B=slopes[:n, n:],
        C=slopes[n:, :n],
        D=slopes[n:, n:],
        x0=x,
        rate=constant[:n],
        shift=constant[n:],
        method=cast("MethodName", model.method if fixed else "exact"),
        step=model.step if fixed else None,
    )
    return TangentFit(tangent, fit, notes)


def _central_differences(look: Look, x: Array, u: Array, sizes: Array) -> Array:
    """Return the slopes of rates and outputs over states and inputs, from central differences."""
    point = np.concatenate([x, u])
    columns = []
    for index in range(len(point)):
        moved = [point.copy(), point.copy()]
        for there, sign in zip(moved, (1.0, -1.0), strict=True):
            there[index] += sign * NUDGE * sizes[index]
        ends = [look(there[: len(x)], there[len(x) :]) for there in moved]
        columns.append((ends[0] - ends[1]) / (moved[0][index] - moved[1][index]))
    return np.array(columns).T if columns else np.zeros((len(look(x, u)), 0))


def _tangent_error(look: Look, x: Array, u: Array, slopes: Array, sizes: Array) -> float:
    """Return how far the tangent is off when a state or an input changes a little, relative to the effect."""
    point, there, worst = np.concatenate([x, u]), look(x, u), 0.0
    for index in range(len(point)):
        for sign in (1.0, -1.0):
            change = np.zeros(len(point))
            change[index] = sign * TRIED * sizes[index]
            found = look(x + change[: len(x)], u + change[len(x) :]) - there
            told = slopes @ change
            size = max(float(np.abs(found).max()), float(np.abs(told).max()))
            if size > 1e-12 * float(np.abs(there).max(initial=0.0)):
                worst = max(worst, float(np.abs(found - told).max()) / size)
    return worst if math.isfinite(worst) else math.inf
