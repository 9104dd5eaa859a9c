"""Who goes next where there are no common steps: the one that is furthest behind.

In:  the bodies of a Next, where their simulators stand
Out: the order of their turns; what does not belong into one
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from typing import Any, TypeAlias

from hocket.plan.instructions import Body, Feed, Instruction, Read, Step
from hocket.plan.walking import Place, named_simulators, walk
from hocket.plan.words import describe_instruction

TurnFault: TypeAlias = tuple[str, Place, Instruction, str, dict[str, Any]]
"""Kind, place, instruction, simulator, and what else the kind wants to know."""
Time: TypeAlias = Fraction | int


def turn_order(start: Sequence[Time], parts: Sequence[Time], end: Time) -> Iterator[int]:
    """Yield the number of who is furthest behind, the first of equals, until nobody is before the end."""
    behind = [(time, number) for number, time in enumerate(start) if time < end]
    heapify(behind)
    while behind:
        time, number = behind[0]
        yield number
        if time + parts[number] < end:
            heapreplace(behind, (time + parts[number], number))
        else:
            heappop(behind)


def steps_in(body: Body) -> list[Step]:
    """Return the steps of a body."""
    return [instruction for _, instruction in walk(body) if isinstance(instruction, Step)]


def turn_faults(bodies: tuple[Body, ...], place: Place) -> Iterator[TurnFault]:
    """Yield what keeps bodies from being turns: each feeds, steps and reads one simulator."""
    seen: set[str] = set()
    for number, body in enumerate(bodies, 1):
        steps = steps_in(body)
        inside = list(walk(body, (*place, number)))
        if len(steps) != 1 and body:
            yield "no turn", *inside[0], "", {"n": len(steps)}
            continue
        for at, instruction in inside:
            if not isinstance(instruction, (Feed, Step, Read)):
                verb = describe_instruction(instruction).partition(";")[0]
                yield "not in a turn", at, instruction, steps[0].sim, {"verb": verb}
            for sim in named_simulators(instruction):
                if sim != steps[0].sim:
                    yield "other in a turn", at, instruction, sim, {"source": steps[0].sim}
            if isinstance(instruction, Step):
                yield from _uneven_faults(at, instruction)
                if instruction.sim in seen:
                    yield "second turn", at, instruction, instruction.sim, {}
                seen.add(instruction.sim)


def _uneven_faults(at: Place, step: Step) -> Iterator[TurnFault]:
    part = step.fraction
    if isinstance(part, (Fraction, int)) and part > 0 and Fraction(part).numerator != 1:
        near = Fraction(1, max(1, round(1 / part)))
        yield "uneven turns", at, step, step.sim, {"time": part, "near": near}
