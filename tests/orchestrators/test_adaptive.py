"""Step control: what is taken back, who need not go back, levels in levels, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest

import hocket
from hocket import (
    Composite,
    ConvergenceError,
    GaussSeidel,
    Hold,
    Iterate,
    Jacobi,
    Polynomial,
    Python,
    Scenario,
    ScenarioError,
)
from hocket.orchestrators.adaptive import Adaptive
from hocket.plan import Adapt
from hocket.planning.planner import plan_tree
from orchestrators.test_adaptive_errors import error_of_oscillators, exactly, loaded, oscillators
from systems import ENGINES, lag

LOOP = {"a.u": "b.y", "b.u": "a.y"}
PAIR = Scenario({"a": lag(1.0, 2.0, 1.0), "b": lag(3.0, -1.5, -1.0)}, LOOP)


def columns(run):
    return {
        (table.name, name): run.table(table.name)[name].to_numpy()
        for table in run.tables
        for name in run.table(table.name).column_names
    }


def both(composite, stop):
    """Run on both engines; the bits are the same."""
    native, plain = (hocket.run(composite, stop, engine=engine) for engine in ENGINES)
    theirs, ours = columns(plain), columns(native)
    assert list(theirs) == list(ours)
    assert all(np.array_equal(theirs[key], ours[key]) for key in theirs)
    assert plain.info["counts"] == native.info["counts"]
    assert [native.info["engine"], plain.info["engine"]] == list(ENGINES)
    return native


def steps(run, path=""):
    return run.info["counts"]["adapted"][path]


def test_the_plan():
    plan = plan_tree(Composite(PAIR, "0.5 s", Adaptive(Jacobi(), 1e-3))).plan
    assert str(plan).splitlines()[3:] == [
        "  each step:",
        "    in steps of multiples of 1/1048576, an error of 0.001 per second by what inputs missed;"
        " else roll back:",
        "      feed a, b, together",
        "      step a, b, together",
        "      read a, b, together",
        "      record",
    ]


# steps that are taken back


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_with_rejects_is_its_accepted_steps_to_the_bit(engine):
    """The simulators alone, stepped by hand over the rows of the run, with the held outputs of each other."""
    composite = loaded(Adaptive(Jacobi(), 0.1, first=1), Hold(), method="rk4", step="10 ms")
    run = hocket.run(composite, 20, engine=engine)
    assert steps(run)["rejected"] > 10
    t = run["machine.x"].t
    machine, load = (model.open() for model in composite.scenario.models.values())
    machine.start(0.0)
    load.start(0.0)
    for number, (now, end) in enumerate(pairwise(t)):
        (x, _), (z,) = machine.output(now, np.zeros((1, 1))), load.output(now, np.zeros((1, 1)))
        assert (x, z) == (run["machine.x"].values[number], run["load.z"].values[number]), now
        machine.step(now, end - now, np.array([[z]]))
        load.step(now, end - now, np.array([[x]]))
    assert len(t) == steps(run)["accepted"] + 1


class Watched:
    """x'' = -40 x + u by Euler's method; writes down all that happens to it."""

    inputs, outputs = ("u",), ("y",)
    log: ClassVar[list[tuple[str, object]]] = []

    def start(self, t):
        self.x, self.v = 1.0, 0.0

    def output(self, t):
        return [self.x]

    def step(self, t, h, u):
        self.log.append(("step", (t, h)))
        self.x, self.v = self.x + h * self.v, self.v + h * (u[0, 0] - 40.0 * self.x)

    def save(self):
        made = sum(1 for what, _ in self.log if what == "step")
        self.log.append(("save", (self.x, self.v)))
        return self.x, self.v, made

    def restore(self, state):
        self.x, self.v, made = state
        self.log.append(("restore", (self.x, self.v, made)))


@pytest.mark.parametrize("engine", ENGINES)
def test_who_is_taken_back_was_there_before_and_goes_on_without_gaps(engine):
    Watched.log.clear()
    scenario = Scenario({"a": Python(Watched), "b": lag(3.0, 1.5, -1.0)}, LOOP)
    run = hocket.run(
        Composite(scenario, 1, Adaptive(Jacobi(), 0.05, first=1), start="cold"), 3, engine=engine
    )
    states, made, accepted = {}, 0, []
    for what, told in Watched.log:
        if what == "step":
            made += 1
            accepted.append((made, *told))
        elif what == "save":
            states[made] = told
        else:
            *state, then = told
            assert tuple(state) == states[then]
            accepted = [each for each in accepted if each[0] <= then]
    t = [start for _, start, _ in accepted]
    assert t == [0.0, *(start + h for _, start, h in accepted[:-1])]
    assert t[-1] + accepted[-1][2] == 3.0
    assert [*t, 3.0] == run["a.y"].t.tolist()
    assert len(accepted) == steps(run)["accepted"]
    assert made - len(accepted) == steps(run)["rejected"] > 0


