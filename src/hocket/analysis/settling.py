"""Do the iterations settle, and how fast: what a sweep makes of what is wrong.

In:  a Reading
Out: a Settling for each level that iterates to a tolerance
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hocket.analysis.linear import Reading
from hocket.engine.composite import Composite
from hocket.plan import Accelerator, Aitken, Newton, QuasiNewton, Relax, Repeat, walk


@dataclass(frozen=True)
class IterationConvergence:
    """The iteration of one level."""

    level: str
    plain: float
    """The factor of a plain sweep: the spectral radius of K, what is found over what is given."""
    factor: float | None
    """The factor of a sweep as it is led; None: that changes from sweep to sweep."""
    how: str
    unknowns: int
    sweeps: int | None
    """How many bring what is wrong below the tolerance, about; None: they do not, or it is not known."""

    @property
    def settles(self) -> bool:
        """Whether it ends; what learns on the way is trusted to."""
        return self.factor is None or self.factor < 1.0

    @property
    def name(self) -> str:
        """The level, in words."""
        return f"`{self.level}`" if self.level else "the outermost level"

    def row(self) -> dict[str, object]:
        """Return it as a row of a table."""
        return {
            "level": self.level or "outermost",
            "plain factor": self.plain,
            "led": self.how,
            "factor": self.factor,
            "numbers handed back": self.unknowns,
            "sweeps, about": self.sweeps,
        }


def iteration_convergence(reading: Reading) -> tuple[IterationConvergence, ...]:
    """Return how the iterations of all levels settle."""
    repeats = _tolerance_loops(reading.composite)
    return tuple(_level_convergence(path, K, repeats[path]) for path, K in reading.sweeps)


def _tolerance_loops(composite: Composite) -> dict[str, Repeat]:
    """Return the last iteration to a tolerance of each level."""
    return {
        level.path: instruction
        for level in composite.blueprint.levels()
        for _, instruction in walk(level.plan.step)
        if isinstance(instruction, Repeat) and instruction.until is not None
    }


def _level_convergence(path: str, K: np.ndarray, repeat: Repeat) -> IterationConvergence:
    eigenvalues = np.linalg.eigvals(K)
    plain = float(np.abs(eigenvalues).max())
    assert repeat.until is not None
    factor, how, sweeps = _accelerated_factor(eigenvalues, repeat.accelerate)
    if factor is not None:
        sweeps = _count_iterations(factor, repeat.until)
    return IterationConvergence(path, plain, factor, how, len(K), sweeps)


def _accelerated_factor(
    eigenvalues: np.ndarray, accelerate: Accelerator | None
) -> tuple[float | None, str, int | None]:
    """Return the factor, words, and the sweeps where they do not follow from it."""
    match accelerate:
        case None:
            return float(np.abs(eigenvalues).max()), "plain", None
        case Relax(part):
            return float(np.abs(1.0 - part + part * eigenvalues).max()), f"relaxed by {part:g}", None
        case Aitken():
            return None, "Aitken", None
        case QuasiNewton():
            # one sweep to begin with, one for each direction that differs, one to see that it is right
            different = {complex(round(v.real, 6), round(v.imag, 6)) for v in eigenvalues if abs(v) > 1e-6}
            return None, "quasi-Newton", len(different) + 3
        case Newton():
            return None, "Newton", 3


def _count_iterations(factor: float, until: float) -> int | None:
    """Return how many sweeps of a factor bring what is wrong below a tolerance, the first one included."""
    if factor >= 1.0:
        return None
    return 2 + math.ceil(math.log(until) / math.log(max(factor, until)))
