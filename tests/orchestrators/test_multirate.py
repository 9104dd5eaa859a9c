"""Own steps within one level: who goes first, what comes of it by hand, and what is refused."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from scipy.linalg import expm

import hocket
from hocket import Composite, GaussSeidel, Iterate, Jacobi, Python, Scenario, ScenarioError
from hocket.files import toml
from hocket.orchestrators import Asynchronous, Multirate
from hocket.plan.verify.verifier import find_delays
from hocket.planning.planner import plan_tree
from plan.levels import FIXED, NESTED
from systems import ENGINES, lag

SCHEMES = ("slowest-first", "fastest-first", "compound")


PAIR = Scenario(
    {"fast": lag(8.0, 3.0, 1.0), "slow": lag(1.0, 0.5, -1.0)}, {"fast.u": "slow.y", "slow.u": "fast.y"}
)
FOUR = Scenario(
    {
        "slow": lag(1.0, 1.0, 1.0),
        "mid": lag(4.0, 1.0, 1.0),
        "one": lag(9.0, 1.0, 1.0),
        "two": lag(8.0, 1.0, 1.0),
    },
    {"slow.u": "two.y", "mid.u": "slow.y", "one.u": "mid.y", "two.u": "one.y"},
)


def steps_of(orchestrator, scenario=PAIR):
    text = str(plan_tree(Composite(scenario, "0.1 s", orchestrator)).plan).partition("  each step:\n")[2]
    return [line.removeprefix("    ") for line in text.splitlines()]


# plans


def test_the_slow_first():
    assert steps_of(Multirate({"fast": 10})) == [
        "feed slow",
        "step slow",
        "read slow",
        "10 times:",
        "  feed fast",
        "  step fast by 1/10 of it",
        "read fast",
        "record",
    ]


def test_the_fast_first():
    assert steps_of(Multirate({"fast": 10}, "fastest-first")) == [
        "10 times:",
        "  feed fast",
        "  step fast by 1/10 of it",
        "read fast",
        "feed slow",
        "step slow",
        "read slow",
        "record",
    ]


def test_a_compound_step():
    assert steps_of(Multirate({"fast": 10}, "compound")) == [
        "save fast",
        "feed fast",
        "step fast",
        "read fast",
        "feed slow",
        "step slow",
        "read slow",
        "restore fast",
        "10 times:",
        "  feed fast",
        "  step fast by 1/10 of it",
        "read fast",
        "record",
    ]


def test_more_than_two_rates_nest_and_who_is_heard_by_slower_ones_only_is_read_when_these_step():
    assert steps_of(Multirate({"mid": 2, "one": 6, "two": 6}), FOUR) == [
        "feed slow",
        "step slow",
        "read slow",
        "2 times:",
        "  feed mid",
        "  step mid by 1/2 of it",
        "  read mid",
        "  3 times:",
        "    feed one, two, together",
        "    step one, two by 1/6 of it, together",
        "    read one",
        "  read two",
        "record",
    ]


def test_turns():
    assert steps_of(Asynchronous({"fast": 5, "slow": 2})) == [
        "until all have made the step, the one furthest behind goes next:",
        "  1.",
        "    feed slow",
        "    step slow by 1/2 of it",
        "    read slow",
        "  2.",
        "    feed fast",
        "    step fast by 1/5 of it",
        "    read fast",
        "record",
    ]
    in_turn = ["feed fast", "step fast", "read fast", "feed slow", "step slow", "read slow", "record"]
    assert steps_of(Asynchronous({})) == in_turn


def test_equal_rates_are_jacobi():
    for scheme in SCHEMES:
        assert Multirate({}, scheme).plan(PAIR) == Jacobi().plan(PAIR)
        assert Multirate({"fast": 1}, scheme, outputs="stale").plan(PAIR) == Jacobi(outputs="stale").plan(
            PAIR
        )
    assert steps_of(Multirate({"fast": 3, "slow": 3}))[0] == "3 times:"


def test_what_is_extrapolated():
    def found(orchestrator):
        return {each.target: each.lag for each in find_delays(orchestrator.plan(PAIR), PAIR)}

    assert found(Multirate({"fast": 4})) == {"slow.u": 1}
    assert found(Multirate({"fast": 4}, "fastest-first")) == {"fast.u": 1}
    assert found(Multirate({"fast": 4}, "compound")) == {}
    assert found(Asynchronous({"fast": 4})) == {"slow.u": 1}
    assert found(Asynchronous({"fast": 3, "slow": 2})) == {"slow.u": F(1, 2), "fast.u": F(1, 6)}


# values


def moved(x, u, rate, gain, h):
    """A lag after h under a held input."""
    e = np.exp(-rate * h)
    return e * x + (1.0 - e) * gain / rate * u


def slowly(x, u, h):
    return moved(x, u, 1.0, 0.5, h)


def quickly(x, u, h):
    return moved(x, u, 8.0, 3.0, h)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_held_values_by_hand(scheme):
    """One held input over ten short steps is one long step: what counts is whose value is held."""
    h, fast, slow = 0.125, 1.0, -1.0
    for _ in range(8):
        if scheme == "slowest-first":
            slow = slowly(slow, fast, h)
            fast = quickly(fast, slow, h)
        elif scheme == "fastest-first":
            fast = quickly(fast, slow, h)
            slow = slowly(slow, fast, h)
        else:
            slow = slowly(slow, quickly(fast, slow, h), h)
            fast = quickly(fast, slow, h)
    run = hocket.run(Composite(PAIR, h, Multirate({"fast": 10}, scheme)), 1, engine="interpreter")
    assert [run.final("fast.y"), run.final("slow.y")] == pytest.approx([fast, slow], rel=1e-12)


def test_turns_by_hand():
    """Two steps of the slow one, three of the fast one: slow, fast, fast, slow, fast."""
    h, fast, slow = 0.125, 1.0, -1.0
    for _ in range(8):
        slow = slowly(slow, fast, h / 2)
        fast = quickly(fast, slow, h / 3)
        fast = quickly(fast, slow, h / 3)
        slow = slowly(slow, fast, h / 2)
        fast = quickly(fast, slow, h / 3)
    run = hocket.run(Composite(PAIR, h, Asynchronous({"fast": 3, "slow": 2})), 1, engine="interpreter")
    assert [run.final("fast.y"), run.final("slow.y")] == pytest.approx([fast, slow], rel=1e-12)


@pytest.mark.parametrize(
    "inner",
    [Multirate({"fast": 5}), Multirate({"fast": 5}, "fastest-first"), Asynchronous({"fast": 5})],
    ids=lambda inner: getattr(inner, "scheme", "asynchronous"),
)
def test_iterated_it_ends_at_the_implicit_step(inner):
    """With held inputs the sweeps end where each has the newest value of the other."""
    h = 0.125
    e, f = np.exp(-h), np.exp(-8.0 * h)
    step = np.linalg.solve([[1.0, -(1 - f) * 3.0 / 8.0], [-(1 - e) * 0.5, 1.0]], np.diag([f, e]))
    run = hocket.run(Composite(PAIR, h, Iterate(inner, 1e-13)), 1, engine="interpreter")
    expected = np.linalg.matrix_power(step, 8) @ [1.0, -1.0]
    assert [run.final("fast.y"), run.final("slow.y")] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    "orchestrator",
    [
        Multirate({"one": 2, "two": 2}, "compound"),
        Iterate(Multirate({"one": 2, "two": 2}), 1e-12),
        Iterate(Asynchronous({"one": 2, "two": 2}), 1e-12),
    ],
    ids=["compound", "iterated", "turns iterated"],
)
def test_parabolas_through_samples_of_short_steps_made_again(orchestrator):
    """Rates below the number of samples: x' = A x, order 3."""
    A = np.diag([-1.0, -4.0, -9.0, -8.0]) + np.array([[0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
    run = hocket.run(Composite(FOUR, F(1, 64), orchestrator, "quadratic"), 1, engine="interpreter")
    expected = expm(A) @ np.ones(4)
    assert [run.final(f"{name}.y") for name in FOUR.models] == pytest.approx(expected, rel=1e-3)


def test_levels_inside_and_around():
    """The fast one as a level of three steps per step is stepped as the fast one itself."""
    inner = Scenario({"fast": lag(8.0, 3.0, 1.0)}, {"fast.u": "u", "y": "fast.y"}, ["u"], ["y"])
    nested = PAIR.with_models({**PAIR.models, "fast": Composite(inner, F(1, 60), Multirate({"fast": 2}))})
    plain, deep = (
        hocket.run(Composite(each, 0.1, Multirate({"fast": 3}), "linear"), 2, engine="interpreter")
        for each in (PAIR, nested)
    )
    assert deep["slow.y"].values == pytest.approx(plain["slow.y"].values, rel=1e-12)


# files


@pytest.mark.parametrize(
    ("written", "orchestrator"),
    [
        ('{ type = "multirate", rates = { fast = 10 } }', Multirate({"fast": 10})),
        (
            '{ type = "multirate", rates = { fast = 10 }, scheme = "compound", outputs = "stale" }',
            Multirate({"fast": 10}, "compound", outputs="stale"),
        ),
        (
            '{ type = "asynchronous", rates = { fast = 7, slow = 2 } }',
            Asynchronous({"fast": 7, "slow": 2}),
        ),
        (
            '{ type = "iterate", inner = { type = "asynchronous", rates = { fast = 7 } } }',
            Iterate(Asynchronous({"fast": 7})),
        ),
    ],
)
def test_files(written, orchestrator):
    text = toml.dumps(Composite(PAIR, "0.1 s", orchestrator))
    assert f"orchestrator = {written}" in text
    assert toml.loads(text).composite.orchestrator == orchestrator


def test_faults_in_a_file_have_their_line():
    text = toml.dumps(Composite(PAIR, "0.1 s", Multirate({"fast": 10})))
    with pytest.raises(ScenarioError, match="did you mean `fast`") as caught:
        toml.loads(text.replace("fast = 10", "fats = 10"))
    assert f"line {1 + text[: text.index('fast = 10')].count(chr(10))}" in str(caught.value)
    with pytest.raises(ScenarioError, match="a whole number"):
        toml.loads(text.replace("fast = 10", "fast = 2.5"))
    with pytest.raises(ScenarioError, match="did you mean `slowest-first`"):
        toml.loads(text.replace("fast = 10 }", 'fast = 10 }, scheme = "slow-first"'))


# refusals


@pytest.mark.parametrize(
    ("rates", "scheme", "said"),
    [
        ({"fast": 2.5}, "compound", "the rate of `fast` is 2.5"),
        ({"fast": "1 ms"}, "compound", "a whole number from 1 to 2^31 - 1: its steps per step of the level"),
        ({"fast": 2**31}, "compound", "a whole number from 1 to 2^31 - 1: its steps per step of the level"),
        ({"fast": True}, "compound", "the rate of `fast` is True"),
        ({"fast": 0}, "compound", "the rate of `fast` is 0"),
        (["fast"], "compound", "rates are given by name, not as ['fast']"),
        ({"fast": 2}, "fastest-frist", "did you mean `fastest-first`?"),
        ({"fast": 2}, None, "`scheme` cannot be None"),
    ],
)
def test_what_is_no_rate_or_scheme_is_refused_at_once(rates, scheme, said):
    with pytest.raises(ScenarioError) as caught:
        Multirate(rates, scheme)
    assert said in str(caught.value)


def refusal(orchestrator, scenario=PAIR):
    with pytest.raises(ScenarioError) as caught:
        plan_tree(Composite(scenario, "1 s", orchestrator))
    return str(caught.value)


@pytest.mark.parametrize("algorithm", [Multirate, Asynchronous])
def test_rates_that_cannot_be_met_are_refused_with_the_plan(algorithm):
    text = refusal(algorithm({"fats": 2, "slov": 3}))
    assert "there is a rate for `fats`, which is not a model" in text
    assert "did you mean `fast`?" in text
    assert "did you mean `slow`?" in text
    text = refusal(algorithm({"a": 4}), FIXED)
    assert "`a` is to make 4 steps per step, and it accepts only whole ones" in text
    assert "a level of its own for `a`" in text
    text = refusal(algorithm({"a": 3}), NESTED)
    assert "`a` is stepped by 1/3 of the step, and its own steps do not fit into that" in text


def test_grids_that_do_not_meet():
    text = refusal(Multirate({"mid": 2, "one": 5}), FOUR)
    assert "`one` makes 5 steps and `mid` 2: their grids do not meet" in text
    assert "4 for `one`, or `Asynchronous`" in text


class Forgetful:
    inputs, outputs = ("u",), ("y",)

    def start(self, t):
        self.y = 1.0

    def output(self, t):
        return self.y

    def step(self, t, h, u):
        self.y += h * (float(u[0, 0]) - self.y)


def test_a_compound_step_needs_fast_ones_that_go_back():
    stuck = PAIR.with_models({**PAIR.models, "fast": Python(Forgetful)})
    text = refusal(Multirate({"fast": 4}, "compound"), stuck)
    assert "a compound step is made again by the fast ones, and `fast` cannot roll back" in text
    other = PAIR.with_models({**PAIR.models, "slow": Python(Forgetful)})
    run = hocket.run(Composite(other, 0.1, Multirate({"fast": 4}, "compound")), 1, engine="interpreter")
    assert run.status == "finished"


def test_a_compound_step_is_not_iterated():
    text = refusal(Iterate(Multirate({"fast": 4}, "compound")))
    assert "`fast` is saved inside the Repeat that repeats its steps" in text


def test_orchestrators_are_values():
    assert Multirate({"fast": 2}) == Multirate({"fast": 2})
    assert hash(Asynchronous({"fast": 2})) == hash(Asynchronous({"fast": 2}))
    assert Multirate({"fast": 2}) != Multirate({"fast": 2}, "compound")
    assert GaussSeidel(["fast", "slow"]).plan(PAIR) == Asynchronous({}).plan(
        Scenario(dict(reversed(PAIR.models.items())), PAIR.connections)
    )  # among those of equal rate ties go by name, however they are listed


@pytest.mark.parametrize(("rate", "rolling"), [(1, []), (3, [("fast",)])])
def test_a_compound_step_needs_rollback_only_where_one_is_faster(rate, rolling):
    asked = list(Multirate({"fast": rate, "slow": 1}, "compound").needs(PAIR))
    assert [each.sims for each in asked if each.capability == "rollback"] == rolling
    shorter = [(each.sims, each.part) for each in asked if each.capability == "variable step"]
    assert shorter == [(sims, F(1, rate)) for sims in rolling]


@pytest.mark.parametrize("extrapolation", ["hold", "linear", "quadratic"])
@pytest.mark.parametrize("scheme", ["compound", "slowest-first", "fastest-first"])
def test_two_fast_ones_that_drive_each_other_have_the_same_bits_on_both_engines(scheme, extrapolation):
    """After a prediction with one long step both go back, and so do the samples that they had put out."""
    models = {"a": lag(1.0, 2.0, 1.0), "b": lag(3.0, 1.5, -1.0), "slow": lag(0.5, 1.0, 0.2)}
    wires = {"a.u": "b.y", "b.u": "a.y", "slow.u": "b.y"}
    algorithm = Multirate({"a": 4, "b": 4}, scheme)
    composite = Composite(Scenario(models, wires), "0.2 s", algorithm, extrapolation)
    one, other = (hocket.run(composite, 2, engine=engine) for engine in ENGINES)
    for port in one.ports:
        assert one[port].values.tobytes() == other[port].values.tobytes(), port
