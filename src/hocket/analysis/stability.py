"""Stability of a macro step: its spectral radius, its least-damped modes, and the convergence of iterations.

In:  a Reading, or a Composite
Out: a Stability: spectral radius and modes with their participation factors; IterationConvergence of levels
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocket.analysis.linear_reading import Cell, Reading, read_linear
from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.coupling.graph import strong_components
from hocket.errors import HocketError
from hocket.files.plotting import BLUE, GREY, RED, draw_share_bars, new_figure, set_axes_title
from hocket.model.composite import Composite
from hocket.model.protocols import Array
from hocket.model.units import Share
from hocket.plan import Repeat
from hocket.planning.planner import plan_tree


@dataclass(frozen=True)
class IterationConvergence:
    """The iteration of one level."""

    level: str
    plain: float
    """The contraction factor of the plain iteration: the spectral radius of K, results over guesses."""
    factor: float | None
    """The contraction factor with acceleration; None: it changes from iteration to iteration."""
    how: str
    unknowns: int
    sweeps: int | None
    """About how many reach the tolerance; None: they do not, or it is not known."""

    @property
    def settles(self) -> bool:
        """Whether it converges; of Aitken and Newton-like accelerations this is assumed."""
        return self.factor is None or self.factor < 1.0

    @property
    def name(self) -> str:
        """The level, in words."""
        return f"`{self.level}`" if self.level else "the outermost level"

    def row(self) -> dict[str, object]:
        """Return it as a row of a table."""
        return {
            "level": self.level or "outermost",
            "contraction factor, plain": self.plain,
            "acceleration": self.how,
            "contraction factor": self.factor,
            "unknowns": self.unknowns,
            "iterations, about": self.sweeps,
        }


@dataclass(frozen=True)
class IterationTable(Measure):
    """The iterations of all levels."""

    levels: tuple[IterationConvergence, ...]
    title = "iteration convergence"

    @property
    def outcome(self) -> Outcome:
        """Bad where one diverges: what else is said will not be reached."""
        return Outcome.GOOD if all(each.settles for each in self.levels) else Outcome.BAD

    def verdict(self) -> list[str]:
        """Return a line for each iteration that diverges."""
        return [
            f"iteration diverges: contraction factor {each.factor:.3g} in {each.name} "
            f'(acceleration: {each.how}); try accelerate = "quasi-newton"'
            for each in self.levels
            if not each.settles
        ]

    def rows(self) -> Rows:
        return [each.row() for each in self.levels]


def iteration_convergence(reading: Reading) -> tuple[IterationConvergence, ...]:
    """Return how the iterations of all levels converge; of a level the last one counts."""
    loops = plan_tree(reading.composite).instructions(Repeat)
    last = {level.path: loop for level, loop in loops if loop.until is not None}
    return tuple(_level_convergence(path, K, last[path]) for path, K in reading.sweeps)


def _level_convergence(path: str, K: Array, loop: Repeat) -> IterationConvergence:
    eigenvalues = np.linalg.eigvals(K)
    plain = float(np.abs(eigenvalues).max())
    factor: float | None = plain
    how, sweeps = "none", None
    if loop.accelerate is not None:
        how, (factor, sweeps) = loop.accelerate.title, loop.accelerate.predict(eigenvalues)
    if factor is not None:
        assert loop.until is not None
        sweeps = _count_iterations(factor, loop.until)
    return IterationConvergence(path, plain, factor, how, len(K), sweeps)


def _count_iterations(factor: float, until: float) -> int | None:
    """Return how many iterations of a contraction factor reach a tolerance, the first one included."""
    return None if factor >= 1.0 else 2 + math.ceil(math.log(until) / math.log(max(factor, until)))


DENSE = 2000
"""Numbers up to which all eigenvalues are computed; beyond, the largest ones only."""
NOTHING = 1e-6
"""A mode that is gone after one step."""
MARGIN = 1e-9
"""How far below one a radius must be to decide."""
EDGE = 1e-7
"""How far above one rounding may bring it: double eigenvalues split by the root of the last digit."""
FOLLOWS = 0.8
"""Of the rate at which a system grows: a coupling that grows slower than this is elsewhere."""
DOMINANT = 0.05
"""The participation factor from which on a state is named in the verdict."""


@dataclass(frozen=True)
class Participation:
    """The participation factor of a simulator, by its states, or of an output, by its samples."""

    name: str
    kind: str
    share: float


@dataclass(frozen=True)
class Mode:
    """An eigenvalue of the macro step with its participation factors, which add up to one."""

    eigenvalue: complex
    period: float
    """Seconds of one step."""
    parts: tuple[Participation, ...]

    @property
    def radius(self) -> float:
        """The modulus of the eigenvalue."""
        return abs(self.eigenvalue)

    @property
    def damping_ratio(self) -> float:
        """That of s = ln(z) / T: -Re(s) / |s|; 0 on the unit circle, below 0 outside."""
        if not self.radius:
            return 1.0
        exponent = cmath.log(self.eigenvalue)
        return -exponent.real / abs(exponent) if exponent else 0.0

    @property
    def frequency(self) -> float:
        """Hertz; at most one turn in two steps."""
        return abs(cmath.phase(self.eigenvalue)) / (2.0 * math.pi * self.period)


def _format_eigenvalue(value: complex) -> str:
    """Return an eigenvalue, or both of a conjugate pair."""
    return f"{value.real:.6g}" + (f" ± {abs(value.imag):.6g}j" if value.imag else "")


@dataclass(frozen=True)
class Stability(Measure):
    """The verdict on one macro step repeated for ever."""

    rho: float
    """The spectral radius."""
    stable: bool
    """All eigenvalues are inside the unit circle, or on it and semisimple."""
    period: float
    modes: tuple[Mode, ...]
    """The largest, first."""
    levels: tuple[tuple[str, float | None], ...]
    """Path and spectral radius of each level by itself, its inputs held; None: it cannot run by itself."""
    eigenvalues: tuple[complex, ...] = ()
    """All that were computed, zeros left out."""
    exact_rho: float | None = None
    """That of the exact coupled system over the same time; None: not known."""
    drifts: bool = False
    """The exact system moves on and on, as a free body does."""
    feedback_rho: float | None = None
    """The spectral radius of what is in feedback loops, zero where there are none; None: that is all."""
    residual: float = 0.0
    """The largest fit residual of the linear models: how far off `rho` may be."""
    poorest: str = ""
    """The simulator that has it."""
    silent: str = ""
    """A simulator in a feedback loop that does not respond where it starts, and may switch later."""

    title = "least-damped modes"
    picture = ""

    @property
    def conclusive(self) -> bool:
        """Whether the spectral radius is further from one than the linear models may be wrong.

        Of what no feedback loop holds, nothing is to be judged: no coupling destabilises it.
        """
        if self.silent and self.stable:
            return False
        near = abs(self.rho - 1.0) <= max(self.residual, EDGE) and self.feedback_decays
        return self.residual <= MARGIN or near or abs(self.rho - 1.0) > self.residual

    @property
    def feedback_decays(self) -> bool:
        """Whether all that is in feedback loops decays, so that what grows is no matter of the coupling."""
        return self.feedback_rho is not None and self.feedback_rho < 1.0 - max(self.residual, MARGIN)

    @property
    def drifts_alone(self) -> bool:
        """Whether only simulators outside of feedback loops drift, as integrators in a chain do."""
        return self.feedback_decays and not self.stable and self.rho <= 1.0 + max(self.residual, EDGE)

    @property
    def grows_by_itself(self) -> bool:
        """Whether the exact system grows at least as fast as the coupling, which then is not to blame."""
        if self.drifts_alone:
            return True
        if self.exact_rho is None:
            return False
        if self.drifts and self.rho <= 1.0 + EDGE:
            return True
        return (
            self.exact_rho > 1.0 + MARGIN and math.log(self.rho) <= 1.05 * math.log(self.exact_rho) + MARGIN
        )

    @property
    def outcome(self) -> Outcome:
        """Bad if the coupling adds growth."""
        if not self.conclusive:
            return Outcome.NOT_JUDGED
        return Outcome.GOOD if self.stable or self.grows_by_itself else Outcome.BAD

    def verdict(self) -> list[str]:
        """Return one line: stable or not, how fast errors grow, and in which states."""
        if self.conclusive:
            return [self._stability_line()]
        if self.silent and self.stable:
            where = f"`{self.silent}` is in a feedback loop, does not respond where it starts"
            return [f"not judged: {where}, and may switch later; until then {self._stability_line()}"]
        doubt = f"the fit residual {self.residual:.2g} of the linear model of `{self.poorest}` exceeds"
        return [f"not judged: {doubt} the distance of the spectral radius from 1; {self._stability_line()}"]

    def _stability_line(self) -> str:
        rho = f"spectral radius {self.rho:.6g}"
        if self.stable:
            return f"stable: {rho}" + (", on the stability boundary" if self.rho > 1.0 - MARGIN else "")
        if self.drifts_alone:
            drifting = self.modes[0].parts[0].name
            return f"stable but for `{drifting}`, which drifts by itself, in no feedback loop: {rho}"
        if self.grows_by_itself and self.drifts:
            return f"the exact system drifts, as a free body does, and the coupling follows it: {rho}"
        if self.grows_by_itself:
            assert self.exact_rho is not None
            follows = math.log(self.rho) > FOLLOWS * math.log(self.exact_rho)
            how = "follows it" if follows else "does not follow it"
            grows = f"the exact system is unstable, spectral radius {self.exact_rho:.6g}"
            return f"{grows}, and the coupling {how}: {rho}"
        mode = self.modes[0]
        pace = "the error grows slower than exponentially"
        if mode.radius > 1.0:
            pace = f"the error doubles every {math.log(2.0) / math.log(mode.radius) * self.period:.3g} s"
        shape = f"({mode.frequency:.3g} Hz, damping ratio {mode.damping_ratio:.3f})"
        dominant = [part for part in mode.parts[:3] if part.share >= DOMINANT] or mode.parts[:1]
        names = ", ".join(f"`{part.name}` {Share(part.share):.0f}" for part in dominant)
        alone = "; it grows by itself, in no feedback loop" if self.feedback_decays else ""
        return f"unstable: {rho}; {pace} {shape}; dominant states: {names}{alone}"

    def rows(self) -> Rows:
        return [
            {
                "eigenvalue": _format_eigenvalue(mode.eigenvalue),
                "modulus": mode.radius,
                "frequency [Hz]": mode.frequency,
                "damping ratio": mode.damping_ratio,
                "participation factors": ", ".join(
                    f"{p.name} {Share(p.share):.0f}" for p in mode.parts[:4] if p.share >= 0.005
                ),
            }
            for mode in self.modes
            if mode.radius > NOTHING
        ]

    def facts(self) -> dict[str, Any]:
        return {
            "spectral radius": self.rho,
            "spectral radius of the exact system": self.exact_rho,
            "stable": self.stable,
            self.title: self.rows(),
        }

    def draw(self) -> Any:
        """Draw the eigenvalues with the unit circle, and the participation factors of the dominant mode."""
        figure, (plane, chart) = new_figure(9, 4, 2)
        turn = np.linspace(0.0, 2.0 * np.pi, 361)
        plane.plot(np.cos(turn), np.sin(turn), color=GREY, linewidth=0.8)
        values = np.array(self.eigenvalues)
        out = np.abs(values) > 1.0
        for chosen, colour in ((~out, BLUE), (out, RED)):
            plane.plot(values[chosen].real, values[chosen].imag, ".", color=colour, markersize=7)
        plane.set_aspect("equal")
        plane.grid(alpha=0.3)
        word = "stable" if self.stable else "unstable"
        set_axes_title(plane, f"{word}: spectral radius {self.rho:.6g}")
        plane.set_xlabel("real part")
        plane.set_ylabel("imaginary part")
        if self.modes:
            parts = self.modes[0].parts[:10]
            names = [
                part.name if part.kind == "simulator" else f"{part.name} ({part.kind})" for part in parts
            ]
            draw_share_bars(chart, names, [part.share for part in parts], BLUE if self.stable else RED)
            set_axes_title(chart, f"dominant mode, {self.modes[0].frequency:.3g} Hz")
            chart.set_xlabel("participation factor")
        return figure


@dataclass(frozen=True)
class LevelStability(Measure):
    """Each level by itself: they tell where the trouble is, and decide nothing."""

    levels: tuple[tuple[str, float | None], ...]
    title = "levels in isolation, inputs held"

    def rows(self) -> Rows:
        return [{"level": path or "outermost", "spectral radius": rho} for path, rho in self.levels]

    def facts(self) -> dict[str, Any]:
        return {"spectral radius of levels": dict(self.levels)}


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
    stable = are_powers_bounded(reading.core, rho)
    every = tuple(complex(value) for value in values[order])
    feedback = None if stable and rho < 1.0 - MARGIN else _feedback_radius(reading)
    levels = tuple(_radius_per_level(reading))
    return Stability(rho, stable, period, tuple(found), levels, every, feedback_rho=feedback)


def looping_leaves(composite: Composite) -> list[set[str]]:
    """Return the simulators in feedback loops: those that drive each other stand in one set."""
    wiring = plan_tree(composite).leaves.wiring
    edges = {
        (drive.child, child)
        for child, drives in enumerate(wiring.drives)
        for drive in drives
        if drive is not None and drive.child >= 0
    }
    return [
        {wiring.names[child] for child in group}
        for group in strong_components(len(wiring.names), edges)
        if len(group) > 1 or (group[0], group[0]) in edges
    ]


def driven_leaves(composite: Composite) -> set[str]:
    """Return the simulators with an input that another one drives."""
    wiring = plan_tree(composite).leaves.wiring
    return {
        wiring.names[child]
        for child, drives in enumerate(wiring.drives)
        if any(drive is not None and drive.child >= 0 for drive in drives)
    }


def _feedback_radius(reading: Reading) -> float | None:
    """Return the spectral radius of the simulators in feedback loops; None: that is all of them."""
    groups = looping_leaves(reading.composite)
    cells = [reading.cells[place] for place in reading.live]
    radius = 0.0
    for group in groups:
        inside = [
            place
            for place, cell in enumerate(cells)
            if cell.owner in group or any(name.startswith(f"{cell.owner}.") for name in group)
        ]
        if len(inside) == len(cells):
            return None
        block = reading.core[np.ix_(inside, inside)]
        radius = max(radius, float(np.abs(spectrum(block, 1, vectors=False)[0]).max(initial=0.0)))
    return radius


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


def are_powers_bounded(Phi: Array, rho: float) -> bool:
    """Return whether the powers of a matrix with this spectral radius stay bounded: the rule of stability.

    Near one the powers themselves decide, not eigenvalues: rounding moves those that are double.
    """
    return rho < 1.0 - MARGIN or (rho <= 1.0 + EDGE and not powers_grow(Phi))


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
    """Return the participation factors of a mode: products of left and right eigenvector, added up by owner.

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
