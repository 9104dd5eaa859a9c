"""The predicted error of a run, port by port, and its order: expected from the parts, observed in the whole.

In:  a Reading or a Composite of linear models, and when the run stops
Out: a PredictedError: local and global error per port, and an ErrorOrder
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from hocket.analysis.exact_solution import ExactSolution, exact_places
from hocket.analysis.forced_response import run_solution
from hocket.analysis.linear_models import played_sources
from hocket.analysis.linear_reading import Reading, read_linear
from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.analysis.posedness import hidden_ports
from hocket.analysis.run_observation import (
    ObservedRun,
    Seen,
    last_row_times,
    observe_run,
    outputs_by_leaf,
)
from hocket.coupling.wiring import OWN
from hocket.errors import HocketError, ScenarioError
from hocket.files.error_estimate import AGREED, format_time
from hocket.files.plotting import BLUE, RED, Series, draw_series, new_figure, set_axes_title
from hocket.model.clock import Duration, format_duration, seconds
from hocket.model.composite import Composite
from hocket.model.extrapolators import Hold
from hocket.model.protocols import Array
from hocket.model.units import Share
from hocket.planning.notes import start_notes
from hocket.planning.parameters import scale_steps
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree, window_obstacles

NOISE = 1e-11
"""Relative errors below this are rounding and show no order."""


@dataclass(frozen=True)
class ErrorOrder:
    """The power of the steps with which the error of a run falls, at fixed ratios of all steps."""

    predicted: int | None
    """min(p, q + 1) over all leaves and levels; None: no step adds an error."""
    why: str
    """Which part has the lowest order."""
    measured: float | None
    """The observed order, from the errors with all steps halved and quartered; None: not observed."""
    words: str


def predicted_order(composite: Composite) -> tuple[int | None, str]:
    """Return min(p, q + 1) over all leaves and levels, and where it is taken.

    p is the order of a solver, q the degree of an extrapolation (Hafner 2021, theorem 6.9). A cold start
    caps it (theory, section 4).
    """
    design = plan_tree(composite)
    wiring = design.leaves.wiring
    found = [
        (model.capabilities.order, f"`{name}` is integrated with order {model.capabilities.order}")
        for name, model in zip(wiring.names, wiring.models, strict=True)
        if model.capabilities.order is not None
    ]
    for level in design.levels():
        found += [] if level.composite.sampled else _extrapolation_orders(level)
    found += _cold_start_orders(design)
    return min(found, key=lambda each: each[0], default=(None, "every step is exact"))


def _extrapolation_orders(level: PlanTree) -> Iterator[tuple[int, str]]:
    for child, drives in enumerate(level.wiring.drives):
        model, unwritten = level.wiring.models[child], hidden_ports(level, child)
        for port, drive in zip(model.inputs, drives, strict=True):
            if drive is None or drive.extrapolation is None or port.name in unwritten:
                continue
            if drive.child == OWN and not isinstance(drive.extrapolation, Hold):
                continue
            ends = (child, drive.child)
            if any(end in level.inner and level.inner[end].composite.sampled for end in ends):
                continue  # what is sampled sees and shows what it shall: steps in time
            honoured = model.capabilities.input_degree
            degree = drive.extrapolation.degree
            degree = degree if honoured is None else min(degree, honoured)
            yield degree + 1, f"`{level.name(child)}.{port.name}` is extrapolated with degree {degree}"


def _cold_start_orders(design: PlanTree) -> Iterator[tuple[int, str]]:
    """Yield what a start without a past costs."""
    note = "; ".join(start_notes(design, design.leaves))
    for level in design.levels() if note else ():
        if level.composite.start == "cold" or window_obstacles(design.leaves):
            for each in level.wiring.extrapolators:
                cap = 3 if each.slopes else 2
                if each.degree + 1 > cap:
                    yield cap, note


def determine_order(composite: Composite, errors: Sequence[float]) -> ErrorOrder:
    """Return the expected order, and the one observed in errors at full, half and quarter steps."""
    predicted, why = predicted_order(composite)
    unseen = None, "order not observed: no prediction with shorter steps"
    return ErrorOrder(predicted, why, *(compare_orders(errors, predicted) if errors else unseen))


def compare_orders(errors: Sequence[float], predicted: int | None) -> tuple[float | None, str]:
    """Return the order observed in three errors, and what to say of it."""
    full, half, quarter = errors
    if not all(map(math.isfinite, errors)):
        return None, "no observed order: the errors overflow"
    if quarter <= NOISE:
        return None, "no observed order: the errors are at rounding level"
    before, measured = math.log2(full / half), math.log2(half / quarter)
    if predicted is None:
        return measured, f"observed order {measured:.2f}, though no error is expected"
    if abs(measured - predicted) <= AGREED:
        return measured, f"observed order {measured:.2f} matches the expected order {predicted}"
    says = f"observed order {measured:.2f}, expected order {predicted}: "
    if abs(before - measured) > AGREED:
        why = f"one halving earlier it is {before:.2f}; the steps are too long for the asymptotic order"
        return measured, f"{says}{why}"
    if measured > predicted:
        return measured, f"{says}the error term of the lowest order is too small to be seen here"
    return measured, f"{says}the coupling, or a jump of a source, reduces the order: shorter steps gain less"


ROUNDING = 1e-12
"""Of the largest part of a sum: what is smaller may be rounding."""
LARGEST = 2**23
"""How many numbers of z are held at a time."""
WORTHLESS = 1e3
"""A relative error above this."""
LARGE = 0.1
"""A relative error from which on it is a caution."""


@dataclass(frozen=True)
class PortError:
    """One output: how far from the exact solution it will be."""

    port: str
    unit: str
    local: float
    """The largest error that one step makes when all of its past is exact."""
    largest: float
    """The largest error of the run, at the time `at` in seconds from the start."""
    at: float
    scale: float
    """The largest exact value."""
    series: tuple[Array, Array, Array] | None = None
    """Times, predicted values and exact values, if trajectories were asked for."""
    made_of: float = 0.0
    """The largest sum of the sizes of what the exact value is a sum of."""

    @property
    def stays_zero(self) -> bool:
        """Whether the exact value is zero, or the rounding of what it is a sum of."""
        return self.scale <= ROUNDING * self.made_of

    @property
    def rounding(self) -> bool:
        """Whether the error is none but rounding."""
        return self.largest <= ROUNDING * max(self.made_of, self.scale)

    @property
    def relative(self) -> float:
        """The largest error over the largest value; of an output that should stay zero, over its parts."""
        if self.rounding:
            return self.largest / self.scale if self.scale > 0.0 and not self.stays_zero else 0.0
        scale = self.made_of if self.stays_zero else self.scale
        return self.largest / scale if scale > 0.0 and math.isfinite(self.largest) else math.inf


@dataclass(frozen=True)
class PredictedError(Measure):
    """The predicted error of a run, port by port, the worst in relation to its peak first."""

    ports: tuple[PortError, ...]
    stop: float
    step: float
    """Seconds of the step that `local` is about: the outermost, or the least multiple with longer ones."""
    order: ErrorOrder
    decides: bool = False
    """The exact system grows: whether the run is of use is decided by its error."""
    limit: float = math.inf
    """Of the peak: an error above this is unsound."""

    title = "predicted errors"

    @property
    def above_limit(self) -> bool:
        """Whether the largest error is above the limit."""
        return self.worst.relative > self.limit

    @property
    def outcome(self) -> Outcome:
        """Bad if the system grows and the run does not follow it, or the error is above the limit."""
        if (self.worthless and self.decides) or self.above_limit:
            return Outcome.BAD
        return Outcome.GOOD if self.worst.relative <= LARGE else Outcome.CAUTION

    def verdict(self) -> list[str]:
        """Return the worst port, and the order."""
        worst, head = self.worst, "predicted global error"
        if not any(each.scale or each.largest for each in self.ports):
            return [f"{head}: none, nothing moves"]
        if all(each.rounding for each in self.ports):
            return [f"{head}: rounding only"]
        if self.worthless:
            return [f"{head}: grows without bound; the result of the run is meaningless"]
        unit = f" {worst.unit}" if worst.unit else ""
        peak = f"{worst.largest:.2g}{unit} in `{worst.port}`"
        relative = f"{Share(worst.relative):.2g} of peak, {peak}"
        peak = f"{peak}, whose exact value is zero" if worst.stays_zero else relative
        order = f"; {self.order.words}" if self.order.measured is not None else ""
        return [f"{head}: {peak}, at {format_time(worst.at)} s{order}"]

    @property
    def worst(self) -> PortError:
        """The port with the largest error in relation to its values."""
        return self.ports[0]

    @property
    def worthless(self) -> bool:
        """Whether the run will have nothing to do with what it should be."""
        return not math.isfinite(self.worst.largest) or self.worst.relative > WORTHLESS

    def __getitem__(self, port: str) -> PortError:
        for each in self.ports:
            if each.port == port:
                return each
        raise ScenarioError(f"no error of `{port}` was predicted", hint=f"`{self.ports[0].port}`, for one")

    def rows(self) -> Rows:
        return [
            {
                "port": each.port,
                "unit": each.unit,
                "local error": each.local,
                "global error": each.largest,
                "at [s]": each.at,
                "of peak": Share(each.relative),
            }
            for each in self.ports
        ]

    def notes(self) -> list[str]:
        return [self.order.words]

    def facts(self) -> dict[str, Any]:
        order = {"observed order": self.order.measured, "expected order": self.order.predicted}
        return {self.title: self.rows()} | order

    def draw(self) -> Any:
        """Draw the errors over time if trajectories were asked for, else what one step adds and the run."""
        kept = [(each, each.series) for each in self.ports if each.series is not None]
        if kept:
            lines = [Series(t, values - truth, each.unit, each.port) for each, (t, values, truth) in kept]
            return draw_series(lines, "predicted error")
        shown = self.ports[:30][::-1]
        (figure, (axes,)), at = new_figure(9, 1.4 + 0.28 * len(shown)), np.arange(len(shown))
        for errors, mark, colour, label in (
            ([each.largest for each in shown], "o", RED, f"global, over {self.stop:g} s"),
            ([each.local for each in shown], "d", BLUE, f"local, of one step, {self.step:g} s"),
        ):
            axes.plot(errors, at, mark, color=colour, label=label)
        axes.set_xscale("log")
        axes.set_yticks(at, [f"{each.port} [{each.unit or '-'}]" for each in shown], fontsize="small")
        axes.set_xlabel("largest error")
        set_axes_title(axes, "predicted error, the worst port first")
        axes.grid(color="#e4e4e4", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.03))
        return figure


def predicted_error(
    what: Reading | Composite,
    stop: Duration,
    micro: bool = False,
    trajectories: bool = False,
    measure: bool = True,
    local: bool = True,
) -> PredictedError:
    """Return how wrong a run to `stop` (seconds from its start) will be, without running it.

    Errors are taken where a run keeps rows: at the steps of each level, or with `micro` at the micro steps of
    each simulator. `measure` also measures the order, from two more readings with shorter steps, and `local`
    asks for the error of one step, else it is nan. The error is that of the linear models: what stands for
    others adds how badly it fits. Sources that are played (`with_sources`) count as they are.
    """
    reading = what if isinstance(what, Reading) else read_linear(what)
    span, played = seconds(stop), played_sources(reading.composite)
    begin = played[0][1].began if played else Fraction(0)
    if span < reading.composite.step:
        hint = f"at least one step, {format_duration(reading.composite.step)}"
        raise ScenarioError(f"there is no step before the stop at {format_duration(span)}", "stop", hint=hint)
    with np.errstate(over="ignore", invalid="ignore"):  # what is unstable may grow beyond all numbers
        solution = run_solution(reading.composite, span)
        if not solution.ports:
            raise ScenarioError("there are no outputs whose error could be predicted")
        request = _Request(solution, span, begin, micro)
        found = _global_errors(reading, request, trajectories, local)
        errors = [largest_relative_error(found)] if measure else []
        try:
            for part in (2, 4) if measure else ():
                shorter = read_linear(scale_steps(reading.composite, Fraction(1, part), own=True))
                errors.append(largest_relative_error(_global_errors(shorter, request)))
        except HocketError:
            errors = []  # some stand-ins are good for one step only
    order = determine_order(reading.composite, errors)
    return PredictedError(tuple(found), float(span), float(reading.period), order)


def largest_relative_error(found: Sequence[PortError]) -> float:
    """Return the largest error in relation to the values; outputs that should stay zero have none."""
    return max((each.relative for each in found if not each.stays_zero), default=0.0)


class _Request(NamedTuple):
    """Which run is predicted: its exact solution, its length and start, and whether micro steps count."""

    solution: ExactSolution
    span: Fraction
    start: Fraction
    micro: bool


def _global_errors(
    reading: Reading, request: _Request, keep: bool = False, local: bool = False
) -> list[PortError]:
    """Return the errors of the run, the worst first; `keep` keeps trajectories, `local` those of one step."""
    solution, span, start, micro = request
    seen = observe_run(reading, micro, start, span)
    alone = dict.fromkeys(solution.ports, math.nan)
    if local:
        alone = _local_errors(reading, seen, solution, span)
    models = plan_tree(reading.composite).leaves.wiring.models
    units = [port.unit for model in models for port in model.outputs]
    tallies = {port: _ErrorTally() for port in solution.ports}
    weights = dict(zip(solution.ports, solution.weights(), strict=True))
    before, truth = np.zeros(0), np.zeros((0, 0))
    for ports, t, values in _trajectory_pieces(reading, seen, span):
        if not np.array_equal(t, before):
            before, truth = t, solution.trajectory(t)
        for column, port in enumerate(ports):
            tallies[port].add(t, values[:, column], truth, weights[port], keep)
    found = [
        PortError(port, unit, alone[port], *tally.facts())
        for (port, tally), unit in zip(tallies.items(), units, strict=True)
    ]
    return sorted(found, key=lambda each: -each.relative)


class _ErrorTally:
    """The largest error so far of one port."""

    def __init__(self) -> None:
        self.largest, self.at, self.scale, self.made_of = -1.0, 0.0, 0.0, 0.0
        self.kept: list[tuple[Array, Array, Array]] = []

    def add(self, t: Array, values: Array, states: Array, weights: Array, keep: bool) -> None:
        """Compare values with the exact ones, which are sums of the exact states."""
        if not len(t):
            return
        truth = states @ weights
        self.made_of = max(self.made_of, float((np.abs(states) @ np.abs(weights)).max()))
        wrong = np.abs(values - truth)
        wrong[np.isnan(wrong)] = np.inf
        worst = int(np.argmax(wrong))
        if wrong[worst] > self.largest:
            self.largest, self.at = float(wrong[worst]), float(t[worst])
        self.scale = max(self.scale, float(np.abs(truth).max()))
        if keep:
            self.kept.append((t, values, truth))

    def facts(self) -> tuple[float, float, float, tuple[Array, Array, Array] | None, float]:
        """Return the last fields of a PortError."""
        series = None
        if self.kept:
            t, values, truth = (np.concatenate(parts) for parts in zip(*self.kept, strict=True))
            series = t, values, truth
        return self.largest, round(self.at, 12), self.scale, series, self.made_of


def _trajectory_pieces(
    reading: Reading, seen: ObservedRun, span: Fraction
) -> Iterator[tuple[list[str], Array, Array]]:
    """Yield outputs over time, leaf by leaf: the start phase as it is, then by powers of Phi."""
    ports, ends = dict(outputs_by_leaf(reading)), last_row_times(reading, span)
    yield from _kept_pieces(ports, ends, seen.early)
    z, first = seen.z, seen.since
    last = first + max(0, math.ceil((span - first * reading.period) / reading.period))
    width = max(1, LARGEST // seen.whole.shape[1])
    try:
        while first < last:
            jump = None if seen.stretches is None else seen.stretches.quiet_until(first)
            if seen.stretches is not None and (z is None or jump == first):
                first, z = seen.stretches.run(first, z, last)
                yield from _kept_pieces(ports, ends, seen.stretches.take_rows())
                continue
            assert z is not None
            count = min(width, (last if jump is None else min(jump, last)) - first)
            steps, z = seen.orbit(first, z, count, float(span) * (1.0 + 1e-12))
            begins = float(reading.period) * np.arange(first, first + count)
            first += count
            for name in ports:
                offsets, rows = seen.inside[name]
                t = (begins[:, None] + offsets).ravel()
                values = (steps @ rows.reshape(-1, rows.shape[2]).T).reshape(-1, len(ports[name]))
                kept = t <= ends[name]
                yield ports[name], t[kept], values[kept]
    finally:
        if seen.stretches is not None:
            seen.stretches.close()


def _kept_pieces(
    ports: dict[str, list[str]], ends: dict[str, float], seen: Seen
) -> Iterator[tuple[list[str], Array, Array]]:
    """Yield what was seen of a run, leaf by leaf, up to its end."""
    for name in ports:
        t = np.array([at for at in seen[name] if at <= ends[name]])
        yield ports[name], t, np.array(list(seen[name].values()))[: len(t)]


def _local_errors(
    reading: Reading, seen: ObservedRun, solution: ExactSolution, span: Fraction
) -> dict[str, float]:
    """Return the largest error of one step from an exact past, per output, along the exact solution.

    The values at the beginning of the step are exact (Hafner 2021, equation 6.18), and so is the past.
    """
    past = exact_places(solution, reading.root)
    period = float(reading.period)
    first = max(1, math.ceil(float(past.ago.max(initial=0.0)) / period - 1e-9))
    last = max(first + 1, int(span / reading.period))
    step = seen.whole[[reading.newest[port] for port in solution.ports]]
    largest = np.zeros(len(step))
    width = max(1, LARGEST // max(1, len(reading.cells)))
    for start in range(first, last, width):
        reached = min(width, last - start)
        times = np.array([period * number for number in range(start, start + reached)])
        rows = [past.states_at(solution, times), np.ones((reached, 1))]
        if seen.tape.asked:
            rows.append(seen.tape.samples(start, reached, float(span) * (1.0 + 1e-12)))
        wrong = np.abs(np.hstack(rows) @ step.T - solution.outputs(times + period))
        if seen.stretches is not None:  # where a source jumps, steps are others than this one
            quiet = [seen.stretches.is_quiet(start + number, first) for number in range(reached)]
            wrong = wrong[np.array(quiet)]
        largest = np.maximum(largest, np.where(np.isnan(wrong), np.inf, wrong).max(axis=0, initial=0.0))
    return dict(zip(solution.ports, largest.tolist(), strict=True))
