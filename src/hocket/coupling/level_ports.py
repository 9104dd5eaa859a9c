"""Connections that reach into levels: every level on the way gets a port.

In:  a Scenario with paths such as `car.axle.force`
Out: the same Scenario with ports of levels, and connections from level to level
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hocket.model.composite import as_level
from hocket.model.ports import Port
from hocket.model.protocols import Model, bookkeeping_ports
from hocket.model.scenario import Connection, Scenario


def with_level_ports(scenario: Scenario) -> Scenario:
    """Return the scenario with a port at every level that a connection passes on its way.

    `axle.wheel.force` reaches into the level `axle`: that level gets an output named `wheel.force`. Names
    that lead nowhere are left alone: `wire` reports them.
    """
    needs: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for connection in scenario.connections:
        for path, source in ((connection.target, False), (connection.source, True)):
            if path in (scenario.input_names if source else scenario.output_names):
                continue
            owner, _, port = path.partition(".")
            if as_level(scenario.models.get(owner)):
                needs.setdefault(owner, ({}, {}))[source].setdefault(port)
    for bond in scenario.bonds.values() if needs else ():
        for path in (bond.effort, bond.flow):
            owner, _, port = path.partition(".")
            if bond.balance and owner in needs and port in needs[owner][False]:
                needs[owner][True].setdefault(f"{port}_work")  # the account that the one inside keeps
    made: dict[str, Model] = {}
    for name, model in scenario.models.items():
        level = as_level(model)
        if level:
            inputs, outputs = needs.get(name, ({}, {}))
            made[name] = level.with_scenario(with_level_ports(_with_ports(level.scenario, inputs, outputs)))
    return scenario.with_models({**scenario.models, **made}) if made else scenario


def _with_ports(
    scenario: Scenario, inputs: Sequence[str] | dict[str, None], outputs: Sequence[str] | dict[str, None]
) -> Scenario:
    ends: tuple[list[Port], list[Port]] = ([], [])
    made: list[Connection] = []
    driven = {connection.target for connection in scenario.connections}
    for source, wanted in ((False, inputs), (True, outputs)):
        for path in wanted:
            port = port_at(scenario, path, source)
            if port is None or path in (scenario.output_names if source else scenario.input_names):
                continue
            if not source and path in driven:
                continue  # already driven inside: the check says so
            start = None if source else port.start
            ends[source].append(
                Port(
                    path,
                    port.unit,
                    start,
                    type=port.type,
                    held=port.held,
                    reactivity=None if source else port.reactivity,
                    event=port.event,
                )
            )
            made.append(Connection(path, path))
    return scenario.with_changes(
        connections=(*scenario.connections, *made),
        inputs=(*scenario.inputs, *ends[0]),
        outputs=(*scenario.outputs, *ends[1]),
    )


def open_inputs(scenario: Scenario, driven: Collection[str] = ()) -> Iterator[str]:
    """Yield the paths of all inputs, at any depth, that nothing drives and nothing determines.

    `driven`: those that are driven from outside.
    """
    taken = {*driven, *(connection.target for connection in scenario.connections)}
    for constraint in scenario.constraints.values():
        taken.update(constraint.determines)
    for name, model in scenario.models.items():
        hidden = bookkeeping_ports(model)
        own = [port for port in model.inputs if not port.event and port.name not in hidden]
        yield from (path for port in own if (path := f"{name}.{port.name}") not in taken)
        level = as_level(model)
        if level:
            inside = [path[len(name) + 1 :] for path in taken if path.startswith(f"{name}.")]
            yield from (f"{name}.{path}" for path in open_inputs(level.scenario, inside))


def with_open_inputs(scenario: Scenario) -> Scenario:
    """Return the scenario with every input that nothing drives as an input of its own, by its path."""
    return _with_ports(scenario, dict.fromkeys(open_inputs(scenario)), {})


def port_at(scenario: Scenario, path: str, source: bool) -> Port | None:
    """Return the output (source) or input that a path leads to, through levels too; None: there is none."""
    owner, _, name = path.partition(".")
    model = scenario.models.get(owner)
    if model is None:
        return None
    for port in model.outputs if source else model.inputs:
        if port.name == name:
            return port
    level = as_level(model)
    return port_at(level.scenario, name, source) if level else None
