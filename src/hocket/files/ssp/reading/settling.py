"""Inputs of systems that nothing drives: what they lead to keeps the start value of its FMU.

In:  the outermost composite as it was built
Out: the same, where every input that is left open has a start value, or is gone
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from hocket.engine.composite import Composite
from hocket.files.ssp.findings import ImportFindings
from hocket.files.ssp.units import AffineMap
from hocket.model import Port, Scenario
from hocket.units import conversion


def settle_inputs(
    composite: Composite, driven: Collection[str], findings: ImportFindings, path: str = ""
) -> Composite:
    """Return a composite in which no open input is without a start value; `driven` are those not open."""
    scenario = composite.scenario
    ports: list[Port] = []
    for port in scenario.inputs:
        if port.name in driven or port.start is not None:
            ports.append(port)
            continue
        starts = set(_starts(scenario, port))
        if len(starts) == 1 and None not in starts:
            ports.append(replace(port, start=starts.pop()))
        elif starts:
            what = f"nothing drives the input `{path}{port.name}`"
            findings.note(f"{what}, and what it leads to starts at different values: it is left out")
    kept = {port.name for port in ports}
    gone = {port.name for port in scenario.inputs} - kept
    connections = [c for c in scenario.connections if c.source not in gone]
    models = dict(scenario.models)
    for name, model in scenario.models.items():
        if isinstance(model, Composite):
            inside = {c.target[len(name) + 1 :] for c in connections if c.target.startswith(f"{name}.")}
            models[name] = settle_inputs(model, inside, findings, f"{path}{name}.")
    return composite.with_scenario(
        scenario.with_changes(models=models, connections=connections, inputs=ports)
    )


def _starts(scenario: Scenario, port: Port) -> Iterator[float | None]:
    """Yield the value of a port that would leave each of the inputs it leads to where it starts."""
    for connection in scenario.connections:
        if connection.source != port.name:
            continue
        owner, _, name = connection.target.partition(".")
        model = scenario.models.get(owner)
        target = next((p for p in model.inputs if p.name == name), None) if model else None
        if model is None or target is None:
            continue
        inner = {target.start}
        if target.start is None and isinstance(model, Composite):
            inner = set(_starts(model.scenario, target))
        line = AffineMap(*conversion(port.unit, target.unit)).then(
            AffineMap(connection.gain, connection.offset)
        )
        for start in inner:
            back = None if start is None or not line.gain else line.inverse()(start)
            yield None if back is None else float(f"{back:.14g}")
