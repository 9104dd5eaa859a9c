"""Who goes when in a plan, and how far: what a drawing must know before it draws.

In:  bodies of a plan
Out: the order of asynchronous turns; for each Feed how far its simulator goes under it
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from hocket.plan import Body, Feed, Read, Step
from hocket.plan.walking import walk


def turn_order(bodies: tuple[Body, ...], most: int) -> tuple[list[Body], int]:
    """Return the bodies of a Next in the order in which they go, at most so many, and how many more go."""
    parts = [sum((i.fraction for _, i in walk(body) if isinstance(i, Step)), Fraction(0)) for body in bodies]
    moving = [number for number, part in enumerate(parts) if part]
    total = sum(int(1 / parts[number]) for number in moving)
    done = dict.fromkeys(moving, Fraction(0))
    order: list[Body] = []
    for _ in range(total if total <= most else most - 1):
        behind = min(moving, key=lambda number: done[number])
        done[behind] += parts[behind]
        order.append(bodies[behind])
    return order, total - len(order)


def feed_fractions(body: Body) -> Iterator[tuple[int, Fraction]]:
    """Yield for each Feed, by its id, the part of the step that is made under it; 0 if it is only read."""
    steps: dict[str, Fraction] = {}
    for _, instruction in reversed(list(walk(body))):
        match instruction:
            case Step(sim, fraction):
                steps[sim] = fraction
            case Read(sim):
                steps[sim] = Fraction(0)
            case Feed(sim):
                yield id(instruction), steps.get(sim, Fraction(0))
