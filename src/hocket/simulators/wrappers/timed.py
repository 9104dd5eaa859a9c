"""Time as a signal: a simulator that is told from where and how far to step.

In:  a Model over t
Out: a Model like it over another variable s, with the time and the step as inputs
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hocket.errors import ScenarioError, SimulatorError
from hocket.model.arguments import set_fields
from hocket.model.composite import as_level
from hocket.model.extrapolators import interpolate_samples, value_at
from hocket.model.plain_state import is_record
from hocket.model.ports import Port
from hocket.model.protocols import Array, Capabilities, InitialisationSimulator, Model, Sample, Simulator
from hocket.simulators.recipes import parse_seconds
from hocket.simulators.wrappers.emulation import LiveWrapper, check_wrapped

TIME, STEP, BACK = "clock_t", "clock_h", "clock_back"
"""The inputs that a step controller drives."""
TOLD = (Port(TIME, "s"), Port(STEP, "s"), Port(BACK, "s"))
_SLACK = 1e-9


@dataclass(frozen=True)
class Timed:
    """The model inside, stepped from the told time `clock_t` by the told step `clock_h`, whatever s is.

    delta_s(s, 1, x, (u, t, h)) = delta(t, h, x, u) (Gomes 2016, section 3.1). A step that begins at
    `clock_back` may be rolled back: where that time is told again, the state is the one it had there. Outputs
    are those at the told time. `begin` is the time at the start. `degrees`: of the polynomials in t by which
    inputs are extrapolated, from the times that were told (left out: all are held). A model that holds its
    inputs is given what they are in the middle of the step, which is as good as a line.
    """

    model: Model
    begin: Fraction = Fraction(0)
    degrees: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_wrapped(self.model, "Timed", "")
        if as_level(self.model) is not None and not self.model.capabilities.variable_step:
            hint = "`Timed` around each of those in it, or Adaptive(...) as its orchestrator"
            raise ScenarioError("a level with a fixed step", "Timed", "one that accepts any step", hint)
        if taken := reserved_inputs(self.model.inputs):
            raise ScenarioError(f"an input is named `{taken[0]}`", "Timed", "a name that is not taken")
        degrees = tuple(self.degrees) if any(self.degrees) else ()
        if degrees and (len(degrees) != len(self.model.inputs) or not all(0 <= q <= 8 for q in degrees)):
            raise ScenarioError(f"`degrees` are {degrees}", "degrees", "one for each input, 0 to 8")
        set_fields(self, degrees=degrees, begin=parse_seconds(self.begin, "begin"))

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """Those of the model inside, then the time, the step, and where it may be asked to roll back to."""
        starts = (float(self.begin), 0.0, float(self.begin))
        told = (replace(port, start=start) for port, start in zip(TOLD, starts, strict=True))
        return (*self.model.inputs, *told)

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """Those of the model inside; the time has direct feedthrough to all of them."""
        return tuple(replace(port, feedthrough=(*port.feedthrough, TIME)) for port in self.model.outputs)

    @property
    def capabilities(self) -> Capabilities:
        # a step of s is one step, however long
        return Capabilities(rollback=self.model.capabilities.rollback, variable_step=False, input_degree=0)

    def open(self) -> Simulator:
        return _TimedSimulator(self)


def reserved_inputs(inputs: Iterable[Port]) -> list[str]:
    return [port.name for port in inputs if port.name in (TIME, STEP, BACK)]


def followed_degree(model: Model, degree: int) -> int:
    """Return the degree of extrapolation that a model follows when it is told the time."""
    honoured = model.capabilities.input_degree
    return min(degree, 8 if honoured is None else max(honoured, 1))


is_record(Sample)


@is_record
class _RollbackPoint(NamedTuple):
    """Where a step began that may be rolled back."""

    t: float
    state: Any
    seen: tuple[Array, Array] | None
    """Inputs and outputs there."""
    past: tuple[Sample, ...]


class _TimedSimulator(LiveWrapper):
    """The simulator inside, and the two places where it may stand: where it came to, and where it began.

    Asked for outputs at the other place it goes there, and keeps its state here: it cannot be told apart.
    """

    def __init__(self, timed: Timed):
        model = timed.model
        super().__init__(model, InitialisationSimulator)
        self.begin, self.degrees = float(timed.begin), timed.degrees
        self.degree = max(timed.degrees, default=0)
        honoured = model.capabilities.input_degree
        self.honoured = 8 if honoured is None else honoured
        self.width = len(model.inputs)
        self.rollbacks = model.capabilities.rollback
        self.level = as_level(model) is not None
        self.settles = self.settles or self.level
        self._begin()

    def _begin(self) -> None:
        self.now = self.begin
        self.place: _RollbackPoint | None = None
        self.away = False
        """Whether the one inside stands at `place`."""
        self.aside: Any = None
        """While it does: its state now."""
        self.seen: tuple[float, Array, Array] | None = None
        """Time, inputs and outputs, when those were last asked for."""
        self.begun = False
        self.past: tuple[Sample, ...] = ()
        """The inputs of the steps before, with their times, as many as the extrapolation looks back on."""

    def start(self, s: float) -> None:
        """Start the one inside at the time of the start, which s is not."""
        self._begin()
        self.inner.start(self.begin)

    def output(self, s: float, u: Array) -> Array:
        given, t = self._split_inputs(u)
        place = self.place
        if place is not None and place.t == t != self.now and place.seen is not None and not self.away:
            u_there, y_there = place.seen
            # right after a step all are asked once more under the inputs of its start
            if np.array_equal(given, u_there):
                return y_there
        self._move_to(t)
        if self.level and not self.begun:
            self._restart_level(given)
        y = np.array(self.inner.output(t, given), dtype=float)
        self.seen = t, given, y
        return y

    def step(self, s: float, h: float, u: Array) -> float:
        """Step the one inside from the told time by the told step; none at all where that is 0."""
        given, t = self._split_inputs(u)
        length, back = float(u[0, self.width + 1]), float(u[0, self.width + 2])
        if length <= 0.0:
            return s + h
        self._move_to(t)
        self.begun = True
        if self.rollbacks and t == back and not self.away:
            seen = self.seen[1:] if self.seen is not None and self.seen[0] == t else None
            self.place = _RollbackPoint(t, self.inner.save(), seen, self.past)
        past = self.place.past if self.away and self.place is not None else self.past
        self.away, self.aside = False, None
        if self.degree:
            self.past = (*(each for each in past[-self.degree :] if each.s < t), Sample(t, given[0]))
            given = self._extrapolated_inputs(length)
        reached = self.inner.step(t, length, given)
        if reached is not None and not abs(reached - (t + length)) <= _SLACK * length + 1e-15 * abs(t):
            raise SimulatorError(
                f"it stopped at {reached!r} s instead of {t + length!r} s",
                expected="a step to its end: step control does not know events",
            )
        self.now, self.seen = t + length, None
        return s + h

    def _restart_level(self, given: Array) -> None:
        """Start a level anew under the inputs it really has: all in it agree on them from the start."""
        starts = tuple(map(float, given[0]))
        if starts != tuple(self.inner.starts):
            self.inner.starts = starts
            self.inner.start(self.begin)

    def _split_inputs(self, u: Array) -> tuple[Array, float]:
        """Return the inputs of the one inside, and the told time."""
        return np.array(u[:1, : self.width]), float(u[0, self.width])

    def _extrapolated_inputs(self, h: float) -> Array:
        """Return the polynomials through the inputs told last, in powers of the time since then."""
        now = self.past[-1].s
        u = np.zeros((1 + min(self.degree, self.honoured), self.width))
        for port, degree in enumerate(self.degrees):
            looked = self.past[-degree - 1 :]
            fitted = interpolate_samples([Sample(each.s - now, each.value[port]) for each in looked])
            if self.honoured == 0:
                fitted = [value_at(fitted, 0.5 * h)]
            u[: len(fitted), port] = fitted[: len(u)]
        return u

    def _move_to(self, t: float) -> None:
        """Let the one inside stand where a time says: where its step began, or where it is now."""
        place = self.place
        if place is not None and place.t == t != self.now:
            if not self.away:
                self.aside = self.inner.save()
                self.inner.restore(place.state)
                self.away = True
        elif self.away:
            self.inner.restore(self.aside)
            self.away, self.aside = False, None

    def save(self) -> Any:
        return self.inner.save(), self.now, self.place, self.away, self.aside, self.past, self.begun

    def restore(self, state: Any) -> None:
        inner, self.now, self.place, self.away, self.aside, self.past, self.begun = state
        self.seen = None
        self.inner.restore(inner)
