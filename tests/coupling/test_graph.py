"""Strong components and orders, against slow references."""

from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hocket.coupling.graph import least_feedback_order, strong_components

few = settings(max_examples=50, deadline=None)


@st.composite
def graphs(draw, most=7):
    size = draw(st.integers(1, most))
    node = st.integers(0, size - 1)
    return size, draw(st.lists(st.tuples(node, node), max_size=2 * size))


@st.composite
def weighted(draw, least, most):
    size = draw(st.integers(least, most))
    node = st.integers(0, size - 1)
    edges = st.tuples(node, node).filter(lambda edge: edge[0] != edge[1])
    return list(range(size)), draw(st.dictionaries(edges, st.integers(1, 4), max_size=3 * size))


def reaches(size, edges):
    """Warshall's closure."""
    reach = np.eye(size, dtype=bool)
    for a, b in edges:
        reach[a, b] = True
    for k in range(size):
        reach |= np.outer(reach[:, k], reach[k])
    return reach


def backward(order, weights):
    place = {node: position for position, node in enumerate(order)}
    return sum(weight for (a, b), weight in weights.items() if place[a] > place[b])


def least_backward(nodes, weights):
    """The best any order can do: which node is the last of a set, over all sets."""

    @cache
    def best(left):
        return min(
            (
                best(left - {last}) + sum(weights.get((last, other), 0) for other in left - {last})
                for last in left
            ),
            default=0,
        )

    return best(frozenset(nodes))


@few
@given(graphs())
def test_components_are_what_reaches_each_other(graph):
    size, edges = graph
    reach, groups = reaches(size, edges), strong_components(size, edges)
    assert sorted(node for group in groups for node in group) == list(range(size))
    for group in groups:
        assert group == [node for node in range(size) if reach[group[0], node] and reach[node, group[0]]]


@few
@given(graphs())
def test_components_come_after_what_leads_to_them_and_else_by_number(graph):
    size, edges = graph
    reach, waiting = reaches(size, edges), strong_components(size, edges)
    while waiting:
        ready = [
            group
            for group in waiting
            if not any(reach[other[0], group[0]] for other in waiting if other is not group)
        ]
        assert waiting.pop(0) == min(ready)


def test_without_edges_everyone_is_alone_and_in_order():
    assert strong_components(3, []) == [[0], [1], [2]]
    assert strong_components(0, []) == []


def test_a_chain_of_rings_in_the_wrong_order():
    edges = [(4, 5), (5, 4), (4, 2), (2, 3), (3, 2), (3, 0), (0, 1), (1, 0)]
    assert strong_components(6, edges) == [[4, 5], [2, 3], [0, 1]]


@few
@given(weighted(1, 7))
def test_up_to_seven_nodes_no_order_is_better(graph):
    nodes, weights = graph
    order = least_feedback_order(nodes, weights)
    assert sorted(order) == nodes
    assert backward(order, weights) == least_backward(nodes, weights)


@few
@given(weighted(1, 5))
def test_among_the_best_orders_the_first_by_number_is_taken(graph):
    nodes, weights = graph
    least = least_backward(nodes, weights)
    first = min(order for order in permutations(nodes) if backward(order, weights) == least)
    assert least_feedback_order(nodes, weights) == list(first)


def test_edges_to_other_nodes_do_not_count():
    assert least_feedback_order([4, 2], {(2, 4): 1, (4, 9): 5, (9, 2): 5}) == [2, 4]


@few
@given(st.integers(8, 14), st.data())
def test_many_nodes_without_a_ring_are_put_in_order(size, data):
    hidden = data.draw(st.permutations(range(size)))
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(
        lambda pair: pair[0] < pair[1]
    )
    weights = {(hidden[i], hidden[j]): 1 for i, j in data.draw(st.sets(pairs, max_size=3 * size))}
    assert backward(least_feedback_order(list(range(size)), weights), weights) == 0


@few
@given(st.integers(8, 30), st.data())
def test_many_nodes_leave_fewer_backward_than_half_the_edges(size, data):
    """At most m / 2 - n / 6 in a connected graph without pairs there and back (Eades, Lin & Smyth 1993)."""
    edges = {(data.draw(st.integers(0, node - 1)), node) for node in range(1, size)}
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(
        lambda pair: pair[0] < pair[1]
    )
    edges |= data.draw(st.sets(pairs, max_size=3 * size))
    turned = data.draw(st.lists(st.booleans(), min_size=len(edges), max_size=len(edges)))
    weights = {(b, a) if turn else (a, b): 1 for (a, b), turn in zip(sorted(edges), turned, strict=True)}
    order = least_feedback_order(list(range(size)), weights)
    assert sorted(order) == list(range(size))
    assert backward(order, weights) <= len(weights) / 2 - size / 6


def eades(nodes, weights):
    """The greedy rule, looked up anew in every turn."""
    left, front, back = list(nodes), [], []

    def weight(sources, targets):
        return sum(weights.get((a, b), 0) for a in sources for b in targets)

    while left:
        sinks = [node for node in left if not weight([node], left)]
        sources = [node for node in left if not weight(left, [node])]
        best = max(left, key=lambda node: (weight([node], left) - weight(left, [node]), -node))
        node = (sinks or sources or [best])[0]
        left.remove(node)
        back.insert(0, node) if sinks else front.append(node)
    return front + back


@few
@given(weighted(8, 12))
def test_many_nodes_are_ordered_by_the_greedy_rule(graph):
    assert least_feedback_order(*graph) == eades(*graph)


LARGE = 20_000
"""Walks that take the square of it would not come to an end here."""


def ring(order):
    return dict.fromkeys(zip(order, [*order[1:], order[0]], strict=True), 1)


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_large_ring_is_cut_once(shuffled):
    order = np.random.default_rng(1).permutation(LARGE).tolist() if shuffled else list(range(LARGE))
    weights = ring(order)
    groups = strong_components(LARGE, list(weights))
    found = least_feedback_order(groups[0], weights)
    assert groups == [list(range(LARGE))]
    assert backward(found, weights) == 1
    assert found[0] == 0


def test_a_large_ring_that_is_stronger_one_way_follows_it():
    weights = dict.fromkeys(ring(list(range(LARGE))), 2)
    weights |= {(b, a): 1 for a, b in weights}
    found = least_feedback_order(list(range(LARGE)), weights)
    assert sorted(found) == list(range(LARGE))
    assert backward(found, weights) == LARGE + 1


def test_a_long_chain_of_rings_is_found():
    """Pairs 0 <-> 1, 2 <-> 3 ... each leading to the pair before it."""
    edges = [(k, k + 1) for k in range(0, LARGE, 2)] + [(k + 1, k) for k in range(0, LARGE, 2)]
    edges += [(k, k - 1) for k in range(2, LARGE, 2)]
    groups = strong_components(LARGE, edges)
    assert groups == [[k, k + 1] for k in range(LARGE - 2, -1, -2)]
