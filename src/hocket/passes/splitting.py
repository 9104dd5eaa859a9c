"""A scenario cut along its hosts: what stays inside each, what is sent, who is stood in for.

In:  a Scenario and its Hosts
Out: a Scenario for each host, with stand-ins, and the connections between them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from hocket.bonds import Bond
from hocket.errors import ScenarioError
from hocket.hosts import Hosts
from hocket.model import Connection, Insertion, Model, Orchestrator, Port, Scenario, as_level
from hocket.orchestrators import GaussSeidel, Iterate
from hocket.passes.triviality import SOLVER
from hocket.simulators.stand_in import SENT, StandIn


def crossing_connections(scenario: Scenario, hosts: Hosts) -> Iterator[tuple[Connection, str, str]]:
    """Yield the connections that run from host to host, with both hosts."""
    placed = hosts.host_by_model()
    for each in scenario.connections:
        source, target = (placed.get(path.partition(".")[0]) for path in (each.source, each.target))
        if source is not None and target is not None and source != target:
            yield each, source, target


def with_small_steps(scenario: Scenario, step: Fraction, small: Fraction) -> Scenario:
    """Return the scenario with the small step in those levels that passes made with its own step."""
    made: dict[str, Any] = {
        name: level for name in scenario.inserted if (level := as_level(scenario.models.get(name)))
    }
    short = {
        name: level.with_changes(scenario=with_small_steps(level.scenario, step, small), step=small)
        for name, level in made.items()
        if level.step == step
    }
    return scenario.with_models({**scenario.models, **short}) if short else scenario


def ends_in_stand_in(scenario: Scenario, connection: Connection) -> bool:
    """Return whether a connection ends in a stand-in inside a level."""
    owner, _, rest = connection.target.partition(".")
    level = as_level(scenario.models.get(owner))
    return level is not None and isinstance(level.scenario.models.get(rest.partition(".")[0]), StandIn)


@dataclass
class Split:
    """A scenario cut along its hosts."""

    scenario: Scenario
    hosts: Hosts
    placed: Mapping[str, str] = field(init=False)
    stand_ins: dict[str, dict[str, str]] = field(init=False)
    """Per host: the stand-in of each simulator elsewhere that is listened to."""

    def __post_init__(self) -> None:
        self.placed = self.hosts.host_by_model()
        self.stand_ins = {host: {} for host in self.hosts.models}
        for each, _, host in crossing_connections(self.scenario, self.hosts):
            owner = each.source.partition(".")[0]
            name = f"{owner}_at_{host}"
            while name in self.hosts.models[host]:
                name += "_"
            self.stand_ins[host].setdefault(owner, name)

    def host(self, path: str) -> str | None:
        """Return the host of a port; None: it is one of the level itself."""
        own = self.scenario.input_names | self.scenario.output_names
        return None if path in own else self.placed[path.partition(".")[0]]

    def outputs_heard(self, host: str) -> dict[str, dict[str, Port]]:
        """Return, per simulator elsewhere, the outputs that are listened to on a host."""
        found: dict[str, dict[str, Port]] = {owner: {} for owner in self.stand_ins[host]}
        for each, _, target in crossing_connections(self.scenario, self.hosts):
            if target == host:
                owner, _, name = each.source.partition(".")
                seen = _find_output(self.scenario.models[owner], name)
                found[owner][name] = Port(name, seen.unit, type=seen.type, held=seen.held)
        return found

    def host_scenario(self, host: str) -> Scenario:
        """Return what runs on a host: its models, and the stand-ins.

        What the stand-ins show is an output of the host too: so it is evaluated again when a message comes,
        and the first small step after it begins with the new values.
        """
        models = {name: self.scenario.models[name] for name in self.hosts.models[host]}
        connections: list[Connection] = []
        inserted = {
            name: why
            for name, why in self.scenario.inserted.items()
            if name == SOLVER or self._is_on(name, host)
        }
        outputs: list[Port] = []
        for owner, shown in self.outputs_heard(host).items():
            name = self.stand_ins[host][owner]
            models[name] = StandIn(shown.values(), owner)
            there = f"`{owner}` runs on `{self.placed[owner]}`: its values arrive and are extrapolated here"
            inserted[name] = Insertion("distribution", there)
            for port in shown.values():
                outputs.append(Port(f"{name}.{port.name}", port.unit))
                connections.append(Connection(f"{name}.{port.name}", f"{name}.{port.name}"))
        for each in self.scenario.connections:
            source, target = self.host(each.source), self.host(each.target)
            if target != host or source is None:
                continue
            if source != host:
                owner, _, output = each.source.partition(".")
                each = replace(each, source=f"{self.stand_ins[host][owner]}.{output}")
                inserted[each.target] = Insertion("distribution", f"`{owner}` is stood in for")
            connections.append(each)
        return Scenario(models, connections, outputs=outputs, bonds=self._bonds(host), inserted=inserted)

    def _is_on(self, name: str, host: str) -> bool:
        return self.placed.get(name.partition(".")[0]) == host

    def sent_connections(self) -> list[Connection]:
        """Return the connections between hosts, one for each output and host that listens to it."""
        found: dict[str, Connection] = {}
        for each, source, target in crossing_connections(self.scenario, self.hosts):
            owner, _, port = each.source.partition(".")
            path = f"{target}.{self.stand_ins[target][owner]}.{port}{SENT}"
            found[path] = Connection(f"{source}.{each.source}", path)
        return list(found.values())

    def level_connections(self) -> Iterator[Connection]:
        """Yield the connections from and to the ports of the level itself."""
        for each in self.scenario.connections:
            source, target = self.host(each.source), self.host(each.target)
            if source is None:
                yield replace(each, target=f"{target}.{each.target}")
            elif target is None:
                yield replace(each, source=f"{source}.{each.source}")

    def outer_insertions(self) -> dict[str, Insertion]:
        """Return who inserted what is left outside the hosts: connections from and to the level itself."""
        why, found = self.scenario.inserted, {}
        for each in self.scenario.connections:
            target = self.host(each.target)
            if each.target in why and (target is None or self.host(each.source) is None):
                found[each.target if target is None else f"{target}.{each.target}"] = why[each.target]
        return found

    def _bonds(self, host: str) -> dict[str, Bond]:
        return {
            name: bond
            for name, bond in self.scenario.bonds.items()
            if self._is_on(bond.effort, host) and self._is_on(bond.flow, host)
        }

    def outer_bonds(self) -> dict[str, Bond]:
        """Return the bonds between hosts, kept where their values are sent."""
        ends = {
            each.target: f"{target}.{self.stand_ins[target][owner]}.{port}{SENT}"
            for each, _, target in crossing_connections(self.scenario, self.hosts)
            for owner, _, port in [each.source.partition(".")]
        }
        return {
            name: replace(bond, effort=ends[bond.effort], flow=ends[bond.flow])
            for name, bond in self.scenario.bonds.items()
            if bond.effort in ends and bond.flow in ends
        }

    def record_patterns(self) -> list[str]:
        """Return what is to be recorded, under the new paths."""
        found: dict[str, None] = {}
        for pattern in self.scenario.record:
            first, dot, _ = pattern.partition(".")
            homes = [host for name, host in self.placed.items() if fnmatchcase(name, first)] if dot else []
            homes += [host for host in self.hosts.models if first in self._bonds(host)]
            found |= dict.fromkeys([f"{host}.{pattern}" for host in homes] or [pattern])
        return list(found)


def _find_output(model: Model, path: str) -> Port:
    """Return an output by its path inside a model."""
    for port in model.outputs:
        if port.name == path:
            return port
    level = as_level(model)
    owner, dot, rest = path.partition(".")
    if level is None or not dot or owner not in level.scenario.models:
        raise ScenarioError(f"there is no output `{path}`", "connections")
    return _find_output(level.scenario.models[owner], rest)


def host_orchestrator(orchestrator: Any, host: str, split: Split) -> Orchestrator:
    """Return the algorithm of the level for one host; an order keeps the models that are there."""
    if isinstance(orchestrator, Iterate):
        return replace(orchestrator, inner=host_orchestrator(orchestrator.inner, host, split))
    if not isinstance(orchestrator, GaussSeidel) or orchestrator.order == "auto":
        return orchestrator  # type: ignore[no-any-return]
    here = split.hosts.models[host]
    groups = [(each,) if isinstance(each, str) else each for each in orchestrator.order]
    kept = [tuple(name for name in group if name in here) for group in groups]
    first = tuple(split.stand_ins[host].values())
    order = [group for group in (first, *kept) if group]
    return GaussSeidel(order, outputs=orchestrator.outputs, inputs=orchestrator.inputs)
