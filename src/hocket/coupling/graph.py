"""Two facts about directed graphs: what hangs together in cycles, and an order with few edges against it.

In:  nodes 0 .. size - 1 and edges
Out: groups and orders; ties go to the lower number
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from itertools import permutations

Edge = tuple[int, int]


def strong_components(size: int, edges: Collection[Edge]) -> list[list[int]]:
    """Return the strong components, each after those that lead to it."""
    order = _topological_order([[node] for node in range(size)], edges)
    if len(order) == size:  # no cycle, as in most graphs of ports
        return order
    label = _component_labels(size, edges)
    groups: list[list[int]] = [[] for _ in range(1 + max(label))]
    for node in range(size):
        groups[label[node]].append(node)
    return _topological_order(groups, {(label[a], label[b]) for a, b in edges if label[a] != label[b]})


def _component_labels(size: int, edges: Iterable[Edge]) -> list[int]:
    """Return the number of the strong component of each node (Tarjan 1972, without recursion)."""
    after: list[list[int]] = [[] for _ in range(size)]
    for source, target in edges:
        after[source].append(target)
    found, lowest, label = [-1] * size, [0] * size, [-1] * size
    count = components = 0
    waiting: list[int] = []
    for root in range(size):
        path = [] if found[root] >= 0 else [(root, iter(after[root]))]
        while path:
            node, targets = path[-1]
            if found[node] < 0:
                found[node] = lowest[node] = count
                count += 1
                waiting.append(node)
            for target in targets:
                if found[target] < 0:
                    path.append((target, iter(after[target])))
                    break
                if label[target] < 0:  # on the way, or in a cycle with what is
                    lowest[node] = min(lowest[node], lowest[target])
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                if lowest[node] == found[node]:
                    while label[node] < 0:
                        label[waiting.pop()] = components
                    components += 1
    return label


def _topological_order(groups: list[list[int]], edges: Iterable[Edge]) -> list[list[int]]:
    """Return the groups, each after those that lead to it; without those in a cycle and behind one."""
    after: list[set[int]] = [set() for _ in groups]
    waits = [0] * len(groups)
    for source, target in edges:
        if target not in after[source]:
            after[source].add(target)
            waits[target] += 1
    ready = [(nodes[0], group) for group, nodes in enumerate(groups) if not waits[group]]
    heapq.heapify(ready)
    order: list[list[int]] = []
    while ready:
        _, group = heapq.heappop(ready)
        order.append(groups[group])
        for later in after[group]:
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(ready, (groups[later][0], later))
    return order


def least_feedback_order(nodes: list[int], weights: Mapping[Edge, int]) -> list[int]:
    """Return an order of these nodes with little weight on edges that go backwards.

    Exact for up to seven nodes, greedy beyond (Eades, Lin & Smyth 1993).
    """
    inside = set(nodes)
    edges = {edge: weight for edge, weight in weights.items() if edge[0] in inside and edge[1] in inside}
    if len(nodes) > 7:
        return _greedy(nodes, edges)

    def backward(order: Iterable[int]) -> int:
        place = {node: position for position, node in enumerate(order)}
        return sum(weight for (a, b), weight in edges.items() if place[a] > place[b])

    return list(min(permutations(nodes), key=backward))


def _greedy(nodes: list[int], edges: Mapping[Edge, int]) -> list[int]:
    """Sinks to the end, sources to the front, else the node that gives most more than it takes."""
    giving: dict[int, dict[int, int]] = {node: {} for node in nodes}
    taking: dict[int, dict[int, int]] = {node: {} for node in nodes}
    gain = dict.fromkeys(nodes, 0)
    for (a, b), weight in edges.items():
        giving[a][b] = taking[b][a] = weight
        gain[a] += weight
        gain[b] -= weight
    left = set(nodes)
    # entries may be out of date; a node is looked at again whenever its edges change
    sinks = [node for node in nodes if not giving[node]]
    sources = [node for node in nodes if not taking[node]]
    best = [(-gain[node], node) for node in nodes]
    heapq.heapify(sinks)
    heapq.heapify(sources)
    heapq.heapify(best)
    front: list[int] = []
    back: list[int] = []

    def remove(node: int) -> None:
        left.remove(node)
        for other, weight in giving.pop(node).items():
            del taking[other][node]
            gain[other] += weight
            heapq.heappush(best, (-gain[other], other))
            if not taking[other]:
                heapq.heappush(sources, other)
        for other, weight in taking.pop(node).items():
            del giving[other][node]
            gain[other] -= weight
            heapq.heappush(best, (-gain[other], other))
            if not giving[other]:
                heapq.heappush(sinks, other)

    while left:
        if sinks:
            node, side = heapq.heappop(sinks), back
        elif sources:
            node, side = heapq.heappop(sources), front
        else:
            score, node = heapq.heappop(best)
            side = front
            if node in left and -score != gain[node]:
                continue
        if node in left:
            side.append(node)
            remove(node)
    return front + back[::-1]
