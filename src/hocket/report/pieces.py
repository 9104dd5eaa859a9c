"""What a timeline is made of: lanes, and what stands on them and around them, with their places in pixels.

In:  numbers and words
Out: frozen data
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

LANE, HEAD, LABEL = 30, 46, 13
"""Heights: of a simulator's lane, of the lane of a level itself, of a line of words below."""

MarkKind: TypeAlias = Literal["feed", "read", "solve", "save", "restore", "admit", "record"]
FrameKind: TypeAlias = Literal["together", "repeat", "sweep", "times", "try", "substep", "gap"]


@dataclass(frozen=True)
class Lane:
    """One line of the picture: a simulator, or a level, whose children follow below it."""

    path: str
    name: str
    depth: int
    level: bool
    top: int
    floor: int
    """Where the lanes of a level end; below are the labels of what is around them."""
    bottom: int

    @property
    def middle(self) -> float:
        """Where its steps are, and its marks."""
        return self.top + (14 if self.level else LANE / 2)

    @property
    def inner(self) -> float:
        """Where the marks are of what a level does itself."""
        return self.top + 34 if self.level else self.middle


@dataclass(frozen=True)
class TimelineMark:
    """An instruction that takes no time."""

    kind: MarkKind
    x: float
    lane: Lane
    words: str

    @property
    def y(self) -> float:
        """How far down it is."""
        return self.lane.inner if self.kind in ("admit", "record") else self.lane.middle


@dataclass(frozen=True)
class Bar:
    """A step."""

    x: float
    width: float
    lane: Lane
    label: str
    words: str


@dataclass(frozen=True)
class Frame:
    """Something around instructions: what runs side by side, is repeated, or was left out."""

    kind: FrameKind
    x: float
    width: float
    top: float
    bottom: float
    label: str
    words: str
    row: int = 0
    """Of its label, below the lanes."""


@dataclass(frozen=True)
class Arrow:
    """A sample on its way from where it was read to where it is fed."""

    source: Lane
    x0: float
    target: Lane
    x1: float
    past: bool
    """The source has not made this step: the input is extrapolated."""
    inside: bool = False
    """The source is the level itself, its own inputs."""


@dataclass
class Schedule:
    """A picture of one macro step, not drawn yet."""

    lanes: list[Lane] = field(default_factory=list)
    marks: list[TimelineMark] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    left_out: int = 0
    """Simulators without a lane."""
