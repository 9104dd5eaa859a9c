"""Whether an FMU loads, steps, rolls back to saved states and forgets those that are not needed any more.

In:  a bench
Out: a verdict and a sentence from each check
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from hocket.errors import SimulatorError, count, list_names
from hocket.model.protocols import Array
from hocket.simulators.fmu.binaries import STATE, required_functions
from hocket.simulators.fmu.probe.driver import (
    ROUNDING,
    Found,
    ProbeBench,
    ShortStep,
    describe_freeze,
    error_sentence,
    format_seconds,
    judge_claim,
    quote_messages,
    step_grid,
)

_KEPT = 100
"""Cycles of a block; after the first what is kept for good has been allocated."""
_SOUND, _LEAK = 16.0, 256.0
"""Bytes that a cycle may take, and that show a leak."""
_SHARED = "a second instance in one process ends it"


def rollback_refusal(bench: ProbeBench) -> Found | None:
    """Return what is to be said where it cannot roll back."""
    if not bench.used.can_save:
        return "not declared", "it does not declare that its state can be saved"
    if not bench.rollbacks:
        return "untried", "it does not roll back"
    return bench.refute_claim("its state can be saved", *STATE[bench.major])


def check_rollback(bench: ProbeBench) -> Found:
    """Make steps again after a restore: twice, from memory used before, and from the start."""
    if refused := rollback_refusal(bench):
        return refused
    if disturbed := _compare_saving(bench):
        return "false", disturbed
    third, restores = bench.repeatable_steps // 3, 0
    worst = (0.0, "")

    def repeat_steps(why: str, state: Any, first: int, wanted: Array) -> None:
        nonlocal worst, restores
        bench.restore(simulator, state)
        gap, words = bench.gap(wanted, bench.walk(simulator, len(wanted), first))
        restores += 1
        if gap > worst[0]:
            worst = gap, f"{why}, {words}"

    with bench.simulator() as simulator:
        start = bench.save(simulator)
        first = bench.walk(simulator, max(third, 1))
        if third:
            state = bench.save(simulator)
            then = bench.walk(simulator, third, third)
            later = bench.save(simulator)
            repeat_steps("after a restore", state, third, then)
            bench.walk(simulator, third, 2 * third, u=lambda n: bench.u(n, 2.0))
            repeat_steps("after a second restore of the same state", state, third, then)
            del later
            later = bench.save(simulator)  # into the memory of the one before
            more = bench.walk(simulator, third, 2 * third)
            repeat_steps("after a restore of a state whose memory was used before", later, 2 * third, more)
        repeat_steps("after a restore of the state saved at the start", start, 0, first)
        repeat_steps("after a second restore of the state saved at the start", start, 0, first)
    if worst[0] > ROUNDING:
        return "false", worst[1]
    if bench.used.early_return:
        _meet_events(bench)
    words = f"the same up to {worst[0]:.2g}" if worst[0] else "the same to the bit"
    made = f"{count(restores, 'restore')}, {count(len(first), 'step')} made again after each"
    return "true", f"{made}: {words}"


def _compare_saving(bench: ProbeBench) -> str:
    """Return how the steps of an instance that saves before each differ from those of one that does not."""
    few = min(bench.repeatable_steps, 10)
    with bench.simulator() as simulator:
        simulator.ready()
        states, rows = [bench.save(simulator)], [np.array(simulator.output(bench.t0, bench.u(0)))]
        for n in range(few):
            rows.append(bench.walk(simulator, 1, n)[0])
            states.append(bench.save(simulator))
    with bench.simulator() as simulator:
        simulator.ready()
        first = np.array(simulator.output(bench.t0, bench.u(0)))
        free, saved = np.vstack([first, bench.walk(simulator, few)]), np.array(rows)
    gap, words = bench.gap(free, saved)
    if gap <= ROUNDING or bench.gap(free[1:], bench.course.rows[:few])[0] > ROUNDING:
        return ""  # or no two instances do the same: `repeats` says so
    return (
        describe_freeze(bench.model, free, saved) or f"saving its state changes the steps after it: {words}"
    )


def check_memory(bench: ProbeBench) -> Found:
    """Save, step and restore, up to a thousand times; see whether memory grows."""
    if refused := rollback_refusal(bench):
        return refused if refused[0] == "untried" else ("not declared", "nothing to save")
    if _resident() is None:
        return "untried", "this system does not tell how much memory is used"
    if bench.model.isolate:
        return "untried", _SHARED
    usual, sizes = 0.0, [0]
    with bench.simulator() as simulator:
        u, begun, cycles, wanted = bench.u(0), time.monotonic(), 0, 1000
        while cycles < wanted and time.monotonic() - begun <= bench.limit / 4:
            cycles += 1
            state = bench.save(simulator)
            bench.step(simulator, bench.t0, bench.h, u)
            bench.restore(simulator, state)
            if cycles % _KEPT:
                continue
            sizes = [*(sizes if cycles > _KEPT else ()), _resident() or 0]
            # one block may allocate what is kept for good: it is the usual block that tells
            usual = float(np.median(np.diff(sizes))) / _KEPT if len(sizes) > 1 else 0.0
            if cycles == wanted and _SOUND < usual <= _LEAK:
                wanted = 4000
    if len(sizes) < 4:
        return "untried", f"only {count(cycles, 'cycle')} of saving, a step and restoring could be made"
    grown = f"resident memory grew by {max(sizes[-1] - sizes[0], 0) / 1024:,.0f} kB"
    each = f"{max(usual, 0.0):,.0f} bytes each time (median)"
    what = f"{cycles:,} times saved, stepped and restored: {each}, {grown}"
    if _SOUND < usual <= _LEAK:
        return "untried", f"not judged, it may be noise: {what}"
    return judge_claim(usual <= _SOUND, what)


def _resident() -> int | None:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


_ABSENT: Found = "not declared", "it has none"
_ONE = "it declares one instance per process"


def check_loading(bench: ProbeBench) -> Found:
    """Load and initialise it; tell what its binary lacks."""
    clock = time.perf_counter()
    with bench.simulator() as simulator:
        simulator.ready()
        lasted = time.perf_counter() - clock
        lacking = bench.missing_functions(*required_functions(bench.major, bench.model.exchange))
    kind = "model exchange" if bench.model.exchange else "co-simulation"
    what = f"FMI {bench.major}, {kind}: loaded and initialised in {format_seconds(lasted)}"
    if lacking:
        what += f"; its binary lacks {list_names(lacking, 4)}"
    return "true", what + quote_messages(bench.said)


def check_stepping(bench: ProbeBench) -> Found:
    """Go through the default experiment."""
    course = bench.course
    made = len(course.rows)
    what = f"{count(made, 'step')} of {bench.h:.6g} s from {bench.t0:.6g} s, outputs finite"
    if made:
        usual = float(np.median(course.lasted))
        what += f", {format_seconds(usual)} per step, at most {format_seconds(max(course.lasted))}"
    if course.ended:
        what = f"{course.ended}; before that {what}"
    good = not course.ended or (course.short and made > 0)
    return judge_claim(good, what + quote_messages(bench.said))


def check_repeatability(bench: ProbeBench) -> Found:
    """Make the same steps with another instance."""
    few = bench.repeatable_steps
    with bench.simulator() as simulator:
        gap, words = bench.gap(bench.course.rows[:few], bench.walk(simulator, few))
    what = f"another instance, {count(few, 'step')}: {words}"
    if gap > ROUNDING and bench.used.only_once:
        return "not declared", f"{what}; {_ONE}"
    return judge_claim(gap <= ROUNDING, what)


def check_instances(bench: ProbeBench) -> Found:
    """Make the same steps while another instance makes others."""
    if bench.used.only_once:
        return "not declared", _ONE
    few = bench.repeatable_steps
    with bench.simulator() as one, bench.simulator() as other:
        rows = []
        for n in range(few):
            rows.append(bench.walk(one, 1, n))
            bench.walk(other, 1, n, u=lambda n: bench.u(n, 2.0))
    gap, words = bench.gap(bench.course.rows[:few], np.concatenate(rows))
    return judge_claim(gap <= ROUNDING, f"two at once, {count(few, 'step')} each: {words}")


def check_stop_time(bench: ProbeBench) -> Found:
    """Make the same steps told the stop time, and not told."""
    if not bench.model.stop_time:
        return "not declared", "switched off by `stop_time=False`"
    few, used = min(bench.repeatable_steps, 10), bench.stop
    declared = step_grid(bench.model)[3]
    rows: list[Array] = []
    errors = ["", ""]
    for number, stop in enumerate((declared or bench.time(2 * few), None)):
        bench.stop = stop
        try:
            with bench.simulator() as simulator:
                rows.append(bench.walk(simulator, few))
        except SimulatorError as error:
            errors[number] = error_sentence(error)
        finally:
            bench.stop = used
    told, untold = errors
    if told and untold:
        return "untried", f"told the stop time or not, {untold}"
    made = count(few, "step")
    if told:
        return "false", f"told the stop time, {told}; not told it makes {made}: {_UNTOLD}"
    if untold:
        return "true", f"it must be told the stop time: not told, {untold}"
    gap, words = bench.gap(*rows)
    if gap <= ROUNDING:
        return "true", f"{made}, told the stop time and not told: {words}"
    if np.array_equal(rows[0][1:], rows[0][:-1]):
        return (
            "false",
            f"told the stop time it stands still after its first step, not told {words}: {_UNTOLD}",
        )
    return (
        "untried",
        f"{made} differ, told the stop time and not told; which are right is not judged: {words}",
    )


_UNTOLD = "use `Fmu(..., stop_time=False)` (in a file `stop_time = false`)"


def check_texts(bench: ProbeBench) -> Found:
    """Set strings and binaries to their start values, make a step, and get them."""
    inputs, outputs = bench.model.texts
    if not inputs and not outputs:
        return _ABSENT
    known, put = bench.model.description.by_name, 0
    with bench.simulator() as simulator:
        for number, name in enumerate(inputs):
            start = known[name].start if name in known else None
            if isinstance(start, str | bytes):
                bench.note(f"setting `{name}`")
                simulator.set_text(number, start.encode() if isinstance(start, str) else start)
                put += 1
        bench.walk(simulator, 1)
        bench.note("getting strings")
        got = [simulator.text(number) for number in range(len(outputs))]
    shown = f"; `{outputs[0]}` is {got[0][:40].decode(errors='replace')!r}" if got else ""
    return "true", f"{len(got)} of {len(outputs)} outputs read, {put} of {len(inputs)} inputs set{shown}"


def check_arrays(bench: ProbeBench) -> Found:
    """Make a step, which sets and gets every element."""
    variables = [bench.variable(port) for port in (*bench.model.inputs, *bench.model.outputs)]
    elements = [variable.name for variable in variables if variable.dimensions]
    if not elements:
        return _ABSENT
    with bench.simulator() as simulator:
        bench.walk(simulator, 1)
    return "true", f"{count(len(set(elements)), 'array')} with {count(len(elements), 'element')} set or read"


_MANY = 200
"""Steps that may end early, before that is taken to go on for ever."""


def check_variable_step(bench: ProbeBench) -> Found:
    """Make steps whole, in halves, and one in unequal parts."""
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
    """Roll back wherever a step ends early, and meet it there."""
    declared, course = bench.used.early_return, bench.course
    if not declared and not course.short:
        return "not declared", f"no step of {len(course.rows)} ended early"
    if rollback_refusal(bench):
        seen = course.ended if course.short else "it may end steps early"
        return "untried" if declared else "not declared", f"{seen}; it cannot roll back to meet that time"
    steps, shorts = _meet_events(bench)
    if len(shorts) > _MANY:
        return "false", f"steps end early again and again: {shorts[-1]}"
    if not shorts:
        return "untried", f"none of {count(steps, 'step')} ended early"
    seen = f"{count(len(shorts), 'time')} in {count(steps, 'step')}, always met by a shorter one"
    return "true" if declared else "not declared", f"{seen}; first {shorts[0]}"


def _meet_events(bench: ProbeBench) -> tuple[int, list[str]]:
    """Return how many steps were made, and which ended early; one that must be made again is."""
    course = bench.course
    steps = max(bench.repeatable_steps, len(course.rows) + 1 if course.short else 0)
    shorts: list[str] = []
    with bench.simulator(early=bench.used.early_return) as simulator:
        for n in range(steps):
            _meet_early_end(bench, simulator, bench.time(n), bench.time(n + 1), bench.u(n), shorts)
            if len(shorts) > _MANY:
                break
    return steps, shorts


def _meet_early_end(
    bench: ProbeBench, simulator: Any, t: float, end: float, u: Array, shorts: list[str]
) -> None:
    """Go to the end of a step; where one ends early, roll back and meet it there."""
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
