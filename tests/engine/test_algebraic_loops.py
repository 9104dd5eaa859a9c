"""Values that agree with themselves, against roots that are known."""

from math import asinh, atan, cos, exp, inf, nan, sinh
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hocket as hk
from hocket.engine.algebraic_loops import (
    NUDGE,
    TOLERANCE,
    SingularError,
    Unknowns,
    fixed_point,
    newton,
    solve_linear,
)
from hocket.errors import ConvergenceError
from systems import ENGINES


def solve(evaluate, *guess):
    return fixed_point(evaluate, list(guess), ["a.y", "b.y"][: len(guess)], 0.5)


def alone(function):
    """A loop of one value."""
    return lambda v: [function(v[0])]


@pytest.mark.parametrize(
    ("function", "guess", "root"),
    [
        (cos, 0.0, 0.7390851332151607),
        (lambda y: exp(-y), 0.0, 0.5671432904097838),
        (lambda y: 1 + 1 / y, 1.0, (1 + 5**0.5) / 2),
        (lambda y: y * y, 0.9, 1.0),
        (lambda y: y * y - 2 + y, 1.0, 2**0.5),
        (lambda y: 0.5 * y + 1e6, 0.0, 2e6),
        (lambda y: -40.0 * y + 82.0, 0.0, 2.0),
        (lambda y: 3.25, -7.0, 3.25),
        (lambda y: sinh(y) + y - 1, 5.0, asinh(1.0)),
    ],
    ids=["Dottie", "omega", "golden", "one", "root of 2", "large", "gain of -40", "constant", "far away"],
)
def test_known_roots_are_found_to_the_last_digits(function, guess, root):
    assert solve(alone(function), guess) == pytest.approx([root], rel=1e-14)


def test_of_two_solutions_the_near_one_is_found():
    """v = w^2 and w = 2 - v: a parabola and a line meet at (1, 1) and (4, -2)."""

    def evaluate(v):
        return [v[1] ** 2, 2 - v[0]]

    assert solve(evaluate, 0.5, 1.5) == pytest.approx([1, 1], abs=1e-14)
    assert solve(evaluate, 5.0, -3.0) == pytest.approx([4, -2], abs=1e-14)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**31))
def test_linear_loops_have_the_solution_of_their_system(size, seed):
    rng = np.random.default_rng(seed)
    K, b = rng.uniform(-1.5, 1.5, (size, size)) / size, rng.uniform(-10, 10, size)
    found = fixed_point(lambda v: (K @ v + b).tolist(), [0.0] * size, [f"m{k}.y" for k in range(size)], 0.0)
    assert found == pytest.approx(np.linalg.solve(np.eye(size) - K, b), rel=1e-9, abs=1e-9)


def test_large_forces_and_small_lengths_may_share_a_loop():
    """F = k x and x = x0 - F / c: x = x0 / (1 + k / c), in N and m."""
    k, c, x0 = 1e8, 4e8, 1e-3
    force, x = solve(lambda v: [k * v[1], x0 - v[0] / c], 0.0, 0.0)
    assert (force, x) == (pytest.approx(8e4, rel=1e-12), pytest.approx(8e-4, rel=1e-12))


def test_the_guess_is_left_alone():
    guess = [0.25]
    fixed_point(alone(cos), guess, ["a.y"], 0.0)
    assert guess == [0.25]


def test_a_guess_that_agrees_already_costs_one_evaluation():
    calls = []

    def evaluate(v):
        calls.append(list(v))
        return [3.0, v[0] + 1]

    assert solve(evaluate, 3.0, 4.0) == [3.0, 4.0]
    assert calls == [[3.0, 4.0]]


def test_a_step_that_overshoots_is_shortened():
    """Newton's whole steps on this arc tangent leave from 0.2 for infinity; the root is 0."""
    far = 0.2
    for _ in range(6):
        far -= atan(8 * far) * (1 + 64 * far**2) / 8
    assert abs(far) > 5
    assert solve(alone(lambda y: y + atan(8 * y)), 0.2) == pytest.approx([0], abs=TOLERANCE)


@pytest.mark.parametrize(
    ("evaluate", "guess"),
    [
        (alone(lambda y: y + 1), [0.0]),
        (lambda v: [v[1] + 1, v[0] + 1], [0.0, 0.0]),
        (lambda v: [v[0] / 2 + v[1] / 2 + 1, v[0] / 2 + v[1] / 2 - 2], [1.0, 1.0]),
    ],
    ids=["y = y + 1", "a circle that adds", "parallel lines"],
)
def test_a_loop_without_a_solution_is_named(evaluate, guess):
    with pytest.raises(ConvergenceError) as caught:
        solve(evaluate, *guess)
    where = "a.y -> b.y -> a.y" if len(guess) == 2 else "a.y -> a.y"
    assert (
        str(caught.value)
        == f"""\
an algebraic loop has no solution, or no single one
  where:    {where} at t = 0.5 s
  expected: outputs that, fed back through the loop, agree with themselves
  try:      break the loop by a simulator without direct feedthrough, or change its gain"""
    )


