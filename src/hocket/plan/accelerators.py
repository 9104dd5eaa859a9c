"""How an iteration is led to its end sooner: frozen data in a Repeat; the engines do it.

In:  numbers that the user may choose
Out: an Accelerator
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from hocket.model.arguments import expect, is_number, is_whole, set_fields

Values = list[float]
Sweep = Callable[[Values], Values]
"""Gives numbers to one iteration (a sweep), and returns what it finds."""


class LiveAccelerator(Protocol):
    """An accelerator at work in one Repeat of one level; its attributes are rolled back with the level."""

    def begin(self) -> None:
        """Begin a step."""

    def next_guess(self, given: Values, found: Values, sweep: Sweep) -> Values:
        """Return the next guess; may try iterations of its own."""


@runtime_checkable
class PredictingAccelerator(LiveAccelerator, Protocol):
    """One whose fixed number of iterations begins with what the extrapolation has predicted."""

    def check_step(self, span: int, samples: int) -> None:
        """Begin a step of so many ticks, predicted by so many samples: what was found of others is void."""

    def finish(self, given: Values, found: Values) -> None:
        """Take notice of what the last iteration of a step was given and has found."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """How the next guess follows from the iterations so far: frozen data that describes itself.

    One of another package has a method `start` and is run by the interpreter; the engines know hocket's own.
    """

    leads_fixed_sweeps: ClassVar[bool] = False
    """Whether it also serves where the number of iterations is fixed."""
    predicts: ClassVar[bool] = False
    """Whether a fixed number begins with what the extrapolation predicts: it is a `PredictingAccelerator`."""
    alternative: ClassVar[str] = "quasi-newton"
    """The accelerator to try where this one does not settle; empty: none is better."""

    @property
    def title(self) -> str:
        """As tables call it."""
        return type(self).__name__

    def describe(self) -> str:
        """Return how the iteration is led, as a plan says it."""
        return f"led by {self.title}"

    def predict(self, eigenvalues: Any) -> tuple[float | None, int | None]:  # noqa: ARG002
        """Return the contraction factor of a linear iteration, and their number where it does not follow."""
        return None, None

    def start(self) -> LiveAccelerator:
        """Return the accelerator at work, for one Repeat of one level."""
        raise NotImplementedError


PLAIN: Accelerator | None = None
"""What was found is given: no acceleration."""


@dataclass(frozen=True, slots=True)
class Relax(Accelerator):
    """The next guess is given + factor * (found - given). Below one it damps, above one it goes ahead."""

    factor: Annotated[float, "the part of the way that is gone"] = 0.5
    leads_fixed_sweeps = True

    def __post_init__(self) -> None:
        expect(0.0 < abs(self.factor) < 2.0, "factor", self.factor, "a number between 0 and 2")

    @property
    def title(self) -> str:
        """With its factor."""
        return f"relaxation by {self.factor:g}"

    def describe(self) -> str:
        """Return the factor."""
        return f"relaxed by {self.factor:g}"

    def predict(self, eigenvalues: Any) -> tuple[float | None, int | None]:
        """Return the factor of the damped iteration."""
        return float(abs(1.0 - self.factor + self.factor * eigenvalues).max()), None


@dataclass(frozen=True, slots=True)
class Aitken(Accelerator):
    """A relaxation whose factor follows from the last two residuals (Irons & Tuck 1969)."""

    first: Annotated[float, "the factor that each step begins with"] = 0.5

    def __post_init__(self) -> None:
        expect(0.0 < self.first <= 1.0, "first", self.first, "a number above 0, at most 1")

    def describe(self) -> str:
        """Return whose factor it is."""
        return "relaxed by Aitken's factor"


@dataclass(frozen=True, slots=True)
class QuasiNewton(Accelerator):
    """Newton's method, a Jacobian from the iterations so far: IQN-ILS (Degroote, Bathe & Vierendeels 2009).

    Columns, differences between iterations, are used again in the next `reuse` steps; those that depend on
    newer ones, up to `filter`, are dropped.
    """

    reuse: Annotated[int, "steps in which columns are used again"] = 8
    filter: Annotated[float, "what depends on newer columns up to this is dropped"] = 1e-8
    alternative = "newton"

    def __post_init__(self) -> None:
        expect(is_whole(self.reuse), "reuse", self.reuse, "a whole number from 0 on")
        expect(0.0 < self.filter < 1.0, "filter", self.filter, "a number between 0 and 1")

    @property
    def title(self) -> str:
        """As the literature writes it."""
        return "quasi-Newton"

    def describe(self) -> str:
        """Return where its matrix comes from."""
        return "accelerated by IQN-ILS"

    def predict(self, eigenvalues: Any) -> tuple[float | None, int | None]:
        """Return the iterations: one to begin with, one for each direction that differs, one to confirm."""
        different = {complex(round(v.real, 6), round(v.imag, 6)) for v in eigenvalues if abs(v) > 1e-6}
        return None, len(different) + 3


@dataclass(frozen=True, slots=True)
class Newton(Accelerator):
    """Newton's method: one more iteration for each number handed back gives a column of the Jacobian.

    The matrix is kept from step to step, and found anew when the residual does not fall to `falls` of itself.
    `jacobian` is that matrix, known beforehand: rows of the derivatives of what an iteration finds by what it
    is given, both sorted by name (`hocket.interface_jacobian`). It is kept, and no iteration is tried for it.
    """

    falls: Annotated[float, "the fall of the residual that keeps the matrix"] = 0.1
    jacobian: Annotated[
        Sequence[Sequence[float]] | None, "derivatives of what is found by what is given, if they are known"
    ] = None
    alternative = ""
    leads_fixed_sweeps = True
    predicts = True

    def __post_init__(self) -> None:
        fits = is_number(self.falls) and 0.0 < self.falls < 1.0
        expect(fits, "falls", self.falls, "a number between 0 and 1")
        if self.jacobian is None:
            return
        if isinstance(self.jacobian, np.ndarray):
            set_fields(self, jacobian=self.jacobian.tolist())
        listed = isinstance(self.jacobian, Sequence) and all(
            isinstance(row, Sequence) and not isinstance(row, str) and len(row) == len(self.jacobian)
            for row in self.jacobian
        )
        fits = listed and len(self.jacobian) > 0 and all(is_number(x) for row in self.jacobian for x in row)
        expect(fits, "jacobian", self.jacobian, "a square matrix: rows of numbers")
        set_fields(self, jacobian=tuple(tuple(float(x) for x in row) for row in self.jacobian))

    def describe(self) -> str:
        """Return its name, and where its matrix comes from."""
        return "by Newton's method" + ("" if self.jacobian is None else " with a given Jacobian")

    def predict(self, eigenvalues: Any) -> tuple[float | None, int | None]:  # noqa: ARG002
        """Return how many a linear iteration takes: the matrix is found in the second."""
        return None, 3
