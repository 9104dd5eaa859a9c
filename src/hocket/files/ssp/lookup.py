"""What a connection cannot do to a value: a table of others, or to make a whole number or a truth of it.

In:  pairs of values, and what is to come out
Out: a class for `hocket.Python`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hocket.model.ports import PortType
from hocket.model.protocols import Array


class Lookup:
    """y is what the table has for u, and u itself where it has nothing; of the type `to`."""

    inputs = ("u",)

    def __init__(self, table: Sequence[Sequence[float]] = (), to: PortType = "integer"):
        self.table = {float(source): float(target) for source, target in table}
        self.to = to

    def start(self, t: float) -> None:
        """Nothing is kept."""

    def output(self, t: float, u: Array) -> Array:  # noqa: ARG002
        """Look it up; a whole number is the nearest, a truth whatever is not zero."""
        value = self.table.get(float(u[0, 0]), float(u[0, 0]))
        return np.array([float(value != 0.0) if self.to == "boolean" else np.rint(value)])

    def step(self, t: float, h: float, u: Array) -> None:
        """No time passes here."""

    def save(self) -> None:
        """Nothing is kept."""

    def restore(self, state: Any) -> None:
        """Nothing is kept."""
