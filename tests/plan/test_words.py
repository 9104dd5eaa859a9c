"""Plans print in words."""

from fractions import Fraction as F

import pytest

from hocket import GaussSeidel, Jacobi, Scenario, StateSpace
from hocket.plan import (
    Admit,
    Feed,
    Next,
    Plan,
    Read,
    Record,
    Repeat,
    Restore,
    Save,
    Solve,
    Step,
    Times,
    Together,
    Try,
)

A, B = (Feed("a"), Step("a"), Read("a")), (Feed("b"), Step("b"), Read("b"))


def words(*step):
    """The lines of a body, without the title and its indent."""
    title, each, *lines = str(Plan(step)).splitlines()
    assert (title, each) == ("the outermost level: outputs stale", "  each step:")
    return [line.removeprefix("    ") for line in lines]


@pytest.mark.parametrize(
    ("instruction", "text"),
    [
        (Admit(), "admit the inputs from outside"),
        (Feed("a"), "feed a"),
        (Step("a"), "step a"),
        (Step("a", F(1, 3)), "step a by 1/3 of it"),
        (Read("a"), "read a"),
        (Record(), "record"),
        (Solve(("a", "b"), ("a.y", "b.y")), "solve the loop a.y, b.y"),
        (Together(((Feed("a"),), (Feed("b"),))), "feed a, b, together"),
        (Together(((Step("a", F(1, 2)),), (Step("b", F(1, 2)),))), "step a, b by 1/2 of it, together"),
        (Together(((Read("a"),),)), "read a"),
        (Save(("a", "b")), "save a, b"),
        (Restore(("a", "b")), "restore a, b"),
    ],
)
def test_an_instruction_in_words(instruction, text):
    assert words(instruction) == [text]


def test_turns_in_words():
    assert words(Next((A, (Feed("b"), Step("b", F(1, 3)), Read("b"))))) == [
        "until all have made the step, the one furthest behind goes next:",
        "  1.",
        "    feed a",
        "    step a",
        "    read a",
        "  2.",
        "    feed b",
        "    step b by 1/3 of it",
        "    read b",
    ]


def test_instructions_of_one_kind_share_a_line():
    assert words(Feed("a"), Feed("b"), Step("a"), Step("b"), Step("c", F(1, 2)), Read("c"), Feed("a")) == [
        "feed a, b",
        "step a, b",
        "step c by 1/2 of it",
        "read c",
        "feed a",
    ]


def test_bodies_are_indented():
    body = (Feed("b"), Step("b", F(1, 2)), Read("b"))
    assert words(Times(2, body), Together((A, (Times(3, (Record(), Admit())),)))) == [
        "2 times:",
        "  feed b",
        "  step b by 1/2 of it",
        "  read b",
        "together:",
        "  1.",
        "    feed a",
        "    step a",
        "    read a",
        "  2.",
        "    3 times:",
        "      record",
        "      admit the inputs from outside",
    ]


def test_what_may_be_done_again_is_indented():
    body = (Restore(("a",)), *A)
    lines = ["  restore a", "  feed a", "  step a", "  read a"]
    assert words(Save(("a",)), Repeat(body, 1e-6, 20), Record()) == [
        "save a",
        "repeat until the values agree to 1e-06, at most 20 times:",
        *lines,
        "record",
    ]
    assert words(Repeat(body, None, 3)) == ["repeat 3 times:", *lines]
    assert words(Try(A)) == ["try; if one ends early, all roll back, meet it there, and go on:", *lines[1:]]


def test_a_body_without_instructions_is_printed_too():
    assert words(Together(()), Together(((),)), Times(2, ())) == [
        "together:",
        "together:",
        "  1.",
        "2 times:",
    ]


def test_different_steps_together_are_numbered():
    assert words(Together(((Step("a"),), (Step("b", F(1, 2)),)))) == [
        "together:",
        "  1.",
        "    step a",
        "  2.",
        "    step b by 1/2 of it",
    ]


def test_a_crowd_is_not_listed_to_its_end():
    names = [f"m{k}" for k in range(14)]
    some = ", ".join(names[:12])
    assert words(*map(Feed, names)) == [f"feed {some} and 2 more"]
    assert words(Together(tuple((Step(name),) for name in names))) == [f"step {some} and 2 more, together"]
    assert words(*map(Feed, names[:12])) == [f"feed {some}"]
    bodies = tuple((Feed(name), Step(name)) for name in names)
    assert words(Together(bodies))[-1] == "  and 2 more"


def test_a_plan_in_words_with_all_its_parts():
    deepest = Plan((Step("x"),))
    inner = Plan(
        (Admit(), Step("tyre"), Record()), (Admit(), Read("tyre")), "consistent", inner={"rim": deepest}
    )
    plan = Plan((Step("wheel"), Record()), (), "stale", ("it is cold",), (Read("wheel"),), {"wheel": inner})
    assert (
        str(plan)
        == """\
the outermost level: outputs stale
  note: it is cold
  to start:
    read wheel
  each step:
    step wheel
    record

wheel: outputs consistent
  each step:
    admit the inputs from outside
    step tyre
    record
  asked again:
    admit the inputs from outside
    read tyre

wheel.rim: outputs stale
  each step:
    step x"""
    )


def masses():
    mass = StateSpace(A=[[0, 1], [0, 0]], B=[[0], [1]], C=[[1, 0]], inputs=["force"], outputs=["x"])
    spring = StateSpace(D=[[-2]], inputs=["x"], outputs=["force"])
    return Scenario({"mass": mass, "spring": spring}, {"mass.force": "spring.force", "spring.x": "mass.x"})


def test_jacobi_in_words():
    assert (
        str(Jacobi().plan(masses()))
        == """\
the outermost level: outputs consistent
  each step:
    feed mass, spring, together
    step mass, spring, together
    read mass, spring, together
    feed spring
    read spring
    record"""
    )


def test_gauss_seidel_in_words():
    assert (
        str(GaussSeidel(["spring", "mass"], outputs="stale").plan(masses()))
        == """\
the outermost level: outputs stale
  each step:
    feed spring
    step spring
    read spring
    feed mass
    step mass
    read mass
    record"""
    )


def level():
    """What comes in goes through `gain`, which reacts at once, to the output."""
    gain = StateSpace(D=[[2]], inputs=["u"], outputs=["y"])
    clock = StateSpace(A=[[0]], C=[[1]], outputs=["t"])
    return Scenario({"gain": gain, "clock": clock}, {"gain.u": "u", "y": "gain.y"}, ["u"], ["y"])


def test_inputs_are_admitted_before_the_steps_and_what_reacts_is_asked_again():
    assert (
        str(Jacobi().plan(level()))
        == """\
the outermost level: outputs consistent
  each step:
    admit the inputs from outside
    feed gain
    step gain, clock, together
    read gain, clock, together
    feed gain
    read gain
    record
  asked again:
    admit the inputs from outside
    feed gain
    read gain
    record"""
    )


def test_delayed_inputs_are_admitted_after_the_steps():
    plan = Jacobi(inputs="delayed").plan(level())
    admitted = [place for place, instruction in enumerate(plan.step) if instruction == Admit()]
    assert admitted == [len(plan.step) - 2]
    assert Admit() not in plan.output


def test_stale_outputs_are_not_asked_again():
    plan = Jacobi(outputs="stale").plan(level())
    assert (plan.outputs, plan.output) == ("stale", ())
