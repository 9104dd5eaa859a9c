"""The parameters of the models in a scenario, set by path: `spring.k` is the variable k of the model spring.

In:  a Composite; names and values
Out: the same Composite with other parameters; or every name and value that does not fit
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache, partial
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from hocket.errors import Fault, Place, ScenarioError, collect_faults, raise_faults, suggest_nearest
from hocket.model import registry
from hocket.model.clock import Duration, seconds
from hocket.model.composite import Composite
from hocket.model.protocols import (
    CheckableModel,
    Extrapolator,
    IntegratedModel,
    Model,
    RemadeModel,
    has_parameters,
    method_of,
    provides,
    recipe_of,
    step_of,
)
from hocket.simulators.fmu.variables import array_of
from hocket.simulators.methods import ORDERS
from hocket.simulators.ode import Ode
from hocket.simulators.state_space import StateSpace
from hocket.simulators.wrappers.emulation import is_emulation
from hocket.simulators.wrappers.timed import Timed

if TYPE_CHECKING:
    from hocket.simulators.fmu.recipe import Fmu

FINE = 10**12
"""The largest denominator of a step in seconds."""


def with_step(composite: Composite, step: Duration) -> Composite:
    """Return the composite with another outermost step; the levels inside keep their ratios to it.

    Simulators with steps of their own keep them, or the next shorter ones that divide the level's step.
    """
    return scale_steps(composite, seconds(step).limit_denominator(FINE) / composite.step)


def scale_steps(composite: Composite, factor: Fraction, own: bool = False) -> Composite:
    """Return the composite with all steps of levels times a factor; with `own`, fixed micro steps too.

    A sampled level keeps its step: that is what it is. So do solvers that choose their own steps, and FMUs.
    """
    step = composite.step * factor
    models = {
        name: _scale_model_steps(model, factor, step, own)
        for name, model in composite.scenario.models.items()
    }
    return composite.with_changes(
        scenario=composite.scenario.with_models(models), step=step, inherits_step=composite.inherits_step
    )


def _scale_model_steps(model: Model, factor: Fraction, level: Fraction, own: bool) -> Model:
    if isinstance(model, Composite):
        return model if model.sampled else scale_steps(model, factor, own)
    step = step_of(model)
    if step is None or not makes_fixed_steps(model):
        return model
    shorter: Any = {"step": step * factor if own else level / (level / step).__ceil__()}
    if not isinstance(model, Ode):
        return replace(cast("Any", model), **shorter)  # type: ignore[no-any-return]
    made = copy.copy(model)
    object.__setattr__(made, "step", shorter["step"])
    return made


def makes_fixed_steps(model: object) -> bool:
    """Return whether hocket integrates a model by a method whose micro steps are those of its `step`."""
    return provides(model, IntegratedModel) and method_of(model) in ORDERS


def change_levels(composite: Composite, change: Callable[[Composite], Composite]) -> Composite:
    """Return the composite with a change made to every level, those inside first."""
    models = {
        name: change_levels(model, change) if isinstance(model, Composite) else model
        for name, model in composite.scenario.models.items()
    }
    return change(composite.with_scenario(composite.scenario.with_models(models)))


def change_level(composite: Composite, path: str, change: Callable[[Composite], Composite]) -> Composite:
    """Return the composite with one of its levels changed; the outermost has no path."""
    if not path:
        return change(composite)
    name, _, rest = path.partition(".")
    inner: Any = composite.scenario.models[name]
    models = {**composite.scenario.models, name: change_level(inner, rest, change)}
    return composite.with_scenario(composite.scenario.with_models(models))


def change_extrapolation(
    composite: Composite, path: str, change: Callable[[Extrapolator], Extrapolator]
) -> Composite | None:
    """Return the composite with another extrapolation of a level, or of what drives an input.

    None: the path is neither that of a level nor that of a driven input.
    """
    if not path:
        return composite.with_changes(extrapolation=change(composite.extrapolation))
    scenario = composite.scenario
    if any(each.target == path for each in scenario.connections):
        connections = [
            replace(each, extrapolation=change(each.extrapolation or composite.extrapolation))
            if each.target == path
            else each
            for each in scenario.connections
        ]
        return composite.with_scenario(scenario.with_changes(connections=connections))
    name, _, rest = path.partition(".")
    inner = scenario.models.get(name)
    found = change_extrapolation(inner, rest, change) if isinstance(inner, Composite) else None
    if found is None:
        return None
    return composite.with_scenario(scenario.with_models({**scenario.models, name: found}))


def with_cold_starts(composite: Composite) -> Composite:
    """Return the composite with cold starts at all levels: its steps are the same, and it starts sooner."""
    return change_levels(composite, lambda level: level.with_changes(start="cold"))


_ELEMENT = re.compile(r"(?P<name>\w+)\[(?P<place>\d+)\]")
_ENTRY = re.compile(r"(?P<matrix>[ABCD])\[(?P<row>\d+), *(?P<column>\d+)\]")
_START = re.compile(r"x0\[(?P<place>\d+)\]")


def walk_models(composite: Composite, inside: str = "") -> Iterator[tuple[str, Model]]:
    """Yield all models, at any depth, each with its path, and each level before what is in it."""
    for name, model in composite.scenario.models.items():
        yield f"{inside}{name}", model
        if isinstance(model, Composite):
            yield from walk_models(model, f"{inside}{name}.")


def leaves(composite: Composite, inside: str = "") -> Iterator[tuple[str, Model]]:
    """Yield the models that are not levels, at any depth, each with its path."""
    return (each for each in walk_models(composite, inside) if not isinstance(each[1], Composite))


def with_leaves(composite: Composite, changed: Mapping[str, Model], inside: str = "") -> Composite:
    """Return the composite with other models at some paths."""
    if not changed:
        return composite
    models = {
        name: with_leaves(model, changed, f"{inside}{name}.")
        if isinstance(model, Composite)
        else changed.get(f"{inside}{name}", model)
        for name, model in composite.scenario.models.items()
    }
    return composite.with_scenario(composite.scenario.with_models(models))


def split_parameter_path(composite: Composite, path: str, where: str = "") -> tuple[str, str]:
    """Return the path of a model and the name inside it; where there is one model only, it need not be named.

    Names of variables may have dots of their own: the model is as deep as there are levels.
    """
    models = dict(leaves(composite))
    if len(models) == 1:
        ((only, model),) = models.items()
        if has_variable(model, path) or not path.startswith(f"{only}."):
            return only, path
    for model_path in models:
        if path.startswith(f"{model_path}."):
            return model_path, path[len(model_path) + 1 :]
    owner, _, rest = path.partition(".")
    expected = f"a path such as `{next(iter(models))}.name`"
    if not rest:
        hint = suggest_nearest(path, models)
        raise ScenarioError(f"`{path}` does not name a model", where, expected, hint)
    known = owner in composite.scenario.models
    what = f"`{path}` does not lead to a model" if known else f"there is no model `{owner}`"
    raise ScenarioError(what, where, expected, suggest_nearest(path.rpartition(".")[0], models))


def has_variable(model: Model, name: str) -> bool:
    """Return whether an FMU has a variable of that name, or an array it is an element of."""
    return is_fmu(model) and not {name, array_of(name)}.isdisjoint(model.description.by_name)


def is_fmu(model: object) -> TypeGuard[Fmu]:
    """Return whether a model is an FMU, without importing what only FMUs need."""
    cls: type = type(model)
    return _is_fmu_class(cls)


@cache
def _is_fmu_class(cls: type) -> bool:
    meant = registry.OWN["simulators"]["fmu"]
    return any(f"{each.__module__}:{each.__qualname__}" == meant for each in cls.__mro__)


def with_parameters(composite: Composite, values: Mapping[str, Any], where: str = "parameters") -> Composite:
    """Return the composite with these parameters; raises ScenarioError with everything that is wrong.

    `step` is the outermost macro step, with those of levels inside in proportion; `axle.step` is that of a
    level inside.
    """
    grouped: dict[str, dict[str, Any]] = {}
    faults: list[Fault] = []
    steps: dict[str, Fraction] = {}
    for path, value in values.items():
        if is_level_step(composite, path):
            with collect_faults(faults):
                steps[path.rpartition(".")[0]] = _macro_step(value, path, where)
            continue
        with collect_faults(faults):
            owner, name = split_parameter_path(composite, path, where)
            grouped.setdefault(owner, {})[name] = value
    models = dict(leaves(composite))
    changed: dict[str, Model] = {}
    for owner, own in grouped.items():
        try:
            changed[owner] = _with_model_parameters(models[owner], own, owner)
        except ScenarioError as error:
            faults += [replace(fault, place=Place.of(f"{where}, `{owner}`")) for fault in error.faults]
    raise_faults(faults)
    composite = with_leaves(composite, changed)
    if "" in steps:
        composite = with_step(composite, steps.pop(""))
    for path, step in steps.items():
        composite = change_level(composite, path, partial(_with_own_step, step))
    return composite


def _with_own_step(step: Fraction, level: Composite) -> Composite:
    return level.with_changes(step=step)


def is_level_step(composite: Composite, path: str) -> bool:
    """Return whether a path is the step of a level, and not the variable of the only model there is."""
    level, _, name = path.rpartition(".")
    if name != "step":
        return False
    if level:
        return any(each == level and isinstance(model, Composite) for each, model in walk_models(composite))
    models = list(leaves(composite))
    return len(models) != 1 or not has_variable(models[0][1], path)


def _macro_step(value: Any, path: str, where: str) -> Fraction:
    """Return a macro step in seconds, from a number or a text such as `10 ms`."""
    try:
        step = seconds(value).limit_denominator(FINE)
    except (ValueError, TypeError, ZeroDivisionError, ArithmeticError, AttributeError):
        step = Fraction(0)
    if step <= 0:
        raise ScenarioError(f"`{path}` cannot be {value!s:.40}", where, "seconds above 0, or as `10 ms`")
    return step


def _with_model_parameters(model: Model, values: Mapping[str, Any], path: str) -> Model:
    """Return a model with other parameters."""
    if is_emulation(model) or isinstance(model, Timed):
        wrapper: Any = model
        return replace(wrapper, model=_with_model_parameters(wrapper.model, values, path))  # type: ignore[no-any-return]
    if is_fmu(model):
        from hocket.simulators.fmu.recipe import remake_fmu

        return remake_fmu(model, values)
    if has_parameters(model):
        made: Any = copy.copy(model)
        object.__setattr__(made, "values", tuple(sorted({**made.parameters, **values}.items())))
        if provides(made, CheckableModel):  # which looks at the parameters, as loading a class does
            made.check()
        else:
            _ = made.inputs
        return made  # type: ignore[no-any-return]
    if isinstance(model, StateSpace):
        return _with_linear_parameters(model, values, path)
    if provides(model, RemadeModel):
        return model.remake(
            _changed_arguments(model.arguments, values, f"`{path}`, a {type(model).__name__},")
        )
    known = _fields(model)
    wrong = [name for name in values if name not in known]
    if wrong:
        what = f"`{path}`, a {type(model).__name__}, has no parameter `{wrong[0]}`"
        expected = "" if known else "an FMU, a Python class or an Ode: they have parameters"
        raise ScenarioError(what, "", expected, suggest_nearest(wrong[0], known))
    changed: Model = replace(cast("Any", model), **values)
    return changed


def _with_linear_parameters(model: StateSpace, values: Mapping[str, Any], path: str) -> Model:
    """Return a linear model with other parameters of what made it, or other entries of its matrices."""
    entries = {
        name: value for name, value in values.items() if _ENTRY.fullmatch(name) or _START.fullmatch(name)
    }
    others = {name: value for name, value in values.items() if name not in entries}
    recipe = recipe_of(model)
    if recipe is None:
        entries = dict(values)
    elif others:
        made = recipe.make(**_changed_arguments(recipe.arguments, others, f"`{path}`"))
        if not entries:
            return made
        if not isinstance(made, StateSpace):
            what = f"`{path}` has no matrices with these parameters: {', '.join(others)}"
            raise ScenarioError(what, "", "parameters, or entries of matrices")
        model = made
    for name, value in entries.items():
        model = _with_matrix_entry(model, path, name, value)
    return model


def _changed_arguments(known: Mapping[str, Any], values: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return arguments of which some are others; one of a list is named `denominator[2]`, from one."""
    found = dict(known)
    for name, value in values.items():
        element = _ELEMENT.fullmatch(name)
        if name in known:
            found[name] = value
        elif element and isinstance(found.get(element["name"]), (list, tuple)):
            given, place = list(found[element["name"]]), int(element["place"])
            if not 1 <= place <= len(given):
                what = f"{title}: `{element['name']}` has no element [{place}]"
                raise ScenarioError(what, "", f"[1] to [{len(given)}], counted from one")
            given[place - 1] = value
            found[element["name"]] = given
        else:
            what = f"{title} has no parameter `{name}`"
            raise ScenarioError(
                what, "", ", ".join(f"`{each}`" for each in known), suggest_nearest(name, known)
            )
    return found


