"""Switched systems: each mode by its spectral radius, and what can be proven of switching between them.

In:  a linear Composite, and for its simulators that switch the tangents of their modes
Out: a SwitchedStability: spectral radii, a common quadratic Lyapunov function or a dwell time

The statements on switching are about the exact system, x' = A_k x + b_k in mode k: steps of the coupling that
end at events have all lengths, and no function is known that falls in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocket.analysis.exact_solution import ExactSolution, block_diagonal, exact_solution
from hocket.analysis.linear_models import Tangent, merge_micro_steps, named_leaves
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.measure import Measure, Outcome, Rows
from hocket.analysis.stability import MARGIN, are_powers_bounded, looping_leaves, spectral_radius
from hocket.analysis.switched_modes import OdeModes, mode_combinations
from hocket.errors import HocketError
from hocket.model.composite import Composite
from hocket.model.protocols import Array, Model, state_count
from hocket.planning.parameters import with_leaves
from hocket.simulators.state_space import StateSpace

COMBINATIONS = 16
"""Modes of the whole that are read."""
SHARPENED, ROUNDS = (10.0, 100.0, 1e3, 1e4, 1e5), 500
"""How sharp the bound of the largest eigenvalue is, one after the other, and how many steps each takes."""
WIDEST = 40
"""States up to which it is searched for."""
SURE = 1e-9
"""By how much, relative to its size, a matrix must be negative definite: rounding decides nothing."""
DECAYS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Parts of the slowest decay that are tried for a dwell time: fast ones need steeper functions."""


@dataclass(frozen=True)
class ModeStability:
    """One mode of the whole: the coupling as if it stayed in it."""

    name: str
    rho: float
    stable: bool
    abscissa: float | None
    """The largest real part of the eigenvalues of the exact system, per second; None: not known."""


@dataclass(frozen=True)
class SwitchedStability(Measure):
    """What can be said of a coupling whose equations change."""

    modes: tuple[ModeStability, ...]
    whole: bool
    """Whether these are all modes, as far as can be seen."""
    common: bool
    """Whether the exact system has a common quadratic Lyapunov function, and nothing but modes changes."""
    dwell: float | None
    """Seconds between events from which on the exact system is proven to stay bounded; None: not known."""
    alone: bool
    """Whether the exact system is what is run: no feedback loops between simulators, nothing approximated."""

    title = "stability per mode"

    @property
    def proven(self) -> bool:
        """Whether it stays bounded however it switches."""
        return self.common and self.alone and self.whole and all(mode.stable for mode in self.modes)

    @property
    def all_stable(self) -> bool:
        """Whether each mode that was found is stable by itself."""
        return all(mode.stable for mode in self.modes)

    @property
    def outcome(self) -> Outcome:
        """Not judged, unless there is a proof."""
        return Outcome.GOOD if self.proven else Outcome.NOT_JUDGED

    def verdict(self) -> list[str]:
        """Return what each mode is, and what is proven of switching."""
        count = (
            "in its only mode" if len(self.modes) == 1 else f"in each of the {len(self.modes)} modes found"
        )
        worst = max(self.modes, key=lambda mode: mode.rho)
        radius = f"largest spectral radius {worst.rho:.6g}"
        if self.proven:
            proof = "common quadratic Lyapunov function"
            return [f"stable {count}, {radius}; bounded under any switching: {proof}"]
        failing = [mode for mode in self.modes if not mode.stable]
        if failing:
            what = f"not stable in {len(failing)} of {len(self.modes)} modes ({failing[0].name})"
            return [f"not judged: {what}, {radius}; switching not judged"]
        lines = [f"not judged: stable {count}, {radius}; switching not judged"]
        return lines + [f"not judged: switching of the coupling; {said}" for said in self._statements()]

    @property
    def doubt(self) -> str:
        """What is not known, in a few words."""
        failing = sum(not mode.stable for mode in self.modes)
        if failing:
            return f"not stable in {failing} of {len(self.modes)} modes, switching not judged"
        each = "stable in its only mode" if len(self.modes) == 1 else "stable in each mode"
        return f"{each}, switching not judged"

    def _statements(self) -> list[str]:
        """Return what is proven, which is of the exact system only."""
        if not self.whole:
            return ["there may be modes that were not found"]
        proven = "proven of the exact system only: bounded"
        if self.common:
            return [f"{proven} under any switching (common quadratic Lyapunov function)"]
        if self.dwell is not None:
            return [f"{proven} if its events are more than {self.dwell:.3g} s apart (dwell time)"]
        return []

    def rows(self) -> Rows:
        return [
            {
                "mode": mode.name,
                "spectral radius": mode.rho,
                "stable": mode.stable,
                "largest real part [1/s]": mode.abscissa,
            }
            for mode in self.modes
        ]

    def notes(self) -> list[str]:
        return self._statements()

    def facts(self) -> dict[str, Any]:
        return {
            self.title: self.rows(),
            "all modes found": self.whole,
            "common quadratic Lyapunov function": self.common,
            "dwell time [s]": self.dwell,
        }


