"""A short run of a coupling with bonds: what they gain, and what simulators store on the way.

In:  a Composite with bonds, and how far to run it
Out: a Trial
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from time import perf_counter
from typing import Any

from hocket.engine.blueprint import PlanTree, clock_of, open_level
from hocket.engine.composite import Composite
from hocket.engine.initialise import initialise
from hocket.engine.ledger import COLUMNS
from hocket.engine.native import NativeEngine, native_obstacle
from hocket.engine.plain import InterpreterEngine
from hocket.engine.selection import bind_tables, choose_tables, keep_start_rows
from hocket.model import Array

SECONDS = 2.0
"""Of the clock on the wall, for one trial."""
LOOKS = 40
"""How often stored energies are looked at."""


@dataclass(frozen=True)
class BondGain:
    """What a bond gained in a trial."""

    bond: str
    gained: float
    """In its unit times seconds: what was taken and not given."""
    moved: float
    """The energy that went through it, whichever way, as the run itself counts it."""
    seconds: float
    step: float
    unit: str

    @property
    def share(self) -> float:
        """What was gained, in relation to what flowed."""
        if not isfinite(self.moved):
            return inf
        return self.gained / self.moved if self.moved > 0.0 else 0.0

    @property
    def per_step(self) -> float:
        """What one step of its level gains."""
        return self.gained * self.step / self.seconds


@dataclass(frozen=True)
class BondTrial:
    """What a trial showed."""

    gains: tuple[BondGain, ...]
    work: float
    """Steps of simulators per step of their level: those of all sweeps, and those that are parts of it."""
    stored: Mapping[int, float]
    """After so many steps: the energy that all simulators that tell it store."""
    telling: frozenset[str] = frozenset()
    """Who tells it."""

    @property
    def share(self) -> float:
        """What all bonds gained or lost, in relation to what flowed."""
        flowed = sum(gain.moved for gain in self.gains)
        if not isfinite(flowed):
            return inf
        share = sum(abs(gain.gained) for gain in self.gains) / flowed if flowed > 0.0 else 0.0
        return share if isfinite(share) else inf

    def stored_energy_error(self, true: BondTrial) -> float | None:
        """Return by how much the stored energy differs from a true one, in relation to its largest."""
        both = [(here, true.stored[steps]) for steps, here in self.stored.items() if steps in true.stored]
        largest = max((there for _, there in both), default=0.0)
        if not (isfinite(largest) and largest > 0.0):
            return None
        off = [abs(here - there) / largest for here, there in both]
        return max(off) if all(map(isfinite, off)) else inf


def run_bond_trial(composite: Composite, steps: int, start: Fraction) -> BondTrial:
    """Run some steps with the ledger kept."""
    design = composite.blueprint
    clock = clock_of(design, start=start)
    chosen = choose_tables(design, clock, (), None, ledger=True)
    root = open_level(design, clock)
    try:
        initialise(root, clock.time(0))
        recorded = bind_tables(root, chosen)
        keep_start_rows(recorded)
        made: Any = InterpreterEngine if native_obstacle(root) else NativeEngine
        engine = made(root, recorded)
        begun, done, once = perf_counter(), 0, max(1, steps // LOOKS)
        stored = {0: sum(engine.stored_energy().values())}
        while done < steps and perf_counter() - begun < SECONDS:
            done += engine.run(min(steps - done, once), SECONDS)
            stored[done] = sum(engine.stored_energy().values())
        flowed = engine.energies()
        gains = [
            gain
            for index, entry in enumerate(recorded)
            for gain in _bond_gains(entry.table, engine.rows(index)[:, 0], flowed[entry.level.path])
        ]
        work = max(_work_per_step(engine, level, done * float(composite.step)) for level in design.levels())
        telling = frozenset(engine.stored_energy())
    finally:
        root.close()
    return BondTrial(tuple(gains), work, stored, telling)


def _work_per_step(engine: Any, level: PlanTree, seconds: float) -> float:
    """Return how many steps simulators made per step of a level."""
    swept, parts = engine.sweeps()[level.path], engine.steps()[level.path]
    made = max(1.0, seconds / float(level.composite.step))
    return (swept.total / swept.repeats if swept.repeats else 1.0) * (
        (parts.accepted + parts.rejected) / made if parts.accepted else 1.0
    )


def _bond_gains(table: Any, t: Array, flowed: Sequence[tuple[float, float]]) -> Iterator[BondGain]:
    """Yield the bonds of a level, whose accounts fill the table, given and taken in turn."""
    width, seconds = len(COLUMNS), float(t[-1] - t[0])
    for number in range(len(table.columns) // width):
        (given, one), (taken, other) = flowed[2 * number : 2 * number + 2]
        path = table.columns[width * number].rpartition(".")[0]
        unit = table.units[width * number + width - 1]
        step = seconds / max(1, len(t) - 1)
        yield BondGain(path, taken - given, 0.5 * (one + other), seconds, step, unit)
