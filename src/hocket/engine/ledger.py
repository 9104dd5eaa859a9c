"""The accounts of power bonds: what flowed through each, as either side sees it.

In:  the outputs and the input polynomials of children, at both ends of their steps
Out: power and energy per side; what was taken and never given is energy that the coupling made

Under a held input the power that a side sees is taken to be a line between both ends of its step; under a
polynomial the output is taken to be the cubic through both ends with their slopes, or a line where slopes
are not known, as those of a level.
The native engine repeats every operation in the same order, so that the bits agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

from hocket.coupling.power_accounts import SELF_KEPT, Account, accounts_by_child
from hocket.coupling.wiring import OWN, Wiring
from hocket.engine.protocol import LiveLevel
from hocket.engine.simulator_calls import blame
from hocket.errors import Fault, SimulatorError
from hocket.model.composite import as_level
from hocket.model.extrapolators import value_at
from hocket.model.protocols import StoredEnergySimulator, provides
from hocket.simulators.methods import dot
from hocket.simulators.ode import Ode
from hocket.simulators.state_space import StateSpace

LEDGER = -3
"""In place of a child's number, in what is recorded."""
GAINED = 2
"""The third of the COLUMNS."""
NOT = -1
"""In place of an account inside: there is none."""
COLUMNS = ("given", "taken", "gained")
"""What may be recorded of a bond: two powers and an energy."""

State: TypeAlias = tuple[float, float, float, float, float, float, int]


class SlopeGains(NamedTuple):
    """How the slope of a linear model's output follows from its state and inputs: C A x + C B u + D u'."""

    x: list[float]
    u: list[float]
    du: list[float]
    """Empty: the output does not react to inputs at once."""


@dataclass(slots=True)
class RunningAccount:
    """An account while it is kept."""

    account: Account
    asked: bool = False
    """Whether the simulator is asked for the slope of its output."""
    slopes: SlopeGains | None = None
    """How the slope is known without asking."""
    anew: bool = False
    """Whether the output at the start of a step is asked for again: inputs have direct feedthrough to it."""
    inside: int = NOT
    """Of a child that is a level: its own account of its border, which is taken over."""
    power: float = 0.0
    """At the end of the newest step."""
    energy: float = 0.0
    moved: float = 0.0
    """The energy that went through, whichever way."""
    from_y: float = 0.0
    """The output at the start of the step under way,"""
    from_slope: float = 0.0
    """and its slope, where that is asked for,"""
    from_rest: float = 0.0
    """or what the state gives to it; of an input that is held, that input."""
    since: int = -1
    """The tick of that start; -1: no step is under way."""
    saved_y: float = 0.0
    """The output when its child was last saved."""

    def state(self) -> State:
        """Return what changes."""
        started = self.from_y, self.from_slope, self.from_rest, self.since
        return self.power, self.energy, self.moved, *started

    def restore(self, state: State) -> None:
        """Go back to that."""
        self.power, self.energy, self.moved, self.from_y, self.from_slope, self.from_rest, self.since = state


