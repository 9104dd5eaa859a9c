"""Direct feedthrough: the order in which outputs can be evaluated, and the algebraic loops.

In:  a Wiring
Out: rounds of feeding and reading; the loops at port level; the feedthrough of the level as a whole
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
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
    """The graph of direct feedthrough between the outputs of a level.

    At the start every declared reaction counts, and those whose initial state may depend on their inputs
    react to all of them, except around a cycle; between steps only those of simulators that evaluate again.
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
        if at_start:
            self._react_to_initial_inputs()
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

    def _react_to_initial_inputs(self) -> None:
        """Let those come after what drives them whose initial state may depend on their inputs.

        Around a cycle not all can. There those that are initialised once come after all that can be known
        without them; the others, which are evaluated until they agree, do not wait for each other.
        """
        wiring = self.wiring
        modes = [model.capabilities.initial_inputs for model in wiring.models]
        if all(mode == "unused" for mode in modes):
            return
        edges = {
            (drive.child, child)
            for child, drives in enumerate(wiring.drives)
            for drive in drives
            if drive is not None and drive.child >= 0
        }
        cycle: dict[int, int] = {}
        for number, group in enumerate(strong_components(len(modes), edges)):
            cycle |= dict.fromkeys(group, number)
        waiting = [child for child, mode in enumerate(modes) if mode != "unused"]
        together: dict[int, set[int]] = defaultdict(set)
        for child in waiting:
            together[cycle[child]].add(child)
        declared = set(self.drives)
        for child in sorted(waiting, key=lambda child: (modes[child] != "once", wiring.names[child])):
            mutual = {child} if modes[child] == "once" else together[cycle[child]]
            # outputs of a child that declare nothing react alike: one of them is enough
            alike: dict[Node, Drive] = {}
            for drive in wiring.drives[child]:
                if drive is not None and drive.child >= 0:
                    node = drive.child, drive.port
                    alike.setdefault(node if node in declared else (drive.child, -1), drive)
            before = [
                drive
                for drive in alike.values()
                if cycle[drive.child] != cycle[child] or not self._depends_on(drive, mutual)
            ]
            for port in range(len(wiring.models[child].outputs) if before else 0):
                known = self.drives.get((child, port), [])
                nodes = {(drive.child, drive.port) for drive in known}
                self.drives[(child, port)] = [
                    *known,
                    *(drive for drive in before if (drive.child, drive.port) not in nodes),
                ]

    def _depends_on(self, drive: Drive, children: Collection[int]) -> bool:
        """Return whether what drives an input is an output of these children, or reacts to one."""
        waiting, seen = [(drive.child, drive.port)], set()
        while waiting:
            node = waiting.pop()
            if node[0] in children:
                return True
            if node not in seen:
                seen.add(node)
                waiting += [(each.child, each.port) for each in self.drives.get(node, ()) if each.child >= 0]
        return False

    @property
    def first_reads(self) -> list[int]:
        """The children to read before anything is fed: some output of theirs reacts to nothing.

        Those that settle around a cycle are read so only for what drives others: what is merely observed
        must not change the inputs they are evaluated with.
        """
        return [
            child
            for child, model in enumerate(self.wiring.models)
            if any(
                (child, port) not in self.drives
                for port in (
                    range(len(model.outputs))
                    if model.capabilities.initial_inputs == "unused"
                    else self.driving_outputs[child]
                )
            )
        ]

    @cached_property
    def driving_outputs(self) -> list[list[int]]:
        """Per child: the outputs that drive an input."""
        found: list[set[int]] = [set() for _ in self.wiring.models]
        for drives in self.wiring.drives:
            for drive in drives:
                if drive is not None and drive.child >= 0:
                    found[drive.child].add(drive.port)
        return [sorted(ports) for ports in found]

    @property
    def reactions(self) -> set[tuple[int, int]]:
        """Pairs of children: one that drives, and one with an output that reacts to it at once."""
        return {(source[0], node[0]) for node, sources in self.sources.items() for source in sources}

    @cached_property
    def components(self) -> list[list[Node]]:
        """The reacting outputs in groups that depend on each other, sources before what reacts to them.

        A group is sorted by name: in which order a loop is solved must not depend on how models are listed.
        """
        number = {node: index for index, node in enumerate(self.reacting)}
        edges = [
            (number[s], number[node]) for node in self.reacting for s in self.sources[node] if s in number
        ]
        return [
            sorted((self.reacting[index] for index in group), key=self.name)
            for group in strong_components(len(self.reacting), edges)
        ]

    def _is_loop(self, group: list[Node]) -> bool:
        return len(group) > 1 or group[0] in self.sources[group[0]]

    @cached_property
    def loops(self) -> list[tuple[Node, ...]]:
        """The algebraic loops: outputs with direct feedthrough to themselves."""
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
        late = self._levels_behind(generation, only_from_outside)
        return [*rounds, Round(tuple(late))] if late else rounds

    def _levels_behind(self, generation: dict[Node, int], only_from_outside: bool) -> list[int]:
        """Return the levels to evaluate once more, after all rounds.

        Something inside reacts to an input, as no output of the level does whose turn comes late enough:
        without another evaluation it would be as old as the curve that was extrapolated for the step.
        """
        looped = {node: loop for loop in self.loops for node in loop}
        late = []
        for child, model in enumerate(self.wiring.models):
            drives = [self.wiring.drives[child][number] for number in inner_reactions(model)]
            sources = {
                (drive.child, drive.port) for drive in drives if drive is not None and drive.child >= 0
            }
            from_outside = any(drive is not None and drive.child == OWN for drive in drives)
            if not sources and not from_outside:
                continue
            if only_from_outside and not from_outside and not any(node in generation for node in sources):
                continue
            own = {node for node in generation if node[0] == child}
            covered = any(
                all(
                    generation.get(source, -1) < generation[node] or source in looped.get(node, ())
                    for source in sources
                )
                for node in own
            )
            if not covered:
                late.append(child)
        return late

    def inputs_by_output(self) -> list[tuple[int, ...]]:
        """Return, per output of the level, the inputs of the level it reacts to."""
        inputs = self.inputs_by_node()
        return [tuple(sorted(inputs.get((d.child, d.port), set()))) for d in self.wiring.outputs]

    def inputs_by_node(self) -> dict[Node, set[int]]:
        """Return, per reacting output inside, the inputs of the level it reacts to."""
        inputs: dict[Node, set[int]] = {}
        for group in self.components:
            union = {port for node in group for port in self.outside[node]}
            union.update(*(inputs.get(s, set()) for node in group for s in self.sources[node]))
            inputs.update((node, union) for node in group)
        return inputs

    def name(self, node: Node) -> str:
        """Return an output as a path."""
        return self.wiring.output_path(*node)


def _reacting_outputs(model: Model) -> list[tuple[int, list[int]]]:
    """Return the outputs of a model with direct feedthrough, each with the numbers of its inputs."""
    outputs = [(index, port.feedthrough) for index, port in enumerate(model.outputs) if port.feedthrough]
    number = {port.name: index for index, port in enumerate(model.inputs)} if outputs else {}
    return [(index, [number[name] for name in names]) for index, names in outputs]


def inner_reactions(model: Model) -> set[int]:
    """Return the inputs of a level that any output inside reacts to, at any depth; of others none.

    A level that is stale, or lets inputs act late, evaluates nothing again.
    """
    level = as_level(model) or as_level(wrapped_model(model))
    if level is None or not model.inputs or traits_of(level.orchestrator).is_delayed:
        return set()
    graph = Feedthrough(wire_unchecked(level.scenario))
    reached = graph.inputs_by_node()
    found = set().union(*reached.values())
    for child, inner in enumerate(graph.wiring.models):
        for number in inner_reactions(inner):
            drive = graph.wiring.drives[child][number]
            if drive is not None and drive.child == OWN:
                found.add(drive.port)
            elif drive is not None:
                found |= reached.get((drive.child, drive.port), set())
    return found


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
