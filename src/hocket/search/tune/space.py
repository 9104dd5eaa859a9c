"""What may be chosen: for every name a list of values, all their combinations, and the composite with each.

In:  names and texts: `step = 1 ms:10 ms:20:log`, `order = all`, `two.F.extrapolation = hold, linear`; or
     a Composite, and how long it runs, for a space that suits it
Out: a Space: variables with their values, and its points by number; the Composite with the values of a point
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from typing import Any, TypeAlias

import numpy as np

from hocket.analysis.stability_map import is_step, with_values
from hocket.coupling.wiring import wire_unchecked
from hocket.errors import Fault, HocketError, ScenarioError, suggest_nearest
from hocket.model import registry
from hocket.model.clock import seconds
from hocket.model.composite import Composite, is_sampled, levels, traits_of
from hocket.model.extrapolators import Hermite
from hocket.model.protocols import Extrapolator, period_of
from hocket.orchestrators import Iterate
from hocket.orchestrators.gauss_seidel import best_order
from hocket.planning.parameters import change_extrapolation, change_level
from hocket.search.nest.candidates import fits_own_step
from hocket.search.nest.hierarchy import LevelGroup, build_hierarchy, parse_hierarchy, sweep_algorithm
from hocket.search.tune.numbered_orders import MOST, NumberedOrders, OrderWords

Point: TypeAlias = tuple[int, ...]
"""The number of the value of each variable."""

CHOICES = ("algorithm", "order", "outputs", "inputs", "sweeps", "extrapolation", "nesting", "ratio")
"""The last word of names whose values are not numbers of the scenario."""
MODES = {"outputs": ("stale", "consistent"), "inputs": ("clean", "delayed")}
VALUES = 1_000_000
"""Of one name, at the most."""
MANY = 7
"""Models of a level beyond which orders are numbered, and not listed."""


@dataclass(frozen=True)
class DesignVariable:
    """A name and its values, with how each is written."""

    name: str
    values: Sequence[Any]
    words: Sequence[str]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Space:
    """All combinations of the values of some variables."""

    variables: tuple[DesignVariable, ...]

    @property
    def size(self) -> int:
        """How many points there are."""
        return math.prod(len(each) for each in self.variables)

    def points(self) -> Iterator[Point]:
        """Yield every point; the last variable runs first."""
        return product(*(range(len(each)) for each in self.variables))

    def canonical_point(self, point: Point) -> Point:
        """Return the same coupling as a point that has the first value wherever a value says nothing.

        An order says nothing without a sequence, nor does a ratio without levels.
        """
        values = self.values(point)
        return tuple(
            0 if _idle(each.name, values) else k for each, k in zip(self.variables, point, strict=True)
        )

    def values(self, point: Point) -> dict[str, Any]:
        """Return the values of a point, by name."""
        return {each.name: each.values[k] for each, k in zip(self.variables, point, strict=True)}

    def words(self, point: Point) -> dict[str, str]:
        """Return the values of a point as they are written."""
        return {each.name: each.words[k] for each, k in zip(self.variables, point, strict=True)}


def _idle(name: str, values: Mapping[str, Any]) -> bool:
    path, _, last = name.rpartition(".")
    before = f"{path}." if path else ""
    if last == "order":
        return traits_of(values.get(f"{before}algorithm")).schedule == "parallel"
    if last == "ratio":
        tree = values.get(f"{before}nesting")
        return tree is not None and bool(tree.flat)
    return False


def parse_space(composite: Composite, written_as: Mapping[str, str], rotations: bool = True) -> Space:
    """Return the space that texts describe; raises ScenarioError with every fault.

    Without `rotations`, of orders that are rotations of each other only one is kept: with holds they have the
    same radius (theory, section 1).
    """
    variables: list[DesignVariable] = []
    faults: list[Fault] = []
    for name, text in written_as.items():
        try:
            variables.append(_variable(composite, name, text, rotations))
        except ScenarioError as error:
            faults += error.faults
    if faults:
        raise ScenarioError(faults)
    if not variables:
        raise ScenarioError("there is nothing to choose", "tune", 'such as step = "1 ms:10 ms:20:log"')
    return Space(tuple(variables))


def _variable(composite: Composite, name: str, text: str, rotations: bool) -> DesignVariable:
    where = f"tune.{name}"
    path, _, last = name.rpartition(".")
    if last in CHOICES:
        if last == "extrapolation":
            known = {**registry.words("extrapolators"), "hermite2": Hermite(2)}
            return _words(name, _split_list(text), known, where)
        level = _level(composite, path, where)
        if last == "algorithm":
            return _words(name, _split_list(text), registry.words("orchestrators"), where)
        if last in MODES:
            return _words(name, _split_list(text), {mode: mode for mode in MODES[last]}, where)
        if last == "order":
            return _orders(name, text, tuple(level.scenario.models), rotations, where)
        if last == "nesting":
            return _nestings(name, text, tuple(level.scenario.models), where)
        numbers = _numbers(text, where)
        if any(value != round(value) or value < 1 for value in numbers):
            raise ScenarioError(f"`{text}` are not counts", where, "whole numbers from 1 on")
        return DesignVariable(
            name, tuple(int(value) for value in numbers), tuple(f"{value:g}" for value in numbers)
        )
    durations = is_step(composite, name)
    values = _numbers(text, where, durations)
    if durations and min(values) <= 0.0:
        raise ScenarioError(f"a step of {min(values):g} s is none", where, "steps above zero")
    with_values(composite, {name: values[0]}, where)  # raises if there is no such name
    unit = " s" if durations else ""
    return DesignVariable(name, tuple(values), tuple(f"{value:.6g}{unit}" for value in values))


def _level(composite: Composite, path: str, where: str) -> Composite:
    known = {prefix[:-1]: level for prefix, level in levels(composite)}
    if path not in known:
        others = [name for name in known if name]
        hint = suggest_nearest(path, others) or "the outermost level has no name, and there is no other"
        raise ScenarioError(f"there is no level `{path}`", where, "the path of a level", hint)
    return known[path]


def _split_list(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _words(name: str, words: Sequence[str], known: Mapping[str, Any], where: str) -> DesignVariable:
    wrong = [
        Fault(f"there is no `{word}`", where, "", suggest_nearest(word, known))
        for word in words
        if word not in known
    ]
    if wrong or not words:
        raise ScenarioError(wrong or [Fault("no value is given", where, ", ".join(known))])
    once = tuple(dict.fromkeys(words))
    return DesignVariable(name, tuple(known[word] for word in once), once)


def _numbers(text: str, where: str, durations: bool = False) -> list[float]:
    """Return numbers from `low:high:count`, `low:high:count:log`, or a list with commas; each once."""

    def number(each: str) -> float:
        return float(seconds(each.strip())) if durations else float(each)

    try:
        if ":" not in text:
            made = [number(each) for each in _split_list(text)]
        else:
            low, high, count, *rest = text.split(":")
            if rest not in ([], ["log"]):
                raise ValueError
            if not 1 <= int(count) <= VALUES:
                raise ScenarioError(f"`{text}` has {int(count):,} values", where, f"1 to {VALUES:,} values")
            spread = np.geomspace if rest else np.linspace
            ends = number(low), number(high), int(count)
            made = [float(f"{value:.6g}") for value in spread(*ends)]  # as they are told, and written
        if not np.isfinite(made).all():
            raise ValueError
    except (ValueError, ZeroDivisionError):
        expected = "numbers with commas, or low:high:count, or low:high:count:log"
        raise ScenarioError(f"`{text}` cannot be read", where, expected) from None
    if not made:
        raise ScenarioError("no value is given", where, "numbers with commas, or low:high:count")
    return list(dict.fromkeys(made))


def _orders(name: str, text: str, models: tuple[str, ...], rotations: bool, where: str) -> DesignVariable:
    """Return orders: all of them, or those given with a blank between names and commas between orders."""
    if text.strip() != "all":
        found = [tuple(each.split()) for each in _split_list(text)]
        if not found:
            raise ScenarioError("no order is given", where, "`all`, or the names of models with blanks")
        for order in found:
            if sorted(order) != sorted(models):
                expected = f"an order of {' '.join(models)}, or `all`"
                raise ScenarioError(f"`{' '.join(order)}` is not an order of the models", where, expected)
    elif len(models) > MOST:
        what = f"{len(models)} models have {math.factorial(len(models)):,} orders"
        raise ScenarioError(what, where, f"at most {MOST} models, or the orders themselves")
    elif len(models) > MANY:
        orders = NumberedOrders(models, 0 if rotations else 1)
        return DesignVariable(name, orders, OrderWords(orders))
    else:
        found = list(permutations(models))
        if not rotations:
            found = [order for order in found if order[0] == models[0]]
    return DesignVariable(name, tuple(found), tuple(" ".join(order) for order in found))


def _split_braced(text: str) -> list[str]:
    """Return texts between commas that are in no braces."""
    found, depth = [""], 0
    for sign in text:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return [each.strip() for each in found if each.strip()]


def _nestings(name: str, text: str, models: tuple[str, ...], where: str) -> DesignVariable:
    trees = [parse_hierarchy(each, models, where) for each in _split_braced(text)]
    if not trees:
        raise ScenarioError("no nesting is given", where, "`flat`, {one, {two, three}}, with commas between")
    return DesignVariable(name, tuple(trees), tuple(tree.words for tree in trees))


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
    now = sweep_algorithm(level)
    if not traits_of(now).is_explicit:
        return
    if not outermost:
        yield "step", ", ".join(f"{level.step * Fraction(part)} s" for part in PARTS)
    if len(models) > 1:
        yield "algorithm", ", ".join(BOTH)
        if math.factorial(len(models)) <= ORDERS:
            yield "order", "all"
    if all(model.capabilities.reevaluates for model in models.values()):
        yield "outputs", "stale, consistent"
    if now.inputs == "delayed":
        yield "inputs", "clean, delayed"
    sloped = all(model.capabilities.all_slopes for model in models.values())
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
                composite = change_level(composite, path, partial(change, value))
    for path, word, value in named:
        if word == "extrapolation":
            composite = _with_extrapolation(composite, path, value)
    numbers = {name: value for name, value in values.items() if name.rpartition(".")[2] not in CHOICES}
    composite = with_values(composite, numbers, "tune") if numbers else composite
    for path, word, value in named:
        if word == "nesting" and not value.flat:
            ratio = values.get(f"{path}.ratio" if path else "ratio", 1)
            composite = change_level(composite, path, partial(_with_nesting, value, ratio))
    return composite


def _change_sweep(level: Composite, change: Callable[[Any], Any]) -> Composite:
    """Return the level with the algorithm of one sweep changed; an iteration around it stays."""
    now: Any = level.orchestrator
    made = replace(now, inner=change(now.inner)) if traits_of(now).iterates else change(now)
    return level.with_changes(orchestrator=made)


def _with_algorithm(made: Any, level: Composite) -> Composite:
    now = sweep_algorithm(level)
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
    inner = sweep_algorithm(level)
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
    found = change_extrapolation(composite, path, lambda _: made)
    if found is None:
        what, expected = f"nothing drives `{path}`", "a level, or a driven input"
        raise ScenarioError(what, f"tune.{path}.extrapolation", expected)
    return found


def _with_nesting(tree: LevelGroup, ratio: int, level: Composite) -> Composite:
    ratios = {frozenset(group.names()): ratio for group in tree.groups()}
    return build_hierarchy(level, tree.with_ratios(ratios), level.step)


def near_now(composite: Composite, space: Space, most: int = 2) -> list[Point]:
    """Return the point of now and those that differ from it in one value, the nearest values first.

    What now has no value for starts in the middle.
    """
    places = [_place(composite, variable) for variable in space.variables]
    numbered = {
        number: _near_orders(variable.values, places[number])
        for number, variable in enumerate(space.variables)
        if isinstance(variable.values, NumberedOrders)
    }
    places = [numbered[number][0] if number in numbered else place for number, place in enumerate(places)]
    sizes = [len(each) for each in space.variables]
    middle = tuple(size // 2 if place is None else place for place, size in zip(places, sizes, strict=True))
    found = [middle]
    for number, others in numbered.items():
        found += [(*middle[:number], k, *middle[number + 1 :]) for k in others[1:]]
    listed = [(number, size) for number, size in enumerate(sizes) if number not in numbered]
    for far in range(1, max((size for _, size in listed), default=1)):
        for number, size in listed:
            for k in (middle[number] + far, middle[number] - far):
                if 0 <= k < size and far <= (most if size > 2 * most else size):
                    found.append((*middle[:number], k, *middle[number + 1 :]))
    return list(dict.fromkeys(space.canonical_point(point) for point in found))


def _near_orders(orders: NumberedOrders, place: int | None) -> list[int]:
    """Return the number of an order, and of those with two neighbours exchanged."""
    order = list(orders[place or 0])
    found = [orders.number(order)]
    for k in range(len(order) - 1):
        order[k], order[k + 1] = order[k + 1], order[k]
        found.append(orders.number(order))
        order[k], order[k + 1] = order[k + 1], order[k]
    return list(dict.fromkeys(found))


def _order_now(composite: Composite, variable: DesignVariable) -> int:
    """Return the number of the order of a level: that of now, else the one with the fewest delays."""
    path = variable.name.rpartition(".")[0]
    level = _level(composite, path, variable.name)
    order = traits_of(sweep_algorithm(level)).order
    if order is None or order == "auto":
        order = tuple(best_order(wire_unchecked(level.scenario)))
    flat = [name for group in order for name in ((group,) if isinstance(group, str) else group)]
    number: int = variable.values.number(flat)  # type: ignore[attr-defined]
    return number


def _place(composite: Composite, variable: DesignVariable) -> int | None:
    """Return the number of the value that the composite has."""
    if isinstance(variable.values, NumberedOrders):
        return _order_now(composite, variable)
    for number, value in enumerate(variable.values):
        try:
            if apply_choices(composite, {variable.name: value}) == composite:
                return number
        except HocketError:
            continue
    return None
