"""Execution times: how long a step of a simulator may take at the most (WCET), as its author declares it.

In:  texts such as "2 ms"
Out: frozen durations
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hocket.errors import ScenarioError
from hocket.model.arguments import expect
from hocket.model.clock import format_duration, seconds

_EXPECTED = 'a duration above zero, such as "2 ms"'


@dataclass(frozen=True)
class ExecutionTime:
    """The longest time that a step takes, in seconds of real time."""

    longest: Fraction

    def __str__(self) -> str:
        return format_duration(self.longest)

    @staticmethod
    def parse(written: Any) -> ExecutionTime:
        """Return a time as it is written; raises ScenarioError."""
        try:
            length = seconds(written)
        except (ValueError, TypeError):
            length = Fraction(0)
        if length <= 0:
            raise ScenarioError(f"`{written!s:.60}` is not an execution time", "", _EXPECTED)
        return ExecutionTime(length)


def as_execution_times(given: Mapping[str, Any], where: str) -> dict[str, ExecutionTime]:
    """Return execution times by path, parsed where they are texts; raises ScenarioError."""
    expect(isinstance(given, Mapping), where, given, 'durations by path: {"plant": "2 ms"}')
    made = {}
    for path, value in given.items():
        try:
            made[path] = value if isinstance(value, ExecutionTime) else ExecutionTime.parse(value)
        except ScenarioError as error:
            fault = error.faults[0]
            raise ScenarioError(fault.what, f"{where}.{path}", fault.expected, fault.hint) from None
    return made
