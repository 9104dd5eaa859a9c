"""Levels that compiled code runs without a program: sampled, with one linear simulator inside.

In:  a Level after its start, and what is recorded
Out: whether it can be condensed, and the child of a native level that it becomes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

import hocket._native as _native
from hocket import plan
from hocket.coupling.wiring import OWN, Drive
from hocket.engine.native.matrices import Matrices
from hocket.engine.reference.level import Level
from hocket.engine.selection import RecordedTable
from hocket.simulators.state_space import StateSpaceSimulator

MOST = 4
"""Inputs, and outputs, of a condensed level."""


def flatten(body: plan.Body) -> Iterator[plan.Instruction]:
    """Yield the instructions of a body and of those that it does together."""
    for each in body:
        if isinstance(each, plan.Together):
            for inner in each.bodies:
                yield from flatten(inner)
        elif not isinstance(each, (plan.Send, plan.Receive)):  # in one process nothing is sent
            yield each


def keeps_step(level: Level) -> bool:
    """Return whether all children of a level are fed and read when they stand at the same time.

    Then a latched input, which does not look ahead, is the same as one that is held.
    """
    steps = [_shape(each) for each in _straight(level.plan.step)]
    if "" in steps or any(_shape(each) in ("", "step") for each in _straight(level.plan.output)):
        return False
    moves = [place for place, shape in enumerate(steps) if shape == "step"]
    return not moves or moves == list(range(moves[0], moves[-1] + 1))


def _straight(body: plan.Body) -> Iterator[plan.Instruction]:
    """Yield instructions in the order of execution, those of steps that end at events and of instants too."""
    for each in flatten(body):
        if isinstance(each, (plan.Try, plan.Instant)):
            yield from _straight(each.body)
        else:
            yield each


def _shape(each: plan.Instruction) -> str:
    """Return what an instruction is for those that keep step: a step, something at one time, or neither."""
    if isinstance(each, plan.Step):
        return "step" if each.fraction == 1 else ""
    at_once = (plan.Feed, plan.Read, plan.Record, plan.Admit, plan.Solve, plan.React, plan.Commit)
    return "at once" if isinstance(each, at_once) else ""


def can_condense(level: Level, recorded: Iterable[RecordedTable]) -> bool:
    """Return whether compiled code needs no program for a level."""
    if len(level.children) != 1 or not isinstance(level.children[0], StateSpaceSimulator):
        return False
    simulator, wiring, memory = level.children[0], level.wiring, level.memory
    own = [drive for drive in wiring.drives[0] if drive is not None]
    counts = (len(level.starts), len(simulator.model.inputs), len(simulator.model.outputs))
    return (
        level.tree.composite.sampled
        and not level.adaptive
        and level.degree == 0
        and memory.degrees[0] == 0
        and not memory.sloped[0]
        and level.instants.instruction is None
        and all(drive.child == OWN for drive in own)
        and not wiring.texts
        and not level.ledger.sides
        and level.traffic is None
        and simulator.model.energy is None
        and simulator.micro is None
        and max(*counts, len(wiring.outputs)) <= MOST
        and not any(entry.level is level for entry in recorded)
        and _makes_one_step(level)
    )


def _makes_one_step(level: Level) -> bool:
    """Return whether a plan is one step of its only child, which is read after it, and nothing else."""
    body = [each for each in flatten(level.plan.step) if not isinstance(each, (plan.Admit, plan.Record))]
    kinds = [type(each) for each in body]
    again = [type(each) for each in flatten(level.plan.output)]
    whole = all(each.fraction == 1 for each in body if isinstance(each, plan.Step))
    single = all(not each.ports for each in body if isinstance(each, (plan.Feed, plan.Read)))
    read_again = [plan.Feed, plan.Read]
    return (
        whole
        and single
        and kinds in ([plan.Feed, plan.Step, plan.Read], [plan.Feed, plan.Step, plan.Read, *read_again])
        and again in ([], [plan.Admit, *read_again, plan.Record], [plan.Admit, *read_again])
    )


def add_condensed(
    built: _native.Level, level: Level, number: int, matrices: Matrices, lengths: tuple[int, ...]
) -> None:
    """Hand over a level that can be condensed."""
    simulator, memory = level.children[0], level.memory
    assert isinstance(simulator, StateSpaceSimulator)
    built.add_sampled(
        model=matrices.linear_model(simulator, level, 0, lengths),
        z=simulator.z,
        last_h=simulator.last_h or 0.0,
        number=number,
        length=level.length,
        follows=bool(level.plan.output),
        around=level.instants.around,
        taken=[_handed(drive) for drive in level.wiring.drives[0]],
        given=[_handed(drive) for drive in level.wiring.outputs],
        offered=level.offered[1].reshape(-1),
        used=memory.u[0].reshape(-1),
        values=np.array([ring[-1][1] for ring in memory.rings[0]], dtype=float),
    )


def _handed(drive: Drive | None) -> tuple[int, float, float]:
    return (-1, 1.0, 0.0) if drive is None else (drive.port, drive.gain, drive.offset)
