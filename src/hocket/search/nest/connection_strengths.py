"""How strong each connection is: what a delay in it alone would add to the error, and to growth.

In:  a Composite of linear models and how long it runs
Out: Strengths: per connection the error and the growth it brings, and both between simulators

An input that is extrapolated with degree q over steps H drives the states with a defect of d = -c_q H^(q+1)
y^(q+1) on the average over a step, with c = 1/2, 5/12, 3/8 ...: the error constants of Adams-Bashforth
formulas (Hairer, Norsett & Wanner 1993, section III.1); a hold lags behind by half a step. An output that is
evaluated with the input of the step just made has the defect of its end, -H^(q+1) y^(q+1), in what it reacts
to at once; a consistent one has none. To first order the error e of the run is the response of the exact
coupled system to these defects (variation of constants), e' = A e + sum_j B_j d_j, so it is a sum over
connections; and a mode (lambda, v, w) moves by w* B_j d_j(v) (first-order perturbation of an eigenvalue:
Lancaster 1964). Connection by connection, these are the strengths, for an algorithm that steps all at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hocket.analysis.exact_solution import (
    ExactSolution,
    block_diagonal,
    exact_solution,
    leaf_system,
    wiring_matrices,
)
from hocket.analysis.forced_response import driven_solution
from hocket.analysis.source_playback import PlayedSource, played_sources
from hocket.model.composite import Composite, traits_of
from hocket.model.protocols import Array
from hocket.planning.planner import plan_tree

CONSTANTS = (1 / 2, 5 / 12, 3 / 8, 251 / 720)
"""Of Adams-Bashforth formulas, by degree."""
POINTS = (500, 8000)
"""Times at which the error is looked at, at least and at most."""
TURN = 4.0
"""So many of them while the fastest motion turns by one radian, or falls by e."""


@dataclass(frozen=True)
class Strength:
    """One connection between two simulators."""

    source: str
    target: str
    """The paths of output and input."""
    ends: tuple[str, str]
    """The simulators, or levels, of the scenario that it connects."""
    error: float
    """What it adds to the error, as a part of the largest value of the port that suffers most."""
    growth: float
    """What it adds to the growth of the mode that grows most, per second; negative: it damps."""


@dataclass(frozen=True)
class Strengths:
    """What each connection contributes at the present step, the strongest first."""

    connections: tuple[Strength, ...]
    step: float
    frequency: float
    """Hertz of the mode that `growth` is about."""
    growth: float
    """Of that mode, per second: that of the exact system, and what all connections add."""

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each connection."""
        whole = sum(each.error for each in self.connections) or 1.0
        return [
            {
                "connection": f"{each.source} -> {each.target}",
                "error": each.error,
                "of all": each.error / whole,
                "growth [1/s]": each.growth,
            }
            for each in self.connections
        ]

    def pairs(self, kind: str = "error") -> dict[tuple[str, str], float]:
        """Return how strong each simulator drives each other, by error or by growth; connections add up."""
        found: dict[tuple[str, str], float] = {}
        for each in self.connections:
            size = each.error if kind == "error" else max(each.growth, 0.0)
            found[each.ends] = found.get(each.ends, 0.0) + size
        return found

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many values each simulator hands to each other."""
        return Counter(each.ends for each in self.connections)


def strengths(composite: Composite, stop: Fraction) -> Strengths:
    """Return how strong the connections of a linear composite are in a run of `stop` seconds."""
    played = played_sources(composite)
    begin = played[0][1].began if played else Fraction(0)
    solution = driven_solution(composite, stop, begin) if played else exact_solution(composite)
    parts = _CoupledSystem.of(composite)
    links = list(_extrapolated_connections(composite))
    errors = _errors(solution, parts, links, float(stop))
    mode, own, moves = _growth(parts, links)
    kept = [
        Strength(link.source, link.target, link.ends, errors[number], float(moves[number]))
        for number, link in enumerate(links)
    ]
    ranked = sorted(kept, key=lambda each: (-each.error, -each.growth, each.target))
    frequency = abs(mode.imag) / (2.0 * math.pi)
    return Strengths(tuple(ranked), float(composite.step), frequency, own + float(np.sum(moves)))


@dataclass(frozen=True)
class _ExtrapolatedConnection:
    source: str
    target: str
    ends: tuple[str, str]
    row: int
    """The number of the input among all inputs of leaves."""
    port: int
    """The number of the output among all outputs."""
    gain: float
    degree: int
    step: float
    stale: bool

    @property
    def mean(self) -> float:
        """The factor of the derivative in the defect, on the average over a step."""
        return CONSTANTS[min(self.degree, len(CONSTANTS) - 1)] * self.last

    @property
    def last(self) -> float:
        """The same at the end of a step."""
        return float(self.step ** (self.degree + 1))


def _extrapolated_connections(composite: Composite) -> Iterator[_ExtrapolatedConnection]:
    """Yield the connections between different simulators of the outermost level."""
    design = plan_tree(composite)
    leaves = design.leaves
    wiring = leaves.wiring
    first = np.cumsum([0, *(len(model.outputs) for model in wiring.models)])
    step = float(design.composite.step)
    stale = traits_of(composite.orchestrator).outputs != "consistent"
    row = -1
    for child, drives in enumerate(wiring.drives):
        for number, drive in enumerate(drives):
            row += 1
            if drive is None or drive.child < 0:
                continue
            ends = wiring.names[drive.child].partition(".")[0], wiring.names[child].partition(".")[0]
            if ends[0] == ends[1]:
                continue  # inside a level that is there already
            source = f"{wiring.names[drive.child]}.{wiring.models[drive.child].outputs[drive.port].name}"
            target = f"{wiring.names[child]}.{wiring.models[child].inputs[number].name}"
            degree = drive.extrapolation.degree if drive.extrapolation is not None else 0
            place = int(first[drive.child]) + drive.port
            yield _ExtrapolatedConnection(source, target, ends, row, place, drive.gain, degree, step, stale)


@dataclass(frozen=True, eq=False)
class _CoupledSystem:
    """All leaves coupled, with disturbances d of what states are driven by, and f of outputs.

    x' = A x + B d + Bf f, y = C x + Df f.
    """

    A: Array
    C: Array
    B: Array
    Bf: Array
    Df: Array
    D: Array
    """What outputs react to at once, leaf by leaf."""

    @staticmethod
    def of(composite: Composite) -> _CoupledSystem:
        wiring = plan_tree(composite).leaves.wiring
        blocks = [
            _static_system(model) if isinstance(model, PlayedSource) else leaf_system(name, model)[:4]
            for name, model in zip(wiring.names, wiring.models, strict=True)
        ]
        A, B, C, D = (block_diagonal(parts) for parts in zip(*blocks, strict=True))
        L, _ = wiring_matrices(composite)
        Df: Array = np.asarray(np.linalg.inv(np.eye(len(C)) - D @ L), dtype=float)
        return _CoupledSystem(A + B @ L @ Df @ C, Df @ C, B, B @ L @ Df, Df, D)

    def defect(self, link: _ExtrapolatedConnection) -> tuple[Array, Array]:
        """Return how a unit of the derivative of a source acts on states and outputs, through its defect."""
        x, y = -link.mean * self.B[:, link.row], np.zeros(len(self.C))
        if link.stale:
            late = -link.last * self.D[:, link.row]
            x, y = x + self.Bf @ late, self.Df @ late
        return link.gain * x, link.gain * y


def _static_system(model: Any) -> tuple[Array, Array, Array, Array]:
    m, p = len(model.inputs), len(model.outputs)
    return np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0)), np.zeros((p, m))


def _errors(
    solution: ExactSolution,
    parts: _CoupledSystem,
    links: list[_ExtrapolatedConnection],
    stop: float,
) -> list[float]:
    """Return for each connection the largest error that it alone makes, relative to the values."""
    from scipy.linalg import expm

    if not links:
        return []
    size = len(parts.A)
    fastest = float(np.abs(np.linalg.eigvals(parts.A)).max(initial=0.0))
    count = round(min(max(POINTS[0], TURN * fastest * stop), POINTS[1]))
    spacing = stop / count
    along = solution.trajectory(np.linspace(0.0, stop, count + 1))
    scale = np.abs(along @ solution.weights().T).max(axis=0)
    scale = np.where(scale > 1e-12 * scale.max(initial=0.0), scale, np.inf)
    # the defects are lines between the times looked at: one exponential is exact for these
    chain = np.zeros((3 * size, 3 * size))
    chain[:size, :size], chain[:size, size : 2 * size] = parts.A, np.eye(size)
    chain[size : 2 * size, 2 * size :] = np.eye(size)
    flow = expm(chain * spacing)[:size]
    F, G, R = flow[:, :size], flow[:, size : 2 * size], flow[:, 2 * size :] / spacing
    pushes, shares = (np.array(each).T for each in zip(*map(parts.defect, links), strict=True))
    signals = np.column_stack([along @ solution.weights(link.degree + 1)[link.port] for link in links])
    x = np.zeros((size, len(links)))
    largest = np.zeros(len(links))
    now, bent = (G - R) @ pushes, R @ pushes
    for number in range(count):
        x = F @ x + now * signals[number] + bent * signals[number + 1]
        y = parts.C @ x + shares * signals[number + 1]
        largest = np.maximum(largest, (np.abs(y) / scale[:, None]).max(axis=0, initial=0.0))
    return [float(each) for each in largest]


def _growth(parts: _CoupledSystem, links: list[_ExtrapolatedConnection]) -> tuple[complex, float, Array]:
    """Return the mode that grows most with its defects, its own growth, and what each connection adds."""
    from scipy.linalg import eig

    if not len(parts.A) or not links:
        return 0j, 0.0, np.zeros(len(links))
    found: Any = eig(parts.A, left=True, right=True)
    values, left, right = found
    norms = np.sum(left.conj() * right, axis=0)
    moves = np.zeros((len(values), len(links)))
    with np.errstate(divide="ignore", invalid="ignore"):
        for number, link in enumerate(links):
            x, _ = parts.defect(link)
            seen = (parts.C[link.port] @ right) * values ** (link.degree + 1)
            moves[:, number] = np.real((left.conj().T @ x) * seen / norms)
    moves[~np.isfinite(moves)] = 0.0  # a double eigenvalue: it has no first order
    total = values.real + moves.sum(axis=1)
    worst = int(np.argmax(total))
    return complex(values[worst]), float(values[worst].real), moves[worst]
