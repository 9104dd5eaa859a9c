"""Crossings as simulators: which output each watches, and when in a step.

In:  a Composite with crossings; the step of a level, as its orchestrator wrote it
Out: the same with a detector for each; the step in which each detector comes after what it watches
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from fractions import Fraction

from hocket.coupling.level_ports import port_at
from hocket.coupling.wiring import Wiring
from hocket.errors import Fault, Place, raise_faults, suggest_nearest
from hocket.model.arguments import free_name
from hocket.model.composite import Composite, Orchestrator, as_level, traits_of
from hocket.model.crossings import Crossing
from hocket.model.extrapolators import Hold
from hocket.model.protocols import Model
from hocket.model.scenario import Connection, Insertion, Scenario
from hocket.model.units import conversion
from hocket.plan import (
    Adapt,
    Body,
    Feed,
    Instruction,
    Next,
    Read,
    Record,
    Repeat,
    Restore,
    Save,
    Step,
    Times,
    Together,
    Try,
    walk,
)
from hocket.plan.instructions import WHOLE
from hocket.simulators.block import Block
from hocket.simulators.crossing import EVENT, INPUT, Detector


def with_detectors(composite: Composite, repeated: bool = False) -> Composite:
    """Return the composite with a detector for every crossing, at all levels, and for what blocks watch.

    `repeated`: a level around makes its steps again, under other inputs.
    """
    if not composite.sampled:
        composite = _watch_inputs(composite)
    scenario, models = composite.scenario, dict(composite.scenario.models)
    inside = repeated or _steps_again(composite.orchestrator)
    for name, model in scenario.models.items():
        level = as_level(model)
        if level is not None:
            made = with_detectors(level, inside)
            models[name] = model if made is level else made
    if not scenario.crossings:
        same = all(model is scenario.models[name] for name, model in models.items())
        return composite if same else composite.with_scenario(scenario.with_models(models))
    raise_faults(_crossing_faults(composite))
    return composite.with_scenario(_add_detectors(scenario, models, repeated))


def _watch_inputs(composite: Composite) -> Composite:
    """Return the composite with a crossing for each that a block is to be told of.

    An input from outside of the level is not watched: the block looks at it when its steps begin.
    """
    scenario = composite.scenario
    if not any(isinstance(model, Block) and model.watched for model in scenario.models.values()):
        return composite
    sources = {each.target: each.source for each in scenario.connections}
    crossings, connections = dict(scenario.crossings), list(scenario.connections)
    for name, model in scenario.models.items():
        for event, watch in model.watched.items() if isinstance(model, Block) else ():
            source = sources.get(f"{name}.{watch.input}", "")
            port = port_at(scenario, source, source=True)
            (own,) = (each for each in model.inputs if each.name == watch.input)
            if port is None or port.event or f"{name}.{event}" in sources:
                continue
            try:
                gain, offset = conversion(own.unit, port.unit)
            except ValueError:
                continue  # the wiring says that the units do not fit
            found = free_name(f"{name}_{event}", {*crossings, *scenario.models})
            crossings[found] = Crossing(source, watch.direction, at=gain * watch.at + offset)
            connections.append(Connection(f"{found}.{EVENT}", f"{name}.{event}"))
    return composite.with_scenario(scenario.with_changes(crossings=crossings, connections=connections))


def _steps_again(orchestrator: Orchestrator) -> bool:
    """Return whether simulators make a step more than once, each time under other inputs."""
    traits = traits_of(orchestrator)
    return traits.iterates or traits.predicts or (traits.inner is not None and _steps_again(traits.inner))


def _add_detectors(scenario: Scenario, models: dict[str, Model], repeated: bool) -> Scenario:
    heard = {connection.source for connection in scenario.connections}
    connections, inserted = list(scenario.connections), dict(scenario.inserted)
    for name, crossing in scenario.crossings.items():
        models[name] = Detector(crossing, f"{name}.{EVENT}" in heard, repeated)
        connections.append(Connection(crossing.output, f"{name}.{INPUT}", Hold()))
        inserted[name] = Insertion("crossings", f"it looks for crossings of `{crossing.output}`")
    return scenario.with_changes(models=models, connections=connections, inserted=inserted, crossings={})


def _crossing_faults(composite: Composite) -> Iterator[Fault]:
    scenario = composite.scenario
    for name, crossing in scenario.crossings.items():
        place = Place.of(f"crossings.{name}.output")
        port = port_at(scenario, crossing.output, source=True)
        owner, _, wanted = crossing.output.partition(".")
        if port is None and owner not in scenario.models:
            hint = suggest_nearest(owner, scenario.models)
            yield Fault(f"there is no model `{owner}`", place, "the path of an output: `ball.h`", hint)
        elif port is None:
            hint = suggest_nearest(wanted, [each.name for each in scenario.models[owner].outputs])
            yield Fault(f"`{owner}` has no output `{wanted}`", place, "", hint)
        elif port.event:
            what = f"`{crossing.output}` is an event, which has no value to cross between instants"
            yield Fault(what, place, "an output that has a value at all times", "connect the event itself")
        if composite.sampled:
            what = f"`{name}` is to end steps at an event, and a sampled level steps on its own grid only"
            expected = "a level that is not sampled"
            yield Fault(
                what, Place.of(f"crossings.{name}"), expected, "put the crossing into the level around"
            )


def place_detectors(step: Body, wiring: Wiring) -> Body:
    """Return the step of a level in which detectors come right after what they watch.

    What is stepped once per step is watched at the end of it, when outputs and inputs agree; what makes
    several steps, after each of them, unless it takes turns with others that go other ways.
    """
    watching = [child for child, model in enumerate(wiring.models) if model.capabilities.observes]
    if not watching:
        return step
    step = _without(step, {wiring.names[child] for child in watching})
    for child in sorted(watching, key=wiring.names.__getitem__):
        drive = wiring.drives[child][0]
        source = "" if drive is None or drive.child < 0 else wiring.names[drive.child]
        part = _last_part(step, source)
        if part == 1:
            step = _at_the_end(step, wiring.names[child])
        else:
            step, _ = _after_part(step, source, wiring.names[child], part)
    return step


def _look(detector: str, part: Fraction = WHOLE) -> Body:
    return (Feed(detector), Step(detector, part), Read(detector))


def _at_the_end(step: Body, detector: str) -> Body:
    if len(step) == 1 and isinstance(step[0], Adapt):
        return (replace(step[0], body=_at_the_end(step[0].body, detector)),)
    records = len(step) > 0 and isinstance(step[-1], Record)
    return (*step[:-1], *_look(detector), step[-1]) if records else (*step, *_look(detector))


def _last_part(body: Body, sim: str) -> Fraction:
    """Return which part of the level's step the last step of a simulator is; in a Next it counts as whole."""
    turns = {id(each) for _, one in walk(body) if isinstance(one, Next) for _, each in walk((one,))}
    steps = [each for _, each in walk(body) if isinstance(each, Step) and each.sim == sim]
    return steps[-1].fraction if steps and id(steps[-1]) not in turns else WHOLE


