"""The same scenario with other steps, for those who ask how far it carries.

In:  a Composite and the step its outermost level shall have
Out: a Composite whose levels keep their ratios; or one that starts without a past
"""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import Any

from hocket.clock import Duration, seconds
from hocket.engine.composite import Composite
from hocket.model import Model
from hocket.simulators.state_space import StateSpace

FINE = 10**12
"""The largest denominator of a step in seconds."""


def with_step(composite: Composite, step: Duration) -> Composite:
    """Return the composite with another outermost step; the levels inside keep their ratios to it.

    Simulators with steps of their own keep them, or the next shorter ones that divide the level's step.
    """
    return scale_steps(composite, seconds(step).limit_denominator(FINE) / composite.step)


def scale_steps(composite: Composite, factor: Fraction, own: bool = False) -> Composite:
    """Return the composite with all steps of levels times a factor; with `own`, those of linear models too.

    A sampled level keeps its step: that is what it is.
    """
    step = composite.step * factor
    models = {
        name: _scale_model_steps(model, factor, step, own)
        for name, model in composite.scenario.models.items()
    }
    scenario = composite.scenario.with_models(models)
    how = composite.orchestrator, composite.extrapolation, composite.start, composite.sampled
    return Composite(scenario, step, *how)


def _scale_model_steps(model: Model, factor: Fraction, level: Fraction, own: bool) -> Model:
    if isinstance(model, Composite):
        return model if model.sampled else scale_steps(model, factor, own)
    step = getattr(model, "step", None)
    if not isinstance(model, StateSpace) or step is None:
        return model
    return with_own_step(model, step * factor if own else level / (level / step).__ceil__())


def with_own_step(model: StateSpace, step: Fraction) -> StateSpace:
    """Return a linear model with another step of its own."""
    facts: dict[str, Any] = {field.name: getattr(model, field.name) for field in fields(model)}
    return type(model)(**{**facts, "step": step})


def with_cold_starts(composite: Composite) -> Composite:
    """Return the composite with cold starts at all levels: its steps are the same, and it starts sooner."""
    models = {
        name: with_cold_starts(model) if isinstance(model, Composite) else model
        for name, model in composite.scenario.models.items()
    }
    how = composite.orchestrator, composite.extrapolation
    return Composite(composite.scenario.with_models(models), composite.step, *how, "cold", composite.sampled)
