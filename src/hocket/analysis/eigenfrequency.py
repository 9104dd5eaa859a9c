"""The macro step by the eigenfrequency rule: a tenth of the shortest period of the coupled system.

In:  the exact solution of a coupling, and its macro step
Out: an EigenfrequencyStep: the highest frequency, and the step that the rule offers

The rule is that of Völker 2011 (H = 1/(10 f_max)), who takes the frequencies from a simulation of the whole;
here they are those of the coupled linear models (theory, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import pi
from typing import Any

import numpy as np

from hocket.analysis.exact_solution import ExactSolution
from hocket.analysis.measure import Measure, Rows

PARTS = 10
"""Macro steps in the shortest period."""


@dataclass(frozen=True)
class EigenfrequencyStep(Measure):
    """The step that the highest eigenfrequency asks for, beside the one there is."""

    frequency: float
    """In Hz, the highest of the coupled system; zero: nothing oscillates."""
    present: Fraction
    """The outermost macro step, in s."""

    title = "eigenfrequency rule"

    @property
    def step(self) -> float | None:
        """H = 1/(10 f_max), in s; None: nothing oscillates."""
        return 1.0 / (PARTS * self.frequency) if self.frequency > 0.0 else None

    def rows(self) -> Rows:
        """Return the highest frequency and both steps."""
        if self.step is None:
            return []
        return [
            {
                "highest eigenfrequency [Hz]": self.frequency,
                "macro step by the rule [s]": self.step,
                "present macro step [s]": float(self.present),
            }
        ]

    def notes(self) -> list[str]:
        """Say what the present step is by the rule."""
        if self.step is None:
            return ["nothing oscillates: the rule offers no step"]
        ratio = float(self.present) / self.step
        told = f"{ratio:.3g} times the step of the rule, a tenth of the shortest period"
        return [f"the present macro step is {told}"]

    def facts(self) -> dict[str, Any]:
        return {self.title: self.rows()}


def eigenfrequency_step(exact: ExactSolution, present: Fraction) -> EigenfrequencyStep:
    """Return what the rule offers for a coupled linear system."""
    values = np.linalg.eigvals(exact.A) if len(exact.A) else np.zeros(0)
    size = np.abs(values).max(initial=0.0)
    turning = np.abs(values.imag)
    highest = float(turning[turning > 1e-9 * size].max(initial=0.0))
    return EigenfrequencyStep(highest / (2.0 * pi), present)
