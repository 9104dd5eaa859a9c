"""Random power bonds: of two siblings that drive each other, in a level that is drawn already."""

from __future__ import annotations

from hocket import Bond, Connection
from hocket.model.units import conversion


def bonds_of(level, rng, chance: float, note) -> dict[str, Bond]:
    """Return up to two bonds of opposite connections; units do not matter, power has none."""
    plain = [
        (each.source.partition(".")[0], each.target.partition(".")[0], each.target)
        for each in level.connections
        if "." in each.source and "." in each.target and _unchanged(level, each)
    ]
    pairs = [
        (effort, flow)
        for giver, taker, effort in plain
        for source, target, flow in plain
        if (source, target) == (taker, giver) and giver != taker
    ]
    bonds = {}
    for number in range(2):
        if pairs and rng.random() < chance:
            effort, flow = pairs[int(rng.integers(len(pairs)))]
            bond = Bond(effort, flow, "", bool(rng.random() < 0.5))
            if any({effort, flow} == {other.effort, other.flow} for other in bonds.values()):
                continue  # one bond for each pair of connections
            bonds[f"bond{number}"] = bond
            note("bond across levels" if max(effort.count("."), flow.count(".")) > 1 else "bond")
    return bonds


def _unchanged(level, connection: Connection) -> bool:
    """Return whether units leave the value as it is."""
    unit = level.driven[connection.target].unit
    return conversion(level.outputs[connection.source].unit, unit) == (1.0, 0.0)
