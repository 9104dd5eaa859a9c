"""Whether all that repeats has a common tick: steps of levels, periods of sampled models, clocks of FMUs.

In:  the tree of plans
Out: the two intervals that have none in 64 bits, as a fault
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from hocket.errors import Fault, Place
from hocket.model.clock import common_tick, format_duration
from hocket.model.protocols import intervals_of
from hocket.planning.tree import PlanTree
from hocket.simulators.wrappers.emulation import innermost_model

LARGEST = 2**63 - 1
"""Numerator and denominator of a tick have 64 bits."""


def tick_faults(root: PlanTree) -> Iterator[Fault]:
    """Yield the first interval of a tree that has no tick in 64 bits in common with those before it."""
    before: list[tuple[str, Fraction]] = []
    tick = Fraction(0)
    for name, interval in _intervals(root):
        if interval * LARGEST < 1:
            continue  # nobody waits for so many steps: a run that would make them is refused for their number
        tick = common_tick([tick, interval])
        if before and max(tick.numerator, tick.denominator) > LARGEST:
            other, length = min(before, key=lambda each: common_tick([each[1], interval]))
            yield Fault(
                f"the {other} ({format_duration(length)}) and the {name} ({format_duration(interval)}) have "
                "no common tick in 64 bits",
                Place(root.path, "models"),
                expected="steps, periods and intervals that are whole multiples of one tick, such as 1 ns",
                hint="write them as decimals or as fractions with small denominators",
            )
            return
        before.append((name, interval))


def _intervals(root: PlanTree) -> Iterator[tuple[str, Fraction]]:
    """Yield what repeats in a tree, by name: steps of levels, periods of sampled models, clocks of FMUs."""
    for level in root.levels():
        sampled = "period" if level.composite.sampled else "step"
        yield f"{sampled} of `{level.path}`" if level.path else "macro step", level.composite.step
        for child, model in enumerate(level.wiring.models):
            if child not in level.inner:
                for name, length in intervals_of(innermost_model(model)).items():
                    yield f"{name} of `{level.name(child)}`", length
