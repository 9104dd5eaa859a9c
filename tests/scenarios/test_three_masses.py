"""Three masses in a row, flat and nested: the errors of tables 6.2 and 6.4 of Hafner's thesis."""

from __future__ import annotations

import numpy as np
import pytest

import hocket
from hocket import Composite, Jacobi, Scenario, StateSpace
from systems import ENGINES, THREE, slow_after

ROWS = THREE["tables"]
MASS = 10.0
MICRO_STEPS = (0.005, 0.0025, 0.00125)


def springs_and_dampers(number):
    parameters = THREE["parameters"]
    return parameters["c1_c12_c23_c3"][str(number)], parameters["d1_d12_d23_d3"]


def masses(number):
    """The second mass owns the spring to the first, the third the spring to the second."""
    (c1, c12, c23, c3), (d1, d12, d23, d3) = springs_and_dampers(number)
    first = StateSpace(
        A=[[0, 1], [-c1 / MASS, -d1 / MASS]],
        B=[[0], [1 / MASS]],
        C=np.eye(2),
        x0=[1, 0],
        inputs=["force [N]"],
        outputs=["x [m]", "v [m/s]"],
        method="euler",
        step=MICRO_STEPS[0],
    )
    second = StateSpace(
        A=[[0, 1], [-c12 / MASS, -d12 / MASS]],
        B=[[0, 0, 0], [c12 / MASS, d12 / MASS, 1 / MASS]],
        C=[[1, 0], [0, 1], [c12, d12]],
        D=[[0, 0, 0], [0, 0, 0], [-c12, -d12, 0]],
        x0=[2, 0],
        inputs=["x1 [m]", "v1 [m/s]", "force [N]"],
        outputs=["x [m]", "v [m/s]", "pull [N]"],
        method="euler",
        step=MICRO_STEPS[1],
    )
    third = StateSpace(
        A=[[0, 1], [-(c23 + c3) / MASS, -(d23 + d3) / MASS]],
        B=[[0, 0], [c23 / MASS, d23 / MASS]],
        C=[[1, 0], [0, 1], [c23, d23]],
        D=[[0, 0], [0, 0], [-c23, -d23]],
        x0=[3, 0],
        inputs=["x2 [m]", "v2 [m/s]"],
        outputs=["x [m]", "v [m/s]", "pull [N]"],
        method="euler",
        step=MICRO_STEPS[2],
    )
    return first, second, third


FIRST_TO_SECOND = {"first.force": "{}second.pull", "{}second.x1": "first.x", "{}second.v1": "first.v"}
SECOND_TO_THIRD = {"second.force": "third.pull", "third.x2": "second.x", "third.v2": "second.v"}


def outer_connections(level=""):
    return {target.format(level): source.format(level) for target, source in FIRST_TO_SECOND.items()}


def flat(number, step, outputs="stale"):
    first, second, third = masses(number)
    scenario = Scenario(
        {"first": first, "second": second, "third": third}, outer_connections() | SECOND_TO_THIRD
    )
    return Composite(scenario, step, Jacobi(outputs=outputs))


def nested(number, outer_step, inner_step):
    """The second and the third mass form a level of their own, which sees the first one inner step late."""
    first, second, third = masses(number)
    inside = Scenario({"second": second, "third": third}, SECOND_TO_THIRD)
    level = Composite(inside, inner_step, Jacobi(outputs="stale", inputs="delayed"))
    scenario = Scenario({"first": first, "level": level}, outer_connections("level."))
    return Composite(scenario, outer_step, Jacobi(outputs="stale"))


def composite(row):
    build = flat if len(row["H"]) == 1 else nested
    return build(row["scenario"], *row["H"])


def coupled(number):
    """The whole system as one matrix over (x1, v1, x2, v2, x3, v3)."""
    (c1, c12, c23, c3), (d1, d12, d23, d3) = springs_and_dampers(number)
    matrix = np.zeros((6, 6))
    matrix[0::2, 1::2] = np.eye(3)
    matrix[1::2, 0::2] = [[-c1 - c12, c12, 0], [c12, -c12 - c23, c23], [0, c23, -c23 - c3]]
    matrix[1::2, 1::2] = [[-d1 - d12, d12, 0], [d12, -d12 - d23, d23], [0, d23, -d23 - d3]]
    matrix[1::2] /= MASS
    return matrix


def exact(number, t):
    """The exact solution at the times t, one row per state."""
    values, vectors = np.linalg.eig(coupled(number))
    modes = np.linalg.solve(vectors, np.array([1, 0, 2, 0, 3, 0], dtype=complex))
    return np.real((vectors * modes) @ np.exp(np.outer(values, t)))


