"""Direct feedthrough: the order in which outputs can be evaluated, and the algebraic loops.

In:  a Wiring
Out: rounds of feeding and reading; the loops at port level; the feedthrough of the level as a whole
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hocket.coupling.graph import strong_components
from hocket.coupling.wiring import OWN, Drive, Wiring, wire_unchecked
from hocket.model.composite import Composite, as_level, traits_of
from hocket.model.protocols import Model, wrapped_model
from hocket.model.scenario import Scenario

Node = tuple[int, int]
"""An output: number of the child, number of the output."""


@dataclass(frozen=True)
class Round:
    """Children to feed, then to read. A loop lists the outputs that must be solved for together."""

    children: tuple[int, ...]
    loop: tuple[Node, ...] = ()


class Feedthrough:
    """The graph of outputs that react at once to other outputs of the same level.

    At the start every declared reaction counts; between steps only those of simulators that evaluate again.
    """

    def __init__(self, wiring: Wiring, at_start: bool = False):
        self.wiring = wiring
        self.drives: dict[Node, list[Drive]] = {}
        """Per output that reacts to any input: what drives these inputs."""
        reacting: dict[int, list[tuple[int, list[int]]]] = {}
        for child, model in enumerate(wiring.models):
            if not (at_start or model.capabilities.reevaluates):
                continue
            if id(model) not in reacting:
                reacting[id(model)] = _reacting_outputs(model)
            for port, inputs in reacting[id(model)]:
                drives = (wiring.drives[child][number] for number in inputs)
                self.drives[(child, port)] = [drive for drive in drives if drive is not None]
        self.reacting = list(self.drives)
        self.sources = {
            node: [(drive.child, drive.port) for drive in drives if drive.child >= 0]
            for node, drives in self.drives.items()
        }
        """Per reacting output: the outputs it reacts to."""
        self.outside = {
            node: [drive.port for drive in drives if drive.child == OWN]
            for node, drives in self.drives.items()
        }
        """Per reacting output: the inputs of the level it reacts to."""

    @property
    def reactions(self) -> set[tuple[int, int]]:
        """Pairs of children: one that drives, and one with an output that reacts to it at once."""
        return {(source[0], node[0]) for node, sources in self.sources.items() for source in sources}

    @cached_property
    def components(self) -> list[list[Node]]:
        """The reacting outputs in groups that depend on each other, sources before what reacts to them."""
        number = {node: index for index, node in enumerate(self.reacting)}
        edges = [
            (number[s], number[node]) for node in self.reacting for s in self.sources[node] if s in number
        ]
        return [
            [self.reacting[index] for index in group]
            for group in strong_components(len(self.reacting), edges)
        ]

    def _is_loop(self, group: list[Node]) -> bool:
        return len(group) > 1 or group[0] in self.sources[group[0]]

    @cached_property
    def loops(self) -> list[tuple[Node, ...]]:
        """The algebraic loops: outputs that react at once to themselves."""
        return [tuple(group) for group in self.components if self._is_loop(group)]

    def rounds(self, only_from_outside: bool = False) -> list[Round]:
        """Return the feeding and reading after which every reacting output is consistent.

        Outputs that react to nothing must have been read before. `only_from_outside` leaves out what does
        not depend on the inputs of the level.
        """
        generation: dict[Node, int] = {}
        touched: set[Node] = set()
        plain: dict[int, dict[int, None]] = defaultdict(dict)
        loops: dict[int, list[tuple[Node, ...]]] = defaultdict(list)
        for group in self.components:
            if any(self.outside[node] or any(s in touched for s in self.sources[node]) for node in group):
                touched.update(group)
            elif only_from_outside:
                continue
            depth = 1 + max((generation.get(s, -1) for node in group for s in self.sources[node]), default=-1)
            generation.update((node, depth) for node in group)
            if self._is_loop(group):
                loops[depth].append(tuple(group))
            else:
                plain[depth].setdefault(group[0][0])
        rounds: list[Round] = []
        for depth in sorted({*plain, *loops}):
            if plain[depth]:
                rounds.append(Round(tuple(plain[depth])))
            for loop in loops[depth]:
                children = tuple(dict.fromkeys(child for child, _ in loop))
                rounds.append(Round(children, loop))
        return rounds

    def inputs_by_output(self) -> list[tuple[int, ...]]:
        """Return, per output of the level, the inputs of the level it reacts to."""
        inputs: dict[Node, set[int]] = {}
        for group in self.components:
            union = {port for node in group for port in self.outside[node]}
            union.update(*(inputs.get(s, set()) for node in group for s in self.sources[node]))
            inputs.update((node, union) for node in group)
        return [tuple(sorted(inputs.get((d.child, d.port), set()))) for d in self.wiring.outputs]

    def name(self, node: Node) -> str:
        """Return an output as a path."""
        child, port = node
        return f"{self.wiring.names[child]}.{self.wiring.models[child].outputs[port].name}"


def _reacting_outputs(model: Model) -> list[tuple[int, list[int]]]:
    """Return the outputs of a model with direct feedthrough, each with the numbers of its inputs."""
    outputs = [(index, port.feedthrough) for index, port in enumerate(model.outputs) if port.feedthrough]
    number = {port.name: index for index, port in enumerate(model.inputs)} if outputs else {}
    return [(index, [number[name] for name in names]) for index, names in outputs]


def with_direct_feedthrough(scenario: Scenario) -> Scenario:
    """Return the scenario with levels whose outputs name the inputs that they directly depend on."""
    levels = {name: _annotate_model(model) for name, model in scenario.models.items() if _holds_level(model)}
    return scenario.with_models({**scenario.models, **levels}) if levels else scenario


def feedthrough_graph(scenario: Scenario, at_start: bool = False) -> Feedthrough:
    """Return the graph of a scenario as it was written, through its levels."""
    return Feedthrough(wire_unchecked(with_direct_feedthrough(scenario)), at_start)


def _holds_level(model: object) -> bool:
    return as_level(model) is not None or as_level(wrapped_model(model)) is not None


def _annotate_model(model: Any) -> Model:
    """Return a level, or a wrapper around one, whose outputs have their direct feedthrough."""
    level = as_level(model)
    return replace(model, model=_annotate_level(model.model)) if level is None else _annotate_level(level)


def _annotate_level(level: Composite) -> Composite:
    """Return a level whose outputs depend on whatever reaches them through re-evaluated levels."""
    scenario = with_direct_feedthrough(level.scenario)
    wiring = wire_unchecked(scenario)
    if traits_of(level.orchestrator).is_delayed or len(wiring.outputs) != len(scenario.outputs):
        return level.with_scenario(scenario)
    outputs = [
        replace(port, feedthrough=tuple(scenario.inputs[number].name for number in reach))
        for port, reach in zip(scenario.outputs, Feedthrough(wiring).inputs_by_output(), strict=True)
    ]
    return level.with_scenario(scenario.with_changes(outputs=outputs))
