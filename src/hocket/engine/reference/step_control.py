"""Steps as long as their error allows: estimate, accept or roll back, choose the next.

In:  an Adapt, and a level at the start of its step
Out: the end of the step, reached in as many parts as the tolerance asks for

The native engine repeats every operation here in the same order, so that the bits agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hocket.coupling.wiring import controlled_drives
from hocket.engine.algebraic_loops import relative_residual
from hocket.engine.protocol import LiveLevel
from hocket.engine.reference.instants import end_before
from hocket.engine.reference.rollback import normalise_ticks
from hocket.engine.simulator_calls import EarlyError, blame
from hocket.errors import ConvergenceError
from hocket.model.extrapolators import Hold, interpolate_samples, value_at
from hocket.model.plain_state import is_record
from hocket.model.protocols import PreferredStepSimulator, Sample, provides
from hocket.plan import Adapt, Body, Control
from hocket.plan.instructions import SMALL, Next, step_factor
from hocket.plan.verify.body_faults import steps_in, turn_order

TOO_LONG = 1e10
"""The error, in tolerances, of a step that someone inside could not make."""


@is_record
@dataclass(slots=True)
class StepCounts:
    """How many steps an adaptive level made."""

    accepted: int = 0
    rejected: int = 0
    shortest: int = 0
    """In ticks, as the longest."""
    longest: int = 0
    passed: int = 0
    """Smallest steps whose error stayed too large."""
    passed_at: int = 0
    """The tick where the first of them began."""
    worst: float = 0.0
    """The largest error of these, in tolerances."""
    seen: float = 0.0
    """The largest error of a step that was accepted, in tolerances."""

    def add_passed(self, start: int, ratio: float) -> None:
        """Count a step that no step is short enough for."""
        self.passed_at = self.passed_at if self.passed else start
        self.passed += 1
        self.worst = max(self.worst, ratio)

    def add(self, span: int, ratio: float) -> None:
        """Count a step that was accepted; the last one before the end may be cut off, and short."""
        self.accepted += 1
        self.seen = max(self.seen, ratio)
        self.shortest = span if self.shortest == 0 else min(self.shortest, span)
        self.longest = max(self.longest, span)


class MacroStepController:
    """The step to be tried next, and the errors that led to it, in parts of the tolerance."""

    def __init__(self, control: Control, length: int, degree: int):
        self.control = control
        self.quantum = normalise_ticks(length * control.quantum)
        self.largest = normalise_ticks(length * control.largest)
        self.first = normalise_ticks(length * control.first)
        self.begin()
        # the estimate falls with this power of the step (Hafner 2021, theorem 6.9: order q + 1)
        self.power = float(degree + 1 if control.per_unit else degree + 2)

    def begin(self) -> None:
        """Know nothing yet: at the start, and after an event."""
        self.wanted = self.first
        self.before = 1.0
        self.earlier = 1.0
        self.in_a_row = 0

    def state(self) -> tuple[int, float, float, int]:
        """Return what changes."""
        return self.wanted, self.before, self.earlier, self.in_a_row

    def restore(self, state: tuple[int, float, float, int]) -> None:
        """Go back to that."""
        self.wanted, self.before, self.earlier, self.in_a_row = state

    def may_pass(self) -> bool:
        """Return whether the smallest step may stay with its error: at a jump, not where the error stays."""
        passes = self.control.passes
        return self.in_a_row < passes or (passes > 0 and self.control.estimate == "orders")

    def next_span(self, span: int, ratio: float, accepted: bool) -> int:
        """Return the step to try after one of this length whose error was so many tolerances."""
        errors = max(ratio, SMALL), self.before, self.earlier
        factor = step_factor(self.control, errors, self.power, accepted)
        parts = keep_leading_bits(int(factor * float(span) / float(self.quantum)))
        return min(self.largest, max(self.quantum, parts * self.quantum))

    def share_out(self, left: int) -> int:
        """Return the step to try with so much left.

        By energy two equal steps stand for a whole one and a cut one: least is gained where all steps gain
        the same (theory, section 8.1).
        """
        if self.control.estimate == "energy" and self.wanted < left < 2 * self.wanted:
            return -(-left // (2 * self.quantum)) * self.quantum
        return min(self.wanted, left)

    def accept(self, span: int, ratio: float, cut: bool) -> None:
        """Take note of a step; one that was cut off says less about how long they may be."""
        self.in_a_row = self.in_a_row + 1 if ratio > 1.0 and span <= self.quantum else 0
        following = self.next_span(span, ratio, accepted=True)
        self.wanted = max(self.wanted, following) if cut and ratio <= 1.0 else following
        self.earlier, self.before = self.before, max(ratio, SMALL)


def keep_leading_bits(parts: int) -> int:
    """Return a count with four binary digits, not more than it was: few lengths come again and again."""
    lost = max(0, parts.bit_length() - 4)
    return parts >> lost << lost


def run_adapt(level: LiveLevel, instruction: Adapt) -> None:
    """Do a body to the end of the level's step, in steps whose error is within the tolerance."""
    control, end = instruction.control, level.reached
    pace = level.controller_of(instruction)
    if level.memory.u and any(u.ndim > 2 for u in level.memory.u):
        _run_first_span(level, instruction, end)
        return
    while level.now < end:
        start = level.now
        left = end_before(level, start, end) - start
        longest = preferred_span(level, pace, left)
        span = planned = pace.share_out(longest)
        saved = level.save() if control.rejects else None
        level.restorable[:] = [] if saved is None else [saved]
        ratio = _attempt_span(level, instruction.body, pace, start, span, saved)
        while ratio > 1.0 and (control.rejects or control.estimate == "orders"):
            if span <= pace.quantum:
                if not pace.may_pass():
                    raise tolerance_not_met(level, pace, start, ratio)
                level.steps.add_passed(start, ratio)
                break
            if control.rejects:
                level.restore(saved)
                level.steps.rejected += 1
            span = min(left, pace.next_span(span, ratio, accepted=False))
            ratio = _attempt_span(level, instruction.body, pace, start, span, saved)
        if control.estimate == "orders":
            _make_step(level, instruction.body, start, span)
        if level.reached < start + span:
            span = level.reached - start
            pace.begin()
        elif level.instants.taken != level.reached:
            cut = span == planned and (planned < pace.wanted or planned == longest)
            pace.accept(span, ratio, cut)
        level.restorable.clear()
        level.steps.add(span, ratio)
        level.now = start + span
    level.reached, level.span = end, level.length


