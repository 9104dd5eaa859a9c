"""The start as compiled code makes it: what it needs to know beside the levels, written down once.

In:  a Level, open; the levels of its tree as compiled code numbers them
Out: a StartProgram, plain data: the start that runs it needs no Python
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import hocket._native as _native
from hocket._native import DriveKind
from hocket.coupling.feedthrough import Feedthrough
from hocket.coupling.wiring import CONSTANT, OWN, Drive
from hocket.engine.native.matrices import Matrices
from hocket.engine.reference.level import Level
from hocket.model.ports import Port
from hocket.model.protocols import (
    EventSimulator,
    InitialisationSimulator,
    Simulator,
    native_twin,
    provides,
    settles_at_start,
)
from hocket.plan import first_part
from hocket.planning.cost import distributed_level
from hocket.planning.tree import Leaves, PlanTree, window_degree, window_obstacles
from hocket.simulators.energy_projection import Projected
from hocket.simulators.state_space import StateSpaceSimulator


def start_obstacle(root: Level, levels: Sequence[Level]) -> str:
    """Return why compiled code cannot start a tree; empty if it can."""
    design: PlanTree = root.tree
    if distributed_level(design):
        return "it runs on several hosts"
    windows = not window_obstacles(design.leaves) and any(map(window_degree, design.levels()))
    for level in levels:
        if (level.length * first_part(level.plan.step)).denominator != 1:
            return f"the first part of a step of `{level.path}` is no whole number of ticks"
        for child, simulator in enumerate(level.children):
            if windows and isinstance(simulator, Projected):
                return f"`{level.name(child)}` agrees on energies, and runs ahead through Python only"
            announces = provides(simulator, EventSimulator) and not isinstance(simulator, Level)
            if windows and announces and child not in level.instants.taking:
                return f"`{level.name(child)}` announces events that its level does not take"
            if windows and isinstance(native_twin(simulator), _native.Isolated):
                return f"`{level.name(child)}` is isolated, and rolls back through Python only"
    return ""


def start_program(root: Level, levels: Sequence[Level], matrices: Matrices) -> _native.StartProgram:
    """Return what compiled code needs to know to start a tree."""
    design: PlanTree = root.tree
    leaves = design.leaves
    wiring, graph = leaves.wiring, Feedthrough(leaves.wiring, at_start=True)
    numbers = {level.path: number for number, level in enumerate(levels)}
    program = _native.StartProgram()
    sampled = {level.path: level.composite.sampled for level in design.levels()}
    simulators = [levels[numbers[path]].children[child] for path, child in leaves.places]
    for (path, child), model, simulator in zip(leaves.places, wiring.models, simulators, strict=True):
        able = model.capabilities
        program.add_leaf(
            level=numbers[path],
            child=child,
            inputs=len(model.inputs),
            outputs=len(model.outputs),
            highest=-1 if able.input_degree is None else able.input_degree,
            once=able.initial_inputs == "once",
            settles=bool(model.inputs) and settles_at_start(simulator),
            waits=provides(simulator, InitialisationSimulator),
            frozen=sampled[path],
        )
    for model, drives in zip(wiring.models, wiring.drives, strict=True):
        for port, drive in zip(model.inputs, drives, strict=True):
            _add_drive(program, port, drive)
    names, first = wiring.names, wiring.first_outputs
    once = [model.capabilities.initial_inputs == "once" for model in wiring.models]
    driving = graph.driving_outputs
    program.set_order(
        by_name=sorted(range(len(names)), key=names.__getitem__),
        first_reads=sorted(graph.first_reads, key=lambda leaf: (once[leaf], names[leaf])),
        drives_others=[
            port in ports
            for model, ports in zip(wiring.models, map(set, driving), strict=True)
            for port in range(len(model.outputs))
        ],
        starts=list(root.starts),
    )
    for turn in graph.rounds():
        program.add_round(leaves=turn.children, loop=[first[leaf] + port for leaf, port in turn.loop])
    _add_levels(program, design, levels, simulators, matrices)
    return program


def _add_drive(program: _native.StartProgram, port: Port, drive: Drive | None) -> None:
    kind, leaf = DriveKind.none, -1
    if drive is not None and drive.child in (CONSTANT, OWN):
        kind = DriveKind.constant if drive.child == CONSTANT else DriveKind.own
    elif drive is not None:
        kind, leaf = DriveKind.output, drive.child
    program.add_drive(
        kind=kind,
        leaf=leaf,
        port=0 if drive is None else drive.port,
        gain=1.0 if drive is None else drive.gain,
        offset=0.0 if drive is None else drive.offset,
        start=port.start,
    )


def _add_levels(
    program: _native.StartProgram,
    design: PlanTree,
    levels: Sequence[Level],
    simulators: Sequence[Simulator],
    matrices: Matrices,
) -> None:
    """Add where each level has its past from, and the windows that this takes."""
    leaves, windows = design.leaves, dict[tuple[int, int], int]()
    none = bool(window_obstacles(leaves))
    plans = {each.path: each for each in design.levels()}
    for level in levels:
        ticks, degree = (
            int(level.length * Fraction(first_part(level.plan.step))),
            window_degree(plans[level.path]),
        )
        if degree and not none and (ticks, degree) not in windows:
            models = _window_models(program, leaves, level, simulators, matrices, ticks, degree)
            program.add_window(ticks=ticks, degree=degree, models=models)
            windows[(ticks, degree)] = len(windows)
        sloped = any(level.memory.sloped)
        program.add_level(
            window=-1 if none else windows.get((ticks, degree), -1),
            back=ticks,
            feeds=1 + len(Feedthrough(level.wiring).rounds()) if sloped else 1,
        )


def _window_models(
    program: _native.StartProgram,
    leaves: Leaves,
    level: Level,
    simulators: Sequence[Any],
    matrices: Matrices,
    ticks: int,
    degree: int,
) -> list[int]:
    """Return, per leaf, the number of the linear model that runs ahead for it; -1: it does so itself."""
    found: list[int] = []
    known: dict[int, int] = {}
    for model, simulator in zip(leaves.wiring.models, simulators, strict=True):
        if not isinstance(simulator, StateSpaceSimulator):
            found.append(-1)
            continue
        if id(model) not in known:
            honoured = model.capabilities.input_degree
            own = degree if honoured is None else min(degree, honoured)
            known[id(model)] = program.add_model(matrices.window_model(simulator, level.clock, own, ticks))
        found.append(known[id(model)])
    return found
