"""Levels made of a flat scenario: which simulators share one, how often they exchange, with which algorithm.

In:  a flat Composite, a tree of groups, an AlgorithmVariant, and how strongly simulators drive each other
Out: the same simulators and connections with levels inside, each with its reason
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any

from hocket.coupling.graph import least_feedback_order, strong_components
from hocket.errors import ScenarioError
from hocket.model.arguments import free_name
from hocket.model.composite import Composite, traits_of
from hocket.model.extrapolators import Hold, Polynomial
from hocket.model.protocols import Extrapolator
from hocket.model.scenario import Insertion, Scenario
from hocket.orchestrators import GaussSeidel, Iterate, Jacobi
from hocket.planning.compiler.sublevels import gather_models, order_groups

PASS = "nesting"
LONG = 40
"""Signs of a name that a level may get from its members."""
GRAIN = 10**6
"""What the largest weight counts in whole numbers."""


@dataclass(frozen=True)
class LevelGroup:
    """Simulators that share a level; it makes `ratio` steps in one of the level around it."""

    members: tuple[str | LevelGroup, ...]
    ratio: int = 1

    def names(self) -> Iterator[str]:
        """Yield all simulators in it, at any depth."""
        for member in self.members:
            yield from member.names() if isinstance(member, LevelGroup) else (member,)

    def rates(self, around: int = 1) -> Iterator[tuple[LevelGroup, int]]:
        """Yield the groups inside it, at any depth, with the steps that each makes in one of this level."""
        for member in self.members:
            if isinstance(member, LevelGroup):
                yield member, around * member.ratio
                yield from member.rates(around * member.ratio)

    def groups(self) -> Iterator[LevelGroup]:
        """Yield the groups inside it, at any depth."""
        return (group for group, _ in self.rates())

    def places(self) -> dict[str, int]:
        """Return the number of the member that each simulator is in."""
        return {
            name: number
            for number, member in enumerate(self.members)
            for name in (member.names() if isinstance(member, LevelGroup) else (member,))
        }

    @property
    def flat(self) -> bool:
        """Whether there is no level inside."""
        return not any(isinstance(member, LevelGroup) for member in self.members)

    @property
    def words(self) -> str:
        """The tree in braces, `{first, {second, third}}`, many in a row as `m1 to m9`; or `flat`."""
        return "flat" if self.flat else self._braces()

    def _braces(self) -> str:
        parts: list[str] = []
        for single, run in groupby(self.members, key=lambda member: isinstance(member, str)):
            members = [member if isinstance(member, str) else member._braces() for member in run]
            parts += [f"{members[0]} to {members[-1]}"] if single and len(members) > 3 else members
        return "{" + ", ".join(parts) + "}"

    def with_ratios(self, ratios: Mapping[frozenset[str], int]) -> LevelGroup:
        """Return the same tree with other ratios, by the simulators in a group; those not named get 1."""
        members = tuple(m.with_ratios(ratios) if isinstance(m, LevelGroup) else m for m in self.members)
        return LevelGroup(members, ratios.get(frozenset(self.names()), 1))

    def ratios(self) -> dict[frozenset[str], int]:
        """Return the ratios of the groups inside, by the simulators in them."""
        return {frozenset(group.names()): group.ratio for group in self.groups()}


@dataclass(frozen=True)
class AlgorithmVariant:
    """An algorithm for all levels; what is None stays as it is."""

    words: str = "as it is"
    sequential: bool = False
    outputs: str | None = None
    extrapolation: Extrapolator | None = None
    sweeps: int | None = None
    """More than one: so many sweeps in each step of the outermost level."""


AS_IT_IS = AlgorithmVariant()


def explicit_variants(composite: Composite) -> Iterator[AlgorithmVariant]:
    """Yield the explicit algorithms that a composite could have instead of its own."""
    made: Any = explicit_orchestrator(composite)
    models = composite.scenario.models.values()
    fresh = "consistent"
    again = made.outputs == "stale" and all(model.capabilities.reevaluates for model in models)
    parallel = traits_of(made).schedule == "parallel"
    if again:
        yield AlgorithmVariant('outputs = "consistent"', outputs=fresh)
    if parallel:
        yield AlgorithmVariant('"gauss-seidel"', sequential=True)
        if again:
            yield AlgorithmVariant('"gauss-seidel", outputs = "consistent"', sequential=True, outputs=fresh)
    if isinstance(composite.extrapolation, Hold):
        line, words = Polynomial(1), 'extrapolation "linear"'
        yield AlgorithmVariant(words, extrapolation=line)
        if again:
            yield AlgorithmVariant(f'{words}, outputs = "consistent"', outputs=fresh, extrapolation=line)
        if parallel:
            yield AlgorithmVariant(f'"gauss-seidel", {words}', sequential=True, extrapolation=line)


def iterative_variants(composite: Composite) -> Iterator[AlgorithmVariant]:
    """Yield the ways that make every step again, where all simulators can roll back."""
    can_roll_back = all(model.capabilities.rollback for model in composite.scenario.models.values())
    if can_roll_back and not traits_of(composite.orchestrator).iterates:
        smooth = Polynomial(1) if isinstance(composite.extrapolation, Hold) else None
        words = 'two iterations, extrapolation "linear"' if smooth else "two iterations"
        yield AlgorithmVariant(words, extrapolation=smooth, sweeps=2)


def sweep_algorithm(level: Composite) -> Any:
    """Return the algorithm of one sweep of a level, whether it is iterated or not."""
    made: Any = level.orchestrator
    return made.inner if traits_of(made).iterates else made


def explicit_orchestrator(composite: Composite) -> Any:
    """Return the algorithm of one sweep; raises ScenarioError where that has steps of its own."""
    made = sweep_algorithm(composite)
    if traits_of(made).is_explicit:
        return made
    name = type(made).__name__
    why = "has steps of its own for some simulators, and levels would do the same again"
    if traits_of(made).adaptive:
        why = "chooses its steps as it runs, and levels are judged with steps that are known before"
    what = f"`{name}` {why}"
    expected = "`Jacobi`, `GaussSeidel`, or `Iterate` around one of them"
    raise ScenarioError(what, "orchestrator", expected, "--algorithm jacobi")


def build_hierarchy(
    composite: Composite,
    tree: LevelGroup,
    step: Fraction,
    way: AlgorithmVariant = AS_IT_IS,
    weights: Mapping[tuple[str, str], float] | None = None,
    reasons: Mapping[LevelGroup, str] | None = None,
) -> Composite:
    """Return the composite with a level for each group inside the tree; ports are made when it is opened.

    Every connection goes to the lowest level that has both of its ends, so that it is exchanged at that
    level's rate. `record` follows the simulators to where they are. `weights` tell how strongly each drives
    each: the order of a sequence is made by them.
    """
    scenario = composite.scenario
    builder = _HierarchyBuilder(composite, way, weights or {}, reasons or {}, _level_names(scenario, tree))
    made = composite.with_changes(
        scenario=scenario.with_models({name: scenario.models[name] for name in tree.names()}),
        step=step,
        extrapolation=way.extrapolation or composite.extrapolation,
    )
    for group, rate in reversed(list(tree.rates())):  # those inside first
        made = builder.gather(made, group, step / rate)
    return made.with_changes(orchestrator=builder.orchestrator(tree))


@dataclass(frozen=True, eq=False)
class _HierarchyBuilder:
    composite: Composite
    way: AlgorithmVariant
    weights: Mapping[tuple[str, str], float]
    reasons: Mapping[LevelGroup, str]
    names: Mapping[LevelGroup, str]

    def gather(self, level: Composite, group: LevelGroup, step: Fraction) -> Composite:
        """Return the level with one more inside it, for a group of its models."""
        name, why = self.names[group], Insertion(PASS, self.reasons.get(group, "they talk often"))
        members, algorithm = self.members(group), self.orchestrator(group)
        level = gather_models(level, level.scenario, members, name, algorithm, why)
        models: dict[str, Any] = dict(level.scenario.models)
        models[name] = models[name].with_changes(step=step)
        return level.with_scenario(level.scenario.with_models(models))

    def members(self, group: LevelGroup) -> tuple[str, ...]:
        """Return the names of the models of the level of a group."""
        return tuple(each if isinstance(each, str) else self.names[each] for each in group.members)

    def orchestrator(self, group: LevelGroup) -> Any:
        """Return the algorithm of the level of a group."""
        sweep, around = self._sweep(group, self.members(group)), self.composite.orchestrator
        if self.way.sweeps and len(list(group.names())) == len(self.composite.scenario.models):
            return Iterate(sweep, tolerance=None, at_most=self.way.sweeps, accelerate=None)
        return replace(around, inner=sweep) if traits_of(around).iterates else sweep  # type: ignore[type-var]

    def _sweep(self, group: LevelGroup, models: tuple[str, ...]) -> Jacobi | GaussSeidel:
        now = explicit_orchestrator(self.composite)
        modes: dict[str, Any] = {"outputs": self.way.outputs or now.outputs, "inputs": "clean"}
        order = traits_of(now).order
        if self.way.sequential:
            return GaussSeidel(self._order(group, models) if self.weights else "auto", **modes)
        return Jacobi(**modes) if order is None else GaussSeidel(_given_order(order, group, models), **modes)

    def _order(self, group: LevelGroup, models: tuple[str, ...]) -> list[str]:
        """Return the order in which the least that matters is handed on late."""
        place = group.places()
        top = max(self.weights.values()) or 1.0
        edges: dict[tuple[int, int], int] = {}
        for (source, target), weight in self.weights.items():
            edge = place.get(source, -1), place.get(target, -1)
            if -1 not in edge and edge[0] != edge[1]:
                edges[edge] = edges.get(edge, 0) + round(GRAIN * weight / top) + 1
        found = [
            each
            for part in strong_components(len(models), edges)
            for each in least_feedback_order(part, edges)
        ]
        return [models[number] for number in found]


def _given_order(order: Any, group: LevelGroup, models: tuple[str, ...]) -> Any:
    """Return an order that was given, for a level: a group comes where its first member came."""
    if order == "auto":
        return order
    ranks = {name: rank for rank, each in enumerate(order_groups(order)) for name in each}
    place = group.places()
    first = [min(ranks[name] for name, at in place.items() if at == number) for number in range(len(models))]
    found: dict[int, list[str]] = {}
    for model, rank in zip(models, first, strict=True):
        found.setdefault(rank, []).append(model)
    return [each[0] if len(each) == 1 else each for _, each in sorted(found.items())]


def _level_names(scenario: Scenario, tree: LevelGroup) -> dict[LevelGroup, str]:
    """Return a name for each level: its members if they are few, else its first and last one."""
    taken = {*scenario.models, *scenario.bonds, *scenario.input_names, *scenario.output_names}
    found: dict[LevelGroup, str] = {}
    for number, group in enumerate(tree.groups(), 1):
        members = list(group.names())
        name = "_".join(members) if len(members) <= 3 else f"{members[0]}_to_{members[-1]}"
        if len(name) > LONG:
            name = f"cluster_{number}"
        found[group] = free_name(name, taken)
        taken.add(found[group])
    return found


_PARTS = re.compile(r"[{}]|[^\s{},]+")


def parse_hierarchy(text: str, models: tuple[str, ...], where: str) -> LevelGroup:
    """Return the tree that a text describes; raises ScenarioError if it is none of these models."""
    if text == "flat":
        return LevelGroup(models)
    stack: list[list[str | LevelGroup]] = [[]]
    for part in _PARTS.findall(text):
        if part == "{":
            stack.append([])
        elif part == "}" and len(stack) > 1:
            group = LevelGroup(tuple(stack.pop()))
            stack[-1].append(group)
        elif part == "}":
            break
        else:
            stack[-1].append(part)
    outermost = stack[0][0] if len(stack) == 1 and len(stack[0]) == 1 else None
    if not isinstance(outermost, LevelGroup) or sorted(outermost.names()) != sorted(models):
        expected = f"`flat`, or all of {', '.join(models)} once, in braces: {{one, {{two, three}}}}"
        raise ScenarioError(f"`{text}` is not a hierarchy of the models", where, expected)
    return outermost