def switched_stability(
    composite: Composite, modes: Mapping[str, OdeModes], certain: bool = True
) -> SwitchedStability:
    """Return what can be said of a linear composite, some simulators of which have several modes.

    `certain`: the others are linear themselves, and nothing that switches depends on time.
    """
    paths = list(modes)
    combinations, every = mode_combinations([len(modes[path].tangents) for path in paths], COMBINATIONS)
    found, solutions = [], []
    for chosen in combinations:
        stand_ins: dict[str, Model] = {
            path: modes[path].tangents[mode] for path, mode in zip(paths, chosen, strict=True)
        }
        variant = merge_micro_steps(with_leaves(composite, stand_ins))
        reading = read_linear(variant)
        rho, solution = spectral_radius(reading), _known_solution(variant)
        name = "; ".join(
            f"{path}: {modes[path].names[mode]}" for path, mode in zip(paths, chosen, strict=True)
        )
        stable = are_powers_bounded(reading.core, rho)
        found.append(ModeStability(name, rho, stable, None if solution is None else _abscissa(solution.A)))
        solutions.append(solution)
    known = [each for each in solutions if each is not None]
    whole = every and all(each.whole for each in modes.values())
    alone = certain and not looping_leaves(composite) and _flows_exactly(composite)
    common, dwell = False, None
    if len(known) == len(found):
        resets = _whole_resets(composite, modes)
        flows = [each.A for each in known]
        common = not resets and common_lyapunov_matrix(flows) is not None
        dwell = 0.0 if common else dwell_time(flows, resets)
    return SwitchedStability(tuple(found), whole, common, dwell, alone)


def _flows_exactly(composite: Composite) -> bool:
    """Return whether all simulators are integrated without an error worth speaking of."""
    return all(
        isinstance(model, (StateSpace, Tangent)) and model.method == "exact"
        for _, model in named_leaves(composite)
    )


def _known_solution(composite: Composite) -> ExactSolution | None:
    try:
        return exact_solution(composite)
    except (HocketError, ValueError, np.linalg.LinAlgError):  # of a mode whose maps have no logarithm
        return None


def _abscissa(A: Array) -> float:
    return float(np.real(np.linalg.eigvals(A)).max()) if len(A) else -math.inf


def _whole_resets(composite: Composite, modes: Mapping[str, OdeModes]) -> list[Array]:
    """Return what single events make of the states of all simulators."""
    leaves = named_leaves(composite)
    found = []
    for path, each in modes.items():
        for reset in each.resets:
            blocks = [
                reset if name == path else np.eye(_state_count(name, model, modes)) for name, model in leaves
            ]
            found.append(block_diagonal(blocks))
    return found


def _state_count(name: str, model: Any, modes: Mapping[str, OdeModes]) -> int:
    return len(modes[name].tangents[0].x0) if name in modes else state_count(model) or 0


# what is proven


def common_lyapunov_matrix(flows: Sequence[Array]) -> Array | None:
    """Return P > 0 with A^T P + P A < 0 for all A; None: none was found, which proves nothing.

    The Lyapunov functions of each A and of their mean are tried, then the largest eigenvalue is minimised.
    What is returned was verified.
    """
    from scipy.linalg import LinAlgError, solve_continuous_lyapunov

    if not flows or not len(flows[0]):
        return np.zeros((0, 0))
    if max(map(_abscissa, flows)) >= -SURE * max(float(np.abs(A).max()) for A in flows):
        return None
    n = len(flows[0])
    candidates = [np.eye(n)]
    for A in (np.mean(flows, axis=0), *flows):
        try:
            candidates.append(solve_continuous_lyapunov(A.T, -np.eye(n)))
        except (LinAlgError, ValueError):
            continue
    for P in candidates:
        if _falls_in_all(P, flows):
            return P
    P = _minimise_growth(flows, candidates[-1]) if n <= WIDEST else candidates[0]
    return P if _falls_in_all(P, flows) else None


