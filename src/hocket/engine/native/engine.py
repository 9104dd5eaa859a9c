"""The fast engine: a started tree of levels is handed over to compiled code, which then owns the numbers.

In:  a Level after its start
Out: an engine that runs the same plan with the same bits
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, assert_never

import numpy as np

import hocket._native as _native
from hocket._native import FailureKind, InputKind
from hocket.coupling.wiring import OWN, Drive
from hocket.engine.algebraic_loops import no_convergence, no_solution
from hocket.engine.initialise import ended_simulator
from hocket.engine.ledger import RunningAccount, stored_energies
from hocket.engine.message_counter import hand_over, message_counts
from hocket.engine.native.condensed import add_condensed, can_condense, keeps_step
from hocket.engine.native.matrices import Matrices, add_projected, has_native_twin, linear_part, step_ticks
from hocket.engine.native.program import (
    ACCELERATORS,
    can_reopen_accounts,
    find_instructions,
    program,
)
from hocket.engine.reference.instants import (
    announced_tick,
    followed_inputs,
    is_level,
    piled_events,
    refuse_past_event,
    too_many_instants,
)
from hocket.engine.reference.iteration import SweepCounts, no_agreement
from hocket.engine.reference.level import Level
from hocket.engine.reference.rollback import never_whole, rest_of_lone_step
from hocket.engine.reference.step_control import StepCounts, tolerance_not_met
from hocket.engine.selection import RecordedTable, attach_micro_rows
from hocket.engine.simulator_calls import EarlyError, not_finite, simulator_error
from hocket.engine.watch import Attend
from hocket.errors import HocketError, InternalError
from hocket.model.event_pace import Pace
from hocket.model.extrapolators import BalanceCorrection, Hermite, Hold, Latch, Nepce, Polynomial
from hocket.model.protocols import Array, PreferredStepSimulator, native_twin, provides
from hocket.plan import Adapt, Instruction, Read, Repeat, Save, Solve, Try, walk
from hocket.plan.messages import Load
from hocket.simulators.power_balance import energy_error
from hocket.simulators.state_space import StateSpaceSimulator

EXTRAPOLATORS: Mapping[type, InputKind] = {
    Hold: InputKind.hold,
    Latch: InputKind.latch,
    Polynomial: InputKind.polynomial,
    Hermite: InputKind.hermite,
    Nepce: InputKind.nepce,
    BalanceCorrection: InputKind.correction,
}
"""Those that compiled code knows."""
VALUES = 1 << 16
"""How many numbers may wait before the rows are written."""
TICKS = 1 << 62
"""No native run has more of them."""


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


def _single_reads(level: Level) -> Iterator[Read]:
    """Yield the instructions that read some outputs of a simulator, and not all."""
    for _, each in walk((*level.plan.step, *level.plan.output)):
        if isinstance(each, Read) and each.ports:
            yield each


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
        self.condense = condense
        """Whether levels may go without a program; their ports cannot be looked at then."""
        self.levels: list[Level] = []
        self.in_python: list[str] = []
        """The paths of simulators that Python steps, in the order of the tree."""
        self.condensed: set[int] = set()
        """The numbers of levels that have no program: there is nothing to report of them."""
        self.matrices = Matrices()
        self.recorded = recorded
        self.ended_by = ""
        """The path of the simulator that has asked to end the simulation."""
        self._end_requests = _native.count_end_requests()
        self.native_rows: dict[int, _native.RowBuffer] = {
            index: _native.RowBuffer(
                width=len(entry.rows.columns) + 1, interval=min(entry.rows.interval, TICKS)
            )
            for index, entry in enumerate(recorded)
            if entry.child is None or isinstance(entry.level.children[entry.child], StateSpaceSimulator)
        }
        attach_micro_rows(entry for index, entry in enumerate(recorded) if index not in self.native_rows)
        outermost = self._build_level(root)
        count = _cores() if threads is None else threads
        rows = list(self.native_rows.values())
        self.engine = _native.Engine(level=outermost, rows=rows, threads=count, always=threads is not None)

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

    # handing over

    def _build_level(self, level: Level) -> _native.Level:
        tick, start, denominator = level.clock.integer_ratio
        built = _native.Level(
            number=len(self.levels),
            clock=_native.Clock(
                tick=tick,
                start=start,
                denominator=denominator,
                quantum=level.clock.quantum,
                coarse=level.clock.coarse,
            ),
            length=level.length,
            degree=level.degree,
            inputs=len(level.starts),
        )
        self.levels.append(level)
        lengths = step_ticks(level)
        micro = {
            (id(entry.level), entry.child): (
                self.native_rows[index],
                [port for _, port, _ in entry.rows.columns],
            )
            for index, entry in enumerate(self.recorded)
            if entry.child is not None and index in self.native_rows
        }
        for child, simulator in enumerate(level.children):
            model, degree = level.wiring.models[child], level.memory.degrees[child]
            rows, inputs, outputs = degree + 1, len(model.inputs), len(model.outputs)
            if isinstance(simulator, StateSpaceSimulator):
                buffer, ports = micro.get((id(level), child), (None, []))
                built.add_state_space(
                    model=self.matrices.linear_model(simulator, level, degree, lengths[child]),
                    z=simulator.z,
                    last_h=simulator.last_h or 0.0,
                    micro=buffer,
                    ports=ports,
                )
            elif has_native_twin(simulator, degree):
                balance = self.matrices.balanced_model(simulator, level, degree, lengths[child])
                add_projected(built, simulator, balance)
            elif self.condense and isinstance(simulator, Level) and can_condense(simulator, self.recorded):
                self.condensed.add(len(self.levels))
                number, own = len(self.levels), step_ticks(simulator)[0]
                add_condensed(built, simulator, number, self.matrices, own)
                self.levels.append(simulator)
            elif isinstance(simulator, Level):
                inner = self._build_level(simulator)
                built.add_level(level=inner, rows=rows, inputs=inputs, outputs=outputs)
            elif (twin := native_twin(simulator)) is not None:
                built.add_native(simulator=twin, rows=rows, inputs=inputs, outputs=outputs)
            else:
                self.in_python.append(level.name(child))
                kept = level.micro_rows.get(child)
                observes = level.wiring.models[child].capabilities.observes
                built.add_python(
                    simulator=simulator,
                    micro=kept,
                    event_tick=partial(announced_tick, level.clock)
                    if child in level.instants.taking
                    else None,
                    observes=observes,
                    places=level.instants.places and not observes and child in level.instants.taking,
                    rows=rows,
                    inputs=inputs,
                    outputs=outputs,
                )
        self._hand_over_memory(level, built)
        _hand_over_instants(level, built)
        for index, entry in enumerate(self.recorded):
            if entry.level is level and entry.child is None:
                columns = [_column(level, *column) for column in entry.rows.columns]
                built.record(rows=self.native_rows[index], columns=columns)
        if level.traffic is not None:
            hand_over(level.traffic, built)
        built.set_programs(step=program(level.plan.step, level), output=program(level.plan.output, level))
        return built

    def _hand_over_memory(self, level: Level, built: _native.Level) -> None:
        memory, wiring = level.memory, level.wiring
        first_output = wiring.first_outputs
        # outputs that are read one by one need not be of one age: each keeps its own
        single = {level.number[each.sim] for each in _single_reads(level)}
        even = keeps_step(level)
        sampled = {(child, port) for child in single for port in range(len(memory.rings[child]))}
        for child, drives in enumerate(wiring.drives):
            for index, drive in enumerate(drives):
                if drive is None:
                    continue
                kind, samples, alpha = _extrapolator_code(drive, even)
                if drive.child != OWN and (level.adaptive or kind is not InputKind.hold):
                    sampled.add((drive.child, drive.port))
                kept = memory.filters.get((child, index)) if kind is InputKind.nepce else None
                built.add_input(
                    _native.FittedInput(
                        kind=kind,
                        child=child,
                        input=index,
                        source=drive.port if drive.child == OWN else first_output[drive.child] + drive.port,
                        samples=samples,
                        alpha=alpha,
                        gain=drive.gain,
                        offset=drive.offset,
                        seen=kept.seen if kept else 0,
                        before=kept.before if kept else 0.0,
                        after=kept.after if kept else 0.0,
                    )
                )
        for text in wiring.texts:
            built.add_text(child=text.child, output=text.port, target=text.target, input=text.target_port)
        inputs, outputs = wiring.text_places
        built.add_text_ports(inputs=inputs, outputs=outputs)
        for drive in wiring.outputs:
            source = first_output[drive.child] + drive.port
            built.add_output(source=source, gain=drive.gain, offset=drive.offset)
        for child, rings in enumerate(memory.rings):
            for port, ring in enumerate(rings):
                sloped = memory.sloped[child]
                if (child, port) in sampled or sloped:
                    ticks, values, slopes = zip(*ring, strict=True)
                    built.add_samples(
                        signal=first_output[child] + port,
                        depth=memory.depths[child][port],
                        sloped=sloped,
                        ticks=np.array(ticks, dtype=np.int64),
                        values=np.array(values, dtype=float),
                        slopes=np.array([slope or 0.0 for slope in slopes], dtype=float),
                    )
        alike = can_reopen_accounts(level)
        accounts = [
            _account(side, first_output, level.ticks[side.account.child] if alike else -1)
            for side in level.ledger.sides
        ]
        built.set_accounts(bonds=level.ledger.pairs, accounts=accounts)
        newest = [ring[-1][1] for rings in memory.rings for ring in rings]
        used, offered = (
            _native.OwnInputs(coefficients=coefficients.reshape(-1), base=base)
            for base, coefficients in (level.inputs, level.offered)
        )
        built.set_memory(
            u=np.concatenate([*(u.reshape(-1) for u in memory.u), np.zeros(0)]),
            y=np.array(newest, dtype=float),
            bases=np.array(memory.base, dtype=np.int64),
            used=used,
            offered=offered,
        )

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


def _column(level: Level, child: int, port: int, is_input: bool) -> _native.Column:
    """Return what a column of a level's table shows."""
    kinds = _native.ColumnKind
    kind = kinds.ledger if child < 0 else kinds.input if is_input else kinds.output
    return _native.Column(
        kind=kind, child=child, port=port, event=_event_signal(level, child, port, is_input)
    )


