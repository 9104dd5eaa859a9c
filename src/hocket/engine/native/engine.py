"""The fast engine: a started tree of levels is handed over to compiled code, which then owns the numbers.

In:  a Level after its start
Out: an engine that runs the same plan with the same bits
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, assert_never

import numpy as np

import hocket._native as _native
from hocket._native import FailureKind
from hocket.engine.algebraic_loops import no_convergence, no_solution
from hocket.engine.initialise import ended_simulator
from hocket.engine.ledger import stored_energies
from hocket.engine.message_counter import message_counts
from hocket.engine.native.handover import EXTRAPOLATORS, TICKS, Handover
from hocket.engine.native.matrices import linear_part
from hocket.engine.native.program import (
    ACCELERATORS,
    find_instructions,
)
from hocket.engine.reference.instants import (
    piled_events,
    refuse_past_event,
    too_many_instants,
)
from hocket.engine.reference.iteration import SweepCounts, no_agreement
from hocket.engine.reference.level import Level
from hocket.engine.reference.rollback import never_whole, rest_of_lone_step
from hocket.engine.reference.step_control import StepCounts, tolerance_not_met
from hocket.engine.selection import RecordedTable
from hocket.engine.simulator_calls import EarlyError, not_finite, simulator_error
from hocket.engine.watch import Attend
from hocket.errors import HocketError, InternalError
from hocket.model.event_pace import Pace
from hocket.model.protocols import Array, PreferredStepSimulator, native_twin, provides
from hocket.plan import Adapt, Instruction, Repeat, Save, Solve, Try, walk
from hocket.plan.messages import Load
from hocket.simulators.power_balance import energy_error

VALUES = 1 << 16
"""How many numbers may wait before the rows are written."""


def native_obstacle(level: Level, ticks: int = 0) -> str:
    """Return why this tree cannot run natively for so many ticks; empty if it can."""
    for drives in level.wiring.drives:
        for drive in drives:
            if drive and drive.extrapolation is not None and type(drive.extrapolation) not in EXTRAPOLATORS:
                return f"the extrapolator {type(drive.extrapolation).__name__} is written in Python"
    for _, each in walk((*level.plan.step, *level.plan.output)):
        if isinstance(each, Repeat) and type(each.accelerate) not in (type(None), *ACCELERATORS):
            return f"the accelerator {type(each.accelerate).__name__} is written in Python"
    choosy = [child for child, each in enumerate(level.children) if provides(each, PreferredStepSimulator)]
    if choosy and level.adaptive:
        return f"`{level.name(choosy[0])}` prefers steps of its own, and is asked through Python only"
    away = [child for child, each in enumerate(level.children) if _is_isolated(each)]
    if away and any(_saves(level, each) for _, each in walk(level.plan.step)):
        return f"`{level.name(away[0])}` is isolated, and rolls back through Python only"
    if max(level.length, ticks, *map(abs, level.clock.integer_ratio)) > TICKS:
        return "its clock needs more digits than the native one has"
    inner = (native_obstacle(child) for child in level.children if isinstance(child, Level))
    return next((why for why in inner if why), "")


def _saves(level: Level, instruction: Instruction) -> bool:
    """Return whether an instruction keeps a state that may be restored."""
    if isinstance(instruction, Try):
        alone = not level.adaptive and rest_of_lone_step(level, instruction.body) is not None
        return instruction.found and not alone
    return isinstance(instruction, Save) or (isinstance(instruction, Adapt) and instruction.control.rejects)


def _is_isolated(simulator: Any) -> bool:
    """Return whether a simulator lives in a process of its own, or has one inside that does."""
    if isinstance(simulator, Level):
        return any(map(_is_isolated, simulator.children))
    return isinstance(native_twin(simulator), _native.Isolated)


class NativeEngine:
    """Runs a started tree in compiled code. The Level objects keep the state of the start."""

    name = "native"

    def __init__(
        self, root: Level, recorded: list[RecordedTable], threads: int | None = None, condense: bool = True
    ):
        self.root = root
        self.recorded = recorded
        self.ended_by = ""
        """The path of the simulator that has asked to end the simulation."""
        self._end_requests = _native.count_end_requests()
        self.handover = Handover(recorded, condense)
        outermost = self.handover.build(root)
        count = _cores() if threads is None else threads
        rows = list(self.handover.native_rows.values())
        self.engine = _native.Engine(level=outermost, rows=rows, threads=count, always=threads is not None)

    @property
    def levels(self) -> list[Level]:
        """The levels of the tree, by their numbers in compiled code."""
        return self.handover.levels

    @property
    def in_python(self) -> list[str]:
        """The paths of simulators that Python steps, in the order of the tree."""
        return self.handover.in_python

    @property
    def condensed(self) -> set[int]:
        """The numbers of levels that have no program: there is nothing to report of them."""
        return self.handover.condensed

    @property
    def native_rows(self) -> dict[int, _native.RowBuffer]:
        """The rows that compiled code keeps, by the numbers of recorded tables."""
        return self.handover.native_rows

    def run(self, steps: int, seconds: float, attend: Attend | None = None) -> int:
        """Run up to so many steps for about so long; return how many were done: none, if one has ended it.

        Raises what went wrong. `attend` is called about as often within a step that lasts longer.
        """
        if self.ended_by:
            return 0
        done = self.engine.run(steps, seconds, VALUES, attend)
        if done < 0:
            try:
                failure = self.blame_failure()
            except KeyboardInterrupt:
                if not self.engine.stopped:
                    raise
                return -1 - done  # a simulator was not waited for any longer: nobody's fault
            raise failure
        self.look_for_end()
        return done

    def look_for_end(self) -> None:
        """Find out whether a simulator of this tree has asked to end the simulation."""
        if self._end_requests != _native.count_end_requests():
            self._end_requests = _native.count_end_requests()
            self.ended_by = ended_simulator(self.root)

    def keep_last_rows(self) -> None:
        """Keep the last row of every level, though none may be due."""
        self.engine.add_last_rows()

    def _reports(self) -> Iterator[tuple[Level, _native.LevelReport]]:
        return (
            (level, self.engine.report(number))
            for number, level in enumerate(self.levels)
            if number not in self.condensed
        )

    def sweeps(self) -> dict[str, SweepCounts]:
        """Return how often the steps of each level were made again."""
        counts = ((level.path, report.iterations) for level, report in self._reports())
        return {path: SweepCounts(each.repeats, each.total, each.most) for path, each in counts}

    def steps(self) -> dict[str, StepCounts]:
        """Return how many steps each adaptive level made."""
        counts = ((level.path, report.steps) for level, report in self._reports())
        return {
            path: StepCounts(
                *(each.accepted, each.rejected, each.shortest, each.longest),
                *(each.passed, each.passed_at, each.worst, each.seen),
            )
            for path, each in counts
        }

    def energies(self) -> dict[str, list[tuple[float, float]]]:
        """Return what flowed and what moved through the bonds of each level: given and taken in turn."""
        return {
            level.path: [(flow.energy, flow.moved) for flow in report.bonds]
            for level, report in self._reports()
            if report.bonds
        }

    def messages(self) -> dict[str, Any]:
        """Return what passed from host to host."""
        for level, report in self._reports():
            if level.traffic is not None:
                sent = (Load(link.messages, link.values) for link in report.links)
                level.traffic.sent = dict(zip(level.traffic.used, sent, strict=True))
                return message_counts([level])
        return {}

    def stored_energy(self) -> dict[str, float]:
        """Return the stored energy of every simulator that tells it."""
        found: dict[str, float] = {}
        for number, level in enumerate(self.levels):
            for child, simulator in enumerate(level.children if number not in self.condensed else ()):
                linear = linear_part(simulator, level.memory.degrees[child])
                if linear is not None and linear.model.stored_energy is not None:
                    z = np.array(self.engine.state(number, child))
                    found[level.name(child)] = linear.model.stored_energy.value(z[: linear.size])
        return stored_energies(self.root) | found

    @property
    def now(self) -> int:
        """The tick reached."""
        return self.engine.now

    @property
    def within_step(self) -> bool:
        """Whether the run was stopped, or failed, within a macro step."""
        return self.engine.within_step

    def settle_rows(self) -> None:
        """Find out which rows are final: within a step, those that no rollback reaches."""
        self.engine.settle_rows()

    def waiting_rows(self, index: int) -> list[_native.RowBuffer]:
        """Return where the rows of a recorded table wait, the oldest first."""
        native = [self.native_rows[index]] if index in self.native_rows else []
        return [self.recorded[index].rows.waiting, *native]

    def rows(self, index: int) -> Array:
        """Return the final rows that wait for a recorded table, and forget them."""
        first = self.recorded[index].rows
        waiting = first.take() if first.count else None
        if index not in self.native_rows:
            return first.take() if waiting is None else waiting
        block = self.native_rows[index].take()
        return block if waiting is None else np.concatenate([waiting, block])

    def blame_failure(self) -> HocketError:
        """Return the error for what went wrong; raises what is nobody's fault."""
        failure, error = self.engine.failure(), self.engine.take_error()
        assert failure is not None
        level, child = self.levels[failure.level], failure.child
        name, t, call = level.name(child), level.clock.time(failure.tick), failure.call.name
        match failure.kind:
            case FailureKind.not_finite:
                return not_finite(name, level.wiring.models[child], failure.port, failure.value, t)
            case FailureKind.stopped_early:
                span, end = level.clock.span(failure.ticks), level.clock.time(failure.tick + failure.ticks)
                return EarlyError(name, failure.value, t, span, end)
            case FailureKind.reported | FailureKind.ended:
                simulator: Any = level.children[child]
                return simulator_error(name, call, t, simulator.fault())
            case FailureKind.not_converged:
                repeat = find_instructions(level.plan, Repeat)[failure.port]
                unknowns = level.unknowns_of(repeat)
                level.now = failure.tick
                until, residuals = repeat.until or 0.0, self.engine.report(failure.level).residuals
                return no_agreement(level, unknowns, until, residuals, repeat.accelerate)
            case FailureKind.endless_instants:
                return too_many_instants(level, failure.port, name, t)
            case FailureKind.past_event:
                return refuse_past_event(name, failure.value, t)
            case FailureKind.zeno:
                return piled_events(level, Pace.ZENO, name, t, failure.value)
            case FailureKind.chattering:
                return piled_events(level, Pace.CHATTERING, name, t, failure.value)
            case FailureKind.never_whole:
                return never_whole(level, failure.tick)
            case FailureKind.no_energy:
                return simulator_error(name, call, t, energy_error(failure.value))
            case FailureKind.tolerance_not_met:
                pace = level.controller_of(find_instructions(level.plan, Adapt)[failure.port])
                return tolerance_not_met(level, pace, failure.tick, failure.value)
            case FailureKind.loop_singular:
                return no_solution(_loop_ports(level, failure.port), t)
            case FailureKind.loop_not_converged:
                return no_convergence(_loop_ports(level, failure.port), t, failure.value)
            case FailureKind.raised:
                if not isinstance(error, Exception):
                    raise error or KeyboardInterrupt  # Ctrl-C, or an order to exit: nobody's fault
                blamed = simulator_error(name, call, t, error)
                blamed.__cause__ = error
                return blamed
            case FailureKind.internal | FailureKind.none | FailureKind.not_settled:
                what = f"`{name}` was asked for a step it was not prepared for"
                return InternalError(what, where=f"t = {t!r} s")
        assert_never(failure.kind)


def _cores() -> int:
    """Return how many cores this process may use; only Linux tells of fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _loop_ports(level: Level, number: int) -> list[str]:
    """Return the ports of an algebraic loop of a level's plan, by their paths."""
    loop = find_instructions(level.plan, Solve)[number]
    return [f"{level.path}.{path}" if level.path else path for path in loop.ports]
