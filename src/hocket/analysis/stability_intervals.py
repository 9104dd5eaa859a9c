"""For which values of a parameter, or macro steps, is the coupling stable? All intervals, ends refined.

In:  a function from a value to a Composite, or a Reading; and a search range
Out: Intervals: where rho < 1, islands included, and rho at the points that were computed; a LargestStep

Other steps need no other tree: steps are counted in ticks, and a plan steps by parts of its level's step, so
that with ticks of another length the very plan that was read is the plan of the other steps. What a simulator
integrates with keeps its own step, or the next shorter one that divides the level's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hocket.analysis.announced_events import ANNOUNCING_MODELS
from hocket.analysis.exact_solution import exact_solution
from hocket.analysis.linear_models import IdentifiedModel, merge_micro_steps
from hocket.analysis.linear_reading import Reading, advance_ticks, live_columns, read_linear, read_period
from hocket.analysis.measure import Measure, Rows
from hocket.analysis.stability import EDGE, MARGIN, spectral_radius, spectrum
from hocket.engine.initialise import levels_of
from hocket.engine.reference.level import Level
from hocket.errors import ConvergenceError, ScenarioError, SimulatorError
from hocket.files.plotting import BLUE, GREY, RED, new_figure, set_axes_title
from hocket.model.clock import Clock, Duration, format_duration, seconds
from hocket.model.composite import Composite
from hocket.model.protocols import Array
from hocket.planning.parameters import FINE
from hocket.planning.planner import plan_tree

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
    progress: CountCallback | None = None,
) -> Intervals:
    """Return all intervals of a parameter in [low, high] for which the coupling, or its radius, is stable.

    rho is computed on a grid, finer where it is near one or turns; each crossing is then closed in on.
    Islands narrower than 1/4096 of the range may be missed. `progress` is called with how many values are
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
            if progress:
                progress(len(known), max(wanted, len(known)))
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


def find_crossing(f: Callable[[float], float], low: float, high: float, exact: float) -> float:
    """Return where f changes its sign between two ends at which it differs, to within `exact`.

    Regula falsi, the weight of an end that stays twice being halved (the Illinois algorithm; Dowell &
    Jarratt 1971), and a bisection wherever two such steps do not halve the range: jumps are found too.
    """
    at_low, at_high = f(low), f(high)
    stayed, goal, tries = 0, 0.5 * (high - low), 0
    while high - low > exact:
        middle = 0.5 * (low + high)
        if tries < 2 and at_low != at_high:
            margin = min(0.5 * exact, 0.25 * (high - low))  # the last step closes in from the other side
            straight = high - at_high * (high - low) / (at_high - at_low)
            middle = min(max(straight, low + margin), high - margin)
        if not low < middle < high:
            break
        value = f(middle)
        if (value < 0.0) == (at_low < 0.0):
            low, at_low = middle, value
            at_high *= 0.5 if stayed == 1 else 1.0
            stayed = 1
        else:
            high, at_high = middle, value
            at_low *= 0.5 if stayed == -1 else 1.0
            stayed = -1
        tries += 1
        if high - low <= goal:
            goal, tries = 0.5 * (high - low), 0
    return 0.5 * (low + high)


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


def check_scalable(reading: Reading) -> None:
    """Refuse what has a step that cannot change."""
    for level in plan_tree(reading.composite).levels():
        if level.composite.sampled:
            what = f"`{level.path}` is sampled every {format_duration(level.composite.step)}"
            raise ScenarioError(
                f"{what}, and the steps around it must fit its period", expected="steps that scale"
            )
        for name, model in zip(level.wiring.names, level.wiring.models, strict=True):
            path = f"{level.path}.{name}" if level.path else name
            if isinstance(model, ANNOUNCING_MODELS):
                what = f"`{path}` is sampled every {format_duration(model.event_period)}"
                hint = "`--vary step=LOW:HIGH`, which keeps the times of its samples"
                raise ScenarioError(f"{what}, whatever the steps are", "", "times that scale", hint)
            if isinstance(model, IdentifiedModel):
                what = f"`{path}` was identified for steps of {format_duration(model.h)} only"
                hint = "`--vary step=LOW:HIGH`, which identifies it anew for each step"
                raise ScenarioError(what, "", "models that know other steps", hint)


@contextmanager
def scaled_clock(root: Level, factor: Fraction) -> Iterator[None]:
    """Let a live tree run with all steps of levels times a factor; afterwards it stands where it stood."""
    saved, before = root.save(), root.clock
    _set_clock(root, Clock(before.tick * factor, before.start))
    try:
        yield
    finally:
        _set_clock(root, before)
        root.restore(saved)


def _set_clock(root: Level, clock: Clock) -> None:
    for level in levels_of(root):
        level.clock = level.memory.clock = clock


def eigenvalues_at(reading: Reading, factor: Fraction) -> NDArray[np.complex128]:
    """Return the eigenvalues of one period with all steps of levels times a factor."""
    root, ticks = reading.root, reading.root.clock.ticks(reading.period)
    with scaled_clock(root, factor), np.errstate(over="ignore", invalid="ignore"):
        if any(cell.kind == "history" for cell in reading.cells):
            advance_ticks(root, ticks)  # a multistep method begins anew
        Phi, _ = read_period(root, ticks)
    kept = live_columns(Phi)
    if not np.isfinite(Phi).all():
        return np.array([np.inf], dtype=complex)
    return np.asarray(spectrum(Phi[np.ix_(kept, kept)], 1, vectors=False)[0], dtype=complex)


def radius_at_step(reading: Reading, still: int, step: float) -> float:
    """Return the radius at another outermost step, without motions that stand still.

    It is infinite where a loop has no solution, or numbers grow beyond all bounds.
    """
    try:
        factor = Fraction(step).limit_denominator(FINE) / reading.composite.step
        return largest_modulus(eigenvalues_at(reading, factor), still)
    except (ConvergenceError, SimulatorError):
        return math.inf


def count_still_motions(reading: Reading) -> int:
    """Return how many motions of the exact coupled system stand still: their eigenvalues are always one."""
    return int((np.abs(exact_eigenvalues(reading)) <= EDGE).sum())


def exact_eigenvalues(reading: Reading) -> NDArray[np.complex128]:
    """Return the eigenvalues of the exact coupled system, per period."""
    A = exact_solution(reading.composite).A
    return np.asarray(np.linalg.eigvals(A) * float(reading.period) if len(A) else [], dtype=complex)


def largest_modulus(values: NDArray[np.complex128], still: int = 0) -> float:
    """Return the radius without as many eigenvalues of one as motions stand still."""
    if still:
        order = np.argsort(np.abs(values - 1.0))
        values = np.delete(values, [place for place in order[:still] if abs(values[place] - 1.0) <= EDGE])
    return float(np.abs(values).max(initial=0.0))


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
    def largest(self) -> float | None:
        """The largest step of the interval of the present one, else of that from the shortest step on.

        None: there is neither. Where no end was found it is that of the search range: no more is known.
        """
        shortest = next((each for each in self.intervals if each.from_edge), None)
        interval = self.present_interval or shortest
        return None if interval is None else interval.high

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
        return [f"other macro steps: {self.words}"]

    def rows(self) -> Rows:
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
    progress: CountCallback | None = None,
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
    radius = partial(radius_at_step, reading, still)
    found = stable_intervals(radius, *ends, True, "step", progress)
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
