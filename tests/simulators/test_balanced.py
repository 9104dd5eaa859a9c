"""Balanced models by themselves: ports, the law, moves onto levels of energy, what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import hocket
from hocket import Composite, Hermite, Hold, Ode, Polynomial, Port, Python, Scenario, StateSpace
from hocket.errors import ScenarioError, SimulatorError
from hocket.simulators.energies import DeclaredEnergy, QuadraticEnergy, project_to_energy
from hocket.simulators.power_balance import Seat, corrected_input
from hocket.simulators.wrappers.balanced import Balanced, BondSide
from hocket.testing import check_simulator
from systems import ENGINES

SPRING = StateSpace([[0.0]], [[1.0]], [[-4.0]], x0=[0.5], inputs=["v"], outputs=["f"], energy=[[4.0]])
MASS = StateSpace([[0.0]], [[2.0]], [[1.0]], x0=[0.25], inputs=["f"], outputs=["v"], energy=[[0.5]])


class Box:
    """x' = u under a held input, with y = x + 0.5 u where `through`."""

    inputs = ("u",)
    outputs = ("y",)

    def __init__(self, through=0.0):
        self.through, self.steps = through, []

    def start(self, t):
        self.x = 1.0

    def output(self, t, u):
        return [self.x + self.through * u[0, 0]]

    def step(self, t, h, u):
        self.steps.append((t, h, u.copy()))
        self.x += h * u[0, 0]

    def save(self):
        return self.x

    def restore(self, state):
        self.x = state


def seat(sign=1.0):
    return Seat(0, 0, sign, 0.05, None, None, None, False, "y` and `u")


# the law


def test_without_softness_the_input_makes_the_power():
    assert corrected_input(seat(), 3.0, 2.0, 0.0, power=10.0, soft=0.0) * 2.0 == pytest.approx(10.0)
    assert -corrected_input(seat(-1.0), 3.0, 2.0, 0.0, power=10.0, soft=0.0) * 2.0 == pytest.approx(10.0)


def test_softness_leaves_the_input_where_there_is_no_output():
    assert corrected_input(seat(), 3.0, 0.0, 0.0, power=10.0, soft=0.1) == 3.0
    assert corrected_input(seat(), 3.0, 0.0, 0.0, power=10.0, soft=0.0) == 3.0
    # y = 2, eps = 2: half of the way from 3 to 5
    assert corrected_input(seat(), 3.0, 2.0, 0.0, power=10.0, soft=2.0) == pytest.approx(4.0)


def test_with_feedthrough_it_is_one_newton_step():
    """y = 2 + u/2: p(3) = 10.5, dp/du = 2 + 3 = 5."""
    assert corrected_input(seat(), 3.0, 3.5, 0.5, power=11.0, soft=0.0) == pytest.approx(3.1)


def test_the_law_inside_f_makes_the_agreed_power():
    """Spring: s' = v with 4 s v = P(t) as long as s is large: its energy is what P says."""
    simulator = Balanced(SPRING, [BondSide("f", "v", -1)], eps=1e-9).open()
    simulator.start(0.0)
    u = np.array([[1.0], [0.5]])
    simulator.slope(0.0, u)  # tells f' = -4
    reached = simulator.step(0.0, 0.3, u)
    # P = -(f0 + f1 t)(u0 + u1 t) = (2 + 4 t)(1 + t/2)
    work = 2 * 0.3 + 5 * 0.3**2 / 2 + 2 * 0.3**3 / 3
    assert reached == 0.3
    assert simulator.energy() == pytest.approx(0.5 * 4 * 0.25 + work, rel=1e-8)


def test_linear_power_leaves_the_last_term_out():
    simulator = Balanced(SPRING, [BondSide("f", "v", -1)], "energy", power="linear").open()
    simulator.start(0.0)
    u = np.array([[1.0], [0.5]])
    simulator.slope(0.0, u)
    simulator.step(0.0, 0.3, u)
    assert simulator.energy() == pytest.approx(0.5 + 2 * 0.3 + 5 * 0.3**2 / 2, rel=1e-14)


def test_slopes_that_nobody_read_are_those_of_the_last_two_outputs():
    simulator = Balanced(SPRING, [BondSide("f", "v", -1)], "energy").open()
    simulator.start(0.0)
    u = np.array([[1.0], [0.0]])
    simulator.step(0.0, 0.1, u)  # nothing was told before: f is taken to stay at -2
    assert simulator.energy() == pytest.approx(0.5 + 0.2, rel=1e-14)
    f = -4 * (0.7 / 2) ** 0.5
    simulator.step(0.1, 0.1, u)
    work = -f * 0.1 - (f + 2) / 0.1 * 0.1**2 / 2
    assert simulator.energy() == pytest.approx(0.7 + work, rel=1e-13)