def test_rejected_steps_leave_no_rows():
    run = both(loaded(Adaptive(Jacobi(), 0.02, first=1), Hold(), method="rk4", step="10 ms"), 3)
    assert np.all(np.diff(run["machine.x"].t) > 0)
    assert len(run["machine.x"].t) == steps(run)["accepted"] + 1


def test_steps_are_told_in_seconds_and_are_multiples_of_the_quantum():
    run = both(
        Composite(PAIR, "0.5 s", Adaptive(Jacobi(), 1e-2, quantum=Fraction(1, 1000), first="1/500")), 5
    )
    lengths = np.diff(run["a.y"].t)
    assert steps(run)["shortest"] == pytest.approx(lengths.min(), abs=1e-12)
    assert steps(run)["longest"] == pytest.approx(lengths.max(), abs=1e-12)
    assert lengths / 0.0005 == pytest.approx(np.round(lengths / 0.0005), abs=1e-9)
    assert lengths[0] == pytest.approx(0.001)


@pytest.mark.parametrize("estimate", ["defect", "orders", "richardson"])
@pytest.mark.parametrize("extrapolation", [Hold(), Polynomial(1), Polynomial(2)], ids=str)
def test_every_estimate_has_the_same_bits_on_both_engines(estimate, extrapolation):
    both(oscillators(Adaptive(Jacobi(), 1e-2, estimate, "PID"), extrapolation), 2)


# simulators that cannot roll back


class Stuck:
    """x' = -x + 2 u, u held."""

    inputs, outputs = ("u",), ("y",)

    def start(self, t):
        self.x = 1.0

    def output(self, t):
        return [self.x]

    def step(self, t, h, u):
        e = np.exp(-h)
        self.x = self.x * e + (1.0 - e) * 2.0 * u[0, 0]


HALF = Scenario({"stuck": Python(Stuck), "b": lag(3.0, -1.5, -1.0)}, {"stuck.u": "b.y", "b.u": "stuck.y"})
MATRIX = [[-1.0, 2.0], [-1.5, -3.0]]


def error_of_half(run):
    expected = exactly(np.array(MATRIX), [1.0, -1.0], run["b.y"].t)
    return np.abs(np.stack([run["stuck.y"].values, run["b.y"].values]) - expected).max()


def test_orders_need_nobody_to_go_back():
    errors = []
    for tolerance in (1e-1, 1e-2):
        run = both(Composite(HALF, 1, Adaptive(Jacobi(), tolerance, "orders")), 4)
        assert steps(run)["rejected"] == 0
        errors.append(error_of_half(run))
        assert 0.1 < errors[-1] / tolerance < 10
    assert 5 < errors[0] / errors[1] < 20


def test_without_rewind_only_the_next_step_is_shorter():
    composite = Composite(HALF, 1, Adaptive(Jacobi(), 1e-2, first="1/1024"))
    expected = "`stuck` cannot roll back: a step with too large an error stays, the next is shorter"
    assert expected in plan_tree(composite).plan.notes
    run = both(composite, 4)
    assert steps(run)["rejected"] == 0
    assert expected in run.info["notes"]
    assert 1e-3 < error_of_half(run) < 1e-1


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"estimate": "richardson"}, "steps are made twice, and `stuck` cannot roll back"),
        ({"rejects": True}, "steps are taken back, and `stuck` cannot roll back"),
    ],
)
def test_who_must_go_back_and_cannot_is_named(how, what):
    with pytest.raises(ScenarioError) as caught:
        hocket.run(Composite(HALF, 1, Adaptive(**how)), 1)
    assert what in str(caught.value)
    assert 'estimate="orders"' in str(caught.value)


def test_half_steps_always_roll_back():
    with pytest.raises(ScenarioError, match="makes every step twice and rolls back") as caught:
        Adaptive(estimate="richardson", rejects=False)
    assert 'estimate="defect"' in str(caught.value)
    control = found(plan_tree(Composite(HALF, 1, Adaptive())).plan)
    with pytest.raises(ScenarioError, match="taken back in between"):
        replace(control, estimate="richardson", rejects=False)


def found(plan):
    return next(each.control for each in plan.step if isinstance(each, Adapt))


# levels in levels


PATHS = {1: ("a", "b", "c", "d"), 2: ("a", "b", "level.c", "level.d")}


def error_of(composite, levels):
    return error_of_oscillators(composite, 4, paths=PATHS[levels])


def test_an_adaptive_level_in_an_adaptive_level():
    for tolerance in (1e-2, 1e-3):
        composite = oscillators(Adaptive(Jacobi(), tolerance), Polynomial(1), levels=2)
        run = both(composite, 4)
        assert {"", "level"} == set(run.info["counts"]["adapted"])
        assert 0.05 < error_of(composite, 2) / tolerance < 10


def test_an_adaptive_level_in_a_level_with_fixed_steps():
    """The outer step is so short that the inner one decides, and the other way round."""
    inside = oscillators(Adaptive(Jacobi(), 1e-3), Polynomial(1), levels=2)
    composite = Composite(inside.scenario, Fraction(1, 32), GaussSeidel(), Polynomial(1))
    run = both(composite, 4)
    assert set(run.info["counts"]["adapted"]) == {"level"}
    assert run.info["counts"]["steps"] == 128
    assert steps(run, "level")["longest"] <= 1 / 32
    assert 1e-5 < error_of(composite, 2) < 1e-2


