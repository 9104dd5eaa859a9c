"""What the user sets, checked by name: parameters, start values of states and inputs, sizes of arrays.

In:  a Description, names and values
Out: Settings, ready to be set by type; or every fault at once
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

import numpy as np

from hocket.errors import Fault, Place, raise_faults, suggest_nearest
from hocket.simulators.fmu.ports import element_names, indices, shape, start_values
from hocket.simulators.fmu.variables import (
    FLOATS,
    WHOLE,
    Description,
    FmuVariable,
    element_name,
    split_element,
)

Stage: TypeAlias = Literal["structural", "start"]

_FLOAT32_MAX = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Setting:
    """One call: values of one type, set together; arrays come whole and flat."""

    stage: Stage
    """structural: in FMI 3's configuration mode; start: before initialisation."""
    type: str
    """The type whose function is called."""
    variables: tuple[FmuVariable, ...]
    """Each has as many of the values as it has elements."""
    values: tuple[Any, ...]

    @property
    def references(self) -> list[int]:
        """The value references, in the order of the variables."""
        return [variable.reference for variable in self.variables]


@dataclass(frozen=True, slots=True)
class Settings:
    """What is to be set, structural parameters first, and what follows from it."""

    settings: tuple[Setting, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    """The structural parameters that hold the sizes of arrays."""
    starts: Mapping[str, float] = field(default_factory=dict)
    """The start values given to inputs, by port."""
    given: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """All values of each variable that something was given for, flat; a negated alias as the user sees it."""


class _UnfitValueError(Exception):
    """A value that does not fit: what it is, and what was expected."""

    def __init__(self, what: str, expected: str = "", hint: str = ""):
        self.fault = Fault(what, "", expected, hint)


@dataclass(frozen=True, slots=True)
class _GivenValue:
    """One thing the user wrote."""

    written: str
    variable: FmuVariable
    index: tuple[int, ...] | None
    """Of an element; None: the whole variable."""
    value: Any

    @property
    def is_structural(self) -> bool:
        return self.variable.causality == "structuralParameter"


def check_settings(description: Description, parameters: Mapping[str, Any], where: str = "") -> Settings:
    """Return the settings; raises ScenarioError with everything that is wrong with them."""
    faults: list[Fault] = []
    groups: dict[str, list[_GivenValue]] = {}
    for name, value in parameters.items():
        for one in _resolve_name(description, name, value, faults):
            reason = _refusal_reason(one.variable)
            if reason:
                faults.append(Fault(f"`{name}` cannot be set: it is {reason}", Place(key=name)))
            else:
                groups.setdefault(one.variable.name, []).append(one)
    sizes = dict(description.sizes)
    held: dict[tuple[str, int], tuple[_GivenValue, tuple[Any, ...]]] = {}
    whole: dict[str, tuple[Any, ...]] = {}
    # sizes first: they decide the shapes of the rest
    for group in sorted(groups.values(), key=lambda group: not group[0].is_structural):
        variable = group[0].variable
        try:
            values = _variable_values(variable, group, sizes)
        except _UnfitValueError as wrong:
            faults.append(replace(wrong.fault, place=Place(key=group[0].written)))
            continue
        whole[variable.name] = values
        if variable.causality == "input" and (lost := _rounded_value(values)) is not None:
            what = (
                f"`{group[0].written}` is {lost}, beyond 2^53: inputs travel as floats, which would round it"
            )
            faults.append(Fault(what, Place(key=group[0].written), "-9007199254740992 to 9007199254740992"))
        if variable.negated:
            values = tuple(-value for value in values)
        key = description.call_type(variable), variable.reference
        if key in held and held[key][1] != values:
            both = f"`{held[key][0].written}` and `{group[0].written}`"
            what = f"{both} are one variable with two names, set twice"
            faults.append(Fault(what, Place(key=group[0].written)))
        held[key] = group[0], values
        if variable.name in sizes:
            sizes[variable.name] = values[0]
    raise_faults(replace(fault, place=replace(fault.place, detail=where)) for fault in faults)
    starts = {
        name: float(value)
        for one, values in held.values()
        if one.variable.causality == "input" and one.variable.numeric
        for name, value in zip(element_names(one.variable, sizes), values, strict=True)
    }
    return Settings(_calls(held), sizes, starts, whole)


def _rounded_value(values: tuple[Any, ...]) -> int | None:
    """Return a whole number that no float holds; None: there is none."""
    return next((value for value in values if isinstance(value, int) and int(float(value)) != value), None)


def _resolve_name(
    description: Description, name: str, value: Any, faults: list[Fault]
) -> Iterator[_GivenValue]:
    """Yield the variables a name means: itself, an element, or in FMI 1 and 2 the elements of an array."""
    known = description.by_name
    variable = known.get(name)
    base, index = split_element(name)
    if variable is not None:
        yield _GivenValue(name, known[variable.alias_of] if variable.alias_of else variable, None, value)
        return
    if index and base in known and known[base].dimensions:
        array = known[base]
        yield _GivenValue(name, known[array.alias_of] if array.alias_of else array, index, value)
        return
    several = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes))
    if several and (found := description.element_variables.get(name)):
        yield from _resolve_scalars(name, value, found, faults)
        return
    candidates = [variable.name for variable in description.variables if variable.settable]
    hint = suggest_nearest(name, candidates)
    faults.append(
        Fault(f"there is no variable `{name}`", Place(key=name), "a parameter or start value", hint)
    )


