"""Models that an SSP writes as a part of a connection: factors, and the tables that an import has put there.

In:  a Scenario
Out: the same without them: their effect is a transformation of the connection
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from hocket.files.ssp.unit_definitions import AffineMap
from hocket.files.ssp.vocabulary import LOOKUP
from hocket.model.protocols import Model
from hocket.model.scenario import Connection, Scenario, traits_of
from hocket.model.units import conversion
from hocket.planning.prepare import Composite
from hocket.simulators.python import Python
from hocket.simulators.state_space import StateSpace


@dataclass(frozen=True)
class Fold:
    """A scenario with some models folded into its connections."""

    scenario: Scenario
    gone: frozenset[str] = frozenset()
    suppressed: frozenset[Connection] = frozenset()
    """Connections that hold the whole effect: units are not to be converted again."""
    tables: dict[Connection, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def level(self, composite: Composite) -> Composite:
        """Return the level around this scenario; an order no longer names the models that are gone."""
        orchestrator: Any = composite.orchestrator
        given = traits_of(orchestrator).order
        if given is not None and given != "auto" and self.gone:
            groups = [
                group if isinstance(group, str) else tuple(name for name in group if name not in self.gone)
                for group in given
                if group not in self.gone
            ]
            kept = [group for group in groups if group]
            orchestrator = replace(orchestrator, order=kept)
        return Composite(
            self.scenario,
            composite.step,
            orchestrator,
            composite.extrapolation,
            composite.start,
            composite.sampled,
        )


def foldable(name: str, model: Model, driven: Collection[str]) -> bool:
    """Return whether a model is a factor, or a table that an import has made, and something drives it."""
    if isinstance(model, Python):
        return model.cls == LOOKUP and f"{name}.u" in driven
    alone = isinstance(model, StateSpace) and not model.A and len(model.inputs) == len(model.outputs) == 1
    return alone and f"{name}.{model.inputs[0].name}" in driven


def fold_models(scenario: Scenario) -> Fold:
    """Return a scenario without the models that a connection can stand for."""
    driven = {c.target for c in scenario.connections if c.target not in scenario.output_names}
    gone = {name for name, model in scenario.models.items() if foldable(name, model, driven)}
    if not gone:
        return Fold(scenario)
    kept: list[Connection] = []
    suppressed: set[Connection] = set()
    tables: dict[Connection, tuple[tuple[int, int], ...]] = {}
    for connection in scenario.connections:
        owner = connection.source.partition(".")[0]
        if connection.target.partition(".")[0] in gone and connection.target not in scenario.output_names:
            continue
        if owner not in gone or connection.source in scenario.input_names:
            kept.append(connection)
            continue
        line, table, source = _trace_source(scenario, connection, gone)
        made = replace(connection, source=source, gain=line.gain, offset=line.offset)
        kept.append(made)
        suppressed.add(made)
        if table:
            tables[made] = table
    models = {name: model for name, model in scenario.models.items() if name not in gone}
    left = scenario.with_changes(models=models, connections=kept)
    return Fold(left, frozenset(gone), frozenset(suppressed), tables)


def _trace_source(
    scenario: Scenario, connection: Connection, gone: set[str]
) -> tuple[AffineMap, tuple[tuple[int, int], ...], str]:
    """Return what happens between the first model that stays and the target, and the first source."""
    line = _connection_effect(scenario, connection)
    table: tuple[tuple[int, int], ...] = ()
    source = connection.source
    while source not in scenario.input_names and source.partition(".")[0] in gone:
        name = source.partition(".")[0]
        model = scenario.models[name]
        if isinstance(model, StateSpace):
            line = AffineMap(model.D[0][0]).then(line)
        elif isinstance(model, Python):
            table = tuple((int(a), int(b)) for a, b in model.parameters.get("table", ()))
        before = next(c for c in scenario.connections if c.target == f"{name}.{model.inputs[0].name}")
        line, source = _connection_effect(scenario, before).then(line), before.source
    return line, table, source


def _connection_effect(scenario: Scenario, connection: Connection) -> AffineMap:
    """Return what a connection does to a number, units and all."""
    units = []
    for path, source in ((connection.source, True), (connection.target, False)):
        own = scenario.inputs if source else scenario.outputs
        owner, _, name = path.partition(".")
        model = scenario.models.get(owner)
        ports = [port for port in own if port.name == path]
        ports += [p for p in (model.outputs if source else model.inputs) if p.name == name] if model else []
        units.append(ports[0].unit)
    return AffineMap(*conversion(units[0], units[1])).then(AffineMap(connection.gain, connection.offset))
