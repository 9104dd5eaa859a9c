"""Ways to couple that are tried: the algorithm as it is, others, and what they mean for every level.

In:  a Composite, and how strongly simulators drive each other
Out: AlgorithmVariants in words, each able to say orchestrator and extrapolation of a level
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hocket.coupling.graph import least_feedback_order, strong_components
from hocket.errors import ScenarioError
from hocket.model.composite import Composite, traits_of
from hocket.model.extrapolators import Hold, Polynomial
from hocket.model.protocols import Extrapolator
from hocket.orchestrators import GaussSeidel, Iterate, Jacobi
from hocket.planning.compiler.sublevels import order_groups
from hocket.search.nest.hierarchy import LevelGroup

GRAIN = 10**6
"""What the largest weight counts in whole numbers."""


@dataclass(frozen=True)
class AlgorithmVariant:
    """An algorithm for all levels; what is None stays as it is."""

    words: str = "as it is"
    sequential: bool | None = None
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
        words = 'two sweeps, extrapolation "linear"' if smooth else "two sweeps"
        yield AlgorithmVariant(words, extrapolation=smooth, sweeps=2)


def explicit_orchestrator(composite: Composite) -> Any:
    """Return the algorithm of one sweep; raises ScenarioError where that has steps of its own."""
    made: Any = composite.orchestrator
    made = made.inner if traits_of(made).iterates else made
    if traits_of(made).is_explicit:
        return made
    name = type(made).__name__
    why = "has steps of its own for some simulators, and levels would do the same again"
    if traits_of(made).adaptive:
        why = "chooses its steps as it runs, and levels are judged with steps that are known before"
    what = f"`{name}` {why}"
    expected = "`Jacobi`, `GaussSeidel`, or `Iterate` around one of them"
    raise ScenarioError(what, "orchestrator", expected, "--algorithm jacobi")


@dataclass(frozen=True, eq=False)
class LevelAlgorithm:
    """What a way means for the levels of one composite; `weights` tell how strongly each drives each."""

    composite: Composite
    way: AlgorithmVariant
    weights: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def __call__(self, group: LevelGroup, models: tuple[str, ...]) -> dict[str, Any]:
        """Return orchestrator and extrapolation of the level of a group, whose models have these names."""
        outermost = len(list(group.names())) == len(self.composite.scenario.models)
        made = self._explicit(group, models)
        around: Any = self.composite.orchestrator
        orchestrator: Any = replace(around, inner=made) if traits_of(around).iterates else made
        if self.way.sweeps and outermost:
            orchestrator = Iterate(made, tolerance=None, at_most=self.way.sweeps, accelerate=None)
        smooth = self.way.extrapolation or self.composite.extrapolation
        return {"orchestrator": orchestrator, "extrapolation": smooth}

    def _explicit(self, group: LevelGroup, models: tuple[str, ...]) -> Jacobi | GaussSeidel:
        now = explicit_orchestrator(self.composite)
        modes: dict[str, Any] = {"outputs": self.way.outputs or now.outputs, "inputs": "clean"}
        order = traits_of(now).order
        own = order is not None and self.way.sequential is None
        if not own and not self.way.sequential:
            return Jacobi(**modes)
        if order is not None and own:
            return GaussSeidel(_given_order(order, group, models), **modes)
        return GaussSeidel(self._order(group, models) if self.weights else "auto", **modes)

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
