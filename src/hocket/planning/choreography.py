"""What passes between hosts, in the plan: messages before what uses them, and each host's part of the plan.

In:  a tree of plans whose outermost level has hosts
Out: the same with a Send and a Receive where values pass; or its projection onto one host

There is one list for all hosts. Each does its own part of it in that order, so that no two can wait for each
other, and all count the same messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hocket.coupling.feedthrough import Feedthrough
from hocket.errors import Fault, list_names, raise_faults, suggest_nearest
from hocket.model.extrapolators import Hold
from hocket.plan.instructions import (
    Adapt,
    Body,
    Commit,
    Feed,
    Instant,
    Instruction,
    Next,
    Receive,
    Repeat,
    Restore,
    Save,
    Send,
    Solve,
    Times,
    Together,
    Try,
    feedback_drives,
    named_simulators,
    number_ports,
    walk,
)
from hocket.planning.cost import distributed_level, hosts_of
from hocket.planning.tree import PlanTree


def add_messages(root: PlanTree) -> None:
    """Put a Send and a Receive before what is fed with values of another host, where a level has several."""
    level = distributed_level(root)
    if level is None:
        return
    written = any(isinstance(each, (Send, Receive)) for _, each in walk(level.plan.step))
    if not written:
        level.plan = replace(level.plan, step=_with_messages(level, level.plan.step))


def _with_messages(level: PlanTree, body: Body) -> Body:
    """Return a body with messages before each run of feeds; all are sent before any is waited for."""
    made: list[Instruction] = []
    at = 0
    while at < len(body):
        run = at
        while run < len(body) and _feeds_only(body[run]):
            run += 1
        if run > at:
            made += [*_messages(level, body[at:run]), *body[at:run]]
            at = run
            continue
        made += [*_messages(level, (body[at],))] if isinstance(body[at], Solve) else []
        made.append(_with_inner_messages(level, body[at]))
        at += 1
    return tuple(made)


def _with_inner_messages(level: PlanTree, each: Instruction) -> Instruction:
    match each:
        case Times(_, inner) | Try(inner) | Adapt(inner) | Repeat(inner):
            changed: Any = replace(each, body=_with_messages(level, inner))
            return changed  # type: ignore[no-any-return]
        case Next(bodies):
            return replace(each, bodies=tuple(_with_messages(level, inner) for inner in bodies))
        case Together(bodies):
            return replace(each, bodies=tuple(_with_messages(level, inner) for inner in bodies))
    return each


def _feeds_only(each: Instruction) -> bool:
    if isinstance(each, Together):
        return all(len(body) == 1 and isinstance(body[0], Feed) for body in each.bodies)
    return isinstance(each, Feed)


def _messages(level: PlanTree, feeds: Body) -> Iterator[Instruction]:
    """Yield the messages that some feeds need: every Send before the first Receive."""
    needed: dict[tuple[str, str], dict[str, None]] = {}
    homes, wiring = hosts_of(level).host_by_model(), level.wiring
    number = wiring.numbers()
    for _, each in walk(feeds):
        chosen = None
        for sim in named_simulators(each):
            child = number[sim]
            if isinstance(each, Feed):
                chosen = number_ports(each.ports, wiring.models[child].inputs)
            for index, drive in enumerate(wiring.drives[child]):
                if drive is None or drive.child < 0 or (chosen is not None and index not in chosen):
                    continue
                pair = homes[wiring.names[drive.child]], homes[sim]
                if pair[0] != pair[1]:
                    path = wiring.output_path(drive.child, drive.port)
                    needed.setdefault(pair, {})[path] = None
    for kind in (Send, Receive):
        for (source, target), ports in needed.items():
            yield kind(source, target, tuple(ports))


def project(root: PlanTree, host: str) -> PlanTree:
    """Return the tree as one host runs it: the children that are on others are marked as remote."""
    level = distributed_level(root)
    hosts = () if level is None else hosts_of(level).models
    if level is None or host not in hosts:
        hint = suggest_nearest(host, hosts) if hosts else "[hosts] in the scenario"
        raise_faults([Fault(f"there is no host `{host}`", "hosts", "a host of the scenario", hint)])
    assert level is not None
    homes = hosts_of(level).host_by_model()

    def copy(each: PlanTree, whole: bool) -> PlanTree:
        remote = frozenset(
            child
            for child, name in enumerate(each.wiring.names)
            if whole or (each is level and homes[name] != host)
        )
        inner = {child: copy(below, child in remote) for child, below in each.inner.items()}
        return replace(each, inner=inner, remote=remote)

    return copy(root, False)


def projection_faults(root: PlanTree) -> list[Fault]:
    """Return why a tree cannot be run on its hosts: decisions that would need more than its messages."""
    level = distributed_level(root)
    if level is None:
        hint = '[hosts] with two of them: plant = ["left"], lab = ["right"]'
        return [Fault("the scenario is on one host", "hosts", "models on two hosts or more", hint)]
    if level is not root:
        what = f"the hosts are those of `{level.path}`, and what is beside it is on none of them"
        return [Fault(what, "hosts", "hosts of the outermost level")]
    homes = hosts_of(level).host_by_model()
    return [*_step_faults(level), *_loop_faults(root, homes), *_wire_faults(level, homes)]


def _step_faults(level: PlanTree) -> Iterator[Fault]:
    """Yield what chooses its steps by more than one host knows."""
    kinds = {type(each) for _, each in walk(level.plan.step)}
    if Adapt in kinds:
        what = "the level between the hosts chooses its steps by an error that no host knows alone"
        yield Fault(
            what, "orchestrator", "steps of one length", "step control inside a host: the distribution pass"
        )
    if kinds & {Instant, Try}:
        what = "steps of the level between the hosts end at events"
        hint = "the distribution pass: events stay inside a host and act on others with the next step"
        yield Fault(what, "hosts", "events inside the hosts", hint)


def _loop_faults(root: PlanTree, homes: Mapping[str, str]) -> Iterator[Fault]:
    """Yield the algebraic loops that go over several hosts, in a step and at the start."""
    leaves = root.leaves.wiring
    loops = {
        tuple(leaves.names[leaf] for leaf in turn.children)
        for turn in Feedthrough(leaves, at_start=True).rounds()
        if turn.loop
    }
    loops |= {each.sims for _, each in walk(root.plan.step) if isinstance(each, Solve)}
    for sims in sorted(loops):
        over = sorted({homes[sim.partition(".")[0]] for sim in sims})
        if len(over) > 1:
            what = f"the algebraic loop of {list_names(sims, 4)} goes over the hosts {list_names(over, 4)}"
            yield Fault(
                what, "hosts", "a loop on one host", "put its models on one, or iterate between the hosts"
            )
            return


def _wire_faults(level: PlanTree, homes: Mapping[str, str]) -> Iterator[Fault]:
    """Yield connections between hosts that messages of numbers cannot carry."""
    wiring = level.wiring
    for child, drives in enumerate(wiring.drives):
        for index, drive in enumerate(drives):
            if drive is None or drive.child < 0 or not (drive.extrapolation or Hold()).slopes:
                continue
            if homes[wiring.names[drive.child]] != homes[wiring.names[child]]:
                path = f"{wiring.names[child]}.{wiring.models[child].inputs[index].name}"
                what = f"`{path}` is extrapolated with output derivatives of another host"
                yield Fault(
                    what, f"connections.{path}", "an extrapolation of values", 'extrapolation "cubic"'
                )
    repeats = [each for _, each in walk(level.plan.step) if isinstance(each, Repeat)]
    if any(
        (drive.extrapolation or Hold()).slopes
        for each in repeats
        for drive in feedback_drives(each.body, wiring)
    ):
        what = "the iteration between the hosts agrees on output derivatives, which messages do not carry"
        yield Fault(what, "extrapolation", "an extrapolation of values", 'extrapolation "cubic"')
    for text in wiring.texts:
        pair = wiring.names[text.child], wiring.names[text.target]
        if homes[pair[0]] != homes[pair[1]]:
            what = f"a text passes from `{pair[0]}` to `{pair[1]}`, which is on another host"
            yield Fault(what, "connections", "numbers between hosts", "put both on one host")


def own_body(body: Body, sims: frozenset[str], host: str) -> Body:
    """Return the part of a body that a host does: what its own simulators do, what it sends and receives."""
    made: list[Instruction] = []
    for each in body:
        match each:
            case Send(source):
                keep: list[Instruction] = [each] if source == host else []
            case Receive(_, target):
                keep = [each] if target == host else []
            case Together(bodies) | Next(bodies):
                inner = tuple(part for part in (own_body(one, sims, host) for one in bodies) if part)
                keep = [replace(each, bodies=inner)] if inner else []
            case Times(_, one) | Try(one) | Adapt(one) | Repeat(one) | Instant(one):
                part = own_body(one, sims, host)
                changed: Any = replace(each, body=part)
                keep = [changed] if part else []
            case Solve() | Save() | Restore() | Commit():
                own = tuple(sim for sim in each.sims if sim in sims)
                keep = [replace(each, sims=own)] if own else []
            case _:
                named = named_simulators(each)
                keep = [each] if not named or sims.intersection(named) else []
        made += keep
    return tuple(made)
