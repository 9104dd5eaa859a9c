"""Which wires a level has between its boxes, and in which lane beside the boxes each one runs.

In:  a level of the blueprint
Out: wires; those of one source on one side share a lane
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hocket.analysis.hidden import bookkeeping_ports, hidden_ports
from hocket.engine.blueprint import PlanTree
from hocket.plan import Step
from hocket.plan.walking import walk
from hocket.report.naming import extrapolation_words
from hocket.wiring import OWN

WireSide: TypeAlias = Literal["left", "right"]
"""Wires along the order of the boxes run down on the right, those against it up on the left."""


@dataclass
class RoutedWire:
    """From one box to another, by their places in the stack; 0 are the inputs of the level."""

    source: int
    target: int
    side: WireSide
    ports: list[str] = field(default_factory=list)
    """What runs through it, in words."""
    lane: int = 0


def stepping_order(level: PlanTree) -> list[int]:
    """Return the children of a level in the order in which they step first."""
    number = level.wiring.numbers()
    first = [number[i.sim] for _, i in walk(level.plan.step) if isinstance(i, Step) and i.sim in number]
    return list(dict.fromkeys([*first, *range(len(level.wiring.names))]))


def route_wires(level: PlanTree, order: list[int]) -> list[RoutedWire]:
    """Return one wire for each pair of boxes that are connected."""
    place = {child: at for at, child in enumerate(order, 1)} | {OWN: 0}
    found: dict[tuple[int, int], RoutedWire] = {}
    last = len(order) + 1
    for source, target, words in _level_connections(level):
        if source not in place or (target is not None and target not in place):
            continue
        ends = place[source], last if target is None else place[target]
        side: WireSide = "right" if ends[1] >= ends[0] else "left"
        found.setdefault(ends, RoutedWire(*ends, side)).ports.append(words)
    made = list(found.values())
    for side in ("left", "right"):
        _assign_lanes([wire for wire in made if wire.side == side])
    return made


def lane_count(made: list[RoutedWire], side: WireSide) -> int:
    """Return how many lanes there are on a side."""
    return max((wire.lane + 1 for wire in made if wire.side == side), default=0)


def _level_connections(level: PlanTree) -> Iterator[tuple[int, int | None, str]]:
    wiring, scenario = level.wiring, level.composite.scenario
    for child, (model, drives) in enumerate(zip(wiring.models, wiring.drives, strict=True)):
        unseen = hidden_ports(level, child)
        for port, drive in zip(model.inputs, drives, strict=True):
            if drive is not None and port.name not in unseen:
                source = _source_name(level, drive.child, drive.port)
                yield (
                    drive.child,
                    child,
                    f"{source} → {wiring.names[child]}.{port.name} ({extrapolation_words(drive)})",
                )
    kept = bookkeeping_ports(level)
    for port, drive in zip(scenario.outputs, wiring.outputs, strict=False):
        if port.name in kept:
            continue
        yield drive.child, None, f"{_source_name(level, drive.child, drive.port)} → {port.name}"
    for text in wiring.texts:
        yield text.child, text.target, "a text, as it is"


def _source_name(level: PlanTree, child: int, port: int) -> str:
    if child == OWN:
        return level.composite.scenario.inputs[port].name
    return f"{level.wiring.names[child]}.{level.wiring.models[child].outputs[port].name}"


def _assign_lanes(made: list[RoutedWire]) -> None:
    """Give each source the innermost lane in which it crosses no other; short ones go first."""
    spans: dict[int, tuple[int, int]] = {}
    for wire in made:
        low, high = spans.get(wire.source, (wire.source, wire.source))
        spans[wire.source] = min(low, wire.target), max(high, wire.target)
    taken: list[list[tuple[int, int]]] = []
    lane_of: dict[int, int] = {}
    for source, (low, high) in sorted(spans.items(), key=lambda item: (item[1][1] - item[1][0], item[0])):
        free = (n for n, lane in enumerate(taken) if all(high < a or b < low for a, b in lane))
        lane_of[source] = lane = next(free, len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((low, high))
    for wire in made:
        wire.lane = lane_of[wire.source]
