"""What a level does in a step, when it is asked again, and at the start.

In:  bodies of instructions written by an orchestrator
Out: the same, printed in words
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hocket.model.composite import OutputsMode
from hocket.plan.instructions import Body, describe_body


class NoteKind(Enum):
    """What a note of a plan is about; programs decide by it, never by the words of the note."""

    SOLVED_LOOP = "an algebraic loop that every step solves"
    BROKEN_LOOP = "an algebraic loop that a delay of one step breaks"
    EARLY_END = "steps that may end early, and do not"
    STEPS_LAST = "the one simulator that cannot roll back: it steps when the end of the step is known"
    LATE_EVENT = "announced events that act late on others"
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

    def _repr_html_(self) -> str:
        from hocket.model.html import html_lines, html_pre, html_view  # here: notebooks only

        return html_view("Plan", {}, html_pre(str(self)), html_lines(self.all_notes()))

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
