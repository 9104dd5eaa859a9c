"""When the native engine opens and closes the accounts of power bonds: as seldom as the plan allows.

In:  the operations of a body
Out: the same, with those that open and close accounts in between

The interpreter opens an account before every step and closes it after the read; what comes out is the same.
"""

from __future__ import annotations

from hocket.engine.interpreter import Level
from hocket.engine.operations import Operation
from hocket.plan import (
    Body,
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
    walk,
)
from hocket.plan.walking import inner_bodies, named_simulators


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
