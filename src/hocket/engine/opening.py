"""Opening: a tree of plans becomes a tree of live levels, each a simulator for the level around it.

In:  a PlanTree and a clock
Out: a Level whose simulators are open; what was opened is closed again if one fails
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from hocket.engine.initialise import initialise, levels_of
from hocket.engine.reference.elsewhere import Elsewhere
from hocket.engine.reference.level import Level
from hocket.engine.simulator_calls import blame
from hocket.errors import HocketError, Place, SimulatorError
from hocket.model.clock import Clock, seconds
from hocket.model.composite import Composite
from hocket.model.event_pace import SPACING
from hocket.model.protocols import (
    Array,
    EarlyReturnSimulator,
    InstantSettingSimulator,
    Model,
    NamedSimulator,
    NotingSimulator,
    Simulator,
    SpacedEventSimulator,
    provides,
)
from hocket.plan import tries
from hocket.planning.clocks import clock_of
from hocket.planning.instants import ends_around
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree


class LevelSimulator(Level):
    """A level that is started and stepped from outside; its clock counts the ticks of the whole tree."""

    def start(self, t: float) -> None:
        """Go to the initial state, consistent over all levels; own inputs have their start values."""
        clock = replace(self.clock, start=seconds(t))
        for level in levels_of(self):
            level.clock = level.memory.clock = clock
        initialise(self, t)

    def output(self, t: float, u: Array) -> Array:
        """Return the outputs at t; what was exchanged before is left alone."""
        before = [(level, level.memory.save(), level.inputs, level.offered) for level in levels_of(self)]
        try:
            return self.outputs_at(self.tick_at(t), self._pad_inputs(u))
        finally:
            for level, memory, inputs, offered in before:
                level.memory.restore(memory)
                level.inputs, level.offered = inputs, offered

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h, a whole number of own steps."""
        tick = self.tick_at(t)
        self.advance(tick, self.tick_at(t + h) - tick, self._pad_inputs(u))
        return t + h

    def slope(self, t: float, u: Array) -> Array:
        """Return the slopes of the outputs at t."""
        return self.newest_outputs(2, np.shape(u)[2:])

    def _pad_inputs(self, u: Array) -> Array:
        padded = np.zeros((self.degree + 1, len(self.starts), *np.shape(u)[2:]))
        padded[: len(u)] = u
        return padded


def open_composite(composite: Composite) -> LevelSimulator:
    """Make a live level with a clock of its own, for inputs of any degree up to 8."""
    tree = plan_tree(composite)
    degree = 8 if composite.inputs else 0
    return open_level(tree, clock_of(tree), degree, sloped=composite.capabilities.slopes)


def open_level(
    design: PlanTree, clock: Clock, degree: int = 0, sloped: bool = False, ends_outside: bool = False
) -> LevelSimulator:
    """Open every model of the tree; what was opened is closed again if one fails.

    `degree` is that of the inputs the level will be given; `sloped` says that its outputs need slopes,
    `ends_outside` that a level around it handles steps which end early.
    """
    length = clock.ticks(design.composite.step)
    starts = [port.start or 0.0 for port in design.composite.inputs]
    level = LevelSimulator(design.path, design.wiring, design.plan, [], clock, length, degree, starts)
    level.tree, level.ends_outside, level.remote = design, ends_outside, design.remote
    handled = ends_outside or tries(design.plan.step)
    for drive in design.wiring.outputs if sloped else ():
        level.memory.sloped[drive.child] = True
    children: list[Simulator] = []
    try:
        for child, model in enumerate(design.wiring.models):
            if child in design.inner:
                degree, sloped = level.memory.degrees[child], level.memory.sloped[child]
                inner = design.inner[child]
                ends = handled and ends_around(inner, design)
                children.append(open_level(inner, clock, degree, sloped, ends))
            elif child in design.remote:
                children.append(Elsewhere(len(model.outputs)))
            else:
                children.append(_open_model(model, design.name(child)))
    except BaseException:
        for simulator in children:
            with suppress(Exception):  # what failed to open is the news, not what failed to close
                simulator.close()
        raise
    for child, simulator in enumerate(children if handled else ()):
        if child != level.last and provides(simulator, EarlyReturnSimulator):
            simulator.early = True  # it may stop where it likes: the level rolls back
    for simulator in () if handled or design.composite.on_zeno == "stop" else children:
        if provides(simulator, SpacedEventSimulator):
            simulator.space_events(SPACING * float(design.composite.step))
    for simulator in children if level.instants.instruction is not None else ():
        if provides(simulator, InstantSettingSimulator):
            simulator.event_grid = clock.span(clock.quantum)
    level.children = children
    level.ticks = [0] * len(children)
    level.instants.bind(level)
    level.ledger.link_inner_accounts(level)
    return level


def _open_model(model: Model, name: str) -> Simulator:
    try:
        simulator = model.open()
        if provides(simulator, NamedSimulator):
            simulator.instance_name = name
        return simulator
    except HocketError as error:
        fault = error.faults[0]
        place = Place.of(f"`{name}`" + (f", {fault.where}" if fault.where else ""))
        raise type(error)([replace(fault, place=place), *error.faults[1:]]) from error
    except Exception as error:
        raise SimulatorError(
            f"`{name}` cannot be opened: {type(error).__name__}: {error}", f"`{name}`"
        ) from error


def simulator_notes(root: Level, t: float) -> list[str]:
    """Return what the simulators of a tree have found out so far, each with the path of its model.

    Raises SimulatorError where one has found out that its numbers are worth nothing.
    """
    found = []
    for level in levels_of(root):
        for child, simulator in enumerate(level.children):
            if provides(simulator, NotingSimulator):
                try:  # most have nothing to say: a thousand FMUs are asked one by one
                    notes = simulator.notes()
                except Exception:
                    with blame(level.name(child), "notes", t):
                        raise
                if notes:
                    found += [f"`{level.name(child)}`: {note}" for note in notes]
    return found
