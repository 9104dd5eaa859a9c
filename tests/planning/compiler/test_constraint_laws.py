"""Laws of constraints, gaps that close at the start, and corrections once a step without rollback."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hocket as hk
from hocket.model.constraints import Constraint
from hocket.planning.compiler.modularity import Modularity
from hocket.simulators.constraint import Coupler
from planning.compiler.linked import EQUATIONS, JOINED, LINK, RATES, Body, Told, errors, largest, mass, pair
from planning.compiler.mechanisms import MECHANISMS, drift_and_error
from systems import ENGINES, slow_after

BOTH = {0: ("left.x", "right.x"), 1: ("left.v", "right.v")}
LAWS = {
    "sliding": {},
    "index-1": {"law": "index-1"},
    "index-2": {"law": "index-2"},
    "index-3": {"law": "index-3"},
    "baumgarte": {"law": "baumgarte"},
    "weighted": {"law": "weighted", "weights": (100.0, 1.0, 0.0)},
}
CASES = [(mechanism, law) for mechanism in reversed(MECHANISMS) for law in LAWS]


@pytest.mark.parametrize("case", slow_after(8, CASES))
def test_mechanisms_move_as_they_do_with_order_two(case):
    """Errors fall with order 2 under every law; gaps with order 2 or 3, and under index 3 there are none."""
    mechanism, law = case
    coarse, fine = (drift_and_error(mechanism, LAWS[law], step) for step in (0.02, 0.01))
    assert fine[1] < 1e-3
    assert np.log2(coarse[1] / fine[1]) > 1.8
    if law == "index-3":
        assert coarse[0] < 1e-9
        return
    order = 3 if law in ("sliding", "baumgarte") else 2
    assert np.log2(coarse[0] / fine[0]) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("law", LAWS)
def test_a_link_under_every_law(law, engine):
    """Two masses in one: order 2, and what each law leaves of the gap."""
    made = [
        hk.run(hk.Composite(pair(replace(LINK, **LAWS[law])), H), stop=4, engine=engine)
        for H in (0.05, 0.025)
    ]
    off = [max(errors(run, JOINED, [1.0, 0.0], BOTH)) for run in made]
    assert off[1] < 6e-5
    assert 1.8 < np.log2(off[0] / off[1]) < 2.2
    assert (largest(made[1], "link.gap1") < 1e-14) == (law == "index-3")


def apart(constraint, **more):
    """The pair, the right one 1 cm short at the start."""
    right = replace(mass(1.0, 2.0, 0.3), x0=[0.99, 0.0])
    return hk.Scenario(
        {"left": mass(1.0, 1.0, 0.5), "right": right}, constraints={"link": constraint}, **more
    )


@pytest.mark.parametrize("once", [False, True])
def test_a_gap_of_a_centimetre_closes_as_the_law_says(once):
    """g' + 5 g = 0 from rest: after the first step the gap falls as exp(-5 t)."""
    constraint = replace(LINK, mu=5.0, closes=True, once=once)
    run = hk.run(hk.Composite(apart(constraint), 0.002), stop=2)
    gap = run["link.gap1"]
    t, g = np.array(gap.t), np.array(gap.values)
    assert g[0] == pytest.approx(0.01, rel=1e-12)
    assert g[50:] == pytest.approx(g[50] * np.exp(-5.0 * (t[50:] - t[50])), rel=5e-3, abs=1e-6)
    assert abs(g[-1]) < 1e-6


def test_a_gap_closes_as_baumgarte_says():
    """g'' + 2 a g' + a^2 g = 0 from rest: g = 0.01 (1 + a t) exp(-a t)."""
    constraint = replace(LINK, law="baumgarte", alpha=8.0, beta=8.0, closes=True)
    run = hk.run(hk.Composite(apart(constraint), 0.001), stop=1.5)
    t, g = np.array(run["link.gap1"].t), np.array(run["link.gap1"].values)
    assert g == pytest.approx(0.01 * (1.0 + 8.0 * t) * np.exp(-8.0 * t), abs=1e-4)
    fine = hk.run(hk.Composite(apart(constraint), 0.0005), stop=1.5)["link.gap1"]
    exact = 0.01 * (1.0 + 8.0 * np.array(fine.t)) * np.exp(-8.0 * np.array(fine.t))
    coarse = np.abs(g - 0.01 * (1.0 + 8.0 * t) * np.exp(-8.0 * t)).max()
    assert np.abs(np.array(fine.values) - exact).max() < 0.6 * coarse


def test_a_gap_that_nobody_said_closes_is_refused():
    with pytest.raises(hk.ScenarioError, match="does not hold at the start"):
        hk.run(hk.Composite(apart(LINK), 0.01), stop=1)


class Forward:
    """A mass on a spring that cannot roll back."""

    inputs = ("F [N]",)
    outputs = ("x [m]", "v [m/s]")

    def __init__(self, c, d):
        self.body = Told(c, d)

    def start(self, t):
        self.body.start(t)

    def output(self, t):
        return self.body.output(t)

    def step(self, t, h, u):
        self.body.step(t, h, u)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sliding_manifold_needs_no_rollback(engine):
    """Inputs corrected once a step: errors of order 2, gaps of order 3."""
    models = {"left": hk.Python(Forward, c=1.0, d=0.5), "right": hk.Python(Forward, c=2.0, d=0.3)}
    scenario = hk.Scenario(models, constraints={"link": replace(LINK, once=True)})
    assert not models["left"].capabilities.rollback
    off, gaps = [], []
    for H in (0.05, 0.025):
        run = hk.run(hk.Composite(scenario, H), stop=4, engine=engine)
        off.append(max(errors(run, JOINED, [1.0, 0.0], BOTH)))
        gaps.append(largest(run, "link.gap1"))
    assert off[1] < 1e-4
    assert np.log2(off[0] / off[1]) > 1.6
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(3.0, abs=0.1)
    with pytest.raises(hk.ScenarioError, match="cannot roll back"):
        hk.run(hk.Composite(hk.Scenario(models, constraints={"link": LINK}), 0.05), stop=1)


