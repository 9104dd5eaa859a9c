"""Who must be able to go back, and from where: steps that are tried, and steps that are repeated.

In:  a Try or a Repeat
Out: what would not be taken back
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from hocket.plan.facts import LevelFacts
from hocket.plan.instructions import Instruction, Repeat, Restore, Save, Step
from hocket.plan.walking import Place, walk

RollbackFault: TypeAlias = tuple[str, Place, Instruction, str]
"""Kind, place, instruction, simulator."""


def try_faults(facts: LevelFacts) -> Iterator[tuple[str, str, str]]:
    """Yield kind, simulator and how many more: a Try takes back the whole level and shortens its step."""
    able = [
        (name, model.abilities) for name, model in zip(facts.wiring.names, facts.wiring.models, strict=True)
    ]
    for kind, unable in (
        ("try without rewind", [name for name, ability in able if not ability.rewind]),
        ("try of fixed steps", [name for name, ability in able if not ability.variable_step]),
    ):
        if unable:
            yield kind, unable[0], f" and {len(unable) - 1} more" if len(unable) > 1 else ""


def repeat_faults(outer: Repeat, place: Place, saved: set[str]) -> Iterator[RollbackFault]:
    """Yield the simulators that a repetition steps without having taken them back."""
    back: set[str] = set()
    inside = list(walk(outer.body, place))
    stepped = {instruction.sim for _, instruction in inside if isinstance(instruction, Step)}
    for at, instruction in inside:
        match instruction:
            case Save(sims):
                for sim in sims:
                    if sim in stepped:
                        yield "save in a repeat", at, instruction, sim
            case Restore(sims):
                back.update(sims)
            case Step(sim) if sim not in back:
                yield "repeat without restore", at, instruction, sim
                back.add(sim)
    for sim in sorted(stepped - saved):
        yield "repeat without save", place, outer, sim
