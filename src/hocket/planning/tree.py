"""The whole tree of levels before anything is opened: wiring and plan of each, checked against each other.

In:  a Composite
Out: a PlanTree per level; the leaves of the tree as one flat wiring
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

from hocket.coupling.feedthrough import Feedthrough
from hocket.coupling.graph import strong_components
from hocket.coupling.wiring import CONSTANT, OWN, Drive, Wiring, wire
from hocket.errors import Fault, Place, ScenarioError, collect_faults, raise_faults
from hocket.model.clock import format_duration
from hocket.model.composite import Composite, as_level
from hocket.model.extrapolators import Hold
from hocket.model.protocols import Extrapolator, bookkeeping_ports, step_of
from hocket.model.scenario import Scenario
from hocket.orchestrators.explicit import evaluation_body, in_parallel
from hocket.plan import Body, Instruction, Plan, Read, adapts, walk

Kind = TypeVar("Kind", bound=Instruction)


@dataclass
class PlanTree:
    """One level as it will be built; `inner` has the levels inside, by the number of the child."""

    path: str
    composite: Composite
    wiring: Wiring
    plan: Plan
    inner: dict[int, PlanTree] = field(default_factory=dict)
    remote: frozenset[int] = frozenset()
    """Of a projection onto a host: the children that are on others."""

    @cached_property
    def leaves(self) -> Leaves:
        """The simulators at the ends of this tree."""
        return flatten_tree(self)

    def levels(self) -> Iterator[PlanTree]:
        """Yield this level and all inside it."""
        yield self
        for inner in self.inner.values():
            yield from inner.levels()

    def instructions(self, kind: type[Kind]) -> Iterator[tuple[PlanTree, Kind]]:
        """Yield the instructions of one kind in the steps of all levels, each with its level."""
        for level in self.levels():
            for _, instruction in walk(level.plan.step):
                if isinstance(instruction, kind):
                    yield level, instruction

    def name(self, child: int) -> str:
        """Return the path of a child."""
        return f"{self.path}.{self.wiring.names[child]}" if self.path else self.wiring.names[child]


@dataclass
class Leaves:
    """The simulators at the ends of the tree, wired directly to each other."""

    wiring: Wiring
    places: list[tuple[str, int]]
    """Per leaf: the path of its level and its number there."""


def build_tree(composite: Composite) -> PlanTree:
    """Return the tree of a prepared composite; raises ScenarioError with every fault."""
    faults: list[Fault] = []
    root = _plan_level(composite, "", faults)
    if faults:
        # what stops early is placed in the plan when there is one: before that, it cannot be verified
        whole = not any(
            model.capabilities.stops_early for each in root.levels() for model in each.wiring.models
        )
        raise ScenarioError([*(_plan_faults(root) if whole else ()), *faults])
    raise_faults(_start_faults(root))
    root.plan = replace(root.plan, start=start_body(root.leaves))
    return root


def _start_faults(root: PlanTree) -> Iterator[Fault]:
    """Yield what is wrong with a start that somebody wrote; a sound one gives the values of `start_body`."""
    if not root.plan.start:
        return
    from hocket.plan.verify.verifier import verify_start

    for fault in verify_start(root.plan.start, root.leaves.wiring):
        yield replace(fault, place=Place(root.path, "orchestrator", detail=fault.where))


def verify_tree(root: PlanTree) -> None:
    """Raise ScenarioError where what an orchestrator wrote is not a sound plan."""
    raise_faults(_plan_faults(root))


def _plan_faults(root: PlanTree) -> Iterator[Fault]:
    """Yield what the verifier finds in the plans of all levels that have one."""
    from hocket.plan.verify.verifier import verify_plan

    for level in root.levels():
        if level.plan.step:
            plan = replace(level.plan, start=())
            for fault in verify_plan(plan, level.composite.scenario, level.composite.step):
                yield replace(fault, place=Place(level.path, "orchestrator", detail=fault.where))


def _plan_level(composite: Composite, path: str, faults: list[Fault]) -> PlanTree:
    scenario = composite.scenario
    wiring = wire(scenario, composite.extrapolation)
    plan = Plan(())
    with collect_faults(faults, path):
        plan = composite.orchestrator.plan(_with_slopes(scenario, wiring, composite.extrapolation))
    built = PlanTree(path, composite, wiring, plan)
    for child, model in enumerate(wiring.models):
        name = built.name(child)
        step = step_of(model)
        if step is not None:
            faults += _step_faults(name, step, composite.step, nested=as_level(model) is not None)
        faults += _slope_faults(wiring, child, name)
        if as_level(model):
            inner: Any = model
            built.inner[child] = _plan_level(inner, name, faults)
    return built


def _with_slopes(scenario: Scenario, wiring: Wiring, default: Extrapolator) -> Scenario:
    """Return the scenario with the extrapolation of the level written out, where that asks for slopes."""
    if not default.slopes:
        return scenario
    sloped = {
        f"{name}.{port.name}"
        for name, model, drives in zip(wiring.names, wiring.models, wiring.drives, strict=True)
        for port, drive in zip(model.inputs, drives, strict=True)
        if drive is not None and drive.extrapolation is default
    }
    connections = [
        replace(each, extrapolation=default) if each.extrapolation is None and each.target in sloped else each
        for each in scenario.connections
    ]
    return scenario.with_changes(connections=connections)


def _step_faults(name: str, step: Fraction, outer: Fraction, nested: bool) -> Iterator[Fault]:
    ratio = outer / step
    if ratio.denominator == 1 or (nested and ratio.numerator == 1):
        return
    if ratio > 1:
        near = [outer / (ratio.__floor__() + 1), outer / ratio.__floor__()]
    else:
        near = [outer * (1 / ratio).__floor__(), outer * (1 / ratio).__ceil__()] if nested else [outer]
    yield Fault(
        f"the step {format_duration(step)} of `{name}` does not divide the step {format_duration(outer)}"
        " around it",
        Place(name, key="step"),
        expected="the outer step divided by a whole number" + (", or a multiple of it" if nested else ""),
        hint=" or ".join(map(format_duration, near)),
    )


def _slope_faults(wiring: Wiring, child: int, name: str) -> Iterator[Fault]:
    told = bookkeeping_ports(wiring.models[child])  # these come with ports that say the same
    for port, drive in zip(wiring.models[child].inputs, wiring.drives[child], strict=True):
        if drive is None or drive.extrapolation is None or port.name in told:
            continue
        if drive.child == OWN:
            if not isinstance(drive.extrapolation, Hold):
                yield Fault(
                    f"`{name}.{port.name}` passes an input of the level on and cannot be fitted anew",
                    Place(name),
                    expected='no extrapolation, or "hold" to sample it at every inner step',
                )
        elif drive.extrapolation.slopes and not _tells_slope(wiring, drive):
            source = wiring.models[drive.child]
            some = source.capabilities.slopes
            giver = wiring.output_path(drive.child, drive.port) if some else wiring.names[drive.child]
            yield Fault(
                f"`{name}.{port.name}` wants slopes, and `{giver}` does not give any",
                Place(name),
                hint='extrapolation "linear", which needs values only; slopes = "backward" makes some',
            )


def _tells_slope(wiring: Wiring, drive: Drive) -> bool:
    source = wiring.models[drive.child]
    return source.capabilities.slopes and source.outputs[drive.port].name not in source.capabilities.slopeless


def nest_plans(tree: PlanTree) -> Plan:
    """Let the plan of each level hold those of the levels inside; return that of the outermost."""
    inner = {tree.wiring.names[child]: nest_plans(design) for child, design in tree.inner.items()}
    tree.plan = replace(tree.plan, inner=inner)
    return tree.plan


def start_body(leaves: Leaves) -> Body:
    """Return the initialisation of all levels: what reacts to nothing first, then in feedthrough order."""
    graph, wiring = Feedthrough(leaves.wiring, at_start=True), leaves.wiring
    first, rounds = graph.first_reads, graph.rounds()
    read = {*first, *(child for turn in rounds for child in turn.children)}
    last = [child for child, model in enumerate(wiring.models) if model.outputs and child not in read]
    return (
        *in_parallel(Read(wiring.names[child]) for child in first),
        *evaluation_body(graph, rounds),
        *in_parallel(Read(wiring.names[child]) for child in last),
    )


def window_obstacles(leaves: Leaves) -> list[str]:
    """Return the leaves that cannot take part in a start window."""
    return [
        name
        for name, model in zip(leaves.wiring.names, leaves.wiring.models, strict=True)
        if not (model.capabilities.rollback and model.capabilities.variable_step)
    ]


def window_order(leaves: Leaves) -> list[int]:
    """Return the leaves as a window goes through them: those whose outputs react to others after these."""
    edges = Feedthrough(leaves.wiring, at_start=True).reactions
    return [leaf for group in strong_components(len(leaves.places), edges) for leaf in group]


def cold_order(extrapolator: Extrapolator) -> int:
    """Return the order that is left when the first step has one sample only, perhaps with its slope."""
    return 3 if extrapolator.slopes else 2


def needs_past(extrapolator: Extrapolator) -> bool:
    """Return whether an extrapolator loses order without a past."""
    return extrapolator.degree + 1 > cold_order(extrapolator)


def window_degree(level: PlanTree) -> int:
    """Return the highest degree that looks back on a level with a window; 0: it needs none."""
    if level.composite.start == "cold":
        return 0
    looking = max((each.degree for each in level.wiring.extrapolators if each.samples > 1), default=0)
    # step control looks one degree further
    return looking + 1 if adapts(level.plan.step) else looking


def flatten_tree(root: PlanTree) -> Leaves:
    """Return the leaves of the tree, each input wired to the leaf that drives it in the end."""
    number: dict[tuple[str, int], int] = {}
    names: list[str] = []
    parents: dict[str, tuple[PlanTree, int]] = {}
    for level in root.levels():
        for child in range(len(level.wiring.models)):
            if child in level.inner:
                parents[level.inner[child].path] = (level, child)
            else:
                number[(level.path, child)] = len(names)
                names.append(level.name(child))

    def follow_drive(level: PlanTree, drive: Drive | None) -> Drive | None:
        """Follow a drive to a leaf, or to an input of the outermost level; factors add up on the way."""
        gain, offset, extrapolation = 1.0, 0.0, None
        while drive is not None:
            gain, offset = gain * drive.gain, gain * drive.offset + offset
            extrapolation = extrapolation or drive.extrapolation
            if drive.child == OWN:
                if level.path not in parents:
                    return Drive(OWN, drive.port, extrapolation, gain, offset)
                start = level.composite.inputs[drive.port].start
                level, child = parents[level.path]
                drive = level.wiring.drives[child][drive.port]
                if drive is None and start is not None:
                    return Drive(CONSTANT, 0, extrapolation, 0.0, gain * start + offset)
            elif drive.child in level.inner:
                level = level.inner[drive.child]
                drive = level.wiring.outputs[drive.port]
            else:
                return Drive(number[(level.path, drive.child)], drive.port, extrapolation, gain, offset)
        return None

    drives, models, places = [], [], []
    for level in root.levels():
        for child, model in enumerate(level.wiring.models):
            if child not in level.inner:
                drives.append(tuple(follow_drive(level, drive) for drive in level.wiring.drives[child]))
                models.append(model)
                places.append((level.path, child))
    outputs = tuple(
        drive for drive in (follow_drive(root, d) for d in root.wiring.outputs) if drive is not None
    )
    return Leaves(Wiring(tuple(names), tuple(models), tuple(drives), outputs), places)