def _event_signal(level: Level, child: int, port: int, is_input: bool) -> int:
    """Return the signal on whose presence a column depends; -1: it is always there, -2: it never is."""
    if child < 0:
        return -1
    model, first = level.wiring.models[child], level.wiring.first_outputs
    if not (model.inputs if is_input else model.outputs)[port].event:
        return -1
    if not is_input:
        return first[child] + port
    drive = level.wiring.drives[child][port]
    return -1 if drive is None else -2 if drive.child < 0 else first[drive.child] + drive.port


def _hand_over_instants(level: Level, built: _native.Level) -> None:
    """Tell compiled code what happens at instants: which children take part, and which drive which."""
    state, wiring = level.instants, level.wiring
    first = wiring.first_outputs

    def source(drive: Drive | None) -> int:
        if drive is None or drive.child < OWN:
            return -1
        return -2 - drive.port if drive.child == OWN else first[drive.child] + drive.port

    for child, model in enumerate(wiring.models) if state.instruction is not None else ():
        built.add_member(
            sources=[source(drive) for drive in wiring.drives[child]],
            event_inputs=[port.event for port in model.inputs],
            followed=followed_inputs(model),
            event_outputs=[port.event for port in model.outputs],
            takes_part=child in state.taking,
            level=is_level(level.children[child]),
        )
    built.set_instants(
        outputs=[first[drive.child] + drive.port for drive in wiring.outputs],
        around=state.around,
        longest=state.longest,
        ends_outside=level.ends_outside,
    )


