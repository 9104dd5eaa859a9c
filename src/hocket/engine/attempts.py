"""Steps that end early: go back, and step to there first.

In:  a level whose simulators can all rewind, a part of its plan
Out: the end of the step, reached in as many parts as its simulators want
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hocket.engine.calls import EarlyError
from hocket.errors import SimulatorError
from hocket.plan import Body

if TYPE_CHECKING:
    from hocket.engine.interpreter import Level

ATTEMPTS = 50
"""How often one step is made shorter."""


def run_try(level: Level, body: Body) -> None:
    """Do a body to the end of the step, in as many parts as its simulators want.

    With step control only the first part: what is to come has steps of its own.
    """
    end = level.reached
    while True:
        saved = level.save()
        start = level.now
        for _ in range(ATTEMPTS):
            level.span = level.reached - start
            try:
                level.run(body)
                break
            except EarlyError as early:
                level.restore(saved)
                level.reached = _early_tick(level, early, start, level.reached)
        else:
            raise SimulatorError(
                f"the step was made shorter {ATTEMPTS} times, and one still ended early",
                where=f"`{level.path}`, t = {level.clock.time(start)!r} s",
            )
        if level.reached == end or level.adaptive:
            level.span = level.reached - start if level.adaptive else level.length
            return
        level.now, level.reached = level.reached, end


def _early_tick(level: Level, early: EarlyError, start: int, end: int) -> int:
    """Return the tick where a simulator stopped; it need not be a whole number."""
    tick = normalise_ticks((Fraction(early.reached) - level.clock.start) / level.clock.tick)
    if not start < tick < end or level.clock.time(tick) <= level.clock.time(start):
        raise early
    return tick


def normalise_ticks(ticks: Fraction | int) -> int:
    """Return ticks as they are counted: whole, but for a step that ended early."""
    return ticks if isinstance(ticks, int) or ticks.denominator != 1 else ticks.numerator  # type: ignore[return-value]
