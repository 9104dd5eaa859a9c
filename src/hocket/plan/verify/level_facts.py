"""What the verifier knows of a level: which simulators, what drives what, direct feedthrough.

In:  a Scenario
Out: Facts, by the numbers of the children
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from hocket.coupling.feedthrough import Feedthrough, Node
from hocket.coupling.wiring import OWN, Drive, Wiring, wire
from hocket.model.composite import as_level, is_sampled
from hocket.model.extrapolators import Hold, Latch
from hocket.model.ports import Reactivity
from hocket.model.protocols import Model, step_of
from hocket.model.scenario import Scenario


class Reaction(NamedTuple):
    """An output that follows inputs at once, between steps too."""

    port: int
    sources: tuple[Node, ...]
    """The outputs that drive these inputs."""
    outside: bool
    """Whether an input of the level drives one of them."""
    sampled: bool
    """Whether one of them is taken as it is when it is fed, not as a curve over the step."""


@dataclass(frozen=True)
class LevelFacts:
    """One level. `step` is its step in seconds, where that is known."""

    scenario: Scenario
    step: Fraction | None = None

    @cached_property
    def wiring(self) -> Wiring:
        """Which output drives which input."""
        return wire(self.scenario)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each child by its name."""
        return self.wiring.numbers()

    def name(self, child: int) -> str:
        """Return the name of a child."""
        return self.wiring.names[child]

    def model(self, child: int) -> Model:
        """Return the model of a child."""
        return self.wiring.models[child]

    def inputs(self, child: int, but: Collection[int] = ()) -> list[str]:
        """Return the paths of the inputs of a child that something drives, but for some by their numbers."""
        pairs = enumerate(zip(self.model(child).inputs, self.wiring.drives[child], strict=True))
        name = self.name(child)
        return [f"{name}.{p.name}" for n, (p, drive) in pairs if drive is not None and n not in but]

    def outputs(self, child: int) -> list[str]:
        """Return the paths of the outputs of a child."""
        return [f"{self.name(child)}.{port.name}" for port in self.model(child).outputs]

    def path(self, node: Node) -> str:
        """Return the path of an output."""
        return self.graph.name(node)

    @cached_property
    def needs_feed(self) -> list[bool]:
        """Per child: whether it must be fed before it steps."""
        texts = self.wiring.texts_of
        return [
            child in texts or any(drive is not None for drive in drives)
            for child, drives in enumerate(self.wiring.drives)
        ]

    @cached_property
    def reactive(self) -> dict[int, list[tuple[int, Reactivity]]]:
        """Per child that declares any: the driven inputs with the reactivity they declare."""
        found: dict[int, list[tuple[int, Reactivity]]] = {}
        for child, (model, drives) in enumerate(zip(self.wiring.models, self.wiring.drives, strict=True)):
            for index, (port, drive) in enumerate(zip(model.inputs, drives, strict=True)):
                if port.reactivity is not None and drive is not None and drive.child >= 0:
                    found.setdefault(child, []).append((index, port.reactivity))
        return found

    @cached_property
    def sources(self) -> list[tuple[int, ...]]:
        """Per child: the children whose samples drive it."""
        return [
            tuple(dict.fromkeys(drive.child for drive in drives if drive is not None and drive.child >= 0))
            for drives in self.wiring.drives
        ]

    def wire_between(self, source: int, target: int) -> tuple[str, str]:
        """Return the paths of an output and the first input it drives, between two children."""
        pairs = zip(self.model(target).inputs, self.wiring.drives[target], strict=True)
        port, drive = next((p, d) for p, d in pairs if d is not None and d.child == source)
        return self.path((source, drive.port)), f"{self.name(target)}.{port.name}"

    @cached_property
    def from_outside(self) -> dict[int, str]:
        """The children that inputs of the level drive, each with the first input so driven."""
        found: dict[int, str] = {}
        for child, drives in enumerate(self.wiring.drives if self.scenario.inputs else ()):
            for port, drive in zip(self.model(child).inputs, drives, strict=True):
                if drive is not None and drive.child == OWN:
                    found.setdefault(child, f"{self.name(child)}.{port.name}")
        return found

    @cached_property
    def graph(self) -> Feedthrough:
        """The outputs that react between steps."""
        return Feedthrough(self.wiring)

    @cached_property
    def reactions(self) -> dict[int, list[Reaction]]:
        """Per child that has any: the outputs that react between steps; events are absent there."""
        found: dict[int, list[Reaction]] = {}
        for node, every in self.graph.drives.items():
            drives = [drive for drive in every if not self._is_event(drive)]
            if self.model(node[0]).outputs[node[1]].event or (every and not drives):
                continue
            taken = any(self._is_sampled(node[0], drive) for drive in drives)
            sources = tuple((drive.child, drive.port) for drive in drives if drive.child >= 0)
            outside = any(drive.child == OWN for drive in drives)
            found.setdefault(node[0], []).append(Reaction(node[1], sources, outside, taken))
        return found

    def _is_event(self, drive: Drive) -> bool:
        """Return whether what drives an input is present at instants only."""
        if drive.child == OWN:
            return self.scenario.inputs[drive.port].event
        return drive.child >= 0 and self.model(drive.child).outputs[drive.port].event

    def _is_sampled(self, child: int, drive: Drive) -> bool:
        """Return whether an input does not follow its source within a step."""
        if drive.child == OWN:
            return isinstance(drive.extrapolation, Hold)
        ends = self.model(child), self.model(drive.child)
        latched = any(map(is_sampled, ends))
        return isinstance(drive.extrapolation, Latch) or (latched and drive.extrapolation is None)

    @cached_property
    def loop_of(self) -> dict[Node, tuple[Node, ...]]:
        """The outputs with direct feedthrough to themselves, each with all that it leads through."""
        return {node: loop for loop in self.graph.loops for node in loop}

    def feedthrough_output(self) -> str:
        """Return an output of the level with direct feedthrough from its inputs; empty if there is none."""
        reached = zip(self.scenario.outputs, self.graph.inputs_by_output(), strict=True)
        return next((port.name for port, inputs in reached if inputs), "")

    def can_step(self, child: int, fraction: Fraction) -> bool:
        """Return whether a child can be stepped by this part of the level's step."""
        model = self.model(child)
        level = as_level(model)
        if level is None:
            return model.capabilities.variable_step
        if self.step is None:
            return True
        ratio = self.step * fraction / level.step
        return ratio.denominator == 1 or ratio.numerator == 1

    def can_step_multiples(self, child: int, fraction: Fraction) -> bool:
        """Return whether a child can be stepped by any multiple of this part of the level's step."""
        model = self.model(child)
        level = as_level(model)
        if model.capabilities.variable_step or level is None:
            return model.capabilities.variable_step
        return self.step is None or self.step * fraction % level.step == 0

    def quantum_advice(self, child: int) -> str:
        """Return what quantum of a step control suits the level that a child is."""
        part = (step_of(self.model(child)) or Fraction(0)) / self.step if self.step else Fraction(0)
        if part > 0 and (1 / part).denominator == 1:
            return f'quantum = "{part}" of the orchestrator, and first = "{part}"; or step control inside it'
        return "step control inside it, not around it"


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
        self.value: dict[Node, Time] = {}
        """Of outputs that react: below zero, so that no time is taken for one. Of others their time, where
        not all outputs of a simulator were read together."""
        self.by_port = False
        self.fed: dict[int, FeedState] = {}
        """Per child that reacts: what it was fed with last."""
        self.outside = 0
        """How often inputs from outside were admitted."""
        self.known: dict[Any, Time] = {}

    def value_of(self, node: Node) -> Time:
        """Return the value that an output has."""
        return self.value.get(node, self.read_at[node[0]])

    def feed(self, child: int, time: Time, ports: set[int] | None = None) -> None:
        """Fix what a child will be read under, or some inputs of it."""
        reactions = self.reactions.get(child)
        if reactions:
            values = [tuple(map(self.value_of, each.sources)) for each in reactions]
            known = self.fed.get(child)
            if ports is not None and known is not None:
                drives = self.facts.wiring.drives[child]
                chosen = (drives[index] for index in ports)
                fresh = {(drive.child, drive.port) for drive in chosen if drive is not None}
                for number, (each, old) in enumerate(zip(reactions, known.values, strict=True)):
                    both = zip(each.sources, values[number], old, strict=True)
                    values[number] = tuple(new if node in fresh else then for node, new, then in both)
            self.fed[child] = FeedState(time, self.outside, values)

    def read(self, child: int, time: Time, ports: set[int] | None = None) -> None:
        """Evaluate a child under what it was fed with; with `ports`, the others keep their values."""
        count = len(self.facts.model(child).outputs)
        kept = (
            {}
            if ports is None
            else {(child, n): self.value_of((child, n)) for n in range(count) if n not in ports}
        )
        self.read_at[child] = time
        reactions = self.reactions.get(child, [])
        for key, each in zip(self._dependency_keys(child, time), reactions, strict=True):
            self.value[(child, each.port)] = self._value_for(key)
        if self.by_port or kept:
            self.by_port = True
            reacting = {each.port for each in reactions}
            for port in range(count):
                if port not in reacting:
                    self.value.pop((child, port), None)
            self.value.update(kept)

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

    def _value_for(self, key: Any) -> Time:
        return self.known.setdefault(key, -1 - len(self.known))


def _dependency_key(child: int, each: Reaction, time: Time, fed: FeedState, values: tuple[Time, ...]) -> Any:
    """Return what an output depends on; what is taken as it is depends on when it was fed."""
    outside, when = fed.outside if each.outside else 0, fed.time if each.sampled else 0
    return child, each.port, time, outside, when, values
