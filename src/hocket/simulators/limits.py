"""How much energy a simulator may give through each of its bonds in one step.

In:  what it stores, and the energies that its bonds agreed on, with what the others at them store
Out: energies that leave nobody with less than nothing, whatever the others do at the same time

A simulator gives what it stores, and what is sure to come in meanwhile: power passes through it. Sure is,
of a simulator with n bonds, an n-th of what it stores: so much it gives through each, whatever its other
bonds ask for. All of it is known to both sides before the step, so both limit a bond alike. With one bond it
is the limiter of formulas, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class BondFlow(NamedTuple):
    """The energy that a bond agreed on, into a simulator, and who is at its other end."""

    energy: float
    stored: float
    """By the other one; below zero: not told, and not limited."""
    bonds: int
    """Of the other one."""


def limit_energies(stored: float, flows: Sequence[BondFlow]) -> list[float]:
    """Return the energies of all bonds after this simulator's limit; `stored` below zero: none.

    What there is goes to all bonds that ask, in equal parts, and what one leaves of its part to the others.
    """
    energies = [flow.energy for flow in flows]
    if stored < 0.0:
        return energies
    left = stored
    for flow in flows:
        left += max(_guaranteed_energy(flow), 0.0)
    asked = sorted((-energy, number) for number, energy in enumerate(energies) if energy < 0.0)
    for rank, (energy, number) in enumerate(asked):
        given = min(energy, left / (len(asked) - rank))
        energies[number] = -given
        left = max(left - given, 0.0)
    return energies


def _guaranteed_energy(flow: BondFlow) -> float:
    """Return what the other one gives whatever else it is asked for."""
    return flow.energy if flow.stored < 0.0 else min(flow.energy, flow.stored / flow.bonds)


def settlement_part(owed: float, own: float, theirs: float) -> float:
    """Return one side's part of what both sides of a bond booked and nobody gave.

    By what both have at the end of the step, as far as this side knows: who has nothing pays nothing.
    """
    together = own + max(theirs, 0.0)
    return owed * own / together if together > 0.0 else 0.0
