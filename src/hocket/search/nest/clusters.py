"""Hierarchies that the strengths of connections suggest: strong ones should be exchanged often.

In:  Strengths, and the names of the simulators
Out: trees of groups, each with what it promises at equal work and the rates that are best for that

With steps H, and H / r_g inside group g, the error is about H (S_1 + sum_g S_g / r_g) and the exchanges are
(k_1 + sum_g k_g r_g) / H, where S are the strengths and k the numbers of the connections that belong to a
level. Their product counts at equal work; by Cauchy and Schwarz it is least for r_g = sqrt((S_g / k_g)
/ (S_1 / k_1)): a level pays whose connections are stronger per value exchanged than those around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hocket.search.nest.connection_strengths import Strengths
from hocket.search.nest.hierarchy import LevelGroup

FEW = 6
"""Simulators up to which every partition is looked at."""
DEEPER = 1.05
"""Times its promise that a tree counts for each level that has levels inside."""
GAPS = 3
"""Cuts of a dendrogram that are looked at where there are more."""
MOST = 64
"""Steps of a level per step around it, at the most."""

Edge = tuple[str, str]
Partition = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Merge:
    """Two clusters become one, at the strength of the strongest connection between them."""

    members: tuple[str, ...]
    strength: float


@dataclass(frozen=True)
class Promise:
    """A tree with the rates that suit it, and its error at equal work as a part of that of the flat one."""

    tree: LevelGroup
    part: float


def dendrogram(names: Sequence[str], pairs: Mapping[Edge, float]) -> list[Merge]:
    """Return how clusters grow together, the strongest first (single linkage: Florek et al. 1951).

    What is connected only weakly joins last; what is not connected at all never does.
    """
    both: dict[Edge, float] = {}
    place = {name: number for number, name in enumerate(names)}
    for (a, b), strength in pairs.items():
        edge = (a, b) if place[a] < place[b] else (b, a)
        both[edge] = both.get(edge, 0.0) + strength
    cluster = {name: frozenset([name]) for name in names}
    merges: list[Merge] = []
    for (a, b), strength in sorted(both.items(), key=lambda item: -item[1]):
        if cluster[a] is cluster[b] or strength <= 0.0:
            continue
        joined = cluster[a] | cluster[b]
        cluster |= dict.fromkeys(joined, joined)
        merges.append(Merge(tuple(sorted(joined, key=place.__getitem__)), strength))
    return merges


def natural_clusters(names: Sequence[str], merges: Sequence[Merge]) -> Partition:
    """Return the clusters there are before the widest gap between the strengths at which they join."""
    return next(_wide_cuts(names, merges, 1), tuple((name,) for name in names))


def promising_trees(names: Sequence[str], found: Strengths) -> list[Promise]:
    """Return trees and what they promise at equal work, the most promising first; above one: less than flat.

    Of few simulators all partitions are looked at, of many those of the dendrogram at its widest gaps; and
    the best of them with levels inside their levels.
    """
    kinds = ["error", "growth"] if found.growth > 0.0 else ["error"]
    best: dict[LevelGroup, Promise] = {}
    for kind in kinds:
        look = _PromiseEstimator(tuple(names), found.pairs(kind), found.counts())
        partitions = dict.fromkeys(_wide_cuts(names, dendrogram(names, look.pairs), GAPS))
        if len(names) <= FEW:
            several = (each for each in _all_partitions(tuple(names)) if 1 < len(each) < len(names))
            partitions |= dict.fromkeys(several)  # but flat, and one block
        shallow = {partition: look.promise(partition_tree(names, partition)) for partition in partitions}
        good = sorted(shallow, key=lambda partition: shallow[partition].part)[:2]
        pairs = (pair for one in good for other in partitions for pair in ((one, other), (other, one)))
        deeper = [look.promise(tree) for pair in pairs if (tree := _refined_tree(names, *pair)) is not None]
        real = [each for each in deeper if min(each.tree.ratios().values()) > 1]
        for promise in (*shallow.values(), *real):
            shape = promise.tree.with_ratios({})
            if look.is_connected(shape):
                first = best.get(shape, promise)  # with the rates that suit the error, whatever grows
                best[shape] = Promise(first.tree, min(first.part, promise.part))
    return sorted(best.values(), key=_promise_rank)


def _promise_rank(promise: Promise) -> float:
    """Return what promises are ordered by: levels inside levels must promise a little more."""
    inner = sum(not group.flat for group in promise.tree.groups())
    return promise.part * DEEPER**inner


def partition_tree(names: Sequence[str], partition: Partition, fine: Partition = ()) -> LevelGroup:
    """Return a partition as a tree: blocks of one stay outside, others are groups where their first is.

    Blocks of a finer partition are groups inside those.
    """
    blocks = {name: (name,) for name in names} | {name: block for block in partition for name in block}
    members: dict[str | LevelGroup, None] = {}
    for name, block in blocks.items():
        inner = tuple(each for each in fine if each[0] in block)
        single = len(block) == 1
        members[name if single else partition_tree(block, inner if len(inner) > 1 else ())] = None
    return LevelGroup(tuple(members))


def _cuts(names: Sequence[str], merges: Sequence[Merge]) -> Iterator[Partition]:
    """Yield the partitions between flat and one block, as clusters grow together."""
    blocks: dict[str, tuple[str, ...]] = {name: (name,) for name in names}
    for merge in merges:
        blocks |= dict.fromkeys(merge.members, merge.members)
        partition = tuple(dict.fromkeys(blocks.values()))
        if len(partition) > 1:
            yield partition


def _all_partitions(names: tuple[str, ...]) -> Iterator[Partition]:
    if not names:
        yield ()
        return
    first, rest = names[0], names[1:]
    for partition in _all_partitions(rest):
        yield ((first,), *partition)
        for number, block in enumerate(partition):
            yield (*partition[:number], (first, *block), *partition[number + 1 :])


def _wide_cuts(names: Sequence[str], merges: Sequence[Merge], count: int) -> Iterator[Partition]:
    """Yield the partitions before the widest gaps, the widest first: what joins next is so much weaker."""
    cuts = list(_cuts(names, merges))
    gaps = [one.strength / other.strength for one, other in pairwise(merges)]
    if len(cuts) > len(gaps):
        gaps.append(math.inf)  # what is not connected at all
    for place in sorted(range(len(cuts)), key=lambda place: -gaps[place])[:count]:
        yield cuts[place]


def _refined_tree(names: Sequence[str], coarse: Partition, fine: Partition) -> LevelGroup | None:
    """Return a tree whose levels have levels inside, if one partition refines the other."""
    around = {name: block for block in coarse for name in block}
    if fine == coarse or any(not set(block) <= set(around[block[0]]) for block in fine):
        return None
    tree = partition_tree(names, coarse, fine)
    return tree if any(not group.flat for group in tree.groups()) else None


@dataclass(frozen=True)
class _PromiseEstimator:
    """Strengths and numbers of connections, for the promise of trees."""

    names: tuple[str, ...]
    pairs: Mapping[Edge, float]
    counts: Mapping[Edge, int]

    @cached_property
    def totals(self) -> tuple[float, float]:
        return sum(self.pairs.values()), float(sum(self.counts.values()))

    def promise(self, tree: LevelGroup) -> Promise:
        rates: dict[frozenset[str], float] = {}
        error, exchanges = self._level(tree, 1.0, rates, None)
        strength, values = self.totals
        part = error * exchanges / (strength * values) if strength > 0.0 else 1.0
        return Promise(tree.with_ratios(_integer_ratios(tree, rates, 1.0)), part)

    def _level(
        self, group: LevelGroup, least: float, rates: dict[frozenset[str], float], outer: float | None
    ) -> tuple[float, float]:
        """Return error and exchanges of a group and all inside it; `outer` is the density around it all."""
        strength, values = self._own(group)
        density = strength / values if values else 0.0
        first = density if outer is None else outer
        ideal = math.sqrt(density / first) if first > 0.0 else float(MOST)
        rate = min(max(least, ideal), float(MOST)) if outer is not None else 1.0
        rates[frozenset(group.names())] = rate
        error, exchanges = strength / rate, values * rate
        for member in group.members:
            if isinstance(member, LevelGroup):
                more = self._level(member, rate, rates, first)
                error, exchanges = error + more[0], exchanges + more[1]
        return error, exchanges

    def _own(self, group: LevelGroup) -> tuple[float, float]:
        """Return strength and number of the connections that belong to a level itself."""
        place = group.places()
        own = [
            edge for edge in self.pairs
            if edge[0] in place and edge[1] in place and place[edge[0]] != place[edge[1]]
        ]  # fmt: skip
        return sum(self.pairs[edge] for edge in own), float(sum(self.counts[edge] for edge in own))

    def is_connected(self, tree: LevelGroup) -> bool:
        """Return whether every level has something to exchange inside."""
        return all(self._own(group)[1] > 0.0 for group in tree.groups())


def _integer_ratios(
    group: LevelGroup, rates: Mapping[frozenset[str], float], around: float
) -> dict[frozenset[str], int]:
    """Return whole ratios of levels to those around them that come near to the rates."""
    found: dict[frozenset[str], int] = {}
    for member in group.members:
        if isinstance(member, LevelGroup):
            key = frozenset(member.names())
            found[key] = max(1, round(rates[key] / around))
            found |= _integer_ratios(member, rates, around * found[key])
    return found
