"""The energy residual of power bonds, from short trial runs of a coupling and of what may help.

In:  a Composite with bonds, and how far to run it
Out: a BondTrial; a BondCheck: the residual of each bond, and of other couplings
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf, isfinite, log
from time import perf_counter
from typing import Any

import numpy as np

from hocket.analysis.linear_reading import read_linear
from hocket.analysis.measure import Measure, Rows
from hocket.analysis.stability import spectral_radius
from hocket.engine.initialise import initialise
from hocket.engine.ledger import COLUMNS
from hocket.engine.native.engine import NativeEngine, native_obstacle
from hocket.engine.opening import open_level
from hocket.engine.reference.engine import InterpreterEngine
from hocket.engine.selection import bind_tables, choose_tables, keep_start_rows
from hocket.errors import HocketError
from hocket.files.bond_flows import KEEPS
from hocket.model.bonds import Balance
from hocket.model.composite import Composite, as_level, traits_of
from hocket.model.extrapolators import BalanceCorrection, Hermite, Hold, Polynomial
from hocket.model.protocols import Array, Extrapolator, declared_energy
from hocket.model.scenario import Scenario
from hocket.model.units import Share
from hocket.orchestrators import GaussSeidel, Iterate
from hocket.planning.parameters import change_levels
from hocket.planning.planner import plan_tree
from hocket.planning.tree import PlanTree, clock_of
from hocket.simulators.wrappers.balanced import Balanced

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
    """Steps of simulators per step of their level: of all iterations, and those that are parts of it."""
    stored: Mapping[int, float]
    """After so many steps: the energy that all simulators that tell it store."""
    telling: frozenset[str] = frozenset()
    """The simulators that tell it."""

    @property
    def share(self) -> float:
        """What all bonds gained or lost, in relation to what flowed."""
        flowed = sum(gain.moved for gain in self.gains)
        share = sum(abs(gain.gained) for gain in self.gains) / flowed if flowed > 0.0 else 0.0
        return share if isfinite(flowed) and isfinite(share) else inf

    def stored_energy_error(self, true: BondTrial | None) -> float | None:
        """Return by how much the stored energy differs from a true one, in relation to its largest."""
        if true is None:
            return None
        both = [(here, true.stored[steps]) for steps, here in self.stored.items() if steps in true.stored]
        largest = max((there for _, there in both), default=0.0)
        if not (isfinite(largest) and largest > 0.0):
            return None
        off = [abs(here - there) / largest for here, there in both]
        return max(off) if all(map(isfinite, off)) else inf


def run_bond_trial(composite: Composite, steps: int, start: Fraction) -> BondTrial:
    """Run some steps with the ledger kept."""
    design = plan_tree(composite)
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
    sweeps = swept.total / swept.repeats if swept.repeats else 1.0
    return sweeps * ((parts.accepted + parts.rejected) / made if parts.accepted else 1.0)


def _bond_gains(table: Any, t: Array, flowed: Sequence[tuple[float, float]]) -> Iterator[BondGain]:
    """Yield the bonds of a level, whose accounts fill the table, given and taken in turn."""
    width, seconds = len(COLUMNS), float(t[-1] - t[0])
    for number in range(len(table.columns) // width):
        (given, one), (taken, other) = flowed[2 * number : 2 * number + 2]
        path = table.columns[width * number].rpartition(".")[0]
        unit = table.units[width * number + width - 1]
        step = seconds / max(1, len(t) - 1)
        yield BondGain(path, taken - given, 0.5 * (one + other), seconds, step, unit)


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
    """The spectral radius, where the coupling is linear."""
    off: float | None = None
    """How far the stored energy is from that of an iteration, over the largest; None: not known."""
    why: str = ""
    """Why it does not get through."""
    grows: bool = False
    """Whether what it makes adds up over the run, more than in an iteration."""

    @property
    def keeps_energy(self) -> bool:
        """Whether the bonds keep the energy, and simulators store what they should."""
        return self.share <= KEEPS and not self.stores_wrong_energy and not self.grows

    @property
    def stores_wrong_energy(self) -> bool:
        """Whether simulators store what they should not, whatever bonds say."""
        return self.off is not None and self.off > OFF


@dataclass(frozen=True)
class BondResiduals(Measure):
    """The energy residual of each bond in a trial run."""

    gains: tuple[BondGain, ...]
    title = "energy residual of bonds in a trial run"

    def rows(self) -> Rows:
        return [
            {
                "bond": each.bond,
                "energy residual": each.gained,
                "per step": each.per_step,
                "unit": each.unit,
                "relative residual": Share(each.share),
                "duration [s]": each.seconds,
            }
            for each in self.gains
        ]

    def facts(self) -> dict[str, Any]:
        return {self.title: [asdict(each) | row for each, row in zip(self.gains, self.rows(), strict=True)]}


@dataclass(frozen=True)
class BondCheck(Measure):
    """The energy of all bonds."""

    gains: tuple[BondGain, ...]
    now: Remedy
    remedies: tuple[Remedy, ...]

    title = "energy residual of couplings"

    def verdict(self) -> list[str]:
        """Return the bond with the largest residual, and what helps."""
        if not self.gains:
            return []
        now, best, head = self.now, self.best, "energy residual"
        size = f"{Share(now.share):.2g} of the transferred energy"
        worst = max(self.gains, key=lambda gain: abs(gain.gained) if isfinite(gain.gained) else inf)
        line = f"{size}, the bonds conserve energy"
        if not any(gain.moved for gain in self.gains):
            return [f"{head}: not judged, no power flows through the bonds in a trial run"]
        if not isfinite(worst.gained):
            line = f"that of the bond `{worst.bond}` overflows in a trial run"
        elif now.share > KEEPS:
            verb = "gains" if worst.gained > 0.0 else "loses"
            made = f"{abs(worst.per_step):.2g} {worst.unit} per step, {Share(abs(worst.share)):.1f}"
            line = f"the bond `{worst.bond}` {verb} {made} of the transferred energy"
        elif now.grows:
            line = f"{size}, and it accumulates: spectral radius {now.rho:.9g}"
        lines = [f"{head}: {line}"]
        if now.share <= KEEPS and not now.keeps_energy and now.off is not None:
            lines.append(f"stored energy: deviates from that of an iteration by {Share(now.off):.2g} of peak")
        if best is not None:
            cost = f", for {best.work:.2g} times the steps" if best.work > 1.0 else ""
            what = "conserves energy" if best.keeps_energy else "comes nearest to conserving energy"
            share = f"{Share(best.share):.2g} of the transferred energy"
            lines.append(f"{what}: {best.words}: {head} {share}{cost}")
        return lines

    @property
    def best(self) -> Remedy | None:
        """The cheapest remedy that keeps the energy, or else the one that comes nearest to it."""
        keeping = [each for each in self.remedies if each.keeps_energy]
        if self.now.keeps_energy:
            return None
        if keeping:
            return min(keeping, key=lambda each: (each.work, each.share))
        sound = [each for each in self.remedies if not each.stores_wrong_energy]
        better = min(sound, key=lambda each: each.share, default=None)
        return better if better is not None and better.share < 0.5 * self.now.share else None

    @property
    def failures(self) -> list[str]:
        """Why remedies do not get through, in words."""
        return [f"{each.words} fails: {each.why}" for each in self.remedies if each.why]

    def rows(self) -> Rows:
        """Return the remedies as rows of a table, those of now first."""
        every = (self.now, *self.remedies)
        told = any(each.off is not None for each in every)
        off = [None if each.off is None else Share(each.off) for each in every]
        return [
            {
                "coupling": each.words,
                "relative residual": Share(each.share),
                **({"stored energy error": part} if told else {}),
                "spectral radius": each.rho,
                "relative cost": each.work,
            }
            for each, part in zip(every, off, strict=True)
        ]

    def notes(self) -> list[str]:
        """Return what the columns mean, and why remedies fail."""
        return [
            "residuals of trial runs relative to the transferred energy; unbounded: it fails. Stored energy: "
            "the largest deviation from an iteration at the same step, relative to its peak",
            *self.failures,
        ]

    def facts(self) -> dict[str, Any]:
        return {self.title: self.rows(), "couplings that fail": self.failures}


def bond_check(composite: Composite, start: Fraction, stop: Fraction | None, linear: bool) -> BondCheck:
    """Return what the bonds of a coupling gain; raises HocketError where not even a trial gets through."""
    steps = STEPS if stop is None else int((stop - start) / composite.step)
    count = min(STEPS, steps)
    seen = run_bond_trial(composite, count, start)
    true = _reference_trial(composite, count, start, seen)

    def judge(words: str, variant: Composite | None, trial: BondTrial | None, keeps_linear: bool) -> Remedy:
        rho = _try_spectral_radius(variant) if linear and keeps_linear and variant is not None else None
        if trial is None:
            return Remedy(words, inf, 1.0, rho)
        return Remedy(words, trial.share, trial.work / seen.work, rho, trial.stored_energy_error(true))

    found = [judge("as it is", composite, seen, True)]
    for words, change, keeps_linear in _candidate_remedies(composite):
        variant, trial, why = None, true if change is _iterate_linearly else None, ""
        try:
            variant = _change_bonded_levels(composite, change)
            trial = trial or run_bond_trial(variant, count, start)
            why = "" if isfinite(trial.share) else "its energy residual overflows"
        except HocketError as error:
            why = error.faults[0].what
        found.append(replace(judge(words, variant, trial, keeps_linear), why=why))
    if any(each.rho is not None for each in found):
        own = _own_spectral_radius(composite)
        found = [replace(each, grows=_energy_grows(each.rho, own, steps)) for each in found]
    now, *remedies = found
    return BondCheck(seen.gains, now, tuple(sorted(remedies, key=lambda each: each.share)))


def _own_spectral_radius(composite: Composite) -> float | None:
    """Return by how much motion grows in a step by itself, whatever the coupling; None: not known."""
    try:
        iterated = _change_bonded_levels(composite, lambda level: _with_linear_bonds(level, Iterate()))
    except HocketError:
        return None
    factor = _try_spectral_radius(iterated)
    return None if factor is None else max(factor, 1.0)


def _energy_grows(rho: float | None, own: float | None, steps: int) -> bool:
    """Return whether energy, the square of motion, grows in so many steps by more than it may."""
    return rho is not None and own is not None and rho > own and 2.0 * steps * log(rho / own) > KEEPS


def _reference_trial(composite: Composite, count: int, start: Fraction, seen: BondTrial) -> BondTrial | None:
    """Return the trial of an iteration without balance, where all at the bonds tell what they store.

    What is stored changes by losses and sources too, in ways that no account of bonds knows: an iteration at
    the same step says how.
    """
    bonded = [level for level in plan_tree(composite).levels() if level.wiring.bonds]
    owners = {
        ".".join(filter(None, (level.path, end.rpartition(".")[0])))
        for level in bonded
        for end in _bond_inputs(level.composite)
    }
    simple = all(traits_of(level.composite.orchestrator).is_explicit for level in bonded)
    if not simple or not owners <= seen.telling:
        return None
    try:
        return run_bond_trial(_change_bonded_levels(composite, _iterate_linearly), count, start)
    except HocketError:
        return None


def _try_spectral_radius(composite: Composite) -> float | None:
    try:
        return spectral_radius(read_linear(composite))
    except (HocketError, np.linalg.LinAlgError):
        return None


LevelChange = Callable[[Composite], Composite]


def _change_bonded_levels(composite: Composite, change: LevelChange) -> Composite:
    """Return the composite with a change in every level that has bonds."""
    return change_levels(composite, lambda level: change(level) if level.scenario.bonds else level)


def _candidate_remedies(composite: Composite) -> Iterator[tuple[str, LevelChange, bool]]:
    """Yield what may help, how to do it, and whether the coupling stays linear."""
    levels = [level for level in plan_tree(composite).levels() if level.wiring.bonds]
    bonded = [level.composite for level in levels]
    given = [each for level in bonded for each in _bond_extrapolators(level)]
    balanced = any(bond.balance for level in bonded for bond in level.scenario.bonds.values())
    simple = all(traits_of(level.orchestrator).is_explicit for level in bonded)
    if balanced:
        if simple:
            yield f"{ITERATION}, without balance", _iterate_linearly, False
        return
    sloped = all(map(_tells_slopes, levels))
    if any(isinstance(each, Hold) for each in given):
        line = partial(_extrapolate_bonds, extrapolation=Polynomial(1))
        yield "linear extrapolation on the bonds", line, True
        correction = partial(_extrapolate_bonds, extrapolation=BalanceCorrection())
        yield "balance correction on the bonds", correction, True
    if sloped and not any(isinstance(each, Hermite) for each in given):
        yield "tangents (hermite) on the bonds", partial(_extrapolate_bonds, extrapolation=Hermite()), True
    if all(traits_of(level.orchestrator).schedule == "parallel" for level in bonded):
        yield "Gauss-Seidel", lambda level: level.with_changes(orchestrator=GaussSeidel()), True
        smooth = Hermite() if sloped else Polynomial(1)
        also = "" if all(each.degree for each in given) else " and tangents" if sloped else " and lines"
        ends = [(level.scenario, end) for level in bonded for end in _bond_inputs(level)]
        declared = all(_declared_energy(*end) is not None for end in ends)
        forms: tuple[Balance, ...] = ("inversion", "energy") if declared else ("inversion",)
        for form in forms:
            yield f'balance = "{form}"{also}', partial(_balance_bonds, form=form, smooth=smooth), False
    if simple:
        yield ITERATION, _iterate_linearly, True


def _tells_slopes(level: PlanTree) -> bool:
    """Return whether inputs of the bonds of a level can follow the slopes of what drives them."""
    sources = (account.child for joint in level.wiring.bonds for account in (joint.given, joint.taken))
    fresh = traits_of(level.composite.orchestrator).outputs == "consistent"
    return fresh and all(level.wiring.models[child].capabilities.all_slopes for child in sources)


def _bond_inputs(level: Composite) -> set[str]:
    """Return the inputs that the bonds of a level drive."""
    return {end for bond in level.scenario.bonds.values() for end in (bond.effort, bond.flow)}


def _bond_extrapolators(level: Composite) -> list[Extrapolator]:
    ends = _bond_inputs(level)
    return [
        each.extrapolation or level.extrapolation
        for each in level.scenario.connections
        if each.target in ends
    ]


def _extrapolate_bonds(level: Composite, extrapolation: Extrapolator) -> Composite:
    ends = _bond_inputs(level)
    connections = [
        replace(each, extrapolation=extrapolation) if each.target in ends else each
        for each in level.scenario.connections
    ]
    return level.with_scenario(level.scenario.with_changes(connections=connections))


def _balance_bonds(level: Composite, form: Balance, smooth: Extrapolator) -> Composite:
    """Return a level with balanced bonds; inputs that are held become smooth."""
    held = any(each.degree == 0 for each in _bond_extrapolators(level))
    return _with_balance(_extrapolate_bonds(level, smooth) if held else level, form)


def _iterate_linearly(level: Composite) -> Composite:
    """Return a level that iterates what it does with lines, without balance."""
    return _with_linear_bonds(level, Iterate(level.orchestrator))


def _with_linear_bonds(level: Composite, orchestrator: Any) -> Composite:
    """Return a level with another algorithm, lines on its bonds, and no balance."""
    plain = _with_balance(level, None).with_changes(orchestrator=orchestrator)
    return _extrapolate_bonds(plain, Polynomial(1))


def _with_balance(level: Composite, form: Balance | None) -> Composite:
    bonds = {name: replace(bond, balance=form) for name, bond in level.scenario.bonds.items()}
    return level.with_scenario(level.scenario.with_changes(bonds=bonds))


def _declared_energy(scenario: Scenario, path: str) -> Any:
    """Return what the simulator with this port tells of its stored energy; None: nothing."""
    name, _, rest = path.partition(".")
    model = scenario.models.get(name)
    inner = as_level(model)
    return _declared_energy(inner.scenario, rest) if inner else declared_energy(model)


def balanced_leaves(composite: Composite) -> list[str]:
    """Return the simulators whose bonds are balanced: they follow no linear law."""
    return [
        level.name(child)
        for level in plan_tree(composite).levels()
        for child, model in enumerate(level.wiring.models)
        if isinstance(model, Balanced)
    ]
