"""Validity ranges: where a model may be believed, its experimental frame.

In:  texts such as "0 < p < 10 bar"
Out: frozen data that tells values inside from values outside
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hocket.errors import ScenarioError
from hocket.model.arguments import expect

_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_UNIT = r"\s*([^\d\s<>=][^<>=]*)?"
_BETWEEN = re.compile(rf"\s*{_NUMBER}\s*(?:<=?\s*[A-Za-z_][\w.]*\s*<=?|to)\s*{_NUMBER}{_UNIT}\s*")
_ONE_SIDED = re.compile(rf"\s*(?:[A-Za-z_][\w.]*\s*)?([<>])=?\s*{_NUMBER}{_UNIT}\s*")
_EXPECTED = 'a range such as "0 < p < 10 bar", "0 to 10 bar", "> 0" or "<= 5 V"'


@dataclass(frozen=True)
class ValidRange:
    """From where to where values may be believed, ends included."""

    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    """Empty: that of the port."""

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if self.low == -math.inf:
            return f"<= {self.high:.12g}{unit}"
        if self.high == math.inf:
            return f">= {self.low:.12g}{unit}"
        return f"{self.low:.12g} to {self.high:.12g}{unit}"

    @staticmethod
    def parse(text: Any) -> ValidRange:
        """Return a range as it is written; raises ScenarioError."""
        if isinstance(text, str):
            if match := _BETWEEN.fullmatch(text):
                low, high = float(match[1]), float(match[2])
                if low < high:
                    return ValidRange(low, high, (match[3] or "").strip())
            elif match := _ONE_SIDED.fullmatch(text):
                bound, unit = float(match[2]), (match[3] or "").strip()
                return ValidRange(bound, unit=unit) if match[1] == ">" else ValidRange(high=bound, unit=unit)
        raise ScenarioError(f"`{text!s:.60}` is not a range", "", _EXPECTED)


def as_ranges(given: Mapping[str, Any], where: str) -> dict[str, ValidRange]:
    """Return ranges by path, parsed where they are texts; raises ScenarioError."""
    expect(isinstance(given, Mapping), where, given, 'ranges by path: {"pipe.p": "0 to 10 bar"}')
    made = {}
    for path, value in given.items():
        try:
            made[path] = value if isinstance(value, ValidRange) else ValidRange.parse(value)
        except ScenarioError as error:
            fault = error.faults[0]
            raise ScenarioError(fault.what, f"{where}.{path}", fault.expected, fault.hint) from None
    return made
