"""Whether an FMU goes back to a saved state, and forgets those that are not needed any more.

In:  a bench
Out: a verdict and a sentence from each check
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from hocket.model import Array
from hocket.simulators.fmu.functions import STATE
from hocket.simulators.fmu.probe.bench import ROUNDING, ProbeBench
from hocket.simulators.fmu.probe.findings import Found, judge_claim
from hocket.simulators.fmu.probe.words import count

_KEPT = 100
"""Cycles after which what is kept for good has been allocated."""


def rewind_refusal(bench: ProbeBench) -> Found | None:
    """Return what is to be said where there is nothing to rewind."""
    if not bench.used.can_save:
        return "not declared", "it does not declare that its state can be saved"
    if not bench.rewinds:
        return "untried", "it does not rewind"
    return bench.refute_claim("its state can be saved", *STATE[bench.major])


def check_rewind(bench: ProbeBench) -> Found:
    """Make steps again after a restore: twice, from memory used before, and from the start."""
    if refused := rewind_refusal(bench):
        return refused
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
    words = f"the same up to {worst[0]:.2g}" if worst[0] else "the same to the bit"
    made = f"{count(restores, 'restore')}, {count(len(first), 'step')} made again after each"
    return "true", f"{made}: {words}"


def check_memory(bench: ProbeBench) -> Found:
    """Save, step and restore, up to a thousand times; see whether memory grows."""
    if refused := rewind_refusal(bench):
        return refused if refused[0] == "untried" else ("not declared", "nothing to save")
    if _resident() is None:
        return "untried", "this system does not tell how much memory is used"
    with bench.simulator() as simulator:
        u, begun, before, cycles = bench.u(0), time.monotonic(), 0, 0
        for cycles in range(1, 1001):
            state = bench.save(simulator)
            bench.step(simulator, bench.t0, bench.h, u)
            bench.restore(simulator, state)
            if cycles == _KEPT:
                before = _resident() or 0
            if time.monotonic() - begun > bench.limit / 4:
                break
        grown = (_resident() or 0) - before
    if cycles <= _KEPT:
        return "untried", f"only {count(cycles, 'cycle')} of saving, a step and restoring could be made"
    what = f"resident memory grew by {max(grown, 0) / 1024:,.0f} kB"
    leaks = grown > 256 * (cycles - _KEPT)
    return judge_claim(not leaks, f"{cycles:,} times saved, stepped and restored: {what}")


def _resident() -> int | None:
    """Return how many bytes of memory this process has."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
