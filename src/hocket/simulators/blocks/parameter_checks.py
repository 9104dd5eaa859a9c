"""What the parameters of blocks may be.

In:  values as users write them
Out: numbers; or an error that names the parameter
"""

from __future__ import annotations

from typing import Any

from hocket.errors import ScenarioError
from hocket.model.arguments import expect, expect_texts, is_number, is_positive
from hocket.model.clock import Duration
from hocket.simulators.recipes import parse_seconds, positive_duration


def as_number(name: str, value: object) -> float:
    """Return a finite number."""
    expect(is_number(value), name, value, "a finite number")
    return float(value)  # type: ignore[arg-type]


def as_positive(name: str, value: object) -> float:
    """Return a finite number above zero."""
    expect(is_positive(value), name, value, "a number above zero")
    return float(value)  # type: ignore[arg-type]


def as_limits(low: object, high: object) -> tuple[float | None, float | None]:
    """Return two limits, each of which may be missing; raises ScenarioError where low is not below high."""
    found = [None if each is None else as_number(name, each) for name, each in (("low", low), ("high", high))]
    if found[0] is not None and found[1] is not None and found[0] >= found[1]:
        what = f"`low` is {found[0]:g} and `high` is {found[1]:g}"
        raise ScenarioError(what, "low", "`low` below `high`")
    return found[0], found[1]


def as_units(**units: Any) -> None:
    """Refuse units that are not text."""
    expect_texts(**units)


def as_time(name: str, value: Duration) -> float:
    """Return a time in seconds."""
    return float(parse_seconds(value, name))


def as_duration(name: str, value: Duration) -> float:
    """Return a duration above zero, in seconds."""
    return float(positive_duration(value, name))
