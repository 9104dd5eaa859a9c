"""Power-balanced coupling of more than a spring and a mass: levels, several bonds, damping, curves, boxes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import hocket
from hocket import Composite, Hermite, Jacobi, Ode, Polynomial, Port, Python, Scenario, StateSpace
from hocket.simulators.wrappers.balanced import Balanced, BondSide
from scenarios.spring_and_mass import balanced, energies, linked, pair, plain, states
from systems import ENGINES, golden


def nested(form, step):
    """The mass stands in a level with its own step; what it told comes back from outside."""
    spring, mass = pair()
    bonded = Balanced(mass, [BondSide("v", "f", 1)], form, linked=True)
    through = {"mass.f": "f", "mass.v_told": "v_told", "v": "mass.v"}
    entries, exits = ["f [N]", "v_told [m/s]"], ["v [m/s]"]
    if form == "energy":
        through |= {"mass.f_share": "f_share", "share": "mass.share"}
        entries.append(Port("f_share", "J", held=True))
        exits.append(Port("share", "J", held=True))
    models = {
        "spring": Balanced(spring, [BondSide("f", "v", -1)], form, linked=True),
        "mass": Composite(Scenario({"mass": bonded}, through, entries, exits), step),
    }
    return linked(models, [("spring", "f", "mass", "v")], form, Hermite())


@pytest.mark.parametrize("engine", ENGINES)
def test_levels_of_the_same_step(engine):
    E = energies(states(nested("energy", "0.2"), engine=engine))
    assert np.abs(E - 1.0).max() < 1e-9
    assert energies(states(nested("inversion", "0.2"), stop=20, engine=engine)).max() < 1.02


@pytest.mark.parametrize("engine", ENGINES)
def test_levels_of_a_shorter_step_hand_over_the_same_energy(engine):
    """Up to where the limiter acts: it looks at the energy of a step, and these are not alike."""
    E = energies(states(nested("energy", "0.05"), stop=1.6, engine=engine))
    assert np.abs(E - 1.0).max() < 1e-12
    E = energies(states(nested("energy", "0.05"), engine=engine))
    assert np.abs(E - 1.0).max() < 0.01


@pytest.mark.parametrize("engine", ENGINES)
def test_two_bonds_on_one_mass(engine):
    """Two springs hold a mass between them: as one with both stiffnesses."""
    spring, _ = pair(c=0.5)
    two = StateSpace(
        [[0.0]], [[1.0, 1.0]], [[1.0]], x0=[0.5], inputs=["f", "g"], outputs=["v"], energy=[[1.0]]
    )
    right = StateSpace([[0.0]], [[1.0]], [[-0.5]], x0=[1.0], inputs=["v"], outputs=["g"], energy=[[0.5]])
    for form in ("energy", "inversion"):
        models = {
            "spring": Balanced(spring, [BondSide("f", "v", -1)], form, linked=True),
            "right": Balanced(right, [BondSide("g", "v", -1)], form, linked=True),
            "mass": Balanced(two, [BondSide("v", "f"), BondSide("v", "g")], form, linked=True),
        }
        bonds = [("spring", "f", "mass", "v"), ("right", "g", "mass", "v")]
        scenario = linked(models, bonds, form, Hermite())
        run = hocket.run(Composite(scenario, "0.1", Jacobi()), 20, engine=engine)
        s, z, v = (run[name].values for name in ("spring.f", "right.g", "mass.v"))
        E = (s**2 + z**2) / 0.5 + v**2
        assert np.abs(E / E[0] - 1.0).max() < (1e-9 if form == "energy" else 0.02)
        t = 0.1 * np.arange(len(v))
        assert v == pytest.approx(0.5 * np.cos(t) - np.sin(t), abs=0.15)


def two_masses(form, d=0.0, dk=0.0):
    """Return two masses on springs of their own; the left one owns the spring (2 N/m) and damper between."""
    left = StateSpace(
        [[0, 1, 0], [-1, -(d + dk), -2], [0, 1, 0]],
        [[0], [dk], [-1]],
        [[0, dk, 2]],
        [[-dk]],
        [1.0, 0.0, 1.0],
        ["v [m/s]"],
        ["F [N]"],
        energy=np.diag([1, 1, 2]),
    )
    right = StateSpace(
        [[0, 1], [-1, -d]], [[0], [1]], [[0, 1]], x0=[0.0, 0.0], inputs=["F [N]"], outputs=["v [m/s]"],
        energy=np.eye(2),
    )  # fmt: skip
    whole = np.zeros((5, 5))
    whole[:3, :3], whole[:3, 4] = left.A, np.array(left.B)[:, 0]
    whole[3:, 3:] = right.A
    whole[4] += [0, dk, 2, 0, -dk]
    models = {
        "left": Balanced(left, [BondSide("F", "v", -1)], form, linked=True),
        "right": Balanced(right, [BondSide("v", "F")], form, linked=True),
    }
    return linked(models, [("left", "F", "right", "v")], form, Hermite()), whole


def true_velocity(whole, step, count):
    x, flow, seen = np.array([1.0, 0, 1, 0, 0]), expm(whole * step), []
    for _ in range(count):
        seen.append(x[4])
        x = flow @ x
    return np.array(seen)


def kept(form):
    """Return what to record: bookkeeping only where it is asked for by name."""
    return ["*", "left.share", "right.share"] if form == "energy" else ["*"]


@pytest.mark.parametrize(("d", "dk"), [(0.0, 0.0), (0.1, 0.0), (0.1, 0.2)])
@pytest.mark.parametrize("form", ["energy", "inversion"])
def test_two_masses_damped_or_not_keep_the_second_order(form, d, dk):
    errors = []
    for step in (0.1, 0.05):
        scenario, whole = two_masses(form, d, dk)
        run = hocket.run(Composite(scenario, step, Jacobi()), 10, record=kept(form))
        v = run["right.v"].values
        errors.append(np.abs(v - true_velocity(whole, step, len(v))).max())
        if form == "energy" and d == dk == 0.0:
            stored = run["left.share"].values + run["right.share"].values
            assert stored == pytest.approx(np.full(len(v), 1.5), rel=1e-9)
    assert errors[0] < 0.2
    assert 1.7 < np.log2(errors[0] / errors[1]) < 2.4


def test_large_steps_stay_bounded_where_extrapolation_explodes():
    scenario, _ = two_masses("energy")
    run = hocket.run(Composite(scenario, "0.8", Jacobi()), 80, record=kept("energy"))
    stored = run["left.share"].values + run["right.share"].values
    assert stored == pytest.approx(np.full(len(stored), 1.5), rel=1e-9)
    bare = {name: model.model for name, model in scenario.models.items()}
    seen = hocket.run(
        Composite(Scenario(bare, [c for c in scenario.connections if "_" not in c.target]), "0.8", Jacobi()),
        80,
    )
    assert np.abs(seen["right.v"].values).max() > 1e6


def duffing(form, s=1.0, v=0.5):
    """A hardening spring, f = -(s + s^3), as an Ode with a declared energy, and a mass."""
    spring = Ode(
        lambda t, x, u, k: [u[0]],
        lambda t, x, u, k: [-(x[0] + k * x[0] ** 3)],
        [s],
        ["v [m/s]"],
        ["f [N]"],
        method="adaptive",
        rtol=1e-9,
        feedthrough={},
        energy=lambda x, k: x[0] ** 2 / 2 + k * x[0] ** 4 / 4,
        k=1.0,
    )
    mass = Ode(lambda t, x, u: [u[0]], None, [v], ["f [N]"], ["v [m/s]"], energy=lambda x: x[0] ** 2 / 2)
    return balanced(form, (spring, mass), Polynomial(1))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("start", [(1.0, 0.5), (0.0, 1.0), (1.0, 0.0)])
def test_duffing_keeps_its_energy(start, engine):
    scenario = duffing("energy", *start)
    run = hocket.run(
        Composite(scenario, "0.1", start="cold"),
        30,
        engine=engine,
        record=["*", "spring.share", "mass.share"],
    )
    stored = run["spring.share"].values + run["mass.share"].values
    # told nothing but zeros, the first step is a plain one; the work is summed by the solver
    assert stored[1:] == pytest.approx(np.full(len(stored) - 1, stored[1]), rel=1e-7)
    assert stored[1] == pytest.approx(stored[0], rel=0.03 if 0.0 in start else 1e-7)
    seen = run["mass.v"].values
    assert seen.max() > 0.9 * (2 * stored[0]) ** 0.5
    assert seen.min() < -0.9 * (2 * stored[0]) ** 0.5


def test_duffing_by_inversion():
    def gained(scenario):
        run = hocket.run(Composite(scenario, "0.1", start="cold"), 30)
        f, v = run["spring.f"].values, run["mass.v"].values
        s = np.array([np.roots([1, 0, 1, force])[2].real for force in f])
        assert s + s**3 == pytest.approx(-f)
        E = v**2 / 2 + s**2 / 2 + s**4 / 4
        return E[-1] / E[0]

    scenario = duffing("inversion")
    bare = Scenario(
        {name: model.model for name, model in scenario.models.items()},
        [connection for connection in scenario.connections if "_" not in connection.target],
    )
    assert gained(bare) > 1.1
    assert gained(scenario) == pytest.approx(1.0, abs=0.03)


class Box:
    """Integrates a held input exactly."""

    input_degree = 0

    def __init__(self, out=1.0, x0=0.0):
        self.out, self.x0 = out, x0

    def start(self, t):
        self.x = self.x0

    def output(self, t):
        return [self.out * self.x]

    def step(self, t, h, u):
        assert len(u) == 1
        self.x += h * u[0, 0]

    def slope(self, t, u):
        return [self.out * u[0, 0]]


@pytest.mark.parametrize("engine", ENGINES)
def test_black_boxes_by_steps_at_midpoints(engine):
    """One step is Hermite; more come near the law inside f, which gains 2.1 %."""
    boxes = (
        Python(Box, ["v [m/s]"], ["f [N]"], out=-1.0, x0=1.0),
        Python(Box, ["f [N]"], ["v [m/s]"], out=1.0, x0=0.5),
    )
    gains = {
        count: energies(states(balanced("inversion", boxes, substeps=count), engine=engine))[-1] - 1.0
        for count in (1, 5, 8, 16)
    }
    assert gains[1] == pytest.approx(
        golden("spring_mass")["fig3_E_over_E0_T75_H0.2"]["linear"] - 1.0, rel=1e-9
    )
    assert gains[5] < 0.045
    assert gains[8] < 0.03
    assert gains[16] < 0.024
    held = energies(states(plain(Hermite(), boxes), engine=engine))[-1]
    assert held == pytest.approx(golden("spring_mass")["fig2_E_over_E0"]["const_H0.2_T75"], rel=1e-9)


def test_the_two_sides_may_have_different_forms():
    """A mass whose energy nobody knows tells no share, so nothing is limited."""
    spring, mass = pair()
    models = {
        "spring": Balanced(spring, [BondSide("f", "v", -1)], "energy", linked=True),
        "mass": Balanced(mass, [BondSide("v", "f")], "inversion", linked=True),
    }
    E = energies(states(linked(models, [("spring", "f", "mass", "v")], "inversion", Hermite())))
    assert np.abs(E - 1.0).max() < 0.03
