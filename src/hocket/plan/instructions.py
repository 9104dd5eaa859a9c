"""The instructions that plans are made of: frozen data, gone through and said in words.

In:  names of simulators, fractions of a step
Out: what the engines execute and the verifier reads; instructions with their places, lines of text
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Never, Protocol, TypeAlias, assert_never

from hocket.coupling.wiring import Drive, Wiring
from hocket.errors import ScenarioError

if TYPE_CHECKING:
    from hocket.model.ports import Port
    from hocket.plan.accelerators import Accelerator

Estimate: TypeAlias = Literal["defect", "orders", "richardson", "energy"]


@dataclass(frozen=True, slots=True)
class Control:
    """The error that a step may make, how it is estimated, and how the next step follows from it.

    Lengths are parts of the level's step.
    """

    tolerance: float
    estimate: Estimate
    per_unit: bool
    """The error is that of a second of steps; else of one step."""
    gains: tuple[float, float, float]
    """Of the error now, of the one before, and of the one before that: I, PI or PID."""
    quantum: Fraction
    """Steps are multiples of it."""
    first: Fraction
    """The step that a run begins with."""
    largest: Fraction
    rejects: bool
    """A step whose error is too large is taken back; else only the next one is shorter."""
    safety: float = 0.9
    most: float = 3.0
    """How much longer the next step may be."""
    least: float = 0.2
    """How much shorter."""
    unit: str = ""
    """Of the tolerance; empty: it is relative."""
    passes: int = 0
    """How many of the smallest steps in a row may have too large an error: a jump that no step resolves."""

    def __post_init__(self) -> None:
        if self.estimate == "richardson" and not self.rejects:
            what = "a step that is made twice is taken back in between"
            raise ScenarioError(what, "Control", "rejects=True")

    @property
    def tolerance_text(self) -> str:
        """The tolerance, for people."""
        return f"an error of {self.tolerance:g} {self.unit}".rstrip()


SMALL = 1e-10
"""An error below this part of the tolerance counts as this."""


class StepLaw(Protocol):
    """How the next step follows from the errors: of Adaptive, and of the accuracy pass."""

    @property
    def gains(self) -> tuple[float, float, float]:
        """Of the error now, of the one before, and of the one before that."""

    @property
    def safety(self) -> float:
        """The part of the step that the error would allow."""

    @property
    def most(self) -> float:
        """How much longer the next step may be."""

    @property
    def least(self) -> float:
        """How much shorter."""


def step_factor(
    law: StepLaw, errors: tuple[float, float, float], power: float, accepted: bool, settles: bool = True
) -> float:
    """Return by how much the next step is longer, from the errors now, before and before that, in tolerances.

    The errors fall with this power of the step. `settles`: where the error stays the same, the steps settle
    at an error of safety ** power tolerances; else each step is shorter by the safety. The native engine
    repeats the operations in this order.
    """
    (now, before, earlier), gains, most = errors, law.gains, law.most
    if not accepted:
        gains, most = REJECTED
    first, second, third = gains
    safety = law.safety ** (first - second + third) if settles else law.safety
    factor: float = safety * now ** (-first / power)
    if second != 0.0:
        factor = factor * before ** (second / power)
    if third != 0.0:
        factor = factor * earlier ** (-third / power)
    return min(most, max(law.least, factor))


REJECTED = (1.0, 0.0, 0.0), 0.9
"""After a rejection: the gains, by which only the error now counts, and the largest factor."""
WHOLE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Admit:
    """Let the inputs that the level was given for this step act from here on."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Fit the input polynomials of a simulator from the samples in the exchange memory."""

    sim: str
    ports: tuple[str, ...] = ()
    """The inputs; empty: all. The others stay the curves they are."""


@dataclass(frozen=True, slots=True)
class Step:
    """Advance a simulator by a fraction of the level's step."""

    sim: str
    fraction: Fraction = WHOLE


@dataclass(frozen=True, slots=True)
class Read:
    """Evaluate the outputs of a simulator now, under its inputs; store the samples."""

    sim: str
    ports: tuple[str, ...] = ()
    """The outputs whose samples are stored; empty: all."""


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
class Next:
    """Bodies of one simulator each: the one that is furthest behind goes next, until all have made the step.

    Of those that stand at the same time, the first one goes. Each steps by a whole part of the step.
    """

    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Try:
    """A body that is done to the end of the step in as many parts as there are events on the way."""

    body: Body
    found: bool = True
    """A step may end early, at an event that was found in it: all roll back and meet it there."""
    announced: bool = False
    """A part ends at the earliest event that a simulator has announced; nothing rolls back for that."""
    last: str = ""
    """The one that cannot roll back: it steps when all have that may end the step early; empty: all can."""


