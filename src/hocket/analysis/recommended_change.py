"""The one change that helps most: each is tried in the linear reading, none is run.

In:  a linear Composite and how long it shall run
Out: changes, the best first, each with what it would bring
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hocket.analysis.error_prediction import predicted_error
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.measure import Measure, Rows
from hocket.analysis.stability import EDGE, IterationConvergence, iteration_convergence, spectral_radius
from hocket.errors import HocketError
from hocket.model.clock import format_duration
from hocket.model.composite import Composite, algorithm_layers, levels, traits_of
from hocket.model.extrapolators import Hold, Polynomial
from hocket.model.units import Share
from hocket.orchestrators import GaussSeidel, Iterate
from hocket.plan import Repeat
from hocket.planning.parameters import change_levels, scale_steps
from hocket.planning.planner import plan_tree

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
class CouplingChange:
    """Something to do otherwise, and what that would bring."""

    words: str
    rho: float
    error: float | None
    """The predicted global error in relation to the peak; None: the run has no end that is known."""
    steps: float
    """How many times the steps of now it would take."""


@dataclass(frozen=True)
class RecommendedChanges(Measure):
    """Changes that were tried, the best first."""

    changes: tuple[CouplingChange, ...]
    best: CouplingChange | None
    """The one that is worth its trouble."""
    error: float | None
    """The global error without a change; None: not predicted, or meaningless."""
    title = "effect of changes"

    def verdict(self) -> list[str]:
        """Return the change to make."""
        best = self.best
        if best is None:
            return []
        line = f"recommended change: {best.words}: spectral radius {best.rho:.6g}"
        if best.error is not None and math.isfinite(best.error) and (best.error or self.error != 0.0):
            line += f", predicted global error {Share(best.error):.2g} of peak"
            line += f" instead of {Share(self.error):.2g}" if self.error is not None else ""
        return [line + (f", for {best.steps:g} times the steps" if best.steps > 1.0 else "")]

    def rows(self) -> Rows:
        """Return a row for each change."""
        return [
            {
                "change": each.words,
                "spectral radius": each.rho,
                "error, of peak": None if each.error is None else Share(each.error),
                "relative cost": each.steps,
            }
            for each in self.changes
        ]


def suggest_changes(
    composite: Composite,
    stop: Fraction | None,
    fixed_steps: bool = False,
    now: tuple[IterationConvergence, ...] = (),
) -> list[CouplingChange]:
    """Return what helps, the best first; `fixed_steps`: other steps cannot be judged.

    `now` is how the iterations of the composite itself settle.
    """
    found: list[CouplingChange] = []
    for words, variant, steps in _coupling_variants(composite, fixed_steps):
        try:
            if _is_slow_to_judge(variant, steps, stop) and any(change.rho <= 1.0 + EDGE for change in found):
                continue
            reading = read_linear(variant)
            rho = spectral_radius(reading)
            error = None if stop is None else predicted_error(reading, stop, measure=False).worst.relative
        except (HocketError, np.linalg.LinAlgError):  # no such step, no solution, or no numbers
            continue
        cost = steps * _most_sweeps(iteration_convergence(reading)) / _most_sweeps(now)
        found.append(CouplingChange(words, rho, error, cost))
    return sorted(found, key=_rank_change)


def _is_slow_to_judge(variant: Composite, steps: float, stop: Fraction | None) -> bool:
    """Return whether a change is tried only where nothing else helps: it would take long to judge."""
    long = stop is not None and stop / variant.step > LONGEST
    nested = len(list(levels(variant))) > 1
    return (long and steps > 1.0) or steps > FEW or (nested and has_iteration(variant))


def _most_sweeps(iterations: tuple[IterationConvergence, ...]) -> float:
    """Return how often the steps are made again, about: of the level that does it most often."""
    return float(max((each.sweeps or MANY for each in iterations), default=1))


def _rank_change(change: CouplingChange) -> tuple[bool, float, float]:
    error = math.inf if change.error is None or math.isnan(change.error) else change.error
    return (change.rho > 1.0 + EDGE, error if change.error is not None else change.rho, change.steps)


def best_change(found: list[CouplingChange], rho: float, error: float | None) -> CouplingChange | None:
    """Return the change to advise, if one is worth its trouble.

    Of those that make it stable the cheapest; of a stable coupling the one that takes most off the error for
    the same steps, or else the cheapest.
    """
    helping = [change for change in found if change.rho <= 1.0 + EDGE]
    if rho > 1.0 + EDGE:
        return min(helping, key=lambda change: (change.steps, _rank_change(change)), default=None)
    if error is None or not error > NOISE:
        return None
    worth = [change for change in helping if change.error is not None and change.error < WORTH * error]
    same = [change for change in worth if change.steps <= 1.0]
    return min(same, key=_rank_change, default=min(worth, key=lambda change: change.steps, default=None))


def _coupling_variants(composite: Composite, fixed_steps: bool) -> Iterator[tuple[str, Composite, float]]:
    """Yield changes in words, the composite with each, and how many times the steps it costs."""
    every = [level for _, level in levels(composite)]
    linear = change_levels(composite, _extrapolate_linearly)
    if any(_output_mode(level) == "stale" for level in every):
        yield 'outputs = "consistent"', change_levels(composite, _make_consistent), 1.0
    jacobi = any(traits_of(_innermost_algorithm(level)).schedule == "parallel" for level in every)
    if jacobi:
        yield 'orchestrator "gauss-seidel"', change_levels(composite, _make_sequential), 1.0
    if any(isinstance(level.extrapolation, Hold) for level in every):
        yield 'extrapolation "linear"', linear, 1.0
        if jacobi:
            both = change_levels(linear, _make_sequential)
            yield 'orchestrator "gauss-seidel" and extrapolation "linear"', both, 1.0
    if not has_iteration(composite) and all(level.capabilities.rollback for level in every):
        both = change_levels(linear, _add_iteration)
        yield 'orchestrator "iterate" and extrapolation "linear"', both, 1.0
    for part in () if fixed_steps else (2, 5, 10, 100):
        step = composite.step / part
        yield f"a step of {format_duration(step)}", scale_steps(composite, Fraction(1, part)), float(part)


def has_iteration(composite: Composite) -> bool:
    """Return whether a level iterates."""
    return any(plan_tree(composite).instructions(Repeat))


def _output_mode(level: Composite) -> str:
    return traits_of(level.orchestrator).outputs or ""


def _innermost_algorithm(level: Composite) -> Any:
    """Return the algorithm of one step, without iteration and step control around it."""
    *_, innermost = algorithm_layers(level.orchestrator)
    return innermost


def _with_innermost(level: Composite, algorithm: Any) -> Composite:
    """Return a level with another algorithm of one step, in the same iteration and step control."""

    def rewrap(made: Any) -> Any:
        return replace(made, inner=rewrap(made.inner)) if traits_of(made).inner else algorithm

    return level.with_changes(orchestrator=rewrap(level.orchestrator))


def _add_iteration(level: Composite) -> Composite:
    return _with_innermost(level, Iterate(_innermost_algorithm(level)))


def _make_consistent(level: Composite) -> Composite:
    if not _output_mode(level):
        return level
    return _with_innermost(level, replace(_innermost_algorithm(level), outputs="consistent"))


def _make_sequential(level: Composite) -> Composite:
    made = _innermost_algorithm(level)
    if traits_of(made).schedule != "parallel":
        return level
    return _with_innermost(level, GaussSeidel(outputs=made.outputs, inputs=made.inputs))


def _extrapolate_linearly(level: Composite) -> Composite:
    return level.with_changes(extrapolation=Polynomial(1)) if isinstance(level.extrapolation, Hold) else level
