"""How an iteration is led to its end sooner: frozen data in a Repeat; the engines do it.

In:  numbers that the user may choose
Out: an Accelerator
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from hocket.errors import ScenarioError


@dataclass(frozen=True, slots=True)
class Relax:
    """The next guess is given + factor * (found - given). Below one it damps, above one it goes ahead."""

    factor: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < abs(self.factor) < 2.0:
            raise ScenarioError(f"a relaxation by {self.factor!r}", "factor", "a number between 0 and 2")


@dataclass(frozen=True, slots=True)
class Aitken:
    """A relaxation whose factor follows from the last two residuals (Irons & Tuck 1969)."""

    first: float = 0.5
    """The factor of the first guess in each step."""

    def __post_init__(self) -> None:
        if not 0.0 < self.first <= 1.0:
            raise ScenarioError(f"a first factor of {self.first!r}", "first", "a number above 0, at most 1")


@dataclass(frozen=True, slots=True)
class QuasiNewton:
    """Newton's method with a Jacobian learned from the sweeps: IQN-ILS (Degroote, Bathe & Vierendeels 2009).

    Columns, differences between sweeps, are used again in the next `reuse` steps; those that depend on newer
    ones, up to `filter`, are dropped.
    """

    reuse: int = 8
    filter: float = 1e-8

    def __post_init__(self) -> None:
        if not isinstance(self.reuse, int) or self.reuse < 0:
            raise ScenarioError(
                f"columns reused over {self.reuse!r} steps", "reuse", "a whole number from 0 on"
            )
        if not 0.0 < self.filter < 1.0:
            raise ScenarioError(f"a filter of {self.filter!r}", "filter", "a number between 0 and 1")


@dataclass(frozen=True, slots=True)
class Newton:
    """Newton's method: one more sweep for each number handed back tells what it does.

    The matrix is kept from step to step, and found anew when the residual does not fall to `falls` of itself.
    """

    falls: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < self.falls < 1.0:
            raise ScenarioError(f"a fall of {self.falls!r}", "falls", "a number between 0 and 1")


Accelerator: TypeAlias = Relax | Aitken | QuasiNewton | Newton