class Ledger:
    """The accounts of a level: two per bond, and after them those that the level around it takes over."""

    def __init__(self, wiring: Wiring, degrees: Sequence[int]):
        accounts = [account for bond in wiring.bonds for account in (bond.given, bond.taken)]
        self.sides = [_running_account(wiring, account, degrees[account.child]) for account in accounts]
        self.of = accounts_by_child(wiring.bonds)
        self.pairs = len(wiring.bonds)

    def link_inner_accounts(self, level: LiveLevel) -> None:
        """Let children that are levels keep the accounts of their borders, at their own steps."""
        for side in self.sides:
            if (
                side.account.input != SELF_KEPT
                and as_level(level.wiring.models[side.account.child]) is not None
            ):
                inner: Any = level.children[side.account.child]
                side.inside = inner.ledger.add_border_account(inner, side.account)

    def add_border_account(self, level: LiveLevel, outer: Account) -> int:
        """Keep an account of the level's own ports; return its number.

        It is one of the child behind the output, if the input leads to that child: else it is NOT kept here.
        """
        source = level.wiring.outputs[outer.output]
        entries = [
            (index, drive)
            for index, drive in enumerate(level.wiring.drives[source.child])
            if drive is not None and (drive.child, drive.port) == (OWN, outer.input)
        ]
        if len(entries) != 1 or source.offset or entries[0][1].offset or not entries[0][1].gain:
            return NOT
        index, drive = entries[0]
        account = Account(source.child, source.port, index, outer.factor * source.gain / drive.gain)
        side = _running_account(level.wiring, account, level.memory.degrees[source.child])
        if as_level(level.wiring.models[source.child]) is not None:
            inner: Any = level.children[source.child]
            side.inside = inner.ledger.add_border_account(inner, account)
        self.of.setdefault(source.child, []).append(len(self.sides))
        self.sides.append(side)
        return len(self.sides) - 1

    def pause(self) -> None:
        """Keep no account any more."""
        self.of = {}

    def has_held_input(self, level: LiveLevel, number: int) -> bool:
        """Return whether an account is one of a held input."""
        account, inside = self.sides[number].account, self.sides[number].inside
        return account.input != SELF_KEPT and inside == NOT and level.memory.degrees[account.child] == 0

    def reacts(self, level: LiveLevel, side: RunningAccount) -> bool:
        """Return whether what an account looks at may react to inputs at once."""
        return bool(level.wiring.models[side.account.child].outputs[side.account.output].feedthrough)

    def begin(self, level: LiveLevel) -> None:
        """Note the power at the start of a run; the levels inside have done so."""
        for side in self.sides:
            if side.account.child in level.remote:
                continue  # kept where it lives
            if side.inside != NOT:
                side.power = _border_account(level, side).power
                continue
            side.from_y, side.from_rest = _newest_output(level, side), _state_slope(level, side)
            if side.account.input != SELF_KEPT:
                side.power = (
                    side.account.factor
                    * _input_at(level, side, _seconds_since_fit(level, side))
                    * side.from_y
                )

    def open(self, level: LiveLevel, child: int) -> None:
        """Note where a step starts."""
        for number in self.of.get(child, ()):
            side = self.sides[number]
            if side.inside != NOT or side.since >= 0:
                continue  # it was not read since: the account goes over both steps
            side.since = level.ticks[child]
            side.from_y = _output_at_start(level, side)
            held = side.account.input != SELF_KEPT and len(level.memory.u[child]) == 1
            side.from_rest = _input_at(level, side, 0.0) if held else _state_slope(level, side)
            side.from_slope = _reported_slope(level, side)

    def close(self, level: LiveLevel, child: int, ports: set[int] | None = None) -> None:
        """Add the energy of the step that ends: Simpson's rule, on an output that is a cubic, or a line.

        `ports` are the outputs that were read; None: all. The accounts of others stay open.
        """
        for number in self.of.get(child, ()):
            side = self.sides[number]
            if ports is not None and side.account.output not in ports:
                continue
            if side.inside != NOT:
                kept = _border_account(level, side)
                side.power, side.energy, side.moved = kept.power, kept.energy, kept.moved
                continue
            if side.since < 0:
                continue
            factor, y = side.account.factor, _newest_output(level, side)
            h = level.clock.span(level.ticks[child] - side.since)
            side.since = -1
            if side.account.input == SELF_KEPT:
                side.power = (factor * y - side.energy) / h
                side.moved = side.moved + abs(factor * y - side.energy)
                side.energy = factor * y
                continue
            s = _seconds_since_fit(level, side)
            rows, first, last = (
                len(level.memory.u[child]),
                _input_at(level, side, s - h),
                _input_at(level, side, s),
            )
            if rows == 1:
                start, side.power = factor * side.from_rest * side.from_y, factor * last * y
                work = 0.5 * h * (start + side.power)
            else:
                bend = side.from_slope - _reported_slope(level, side)
                if side.slopes is not None:
                    bend = _slope_drop(level, side, side.from_rest - _state_slope(level, side), s, h)
                half = first + last if rows == 2 else 2.0 * _input_at(level, side, s - 0.5 * h)
                middle = (side.from_y + y) + 0.25 * h * bend
                side.power = factor * (last * y)
                work = h / 6.0 * factor * (first * side.from_y + last * y + half * middle)
            side.energy = side.energy + work
            side.moved = side.moved + abs(work)

    def residual_since(self, before: list[float]) -> float:
        """Return what the bonds gained since then, in sum."""
        total = 0.0
        for now, then in zip(self.energy_residuals(), before, strict=True):
            total = total + abs(now - then)
        return total

    def energy_residuals(self) -> list[float]:
        """Return, per bond, what was taken and not given."""
        energies = [side.energy for side in self.sides[: 2 * self.pairs]]
        return [taken - given for given, taken in zip(energies[::2], energies[1::2], strict=True)]

    def energies(self) -> list[tuple[float, float]]:
        """Return what flowed on balance, and what moved whichever way, per side."""
        return [(side.energy, side.moved) for side in self.sides[: 2 * self.pairs]]

    def recorded_value(self, number: int) -> float:
        """Return a recorded number: of the bond number // 3, the one of COLUMNS."""
        given, taken = self.sides[2 * (number // 3)], self.sides[2 * (number // 3) + 1]
        what = number % 3
        return taken.energy - given.energy if what == GAINED else (given, taken)[what].power

    def save(self) -> dict[int, State]:
        """Return the accounts."""
        return {number: side.state() for number, side in enumerate(self.sides)}

    def save_child(self, level: LiveLevel, child: int) -> dict[int, State]:
        """Return the accounts of a child that may roll back within the step."""
        for number in self.of.get(child, ()):
            self.sides[number].saved_y = _newest_output(level, self.sides[number])
        return {number: self.sides[number].state() for number in self.of.get(child, ())}

    def restore(self, states: dict[int, State]) -> None:
        """Go back to accounts that were saved."""
        for number, state in states.items():
            self.sides[number].restore(state)


def _running_account(wiring: Wiring, account: Account, degree: int) -> RunningAccount:
    model = wiring.models[account.child]
    told = account.input == SELF_KEPT
    anew = (
        not told and isinstance(model, (StateSpace, Ode)) and bool(model.outputs[account.output].feedthrough)
    )
    can = model.capabilities
    sloped = can.slopes and (told or model.outputs[account.output].name not in can.slopeless)
    if degree == 0 or told or not sloped or as_level(model) is not None:
        return RunningAccount(account, anew=anew)
    if not isinstance(model, StateSpace):
        return RunningAccount(account, asked=True, anew=anew)
    C, D = model.C[account.output], model.D[account.output]
    x = [dot(C, [row[k] for row in model.A]) for k in range(len(C))]
    u = [dot(C, [row[k] for row in model.B]) for k in range(len(D))]
    return RunningAccount(account, slopes=SlopeGains(x, u, list(D) if any(D) else []), anew=anew)


def _newest_output(level: LiveLevel, side: RunningAccount) -> float:
    return float(level.memory.rings[side.account.child][side.account.output][-1][1])


def _border_account(level: LiveLevel, side: RunningAccount) -> RunningAccount:
    """Return the account that a child keeps of its border."""
    inner: Any = level.children[side.account.child]
    kept: RunningAccount = inner.ledger.sides[side.inside]
    return kept


def _output_at_start(level: LiveLevel, side: RunningAccount) -> float:
    """Return the output at the start of the step under way."""
    child = side.account.child
    if side.anew:
        tick = level.ticks[child]
        return float(level.outputs_of(child, tick, level.inputs_since(child, tick))[side.account.output])
    # in a Repeat the newest output of one that went back is one of the end of the step
    back = level.repeating > 0 and level.kept[child].tick == level.ticks[child]
    return side.saved_y if back else _newest_output(level, side)


def _seconds_since_fit(level: LiveLevel, side: RunningAccount) -> float:
    """Return the seconds since the time that the polynomials of a child are about."""
    child = side.account.child
    return level.clock.span(level.ticks[child] - level.memory.base[child])


def _input_at(level: LiveLevel, side: RunningAccount, s: float) -> float:
    """Return the input of a side, s seconds after the time that the polynomials are about."""
    return float(value_at(level.memory.u[side.account.child][:, side.account.input].tolist(), s))


def _state_slope(level: LiveLevel, side: RunningAccount) -> float:
    """Return what the state gives to the slope of a linear model's output."""
    if side.slopes is None:
        return 0.0
    simulator: Any = level.children[side.account.child]
    return dot(side.slopes.x, simulator.z[: simulator.size].tolist())


def _slope_drop(level: LiveLevel, side: RunningAccount, rest: float, s: float, h: float) -> float:
    """Return how much larger the slope of a linear model's output was at the start of a step than at its end.

    The polynomials are about a time s seconds ago; `rest` is what the state gives to it.
    """
    assert side.slopes is not None
    columns = level.memory.u[side.account.child].T.tolist()
    if len(columns[0]) == 2:
        return rest - h * dot(side.slopes.u, [c[1] for c in columns])
    total = rest
    for gain, c in zip(side.slopes.u, columns, strict=True):
        total = total + gain * (value_at(c, s - h) - value_at(c, s))
    for gain, c in zip(side.slopes.du, columns, strict=False):
        rates = [power * each for power, each in enumerate(c)][1:]
        total = total + gain * (value_at(rates, s - h) - value_at(rates, s))
    return float(total)


def _reported_slope(level: LiveLevel, side: RunningAccount) -> float:
    """Return the slope that a simulator tells of its output, under its inputs now."""
    child = side.account.child
    if not side.asked:
        return 0.0
    tick = level.ticks[child]
    return float(level.slopes_of(child, tick, level.inputs_since(child, tick))[side.account.output])


def check_stored_energies(stored: Mapping[str, float], t: float) -> None:
    """Refuse to start where a simulator stores what is not a number."""
    faults = [
        Fault(
            f"`{path}` says that it stores {value} J",
            f"`{path}`, energy() at t = {t!r} s",
            "a finite number of joules",
            "look into its `energy`, or leave it out: the run needs it for balanced bonds only",
        )
        for path, value in stored.items()
        if not isfinite(value)
    ]
    if faults:
        raise SimulatorError(faults)


def stored_energies(root: LiveLevel) -> dict[str, float]:
    """Return the stored energy of every simulator of a tree that tells it, by its path."""
    found: dict[str, float] = {}
    for child, simulator in enumerate(root.children):
        model: Any = root.wiring.models[child]
        if as_level(model) is not None:
            found |= stored_energies(simulator)
            continue
        if provides(simulator, StoredEnergySimulator):
            with blame(root.name(child), "energy", root.clock.time(root.ticks[child])):
                found[root.name(child)] = float(simulator.energy())
    return found
