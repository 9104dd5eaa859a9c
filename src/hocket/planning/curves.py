"""Curves in place of values: the scenario of a level whose windows are iterated.

In:  a level with the algorithm `Waveform`
Out: the same level, its simulators in `Windowed`, each connection one of samples; levels inside likewise
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hocket.errors import Fault, ScenarioError
from hocket.model.composite import Composite, as_level
from hocket.model.extrapolators import Hold
from hocket.model.scenario import Connection, Scenario
from hocket.orchestrators.waveform import Waveform, joins_models
from hocket.simulators.wrappers.windowed import Windowed


def hand_on_curves(composite: Composite) -> Composite:
    """Return a composite whose levels of waveforms have models with curves."""
    models: dict[str, Any] = dict(composite.scenario.models)
    inner = {name: each for name, each in models.items() if isinstance(each, Composite)}
    changed = {name: hand_on_curves(each) for name, each in inner.items()}
    scenario = composite.scenario.with_models({**models, **changed}) if changed else composite.scenario
    orchestrator = composite.orchestrator
    done = any(isinstance(each, Windowed) for each in models.values())
    if isinstance(orchestrator, Waveform) and not done:
        scenario = with_curves(scenario, orchestrator)
    return composite if scenario is composite.scenario else composite.with_scenario(scenario)


def with_curves(scenario: Scenario, how: Waveform) -> Scenario:
    """Return a scenario whose simulators hand curves to each other; ScenarioError where they cannot."""
    between = [each for each in scenario.connections if joins_models(scenario, each)]
    taken: dict[str, list[str]] = {}
    given: dict[str, list[str]] = {}
    for each in between:
        for path, ports in ((each.target, taken), (each.source, given)):
            owner, _, port = path.partition(".")
            ports.setdefault(owner, []).append(port)
    faults = [
        Fault(f"`{name}` is a level, and a level hands on no curves", "orchestrator", "simulators")
        for name in {**taken, **given}
        if as_level(scenario.models[name]) is not None
    ]
    if scenario.bonds:
        faults.append(Fault("power bonds keep accounts of values, not of curves", "bonds", "another level"))
    models: dict[str, Any] = dict(scenario.models)
    for name in scenario.models if not faults else ():
        try:
            models[name] = Windowed(
                models[name], how.samples, tuple(taken.get(name, ())), tuple(given.get(name, ())), how.degree
            )
        except ScenarioError as error:
            faults += [fault.within(f"{name}.") for fault in error.faults]
    if faults:
        raise ScenarioError(faults)
    connections: list[Connection] = []
    for each in scenario.connections:
        if not joins_models(scenario, each):
            connections.append(each)
            continue
        for k in range(how.samples + 1):
            source, target = f"{each.source}@{k}", f"{each.target}@{k}"
            connections.append(replace(each, source=source, target=target, extrapolation=Hold()))
    return scenario.with_changes(models=models, connections=tuple(connections))
