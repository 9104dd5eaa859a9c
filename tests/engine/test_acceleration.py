"""Iterations seen from inside: what each sweep is given, and when they end."""

from typing import ClassVar

import pytest

import hocket as hk
from hocket.engine.algebraic_loops import NUDGE, newton
from hocket.engine.reference.acceleration import IqnIls
from systems import ENGINES


class Line:
    """y = c + k u at the end of each step; writes down what it is given."""

    inputs, outputs = ("u",), ("y",)
    given: ClassVar[dict[str, list[float]]] = {}

    def __init__(self, name, y0, c, k):
        self.name, self.y0, self.c, self.k = name, y0, c, k

    def start(self, t):
        self.y = self.y0
        self.given[self.name] = []

    def output(self, t):
        return [self.y]

    def step(self, t, h, u):
        self.given[self.name].append(float(u[0, 0]))
        self.y = self.c + self.k * float(u[0, 0])

    def save(self):
        return self.y

    def restore(self, state):
        self.y = state


def pair(how, one, other):
    models = {name: hk.Python(Line, name=name, **dict(zip(("y0", "c", "k"), line, strict=True)))
              for name, line in (("a", one), ("b", other))}  # fmt: skip
    return hk.Composite(hk.Scenario(models, {"a.u": "b.y", "b.u": "a.y"}), "0.1 s", how, "hold", "cold")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("one", "other", "size"),
    [
        ((0.1, 0.2, 0.5), (0.1, 0.1, 0.25), 1.0),  # values below one count as one
        ((900.0, 1000.0, 0.001), (900.0, 1000.0, 0.001), 1000.9),  # the value given
        ((0.1, 0.4, 300.0), (0.0, 3.0, 0.5), 915.0),  # what it is off by
    ],
)
def test_newton_moves_each_number_by_the_root_of_its_rounding_error(engine, one, other, size):
    """The first sweep is given what the body found, the next two the same with one number moved."""
    hk.run(pair(hk.Iterate(hk.Jacobi(), 1e-9, accelerate="newton"), one, other), "0.1 s", engine=engine)
    (_, ca, ka), (_, cb, kb) = one, other
    a, b = ca + ka * other[0], cb + kb * one[0]
    residual = ca + ka * b - a
    assert max(1.0, abs(a), abs(residual)) == pytest.approx(size, rel=1e-12)
    moved = a + 2.0**-26 * max(1.0, abs(a), abs(residual))
    assert Line.given["b"][:4] == [one[0], a, moved, a]
    assert moved != a


def test_so_it_does_in_loops_of_outputs():
    seen = []

    def evaluate(v):
        seen.append(list(v))
        return [0.5 * v[1] + 1000.0, 0.25 * v[0]]

    assert newton(evaluate, [3.0, 0.25]) == pytest.approx([1000.0 / 0.875, 250.0 / 0.875])
    # residuals at the guess: 997.125 and 0.5
    assert seen[:3] == [[3.0, 0.25], [3.0 + NUDGE * 997.125, 0.25], [3.0, 0.25 + NUDGE]]
    assert NUDGE == 2.0**-26


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("line", "sweeps"),
    [
        # y = 2 u from 1: found 4 after 2, off by half of it, doubling: 2^41 / 2 is the first above 1e12
        ((1.0, 0.0, 2.0), 43),
        # found 0.5 after -100, off by 100.5: 2^40 times as much is the first above 1e12 times as much
        ((-150.25, 200.5, 2.0), 42),
    ],
)
def test_what_grows_without_bound_is_given_up(engine, line, sweeps):
    composite = pair(hk.Iterate(hk.Jacobi(), 1e-9, 100, None), line, line)
    with pytest.raises(hk.ConvergenceError, match=f"does not contract in {sweeps} iterations"):
        hk.run(composite, "0.1 s", engine=engine)
    assert len(Line.given["a"]) == sweeps


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("at_most", [1, 2, 3, 7])
def test_there_are_as_many_sweeps_as_were_asked_for(engine, at_most):
    line = (1.0, 0.5, 0.9)
    hk.run(pair(hk.Iterate(hk.Jacobi(), None, at_most, None), line, line), "0.2 s", engine=engine)
    assert len(Line.given["a"]) == 2 * at_most


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("accelerate", "at_most"), [(None, 4), ("aitken", 4), ("newton", 2)])
def test_nothing_is_guessed_after_the_last_sweep(engine, accelerate, at_most):
    """Newton would move each number once more, with a sweep each."""
    how = hk.Iterate(hk.Jacobi(), 1e-300, at_most, accelerate)
    with pytest.raises(hk.ConvergenceError, match=f"in {at_most} iterations"):
        hk.run(pair(how, (1.0, 0.5, 0.9), (0.3, 0.1, -0.7)), "0.1 s", engine=engine)
    assert len(Line.given["a"]) == at_most


@pytest.mark.parametrize("accelerate", ["quasi-newton", None])
def test_the_largest_number_of_sweeps_is_what_native_code_can_count(accelerate):
    assert hk.Iterate(hk.Jacobi(), 1e-6, 2**31 - 1, accelerate).at_most == 2**31 - 1
    with pytest.raises(hk.ScenarioError, match=f"`at_most` is {2**31}"):
        hk.Iterate(hk.Jacobi(), 1e-6, 2**31, accelerate)


@pytest.mark.parametrize(("reuse", "steps"), [(0, 0), (1, 1), (3, 3)])
def test_quasi_newton_remembers_as_many_steps_as_it_may_reuse(reuse, steps):
    """One difference tells that x = 1 + x / 2 has the solution 2; without it the guess is what was found."""
    way = IqnIls(reuse, 1e-9)
    way.begin()
    assert way.next_guess([0.0], [1.0], None) == [1.0]
    assert way.next_guess([1.0], [1.5], None) == pytest.approx([2.0])
    for step in range(1, 5):
        way.begin()
        assert way.next_guess([0.0], [1.0], None) == pytest.approx([2.0 if step <= steps else 1.0])


def test_two_differences_solve_for_two_numbers():
    """K = [[0, 1/2], [1/4, 0]] and (1, 1): what agrees with itself is (12, 10) / 7."""
    way, given = IqnIls(0, 1e-9), [0.0, 0.0]
    way.begin()
    for _ in range(3):
        a, b = given
        given = way.next_guess(given, [1.0 + 0.5 * b, 1.0 + 0.25 * a], None)
    assert given == pytest.approx([12 / 7, 10 / 7])


@pytest.mark.parametrize("engine", ENGINES)
def test_an_iteration_that_does_not_settle_names_four_of_its_outputs(engine):
    line, names = {"y0": 1.0, "c": 0.0, "k": 2.0}, "abcdef"
    models = {name: hk.Python(Line, name=name, **line) for name in names}
    ring = {f"{name}.u": f"{before}.y" for before, name in zip(names[-1] + names, names, strict=False)}
    how = hk.Iterate(hk.Jacobi(), 1e-9, 100, None)
    with pytest.raises(hk.ConvergenceError, match=r"`a.y`, `b.y`, `c.y`, `d.y` and 2 more does not contract"):
        hk.run(hk.Composite(hk.Scenario(models, ring), "0.1 s", how, "hold", "cold"), 0.1, engine=engine)
