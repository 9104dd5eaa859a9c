"""The kinds of faults a plan can have: what is said of each, what was expected, what to try.

In:  a kind, the names it is about
Out: a Violation, a fault that names its kind, instruction, simulator and port
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hocket.errors import Fault, Place, suggest_nearest
from hocket.plan.instructions import Spot, describe_instruction


@dataclass(frozen=True, slots=True)
class Violation(Fault):
    """A fault of a plan; `where` is the instruction, by its place: `step 3: read b`."""

    kind: str = ""
    sim: str = ""
    port: str = ""


class ViolationKind(NamedTuple):
    """The texts of one kind; names in braces are filled in."""

    what: str
    expected: str = ""
    hint: str = ""


KINDS = {
    # what is there at all
    "unknown simulator": ViolationKind(
        "the plan names an unknown simulator `{sim}`", "a model of the level", "{near}"
    ),
    "no instruction": ViolationKind(
        "`{given}` is not an instruction", "one of those in `hocket.plan`", "such as Read('a')"
    ),
    "empty body": ViolationKind(
        "a body without instructions", "at least one instruction", "leave out what is around it"
    ),
    "no times": ViolationKind("a body is to be done {n} times", "a whole number from 1 on", "leave it out"),
    # inputs
    "unfed input": ViolationKind(
        "`{sim}` is stepped before its inputs are fed",
        "a feed before each step: it says from when on the inputs count",
        "Feed({sim!r}) before it, for {ports}",
    ),
    "unread source": ViolationKind(
        "`{sim}` is fed from `{source}`, which has stepped but is not read: it gets the value before that",
        "a source that is read after its step, or steps after the feed",
        "Read({source!r}) before it; or, if the delay is meant, feed `{sim}` before `{source}` steps",
    ),
    "reactive input": ViolationKind(
        "`{port}` is reactive, and `{sim}` is stepped to {other} of the step with `{source}` of {time}",
        "the value at the end of the step: its source steps and is read before",
        "step and read the source of `{port}` before it is fed",
    ),
    "delayed input": ViolationKind(
        "`{port}` is delayed, and `{sim}` is stepped from {other} of the step with `{source}` of {time}",
        "the value at the start of the step: it is fed before its source is read again",
        "feed `{port}` by its name, before its source steps",
    ),
    "never admitted": ViolationKind(
        "the inputs from outside are never admitted: `{port}` never sees a new one",
        "an Admit: first for clean inputs, last for delayed ones",
        "Admit() at the start",
    ),
    "nothing to admit": ViolationKind(
        "inputs from outside are admitted, and the level has none",
        "an Admit only where the scenario has inputs",
        "leave it out",
    ),
    # time
    "never stepped": ViolationKind(
        "`{sim}` is never stepped", "each simulator goes to the end of the step", "Step({sim!r})"
    ),
    "too little": ViolationKind(
        "`{sim}` is stepped by {time} of the step, not by the whole",
        "fractions that add up to 1",
        "a further step of {rest}",
    ),
    "too much": ViolationKind(
        "`{sim}` is stepped by {time} of the step, more than the whole",
        "fractions that add up to 1",
        "steps that are {rest} less",
    ),
    "ends apart": ViolationKind(
        "`{sim}` ends at {time} of the step and `{source}` at {other}, and `{port}` is `{wire}`",
        "simulators that exchange values end at the same time",
        "steps of `{sim}` that add up to 1",
    ),
    "inexact step": ViolationKind(
        "`{sim}` is stepped by {given!r} of the step, which is not a fraction", "exact fractions", "{exact}"
    ),
    "no way forward": ViolationKind(
        "`{sim}` is stepped by {time} of the step", "a fraction above 0", "leave it out"
    ),
    "fixed step": ViolationKind(
        "`{sim}` is stepped by {time} of the step, and it accepts only whole ones",
        "a whole step where `variable_step` is not among its capabilities",
        "Step({sim!r}); or `Substepped`, substep = ... in a file",
    ),
    "level's step": ViolationKind(
        "`{sim}` is stepped by {time} of the step, and its own steps do not fit into that",
        "a multiple of its step, or a whole part of it",
        "another fraction, or another step of `{sim}`",
    ),
    "quantum": ViolationKind(
        "steps are chosen in parts of {time} of the step, and those of the level `{sim}` do not fit in",
        "parts that are multiples of its step",
        "{fits}",
    ),
    "step when asked": ViolationKind(
        "`{sim}` is stepped where the level is only asked for its outputs",
        "no time passes in `output`",
        "leave it out: Feed({sim!r}), Read({sim!r})",
    ),
    # the start
    "not at the start": ViolationKind(
        "the start has `{given}`, and no time passes there", "Feed, Read, Solve and Together", "leave it out"
    ),
    "unknown at start": ViolationKind(
        "`{port}` has no value when the run starts{why}",
        "each output is read before the first step",
        "{remedy}",
    ),
    # outputs
    "read before step": ViolationKind(
        "`{sim}` is read at {time} of the step, where it stands, and others are at {latest} already",
        "what is read again stands where the others stand",
        "Step({sim!r}) before it",
    ),
    "never read": ViolationKind(
        "the outputs of `{sim}` are not read after its step",
        "a read after the last step: {ports} would stay old",
        "Read({sim!r})",
    ),
    "stale output": ViolationKind(
        "`{port}` reacts to {source} at once, and is not evaluated under its newest value",
        "the plan says that outputs are consistent",
        'Feed({sim!r}), Read({sim!r}) after it; or outputs="stale"',
    ),
    "stale loop": ViolationKind(
        "the algebraic loop {loop} is read in turn but never solved",
        "the plan says that outputs are consistent",
        'Solve({sims}, {ports}) after the last read; or outputs="stale", which breaks it by a delay',
    ),
    "never asked again": ViolationKind(
        "the output `{port}` of the level reacts to its inputs at once, and `output` is empty",
        "the plan says that outputs are consistent: asked under new inputs, the level evaluates again",
        'output=(Admit(), Feed(...), Read(...), Record()), or outputs="stale"',
    ),
    # bodies that run together
    "shared simulator": ViolationKind(
        "`{sim}` is in two bodies that run together",
        "each simulator in one of them",
        "put what belongs to `{sim}` into one body, or after the Together",
    ),
    "race": ViolationKind(
        "`{sim}` is fed from `{source}`, which is read in a body that runs together",
        "bodies that do not depend on each other: which is first is not known",
        "feed all before the Together and read all after it",
    ),
    "race of texts": ViolationKind(
        "`{sim}` gets a text from `{source}`, which steps in a body that runs together",
        "bodies that do not depend on each other: which is first is not known",
        "feed `{sim}` before the Together",
    ),
    "not alone": ViolationKind(
        "`{verb}` stands in one of several bodies that run together",
        "what concerns the whole level stands outside of them",
        "put it before or after the Together",
    ),
    # turns
    "no turn": ViolationKind(
        "a body of a Next makes {n} steps", "one step of one simulator", "Feed('a'), Step('a'), Read('a')"
    ),
    "not in a turn": ViolationKind(
        "`{verb}` stands in a body of a Next",
        "feed, step and read of the one simulator whose turn it is",
        "put it before or after the Next",
    ),
    "other in a turn": ViolationKind(
        "`{sim}` is in a body of a Next that steps `{source}`",
        "feed, step and read of the one simulator whose turn it is",
        "a body of its own for `{sim}`",
    ),
    "second turn": ViolationKind(
        "`{sim}` has two bodies of a Next", "one body for each simulator", "leave one of them out"
    ),
    "uneven turns": ViolationKind(
        "`{sim}` is stepped by {time} of the step at a time, and does not meet its end",
        "a whole part of the step",
        "Step({sim!r}, Fraction({near.numerator}, {near.denominator}))",
    ),
    # algebraic loops
    "unknown port": ViolationKind(
        "the plan names `{port}`, and there is no such port",
        "an input of the simulator where it is fed, an output where it is read or solved for",
        "{near}",
    ),
    "no loop": ViolationKind(
        "`{port}` is to be solved for, and it does not react to itself at once{why}",
        "the outputs of an algebraic loop",
        "Feed({sim!r}), Read({sim!r})",
    ),
    "part of a loop": ViolationKind(
        "`{port}` is solved for without the rest of its loop: {missing}",
        "all outputs of the loop at once",
        "all of {loop}",
    ),
    "loop without simulator": ViolationKind(
        "`{port}` is solved for, and `{sim}` is not among the simulators that are evaluated",
        "the owner of each port",
        "`{sim}` in `sims`",
    ),
    "loop apart": ViolationKind(
        "a loop is solved while `{sim}` stands at {time} of the step and `{source}` at {other}",
        "simulators of a loop stand at the same time",
        "solve it after the steps of all of them",
    ),
    "loop before read": ViolationKind(
        "a loop is solved before `{sim}` is read: the guess would overwrite the sample of the old time",
        "samples of the new time to begin with",
        "Read({sim!r}) before it",
    ),
    # rows
    "no record": ViolationKind("no row is ever kept", "a Record", "Record() at the end"),
    "early record": ViolationKind(
        "a row is kept before `{later}`: it has values of the old time",
        "a Record after the last read",
        "Record() at the end",
    ),
    "second record": ViolationKind("a row is kept twice in one step", "one Record", "only the last one"),
    # steps that may end early
    "try in a try": ViolationKind(
        "a Try stands inside another", "one Try around the whole step", "leave the inner out"
    ),
    "try inside": ViolationKind(
        "a Try stands inside another instruction: it goes on to the end of the step each time",
        "a Try around the whole step",
        "put the Try around it",
    ),
    "second try": ViolationKind(
        "a second Try in one step: each goes on to the end",
        "one Try around the whole step",
        "one around both",
    ),
    "step outside try": ViolationKind(
        "`{sim}` is stepped outside of the Try: it would not roll back with the others",
        "a Try around the whole step",
        "put Step({sim!r}) into it",
    ),
    "early stop": ViolationKind(
        "`{sim}` may stop inside a step, at an event, and no Try is around it",
        "a Try around the whole step where a simulator stops early",
        "{remedy}",
    ),
    "try without rollback": ViolationKind(
        "`{sim}`{more} cannot roll back, and a Try rolls all simulators back",
        "capabilities with `rollback` in the whole level",
        "the plan without the Try",
    ),
    "last may stop": ViolationKind(
        "`{sim}` cannot roll back and steps last, and it may itself end the step early",
        "one that makes every step to its end as the last of a Try",
        "the plan without the Try",
    ),
    "stop behind last": ViolationKind(
        "`{sim}` may end the step early when `{last}`, which cannot roll back, has stepped",
        "the step of `{last}` behind those of all that may end it early",
        "put Step({last!r}) behind Step({sim!r})",
    ),
    "try of fixed steps": ViolationKind(
        "`{sim}`{more} accepts only whole steps, and a Try makes them shorter",
        "capabilities with `variable_step` in the whole level",
        "the plan without the Try",
    ),
    # instants
    "outside an instant": ViolationKind(
        "`{sim}` takes part in an instant, and there is none", "an Instant around it", "Instant((...,), 100)"
    ),
    "react after commit": ViolationKind(
        "`{sim}` reacts after others have committed: it is late by one instant",
        "all React before the Commit",
        "move the React up",
    ),
    "commit without react": ViolationKind(
        "`{sim}` is committed and does not react before", "a React of it in the same instant", "React(sim)"
    ),
    "not in an instant": ViolationKind(
        "this cannot be done at an instant, in which no time passes",
        "React, Solve, Commit, Record",
        "put it before the Instant",
    ),
    # hosts
    "unknown host": ViolationKind("there is no host `{host}`", "one of those in `hosts`", "its name"),
    "sent from elsewhere": ViolationKind(
        "`{port}` is sent from `{host}`, and `{sim}` is on another host",
        "outputs of the models of that host",
        "the host of `{sim}` as the source",
    ),
    "never sent": ViolationKind(
        "`{target}` waits for a message from `{source}` that is not sent before",
        "a Send with the same hosts before it",
        "Send('{source}', '{target}', (...)) before it",
    ),
    "never received": ViolationKind(
        "what `{source}` sends to `{target}` is not received",
        "a Receive with the same hosts behind it",
        "Receive('{source}', '{target}', (...)) behind it",
    ),
    # repetitions
    "save without rollback": ViolationKind(
        "`{sim}` is to be saved, and it cannot roll back",
        "capabilities with `rollback`",
        "a plan without repetitions",
    ),
    "restore without save": ViolationKind(
        "`{sim}` is restored, and was not saved before", "a Save before it", "Save(({sim!r},)) before it"
    ),
    "repeat without save": ViolationKind(
        "`{sim}` is stepped in a Repeat, and was not saved before it",
        "save, then repeat: restore, feed, step, read",
        "Save(({sim!r},)) before the Repeat",
    ),
    "repeat without restore": ViolationKind(
        "`{sim}` is stepped in a Repeat without being restored first: each repetition goes further",
        "save, then repeat: restore, feed, step, read",
        "Restore(({sim!r},)) at the start of the Repeat",
    ),
    "save in a repeat": ViolationKind(
        "`{sim}` is saved inside the Repeat that repeats its steps: the place to roll back to moves along",
        "save, then repeat: restore, feed, step, read",
        "Save(({sim!r},)) before the Repeat",
    ),
    "no repetitions": ViolationKind(
        "a Repeat of at most {n} repetitions", "a whole number from 1 on", "at_most=10"
    ),
    "no tolerance": ViolationKind(
        "a Repeat until the values agree to {until}", "a relative residual above 0, or None", "until=1e-6"
    ),
}


HINTS = 5
"""So many misspelt names get a nearest match: each is a search through all names."""


class ViolationLog:
    """The faults of one body; `title` is its name in the plan."""

    def __init__(self, title: str):
        self.title = title
        self.found: dict[tuple[str, ...], Violation] = {}
        self._near: dict[str, str] = {}

    def add(self, kind: str, spot: Spot | None, sim: str = "", port: str = "", **more: object) -> None:
        """Note a fault, if it is not known yet; without a spot it is about the whole body."""
        where = self.title
        if spot is not None:
            where = f"{self.title} {'.'.join(map(str, spot[0]))}: {describe_instruction(spot[1])}"
        key = (kind, where, sim, port, str(more.get("source", "")))
        if key not in self.found:
            what, expected, hint = (text.format(sim=sim, port=port, **more) for text in KINDS[kind])
            self.found[key] = Violation(what, Place(detail=where), expected, hint, kind, sim, port)

    def drop(self, kind: str, names: set[str]) -> None:
        """Forget faults of a kind that only follow from others: they are about these simulators."""
        follows = [key for key in self.found if key[0] == kind and (key[2] in names or key[4] in names)]
        for key in follows:
            del self.found[key]

    def nearest_name(self, name: str, names: dict[str, int] | list[str]) -> str:
        """Return the nearest match of a misspelt name."""
        if name not in self._near:
            self._near[name] = suggest_nearest(name, names) if len(self._near) < HINTS else ""
        return self._near[name]
