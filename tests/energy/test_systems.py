"""The systems of the energy tables: true motions checked against other ways to them, and cut without loss."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag, expm

import hocket
from energy.systems import BUMP, MOTOR, duffing, every, motor, quarter_car, spring_mass, two_masses
from hocket import Composite, Hermite, Iterate, Jacobi, Scenario, StateSpace

SYSTEMS = {system.name: system for system in every()}
LINEAR = [spring_mass(), spring_mass(4.0, 0.5), two_masses(), two_masses(0.1, 0.2), motor()]


def times(system, count=401):
    return np.linspace(0.0, float(hocket.model.clock.seconds(system.end)), count)


def test_there_are_six_with_five_steps_each():
    assert len(SYSTEMS) == 6
    for system in SYSTEMS.values():
        steps = [hocket.model.clock.seconds(step) for step in system.steps]
        assert [steps[0] / step for step in steps] == [1, 2, 4, 8, 16]
        assert hocket.model.clock.seconds(system.end) % steps[0] == 0


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if system.lossless])
def test_undamped_ones_keep_their_energy(name):
    E = SYSTEMS[name].stored(SYSTEMS[name].reference(times(SYSTEMS[name])))
    assert np.abs(E / E[0] - 1.0).max() < 1e-10
    assert E[0] > 0.1


@pytest.mark.parametrize("system", LINEAR, ids=lambda system: system.name)
def test_leaves_closed_by_algebra_move_as_the_whole(system):
    """x' = (A + B L (I - D L)^-1 C) x + B u0, with a constant behind u0 where an input has a start."""
    models = system.models
    A, B, C, D = (block_diag(*(np.array(getattr(m, key)) for m in models.values())) for key in "ABCD")
    inputs = [f"{name}.{port.name}" for name, m in models.items() for port in m.inputs]
    outputs = [f"{name}.{port.name}" for name, m in models.items() for port in m.outputs]
    L = np.zeros((len(inputs), len(outputs)))
    for target, source in system.connections.items():
        L[inputs.index(target), outputs.index(source)] = 1.0
    free = [port.start or 0.0 for m in models.values() for port in m.inputs]
    react = np.linalg.inv(np.eye(len(outputs)) - D @ L)
    whole = np.zeros((len(A) + 1, len(A) + 1))
    whole[:-1, :-1] = A + B @ L @ react @ C
    whole[:-1, -1] = B @ (free + L @ react @ D @ free)
    x0 = np.array([*(x for m in models.values() for x in m.x0), 1.0])
    seen = react @ C
    t = times(system)
    rows = np.array([seen @ (expm(whole * s) @ x0)[:-1] for s in t[::40]])
    found = system.reference(t)[::40]
    picked = rows[:, [outputs.index(port) for port in system.ports]]
    assert found == pytest.approx(picked, rel=1e-8, abs=1e-9 * np.abs(picked).max())


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=lambda system: system.name)
def test_declared_energies_add_up_to_that_of_the_ports(system):
    rng = np.random.default_rng(6)
    seen, total = {}, 0.0
    for name, model in system.models.items():
        x = rng.normal(size=len(model.x0))
        y = model.output_matrices[0] @ x if isinstance(model, StateSpace) else x
        seen |= {f"{name}.{port.name}": value for port, value in zip(model.outputs, y, strict=True)}
        total += model.stored_energy.value(x)
    assert system.stored(np.array([[seen[port] for port in system.ports]]))[0] == pytest.approx(total)


def test_damping_takes_what_is_lost():
    system, d, dk = two_masses(0.1, 0.2), 0.1, 0.2
    t = np.linspace(0.0, 10.0, 4001)
    _, v1, _, _, v2 = system.reference(t).T
    heat = d * (v1**2 + v2**2) + dk * (v1 - v2) ** 2
    lost = (t[1] / 3) * (heat[0] + heat[-1] + 4 * heat[1:-1:2].sum() + 2 * heat[2:-1:2].sum())
    E = system.stored(system.reference(t))
    assert E[0] - E[-1] == pytest.approx(lost, rel=1e-9)