def largest_errors(run, row):
    """On the own micro grid of each mass: x1, v1, x2, v2, x3, v3."""
    errors = []
    for place, (name, step) in enumerate(zip(("first", "second", "third"), MICRO_STEPS, strict=True)):
        level = "level." if len(row["H"]) > 1 and name != "first" else ""
        for state, port in ((2 * place, "x"), (2 * place + 1, "v")):
            t, values = run[f"{level}{name}.{port}"]
            assert len(t) == round(row["t_end"] / step) + 1
            errors.append(np.max(np.abs(exact(row["scenario"], t)[state] - values)))
    return errors


def named(row):
    return f"scenario {row['scenario']} to {row['t_end']} s, H {'/'.join(map(str, row['H']))}"


@pytest.mark.parametrize("engine", slow_after(1, ENGINES))  # the bits of both are compared below
@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_errors_are_those_of_the_thesis(row, engine):
    run = hocket.run(composite(row), row["t_end"], every="micro", engine=engine)
    assert run.info["engine"] == engine
    assert largest_errors(run, row) == pytest.approx(row["max_error_x1_v1_x2_v2_x3_v3"], rel=5e-6, abs=0)


def test_all_84_errors_are_there():
    assert sum(len(row["max_error_x1_v1_x2_v2_x3_v3"]) for row in ROWS) == 84


@pytest.mark.parametrize("row", [row for row in ROWS if row["t_end"] < 4], ids=named)
def test_both_engines_agree_in_every_bit(row):
    inputs = [f"{p}.{port}" for p, port in (("first", "force"), ("second", "x1"), ("third", "v2"))]
    if len(row["H"]) > 1:
        inputs[1:] = [f"level.{path}" for path in inputs[1:]]
    native, plain = (
        hocket.run(composite(row), row["t_end"], every="micro", record=["*", *inputs], engine=engine)
        for engine in ENGINES
    )
    assert set(native.ports) == set(plain.ports) >= set(inputs)
    for port in native.ports:
        for ours, theirs in zip(native[port], plain[port], strict=True):
            assert np.array_equal(ours, theirs), port


def growth_per_step(values, stride):
    """Of the slowest oscillation: z_k z_k+2 - z_k+1^2 grows by rho^2 each step, whatever its phase is."""
    late = values[len(values) // 2 :: stride]
    pulse = late[:-2] * late[2:] - late[1:-1] ** 2
    return (pulse[-1] / pulse[0]) ** (0.5 / (stride * (len(pulse) - 1)))


def consistent_step(number, step):
    """The matrix of one flat step with forces evaluated at the start of it, from powers of Euler's map."""
    (c1, c12, c23, c3), (d1, d12, d23, d3) = springs_and_dampers(number)
    own = [(c1, d1), (c12, d12), (c23 + c3, d23 + d3)]
    whole = coupled(number)
    matrix = np.zeros((6, 6))
    for place, ((c, d), h) in enumerate(zip(own, MICRO_STEPS, strict=True)):
        mine = slice(2 * place, 2 * place + 2)
        A = np.array([[0, 1], [-c / MASS, -d / MASS]])
        held = whole[mine].copy()
        held[:, mine] -= A
        euler = np.eye(2) + h * A
        for _ in range(round(step / h)):
            matrix[mine] = euler @ matrix[mine] + h * held
        matrix[mine, mine] += np.linalg.matrix_power(euler, round(step / h))
    return matrix


def test_stale_outputs_grow_as_fast_as_the_spectral_radius_says():
    run = hocket.run(flat(2, 0.1), 1000)
    expected = THREE["spectral_radius_of_one_outer_step"]["2"]["0.1"]
    assert expected > 1
    assert growth_per_step(run["second.x"].values, 5) == pytest.approx(expected, abs=1e-5)


def test_consistent_outputs_decay_as_fast_as_the_spectral_radius_says():
    run = hocket.run(flat(2, 0.1, "consistent"), 1000)
    expected = max(abs(np.linalg.eigvals(consistent_step(2, 0.1))))
    assert expected == pytest.approx(0.997564, abs=1e-6)
    assert growth_per_step(run["first.x"].values, 50) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("steps", [(0.1, 0.025), (0.2, 0.05), (0.2, 0.025)])
def test_nesting_makes_the_unstable_coupling_decay(steps):
    run = hocket.run(nested(2, *steps), 1000)
    expected = THREE["spectral_radius_of_one_outer_step"]["2"]["/".join(map(str, steps))]
    assert expected < 1
    assert growth_per_step(run["first.x"].values, 50) == pytest.approx(expected, abs=1e-5)