def test_a_loop_that_does_not_settle_shows_its_residual():
    """The residual of y = y^2 + y + 1 is y^2 + 1, and never below 1, also relative to y where y > 1."""
    with pytest.raises(ConvergenceError) as caught:
        solve(alone(lambda y: y * y + y + 1), 2.0)
    (fault,) = caught.value.faults
    assert fault.what == "an algebraic loop did not converge"
    assert fault.where == "a.y -> a.y at t = 0.5 s"
    assert fault.hint == "better start values for the inputs of the loop"
    wanted, _, residual = fault.expected.rpartition(" ")
    assert wanted == "a residual of 1e-10; it stayed at"
    assert float(residual) >= 1


@pytest.mark.parametrize("value", [nan, inf])
def test_a_loop_that_is_no_number_does_not_settle(value):
    with pytest.raises(ConvergenceError) as caught:
        solve(lambda _: [0.5, value], 0.0, 0.0)
    assert caught.value.faults[0].expected == f"a residual of 1e-10; it stayed at {value}"


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**31))
def test_elimination_agrees_with_numpy(size, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(-1, 1, (size, size)) + 2 * size * np.eye(size)[rng.permutation(size)]
    right = rng.uniform(-1, 1, size)
    assert solve_linear(matrix.tolist(), right.tolist()) == pytest.approx(
        np.linalg.solve(matrix, right), abs=1e-12
    )


def test_rows_are_exchanged_where_the_first_cannot_begin():
    """2 y = 6 and 4 x = 8."""
    assert solve_linear([[0.0, 2.0], [4.0, 0.0]], [6.0, 8.0]) == [2.0, 3.0]


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.0]],
        [[1.0, 2.0], [2.0, 4.0]],
        [[1.0, 1.0], [1.0, 1.0 + 1e-14]],
        [[0.0, 1.0], [0.0, 2.0]],
        [[nan, 1.0], [1.0, 1.0]],
    ],
    ids=["zero", "dependent rows", "all but dependent rows", "empty column", "not a number"],
)
def test_a_matrix_that_cannot_be_solved_with_is_refused(matrix):
    with pytest.raises(SingularError):
        solve_linear(matrix, [1.0] * len(matrix))


def test_newtons_step_is_halved_until_it_helps():
    """From 0 its step is 1; the residual 1 - x is small there only, elsewhere it is larger than at 0."""
    seen = []

    def evaluate(v):
        seen.append(v[0])
        return [v[0] + (1.0 - v[0] if v[0] < 0.1 or v[0] > 2.0 else 5.0)]

    with pytest.raises(ArithmeticError):
        newton(evaluate, [0.0])
    assert seen[:2] == [0.0, NUDGE]
    assert seen[2:7] == pytest.approx([1.0, 0.5, 0.25, 0.125, 0.0625])
    assert seen[7] == pytest.approx(0.0625 + NUDGE)


def test_a_slope_is_told_as_the_change_over_a_step():
    """A step of half a second: the slope 3 is a change of 1.5."""
    memory = SimpleNamespace(rings=[[[(0, 2.0, 3.0)]]])
    level = SimpleNamespace(clock=SimpleNamespace(span=lambda ticks: 0.125 * ticks), length=4, memory=memory)
    unknowns = Unknowns(level, [(0, 0, 1), (0, 0, 2)])
    assert unknowns.newest() == [2.0, 1.5]
    unknowns.put([4.0, 1.0])
    assert memory.rings == [[[(0, 4.0, 2.0)]]]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_inside_a_level_is_named_by_its_whole_path(engine):
    """a.y = 10 t b.y + 1 and b.y = a.y agree at any time but 0.1 s."""

    def gain(g, inputs):
        return hk.Ode(lambda t, x, u: [-x[0]], g, x0=[0.0], inputs=inputs, outputs=["y"])

    models = {
        "a": gain(lambda t, x, u: [round(10.0 * t, 9) * u[0] + 1.0], ["u"]),
        "b": gain(lambda t, x, u: [u[0]], ["u"]),
    }
    inner = hk.Composite(hk.Scenario(models, {"a.u": "b.y", "b.u": "a.y"}), "50 ms")
    for composite, path in ((inner, ""), (hk.Composite(hk.Scenario({"in": inner}), "50 ms"), "in.")):
        with pytest.raises(ConvergenceError) as caught:
            hk.run(composite, stop=0.2, engine=engine)
        (fault,) = caught.value.faults
        assert fault.what == "an algebraic loop has no solution, or no single one"
        assert fault.where == f"{path}a.y -> {path}b.y -> {path}a.y at t = 0.1 s"
