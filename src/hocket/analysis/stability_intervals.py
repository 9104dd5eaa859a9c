"""For which values of a parameter, or macro steps, is the coupling stable? All intervals, ends refined.

In:  a function from a value to a Composite, or a Reading; and a search range
Out: Intervals: where rho < 1, islands included, and rho at the points that were computed; a LargestStep
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np

from hocket.analysis.linear_models import merge_micro_steps
from hocket.analysis.linear_reading import Reading, read_linear
from hocket.analysis.measure import Measure, Rows
from hocket.analysis.rescaling import (
    check_scalable,
    count_still_motions,
    exact_eigenvalues,
    radius_at_step,
)
from hocket.analysis.root_search import find_crossing
from hocket.analysis.stability import EDGE, MARGIN, spectral_radius
from hocket.errors import ConvergenceError, ScenarioError
from hocket.files.plotting import BLUE, GREY, RED, new_figure, set_axes_title
from hocket.model.clock import Duration, seconds
from hocket.model.composite import Composite
from hocket.model.protocols import Array

CountCallback: TypeAlias = Callable[[int, int], None]
"""Called with how many values are known, and of how many."""

STABLE = 1.0 - 1e-10
"""The radius below which a coupling counts as stable: on the circle itself rounding would decide."""
CELLS = 64
FINEST = 2.0**-12
"""The shortest part of the range that is searched, unless rho = 1 is known to be in it."""
PRECISION = 1e-8
"""How exactly the end of an interval is found, relative to its value."""
STEEP = 2.0
"""rho is expected to change between two points at most this much faster than beside them."""


@dataclass(frozen=True)
class Interval:
    """Values from low to high for which the coupling is stable."""

    low: float
    high: float
    from_edge: bool
    """It begins where the range begins, and may reach further."""
    to_edge: bool
    """It ends where the range ends, and may reach further."""


@dataclass(frozen=True, eq=False)
class Intervals(Measure):
    """Where the coupling is stable, over a range of one parameter."""

    name: str
    low: float
    high: float
    logarithmic: bool
    intervals: tuple[Interval, ...]
    """The stable ones, in ascending order."""
    values: Array = field(repr=False)
    """Where rho was computed, in ascending order."""
    rho: Array = field(repr=False)
    """The spectral radius there; infinite where the scenario has no solution."""

    title = "stable intervals"
    picture: ClassVar[str | None] = ""

    def __contains__(self, value: float) -> bool:
        """Return whether the coupling is stable for a value."""
        return any(each.low <= value <= each.high for each in self.intervals)

    def verdict(self) -> list[str]:
        """Return the intervals in one line."""
        if not self.intervals:
            return [f"stable for no `{self.name}` from {self.low:.4g} to {self.high:.4g}"]
        spans = "; ".join(f"{each.low:.6g} to {each.high:.6g}" for each in self.intervals)
        return [f"stable for `{self.name}` from {spans}"]

    def rows(self) -> Rows:
        """Return one row per interval."""
        return [
            {"parameter": self.name, "from": each.low, "to": each.high, "ends": _describe_ends(each)}
            for each in self.intervals
        ]

    def facts(self) -> dict[str, Any]:
        """Return the intervals, and the spectral radius wherever it was computed."""
        known = zip(self.values.tolist(), self.rho.tolist(), strict=True)
        points = [{self.name: value, "spectral radius": rho} for value, rho in known]
        return {"names": [self.name], "intervals": self.rows(), "points": points}

    def draw(self) -> Any:
        """Draw rho over the parameter, with the stable intervals shaded."""
        figure, (axes,) = new_figure(7, 4)
        shown = np.isfinite(self.rho)
        low = min(1.0, float(self.rho[shown].min(initial=1.0)))
        high = min(2.0, max(1.0, float(self.rho[shown].max(initial=1.0))))
        margin = 0.08 * max(high - low, 1e-6)
        for each in self.intervals:
            axes.axvspan(each.low, each.high, color=BLUE, alpha=0.15, linewidth=1)
        axes.axhline(1.0, color=GREY, linewidth=0.8, linestyle="--")
        axes.plot(self.values, np.where(shown, self.rho, 1e6), color=BLUE, linewidth=1.3)
        axes.set_xscale("log" if self.logarithmic else "linear")
        axes.set_xlim(self.values[0], self.values[-1])
        axes.set_ylim(low - margin, high + margin)
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.set_xlabel(self.name, parse_math=False)
        axes.set_ylabel("spectral radius")
        axes.grid(alpha=0.3)
        set_axes_title(axes, "stable where shaded" if self.intervals else "stable nowhere")
        return figure


def _describe_ends(interval: Interval) -> str:
    edges = (("from", interval.from_edge), ("to", interval.to_edge))
    return "; ".join(f"{side}: end of the search range" for side, edge in edges if edge) or "both found"


def stable_intervals(
    what: Callable[[float], Composite | float],
    low: float,
    high: float,
    logarithmic: bool = False,
    name: str = "parameter",
    told: CountCallback | None = None,
) -> Intervals:
    """Return all intervals of a parameter in [low, high] for which the coupling, or its radius, is stable.

    rho is computed on a grid, finer where it is near one or turns; each crossing is then closed in on.
    Islands narrower than 1/4096 of the range may be missed. `told` is called with how many values are
    known, and how many there will be at least.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high and (low > 0.0 or not logarithmic)):
        expected = "two numbers, the lower one first" + (", above zero" if logarithmic else "")
        raise ScenarioError(f"a parameter cannot go from {low:g} to {high:g}", name, expected)
    scale = _ParameterScale(low, high, logarithmic)
    known: dict[float, float] = {}
    wanted = CELLS + 1

    def height(s: float) -> float:
        """Return how far above the edge the radius is at a place in the range, from 0 to 1."""
        if s not in known:
            known[s] = radius_at_value(what, scale.value(s)) - STABLE
            if told:
                told(len(known), max(wanted, len(known)))
        return known[s]

    for k in range(CELLS + 1):
        height(k / CELLS)
    while doubtful := _midpoints_to_refine(known):
        wanted = len(known) + len(doubtful)
        for s in doubtful:
            height(s)
    found = tuple(_collect_intervals(scale, dict(known), height))
    order = sorted(known)
    radii = np.array([known[s] + STABLE for s in order])
    return Intervals(name, low, high, logarithmic, found, np.array([scale.value(s) for s in order]), radii)


