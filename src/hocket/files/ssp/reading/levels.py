"""Systems become composites: models by name, ports, connections.

In:  the tree of Parts, with wires and values
Out: a Composite for each system
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from hocket.engine.composite import Composite
from hocket.files.names import legal_names
from hocket.files.ssp.annotation import read_annotation
from hocket.files.ssp.findings import ImportFindings
from hocket.files.ssp.reading.connectors import SystemPorts
from hocket.files.ssp.reading.parts import (
    Component,
    ConnectionEnd,
    DictionaryReference,
    DirectedConnection,
    System,
)
from hocket.files.ssp.reading.spots import FmuPorts, Spot, select_spots
from hocket.files.ssp.reading.wires import ConnectionBuilder
from hocket.model import Model, Scenario
from hocket.orchestrators import GaussSeidel
from hocket.simulators.fmu.recipe import Fmu


class LevelBuilder:
    """One system while it is built; `path` leads to it, with a dot at the end."""

    def __init__(self, system: System, path: str, findings: ImportFindings):
        self.system, self.path, self.findings = system, path, findings
        self.models: dict[str, Model] = {}
        self.inside: dict[str, LevelBuilder] = {}
        self.ports: dict[str, FmuPorts] = {}
        self.own: SystemPorts | None = None
        self.names = legal_names(
            name for name, part in system.parts.items() if not isinstance(part, DictionaryReference)
        )
        for written, name in self.names.items():
            if written != name:
                findings.names[f"{path}{name}"] = written
                findings.note(
                    f"`{written}` is called `{name}` here: models have no dots and spaces in a name"
                )

    def composite(self, step: Fraction) -> Composite | None:
        """Return the system as a level; None if there is nothing in it, or something is wrong with it."""
        how: dict[str, Any] = {key: value for key, value in self.system.level.items() if value is not None}
        step, record = how.pop("step", step), how.pop("record", ("*",))
        more = {key: how.pop(key, None) for key in ("bonds", "constraints")}
        self._build_models(step)
        if not self.models:
            return None
        self.own = own = SystemPorts(self.system, self.models, self._spots_at, self.findings)
        wires = ConnectionBuilder(self.models, self.findings)
        for wire in self.system.wires:
            if not wire.constant:
                self._connect_wire(wire, wires)
        if "orchestrator" in how:
            how["orchestrator"] = _extend_order(how["orchestrator"], wires.between)
        outputs = own.outputs({connection.target for connection in wires.connections})
        return self.findings.attempt(
            self.system.node,
            lambda: Composite(
                Scenario(self.models, wires.connections, own.inputs(), outputs, record, **more), step, **how
            ),
        )

    def _build_models(self, step: Fraction) -> None:
        """Make the models."""
        for part in self.system.parts.values():
            if isinstance(part, System):
                name = self.names[part.name]
                level = self.inside[part.name] = LevelBuilder(part, f"{self.path}{name}.", self.findings)
                inner = level.composite(step)
                if inner is not None:
                    self.models[name] = inner
                elif not any(part.components()):
                    self.findings.note(f"the system `{part.name}` is left out: there is nothing in it")
            elif isinstance(part, Component) and part.fmu is not None:
                name = self.names[part.name]
                model = self._fmu(part, part.fmu)
                if model is not None:
                    self.models[name] = model
                    self.ports[part.name] = FmuPorts(part, model, name)

    def _fmu(self, component: Component, fmu: Fmu) -> Fmu | None:
        options = {key: value for key, value in component.options.items() if value is not None}
        observe = dict.fromkeys([*options.pop("observe", ()), *component.observed])
        return self.findings.attempt(
            component.node,
            lambda: Fmu(fmu.path, component.values, observe=observe, folder=fmu.folder, **options),
            f"`{component.name}`: ",
        )

    def _connect_wire(self, wire: DirectedConnection, wires: ConnectionBuilder) -> None:
        sources, targets = self._spots_at(wire.source, True, wire), self._spots_at(wire.target, False, wire)
        if sources is None or targets is None:
            return
        if len(sources) != len(targets):
            what = (
                f"`{wire.source}` and `{wire.target}` are connected: {len(sources)} to {len(targets)} values"
            )
            self.findings.fault(wire.link.node, what, "as many on both sides")
            return
        extrapolation = read_annotation(wire.link.node, "Connection", self.findings).get("extrapolation")
        for source, target in zip(sources, targets, strict=True):
            wires.connect(source, target, wire, extrapolation)

    def _spots_at(self, end: ConnectionEnd, source: bool, wire: DirectedConnection) -> list[Spot] | None:
        """Return what an end stands for; None after noting that it is nothing."""
        try:
            if end.element is None:
                own = self.own.spots if self.own else {}
                return select_spots(own[end.connector], end.indices) if end.connector in own else None
            if end.element in self.ports:
                return self.ports[end.element].spots(end, source, self.findings)
            return self._inner_spots(end, end.element, source, wire)
        except ValueError as error:
            self.findings.fault(wire.link.node, f"there is no `{end}` in an array {error}", "indices from 1")
            return None

    def _inner_spots(
        self, end: ConnectionEnd, element: str, source: bool, wire: DirectedConnection
    ) -> list[Spot] | None:
        """Return what an end at a system stands for."""
        inner, name = self.inside.get(element), self.names[element]
        if inner is None or inner.own is None or name not in self.models:
            if inner is not None and source and not any(inner.system.components()):
                what = f"`{end}` is an output of a system with nothing in it"
                self.findings.fault(wire.link.node, what, "a system that computes it")
            return None
        if end.connector not in inner.own.spots:
            return None
        shown = {port.name for port in (self.models[name].outputs if source else self.models[name].inputs)}
        spots = [spot for spot in inner.own.spots[end.connector] if spot.port.name in shown]
        if not spots:
            what = f"`{end}` is an output that nothing drives inside"
            self.findings.fault(wire.link.node, what, "a connection to it")
            return None
        moved = [replace(spot, path=f"{name}.{spot.port.name}", own=False) for spot in spots]
        return select_spots(moved, end.indices)


def _extend_order(orchestrator: Any, between: dict[str, str]) -> Any:
    """Return an orchestrator whose order names also the models between others: each before its target."""
    if not isinstance(orchestrator, GaussSeidel) or isinstance(orchestrator.order, str) or not between:
        return orchestrator
    named = {name for group in orchestrator.order for name in ((group,) if isinstance(group, str) else group)}
    order: list[Any] = []
    left = {name: target for name, target in between.items() if name not in named}
    for group in orchestrator.order:
        members = (group,) if isinstance(group, str) else group
        order += [name for name, target in left.items() if target in members]
        order.append(group)
    order += [name for name in left if name not in order]
    return GaussSeidel(order, outputs=orchestrator.outputs, inputs=orchestrator.inputs)
