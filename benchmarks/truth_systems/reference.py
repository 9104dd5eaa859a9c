"""True solutions: one system of equations, solved by SciPy to tight tolerances.

In:  the right-hand side of the whole system, written apart from its coupled form
Out: a function from times to the values of one quantity
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from truth_systems.system import Reference

Vector = NDArray[np.float64]
RTOL, ATOL = 1e-10, 1e-12


def _solve(rhs: Any, span: tuple[float, float], y0: Any, **options: Any) -> Any:
    tight = {"rtol": RTOL, "atol": ATOL, "method": "DOP853"} | options
    found = solve_ivp(rhs, span, y0, **tight)
    if found.status < 0:
        raise ArithmeticError(f"no reference: {found.message}")
    return found


def smooth(rhs: Callable[[float, Any], Any], y0: Sequence[float], pick: Any, **options: Any) -> Reference:
    """Solve y' = rhs(t, y); `pick` is the place of the judged quantity, or a function of t and y.

    Right-hand sides with kinks (but no jumps) belong here too, with a `max_step` that meets each kink.
    """

    def values(times: Vector) -> Vector:
        y = _solve(rhs, (times[0], times[-1]), y0, t_eval=times, **options).y
        return y[pick] if isinstance(pick, int) else np.array([pick(t, y[:, k]) for k, t in enumerate(times)])

    return values


@dataclass(frozen=True)
class Switch:
    """Where `guard(t, y)` crosses zero in `direction` `mode` begins, with y as `reset` makes it."""

    guard: Callable[[float, Any], float]
    direction: int
    mode: int
    reset: Callable[[float, Any], Any] | None = None


def switched(
    rhs: Callable[[float, Any, int], Any],
    y0: Sequence[float],
    mode: int,
    switches: dict[int, Sequence[Switch]],
    pick: Callable[[float, Any, int], float],
    **options: Any,
) -> Reference:
    """Solve y' = rhs(t, y, mode) from switch to switch; `switches` has those that may happen in each mode."""

    def values(times: Vector) -> Vector:
        t, y, now, found = times[0], np.asarray(y0, float), mode, np.empty(len(times))
        while True:
            active = switches[now]
            guards = [_terminal(each) for each in active]
            piece = _solve(
                lambda t, y, m=now: rhs(t, y, m),
                (t, times[-1]),
                y,
                events=guards,
                dense_output=True,
                **options,
            )
            end = piece.t[-1]
            here = (times >= t) & (times <= end)
            found[here] = [pick(s, piece.sol(s), now) for s in times[here]]
            if piece.status == 0:
                return found
            happened = next(each for each, met in zip(active, piece.t_events, strict=True) if len(met))
            t, y, now = end, piece.y[:, -1], happened.mode
            if happened.reset:
                y = np.asarray(happened.reset(t, y), float)
            # a hair of the new mode, so that the guard just met is not met again
            hair = 1e-9
            y, t = y + hair * np.asarray(rhs(t, y, now)), t + hair

    return values


def _terminal(each: Switch) -> Any:
    def guard(t: float, y: Any) -> float:
        return each.guard(t, y)

    guard.terminal, guard.direction = True, each.direction  # type: ignore[attr-defined]
    return guard


def sampled(
    rhs: Callable[[float, Any, Any], Any],
    y0: Sequence[float],
    law: Callable[[float, Any, Any], tuple[Any, Any]],
    memory: Any,
    period: float,
    pick: int,
    *,
    late: Any = None,
    **options: Any,
) -> Reference:
    """Solve y' = rhs(t, y, held) where `held, memory = law(t, y, memory)` is computed once a period.

    With `late`, the value before the first period ends, what is computed acts one period later.
    """

    def values(times: Vector) -> Vector:
        y, state, found, shown = np.asarray(y0, float), memory, np.empty(len(times)), late
        for k in range(int(np.ceil(times[-1] / period - 1e-9))):
            t, end = k * period, (k + 1) * period
            fresh, state = law(t, y, state)
            held, shown = (fresh, None) if late is None else (shown, fresh)
            here = (times >= t - 1e-12) & (times <= end + 1e-12)
            within = np.clip(times[here], t, end)
            piece = _solve(lambda t, y, held=held: rhs(t, y, held), (t, end), y, dense_output=True, **options)
            found[here] = piece.sol(within)[pick] if here.any() else []
            y = piece.y[:, -1]
        return found

    return values


def delayed(
    rhs: Callable[[float, Any, Any], Any],
    past: Callable[[float], Any],
    delay: float,
    pick: int,
    **options: Any,
) -> Reference:
    """Solve y'(t) = rhs(t, y(t), y(t - delay)) by the method of steps; `past` gives y up to t = 0."""

    def values(times: Vector) -> Vector:
        before, y, found, k = past, np.asarray(past(0.0), float), np.empty(len(times)), 0
        while k * delay < times[-1] - 1e-12:
            t, end = k * delay, (k + 1) * delay
            piece = _solve(
                lambda t, y, before=before: rhs(t, y, before(t - delay)),
                (t, end),
                y,
                dense_output=True,
                **options,
            )
            here = (times >= t - 1e-12) & (times <= end + 1e-12)
            found[here] = piece.sol(np.clip(times[here], t, end))[pick] if here.any() else []
            before, y, k = piece.sol, piece.y[:, -1], k + 1
        return found

    return values
