"""Instructions in words, as `hocket plan` prints them and faults name them.

In:  a body, or one instruction
Out: lines of text
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hocket.plan.accelerators import Accelerator, Aitken, Newton, QuasiNewton, Relax
from hocket.plan.instructions import (
    Admit,
    Body,
    Feed,
    Instruction,
    Read,
    Record,
    Repeat,
    Restore,
    Save,
    Solve,
    Step,
    Times,
    Together,
    Try,
)

_VERBS = {Feed: "feed", Step: "step", Read: "read"}


def lines(body: Body, indent: str) -> Iterator[str]:
    """Yield a body in words; neighbours of one kind share a line."""
    at = 0
    while at < len(body):
        instruction = body[at]
        run = at
        while run < len(body) and _alike(body[run], instruction):
            run += 1
        match instruction:
            case Feed() | Step() | Read():
                yield f"{indent}{_phrase(body[at:run])}"
                at = run - 1
            case Times(_, inner) | Try(inner) | Repeat(inner):
                yield f"{indent}{words(instruction)}:"
                yield from lines(inner, indent + "  ")
            case Together(bodies) if bodies and all(
                len(b) == 1 and _alike(b[0], bodies[0][0]) for b in bodies
            ):
                yield f"{indent}{_phrase([b[0] for b in bodies])}" + (", together" if len(bodies) > 1 else "")
            case Together(bodies):
                yield f"{indent}together:"
                for number, inner in enumerate(bodies[:12], 1):
                    yield f"{indent}  {number}."
                    yield from lines(inner, indent + "    ")
                if len(bodies) > 12:
                    yield f"{indent}  and {len(bodies) - 12} more"
            case _:
                yield f"{indent}{words(instruction)}"
        at += 1


def words(instruction: Instruction) -> str:
    """Return one instruction in words, without the bodies inside it."""
    match instruction:
        case Feed() | Step() | Read():
            return _phrase([instruction])
        case Admit():
            return "admit the inputs from outside"
        case Record():
            return "record"
        case Solve(_, ports):
            return f"solve the loop {listed(ports)}"
        case Times(n):
            return f"{n} times"
        case Try():
            return "try; if one ends early, all go back, meet it there, and go on"
        case Together():
            return "together"
        case Save(sims):
            return f"save {listed(sims)}"
        case Restore(sims):
            return f"restore {listed(sims)}"
        case Repeat(_, None, at_most, accelerate):
            return f"repeat {at_most} times{_accelerated(accelerate)}"
        case Repeat(_, until, at_most, accelerate):
            how = _accelerated(accelerate)
            return f"repeat until the values agree to {until:g}, at most {at_most} times{how}"
    return f"{instruction!r:.60}"


def _accelerated(accelerate: Accelerator | None) -> str:
    match accelerate:
        case Relax(factor):
            return f", relaxed by {factor:g}"
        case Aitken():
            return ", relaxed as Aitken tells"
        case QuasiNewton():
            return ", led by a Jacobian learned on the way"
        case Newton():
            return ", by Newton's method"
    return ""


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names side by side; a crowd is not listed to its end."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _alike(one: Instruction, other: Instruction) -> bool:
    if isinstance(one, Step) and isinstance(other, Step):
        return one.fraction == other.fraction
    return type(one) is type(other) and isinstance(one, (Feed, Read))


def _phrase(instructions: Sequence[Instruction]) -> str:
    first = instructions[0]
    names = [i.sim for i in instructions if isinstance(i, (Feed, Step, Read))]
    part = f" by {first.fraction} of it" if isinstance(first, Step) and first.fraction != 1 else ""
    return f"{_VERBS[type(first)]} {listed(names)}{part}"