def _with_matrix_entry(model: StateSpace, path: str, name: str, value: Any) -> StateSpace:
    """Return a linear model with another entry of a matrix, or start: `A[2,1]`, `x0[1]`, counted from one."""
    entry, start = _ENTRY.fullmatch(name), _START.fullmatch(name)
    if start is not None:
        return _with_start(model, path, int(start["place"]), value)
    if entry is None:
        what = f"`{path}`, a {type(model).__name__}, has no parameter `{name}`"
        hint = "parameters of other names are those of FMUs, Python classes and equations (`ode`)"
        raise ScenarioError(what, "", f"an entry of its matrices: {_entries(model, path)}", hint)
    key, row, column = entry["matrix"], int(entry["row"]), int(entry["column"])
    rows, columns = _size(model, key)
    if not (1 <= row <= rows and 1 <= column <= columns):
        what = f"`{path}.{key}` has no entry [{row},{column}]"
        size = f"up to [{rows},{columns}], counted from one" if rows and columns else _entries(model, path)
        raise ScenarioError(what, "", size)
    _expect_finite(f"{path}.{name}", value)
    matrix = [list(each) for each in getattr(model, key)]
    matrix[row - 1][column - 1] = float(value)
    changed: Any = {key: matrix}
    return replace(model, **changed)