@pytest.mark.parametrize("method", ["exact", "rk4", "heun", "ab2", "trapezoid", "implicit-euler"])
def test_every_method_takes_part(method):
    model = StateSpace(
        [[0, 1], [-1, -0.1]], [[0], [1]], [[0, 1]], x0=[1, 0.5], inputs=["f"], outputs=["v"],
        method=method, step=None if method == "exact" else "0.01", energy=np.eye(2),
    )  # fmt: skip
    for form in ("inversion", "energy"):
        seen = []
        for wrapped in (model, Balanced(model, [BondSide("v", "f")], form)):
            simulator = wrapped.open()
            simulator.start(0.0)
            for step in range(10):
                u = np.array([[np.cos(step * 0.05)], [-np.sin(step * 0.05)]])
                simulator.slope(step * 0.05, u)
                simulator.step(step * 0.05, 0.05, u)
            seen.append(simulator.output(0.5, u)[0])
        assert seen[1] == pytest.approx(seen[0], abs=2e-3)
        assert seen[1] != seen[0]


def test_substeps_hold_the_input_of_their_middle():
    """Without a partner that errs the law changes nothing: middles of the line itself."""
    recipe = Balanced(Python(Box), [BondSide("y", "u")], substeps=4)
    simulator = recipe.open()
    simulator.start(0.0)
    u = np.array([[1.0], [0.4]])
    assert simulator.step(0.0, 0.4, u) == 0.4
    made = simulator.plain.object.steps
    assert [t for t, _, _ in made] == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert [h for _, h, _ in made] == pytest.approx([0.1] * 4)
    assert all(np.all(given[1:] == 0.0) for _, _, given in made)
    # y told as held at 1, so P = 1 * u(t): the first middle has y = 1, later ones less input for more y
    assert made[0][2][0, 0] == pytest.approx(1.02)
    assert made[3][2][0, 0] < 1.14


def test_feedthrough_of_a_black_box_is_measured():
    """y = x + u/2 is told as 1.5. In the second step x = 1.1, in its middle y = 1.65, dp/du = 1.65 + 0.5."""
    simulator = Balanced(Python(Box, through=0.5), [BondSide("y", "u")], substeps=2, eps=1e-9).open()
    simulator.start(0.0)
    simulator.step(0.0, 0.2, np.array([[1.0], [0.0]]))
    given = [u[0, 0] for _, _, u in simulator.plain.object.steps]
    assert given == pytest.approx([1.0, 1.0 + (1.5 - 1.65) / 2.15], rel=1e-8)


# going back


@pytest.mark.parametrize("form", ["inversion", "energy"])
@pytest.mark.parametrize("linked", [False, True])
def test_going_back_brings_back_what_was_told(form, linked):
    recipe = Balanced(SPRING, [BondSide("f", "v", -1)], form, linked=linked)
    simulator = recipe.open()
    simulator.start(0.0)
    width = len(recipe.inputs)
    u = np.array([[1.0, -2.0, 0.1][:width], [0.5, -4.0, 0.0][:width]])
    simulator.step(0.0, 0.1, u)
    state = simulator.save()
    seen = []
    for _ in range(2):
        simulator.step(0.1, 0.1, u)
        simulator.slope(0.2, u)
        simulator.step(0.2, 0.1, u)
        seen.append(simulator.output(0.3, u).tolist())
        simulator.restore(state)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("form", ["inversion", "energy"])
def test_laws(form):
    check_simulator(Balanced(SPRING, [BondSide("f", "v", -1)], form))
    check_simulator(Balanced(Python(Box), [BondSide("y", "u")]), h=0.01)


# energy


def test_one_state_keeps_its_sign():
    energy = QuadraticEnergy(np.array([[4.0]]))
    push = np.array([1.0])
    assert project_to_energy(energy, np.array([-0.5]), 8.0, push) == pytest.approx([-2.0], rel=1e-15)
    assert project_to_energy(energy, np.array([1e-12]), 8.0, push) == pytest.approx([2.0], rel=1e-15)
    assert project_to_energy(energy, np.array([0.5]), -1.0, push) == pytest.approx([0.0])
    assert project_to_energy(energy, np.array([0.0]), 8.0, push) == pytest.approx([2.0])
    assert project_to_energy(energy, np.array([0.0]), 8.0, -push) == pytest.approx([-2.0])
    assert project_to_energy(energy, np.array([0.0]), 8.0, 0.0 * push) == pytest.approx([0.0])
    assert np.isnan(project_to_energy(energy, np.array([np.nan]), 8.0, push)).all()