def preferred_span(level: LiveLevel, pace: MacroStepController, left: int) -> int:
    """Return the longest step that all simulators like from here, in whole quanta; at most what is left."""
    shortest = left
    for child, simulator in enumerate(level.children):
        if provides(simulator, PreferredStepSimulator):
            t = level.clock.time(level.now)
            with blame(level.name(child), "prefers", t):
                likes = float(simulator.prefers(t))
                if not likes > 0.0:
                    raise ValueError(f"a step of {likes!r} s is preferred, expected one above 0")
            parts = likes / level.clock.span(pace.quantum) * (1.0 + 1e-12)
            shortest = min(shortest, max(1, int(min(parts, 2.0**60))) * pace.quantum)
    return shortest


def _attempt_span(
    level: LiveLevel, body: Body, pace: MacroStepController, start: int, span: int, saved: Any
) -> float:
    """Return the error of a step in tolerances; it is made, unless the error is known before.

    One that ends early, at an event, is not judged: what comes after a jump says nothing about the step.
    """
    control, h = pace.control, level.clock.span(span)
    if control.estimate == "orders":
        return _error_ratio(extrapolation_error(level, h), control, h)
    try:
        if control.estimate == "richardson":
            return _error_ratio(_richardson_error(level, body, start, span, saved, pace), control, h)
        before = level.ledger.energy_residuals()
        _make_step(level, body, start, span)
        if level.reached < start + span:
            return 0.0
        energy = control.estimate == "energy"
        return _error_ratio(
            level.ledger.residual_since(before) / h if energy else defect_error(level), control, h
        )
    except (EarlyError, ConvergenceError) as error:
        if saved is None or span <= pace.quantum or (level.ends_outside and isinstance(error, EarlyError)):
            raise
        return TOO_LONG


def _error_ratio(error: float, control: Control, h: float) -> float:
    return (error if control.per_unit else error * h) / control.tolerance


def _make_step(level: LiveLevel, body: Body, start: int, span: int) -> None:
    level.now, level.span, level.reached = start, span, start + span
    level.run(body)