@dataclass(frozen=True, slots=True)
class React:
    """At an instant: hand over what is present, evaluate, store values and presence.

    Skipped where nothing is present and nothing is due.
    """

    sim: str


@dataclass(frozen=True, slots=True)
class Commit:
    """The instant ends, for all of these simulators that have reacted together."""

    sims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Instant:
    """A body at n = 1, 2 ... of the time reached, until no simulator asks for another; no time passes.

    Skipped where nothing is due. At the end of a step of a level inside another, the one around it takes
    the instants of both together.
    """

    body: Body
    at_most: int
    continues: bool = False
    """Whether a simulator whose events pile up, or chatter, goes on with events that are further apart."""


@dataclass(frozen=True, slots=True)
class Adapt:
    """A body whose steps are as long as their error allows, until the end of the level's step."""

    body: Body
    control: Control


@dataclass(frozen=True, slots=True)
class Save:
    """Keep where these simulators stand, one place each: a later Save of the same one replaces it."""

    sims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restore:
    """Roll back to where these simulators were saved: states, clocks, extrapolator memory and samples.

    The newest iterate stays: the Repeat around it owns that. Inputs keep the curves they were fed with: those
    that were fed after the Save are fed anew before the next step.
    """

    sims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A body, until the values exchanged in it agree with those of the repetition before.

    What it steps is saved before it and restored at the start of each repetition.
    """

    body: Body
    until: float | None
    """The residual, relative to the values, that ends it; None: always `at_most` repetitions."""
    at_most: int
    accelerate: Accelerator | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """Keep a row; it replaces one that was kept at the same time."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send what is new of these outputs from one host to another, in one message; none, where nothing is."""

    source: str
    target: str
    ports: tuple[str, ...]
    """Paths of outputs, `left.x`: those that are fed next. Whatever else is used there goes with them."""


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for what was sent from one host to another, if anything was; its samples are stored."""

    source: str
    target: str
    ports: tuple[str, ...]


Instruction: TypeAlias = (
    Admit
    | Feed
    | Step
    | Read
    | Solve
    | Together
    | Times
    | Next
    | Try
    | Adapt
    | Save
    | Restore
    | Repeat
    | Record
    | React
    | Commit
    | Instant
    | Send
    | Receive
)
Body: TypeAlias = tuple[Instruction, ...]

Place: TypeAlias = tuple[int, ...]
"""Where an instruction stands: the third is (3,), the second inside its body (3, 2)."""
Spot: TypeAlias = tuple[Place, Instruction]
"""An instruction at its place."""


def inner_bodies(instruction: Instruction, place: Place) -> Iterator[tuple[Body, Place]]:
    """Yield the bodies inside an instruction with the place that their instructions count from."""
    match instruction:
        case Times(_, body) | Try(body) | Adapt(body) | Repeat(body) | Instant(body):
            yield body, place
        case Together(bodies) | Next(bodies):
            for number, body in enumerate(bodies, 1):
                yield body, (*place, number)
        case (
            Admit() | Feed() | Step() | Read() | Solve() | Save() | Restore() | Record() | React() | Commit()
        ):
            pass
        case Send() | Receive():
            pass
        case _:
            _expect_no_other(instruction)


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
        case Feed(sim) | Step(sim) | Read(sim) | React(sim):
            return (sim,)
        case Solve(sims) | Save(sims) | Restore(sims) | Commit(sims):
            return sims
        case Admit() | Record() | Together() | Times() | Next() | Try() | Adapt() | Repeat() | Instant():
            return ()
        case Send() | Receive():
            return ()
        case _:
            _expect_no_other(instruction)
            return ()


def _expect_no_other(instruction: Never) -> None:
    """Let mypy reject a match that leaves out an instruction, as `assert_never` does.

    It raises nothing: a plan that was written by hand may hold anything until it is verified.
    """


def feedback_drives(body: Body, wiring: Wiring) -> Iterator[Drive]:
    """Yield what a repetition of a body takes from the one before: drives by outputs that are read later."""
    number, read = wiring.numbers(), set[tuple[int, int]]()
    for _, instruction in walk(body):
        children = [number[sim] for sim in named_simulators(instruction)]
        for child in children if isinstance(instruction, Feed | Solve) else ():
            fed = instruction.ports if isinstance(instruction, Feed) else ()
            for port, drive in zip(wiring.models[child].inputs, wiring.drives[child], strict=True):
                named = not fed or port.name in fed
                if drive is not None and drive.child >= 0 and named and (drive.child, drive.port) not in read:
                    yield drive
        for child in children if isinstance(instruction, Read | Solve) else ():
            shown = instruction.ports if isinstance(instruction, Read) else ()
            chosen = number_ports(shown, wiring.models[child].outputs)
            every = range(len(wiring.models[child].outputs)) if chosen is None else chosen
            read.update((child, port) for port in every)


def number_ports(names: tuple[str, ...], ports: Sequence[Port]) -> set[int] | None:
    """Return the numbers of the ports that an instruction names; None: it names none, and means all."""
    return {number for number, port in enumerate(ports) if port.name in names} if names else None


def tries(body: Body) -> bool:
    """Return whether the steps of a body may end early, where an event is found."""
    return any(
        (isinstance(each, Try) and each.found) or (isinstance(each, Adapt) and tries(each.body))
        for each in body
    )


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
            case Times(_, inner) | Try(inner) | Repeat(inner) | Instant(inner):
                yield from step_fractions(inner)
            case Together(bodies) | Next(bodies):
                yield from {fraction for inner in bodies for fraction in step_fractions(inner)}
            case Admit() | Feed() | Read() | Solve() | Save() | Restore() | Record() | React() | Commit():
                pass
            case Send() | Receive():
                pass
            case _:
                assert_never(instruction)


_VERBS = {Feed: "feed", Step: "step", Read: "read", React: "react"}


def describe_body(body: Body, indent: str) -> Iterator[str]:
    """Yield a body in words; neighbours of one kind share a line."""
    at = 0
    while at < len(body):
        instruction = body[at]
        run = at
        while run < len(body) and _share_line(body[run], instruction):
            run += 1
        match instruction:
            case Feed() | Step() | Read() | React():
                yield f"{indent}{_describe_simple(body[at:run])}"
                at = run - 1
            case Times(_, inner) | Try(inner) | Adapt(inner) | Repeat(inner) | Instant(inner):
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
            case Admit() | Solve() | Save() | Restore() | Record() | Commit() | Send() | Receive():
                yield f"{indent}{describe_instruction(instruction)}"
            case _:
                _expect_no_other(instruction)
                yield f"{indent}{describe_instruction(instruction)}"
        at += 1


def describe_instruction(instruction: Instruction) -> str:
    """Return one instruction in words, without the bodies inside it."""
    match instruction:
        case Feed() | Step() | Read() | React():
            return _describe_simple([instruction])
        case Admit():
            return "admit the inputs from outside"
        case Record():
            return "record"
        case Solve(_, ports):
            return f"solve the loop {join_names(ports)}"
        case Times(n):
            return f"{n} times"
        case Try(_, found, announced, last):
            to = " to the next event that is announced" if announced else ""
            who = f"all roll back before {last} steps" if last else "all roll back"
            early = f"; if one ends early, {who}, meet it there, and go on" if found else ""
            return f"try{to}{early}"
        case Commit(sims):
            return f"commit {join_names(sims)}"
        case Instant(_, at_most, continues):
            past = "; where events pile up, on with fewer of them" if continues else ""
            return f"at an event, instant after instant, at most {at_most}{past}"
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
        case Send(source, target, ports):
            return f"send from {source} to {target}: {join_names(ports)}"
        case Receive(source, target, ports):
            return f"receive at {target} from {source}: {join_names(ports)}"
        case Repeat(_, until, at_most, accelerate):
            how = "" if accelerate is None else f", {accelerate.describe()}"
            end = "" if until is None else f"until the values agree to {until:g}, at most "
            return f"repeat {end}{at_most} times{how}"
        case _:
            _expect_no_other(instruction)
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
    return type(one) is type(other) and isinstance(one, (Feed, Read, React))


def _describe_simple(instructions: Sequence[Instruction]) -> str:
    first = instructions[0]
    names = [
        f"{i.sim} ({', '.join(i.ports)})" if isinstance(i, (Feed, Read)) and i.ports else i.sim
        for i in instructions
        if isinstance(i, (Feed, Step, Read, React))
    ]
    part = f" by {first.fraction} of it" if isinstance(first, Step) and first.fraction != 1 else ""
    return f"{_VERBS[type(first)]} {join_names(names)}{part}"
