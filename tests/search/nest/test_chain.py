"""Thirty masses in a row with three stiff clusters: they are found, and a level for each pays."""

from fractions import Fraction

import numpy as np

from hocket.search.nest.clusters import dendrogram, natural_clusters
from hocket.search.nest.connection_strengths import strengths
from hocket.search.nest.nest import nest
from search.nest.systems import chain, chain_matrix, pairs_within, real_errors

NAMES = [f"m{number:02d}" for number in range(1, 31)]


def clusters_of(*ranges):
    """Return clusters such as (5, 8) as names, those that stand alone between them."""
    inside = {place: tuple(NAMES[low - 1 : high]) for low, high in ranges for place in range(low, high + 1)}
    return tuple(dict.fromkeys(inside.get(place, (NAMES[place - 1],)) for place in range(1, 31)))


def test_three_clusters_of_ten_are_found():
    ranges = ((1, 10), (11, 20), (21, 30))
    found = strengths(chain(pairs_within(*ranges)), Fraction(4))
    assert natural_clusters(NAMES, dendrogram(NAMES, found.pairs())) == clusters_of(*ranges)


def test_three_clusters_of_four_become_levels_that_pay():
    """And the run is as wrong as was predicted, which is less than flat with as many exchanges."""
    ranges = ((5, 8), (14, 17), (23, 26))
    stiff = pairs_within(*ranges)
    found = nest(chain(stiff), stop=4, work=1.5, keep=True)
    assert found.clusters == clusters_of(*ranges)
    assert found.is_nested
    levels = [tuple(group.names()) for group in found.chosen.tree.groups()]
    assert levels == [cluster for cluster in clusters_of(*ranges) if len(cluster) > 1]
    flat = found.equal
    assert flat.tree.flat
    assert flat.work.exchanges >= found.chosen.work.exchanges

    A = chain_matrix(stiff)
    x0 = np.column_stack([np.zeros(30), np.cos(np.arange(1, 31) ** 2)]).ravel()
    worst = {}
    for name, candidate in (("nested", found.chosen), ("flat", flat)):
        stop = candidate.step * (4 / candidate.step).__floor__()
        errors, scales = real_errors(found.composite_of(candidate), A, x0, stop, NAMES)
        worst[name] = (errors / scales).max()
        assert worst[name] <= 1.02 * candidate.error  # which is of all ports, forces too
    assert worst["nested"] < 0.7 * worst["flat"]