def _resolve_scalars(
    name: str, value: Any, found: Mapping[tuple[int, ...], FmuVariable], faults: list[Fault]
) -> Iterator[_GivenValue]:
    """Yield the variables `x[1]`, `x[2]` ... that a list for `x` sets."""
    sizes = tuple(max(index[axis] for index in found) for axis in range(len(next(iter(found)))))
    try:
        values = _flatten_shape(name, value, sizes)
    except _UnfitValueError as wrong:
        faults.append(replace(wrong.fault, place=Place(key=name)))
        return
    for index, entry in zip(indices(sizes), values, strict=True):
        if index in found:
            yield _GivenValue(found[index].name, found[index], None, entry)
        else:
            what = f"there is no variable `{element_name(name, index)}`"
            faults.append(Fault(what, Place(key=name)))


def _refusal_reason(variable: FmuVariable) -> str:
    """Return why FMI does not let a variable be set before initialisation; "" if it does."""
    if variable.type == "clock":
        return "a clock"
    if variable.settable:
        return ""
    if variable.variability == "constant":
        return "a constant"
    if variable.causality == "independent":
        return "the time"
    kinds = {"output": "an output", "calculatedParameter": "a parameter"}
    return f"{kinds.get(variable.causality, 'a variable')} that the FMU calculates"


def _variable_values(
    variable: FmuVariable, group: list[_GivenValue], sizes: Mapping[str, int]
) -> tuple[Any, ...]:
    """Return all values of a variable, elements laid over the whole and over the start values."""
    of = shape(variable, sizes)
    wholes = [one for one in group if one.index is None]
    if wholes:
        value = wholes[-1].value
        raw = _flatten_shape(variable.name, value, of) if variable.dimensions else [value]
        names = element_names(variable, sizes)
        values = [_convert_value(variable, value, name) for value, name in zip(raw, names, strict=True)]
    else:
        starts = start_values(variable, of)
        if starts is None:
            what = f"`{group[0].written}` is set, but the other elements of `{variable.name}` have no values"
            raise _UnfitValueError(what, f"all values of `{variable.name}`, shape {_format_shape(of)}")
        values = list(starts)
    for one in group:
        if one.index is not None:
            values[_flat_position(one, of)] = _convert_value(variable, one.value, one.written)
    return tuple(values)


def _flat_position(one: _GivenValue, of: tuple[int, ...]) -> int:
    try:
        return int(np.ravel_multi_index([i - 1 for i in one.index or ()], of))
    except ValueError:
        expected = f"indices from 1, shape {_format_shape(of)}"
        what = f"`{one.variable.name}` has no element `{one.written}`"
        raise _UnfitValueError(what, expected) from None