def radius_at_value(what: Callable[[float], Composite | float], value: float) -> float:
    """Return rho for a value; infinite where a loop of the scenario has no solution."""
    try:
        found = what(value)
        return spectral_radius(found) if isinstance(found, Composite) else found
    except ConvergenceError:
        return math.inf


@dataclass(frozen=True)
class _ParameterScale:
    low: float
    high: float
    logarithmic: bool

    def value(self, s: float) -> float:
        """Return the value at a place in the range, from 0 to 1."""
        if s in (0.0, 1.0):
            return self.high if s else self.low
        if self.logarithmic:
            return float(math.exp(math.log(self.low) + s * math.log(self.high / self.low)))
        return self.low + s * (self.high - self.low)

    def tolerance(self, s: float) -> float:
        """Return how exactly a place must be known."""
        if self.logarithmic:
            return PRECISION / math.log(self.high / self.low)
        return max(PRECISION * abs(self.value(s)) / (self.high - self.low), 1e-15)


def _midpoints_to_refine(known: dict[float, float]) -> list[float]:
    """Return the middles of the parts in which rho might cross one and return."""
    order = sorted(known)
    heights = [min(known[s], 1e3) for s in order]
    slopes = [abs(b - a) / (t - s) for (s, t), (a, b) in zip(pairwise(order), pairwise(heights), strict=True)]
    found = []
    for k, (s, t) in enumerate(pairwise(order)):
        a, b = heights[k], heights[k + 1]
        if t - s <= FINEST or (a < 0.0) != (b < 0.0):
            continue
        steepest = STEEP * max(slopes[max(k - 1, 0) : k + 2])
        if abs(a) + abs(b) < steepest * (t - s):
            found.append((s + t) / 2.0)
    return found


def _collect_intervals(
    scale: _ParameterScale, known: dict[float, float], height: Callable[[float], float]
) -> Iterator[Interval]:
    """Yield the stable intervals: their ends are where the height crosses zero, or ends of the range."""
    start = scale.low if known[0.0] < 0.0 else None
    from_edge = start is not None
    for s, t in pairwise(sorted(known)):
        if (known[s] < 0.0) != (known[t] < 0.0):
            end = scale.value(find_crossing(lambda p: min(height(p), 1.0), s, t, scale.tolerance(t)))
            if start is not None:
                yield Interval(start, end, from_edge, False)
            start, from_edge = (end if start is None else None), False
    if start is not None:
        yield Interval(start, scale.high, from_edge, True)


