"""Dendrograms, partitions and promises against numbers worked out by hand."""

import math

import pytest

from hocket.search.nest.clusters import Promise, dendrogram, natural_clusters, partition_tree, promising_trees
from hocket.search.nest.connection_strengths import Strength, Strengths
from hocket.search.nest.hierarchy import LevelGroup


def made(strengths, growth=-1.0):
    """Strengths of one connection each way between pairs: {"ab": 3.0} splits into 1.5 and 1.5."""
    connections = [
        Strength(f"{source}.y", f"{target}.u{source}", (source, target), size / 2, 0.0)
        for pair, size in strengths.items()
        for source, target in (pair, pair[::-1])
    ]
    return Strengths(tuple(connections), 0.1, 1.0, growth)


def test_the_strongest_join_first():
    found = made({"ab": 1.0, "bc": 8.0, "cd": 2.0})
    merges = dendrogram("abcd", found.pairs())
    assert [(each.members, each.strength) for each in merges] == [
        (("b", "c"), 8.0),
        (("b", "c", "d"), 2.0),
        (("a", "b", "c", "d"), 1.0),
    ]
    assert natural_clusters("abcd", merges) == (("a",), ("b", "c"), ("d",))


def test_what_is_not_connected_never_joins():
    merges = dendrogram("abcd", made({"ab": 1.0, "cd": 0.5}).pairs())
    assert [each.members for each in merges] == [("a", "b"), ("c", "d")]
    assert natural_clusters("abcd", merges) == (("a", "b"), ("c", "d"))


def test_a_promise_is_what_cauchy_and_schwarz_allow():
    """(sqrt(S1 k1) + sqrt(S2 k2))^2 / (S k) with S = 16 and 1, two values each, at a ratio of 4."""
    found = promising_trees("abc", made({"ab": 1.0, "bc": 16.0}))
    assert isinstance(found[0], Promise)
    assert found[0].tree == LevelGroup(("a", LevelGroup(("b", "c"), 4)))
    expected = (math.sqrt(1 * 2) + math.sqrt(16 * 2)) ** 2 / (17 * 4)
    assert found[0].part == pytest.approx(expected)
    assert found[1].tree.words == "{{a, b}, c}"
    assert found[1].part == pytest.approx(1.0)  # the weak pair inside: no rate above one pays


def test_equal_strengths_promise_nothing():
    assert all(
        each.part == pytest.approx(1.0) for each in promising_trees("abc", made({"ab": 2.0, "bc": 2.0}))
    )


def test_all_partitions_of_few_are_looked_at():
    """A complete graph of four: 15 partitions (Bell), less flat and one block."""
    pairs = {a + b: 1.0 for a, b in ("ab", "ac", "ad", "bc", "bd", "cd")}
    shapes = {each.tree.with_ratios({}) for each in promising_trees("abcd", made(pairs))}
    assert len({shape for shape in shapes if all(group.flat for group in shape.groups())}) == 13


def test_levels_without_anything_to_exchange_are_none():
    found = promising_trees("abc", made({"ab": 1.0, "bc": 2.0}))
    assert all(set(group.names()) != {"a", "c"} for each in found for group in each.tree.groups())


def test_levels_inside_levels():
    """Strengths that grow by 25 each: the innermost pair talks most often."""
    found = promising_trees("abcd", made({"ab": 1.0, "bc": 25.0, "cd": 625.0}))
    assert found[0].tree == LevelGroup(("a", LevelGroup(("b", LevelGroup(("c", "d"), 5)), 5)))
    k, S = 2, (1.0, 25.0, 625.0)
    expected = sum(math.sqrt(each * k) for each in S) ** 2 / (sum(S) * 3 * k)
    assert found[0].part == pytest.approx(expected)


def test_growth_counts_where_it_grows():
    """The pair that makes it grow is a candidate, though its errors are small."""
    base = made({"ab": 4.0, "bc": 1.0}, growth=0.5)
    growing = [
        Strength(each.source, each.target, each.ends, each.error, 1.0 if "c" in each.ends else 0.0)
        for each in base.connections
    ]
    found = promising_trees("abc", Strengths(tuple(growing), 0.1, 1.0, 0.5))
    assert found[0].tree.words == "{a, {b, c}}"


def test_words_of_trees():
    many = tuple(f"m{number}" for number in range(1, 10))
    assert partition_tree(many, (many[2:5], *((n,) for n in many if n not in many[2:5]))).words == (
        "{m1, m2, {m3, m4, m5}, m6 to m9}"
    )
