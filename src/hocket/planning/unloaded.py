"""A scenario as it can be looked at without loading the code that it names.

In:  an Experiment
Out: the same, with the ports of models in Python as far as the file tells them, and a note for each
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hocket.model.code_loading import permit_code
from hocket.model.composite import Composite, levels
from hocket.model.experiment import Experiment
from hocket.model.ports import Port
from hocket.planning.parameters import leaves, with_leaves
from hocket.simulators.devs import Devs
from hocket.simulators.python import Python
from hocket.simulators.wrappers.emulation import ModelWrapper
from hocket.simulators.wrappers.timed import Timed


def without_code(experiment: Experiment, hint: str = "") -> Experiment:
    """Return the experiment with what is known of its models before their code is loaded.

    A class that is not loaded has the ports that the file gives it, or those that are connected: events where
    the other end is one. It is taken to have no direct feedthrough and no other optional capability; a note
    says so.
    """
    composite = experiment.composite
    unknown = {path: model for path, model in leaves(composite) if needs_loading(model)}
    if not unknown:
        return experiment
    _refuse_in_constraints(composite, unknown)
    used = {(True, source) for source, _ in _connected_paths(composite)}
    used |= {(False, target) for _, target in _connected_paths(composite)}
    events = _event_paths(composite, unknown)
    changed = {path: _with_ports(model, path, used, events) for path, model in unknown.items()}
    notes = [
        f"`{path}`: `{_innermost(model).class_name}` is not loaded; its ports are those that the file "
        f"names, without direct feedthrough{f' ({hint})' if hint else ''}"
        for path, model in unknown.items()
    ]
    changed_composite = with_leaves(composite, changed)
    return replace(experiment, composite=changed_composite, notes=(*experiment.notes, *notes))


def _refuse_in_constraints(composite: Composite, unknown: Mapping[str, Any]) -> None:
    """Refuse equations between ports of models whose ports are not known."""
    for prefix, level in levels(composite):
        for name, constraint in level.scenario.constraints.items():
            for path, model in unknown.items():
                begin = f"{path.removeprefix(prefix)}."
                if path.startswith(prefix) and any(begin in each for each in constraint.equations):
                    permit_code(_innermost(model).class_name, f"constraints.{name}", announced=False)


def needs_loading(model: Any) -> bool:
    """Return whether the ports of a model are known only once code is loaded."""
    inner = _innermost(model)
    return isinstance(inner, Python) and inner.needs_loading


def _innermost(model: Any) -> Any:
    while isinstance(model, (ModelWrapper, Timed)):
        model = model.model
    return model


def _connected_paths(composite: Composite) -> Iterator[tuple[str, str]]:
    """Yield source and target of every connection, as paths from the outermost level."""
    for prefix, level in levels(composite):
        for connection in level.scenario.connections:
            yield f"{prefix}{connection.source}", f"{prefix}{connection.target}"


def _event_paths(composite: Composite, unknown: Mapping[str, Any]) -> set[str]:
    """Return the paths of ports that are events, or that connections lead to from one that is."""
    events, connected = {*_known_events(composite, unknown)}, [*_connected_paths(composite)]
    while more := {end for ends in connected if events.intersection(ends) for end in ends} - events:
        events |= more
    return events


def _known_events(composite: Composite, unknown: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of ports that are events, as far as no code need be loaded to know it."""
    for prefix, level in levels(composite):
        yield from (f"{prefix}{name}.event" for name in level.scenario.crossings)
        own = (*level.scenario.inputs, *level.scenario.outputs)
        yield from (f"{prefix}{port.name}" for port in own if port.event)
    for path, model in leaves(composite):
        if path in unknown:
            inner = _innermost(model)
            ports = (*(inner.own_inputs or ()), *(inner.own_outputs or ()))
        else:
            ports = () if isinstance(model, Devs) else (*model.inputs, *model.outputs)
        yield from (f"{path}.{port.name}" for port in ports if port.event)


def _with_ports(model: Any, path: str, used: set[tuple[bool, str]], events: set[str]) -> Any:
    """Return a model, in all its wrappers, with the ports that are given or used."""
    if not isinstance(model, Python):
        return replace(model, model=_with_ports(model.model, path, used, events))

    def ports(given: tuple[Port, ...] | None, output: bool) -> tuple[Port, ...]:
        begin = f"{path}."
        names = sorted(at[len(begin) :] for source, at in used if source is output and at.startswith(begin))
        found = tuple(Port(name, event=begin + name in events) for name in names)
        return found if given is None else given

    inputs = ports(model.own_inputs, False)
    outputs = ports(model.own_outputs, True)
    return model.without_class(inputs, tuple(replace(port, feedthrough=()) for port in outputs))
