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
from pathlib import Path
from typing import Any

import numpy as np

from hocket.errors import Fault, Place, ScenarioError, suggest_nearest

MOST = 2**15
"""Processes or threads that can be asked for."""
_NAME = re.compile(r"[^\W\d][\w-]*")


def is_number(value: object) -> bool:
    """Return whether a value is a finite number; true and false are not numbers."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that is beyond all floats
        return False


def is_positive(value: object) -> bool:
    """Return whether a value is a finite number above zero."""
    return is_number(value) and value > 0.0  # type: ignore[operator]


def is_whole(value: object, least: int = 0) -> bool:
    """Return whether a value is a whole number of this size at least."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def is_text(value: object) -> bool:
    """Return whether a value is text that can be written to a file."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def is_blank(value: object) -> bool:
    """Return whether a value is the empty text, which stands for what was not given."""
    return isinstance(value, str) and not value


def is_flag(value: object) -> bool:
    """Return whether a value is true or false, and not a number, text or list that could pass for it."""
    return isinstance(value, (bool, np.bool_))


def is_one_of(value: object, known: Collection[str]) -> bool:
    """Return whether a value is one of these words; anything may be asked for, also what has no `==`."""
    return isinstance(value, str) and value in known


def expect(fits: bool, name: str, value: object, expected: str, hint: str = "", where: str = "") -> None:
    """Refuse the value of an argument that does not fit; `where` it stands, if its name does not say that."""
    if not fits:
        raise ScenarioError(
            f"`{name}` cannot be {value!r:.60}", Place(key=name, detail=where), expected, hint
        )


def choice_faults(name: str, value: object, known: Sequence[str], where: str = "") -> Iterator[Fault]:
    """Yield a fault where the value of an option is not one of those that are known."""
    if not is_one_of(value, known):
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
    return as_texts(record, "record", 'paths with wildcards: ["left.*", "right.x"]')


def expect_folder(value: object) -> None:
    """Refuse a `folder` that is not the path of one."""
    expect(value is None or _is_path(value), "folder", value, "the path of a folder, or None")


def as_path(value: object, name: str = "path") -> Path:
    """Return the path that an argument is; raises ScenarioError where it is none."""
    expect(_is_path(value), name, value, "the path of a file, as text or `pathlib.Path`")
    return Path(value)  # type: ignore[arg-type]


def _is_path(value: object) -> bool:
    path = value.__fspath__() if isinstance(value, PathLike) else value
    return is_text(path) and "\0" not in path  # type: ignore[operator]


def expect_flags(where: str = "", **values: object) -> None:
    """Refuse options that are neither true nor false."""
    for name, value in values.items():
        expect(is_flag(value), name, value, "True or False", where=where)


def expect_texts(where: str = "", **values: object) -> None:
    """Refuse what is not text, or is text that cannot be written to a file."""
    for name, value in values.items():
        expect(is_text(value), name, value, "text that UTF-8 can hold", where=where)


def as_texts(value: object, name: str, expected: str = "a list of texts") -> tuple[str, ...]:
    """Return a list of texts, given as such or as one text; raises ScenarioError where it is none."""
    listed = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    # the kinds first: millions of names are asked for where every input has direct feedthrough
    fits = {*map(type, listed)} <= {str} or all(isinstance(each, str) for each in listed)
    expect(fits, name, value, expected)
    return listed


def expect_count(name: str, value: object) -> None:
    """Refuse how many of something there should be, where it is not a number of them."""
    fits = value is None or (is_whole(value, 1) and int(value) <= MOST)  # type: ignore[call-overload]
    expect(fits, name, value, f"a whole number from 1 to {MOST}, or None")


def expect_call(name: str, value: object, arguments: str) -> None:
    """Refuse what is to be called later and cannot be."""
    expect(value is None or callable(value), name, value, f"a function of {arguments}, or None")