def test_step_control_around_an_iteration():
    run = both(oscillators(Adaptive(Iterate(GaussSeidel(), 1e-9), 1e-3), Polynomial(1)), 4)
    assert run.info["counts"]["sweeps"][""]["repeats"] >= steps(run)["accepted"]


GAIN = 20.0
STRONG = Scenario({"a": lag(1.0, GAIN, 1.0), "b": lag(1.0, -GAIN, 0.0)}, LOOP)
"""A sweep over h multiplies what is wrong by (1 - exp(-h)) GAIN: below one only for h < 51 ms."""
PLAIN = Iterate(Jacobi(), 1e-9, 40, None)


def test_an_iteration_that_does_not_settle_asks_for_a_shorter_step():
    limit = -np.log(1.0 - 1.0 / GAIN)
    with pytest.raises(ConvergenceError, match="does not contract in 40 iterations"):
        hocket.run(Composite(STRONG, "0.1 s", PLAIN), 1)
    run = both(Composite(STRONG, "0.1 s", Adaptive(PLAIN, 1e3, first=1)), 1)
    assert steps(run)["rejected"] > 0
    assert np.diff(run["a.y"].t).max() < limit
    run = both(Composite(STRONG, "0.1 s", Adaptive(PLAIN, 1e-2), "linear"), 1)
    x = exactly(np.array([[-1.0, GAIN], [-GAIN, -1.0]]), [1.0, 0.0], run["a.y"].t)
    assert np.abs(run["a.y"].values - x[0]).max() < 0.1


def test_an_inner_level_that_does_not_settle_makes_the_outer_one_shorten_its_step():
    """The quantum of the inner level is its whole step: only the outer one can help."""
    inner = Composite(Scenario(STRONG.models, LOOP), "0.1 s", Adaptive(PLAIN, 1e3, quantum=1, first=1))
    scenario = Scenario({"inner": inner, "c": lag(1.0, 1.0, 0.0)}, {"c.u": "inner.a.y"})
    run = both(Composite(scenario, "0.1 s", Adaptive(Jacobi(), 1e3, first=1)), 1)
    assert steps(run)["rejected"] > 0
    assert steps(run)["longest"] < -np.log(1.0 - 1.0 / GAIN)
    with pytest.raises(ConvergenceError, match="does not contract in 40 iterations"):
        hocket.run(Composite(scenario, "0.1 s"), 1)


@pytest.mark.parametrize("rate", [2, 3, 5])
@pytest.mark.parametrize("inner", [hocket.Multirate({"x": 1, "y": 3}), hocket.Asynchronous({"x": 1, "y": 3})])
def test_thirds_of_the_parts_that_a_level_is_asked_for_are_whole_ticks(inner, rate):
    """Else the engines go apart: native counts whole ticks only."""

    def lag(x0):
        return hocket.StateSpace([[-1]], [[1.0]], [[1]], x0=[x0], inputs=["u"], outputs=["y"])

    inside = hocket.Scenario({"x": lag(1.0), "y": lag(0.5)}, {"x.u": "y.y", "y.u": "x.y"})
    level = hocket.Composite(inside, "0.1", Adaptive(inner, 0.5, quantum=Fraction(1, 4096)))
    around = hocket.Scenario({"level": level, "b": lag(1.0)}, {"b.u": "level.x.y"})
    top = hocket.Composite(around, "0.1", hocket.Multirate({"level": rate, "b": 1}))
    runs = [hocket.run(top, "0.3", engine=engine) for engine in ENGINES]
    for port in ("level.x.y", "level.y.y", "b.y"):
        assert np.array_equal(*(run[port].values for run in runs))


@pytest.mark.parametrize("quantum", [0, 2, Fraction(2, 3), -1])
def test_a_quantum_is_the_step_divided_by_a_whole_number(quantum):
    with pytest.raises(ScenarioError, match="a quantum of"):
        Adaptive(quantum=quantum)


def test_a_step_may_be_divided_into_a_million_parts():
    assert Adaptive().quantum == Fraction(1, 1048576)
    assert Adaptive(quantum=1, first=1).first == 1


@pytest.mark.parametrize(
    ("estimate", "rejects", "asked"),
    [
        ("defect", True, ["needed"]),
        ("defect", None, ["wished for"]),
        ("defect", False, []),
        ("richardson", None, ["needed"]),
        ("orders", None, []),
        ("orders", False, []),
    ],
)
def test_rollback_is_asked_for_as_far_as_steps_are_taken_back(estimate, rejects, asked):
    needs = list(Adaptive(estimate=estimate, rejects=rejects).needs(PAIR))
    assert needs[0].capability == "variable step"
    rolling = [each for each in needs if each.capability == "rollback"]
    assert ["wished for" if each.loses else "needed" for each in rolling] == asked
