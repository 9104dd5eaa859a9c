"""The levels as nested boxes: what is inside each, how it steps, who drives whom.

In:  a Blueprint
Out: boxes that fold, wires for the page's script to route, and a table of all connections
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hocket.analysis.hidden import bookkeeping, hidden
from hocket.engine.blueprint import Blueprint
from hocket.files.wording import extrapolation, orchestrator, pace
from hocket.model import Port
from hocket.report.markup import esc, table
from hocket.report.naming import conversion, fitted, model_words
from hocket.report.nets import Wire, lanes, stacked, wires
from hocket.simulators.fmu.probe.words import count
from hocket.wiring import CONSTANT, OWN

MOST = 150
"""Boxes of one level that are drawn."""
CROWD = 12
"""Boxes from which on they are small."""
_PORTS = 6
"""Ports that a box names."""
_TITLE = 12
"""Connections that a wire names when it is pointed at."""


def boxes(root: Blueprint, name: str) -> str:
    """Return the section: the boxes, and the connections beside them."""
    rows = list(connections(root))
    side = (
        f"<figure><figcaption>{count(len(rows), 'connection')} between simulators</figcaption>"
        f"{table(rows, 24)}</figure>"
        if rows
        else '<p class="note">No input is connected.</p>'
    )
    key = (
        '<p class="note">Top to bottom in the order in which they step. Wires on the right run with it,'
        " those on the left against it: their source has not made the step yet, so these inputs are"
        " extrapolated. Where all step together, every wire between them is. Point at a box to see its wires,"
        " click a level to fold it.</p>"
    )
    tree = _level(root, None, name)
    return (
        f'<section id="levels"><h2>Levels and connections</h2>{key}<div class="beside">'
        f'<div class="tree">{tree}</div><div>{side}</div></div></section>'
    )


def connections(root: Blueprint) -> Iterator[dict[str, object]]:
    """Yield a row for each input of a simulator that is driven, by the simulator at the other end."""
    leaves, bonds = root.leaves.wiring, _bonds(root)
    for name, model, drives in zip(leaves.names, leaves.models, leaves.drives, strict=True):
        for port, drive in zip(model.inputs, drives, strict=True):
            if drive is None or drive.child == CONSTANT or port.name in getattr(model, "bookkeeping", ()):
                continue
            if drive.child == OWN:
                source = root.composite.scenario.inputs[drive.port].name
            else:
                source = f"{leaves.names[drive.child]}.{leaves.models[drive.child].outputs[drive.port].name}"
            yield {
                "from": source,
                "to": f"{name}.{port.name}",
                "extrapolation": fitted(drive),
                "conversion": conversion(drive),
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


def _bonds(root: Blueprint) -> dict[str, str]:
    """Return the power bonds that inputs are part of, by the paths of these."""
    found: dict[str, str] = {}
    for level in root.levels():
        prefix = f"{level.path}." if level.path else ""
        for name, bond in level.composite.scenario.bonds.items():
            found |= {f"{prefix}{end}": f"{prefix}{name}" for end in (bond.effort, bond.flow)}
    return found


def _level(level: Blueprint, around: Blueprint | None, name: str) -> str:
    composite = level.composite
    order = stacked(level)
    kept = order[:MOST]
    made = wires(level, kept)
    how = orchestrator(composite.orchestrator)
    chips = [
        pace(level, around),
        f"orchestrator {how}",
        f"extrapolation {extrapolation(composite.extrapolation)}",
        *([] if "outputs =" in how else [f"outputs {level.plan.outputs}"]),
        *(["sampled"] if composite.sampled else []),
    ]
    said = "".join(f"<li>{esc(chip)}</li>" for chip in chips)
    scenario, unseen = composite.scenario, bookkeeping(level)
    inside = [
        _strip(0, "in", _seen(scenario.inputs, unseen)),
        *(_child(level, child, place) for place, child in enumerate(kept, 1)),
        f'<p class="note">and {len(order) - MOST} more</p>' if len(order) > MOST else "",
        _strip(len(kept) + 1, "out", _seen(scenario.outputs, unseen)),
    ]
    small = " small" if len(order) > CROWD else ""
    gutters = f"--left:{lanes(made, 'left')};--right:{lanes(made, 'right')}"
    return (
        f'<details class="level" open data-path="{esc(level.path)}"><summary><b>{esc(name)}</b>'
        f'<ul class="chips">{said}</ul></summary><div class="inside{small}" style="{gutters}">'
        f"{_wires(made)}{''.join(inside)}</div></details>"
    )


def _child(level: Blueprint, child: int, place: int) -> str:
    name = level.wiring.names[child]
    if child in level.inner:
        box = _level(level.inner[child], level, name)
    else:
        model = level.wiring.models[child]
        box = (
            f'<div class="sim" data-path="{esc(level.name(child))}"><b>{esc(name)}</b>'
            f'<span class="kind">{esc(", ".join(model_words(model)))}</span>{_ports(level, child)}</div>'
        )
    return f'<div class="node" data-node="{place}">{box}</div>'


def _seen(ports: Sequence[Port], unseen: frozenset[str]) -> list[Port]:
    return [port for port in ports if port.name not in unseen]


def _ports(level: Blueprint, child: int) -> str:
    model, unseen = level.wiring.models[child], hidden(level, child)
    both = ((_seen(model.inputs, unseen), "in"), (_seen(model.outputs, unseen), "out"))
    sides = ((ports, word) for ports, word in both if ports)
    return "".join(f'<span class="ports"><i>{word}</i> {_listed(ports)}</span>' for ports, word in sides)


def _listed(ports: Sequence[Port]) -> str:
    shown = [esc(port.name) + (f" <small>[{esc(port.unit)}]</small>" if port.unit else "") for port in ports]
    rest = f" and {len(shown) - _PORTS} more" if len(shown) > _PORTS else ""
    return ", ".join(shown[:_PORTS]) + rest


def _strip(place: int, word: str, ports: Sequence[Port]) -> str:
    if not ports:
        return ""
    return (
        f'<div class="node" data-node="{place}"><div class="strip">'
        f'<span class="ports"><i>{word}</i> {_listed(ports)}</span></div></div>'
    )


def _wires(made: Sequence[Wire]) -> str:
    paths = "".join(
        f'<path class="wire {wire.side}" data-from="{wire.source}" data-to="{wire.target}" '
        f'data-lane="{wire.lane}"><title>{_title(wire)}</title></path>'
        for wire in made
    )
    return f'<svg class="wires" aria-hidden="true">{paths}</svg>'


def _title(wire: Wire) -> str:
    rest = [f"and {len(wire.ports) - _TITLE} more"] if len(wire.ports) > _TITLE else []
    return esc("\n".join([*wire.ports[:_TITLE], *rest]))
