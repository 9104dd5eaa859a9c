"""Which power bonds gain energy that nobody gave, and what would keep it.

In:  a Composite with bonds, when it starts and stops
Out: what each bond gains in a trial run, and the same for each remedy; growth from the linear reading

A trial says nothing of phase: who keeps the energy may still be late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite, log
from typing import Any

import numpy as np

from hocket.analysis.bond_trials import Gain, Trial, trial
from hocket.analysis.linear import read_linear
from hocket.analysis.stability import radius
from hocket.bonds import Balance
from hocket.engine.blueprint import Blueprint
from hocket.engine.composite import Composite
from hocket.errors import HocketError
from hocket.files.flows import KEEPS
from hocket.model import Extrapolator, Model, Scenario
from hocket.orchestrators import GaussSeidel, Iterate, Jacobi
from hocket.signals import BalanceCorrection, Hermite, Hold, Polynomial
from hocket.simulators.balanced import Balanced

STEPS = 400
"""Of a trial, at most."""
ITERATION = "iteration, with linear waveforms"
OFF = 0.1
"""The part of the largest stored energy by which another stored energy is no longer that of the system."""


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
    off: float | None = None
    """How far the stored energy is from that of an iteration, over the largest; None: not known."""
    why: str = ""
    """Why it does not get through."""
    grows: bool = False
    """Whether what it makes adds up over the run, more than in an iteration."""

    @property
    def keeps(self) -> bool:
        """Whether the bonds keep the energy, and simulators store what they should."""
        return self.share <= KEEPS and not self.astray and not self.grows

    @property
    def astray(self) -> bool:
        """Whether simulators store what they should not, whatever bonds say."""
        return self.off is not None and self.off > OFF


@dataclass(frozen=True)
class BondCheck:
    """The energy of all bonds."""

    gains: tuple[Gain, ...]
    now: Remedy
    remedies: tuple[Remedy, ...]

    @property
    def best(self) -> Remedy | None:
        """The cheapest remedy that keeps the energy, or else the one that comes nearest to it."""
        keeping = [each for each in self.remedies if each.keeps]
        if self.now.keeps:
            return None
        if keeping:
            return min(keeping, key=lambda each: (each.work, each.share))
        sound = [each for each in self.remedies if not each.astray]
        better = min(sound, key=lambda each: each.share, default=None)
        return better if better is not None and better.share < 0.5 * self.now.share else None

    @property
    def failures(self) -> list[str]:
        """Why remedies do not get through, in words."""
        return [f"{each.words} fails: {each.why}" for each in self.remedies if each.why]

    def rows(self) -> list[dict[str, object]]:
        """Return the remedies as rows of a table, those of now first."""
        every = (self.now, *self.remedies)
        told = any(each.off is not None for each in every)
        return [
            {
                "coupling": each.words,
                "gained or lost": each.share,
                **({"stored energy off by": each.off} if told else {}),
                "factor per step": each.rho,
                "steps": each.work,
            }
            for each in every
        ]


def bond_check(composite: Composite, start: Fraction, stop: Fraction | None, linear: bool) -> BondCheck:
    """Return what the bonds of a coupling gain; raises HocketError where not even a trial gets through."""
    count = STEPS if stop is None else min(STEPS, int((stop - start) / composite.step))
    seen = trial(composite, count, start)
    true = _reference(composite, count, start, seen)
    now = Remedy("as it is", seen.share, 1.0, _factor(composite) if linear else None, _off(seen, true))
    found = []
    for words, change, keeps_linear in _remedies(composite):
        variant, there = None, true
        share, work, off, why = float("inf"), 1.0, None, ""
        try:
            variant = _changed(composite, change)
            if change is not _iterated or there is None:
                there = trial(variant, count, start)
            share, work, off = there.share, there.work / seen.work, _off(there, true)
            why = "" if isfinite(share) else "what the bonds gain grows beyond all numbers"
        except HocketError as error:
            why = error.faults[0].what
        rho = _factor(variant) if linear and keeps_linear and variant is not None else None
        found.append(Remedy(words, share, work, rho, off, why))
    if any(each.rho is not None for each in (now, *found)):
        own, steps = _own_factor(composite), STEPS if stop is None else int((stop - start) / composite.step)
        now, *found = (replace(each, grows=_grows(each.rho, own, steps)) for each in (now, *found))
    return BondCheck(seen.gains, now, tuple(sorted(found, key=lambda each: each.share)))


def _own_factor(composite: Composite) -> float | None:
    """Return by how much motion grows in a step by itself, whatever the coupling; None: not known."""
    try:
        factor = _factor(_changed(composite, lambda level: _lined(level, lambda _: Iterate())))
    except HocketError:
        return None
    return None if factor is None else max(factor, 1.0)


def _grows(rho: float | None, own: float | None, steps: int) -> bool:
    """Return whether energy, the square of motion, grows in so many steps by more than it may."""
    if rho is None or own is None:
        return False
    return rho > own and 2.0 * steps * log(rho / own) > KEEPS


def _off(seen: Trial, true: Trial | None) -> float | None:
    return None if true is None else seen.off(true)


def _reference(composite: Composite, count: int, start: Fraction, seen: Trial) -> Trial | None:
    """Return the trial of an iteration without balance, where all at the bonds tell what they store.

    What is stored changes by losses and sources too, in ways that no account of bonds knows: an iteration at
    the same step says how.
    """
    bonded = [level for level in composite.blueprint.levels() if level.wiring.bonds]
    owners = {
        ".".join(filter(None, (level.path, end.rpartition(".")[0])))
        for level in bonded
        for end in _ends(level.composite)
    }
    simple = all(isinstance(level.composite.orchestrator, (Jacobi, GaussSeidel)) for level in bonded)
    if not simple or not owners <= seen.telling:
        return None
    try:
        return trial(_changed(composite, _iterated), count, start)
    except HocketError:
        return None


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
    levels = [level for level in composite.blueprint.levels() if level.wiring.bonds]
    bonded = [level.composite for level in levels]
    given = [each for level in bonded for each in _extrapolators(level)]
    balanced = any(bond.balance for level in bonded for bond in level.scenario.bonds.values())
    simple = all(isinstance(level.orchestrator, (Jacobi, GaussSeidel)) for level in bonded)
    if balanced:
        if simple:
            yield f"{ITERATION}, without balance", _iterated, False
        return
    sloped = all(map(_tells_slopes, levels))
    if any(isinstance(each, Hold) for each in given):
        yield "linear extrapolation on the bonds", _extrapolated(Polynomial(1)), True
        yield "balance correction on the bonds", _extrapolated(BalanceCorrection()), True
    if sloped and not any(isinstance(each, Hermite) for each in given):
        yield "tangents (hermite) on the bonds", _extrapolated(Hermite()), True
    if all(isinstance(level.orchestrator, Jacobi) for level in bonded):
        yield "Gauss-Seidel", _orchestrated(lambda _: GaussSeidel()), True
        smooth = Hermite() if sloped else Polynomial(1)
        also = "" if all(each.degree for each in given) else " and tangents" if sloped else " and lines"
        yield f'balance = "inversion"{also}', _balanced("inversion", smooth), False
        ends = [(level.scenario, end) for level in bonded for end in _ends(level)]
        if all(_stored(*end) is not None for end in ends):
            yield f'balance = "energy"{also}', _balanced("energy", smooth), False
    if simple:
        yield ITERATION, _iterated, True


def _tells_slopes(level: Blueprint) -> bool:
    """Return whether inputs of the bonds of a level can follow the slopes of what drives them."""
    sources = (account.child for joint in level.wiring.bonds for account in (joint.given, joint.taken))
    fresh = getattr(level.composite.orchestrator, "outputs", "stale") == "consistent"
    return fresh and all(level.wiring.models[child].abilities.slopes for child in sources)


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


def _balanced(form: Balance, smooth: Extrapolator) -> Change:
    """Return what balances bonds; inputs that are held become smooth."""

    def change(level: Composite) -> Composite:
        held = any(each.degree == 0 for each in _extrapolators(level))
        level = _extrapolated(smooth)(level) if held else level
        bonds = {name: replace(bond, balance=form) for name, bond in level.scenario.bonds.items()}
        return level.with_scenario(level.scenario.changed(bonds=bonds))

    return change


def _iterated(level: Composite) -> Composite:
    """Return a level that iterates what it does with lines, without balance."""
    return _lined(level, Iterate)


def _lined(level: Composite, make: Callable[[Any], Any]) -> Composite:
    """Return a level with another algorithm, lines on its bonds, and no balance."""
    bonds = {name: replace(bond, balance=None) for name, bond in level.scenario.bonds.items()}
    plain = level.with_scenario(level.scenario.changed(bonds=bonds))
    return _extrapolated(Polynomial(1))(_orchestrated(make)(plain))


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
