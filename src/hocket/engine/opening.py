"""Opening: a tree of plans becomes a tree of live levels.

In:  a PlanTree and a clock
Out: a Level whose simulators are open; what was opened is closed again if one fails
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from hocket.engine.level_simulator import LevelSimulator
from hocket.errors import HocketError, SimulatorError
from hocket.model.clock import Clock
from hocket.model.composite import Composite
from hocket.model.protocols import Model, Simulator, can_return_early
from hocket.plan import tries
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree, clock_of


def open_composite(composite: Composite) -> LevelSimulator:
    """Make a live level with a clock of its own, for inputs of any degree up to 8."""
    tree = plan_tree(composite)
    degree = 8 if composite.inputs else 0
    return open_level(tree, clock_of(tree), degree, sloped=composite.capabilities.slopes)


def open_level(design: PlanTree, clock: Clock, degree: int = 0, sloped: bool = False) -> LevelSimulator:
    """Open every model of the tree; what was opened is closed again if one fails.

    `degree` is that of the inputs the level will be given; `sloped` says that its outputs need slopes.
    """
    length = clock.ticks(design.composite.step)
    starts = [port.start or 0.0 for port in design.composite.inputs]
    level = LevelSimulator(design.path, design.wiring, design.plan, [], clock, length, degree, starts)
    level.tree = design
    for drive in design.wiring.outputs if sloped else ():
        level.memory.sloped[drive.child] = True
    children: list[Simulator] = []
    try:
        for child, model in enumerate(design.wiring.models):
            if child in design.inner:
                memory = level.memory
                children.append(
                    open_level(design.inner[child], clock, memory.degrees[child], memory.sloped[child])
                )
            else:
                children.append(_open_model(model, design.name(child)))
    except BaseException:
        for simulator in children:
            with suppress(Exception):  # what failed to open is the news, not what failed to close
                simulator.close()
        raise
    for simulator in children if tries(design.plan.step) else ():
        if can_return_early(simulator):
            simulator.early = True  # it may stop where it likes: the level goes back
    level.children = children
    level.ticks = [0] * len(children)
    level.ledger.link_inner_accounts(level)
    return level


def _open_model(model: Model, name: str) -> Simulator:
    try:
        return model.open()
    except HocketError as error:
        fault = error.faults[0]
        where = f"`{name}`" + (f", {fault.where}" if fault.where else "")
        raise type(error)([replace(fault, where=where), *error.faults[1:]]) from error
    except Exception as error:
        raise SimulatorError(
            f"`{name}` cannot be opened: {type(error).__name__}: {error}", f"`{name}`"
        ) from error