def test_duffing_without_its_cube_is_a_sum_of_two_modes():
    system = duffing(0.0)
    t = times(system)
    slow, fast, root = np.cos(t), np.cos(3**0.5 * t), 3**0.5
    x1, x2 = 0.75 * (slow + fast), 0.75 * (slow - fast)
    v1, v2 = (0.75 * (-np.sin(t) - s * root * np.sin(root * t)) for s in (1, -1))
    expected = np.stack([x1, v1, x1 - x2, x2, v2], axis=1)
    assert system.reference(t) == pytest.approx(expected, abs=1e-9)


def test_motor_settles_where_ohm_and_friction_say():
    """At rest of all changes: V = (Rf + R) i + k w, k i = b w + bl w / N^2."""
    p = MOTOR
    drag = p["b"] + p["bl"] / p["N"] ** 2
    speed = p["V"] / (p["k"] + (p["Rf"] + p["R"]) * drag / p["k"])
    row = motor().reference(np.linspace(0.0, 50.0, 11))[-1]
    assert row[3] == pytest.approx(speed, rel=1e-9)
    assert row[[0, 2]] == pytest.approx(np.full(2, drag * speed / p["k"]), rel=1e-9)
    assert row[5] == pytest.approx(speed / p["N"], rel=1e-9)


def test_quarter_car_is_a_matrix_exponential_on_the_bump_and_behind_it():
    mw, mb, kt, ks, d = 40.0, 300.0, 160e3, 16e3, 1.2e3
    car = np.array(
        [
            [0, -1, 0, 0],
            [kt / mw, -d / mw, -ks / mw, d / mw],
            [0, 1, 0, -1],
            [0, d / mb, ks / mb, -d / mb],
        ]
    )
    height, length = BUMP
    turn = 2 * np.pi / length
    whole = np.zeros((6, 6))  # the last two: the rise of the road, and its rate over the turn
    whole[:4, :4], whole[0, 4], whole[4, 5], whole[5, 4] = car, 1.0, turn, -turn
    begin = np.array([0, 0, 0, 0, 0, 0.5 * height * turn])
    t = np.array([0.0, 0.04, 0.1, 0.13, 0.5, 2.0])
    expected = [expm(whole * s) @ begin for s in t[:3]]
    expected += [expm(car * (s - length)) @ expected[2][:4] for s in t[3:]]
    rows = np.array([row[:4] for row in expected])
    assert quarter_car().reference(t) == pytest.approx(rows, abs=1e-9 * np.abs(rows).max())


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=lambda system: system.name)
def test_coupled_simulators_come_to_it_with_order_two(system):
    errors = []
    for step in system.steps[-3:-1]:
        composite = Composite(Scenario(system.models, system.connections), step, "jacobi", "linear")
        t, seen = system.seen(hocket.run(composite, system.end))
        expected = system.reference(t)
        errors.append((np.abs(seen - expected).max(axis=0) / np.abs(expected).max(axis=0)).max())
    assert errors[1] < 0.2
    assert 1.7 < np.log2(errors[0] / errors[1]) < 2.6


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if system.lossless])
def test_bonds_gain_what_stored_energy_is_off_by(name):
    system = SYSTEMS[name]
    for inputs, how in (("linear", Jacobi()), (Hermite(), Jacobi()), ("linear", Iterate(Jacobi(), None, 2))):
        run = hocket.run(Composite(system.scenario(), system.steps[2], how, inputs), system.end)
        E = system.stored(system.seen(run)[1])
        gained = sum(bond["gained"] for bond in run.info["bonds"].values())
        assert abs(E[-1] - E[0]) > 0.01 * E[0]
        assert gained == pytest.approx(E[-1] - E[0], rel=1e-3)


def test_power_counts_from_effort_to_flow():
    """The supply feeds the motor; the load takes from it, though it gives the effort."""
    system = motor()
    bonds = hocket.run(Composite(system.scenario(), system.steps[3], "jacobi", "linear"), system.end).info[
        "bonds"
    ]
    t = np.linspace(0.0, 0.1, 20001)
    _, u, i, speed, torque, _ = system.reference(t).T
    for name, power in (("electrical", u * i), ("mechanical", -torque * speed)):
        assert bonds[name]["given"] == pytest.approx(np.trapezoid(power, t), rel=1e-3)
        assert bonds[name]["taken"] == pytest.approx(bonds[name]["given"], rel=1e-3)
