"""How long may the steps be? All stable ones around the present, islands included, with their ends refined.

In:  a Reading, or a Composite of linear models
Out: a LargestStep: intervals of the outermost step, and the radius where it was looked at

All levels keep their ratios to the outermost step; what a simulator integrates with keeps its own step, or
the next shorter one that divides its level's (as in Hafner's flat couplings of three masses).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hocket.analysis.intervals import CountCallback, Interval, intervals_below
from hocket.analysis.leaps import merge_micro_steps
from hocket.analysis.linear import Reading, read_linear
from hocket.analysis.rescaling import (
    check_scalable,
    count_still_motions,
    eigenvalues_at,
    exact_eigenvalues,
    largest_modulus,
)
from hocket.analysis.stability import EDGE, MARGIN
from hocket.analysis.variants import FINE
from hocket.clock import Duration, seconds
from hocket.engine.composite import Composite
from hocket.errors import ConvergenceError, ScenarioError, SimulatorError
from hocket.model import Array

SHORTER, LONGER = 256, 32
"""How far from the present step others are looked at."""


@dataclass(frozen=True, eq=False)
class LargestStep:
    """For which steps of the outermost level, in seconds, a coupling is stable."""

    step: float
    """The present one."""
    low: float
    high: float
    """From the shortest to the longest that was looked at."""
    intervals: tuple[Interval, ...]
    """The stable ones, in ascending order."""
    values: Array = field(repr=False)
    """Where the radius was looked at, in ascending order."""
    rho: Array = field(repr=False)

    @property
    def present_interval(self) -> Interval | None:
        """The interval that the present step is in; None: it is not stable."""
        return next((each for each in self.intervals if each.low <= self.step <= each.high), None)

    @property
    def interval_from_shortest(self) -> Interval | None:
        """The interval that begins with the shortest step that was looked at."""
        return next((each for each in self.intervals if each.from_edge), None)

    @property
    def islands(self) -> tuple[Interval, ...]:
        """Stable intervals with unstable steps below them."""
        return tuple(each for each in self.intervals if not each.from_edge)

    @property
    def largest(self) -> float | None:
        """The largest step of the interval of the present one, else of that from the shortest step on.

        None: there is neither. It is infinite where no end was found.
        """
        interval = self.present_interval or self.interval_from_shortest
        return None if interval is None else math.inf if interval.to_edge else interval.high

    @property
    def words(self) -> str:
        """The answer in one line."""
        if not self.intervals:
            return f"stable at no step from {_format_seconds(self.low)} s to {_format_seconds(self.high)} s"
        parts = [_describe_step_interval(each) for each in self.intervals]
        said = [parts[0], *(f"also {part}" for part in parts[1:3])]
        if len(parts) > 3:
            said.append(f"and {len(parts) - 3} more")
        looked = f" (looked at: {_format_seconds(self.low)} s to {_format_seconds(self.high)} s)"
        return "stable " + "; ".join(said) + looked

    def rows(self) -> list[dict[str, object]]:
        """Return one row per stable interval."""
        return [
            {
                "from [s]": each.low,
                "to [s]": each.high,
                "ends": _describe_step_ends(each),
                "present step": "here" if each is self.present_interval else "",
            }
            for each in self.intervals
        ]

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the radius over the step, with the stable parts shaded and the present step marked."""
        from hocket.analysis.pictures import RED, draw_radius_curve, save_figure

        figure, axes = draw_radius_curve(self.values, self.rho, self.intervals, logarithmic=True)
        axes.axvline(self.step, color=RED, linewidth=1.0)
        axes.annotate(" now", (self.step, 0.03), xycoords=("data", "axes fraction"), color=RED)
        axes.set_xlabel("step of the outermost level [s]")
        return save_figure(figure, path)


def _format_seconds(value: float) -> str:
    return f"{value:.3g}"


def _describe_step_interval(interval: Interval) -> str:
    if interval.from_edge and interval.to_edge:
        return "at every step"
    if interval.from_edge:
        return f"up to a step of {interval.high:.4g} s"
    if interval.to_edge:
        return f"from {interval.low:.4g} s on"
    return f"from {interval.low:.4g} to {interval.high:.4g} s"


def _describe_step_ends(interval: Interval) -> str:
    edges = (("from", interval.from_edge), ("to", interval.to_edge))
    return "; ".join(f"{side}: not looked further" for side, edge in edges if edge) or "both found"


def largest_stable_step(
    what: Reading | Composite,
    low: Duration | None = None,
    high: Duration | None = None,
    told: CountCallback | None = None,
) -> LargestStep:
    """Return all stable steps from low to high; without them from 1/256 of the present step to 32 times it.

    The radius is looked at on a logarithmic grid of 64 parts, finer where it is near one or turns, and each
    end is found to a relative 1e-8; islands narrower than 1/4096 of that range may be missed. A system that
    stands still by itself (free bodies, integrators) has eigenvalues of one at every step, which do not
    count. Raises ScenarioError where other steps cannot be judged.
    """
    reading = what if isinstance(what, Reading) else read_linear(merge_micro_steps(what))
    check_scalable(reading)
    step = reading.composite.step
    shortest = step / SHORTER if low is None else seconds(low)
    longest = step * LONGER if high is None else seconds(high)
    still = _count_resting_motions(reading)

    def rho(value: float) -> float:
        factor = Fraction(value).limit_denominator(FINE) / step
        try:
            return largest_modulus(eigenvalues_at(reading, factor), still)
        except (ConvergenceError, SimulatorError):  # no solution, or numbers beyond all bounds
            return math.inf

    found = intervals_below(rho, float(shortest), float(longest), logarithmic=True, name="step", told=told)
    return LargestStep(float(step), found.low, found.high, found.intervals, found.values, found.rho)


def _count_resting_motions(reading: Reading) -> int:
    """Return how many motions of the exact system stand still; what grows or swings by itself is refused."""
    values = exact_eigenvalues(reading)
    if (values.real > EDGE).any():
        raise ScenarioError("the system itself grows, at any step", expected="a system that comes to rest")
    if ((values.real > -MARGIN) & (np.abs(values) > EDGE)).any():
        what = "the system itself swings without damping: at every step it is on the edge"
        raise ScenarioError(what, expected="a system that comes to rest")
    return count_still_motions(reading)
