"""Going through a plan: every instruction with its place, and what can be told from them one by one.

In:  a body
Out: places, names, fractions
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

from hocket.coupling.wiring import Drive, Wiring
from hocket.plan.instructions import (
    Adapt,
    Body,
    Feed,
    Instruction,
    Next,
    Read,
    Repeat,
    Restore,
    Save,
    Solve,
    Step,
    Times,
    Together,
    Try,
)

Place: TypeAlias = tuple[int, ...]
"""Where an instruction stands: the third is (3,), the second inside its body (3, 2)."""
Spot: TypeAlias = tuple[Place, Instruction]
"""An instruction at its place."""


def inner_bodies(instruction: Instruction, place: Place) -> Iterator[tuple[Body, Place]]:
    """Yield the bodies inside an instruction with the place that their instructions count from."""
    match instruction:
        case Times(_, body) | Try(body) | Adapt(body) | Repeat(body):
            yield body, place
        case Together(bodies) | Next(bodies):
            for number, body in enumerate(bodies, 1):
                yield body, (*place, number)


def with_places(body: Body, place: Place, together: bool = False) -> Iterator[Spot]:
    """Yield the instructions of a body with their places; one alone in a Together has that of its body."""
    if together and len(body) == 1:
        yield place, body[0]
        return
    for number, instruction in enumerate(body, 1):
        yield (*place, number), instruction


def walk(body: Body, place: Place = (), together: bool = False) -> Iterator[Spot]:
    """Yield every instruction, those inside others after them."""
    for at, instruction in with_places(body, place, together):
        yield at, instruction
        for inner, inside in inner_bodies(instruction, at):
            yield from walk(inner, inside, isinstance(instruction, Together))


def named_simulators(instruction: Instruction) -> tuple[str, ...]:
    """Return the simulators that an instruction itself names."""
    match instruction:
        case Feed(sim) | Step(sim) | Read(sim):
            return (sim,)
        case Solve(sims) | Save(sims) | Restore(sims):
            return sims
    return ()


def feedback_drives(body: Body, wiring: Wiring) -> Iterator[Drive]:
    """Yield what a repetition of a body takes from the one before: drives by outputs that are read later."""
    read: set[str] = set()
    for _, instruction in walk(body):
        if isinstance(instruction, Feed | Solve):
            for sim in named_simulators(instruction):
                for drive in wiring.drives[wiring.names.index(sim)]:
                    if drive is not None and drive.child >= 0 and wiring.names[drive.child] not in read:
                        yield drive
        if isinstance(instruction, Read | Solve):
            read.update(named_simulators(instruction))


def tries(body: Body) -> bool:
    """Return whether the steps of a body may be made shorter."""
    return any(isinstance(each, Try) or (isinstance(each, Adapt) and tries(each.body)) for each in body)


def adapts(body: Body) -> bool:
    """Return whether a body chooses the lengths of its steps."""
    return any(isinstance(instruction, Adapt) for instruction in body)


def first_part(body: Body) -> Fraction:
    """Return the first step that a body makes, as a part of the level's step."""
    return next((each.control.first for each in body if isinstance(each, Adapt)), Fraction(1))


def step_fractions(body: Body) -> Iterator[Fraction]:
    """Yield the parts of a level's step that the steps in a body are."""
    for instruction in body:
        match instruction:
            case Step(_, fraction):
                yield fraction
            case Adapt(inner, control):
                halves = 2 if control.estimate == "richardson" else 1
                for fraction in {Fraction(1), *step_fractions(inner)}:
                    yield fraction
                    yield fraction * control.quantum / halves
            case Times(_, inner) | Try(inner) | Repeat(inner):
                yield from step_fractions(inner)
            case Together(bodies) | Next(bodies):
                yield from {fraction for inner in bodies for fraction in step_fractions(inner)}
