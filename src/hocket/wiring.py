"""Names become numbers: which output drives which input of a level, with what factor and extrapolator.

In:  a Scenario, by names
Out: a Wiring, by indices; or every fault in the scenario at once
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from hocket.errors import Fault, ScenarioError, nearest
from hocket.model import Connection, Extrapolator, Model, Port, Scenario, as_level
from hocket.signals import NAMED, Latch
from hocket.units import conversion

OWN = -1
"""In place of a child's number: the level itself."""
CONSTANT = -2
"""In a flattened wiring, in place of a child's number: a level's input that nothing drives, at `offset`."""


class Drive(NamedTuple):
    """What drives an input: an output of a child, or an input of the level itself (child = OWN)."""

    child: int
    port: int
    extrapolation: Extrapolator | None = None
    gain: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Wiring:
    """One level: its children and what drives their inputs and the level's own outputs."""

    names: tuple[str, ...]
    models: tuple[Model, ...]
    drives: tuple[tuple[Drive | None, ...], ...]
    """Per child and input; None: the input keeps its start value."""
    outputs: tuple[Drive, ...] = ()
    """Per output of the level: where its value is."""

    @cached_property
    def extrapolators(self) -> frozenset[Extrapolator]:
        """The distinct extrapolators of the level."""
        by_identity = {
            id(drive.extrapolation): drive.extrapolation
            for drives in self.drives
            for drive in drives
            if drive is not None and drive.extrapolation is not None
        }
        return frozenset(by_identity.values())

    def numbers(self) -> dict[str, int]:
        """Return the number of each child by its name."""
        return {name: number for number, name in enumerate(self.names)}


def wire(scenario: Scenario, extrapolation: Extrapolator | None = None) -> Wiring:
    """Return the wiring of one level; raises ScenarioError with every fault found in it.

    `extrapolation` is for the connections between children that name none; those from and to sampled
    models are latched instead.
    """
    wiring, faults = _wired(scenario)
    if faults:
        raise ScenarioError(faults)
    if extrapolation is None:
        return wiring

    sampled = [getattr(model, "sampled", False) for model in wiring.models]

    def chosen(drive: Drive | None, child: int) -> Drive | None:
        if drive is None or drive.extrapolation is not None or drive.child == OWN:
            return drive
        latched = sampled[child] or sampled[drive.child]
        return drive._replace(extrapolation=Latch() if latched else extrapolation)

    return replace(
        wiring,
        drives=tuple(tuple(chosen(d, child) for d in drives) for child, drives in enumerate(wiring.drives)),
    )


def unchecked(scenario: Scenario) -> Wiring:
    """Return as much of the wiring as there is; faults are left for `wire` to report."""
    return _wired(scenario)[0]


def check(scenario: Scenario) -> list[Fault]:
    """Return every fault that can be known before a model is opened, at all levels."""
    faults = list(_wired(scenario)[1])
    for name, model in scenario.models.items():
        level = as_level(model)
        for fault in check(level.scenario) if level else ():
            faults.append(replace(fault, where=f"{name}.{fault.where}" if fault.where else name))
    return faults


def _wired(scenario: Scenario) -> tuple[Wiring, list[Fault]]:
    """Return the wiring and the faults, worked out once per scenario."""
    kept: dict[str, Any] = scenario.__dict__
    if "_wired" not in kept:
        kept["_wired"] = _wire(scenario)
    result: tuple[Wiring, list[Fault]] = kept["_wired"]
    return result


