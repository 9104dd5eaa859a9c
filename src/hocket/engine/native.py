"""The fast engine: a started tree of levels is handed over to compiled code, which then owns the numbers.

In:  a Level after its start
Out: an engine that runs the same plan with the same bits
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hocket import _native  # type: ignore[attr-defined]
from hocket.engine.accounting import plainly_read
from hocket.engine.adapting import Steps, not_met
from hocket.engine.calls import EarlyError, blame, not_finite
from hocket.engine.interpreter import Level
from hocket.engine.iterating import Sweeps, no_agreement
from hocket.engine.ledger import stored_energies
from hocket.engine.loops import no_convergence, no_solution
from hocket.engine.matrices import Matrices, add_projected, lengths_of, linear_part, twinned
from hocket.engine.program import encoded, found
from hocket.engine.selection import Recorded, attach
from hocket.engine.traffic import counted, handed_over
from hocket.errors import HocketError, InternalError
from hocket.model import Array
from hocket.plan import Adapt, Repeat, Save, Solve, tries, walk
from hocket.plan.post import Load
from hocket.signals import BalanceCorrection, Hermite, Hold, Latch, Nepce, Polynomial
from hocket.simulators.balancing import no_energy
from hocket.simulators.state_space import StateSpaceSimulator
from hocket.wiring import OWN, Drive

HOLD, POLYNOMIAL, HERMITE, NEPCE, PASSED, PASSED_HOLD, LATCH, CORRECTION = range(8)
CALLS = ("step", "output", "slope", "save", "restore")
VALUES = 1 << 16
"""How many numbers may wait before the rows are written."""
TICKS = 1 << 62
"""No native run has more of them."""


def obstacle(level: Level, ticks: int = 0) -> str:
    """Return why this tree cannot run natively for so many ticks; empty if it can."""
    for drives in level.wiring.drives:
        for drive in drives:
            kind = type(drive.extrapolation) if drive else Hold
            if kind not in (Hold, Latch, Polynomial, Hermite, Nepce, BalanceCorrection, type(None)):
                return f"the extrapolator {kind.__name__} is written in Python"
    if tries(level.plan.step):
        return "its steps may be made shorter"
    choosy = [child for child, each in enumerate(level.children) if hasattr(each, "prefers")]
    if choosy and level.adaptive:
        return f"`{level.name(choosy[0])}` prefers steps of its own, and is asked through Python only"
    away = [child for child, each in enumerate(level.children) if _apart(each)]
    if away and any(isinstance(each, Save) for _, each in walk(level.plan.step)):
        return f"`{level.name(away[0])}` is isolated, and goes back through Python only"
    if max(level.length, ticks, *map(abs, level.clock.whole)) > TICKS:
        return "its clock needs more digits than the native one has"
    inner = (obstacle(child) for child in level.children if isinstance(child, Level))
    return next((why for why in inner if why), "")


def _apart(simulator: Any) -> bool:
    """Return whether a simulator lives in a process of its own, or has one inside that does."""
    if isinstance(simulator, Level):
        return any(map(_apart, simulator.children))
    return isinstance(getattr(simulator, "native", None), _native.Isolated)


class NativeEngine:
    """Runs a started tree in compiled code. The Level objects keep the state of the start."""

    name = "native"

    def __init__(self, root: Level, recorded: list[Recorded], threads: int | None = None):
        self.root = root
        self.levels: list[Level] = []
        self.matrices = Matrices()
        self.recorded = recorded
        self.native_rows: dict[int, Any] = {
            index: _native.Rows(len(entry.rows.columns) + 1, min(entry.rows.interval, TICKS))
            for index, entry in enumerate(recorded)
            if entry.child is None or isinstance(entry.level.children[entry.child], StateSpaceSimulator)
        }
        attach(entry for index, entry in enumerate(recorded) if index not in self.native_rows)
        outermost = self._built(root)
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

    def sweeps(self) -> dict[str, Sweeps]:
        """Return how often the steps of each level were made again."""
        return {self.levels[number].path: Sweeps(*counts[:3]) for number, *counts in self.engine.sweeps()}

    def steps(self) -> dict[str, Steps]:
        """Return how many steps each adaptive level made."""
        return {self.levels[number].path: Steps(*counts[3:]) for number, *counts in self.engine.sweeps()}

    def energies(self) -> dict[str, list[tuple[float, float]]]:
        """Return what flowed and what moved through the bonds of each level: given and taken in turn."""
        return {self.levels[number].path: flowed for number, flowed in self.engine.energies()}

    def messages(self) -> dict[str, Any]:
        """Return what passed from host to host."""
        for number, links in self.engine.messages():
            post = self.levels[number].traffic
            assert post is not None
            post.sent = {pair: Load(*link) for pair, link in zip(post.used, links, strict=True)}
            return counted([self.levels[number]])
        return {}

    def stored(self) -> dict[str, float]:
        """Return the stored energy of every simulator that tells it."""
        found: dict[str, float] = {}
        for number, level in enumerate(self.levels):
            for child, simulator in enumerate(level.children):
                linear = linear_part(simulator, level.memory.degrees[child])
                if linear is not None and linear.model.stored is not None:
                    z = np.array(self.engine.state(number, child))
                    found[level.name(child)] = linear.model.stored.value(z[: linear.size])
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

    def _built(self, level: Level) -> Any:
        tick, start, denominator = level.clock.whole
        micro = {
            (id(entry.level), entry.child): (
                self.native_rows[index],
                [port for _, port, _ in entry.rows.columns],
            )
            for index, entry in enumerate(self.recorded)
            if entry.child is not None and index in self.native_rows
        }
        number = len(self.levels)
        self.levels.append(level)
        built = _native.Level(number, tick, start, denominator, level.length, level.degree, len(level.starts))
        lengths = lengths_of(level)
        for child, simulator in enumerate(level.children):
            model, degree = level.wiring.models[child], level.memory.degrees[child]
            sizes = degree + 1, len(model.inputs), len(model.outputs)
            if isinstance(simulator, StateSpaceSimulator):
                linear = self.matrices.plain(simulator, level, degree, lengths[child])
                rows, ports = micro.get((id(level), child), (None, []))
                built.add_state_space(linear, simulator.z, simulator.last_h or 0.0, rows, ports)
            elif twinned(simulator, degree):
                balance = self.matrices.balanced(simulator, level, degree, lengths[child])
                add_projected(built, simulator, balance)
            elif isinstance(simulator, Level):
                built.add_level(self._built(simulator), *sizes)
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
            built.set_post(*handed_over(level.traffic))
        built.set_programs(encoded(level.plan.step, level), encoded(level.plan.output, level))
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
                kind, samples, alpha = _kind(drive)
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
        alike = plainly_read(level)
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
        kind, number, child, port, call, tick, ticks, value, error = self.engine.failure()
        level = self.levels[number]
        name, t = level.name(child), level.clock.time(tick)
        if kind == "not_finite":
            return not_finite(name, level.wiring.models[child], port, value, t)
        if kind == "stopped_early":
            return EarlyError(name, value, t, level.clock.span(ticks), level.clock.time(tick + ticks))
        if kind == "reported":
            simulator: Any = level.children[child]
            return blame(name, CALLS[call], t, simulator.fault())
        if kind == "not_converged":
            repeat = found(level.plan, Repeat)[port]
            unknowns = level.unknowns_of(repeat)
            level.now = tick
            until, residuals = repeat.until or 0.0, self.engine.residuals()
            return no_agreement(level, unknowns, until, residuals, repeat.accelerate)
        if kind == "no_energy":
            return blame(name, CALLS[call], t, no_energy(value))
        if kind == "tolerance_not_met":
            return not_met(level, level.pace_of(found(level.plan, Adapt)[port]), tick, value)
        if kind in ("loop_singular", "loop_not_converged"):
            loop = found(level.plan, Solve)[port]
            ports = [f"{level.path}.{path}" if level.path else path for path in loop.ports]
            return no_solution(ports, t) if kind == "loop_singular" else no_convergence(ports, t, value)
        if kind == "raised":
            if not isinstance(error, Exception):
                raise error  # Ctrl-C, or an order to exit: nobody's fault
            failure = blame(name, CALLS[call], t, error)
            failure.__cause__ = error
            return failure
        return InternalError(f"`{name}` was asked for a step it was not prepared for", where=f"t = {t!r} s")


def _kind(drive: Drive) -> tuple[int, int, float]:
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
