"""How well constraints are kept: the largest residual of each equation among the rows of a run.

In:  the tables of a run, and their rows as they are written
Out: a note for each equation, and facts for who judges the run
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hocket.engine.selection import RecordedTable
from hocket.model import Array
from hocket.simulators.constraint import Coupler, gap_names


class ConstraintDrift:
    """The columns that are residuals, and the largest value of each so far."""

    def __init__(self, recorded: Sequence[RecordedTable]):
        self.columns: dict[int, list[tuple[int, str, str]]] = {}
        """Per table: column, its path, and the equation."""
        self.largest: dict[str, float] = {}
        self.determined = [path for entry in recorded for path in _determined_inputs(entry)]
        for index, entry in enumerate(recorded):
            known = _residual_equations(entry) if entry.child is None else {}
            paths = enumerate(entry.table.columns, 1)
            self.columns[index] = [(column, path, known[path]) for column, path in paths if path in known]

    def observe(self, index: int, block: Array) -> None:
        """Look at rows of a table."""
        for column, path, _ in self.columns.get(index, ()):
            size = float(np.max(np.abs(block[:, column])))
            self.largest[path] = max(self.largest.get(path, 0.0), size)

    def notes(self) -> list[str]:
        """Return how well each equation was kept."""
        return [
            f"`{equation}` was kept to {self.largest[path]:.2g}, see `{path}`"
            for columns in self.columns.values()
            for _, path, equation in columns
            if path in self.largest
        ]

    def facts(self) -> dict[str, Any]:
        """Return which columns are residuals, and which are determined inputs: at the start a guess."""
        return {"gaps": self.largest, "determined": self.determined}


def _determined_inputs(entry: RecordedTable) -> Iterator[str]:
    for child, model in enumerate(entry.level.wiring.models):
        if isinstance(model, Coupler):
            yield from (f"{entry.level.name(child)}.{port.name}" for port in model.determines)


def _residual_equations(entry: RecordedTable) -> dict[str, str]:
    """Return the equations of a level by the paths of their residuals."""
    found: dict[str, str] = {}
    for child, model in enumerate(entry.level.wiring.models):
        if isinstance(model, Coupler):
            names = gap_names(len(model.equations))
            for gap, equation in zip(names, model.equations, strict=True):
                found[f"{entry.level.name(child)}.{gap}"] = equation
    return found
