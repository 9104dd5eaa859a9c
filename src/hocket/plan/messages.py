"""News between hosts: values that were evaluated anew, and the messages that carry them.

In:  the instructions of a plan, one after the other
Out: messages and values per pair of hosts; carried where there is something that carries
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from hocket.coupling.wiring import OWN, Wiring
from hocket.model.extrapolators import Hold
from hocket.model.plain_state import is_record

Node: TypeAlias = tuple[int, int]
"""An output: number of the child, number of the output."""
Pair: TypeAlias = tuple[str, str]
"""From host, to host."""


@is_record
@dataclass(frozen=True)
class Load:
    """Messages, and the values in them."""

    messages: int = 0
    values: int = 0

    def __add__(self, other: Load) -> Load:
        return Load(self.messages + other.messages, self.values + other.values)

    def __sub__(self, other: Load) -> Load:
        return Load(self.messages - other.messages, self.values - other.values)

    def __mul__(self, times: int) -> Load:
        return Load(self.messages * times, self.values * times)


class Carrier(Protocol):
    """What carries the messages of a run from host to host.

    Every host reads the same plan in the same way, so that all agree on which message comes next.
    """

    def carry(self, pair: Pair, nodes: Sequence[Node], counts: Sequence[int]) -> None:
        """Hand over so many numbers of each output, on the host they come from and on the one they go to.

        What is waited for may be left to `settle`.
        """

    def settle(self) -> None:
        """Store what was handed over since the last time: it is used, or replaced, next."""

    def agree(self, flags: Sequence[bool]) -> list[bool]:
        """Return which flags are up on any host; all hosts ask at the same place."""


@dataclass
class Post:
    """The state of the reading: which version of each output is known where.

    A message carries, of each output that one host uses of another, the samples since the last message, as
    far back as extrapolations look.
    """

    wiring: Wiring
    homes: list[str]
    """The host of each child; empty: it is on none."""
    sent: dict[Pair, Load] = field(default_factory=dict)
    used: dict[Pair, list[Node]] = field(default_factory=dict)
    known: dict[tuple[Pair, Node], int] = field(default_factory=dict)
    versions: dict[Node, int] = field(default_factory=dict)
    given: dict[tuple[int, int], int] = field(default_factory=dict)
    """Per child and input: the version it was fed with last."""
    due: set[Node] = field(default_factory=set)
    """The outputs that have another value when they are evaluated: time passed, or they react to news."""
    depths: dict[Node, int] = field(default_factory=dict)
    """How many samples of an output are looked at, where it is more than the newest."""
    aged: set[Node] = field(default_factory=set)
    """The outputs for which time has passed since they were evaluated."""
    samples: dict[Node, int] = field(default_factory=dict)
    """How many of an output were stored so far, one per time; of those, how many when it was sent last:"""
    passed: dict[tuple[Pair, Node], int] = field(default_factory=dict)
    carrier: Carrier | None = None
    remote: frozenset[int] = frozenset()
    """The children that live on other hosts than the one that reads; empty: all run here."""

    @staticmethod
    def from_wiring(wiring: Wiring, homes: Mapping[str, str], shared: Iterable[Node] = ()) -> Post:
        """Return the reading of a wiring; `homes` has hosts by the names of children.

        All hosts use the outputs that are `shared`: those that decide whether iterations have ended.
        """
        post = Post(wiring, [homes.get(name, "") for name in wiring.names])
        for child in range(len(wiring.names)):
            for node, pair in post._from_elsewhere(child, None):
                post._use(node, pair)
        for node in sorted(set(shared)):
            source = post.homes[node[0]]
            for target in sorted({home for home in post.homes if home and source} - {source}):
                post._use(node, (source, target))
        return post

    def _use(self, node: Node, pair: Pair) -> None:
        self.sent.setdefault(pair, Load())
        if node not in self.used.setdefault(pair, []):
            self.used[pair].append(node)

    def count_past(self) -> None:
        """Count the samples that extrapolations look back at; else only the newest is sent."""
        for drives in self.wiring.drives:
            for drive in drives:
                if drive is not None and drive.child > OWN:
                    node, wanted = (drive.child, drive.port), (drive.extrapolation or Hold()).samples
                    self.depths[node] = max(self.depths.get(node, 1), wanted)

    def _drives(self, child: int, ports: set[int] | None) -> Iterable[tuple[int, Node]]:
        """Yield inputs of a child with the outputs that drive them."""
        for index, drive in enumerate(self.wiring.drives[child]):
            if drive is not None and drive.child >= 0 and (ports is None or index in ports):
                yield index, (drive.child, drive.port)

    def _from_elsewhere(self, child: int, ports: set[int] | None) -> Iterable[tuple[Node, Pair]]:
        target = self.homes[child]
        for _, node in self._drives(child, ports):
            source = self.homes[node[0]]
            if source and target and source != target:
                yield node, (source, target)

    def loads(self) -> dict[Pair, Load]:
        """Return what was sent so far."""
        return dict(self.sent)

    def feed(self, child: int, numbers: int = 1, ports: set[int] | None = None) -> None:
        """Give a child its inputs, or some; what is new is sent, all that its host uses in one message."""
        self._feed(child, numbers, ports)
        self.settle()

    def agree(self, flags: Sequence[bool]) -> list[bool]:
        """Return which flags are up on any host."""
        return list(flags) if self.carrier is None else self.carrier.agree(flags)

    def _feed(self, child: int, numbers: int, ports: set[int] | None) -> None:
        for node, pair in self._from_elsewhere(child, ports):
            if self._is_new(pair, node):
                self._send(pair, numbers)
        model = self.wiring.models[child]
        for index, node in self._drives(child, ports):
            version = self.versions.get(node, 0)
            if self.given.get((child, index)) != version:
                self.given[(child, index)] = version
                name = model.inputs[index].name
                if model.capabilities.reevaluates:
                    self.due.update(
                        (child, port) for port, each in enumerate(model.outputs) if name in each.feedthrough
                    )

    def feed_all(self, children: Iterable[int]) -> None:
        """Give several children their inputs."""
        for child in children:
            self._feed(child, 1, None)
        self.settle()

    def send(self, pair: Pair, ports: Iterable[str]) -> None:
        """Send what one host uses of another, if one of these outputs is new; it is waited for later."""
        places = self.wiring.output_places
        if pair in self.used and any(self._is_new(pair, places[port]) for port in ports):
            self._send(pair, 1)

    def settle(self) -> None:
        """Have what was sent stored where it is used."""
        if self.carrier is not None:
            self.carrier.settle()

    def step(self, child: int) -> None:
        """Let time pass for a child: all its outputs will have other values."""
        outputs = [(child, port) for port in range(len(self.wiring.models[child].outputs))]
        self.due.update(outputs)
        self.aged.update(outputs)

    def read(self, child: int, ports: set[int] | None = None) -> set[Node]:
        """Evaluate outputs of a child; return those that are new: time passed, or they react to news."""
        every = range(len(self.wiring.models[child].outputs))
        stored = {(child, port) for port in (every if ports is None else ports)}
        for node in stored & self.aged:
            self.samples[node] = self.samples.get(node, 0) + 1
        fresh = stored & self.due
        self._send_again(fresh - self.aged)
        self.aged -= stored
        self.renew(fresh)
        self.due -= fresh
        return fresh

    def _send_again(self, nodes: set[Node]) -> None:
        """Let the newest samples of outputs count as not sent: they have changed at the time they are of."""
        for pair, used in self.used.items() if nodes else ():
            for node in nodes.intersection(used):
                if self.passed.get((pair, node), 0) == self.samples.get(node, 0) > 0:
                    self.passed[(pair, node)] -= 1

    def solve(self, children: Sequence[int], loop: Iterable[Node]) -> None:
        """Evaluate a loop, once: how often it is gone around is not known before."""
        self.feed_all(children)
        self.renew(loop)
        for child in children:
            self.read(child)

    def renew(self, nodes: Iterable[Node]) -> None:
        """Give outputs other values."""
        for node in nodes:
            self.versions[node] = self.versions.get(node, 0) + 1

    def flush(self, numbers: int = 1) -> None:
        """Send what is new, before it is fed to anyone."""
        for pair, nodes in self.used.items():
            if any(self._is_new(pair, node) for node in nodes):
                self._send(pair, numbers)
        self.settle()

    def mark_all_known(self) -> None:
        """Take everything for known everywhere."""
        for pair, nodes in self.used.items():
            for node in nodes:
                self._mark_known(pair, node)
        for child in range(len(self.wiring.names)):
            for index, node in self._drives(child, None):
                self.given[(child, index)] = self.versions.get(node, 0)
        self.due.clear()
        self.aged.clear()

    def _is_new(self, pair: Pair, node: Node) -> bool:
        return self.known.get((pair, node)) != self.versions.get(node, 0)

    def _send(self, pair: Pair, numbers: int) -> None:
        nodes = self.used[pair]
        counts = [numbers * self._count_unsent(pair, node) for node in nodes]
        self.sent[pair] = self.sent[pair] + Load(1, sum(counts))
        for node in nodes:
            self._mark_known(pair, node)
        if self.carrier is not None:
            self.carrier.carry(pair, nodes, counts)

    def _count_unsent(self, pair: Pair, node: Node) -> int:
        """Return how many samples of an output have not been sent, of those looked at; at least one."""
        unsent = self.samples.get(node, 0) - self.passed.get((pair, node), 0)
        return max(1, min(unsent, self.depths.get(node, 1)))

    def _mark_known(self, pair: Pair, node: Node) -> None:
        self.known[(pair, node)] = self.versions.get(node, 0)
        self.passed[(pair, node)] = self.samples.get(node, 0)
