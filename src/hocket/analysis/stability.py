"""Does it grow? The spectral radius of a step, and who takes part in what grows.

In:  a Reading, or a Composite
Out: a Stability: the radius of the whole and of each level alone, the modes that decide
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hocket.analysis.linear_reading import Cell, Reading, read_linear
from hocket.errors import HocketError
from hocket.model.composite import Composite
from hocket.model.protocols import Array
from hocket.plan import Accelerator, Repeat, walk
from hocket.planning.planner import plan_tree


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
        for level in plan_tree(composite).levels()
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
    if accelerate is None:
        return float(np.abs(eigenvalues).max()), "plain", None
    factor, sweeps = accelerate.predict(eigenvalues)
    return factor, accelerate.title, sweeps


def _count_iterations(factor: float, until: float) -> int | None:
    """Return how many sweeps of a factor bring what is wrong below a tolerance, the first one included."""
    if factor >= 1.0:
        return None
    return 2 + math.ceil(math.log(until) / math.log(max(factor, until)))


DENSE = 2000
"""Numbers up to which all eigenvalues are computed; beyond, the largest ones only."""
NOTHING = 1e-6
"""A mode that is gone after one step."""
MARGIN = 1e-9
"""How far below one a radius must be to decide."""
EDGE = 1e-7
"""How far above one rounding may bring it: double eigenvalues split by the root of the last digit."""


@dataclass(frozen=True)
class Participation:
    """Who takes part in a mode: a simulator by its states, or an output by its samples."""

    name: str
    kind: str
    share: float


@dataclass(frozen=True)
class Mode:
    """An eigenvalue of the step, and who takes part in it; shares add up to one."""

    eigenvalue: complex
    period: float
    """Seconds of one step."""
    parts: tuple[Participation, ...]

    @property
    def radius(self) -> float:
        """The factor per step."""
        return abs(self.eigenvalue)

    @property
    def frequency(self) -> float:
        """Hertz; at most one turn in two steps."""
        return abs(cmath.phase(self.eigenvalue)) / (2.0 * math.pi * self.period)


@dataclass(frozen=True)
class Stability:
    """The verdict on one step repeated for ever."""

    rho: float
    stable: bool
    """Nothing grows: all eigenvalues are inside the unit circle, or on it without growing together."""
    period: float
    modes: tuple[Mode, ...]
    """The largest, first."""
    levels: tuple[tuple[str, float | None], ...]
    """Path and radius of each level by itself, its inputs held; None: it cannot run by itself."""
    eigenvalues: tuple[complex, ...] = ()
    """All that were computed, zeros left out."""

    def rows(self) -> list[dict[str, object]]:
        """Return one row for each mode."""
        return [
            {
                "factor per step": mode.radius,
                "frequency [Hz]": mode.frequency,
                "takes part": ", ".join(
                    f"{p.name} {p.share:.0%}" for p in mode.parts[:4] if p.share >= 0.005
                ),
            }
            for mode in self.modes
            if mode.radius > NOTHING
        ]

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the eigenvalues with the unit circle, and who takes part in the largest mode."""
        from hocket.analysis.figures import draw_modes

        return draw_modes(self, path)


def stability(what: Reading | Composite, modes: int = 6) -> Stability:
    """Return whether a coupling is stable, and why not."""
    reading = read_linear(what) if isinstance(what, Composite) else what
    period = float(reading.period)
    values, right, left = spectrum(reading.core, modes)
    order = np.argsort(-np.abs(values), kind="stable")
    rho = float(np.abs(values[order[0]])) if len(order) else 0.0
    cells = [reading.cells[place] for place in reading.live]
    kept = [place for place in order if values[place].imag >= 0.0][:modes]
    found = [
        Mode(complex(values[place]), period, participation_factors(cells, right[:, place], left[:, place]))
        for place in kept
    ]
    stable = rho < 1.0 - MARGIN or (rho <= 1.0 + EDGE and not powers_grow(reading.core))
    every = tuple(complex(value) for value in values[order])
    return Stability(rho, stable, period, tuple(found), tuple(_radius_per_level(reading)), every)


def spectral_radius(what: Reading | Composite) -> float:
    """Return the spectral radius of one period."""
    reading = read_linear(what) if isinstance(what, Composite) else what
    values = spectrum(reading.core, 1, vectors=False)[0]
    return float(np.abs(values).max(initial=0.0))


def spectrum(Phi: Array, wanted: int, vectors: bool = True) -> tuple[Any, Any, Any]:
    """Return eigenvalues, right and left eigenvectors in columns; of a large matrix the largest ones only."""
    from scipy.linalg import eig, eigvals

    found: Any
    if len(Phi) <= DENSE:
        if not vectors or not len(Phi):
            return eigvals(Phi) if len(Phi) else np.zeros(0), Phi, Phi
        found = eig(Phi, left=True, right=True)
        return found[0], found[2], found[1]
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import ArpackNoConvergence, eigs

    sparse = csr_array(Phi)
    try:
        values, right = eigs(sparse, k=2 * wanted + 2, which="LM")
        others, left = eigs(sparse.T, k=2 * wanted + 2, which="LM")
    except ArpackNoConvergence:  # many of one size: they are all computed, which takes its time
        found = eig(Phi, left=True, right=True)
        return found[0], found[2], found[1]
    nearest = [int(np.argmin(np.abs(others.conj() - value))) for value in values]
    return values, right, left[:, nearest].conj()


def powers_grow(Phi: Array) -> bool:
    """Return whether the powers of a matrix grow, be it ever so slowly, as with a double eigenvalue."""
    power, sizes = np.array(Phi, dtype=float), []
    with np.errstate(over="ignore", invalid="ignore"):
        for squared in range(1, 37):
            power = power @ power
            if squared in (30, 36):
                sizes.append(float(np.abs(power).max(initial=0.0)))
    return not (np.isfinite(sizes).all() and sizes[1] <= 4.0 * sizes[0] + 1e-12)


def participation_factors(cells: list[Cell], right: Array, left: Array) -> tuple[Participation, ...]:
    """Return who takes part in a mode: the products of left and right eigenvector, added up by owner.

    Perez-Arriaga, Verghese & Schweppe (1982): such products do not depend on the scale of the numbers.
    """
    weights = np.abs(right * left.conj())
    total = float(weights.sum()) or 1.0
    shares: dict[tuple[str, str], float] = {}
    for cell, weight in zip(cells, weights, strict=True):
        simulator = cell.kind in ("state", "history")
        key = (cell.owner, "simulator") if simulator else (f"{cell.owner}.{cell.name}", cell.kind)
        shares[key] = shares.get(key, 0.0) + float(weight) / total
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return tuple(Participation(name, kind, share) for (name, kind), share in ranked if share > 1e-6)


def _radius_per_level(reading: Reading) -> list[tuple[str, float | None]]:
    found: list[tuple[str, float | None]] = []
    for level in plan_tree(reading.composite).levels():
        if not level.path:
            continue
        try:
            found.append((level.path, spectral_radius(level.composite)))
        except HocketError:
            found.append((level.path, None))
    return found
