"""Attempts at steps: made, judged, accepted or made again, shorter; a state machine over s.

In:  a StepController, and the signals it watches
Out: the time and the step to tell, from one s to the next
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hocket.errors import ConvergenceError
from hocket.model import Array, Sample
from hocket.signals import interpolate_samples, value_at

if TYPE_CHECKING:
    from hocket.simulators.step_controller import StepController

SMALL = 1e-10
"""An error below this part of the tolerance counts as this."""


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
        """Go to the begin."""
        self.state = self._initial_state()

    def output(self, s: float, u: Array) -> Array:
        """Tell the time and the step."""
        told = self._decide(u)[0]
        y = [told.t, told.h, told.back, float(told.accepted), told.error]
        if self.model.estimate == "copy":
            y += [told.t if told.copy_t is None else told.copy_t, told.copy_h]
        return np.array(y)

    def step(self, s: float, h: float, u: Array) -> float:
        """Go on to what comes next."""
        following = self._decide(u)[1]
        if following.phase == "stuck":
            raise self._tolerance_error(following)
        self.state = following
        return s + h

    def save(self) -> _AttemptState:
        """Return the state."""
        return self.state

    def restore(self, state: _AttemptState) -> None:
        """Go back to a saved state."""
        self.state = state

    def close(self) -> None:
        """Nothing is held."""

    @property
    def is_finished(self) -> bool:
        """Whether the time stands still: it has come to its stop."""
        return self.state.phase == "done"

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
        """Begin an attempt at the time that was accepted last."""
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
        """Return how far the copy is."""
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
        model, now = self.model, max(ratio, SMALL)
        before, earlier = state.errors or (now, now)
        first, second, third = model.gains if accepted else (1.0, 0.0, 0.0)
        power = float(model.power)
        factor: float = now ** (-first / power) * before ** (second / power) * earlier ** (-third / power)
        return min(model.most if accepted else 0.9, max(model.least, model.safety * factor))

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
