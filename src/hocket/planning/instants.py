"""Where steps end at events, and what happens there: the same for every orchestration algorithm.

In:  the plans of all levels, as their orchestrators wrote them
Out: the same plans, with steps that end at events, and instants; notes where events are met late

A step of a level ends at the earliest event that one inside announces, if all inside accept a step of any
length. One that finds its event within a step ends it early: then all roll back and meet it, together in the
outermost level in which all can.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hocket.coupling.feedthrough import Feedthrough
from hocket.coupling.graph import strong_components
from hocket.coupling.wiring import Wiring
from hocket.errors import Fault, Place, list_names, raise_faults
from hocket.model.clock import format_duration
from hocket.model.composite import is_sampled
from hocket.model.protocols import Model
from hocket.plan import Adapt, Body, Commit, Instant, React, Record, Solve, Try
from hocket.plan.plan import Note, NoteKind
from hocket.planning.detectors import place_detectors
from hocket.planning.tree import PlanTree


def add_instants(root: PlanTree) -> None:
    """Give every level of a tree in which something happens its instants; raises ScenarioError."""
    raise_faults([*_loop_faults(root), *_sampled_faults(root)])
    _add_instants(root, found_outside=False)


def _leaf_models(tree: PlanTree) -> Iterator[Model]:
    for level in tree.levels():
        for child, model in enumerate(level.wiring.models):
            if child not in level.inner:
                yield model


def _children_by_name(tree: PlanTree) -> list[int]:
    """Return the children in an order that does not depend on how they are listed."""
    return sorted(range(len(tree.wiring.names)), key=tree.wiring.names.__getitem__)


def _rigid(tree: PlanTree) -> str:
    """Return the path of a simulator that accepts steps of one length only; empty: there is none."""
    for child in _children_by_name(tree):
        model = tree.wiring.models[child]
        if child in tree.inner:
            inside = "" if is_sampled(model) else _rigid(tree.inner[child])
            if inside:
                return inside
        elif not model.capabilities.variable_step:
            return tree.name(child)
    return ""


def _add_instants(tree: PlanTree, found_outside: bool) -> None:
    models = list(_leaf_models(tree))
    stuck, rigid = _unable_to_roll_back(tree), _rigid(tree)
    finds = any(model.capabilities.stops_early for model in models)
    found = finds and not stuck and not rigid and not found_outside
    instant = Instant(
        _instant_body(tree), tree.composite.at_most_instants, tree.composite.on_zeno == "continue"
    )
    tree.plan = replace(
        tree.plan,
        step=_insert(place_detectors(tree.plan.step, tree.wiring), instant, found, announced=not rigid),
        notes=(*tree.plan.notes, *_late_notes(tree, stuck, rigid, found or found_outside)),
    )
    for inner in tree.inner.values():
        if inner.composite.sampled:
            _let_steps_end_early(inner)
        else:
            _add_instants(inner, (found or found_outside) and ends_around(inner, tree))


def _let_steps_end_early(tree: PlanTree) -> None:
    """Let the steps of a sampled level be made in parts; what happens in it is seen outside at samples."""
    if not any(model.capabilities.stops_early for model in _leaf_models(tree)):
        return
    stuck, rigid = _unable_to_roll_back(tree), _rigid(tree)
    if not stuck and not rigid:
        tree.plan = replace(tree.plan, step=(Try(tree.plan.step, found=True, announced=False),))
    else:
        late = _late_notes(tree, stuck, rigid, found=False)
        tree.plan = replace(tree.plan, notes=(*tree.plan.notes, *late))


def ends_around(inner: PlanTree, around: PlanTree) -> bool:
    """Return whether a step that ends early in a level can end that of the level around it.

    A level with a longer step is stepped when the level around has gone on: it meets what it finds alone.
    """
    return inner.composite.step <= around.composite.step


def _insert(step: Body, instant: Instant, found: bool, announced: bool) -> Body:
    """Return the step of a level with its instants at the end, made in parts where events are on the way."""
    if len(step) == 1 and isinstance(step[0], Adapt):
        return (replace(step[0], body=_insert(step[0].body, instant, found, announced)),)
    if len(step) == 1 and isinstance(step[0], Try):  # written by hand
        return (replace(step[0], body=(*step[0].body, instant), announced=announced),)
    whole = (*step, instant)
    return (Try(whole, found, announced),) if found or announced else whole


def _instant_body(tree: PlanTree) -> Body:
    wiring, graph = tree.wiring, Feedthrough(tree.wiring)
    looped = {child for loop in graph.loops for child, _ in loop}
    order = _evaluation_order(wiring, graph)
    reacts = [React(wiring.names[child]) for child in (*order, *_late(wiring, order)) if child not in looped]
    solves = [
        Solve(
            tuple(dict.fromkeys(wiring.names[child] for child, _ in loop)),
            tuple(graph.name(node) for node in loop),
        )
        for loop in graph.loops
    ]
    # in an algebraic loop nothing happens at instants: what it puts out is solved for
    taking = [
        child
        for child in order
        if child not in looped and (child in tree.inner or wiring.models[child].capabilities.events)
    ]
    commits = [Commit(tuple(wiring.names[child] for child in taking))] if taking else []
    return (*reacts, *solves, *commits, Record())


def _late(wiring: Wiring, order: list[int]) -> list[int]:
    """Return the children that an event reaches from one that comes after them: they react once more."""
    rank = {child: number for number, child in enumerate(order)}
    late = {target for source, target in _event_edges(wiring) if rank[source] > rank[target]}
    return [child for child in order if child in late]


def _event_edges(wiring: Wiring) -> set[tuple[int, int]]:
    """Return pairs of children: one that emits an event, and one that it reaches."""
    return {
        (drive.child, child)
        for child, drives in enumerate(wiring.drives)
        for port, drive in zip(wiring.models[child].inputs, drives, strict=True)
        if port.event and drive is not None and drive.child >= 0
    }


def _evaluation_order(wiring: Wiring, graph: Feedthrough) -> list[int]:
    """Return the children in feedthrough order, and what emits an event before what it reaches.

    Around a circle of events feedthrough counts alone; of those that do not depend on each other the name.
    """
    by_name = sorted(range(len(wiring.names)), key=wiring.names.__getitem__)
    place = {child: number for number, child in enumerate(by_name)}
    edges = {(place[source], place[target]) for source, target in graph.reactions}
    reached = {(place[source], place[target]) for source, target in _event_edges(wiring)}
    followed = [each for group in strong_components(len(by_name), edges) for each in group]
    rank = {each: number for number, each in enumerate(followed)}
    return [
        by_name[each]
        for group in strong_components(len(by_name), edges | reached)
        for each in sorted(group, key=rank.__getitem__)
    ]


def _loop_faults(tree: PlanTree) -> Iterator[Fault]:
    """Yield the algebraic loops in which something happens at instants: they have no single solution."""
    for level in tree.levels():
        wiring = level.wiring
        for loop in Feedthrough(wiring).loops:
            eventful = sorted(
                {level.name(child) for child, _ in loop if wiring.models[child].capabilities.events}
            )
            if eventful:
                graph = Feedthrough(wiring)
                around = " -> ".join(graph.name(node) for node in loop)
                yield Fault(
                    f"the algebraic loop {around} goes through {list_names(eventful, 3)}, which jumps",
                    Place(level.path, "connections"),
                    expected="a loop through a discontinuity to be broken: by a state, or by a delay",
                    hint="declare no direct feedthrough where an output follows from states alone",
                )


def _sampled_faults(tree: PlanTree, inside: str = "") -> Iterator[Fault]:
    """Yield what announces events in a sampled level, where nobody lets it react."""
    inside = inside or (tree.path if tree.composite.sampled else "")
    for child, model in enumerate(tree.wiring.models):
        can = model.capabilities
        if child in tree.inner:
            yield from _sampled_faults(tree.inner[child], inside)
        elif inside and can.events and not can.catches_up:
            yield Fault(
                f"`{tree.name(child)}` announces events, and `{inside}` is sampled: it has no instants",
                Place(tree.path, "models"),
                expected="a level that is not sampled",
                hint="leave out its `period`: due() says when it samples",
            )


def _unable_to_roll_back(tree: PlanTree) -> str:
    """Return the path of a simulator that cannot roll back; empty: all can."""
    for level in tree.levels():
        for child in _children_by_name(level):
            if child not in level.inner and not level.wiring.models[child].capabilities.rollback:
                return level.name(child)
    return ""


def _late_notes(tree: PlanTree, stuck: str, rigid: str, found: bool) -> Iterator[Note]:
    """Yield which events are met late, by how much at most, and why."""
    step = format_duration(tree.composite.step)
    own = [
        (tree.name(child), tree.wiring.models[child].capabilities)
        for child in _children_by_name(tree)
        if child not in tree.inner
    ]
    announcing = [name for name, can in own if can.events]
    finding = [name for name, can in own if can.stops_early]
    if announcing and rigid:
        text = (
            f"the events of {list_names(announcing, 3)} act on others at the end of the macro step, late "
            f"by at most {step}: `{rigid}` accepts steps of one length only"
        )
        yield Note(text, NoteKind.LATE_EVENT, announcing[0])
    if finding and not found:
        why = f"`{rigid}` accepts steps of one length only" if rigid else f"`{stuck}` cannot roll back"
        verb = "find" if len(finding) > 1 else "finds"
        text = (
            f"events that {list_names(finding, 3)} {verb} within a step act on others at the end of it, late "
            f"by at most {step}: {why}"
        )
        yield Note(text, NoteKind.EARLY_END, finding[0])
