"""The levels as nested boxes: what is inside each, how it steps, and what drives what.

In:  a PlanTree
Out: boxes that fold, wires for the page's script to route, and a table of all connections
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hocket.analysis.posedness import bookkeeping_paths, hidden_ports
from hocket.coupling.wiring import CONSTANT, OWN, Drive, Wiring
from hocket.errors import count, list_names
from hocket.files.wording import (
    describe_conversion,
    describe_drive,
    describe_extrapolation,
    describe_model,
    describe_orchestrator,
    describe_pace,
)
from hocket.model.ports import Port
from hocket.model.protocols import Model, bookkeeping_ports
from hocket.plan import Step
from hocket.plan.instructions import walk
from hocket.planning.tree import PlanTree
from hocket.report.markup import esc, html_table, note, section
from hocket.simulators.wrappers.balanced import Balanced


def model_words(model: Model) -> Iterator[str]:
    """Yield what is worth knowing about a model on a small card."""
    if isinstance(model, Balanced):
        yield from (*describe_model(model.model), f"balanced by {model.form}")
    else:
        yield from describe_model(model)


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
                target = f"{wiring.names[child]}.{port.name} ({describe_drive(drive)})"
                yield drive.child, child, f"{_source_name(wiring, scenario.inputs, drive)} → {target}"
    kept = bookkeeping_paths(level)
    for port, drive in zip(scenario.outputs, wiring.outputs, strict=False):
        if port.name not in kept:
            yield drive.child, None, f"{_source_name(wiring, scenario.inputs, drive)} → {port.name}"
    for text in wiring.texts:
        yield text.child, text.target, "a text, as it is"


def _source_name(wiring: Wiring, inputs: Sequence[Port], drive: Drive) -> str:
    """Return the output that drives an input, or the input of the level itself."""
    if drive.child == OWN:
        return inputs[drive.port].name
    return f"{wiring.names[drive.child]}.{wiring.models[drive.child].outputs[drive.port].name}"


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


MOST = 150
"""Boxes of one level that are drawn."""
CROWD = 12
"""Boxes from which on they are small."""
_PORTS = 6
"""Ports that a box names."""
_TITLE = 12
"""Connections that a wire names when it is pointed at."""


def levels_section(root: PlanTree, name: str) -> str:
    """Return the section: the boxes, and the connections beside them."""
    rows = list(connection_rows(root))
    side = note("No input is connected.")
    if rows:
        title = f"{count(len(rows), 'connection')} between simulators"
        side = f"<figure><figcaption>{title}</figcaption>{html_table(rows, 24)}</figure>"
    key = note(
        "Top to bottom in the order in which they step. Wires on the right run with it, those on the left"
        " against it: their source has not made the step yet, so these inputs are extrapolated. Where all"
        " step together, every wire between them is. Point at a box to see its wires; a click folds a level."
    )
    boxes = f'<div class="tree">{_level_box(root, None, name)}</div><div>{side}</div>'
    return section("levels", "Levels and connections", f'{key}<div class="beside">{boxes}</div>')


def connection_rows(root: PlanTree) -> Iterator[dict[str, object]]:
    """Yield a row for each input of a simulator that is driven, by the simulator at the other end."""
    leaves, bonds = root.leaves.wiring, _bond_by_input(root)
    for name, model, drives in zip(leaves.names, leaves.models, leaves.drives, strict=True):
        for port, drive in zip(model.inputs, drives, strict=True):
            if drive is None or drive.child == CONSTANT or port.name in bookkeeping_ports(model):
                continue
            yield {
                "from": _source_name(leaves, root.composite.scenario.inputs, drive),
                "to": f"{name}.{port.name}",
                "extrapolation": describe_drive(drive),
                "conversion": describe_conversion(drive),
                "bond": bonds.get(f"{name}.{port.name}", ""),
            }
    for level in root.levels():
        for text in level.wiring.texts:
            yield {
                "from": level.name(text.child),
                "to": level.name(text.target),
                "extrapolation": "a text",
                "conversion": "",
            }


def _bond_by_input(root: PlanTree) -> dict[str, str]:
    """Return the power bonds that inputs are part of, by the paths of these."""
    found: dict[str, str] = {}
    for level in root.levels():
        prefix = f"{level.path}." if level.path else ""
        for name, bond in level.composite.scenario.bonds.items():
            found |= {f"{prefix}{end}": f"{prefix}{name}" for end in (bond.effort, bond.flow)}
    return found


def _level_box(level: PlanTree, around: PlanTree | None, name: str) -> str:
    composite = level.composite
    order = stepping_order(level)
    kept = order[:MOST]
    made = route_wires(level, kept)
    how = describe_orchestrator(composite.orchestrator)
    chips = [
        describe_pace(level, around),
        f"orchestrator {how}",
        f"extrapolation {describe_extrapolation(composite.extrapolation)}",
        *([] if "outputs =" in how else [f"outputs {level.plan.outputs}"]),
        *(["sampled"] if composite.sampled else []),
    ]
    said = "".join(f"<li>{esc(chip)}</li>" for chip in chips)
    scenario, unseen = composite.scenario, bookkeeping_paths(level)
    inside = [
        _port_strip(0, "in", _visible_ports(scenario.inputs, unseen)),
        *(_child_box(level, child, place) for place, child in enumerate(kept, 1)),
        f'<p class="note">and {len(order) - MOST} more</p>' if len(order) > MOST else "",
        _port_strip(len(kept) + 1, "out", _visible_ports(scenario.outputs, unseen)),
    ]
    small = " small" if len(order) > CROWD else ""
    gutters = f"--left:{lane_count(made, 'left')};--right:{lane_count(made, 'right')}"
    return (
        f'<details class="level" open data-path="{esc(level.path)}"><summary><b>{esc(name)}</b>'
        f'<ul class="chips">{said}</ul></summary><div class="inside{small}" style="{gutters}">'
        f"{_wires_svg(made)}{''.join(inside)}</div></details>"
    )


def _child_box(level: PlanTree, child: int, place: int) -> str:
    name = level.wiring.names[child]
    if child in level.inner:
        box = _level_box(level.inner[child], level, name)
    else:
        model = level.wiring.models[child]
        box = (
            f'<div class="sim" data-path="{esc(level.name(child))}"><b>{esc(name)}</b>'
            f'<span class="kind">{esc(", ".join(model_words(model)))}</span>{_port_lists(level, child)}</div>'
        )
    return f'<div class="node" data-node="{place}">{box}</div>'


def _visible_ports(ports: Sequence[Port], unseen: frozenset[str]) -> list[Port]:
    return [port for port in ports if port.name not in unseen]


def _port_lists(level: PlanTree, child: int) -> str:
    model, unseen = level.wiring.models[child], hidden_ports(level, child)
    both = ((_visible_ports(model.inputs, unseen), "in"), (_visible_ports(model.outputs, unseen), "out"))
    sides = ((ports, word) for ports, word in both if ports)
    return "".join(f'<span class="ports"><i>{word}</i> {_join_ports(ports)}</span>' for ports, word in sides)


def _join_ports(ports: Sequence[Port]) -> str:
    shown = [esc(port.name) + (f" <small>[{esc(port.unit)}]</small>" if port.unit else "") for port in ports]
    return list_names(shown, _PORTS, quote="")


def _port_strip(place: int, word: str, ports: Sequence[Port]) -> str:
    if not ports:
        return ""
    return (
        f'<div class="node" data-node="{place}"><div class="strip">'
        f'<span class="ports"><i>{word}</i> {_join_ports(ports)}</span></div></div>'
    )


def _wires_svg(made: Sequence[RoutedWire]) -> str:
    paths = "".join(
        f'<path class="wire {wire.side}" data-from="{wire.source}" data-to="{wire.target}" '
        f'data-lane="{wire.lane}"><title>{_wire_title(wire)}</title></path>'
        for wire in made
    )
    return f'<svg class="wires" aria-hidden="true">{paths}</svg>'


def _wire_title(wire: RoutedWire) -> str:
    rest = [f"and {len(wire.ports) - _TITLE} more"] if len(wire.ports) > _TITLE else []
    return esc("\n".join([*wire.ports[:_TITLE], *rest]))
