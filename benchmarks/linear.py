"""What `hocket check` says of random linear scenarios, against long runs and the matrix exponential.

In:  nothing, or how many and a seed; `python benchmarks/linear.py 300 1`
Out: the confusion table of verdicts, and the distribution of predicted over true errors
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.linalg import expm

import hocket as hk
from hocket.analysis.coupling_check import check
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.stability import spectral_radius
from hocket.errors import ConvergenceError, HocketError, SimulatorError
from hocket.orchestrators.asynchronous import Asynchronous
from hocket.orchestrators.multirate import Multirate

METHODS = ("exact", "exact", "euler", "implicit-euler", "heun", "rk4", "trapezoid", "ab2")
NEAR = 1e-3
"""Spectral radii closer to one than this are not judged by a run."""
FOLDS, LONGEST, ROWS = 25.0, 30_000, 90
"""A run is so long that what it does shows by exp(FOLDS), within LONGEST periods; it keeps so many rows."""
STEPS = 40
"""Steps of the run whose error is predicted."""
ROUNDING = 1e-9
"""Relative errors below this are rounding, and not compared."""


@dataclass
class Drawing:
    """A scenario while it is drawn: its leaves by path, and what drives their inputs."""

    rng: np.random.Generator
    leaves: dict[str, hk.StateSpace] = field(default_factory=dict)
    wires: dict[str, str] = field(default_factory=dict)

    def pick(self, *choices: Any) -> Any:
        """Return one of some."""
        return choices[int(self.rng.integers(len(choices)))]

    def draw_leaf(self, step: Fraction) -> hk.StateSpace:
        """Return a linear model; all of its states are outputs, so that nothing that grows is hidden."""
        rng = self.rng
        n, m, p = (int(k) for k in rng.integers([1, 1, 1], [4, 3, 3]))
        D = rng.uniform(-0.5, 0.5, (p, m)) * (rng.random((p, m)) < self.pick(0.0, 0.0, 0.5))
        return hk.StateSpace(
            A=rng.normal(size=(n, n)) - float(rng.uniform(0.5, 6.0)) * np.eye(n),
            B=rng.normal(size=(n, m)),
            C=np.vstack([rng.normal(size=(p, n)), np.eye(n)]),
            D=np.vstack([D, np.zeros((n, m))]),
            x0=rng.normal(size=n),
            inputs=[f"u{k}" for k in range(m)],
            outputs=[*(f"y{k}" for k in range(p)), *(f"x{k}" for k in range(n))],
            method=self.pick(*METHODS),
            step=self.pick(None, None, step / 2),
        )

    def draw_models(self, prefix: str, depth: int, step: Fraction) -> dict[str, Any]:
        """Return the models of a level; those of a level inside with its step."""
        models: dict[str, Any] = {}
        for name in (f"m{k}" for k in range(int(self.rng.integers(2, 4)))):
            if depth and self.rng.random() < 0.4:
                shorter = step / self.pick(1, 2, 3)
                models[name] = shorter, self.draw_models(f"{prefix}{name}.", depth - 1, shorter)
            else:
                models[name] = self.leaves[f"{prefix}{name}"] = self.draw_leaf(step)
        return models

    def draw_orchestrator(self, models: dict[str, Any]) -> Any:
        """Return an algorithm; one with rates only where all make steps of any length."""
        how = {"outputs": self.pick("consistent", "stale"), "inputs": self.pick("clean", "clean", "delayed")}
        order = self.pick("auto", self.rng.permutation(list(models)).tolist())
        explicit = self.pick(hk.Jacobi(**how), hk.GaussSeidel(order, **how))
        rates = {name: self.pick(1, 2, 4) for name in models}
        any_step = all(not isinstance(each, tuple) and each.step is None for each in models.values())
        kind = self.pick("explicit", "explicit", "iterated", "corrected", "multirate", "asynchronous")
        if kind == "iterated":
            return hk.Iterate(explicit, 1e-12, 200)
        if kind == "corrected":
            return hk.Iterate(explicit, None, 2)
        if kind == "multirate" and any_step:
            return Multirate(rates, self.pick("slowest-first", "fastest-first", "compound"), **how)
        return Asynchronous(rates, **how) if kind == "asynchronous" and any_step else explicit

    def build_level(self, models: dict[str, Any], wires: dict[str, str], step: Fraction) -> hk.Composite:
        """Return a level with its algorithm and extrapolation."""
        made = {
            name: self.build_level(each[1], {}, each[0]) if isinstance(each, tuple) else each
            for name, each in models.items()
        }
        extrapolation = self.pick(hk.Hold(), hk.Polynomial(1), hk.Polynomial(2), hk.Hermite(1), hk.Nepce(0.3))
        start = self.pick("window", "cold")
        scenario = hk.Scenario(made, wires)
        return hk.Composite(scenario, step, self.draw_orchestrator(models), extrapolation, start)

    def draw(self) -> hk.Composite:
        """Return a scenario of one to three levels."""
        step = Fraction(1, self.pick(5, 10, 20, 40))
        tree = self.draw_models("", int(self.rng.integers(0, 3)), step)
        outputs = [f"{path}.{port.name}" for path, leaf in self.leaves.items() for port in leaf.outputs]
        self.wires = {
            f"{path}.{port.name}": str(self.rng.choice(outputs))
            for path, leaf in self.leaves.items()
            for port in leaf.inputs
        }
        return self.build_level(tree, self.wires, step)

    def couple(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, int]]:
        """Return A, C and x0 of the whole, coupled without steps, and the row of C of each output."""
        every = list(self.leaves.items())
        A, B, C, D = (_block_diagonal([np.array(getattr(leaf, key)) for _, leaf in every]) for key in "ABCD")
        row = {f"{path}.{port.name}": 0 for path, leaf in every for port in leaf.outputs}
        row = {path: number for number, path in enumerate(row)}
        L = np.zeros((B.shape[1], len(row)))
        inputs = [f"{path}.{port.name}" for path, leaf in every for port in leaf.inputs]
        for number, path in enumerate(inputs):
            L[number, row[self.wires[path]]] = 1.0
        loops = np.eye(len(row)) - D @ L
        if np.linalg.cond(loops) > 1e3:
            raise np.linalg.LinAlgError
        whole = np.linalg.solve(loops, C)
        return A + B @ L @ whole, whole, np.concatenate([np.array(leaf.x0) for _, leaf in every]), row


def _block_diagonal(blocks: list[np.ndarray]) -> np.ndarray:
    heights, widths = zip(*(block.shape for block in blocks), strict=True)
    whole = np.zeros((sum(heights), sum(widths)))
    for k, block in enumerate(blocks):
        down, right = sum(heights[:k]), sum(widths[:k])
        whole[down : down + heights[k], right : right + widths[k]] = block
    return whole


def grows_in_a_run(composite: hk.Composite, period: Fraction, rho: float) -> bool:
    """Return whether the motion between rows becomes larger; what cannot be computed any more has grown."""
    periods = LONGEST if rho == 0.0 else int(FOLDS / abs(math.log(rho)))
    every = max(1, min(max(periods, ROWS), LONGEST) // ROWS) * period
    try:
        run = hk.run(composite, ROWS * every, every=every, threads=1)
    except (SimulatorError, ConvergenceError):
        return True
    tables = [run.table(table.name) for table in run.tables]
    values = np.array([t.column(k).to_numpy() for t in tables for k in range(1, t.num_columns)])
    moves = np.abs(np.diff(values, axis=1)).max(axis=0)
    before, after = moves[ROWS // 3 : 2 * ROWS // 3].max(), moves[2 * ROWS // 3 :].max()
    return bool(after > before) and after > 1e-7 * np.abs(values).max()


def compare_errors(drawing: Drawing, composite: hk.Composite) -> list[tuple[str, float, float]]:
    """Return per output: predicted and true error of a run, both as parts of the largest exact value."""
    A, C, x0, row = drawing.couple()
    stop = STEPS * composite.step
    run = hk.run(composite, stop, threads=1)
    found = check(composite, stop, advise=False, robust=False)
    if found.prediction is None:
        return []
    compared = []
    orbits: dict[tuple[float, int], np.ndarray] = {}
    for each in found.prediction.ports:
        series = run[each.port]
        key = float(series.t[1]), len(series.t)
        if key not in orbits:
            flow, states = expm(A * key[0]), [x0]
            for _ in range(key[1] - 1):
                states.append(flow @ states[-1])
            orbits[key] = np.array(states)
        exact = orbits[key] @ C[row[each.port]]
        true = np.abs(series.values - exact).max() / np.abs(exact).max()
        compared.append((each.port, each.relative, float(true)))
    return compared


def judge_scenario(number: int, seed: int) -> tuple[str, list[tuple[str, float, float]]]:
    """Return what became of the verdict on one scenario, and its errors."""
    drawing = Drawing(np.random.default_rng([seed, number]))
    composite = drawing.draw()
    try:
        drawing.couple()
        reading = read_linear(composite)
    except np.linalg.LinAlgError:
        return "no single solution", []
    except HocketError as error:
        return f"refused: {error.faults[0].what[:60]}", []
    rho = spectral_radius(reading)
    try:
        errors = compare_errors(drawing, composite)
    except (SimulatorError, ConvergenceError):
        errors = []
    if abs(rho - 1.0) <= NEAR:
        return "near one", errors
    said, seen = rho > 1.0, grows_in_a_run(composite, reading.period, rho)
    words = {True: "unstable", False: "stable"}
    return f"called {words[said]}, the run is {words[seen]}", errors


def main(count: int = 300, seed: int = 1) -> None:
    """Print both tables."""
    verdicts: Counter[str] = Counter()
    ratios: list[float] = []
    for number in range(count):
        verdict, errors = judge_scenario(number, seed)
        verdicts[verdict] += 1
        compared = [
            (port, p, e) for port, p, e in errors if max(p, e) > ROUNDING and math.isfinite(p) and p < 1e6
        ]
        ratios += [p / e for _, p, e in compared]
        worst = max(compared, key=lambda each: abs(math.log(each[1] / each[2])), default=None)
        if worst is not None and abs(math.log(worst[1] / worst[2])) > 1e-3:
            port, p, e = worst
            print(f"  {number}: {port}: predicted {p:.6g}, true {e:.6g}", flush=True)
        if "stable" in verdict and verdict.count("unstable") == 1:
            print(f"  {number}: {verdict}", flush=True)
    for verdict, times in sorted(verdicts.items()):
        print(f"{times:6}  {verdict}")
    off = np.abs(np.log(ratios))
    for factor in (1.001, 1.01, 1.1, 2.0):
        print(f"predicted error within {factor}: {np.mean(off <= math.log(factor)):.2%} of {len(off)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
