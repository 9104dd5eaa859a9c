"""Steps without a common grid: the simulator that is furthest behind goes next.

In:  a Next: a body for each simulator
Out: all of them at the end of the level's step, in as many turns as their own steps take

Hafner 2021, figure 2.14; Liang et al. 2011.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hocket.engine.attempts import normalise_ticks
from hocket.plan.instructions import Next
from hocket.plan.turns import steps_in, turn_order

if TYPE_CHECKING:
    from hocket.engine.interpreter import Level


def run_next(level: Level, instruction: Next) -> None:
    """Let simulators take turns until all stand at the end of the step."""
    steps = [steps_in(body)[0] for body in instruction.bodies]
    start = [level.ticks[level.number[step.sim]] for step in steps]
    parts = [normalise_ticks(level.span * step.fraction) for step in steps]
    for number in turn_order(start, parts, level.now + level.span):
        level.run(instruction.bodies[number])
