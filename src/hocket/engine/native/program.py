"""A plan as the native engine runs it: operations on many children at once.

In:  a body of instructions, and the level it is for
Out: Operations, handed over as tuples; neighbours of one kind are merged
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from typing import Any, TypeVar, get_args

import numpy as np

from hocket.engine.algebraic_loops import SLOPE, VALUE, Unknown, output_nodes
from hocket.engine.reference.level import Level
from hocket.engine.reference.step_control import controlled_outputs
from hocket.errors import InternalError
from hocket.plan import (
    Adapt,
    Admit,
    Body,
    Estimate,
    Feed,
    Instruction,
    Next,
    Plan,
    Read,
    Record,
    Repeat,
    Restore,
    Save,
    Solve,
    Step,
    Times,
    Together,
    walk,
)
from hocket.plan.traverse import inner_bodies, named_simulators
from hocket.simulators.state_space import StateSpaceSimulator


@dataclass
class Operation:
    """The twin of `Operation` in level.hpp; the order of the fields is that of the tuple."""

    kind: str
    children: list[int] = field(default_factory=list)
    count: int = 0
    """Ticks of a step, or how often."""
    parallel: bool = False
    bodies: list[list[Operation]] = field(default_factory=list)
    signals: list[int] = field(default_factory=list)
    slopes: list[int] = field(default_factory=list)
    number: int = 0
    """Which one of its kind it is in the plan of its level."""
    until: float = -1.0
    accelerator: str = ""
    numbers: list[float] = field(default_factory=list)
    """Of the accelerator, or of the step control."""
    degrees: list[int] = field(default_factory=list)
    """Of the extrapolations whose error is looked at."""
    part: tuple[int, int] = (1, 1)
    """Numerator and denominator of a step: its part of the level's step."""


def insert_accounts(operations: list[Operation], level: Level) -> list[Operation]:
    """Return the operations of a body with those of the accounts."""
    before: list[Operation | None] = [None, *operations]
    program: list[Operation] = []
    closing, alike = _PendingCloses(), can_reopen_accounts(level)
    stepped = closing.stepped if alike and _reads_twice(level) else None
    for last, now in zip(before, operations, strict=False):
        program += closing.flush_before(now)
        *rest, end = _with_accounts(now, last, level, alike, stepped)
        program += rest
        if not closing.defer(end, now.children):
            program.append(end)
    return [*program, *closing.flush()]


class _PendingCloses:
    """Accounts of steps of a known length that are closed together, when the last of these steps was made.

    Nothing that they look at changes until the simulator itself is fed or steps again.
    """

    def __init__(self) -> None:
        self.waiting: dict[tuple[int, int, tuple[int, int]], Operation] = {}
        self.children: set[int] = set()
        self.stepped: set[int] = set()
        """Who made a step, and was not read since."""

    def defer(self, operation: Operation, children: list[int]) -> bool:
        """Keep an operation that closes accounts of children for later; return whether it can be."""
        if operation.kind != "close" or operation.count == 0:
            return False
        count, number, part = operation.count, operation.number, operation.part
        fresh = Operation("close", count=count, number=number, part=part)
        together = self.waiting.setdefault((count, number, part), fresh)
        together.signals += operation.signals
        together.slopes += operation.slopes
        self.children |= set(children)
        return True

    def flush_before(self, operation: Operation) -> list[Operation]:
        """Return what must be closed before an operation."""
        others = operation.kind in ("feed", "step_read") and self.children.isdisjoint(operation.children)
        return [] if others else self.flush()

    def flush(self) -> list[Operation]:
        """Return what waits; nothing does after that."""
        every = list(self.waiting.values())
        self.waiting, self.children = {}, set()
        return every


