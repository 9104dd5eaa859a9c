"""The one change that helps most: each is tried in the linear reading, none is run.

In:  a linear Composite and how long it shall run
Out: changes, the best first, each with what it would bring
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hocket.analysis.linear import read_linear
from hocket.analysis.prediction import predicted_error
from hocket.analysis.settling import Settling, settling
from hocket.analysis.stability import EDGE, radius
from hocket.analysis.variants import scaled
from hocket.clock import written
from hocket.engine.composite import Composite
from hocket.errors import HocketError
from hocket.orchestrators import GaussSeidel, Iterate, Jacobi
from hocket.orchestrators.around import layers
from hocket.plan import Repeat, walk
from hocket.signals import Hold, Polynomial

NOISE = 1e-12
"""A relative error that nothing need be done about."""
WORTH = 0.8
"""An error must shrink to this part of itself, or a change is not worth its trouble."""

MANY = 20
"""Sweeps of an iteration of which nothing better is known."""
FEW = 10.0
"""Times the steps of now beyond which shorter ones are tried only where nothing else helps."""
LONGEST = 20_000
"""Steps of a run up to which shorter ones are tried even where something else helps."""


@dataclass(frozen=True)
class Change:
    """Something to do otherwise, and what that would bring."""

    words: str
    rho: float
    error: float | None
    """The largest error in relation to the values; None: the run has no end that is known."""
    steps: float
    """How many times the steps of now it would take."""


def changes(
    composite: Composite,
    stop: Fraction | None,
    fixed_steps: bool = False,
    now: tuple[Settling, ...] = (),
) -> list[Change]:
    """Return what helps, the best first; `fixed_steps`: other steps cannot be judged.

    `now` is how the iterations of the composite itself settle.
    """
    found: list[Change] = []
    for words, variant, steps in _variants(composite, fixed_steps):
        try:
            if _slow(variant, steps, stop) and any(change.rho <= 1.0 + EDGE for change in found):
                continue
            reading = read_linear(variant)
            rho = radius(reading)
            error = None if stop is None else predicted_error(reading, stop, measure=False).worst.relative
        except (HocketError, np.linalg.LinAlgError):  # no such step, no solution, or no numbers
            continue
        found.append(Change(words, rho, error, steps * _sweeps(settling(reading)) / _sweeps(now)))
    return sorted(found, key=_rank)


def _slow(variant: Composite, steps: float, stop: Fraction | None) -> bool:
    """Return whether a change is tried only where nothing else helps: it would take long to judge."""
    long = stop is not None and stop / variant.step > LONGEST
    return (long and steps > 1.0) or steps > FEW or (iterates(variant) and len(list(levels(variant))) > 1)


def _sweeps(iterations: tuple[Settling, ...]) -> float:
    """Return how often the steps are made again, about: of the level that does it most often."""
    return float(max((each.sweeps or MANY for each in iterations), default=1))


def _rank(change: Change) -> tuple[bool, float, float]:
    error = math.inf if change.error is None or math.isnan(change.error) else change.error
    return (change.rho > 1.0 + EDGE, error if change.error is not None else change.rho, change.steps)


def best(found: list[Change], rho: float, error: float | None) -> Change | None:
    """Return the change to advise, if one is worth its trouble.

    Of those that make it stable the cheapest; of a stable coupling the one that takes most off the error for
    the same steps, or else the cheapest.
    """
    helping = [change for change in found if change.rho <= 1.0 + EDGE]
    if rho > 1.0 + EDGE:
        return min(helping, key=lambda change: (change.steps, _rank(change)), default=None)
    if error is None or not error > NOISE:
        return None
    worth = [change for change in helping if change.error is not None and change.error < WORTH * error]
    same = [change for change in worth if change.steps <= 1.0]
    return min(same, key=_rank, default=min(worth, key=lambda change: change.steps, default=None))


def _variants(composite: Composite, fixed_steps: bool) -> Iterator[tuple[str, Composite, float]]:
    """Yield changes in words, the composite with each, and how many times the steps it costs."""
    if any(_mode(level) == "stale" for level in levels(composite)):
        yield 'outputs = "consistent"', _everywhere(composite, _consistent), 1.0
    jacobi = any(isinstance(_explicit(level), Jacobi) for level in levels(composite))
    if jacobi:
        yield 'orchestrator "gauss-seidel"', _everywhere(composite, _sequential), 1.0
    if any(isinstance(level.extrapolation, Hold) for level in levels(composite)):
        yield 'extrapolation "linear"', _everywhere(composite, _linear), 1.0
        if jacobi:
            both = _everywhere(_everywhere(composite, _sequential), _linear)
            yield 'orchestrator "gauss-seidel" and extrapolation "linear"', both, 1.0
    if not iterates(composite) and all(level.abilities.rewind for level in levels(composite)):
        both = _everywhere(_everywhere(composite, _iterated), _linear)
        yield 'orchestrator "iterate" and extrapolation "linear"', both, 1.0
    for part in () if fixed_steps else (2, 5, 10, 100):
        step = composite.step / part
        yield f"a step of {written(step)}", scaled(composite, Fraction(1, part)), float(part)


def iterates(composite: Composite) -> bool:
    """Return whether a level does."""
    plans = (level.plan.step for level in composite.blueprint.levels())
    return any(isinstance(each, Repeat) for plan in plans for _, each in walk(plan))


def levels(composite: Composite) -> Iterator[Composite]:
    """Yield a level and those inside it."""
    yield composite
    for model in composite.scenario.models.values():
        if isinstance(model, Composite):
            yield from levels(model)


def _mode(composite: Composite) -> str:
    return str(getattr(composite.orchestrator, "outputs", ""))


def _everywhere(composite: Composite, change: Callable[[Composite], dict[str, Any]]) -> Composite:
    models = {
        name: _everywhere(model, change) if isinstance(model, Composite) else model
        for name, model in composite.scenario.models.items()
    }
    how: dict[str, Any] = {
        "orchestrator": composite.orchestrator,
        "extrapolation": composite.extrapolation,
        "start": composite.start,
        "sampled": composite.sampled,
    }
    return Composite(composite.scenario.with_models(models), composite.step, **{**how, **change(composite)})


def _explicit(composite: Composite) -> Any:
    """Return the algorithm of one step, without iteration and step control around it."""
    *_, innermost = layers(composite.orchestrator)
    return innermost


def _with(composite: Composite, explicit: Any) -> dict[str, Any]:
    def around(made: Any) -> Any:
        return replace(made, inner=around(made.inner)) if hasattr(made, "inner") else explicit

    return {"orchestrator": around(composite.orchestrator)}


def _iterated(composite: Composite) -> dict[str, Any]:
    return _with(composite, Iterate(_explicit(composite)))


def _consistent(composite: Composite) -> dict[str, Any]:
    made = _explicit(composite)
    if isinstance(made, GaussSeidel):
        order: Any = made.order
        return _with(composite, GaussSeidel(order, inputs=made.inputs))
    return _with(composite, replace(made, outputs="consistent")) if _mode(composite) else {}


def _sequential(composite: Composite) -> dict[str, Any]:
    made = _explicit(composite)
    if not isinstance(made, Jacobi):
        return {}
    return _with(composite, GaussSeidel(outputs=made.outputs, inputs=made.inputs))


def _linear(composite: Composite) -> dict[str, Any]:
    return {"extrapolation": Polynomial(1)} if isinstance(composite.extrapolation, Hold) else {}