def test_states_move_by_the_same_part_whatever_their_units():
    x = np.array([3.0, -2e-6])
    moved = project_to_energy(QuadraticEnergy(np.diag([1.0, 1e12])), x, 4 * (4.5 + 2.0), np.ones(2))
    assert moved == pytest.approx(2 * x, rel=1e-14)


def test_a_state_without_energy_stays():
    """Two masses on one spring: their middle does not move."""
    Q = np.zeros((3, 3))
    Q[:2, :2] = [[1, -1], [-1, 1]]
    moved = project_to_energy(QuadraticEnergy(Q), np.array([2.0, 1.0, 7.0]), 2.0, np.ones(3))
    assert moved == pytest.approx([2.5, 0.5, 7.0])


def test_a_level_below_the_line_is_reached_in_rounds():
    Q = np.array([[2.0, 1.0], [1.0, 3.0]])
    energy = QuadraticEnergy(Q)
    for target in (1e-6, 0.1, 50.0):
        moved = project_to_energy(energy, np.array([1.0, 5.0]), target, np.ones(2))
        assert 0.5 * moved @ Q @ moved == pytest.approx(target, rel=1e-12)


def test_any_function_of_the_state():
    def stored(x):
        return x[0] ** 2 / 2 + x[0] ** 4 / 4 + 3 * (1 - np.cos(x[1]))

    for target in (0.01, 1.0, 3.0, 9.0):
        moved = project_to_energy(DeclaredEnergy(stored, "stored"), np.array([1.0, 1.2]), target, np.ones(2))
        assert stored(moved) == pytest.approx(target, rel=1e-12)
        assert (moved >= 0).all()


@pytest.mark.parametrize("size", [2, 3, 5])
def test_far_levels_are_reached_where_states_bend_the_energy_of_each_other(size):
    rng = np.random.default_rng(size)
    for _ in range(20):
        root = rng.normal(size=(size, size))
        Q, x = root @ root.T + 0.1 * np.eye(size), 1e3 * rng.normal(size=size)
        for energy in (QuadraticEnergy(Q), DeclaredEnergy(lambda x, Q=Q: x @ Q @ x / 2, "stored")):
            here = energy.value(x)
            for part in (-1.0, 0.0, 1e-9, 1e-3, 0.5, 1e6):
                reached = energy.value(project_to_energy(energy, x, part * here, np.ones(size)))
                assert reached == pytest.approx(max(part, 0.0) * here, rel=1e-9, abs=1e-20 * here)


def test_simulators_tell_their_energy():
    state = StateSpace(np.zeros((2, 2)), x0=[1, 2], outputs=["a"], energy=[[2, 1], [1, 3]]).open()
    ode = Ode(lambda t, x, u, k: [0.0], x0=[3.0], energy=lambda x, k: k * x[0] ** 2, k=2.0).open()
    for simulator, expected in ((state, 0.5 * (2 + 4 + 12)), (ode, 18.0)):
        simulator.start(0.0)
        assert simulator.energy() == expected


@pytest.mark.parametrize(
    ("Q", "text"), [([[1, 2], [0, 1]], "symmetric"), ([[1]], "1 x 1"), ([[1, 0], [0, -1]], "below zero")]
)
def test_a_matrix_that_is_no_energy(Q, text):
    with pytest.raises(ScenarioError, match=text):
        StateSpace(np.eye(2), outputs=["x"], energy=Q)


def test_an_energy_that_cannot_be_called():
    with pytest.raises(ScenarioError, match=r"def energy\(x, k\)"):
        Ode(lambda t, x, u, k: [0.0], x0=[1.0], energy=lambda x: 0.0, k=1.0)
    with pytest.raises(ScenarioError, match="a function of x"):
        Ode(lambda t, x, u: [0.0], x0=[1.0], energy=3)
    told = Ode(lambda t, x, u: [0.0], x0=[1.0], energy=lambda x: [x, x]).open()
    with pytest.raises(SimulatorError, match="one number"):
        told.energy()


# ports and refusals


def test_ports():
    bare = Balanced(SPRING, [BondSide("f", "v", -1)], "energy")
    assert (bare.inputs, bare.outputs) == (SPRING.inputs, SPRING.outputs)
    linked = Balanced(SPRING, [BondSide("f", "v", -1)], "energy", linked=True)
    assert [port.name for port in linked.inputs] == ["v", "f_told", "v_share"]
    assert [port.name for port in linked.outputs] == ["f", "share", "v_work"]
    assert [port.unit for port in linked.outputs] == ["", "J", "J"]
    inverted = Balanced(SPRING, [BondSide("f", "v", -1)], linked=True)
    assert [port.name for port in inverted.inputs] == ["v", "f_told"]
    assert bare.energy == SPRING.energy
    assert bare.capabilities.slopes
    assert bare.capabilities.rollback
    assert not hasattr(bare, "A")


