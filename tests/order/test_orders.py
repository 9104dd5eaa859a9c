"""The error falls as H^min(p, q + 1), p the order of the solvers, q the degree of the extrapolation.

The ratios H : inner H : h stay the same while H is halved (formulas, section 4).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import block_diag

import hocket
from hocket import (
    Composite,
    GaussSeidel,
    Hermite,
    Hold,
    Iterate,
    Jacobi,
    Polynomial,
    Python,
    Scenario,
    StateSpace,
)
from hocket.planning.planner import plan_tree

END = 2
FINEST = (Fraction(1, 64), Fraction(1, 128))
SOLVERS = {"euler": 1, "heun": 2, "rk4": 4}
STIFFNESS = {"a": (1.0, 0.3), "b": (2.0, 0.2), "c": (1.5, 0.4), "d": (2.5, 0.1)}
"""Spring and damper of four oscillators; each is pushed by the positions of the others."""
PUSHES = {
    ("a", "b"): 0.6, ("a", "c"): -0.4, ("b", "a"): 0.5, ("b", "d"): 0.7,
    ("c", "a"): -0.3, ("c", "d"): 0.8, ("d", "b"): 0.4, ("d", "c"): -0.5,
}  # fmt: skip
"""Of whom, by whom."""
START = {"a": (1.0, 0.0), "b": (0.5, -0.4), "c": (-0.7, 0.3), "d": (0.2, 0.9)}


def oscillator(name, method, h):
    c, d = STIFFNESS[name]
    pushes = {by: push for (of, by), push in PUSHES.items() if of == name}
    return StateSpace(
        A=[[0, 1], [-c, -d]],
        B=[[0] * len(pushes), list(pushes.values())],
        C=[[1, 0]],
        x0=START[name],
        inputs=list(pushes),
        outputs=["x"],
        method=method,
        step=h,
    )


def exact(t):
    """The positions of a, b, c and d at the times t."""
    A = block_diag(*([[0, 1], [-c, -d]] for c, d in STIFFNESS.values()))
    place = {name: 2 * number for number, name in enumerate(STIFFNESS)}
    for (of, by), push in PUSHES.items():
        A[place[of] + 1, place[by]] = push
    values, vectors = np.linalg.eig(A)
    modes = np.linalg.solve(vectors, np.array(list(START.values()), dtype=complex).ravel())
    return dict(zip(STIFFNESS, np.real((vectors * modes) @ np.exp(np.outer(values, t)))[::2], strict=True))


NESTS = {
    1: ("a", "b", "c", "d"),
    2: ("a", "b", ("c", "d")),
    3: ("a", ("b", ("c", "d"))),
}
"""A tuple inside is a level of half the step."""


def names_in(tree):
    return [name for part in tree for name in ([part] if isinstance(part, str) else names_in(part))]


def paths_in(tree, prefix=""):
    for part in tree:
        if isinstance(part, str):
            yield part, f"{prefix}{part}"
        else:
            yield from paths_in(part, f"{prefix}level.")


def nest(tree, step, h, method, orchestrator, extrapolation, start="window", replaced=None):
    models = {}
    for part in tree:
        if isinstance(part, str):
            models[part] = (replaced or {}).get(part) or oscillator(part, method, h)
        else:
            models["level"] = nest(
                part, step / 2, h, method, orchestrator, extrapolation, start=start, replaced=replaced
            )
    inside = dict(paths_in(tree))
    deeper = [set(names_in(part)) for part in tree if not isinstance(part, str)]
    connections = {
        f"{inside[of]}.{by}": f"{inside[by]}.x"
        for of, by in PUSHES
        if of in inside and by in inside and not any({of, by} <= level for level in deeper)
    }
    return Composite(Scenario(models, connections), step, orchestrator, extrapolation, start)


def largest_error(levels, step, *choices, **more):
    composite = nest(NESTS[levels], step, step / 4, *choices, **more)
    run = hocket.run(composite, END)
    paths = dict(paths_in(NESTS[levels]))
    return max(np.max(np.abs(exact(run[f"{paths[n]}.x"].t)[n] - run[f"{paths[n]}.x"].values)) for n in paths)


def observed_order(levels, *choices, **more):
    coarse, fine = (largest_error(levels, step, *choices, **more) for step in FINEST)
    return np.log2(coarse / fine)


def extrapolators():
    return [Hold(), Polynomial(1), Polynomial(2), Polynomial(3)]


@pytest.mark.parametrize("orchestrator", [Jacobi(), GaussSeidel()], ids=["Jacobi", "GaussSeidel"])
@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("q", [0, 1, 2, 3])
@pytest.mark.parametrize("method", SOLVERS)
def test_the_order_is_the_smaller_of_p_and_q_plus_1(method, q, levels, orchestrator):
    order = observed_order(levels, method, orchestrator, extrapolators()[q])
    assert order == pytest.approx(min(SOLVERS[method], q + 1), abs=0.1)


@pytest.mark.parametrize("inner", [Jacobi(), GaussSeidel()], ids=["Jacobi", "GaussSeidel"])
@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("q", [0, 1, 2, 3])
def test_an_iteration_interpolates_with_the_same_order(q, levels, inner):
    """From the second sweep on the newest sample is at the end of the step, the oldest q - 1 steps back."""
    order = observed_order(levels, "rk4", Iterate(inner, 1e-13), extrapolators()[q])
    print(f"{levels} levels, {type(inner).__name__}, degree {q}: order {order:.3f}")
    assert order == pytest.approx(q + 1, abs=0.1)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_to_predict_and_correct_keeps_the_order(levels):
    assert observed_order(levels, "rk4", Iterate(Jacobi(), None, 2), Polynomial(1)) == pytest.approx(
        2, abs=0.1
    )


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize(("method", "p"), [("implicit-euler", 1), ("trapezoid", 2), ("ab2", 2)])
def test_the_other_solvers_have_their_order_too(method, p, levels):
    assert observed_order(levels, method, Jacobi(), Polynomial(3)) == pytest.approx(p, abs=0.1)


@pytest.mark.parametrize("orchestrator", [Jacobi(), GaussSeidel()], ids=["Jacobi", "GaussSeidel"])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_tangent_has_order_2_and_a_hermite_cubic_4(levels, orchestrator):
    assert observed_order(levels, "rk4", orchestrator, Hermite(1)) == pytest.approx(2, abs=0.1)
    assert observed_order(levels, "rk4", orchestrator, Hermite(2)) == pytest.approx(4, abs=0.1)


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("q", [2, 3])
def test_a_cold_start_caps_the_order_at_2_and_the_plan_says_so(q, levels):
    choices = ("rk4", Jacobi(), Polynomial(q))
    assert observed_order(levels, *choices, start="cold") == pytest.approx(2, abs=0.1)
    cold, warm = (nest(NESTS[levels], 1, None, *choices, start=start) for start in ("cold", "window"))
    assert any("capped at 2" in note and "cold" in note for note in plan_tree(cold).plan.notes)
    assert not any("capped" in note for note in plan_tree(warm).plan.notes)


@pytest.mark.parametrize("extrapolation", [Hold(), Polynomial(1)])
def test_a_cold_start_caps_nothing_up_to_straight_lines(extrapolation):
    q = extrapolation.degree
    choices = ("rk4", Jacobi(), extrapolation)
    assert observed_order(2, *choices, start="cold") == pytest.approx(q + 1, abs=0.1)
    assert not any(
        "capped" in note for note in plan_tree(nest(NESTS[2], 1, None, *choices, start="cold")).plan.notes
    )


class OneWay:
    """An oscillator that cannot roll back."""

    inputs = ("a", "d")
    outputs = ("x",)
    feedthrough = {}  # noqa: RUF012

    def __init__(self):
        self.hidden = oscillator("c", "exact", None).open()

    def start(self, t):
        self.hidden.start(t)

    def output(self, t, u):
        return self.hidden.output(t, u)

    def step(self, t, h, u):
        return self.hidden.step(t, h, u)


@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize("q", [2, 3])
def test_who_cannot_rewind_caps_the_order_at_2_and_is_named(q, levels):
    choices = ("rk4", Jacobi(), Polynomial(q))
    stuck = {"c": Python(OneWay)}
    assert observed_order(levels, *choices, replaced=stuck) == pytest.approx(2, abs=0.1)
    path = dict(paths_in(NESTS[levels]))["c"]
    notes = plan_tree(nest(NESTS[levels], 1, None, *choices, replaced=stuck)).plan.notes
    assert any("capped at 2" in note and f"`{path}` cannot roll back" in note for note in notes)
