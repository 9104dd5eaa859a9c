"""The instructions that plans are made of: frozen data, about a dozen kinds.

In:  names of simulators, fractions of a step
Out: what the engines execute and the verifier reads
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from hocket.errors import ScenarioError

if TYPE_CHECKING:
    from hocket.plan.accelerators import Accelerator

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


SMALL = 1e-10
"""An error below this part of the tolerance counts as this."""


class StepLaw(Protocol):
    """How the next step follows from the errors: of Adaptive, and of the accuracy pass."""

    @property
    def gains(self) -> tuple[float, float, float]:
        """Of the error now, of the one before, and of the one before that."""

    @property
    def safety(self) -> float:
        """The part of the step that the error would allow."""

    @property
    def most(self) -> float:
        """How much longer the next step may be."""

    @property
    def least(self) -> float:
        """How much shorter."""


def step_factor(
    law: StepLaw, errors: tuple[float, float, float], power: float, accepted: bool, settles: bool = True
) -> float:
    """Return by how much the next step is longer, from the errors now, before and before that, in tolerances.

    The errors fall with this power of the step. `settles`: where the error stays the same, the steps settle
    at an error of safety ** power tolerances; else each step is shorter by the safety. The native engine
    repeats the operations in this order.
    """
    (now, before, earlier), gains, most = errors, law.gains, law.most
    if not accepted:
        gains, most = REJECTED
    first, second, third = gains
    safety = law.safety ** (first - second + third) if settles else law.safety
    factor: float = safety * now ** (-first / power)
    if second != 0.0:
        factor = factor * before ** (second / power)
    if third != 0.0:
        factor = factor * earlier ** (-third / power)
    return min(most, max(law.least, factor))


REJECTED = (1.0, 0.0, 0.0), 0.9
"""After a rejection: the gains, by which only the error now counts, and the largest factor."""
WHOLE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Admit:
    """Let the inputs that the level was given for this step act from here on."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Fit the input polynomials of a simulator from the samples in the exchange memory."""

    sim: str


@dataclass(frozen=True, slots=True)
class Step:
    """Advance a simulator by a fraction of the level's step."""

    sim: str
    fraction: Fraction = WHOLE


@dataclass(frozen=True, slots=True)
class Read:
    """Evaluate the outputs of a simulator now, under its inputs; store the samples."""

    sim: str


@dataclass(frozen=True, slots=True)
class Solve:
    """Find values of these outputs that agree with themselves: an algebraic loop."""

    sims: tuple[str, ...]
    ports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Together:
    """Bodies that do not depend on each other: they may run in parallel threads."""

    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """A body, n times."""

    n: int
    body: Body


@dataclass(frozen=True, slots=True)
class Next:
    """Bodies of one simulator each: the one that is furthest behind goes next, until all have made the step.

    Of those that stand at the same time, the first one goes. Each steps by a whole part of the step.
    """

    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Try:
    """A body whose steps may end early: all go back and make it shorter, then go on to the end."""

    body: Body


@dataclass(frozen=True, slots=True)
class Adapt:
    """A body whose steps are as long as their error allows, until the end of the level's step."""

    body: Body
    control: Control


@dataclass(frozen=True, slots=True)
class Save:
    """Keep where these simulators stand, one place each: a later Save of the same one replaces it."""

    sims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restore:
    """Go back to where these simulators were saved: states, clocks, extrapolator memory and samples.

    The newest iterate stays: the Repeat around it owns that. What goes back is fed anew before it steps.
    """

    sims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A body, until the values exchanged in it agree with those of the repetition before.

    What it steps is saved before it and restored at the start of each repetition.
    """

    body: Body
    until: float | None
    """The residual, relative to the values, that ends it; None: always `at_most` repetitions."""
    at_most: int
    accelerate: Accelerator | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """Keep a row; it replaces one that was kept at the same time."""


Instruction: TypeAlias = (
    Admit
    | Feed
    | Step
    | Read
    | Solve
    | Together
    | Times
    | Next
    | Try
    | Adapt
    | Save
    | Restore
    | Repeat
    | Record
)
Body: TypeAlias = tuple[Instruction, ...]
