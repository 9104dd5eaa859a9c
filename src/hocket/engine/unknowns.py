"""Numbers in the exchange memory that must agree with themselves: the newest samples of some outputs.

In:  a level, and which outputs are meant: their values, their slopes
Out: the numbers as they are, or others in their places
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hocket.model import Value

if TYPE_CHECKING:
    from hocket.engine.interpreter import Level

Unknown: TypeAlias = tuple[int, int, int]
"""Child, output, and whether its value (1) or its slope (2) is meant."""
VALUE, SLOPE = 1, 2


class Unknowns:
    """Slopes are told as changes over a step of the level, so that all numbers are of a size."""

    def __init__(self, level: Level, places: Sequence[Unknown]):
        self.level = level
        self.places = places
        self.length = level.clock.span(level.length)

    def newest(self) -> list[Value]:
        """Return the numbers; where some are rows, in the linear reading, all are, those of sources too."""
        found = []
        for child, port, what in self.places:
            number = self.level.memory.rings[child][port][-1][what]
            found.append(number if what == VALUE else number * self.length)
        row = next((each.shape for each in found if isinstance(each, np.ndarray) and each.ndim), None)
        return found if row is None else [np.broadcast_to(each, row) for each in found]

    def put(self, numbers: Sequence[Value]) -> None:
        """Put others where they were."""
        for (child, port, what), number in zip(self.places, numbers, strict=True):
            ring = self.level.memory.rings[child][port]
            tick, value, slope = ring[-1]
            ring[-1] = (tick, number, slope) if what == VALUE else (tick, value, number / self.length)

    def name(self, place: Unknown) -> str:
        """Return the path of an output."""
        child, port, _ = place
        return f"{self.level.name(child)}.{self.level.wiring.models[child].outputs[port].name}"


def relative_residual(residual: Sequence[float], v: Sequence[float]) -> float:
    """Return the largest of some differences, each over its value; values below one count as one."""
    size = 0.0
    for r, x in zip(residual, v, strict=True):
        part = abs(r) / max(1.0, abs(x))
        if not part <= size:  # a NaN must come through
            size = part
    return size
