"""Some simulators of a level become a level of their own, with the same step and another algorithm.

In:  a level, and the names of those to be put together
Out: the level with one more inside; connections, bonds, orders and what is recorded follow
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from hocket.coupling.wiring import wire_unchecked
from hocket.model.composite import Orchestrator, traits_of
from hocket.model.hosts import Hosts
from hocket.model.ports import Port
from hocket.model.scenario import Connection, Insertion, Scenario
from hocket.orchestrators import GaussSeidel
from hocket.orchestrators.gauss_seidel import best_order

if TYPE_CHECKING:
    from hocket.model.composite import Composite


def allows_grouping(orchestrator: Any) -> bool:
    """Return whether the others of a level may go on as they did: an iteration or step control is for all."""
    return traits_of(orchestrator).inner is None


def sweep_orchestrator(orchestrator: Any, scenario: Scenario, last: str) -> Orchestrator:
    """Return the algorithm of one sweep: as the orchestrator does it, and then the last one."""
    order: tuple[Any, ...] = (tuple(scenario.models),)
    traits = traits_of(orchestrator)
    if traits.order is not None:
        own = best_order(wire_unchecked(scenario)) if traits.order == "auto" else traits.order
        order = restrict_order(own, scenario.models)
    outputs, inputs = traits.outputs or "consistent", traits.inputs or "clean"
    return GaussSeidel((*order, last), outputs=outputs, inputs=inputs)


def order_groups(order: Any) -> list[tuple[str, ...]]:
    """Return an order as groups of those that step together; one alone is a group too."""
    return [(group,) if isinstance(group, str) else tuple(group) for group in order]


def restrict_order(order: Any, models: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """Return an order without those that are not there."""
    kept = (tuple(name for name in group if name in models) for group in order_groups(order))
    return tuple(group for group in kept if group)


def show_outputs(scenario: Scenario, ports: Mapping[str, Port]) -> Scenario:
    """Return a scenario with more outputs of its own, named by the paths of those that they show."""
    return scenario.with_changes(
        connections=(*scenario.connections, *(Connection(path, path) for path in ports)),
        outputs=(
            *scenario.outputs,
            *(Port(path, port.unit, type=port.type, held=port.held) for path, port in ports.items()),
        ),
    )


def gather_models(
    level: Composite, scenario: Scenario, members: Collection[str], name: str, inner: Any, why: Insertion
) -> Composite:
    """Return the level with these models of the scenario in a level of their own."""

    def is_inside(path: str, own: Collection[str] = ()) -> bool:
        """Return whether a path is one of a member; ports of the level itself may look like them."""
        return path not in own and path.partition(".")[0] in members

    def enter(path: str, own: Collection[str] = ()) -> str:
        return f"{name}.{path}" if is_inside(path, own) else path

    taken, given = scenario.input_names, scenario.output_names
    kept = [
        each
        for each in scenario.connections
        if is_inside(each.source, taken) and is_inside(each.target, given)
    ]
    bonds = {
        key: bond for key, bond in scenario.bonds.items() if is_inside(bond.effort) and is_inside(bond.flow)
    }
    own = {target: note for target, note in scenario.inserted.items() if is_inside(target)}
    inside = {key: model for key, model in scenario.models.items() if key in members}
    group = Scenario(inside, kept, record=("*",), bonds=bonds, inserted=own)
    made: Any = level.with_changes(scenario=group, orchestrator=inner, sampled=False)
    models: dict[str, Any] = {}
    for key, model in scenario.models.items():
        models.setdefault(name if key in members else key, made if key in members else model)
    homes = {
        **dict.fromkeys([*scenario.models, *scenario.bonds], ""),
        **dict.fromkeys([*inside, *bonds], name),
    }
    return level.with_changes(
        scenario=scenario.with_changes(
            models=models,
            connections=[
                replace(each, source=enter(each.source, taken), target=enter(each.target, given))
                for each in scenario.connections
                if each not in kept
            ],
            record=redirect_record(scenario.record, homes),
            bonds={
                key: replace(bond, effort=enter(bond.effort), flow=enter(bond.flow))
                for key, bond in scenario.bonds.items()
                if key not in bonds
            },
            crossings={
                key: replace(each, output=enter(each.output)) for key, each in scenario.crossings.items()
            },
            hosts=_group_hosts(scenario.hosts, members, name),
            inserted={k: note for k, note in scenario.inserted.items() if k not in own} | {name: why},
        ),
        orchestrator=_order_with_group(level.orchestrator, members, name),
    )


def redirect_record(record: Iterable[str], homes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the patterns of what is recorded, under the paths of the levels that simulators are in now.

    `homes`: the level of each simulator and bond, by its name; empty: it stays where it is.
    """
    found: dict[str, None] = {}
    for pattern in record:
        first = pattern.partition(".")[0]
        meant = [] if first == "*" else [home for name, home in homes.items() if fnmatchcase(name, first)]
        found |= dict.fromkeys(f"{home}.{pattern}" if home else pattern for home in meant or [""])
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
    for group in order_groups(given):
        kept: list[str] = []
        for each in group:
            if each not in members:
                kept.append(each)
            elif not seen:
                kept.append(name)
                seen = True
        if kept:
            order.append(tuple(kept))
    return replace(orchestrator, order=order)
