"""The fast engine: a started tree of levels is handed over to compiled code, which then owns the numbers.

In:  a Level after its start
Out: an engine that runs the same plan with the same bits
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hocket import _native  # type: ignore[attr-defined]
from hocket.coupling.wiring import OWN, Drive
from hocket.engine.algebraic_loops import no_convergence, no_solution
from hocket.engine.ledger import stored_energies
from hocket.engine.message_counter import encode_post, message_counts
from hocket.engine.native.matrices import Matrices, add_projected, has_native_twin, linear_part, step_ticks
from hocket.engine.native.program import can_reopen_accounts, encode_body, find_instructions
from hocket.engine.reference.iteration import SweepCounts, no_agreement
from hocket.engine.reference.level import Level
from hocket.engine.reference.step_control import StepCounts, tolerance_not_met
from hocket.engine.selection import RecordedTable, attach_micro_rows
from hocket.engine.simulator_calls import EarlyError, not_finite, simulator_error
from hocket.errors import HocketError, InternalError
from hocket.model.extrapolators import BalanceCorrection, Hermite, Hold, Latch, Nepce, Polynomial
from hocket.model.protocols import Array
from hocket.plan import Adapt, Aitken, Newton, QuasiNewton, Relax, Repeat, Save, Solve, tries, walk
from hocket.plan.messages import Load
from hocket.simulators.power_balance import energy_error
from hocket.simulators.state_space import StateSpaceSimulator

HOLD, POLYNOMIAL, HERMITE, NEPCE, PASSED, PASSED_HOLD, LATCH, CORRECTION = range(8)
CALLS = ("step", "output", "slope", "save", "restore")
VALUES = 1 << 16
"""How many numbers may wait before the rows are written."""
ACCELERATORS = (type(None), Relax, Aitken, QuasiNewton, Newton)
"""Those that compiled code knows."""
TICKS = 1 << 62
"""No native run has more of them."""


def native_obstacle(level: Level, ticks: int = 0) -> str:
    """Return why this tree cannot run natively for so many ticks; empty if it can."""
    for drives in level.wiring.drives:
        for drive in drives:
            kind = type(drive.extrapolation) if drive else Hold
            if kind not in (Hold, Latch, Polynomial, Hermite, Nepce, BalanceCorrection, type(None)):
                return f"the extrapolator {kind.__name__} is written in Python"
    for _, each in walk(level.plan.step):
        if isinstance(each, Repeat) and type(each.accelerate) not in ACCELERATORS:
            return f"the accelerator {type(each.accelerate).__name__} is written in Python"
    if tries(level.plan.step):
        return "its steps may be made shorter"
    choosy = [child for child, each in enumerate(level.children) if hasattr(each, "prefers")]
    if choosy and level.adaptive:
        return f"`{level.name(choosy[0])}` prefers steps of its own, and is asked through Python only"
    away = [child for child, each in enumerate(level.children) if _is_isolated(each)]
    if away and any(isinstance(each, Save) for _, each in walk(level.plan.step)):
        return f"`{level.name(away[0])}` is isolated, and goes back through Python only"
    if max(level.length, ticks, *map(abs, level.clock.integer_ratio)) > TICKS:
        return "its clock needs more digits than the native one has"
    inner = (native_obstacle(child) for child in level.children if isinstance(child, Level))
    return next((why for why in inner if why), "")


def _is_isolated(simulator: Any) -> bool:
    """Return whether a simulator lives in a process of its own, or has one inside that does."""
    if isinstance(simulator, Level):
        return any(map(_is_isolated, simulator.children))
    return isinstance(getattr(simulator, "native", None), _native.Isolated)


class NativeEngine:
    """Runs a started tree in compiled code. The Level objects keep the state of the start."""

    name = "native"

    def __init__(self, root: Level, recorded: list[RecordedTable], threads: int | None = None):
        self.root = root
        self.levels: dict[int, Level] = {}
        self.matrices = Matrices()
        self.recorded = recorded
        self.native_rows: dict[int, Any] = {
            index: _native.Rows(len(entry.rows.columns) + 1, min(entry.rows.interval, TICKS))
            for index, entry in enumerate(recorded)
            if entry.child is None or isinstance(entry.level.children[entry.child], StateSpaceSimulator)
        }
        attach_micro_rows(entry for index, entry in enumerate(recorded) if index not in self.native_rows)
        outermost = self._build_level(root)
        self.levels[outermost.address()] = root
        count = len(os.sched_getaffinity(0)) if threads is None else threads
        rows = list(self.native_rows.values())
        self.engine = _native.Engine(outermost, rows, count, threads is not None)

    def run(self, steps: int, seconds: float) -> int:
        """Run up to so many steps for about so long; return how many were done. Raises what went wrong."""
        done: int = self.engine.run(steps, seconds, VALUES)
        if done < 0:
            raise self._failure()
        return done

    def keep_last_rows(self) -> None:
        """Keep the last row of every level, though none may be due."""
        self.engine.keep_last_rows()

    def sweeps(self) -> dict[str, SweepCounts]:
        """Return how often the steps of each level were made again."""
        return {
            self.levels[address].path: SweepCounts(*counts[:3]) for address, *counts in self.engine.sweeps()
        }

    def steps(self) -> dict[str, StepCounts]:
        """Return how many steps each adaptive level made."""
        return {
            self.levels[address].path: StepCounts(*counts[3:]) for address, *counts in self.engine.sweeps()
        }

    def energies(self) -> dict[str, list[tuple[float, float]]]:
        """Return what flowed and what moved through the bonds of each level: given and taken in turn."""
        return {self.levels[address].path: flowed for address, flowed in self.engine.energies()}

    def messages(self) -> dict[str, Any]:
        """Return what passed from host to host."""
        for address, links in self.engine.messages():
            post = self.levels[address].traffic
            assert post is not None
            post.sent = {pair: Load(*link) for pair, link in zip(post.used, links, strict=True)}
            return message_counts([self.levels[address]])
        return {}

    def stored_energy(self) -> dict[str, float]:
        """Return the stored energy of every simulator that tells it."""
        found: dict[str, float] = {}
        for address, level in self.levels.items():
            for child, simulator in enumerate(level.children):
                linear = linear_part(simulator, level.memory.degrees[child])
                if linear is not None and linear.model.stored_energy is not None:
                    z = np.array(self.engine.state(address, child))
                    found[level.name(child)] = linear.model.stored_energy.value(z[: linear.size])
        return stored_energies(self.root) | found

    @property
    def now(self) -> int:
        """The tick reached."""
        return int(self.engine.now)

    def rows(self, index: int) -> Array:
        """Return the rows that wait for a recorded table, and forget them."""
        first = self.recorded[index].rows
        waiting = first.taken() if first.count else None
        if index not in self.native_rows:
            return first.taken() if waiting is None else waiting
        block: Array = self.native_rows[index].taken()
        return block if waiting is None else np.concatenate([waiting, block])

    # handing over

    def _build_level(self, level: Level) -> Any:
        tick, start, denominator = level.clock.integer_ratio
        micro = {
            (id(entry.level), entry.child): (
                self.native_rows[index],
                [port for _, port, _ in entry.rows.columns],
            )
            for index, entry in enumerate(self.recorded)
            if entry.child is not None and index in self.native_rows
        }
        built = _native.Level(tick, start, denominator, level.length, level.degree, len(level.starts))
        lengths = step_ticks(level)
        for child, simulator in enumerate(level.children):
            model, degree = level.wiring.models[child], level.memory.degrees[child]
            sizes = degree + 1, len(model.inputs), len(model.outputs)
            if isinstance(simulator, StateSpaceSimulator):
                linear = self.matrices.linear_model(simulator, level, degree, lengths[child])
                rows, ports = micro.get((id(level), child), (None, []))
                built.add_state_space(linear, simulator.z, simulator.last_h or 0.0, rows, ports)
            elif has_native_twin(simulator, degree):
                balance = self.matrices.balanced_model(simulator, level, degree, lengths[child])
                add_projected(built, simulator, balance)
            elif isinstance(simulator, Level):
                inner = self._build_level(simulator)
                self.levels[built.add_level(inner, *sizes)] = simulator
            elif hasattr(simulator, "native"):
                built.add_native(simulator.native, *sizes)
            else:
                built.add_python(simulator, level.micro_rows.get(child), *sizes)
        self._hand_over_memory(level, built)
        for index, entry in enumerate(self.recorded):
            if entry.level is level and entry.child is None:
                children, ports, kinds = (list(part) for part in zip(*entry.rows.columns, strict=True))
                built.record(self.native_rows[index], children, ports, kinds)
        if level.traffic is not None:
            built.set_post(*encode_post(level.traffic))
        built.set_programs(encode_body(level.plan.step, level), encode_body(level.plan.output, level))
        return built

    def _hand_over_memory(self, level: Level, built: Any) -> None:
        memory, wiring = level.memory, level.wiring
        first_output = np.cumsum([0, *(len(model.outputs) for model in wiring.models)])
        whole: list[tuple[int, ...]] = []
        real: list[tuple[float, ...]] = []
        ringed: set[tuple[int, int]] = set()
        for child, drives in enumerate(wiring.drives):
            for index, drive in enumerate(drives):
                if drive is None:
                    continue
                kind, samples, alpha = _extrapolator_code(drive)
                plain = kind == HOLD and drive.gain == 1.0 and drive.offset == 0.0
                if kind in (POLYNOMIAL, HERMITE, NEPCE, LATCH, CORRECTION) or (
                    level.adaptive and drive.child != OWN
                ):
                    ringed.add((drive.child, drive.port))
                source = drive.port if drive.child == OWN else int(first_output[drive.child]) + drive.port
                kept = memory.filters.get((child, index)) if kind == NEPCE else None
                seen, before, after = (kept.seen, kept.before, kept.after) if kept else (0, 0.0, 0.0)
                whole.append((kind, child, index, source, samples, int(plain), seen))
                real.append((alpha, drive.gain, drive.offset, before, after))
        built.add_drives(
            np.array(whole, dtype=np.int64).reshape(-1, 7), np.array(real, dtype=float).reshape(-1, 5)
        )
        for text in wiring.texts:
            built.add_text(text.child, text.port, text.target, text.target_port)
        for drive in wiring.outputs:
            built.add_output(int(first_output[drive.child]) + drive.port, drive.gain, drive.offset)
        for child, rings in enumerate(memory.rings):
            for port, ring in enumerate(rings):
                sloped = memory.sloped[child]
                if (child, port) in ringed or sloped:
                    ticks, values, slopes = zip(*ring, strict=True)
                    built.set_ring(
                        int(first_output[child]) + port,
                        memory.depths[child][port],
                        sloped,
                        np.array(ticks, dtype=np.int64),
                        np.array(values, dtype=float),
                        np.array([slope or 0.0 for slope in slopes], dtype=float),
                    )
        alike = can_reopen_accounts(level)
        built.set_bonds(level.ledger.pairs)
        for side in level.ledger.sides:
            account, known = side.account, side.slopes
            built.add_account(
                account.child,
                int(first_output[account.child]) + account.output,
                account.input,
                account.factor,
                side.asked,
                side.anew,
                side.inside,
                [] if known is None else [*known.x, *known.u, *known.du],
                0 if known is None else len(known.x),
                bool(known and known.du),
                [side.power, side.energy, side.from_y, side.from_rest],
                level.ticks[account.child] if alike else -1,
            )
        newest = [ring[-1][1] for rings in memory.rings for ring in rings]
        u = np.concatenate([*(u.reshape(-1) for u in memory.u), np.zeros(0)])
        built.set_state(
            u, np.array(newest, dtype=float), np.array(memory.base, dtype=np.int64),
            level.inputs[1].reshape(-1), level.inputs[0], level.offered[1].reshape(-1), level.offered[0],
        )  # fmt: skip

    def _failure(self) -> HocketError:
        kind, address, child, port, call, tick, ticks, value, error = self.engine.failure()
        level = self.levels.get(address, self.root)
        name, t = level.name(child), level.clock.time(tick)
        if kind == "not_finite":
            return not_finite(name, level.wiring.models[child], port, value, t)
        if kind == "stopped_early":
            return EarlyError(name, value, t, level.clock.span(ticks), level.clock.time(tick + ticks))
        if kind == "reported":
            simulator: Any = level.children[child]
            return simulator_error(name, CALLS[call], t, simulator.fault())
        if kind == "no_agreement":
            repeat = find_instructions(level.plan, Repeat)[port]
            unknowns = level.unknowns_of(repeat)
            level.now = tick
            until, residuals = repeat.until or 0.0, self.engine.residuals()
            return no_agreement(level, unknowns, until, residuals, repeat.accelerate)
        if kind == "no_energy":
            return simulator_error(name, CALLS[call], t, energy_error(value))
        if kind == "not_met":
            return tolerance_not_met(
                level, level.controller_of(find_instructions(level.plan, Adapt)[port]), tick, value
            )
        if kind in ("loop_singular", "loop_stuck"):
            loop = find_instructions(level.plan, Solve)[port]
            ports = [f"{level.path}.{path}" if level.path else path for path in loop.ports]
            return no_solution(ports, t) if kind == "loop_singular" else no_convergence(ports, t, value)
        if kind == "raised":
            if not isinstance(error, Exception):
                raise error  # Ctrl-C, or an order to exit: nobody's fault
            failure = simulator_error(name, CALLS[call], t, error)
            failure.__cause__ = error
            return failure
        return InternalError(f"`{name}` was asked for a step it was not prepared for", where=f"t = {t!r} s")


def _extrapolator_code(drive: Drive) -> tuple[int, int, float]:
    """Return how the native engine knows an extrapolator: kind, samples, alpha."""
    match drive.extrapolation:
        case Polynomial(degree) if drive.child != OWN and degree > 0:
            return POLYNOMIAL, degree + 1, 0.0
        case Latch():
            return LATCH, 2, 0.0
        case Hermite(samples):
            return HERMITE, samples, 0.0
        case Nepce(alpha):
            return NEPCE, 1, alpha
        case BalanceCorrection(alpha):
            return CORRECTION, 2, alpha
    if drive.child != OWN:
        return HOLD, 1, 0.0
    return (PASSED if drive.extrapolation is None else PASSED_HOLD), 1, 0.0
