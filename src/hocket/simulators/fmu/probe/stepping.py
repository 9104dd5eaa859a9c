"""Whether an FMU takes steps of any length, and where it ends them early.

In:  a bench
Out: a verdict and a sentence from each check
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hocket.errors import SimulatorError
from hocket.model import Array
from hocket.simulators.fmu.probe.bench import ROUNDING, ProbeBench, ShortStep, error_sentence
from hocket.simulators.fmu.probe.findings import INTEGRATED, Found
from hocket.simulators.fmu.probe.rewinding import rewind_refusal
from hocket.simulators.fmu.probe.words import count

_MANY = 200
"""Steps that may end early, before that is taken to go on for ever."""


def check_variable_step(bench: ProbeBench) -> Found:
    """Make steps whole, in halves, and one in unequal parts."""
    if bench.model.exchange:
        return INTEGRATED
    if not bench.used.variable_step:
        return "not declared", f"only steps of {bench.h:.6g} s were made"
    few = min(bench.repeatable_steps, 10)

    def constant_inputs(_: int) -> Array:
        return bench.u(1)

    with bench.simulator() as simulator:
        whole = bench.walk(simulator, few, u=constant_inputs)
    with bench.simulator() as simulator:
        halves = bench.walk(simulator, few, parts=2, u=constant_inputs)
    with bench.simulator() as simulator:
        for begin, part in ((0.0, 0.3), (0.3, 0.7)):
            bench.step(simulator, bench.time(begin), part * bench.h, constant_inputs(0))
    gap, _ = bench.gap(whole, halves[1::2])
    if gap > ROUNDING and bench.gap(whole, halves[:few])[0] <= ROUNDING:
        return "false", f"a step of {bench.h / 2:.6g} s moves it as far as one of {bench.h:.6g} s"
    apart, span = np.abs(whole - halves[1::2]), np.ptp(whole, axis=0)
    share = np.max(np.divide(apart, span, out=np.zeros_like(apart), where=span > 0), initial=0.0)
    told = f"steps of {bench.h:.6g} s and of half that differ by {np.max(apart, initial=0.0):.2g}"
    return "true", f"{told}, {share:.2g} of what the outputs move" if share else told


def check_early_return(bench: ProbeBench) -> Found:
    """Go back wherever a step ends early, and meet it there."""
    if bench.model.exchange:
        return INTEGRATED
    declared, course = bench.used.early_return, bench.course
    if not declared and not course.short:
        return "not declared", f"no step of {len(course.rows)} ended early"
    if rewind_refusal(bench):
        seen = course.ended if course.short else "it may end steps early"
        return "untried" if declared else "not declared", f"{seen}; it cannot go back to meet that time"
    steps = max(bench.repeatable_steps, len(course.rows) + 1 if course.short else 0)
    shorts: list[str] = []
    with bench.simulator(early=declared) as simulator:
        for n in range(steps):
            _meet_early_end(bench, simulator, bench.time(n), bench.time(n + 1), bench.u(n), shorts)
            if len(shorts) > _MANY:
                return "false", f"steps end early again and again: {shorts[-1]}"
    if not shorts:
        return "untried", f"none of {count(steps, 'step')} ended early"
    seen = f"{count(len(shorts), 'time')} in {count(steps, 'step')}, always met by a shorter one"
    return "true" if declared else "not declared", f"{seen}; first {shorts[0]}"


def _meet_early_end(
    bench: ProbeBench, simulator: Any, t: float, end: float, u: Array, shorts: list[str]
) -> None:
    """Go to the end of a step; where one ends early, go back and meet it there."""
    aim = end
    while end - t > 1e-9 * bench.h and len(shorts) <= _MANY:
        state = bench.save(simulator)
        try:
            bench.step(simulator, t, aim - t, u)
        except ShortStep as short:
            shorts.append(error_sentence(short))
            if not t - 1e-9 <= short.reached <= aim:
                raise SimulatorError(f"{error_sentence(short)}, which is outside") from None
            bench.restore(simulator, state)
            aim = short.reached if short.reached > t + 1e-9 * bench.h else t + (aim - t) / 2
        else:
            t, aim = aim, end