def test_the_coupling_of_once_is_judged_before_the_run():
    """The linear reading has the coupler's memory: with mu = 1/H the two modes of the gap are damped."""
    found = hk.check(hk.Composite(pair(replace(LINK, once=True)), 0.05), stop=1, advise=False, robust=False)
    stability = next(each for each in found.measures if type(each).__name__ == "Stability")
    joined = np.exp(0.05 * np.linalg.eigvals(JOINED))
    assert stability.stable
    assert stability.rho == pytest.approx(np.abs(joined).max(), rel=1e-4)


def test_speeds_are_kept_equal_once_a_step():
    """Inputs that act on speeds: two coils in one loop share a current."""
    coil = {"A": [[-0.5]], "B": [[1.0]], "C": [[1.0]], "x0": [1.0], "inputs": ["v"], "outputs": ["i"]}
    models = {"a": hk.StateSpace(**coil), "b": hk.StateSpace(**{**coil, "A": [[-1.5]]})}
    loop = Constraint(("a.i = b.i", "a.v + b.v = 0"), once=True)
    off = []
    for H in (0.1, 0.05):
        run = hk.run(hk.Composite(hk.Scenario(models, constraints={"loop": loop}), H), stop=2)
        off.append(np.abs(np.array(run["a.i"].values) - np.exp(-np.array(run["a.i"].t))).max())
    assert off[1] < 2e-3
    assert np.log2(off[0] / off[1]) > 1.8


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"law": "index-4"}, "index-4"),
        ({"law": "index-2", "mu": 3.0}, "`mu` belongs to the law `sliding`"),
        ({"alpha": 3.0}, "`alpha` belongs to the law `baumgarte`"),
        ({"law": "baumgarte", "beta": -1.0}, "`beta` is -1.0"),
        ({"law": "weighted"}, "has no `weights`"),
        ({"law": "weighted", "weights": (0.0, 0.0, 0.0)}, "`weights` is"),
        ({"law": "weighted", "weights": (1.0, 2.0)}, "`weights` is"),
        ({"closes": 1.5}, "`closes` is 1.5"),
        ({"law": "index-3", "once": True}, "is solved by iteration"),
    ],
)
def test_laws_that_are_none(written, message):
    with pytest.raises(hk.ScenarioError, match=message):
        Constraint(EQUATIONS, RATES, **written)


def test_what_a_law_cannot_serve_is_refused():
    speeds = Constraint(("left.v = right.v", "left.F + right.F = 0"), law="index-3")
    with pytest.raises(hk.ScenarioError, match="is for inputs that act on accelerations"):
        hk.run(hk.Composite(pair(speeds), 0.05), stop=1)
    with pytest.raises(hk.ScenarioError, match="need an algorithm of one step"):
        hk.run(hk.Composite(pair(replace(LINK, once=True)), 0.05, hk.Iterate()), stop=1)
    both = {
        "link": replace(LINK, once=True),
        "held": Constraint(("left.x = other.x",), determines=("other.F",)),
    }
    models = {**pair().models, "other": mass(1.0, 1.0, 0.1)}
    with pytest.raises(hk.ScenarioError, match="only some say `once`"):
        hk.run(hk.Composite(hk.Scenario(models, constraints=both), 0.05), stop=1)


def test_files_have_laws(tmp_path):
    every = {
        "a": replace(LINK, law="baumgarte", alpha=2.0, beta=3.0, closes=True),
        "b": replace(LINK, law="weighted", weights=(1.0, 0.5, 0.25)),
        "c": replace(LINK, once=True),
    }
    for name, constraint in every.items():
        hk.write(hk.Composite(pair(constraint), 0.05), tmp_path / f"{name}.toml")
        read = hk.read(tmp_path / f"{name}.toml").composite
        assert read.scenario.constraints["link"] == constraint
        compiled = Modularity().apply(read)
        hk.write(compiled, tmp_path / f"{name}2.toml")
        again = hk.read(tmp_path / f"{name}2.toml").composite
        (coupler,) = [each for each in compiled.scenario.models.values() if isinstance(each, Coupler)]
        assert again.scenario.models["link"] == coupler
        ends = [hk.run(each, 1).final("left.x") for each in (compiled, again)]
        assert ends[0] == ends[1]


def test_slopes_by_differences_serve_every_law():
    models = {"left": hk.Python(Body, c=1.0, d=0.5), "right": hk.Python(Body, c=2.0, d=0.3)}
    for law in ("index-1", "baumgarte"):
        scenario = hk.Scenario(models, constraints={"link": Constraint(EQUATIONS, law=law)})
        run = hk.run(hk.Composite(scenario, 0.05), stop=2)
        assert max(errors(run, JOINED, [1.0, 0.0], {0: ("left.x", "right.x")})) < 5e-4