def _account(side: RunningAccount, first_output: list[int], since: int) -> _native.Account:
    """Return one side of a power bond; `since`: the tick of the step under way, or -1."""
    account, known = side.account, side.slopes
    return _native.Account(
        child=account.child,
        input=account.input,
        signal=first_output[account.child] + account.output,
        factor=account.factor,
        asked=side.asked,
        anew=side.anew,
        inside=side.inside,
        state_shares=[] if known is None else list(known.x),
        input_shares=[] if known is None else list(known.u),
        feedthrough=[] if known is None else list(known.du),
        power=side.power,
        energy=side.energy,
        from_y=side.from_y,
        from_rest=side.from_rest,
        since=since,
    )


def _extrapolator_code(drive: Drive, even: bool) -> tuple[InputKind, int, float]:
    """Return how the native engine knows an extrapolator: kind, samples, alpha.

    `even`: nothing is fed that is ahead, so that a latched input is a held one.
    """
    chosen = drive.extrapolation
    if drive.child == OWN:
        return (InputKind.passed if chosen is None else InputKind.passed_hold), 1, 0.0
    if chosen is None or chosen == Polynomial(0) or (even and isinstance(chosen, Latch)):
        return InputKind.hold, 1, 0.0
    alpha = chosen.alpha if isinstance(chosen, (Nepce, BalanceCorrection)) else 0.0
    return EXTRAPOLATORS[type(chosen)], chosen.samples, alpha
