"""The clock of a run: every step is a whole number of its ticks, and events find a place between them.

In:  the tree of plans, and further durations
Out: a Clock
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from hocket.model.clock import Clock, common_tick
from hocket.plan import Adapt, Body, Instant, Step, adapts, step_fractions, walk
from hocket.plan.instructions import inner_bodies
from hocket.planning.tree import PlanTree

PARTS = (2**12 * 3**3 * 5**6 * 7, 2**12 * 5**6, 2**6 * 5**3, 1)
"""A macro step has a multiple of so many places for events: most times that people write are among them."""
PLACES = 2**40
"""Places for events in a macro step of the outermost level, about."""
COARSE = (PARTS[0], 2**6 * 3**3 * 5**4 * 7, 2**4 * 3**2 * 5**2 * 7, 2**3 * 3 * 5)
"""The same where floats, in a long run or with many places, cannot tell places apart."""
APART = 16
"""Floats can tell places apart that are so many roundings away from each other."""
LONGEST = 2**61
"""Ticks in a run: compiled code counts them in 64 bits."""


def clock_of(
    root: PlanTree, *more: Fraction, start: Fraction = Fraction(0), stop: Fraction | None = None
) -> Clock:
    """Return a clock in whose ticks every step of the tree, and `more` durations, are whole.

    Where something happens at instants its ticks are so fine that events find a place.
    """
    clock = Clock(common_tick([*_step_lengths(root, root.composite.step), *more]), start)
    return _event_clock(root, clock, stop)


def _step_lengths(level: PlanTree, asked: Fraction) -> Iterator[Fraction]:
    """Yield the steps of a level and of those inside; parts of what is asked for under step control."""
    steps = {level.composite.step, asked} if adapts(level.plan.step) else {level.composite.step}
    own = [step * part for step in steps for part in (Fraction(1), *step_fractions(level.plan.step))]
    yield from own
    for inner in level.inner.values():
        yield from _step_lengths(inner, common_tick(own))


def _event_clock(root: PlanTree, clock: Clock, stop: Fraction | None) -> Clock:
    """Return the clock with ticks so fine that events find a place; unchanged where there are none.

    Every step is still a whole number of ticks, and so is every part that a plan makes of a step which ends
    at an event.
    """
    if not any(isinstance(each, Instant) for level in root.levels() for _, each in walk(level.plan.step)):
        return clock
    quantum = _parts(root)
    steps = 1 if stop is None else max(1, math.ceil((stop - clock.start) / root.composite.step))
    whole = root.composite.step / clock.tick * quantum
    for parts in PARTS:
        places = math.lcm(int(whole), parts * quantum)
        if places * steps <= LONGEST:
            break
    doublings = min(_power_of_two(PLACES * quantum // places), _power_of_two(LONGEST // (places * steps)))
    ticks = places * 2**doublings
    end = max(abs(clock.start), abs(stop or clock.start), root.composite.step)
    own = int(root.composite.step / clock.tick)
    coarse = _coarse_places(ticks // quantum, own, root.composite.step, end)
    return Clock(root.composite.step / ticks, clock.start, quantum, quantum * coarse if coarse > 1 else 0)


def _coarse_places(places: int, own: int, step: Fraction, end: Fraction) -> int:
    """Return how many places in a row floats cannot tell apart, up to the end of a run.

    What is left are `own` parts of a step where that is possible, and times that people write.
    """
    most = step / (APART * Fraction(math.ulp(float(end))))
    if places <= most:
        return 1
    odd = own >> _trailing_zeros(own)
    for parts in (*(math.lcm(odd, each) for each in COARSE), *COARSE):
        if parts <= most and places % parts == 0:
            finer = min(_power_of_two(int(most / parts)), _trailing_zeros(places // parts))
            return int(places // (parts * 2**finer))
    return 1


def _trailing_zeros(number: int) -> int:
    return (number & -number).bit_length() - 1


def _power_of_two(ratio: int) -> int:
    """Return the largest power of two that is not above a number; 0 for one below 1."""
    return max(0, ratio.bit_length() - 1)


def _parts(level: PlanTree) -> int:
    """Return into how many equal parts a step of any length must fall, at this level and inside."""
    own = math.lcm(*(part.denominator for part in _fractions(level.plan.step)), 1)
    return own * math.lcm(*(_parts(inner) for inner in level.inner.values()), 1)


def _fractions(body: Body) -> Iterator[Fraction]:
    for instruction in body:
        if isinstance(instruction, Step):
            yield instruction.fraction
        halves = isinstance(instruction, Adapt) and instruction.control.estimate == "richardson"
        for inner, _ in inner_bodies(instruction, ()):
            for fraction in _fractions(inner):
                yield fraction / 2 if halves else fraction
