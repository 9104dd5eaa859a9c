"""What bodies inside an instruction may hold: those that run together must not depend on each other.

In:  the bodies of a Together, a Next, a Try or a Repeat
Out: findings: what is in two of them, what is fed from another, what does not belong there
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from hocket import plan
from hocket.model.composite import accepts_any_step, as_level
from hocket.model.protocols import Model
from hocket.plan.instructions import Place, Spot, describe_instruction, named_simulators, with_places
from hocket.plan.verify.level_facts import LevelFacts


class Finding(NamedTuple):
    """A fault of a kind at an instruction: about which simulator and port, and what else its text names."""

    kind: str
    spot: Spot
    sim: str = ""
    port: str = ""
    more: Mapping[str, object] = MappingProxyType({})


def are_uniform(bodies: tuple[plan.Body, ...]) -> bool:
    """Return whether each body is one Feed, Step or Read, all of one kind and of different simulators."""
    kinds = {type(body[0]) if len(body) == 1 else None for body in bodies}
    if len(kinds) != 1 or not kinds <= {plan.Feed, plan.Step, plan.Read}:
        return False
    return len({body[0].sim for body in bodies}) == len(bodies)  # type: ignore[union-attr]


def body_owners(bodies: tuple[plan.Body, ...], place: Place) -> dict[str, int]:
    """Return the number of the body that names a simulator, the first if there are several."""
    owner: dict[str, int] = {}
    for number, body in enumerate(bodies, 1):
        for _, instruction in plan.walk(body, (*place, number), together=True):
            for sim in named_simulators(instruction):
                owner.setdefault(sim, number)
    return owner


def find_races(
    bodies: tuple[plan.Body, ...], place: Place, owner: dict[str, int], facts: LevelFacts
) -> Iterator[Finding]:
    """Yield what makes bodies depend on each other."""
    read: dict[str, int] = {}
    stepped: dict[str, int] = {}
    inside = [
        (number, at, instruction)
        for number, body in enumerate(bodies, 1)
        for at, instruction in plan.walk(body, (*place, number), together=True)
    ]
    for number, _, instruction in inside:
        if isinstance(instruction, (plan.Read, plan.Solve)):
            read.update(dict.fromkeys(named_simulators(instruction), number))
        elif isinstance(instruction, plan.Step):
            stepped[instruction.sim] = number
    for number, at, instruction in inside:
        for sim in named_simulators(instruction):
            if owner[sim] != number:
                yield Finding("shared simulator", (at, instruction), sim)
        if isinstance(instruction, (plan.Feed, plan.Solve)):
            yield from _feed_races(number, at, instruction, read, stepped, facts)
        if isinstance(instruction, (plan.Admit, plan.Record, plan.Try)) and len(bodies) > 1:
            verb = describe_instruction(instruction).partition(";")[0]
            yield Finding("not alone", (at, instruction), more={"verb": verb})


def _feed_races(
    number: int,
    at: Place,
    instruction: plan.Feed | plan.Solve,
    read: dict[str, int],
    stepped: dict[str, int],
    facts: LevelFacts,
) -> Iterator[Finding]:
    """Yield the sources of a feed that are read, or whose texts change, in another body."""
    for sim in named_simulators(instruction):
        child = facts.number.get(sim)
        for source in facts.sources[child] if child is not None else ():
            name = facts.name(source)
            if read.get(name, number) != number:
                port = facts.wire_between(source, facts.number[sim])[1]
                yield Finding("race", (at, instruction), sim, port, {"source": name})
        for text in facts.wiring.texts_of.get(child, ()) if child is not None else ():
            name = facts.name(text.child)
            if stepped.get(name, number) != number:
                yield Finding("race of texts", (at, instruction), sim, "", {"source": name})


def try_faults(facts: LevelFacts, spot: Spot, found: bool = True, last: str = "") -> Iterator[Finding]:
    """Yield what keeps a Try from shortening the step of the level, and from taking it back where it must."""
    able = list(zip(facts.wiring.names, facts.wiring.models, strict=True))
    stays = [name for name, model in able if found and name != last and not model.capabilities.rollback]
    for kind, unable in (
        ("try without rollback", stays),
        ("try of fixed steps", [name for name, model in able if not accepts_any_step(model)]),
    ):
        if unable:
            more = f" and {len(unable) - 1} more" if len(unable) > 1 else ""
            yield Finding(kind, spot, unable[0], more={"more": more})


def last_step_faults(facts: LevelFacts, instruction: plan.Try, place: Place) -> Iterator[Finding]:
    """Yield what may end the step of a Try early when the one that cannot roll back has stepped."""
    last, stepped = instruction.last, False
    models = dict(zip(facts.wiring.names, facts.wiring.models, strict=True))
    if models[last].capabilities.stops_early:
        yield Finding("last may stop", (place, instruction), last)
    for at, each in with_places(instruction.body, place):
        sims = [inner.sim for _, inner in plan.walk((each,)) if isinstance(inner, plan.Step)]
        stepped = stepped or last in sims  # what stands in one instruction with it may come behind it
        for sim in sims if stepped else ():
            if sim != last and sim in models and _may_stop(models[sim]):
                yield Finding("stop behind last", (at, each), sim, more={"last": last})


def _may_stop(model: Model) -> bool:
    """Return whether a simulator, or one inside it, may end a step early."""
    level = as_level(model)
    if level is None:
        return model.capabilities.stops_early
    return any(_may_stop(each) for each in level.scenario.models.values())


def message_faults(facts: LevelFacts, sent: set[tuple[str, str]], spot: Spot) -> Iterator[Finding]:
    """Yield what is wrong with a Send or a Receive; `sent` are those that wait to be received."""
    message = spot[1]
    assert isinstance(message, (plan.Send, plan.Receive))
    hosts = facts.scenario.hosts
    homes = {} if hosts is None else hosts.host_by_model()
    for host in (message.source, message.target):
        if host not in homes.values():
            yield Finding("unknown host", spot, more={"host": host})
    for path in message.ports:
        sim = path.partition(".")[0]
        if path not in facts.wiring.output_places:
            yield Finding("unknown port", spot, sim, path, {"near": ""})
        elif homes.get(sim) != message.source:
            yield Finding("sent from elsewhere", spot, sim, path, {"host": message.source})
    pair = message.source, message.target
    if isinstance(message, plan.Send):
        sent.add(pair)
    elif pair in sent:
        sent.remove(pair)
    else:
        yield Finding("never sent", spot, more={"source": pair[0], "target": pair[1]})


def repeat_faults(outer: plan.Repeat, place: Place, saved: set[str]) -> Iterator[Finding]:
    """Yield the simulators that a repetition steps without having rolled them back."""
    back: set[str] = set()
    inside = list(plan.walk(outer.body, place))
    stepped = {instruction.sim for _, instruction in inside if isinstance(instruction, plan.Step)}
    for at, instruction in inside:
        match instruction:
            case plan.Save(sims):
                for sim in sims:
                    if sim in stepped:
                        yield Finding("save in a repeat", (at, instruction), sim)
            case plan.Restore(sims):
                back.update(sims)
            case plan.Step(sim) if sim not in back:
                yield Finding("repeat without restore", (at, instruction), sim)
                back.add(sim)
    for sim in sorted(stepped - saved):
        yield Finding("repeat without save", (place, outer), sim)


Time: TypeAlias = Fraction | int


def turn_order(start: Sequence[Time], parts: Sequence[Time], end: Time) -> Iterator[int]:
    """Yield the number of the one furthest behind, the first of equals, until none is before the end."""
    behind = [(time, number) for number, time in enumerate(start) if time < end]
    heapify(behind)
    while behind:
        time, number = behind[0]
        yield number
        if time + parts[number] < end:
            heapreplace(behind, (time + parts[number], number))
        else:
            heappop(behind)


def steps_in(body: plan.Body) -> list[plan.Step]:
    """Return the steps of a body."""
    return [instruction for _, instruction in plan.walk(body) if isinstance(instruction, plan.Step)]


def turn_faults(bodies: tuple[plan.Body, ...], place: Place) -> Iterator[Finding]:
    """Yield what keeps bodies from being turns: each feeds, steps and reads one simulator."""
    seen: set[str] = set()
    for number, body in enumerate(bodies, 1):
        steps = steps_in(body)
        inside = list(plan.walk(body, (*place, number)))
        if len(steps) != 1 and body:
            yield Finding("no turn", inside[0], more={"n": len(steps)})
            continue
        for at, instruction in inside:
            if not isinstance(instruction, (plan.Feed, plan.Step, plan.Read, plan.Send, plan.Receive)):
                verb = describe_instruction(instruction).partition(";")[0]
                yield Finding("not in a turn", (at, instruction), steps[0].sim, more={"verb": verb})
            for sim in named_simulators(instruction):
                if sim != steps[0].sim:
                    yield Finding("other in a turn", (at, instruction), sim, more={"source": steps[0].sim})
            if isinstance(instruction, plan.Step):
                yield from _uneven_faults(at, instruction)
                if instruction.sim in seen:
                    yield Finding("second turn", (at, instruction), instruction.sim)
                seen.add(instruction.sim)


def _uneven_faults(at: Place, step: plan.Step) -> Iterator[Finding]:
    part = step.fraction
    if isinstance(part, (Fraction, int)) and part > 0 and Fraction(part).numerator != 1:
        near = Fraction(1, max(1, round(1 / part)))
        yield Finding("uneven turns", (at, step), step.sim, more={"time": part, "near": near})