def _with_accounts(
    operation: Operation, last: Operation | None, level: Level, alike: bool, stepped: set[int] | None
) -> list[Operation]:
    """Return an operation with the accounts of power bonds that it opens before and closes after it.

    `alike` says that accounts are opened again as they are closed. Steps of one length whose inputs the
    `last` operation fed need no look at the clock. Where outputs are read twice, only who `stepped` since
    the first time has something to close.
    """
    if operation.kind not in ("step", "read", "step_read"):
        return [operation]
    closing = operation.children
    if stepped is not None:
        stepped |= set(() if operation.kind == "read" else operation.children)
        closing = [child for child in operation.children if child in stepped]
        stepped -= set(() if operation.kind == "step" else operation.children)
    numbers = [number for child in closing for number in level.ledger.of.get(child, ())]
    if not numbers:
        return [operation]
    held = [number for number in numbers if level.ledger.has_held_input(level, number)]
    rest = [number for number in numbers if number not in set(held)]
    before = [Operation("open", signals=rest, slopes=held)]
    fixed = alike and operation.kind == "step_read"
    fed = last is not None and last.kind == "feed" and set(operation.children) <= set(last.children)
    after = Operation(
        "close",
        count=operation.count if fixed else 0,
        number=int(alike) + int(fixed and fed),
        signals=rest,
        slopes=held,
        part=operation.part,
    )
    return [
        *(before if operation.kind != "read" and not alike else ()),
        operation,
        *((after,) if operation.kind != "step" else ()),
    ]


def can_reopen_accounts(level: Level) -> bool:
    """Return whether accounts can be opened again as they are closed.

    Nothing must happen to their outputs between the end of a step and the start of the next. Where outputs
    are read again, or steps are made again, that is so for those that follow from the state alone.
    """
    sides = level.ledger.sides
    every = [each for _, each in walk(level.plan.step)]
    if level.plan.output or any(isinstance(each, Solve) for each in every):
        return False
    if any(side.asked or side.anew for side in sides) or _steps_before_read(level.plan.step, set()):
        return False
    twice = _reads_twice(level)
    if twice and not all(map(_is_sequential, every)):
        return False
    again = twice or any(isinstance(each, (Save, Repeat)) for each in every)
    return not (again and any(level.ledger.reacts(level, side) for side in sides))


def _steps_before_read(body: Body, stepped: set[str]) -> bool:
    """Return whether anyone makes a step before the last one was read: an account goes over both."""
    for each in body:
        if isinstance(each, Step):
            if each.sim in stepped:
                return True
            stepped.add(each.sim)
        elif isinstance(each, (Read, Restore)):
            stepped -= set(named_simulators(each))
        times = 2 if isinstance(each, (Times, Next)) else 1
        if any(
            _steps_before_read(inner, stepped) for inner, _ in inner_bodies(each, ()) for _ in range(times)
        ):
            return True
    return False


def _reads_twice(level: Level) -> bool:
    """Return whether outputs are read more than once in a step."""
    read = [each.sim for _, each in walk(level.plan.step) if isinstance(each, Read)]
    return len(read) > len(set(read))


def _is_sequential(instruction: Instruction) -> bool:
    """Return whether steps and reads inside an instruction follow each other in one body."""
    if isinstance(instruction, Together):
        return all(len(body) == 1 for body in instruction.bodies)
    return not isinstance(instruction, (Times, Next))


T = TypeVar("T", Solve, Repeat, Adapt)


def encode_body(body: Body, level: Level) -> list[tuple[Any, ...]]:
    """Return a body as plain tuples."""
    return [astuple(operation) for operation in _compile_body(body, level)]


def find_instructions(plan: Plan, kind: type[T]) -> list[T]:
    """Return the instructions of a kind, in the order of the plan of a level."""
    whole = [*walk(plan.step), *walk(plan.output)]
    return [instruction for _, instruction in whole if isinstance(instruction, kind)]


def _instruction_number(level: Level, instruction: Solve | Repeat | Adapt) -> int:
    """Return which one of its kind an instruction is."""
    alike: list[Any] = find_instructions(level.plan, type(instruction))
    return next(number for number, each in enumerate(alike) if each is instruction)


def _compile_body(body: Body, level: Level) -> list[Operation]:
    return insert_accounts(_merge_operations(body, level), level)


def _merge_operations(body: Body, level: Level) -> list[Operation]:
    operations: list[Operation] = []
    for instruction in body:
        fresh = _compile_instruction(instruction, level)
        if operations:
            last = operations[-1]
            if fresh.kind == last.kind in ("feed", "read"):
                last.children = last.children + fresh.children
                continue
            read = [child for child in last.children if level.wiring.models[child].outputs]
            both = (last.kind, fresh.kind) == ("step", "read") and fresh.children == read
            if both and _all_native(level, last.children):
                last.kind = "step_read"
                continue
        operations.append(fresh)
    return operations


