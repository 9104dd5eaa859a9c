"""Inputs that equations determine: examples with exact answers, and the naive law as a counterexample."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import hocket as hk
from hocket.analysis.run_error import estimate_error
from hocket.model.constraints import Constraint
from hocket.model.experiment import Experiment
from hocket.model.scenario import Connection
from hocket.planning.compiler.modularity import Modularity
from hocket.simulators.constraint import Coupler
from hocket.simulators.wrappers.derivatives import Sloped
from hocket.testing import check_simulator
from planning.compiler.linked import (
    EQUATIONS,
    JOINED,
    JUNCTION,
    LINK,
    RATES,
    Body,
    Told,
    boxes,
    capacitor,
    coil,
    column,
    crank_exact,
    errors,
    exact,
    largest,
    mass,
    pair,
    pendulum_exact,
)
from systems import ENGINES

START = [1.0, 0.0]
BOTH = {0: ("left.x", "right.x"), 1: ("left.v", "right.v")}
TABLE = {
    # requirements, section 1.5: H, error and gap with mu = 0, error and gap with mu = 1/H
    0.1: (8.8e-4, 1.3e-3, 4.0e-4, 8.3e-5),
    0.05: (2.2e-4, 3.4e-4, 1.0e-4, 1.0e-5),
    0.025: (5.5e-5, 8.4e-5, 2.6e-5, 1.3e-6),
}


@pytest.mark.parametrize("H", TABLE)
def test_a_massless_link_is_as_exact_as_the_worked_example(H):
    error0, gap0, error, gap = TABLE[H]
    at_speed = hk.run(hk.Composite(pair(replace(LINK, mu=0.0)), H), stop=10)
    assert max(errors(at_speed, JOINED, START, BOTH)) <= 1.2 * error0
    assert largest(at_speed, "link.gap1") == pytest.approx(gap0, rel=0.2)
    run = hk.run(hk.Composite(pair(), H), stop=10)
    assert max(errors(run, JOINED, START, BOTH)) <= 1.2 * error
    assert largest(run, "link.gap1") == pytest.approx(gap, rel=0.2)
    if H == 0.025:
        assert largest(run, "link.gap1") < 1.6e-6


def test_the_link_force_is_that_of_the_joined_mass():
    run = hk.run(hk.Composite(pair(), 0.0125), stop=10)
    x, v = exact(JOINED, START, run["left.x"].t).T
    force = (JOINED @ [x, v])[1] + x + 0.5 * v  # what the left mass lacks to move as the joined one
    middle = 0.5 * (force[1:] + force[:-1])
    assert column(run, "link.left.F")[1:] == pytest.approx(middle, abs=2e-3)
    assert column(run, "link.left.F") == pytest.approx(-column(run, "link.right.F"), abs=1e-12)


class Naive:
    """F <- F - K (g' + mu g), explicit, without sensitivities."""

    inputs = ("x1", "v1", "x3", "v3")
    outputs = ("left", "right")

    def __init__(self, K, mu):
        self.K, self.mu = K, mu

    def start(self, t):
        self.F = 0.0

    def output(self, t):
        return [self.F, -self.F]

    def step(self, t, h, u):
        x1, v1, x3, v3 = u[0]
        self.F -= self.K * (v1 - v3 + self.mu * (x1 - x3))


@pytest.mark.parametrize("H", [0.01, 0.005])
@pytest.mark.parametrize("K", [0.1, 1.0, 10.0])
def test_the_naive_law_fails(H, K):
    models = {"left": mass(1.0, 1.0, 0.5), "right": mass(1.0, 2.0, 0.3), "law": hk.Python(Naive, K=K, mu=2.0)}
    wires = {"left.F": "law.left", "right.F": "law.right", "law.x1": "left.x", "law.v1": "left.v"}
    wires |= {"law.x3": "right.x", "law.v3": "right.v"}
    try:
        naive = errors(hk.run(hk.Composite(hk.Scenario(models, wires), H), stop=10), JOINED, START, BOTH)
    except hk.HocketError:
        naive = [np.inf]
    assert max(naive) > 1.0


def test_a_chain_of_three_bodies_and_two_links():
    middle = mass(0.5, 0.2, 0.1, ("l [N]", "r [N]"))
    chain = hk.Scenario(
        {"a": mass(1.0, 1.0, 0.5), "b": middle, "c": mass(2.0, 2.0, 0.3)},
        constraints={"one": ("a.x = b.x", "a.F + b.l = 0"), "two": ("b.x = c.x", "b.r + c.F = 0")},
    )
    joined = np.array([[0.0, 1.0], [-3.2 / 3.5, -0.9 / 3.5]])
    states = {0: ("a.x", "b.x", "c.x"), 1: ("a.v", "b.v", "c.v")}
    found = []
    for H in (0.1, 0.05, 0.025):
        run = hk.run(hk.Composite(chain, H), stop=10)
        found.append((max(errors(run, joined, START, states)), largest(run, "one_two.gap1")))
        assert "one_two.a.F" in run.ports  # constraints that share a simulator are solved together
    assert found[0][0] < 4e-4
    assert found[2][0] < found[0][0] / 14  # order 2
    assert found[2][1] < found[0][1] / 56  # order 3


def test_a_junction_of_capacitors():
    models = {"a": capacitor(1.0, 2.0), "b": capacitor(0.5, 1.0), "c": capacitor(2.0, 3.0)}
    scenario = hk.Scenario(models, constraints={"node": JUNCTION})
    decay = np.array([[-(1 / 2 + 1 + 1 / 3) / 3.5]])
    found = []
    for H in (0.1, 0.05):
        run = hk.run(hk.Composite(scenario, H), stop=5)
        found += errors(run, decay, [1.0], {0: ("a.v", "b.v", "c.v")})
        assert largest(run, "node.gap1") < 1e-14
    assert found[0] < 1.5e-4
    assert found[1] < found[0] / 3.8


def test_a_junction_of_capacitors_and_a_coil():
    models = {"a": capacitor(1.0, 2.0), "b": coil(0.8, 0.5), "c": capacitor(2.0, 3.0)}
    scenario = hk.Scenario(models, constraints={"node": JUNCTION})
    circuit = np.array([[-(1 / 2 + 1 / 3) / 3, -1 / 3], [1 / 0.8, -0.5 / 0.8]])
    found = []
    for H in (0.1, 0.05):
        run = hk.run(hk.Composite(scenario, H), stop=5)
        found.append(max(errors(run, circuit, START, {0: ("a.v", "c.v"), 1: ("b.i",)})))
        # the coil is given the mean voltage of a step
        mean = 0.5 * (column(run, "a.v")[1:] + column(run, "a.v")[:-1])
        assert column(run, "node.b.v")[1:] == pytest.approx(mean, abs=1e-12)
    assert found[0] < 1e-3
    assert found[1] < found[0] / 3.8


@pytest.mark.parametrize(
    "resistor",
    [
        hk.StateSpace(D=[[0.5]], inputs=["v [V]"], outputs=["i [A]"]),
        hk.StateSpace(D=[[2.0]], inputs=["i [A]"], outputs=["v [V]"]),
    ],
    ids=["voltage in", "current in"],
)
def test_outputs_that_react_at_once(resistor):
    scenario = hk.Scenario(
        {"c": capacitor(1.0, 2.0), "r": resistor}, constraints={"node": ("c.v = r.v", "c.i + r.i = 0")}
    )
    found = [
        *errors(hk.run(hk.Composite(scenario, 0.1), stop=5), np.array([[-1.0]]), [1.0], {0: ("c.v",)}),
        *errors(hk.run(hk.Composite(scenario, 0.05), stop=5), np.array([[-1.0]]), [1.0], {0: ("c.v",)}),
    ]
    assert found[0] < 3e-4
    assert found[1] < found[0] / 3.8


def test_a_pendulum_whose_rod_is_an_equation():
    g = 9.81
    body = hk.Ode(
        lambda t, x, u: [x[2], x[3], u[0], u[1] - g],
        x0=[1.0, 0.0, 0.0, 0.0],
        inputs=["Fx", "Fy"],
        outputs=["x", "y", "vx", "vy"],
        step="2 ms",
    )
    rod = Constraint(("m.x**2 + m.y**2 = 1", "m.Fx * m.y = m.Fy * m.x"), {"m.x": "m.vx", "m.y": "m.vy"})
    found, gaps = [], []
    for H in (0.02, 0.01):
        run = hk.run(hk.Composite(hk.Scenario({"m": body}, constraints={"rod": rod}), H), stop=2)
        x, y = pendulum_exact(run["m.x"].t, g)
        found.append(max(np.abs(column(run, "m.x") - x).max(), np.abs(column(run, "m.y") - y).max()))
        gaps.append(largest(run, "rod.gap1"))
    assert found[1] < 1.5e-3
    assert found[1] < found[0] / 3.2
    assert gaps[1] < 2e-5
    assert gaps[1] < gaps[0] / 7


def test_a_slider_on_a_crank():
    rotor = hk.Ode(
        lambda t, x, u: [x[1], u[0] / 0.5], x0=[0.3, 1.0], inputs=["T"], outputs=["f", "w"], step="5 ms"
    )
    slider = hk.Ode(
        lambda t, x, u: [x[1], u[0] - 2.0 * x[0]],
        x0=[np.sin(0.3), np.cos(0.3)],
        inputs=["F"],
        outputs=["x", "v"],
        step="5 ms",
    )
    crank = Constraint(
        ("slider.x = sin(rotor.f)", "rotor.T + slider.F * cos(rotor.f) = 0"),
        {"slider.x": "slider.v", "rotor.f": "rotor.w"},
    )
    scenario = hk.Scenario({"rotor": rotor, "slider": slider}, constraints={"crank": crank})
    found = []
    for H in (0.04, 0.02):
        run = hk.run(hk.Composite(scenario, H), stop=6)
        found.append(np.abs(column(run, "rotor.f") - crank_exact(run["rotor.f"].t, 0.5, 1.0, 2.0)).max())
    assert found[1] < 2e-4
    assert found[1] < found[0] / 3.5


@pytest.mark.parametrize(("kind", "rates"), [(Told, RATES), (Body, {})], ids=["rates", "by differences"])
def test_black_boxes_are_linked_as_well(kind, rates):
    composite = hk.Composite(boxes(kind, rates), 0.05)
    run = hk.run(composite, stop=10)
    assert max(errors(run, JOINED, START, {0: ("left.x", "right.x")})) < 1e-5
    assert largest(run, "link.gap1") < 1.2e-5
    compiled = Modularity().apply(composite).scenario
    if kind is Body:
        assert isinstance(compiled.models["left"], Sloped)
        assert "differences" in compiled.inserted["link"].reason
        assert "emulated" in compiled.inserted["left"].reason


def test_slopes_are_taken_where_there_are_no_rates():
    models = {"left": mass(1.0, 1.0, 0.5, outputs=["x [m]"]), "right": mass(1.0, 2.0, 0.3, outputs=["x [m]"])}
    scenario = hk.Scenario(models, constraints={"link": EQUATIONS})
    run = hk.run(hk.Composite(scenario, 0.025), stop=10)
    assert largest(run, "link.gap1") == pytest.approx(1.3e-6, rel=0.2)
    compiled = Modularity().apply(hk.Composite(scenario, 0.025)).scenario
    (slope,) = [each for each in compiled.connections if each.target == "link.left.x"]
    assert slope.extrapolation == hk.Hermite(1)


@pytest.mark.parametrize(
    "scenario",
    [
        pair(),
        boxes(Body, {}),
        hk.Scenario(
            {"a": capacitor(1.0, 2.0), "b": coil(0.8, 0.5), "c": capacitor(2.0, 3.0)},
            constraints={"node": JUNCTION},
        ),
    ],
    ids=["masses", "boxes", "circuit"],
)
def test_both_engines_agree_bit_for_bit(scenario):
    native, plain = (hk.run(hk.Composite(scenario, 0.05), stop=2, engine=each) for each in ENGINES)
    assert native.ports == plain.ports
    for port in native.ports:
        assert np.array_equal(column(native, port), column(plain, port))


def test_simulators_that_compute_steps_of_first_order():
    for method in ("euler", "implicit-euler"):
        models = {"left": mass(1.0, 1.0, 0.5, method=method), "right": mass(1.0, 2.0, 0.3, method=method)}
        run = hk.run(hk.Composite(hk.Scenario(models, constraints={"link": LINK}), 0.01), stop=10)
        assert max(errors(run, JOINED, START, BOTH)) < 0.03
        assert largest(run, "link.gap1") < 1e-12


THREE = np.array([[0, 1, 0, 0], [-3 / 2, -0.4, 0.25, 0], [0, 0, 0, 1], [0.5, 0, -4, -0.5]])


def with_third(**more):
    left = mass(1.0, 1.0, 0.5, ("F [N]", "e"))
    other = hk.StateSpace(
        A=[[0, 1], [-4, -0.5]], B=[[0], [1]], C=[[1, 0]], x0=[0.5, 0], inputs=["u"], outputs=["x [m]"]
    )
    wires = [Connection("other.x", "left.e", gain=0.5), Connection("right.x", "other.u", gain=0.5)]
    models = {"left": left, "other": other, "right": mass(1.0, 2.0, 0.3)}
    return hk.Scenario(models, wires, constraints={"link": LINK}, **more)


@pytest.mark.parametrize(
    "orchestrator", ["jacobi", "gauss-seidel", hk.GaussSeidel(["other", "right", "left"])]
)
def test_the_rest_of_a_scenario_stays_outside_the_iteration(orchestrator):
    level = hk.Composite(with_third(record=["left.*", "other.x"]), 0.05, orchestrator, "linear")
    compiled = Modularity().apply(level)
    inner = compiled.scenario.models["link_level"]
    assert list(compiled.scenario.models) == ["link_level", "other"]
    assert list(inner.scenario.models) == ["left", "right", "link"]
    assert isinstance(inner.orchestrator, hk.Iterate)
    assert not isinstance(compiled.orchestrator, hk.Iterate)
    assert compiled.scenario.inserted["link_level"].by == "modularity"
    run = hk.run(level, stop=10)
    assert run.ports == ("other.x", "link_level.left.x", "link_level.left.v")
    states = {0: ("link_level.left.x",), 1: ("link_level.left.v",), 2: ("other.x",)}
    assert max(errors(run, THREE, [1.0, 0.0, 0.5, 0.0], states)) < 2e-3


def test_an_iteration_that_is_there_already_takes_the_equations_in():
    level = hk.Composite(with_third(), 0.05, hk.Iterate(hk.GaussSeidel()), "linear")
    compiled = Modularity().apply(level)
    assert set(compiled.scenario.models) == {"left", "other", "right", "link"}
    assert compiled.orchestrator.inner.order[-1] == "link"
    states = {0: ("left.x", "right.x"), 2: ("other.x",)}
    assert max(errors(hk.run(level, stop=10), THREE, [1.0, 0.0, 0.5, 0.0], states)) < 2e-4


def test_step_control_takes_the_equations_in():
    level = hk.Composite(pair(), 0.5, hk.Adaptive(tolerance=1e-2))
    run = hk.run(level, stop=5)
    assert run.info["counts"]["adapted"][""]["longest"] > 2 * run.info["counts"]["adapted"][""]["shortest"]
    assert max(errors(run, JOINED, START, BOTH)) < 1e-4


def test_constraints_inside_levels_and_into_levels():
    inside = hk.Composite(pair(), 0.025)
    around = hk.Scenario({"box": inside, "k": hk.Gain(2.0)}, {"k.u": "box.left.x"})
    run = hk.run(hk.Composite(around, 0.1), stop=5)
    assert max(errors(run, JOINED, START, {0: ("box.left.x", "box.right.x")})) < 1e-6
    box = hk.Composite(hk.Scenario({"m": mass(1.0, 2.0, 0.3)}), 0.05)
    link = Constraint(("left.x = box.m.x", "left.F + box.m.F = 0"))
    reached = hk.Scenario({"left": mass(1.0, 1.0, 0.5), "box": box}, constraints={"link": link})
    run = hk.run(hk.Composite(reached, 0.05), stop=5)
    assert max(errors(run, JOINED, START, {0: ("left.x", "box.m.x")})) < 1e-5


def test_what_reaches_into_a_level_finds_those_that_were_put_together_there():
    inside = hk.Composite(with_third(), 0.025, "gauss-seidel", "linear")
    around = hk.Scenario({"box": inside, "k": hk.Gain(2.0)}, {"k.u": "box.left.x"})
    run = hk.run(hk.Composite(around, 0.1), stop=5)
    assert np.array_equal(column(run, "k.y"), 2.0 * column(run, "box.link_level.left.x")[::4])


def test_an_input_in_no_equation_moves_a_mass_along_a_path():
    moved = Constraint(("m.x = x",), {"m.x": "m.v", "x": "v"}, determines=("m.F",))
    arm = hk.Composite(
        hk.Scenario(
            {"m": mass(1.0, 1.0, 0.5)}, inputs=["x [m] = 1.0", "v [m/s]"], constraints={"arm": moved}
        ),
        0.025,
    )
    path = hk.Function(lambda t: [np.cos(t), -np.sin(t)], ["x [m]", "v [m/s]"])
    scenario = hk.Scenario({"path": path, "arm": arm}, {"arm.x": "path.x", "arm.v": "path.v"})
    run = hk.run(hk.Composite(scenario, 0.025, hk.GaussSeidel(["path", "arm"]), "quadratic"), stop=6)
    t = run["arm.m.x"].t
    assert column(run, "arm.m.x") == pytest.approx(np.cos(t), abs=1e-4)
    # m x'' = F - c x - d x': in the middle of each step
    force = -0.5 * np.sin(t - 0.0125)
    assert column(run, "arm.arm.m.F")[1:] == pytest.approx(force[1:], abs=5e-3)


def test_conditions_after_and_the_story():
    level = hk.Composite(pair(), 0.1)
    compiled = Modularity().apply(level)
    assert Modularity().reasons(level) == [
        "`link` determines inputs that nothing drives: left.x = right.x; left.F + right.F = 0"
    ]
    assert Modularity().reasons(compiled) == []
    assert Modularity().check_preconditions(level) == []
    assert Modularity().check_postconditions(compiled) == []
    assert not compiled.scenario.constraints
    assert {note.by for note in compiled.scenario.inserted.values()} == {"modularity"}
    assert "link" in compiled.scenario.inserted
    assert "left.F" in compiled.scenario.inserted
    (coupler,) = [each for each in compiled.scenario.models.values() if isinstance(each, Coupler)]
    check_simulator(coupler)
    half = compiled.scenario.with_changes(connections=compiled.scenario.connections[1:])
    assert "nothing drives" in Modularity().check_postconditions(compiled.with_scenario(half))[0].what
    assert "was not compiled" in Modularity().check_postconditions(level)[0].what


def test_the_run_says_how_well_equations_were_kept():
    run = hk.run(hk.Composite(pair(), 0.1), stop=10)
    (note,) = [note for note in run.info["notes"] if note.startswith("`left.x = right.x`")]
    assert note == f"`left.x = right.x` was kept to {largest(run, 'link.gap1'):.2g}, see `link.gap1`"


def test_what_solves_equations_lives_where_their_simulators_do():
    hosts = {"plant": ["left", "right"], "lab": ["other"]}
    compiled = Modularity().apply(hk.Composite(with_third(hosts=hosts), 0.05)).scenario
    assert compiled.hosts.models == {"plant": ("link_level",), "lab": ("other",)}
    whole = Modularity().apply(hk.Composite(pair(hosts={"plant": ["left", "right"]}), 0.05)).scenario
    assert whole.hosts.models == {"plant": ("left", "right", "link")}


def test_a_run_is_judged_by_what_was_found_and_not_by_what_equations_lack(tmp_path):
    level = hk.Composite(pair(), 0.1)
    run = hk.run(level, stop=5, folder=tmp_path / "run")
    found = estimate_error(Experiment(level, stop=Fraction(5)), run)
    rows = {row["port"]: row for row in found.rows()}
    assert "link.gap1" not in rows
    assert "link.left.F" in rows
    assert not [doubt for doubt in found.doubts if "starts elsewhere" in doubt]
    true = errors(run, JOINED, START, {1: ("left.v",)})[0]
    assert rows["left.v"]["estimated error"] == pytest.approx(true, rel=0.1)


def test_a_coupler_of_linear_equations_carries_rows():
    coupler = Modularity().apply(hk.Composite(pair(), 0.1)).scenario.models["link"]
    assert coupler.linear
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(2, len(coupler.inputs), 3))
    rows = coupler.open()
    rows.start(0.0)
    rows.step(0.0, 0.1, columns)
    together = rows.output(0.1, columns)
    for number in range(3):
        alone = coupler.open()
        alone.start(0.0)
        alone.step(0.0, 0.1, columns[:, :, number])
        assert together[:, number] == pytest.approx(alone.output(0.1, columns[:, :, number]), rel=1e-14)


