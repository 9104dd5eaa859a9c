"""Any step for simulators that accept one length only, by steps of their own and interpolated outputs.

In:  a Model whose simulators step by one length, and that length
Out: a Model like it that can be stepped by any
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hocket.errors import ScenarioError, SimulatorError
from hocket.model.arguments import set_fields
from hocket.model.clock import Duration, format_duration, seconds
from hocket.model.extrapolators import value_at
from hocket.model.protocols import (
    Array,
    Capabilities,
    InitialisationSimulator,
    Model,
    RollbackSimulator,
    RunEndSimulator,
    Simulator,
    provides,
    step_of,
)
from hocket.simulators.recipes import positive_duration
from hocket.simulators.wrappers.emulation import (
    Emulating,
    LiveWrapper,
    check_wrapped,
    outputs_of,
    shift_inputs,
)


@dataclass(frozen=True, init=False)
class Substepped(Emulating):
    """A model like the one inside that takes any step, in steps of `substep` from the start on.

    A step that ends on this grid is several sub-steps and nothing else. Where it ends between, the one inside
    steps past the end, under inputs led on by their polynomials, and outputs are the line between its last
    two: error substep^2 y''/8. It then waits, so inputs act up to one sub-step late. Outputs with direct
    feedthrough follow new inputs by the difference these make at the end of the sub-step. What jumps
    (booleans, held reals) is held until the sub-step ends. Inputs that the one inside would hold are taken at
    the middle of each sub-step. Energies and slopes are not handed on: `Sloped` around it tells those of the
    line.
    """

    model: Model
    substep: Fraction
    emulates: ClassVar[str] = "variable step"
    rank: ClassVar[int] = 2

    def __init__(self, model: Model, substep: Duration):
        check_wrapped(model, "Substepped", "sub-stepped")
        set_fields(self, model=model, substep=positive_duration(substep, "substep"))
        micro = step_of(model)
        if micro is not None and (self.substep / micro).denominator != 1:
            raise ScenarioError(
                f"the micro step {format_duration(micro)} of the model does not divide the sub-step "
                f"{format_duration(self.substep)}",
                "substep",
                "a multiple of it",
                format_duration(micro * max(1, round(self.substep / micro))),
            )
        if model.capabilities.stops_early:
            what = f"`{type(model).__name__}` may stop inside a step, at an event: its steps differ in length"
            raise ScenarioError(what, "substep", "a simulator with one step", "leave `substep` out")

    @property
    def file_keys(self) -> dict[str, Any]:
        return {"substep": format_duration(self.substep)}

    @property
    def emulation(self) -> str:
        return f"any step by sub-steps of {format_duration(self.substep)}"

    @property
    def price(self) -> str:
        return "between sub-steps outputs are on a line, and inputs act up to one sub-step late"

    @property
    def capabilities(self) -> Capabilities:
        # nothing can be told of its order from outside
        inner = self.model.capabilities
        degree = inner.input_degree or None
        return replace(
            inner,
            variable_step=True,
            slopes=False,
            slopeless=(),
            micro=False,
            order=None,
            input_degree=degree,
        )

    def open(self) -> Simulator:
        return _SubstepSimulator(self)


class _SubstepSimulator(LiveWrapper):
    """A simulator at the first point of its grid that is not before the time of its caller."""

    def __init__(self, recipe: Substepped):
        super().__init__(recipe.model, RunEndSimulator, InitialisationSimulator)
        self.own = recipe.substep
        self.h = float(recipe.substep)
        self.holds = recipe.model.capabilities.input_degree == 0
        self.reacts = recipe.model.capabilities.reevaluates and any(p.feedthrough for p in recipe.outputs)
        self.jumps = frozenset(number for number, port in enumerate(recipe.outputs) if port.discrete)
        self.begun = Fraction(0)
        self.count = 0
        """Sub-steps made since the start."""
        self.line: tuple[list[float], list[float], float, Array] | None = None
        """Outputs at the last two points; when the step began that led past its end, and its inputs."""
        if provides(self.inner, RollbackSimulator):
            self.save, self.restore = self._save, self._restore

    def start(self, t: float) -> None:
        super().start(t)
        self.begun, self.count, self.line = seconds(t), 0, None

    def output(self, t: float, u: Array) -> Array:
        end = self._time(self.count)
        if self._meets(t, end) or self.line is None:
            y: Array = np.asarray(self.inner.output(t, self._point_inputs(u)))
            return y
        before, after, base, stepped = self.line
        part = 1.0 - (end - t) / self.h
        between = [
            a if number in self.jumps else a + part * (b - a)
            for number, (a, b) in enumerate(zip(before, after, strict=True))
        ]
        if self.reacts:
            new = self._outputs_under(end, u, 0.0)
            old = self._outputs_under(end, stepped, t - base)
            between = [
                y if number in self.jumps else y + (a - b)
                for number, (y, a, b) in enumerate(zip(between, new, old, strict=True))
            ]
        return np.array(between)

    def step(self, t: float, h: float, u: Array) -> float:
        if h == 0.0:
            meets = self._meets(t, self._time(self.count))
            return float(self.inner.step(t, h, self._point_inputs(u))) if meets else t
        end = t + h
        while self._time(self.count) < end and not self._meets(end, self._time(self.count)):
            self._advance(t, end, u)
        return end

    def _advance(self, t: float, end: float, u: Array) -> None:
        """Make one sub-step; where it leads past the end, keep what is on both sides."""
        begun, there = self._time(self.count), self._time(self.count + 1)
        past = there > end and not self._meets(end, there)
        before = self._outputs_under(begun, u, begun - t) if past else []
        returned = self.inner.step(begun, self.h, self._substep_inputs(u, begun - t))
        reached = there if returned is None else float(returned)
        if not self._meets(reached, there):
            raise SimulatorError(
                f"a sub-step from {begun!r} s ended at {reached!r} s, not at {there!r} s",
                expected="sub-steps that are made whole",
                hint="another `substep`",
            )
        self.count += 1
        self.line = (before, self._outputs_under(there, u, there - t), t, np.array(u)) if past else None

    def _outputs_under(self, t: float, u: Array, s: float) -> list[float]:
        """Return the outputs at t under the inputs s after the time that their coefficients are about."""
        return outputs_of(self.inner, t, self._point_inputs(shift_inputs(u, s)))

    def _substep_inputs(self, u: Array, s: float) -> Array:
        """Return the inputs of a sub-step that begins s after the step."""
        if self.holds and len(u) > 1:
            return np.array([value_at(u, s + 0.5 * self.h)])
        return shift_inputs(u, s)

    def _point_inputs(self, u: Array) -> Array:
        """Return inputs as the one inside takes them at one time."""
        return u[:1] if self.holds else u

    def _time(self, count: int) -> float:
        return float(self.begun + count * self.own)

    def _meets(self, one: float, other: float) -> bool:
        return abs(one - other) <= 1e-9 * self.h + 1e-15 * abs(one)

    def _save(self) -> Any:
        return self.inner.save(), self.count, self.line

    def _restore(self, state: Any) -> None:
        kept, self.count, self.line = state
        self.inner.restore(kept)
