"""Plans that are as they should be, some of them odd."""

from fractions import Fraction as F

import pytest

from hocket import Scenario, StateSpace
from hocket.plan import Admit, Feed, Next, Read, Record, Repeat, Restore, Save, Step, Times, Together, Try
from plan.levels import (
    APART,
    BOTH,
    CHAIN,
    EVALUATED,
    LOOP,
    NESTED,
    RING,
    THROUGH,
    A,
    B,
    found,
    plan,
    turn,
)  # fmt: skip
from systems import LAG_AT_REST


@pytest.mark.parametrize(
    ("made", "scenario"),
    {
        "in turn": (plan(*A, *B, Record()), RING),
        "fed first": (
            plan(*A[:1], *B[:1], Together(((Step("a"),), (Step("b"),))), *A[2:], *B[2:], Record()),
            RING,
        ),
        "multirate": (plan(*A, Times(2, turn("b", F(1, 2))), Record()), RING),
        "a million times": (plan(*A, Times(10**6, turn("b", F(1, 10**6))), Record()), RING),
        "turns": (plan(Next((turn("a", F(1, 3)), turn("b", F(1, 7)))), Record()), RING),
        "turns after a part of the step": (
            plan(*turn("a", F(1, 2)), Next((turn("a", F(1, 4)), turn("b", F(1, 3)))), Record()),
            RING,
        ),
        "turns repeated": (
            plan(Save(BOTH), Repeat((Restore(BOTH), Next((A, turn("b", F(1, 3))))), None, 3), Record()),
            RING,
        ),
        "turns tried": (plan(Try((Next((A, turn("b", F(1, 3)))), Record()))), RING),
        "uneven steps": (
            plan(*A, *turn("b", F(1, 3))[:2], Feed("b"), Step("b", F(2, 3)), Read("b"), Record()),
            RING,
        ),
        "parallel multirate": (
            plan(Feed("a"), Together(((Step("a"),), (Times(2, turn("b", F(1, 2))),))), Read("a"), Record()),
            Scenario({"a": LAG_AT_REST, "b": LAG_AT_REST}, {"b.u": "a.y", "a.u": "a.y"}),
        ),
        "evaluated again at a part of the step": (
            plan(*A, Times(2, (*turn("b", F(1, 2)), Feed("b"), Read("b"))), Record()),
            RING,
        ),
        "evaluated before anyone moves": (plan(*A[::2], *B[::2], *A, *B, Record()), RING),
        "nothing to feed": (
            plan(Together(((Step("a"), Read("a")), (Step("b"), Read("b")))), Record()),
            APART,
        ),
        "loop": (plan(*EVALUATED), LOOP),
        "loop, consistent": (plan(*EVALUATED, outputs="consistent"), LOOP),
        "loop solved twice": (plan(*EVALUATED[:7], *EVALUATED[6:], outputs="consistent"), LOOP),
        "in feedthrough order": (plan(*A, *B, Record(), outputs="consistent"), CHAIN),
        "stale loop, and it says so": (plan(*A, *B, Record()), LOOP),
        "clean": (
            plan(Admit(), *B, Record(), outputs="consistent", output=(Admit(), *B[::2], Record())),
            THROUGH,
        ),
        "delayed": (plan(*B, Admit(), Record(), outputs="consistent"), THROUGH),
        "a level in parts of its steps": (plan(Times(5, turn("a", F(1, 5))), *B, Record()), NESTED),
        "tried": (plan(Try((*A, *B, Record()))), RING),
        "repeated": (plan(Save(BOTH), Repeat((Restore(BOTH), *A, *B), None, 3), Record()), RING),
        "repeated until loops agree": (
            plan(Save(BOTH), Repeat((Restore(BOTH), *A, *B), 1e-9, 20), Record(), outputs="consistent"),
            LOOP,
        ),
        "evaluation repeated": (plan(*A, *B, Repeat((*A[::2], *B[::2]), 1e-9, 20), Record()), LOOP),
        "repeated sub-steps": (
            plan(
                *A,
                Times(4, (Save(("b",)), Repeat((Restore(("b",)), *turn("b", F(1, 4))), None, 2))),
                Record(),
            ),
            RING,
        ),
    }.values(),
)
def test_sound_plans_have_no_faults(made, scenario):
    assert found(made, scenario) == []


def test_a_level_whose_step_is_not_known_is_not_judged():
    made = plan(Times(2, turn("a", F(1, 2))), *B, Record())
    assert found(made, NESTED, step=None) == []


def test_inputs_that_keep_their_start_value_need_no_feeding():
    free = StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["u = 0"], outputs=["y"])
    assert found(plan(Step("a"), Read("a"), Record()), Scenario({"a": free})) == []
