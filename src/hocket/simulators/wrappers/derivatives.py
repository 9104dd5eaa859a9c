"""Output derivatives for simulators that do not tell them: differences of outputs.

In:  a Model whose simulators do not tell the time derivatives of their outputs
Out: a Model like it whose simulators do, by a trial step that is taken back, or from the steps before
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hocket.errors import ScenarioError
from hocket.model.arguments import set_fields
from hocket.model.clock import Duration, format_duration
from hocket.model.protocols import (
    Array,
    Capabilities,
    Model,
    RollbackSimulator,
    Simulator,
    declared_energy,
    provides,
)
from hocket.simulators.recipes import positive_duration
from hocket.simulators.wrappers.emulation import (
    UNCHANGED,
    Emulating,
    LiveWrapper,
    check_wrapped,
    outputs_of,
    shift_inputs,
)


@dataclass(frozen=True, init=False)
class Sloped(Emulating):
    """A model like the one inside that tells output derivatives, by differences of its outputs.

    With `trial`, a short time: two steps of it are made and rolled back, and the slope is that of the
    parabola through the three outputs: error trial^2 y'''/3, and rounding of about 1e-16 y / trial. The one
    inside must roll back and take any step. Without `trial`: the parabola through the last three outputs,
    each a step apart, under the inputs as they were then. Its error is h^2 y'''/3 with h the step; jumps of
    inputs are seen a step late; the first slope is zero and the second of first order.
    """

    model: Model
    trial: Fraction | None = None
    emulates: ClassVar[str] = "slopes"
    rank: ClassVar[int] = 3

    def __init__(self, model: Model, trial: Duration | None = None):
        check_wrapped(model, "Sloped", "given output derivatives")
        set_fields(self, model=model, trial=None if trial is None else positive_duration(trial, "trial"))
        able = model.capabilities
        if trial is not None and not (able.rollback and able.variable_step):
            lacks = "cannot roll back" if not able.rollback else "accepts only the step of its level"
            first = "`Replay` (replay = true)" if not able.rollback else "`Substepped` (substep = ...)"
            raise ScenarioError(
                f"a trial step is short and rolled back, and `{type(model).__name__}` {lacks}",
                "slopes",
                "save() and restore(), and any step",
                f'`Sloped(model)`, slopes = "backward" in a file; or {first} first',
            )

    @property
    def energy(self) -> Any:
        return declared_energy(self.model)

    @property
    def file_keys(self) -> dict[str, Any]:
        return {"slopes": "backward" if self.trial is None else format_duration(self.trial)}

    @property
    def emulation(self) -> str:
        if self.trial is None:
            return "output derivatives by backward differences"
        return f"output derivatives by trial steps of {format_duration(self.trial)}"

    @property
    def price(self) -> str:
        if self.trial is None:
            return (
                "the first derivative is zero, later ones lag by the step squared, jumps of inputs come late"
            )
        return "each output derivative makes two steps and rolls them back"

    @property
    def capabilities(self) -> Capabilities:
        # micro steps are not told: trials would be among them
        return replace(self.model.capabilities, slopes=True, slopeless=(), micro=False, resumes=False)

    def open(self) -> Simulator:
        return _BackwardSlopes(self) if self.trial is None else _TrialSlopes(self)


class _SlopeSimulator(LiveWrapper):
    """What both ways share: all but the slope is done by the one inside."""

    def __init__(self, recipe: Sloped):
        super().__init__(recipe.model, *UNCHANGED, RollbackSimulator)
        self.jumps = [number for number, port in enumerate(recipe.outputs) if port.discrete]

    def _zero_jumps(self, slope: list[float]) -> Array:
        """Return slopes; of what jumps from value to value it is zero."""
        for number in self.jumps:
            slope[number] = 0.0
        return np.array(slope)


class _TrialSlopes(_SlopeSimulator):
    """Slopes by trial steps."""

    def __init__(self, recipe: Sloped):
        super().__init__(recipe)
        assert recipe.trial is not None
        self.e = float(recipe.trial)

    def slope(self, t: float, u: Array) -> Array:
        """Return (4 y1 - 3 y0 - y2) / 2e: the parabola through three outputs e apart, at the first."""
        e, state = self.e, self.inner.save()
        try:
            y = [outputs_of(self.inner, t, u)]
            for number in range(2):
                begun, end = t + number * e, t + (number + 1) * e
                returned = self.inner.step(begun, e, shift_inputs(u, number * e))
                reached = end if returned is None else float(returned)
                y.append(outputs_of(self.inner, reached, shift_inputs(u, reached - t)))
                if abs(reached - end) > 1e-9 * e + 1e-15 * abs(end):
                    return self._zero_jumps(_slopes_before_event(y, number * e, reached - t))
        finally:
            self.inner.restore(state)
        return self._zero_jumps([(4.0 * b - 3.0 * a - c) / (2.0 * e) for a, b, c in zip(*y, strict=True)])


def _slopes_before_event(y: list[list[float]], whole: float, there: float) -> list[float]:
    """Return the slopes up to the last whole trial, where an event ends the next; else up to the event."""
    span, end = (whole, y[1]) if whole else (there, y[-1])
    return [(b - a) / span if span > 0.0 else 0.0 for a, b in zip(y[0], end, strict=True)]


class _BackwardSlopes(_SlopeSimulator):
    """Slopes from the outputs at the beginnings of the last two steps."""

    def __init__(self, recipe: Sloped):
        super().__init__(recipe)
        self.past: tuple[tuple[float, list[float]], ...] = ()
        """Time and outputs, the newest last."""
        if provides(self.inner, RollbackSimulator):
            self.save, self.restore = self._save, self._restore

    def start(self, t: float) -> None:
        super().start(t)
        self.past = ()

    def step(self, t: float, h: float, u: Array) -> float:
        if h > 0.0:
            known = tuple(each for each in self.past if each[0] < t)
            self.past = (*known[-1:], (t, outputs_of(self.inner, t, u)))
        return super().step(t, h, u)

    def slope(self, t: float, u: Array) -> Array:
        """Return the slope at t of the parabola through now and the two outputs before."""
        past = [each for each in self.past if each[0] < t]
        y = outputs_of(self.inner, t, u)
        if not past:
            return np.zeros(len(y))
        t1, y1 = past[-1]
        near = [(a - b) / (t - t1) for a, b in zip(y, y1, strict=True)]
        if len(past) == 1:
            return self._zero_jumps(near)
        t2, y2 = past[-2]
        far = [(b - c) / (t1 - t2) for b, c in zip(y1, y2, strict=True)]
        return self._zero_jumps([n + (t - t1) * (n - f) / (t - t2) for n, f in zip(near, far, strict=True)])

    def _save(self) -> Any:
        return self.inner.save(), self.past

    def _restore(self, state: Any) -> None:
        kept, self.past = state
        self.inner.restore(kept)
