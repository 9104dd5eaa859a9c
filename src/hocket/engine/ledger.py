"""The accounts of power bonds: what flowed through each, as either side sees it.

In:  the outputs and the input polynomials of children, at both ends of their steps
Out: power and energy per side; what was taken and never given is energy that the coupling made

Under a held input the power that a side sees is taken to be a line between both ends of its step; under a
polynomial the output is taken to be the cubic through both ends with their slopes, or a line where slopes
are not known, as those of a level.
The native engine repeats every operation in the same order, so that the bits agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hocket.bonding import TOLD, Account, of_children
from hocket.model import as_level
from hocket.signals import value_at
from hocket.wiring import Wiring

if TYPE_CHECKING:
    from hocket.engine.interpreter import Level

LEDGER = -3
"""In place of a child's number, in what is recorded."""
GIVEN, TAKEN, GAINED = range(3)
COLUMNS = ("given", "taken", "gained")
"""What may be recorded of a bond: two powers and an energy."""

State: TypeAlias = tuple[float, float, float, float, float, int]


@dataclass(slots=True)
class Side:
    """An account while it is kept."""

    account: Account
    sloped: bool
    """Whether the slope of the output is asked for: where the input is more than a held value."""
    power: float = 0.0
    """At the end of the newest step."""
    energy: float = 0.0
    at_start: float = 0.0
    """The power at the start of the step under way."""
    from_y: float = 0.0
    """The output there,"""
    from_slope: float = 0.0
    """and its slope."""
    since: int = -1
    """The tick of that start; -1: no step is under way."""
    saved_y: float = 0.0
    """The output when its child was last saved."""

    def state(self) -> State:
        """Return what changes."""
        return self.power, self.energy, self.at_start, self.from_y, self.from_slope, self.since

    def restore(self, state: State) -> None:
        """Go back to that."""
        self.power, self.energy, self.at_start, self.from_y, self.from_slope, self.since = state


class Ledger:
    """The accounts of a level: two per bond."""

    def __init__(self, wiring: Wiring, degrees: Sequence[int]):
        accounts = [account for bond in wiring.bonds for account in (bond.given, bond.taken)]
        self.sides = [Side(account, _sloped(wiring, account, degrees[account.child])) for account in accounts]
        self.of = of_children(wiring.bonds)

    def pause(self) -> None:
        """Keep no account any more."""
        self.of = {}

    def begin(self, level: Level) -> None:
        """Note the power at the start of a run."""
        for side in self.sides:
            if side.account.input != TOLD:
                side.power = side.account.factor * _newest(level, side) * _input(level, side)

    def open(self, level: Level, child: int) -> None:
        """Note the power at the start of a step."""
        for number in self.of.get(child, ()):
            side = self.sides[number]
            if side.since >= 0:
                continue  # it was not read since: the account goes over both steps
            side.since = level.ticks[child]
            if side.account.input == TOLD:
                continue
            # in a Repeat the newest output is one of the end of the step
            side.from_y = side.saved_y if level.repeating else _newest(level, side)
            side.from_slope = _slope(level, side)
            side.at_start = side.account.factor * side.from_y * _input(level, side)

    def close(self, level: Level, child: int) -> None:
        """Add the energy of the step that ends: Simpson's rule, on an output that is a cubic, or a line."""
        for number in self.of.get(child, ()):
            side = self.sides[number]
            if side.since < 0:
                continue
            clock, tick, factor = level.clock, level.ticks[child], side.account.factor
            h = clock.span(tick - side.since)
            side.since = -1
            y = _newest(level, side)
            if side.account.input == TOLD:
                side.power = (factor * y - side.energy) / h
                side.energy = factor * y
                continue
            side.power = factor * y * _input(level, side)
            if len(level.memory.u[child]) == 1:
                work = 0.5 * h * (side.at_start + side.power)
            else:
                slope = _slope(level, side)
                middle = 0.5 * (side.from_y + y) + 0.125 * h * (side.from_slope - slope)
                there = factor * middle * _input(level, side, 0.5 * h)
                work = h * (side.at_start + 4.0 * there + side.power) / 6.0
            side.energy = side.energy + work

    def gained_since(self, before: list[float]) -> float:
        """Return what the bonds gained since then, in sum."""
        total = 0.0
        for now, then in zip(self.gained(), before, strict=True):
            total = total + abs(now - then)
        return total

    def gained(self) -> list[float]:
        """Return, per bond, what was taken and not given."""
        energies = self.energies()
        return [taken - given for given, taken in zip(energies[::2], energies[1::2], strict=True)]

    def energies(self) -> list[float]:
        """Return what flowed, per side."""
        return [side.energy for side in self.sides]

    def column(self, number: int) -> float:
        """Return a recorded number: of the bond number // 3, the one of COLUMNS."""
        given, taken = self.sides[2 * (number // 3)], self.sides[2 * (number // 3) + 1]
        what = number % 3
        return taken.energy - given.energy if what == GAINED else (given, taken)[what].power

    def save(self) -> dict[int, State]:
        """Return the accounts."""
        return {number: side.state() for number, side in enumerate(self.sides)}

    def save_child(self, level: Level, child: int) -> dict[int, State]:
        """Return the accounts of a child that may go back within the step."""
        for number in self.of.get(child, ()):
            self.sides[number].saved_y = _newest(level, self.sides[number])
        return {number: self.sides[number].state() for number in self.of.get(child, ())}

    def restore(self, states: dict[int, State]) -> None:
        """Go back to accounts that were saved."""
        for number, state in states.items():
            self.sides[number].restore(state)


def _sloped(wiring: Wiring, account: Account, degree: int) -> bool:
    model = wiring.models[account.child]
    return degree > 0 and account.input != TOLD and model.abilities.slopes and as_level(model) is None


def _newest(level: Level, side: Side) -> float:
    return float(level.memory.rings[side.account.child][side.account.output][-1][1])


def _input(level: Level, side: Side, ago: float = 0.0) -> float:
    """Return the input that a child sees, or saw some time before."""
    child, memory = side.account.child, level.memory
    s = level.clock.span(level.ticks[child] - memory.base[child]) - ago
    return float(value_at(memory.u[child][:, side.account.input].tolist(), s))


def _slope(level: Level, side: Side) -> float:
    child = side.account.child
    if not side.sloped:
        return 0.0
    tick = level.ticks[child]
    return float(level.slopes_of(child, tick, level.seen_from(child, tick))[side.account.output])


def stored_energies(root: Level) -> dict[str, float]:
    """Return the stored energy of every simulator of a tree that tells it, by its path."""
    found: dict[str, float] = {}
    for child, simulator in enumerate(root.children):
        name, model = root.name(child), root.wiring.models[child]
        if as_level(model) is not None:
            found |= stored_energies(simulator)  # type: ignore[arg-type]
        elif getattr(model, "energy", None) is not None or (
            not hasattr(model, "energy") and hasattr(simulator, "energy")
        ):
            found[name] = float(simulator.energy())  # type: ignore[attr-defined]
    return found
