"""Algebraic loops through levels, with linear extrapolation: the verdict is that of a long run."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hocket
from hocket import Composite, GaussSeidel, Jacobi, Polynomial, Scenario, StateSpace
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.stability import stability
from hocket.errors import SimulatorError
from systems import slow_after

COUNT, BLOCKS = 200, 10
FOLDS = 20.0
"""A run is so long that what grows has grown by exp(FOLDS)."""


def draw_simulator(rng, inputs: int, outputs: int) -> StateSpace:
    """Return a simulator with direct feedthrough from all inputs, which by itself decays from x0."""
    n = int(rng.integers(1, 3))
    A = -np.diag(rng.uniform(0.3, 3.0, n))
    B, C = rng.normal(size=(n, inputs)), rng.normal(size=(outputs, n))
    D = rng.uniform(-1.0, 1.0, (outputs, inputs))
    ports = {"inputs": [f"u{k}" for k in range(inputs)], "outputs": [f"y{k}" for k in range(outputs)]}
    return StateSpace(A, B, C, D, rng.normal(size=n), **ports)


def draw_nested_loop(number: int) -> Composite:
    """Return one simulator around a level, in a loop with it; outputs beside the loop reach into it too."""
    rng = np.random.default_rng([20, number])

    def orchestrator():
        algorithm = Jacobi if rng.random() < 0.5 else GaussSeidel
        return algorithm(outputs="consistent")

    step = Fraction(1, int(rng.choice([10, 20, 50])))
    inner = {"a": draw_simulator(rng, 1, 1), "b": draw_simulator(rng, 2, 1)}
    within = {"b.u0": "a.y0"} if rng.random() < 0.5 else {"b.u0": "b.y0"}
    level = Composite(Scenario(inner, within), step / int(rng.integers(1, 4)), orchestrator(), Polynomial(1))
    sims = {"outer": draw_simulator(rng, 1, 2), "level": level}
    wires = {"outer.u0": "level.a.y0", "level.a.u0": "outer.y0", "level.b.u1": "outer.y1"}
    if rng.random() < 0.5:
        wires |= {"level.b.u1": "level.a.y0"}
    return Composite(Scenario(sims, wires), step, orchestrator(), Polynomial(1))


def largest_value(composite: Composite, length: Fraction, every: Fraction) -> float:
    """Return the largest output of a run in size; infinity where it cannot be computed any more."""
    try:
        run = hocket.run(composite, length, every=every, threads=1)
    except SimulatorError as error:
        if "inf" in str(error) or "nan" in str(error):
            return math.inf
        raise
    tables = [run.table(table.name) for table in run.tables]
    return max(np.abs(t.column(k).to_numpy()).max() for t in tables for k in range(1, t.num_columns))


def contradicts_its_run(number: int) -> bool:
    """Return whether a run that is called stable grows, or one that is called unstable does not."""
    composite = draw_nested_loop(number)
    reading = read_linear(composite)
    judged = stability(reading)
    rate = abs(math.log(max(judged.rho, 1e-9)))
    periods = min(max(math.ceil(FOLDS / max(rate, 1e-9)), 100), 50_000)
    largest = largest_value(composite, periods * reading.period, 50 * reading.period)
    grows = largest > 1e4
    return grows == judged.stable and (judged.stable or rate * periods >= FOLDS)


@pytest.mark.parametrize("block", slow_after(2, range(BLOCKS)))
def test_the_verdict_on_nested_loops_is_that_of_a_long_run(block):
    numbers = range(block * COUNT // BLOCKS, (block + 1) * COUNT // BLOCKS)
    assert [number for number in numbers if contradicts_its_run(number)] == []


def test_nothing_of_the_unit_guesses_is_left_in_the_reading():
    """All is linear and nothing is constant: c is zero, in every number of z."""
    for number in range(20):
        assert np.abs(read_linear(draw_nested_loop(number)).c).max() < 1e-12
