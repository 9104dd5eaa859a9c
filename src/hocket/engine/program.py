"""A plan as the native engine runs it: operations on many children at once.

In:  a body of instructions, and the level it is for
Out: Operations, handed over as tuples; neighbours of one kind are merged
"""

from __future__ import annotations

from dataclasses import astuple
from typing import Any, TypeVar, get_args

import numpy as np

from hocket.engine.accounting import insert_accounts
from hocket.engine.adapting import controlled_outputs
from hocket.engine.interpreter import Level
from hocket.engine.loops import output_nodes
from hocket.engine.operations import Operation
from hocket.engine.unknowns import SLOPE, VALUE, Unknown
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
from hocket.simulators.state_space import StateSpaceSimulator

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
