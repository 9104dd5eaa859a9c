"""Solved loops: whether what a plan solves for is an algebraic loop, and the whole of it.

In:  a Solve
Out: its outputs by number, or what is wrong with them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hocket.plan.facts import Node
from hocket.plan.instructions import Solve
from hocket.plan.words import join_names

if TYPE_CHECKING:
    from hocket.plan.reader import PlanReader


def solved_nodes(reader: PlanReader, solve: Solve) -> list[Node]:
    """Return the outputs that are solved for; what is wrong with them is noted.

    If anything is, all loops of the simulators count as solved, so that one mistake is told once.
    """
    facts = reader.facts
    nodes: dict[Node, str] = {}
    sound = True
    for path in solve.ports:
        node = _find_node(reader, path)
        if node is None:
            sound = False
            continue
        nodes[node] = path
        sim = facts.name(node[0])
        if sim not in solve.sims:
            reader.fault("loop without simulator", sim, path)
            sound = False
        if node not in facts.loop_of:
            again = facts.model(node[0]).abilities.reevaluates
            why = "" if again else f": `{sim}` cannot be evaluated again between steps"
            reader.fault("no loop", sim, path, why=why)
            sound = False
    if not solve.ports:
        reader.fault("empty body")
    for node, path in nodes.items() if sound else ():
        loop = facts.loop_of.get(node, ())
        missing = [facts.path(each) for each in loop if each not in nodes]
        if missing:
            whole = [facts.path(each) for each in loop]
            sim = facts.name(node[0])
            reader.fault("part of a loop", sim, path, missing=join_names(missing), loop=join_names(whole))
            sound = False
            break
    return list(nodes) if nodes and sound else _loop_nodes(reader, solve)


def _loop_nodes(reader: PlanReader, solve: Solve) -> list[Node]:
    facts = reader.facts
    children = [facts.number[sim] for sim in solve.sims if sim in facts.number]
    nodes = [(child, each.port) for child in children for each in facts.reactions.get(child, ())]
    return [node for node in nodes if node in facts.loop_of]


def _find_node(reader: PlanReader, path: str) -> Node | None:
    """Return the output behind a path; a name that is none is noted."""
    facts = reader.facts
    sim, _, port = path.partition(".")
    child = facts.number.get(sim)
    if child is None:
        reader.fault("unknown simulator", sim, path, near=reader.notes.nearest_name(sim, facts.number))
        return None
    for index, output in enumerate(facts.model(child).outputs):
        if output.name == port:
            return child, index
    reader.fault("unknown port", sim, path, near=reader.notes.nearest_name(path, facts.outputs(child)))
    return None
