"""Handing over: a started tree of levels becomes one that compiled code runs.

In:  a Level after its start, and what is recorded
Out: a native level with all that is inside it, in the state reached
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

import hocket._native as _native
from hocket._native import InputKind
from hocket.coupling.wiring import OWN, Drive
from hocket.engine.ledger import RunningAccount
from hocket.engine.message_counter import hand_over
from hocket.engine.native.condensed import add_condensed, can_condense, keeps_step
from hocket.engine.native.matrices import Matrices, add_projected, has_native_twin, step_ticks
from hocket.engine.native.program import can_reopen_accounts, program
from hocket.engine.reference.instants import announced_tick, followed_inputs, is_level
from hocket.engine.reference.level import Level
from hocket.engine.selection import RecordedTable, attach_micro_rows
from hocket.model.extrapolators import BalanceCorrection, Hermite, Hold, Latch, Nepce, Polynomial
from hocket.model.protocols import native_twin
from hocket.plan import Read, walk
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
TICKS = 1 << 62
"""No native run has more of them."""


class Handover:
    """Builds native levels; the Level objects keep the state of the start."""

    def __init__(
        self,
        recorded: list[RecordedTable],
        condense: bool,
        keeps: bool = False,
        plain: Mapping[int, int] | None = None,
    ):
        self.condense = condense
        """Whether levels may go without a program; their ports cannot be looked at then."""
        self.keeps = keeps
        """Whether native levels remember what they were built from, to be written to a file."""
        self.levels: list[Level] = []
        self.in_python: list[str] = []
        """The paths of simulators that Python steps, in the order of the tree."""
        self.condensed: set[int] = set()
        """The numbers of levels that have no program."""
        self.matrices = Matrices(plain)
        self.recorded = recorded
        self.native_rows: dict[int, _native.RowBuffer] = {
            index: _native.RowBuffer(
                width=len(entry.rows.columns) + 1, interval=min(entry.rows.interval, TICKS)
            )
            for index, entry in enumerate(recorded)
            if entry.child is None or isinstance(entry.level.children[entry.child], StateSpaceSimulator)
        }
        attach_micro_rows(entry for index, entry in enumerate(recorded) if index not in self.native_rows)

    def build(self, level: Level) -> _native.Level:
        """Return a native level, with those inside it."""
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
            keeps=self.keeps,
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
                inner = self.build(simulator)
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


def _single_reads(level: Level) -> Iterator[Read]:
    """Yield the instructions that read some outputs of a simulator, and not all."""
    for _, each in walk((*level.plan.step, *level.plan.output)):
        if isinstance(each, Read) and each.ports:
            yield each


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
