"""What counts when nobody says so: little error for little work, of couplings that do not grow.

In:  a Composite, what was asked for
Out: the objectives and limits of its search
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hocket.analysis.exact import exact_solution
from hocket.analysis.stability import EDGE
from hocket.engine.composite import Composite
from hocket.errors import HocketError
from hocket.nesting.work import Work
from hocket.orchestrators import GaussSeidel
from hocket.signals import Hold, Nepce
from hocket.tuning.case import Case
from hocket.tuning.objectives import Objective, evaluate_objectives, objectives

SAME_WHEN_TURNED = ("rho", "step", "work", "exchanges", "steps", "time")


def choose_objectives(
    composite: Composite,
    goals: Sequence[str] | None,
    limits: Mapping[str, float] | None,
    stop: Fraction | None,
    start: Fraction,
) -> tuple[int, tuple[Objective, ...]]:
    """Return how many objectives there are, and these with what has limits only.

    Without goals, error and work count where the scenario has linear models or those can be found, and what
    runs show where not; what grows by the coupling alone is out.
    """
    if goals:
        names = tuple(dict.fromkeys(goals))
        return len(names), objectives(names, limits)
    known = work_now(composite) is not None
    if stop is None:
        names = ("rho", "work") if known else ("rho", "step")
        return len(names), objectives(names, limits)
    case, bounds = Case(composite, stop, start), dict(limits or {})
    foreseen = not math.isnan(evaluate_objectives(case, objectives(["error"]))[0])
    if foreseen and _rests(case):
        bounds.setdefault("rho", 1.0 + EDGE)
    names = ("error" if foreseen else "measured", "work" if known else "seconds")
    return len(names), objectives(names, bounds)


def _rests(case: Case) -> bool:
    """Return whether the system without coupling errors does not grow."""
    try:
        A = exact_solution(case.linear).A
    except HocketError:
        return False
    rates = np.linalg.eigvals(A).real if len(A) else np.zeros(1)
    return bool(rates.max() <= EDGE * max(1.0, float(np.abs(A).max(initial=0.0))))


def work_now(composite: Composite) -> Work | None:
    """Return the work of now; None where it is not known before a run."""
    try:
        return Case(composite, None).work
    except HocketError:
        return None


def rotations_equivalent(
    composite: Composite, wanted: Sequence[Objective], over: Mapping[str, str] | None
) -> bool:
    """Return whether orders that are rotations of each other are worth the same.

    That is so for the spectral radius with holds and filtered holds (formulas, section 1), while outputs are
    not evaluated again at the end.
    """
    now: Any = composite.orchestrator
    others = [name for name in over or {} if name.rpartition(".")[2] not in ("order", "step", "alpha")]
    held = all(
        isinstance(each.extrapolation or composite.extrapolation, (Hold, Nepce))
        for each in composite.scenario.connections
    )
    plain = isinstance(now, GaussSeidel) and now.outputs == "stale" and over is not None and not others
    return plain and held and all(each.name in SAME_WHEN_TURNED for each in wanted)