def test_the_row_at_the_start_solves_equations_that_inputs_act_on_at_once():
    """v = x - R i on both sides of a junction: at the start i = (x_a - x_b) / (R_a + R_b)."""
    models = {
        "a": hk.StateSpace([[-1.0]], [[0.0]], [[1.0]], [[-2.0]], [1.0], inputs=["i"], outputs=["v"]),
        "b": hk.StateSpace([[-0.3]], [[0.5]], [[1.0]], [[-1.0]], [3.0], inputs=["i"], outputs=["v"]),
    }
    junction = {"equations": ["a.v = b.v", "a.i + b.i = 0"]}
    made = hk.run(hk.Composite(hk.Scenario(models, constraints={"j": junction}), "50 ms"), 0.3)
    assert made["j.a.i"].values[0] == pytest.approx(-2.0 / 3.0, rel=1e-12)
    assert made["a.v"].values[0] == pytest.approx(1.0 + 4.0 / 3.0, rel=1e-12)
    assert made["b.v"].values[0] == pytest.approx(3.0 - 2.0 / 3.0, rel=1e-12)


def test_the_gap_at_the_start_is_that_of_the_row():
    """What comes from outside is not known when the equations are prepared: v = e - 2 i with e(0) = 1."""
    gain = hk.StateSpace(D=[[-2.0, 1.0]], inputs=["i", "e"], outputs=["v"])
    outside = hk.StateSpace([[-1.0]], C=[[1.0]], x0=[1.0], outputs=["y"])
    other = hk.StateSpace([[-0.3]], [[0.5]], [[1.0]], [[-1.0]], [3.0], inputs=["i"], outputs=["v"])
    junction = {"equations": ["a.v = b.v", "a.i + b.i = 0"]}
    models = {"a": gain, "b": other, "s": outside}
    scenario = hk.Scenario(models, {"a.e": "s.y"}, constraints={"j": junction})
    made = hk.run(hk.Composite(scenario, "50 ms"), 0.3)
    prefix = "j_level."
    short = made[f"{prefix}a.v"].values[0] - made[f"{prefix}b.v"].values[0]
    assert made[f"{prefix}j.gap1"].values[0] == pytest.approx(short, abs=1e-12)
