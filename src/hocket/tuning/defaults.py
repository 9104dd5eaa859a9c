"""The space to search when none is given: steps, algorithms, orders, extrapolations, what is exchanged.

In:  a Composite and how long it runs
Out: texts by name, as they are written in a file
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import factorial
from typing import Any

from hocket.engine.composite import Composite
from hocket.nesting.steps import own_step
from hocket.orchestrators import GaussSeidel, Iterate, Jacobi
from hocket.passes.contract import levels

TIMES = ("1/8", "1/5", "1/4", "2/5", "1/2", "4/5", "1", "5/4", "2", "5/2", "4", "5", "8")
"""Of the outermost step."""
PARTS = ("1/4", "1/2", "1", "2", "4")
"""Of the steps of levels inside."""
ORDERS = 24
"""Up to which all orders of a level are tried."""
BOTH = ("jacobi", "gauss-seidel")
SMOOTH = ("hold", "linear", "quadratic", "cubic")
SLOPED = ("hermite", "hermite2")
"""Where every simulator tells the slopes of its outputs."""


def default_space(composite: Composite, stop: Fraction | None) -> dict[str, str]:
    """Return a space for any scenario; steps divide the run, and the levels' divide those around them."""
    steps = [composite.step * Fraction(times) for times in TIMES]
    whole = [step for step in steps if stop is None or (stop / step).denominator == 1]
    fits = [step for step in whole if _fits(composite, step)]
    found = {"step": ", ".join(f"{each} s" for each in sorted({*fits, composite.step}))}
    for path, level in levels(composite, sampled=False):
        found |= {f"{path}{key}": text for key, text in _level_choices(level, not path)}
    return found


def _fits(composite: Composite, step: Fraction) -> bool:
    """Return whether what insists on a step of its own can keep it, and makes whole steps."""
    for model in composite.scenario.models.values():
        given: Any = model
        own = own_step(model) if getattr(given, "period", None) or getattr(given, "sampled", False) else None
        if own is not None and (step / own).denominator != 1 and (own / step).denominator != 1:
            return False
    return True


def _level_choices(level: Composite, outermost: bool) -> Iterator[tuple[str, str]]:
    models = level.scenario.models
    now: Any = level.orchestrator
    now = now.inner if isinstance(now, Iterate) else now
    if not isinstance(now, (Jacobi, GaussSeidel)):
        return
    if not outermost:
        yield "step", ", ".join(f"{level.step * Fraction(part)} s" for part in PARTS)
    if len(models) > 1:
        yield "algorithm", ", ".join(BOTH)
        if factorial(len(models)) <= ORDERS:
            yield "order", "all"
    if all(model.abilities.reevaluates for model in models.values()):
        yield "outputs", "stale, consistent"
    if now.inputs == "delayed":
        yield "inputs", "clean, delayed"
    sloped = all(model.abilities.slopes for model in models.values())
    if not any(each.extrapolation for each in level.scenario.connections):
        yield "extrapolation", ", ".join((*SMOOTH, *SLOPED) if sloped else SMOOTH)
