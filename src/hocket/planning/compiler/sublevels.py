"""Some simulators of a level become a level of their own, with the same step and another algorithm.

In:  a level, and the names of those to be put together
Out: the level with one more inside; connections, bonds, orders and what is recorded follow
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from hocket.coupling.wiring import wire_unchecked
from hocket.model.bonds import Bond
from hocket.model.composite import Orchestrator, traits_of
from hocket.model.hosts import Hosts
from hocket.model.scenario import Connection, Insertion, Scenario
from hocket.orchestrators import GaussSeidel
from hocket.orchestrators.gauss_seidel import best_order

if TYPE_CHECKING:
    from hocket.model.composite import Composite


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name like this one that nothing has yet."""
    while name in taken:
        name += "_"
    return name


def allows_grouping(orchestrator: Any) -> bool:
    """Return whether the others of a level may go on as they did: an iteration or step control is for all."""
    return traits_of(orchestrator).inner is None


def sweep_orchestrator(orchestrator: Any, scenario: Scenario, last: str) -> Orchestrator:
    """Return the algorithm of one sweep: as the orchestrator does it, and then the last one."""
    order: tuple[Any, ...] = (tuple(scenario.models),)
    traits = traits_of(orchestrator)
    if traits.order is not None:
        own = best_order(wire_unchecked(scenario)) if traits.order == "auto" else traits.order
        order = _restrict_order(own, scenario.models)
    outputs, inputs = traits.outputs or "consistent", traits.inputs or "clean"
    return GaussSeidel((*order, last), outputs=outputs, inputs=inputs)


def _restrict_order(order: Any, models: Collection[str]) -> tuple[Any, ...]:
    """Return an order without those that are not there."""
    groups = [(group,) if isinstance(group, str) else group for group in order]
    kept = [tuple(name for name in group if name in models) for group in groups]
    return tuple(group for group in kept if group)


def gather_models(
    level: Composite, scenario: Scenario, members: Collection[str], name: str, inner: Any, why: Insertion
) -> Composite:
    """Return the level with these models of the scenario in a level of their own."""
    inside = [each for each in scenario.connections if all(_member_ends(each, scenario, members))]
    outside = [each for each in scenario.connections if each not in inside]
    bonds = {
        key: bond for key, bond in scenario.bonds.items() if _are_members(bond.effort, bond.flow, members)
    }
    own = {target: note for target, note in scenario.inserted.items() if _is_member(target, members)}
    group = Scenario(
        {key: model for key, model in scenario.models.items() if key in members},
        inside,
        record=("*",),
        bonds=bonds,
        inserted=own,
    )
    made: Any = level.with_changes(scenario=group, orchestrator=inner, sampled=False)
    models: dict[str, Any] = {}
    for key, model in scenario.models.items():
        models.setdefault(name if key in members else key, made if key in members else model)
    return level.with_changes(
        scenario=scenario.with_changes(
            models=models,
            connections=[
                _redirect_connection(each, _member_ends(each, scenario, members), name) for each in outside
            ],
            record=_redirect_record(scenario.record, members, name),
            bonds={k: _redirect_bond(b, members, name) for k, b in scenario.bonds.items() if k not in bonds},
            hosts=_group_hosts(scenario.hosts, members, name),
            inserted={k: note for k, note in scenario.inserted.items() if k not in own} | {name: why},
        ),
        orchestrator=_order_with_group(level.orchestrator, members, name),
    )


def _is_member(path: str, members: Collection[str]) -> bool:
    return path.partition(".")[0] in members


def _are_members(one: str, other: str, members: Collection[str]) -> bool:
    return _is_member(one, members) and _is_member(other, members)


def _member_ends(connection: Connection, scenario: Scenario, members: Collection[str]) -> tuple[bool, bool]:
    """Return whether source and target are ports of members; ports of the level itself may look like them."""
    source = connection.source not in scenario.input_names and _is_member(connection.source, members)
    return source, connection.target not in scenario.output_names and _is_member(connection.target, members)


def _redirect_connection(connection: Connection, ends: tuple[bool, bool], name: str) -> Connection:
    """Return a connection that reaches into the new level."""
    source, target = (
        f"{name}.{path}" if inside else path
        for path, inside in zip((connection.source, connection.target), ends, strict=True)
    )
    return replace(connection, source=source, target=target)


def _redirect_bond(bond: Bond, members: Collection[str], name: str) -> Bond:
    effort, flow = (
        f"{name}.{path}" if _is_member(path, members) else path for path in (bond.effort, bond.flow)
    )
    return replace(bond, effort=effort, flow=flow)


def _redirect_record(record: tuple[str, ...], members: Collection[str], name: str) -> tuple[str, ...]:
    """Return the patterns of what is recorded; what was meant of a member is meant of it in the new level."""
    found: list[str] = []
    for pattern in record:
        first = pattern.partition(".")[0]
        meant = pattern != "*" and any(fnmatchcase(member, first) for member in members)
        if meant and "*" in first:
            found.append(pattern)
        found.append(f"{name}.{pattern}" if meant else pattern)
    return tuple(found)


def _group_hosts(hosts: Hosts | None, members: Collection[str], name: str) -> Hosts | None:
    if hosts is None:
        return None
    models = {
        host: tuple(dict.fromkeys(name if each in members else each for each in names))
        for host, names in hosts.models.items()
    }
    return Hosts(models, hosts.link, hosts.links)


def add_to_host(hosts: Hosts | None, near: str, name: str) -> Hosts | None:
    """Return hosts with one more model, where another one lives."""
    if hosts is None:
        return None
    models = {host: (*names, name) if near in names else names for host, names in hosts.models.items()}
    return Hosts(models, hosts.link, hosts.links)


def _order_with_group(orchestrator: Any, members: Collection[str], name: str) -> Any:
    """Return the orchestrator with the new level where the first of its members was."""
    given = traits_of(orchestrator).order
    if given is None or given == "auto":
        return orchestrator
    seen = False
    order: list[tuple[str, ...]] = []
    for group in given:
        kept: list[str] = []
        for each in (group,) if isinstance(group, str) else group:
            if each not in members:
                kept.append(each)
            elif not seen:
                kept.append(name)
                seen = True
        if kept:
            order.append(tuple(kept))
    return replace(orchestrator, order=order)
