"""What is wrong with the numbers of a run, noticed while they are written: ranges that are left, growth.

In:  the rows of a run, and the ranges in which its models may be believed
Out: findings: which port, since when, in words and as facts
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from hocket.engine.selection import RecordedTable
from hocket.errors import HocketError, ScenarioError, suggest_nearest
from hocket.model.composite import as_level
from hocket.model.protocols import Array, Model, described_variables
from hocket.model.units import conversion
from hocket.model.validity import ValidRange

WINDOWS = 10
"""Parts of a run whose largest values are compared."""
GROWTH = 1e4
"""From the first part of a run to the last: more than signals that come from outside grow."""
RISES = 5
"""In so many parts at the end of the run the values must grow, each by a factor of `STEADY`."""
STEADY = 1.5
SUDDEN = 1e9
"""From any part of a run to the last, however it came about: no signal does that."""
DIVERGED = 1.0 / float(np.finfo(float).eps)
"""What has grown so much, by itself, has no digit left of what it was before."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a port."""

    kind: Literal["outside its range", "growth", "not finite"]
    port: str
    t: float
    """Since when, in seconds."""
    value: float
    range: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "outside its range":
                return f"`{self.port}` is {self.value:.4g} at t = {self.t:.6g} s, outside {self.range}"
            case "not finite":
                return f"`{self.port}` is not finite from t = {self.t:.6g} s on"
            case "growth":
                return (
                    f"`{self.port}` grows without bound: {self.value:.3g} at the end; is it stable? "
                    "hocket check"
                )


class ValueWatch:
    """Looks at every row once; per column it keeps a few numbers."""

    def __init__(
        self,
        recorded: Sequence[RecordedTable],
        valid: Mapping[str, ValidRange],
        start: float,
        stop: float,
    ):
        self.start, self.span = start, max(stop - start, math.ulp(stop))
        self.columns = [entry.table.columns for entry in recorded]
        self.peaks = [np.zeros((WINDOWS, len(columns))) for columns in self.columns]
        self.found: dict[str, Finding] = {}
        self.ranges: list[list[tuple[int, str, float, float, str]]] = []
        """Per table: column, path, the ends in the unit of the port, and the range in words."""
        declared = {path: each for entry in recorded for path, each in _declared_ranges(entry)}
        wanted = {**declared, **valid}
        for entry in recorded:
            table = entry.table
            columns = enumerate(zip(table.columns, table.units, strict=True), 1)
            self.ranges.append(
                [
                    (column, path, *_ends_in_unit(wanted[path], unit, path), str(wanted[path]))
                    for column, (path, unit) in columns
                    if path in wanted
                ]
            )
        self.sources = {path for entry in recorded for path in _source_ports(entry)}
        self._check_paths(valid)

    def _check_paths(self, valid: Mapping[str, ValidRange]) -> None:
        known = {path for columns in self.columns for path in columns}
        for path in valid:
            if path not in known:
                hint = suggest_nearest(path, sorted(known)) if known else "record it"
                raise ScenarioError(
                    f"`{path}` has a range and is not recorded", "valid", "a recorded port", hint
                )

    def observe(self, index: int, block: Array) -> None:
        """Look at rows of a table, the time first."""
        t, values = block[:, 0], np.abs(block[:, 1:])
        if not values.size:
            return
        part = np.clip(((t - self.start) / self.span * WINDOWS).astype(int), 0, WINDOWS - 1)
        peaks = self.peaks[index]
        first = np.flatnonzero(np.append(True, part[1:] != part[:-1]))
        with np.errstate(invalid="ignore"):
            largest = np.fmax.reduceat(values, first, axis=0)
        for row, number in enumerate(part[first]):
            np.fmax(peaks[number], largest[row], out=peaks[number])
        for column, path, low, high, words in self.ranges[index]:
            if path not in self.found:
                outside = np.flatnonzero((block[:, column] < low) | (block[:, column] > high))
                if len(outside):
                    row = int(outside[0])
                    value = float(block[row, column])
                    self.found[path] = Finding("outside its range", path, float(t[row]), value, words)

    def findings(self) -> list[Finding]:
        """Return what was found: ranges that were left, then what has grown, the worst first."""
        ranges = [each for each in self.found.values() if each.kind == "outside its range"]
        return [*ranges, *sorted(self._growth(), key=lambda each: -each.value)]

    @property
    def has_diverged(self) -> bool:
        """Whether a value has grown so much that the run says nothing: it is not a result."""
        given = self._given()
        values = ((peaks[:, k], path) for k, peaks, path in self._each())
        return any(
            path not in self.sources and self._ratio(column) > DIVERGED * given for column, path in values
        )

    def _given(self) -> float:
        """Return how much signals from outside grow."""
        outside = [self._ratio(peaks[:, k]) for k, peaks, path in self._each() if path in self.sources]
        return max(outside, default=1.0)

    def _growth(self) -> Iterator[Finding]:
        given = self._given()
        for k, peaks, path in self._each():
            column = peaks[:, k]
            if np.isinf(column).any():
                t = self.start + self.span * int(np.flatnonzero(np.isinf(column))[0]) / WINDOWS
                yield Finding("not finite", path, t, math.inf)
            elif path not in self.sources and (grown := self._ratio(column)) > GROWTH * given:
                rises = column[-RISES:] > STEADY * column[-RISES - 1 : -1]
                if rises.all() or grown > SUDDEN * given:
                    yield Finding("growth", path, self.start + self.span, float(column[-1]))

    def _each(self) -> Iterator[tuple[int, Array, str]]:
        for columns, peaks in zip(self.columns, self.peaks, strict=True):
            for k, path in enumerate(columns):
                yield k, peaks, path

    @staticmethod
    def _ratio(column: Array) -> float:
        moved = column[column > 0.0]
        with np.errstate(over="ignore"):  # from next to nothing to one: growth without bound
            return float(column[-1] / moved[0]) if len(moved) else 1.0

    def facts(self) -> list[dict[str, Any]]:
        """Return the findings as plain data."""
        return [asdict(each) for each in self.findings()]


def _declared_ranges(entry: RecordedTable) -> Iterator[tuple[str, ValidRange]]:
    """Yield the ranges that models declare of their ports, as FMUs do by `min` and `max`."""
    for child, model in enumerate(entry.level.wiring.models):
        variables = described_variables(model)
        for port in (*model.inputs, *model.outputs):
            variable = variables.get(port.name)
            if variable is None:
                continue
            low = -math.inf if variable.minimum is None else float(variable.minimum)
            high = math.inf if variable.maximum is None else float(variable.maximum)
            if port.type == "real" and (low > -math.inf or high < math.inf):
                yield f"{entry.level.name(child)}.{port.name}", ValidRange(low, high)


def _source_ports(entry: RecordedTable) -> Iterator[str]:
    """Yield the outputs of what has no inputs: signals from outside."""
    models: Sequence[Model] = entry.level.wiring.models
    for child, model in enumerate(models):
        if not model.inputs and as_level(model) is None:
            yield from (f"{entry.level.name(child)}.{port.name}" for port in model.outputs)


def _ends_in_unit(valid: ValidRange, unit: str, path: str) -> tuple[float, float]:
    try:
        gain, offset = conversion(valid.unit, unit)
    except (HocketError, ValueError) as error:
        raise ScenarioError(
            f"the range of `{path}` is in {valid.unit}: {error}", f"valid.{path}", unit
        ) from None
    low, high = gain * valid.low + offset, gain * valid.high + offset
    return min(low, high), max(low, high)
