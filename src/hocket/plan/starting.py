"""What is sent before the first step: values that agree, and a past for the extrapolators.

In:  the blueprint of a composite, and its hosts
Out: messages and values per pair of hosts

The past comes from a window around the start, through which the curves of all outputs go back and forth
between the hosts, as often as the degree of the extrapolation tells.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hocket.graph import strong_components
from hocket.hosts import Hosts
from hocket.plan.instructions import Body, Feed, Read, Solve, Together
from hocket.plan.post import Load, Pair, Post
from hocket.plan.walking import adapts, first_part

if TYPE_CHECKING:
    from hocket.engine.blueprint import PlanTree


def start_loads(design: PlanTree, path: str, hosts: Hosts) -> dict[Pair, Load]:
    """Return what is sent at the start between the hosts of the level at this path."""
    wiring: Any = design.leaves.wiring
    prefix, placed = f"{path}." if path else "", hosts.host_by_model()
    homes = {
        name: placed.get(name.removeprefix(prefix).partition(".")[0], "")
        for name in wiring.names
        if name.startswith(prefix)
    }
    post = Post.from_wiring(wiring, homes)
    for leaf in range(len(wiring.names)):
        post.step(leaf)  # none has been evaluated yet
    _post_start(design.plan.start, post)
    known: list[tuple[Fraction, int]] = []
    for level in design.levels():
        own = level.composite.step * first_part(level.plan.step), _window_degree(level)
        if any(other == own or other[1] >= own[1] > 0 for other in known):
            continue
        known.append(own)
        if own[1] and all(m.abilities.rewind and m.abilities.variable_step for m in wiring.models):
            _post_window(post, own[1])
    post.flush()
    return post.loads()


def _post_start(body: Body, post: Post) -> None:
    number = {name: leaf for leaf, name in enumerate(post.wiring.names)}
    for instruction in body:
        match instruction:
            case Feed(sim):
                post.feed(number[sim])
            case Read(sim):
                post.read(number[sim])
            case Solve(sims, ports):
                post.solve([number[sim] for sim in sims], map(post.find_node, ports))
            case Together(bodies):
                for inner in bodies:
                    _post_start(inner, post)


def _window_degree(level: PlanTree) -> int:
    """Return the degree of the window that a level needs; 0: none."""
    if level.composite.start == "cold":
        return 0
    looking = max((each.degree for each in level.wiring.extrapolators if each.samples > 1), default=0)
    return looking + 1 if adapts(level.plan.step) else looking


def _post_window(post: Post, degree: int) -> None:
    """Send the curves of a window: `degree` + 1 numbers for each value."""
    post.flush()
    edges = {
        (drive.child, leaf)
        for leaf, (model, drives) in enumerate(zip(post.wiring.models, post.wiring.drives, strict=True))
        for port, drive in zip(model.inputs, drives, strict=True)
        if drive is not None
        and drive.child >= 0
        and any(port.name in output.feedthrough for output in model.outputs)
    }
    post.mark_all_known()
    for _ in range(degree):
        for group in strong_components(len(post.wiring.names), edges):
            for leaf in group:
                post.feed(leaf, degree + 1)
                post.step(leaf)
                post.read(leaf)
    post.flush(degree + 1)
    post.mark_all_known()
