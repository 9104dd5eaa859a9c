"""Which value an output has, told by what it was computed from: so it is known what is out of date.

In:  feeds, reads and solved loops in the order of the plan
Out: the outputs that are not what they would be if they were evaluated now

A value is a number that stands for what it depends on: the same output, read at the same time under the
same values, is the same value. It is only done for plans that promise consistent outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from hocket.plan.facts import LevelFacts, Node, Reaction

Time: TypeAlias = Fraction | int


class FeedState(NamedTuple):
    """When a child was fed, with which inputs from outside, and per reaction with which values."""

    time: Time
    outside: int
    values: list[tuple[Time, ...]]


class OutputValues:
    """The values of all outputs of a level while its plan is read."""

    def __init__(self, facts: LevelFacts):
        self.facts = facts
        self.reactions = facts.reactions
        self.read_at: list[Time] = [0] * len(facts.wiring.names)
        """Per child: when it was read last; that is the value of outputs that react to nothing."""
        self.value: dict[Node, int] = {}
        """Of outputs that react: below zero, so that no time is taken for one."""
        self.fed: dict[int, FeedState] = {}
        """Per child that reacts: what it was fed with last."""
        self.outside = 0
        """How often inputs from outside were admitted."""
        self.known: dict[Any, int] = {}

    def value_of(self, node: Node) -> Time:
        """Return the value that an output has."""
        return self.value.get(node, self.read_at[node[0]])

    def feed(self, child: int, time: Time) -> None:
        """Fix what a child will be read under."""
        reactions = self.reactions.get(child)
        if reactions:
            values = [tuple(map(self.value_of, each.sources)) for each in reactions]
            self.fed[child] = FeedState(time, self.outside, values)

    def read(self, child: int, time: Time) -> None:
        """Evaluate a child under what it was fed with."""
        self.read_at[child] = time
        reactions = self.reactions.get(child)
        if reactions:
            for key, each in zip(self._dependency_keys(child, time), reactions, strict=True):
                self.value[(child, each.port)] = self._value_for(key)

    def solve(self, children: Sequence[int], nodes: Sequence[Node], time: Time) -> None:
        """Give a loop values that agree with themselves."""
        inside = set(nodes)
        around = [
            self.value_of(source)
            for child in children
            for each in self.reactions.get(child, ())
            for source in each.sources
            if source not in inside
        ]
        for node in nodes:
            self.value[node] = self._value_for(("solved", node, time, self.outside, tuple(around)))
        self.accept_values(children, dict.fromkeys(children, time), inside)
        for child in children:
            self.read(child, time)

    def accept_values(
        self, children: Sequence[int], time: dict[int, Time] | list[Time], nodes: set[Node] | None = None
    ) -> None:
        """Take the values that children have for what they would be if they were evaluated again."""
        for child in children:
            self.feed(child, time[child])
            for key, each in zip(
                self._dependency_keys(child, time[child]), self.reactions.get(child, ()), strict=True
            ):
                node = (child, each.port)
                if node in self.value and (nodes is None or node in nodes):
                    self.known[key] = self.value[node]

    def stale_outputs(
        self, time: list[Time], children: Iterator[int], asked: bool
    ) -> Iterator[tuple[Node, Node | None]]:
        """Yield outputs that would be others now, each with a source that changed; None: from outside.

        `asked`: the newest inputs from outside must have come through. Otherwise they may be delayed.
        """
        for child in children:
            reactions = self.reactions.get(child, ())
            fed = self.fed.get(child) or FeedState(-1, 0, [() for _ in reactions])
            came = self.outside if asked else fed.outside
            for each, seen in zip(reactions, fed.values, strict=True):
                now = tuple(map(self.value_of, each.sources))
                key = _dependency_key(child, each, time[child], FeedState(time[child], came, []), now)
                node = (child, each.port)
                if self.known.get(key) == self.value.get(node, 0):
                    continue
                changed = [s for s, a, b in zip(each.sources, now, seen or now, strict=True) if a != b]
                if each.outside and not changed and (came != fed.outside or not each.sources):
                    yield node, None
                elif each.sources:
                    yield node, (changed or each.sources)[0]

    def _dependency_keys(self, child: int, time: Time) -> Iterator[Any]:
        reactions = self.reactions.get(child, ())
        fed = self.fed.get(child) or FeedState(-1, 0, [() for _ in reactions])
        for each, values in zip(reactions, fed.values, strict=True):
            yield _dependency_key(child, each, time, fed, values)

    def _value_for(self, key: Any) -> int:
        return self.known.setdefault(key, -1 - len(self.known))


def _dependency_key(child: int, each: Reaction, time: Time, fed: FeedState, values: tuple[Time, ...]) -> Any:
    """Return what an output depends on; what is taken as it is depends on when it was fed."""
    outside, when = fed.outside if each.outside else 0, fed.time if each.sampled else 0
    return child, each.port, time, outside, when, values
