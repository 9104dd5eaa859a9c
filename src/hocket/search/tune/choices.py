"""The space to search when none is given: steps, algorithms, orders, extrapolations, what is exchanged.

In:  a Composite and how long it runs
Out: texts by name, as they are written in a file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from functools import partial
from math import factorial
from typing import Any

from hocket.analysis.stability_map import with_values
from hocket.errors import HocketError, ScenarioError
from hocket.model.composite import Composite, is_sampled, levels, traits_of
from hocket.model.protocols import Extrapolator, period_of
from hocket.orchestrators import Iterate
from hocket.search.nest.candidates import fits_own_step
from hocket.search.nest.hierarchy import LevelGroup, build_hierarchy
from hocket.search.tune.space import CHOICES, DesignVariable, Point, Space

TIMES = ("1/8", "1/5", "1/4", "2/5", "1/2", "4/5", "1", "5/4", "2", "5/2", "4", "5", "8")
"""Of the outermost step."""
PARTS = ("1/4", "1/2", "1", "2", "4")
"""Of the steps of levels inside."""
ORDERS = 24
"""Up to which all orders of a level are tried."""
BOTH = ("jacobi", "gauss-seidel")
SMOOTH = ("hold", "linear", "quadratic", "cubic")
SLOPED = ("hermite", "hermite2")
"""Where every simulator tells the slopes of its outputs."""


def default_space(composite: Composite, stop: Fraction | None) -> dict[str, str]:
    """Return a space for any scenario; steps divide the run, and the levels' divide those around them."""
    steps = [composite.step * Fraction(times) for times in TIMES]
    whole = [step for step in steps if stop is None or (stop / step).denominator == 1]
    fits = [step for step in whole if _fits(composite, step)]
    found = {"step": ", ".join(f"{each} s" for each in sorted({*fits, composite.step}))}
    for path, level in levels(composite, sampled=False):
        found |= {f"{path}{key}": text for key, text in _level_choices(level, not path)}
    return found


def _fits(composite: Composite, step: Fraction) -> bool:
    """Return whether what insists on a step of its own can keep it, and makes whole steps."""
    given = composite.scenario.models.values()
    return all(fits_own_step(model, step) for model in given if period_of(model) or is_sampled(model))


def _level_choices(level: Composite, outermost: bool) -> Iterator[tuple[str, str]]:
    models = level.scenario.models
    now: Any = level.orchestrator
    now = now.inner if traits_of(now).iterates else now
    if not traits_of(now).is_explicit:
        return
    if not outermost:
        yield "step", ", ".join(f"{level.step * Fraction(part)} s" for part in PARTS)
    if len(models) > 1:
        yield "algorithm", ", ".join(BOTH)
        if factorial(len(models)) <= ORDERS:
            yield "order", "all"
    if all(model.capabilities.reevaluates for model in models.values()):
        yield "outputs", "stale, consistent"
    if now.inputs == "delayed":
        yield "inputs", "clean, delayed"
    sloped = all(model.capabilities.slopes for model in models.values())
    if not any(each.extrapolation for each in level.scenario.connections):
        yield "extrapolation", ", ".join((*SMOOTH, *SLOPED) if sloped else SMOOTH)


def apply_choices(composite: Composite, values: Mapping[str, Any]) -> Composite:
    """Return the composite with these values; raises ScenarioError where they do not fit together.

    Algorithms come first, then their order and what is exchanged, then numbers; a nesting comes last, and
    `ratio` is the number of steps its levels make in one around them.
    """
    named = [(*name.rpartition(".")[::2], value) for name, value in values.items()]
    for last, change in _CHANGES.items():
        for path, word, value in named:
            if word == last:
                composite = _change_level(composite, path, partial(change, value))
    for path, word, value in named:
        if word == "extrapolation":
            composite = _with_extrapolation(composite, path, value)
    numbers = {name: value for name, value in values.items() if name.rpartition(".")[2] not in CHOICES}
    composite = with_values(composite, numbers, "tune") if numbers else composite
    for path, word, value in named:
        if word == "nesting" and not value.flat:
            ratio = values.get(f"{path}.ratio" if path else "ratio", 1)
            composite = _change_level(composite, path, partial(_with_nesting, value, ratio))
    return composite