def _with_start(model: StateSpace, path: str, place: int, value: Any) -> StateSpace:
    """Return a linear model that starts with another value of one of its states."""
    states = len(model.x0)
    if not 1 <= place <= states:
        known = f"`{path}.x0[1]` to `[{states}]`" if states else "it has no states"
        raise ScenarioError(f"`{path}.x0` has no element [{place}]", "", known)
    _expect_finite(f"{path}.x0[{place}]", value)
    return replace(model, x0=(*model.x0[: place - 1], float(value), *model.x0[place:]))


def _expect_finite(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ScenarioError(f"`{name}` is {value!r}", "", "a finite number")


def _size(model: StateSpace, key: str) -> tuple[int, int]:
    rows = getattr(model, key)
    return (len(rows), len(rows[0])) if len(rows) else (0, 0)


def _entries(model: StateSpace, path: str) -> str:
    """Return the entries of its matrices, as they are typed."""
    sizes = {key: _size(model, key) for key in "ABCD"}
    ranges = [
        f"`{path}.{key}[1,1]`" + (f" to `[{rows},{columns}]`" if rows * columns > 1 else "")
        for key, (rows, columns) in sizes.items()
        if rows * columns
    ]
    if model.x0:
        ranges.append(f"`{path}.x0[1]`" + (f" to `[{len(model.x0)}]`" if len(model.x0) > 1 else ""))
    return ", ".join(ranges)


def _fields(model: Model) -> list[str]:
    """Return the fields of a dataclass that can be made anew from them; none of any other model."""
    how = getattr(model, "__dataclass_params__", None)
    return [field.name for field in fields(cast("Any", model)) if field.init] if how and how.init else []