def _flatten_shape(name: str, value: Any, of: tuple[int, ...]) -> list[Any]:
    """Return the entries of nested lists of exactly this shape."""
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    entries = [listed]
    for size in of:
        if not all(isinstance(entry, (list, tuple)) and len(entry) == size for entry in entries):
            raise _UnfitValueError(
                f"`{name}` has the shape {_format_shape(of)}, which {value!r:.60} does not have"
            )
        entries = [inner for entry in entries for inner in entry]
    return entries


def _format_shape(of: tuple[int, ...]) -> str:
    return " x ".join(map(str, of))


def _convert_value(variable: FmuVariable, value: Any, name: str) -> Any:
    """Return a value as its type wants it; raises _UnfitValueError."""
    if isinstance(value, np.generic):
        value = value.item()
    if variable.type == "string":
        if not isinstance(value, str) or "\0" in value:
            raise _UnfitValueError(f"`{name}` is {value!r:.60}", "a text")
        return value
    if variable.type == "binary":
        return _convert_bytes(value, name)
    if variable.type == "boolean":
        if not isinstance(value, (bool, int)) or value not in (0, 1):
            raise _UnfitValueError(f"`{name}` is {value!r:.60}", "true or false")
        return bool(value)
    if variable.type == "enumeration":
        number: float = _convert_item(variable, value, name)
    else:
        convert = _convert_whole if variable.type in WHOLE else _convert_real
        number = convert(variable, value, name)
    low, high = variable.minimum, variable.maximum
    unit = f" {variable.unit}" if variable.unit else ""
    if low is not None and number < low:
        raise _UnfitValueError(f"`{name}` is {number!r}", f"at least {low!r}{unit}")
    if high is not None and number > high:
        raise _UnfitValueError(f"`{name}` is {number!r}", f"at most {high!r}{unit}")
    return number


def _convert_real(variable: FmuVariable, value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value):
        raise _UnfitValueError(f"`{name}` is {value!r:.60}", f"a number{_in_unit(variable)}")
    number = float(value)
    if variable.type == FLOATS[1] and math.isfinite(number) and abs(number) > _FLOAT32_MAX:
        raise _UnfitValueError(f"`{name}` is {number!r}", "a number that 32 bits can hold")
    return number


def _in_unit(variable: FmuVariable) -> str:
    return f", in {variable.unit}" if variable.unit else ""


def _convert_whole(variable: FmuVariable, value: Any, name: str) -> int:
    integral = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not integral:
        raise _UnfitValueError(f"`{name}` is {value!r:.60}", "a whole number")
    number = int(value)
    held = np.iinfo("int32" if variable.type == "integer" else variable.type)
    if not held.min <= number <= held.max:
        expected = f"{held.min} to {held.max}, as {variable.type} holds"
        raise _UnfitValueError(f"`{name}` is {number}", expected)
    return number


def _convert_item(variable: FmuVariable, value: Any, name: str) -> int:
    items = variable.items
    if isinstance(value, str) and value in items:
        return items[value]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and (value in items.values() or not items):
        return value
    if isinstance(value, str):
        raise _UnfitValueError(f"`{name}` has no item `{value}`", "", suggest_nearest(value, items))
    listed = ", ".join(f"{item} ({number})" for item, number in items.items())
    raise _UnfitValueError(f"`{name}` is {value!r:.60}", f"one of {listed}")


def _convert_bytes(value: Any, name: str) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        raise _UnfitValueError(f"`{name}` is {value!r:.60}", "bytes, or text of hexadecimal digits") from None


def _calls(held: Mapping[tuple[str, int], tuple[_GivenValue, tuple[Any, ...]]]) -> tuple[Setting, ...]:
    calls: dict[tuple[Stage, str], tuple[list[FmuVariable], list[Any]]] = {}
    for (kind, _), (one, values) in held.items():
        stage: Stage = "structural" if one.is_structural else "start"
        variables, flat = calls.setdefault((stage, kind), ([], []))
        variables.append(one.variable)
        flat.extend(values)
    return tuple(Setting(stage, kind, tuple(r), tuple(v)) for (stage, kind), (r, v) in calls.items())
