"""What balanced bonds add to a scenario, so that nobody is told of ports that nobody wrote.

In:  a level as it will be built
Out: the ports that only its bonds want; the connections of all others that arrive late
"""

from __future__ import annotations

from collections.abc import Iterator

from hocket.engine.blueprint import PlanTree
from hocket.plan import InputDelay, delays
from hocket.wiring import OWN, Drive


def bookkeeping_ports(level: PlanTree) -> frozenset[str]:
    """Return the ports inside a level that only balanced bonds want, as `motor.share`."""
    every = ((name, hidden_ports(level, child)) for child, name in enumerate(level.wiring.names))
    return frozenset(f"{name}.{port}" for name, ports in every for port in ports)


def hidden_ports(level: PlanTree, child: int) -> frozenset[str]:
    """Return the ports of a child that only balanced bonds want; a level has those that lead inside."""
    if child in level.inner:
        return bookkeeping_ports(level.inner[child])
    found: frozenset[str] = getattr(level.wiring.models[child], "bookkeeping", frozenset())
    return found


def delayed_inputs(level: PlanTree) -> Iterator[tuple[int, int, Drive, InputDelay]]:
    """Yield child, number of the input, and what drives it, for inputs that others drive too late."""
    wiring, number = level.wiring, level.wiring.numbers()
    for delay in delays(level.plan, level.composite.scenario):
        name, _, port = delay.target.partition(".")
        child = number[name]
        index = [each.name for each in wiring.models[child].inputs].index(port)
        drive = wiring.drives[child][index]
        if drive is not None and drive.child != OWN and port not in hidden_ports(level, child):
            yield child, index, drive, delay