def test_recipes_are_compared_and_pickled():
    one, other = (Balanced(SPRING, [BondSide("f", "v", -1)]) for _ in range(2))
    assert one == other == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(other)


class Sampled(Box):
    inputs = (Port("u", held=True),)


class Fixed(Box):
    variable_step = False


ONE = [BondSide("f", "v", -1)]


@pytest.mark.parametrize(
    ("make", "texts"),
    [
        (lambda: Balanced(SPRING, [BondSide("F", "v")]), ["no output `F`", "`f`"]),
        (
            lambda: Balanced(SPRING, [BondSide("f", "w"), BondSide("g", "v")]),
            ["no input `w`", "no output `g`"],
        ),
        (lambda: Balanced(SPRING, []), ["no bonds"]),
        (lambda: Balanced(SPRING, ["f"]), ["`'f'` is not a bond", "Side("]),
        (lambda: Balanced(SPRING, ONE * 2), ["in two bonds"]),
        (lambda: Balanced(SPRING, ONE, "enrgy"), ["`form` cannot be 'enrgy'", "did you mean `energy`"]),
        (lambda: Balanced(SPRING, ONE, power="square"), ["`power`", "product"]),
        (lambda: Balanced(SPRING, ONE, eps=0.0), ["`eps` is 0.0", "above zero"]),
        (lambda: Balanced(SPRING, ONE, eps=float("nan")), ["`eps` is nan"]),
        (lambda: Balanced(SPRING, ONE, substeps=0), ["`substeps` is 0"]),
        (lambda: Balanced(SPRING, [BondSide("f", "v", 0)]), ["the sign of `f` and `v` is 0"]),
        (lambda: Balanced(SPRING, [BondSide("f", "v", 1, -2)]), ["the scale of `f` and `v` is -2"]),
        (lambda: Balanced(SPRING, [BondSide("f", "v", eps=0)]), ["the eps of `f` and `v` is 0"]),
        (lambda: Balanced(Python(Sampled), [BondSide("y", "u")]), ["the input `u` jumps"]),
        (lambda: Balanced(Python(Fixed), [BondSide("y", "u")]), ["cannot be divided by 8", "substeps=1"]),
        (
            lambda: Balanced(Python(Box), [BondSide("y", "u")], "energy"),
            ["stored energy", "not hocket's to move"],
        ),
        (lambda: Balanced(hocket.Gain(2.0), [BondSide("y", "u")]), ["without a state"]),
        (lambda: Balanced(Python(Box, period="0.1"), [BondSide("y", "u")]), ["period"]),
        (lambda: Balanced(Composite(Scenario({"s": SPRING}), 1), ONE), ["a level is not balanced"]),
        (lambda: Balanced(StateSpace, ONE), ["is not a model"]),
        (
            lambda: Balanced(
                Ode(lambda t, x, u: [u[0]], x0=[0.0], inputs=["v"], outputs=["f"]), ONE, "energy"
            ),
            ["stored energy", "declare `energy`"],
        ),
        (
            lambda: Balanced(
                StateSpace([[0]], [[1, 0]], [[1]], x0=[1], inputs=["v", "f_told"], outputs=["f"]),
                ONE,
                linked=True,
            ),
            ["`f_told` has a name that bonds use"],
        ),
    ],
)
def test_refusals(make, texts):
    with pytest.raises(ScenarioError) as caught:
        make()
    for text in texts:
        assert text in str(caught.value)


def coupled(extrapolation):
    models = {"spring": Balanced(SPRING, ONE), "mass": Balanced(MASS, [BondSide("v", "f")])}
    connections = [("spring.f", "mass.f", extrapolation), ("mass.v", "spring.v", extrapolation)]
    return Composite(Scenario(models, connections), "0.05")


@pytest.mark.parametrize("engine", ENGINES)
def test_held_inputs_are_refused(engine):
    with pytest.raises(SimulatorError) as caught:
        hocket.run(coupled(Hold()), 1, engine=engine)
    for text in ("`spring`", "held power freezes the motion", "linear or Hermite"):
        assert text in str(caught.value)


def test_check_takes_it_for_a_black_box():
    found = hocket.check(coupled(Polynomial(1)))
    assert [leaf.how for leaf in found.leaves if leaf.how == "exact"] == []


def test_micro_steps_show_the_way_under_the_law():
    run = hocket.run(coupled(Hermite()), 1, every="micro")
    assert run["spring.f"].values[-1] == hocket.run(coupled(Hermite()), 1)["spring.f"].values[-1]
