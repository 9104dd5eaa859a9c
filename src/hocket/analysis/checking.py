"""`hocket check`: is it well posed, stable, how wrong will it be, and what to change.

In:  a Composite, and when its run stops
Out: a Check: the verdict in plain words, and the measures behind it
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from hocket.analysis.advice import Change, best, changes
from hocket.analysis.exact import Exact, exact
from hocket.analysis.linear import Reading, read_linear
from hocket.analysis.models import Leaf, linearised
from hocket.analysis.posedness import Posedness, posedness
from hocket.analysis.prediction import PredictedError, predicted_error
from hocket.analysis.stability import EDGE, MARGIN, Stability, grows, stability
from hocket.analysis.zero_stability import ZeroStability, zero_stability
from hocket.engine.composite import Composite
from hocket.errors import ConvergenceError, HocketError

T = TypeVar("T")

LARGE = 300
"""States above which changes are not tried: that takes as many readings."""


@dataclass(frozen=True, eq=False)
class Check:
    """What can be said before the run, from the very plan that will be run."""

    posedness: Posedness
    leaves: tuple[Leaf, ...]
    """How each simulator got its linear model."""
    ill_posed: str = ""
    """Why nothing can start; then there is nothing more."""
    stability: Stability | None = None
    zero: ZeroStability | None = None
    own: float | None = None
    """The factor per step of the exact coupled system: what grows by itself is not the coupling's fault."""
    drifts: bool = False
    """The exact system moves on and on by itself, as a free body does."""
    prediction: PredictedError | None = None
    advice: tuple[Change, ...] = ()
    best: Change | None = None
    unjudged: tuple[str, ...] = ()
    """Measures that could not be had, and why."""

    @property
    def good(self) -> bool:
        """Whether the coupling may be run: well posed, and it adds no growth."""
        if self.ill_posed or self.stability is None or not self.sure:
            return False
        return self.stability.stable or self.own_growth

    @property
    def sure(self) -> bool:
        """Whether the factor is further from one than the linear models may be wrong."""
        fit = max((leaf.fit for leaf in self.leaves if leaf.how != "exact"), default=0.0)
        return self.stability is None or fit <= MARGIN or abs(self.stability.rho - 1.0) > fit

    @property
    def own_growth(self) -> bool:
        """Whether the system itself grows, and at least as fast as the coupling."""
        if self.stability is None or self.own is None:
            return False
        if self.drifts and self.stability.rho <= 1.0 + EDGE:
            return True
        return self.own > 1.0 + MARGIN and math.log(self.stability.rho) <= 1.05 * math.log(self.own) + MARGIN

    def verdict(self) -> list[str]:
        """Return the answer in plain words."""
        if self.ill_posed:
            return [f"ill posed: {self.ill_posed}"]
        refused = [leaf for leaf in self.leaves if leaf.how == "refused"]
        if refused:
            first = f"not judged: `{refused[0].path}` {refused[0].refused}"
            more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
            return [first + more]
        lines = [_stable(self)] if self.stability else []
        if not self.sure:
            worst = max(self.leaves, key=lambda leaf: leaf.fit)
            doubt = f"the linear model of `{worst.path}` is good to {worst.fit:.2g} only"
            lines[0] = f"not sure, for {doubt}: {lines[0]}"
        if self.zero and not self.zero.stable:
            lines.append(self.zero.reason)
        lines += [_error(self.prediction)] if self.prediction else []
        lines += [f"not judged: {reason}" for reason in self.unjudged]
        lines += [_advice(self.best, self.prediction)] if self.best else []
        return lines


