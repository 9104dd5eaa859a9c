"""A plan as the native engine runs it: operations on many children at once.

In:  a body of instructions, and the level it is for
Out: operations of compiled code; neighbours of one kind are merged
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, TypeVar, assert_never

import hocket._native as _native
from hocket import plan
from hocket.engine.algebraic_loops import SLOPE, VALUE, Unknown
from hocket.engine.reference.iteration import predicted_samples
from hocket.engine.reference.level import Level
from hocket.engine.reference.rollback import rest_of_lone_step
from hocket.engine.reference.step_control import controlled_outputs
from hocket.errors import InternalError
from hocket.model.protocols import native_twin
from hocket.plan.accelerators import Accelerator, Aitken, Newton, QuasiNewton, Relax
from hocket.plan.instructions import inner_bodies, named_simulators, number_ports
from hocket.simulators.state_space import StateSpaceSimulator


def insert_accounts(operations: list[_native.Operation], level: Level) -> list[_native.Operation]:
    """Return the operations of a body with those of the accounts."""
    if not level.ledger.sides:
        return operations
    before: list[_native.Operation | None] = [None, *operations]
    program: list[_native.Operation] = []
    closing, alike = _PendingCloses(), can_reopen_accounts(level)
    stepped = closing.stepped if alike and _reads_twice(level) else None
    for last, now in zip(before, operations, strict=False):
        program += closing.flush_before(now)
        if not isinstance(now, _ACCOUNTED):
            program.append(now)
            continue
        accounts = _accounts(now, level, stepped)
        if accounts.none:
            program.append(now)
            continue
        if not isinstance(now, _READS) and not alike:
            program.append(_native.OpenAccountsOperation(held=accounts.held, moving=accounts.moving))
        program.append(now)
        if isinstance(now, _native.StepReadOperation) and alike:
            closing.wait(now, accounts, fed=_feeds(last, now))
        elif not isinstance(now, _native.StepOperation):
            program.append(_close(accounts, reopens=alike))
    return [*program, *closing.flush()]


_READS = _native.ReadOperation, _native.ReadPortsOperation
_ACCOUNTED = _native.StepOperation, _native.StepReadOperation, *_READS
"""What opens or closes accounts."""


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
    fraction: _native.Fraction | None = None,
    fed: bool = False,
) -> _native.CloseAccountsOperation:
    return _native.CloseAccountsOperation(
        held=accounts.held,
        moving=accounts.moving,
        ticks=ticks,
        fraction=fraction or _native.Fraction(numerator=1, denominator=1),
        reopens=reopens,
        fed=fed,
    )


class _PendingCloses:
    """Accounts of steps of a known length that are closed together, when the last of these steps was made.

    Nothing that they look at changes until the simulator itself is fed or steps again.
    """

    def __init__(self) -> None:
        self.waiting: dict[tuple[int, bool, int, int], tuple[_native.Fraction, _Accounts]] = {}
        self.children: set[int] = set()
        self.stepped: set[int] = set()
        """What made a step, and was not read since."""

    def wait(self, step: _native.StepReadOperation, accounts: _Accounts, fed: bool) -> None:
        """Keep accounts of a step that was read for later; `fed`: its inputs were fed right before it."""
        fraction = step.fraction
        key = step.ticks, fed, fraction.numerator, fraction.denominator
        _, together = self.waiting.setdefault(key, (fraction, _Accounts()))
        together.held += accounts.held
        together.moving += accounts.moving
        self.children |= set(step.children)

    def flush_before(self, operation: _native.Operation) -> list[_native.Operation]:
        """Return what must be closed before an operation."""
        if isinstance(
            operation, (_native.FeedOperation, _native.StepReadOperation)
        ) and self.children.isdisjoint(operation.children):
            return []
        return self.flush()

    def flush(self) -> list[_native.Operation]:
        """Return what waits; nothing does after that."""
        every: list[_native.Operation] = [
            _close(accounts, True, ticks, fraction, fed)
            for (ticks, fed, _, _), (fraction, accounts) in self.waiting.items()
        ]
        self.waiting, self.children = {}, set()
        return every


def _accounts(
    operation: _native.StepOperation
    | _native.ReadOperation
    | _native.StepReadOperation
    | _native.ReadPortsOperation,
    level: Level,
    stepped: set[int] | None,
) -> _Accounts:
    """Return the accounts of power bonds that an operation opens or closes.

    Where outputs are read twice, only what `stepped` since the first time has something to close.
    """
    children, ports = (
        ([operation.child], operation.ports)
        if isinstance(operation, _native.ReadPortsOperation)
        else (operation.children, None)
    )
    if stepped is not None:
        stepped |= set(() if isinstance(operation, _native.ReadOperation) else children)
        closing = [child for child in children if child in stepped]
        stepped -= set(() if isinstance(operation, _native.StepOperation) else children)
        children = closing
    accounts = _Accounts()
    for number in (number for child in children for number in level.ledger.of.get(child, ())):
        if ports is not None and level.ledger.sides[number].account.output not in ports:
            continue
        (accounts.held if level.ledger.has_held_input(level, number) else accounts.moving).append(number)
    return accounts


def _feeds(last: _native.Operation | None, step: _native.StepReadOperation) -> bool:
    """Return whether the operation before a step fed its inputs: it needs no look at the clock then."""
    return isinstance(last, _native.FeedOperation) and set(step.children) <= set(last.children)


def can_reopen_accounts(level: Level) -> bool:
    """Return whether accounts can be opened again as they are closed.

    Nothing must happen to their outputs between the end of a step and the start of the next. Where outputs
    are read again, or steps are made again, that is so for those that follow from the state alone.
    """
    sides = level.ledger.sides
    every = [each for _, each in plan.walk(level.plan.step)]
    single = any(isinstance(each, (plan.Solve, plan.Instant)) or names_ports(each) for each in every)
    if level.plan.output or single:
        return False
    if any(side.asked or side.anew for side in sides) or _steps_before_read(level.plan.step, set()):
        return False
    twice = _reads_twice(level)
    if twice and not all(map(_is_sequential, every)):
        return False
    again = twice or any(isinstance(each, (plan.Save, plan.Repeat)) for each in every)
    return not (again and any(level.ledger.reacts(level, side) for side in sides))


def names_ports(instruction: plan.Instruction) -> bool:
    """Return whether an instruction feeds or reads some ports of a simulator, and not all."""
    return isinstance(instruction, (plan.Feed, plan.Read)) and bool(instruction.ports)


def _steps_before_read(body: plan.Body, stepped: set[str]) -> bool:
    """Return whether one makes a step before the last one was read: an account goes over both."""
    for each in body:
        if isinstance(each, plan.Step):
            if each.sim in stepped:
                return True
            stepped.add(each.sim)
        elif isinstance(each, (plan.Read, plan.Restore)):
            stepped -= set(named_simulators(each))
        times = 2 if isinstance(each, (plan.Times, plan.Next)) else 1
        if any(
            _steps_before_read(inner, stepped) for inner, _ in inner_bodies(each, ()) for _ in range(times)
        ):
            return True
    return False


def _reads_twice(level: Level) -> bool:
    """Return whether outputs are read more than once in a step."""
    read = [each.sim for _, each in plan.walk(level.plan.step) if isinstance(each, plan.Read)]
    return len(read) > len(set(read))


def _is_sequential(instruction: plan.Instruction) -> bool:
    """Return whether steps and reads inside an instruction follow each other in one body."""
    if isinstance(instruction, plan.Together):
        return all(len(body) == 1 for body in instruction.bodies)
    return not isinstance(instruction, (plan.Times, plan.Next))


T = TypeVar("T", plan.Solve, plan.Repeat, plan.Adapt)


def program(body: plan.Body, level: Level) -> list[_native.Operation]:
    """Return what the native engine executes for a body."""
    return insert_accounts(_merge_operations(body, level), level)


def find_instructions(of: plan.Plan, kind: type[T]) -> list[T]:
    """Return the instructions of a kind, in the order of the plan of a level."""
    whole = [*plan.walk(of.step), *plan.walk(of.output)]
    return [instruction for _, instruction in whole if isinstance(instruction, kind)]


def _instruction_number(level: Level, instruction: plan.Solve | plan.Repeat | plan.Adapt) -> int:
    """Return which one of its kind an instruction is."""
    alike: list[Any] = find_instructions(level.plan, type(instruction))
    return next(number for number, each in enumerate(alike) if each is instruction)


@dataclass
class _Many:
    """A Feed or Read of several simulators, while more may join it."""

    kind: type[_native.FeedOperation] | type[_native.ReadOperation]
    children: list[int]


def _merge_operations(body: plan.Body, level: Level) -> list[_native.Operation]:
    operations: list[_native.Operation | _Many] = []
    for instruction in body:
        if isinstance(instruction, (plan.Send, plan.Receive)):
            continue  # in one process nothing is sent; messages are counted where values are fed
        fresh = _compile_instruction(instruction, level)
        last = operations[-1] if operations else None
        if isinstance(last, _Many) and isinstance(fresh, _Many) and last.kind is fresh.kind:
            last.children += fresh.children
        elif isinstance(last, _native.StepOperation) and _reads(last, fresh, level):
            operations[-1] = _native.StepReadOperation(
                children=last.children, ticks=last.ticks, fraction=last.fraction, parallel=last.parallel
            )
        else:
            operations.append(fresh)
    return [each.kind(children=each.children) if isinstance(each, _Many) else each for each in operations]


def _reads(step: _native.StepOperation, then: _native.Operation | _Many, level: Level) -> bool:
    """Return whether an operation reads what a step moved, so that compiled code does both in one call."""
    if not isinstance(then, _Many) or then.kind is not _native.ReadOperation:
        return False
    children = step.children
    read = [child for child in children if level.wiring.models[child].outputs]
    return then.children == read and _all_native(level, children)


def _all_native(level: Level, children: list[int]) -> bool:
    simulators = (level.children[child] for child in children)
    return all(isinstance(s, (StateSpaceSimulator, Level)) or native_twin(s) is not None for s in simulators)


def _compile_instruction(instruction: plan.Instruction, level: Level) -> _native.Operation | _Many:
    number = level.number
    match instruction:
        case plan.Feed(sim, ports) if ports:
            chosen = number_ports(ports, level.wiring.models[number[sim]].inputs)
            return _native.FeedPortsOperation(child=number[sim], ports=sorted(chosen or ()))
        case plan.Read(sim, ports) if ports:
            chosen = number_ports(ports, level.wiring.models[number[sim]].outputs)
            return _native.ReadPortsOperation(child=number[sim], ports=sorted(chosen or ()))
        case plan.Feed(sim):
            return _Many(_native.FeedOperation, [number[sim]])
        case plan.Read(sim):
            return _Many(_native.ReadOperation, [number[sim]])
        case plan.Step(sim, fraction):
            return _step([number[sim]], fraction, level)
        case plan.Admit():
            return _native.AdmitOperation()
        case plan.Record():
            return _native.RecordOperation()
        case plan.Solve(sims, ports):
            places = [(*level.wiring.output_places[path], VALUE) for path in ports]
            return _native.SolveOperation(
                children=[number[sim] for sim in sims],
                number=_instruction_number(level, instruction),
                values=_signal_numbers(level, places, VALUE),
            )
        case plan.Save(sims):
            return _native.SaveOperation(children=[number[sim] for sim in sims])
        case plan.Restore(sims):
            return _native.RestoreOperation(children=[number[sim] for sim in sims])
        case plan.Repeat():
            return _compile_repeat(instruction, level)
        case plan.Adapt():
            return _compile_adapt(instruction, level)
        case plan.Next(bodies):
            return _native.NextOperation(bodies=[program(inner, level) for inner in bodies])
        case plan.Times(n, inner):
            return _native.TimesOperation(body=program(inner, level), count=n)
        case plan.Together(bodies):
            return _compile_together(bodies, level)
        case plan.Try(inner, found, announced, last):
            rest = rest_of_lone_step(level, inner) if found else None
            return _native.TryOperation(
                body=program(inner, level),
                rest=None if rest is None else program(rest, level),
                found=found,
                announced=announced,
                scaled=level.length,
                last=number[last] if last else -1,
            )
        case plan.React(sim):
            return _native.ReactOperation(children=[number[sim]])
        case plan.Commit(sims):
            return _native.CommitOperation(children=[number[sim] for sim in sims])
        case plan.Instant(inner, at_most, continues):
            reacts = tuple(each for each in inner if isinstance(each, (plan.React, plan.Solve)))
            commits = tuple(each for each in inner if isinstance(each, (plan.Commit, plan.Record)))
            return _native.InstantOperation(
                body=program(inner, level),
                reacts=program(reacts, level),
                commits=program(commits, level),
                at_most=at_most,
                continues=continues,
            )
        case plan.Send() | plan.Receive():
            raise InternalError("messages between hosts are not compiled")
        case _:
            assert_never(instruction)


def _step(
    children: list[int], fraction: Fraction, level: Level, parallel: bool = False
) -> _native.StepOperation:
    part = _native.Fraction(numerator=fraction.numerator, denominator=fraction.denominator)
    ticks = int(level.length * fraction)
    return _native.StepOperation(children=children, ticks=ticks, fraction=part, parallel=parallel)


def _compile_together(bodies: tuple[plan.Body, ...], level: Level) -> _native.Operation | _Many:
    alone = [body[0] for body in bodies if len(body) == 1]
    steps = [one for one in alone if isinstance(one, plan.Step)]
    if len(steps) == len(bodies) and len({step.fraction for step in steps}) == 1:
        return _step([level.number[step.sim] for step in steps], steps[0].fraction, level, parallel=True)
    for kind, operation in ((plan.Feed, _native.FeedOperation), (plan.Read, _native.ReadOperation)):
        children = [level.number[one.sim] for one in alone if isinstance(one, kind) and not one.ports]
        if len(children) == len(bodies):
            return _Many(operation, children)
    return _native.TogetherOperation(bodies=[program(inner, level) for inner in bodies])


def _compile_repeat(repeat: plan.Repeat, level: Level) -> _native.RepeatOperation:
    places = level.unknowns_of(repeat).places
    return _native.RepeatOperation(
        body=program(repeat.body, level),
        number=_instruction_number(level, repeat),
        at_most=repeat.at_most,
        until=repeat.until,
        values=_signal_numbers(level, places, VALUE),
        slopes=_signal_numbers(level, places, SLOPE),
        samples=predicted_samples(level, repeat),
        accelerator=_accelerator(repeat.accelerate),
    )


ACCELERATORS: Mapping[type[Accelerator], Callable[..., _native.Accelerator]] = {
    Relax: _native.Relaxation,
    Aitken: _native.Aitken,
    QuasiNewton: _native.IqnIls,
    Newton: lambda falls, jacobian: _native.Newton(falls=falls, jacobian=jacobian or ()),
}
"""Those that compiled code knows; they have the same fields there."""


def _accelerator(chosen: Accelerator | None) -> _native.Accelerator:
    return _native.FixedPoint() if chosen is None else ACCELERATORS[type(chosen)](**asdict(chosen))


def _compile_adapt(adapt: plan.Adapt, level: Level) -> _native.AdaptOperation:
    control, pace = adapt.control, level.controller_of(adapt)
    places = controlled_outputs(level)
    return _native.AdaptOperation(
        body=program(adapt.body, level),
        number=_instruction_number(level, adapt),
        signals=_signal_numbers(level, [(child, port, VALUE) for child, port, _ in places], VALUE),
        degrees=[degree for _, _, degree in places],
        controller=_native.StepSizeController(
            tolerance=control.tolerance,
            estimate=_native.Estimate[control.estimate],
            per_unit=control.per_unit,
            gains=control.gains,
            quantum=pace.quantum,
            largest=pace.largest,
            wanted=pace.wanted,
            first=pace.first,
            rejects=control.rejects,
            passes=control.passes,
            safety=control.safety,
            most=control.most,
            least=control.least,
            power=pace.power,
        ),
    )


def _signal_numbers(level: Level, places: Iterable[Unknown], what: int) -> list[int]:
    """Return where outputs are in the array of all outputs of the level."""
    first = level.wiring.first_outputs
    return [first[child] + port for child, port, meant in places if meant == what]