def _richardson_error(
    level: LiveLevel, body: Body, start: int, span: int, saved: Any, pace: MacroStepController
) -> float:
    """Return the difference between a step and two of half its length, which stay; per second."""
    _make_step(level, body, start, span)
    if level.reached < start + span:
        return 0.0
    once = _newest_values(level)
    level.restore(saved)
    half = normalise_ticks(Fraction(span) / 2)
    _make_step(level, body, start, half)
    _make_step(level, body, start + half, span - half)
    twice = _newest_values(level)
    order = pace.power if pace.control.per_unit else pace.power - 1.0
    part = (2.0**order - 1.0) * level.clock.span(span)
    return relative_residual([(a - b) / part for a, b in zip(twice, once, strict=True)], twice)


def _newest_values(level: LiveLevel) -> list[float]:
    return [float(level.memory.rings[child][port][-1][1]) for child, port, _ in controlled_outputs(level)]


def controlled_outputs(level: LiveLevel) -> list[tuple[int, int, int]]:
    """Return the outputs that drive others in the level, and with which degree."""
    degrees: dict[tuple[int, int], int] = {}
    for drive in controlled_drives(level.wiring):
        node = (drive.child, drive.port)
        degrees[node] = max(degrees.get(node, 0), (drive.extrapolation or Hold()).degree)
    return [(child, port, degree) for (child, port), degree in sorted(degrees.items())]


def lowest_degree(level: LiveLevel) -> int:
    """Return the lowest degree of an extrapolation between simulators of the level."""
    found = ((drive.extrapolation or Hold()).degree for drive in controlled_drives(level.wiring))
    return min(found, default=0)


def defect_error(level: LiveLevel) -> float:
    """Return how far the newest outputs are from where the samples before them led.

    What has no new sample, as a level with a longer step within it, says nothing about the step.
    """
    differences, values = [], []
    for child, port, degree in controlled_outputs(level):
        *before, (tick, value, _) = level.memory.rings[child][port]
        new = tick > level.now and before
        differences.append(value - _extrapolate_samples(level, before[-degree - 1 :], tick) if new else 0.0)
        values.append(value)
    return relative_residual(differences, values)


def extrapolation_error(level: LiveLevel, h: float) -> float:
    """Return how far two extrapolations, one of a degree more, are apart after h: known before the step."""
    differences, values = [], []
    for child, port, degree in controlled_outputs(level):
        ring = list(level.memory.rings[child][port])
        tick = ring[-1][0]
        led = _extrapolate_samples(level, ring[-degree - 1 :], tick, h)
        differences.append(_extrapolate_samples(level, ring[-degree - 2 :], tick, h) - led)
        values.append(led)
    return relative_residual(differences, values)


def _extrapolate_samples(level: LiveLevel, samples: Sequence[Any], tick: int, s: float = 0.0) -> float:
    """Return the polynomial through samples, s after a tick."""
    nodes = [Sample(level.clock.span(at - tick), value, None) for at, value, _ in samples]
    return float(value_at(interpolate_samples(nodes), s))


def _run_first_span(level: LiveLevel, instruction: Adapt, end: int) -> None:
    """Read an adaptive level at the step that it begins with."""
    span = normalise_ticks(level.length * instruction.control.first)
    while level.now < end:
        start = level.now
        _make_step(level, instruction.body, start, min(span, end - start))
        level.now = level.reached
    level.reached, level.span = end, level.length


def tolerance_not_met(
    level: LiveLevel, pace: MacroStepController, start: int, ratio: float
) -> ConvergenceError:
    """Return the error for a tolerance that the smallest step does not meet."""
    where = f"`{level.path}`, " if level.path else ""
    t, h = level.clock.time(start), level.clock.span(pace.quantum)
    hint = "a larger tolerance, or a smaller `quantum`"
    if not pace.control.passes:
        hint += '; a jump cannot be resolved by any step: on_jump = "pass" goes on behind it'
    if pace.control.estimate == "energy":
        hint += ', nor what `BalanceCorrection` hands on: there `estimate="defect"`'
    return ConvergenceError(
        f"the error is {ratio:.2g} times the tolerance with the smallest step of {h:g} s",
        where=f"{where}step from t = {t!r} s",
        expected=pace.control.tolerance_text,
        hint=hint,
    )


def run_next(level: LiveLevel, instruction: Next) -> None:
    """Let simulators take turns until all stand at the end of the step."""
    steps = [steps_in(body)[0] for body in instruction.bodies]
    start = [level.ticks[level.number[step.sim]] for step in steps]
    parts = [normalise_ticks(level.span * step.fraction) for step in steps]
    for number in turn_order(start, parts, level.now + level.span):
        level.run(instruction.bodies[number])
