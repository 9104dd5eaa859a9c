"""What recipes share: equality whatever they hold, declared feedthrough, durations above zero.

In:  fields and ports as users write them
Out: the same, checked
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from hocket.clock import Duration, seconds
from hocket.errors import Fault, ScenarioError, suggest_nearest
from hocket.model import Port

Feedthrough: TypeAlias = Mapping[str, str | Iterable[str]]


class Recipe:
    """Equality and hash for frozen dataclasses whose fields may hold lists and arrays."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = self.__dataclass_fields__  # type: ignore[attr-defined]
        return all(_values_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        names = self.__dataclass_fields__  # type: ignore[attr-defined]
        return hash(tuple(_hash_key(getattr(self, name)) for name in names))


def _values_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)
    if isinstance(one, (tuple, list)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_values_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_values_equal(one[name], other[name]) for name in one)
    return bool(one == other)


def _hash_key(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_hash_key, value))
    try:
        return hash(value)
    except TypeError:
        return None


def with_feedthrough(
    outputs: tuple[Port, ...], inputs: tuple[Port, ...], feedthrough: Feedthrough | None, where: str
) -> tuple[Port, ...]:
    """Return the outputs with the inputs they react to at once.

    Without a declaration an output keeps what its port says, and if that says nothing it reacts to every
    input: too many is slower, too few is wrong.
    """
    knowns = tuple(port.name for port in inputs), tuple(port.name for port in outputs)
    faults = [
        Fault(f"two {role}s are named `{name}`", where, "names that differ")
        for role, names in zip(("input", "output"), knowns, strict=True)
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    declared = (
        {}
        if feedthrough is None
        else {y: (u,) if isinstance(u, str) else tuple(u) for y, u in feedthrough.items()}
    )
    for y in declared:
        if y not in knowns[1]:
            faults.append(
                Fault(
                    f"feedthrough names the output `{y}`, which is none",
                    where,
                    "",
                    suggest_nearest(y, knowns[1]),
                )
            )
    for y, reacts in declared.items() if declared else ((port.name, port.feedthrough) for port in outputs):
        for u in reacts:
            if u not in knowns[0]:
                what = f"feedthrough of `{y}` names the input `{u}`, which is none"
                faults.append(Fault(what, where, "", suggest_nearest(u, knowns[0])))
    if faults:
        raise ScenarioError(faults)
    if feedthrough is None:
        return tuple(replace(port, feedthrough=port.feedthrough or knowns[0]) for port in outputs)
    return tuple(replace(port, feedthrough=declared.get(port.name, ())) for port in outputs)


def positive_duration(duration: Duration, name: str) -> Fraction:
    """Return a duration above zero, in seconds."""
    try:
        length = seconds(duration)
    except ValueError as error:
        raise ScenarioError(str(error), where=f"`{name}`") from None
    if length <= 0:
        raise ScenarioError(f"`{name}` is {duration}", expected="a duration above zero")
    return length