def _after_part(body: Body, source: str, detector: str, part: Fraction) -> tuple[Body, bool]:
    """Return a body with a detector behind the last steps of its source, and whether it has found any."""
    made: list[Instruction] = []
    done = False
    for instruction in reversed(body):
        changed: tuple[Instruction, ...] = (instruction,)
        if not done:
            match instruction:
                case Step(sim, fraction) if sim == source and fraction == part:
                    done = True
                    changed = (instruction, Read(source), *_look(detector, part))
                case Times(n, inner):
                    inner, done = _after_part(inner, source, detector, part)
                    changed = (Times(n, inner),)
                case Try(inner) | Adapt(inner) | Repeat(inner):
                    inner, done = _after_part(inner, source, detector, part)
                    changed = (replace(instruction, body=inner),)
                case Together(bodies):
                    done = any(
                        isinstance(each, Step) and each.sim == source and each.fraction == part
                        for inner in bodies
                        for each in inner
                    )
                    if done:
                        changed = (instruction, Read(source), *_look(detector, part))
                case _:
                    pass
        made = [*changed, *made]
    return tuple(made), done


def _without(body: Body, sims: Collection[str]) -> Body:
    """Return a body from which simulators are left out."""
    made: list[Instruction] = []
    for instruction in body:
        match instruction:
            case Feed(sim) | Step(sim) | Read(sim):
                if sim not in sims:
                    made.append(instruction)
            case Save(names) | Restore(names):
                left = tuple(name for name in names if name not in sims)
                if left:
                    made.append(replace(instruction, sims=left))
            case Times(_, inner) | Try(inner) | Adapt(inner) | Repeat(inner):
                made.append(replace(instruction, body=_without(inner, sims)))
            case Together(bodies) | Next(bodies):
                kept = tuple(each for each in (_without(inner, sims) for inner in bodies) if each)
                if kept:
                    made.append(replace(instruction, bodies=kept))
            case _:
                made.append(instruction)
    return tuple(made)