def check(composite: Composite, stop: Fraction | None = None, advise: bool = True) -> Check:
    """Return what can be said of a composite before it is run; raises ScenarioError for what is none.

    `stop` is the length of the run in seconds; without it no error of a run is predicted.
    """
    posed = posedness(composite)
    try:
        # what has no inputs may stand still, as long as others are coupled
        made = linearised(composite, still=len(composite.blueprint.leaves.places) > 1)
        if any(leaf.how == "refused" for leaf in made.leaves):
            return Check(posed, made.leaves)
        reading = read_linear(made.composite)
    except ConvergenceError as error:
        return Check(posed, (), ill_posed=str(error).splitlines()[0])
    measured = stability(reading)
    unjudged: list[str] = []

    def tried(what: str, measure: Callable[[], T]) -> T | None:
        try:
            return measure()
        except HocketError as error:
            unjudged.append(f"{what}: {str(error).splitlines()[0]}")
            return None

    zero = tried("zero-stability", lambda: zero_stability(made.composite))
    solution = tried("the exact solution", lambda: exact(made.composite))
    own, drifts = (None, False) if solution is None else _own(solution, reading)
    small = len(reading.core) <= LARGE
    predicted = None
    moving = [leaf.path for leaf in made.leaves if leaf.how == "constant" or _timed(leaf)]
    sampled = [level.path for level in composite.blueprint.levels() if level.composite.sampled]
    if moving and stop is not None:
        unjudged.append(f"the error: `{moving[0]}` depends on time, and the prediction knows no time")
    elif sampled and stop is not None:
        unjudged.append(f"the error: `{sampled[0]}` is sampled, and the exact solution flows")
    elif stop is not None and solution is not None and stop >= composite.step:
        length = stop
        predicted = tried("the error", lambda: predicted_error(reading, length, measure=small))
    advice: list[Change] = []
    follows = Check(posed, made.leaves, "", measured, zero, own, drifts).own_growth
    if advise and small and not follows:
        only = any(leaf.how == "identified" for leaf in made.leaves)
        advice = changes(made.composite, stop if predicted else None, fixed_steps=only)
    chosen = best(advice, measured.rho, predicted.worst.relative if predicted else None)
    return Check(
        posed, made.leaves, "", measured, zero, own, drifts, predicted, tuple(advice), chosen, tuple(unjudged)
    )


def _own(solution: Exact, reading: Reading) -> tuple[float, bool]:
    """Return the factor per step of the exact system, and whether it moves on and on."""
    from scipy.linalg import eigvals, expm

    if not len(solution.A):
        return 0.0, False
    fastest = float(np.real(eigvals(solution.A)).max())
    factor = math.exp(min(700.0, fastest * float(reading.period)))
    near = abs(factor - 1.0) <= EDGE and len(solution.A) <= LARGE
    return factor, near and grows(expm(solution.A * float(reading.period)))


def _stable(found: Check) -> str:
    measured = found.stability
    assert measured is not None
    rho = f"the largest factor per step is {measured.rho:.6g}"
    if measured.stable:
        return f"stable: {rho}" + (", on the edge" if measured.rho > 1.0 - MARGIN else "")
    if found.own_growth and found.drifts:
        return f"the system itself moves on and on, as a free body does, and the coupling follows it: {rho}"
    if found.own_growth:
        return f"the system itself grows, by {found.own:.6g} per step, and the coupling follows it: {rho}"
    mode = measured.modes[0]
    doubling = math.log(2.0) / math.log(mode.radius) * measured.period if mode.radius > 1.0 else math.inf
    who = ", ".join(f"`{part.name}` {part.share:.0%}" for part in mode.parts[:3])
    pace = (
        f"doubled every {doubling:.3g} s, at {mode.frequency:.3g} Hz" if math.isfinite(doubling) else "slowly"
    )
    return f"unstable: {rho}: what is wrong grows, {pace}; in it are {who}"


def _error(found: PredictedError) -> str:
    worst = found.worst
    if not any(each.largest for each in found.ports):
        return "expected error: none" + ("" if any(each.scale for each in found.ports) else ": nothing moves")
    if not math.isfinite(worst.largest) or worst.relative > 1e3:
        return "the error grows without bound: the run will be worthless"
    unit = f" {worst.unit}" if worst.unit else ""
    share = f", {worst.relative:.2g} of its largest value" if math.isfinite(worst.relative) else ""
    order = f"; order {found.order.measured:.2g}" if found.order.measured is not None else ""
    size = f"at most {worst.largest:.2g}{unit} in `{worst.port}`{share}"
    return f"expected error: {size}, at {worst.at:.4g} s{order}"


def _advice(change: Change, predicted: PredictedError | None) -> str:
    now = (
        f" instead of {predicted.worst.relative:.2g}" if predicted and predicted.worst.relative < 1e3 else ""
    )
    what = f"the largest error is {change.error:.2g} of the value{now}" if change.error is not None else ""
    cost = f", for {change.steps:g} times the steps" if change.steps > 1.0 else ""
    return f"what helps most: {change.words}: factor {change.rho:.6g}{', ' if what else ''}{what}{cost}"


def _timed(leaf: Leaf) -> bool:
    return any("depends on time" in note for note in leaf.notes)
