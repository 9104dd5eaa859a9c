"""What the native engine executes: an instruction of a plan, or several of them at once.

In:  nothing
Out: Operation
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Operation:
    """The twin of `Operation` in native/engine/level.hpp; the order of the fields is that of the tuple."""

    kind: str
    children: list[int] = field(default_factory=list)
    count: int = 0
    """Ticks of a step, or how often."""
    parallel: bool = False
    bodies: list[list[Operation]] = field(default_factory=list)
    signals: list[int] = field(default_factory=list)
    slopes: list[int] = field(default_factory=list)
    number: int = 0
    """Which one of its kind it is in the plan of its level."""
    until: float = -1.0
    accelerator: str = ""
    numbers: list[float] = field(default_factory=list)
    """Of the accelerator, or of the step control."""
    degrees: list[int] = field(default_factory=list)
    """Of the extrapolations whose error is looked at."""
    part: tuple[int, int] = (1, 1)
    """Numerator and denominator of a step: its part of the level's step."""
