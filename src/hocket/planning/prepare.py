"""A composite as it will run: constraints solved, bonds balanced, ports and levels made.

In:  a Composite as it was written
Out: a Composite whose plan can be made; or every fault that can be known before a model is opened
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from hocket.coupling.feedthrough import with_direct_feedthrough
from hocket.coupling.wiring import scenario_faults
from hocket.errors import ScenarioError, raise_faults
from hocket.model.composite import Composite, as_level, levels
from hocket.model.extrapolators import Hold
from hocket.model.memo import Memo
from hocket.model.ports import Port
from hocket.model.protocols import Model, period_of
from hocket.model.scenario import Connection, Scenario


def prepare_composite(composite: Composite, tries: bool = True) -> Composite:
    """Return the composite as it will run: without constraints, bonds are balanced, ports are made.

    Sampled models become levels. Raises ScenarioError with all faults at once. Without `tries` no simulator
    is opened to see how constraints react to their inputs; that cannot be run.
    """
    composite = without_constraints(composite, tries)
    composite = _hand_on_curves(_place_detectors(composite))
    scenario = _make_level_ports(_with_sampled_levels(_balance_bonds(composite)))
    scenario = with_direct_feedthrough(scenario)
    raise_faults(scenario_faults(scenario))
    return composite.with_scenario(scenario)


def _make_level_ports(scenario: Scenario) -> Scenario:
    if not any(as_level(model) for model in scenario.models.values()):
        return scenario
    from hocket.coupling.level_ports import with_level_ports

    return with_level_ports(scenario)


def _balance_bonds(composite: Composite) -> Scenario:
    if not any(bond.balance for _, each in levels(composite) for bond in each.scenario.bonds.values()):
        return composite.scenario
    from hocket.planning.power_balance_pass import balance_bonds

    return balance_bonds(composite)


def _hand_on_curves(composite: Composite) -> Composite:
    if "hocket.orchestrators.waveform" not in sys.modules:
        return composite  # nobody has made one
    from hocket.planning.curves import hand_on_curves

    return hand_on_curves(composite)


def _place_detectors(composite: Composite) -> Composite:
    if not any(_has_crossings(each.scenario) for _, each in levels(composite)):
        return composite
    from hocket.planning.detectors import with_detectors

    return with_detectors(composite)


def _has_crossings(scenario: Scenario) -> bool:
    """Return whether an output is watched, for an event or for a block."""
    if scenario.crossings:
        return True
    if "hocket.simulators.block" not in sys.modules:
        return False  # nobody has made one
    from hocket.simulators.block import Block

    return any(isinstance(model, Block) and model.watched for model in scenario.models.values())


def without_constraints(composite: Composite, tries: bool = True) -> Composite:
    """Return the composite with simulators that solve its constraints; see `prepare_composite`."""
    return _SOLVED[tries](composite)


def _eliminate_constraints(composite: Composite, tries: bool) -> Composite:
    if not any(each.scenario.constraints for _, each in levels(composite)):
        return composite
    from hocket.planning.compiler.modularity import Modularity

    needed = Modularity(tries=tries)
    try:
        return needed.apply(composite)
    except ScenarioError as error:
        others = scenario_faults(_make_level_ports(composite.scenario))
        connected = [fault for fault in others if fault.place.section == "connections"]
        raise ScenarioError([*connected, *error.faults]) from None


_SOLVED: dict[bool, Memo[Composite, Composite]] = {
    True: Memo(partial(_eliminate_constraints, tries=True)),
    False: Memo(partial(_eliminate_constraints, tries=False)),
}
"""Per `tries`: constraints are compiled once per composite, for that may open simulators."""


def _with_sampled_levels(scenario: Scenario) -> Scenario:
    changed: dict[str, Model] = {}
    for name, model in scenario.models.items():
        if isinstance(model, Composite):
            changed[name] = model.with_scenario(_with_sampled_levels(model.scenario))
        elif period_of(model) is not None:
            changed[name] = as_sampled_level(model)
    return scenario.with_models({**scenario.models, **changed}) if changed else scenario


def as_sampled_level(model: Any) -> Composite:
    """Return a model with a period as a level of one child: inputs are sampled and held, outputs too."""
    taken = [Connection(port.name, f"sampled.{port.name}", Hold()) for port in model.inputs]
    given = [Connection(f"sampled.{port.name}", port.name) for port in model.outputs]
    outputs = [Port(port.name, port.unit, type=port.type) for port in model.outputs]
    inner = Scenario({"sampled": model.without_period()}, [*taken, *given], model.inputs, outputs, record=[])
    return Composite(inner, model.period, sampled=True)
