"""What is uncertain: the distribution of a parameter, of a start value or of an input.

In:  texts such as "normal(20, 2)"
Out: frozen data that turns probabilities into values
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from hocket.errors import ScenarioError, suggest_nearest
from hocket.model.arguments import expect
from hocket.model.protocols import Array

Kind: TypeAlias = Literal["normal", "uniform", "triangular", "lognormal"]
_FORMS: dict[str, str] = {
    "normal": "normal(mean, standard deviation), or normal(mean, standard deviation, low, high)",
    "uniform": "uniform(low, high)",
    "triangular": "triangular(low, most likely, high)",
    "lognormal": "lognormal(median, standard deviation of the logarithm)",
}
_COUNTS: dict[str, tuple[int, ...]] = {
    "normal": (2, 4),
    "uniform": (2,),
    "triangular": (3,),
    "lognormal": (2,),
}
_WRITTEN = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*")


@dataclass(frozen=True)
class Distribution:
    """How likely values are: `Distribution("normal", (20.0, 2.0))`, or "normal(20, 2)" where one is read."""

    kind: Kind
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        what = f"`{self}` is not a distribution"
        if self.kind not in get_args(Kind):
            expected = ", ".join(_FORMS.values())
            raise ScenarioError(what, "", expected, suggest_nearest(str(self.kind), get_args(Kind)))
        fits = len(self.values) in _COUNTS[self.kind] and all(map(math.isfinite, self.values))
        if not (fits and self._is_ordered()):
            raise ScenarioError(
                what, "", f"{_FORMS[self.kind]}: finite numbers, in this order, widths above 0"
            )

    def _is_ordered(self) -> bool:
        match self.kind, self.values:
            case "normal", (mean, width):
                return width > 0.0 and math.isfinite(mean)
            case "normal", (_, width, low, high):
                return width > 0.0 and low < high
            case "uniform", (low, high):
                return low < high
            case "triangular", (low, likely, high):
                return low <= likely <= high and low < high
            case "lognormal", (median, width):
                return median > 0.0 and width > 0.0
        return False

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(f'{value:.12g}' for value in self.values)})"

    @staticmethod
    def parse(text: Any) -> Distribution:
        """Return a distribution as it is written; raises ScenarioError."""
        match = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            expected = f"one such as normal(20, 2): {'; '.join(_FORMS.values())}"
            raise ScenarioError(f"`{text!s:.60}` is not a distribution", "", expected)
        try:
            values = tuple(float(part) for part in match[2].split(","))
        except ValueError:
            raise ScenarioError(
                f"`{text}` holds what is not a number", "", _FORMS.get(match[1], "")
            ) from None
        return Distribution(match[1], values)  # type: ignore[arg-type]  # it is checked there

    @property
    def nominal(self) -> float:
        """The value of the run that the others are compared with: the median."""
        return float(self.quantile(np.array([0.5]))[0])

    def quantile(self, p: Array) -> Array:
        """Return the values below which a share p of all lies; 0 < p < 1."""
        from scipy.special import ndtr, ndtri

        match self.kind, self.values:
            case "normal", (mean, width):
                found = mean + width * ndtri(p)
            case "normal", (mean, width, low, high):
                least, most = ndtr((low - mean) / width), ndtr((high - mean) / width)
                found = np.clip(mean + width * ndtri(least + (most - least) * p), low, high)
            case "uniform", (low, high):
                found = low + (high - low) * p
            case "triangular", (low, likely, high):
                rises = (likely - low) / (high - low)
                up = low + np.sqrt(p * (high - low) * (likely - low))
                down = high - np.sqrt((1.0 - p) * (high - low) * (high - likely))
                found = np.where(p < rises, up, down)
            case _:
                median, width = self.values
                found = median * np.exp(width * ndtri(p))
        return np.asarray(found, dtype=float)


def as_distributions(given: Mapping[str, Any], where: str) -> dict[str, Distribution]:
    """Return distributions by path, parsed where they are texts; raises ScenarioError."""
    expect(isinstance(given, Mapping), where, given, 'distributions by path: {"spring.k": "normal(20, 2)"}')
    made = {}
    for path, value in given.items():
        try:
            made[path] = value if isinstance(value, Distribution) else Distribution.parse(value)
        except ScenarioError as error:
            fault = error.faults[0]
            raise ScenarioError(fault.what, f"{where}.{path}", fault.expected, fault.hint) from None
    return made