def _change_level(composite: Composite, path: str, change: Callable[[Composite], Composite]) -> Composite:
    """Return the composite with one of its levels changed."""
    if not path:
        return change(composite)
    name, _, rest = path.partition(".")
    inner: Any = composite.scenario.models[name]
    models = {**composite.scenario.models, name: _change_level(inner, rest, change)}
    return composite.with_scenario(composite.scenario.with_models(models))


def _change_sweep(level: Composite, change: Callable[[Any], Any]) -> Composite:
    """Return the level with the algorithm of one sweep changed; an iteration around it stays."""
    now: Any = level.orchestrator
    made = replace(now, inner=change(now.inner)) if traits_of(now).iterates else change(now)
    return level.with_changes(orchestrator=made)


def _with_algorithm(made: Any, level: Composite) -> Composite:
    now: Any = level.orchestrator
    now = now.inner if traits_of(now).iterates else now
    modes = {"outputs": traits_of(now).outputs, "inputs": traits_of(now).inputs}
    modes = {key: mode for key, mode in modes.items() if mode is not None and _has_argument(made, key)}
    return level.with_changes(orchestrator=replace(made, **modes) if traits_of(made).inner is None else made)


def _has_argument(orchestrator: Any, key: str) -> bool:
    """Return whether an algorithm can be made with such an argument."""
    return any(field.name == key for field in fields(orchestrator))


def _with_order(order: tuple[str, ...], level: Composite) -> Composite:
    """Return the level in another order; an algorithm without one has none to change."""
    return _change_sweep(
        level, lambda now: now if traits_of(now).order is None else replace(now, order=order)
    )


def _mode_change(key: str) -> Callable[[Any, Composite], Composite]:
    """Return what changes a mode of an algorithm: its `outputs`, or its `inputs`."""

    def change(now: Any, mode: str) -> Any:
        if not _has_argument(now, key):
            what = f"`{type(now).__name__}` has no `{key}`"
            raise ScenarioError(what, f"tune.{key}", "another algorithm")
        return replace(now, **{key: mode})

    return lambda mode, level: _change_sweep(level, lambda now: change(now, mode))


def _with_sweeps(count: int, level: Composite) -> Composite:
    now: Any = level.orchestrator
    inner = now.inner if traits_of(now).iterates else now
    made = Iterate(inner, tolerance=None, at_most=count, accelerate=None) if count > 1 else inner
    return level.with_changes(orchestrator=made)


_CHANGES: dict[str, Callable[[Any, Composite], Composite]] = {
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


def _with_nesting(tree: LevelGroup, ratio: int, level: Composite) -> Composite:
    ratios = {frozenset(group.names()): ratio for group in tree.groups()}
    return build_hierarchy(level, tree.with_ratios(ratios), level.step)


def near_now(composite: Composite, space: Space, most: int = 2) -> list[Point]:
    """Return the point of now and those that differ from it in one value, the nearest values first.

    What now has no value for starts in the middle.
    """
    places = [_place(composite, variable) for variable in space.variables]
    sizes = [len(each) for each in space.variables]
    middle = tuple(size // 2 if place is None else place for place, size in zip(places, sizes, strict=True))
    found = [middle]
    for far in range(1, max(sizes)):
        for number, size in enumerate(sizes):
            for k in (middle[number] + far, middle[number] - far):
                if 0 <= k < size and far <= (most if size > 2 * most else size):
                    found.append((*middle[:number], k, *middle[number + 1 :]))
    return list(dict.fromkeys(space.canonical_point(point) for point in found))


def _place(composite: Composite, variable: DesignVariable) -> int | None:
    """Return the number of the value that the composite has."""
    for number, value in enumerate(variable.values):
        try:
            if apply_choices(composite, {variable.name: value}) == composite:
                return number
        except HocketError:
            continue
    return None
