"""A plan is data: the short list of instructions that one step of a level consists of.

In:  instructions written by an orchestrator
Out: the same, printed in words and verified before anything runs
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, TypeAlias

from hocket.errors import Fault

OutputsMode: TypeAlias = Literal["stale", "consistent"]


@dataclass(frozen=True, slots=True)
class Admit:
    """Let the inputs that the level was given for this step act from here on."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Fit the input polynomials of a simulator from the samples in the exchange memory."""

    sim: str


@dataclass(frozen=True, slots=True)
class Step:
    """Advance a simulator by a fraction of the level's step."""

    sim: str
    fraction: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Read:
    """Evaluate the outputs of a simulator now, under its inputs; store the samples."""

    sim: str


@dataclass(frozen=True, slots=True)
class Solve:
    """Find values of these outputs that agree with themselves: an algebraic loop."""

    sims: tuple[str, ...]
    ports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Together:
    """Bodies that do not depend on each other: they may run in parallel threads."""

    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """A body, n times."""

    n: int
    body: Body


@dataclass(frozen=True, slots=True)
class Try:
    """A body whose steps may end early: all go back and make it shorter, then go on to the end."""

    body: Body


@dataclass(frozen=True, slots=True)
class Record:
    """Keep a row; it replaces one that was kept at the same time."""


Instruction: TypeAlias = Admit | Feed | Step | Read | Solve | Together | Times | Try | Record
Body: TypeAlias = tuple[Instruction, ...]


@dataclass(frozen=True)
class Plan:
    """What a level does. `inner` holds the plans of the levels inside it, by name."""

    step: Body
    """One step of the level."""
    output: Body = ()
    """What is evaluated again when the level is asked for its outputs under new inputs."""
    outputs: OutputsMode = "stale"
    notes: tuple[str, ...] = ()
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
                yield from _words(body, "    ")
        for inner_name, plan in self.inner.items():
            yield ""
            yield from plan.lines(f"{name}.{inner_name}" if name else inner_name)


_VERBS = {Feed: "feed", Step: "step", Read: "read"}


def _words(body: Body, indent: str) -> Iterator[str]:
    at = 0
    while at < len(body):
        instruction = body[at]
        run = at
        while run < len(body) and _alike(body[run], instruction):
            run += 1
        match instruction:
            case Admit():
                yield f"{indent}admit the inputs from outside"
            case Record():
                yield f"{indent}record"
            case Solve(_, ports):
                yield f"{indent}solve the loop {_listed(ports)}"
            case Times(n, inner):
                yield f"{indent}{n} times:"
                yield from _words(inner, indent + "  ")
            case Try(inner):
                yield f"{indent}try; if one ends early, all go back, meet it there, and go on:"
                yield from _words(inner, indent + "  ")
            case Together(bodies) if all(len(b) == 1 and _alike(b[0], bodies[0][0]) for b in bodies):
                yield f"{indent}{_phrase([b[0] for b in bodies])}" + (", together" if len(bodies) > 1 else "")
            case Together(bodies):
                yield f"{indent}together:"
                for number, inner in enumerate(bodies[:12], 1):
                    yield f"{indent}  {number}."
                    yield from _words(inner, indent + "    ")
                if len(bodies) > 12:
                    yield f"{indent}  and {len(bodies) - 12} more"
            case Feed() | Step() | Read():
                yield f"{indent}{_phrase(body[at:run])}"
                at = run - 1
        at += 1


def _alike(one: Instruction, other: Instruction) -> bool:
    if isinstance(one, Step) and isinstance(other, Step):
        return one.fraction == other.fraction
    return type(one) is type(other) and isinstance(one, (Feed, Read))


def _phrase(instructions: Body | list[Instruction]) -> str:
    first = instructions[0]
    names = [i.sim for i in instructions if isinstance(i, (Feed, Step, Read))]
    part = f" by {first.fraction} of it" if isinstance(first, Step) and first.fraction != 1 else ""
    return f"{_VERBS[type(first)]} {_listed(names)}{part}"


