"""How far time goes: an artificial simulator that tells all others from where to step, and by how much.

In:  the outputs whose error matters, as inputs
Out: the time t and the step h as outputs, over a variable s that counts

S_H of Gomes 2016, section 3.1. The time depends on what was seen before, the step on what is seen now, and
no outputs depend on the step: no algebraic loop arises.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np

from hocket.errors import ConvergenceError, Fault, raise_faults
from hocket.model.arguments import choice_faults, set_fields
from hocket.model.extrapolators import interpolate_samples, value_at
from hocket.model.plain_state import is_record
from hocket.model.ports import Port, parse_ports
from hocket.model.protocols import Array, Capabilities, Sample, Simulator
from hocket.plan.instructions import SMALL, step_factor
from hocket.simulators.recipes import parse_seconds, positive_duration


@is_record
@dataclass(frozen=True, slots=True)
class _AttemptState:
    """Where an attempt stands."""

    phase: str
    base: float
    """The last accepted time."""
    h: float
    end: float
    seen: tuple[float, ...] = ()
    """What to compare with at the end."""
    errors: tuple[float, float] | None = None
    """Before and before that."""
    begun: bool = False
    past: tuple[tuple[float, tuple[float, ...]], ...] = ()
    """Accepted times and what was seen then, as many as a prediction goes through."""


@dataclass(frozen=True, slots=True)
class _StepCommand:
    t: float
    h: float
    back: float
    accepted: bool = False
    error: float = 0.0
    copy_h: float = 0.0
    copy_t: float | None = None


_Decision: TypeAlias = tuple[_StepCommand, _AttemptState]


class Attempts:
    """A state machine over s: what is told, and what comes next, follow from the state and the inputs."""

    def __init__(self, model: StepController):
        self.model = model
        self.stop = float(model.stop)
        # the difference between a step and two halves is 1 - 2^-q of the error of the step
        self.factor = 2.0**model.order / (2.0**model.order - 1.0)
        self.grid = None if model.quantum is None else float(2 * model.quantum)
        """What steps are multiples of, so that their halves are too."""
        self.state = self._initial_state()

    def _initial_state(self) -> _AttemptState:
        model = self.model
        return self._fit_to_stop(_AttemptState("go", float(model.begin), float(model.first), 0.0))

    def start(self, s: float) -> None:
        self.state = self._initial_state()

    def output(self, s: float, u: Array) -> Array:
        told = self._decide(u)[0]
        y = [told.t, told.h, told.back, float(told.accepted), told.error]
        if self.model.estimate == "copy":
            y += [told.t if told.copy_t is None else told.copy_t, told.copy_h]
        return np.array(y)

    def step(self, s: float, h: float, u: Array) -> float:
        following = self._decide(u)[1]
        if following.phase == "stuck":
            raise self._tolerance_error(following)
        self.state = following
        return s + h

    def save(self) -> _AttemptState:
        return self.state

    def restore(self, state: _AttemptState) -> None:
        self.state = state

    def close(self) -> None:
        """Nothing is held."""

    def _decide(self, u: Array) -> _Decision:
        state = self.state
        y = tuple(map(float, u[0]))
        half = 0.5 * state.h
        match state.phase:
            case "go":
                return self._begin_attempt(state, y, accepted=not state.begun)
            case "look":
                return _StepCommand(state.end, 0.0, state.base), replace(state, phase="half", seen=y)
            case "half":
                return _StepCommand(state.base, half, state.base), replace(state, phase="middle")
            case "middle":
                told = _StepCommand(state.base + half, half, state.base, copy_t=state.end)
                return told, replace(state, phase="judge")
            case "judge":
                return self._judge_attempt(state, y)
        return _StepCommand(state.end, 0.0, state.end), state

    def _begin_attempt(
        self, state: _AttemptState, y: tuple[float, ...], accepted: bool, error: float = 0.0
    ) -> _Decision:
        begun = replace(state, begun=True)
        match self.model.estimate:
            case "richardson":
                told, following = state.h, replace(begun, phase="look")
            case "copy":
                told, following = 0.5 * state.h, replace(begun, phase="middle", seen=self._copy_difference(y))
            case _:
                past = (*(each for each in state.past if each[0] < state.base), (state.base, y))
                past = past[-self.model.order :]
                seen = predict_values(past, state.end)
                told, following = state.h, replace(begun, phase="judge", seen=seen, past=past)
        return _StepCommand(state.base, told, state.base, accepted, error, copy_h=state.h), following

    def _judge_attempt(self, state: _AttemptState, y: tuple[float, ...]) -> _Decision:
        model, ratio = self.model, self._ratio(state, y)
        if not ratio <= 1.0 and model.rejects:
            if state.h <= float(model.smallest):
                stuck = replace(state, phase="stuck", seen=(ratio,))
                return _StepCommand(state.end, 0.0, state.base, False, ratio), stuck
            h = max(float(model.smallest), state.h * self._factor(state, ratio, accepted=False))
            again = self._fit_to_stop(replace(state, phase="go", h=h))
            return _StepCommand(state.end, 0.0, state.base, False, ratio), again
        if state.end == self.stop:
            done = replace(state, phase="done")
            return _StepCommand(state.end, 0.0, state.end, True, ratio), done
        h = state.h * self._factor(state, ratio, accepted=True)
        h = min(float(model.largest), max(float(model.smallest), h))
        now = max(ratio, SMALL)
        errors = now, state.errors[0] if state.errors else now
        following = replace(state, base=state.end, h=h, errors=errors)
        return self._begin_attempt(self._fit_to_stop(following), y, accepted=True, error=ratio)

    def _fit_to_stop(self, state: _AttemptState) -> _AttemptState:
        """Let an attempt end where the run stops, not just before it."""
        left = self.stop - state.base
        if state.h >= left * (1.0 - 1e-12):
            return replace(state, h=left, end=self.stop)
        h = min(state.h, 0.5 * left)
        if self.grid is None:
            return replace(state, h=h, end=state.base + h)
        begin = float(self.model.begin)
        count, before = max(1, int(h / self.grid)), round((state.base - begin) / self.grid)
        return replace(state, h=count * self.grid, end=begin + (before + count) * self.grid)

    def _copy_difference(self, y: tuple[float, ...]) -> tuple[float, ...]:
        count = len(self.model.watched)
        return tuple(one - other for one, other in zip(y[:count], y[count:], strict=True))

    def _ratio(self, state: _AttemptState, y: tuple[float, ...]) -> float:
        """Return the error of an attempt, in tolerances."""
        model = self.model
        now = self._copy_difference(y) if model.estimate == "copy" else y
        h = state.h if model.estimate == "defect" else self.factor
        if model.per == "unit":
            h = h / state.h
        largest = 0.0
        for one, other, value, allowed in zip(now, state.seen, y, model.tolerance, strict=False):
            part = h * abs(one - other) / (allowed + model.relative * abs(value))
            if not part <= largest:
                largest = part
        return largest

    def _factor(self, state: _AttemptState, ratio: float, accepted: bool) -> float:
        now = max(ratio, SMALL)
        errors = (now, *(state.errors or (now, now)))
        return step_factor(self.model, errors, float(self.model.power), accepted, settles=False)

    def _tolerance_error(self, state: _AttemptState) -> ConvergenceError:
        return ConvergenceError(
            f"the error is {state.seen[0]:.2g} times the tolerance with the smallest step of {state.h:g} s",
            where=f"step from t = {state.base!r} s",
            expected=f"an error of {min(self.model.tolerance):g}",
            hint="a larger tolerance, or a smaller `smallest`; a jump cannot be resolved by any step",
        )


def predict_values(past: Sequence[tuple[float, tuple[float, ...]]], t: float) -> tuple[float, ...]:
    """Return what polynomials through the values of some times say about another time."""
    return tuple(
        float(value_at(interpolate_samples([Sample(at - t, values[port]) for at, values in past]), 0.0))
        for port in range(len(past[-1][1]))
    )


ErrorSource: TypeAlias = Literal["richardson", "copy", "defect"]
SOURCES: tuple[str, ...] = get_args(ErrorSource)
COPY = "copy"
"""What the names of inputs begin with that are the copy's."""


