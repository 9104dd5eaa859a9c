"""How good a control loop is: what a step response tells, and the margins of an open loop.

In:  a signal over time; a linear model from one input to one output
Out: overshoot, rise and settling time, errors; gain, phase and delay margins
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hocket.errors import ScenarioError
from hocket.model.arguments import expect, is_number
from hocket.model.protocols import Array
from hocket.simulators.methods import to_floats
from hocket.simulators.state_space import StateSpace


@dataclass(frozen=True)
class StepMetrics:
    """What a response to a step tells; times in seconds from the step, parts of the height of the step.

    What the signal does not do within the time that is known is None: it has not risen, or not settled.
    """

    final: float
    """The value that it is compared with."""
    overshoot: float
    """How far it goes beyond it at most, as a part of the height of the step; 0: it does not."""
    peak: float
    """The value furthest in the direction of the step."""
    peak_time: float
    rise_time: float | None
    """From 10 to 90 % of the height."""
    settling_time: float | None
    """From when on it stays within the band."""
    band: float
    """As a part of the height."""
    steady_error: float
    """The final value less the last value."""
    ise: float
    """The integral of the squared error."""
    iae: float
    """The integral of the size of the error."""
    itae: float
    """The same, weighted with the time since the step."""

    def facts(self) -> dict[str, float | None]:
        """Return all numbers by name."""
        return asdict(self)


def step_metrics(
    t: Any,
    y: Any,
    final: float | None = None,
    initial: float | None = None,
    at: float | None = None,
    band: float = 0.02,
) -> StepMetrics:
    """Return overshoot, rise and settling time and errors of a step response, lines between its samples.

    `t` are times in seconds, `y` values: columns of a run, as `*run["plant.y"]`... `final` is the value that
    is aimed at, left out: the last one; `initial` the one that it comes from, left out: the first one; `at`
    when the step happens, left out: the first time. `band` is how near it must stay, as a part of the step.
    """
    times, values = _signal(t, y)
    for name, value in (("final", final), ("initial", initial), ("at", at)):
        expect(value is None or is_number(value), name, value, "a finite number, or None")
    expect(is_number(band) and 0.0 < band < 1.0, "band", band, "a number above 0 and below 1")
    begin = times[0] if at is None else float(at)
    if not times[0] <= begin < times[-1]:
        what = f"the step at {begin:g} s is outside of the times of the signal"
        raise ScenarioError(what, "at", f"from {times[0]:g} s, before {times[-1]:g} s")
    first = float(np.interp(begin, times, values)) if initial is None else float(initial)
    last = float(values[-1]) if final is None else float(final)
    height = last - first
    if height == 0.0:
        raise ScenarioError("the step has no height: it ends where it begins", "final", "another value")
    behind = times > begin
    since = np.concatenate([[0.0], times[behind] - begin])
    seen = np.concatenate([[float(np.interp(begin, times, values))], values[behind]])
    part = (seen - first) / height
    top = int(np.argmax(part))
    low, high = _crossing_time(since, part, 0.1), _crossing_time(since, part, 0.9)
    squared, size, weighted = _error_integrals(since, last - seen)
    return StepMetrics(
        final=last,
        overshoot=max(0.0, float(part[top]) - 1.0),
        peak=float(seen[top]),
        peak_time=float(since[top]),
        rise_time=None if low is None or high is None else high - low,
        settling_time=_settling_time(since, part - 1.0, band),
        band=float(band),
        steady_error=last - float(seen[-1]),
        ise=squared,
        iae=size,
        itae=weighted,
    )


def _signal(t: Any, y: Any) -> tuple[Array, Array]:
    try:
        times, values = to_floats(t), to_floats(y)
    except (TypeError, ValueError):
        raise ScenarioError("a signal has times and values", "y", "lists of numbers") from None
    good = times.ndim == 1 and times.shape == values.shape and len(times) > 1
    if not good or not (np.isfinite(times).all() and np.isfinite(values).all()):
        what = f"times of shape {times.shape} and values of shape {values.shape}"
        raise ScenarioError(what, "y", "a finite value for each of two times or more")
    if (np.diff(times) < 0.0).any() or times[0] == times[-1]:
        raise ScenarioError("the times of a signal decrease, or are all the same", "t", "times in order")
    return times, values


def _crossing_time(t: Array, part: Array, level: float) -> float | None:
    """Return when a signal first reaches a level, from below; None: never."""
    beyond = np.flatnonzero(part >= level)
    if not len(beyond):
        return None
    k = int(beyond[0])
    if k == 0 or part[k] == part[k - 1]:
        return float(t[k])
    return float(t[k - 1] + (t[k] - t[k - 1]) * (level - part[k - 1]) / (part[k] - part[k - 1]))


def _settling_time(t: Array, off: Array, band: float) -> float | None:
    """Return from when on a deviation stays within a band; None: it is outside at the end."""
    outside = np.flatnonzero(np.abs(off) > band)
    if not len(outside):
        return 0.0
    k = int(outside[-1])
    if k + 1 == len(t):
        return None
    edge = math.copysign(band, float(off[k]))
    return float(t[k] + (t[k + 1] - t[k]) * (edge - off[k]) / (off[k + 1] - off[k]))


def _error_integrals(t: Array, error: Array) -> tuple[float, float, float]:
    """Return the integrals of e^2, |e| and t |e|, exact for lines between the samples."""
    # where a line crosses zero its size has a kink: the crossing becomes a sample
    k = np.flatnonzero(error[:-1] * error[1:] < 0.0)
    zero = t[k] + (t[k + 1] - t[k]) * error[k] / (error[k] - error[k + 1])
    t, error = np.insert(t, k + 1, zero), np.insert(error, k + 1, 0.0)
    h, a, b, begin = np.diff(t), error[:-1], error[1:], t[:-1]
    squared = float(np.sum(h * (a * a + a * b + b * b)) / 3.0)
    a, b = np.abs(a), np.abs(b)
    size = float(np.sum(h * (a + b)) / 2.0)
    weighted = float(np.sum(begin * h * (a + b) / 2.0 + h * h * (a + 2.0 * b) / 6.0))
    return squared, size, weighted


@dataclass(frozen=True)
class Margins:
    """How far an open loop is from instability when it is closed with negative feedback.

    A margin that no frequency has is infinite, and its frequency None. Frequencies are in rad/s.
    """

    gain: float
    """By which factor the gain may grow; below 1: it is too large already."""
    phase: float
    """By how many degrees the phase may fall behind."""
    delay: float
    """What delay may be added, in seconds."""
    gain_frequency: float | None
    """Where the phase is -180 degrees."""
    phase_frequency: float | None
    """Where the gain is 1."""
    stable: bool
    """Whether the closed loop is: margins of one that is not tell little."""

    def facts(self) -> dict[str, float | bool | None]:
        """Return all numbers by name."""
        return asdict(self)


def margins(loop: StateSpace | Iterable[StateSpace], delay: float = 0.0) -> Margins:
    """Return the margins of an open loop: a linear model with one input and one output, or several in a row.

    Of a linear `PID` the way from `measured` to `control` counts, its sign turned: the loop closes with
    negative feedback. `delay` is a delay in the loop, in seconds; with one, `stable` is what the margins say,
    for a loop whose own poles are not unstable (Nyquist), and it is an error for one whose poles are.
    """
    parts = [loop] if isinstance(loop, StateSpace) else loop
    expect(isinstance(parts, Iterable), "loop", loop, "a linear model, or a list of them")
    expect(is_number(delay) and delay >= 0.0, "delay", delay, "a number of seconds, 0 or above")
    matrices = [_single(each) for each in parts]
    expect(bool(matrices), "loop", loop, "a linear model, or a list of them")
    A, B, C, D = matrices[0]
    for a, b, c, d in matrices[1:]:
        A = np.block([[A, np.zeros((len(A), len(a)))], [b @ C, a]])
        B, C, D = np.vstack([B, b @ D]), np.hstack([d @ C, c]), d @ D
    return _find_margins(_Loop(A, B, C, D), float(delay))


def _single(model: Any) -> tuple[Array, Array, Array, Array]:
    valid = "a linear model, such as a `TransferFunction`, or a `PID` without limits and `period`"
    expect(isinstance(model, StateSpace), "loop", model, valid)
    if [port.name for port in (*model.inputs, *model.outputs)] == ["reference", "measured", "control"]:
        (A, B), (C, D) = model.state_matrices, model.output_matrices
        return A, -B[:, 1:], C, -D[:, 1:]
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        what = f"a part of the loop has {len(model.inputs)} inputs and {len(model.outputs)} outputs"
        raise ScenarioError(what, "loop", "one of each")
    return (*model.state_matrices, *model.output_matrices)


@dataclass(frozen=True)
class _Loop:
    """An open loop as matrices."""

    A: Array
    B: Array
    C: Array
    D: Array

    def response(self, w: float) -> complex:
        """Return the transfer function at a frequency in rad/s."""
        direct = complex(self.D[0, 0])
        if not len(self.A):
            return direct
        moved = np.linalg.solve(1j * w * np.eye(len(self.A)) - self.A, self.B.astype(complex))
        return direct + complex((self.C @ moved)[0, 0])

    @property
    def closed_poles(self) -> Array:
        """The poles with negative feedback."""
        if not len(self.A):
            return np.zeros(0)
        return np.asarray(np.linalg.eigvals(self.A - self.B @ self.C / (1.0 + self.D[0, 0])))

    @property
    def is_stable(self) -> bool:
        """Whether it is stable when it is closed."""
        return self.D[0, 0] != -1.0 and bool((self.closed_poles.real < 0.0).all())


FINE = 400
"""Frequencies per decade at which crossings are looked for, before they are refined."""
WIDE = 1e4
"""How far beyond the poles they are looked for."""
REAL = 1e-6
"""What is called real has an imaginary part below this part of it: else it is a pole that changes sign."""


def _find_margins(loop: _Loop, delay: float) -> Margins:
    from scipy.optimize import brentq

    def response(w: float) -> complex:
        found = loop.response(w)
        return found * complex(math.cos(w * delay), -math.sin(w * delay)) if delay else found

    grid = _frequencies(loop, delay)
    values = np.array([response(w) for w in grid])
    if not np.abs(values).any():
        raise ScenarioError("the loop does nothing: its gain is zero", "loop", "a loop that is connected")

    def refine(function: Any, k: Any) -> float:
        return float(brentq(function, grid[k], grid[k + 1], xtol=1e-15 * grid[k], rtol=1e-14))

    gain: tuple[float, float | None] = (math.inf, None)
    phase, later = gain, math.inf
    above = np.abs(values) > 1.0
    for k in np.flatnonzero(above[:-1] != above[1:]):
        w = refine(lambda w: abs(response(w)) - 1.0, k)
        turned = -response(w)  # how far from -1
        left = math.atan2(turned.imag, turned.real)
        if abs(left) < abs(phase[0]):
            phase = left, w
        later = min(later, left % (2.0 * math.pi) / w)
    below = values.imag < 0.0
    for k in np.flatnonzero(
        (below[:-1] != below[1:]) & (np.minimum(values.real[:-1], values.real[1:]) < 0.0)
    ):
        w = refine(lambda w: response(w).imag, k)
        found = response(w)
        if found.real >= 0.0 or abs(found.imag) > REAL * abs(found.real):
            continue
        factor = -1.0 / found.real
        if gain[1] is None or abs(math.log(factor)) < abs(math.log(gain[0])):
            gain = factor, w
    return Margins(
        gain=gain[0],
        phase=math.degrees(phase[0]),
        delay=later,
        gain_frequency=gain[1],
        phase_frequency=phase[1],
        stable=_stays_stable(loop, delay) if delay else loop.is_stable,
    )


def _frequencies(loop: _Loop, delay: float) -> Array:
    """Return where crossings are looked for, in rad/s."""
    poles = np.linalg.eigvals(loop.A) if len(loop.A) else np.zeros(0)
    corners = np.abs(np.concatenate([poles, loop.closed_poles, [1.0 / delay] if delay else []]))
    corners = corners[corners > 1e-12 * float(corners.max(initial=1.0))]
    low, high = float(corners.min(initial=math.inf)), float(corners.max(initial=0.0))
    if not len(corners):
        low = high = 1.0
    low, high = low / WIDE, high * WIDE
    if delay:  # beyond, the phase turns faster than the grid can tell
        high = min(high, FINE / delay)
    return np.geomspace(low, high, int(FINE * math.log10(high / low)) + 2)


def _stays_stable(loop: _Loop, delay: float) -> bool:
    """Return whether a loop that is stable without a delay is so with one: no crossing comes before it."""
    if not loop.is_stable:
        what = "the loop without its delay is not stable when it is closed: a delay is not judged"
        raise ScenarioError(what, "delay", "a loop that is stable without it")
    return _find_margins(loop, 0.0).delay > delay
