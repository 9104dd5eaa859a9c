"""Power bonds of a level, by numbers: whose product of output and input each side's account is.

In:  Bonds by names, and what drives what
Out: WiredBonds by indices, or faults
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import isclose
from typing import NamedTuple

from hocket.errors import Fault, Place
from hocket.model.bonds import Bond
from hocket.model.ports import Port
from hocket.model.units import conversion, product_factor


class Account(NamedTuple):
    """One side of a bond: factor * output * input of a child is the power that it sees.

    Without an input (SELF_KEPT) the child keeps the account itself: factor * output is the energy so far.
    """

    child: int
    output: int
    input: int
    factor: float


SELF_KEPT = -1


class WiredBond(NamedTuple):
    """A bond: the side that gives the effort sees power given, that of the flow sees power taken."""

    name: str
    unit: str
    given: Account
    taken: Account

    @property
    def energy_unit(self) -> str:
        """The unit of what the power adds up to."""
        return energy_unit(self.unit)


def energy_unit(power: str) -> str:
    """Return the unit of what a power in this unit adds up to."""
    return "J" if power == "W" else f"{power}.s" if power else ""


class DrivenInput(NamedTuple):
    """A driven input: where it is, where its value comes from, and how it is converted on the way."""

    child: int
    port: int
    source: int
    source_port: int
    gain: float
    offset: float


Find = Callable[[str], "DrivenInput | Fault"]
Ports = Callable[[int], tuple[tuple[Port, ...], tuple[Port, ...]]]


def wire_bonds(
    bonds: Mapping[str, Bond], find: Find, ports: Ports
) -> tuple[tuple[WiredBond, ...], list[Fault]]:
    """Return the bonds of a level by indices, and every fault in them."""
    made: list[WiredBond] = []
    faults: list[Fault] = []
    first: dict[frozenset[tuple[int, int]], str] = {}
    for name, bond in bonds.items():
        ends = [(role, find(path)) for role, path in (("effort", bond.effort), ("flow", bond.flow))]
        wrong = [(role, end) for role, end in ends if isinstance(end, Fault)]
        faults += [replace(end, place=Place.of(f"bonds.{name}.{role}")) for role, end in wrong]
        (_, effort), (_, flow) = ends
        if isinstance(effort, Fault) or isinstance(flow, Fault):
            continue
        result = _wire_bond(name, bond, effort, flow, ports)
        other = first.setdefault(frozenset([effort[:2], flow[:2]]), name)
        if isinstance(result, Fault):
            faults.append(result)
        elif other != name:
            faults.append(_duplicate_bond_fault(name, other, bond))
        else:
            made.append(result)
    return tuple(made), faults


def _duplicate_bond_fault(name: str, other: str, bond: Bond) -> Fault:
    what = f"`{other}` and `{name}` are bonds of the same two inputs, `{bond.effort}` and `{bond.flow}`"
    hint = f"leave out `{other}` or `{name}`: their power would count twice"
    return Fault(what, f"bonds.{name}", "one bond for each pair of connections", hint)


def _wire_bond(
    name: str, bond: Bond, effort: DrivenInput, flow: DrivenInput, ports: Ports
) -> WiredBond | Fault:
    where = f"bonds.{name}"
    if (effort.source, flow.source) != (flow.child, effort.child) or effort.child == flow.child:
        what = f"`{bond.effort}` and `{bond.flow}` do not lead there and back between two simulators"
        hint = "the effort drives one of the two, the flow the other"
        return Fault(what, where, "connections in opposite directions", hint)
    for end, path in ((effort, bond.effort), (flow, bond.flow)):
        if end.offset != 0.0:
            what = f"the connection to `{path}` adds {end.offset:g} to what it carries"
            hint = "no `offset`, and units that begin at the same zero, such as K and not degC"
            return Fault(what, where, "gain * output, nothing added", hint)
    try:
        _ = conversion("W", bond.unit) if bond.balance is not None else None
        factors = [
            _factor(ports, child, output, entry, bond.unit)
            for child, output, entry in (
                (effort.source, effort.source_port, flow.port),
                (flow.source, flow.source_port, effort.port),
            )
        ]
    except ValueError as error:
        expected = f"an effort times a flow in `{bond.unit}`"
        return Fault(str(error), where, expected, '`unit` says what else their product may be, as "kg/s"')
    ratio = factors[0] * flow.gain / (factors[1] * effort.gain) if effort.gain and flow.gain else 0.0
    if not isclose(abs(ratio), 1.0, rel_tol=1e-6):
        what = f"one side of the bond sees {abs(ratio):.6g} times the power of the other"
        return Fault(what, where, "gains that keep the product", "a gear has its gain in both connections")
    sign = -1.0 if bond.reverse else 1.0
    other = sign if ratio > 0.0 else -sign
    given = Account(effort.source, effort.source_port, flow.port, sign * factors[0])
    taken = Account(flow.source, flow.source_port, effort.port, other * factors[1])
    if bond.balance is not None:
        watts = conversion("W", bond.unit)[0]
        given, taken = _simulator_account(ports, given, -watts), _simulator_account(ports, taken, watts)
    return WiredBond(name, bond.unit, given, taken)


def _simulator_account(ports: Ports, account: Account, factor: float) -> Account:
    """Return the account that a balanced simulator keeps itself in joules, where it is wrapped already."""
    inputs, outputs = ports(account.child)
    name = f"{inputs[account.input].name}_work"
    kept = [number for number, port in enumerate(outputs) if port.name == name and port.unit == "J"]
    return Account(account.child, kept[0], SELF_KEPT, factor) if kept else account


def _factor(ports: Ports, child: int, output: int, entry: int, unit: str) -> float:
    inputs, outputs = ports(child)
    return product_factor(outputs[output].unit, inputs[entry].unit, unit)


def accounts_by_child(bonds: Iterable[WiredBond]) -> dict[int, list[int]]:
    """Return which accounts each child has: 2 n of bond n where it gives the effort, 2 n + 1 the flow."""
    found: dict[int, list[int]] = {}
    for number, joint in enumerate(bonds):
        found.setdefault(joint.given.child, []).append(2 * number)
        found.setdefault(joint.taken.child, []).append(2 * number + 1)
    return found
