"""How long a step may be: frozen data in an Adapt; the engines do it.

In:  numbers that the user may choose
Out: a Control
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from hocket.errors import ScenarioError

Estimate: TypeAlias = Literal["defect", "orders", "richardson", "energy"]


@dataclass(frozen=True, slots=True)
class Control:
    """The error that a step may make, how it is estimated, and how the next step follows from it.

    Lengths are parts of the level's step.
    """

    tolerance: float
    estimate: Estimate
    per_unit: bool
    """The error is that of a second of steps; else of one step."""
    gains: tuple[float, float, float]
    """Of the error now, of the one before, and of the one before that: I, PI or PID."""
    quantum: Fraction
    """Steps are multiples of it."""
    first: Fraction
    """The step that a run begins with."""
    largest: Fraction
    rejects: bool
    """A step whose error is too large is taken back; else only the next one is shorter."""
    safety: float = 0.9
    most: float = 3.0
    """How much longer the next step may be."""
    least: float = 0.2
    """How much shorter."""
    unit: str = ""
    """Of the tolerance; empty: it is relative."""

    def __post_init__(self) -> None:
        if self.estimate == "richardson" and not self.rejects:
            what = "a step that is made twice is taken back in between"
            raise ScenarioError(what, "Control", "rejects=True")

    @property
    def tolerance_text(self) -> str:
        """The tolerance, for people."""
        return f"an error of {self.tolerance:g} {self.unit}".rstrip()
