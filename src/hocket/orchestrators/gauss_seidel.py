"""Gauss-Seidel: one after the other; who comes later interpolates what is already known.

In:  a Scenario and an order, or the wish to find one
Out: a Plan: feed, step, read for each in turn
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, TypeAlias

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from hocket.errors import Fault, ScenarioError, nearest
from hocket.model import Scenario
from hocket.orchestrators.exchange import Exchange, together
from hocket.plan import Feed, Instruction, Plan, Read, Step
from hocket.wiring import OWN, Wiring, wire

Order: TypeAlias = Literal["auto"] | tuple[str | tuple[str, ...], ...]


@dataclass(frozen=True, init=False)
class GaussSeidel(Exchange):
    """The sequential algorithm. A group inside the order, as in `["a", ["b", "c"]]`, steps together."""

    order: Order = "auto"

    def __init__(
        self,
        order: Literal["auto"] | Sequence[str | Sequence[str]] = "auto",
        *,
        outputs: Literal["stale", "consistent"] | None = None,
        inputs: Literal["clean", "delayed"] = "clean",
    ):
        groups = (
            order if isinstance(order, str) else tuple(g if isinstance(g, str) else tuple(g) for g in order)
        )
        object.__setattr__(self, "order", groups)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "inputs", inputs)
        self.__post_init__()

    def plan(self, scenario: Scenario) -> Plan:
        """Return the plan of one step."""
        wiring = wire(scenario)
        groups = best_order(wiring) if self.order == "auto" else self._groups(scenario)
        steps: list[Instruction] = []
        for group in groups:
            fed = [name for name in group if scenario.models[name].inputs]
            read = [name for name in group if scenario.models[name].outputs]
            steps += [together(Feed(name) for name in fed)] if fed else []
            steps.append(together(Step(name) for name in group))
            steps += [together(Read(name) for name in read)] if read else []
        return self._around(scenario, wiring, tuple(steps))

    def _groups(self, scenario: Scenario) -> list[tuple[str, ...]]:
        groups = [(group,) if isinstance(group, str) else group for group in self.order]
        named = [name for group in groups for name in group]
        faults = [
            Fault(f"the order names `{name}`, which is no model", "order", "", nearest(name, scenario.models))
            for name in named
            if name not in scenario.models
        ]
        faults += [
            Fault(f"the order names `{n}` twice", "order")
            for n in sorted({n for n in named if named.count(n) > 1})
        ]
        faults += [Fault(f"the order leaves out `{n}`", "order") for n in scenario.models if n not in named]
        if faults:
            raise ScenarioError(faults)
        return groups


def best_order(wiring: Wiring) -> list[tuple[str, ...]]:
    """Return the order with the fewest connections whose source steps after its target.

    Delayed connections that an output reacts to at once count double. Exact for cycles of up to seven
    simulators, greedy beyond; ties keep the order of the scenario.
    """
    weight: dict[tuple[int, int], int] = {}
    for child, drives in enumerate(wiring.drives):
        reacting = {name for port in wiring.models[child].outputs for name in port.feedthrough}
        for port, drive in zip(wiring.models[child].inputs, drives, strict=True):
            if drive is not None and drive.child not in (OWN, child):
                edge = (drive.child, child)
                weight[edge] = weight.get(edge, 0) + (2 if port.name in reacting else 1)
    size = len(wiring.names)
    rows, columns = np.array(list(weight), dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(weight)), (rows, columns)), shape=(size, size))
    count, label = connected_components(graph, directed=True, connection="strong")
    members: list[list[int]] = [[] for _ in range(count)]
    for child in range(size):
        members[label[child]].append(child)
    order: list[int] = []
    for group in _topological(
        count, {(int(label[a]), int(label[b])) for a, b in weight if label[a] != label[b]}, members
    ):
        order += _fewest_delays(members[group], weight)
    return [(wiring.names[child],) for child in order]


def _topological(count: int, edges: set[tuple[int, int]], members: list[list[int]]) -> Iterable[int]:
    after: dict[int, list[int]] = {}
    waits = [0] * count
    for a, b in edges:
        after.setdefault(a, []).append(b)
        waits[b] += 1
    ready = [(members[group][0], group) for group in range(count) if not waits[group]]
    heapq.heapify(ready)
    while ready:
        _, group = heapq.heappop(ready)
        yield group
        for later in after.get(group, ()):
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(ready, (members[later][0], later))


def _fewest_delays(members: list[int], weight: dict[tuple[int, int], int]) -> list[int]:
    if len(members) == 1:
        return members
    inside = set(members)
    edges = {edge: w for edge, w in weight.items() if edge[0] in inside and edge[1] in inside}
    if len(members) > 7:
        return _greedy(members, edges)

    def delays(order: Iterable[int]) -> int:
        place = {child: position for position, child in enumerate(order)}
        return sum(w for (a, b), w in edges.items() if place[a] > place[b])

    return list(min(permutations(members), key=delays))


def _greedy(members: list[int], edges: dict[tuple[int, int], int]) -> list[int]:
    """Sinks to the end, sources to the front, else who gives most (Eades, Lin & Smyth 1993)."""
    left, front, back = dict.fromkeys(members), [], []
    gain = dict.fromkeys(members, 0)
    giving: dict[int, dict[int, int]] = {child: {} for child in members}
    taking: dict[int, dict[int, int]] = {child: {} for child in members}
    for (a, b), w in edges.items():
        giving[a][b] = taking[b][a] = w
        gain[a] += w
        gain[b] -= w

    def remove(child: int) -> None:
        del left[child]
        for other, w in giving[child].items():
            del taking[other][child]
            gain[other] += w
        for other, w in taking[child].items():
            del giving[other][child]
            gain[other] -= w

    while left:
        sink = next((child for child in left if not giving[child]), None)
        if sink is not None:
            back.append(sink)
            remove(sink)
            continue
        best = next((child for child in left if not taking[child]), None)
        if best is None:
            best = max(left, key=lambda child: gain[child])
        front.append(best)
        remove(best)
    return front + back[::-1]
