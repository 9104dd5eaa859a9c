"""What a level does in a step, when it is asked again, and at the start.

In:  bodies of instructions written by an orchestrator
Out: the same, printed in words
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hocket.model.composite import OutputsMode
from hocket.plan.instructions import (
    Adapt,
    Admit,
    Body,
    Control,
    Feed,
    Instruction,
    Next,
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


def describe_body(body: Body, indent: str) -> Iterator[str]:
    """Yield a body in words; neighbours of one kind share a line."""
    at = 0
    while at < len(body):
        instruction = body[at]
        run = at
        while run < len(body) and _share_line(body[run], instruction):
            run += 1
        match instruction:
            case Feed() | Step() | Read():
                yield f"{indent}{_describe_simple(body[at:run])}"
                at = run - 1
            case Times(_, inner) | Try(inner) | Adapt(inner) | Repeat(inner):
                yield f"{indent}{describe_instruction(instruction)}:"
                yield from describe_body(inner, indent + "  ")
            case Together(bodies) if bodies and all(
                len(b) == 1 and _share_line(b[0], bodies[0][0]) for b in bodies
            ):
                yield f"{indent}{_describe_simple([b[0] for b in bodies])}" + (
                    ", together" if len(bodies) > 1 else ""
                )
            case Together(bodies) | Next(bodies):
                yield f"{indent}{describe_instruction(instruction)}:"
                for number, inner in enumerate(bodies[:12], 1):
                    yield f"{indent}  {number}."
                    yield from describe_body(inner, indent + "    ")
                if len(bodies) > 12:
                    yield f"{indent}  and {len(bodies) - 12} more"
            case _:
                yield f"{indent}{describe_instruction(instruction)}"
        at += 1


def describe_instruction(instruction: Instruction) -> str:
    """Return one instruction in words, without the bodies inside it."""
    match instruction:
        case Feed() | Step() | Read():
            return _describe_simple([instruction])
        case Admit():
            return "admit the inputs from outside"
        case Record():
            return "record"
        case Solve(_, ports):
            return f"solve the loop {join_names(ports)}"
        case Times(n):
            return f"{n} times"
        case Try():
            return "try; if one ends early, all roll back, meet it there, and go on"
        case Adapt(_, control):
            return _describe_control(control)
        case Together():
            return "together"
        case Next():
            return "until all have made the step, the one furthest behind goes next"
        case Save(sims):
            return f"save {join_names(sims)}"
        case Restore(sims):
            return f"restore {join_names(sims)}"
        case Repeat(_, until, at_most, accelerate):
            how = "" if accelerate is None else f", {accelerate.describe()}"
            end = "" if until is None else f"until the values agree to {until:g}, at most "
            return f"repeat {end}{at_most} times{how}"
    return f"{instruction!r:.60}"


def _describe_control(control: Control) -> str:
    per = " per step" if not control.per_unit else "" if control.unit else " per second"
    how = {
        "defect": "what inputs missed",
        "orders": "a higher extrapolation",
        "richardson": "two half steps",
        "energy": "what the bonds gained or lost",
    }[control.estimate]
    back = "; else roll back" if control.rejects else "; none rolls back"
    error = f"{control.tolerance_text}{per} by {how}"
    return f"in steps of multiples of {control.quantum}, {error}{back}"


def join_names(names: Sequence[str], most: int = 12) -> str:
    """Return names side by side; a crowd is not listed to its end."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _share_line(one: Instruction, other: Instruction) -> bool:
    if isinstance(one, Step) and isinstance(other, Step):
        return one.fraction == other.fraction
    return type(one) is type(other) and isinstance(one, (Feed, Read))


def _describe_simple(instructions: Sequence[Instruction]) -> str:
    first = instructions[0]
    names = [i.sim for i in instructions if isinstance(i, (Feed, Step, Read))]
    part = f" by {first.fraction} of it" if isinstance(first, Step) and first.fraction != 1 else ""
    return f"{_VERBS[type(first)]} {join_names(names)}{part}"


class NoteKind(Enum):
    """What a note of a plan is about; programs decide by it, never by the words of the note."""

    SOLVED_LOOP = "an algebraic loop that every step solves"
    BROKEN_LOOP = "an algebraic loop that a delay of one step breaks"
    EARLY_END = "steps that may end early"
    ROLLBACK = "simulators that cannot roll back, or do so at a price"
    ORDER = "what caps the order"
    EMULATION = "a capability that is emulated"
    BOND = "a power bond whose ends do not fit"
    STEP_CONTROL = "what step control does not see"


class Note(str):
    """What a user should know of a plan: a sentence for people, with its kind and subject for programs."""

    kind: NoteKind
    subject: str

    def __new__(cls, text: str, kind: NoteKind, subject: str = "") -> Note:
        note = super().__new__(cls, text)
        note.kind, note.subject = kind, subject
        return note

    def __reduce__(self) -> tuple[Any, ...]:
        return Note, (str(self), self.kind, self.subject)


@dataclass(frozen=True)
class Plan:
    """What a level does. `inner` holds the plans of the levels inside it, by name."""

    step: Body
    """One step of the level."""
    output: Body = ()
    """What is evaluated again when the level is asked for its outputs under new inputs."""
    outputs: OutputsMode = "stale"
    notes: tuple[Note, ...] = ()
    """What a user should know: where order is lost, what was assumed."""
    start: Body = ()
    """Initialisation of all levels; only the outermost plan has it."""
    inner: Mapping[str, Plan] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def all_notes(self, name: str = "") -> list[str]:
        """Return the notes of this level and of those inside, each with its level."""
        notes = [f"{name}: {note}" if name else note for note in self.notes]
        for inner, plan in self.inner.items():
            notes += plan.all_notes(f"{name}.{inner}" if name else inner)
        return notes

    def lines(self, name: str = "") -> Iterator[str]:
        """Yield the plan in words, the levels inside it after it."""
        yield f"{name or 'the outermost level'}: outputs {self.outputs}"
        for note in self.notes:
            yield f"  note: {note}"
        for title, body in (("to start", self.start), ("each step", self.step), ("asked again", self.output)):
            if body:
                yield f"  {title}:"
                yield from describe_body(body, "    ")
        for inner_name, plan in self.inner.items():
            yield ""
            yield from plan.lines(f"{name}.{inner_name}" if name else inner_name)