def _all_native(level: Level, children: list[int]) -> bool:
    simulators = (level.children[child] for child in children)
    return all(isinstance(s, (StateSpaceSimulator, Level)) or hasattr(s, "native") for s in simulators)


def _compile_instruction(instruction: Instruction, level: Level) -> Operation:
    number = level.number
    match instruction:
        case Feed(sim):
            return Operation("feed", [number[sim]])
        case Read(sim):
            return Operation("read", [number[sim]])
        case Step(sim, fraction):
            ticks = int(level.length * fraction)
            return Operation("step", [number[sim]], ticks, part=(fraction.numerator, fraction.denominator))
        case Admit():
            return Operation("admit")
        case Record():
            return Operation("record")
        case Solve(sims, ports):
            places: list[Unknown] = [(child, port, VALUE) for child, port in output_nodes(level, ports)]
            signals = _signal_numbers(level, places, VALUE)
            which = _instruction_number(level, instruction)
            return Operation("solve", [number[sim] for sim in sims], signals=signals, number=which)
        case Save(sims):
            return Operation("save", [number[sim] for sim in sims])
        case Restore(sims):
            return Operation("restore", [number[sim] for sim in sims])
        case Repeat():
            return _compile_repeat(instruction, level)
        case Adapt():
            return _compile_adapt(instruction, level)
        case Next(bodies):
            return Operation("next", bodies=[_compile_body(inner, level) for inner in bodies])
        case Times(n, inner):
            return Operation("times", count=n, bodies=[_compile_body(inner, level)])
        case Together(bodies):
            return _compile_together(bodies, level)
    raise InternalError(f"the native engine does not know {instruction}")


def _compile_together(bodies: tuple[Body, ...], level: Level) -> Operation:
    each = [_compile_instruction(inner[0], level) for inner in bodies if len(inner) == 1]
    alike = all((one.kind, one.count) == (each[0].kind, each[0].count) for one in each)
    if len(each) == len(bodies) and alike and each[0].kind in ("feed", "read", "step"):
        children = [one.children[0] for one in each]
        return Operation(each[0].kind, children, each[0].count, each[0].kind == "step", part=each[0].part)
    return Operation("together", parallel=True, bodies=[_compile_body(inner, level) for inner in bodies])


def _compile_repeat(repeat: Repeat, level: Level) -> Operation:
    places = level.unknowns_of(repeat).places
    led = repeat.accelerate
    return Operation(
        "repeat",
        count=repeat.at_most,
        bodies=[_compile_body(repeat.body, level)],
        signals=_signal_numbers(level, places, VALUE),
        slopes=_signal_numbers(level, places, SLOPE),
        number=_instruction_number(level, repeat),
        until=-1.0 if repeat.until is None else repeat.until,
        accelerator="" if led is None else type(led).__name__,
        numbers=[] if led is None else [float(number) for number in astuple(led)],
    )


ESTIMATES: tuple[str, ...] = get_args(Estimate)


def _compile_adapt(adapt: Adapt, level: Level) -> Operation:
    control, pace = adapt.control, level.controller_of(adapt)
    places = controlled_outputs(level)
    numbers = [
        control.tolerance, ESTIMATES.index(control.estimate), control.per_unit, *control.gains,
        pace.quantum, pace.wanted, pace.largest, control.rejects, control.safety, control.most, control.least,
        pace.power,
    ]  # fmt: skip
    return Operation(
        "adapt",
        bodies=[_compile_body(adapt.body, level)],
        signals=_signal_numbers(level, [(child, port, VALUE) for child, port, _ in places], VALUE),
        number=_instruction_number(level, adapt),
        numbers=[float(number) for number in numbers],
        degrees=[degree for _, _, degree in places],
    )


def _signal_numbers(level: Level, places: Any, what: int) -> list[int]:
    """Return where outputs are in the array of all outputs of the level."""
    first = np.cumsum([0, *(len(model.outputs) for model in level.wiring.models)])
    return [int(first[child]) + port for child, port, meant in places if meant == what]