SHORTER, LONGER = 256, 32
"""How far from the present step the search range reaches."""


@dataclass(frozen=True, eq=False)
class LargestStep(Intervals):
    """For which macro steps of the outermost level, in seconds, a coupling is stable."""

    step: float
    """The present one."""

    title = "stable macro steps"
    picture = None

    @property
    def present_interval(self) -> Interval | None:
        """The interval that the present step is in; None: it is not stable."""
        return next((each for each in self.intervals if each.low <= self.step <= each.high), None)

    @property
    def interval_from_shortest(self) -> Interval | None:
        """The interval that begins with the shortest step of the search range."""
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
        span = f"{self.low:.3g} s to {self.high:.3g} s"
        if not self.intervals:
            return f"stable at no macro step (search range {span})"
        parts = [_describe_step_interval(each) for each in self.intervals]
        said = [parts[0], *(f"also {part}" for part in parts[1:3])]
        if len(parts) > 3:
            said.append(f"and {len(parts) - 3} more")
        return f"stable {'; '.join(said)} (search range {span})"

    def verdict(self) -> list[str]:
        """Return the answer in one line."""
        return [f"other macro steps: {self.words}"]

    def rows(self) -> Rows:
        """Return one row per stable interval."""
        return [
            {
                "from [s]": each.low,
                "to [s]": each.high,
                "ends": _describe_ends(each),
                "present step": "here" if each is self.present_interval else "",
            }
            for each in self.intervals
        ]

    def facts(self) -> dict[str, Any]:
        """Return the largest stable step and all intervals."""
        return {"largest stable step": self.largest, self.title: self.rows()}

    def draw(self) -> Any:
        """Draw the spectral radius over the step, with stable parts shaded and the present step marked."""
        figure = super().draw()
        (axes,) = figure.axes
        axes.axvline(self.step, color=RED, linewidth=1.0)
        axes.annotate(" now", (self.step, 0.03), xycoords=("data", "axes fraction"), color=RED)
        axes.set_xlabel("macro step of the outermost level [s]")
        return figure


def _describe_step_interval(interval: Interval) -> str:
    if interval.from_edge and interval.to_edge:
        return "at every macro step"
    if interval.from_edge:
        return f"up to a macro step of {interval.high:.4g} s"
    if interval.to_edge:
        return f"from {interval.low:.4g} s on"
    return f"from {interval.low:.4g} to {interval.high:.4g} s"


def largest_stable_step(
    what: Reading | Composite,
    low: Duration | None = None,
    high: Duration | None = None,
    told: CountCallback | None = None,
) -> LargestStep:
    """Return all stable steps from low to high; without them from 1/256 of the present step to 32 times it.

    The spectral radius is computed on a logarithmic grid of 64 parts, finer where it is near one or turns,
    and each end is found to a relative 1e-8; islands narrower than 1/4096 of that range may be missed. A
    system that stands still by itself (free bodies, integrators) has eigenvalues of one at every step, which
    do not count. Raises ScenarioError where other steps cannot be judged.
    """
    reading = what if isinstance(what, Reading) else read_linear(merge_micro_steps(what))
    check_scalable(reading)
    step = reading.composite.step
    shortest = step / SHORTER if low is None else seconds(low)
    longest = step * LONGER if high is None else seconds(high)
    still = _count_resting_motions(reading)
    ends = float(shortest), float(longest)
    found = stable_intervals(lambda value: radius_at_step(reading, value, still), *ends, True, "step", told)
    return LargestStep(**vars(found), step=float(step))


def _count_resting_motions(reading: Reading) -> int:
    """Return how many motions of the exact system stand still; what grows or swings by itself is refused."""
    values = exact_eigenvalues(reading)
    if (values.real > EDGE).any():
        raise ScenarioError(
            "the exact system is unstable, at any step", expected="a system that comes to rest"
        )
    if ((values.real > -MARGIN) & (np.abs(values) > EDGE)).any():
        what = "the exact system is undamped: it is on the stability boundary at every step"
        raise ScenarioError(what, expected="a system that comes to rest")
    return count_still_motions(reading)