def _wire(scenario: Scenario) -> tuple[Wiring, list[Fault]]:
    faults: list[Fault] = []
    if not scenario.models:
        faults.append(Fault("a scenario without models", "models", "at least one model"))
    names = tuple(scenario.models)
    number = {name: index for index, name in enumerate(names)}
    models = tuple(scenario.models.values())
    sides: dict[int, tuple[dict[str, int], dict[str, int]]] = {}

    def side(child: int) -> tuple[dict[str, int], dict[str, int]]:
        """Return the numbers of targets and of sources by name; equal models share them."""
        holder: Any = scenario if child == OWN else models[child]
        if id(holder) not in sides:
            # seen from inside, the level's inputs are sources and its outputs are targets
            ends = (holder.outputs, holder.inputs) if child == OWN else (holder.inputs, holder.outputs)
            targets, sources = ({port.name: i for i, port in enumerate(end)} for end in ends)
            sides[id(holder)] = targets, sources
        return sides[id(holder)]

    def find(name: str, source: bool, where: str) -> tuple[int, int] | None:
        own = side(OWN)[source]
        if name in own:
            return OWN, own[name]
        owner, dot, port = name.partition(".")
        role = "output" if source else "input"
        if not dot:
            hint = nearest(name, [*own, *_paths(scenario, source)])
            faults.append(Fault(f"`{name}` is no {role} here", where, "a path such as `model.port`", hint))
        elif owner not in number:
            faults.append(Fault(f"there is no model `{owner}`", where, "", nearest(owner, names)))
        elif port in side(number[owner])[source]:
            return number[owner], side(number[owner])[source][port]
        else:
            hint = nearest(port, side(number[owner])[source])
            level = as_level(models[number[owner]])
            if level:
                hint = nearest(port, [*side(number[owner])[source], *_paths(level.scenario, source)])
                inside = [c.source for c in level.scenario.connections if c.target == port and not source]
                if inside:
                    hint = f"it is driven inside `{owner}` already, by `{inside[0]}`: one source per input"
            if port in side(number[owner])[not source]:
                other = "input" if source else "output"
                hint = f"`{name}` is an {other}; perhaps source and target are exchanged"
            faults.append(Fault(f"`{owner}` has no {role} `{port}`", where, "", hint))
        return None

    for name, model in {id(model): (name, model) for name, model in scenario.models.items()}.values():
        faults += _port_faults(name, model)
    driven: dict[tuple[int, int], Drive] = {}
    origin: dict[tuple[int, int], str] = {}
    for connection in scenario.connections:
        where = f"connections.{connection.target}"
        source = find(connection.source, True, where)
        target = find(connection.target, False, where)
        if source is None or target is None:
            continue
        if target in driven:
            faults.append(
                Fault(
                    f"`{connection.target}` has two sources, `{origin[target]}` and `{connection.source}`",
                    where,
                    "one source per input",
                    "add them in a `Sum` and connect that",
                )
            )
            continue
        if source[0] == OWN and target[0] == OWN:
            faults.append(
                Fault(
                    f"`{connection.source}` passes straight to `{connection.target}`",
                    where,
                    "",
                    "put a `Gain(1)` between",
                )
            )
            continue
        origin[target] = connection.source
        try:
            gain, offset = conversion(
                _port(scenario, models, source, True).unit, _port(scenario, models, target, False).unit
            )
        except ValueError as error:
            faults.append(
                Fault(
                    str(error),
                    where,
                    f"`{connection.source}` and `{connection.target}` in units that convert",
                )
            )
            continue
        extrapolation = connection.extrapolation
        if isinstance(extrapolation, str) and extrapolation in NAMED:
            extrapolation = NAMED[extrapolation]
        elif extrapolation is not None and not hasattr(extrapolation, "fit"):
            hint = nearest(str(extrapolation), NAMED)
            faults.append(Fault(f"`{extrapolation!r:.40}` is no extrapolation", where, "", hint))
            continue
        driven[target] = Drive(source[0], source[1], extrapolation, gain, offset)

    drives: list[tuple[Drive | None, ...]] = []
    undriven: list[Fault] = []
    for child, model in enumerate(models):
        for index, port in enumerate(model.inputs):
            if (child, index) not in driven and port.start is None:
                undriven.append(
                    Fault(
                        f"nothing drives `{names[child]}.{port.name}`",
                        f"models.{names[child]}",
                        "a connection or a start value",
                        f'connect an output to it, or give it a start value: "{port.name} = 0.0"',
                    )
                )
        drives.append(tuple(driven.get((child, index)) for index in range(len(model.inputs))))
    outputs = [driven.get((OWN, index)) for index in range(len(scenario.outputs))]
    undriven += [
        Fault(f"nothing drives the output `{port.name}`", "outputs", "a connection to it")
        for port, drive in zip(scenario.outputs, outputs, strict=True)
        if drive is None
    ]
    # a misspelt name leaves its port undriven: that is said only where nothing else is wrong
    faults += undriven if not faults else []
    return Wiring(names, models, tuple(drives), tuple(drive for drive in outputs if drive)), faults


def _port_faults(name: str, model: Model) -> Iterator[Fault]:
    seen: set[str] = set()
    for port in (*model.inputs, *model.outputs):
        if port.name in seen:
            yield Fault(f"`{name}` has two ports named `{port.name}`", f"models.{name}", "names that differ")
        seen.add(port.name)
    inputs = {port.name for port in model.inputs}
    for port in model.outputs:
        for unknown in sorted(set(port.feedthrough) - inputs):
            what = f"`{name}.{port.name}` reacts to `{unknown}`, which is no input"
            yield Fault(what, f"models.{name}", "", nearest(unknown, inputs))


def _port(scenario: Scenario, models: Sequence[Model], end: tuple[int, int], source: bool) -> Port:
    if end[0] == OWN:
        return (scenario.inputs if source else scenario.outputs)[end[1]]
    return (models[end[0]].outputs if source else models[end[0]].inputs)[end[1]]


def _paths(scenario: Scenario, source: bool) -> Iterator[str]:
    for name, model in scenario.models.items():
        for port in model.outputs if source else model.inputs:
            yield f"{name}.{port.name}"


def with_ports_made(scenario: Scenario) -> Scenario:
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
    made: dict[str, Model] = {}
    for name, model in scenario.models.items():
        level = as_level(model)
        if level:
            inputs, outputs = needs.get(name, ({}, {}))
            made[name] = level.with_scenario(with_ports_made(_with_ports(level.scenario, inputs, outputs)))
    return scenario.with_models({**scenario.models, **made}) if made else scenario


def _with_ports(
    scenario: Scenario, inputs: Sequence[str] | dict[str, None], outputs: Sequence[str] | dict[str, None]
) -> Scenario:
    ends: tuple[list[Port], list[Port]] = ([], [])
    made: list[Connection] = []
    driven = {connection.target for connection in scenario.connections}
    for source, wanted in ((False, inputs), (True, outputs)):
        for path in wanted:
            port = _find(scenario, path, source)
            if port is None or path in (scenario.output_names if source else scenario.input_names):
                continue
            if not source and path in driven:
                continue  # already driven inside: the check says so
            ends[source].append(Port(path, port.unit, None if source else port.start))
            made.append(Connection(path, path))
    return Scenario(
        scenario.models,
        (*scenario.connections, *made),
        (*scenario.inputs, *ends[0]),
        (*scenario.outputs, *ends[1]),
        scenario.record,
    )


def _find(scenario: Scenario, path: str, source: bool) -> Port | None:
    owner, _, name = path.partition(".")
    model = scenario.models.get(owner)
    if model is None:
        return None
    for port in model.outputs if source else model.inputs:
        if port.name == name:
            return port
    level = as_level(model)
    return _find(level.scenario, name, source) if level else None