def _listed(names: tuple[str, ...] | list[str], most: int = 12) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _named(body: Body, kind: type[Feed] | type[Read]) -> Iterator[str]:
    """Yield the simulators that a body feeds, or reads."""
    for instruction in body:
        if isinstance(instruction, kind):
            yield instruction.sim
        elif isinstance(instruction, (Times, Try)):
            yield from _named(instruction.body, kind)
        elif isinstance(instruction, Together):
            for inner in instruction.bodies:
                yield from _named(inner, kind)


def tries(body: Body) -> bool:
    """Return whether the steps of a body may be made shorter."""
    return any(isinstance(instruction, Try) for instruction in body)


def step_fractions(body: Body) -> Iterator[Fraction]:
    """Yield the parts of a level's step that the steps in a body are."""
    for instruction in body:
        match instruction:
            case Step(_, fraction):
                yield fraction
            case Times(_, inner) | Try(inner):
                yield from step_fractions(inner)
            case Together(bodies):
                yield from {fraction for inner in bodies for fraction in step_fractions(inner)}


def verify(
    plan: Plan,
    inputs: Mapping[str, bool],
    outputs: Mapping[str, bool],
    sources: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> list[Fault]:
    """Return what is wrong with the `step` body, found by reading it.

    `inputs` and `outputs` say of each simulator whether it has any, `sources` who drives it. Found are:
    unknown simulators, inputs never fed before a step, steps that do not add up to one, outputs not read
    after the last step, bodies of one Together that share a simulator or feed from each other.
    """
    faults: list[Fault] = []
    reached: dict[str, Fraction | int] = dict.fromkeys(inputs, 0)
    fed: set[str] = set()
    read: dict[str, Fraction | int] = {}

    def look(instruction: Instruction) -> Iterator[str]:
        """Follow one instruction; yield the simulators it touches."""
        if isinstance(instruction, (Feed, Step, Read)):
            sim = instruction.sim
            if sim not in reached:
                faults.append(Fault(f"the plan names an unknown simulator `{sim}`", "plan"))
                return
            if isinstance(instruction, Feed):
                fed.add(sim)
            elif isinstance(instruction, Read):
                read[sim] = reached[sim]
            else:
                if inputs[sim] and sim not in fed:
                    faults.append(Fault(f"`{sim}` is stepped before its inputs are fed", "plan"))
                fed.discard(sim)
                reached[sim] += instruction.fraction
            yield sim
        elif isinstance(instruction, Solve):
            for sim in instruction.sims:
                if sim not in reached:
                    faults.append(Fault(f"the plan names an unknown simulator `{sim}`", "plan"))
            yield from instruction.sims
        elif isinstance(instruction, Times):
            for _ in range(instruction.n):
                for inner in instruction.body:
                    yield from look(inner)
        elif isinstance(instruction, Try):
            for inner in instruction.body:
                yield from look(inner)
        elif isinstance(instruction, Together):
            owner: dict[str, int] = {}
            reader = {sim: n for n, body in enumerate(instruction.bodies) for sim in _named(body, Read)}
            for number, body in enumerate(instruction.bodies if reader else ()):
                for sim in _named(body, Feed):
                    for source in sources.get(sim, ()):
                        if reader.get(source, number) != number:
                            what = (
                                f"`{sim}` is fed from `{source}`, which is read in a body that runs together"
                            )
                            faults.append(Fault(what, "plan"))
            for number, body in enumerate(instruction.bodies):
                for inner in body:
                    for sim in look(inner):
                        if owner.setdefault(sim, number) != number:
                            faults.append(Fault(f"`{sim}` is in two bodies that run together", "plan"))
                        yield sim

    for instruction in plan.step:
        for _ in look(instruction):
            pass
    for sim, time in reached.items():
        if time != 1:
            faults.append(Fault(f"`{sim}` is stepped by {time} of the step, not by the whole", "plan"))
        elif outputs[sim] and read.get(sim) != 1:
            faults.append(Fault(f"the outputs of `{sim}` are not read after its step", "plan"))
    return faults
