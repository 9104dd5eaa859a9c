"""A plan as the native engine runs it: operations on many children at once.

In:  a body of instructions, and the level it is for
Out: operations of compiled code; neighbours of one kind are merged
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar, assert_never

import numpy as np

from hocket import _native
from hocket.engine.accounting import accounted
from hocket.engine.adapting import controlled
from hocket.engine.interpreter import Level
from hocket.engine.loops import nodes_of
from hocket.engine.unknowns import SLOPE, VALUE, Unknown
from hocket.errors import InternalError
from hocket.plan import (
    Adapt,
    Admit,
    Body,
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
from hocket.plan.accelerators import Accelerator, Aitken, Newton, QuasiNewton, Relax
from hocket.simulators.state_space import StateSpaceSimulator

T = TypeVar("T", Solve, Repeat, Adapt)


def program(body: Body, level: Level) -> list[_native.Operation]:
    """Return what the native engine executes for a body."""
    return accounted(_merged(body, level), level)


def found(plan: Plan, kind: type[T]) -> list[T]:
    """Return the instructions of a kind, in the order of the plan of a level."""
    whole = [*walk(plan.step), *walk(plan.output)]
    return [instruction for _, instruction in whole if isinstance(instruction, kind)]


def _number(level: Level, instruction: Solve | Repeat | Adapt) -> int:
    """Return which one of its kind an instruction is."""
    alike: list[Any] = found(level.plan, type(instruction))
    return next(number for number, each in enumerate(alike) if each is instruction)


@dataclass
class _Many:
    """A Feed or Read of several simulators, while more may join it."""

    kind: type[_native.FeedOperation] | type[_native.ReadOperation]
    children: list[int]


def _merged(body: Body, level: Level) -> list[_native.Operation]:
    operations: list[_native.Operation | _Many] = []
    for instruction in body:
        fresh = _operation(instruction, level)
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
    return then.children == read and _compiled(level, children)


def _compiled(level: Level, children: list[int]) -> bool:
    simulators = (level.children[child] for child in children)
    return all(isinstance(s, (StateSpaceSimulator, Level)) or hasattr(s, "native") for s in simulators)


def _operation(instruction: Instruction, level: Level) -> _native.Operation | _Many:
    number = level.number
    match instruction:
        case Feed(sim):
            return _Many(_native.FeedOperation, [number[sim]])
        case Read(sim):
            return _Many(_native.ReadOperation, [number[sim]])
        case Step(sim, fraction):
            return _step([number[sim]], fraction, level)
        case Admit():
            return _native.AdmitOperation()
        case Record():
            return _native.RecordOperation()
        case Solve(sims, ports):
            places: list[Unknown] = [(child, port, VALUE) for child, port in nodes_of(level, ports)]
            return _native.SolveOperation(
                children=[number[sim] for sim in sims],
                number=_number(level, instruction),
                values=_signals(level, places, VALUE),
            )
        case Save(sims):
            return _native.SaveOperation(children=[number[sim] for sim in sims])
        case Restore(sims):
            return _native.RestoreOperation(children=[number[sim] for sim in sims])
        case Repeat():
            return _repeat(instruction, level)
        case Adapt():
            return _adapt(instruction, level)
        case Next(bodies):
            return _native.NextOperation(bodies=[program(inner, level) for inner in bodies])
        case Times(n, inner):
            return _native.TimesOperation(body=program(inner, level), count=n)
        case Together(bodies):
            return _together(bodies, level)
    raise InternalError(f"the native engine does not know {instruction}")


def _step(
    children: list[int], fraction: Fraction, level: Level, parallel: bool = False
) -> _native.StepOperation:
    part = _native.Fraction(numerator=fraction.numerator, denominator=fraction.denominator)
    ticks = int(level.length * fraction)
    return _native.StepOperation(children=children, ticks=ticks, fraction=part, parallel=parallel)


def _together(bodies: tuple[Body, ...], level: Level) -> _native.Operation | _Many:
    each = [inner[0] for inner in bodies if len(inner) == 1]
    if len(each) == len(bodies):
        children = [level.number[one.sim] for one in each if isinstance(one, (Feed, Read, Step))]
        if all(isinstance(one, Feed) for one in each):
            return _Many(_native.FeedOperation, children)
        if all(isinstance(one, Read) for one in each):
            return _Many(_native.ReadOperation, children)
        lengths = {one.fraction for one in each if isinstance(one, Step)}
        if all(isinstance(one, Step) for one in each) and len(lengths) == 1:
            return _step(children, lengths.pop(), level, parallel=True)
    return _native.TogetherOperation(bodies=[program(inner, level) for inner in bodies])


def _repeat(repeat: Repeat, level: Level) -> _native.RepeatOperation:
    places = level.unknowns_of(repeat).places
    return _native.RepeatOperation(
        body=program(repeat.body, level),
        number=_number(level, repeat),
        at_most=repeat.at_most,
        until=repeat.until,
        values=_signals(level, places, VALUE),
        slopes=_signals(level, places, SLOPE),
        accelerator=_accelerator(repeat.accelerate),
    )


def _accelerator(chosen: Accelerator | None) -> _native.Accelerator:
    match chosen:
        case None:
            return _native.FixedPoint()
        case Relax(factor):
            return _native.Relaxation(factor=factor)
        case Aitken(first):
            return _native.Aitken(first=first)
        case QuasiNewton(reuse, limit):
            return _native.IqnIls(reuse=reuse, filter=limit)
        case Newton(falls):
            return _native.Newton(falls=falls)
    assert_never(chosen)


def _adapt(adapt: Adapt, level: Level) -> _native.AdaptOperation:
    control, pace = adapt.control, level.pace_of(adapt)
    places = controlled(level)
    return _native.AdaptOperation(
        body=program(adapt.body, level),
        number=_number(level, adapt),
        signals=_signals(level, [(child, port, VALUE) for child, port, _ in places], VALUE),
        degrees=[degree for _, _, degree in places],
        controller=_native.StepSizeController(
            tolerance=control.tolerance,
            estimate=_native.Estimate[control.estimate],
            per_unit=control.per_unit,
            gains=control.gains,
            quantum=pace.quantum,
            largest=pace.largest,
            wanted=pace.wanted,
            rejects=control.rejects,
            safety=control.safety,
            most=control.most,
            least=control.least,
            power=pace.power,
        ),
    )


def _signals(level: Level, places: Iterable[Unknown], what: int) -> list[int]:
    """Return where outputs are in the array of all outputs of the level."""
    first = np.cumsum([0, *(len(model.outputs) for model in level.wiring.models)])
    return [int(first[child]) + port for child, port, meant in places if meant == what]
