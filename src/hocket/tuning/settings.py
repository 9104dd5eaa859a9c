"""A composite with other choices: algorithm, order, extrapolations, numbers, nesting.

In:  a Composite and values by name, as in a Space
Out: the Composite that they describe
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hocket.analysis.varied import with_values
from hocket.engine.composite import Composite
from hocket.errors import ScenarioError
from hocket.model import Extrapolator
from hocket.nesting.hierarchy import LevelGroup, build_hierarchy
from hocket.nesting.ways import AS_IT_IS, LevelAlgorithm
from hocket.orchestrators import GaussSeidel, Iterate
from hocket.tuning.space import CHOICES


def apply_choices(composite: Composite, values: Mapping[str, Any]) -> Composite:
    """Return the composite with these values; raises ScenarioError where they do not fit together.

    Algorithms come first, then their order and what is exchanged, then numbers; a nesting comes last, and
    `ratio` is the number of steps its levels make in one around them.
    """
    for last, change in _CHANGES.items():
        for name, value in values.items():
            path, _, word = name.rpartition(".")
            if word == last:
                composite = _change_level(composite, path, lambda level: change(level, value))  # noqa: B023
    for name, value in values.items():
        if name.rpartition(".")[2] == "extrapolation":
            composite = _with_extrapolation(composite, name.rpartition(".")[0], value)
    numbers = {name: value for name, value in values.items() if name.rpartition(".")[2] not in CHOICES}
    composite = with_values(composite, numbers, "tune") if numbers else composite
    for name, value in values.items():
        path, _, word = name.rpartition(".")
        if word == "nesting" and not value.flat:
            ratio = values.get(f"{path}.ratio" if path else "ratio", 1)
            composite = _change_level(composite, path, lambda level: _with_nesting(level, value, ratio))  # noqa: B023
    return composite


def _change_level(composite: Composite, path: str, change: Callable[[Composite], Composite]) -> Composite:
    """Return the composite with one of its levels changed."""
    if not path:
        return change(composite)
    name, _, rest = path.partition(".")
    inner: Any = composite.scenario.models[name]
    models = {**composite.scenario.models, name: _change_level(inner, rest, change)}
    return composite.with_scenario(composite.scenario.with_models(models))


def _with_algorithm(level: Composite, made: Any) -> Composite:
    now: Any = level.orchestrator
    now = now.inner if isinstance(now, Iterate) else now
    modes = {
        key: getattr(now, key) for key in ("outputs", "inputs") if hasattr(now, key) and hasattr(made, key)
    }
    return level.with_changes(orchestrator=replace(made, **modes) if not hasattr(made, "inner") else made)


def _with_order(level: Composite, order: tuple[str, ...]) -> Composite:
    """Return the level in another order; an algorithm without one has none to change."""
    now: Any = level.orchestrator
    if isinstance(now, Iterate):
        inner: Any = now.inner
        return (
            level.with_changes(orchestrator=replace(now, inner=replace(inner, order=order)))
            if isinstance(inner, GaussSeidel)
            else level
        )
    return (
        level.with_changes(orchestrator=replace(now, order=order)) if isinstance(now, GaussSeidel) else level
    )


def _mode_change(key: str) -> Callable[[Composite, Any], Composite]:
    """Return what changes a mode of an algorithm: its `outputs`, or its `inputs`."""

    def change(level: Composite, mode: str) -> Composite:
        now: Any = level.orchestrator
        inner: Any = now.inner if isinstance(now, Iterate) else now
        if not hasattr(inner, key):
            raise ScenarioError(
                f"`{type(inner).__name__}` has no `{key}`", f"tune.{key}", "another algorithm"
            )
        made = replace(inner, **{key: mode})
        return level.with_changes(orchestrator=replace(now, inner=made) if isinstance(now, Iterate) else made)

    return change


def _with_sweeps(level: Composite, count: int) -> Composite:
    now: Any = level.orchestrator
    inner = now.inner if isinstance(now, Iterate) else now
    made = Iterate(inner, tolerance=None, at_most=count, accelerate=None) if count > 1 else inner
    return level.with_changes(orchestrator=made)


_CHANGES: dict[str, Callable[[Composite, Any], Composite]] = {
    "algorithm": _with_algorithm,
    "order": _with_order,
    "outputs": _mode_change("outputs"),
    "inputs": _mode_change("inputs"),
    "sweeps": _with_sweeps,
}


def _with_extrapolation(composite: Composite, path: str, made: Extrapolator) -> Composite:
    """Return the composite with another extrapolation of a level, or of what drives an input."""
    if not path:
        return composite.with_changes(extrapolation=made)
    scenario = composite.scenario
    if any(each.target == path for each in scenario.connections):
        connections = [
            replace(each, extrapolation=made) if each.target == path else each
            for each in scenario.connections
        ]
        return composite.with_scenario(scenario.with_changes(connections=connections))
    name, _, rest = path.partition(".")
    inner: Any = scenario.models.get(name)
    if not isinstance(inner, Composite):
        raise ScenarioError(
            f"nothing drives `{path}`", f"tune.{path}.extrapolation", "a level, or a driven input"
        )
    models = {**scenario.models, name: _with_extrapolation(inner, rest, made)}
    return composite.with_scenario(scenario.with_models(models))


def _with_nesting(level: Composite, tree: LevelGroup, ratio: int) -> Composite:
    ratios = {frozenset(group.names()): ratio for group in tree.groups()}
    return build_hierarchy(level, tree.with_ratios(ratios), level.step, LevelAlgorithm(level, AS_IT_IS))