@dataclass(frozen=True)
class StepController:
    """Steps as long as the error that they make in the `watched` signals is within the tolerance.

    `estimate`: "richardson" makes a step, rolls it back, makes two of half its length and compares; "copy"
    has two scenarios run side by side, one with the step and one with half of it, without rollback; "defect"
    asks how far the signals are from where they were held. The error of signal i counts in parts of
    tolerance[i] + relative * |y_i|, `per` "step" or "unit" of time. The next step is that one times
    safety * e^-a/k * e'^b/k * e''^-c/k with (a, b, c) = `gains` and the errors e now, e' before, e'' before
    that (Gustafsson 1991; Soderlind 2002); k is `order` + 1 per step, `order` per unit.
    """

    watched: tuple[Port, ...]
    stop: Fraction
    tolerance: tuple[float, ...] = (1e-4,)
    """One for each signal; one alone is for all of them."""
    relative: float = 0.0
    estimate: ErrorSource = "richardson"
    per: Literal["step", "unit"] = "step"
    rejects: bool = True
    begin: Fraction = Fraction(0)
    first: Fraction = Fraction(1, 100)
    smallest: Fraction = Fraction(1, 10**9)
    largest: Fraction = Fraction(1)
    gains: tuple[float, float, float] = (0.7, 0.4, 0.0)
    order: int = 1
    safety: float = 0.9
    most: float = 5.0
    least: float = 0.2
    quantum: Fraction | None = None
    """Where given, half steps are multiples of it."""

    def __post_init__(self) -> None:
        watched, given = parse_ports(self.watched), np.atleast_1d(self.tolerance).tolist()
        lengths = [
            name for name in ("first", "smallest", "largest", "quantum") if getattr(self, name) is not None
        ]
        set_fields(
            self,
            watched=watched,
            tolerance=tuple(given * len(watched) if len(given) == 1 else given),
            rejects=self.rejects and self.estimate != "copy",
            gains=tuple(map(float, self.gains)),
            **{name: parse_seconds(getattr(self, name), name) for name in ("stop", "begin")},
            **{name: positive_duration(getattr(self, name), name) for name in lengths},
        )
        raise_faults(self._faults())

    def _faults(self) -> Iterator[Fault]:
        yield from choice_faults("estimate", self.estimate, SOURCES)
        yield from choice_faults("per", self.per, ("step", "unit"))
        if not self.watched:
            yield Fault("no signal is watched", "watched", "at least one")
        if len(self.tolerance) != len(self.watched):
            what = f"{len(self.tolerance)} tolerances for {len(self.watched)} signals"
            yield Fault(what, "tolerance", "one for each")
        for value in {*self.tolerance} if self.relative >= 0.0 else {self.relative}:
            if not 0.0 < value < math.inf:
                yield Fault(f"a tolerance of {value!r} is never met", "tolerance", "a number above 0")
        if self.stop <= self.begin:
            yield Fault("it stops before it begins", "stop", "`stop` after `begin`")
        if self.quantum and ((self.stop - self.begin) / (2 * self.quantum)).denominator != 1:
            what = "the stop is not on the grid of half steps"
            yield Fault(what, "quantum", "a part of the time that passes")
        if not self.smallest <= self.first <= self.largest:
            yield Fault("the first step is out of bounds", "first", "smallest <= first <= largest")
        if len(self.gains) != 3:
            yield Fault(f"{len(self.gains)} gains", "gains", "three: now, before, before that")

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """The signals, and those of the copy after them."""
        if self.estimate != "copy":
            return self.watched
        return (*self.watched, *(replace(port, name=f"{COPY}.{port.name}") for port in self.watched))

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """Time, step, where a step may be rolled back to; whether t is accepted; the error, in tolerances."""
        reacts = tuple(port.name for port in self.inputs)
        copied = (Port("copy_t", "s"), Port("copy_h", "s", None, reacts))
        return (
            Port("t", "s"),
            Port("h", "s", None, reacts),
            Port("back", "s", None, reacts),
            Port("accepted", "", None, reacts, "boolean"),
            Port("error", "", None, reacts),
            *(copied if self.estimate == "copy" else ()),
        )

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(rollback=True, variable_step=False, input_degree=0)

    def open(self) -> Simulator:
        return Attempts(self)

    @property
    def power(self) -> int:
        """How the error falls with the step."""
        return self.order if self.per == "unit" else self.order + 1
