"""What each simulator of a scenario can do, by itself or by an emulation.

In:  a level, with levels inside
Out: a table: a row per simulator and per level, a column per capability (after Gomes 2016, figure 1a)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hocket.model.clock import format_duration
from hocket.model.composite import as_level
from hocket.model.protocols import (
    PreferredStepSimulator,
    StoredEnergySimulator,
    class_declarations,
    declared_energy,
    period_of,
    provides,
)
from hocket.planning.parameters import walk_models
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.ode import Ode
from hocket.simulators.python import Python
from hocket.simulators.wrappers.emulation import emulation_layers, innermost_model

if TYPE_CHECKING:
    from hocket.model.composite import Composite


YES, NO = "yes", "no"
CAPABILITIES = {
    "rollback": "rolls back to a state it was in: save() and restore(), canGetAndSetFMUstate",
    "variable step": "takes steps of any length, not only that of its level",
    "slopes": "tells the time derivatives of its outputs",
    "input degree": "the highest power of time in an input that it follows within a step",
    "feedthrough": "says which outputs react at once to which inputs",
    "re-evaluation": "its outputs follow new inputs between steps",
    "events": "may end a step early, where an event is",
    "step wish": "says which step it would like",
    "order": "of its solver; empty: exact, or not known",
    "energy": "says how much energy it stores",
    "copies": "may be opened several times",
}
"""The columns, and what they mean."""


@dataclass(frozen=True)
class CapabilityRow:
    """What one simulator, or a level of them, can do."""

    path: str
    kind: str
    capabilities: tuple[tuple[str, str], ...]
    """By the names of CAPABILITIES: yes, no, `emulated: by replay`, or a value."""
    level: bool = False

    def __getitem__(self, capability: str) -> str:
        return dict(self.capabilities)[capability]


@dataclass(frozen=True)
class CapabilityTable:
    """A row for each simulator and each level; a level can what those in it can."""

    able: tuple[CapabilityRow, ...]

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each."""
        return [{"simulator": each.path, "kind": each.kind, **dict(each.capabilities)} for each in self.able]

    def __getitem__(self, path: str) -> CapabilityRow:
        return {each.path: each for each in self.able}[path]


def tabulate_capabilities(level: Composite) -> CapabilityTable:
    """Return the table of a level and all in it; nothing is opened."""
    return CapabilityTable(tuple(_capability_row(path, model) for path, model in walk_models(level)))


def _capability_row(path: str, model: Any) -> CapabilityRow:
    can, bare = model.capabilities, innermost_model(model)
    emulated = {layer.emulates: layer.emulation for layer in reversed(list(emulation_layers(model)))}
    nested = as_level(model) is not None
    period = period_of(model)
    found = {
        "rollback": _yes_or_no(can.rollback),
        "variable step": f"no: sampled every {format_duration(period)}"
        if period
        else _yes_or_no(can.variable_step),
        "slopes": _yes_or_no(can.slopes),
        "input degree": "any" if can.input_degree is None else str(can.input_degree),
        "feedthrough": feedthrough_origin(model),
        "re-evaluation": _yes_or_no(can.reevaluates),
        "events": _yes_or_no(can.stops_early),
        "step wish": _yes_or_no(
            isinstance(bare, Python) and provides(bare._class_facts.cls, PreferredStepSimulator)
        ),
        "order": "" if can.order is None else str(can.order),
        "energy": _yes_or_no(_tells_energy(model)),
        "copies": _copies(model),
    }
    for capability, how in emulated.items():
        if capability in found and " by " in how:
            found[capability] = f"emulated: {how.partition(' by ')[2]}"
    if nested:
        _note_emulations_inside(found, model)
    return CapabilityRow(path, "level" if nested else type(bare).__name__, tuple(found.items()), nested)


def _note_emulations_inside(found: dict[str, str], level: Any) -> None:
    """Say of a level that a capability is emulated where that of one inside is."""
    within = [_capability_row(name, model) for name, model in level.scenario.models.items()]
    for capability in ("rollback", "slopes"):
        how = sorted({each[capability] for each in within if each[capability].startswith("emulated")})
        if found[capability] == YES and how:
            found[capability] = how[0]


def feedthrough_origin(model: Any) -> str:
    """Return how it is known which outputs react to which inputs at once."""
    if as_level(model) is not None:
        return "from inside"
    told = [layer for layer in emulation_layers(model) if layer.emulates == "feedthrough"]
    if told:
        return "emulated: probing" if told[0].probed else "declared"
    bare = innermost_model(model)
    if not bare.inputs or not bare.outputs:
        return "none"
    return "assumed: all" if _assumes_feedthrough(bare) else "declared"


def _assumes_feedthrough(bare: Any) -> bool:
    """Return whether every output is taken to react to every input because nothing else is known."""
    every = tuple(port.name for port in bare.inputs)
    if not any(port.feedthrough == every for port in bare.outputs):
        return False
    if isinstance(bare, Python):
        return "feedthrough" not in class_declarations(bare._class_facts.cls)
    if isinstance(bare, Ode):
        return bare.g is not None
    if isinstance(bare, Fmu):
        told = bare.description.dependencies
        return any(told.get(port.name) is None and port.feedthrough == every for port in bare.outputs)
    return False


def _tells_energy(model: Any) -> bool:
    if level := as_level(model):
        return all(map(_tells_energy, level.scenario.models.values()))
    bare = innermost_model(model)
    if any(layer.emulates == "variable step" for layer in emulation_layers(model)):
        return False
    if isinstance(bare, Python):
        return provides(bare._class_facts.cls, StoredEnergySimulator)
    return declared_energy(bare) is not None


def _copies(model: Any) -> str:
    if level := as_level(model):
        return next((found for found in map(_copies, level.scenario.models.values()) if found != YES), YES)
    bare = innermost_model(model)
    return "one per process" if isinstance(bare, Fmu) and bare.interface_used.only_once else YES


def _yes_or_no(can: bool) -> str:
    return YES if can else NO
