"""Stable or unstable: what the linear reading says of random scenarios, and what long runs do."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import hocket
from analysis.small_scenarios import SmallPen
from hocket import Composite, Jacobi, StateSpace
from hocket.analysis.exact_solution import exact_solution
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.stability import iteration_convergence, spectral_radius
from hocket.errors import SimulatorError
from hocket.planning.parameters import leaves, with_leaves
from native.random_scenarios import METHODS
from systems import slow_after

SEED = int(os.environ.get("HOCKET_SEED", "1"))
COUNT, BLOCKS = 300, 10
NEAR = 1e-3
"""Closer to one than this, no run is long enough."""
FOLDS = 25.0
"""A run is so long that what it does shows by exp(FOLDS), within LONGEST periods."""
LONGEST, SHORTEST, ROWS = 30_000, 90, 90
SETTLED = 1e-7
"""Motion below this part of the values is what rounding and iterations leave."""


@dataclass(frozen=True)
class Case:
    """One random scenario, what was said of it and what it did."""

    number: int
    features: frozenset[str]
    rho: float
    grows: bool | None
    """None: too close to one, or an iteration that does not settle."""


def shown(model: StateSpace, shift: float, fades: float) -> StateSpace:
    """Return the model with its eigenvalues moved by a shift, so that all that may grow is pushed and seen.

    One more state, which nothing drives, fades and is added to every output: a loop of gains, which has no
    state, would else stay at its unstable point for ever. All states are outputs too.
    """
    n, m, p = len(model.A), len(model.inputs), len(model.outputs)
    A = np.diag([0.0] * n + [-fades])
    A[:n, :n] = np.array(model.A).reshape(n, n) + shift * np.eye(n)
    C = np.vstack([np.ones((p, n + 1)), np.eye(n + 1)])
    C[:p, :n] = np.array(model.C).reshape(p, n)
    return StateSpace(
        A=A,
        B=np.vstack([np.array(model.B).reshape(n, m), np.zeros((1, m))]),
        C=C,
        D=np.vstack([np.array(model.D).reshape(p, m), np.zeros((n + 1, m))]),
        x0=[*model.x0, 1.0],
        inputs=model.inputs,
        outputs=[*model.outputs, *(f"x{k}" for k in range(n + 1))],
        method=model.method,
        step=model.step,
    )


def moved(composite: Composite, shift: float) -> Composite:
    """Return the composite with all eigenvalues moved; what fades does so in steps ten times as long, too."""
    fades = 0.1 / float(composite.step)
    return with_leaves(composite, {path: shown(model, shift, fades) for path, model in leaves(composite)})


def drawn(number: int) -> tuple[Composite, frozenset[str]]:
    """Return a random scenario whose system grows or decays, about as fast as another random number says.

    Without coupling errors its radius would be exp(wanted); with them it may be anything.
    """
    rng = np.random.default_rng([SEED, number])
    step = Fraction(1, int(rng.choice([7, 10, 32])))
    pen = SmallPen(rng, iterates=0.15)
    composite = pen.level(step, depth=int(rng.integers(1, 4)), outermost=True)[0]
    wanted = float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-2.3, -0.7))
    fastest = np.linalg.eigvals(exact_solution(composite).A).real.max(initial=-1.0)
    return moved(composite, wanted / float(step) - fastest), frozenset(pen.features)


def engine_grows(composite: Composite, period: Fraction, rho: float) -> bool:
    """Return whether a run of the engine grows: all states and outputs are watched, from random states.

    Motion between rows is compared, so that constant inputs do not hide it; the larger of many rows, so that
    oscillations do not. What cannot be computed any more has grown.
    """
    periods = LONGEST if rho == 0.0 else int(FOLDS / abs(math.log(rho)))
    apart = max(1, min(max(periods, SHORTEST), LONGEST) // ROWS)
    every = apart * period
    try:
        run = hocket.run(composite, ROWS * every, every=every, threads=1)
    except SimulatorError as error:  # a value that is not finite
        if not ("nan" in str(error) or "inf" in str(error)):
            raise
        return True
    assert run.info["engine"] == "native"
    tables = [run.table(table.name) for table in run.tables]
    columns = [table.column(k).to_numpy() for table in tables for k in range(1, table.num_columns)]
    values = np.array([column for column in columns if len(column) == ROWS + 1])
    assert len(values) == len(columns)
    moves = np.abs(np.diff(values, axis=1)).max(axis=0)
    before, after = moves[ROWS // 3 : 2 * ROWS // 3].max(), moves[2 * ROWS // 3 :].max()
    return bool(after > before) and after > SETTLED * np.abs(values).max()


def judged(number: int) -> Case:
    composite, features = drawn(number)
    reading = read_linear(composite)
    rho = spectral_radius(reading)
    settles = all(each.plain < 0.9 for each in iteration_convergence(reading))  # else a run may not get on
    judged = settles and abs(rho - 1.0) > NEAR
    grows = engine_grows(composite, reading.period, rho) if judged else None
    return Case(number, features, rho, grows)


@pytest.fixture(scope="module")
def cases():
    """What has been judged so far."""
    return {}


@pytest.mark.parametrize("block", slow_after(1, range(BLOCKS)))
def test_the_verdict_is_that_of_a_long_run(block, cases):
    print(f"HOCKET_SEED={SEED}, scenarios {block * COUNT // BLOCKS} and on")
    wrong = []
    for number in range(block * COUNT // BLOCKS, (block + 1) * COUNT // BLOCKS):
        case = cases[number] = judged(number)
        if case.grows is not None and case.grows != (case.rho > 1.0):
            wrong.append((number, case.rho))
    assert not wrong


# fmt: off
EVERYTHING = {
    *METHODS, "micro steps", "one step", "feedthrough", "no feedthrough", "start window", "start cold",
    "Hold of degree 0", "Nepce of degree 0", "Hermite of degree 1", "Hermite of degree 3",
    *(f"Polynomial of degree {q}" for q in (1, 2, 3)), "Jacobi", "sequence", "groups", "auto", "loop",
    "no loop", "outputs stale", "outputs consistent", "inputs clean", "inputs delayed", "depth 2", "depth 3",
    "iterated to None", "iterated to 1e-09",
    *(f"step times {ratio}" for ratio in ("1", "1/2", "1/3", "2", "3")),
}
# fmt: on


def test_both_verdicts_are_frequent_and_everything_took_part(cases):
    """Of what was judged above; alone, this test judges a few."""
    found = [cases[number] if number in cases else judged(number) for number in sorted(cases) or range(30)]
    stable = sum(case.rho < 1.0 for case in found if case.grows is not None)
    unstable = sum(case.rho > 1.0 for case in found if case.grows is not None)
    close = sum(abs(case.rho - 1.0) < 0.02 for case in found if case.grows is not None)
    print(f"HOCKET_SEED={SEED}: {stable} stable, {unstable} unstable, {close} of them within 2 % of one")
    assert min(stable, unstable) > len(found) // 6
    assert close > len(found) // 20
    assert stable + unstable > 0.9 * len(found)
    if len(found) == COUNT:
        assert EVERYTHING - set().union(*(case.features for case in found)) == set()


def test_a_run_that_is_known_is_judged_rightly():
    """A lag that feeds itself in steps of h has the factor e + k (1 - e): the judge of runs sees it."""
    for gain in (0.98, 1.02, -1.0, 25.0):
        for h in (Fraction(1, 10), Fraction(1, 2)):
            e = math.exp(-float(h))
            rho = e + gain * (1.0 - e)
            lag = StateSpace(A=[[-1]], B=[[gain]], C=[[1]], x0=[1], inputs=["u"], outputs=["y"])
            composite = Composite(hocket.Scenario({"it": lag}, {"it.u": "it.y"}), h, Jacobi())
            assert engine_grows(composite, h, rho) == (abs(rho) > 1.0)
