"""What a call was given: whether it is of the kind that was asked for.

In:  a value, and what was expected
Out: nothing, or a fault that says so
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any

from hocket.errors import Fault, Place, ScenarioError, suggest_nearest

_NAME = re.compile(r"[^\W\d][\w-]*")


def is_number(value: object) -> bool:
    """Return whether a value is a finite number; true and false are not numbers."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def is_positive(value: object) -> bool:
    """Return whether a value is a finite number above zero."""
    return is_number(value) and value > 0.0  # type: ignore[operator]


def is_whole(value: object, least: int = 0) -> bool:
    """Return whether a value is a whole number of this size at least."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def expect(fits: bool, name: str, value: object, expected: str, hint: str = "", where: str = "") -> None:
    """Refuse the value of an argument that does not fit; `where` it stands, if its name does not say that."""
    if not fits:
        raise ScenarioError(
            f"`{name}` cannot be {value!r:.60}", Place(key=name, detail=where), expected, hint
        )


def choice_faults(name: str, value: object, known: Sequence[str], where: str = "") -> Iterator[Fault]:
    """Yield a fault where the value of an option is not one of those that are known."""
    if value not in known:
        words = " or ".join(f'"{word}"' for word in known)
        hint = suggest_nearest(str(value), known, listing=False)
        yield Fault(f"`{name}` cannot be {value!r:.60}", Place(key=name, detail=where), words, hint)


def set_fields(frozen: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass, from its own constructor."""
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number behind it if it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def check_names(named: object, kind: str, example: str, models: Collection[str] = ()) -> None:
    """Refuse parts of a scenario without names, and names that are not words or belong to models already."""
    where = f"{kind}s"
    if not isinstance(named, Mapping):
        raise ScenarioError(f"the {kind}s of a scenario have names", where, example)
    for name in named:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            expected = "letters, digits, _ and -, no dots: dots join paths"
            raise ScenarioError(f"`{name}` cannot name a {kind}", where, expected)
        if name in models:
            raise ScenarioError(f"`{name}` names a {kind} and a model", where, "names that differ")


def normalise_record(record: object) -> tuple[str, ...]:
    """Return the ports to record, given as a list or as one text."""
    if isinstance(record, str):
        return (record,)
    listed = tuple(record) if isinstance(record, Iterable) else (record,)
    fits = all(isinstance(each, str) for each in listed)
    expect(fits, "record", record, 'paths with wildcards: ["left.*", "right.x"]')
    return listed


def expect_folder(value: object) -> None:
    """Refuse a `folder` that is not the path of one."""
    fits = value is None or isinstance(value, str) or (isinstance(value, PathLike) and not _binary(value))
    expect(fits, "folder", value, "the path of a folder, or None")


def _binary(path: PathLike[str] | PathLike[bytes]) -> bool:
    return isinstance(path.__fspath__(), bytes)


def expect_call(name: str, value: object, arguments: str) -> None:
    """Refuse what is to be called later and cannot be."""
    expect(value is None or callable(value), name, value, f"a function of {arguments}, or None")
