"""When the native engine opens and closes the accounts of power bonds: as seldom as the plan allows.

In:  the operations of a body
Out: the same, with those that open and close accounts in between

The interpreter opens an account before every step and closes it after the read; what comes out is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hocket._native import (
    CloseAccountsOperation,
    FeedOperation,
    Fraction,
    OpenAccountsOperation,
    Operation,
    ReadOperation,
    StepOperation,
    StepReadOperation,
)
from hocket.engine.interpreter import Level
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
from hocket.plan.walking import named, parts


def accounted(operations: list[Operation], level: Level) -> list[Operation]:
    """Return the operations of a body with those of the accounts."""
    before: list[Operation | None] = [None, *operations]
    program: list[Operation] = []
    closing, alike = _Closing(), plainly_read(level)
    stepped = closing.stepped if alike and _read_twice(level) else None
    for last, now in zip(before, operations, strict=False):
        program += closing.due_before(now)
        if not isinstance(now, (StepOperation, ReadOperation, StepReadOperation)):
            program.append(now)
            continue
        accounts = _accounts(now, level, stepped)
        if accounts.none:
            program.append(now)
            continue
        if not isinstance(now, ReadOperation) and not alike:
            program.append(OpenAccountsOperation(held=accounts.held, moving=accounts.moving))
        program.append(now)
        if isinstance(now, StepReadOperation) and alike:
            closing.wait(now, accounts, fed=_feeds(last, now))
        elif not isinstance(now, StepOperation):
            program.append(_close(accounts, reopens=alike))
    return [*program, *closing.due()]


@dataclass
class _Accounts:
    """Accounts by their numbers: those of held inputs, and those of inputs that move within a step."""

    held: list[int] = field(default_factory=list)
    moving: list[int] = field(default_factory=list)

    @property
    def none(self) -> bool:
        """Whether there are none."""
        return not self.held and not self.moving


def _close(
    accounts: _Accounts,
    reopens: bool,
    ticks: int = 0,
    fraction: Fraction | None = None,
    fed: bool = False,
) -> CloseAccountsOperation:
    return CloseAccountsOperation(
        held=accounts.held,
        moving=accounts.moving,
        ticks=ticks,
        fraction=fraction or Fraction(numerator=1, denominator=1),
        reopens=reopens,
        fed=fed,
    )


class _Closing:
    """Accounts of steps of a known length that are closed together, when the last of these steps was made.

    Nothing that they look at changes until the simulator itself is fed or steps again.
    """

    def __init__(self) -> None:
        self.waiting: dict[tuple[int, bool, int, int], tuple[Fraction, _Accounts]] = {}
        self.children: set[int] = set()
        self.stepped: set[int] = set()
        """Who made a step, and was not read since."""

    def wait(self, step: StepReadOperation, accounts: _Accounts, fed: bool) -> None:
        """Keep accounts of a step that was read for later; `fed`: its inputs were fed right before it."""
        fraction = step.fraction
        key = step.ticks, fed, fraction.numerator, fraction.denominator
        _, together = self.waiting.setdefault(key, (fraction, _Accounts()))
        together.held += accounts.held
        together.moving += accounts.moving
        self.children |= set(step.children)

    def due_before(self, operation: Operation) -> list[Operation]:
        """Return what must be closed before an operation."""
        if isinstance(operation, (FeedOperation, StepReadOperation)) and self.children.isdisjoint(
            operation.children
        ):
            return []
        return self.due()

    def due(self) -> list[Operation]:
        """Return what waits; nothing does after that."""
        every: list[Operation] = [
            _close(accounts, True, ticks, fraction, fed)
            for (ticks, fed, _, _), (fraction, accounts) in self.waiting.items()
        ]
        self.waiting, self.children = {}, set()
        return every


def _accounts(
    operation: StepOperation | ReadOperation | StepReadOperation, level: Level, stepped: set[int] | None
) -> _Accounts:
    """Return the accounts of power bonds that an operation opens or closes.

    Where outputs are read twice, only who `stepped` since the first time has something to close.
    """
    children = operation.children
    if stepped is not None:
        stepped |= set(() if isinstance(operation, ReadOperation) else children)
        closing = [child for child in children if child in stepped]
        stepped -= set(() if isinstance(operation, StepOperation) else children)
        children = closing
    accounts = _Accounts()
    for number in (number for child in children for number in level.ledger.of.get(child, ())):
        (accounts.held if level.ledger.held(level, number) else accounts.moving).append(number)
    return accounts


def _feeds(last: Operation | None, step: StepReadOperation) -> bool:
    """Return whether the operation before a step fed its inputs: it needs no look at the clock then."""
    return isinstance(last, FeedOperation) and set(step.children) <= set(last.children)


def plainly_read(level: Level) -> bool:
    """Return whether accounts can be opened again as they are closed.

    Nothing must happen to their outputs between the end of a step and the start of the next. Where outputs
    are read again, or steps are made again, that is so for those that follow from the state alone.
    """
    sides = level.ledger.sides
    every = [each for _, each in walk(level.plan.step)]
    if level.plan.output or any(isinstance(each, Solve) for each in every):
        return False
    if any(side.asked or side.anew for side in sides) or _unread(level.plan.step, set()):
        return False
    twice = _read_twice(level)
    if twice and not all(map(_straight, every)):
        return False
    again = twice or any(isinstance(each, (Save, Repeat)) for each in every)
    return not (again and any(level.ledger.reacts(level, side) for side in sides))


def _unread(body: Body, stepped: set[str]) -> bool:
    """Return whether anyone makes a step before the last one was read: an account goes over both."""
    for each in body:
        if isinstance(each, Step):
            if each.sim in stepped:
                return True
            stepped.add(each.sim)
        elif isinstance(each, (Read, Restore)):
            stepped -= set(named(each))
        times = 2 if isinstance(each, (Times, Next)) else 1
        if any(_unread(inner, stepped) for inner, _ in parts(each, ()) for _ in range(times)):
            return True
    return False


def _read_twice(level: Level) -> bool:
    """Return whether outputs are read more than once in a step."""
    read = [each.sim for _, each in walk(level.plan.step) if isinstance(each, Read)]
    return len(read) > len(set(read))


def _straight(instruction: Instruction) -> bool:
    """Return whether steps and reads inside an instruction follow each other in one body."""
    if isinstance(instruction, Together):
        return all(len(body) == 1 for body in instruction.bodies)
    return not isinstance(instruction, (Times, Next))
