"""Own steps within one level: orders and work against exact solutions, and the linear reading."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from scipy.linalg import block_diag, expm

import hocket
from analysis.test_linear import scale
from hocket import Composite, Jacobi, Polynomial, Scenario, StateSpace
from hocket.analysis.linear_reading import gather_state, read_linear
from hocket.orchestrators import Asynchronous, Multirate
from hocket.simulators.state_space import StateSpaceSimulator
from systems import LinearPen

SCHEMES = ("slowest-first", "fastest-first", "compound")

# orders and work

OMEGA = {"slow": (1.0, 0.05), "fast": (5.0, 0.1)}
"""Of each its frequency and its damping."""
START = {"slow": (1.0, 0.0), "fast": (0.5, 0.0)}
PUSH = {"slow": 1.0, "fast": 5.0}


def two_rates(method):
    """Two oscillators, one five times as fast, each pushed by the position of the other."""
    models = {
        name: StateSpace(
            A=[[0, 1], [-w * w, -2 * d * w]], B=[[0], [PUSH[name]]], C=[[1, 0]], x0=START[name],
            inputs=["u"], outputs=["x"], method=method,
        )
        for name, (w, d) in OMEGA.items()
    }  # fmt: skip
    return Scenario(models, {"slow.u": "fast.x", "fast.u": "slow.x"})


def exact_two_rates(t):
    A = block_diag(*([[0, 1], [-w * w, -2 * d * w]] for w, d in OMEGA.values()))
    A[1, 2], A[3, 0] = PUSH["slow"], PUSH["fast"]
    return np.array([expm(A * s) @ [*START["slow"], *START["fast"]] for s in t])[:, ::2]


@pytest.fixture
def made(monkeypatch):
    """Counts the steps that linear simulators really make."""
    counted = []
    step = StateSpaceSimulator.step

    def counting(self, *arguments):
        counted.append(self)
        return step(self, *arguments)

    monkeypatch.setattr(StateSpaceSimulator, "step", counting)
    return counted


def error_of_two_rates(orchestrator, extrapolation, step):
    composite = Composite(two_rates("rk4"), step, orchestrator, extrapolation)
    run = hocket.run(composite, 1, engine="interpreter")
    exact = exact_two_rates(run["slow.x"].t)
    return max(np.abs(run[f"{name}.x"].values - exact[:, k]).max() for k, name in enumerate(OMEGA))


def test_orders_and_cost_in_one_table(made):
    """The order is q + 1, whoever goes first; the work per step of the level is told beside it."""
    algorithms = {
        "Jacobi, all slow": (Jacobi(), 2),
        "slowest first": (Multirate({"fast": 8}), 9),
        "fastest first": (Multirate({"fast": 8}, "fastest-first"), 9),
        "compound": (Multirate({"fast": 8}, "compound"), 10),
        "asynchronous": (Asynchronous({"fast": 8}), 9),
        "asynchronous, 3 : 8": (Asynchronous({"fast": 8, "slow": 3}), 11),
    }
    print(f"\n{'':>20}  degree  steps  error at 1/128  order")
    for name, (orchestrator, work) in algorithms.items():
        made.clear()
        for q in (0, 1, 2):
            coarse, fine = (
                error_of_two_rates(orchestrator, Polynomial(q), step) for step in (F(1, 64), F(1, 128))
            )
            order = np.log2(coarse / fine)
            print(f"{name:>20}  {q:6}  {work:5}  {fine:14.2e}  {order:5.2f}")
            if q == 0:  # without a past there is no window at the start, whose steps are others
                assert len(made) == (64 + 128) * work
            assert order == pytest.approx(q + 1, abs=0.1)


DECADES = (1.0, 10.0, 100.0, 1000.0)
NAMES = ("a", "b", "c", "d")
SPRING = 0.5


def decades():
    """Four undamped oscillators in a chain, each ten times as fast as the one before, of equal energy.

    They are weakly coupled and their activity is widely separated, as Striebel 2006 asks for (Hafner 2021,
    section 3.5). One step of their solver is one step of the coupling.
    """
    A = block_diag(*([[0, 1], [-w * w, 0]] for w in DECADES))
    models, connections = {}, {}
    for k, name in enumerate(NAMES):
        beside = [j for j in (k - 1, k + 1) if 0 <= j < len(NAMES)]
        A[2 * k + 1, [2 * j for j in beside]] = SPRING
        models[name] = StateSpace(
            A=[[0, 1], [-DECADES[k] ** 2, 0]], B=[[0] * len(beside), [SPRING] * len(beside)], C=[[1, 0]],
            x0=[1 / DECADES[k], 0], inputs=[NAMES[j] for j in beside], outputs=["x"], method="rk4",
        )  # fmt: skip
        connections |= {f"{name}.{NAMES[j]}": f"{NAMES[j]}.x" for j in beside}
    return Scenario(models, connections), A


def error_of_decades(orchestrator, step, engine="interpreter"):
    """The largest error at every fifth of a second, each as a part of the largest value."""
    scenario, A = decades()
    composite = Composite(scenario, step, orchestrator, "linear")
    run = hocket.run(composite, F(3, 5), engine=engine, every=F(1, 5))
    start = [each for w in DECADES for each in (1 / w, 0.0)]
    exact = np.array([expm(A * s) @ start for s in run["a.x"].t])[:, ::2]
    return max(
        np.abs(run[f"{name}.x"].values - exact[:, k]).max() * DECADES[k] for k, name in enumerate(NAMES)
    )


def test_turns_take_less_work_than_common_steps_where_rates_are_decades_apart(made):
    turns = Asynchronous(dict(zip(NAMES, (1, 10, 100, 1000), strict=True)))
    reached = error_of_decades(turns, F(1, 5))
    work = len(made)
    print(f"\nasynchronous: {work} steps, error {reached:.2e}")
    assert reached < 0.02
    for rate in range(3000, 6000, 250):
        error, common = error_of_decades(Jacobi(), F(1, rate), "native"), 4 * rate * 3 // 5
        print(f"common steps of 1/{rate} s: {common} steps, error {error:.2e}")
        if error <= 1.1 * reached:
            break
    assert error == pytest.approx(reached, rel=0.3)
    assert 3 * work < common


# the linear reading


class RatedPen(LinearPen):
    """Draws levels in which each leaf has a rate of its own."""

    def orchestrator(self, scenario):
        leaves = [name for name, model in scenario.models.items() if not isinstance(model, Composite)]
        how = {"outputs": self.one("stale", "consistent"), "inputs": self.one("clean", "delayed")}
        kind = self.one(*SCHEMES, "asynchronous")
        self.note(kind)
        if kind == "asynchronous":
            return Asynchronous({name: int(self.rng.integers(1, 6)) for name in leaves}, **how)
        return Multirate({name: self.one(1, 4) for name in leaves}, kind, **how)


@pytest.mark.parametrize("block", range(2))
def test_the_map_and_the_run_agree(block):
    features = set()
    for seed in range(8 * block, 8 * block + 8):
        rng = np.random.default_rng(seed)
        pen = RatedPen(rng)
        composite = pen.level(F(1, int(rng.choice([7, 10, 32]))), depth=1 + seed % 2, outermost=True)[0]
        features |= pen.features
        reading = read_linear(composite)
        z, places = reading.z, scale(reading)
        ticks = reading.root.clock.ticks(reading.period)
        for _ in range(5):
            z = reading.Phi @ z + reading.c
            reading.root.advance(reading.root.now, ticks, reading.root.inputs[1])
            there = gather_state(reading.root)[places]
            assert np.abs(z[places] - there).max() <= 1e-9 * np.abs(there).max(), f"seed {seed}"
    assert {*SCHEMES, "asynchronous"} <= features
