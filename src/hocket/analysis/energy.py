"""Which power bonds gain energy that nobody gave, and what would keep it.

In:  a Composite with bonds, when it starts and stops
Out: what each bond gains in a trial run, and the same for each remedy; growth from the linear reading

A trial says nothing of phase: who keeps the energy may still be late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from time import perf_counter
from typing import Any

import numpy as np

from hocket.analysis.linear import read_linear
from hocket.analysis.stability import radius
from hocket.bonds import Balance
from hocket.engine.blueprint import clock_of, opened
from hocket.engine.composite import Composite
from hocket.engine.initialise import initialise
from hocket.engine.ledger import COLUMNS
from hocket.engine.native import NativeEngine, obstacle
from hocket.engine.plain import PlainEngine
from hocket.engine.selection import bind, choose, keep_start
from hocket.errors import HocketError
from hocket.files.flows import KEEPS
from hocket.model import Array, Extrapolator, Model, Scenario
from hocket.orchestrators import GaussSeidel, Iterate, Jacobi
from hocket.signals import BalanceCorrection, Hold, Polynomial
from hocket.simulators.balanced import Balanced

STEPS = 400
"""Of a trial, at most."""
SECONDS = 2.0
"""Of the clock on the wall, for one trial."""


@dataclass(frozen=True)
class Gain:
    """What a bond gained in a trial."""

    bond: str
    gained: float
    """In its unit times seconds: what was taken and not given."""
    flow: float
    """The mean size of the power through it."""
    seconds: float
    step: float
    unit: str

    @property
    def share(self) -> float:
        """What was gained, in relation to what flowed."""
        flowed = self.flow * self.seconds
        return self.gained / flowed if flowed > 0.0 else 0.0

    @property
    def per_step(self) -> float:
        """What one step of its level gains."""
        return self.gained * self.step / self.seconds


@dataclass(frozen=True)
class Remedy:
    """Something to do otherwise on the bonds, and what that brings."""

    words: str
    share: float
    """What all bonds gained or lost, in relation to what flowed; infinite: it does not get through."""
    work: float
    """Simulator steps, in those of now."""
    rho: float | None = None
    """The largest factor per step, where the coupling is linear."""


@dataclass(frozen=True)
class BondCheck:
    """The energy of all bonds."""

    gains: tuple[Gain, ...]
    now: Remedy
    remedies: tuple[Remedy, ...]

    @property
    def best(self) -> Remedy | None:
        """The cheapest remedy that keeps the energy, or else the one that comes nearest to it."""
        keeping = [each for each in self.remedies if each.share <= KEEPS]
        if self.now.share <= KEEPS:
            return None
        if keeping:
            return min(keeping, key=lambda each: (each.work, each.share))
        better = min(self.remedies, key=lambda each: each.share, default=None)
        return better if better is not None and better.share < 0.5 * self.now.share else None

    def rows(self) -> list[dict[str, object]]:
        """Return the remedies as rows of a table, those of now first."""
        return [
            {
                "coupling": each.words,
                "gained or lost": each.share,
                "factor per step": each.rho,
                "steps": each.work,
            }
            for each in (self.now, *self.remedies)
        ]


def bond_check(composite: Composite, start: Fraction, stop: Fraction | None, linear: bool) -> BondCheck:
    """Return what the bonds of a coupling gain; raises HocketError where not even a trial gets through."""
    count = STEPS if stop is None else min(STEPS, int((stop - start) / composite.step))
    gains, sweeps = trial(composite, count, start)
    now = Remedy("as it is", _share(gains), 1.0, _factor(composite) if linear else None)
    found = []
    for words, change, keeps_linear in _remedies(composite):
        try:
            variant = _changed(composite, change)
            there, repeated = trial(variant, count, start)
            share, work = _share(there), repeated / sweeps
        except HocketError:
            share, work = float("inf"), 1.0
        found.append(Remedy(words, share, work, _factor(variant) if linear and keeps_linear else None))
    return BondCheck(tuple(gains), now, tuple(sorted(found, key=lambda each: each.share)))


def trial(composite: Composite, steps: int, start: Fraction) -> tuple[list[Gain], float]:
    """Run some steps with the ledger kept; return what the bonds gained, and the mean count of sweeps."""
    design = composite.blueprint
    clock = clock_of(design, start=start)
    chosen = choose(design, clock, (), None, ledger=True)
    root = opened(design, clock)
    try:
        initialise(root, clock.time(0))
        recorded = bind(root, chosen)
        keep_start(recorded)
        made: Any = PlainEngine if obstacle(root) else NativeEngine
        engine = made(root, recorded)
        begun, done = perf_counter(), 0
        while done < steps and perf_counter() - begun < SECONDS:
            done += engine.run(min(steps - done, 50), SECONDS)
        gains = [
            gain for index, entry in enumerate(recorded) for gain in _gains(entry.table, engine.rows(index))
        ]
        repeats = [each for each in engine.sweeps().values() if each.repeats]
        sweeps = max((each.total / each.repeats for each in repeats), default=1.0)
    finally:
        root.close()
    return gains, sweeps


def _gains(table: Any, rows: Array) -> Iterator[Gain]:
    width = len(COLUMNS)
    t = rows[:, 0]
    for number in range(len(table.columns) // width):
        given, taken, gained = (rows[:, 1 + width * number + k] for k in range(width))
        path = table.columns[width * number].rpartition(".")[0]
        flow = float(np.mean(0.5 * (np.abs(given) + np.abs(taken))))
        seconds = float(t[-1] - t[0])
        unit = table.units[width * number + width - 1]
        yield Gain(path, float(gained[-1]), flow, seconds, seconds / max(1, len(t) - 1), unit)


def _share(gains: list[Gain]) -> float:
    flowed = sum(gain.flow * gain.seconds for gain in gains)
    share = sum(abs(gain.gained) for gain in gains) / flowed if flowed > 0.0 else 0.0
    return share if isfinite(share) else float("inf")


def _factor(composite: Composite) -> float | None:
    try:
        return radius(read_linear(composite))
    except (HocketError, np.linalg.LinAlgError):
        return None


Change = Callable[[Composite], Composite]


def _changed(composite: Composite, change: Change) -> Composite:
    """Return the composite with a change in every level that has bonds."""
    models: dict[str, Model] = {
        name: _changed(model, change) if isinstance(model, Composite) else model
        for name, model in composite.scenario.models.items()
    }
    inside = composite.with_scenario(composite.scenario.with_models(models))
    return change(inside) if inside.scenario.bonds else inside


def _remedies(composite: Composite) -> Iterator[tuple[str, Change, bool]]:
    """Yield what may help, how to do it, and whether the coupling stays linear."""
    bonded = [level.composite for level in composite.blueprint.levels() if level.wiring.bonds]
    held = any(isinstance(each, Hold) for level in bonded for each in _extrapolators(level))
    balanced = any(bond.balance for level in bonded for bond in level.scenario.bonds.values())
    if balanced:
        return
    if held:
        yield "linear extrapolation on the bonds", _extrapolated(Polynomial(1)), True
        yield "balance correction on the bonds", _extrapolated(BalanceCorrection()), True
    if all(isinstance(level.orchestrator, Jacobi) for level in bonded):
        yield "Gauss-Seidel", _orchestrated(lambda _: GaussSeidel()), True
        yield 'balance = "inversion"', _balanced("inversion"), False
        ends = [(level.scenario, end) for level in bonded for end in _ends(level)]
        if all(_stored(*end) is not None for end in ends):
            yield 'balance = "energy"', _balanced("energy"), False
    if all(isinstance(level.orchestrator, (Jacobi, GaussSeidel)) for level in bonded):
        yield (
            "iteration, with linear waveforms",
            lambda level: _extrapolated(Polynomial(1))(_orchestrated(lambda inner: Iterate(inner))(level)),
            True,
        )


def _ends(level: Composite) -> set[str]:
    """Return the inputs that the bonds of a level drive."""
    return {end for bond in level.scenario.bonds.values() for end in (bond.effort, bond.flow)}


def _extrapolators(level: Composite) -> list[Extrapolator]:
    ends = _ends(level)
    return [
        each.extrapolation or level.extrapolation
        for each in level.scenario.connections
        if each.target in ends
    ]


def _extrapolated(extrapolation: Extrapolator) -> Change:
    def change(level: Composite) -> Composite:
        ends = _ends(level)
        connections = [
            replace(each, extrapolation=extrapolation) if each.target in ends else each
            for each in level.scenario.connections
        ]
        return level.with_scenario(level.scenario.changed(connections=connections))

    return change


def _orchestrated(make: Callable[[Any], Any]) -> Change:
    def change(level: Composite) -> Composite:
        how = level.extrapolation, level.start, level.sampled
        return Composite(level.scenario, level.step, make(level.orchestrator), *how)

    return change


def _balanced(form: Balance) -> Change:
    def change(level: Composite) -> Composite:
        held = any(each.degree == 0 for each in _extrapolators(level))
        level = _extrapolated(Polynomial(1))(level) if held else level
        bonds = {name: replace(bond, balance=form) for name, bond in level.scenario.bonds.items()}
        return level.with_scenario(level.scenario.changed(bonds=bonds))

    return change


def _stored(scenario: Scenario, path: str) -> Any:
    """Return what the simulator with this port tells of its stored energy; None: nothing."""
    name, _, rest = path.partition(".")
    model: Any = scenario.models.get(name)
    inner = getattr(model, "scenario", None)
    return _stored(inner, rest) if inner else getattr(model, "energy", None)


def balanced_leaves(composite: Composite) -> list[str]:
    """Return the simulators whose bonds are balanced: they follow no linear law."""
    return [
        level.name(child)
        for level in composite.blueprint.levels()
        for child, model in enumerate(level.wiring.models)
        if isinstance(model, Balanced)
    ]
