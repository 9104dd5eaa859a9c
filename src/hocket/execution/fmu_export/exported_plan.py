"""The plan file of an exported co-simulation: its levels as compiled code has them, and how they are started.

In:  a job: an experiment that is planned and checked
Out: the bytes of `resources/plan.hocket`, and the variables with their numbers; or what stands against it
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import hocket._native as _native
from hocket.engine.initialise import initialise, levels_of
from hocket.engine.native.engine import native_obstacle
from hocket.engine.native.handover import Handover
from hocket.engine.native.matrices import has_native_twin
from hocket.engine.native.start_program import start_obstacle, start_program
from hocket.engine.opening import open_level
from hocket.engine.reference.level import Level
from hocket.engine.selection import bind_tables
from hocket.errors import Fault, ScenarioError
from hocket.execution.fmu_export.exported_variables import ExportedVariable, list_variables
from hocket.execution.fmu_export.inner_fmus import InnerFmus, is_inner_fmu
from hocket.execution.session import Job
from hocket.model.protocols import Model, native_twin
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.state_space import StateSpaceSimulator

DEGREE = 8
"""The highest power of time in the inputs that the FMU takes."""

FINE = 1_000_000
"""Ticks in a step of a level with step control, from which on it takes steps of any length."""


@dataclass(frozen=True)
class ExportedPlan:
    """What is written of a co-simulation, beside its model description."""

    data: bytes
    token: str
    """What model description and plan have in common: of another content it is another."""
    variables: tuple[ExportedVariable, ...]
    files: tuple[tuple[str, Path], ...]
    """Those of the FMUs inside: where they lie below `resources`, and where they are now."""
    saves: bool
    """Whether the state of all simulators can be saved."""
    adaptive: bool


def export_plan(job: Job, name: str) -> ExportedPlan:
    """Return the plan of a job; raises ScenarioError with all that stands against it."""
    design = job.design
    degree = DEGREE if design.composite.inputs else 0
    root = open_level(design, job.clock, degree)
    try:
        obstacles = list(_obstacles(root))
        if obstacles:
            raise ScenarioError(obstacles)
        initialise(root, job.clock.time(0), job.stop)
        bind_tables(root, [])
        handover = Handover([], condense=False, keeps=True, plain=dict(_plain_degrees(root)))
        built = handover.build(root)
        why = start_obstacle(root, handover.levels)
        if why:
            raise ScenarioError(f"it cannot be exported: {why}", "export")
        inner = InnerFmus()
        for level in handover.levels:
            for simulator in level.children:
                if is_inner_fmu(simulator):
                    inner.add(simulator)
        variables = list_variables(design, job.choices, handover.levels)
        # its steps end at ticks: only where these are fine may an importer choose any
        adaptive = design.composite.capabilities.variable_step and root.length >= FINE
        write = partial(
            _native.write_plan,
            level=built,
            program=start_program(root, handover.levels, handover.matrices),
            name=name,
            variables=[each.native for each in variables],
            names=[_names(level) for level in handover.levels],
            step=root.length,
            adaptive=adaptive,
        )
        shown = [(each.name, each.unit, each.discrete) for each in variables]
        content = hashlib.sha256(write(token="") + repr(shown).encode())
        token = "{" + str(uuid.UUID(content.hexdigest()[:32])) + "}"
        saves = all(model.capabilities.rollback for model in design.leaves.wiring.models)
        files = tuple(inner.files())
        return ExportedPlan(write(token=token), token, tuple(variables), files, saves, adaptive)
    finally:
        for level in reversed(levels_of(root)):
            for simulator in level.children:
                if not isinstance(simulator, Level):
                    with suppress(Exception):
                        simulator.close()


def _plain_degrees(level: Level, own: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the degree of the inputs of each linear model (its id) where those from outside are held."""
    for child, simulator in enumerate(level.children):
        degree = level.degree_of(child, own)
        if isinstance(simulator, Level):
            yield from _plain_degrees(simulator, degree)
        elif isinstance(simulator, StateSpaceSimulator):
            yield id(simulator), degree


def _names(level: Level) -> tuple[list[str], list[list[str]]]:
    children = [level.name(child) for child in range(len(level.children))]
    outputs = [[port.name for port in model.outputs] for model in level.wiring.models]
    return children, outputs


def _obstacles(root: Level) -> Iterator[Fault]:
    """Yield what compiled code alone cannot do, each with the path of its simulator."""
    why = native_obstacle(root)
    if why:
        yield Fault(f"it cannot be exported: {why}", "export", "what compiled code runs", "")
    for level in levels_of(root):
        for child, simulator in enumerate(level.children):
            if not isinstance(simulator, Level) and not _is_compiled(level, child, simulator):
                model = level.wiring.models[child]
                yield _name_obstacle(level.name(child), model)
            if level.takes_any_step and isinstance(simulator, StateSpaceSimulator):
                yield Fault(
                    f"`{level.name(child)}` is a linear model whose steps have any length: "
                    "their matrices are computed by Python",
                    "export",
                    "steps of fixed length",
                    "a fixed step in place of step control or of steps that end at events",
                )


def _name_obstacle(name: str, model: Model) -> Fault:
    if isinstance(model, Fmu) and model.is_isolated:
        what = f"`{name}` is isolated: it lives in a process of its own, which an exported FMU does not start"
        return Fault(what, "export", "an FMU that runs in the process of its importer", "isolate=False")
    return Fault(
        f"`{name}` ({type(model).__name__}) runs in Python, and an exported FMU has none",
        "export",
        "linear models, blocks, FMUs",
        "a block of `hocket.blocks`, a `StateSpace` or an FMU in its place",
    )


def _is_compiled(level: Level, child: int, simulator: Any) -> bool:
    if has_native_twin(simulator, level.memory.degrees[child]):
        return False  # it agrees on energies
    compiled = isinstance(native_twin(simulator), _native.Block) or is_inner_fmu(simulator)
    return compiled or isinstance(simulator, StateSpaceSimulator)
