"""Verdict and predicted error of random linear scenarios, against matrix exponentials and long runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from analysis.monolithic_systems import Monolith, MonolithicCase, draw_case
from hocket.errors import SimulatorError
from systems import slow_after

SEED, COUNT, BLOCKS = 1, 400, 80
"""About one in ten is left out: its algebraic loops are nearly singular."""
CLOSE = 1e-3
"""Of the true error: predictions are as near as that."""
ROUNDING = 1e-8
"""Of the values: smaller errors are not compared, the exact solution is not better known."""
NEAR = 2e-3
"""Spectral radii nearer to one than this need longer runs."""
FOLDS, LONGEST, ROWS = 14.0, 7000, 90


@dataclass(frozen=True)
class Said:
    """What was said of a case, and what is true."""

    errors: dict[str, tuple[float, float]]
    """Per port: the predicted error and the true one, where that is more than rounding."""
    rho: float
    grows: bool | None
    """None: not asked of a run."""


def run_grows(composite: hk.Composite, period: Fraction, rho: float) -> bool | None:
    """Return whether the last third of a long run moves more than the one before it.

    None: gains that drive each other rest at exactly zero, where nothing pushes them.
    """
    periods = 200 if rho == 0.0 else min(int(FOLDS / abs(math.log(rho))), LONGEST)
    every = max(1, max(periods, ROWS) // ROWS) * period
    try:
        run = hk.run(composite, ROWS * every, every=every, threads=1)
    except SimulatorError as error:
        if not ("nan" in str(error) or "inf" in str(error)):
            raise
        return True
    thirds, largest, whole = [0.0, 0.0], 0.0, float(ROWS * every)
    for port in run.ports:
        t, values = run[port]
        if not values.any():
            return None
        moves, at = np.abs(np.diff(values)), t[1:] / whole
        largest = max(largest, float(np.abs(values).max()))
        for k in range(2):
            chosen = (at > (k + 1) / 3) & (at <= (k + 2) / 3)
            thirds[k] = max(thirds[k], float(moves[chosen].max(initial=0.0)))
    return thirds[1] > thirds[0] and thirds[1] > 1e-7 * largest


def judge(case: MonolithicCase) -> Said:
    found = hk.check(case.composite, case.stop, advise=False, robust=False, pilot=False)
    run = hk.run(case.composite, case.stop)
    errors, exact = {}, {}
    for place, port in enumerate(case.monolith.ports):
        t, values = run[port]
        if t.tobytes() not in exact:
            exact[t.tobytes()] = case.monolith.solve(t)
        truth = exact[t.tobytes()][:, place]
        true, scale = float(np.abs(values - truth).max()), float(np.abs(truth).max())
        predicted = found.prediction[port].largest
        if abs(predicted - true) > ROUNDING * scale and true <= 1e12 * max(scale, 1.0):
            errors[port] = predicted, true
    settles = all(each.plain < 0.9 for each in found.iterations)
    rho, grows = found.stability.rho, None
    if settles and abs(rho - 1.0) > NEAR:
        period = Fraction(found.prediction.step).limit_denominator(10**6)
        grows = run_grows(case.composite, period, rho)
    return Said(errors, rho, grows)


@pytest.mark.parametrize("block", slow_after(1, range(BLOCKS)))
def test_the_prediction_is_the_error_of_the_run_and_the_verdict_that_of_a_long_one(block):
    wrong = []
    for number in range(block * COUNT // BLOCKS, (block + 1) * COUNT // BLOCKS):
        case = draw_case(SEED, number)
        if case is None:
            continue
        said = judge(case)
        far = {port: pair for port, pair in said.errors.items() if abs(pair[0] / pair[1] - 1.0) > CLOSE}
        if far or (said.grows is not None and said.grows != (said.rho > 1.0)):
            wrong.append((number, far, said.rho, said.grows))
    assert not wrong


def test_a_monolith_is_what_its_parts_are():
    """x' = -x + u, y = 2 x and u = -3 y, together x' = -7 x, beside a gain in between."""
    lag = hk.StateSpace([[-1.0]], [[1.0]], [[2.0]], x0=[0.5], inputs=["u"], outputs=["y"])
    gain = hk.StateSpace(D=[[-3.0]], inputs=["u"], outputs=["y"])
    whole = Monolith({"lag": lag, "gain": gain}, {"lag.u": "gain.y", "gain.u": "lag.y"})
    times = np.array([0.0, 0.1, 1.7, 2.5])
    expected = np.exp(-7.0 * times)
    np.testing.assert_allclose(whole.solve(times), np.outer(expected, [1.0, -3.0]), rtol=1e-12)
