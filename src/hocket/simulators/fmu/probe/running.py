"""Whether an FMU runs: it loads, steps, repeats itself, bears a second instance, takes texts and arrays.

In:  a bench
Out: a verdict and a sentence from each check
"""

from __future__ import annotations

import time

import numpy as np

from hocket.simulators.fmu.functions import required_functions
from hocket.simulators.fmu.probe.bench import ROUNDING, ProbeBench
from hocket.simulators.fmu.probe.findings import Found, judge_claim
from hocket.simulators.fmu.probe.words import count, format_seconds, list_names, quote_messages

_ABSENT: Found = "not declared", "it has none"
_ONE = "it declares one instance per process"


def check_loading(bench: ProbeBench) -> Found:
    """Load and initialise it; tell what its binary lacks."""
    clock = time.perf_counter()
    with bench.simulator() as simulator:
        ready = getattr(getattr(simulator, "native", None), "ready", None)
        if ready and not ready():
            raise simulator.fault()
        lasted = time.perf_counter() - clock
        lacking = bench.missing_functions(*required_functions(bench.major, bench.model.exchange))
    kind = "model exchange" if bench.model.exchange else "co-simulation"
    what = f"FMI {bench.major}, {kind}: loaded and initialised in {format_seconds(lasted)}"
    if lacking:
        what += f"; its binary lacks {list_names(lacking)}"
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
