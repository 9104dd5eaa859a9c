"""Bodies that run together must not depend on each other: in any order they do the same.

In:  the bodies of a Together
Out: who is in two of them, who is fed from another, what does not belong there
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from hocket.plan.facts import LevelFacts
from hocket.plan.instructions import Admit, Body, Feed, Instruction, Read, Record, Solve, Step, Try
from hocket.plan.walking import Place, named_simulators, walk
from hocket.plan.words import describe_instruction

RaceFault: TypeAlias = tuple[str, Place, Instruction, str, str, dict[str, Any]]
"""Kind, place, instruction, simulator, port, and what else the kind wants to know."""


def are_uniform(bodies: tuple[Body, ...]) -> bool:
    """Return whether each body is one Feed, Step or Read, all of one kind and of different simulators."""
    kinds = {type(body[0]) if len(body) == 1 else None for body in bodies}
    if len(kinds) != 1 or not kinds <= {Feed, Step, Read}:
        return False
    return len({body[0].sim for body in bodies}) == len(bodies)  # type: ignore[union-attr]


def body_owners(bodies: tuple[Body, ...], place: Place) -> dict[str, int]:
    """Return the number of the body that names a simulator, the first if there are several."""
    owner: dict[str, int] = {}
    for number, body in enumerate(bodies, 1):
        for _, instruction in walk(body, (*place, number), together=True):
            for sim in named_simulators(instruction):
                owner.setdefault(sim, number)
    return owner


def find_races(
    bodies: tuple[Body, ...], place: Place, owner: dict[str, int], facts: LevelFacts
) -> Iterator[RaceFault]:
    """Yield what makes bodies depend on each other."""
    read: dict[str, int] = {}
    stepped: dict[str, int] = {}
    inside = [
        (number, at, instruction)
        for number, body in enumerate(bodies, 1)
        for at, instruction in walk(body, (*place, number), together=True)
    ]
    for number, _, instruction in inside:
        if isinstance(instruction, (Read, Solve)):
            read.update(dict.fromkeys(named_simulators(instruction), number))
        elif isinstance(instruction, Step):
            stepped[instruction.sim] = number
    for number, at, instruction in inside:
        for sim in named_simulators(instruction):
            if owner[sim] != number:
                yield "shared simulator", at, instruction, sim, "", {}
        if isinstance(instruction, (Feed, Solve)):
            yield from _feed_races(number, at, instruction, read, stepped, facts)
        if isinstance(instruction, (Admit, Record, Try)) and len(bodies) > 1:
            yield (
                "not alone",
                at,
                instruction,
                "",
                "",
                {"verb": describe_instruction(instruction).partition(";")[0]},
            )


def _feed_races(
    number: int,
    at: Place,
    instruction: Feed | Solve,
    read: dict[str, int],
    stepped: dict[str, int],
    facts: LevelFacts,
) -> Iterator[RaceFault]:
    """Yield the sources of a feed that are read, or whose texts change, in another body."""
    for sim in named_simulators(instruction):
        child = facts.number.get(sim)
        for source in facts.sources[child] if child is not None else ():
            name = facts.name(source)
            if read.get(name, number) != number:
                port = facts.wire_between(source, facts.number[sim])[1]
                yield "race", at, instruction, sim, port, {"source": name}
        for text in facts.wiring.texts_of.get(child, ()) if child is not None else ():
            name = facts.name(text.child)
            if stepped.get(name, number) != number:
                yield "race of texts", at, instruction, sim, "", {"source": name}