def _minimise_growth(flows: Sequence[Array], first: Array) -> Array:
    """Return the P of trace n for which the largest eigenvalue of all A^T P + P A is about the smallest.

    That is convex. The largest eigenvalue is replaced by a smooth bound of it, which is sharpened step by
    step. Where all A are stable, no other condition is needed: P is positive once all changes are negative.
    """
    from scipy.linalg import cholesky
    from scipy.optimize import minimize

    n = len(first)
    root = cholesky(0.5 * (first + first.T), lower=True)  # coordinates in which the first guess is round
    inside = [np.linalg.solve(root, A.T @ root).T for A in flows]
    rows, columns = np.triu_indices(n)
    scale = max(float(np.linalg.norm(A, 2)) for A in inside)

    def matrix(p: Array) -> Array:
        P = np.zeros((n, n))
        P[rows, columns] = P[columns, rows] = p
        return np.asarray(P + (n - np.trace(P)) / n * np.eye(n))

    def growth(p: Array, sharp: float) -> tuple[float, Array]:
        P = matrix(p)
        parts = [np.linalg.eigh((A.T @ P + P @ A) / scale) for A in inside]
        top = max(float(values[-1]) for values, _ in parts)
        weights = [np.exp(sharp * (values - top)) for values, _ in parts]
        total = sum(float(each.sum()) for each in weights)
        slope = np.zeros((n, n))
        for A, (_, vectors), weight in zip(inside, parts, weights, strict=True):
            middle = (vectors * (weight / total)) @ vectors.T
            slope += (A @ middle + middle @ A.T) / scale
        slope -= np.trace(slope) / n * np.eye(n)
        slope = 2.0 * slope - np.diag(np.diag(slope))
        return top + math.log(total) / sharp, slope[rows, columns]

    p = np.eye(n)[rows, columns]
    for sharp in SHARPENED:
        p = minimize(growth, p, args=(sharp,), jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS}).x
        found = np.asarray(root @ matrix(p) @ root.T)
        if _falls_in_all(found, flows):
            return found
    return found


def _falls_in_all(P: Array, flows: Sequence[Array]) -> bool:
    """Return whether x^T P x is positive and falls along all flows, by more than rounding."""
    P = 0.5 * (P + P.T)
    values = np.linalg.eigvalsh(P)
    if not np.isfinite(values).all() or values[0] <= SURE * values[-1]:
        return False
    for A in flows:
        change = A.T @ P + P @ A
        size = float((np.abs(A.T) @ np.abs(P)).max())
        if float(np.linalg.eigvalsh(0.5 * (change + change.T))[-1]) >= -SURE * size:
            return False
    return True


def dwell_time(flows: Sequence[Array], resets: Sequence[Array]) -> float | None:
    """Return a time between events from which on functions x^T P_k x fall over all modes; None: none.

    With (A_k + a)^T P_k + P_k (A_k + a) < 0 the function of mode k falls as exp(-2 a t); at an event it grows
    by at most mu, so that events ln(mu) / (2 a) apart are far enough (Hespanha & Morse 1999).
    """
    from scipy.linalg import eigh, solve_continuous_lyapunov

    slowest = -max(map(_abscissa, flows), default=-math.inf)
    if not flows or not len(flows[0]) or slowest <= MARGIN:
        return None
    n, best = len(flows[0]), None
    for part in DECAYS:
        decay = part * slowest
        functions: list[Any] = [
            solve_continuous_lyapunov((A + decay * np.eye(n)).T, -np.eye(n)) for A in flows
        ]
        shifted = [A + decay * np.eye(n) for A in flows]
        if not all(_falls_in_all(P, [A]) for P, A in zip(functions, shifted, strict=True)):
            continue
        growth = 1.0
        for before in functions:
            for after in functions:
                for reset in (np.eye(n), *resets):
                    growth = max(growth, float(eigh(reset.T @ after @ reset, before, eigvals_only=True)[-1]))
        needed = math.log(growth) / (2.0 * decay) * (1.0 + SURE)
        best = needed if best is None else min(best, needed)
    return best
