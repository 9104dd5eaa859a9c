"""Wrong plans, one for each kind of fault, each with the message that its author gets to read."""

from fractions import Fraction as F

import pytest

from hocket import Adaptive, Composite, Python, Scenario, StateSpace
from hocket.errors import ScenarioError
from hocket.plan import (
    Admit,
    Commit,
    Feed,
    Instant,
    Next,
    React,
    Read,
    Receive,
    Record,
    Repeat,
    Restore,
    Save,
    Send,
    Solve,
    Step,
    Times,
    Together,
    Try,
)
from hocket.plan.plan import Note, NoteKind
from hocket.plan.verify.verifier import verify_start
from hocket.plan.verify.violations import KINDS
from hocket.planning.planner import plan_tree
from plan.levels import (
    APART,
    BOTH,
    CHAIN,
    CLOCK,
    CROSSED,
    EVALUATED,
    FIXED,
    HELD,
    LEVEL,
    LOOP,
    NESTED,
    RING,
    STOPS,
    STUCK,
    THROUGH,
    A,
    B,
    Plain,
    Texting,
    found,
    plan,
    turn,
)  # fmt: skip
from systems import LAG_AT_REST

HOSTED = RING.with_changes(hosts={"here": ["a"], "there": ["b"]})
SENT, RECEIVED = Send("here", "there", ("a.y",)), Receive("here", "there", ("a.y",))

WRONG = [  # the kind, the level, the plan, where it is found, what is said
    ("unknown simulator", RING, plan(*A, *B, Feed("bb"), Record()), "step 7: feed bb",
     "the plan names an unknown simulator `bb`"),
    ("unknown simulator", RING, plan(*A, *B, Times(1, (Read("c"),)), Record()), "step 7.1: read c",
     "the plan names an unknown simulator `c`"),
    ("no instruction", RING, plan(*A, *B, "read a", Record()), "step 7: 'read a'",
     "`'read a'` is not an instruction"),
    ("empty body", RING, plan(*A, *B, Times(2, ()), Record()), "step 7: 2 times",
     "a body without instructions"),
    ("empty body", RING, plan(*A, *B, Together(()), Record()), "step 7: together",
     "a body without instructions"),
    ("empty body", RING, plan(Together((A, ())), *B, Record()), "step 1: together",
     "a body without instructions"),
    ("empty body", RING, plan(), "step", "a body without instructions"),
    ("no times", RING, plan(*A, *B, Times(0, (Read("a"),)), Record()), "step 7: 0 times",
     "a body is to be done 0 times"),
    ("unfed input", RING, plan(*A, *B[1:], Record()), "step 4: step b",
     "`b` is stepped before its inputs are fed"),
    ("unfed input", RING, plan(Feed("a"), Times(2, (Step("a", F(1, 2)), Read("a"))), *B, Record()),
     "step 2.1: step a by 1/2 of it", "`a` is stepped before its inputs are fed"),
    ("unread source", RING, plan(*A[:2], *B, Read("a"), Record()), "step 3: feed b",
     "`b` is fed from `a`, which has stepped but is not read: it gets the value before that"),
    ("never admitted", LEVEL, plan(*A, *B, Record()), "step",
     "the inputs from outside are never admitted: `a.u` never sees a new one"),
    ("never admitted", LEVEL, plan(Admit(), *A, *B, Record(), output=(*B[::2], Record())), "output",
     "the inputs from outside are never admitted: `a.u` never sees a new one"),
    ("nothing to admit", RING, plan(Admit(), *A, *B, Record()), "step 1: admit the inputs from outside",
     "inputs from outside are admitted, and the level has none"),
    ("never stepped", APART, plan(Step("a"), Read("a"), Read("b"), Record()), "step",
     "`b` is never stepped"),
    ("too little", APART, plan(Step("a"), Read("a"), Times(2, (Step("b", F(1, 3)), Read("b"))), Record()),
     "step 3.1: step b by 1/3 of it", "`b` is stepped by 2/3 of the step, not by the whole"),
    ("too much", APART, plan(Step("a"), Read("a"), Step("b"), Step("b", F(1, 4)), Read("b"), Record()),
     "step 4: step b by 1/4 of it", "`b` is stepped by 5/4 of the step, more than the whole"),
    ("ends apart", RING, plan(*A, *turn("b", F(1, 2)), Record()), "step 5: step b by 1/2 of it",
     "`b` ends at 1/2 of the step and `a` at 1, and `a.u` is `b.y`"),
    ("inexact step", APART, plan(Step("a"), Read("a"), Times(10, (Step("b", 0.1), Read("b"))), Record()),
     "step 3.1: step b by 0.1 of it", "`b` is stepped by 0.1 of the step, which is not a fraction"),
    ("no way forward", APART,
     plan(Step("a"), Read("a"), Step("b", F(-1)), Step("b", F(2)), Read("b"), Record()),
     "step 3: step b by -1 of it", "`b` is stepped by -1 of the step"),
    ("fixed step", FIXED, plan(Times(2, turn("a", F(1, 2))), *B, Record()),
     "step 1.2: step a by 1/2 of it",
     "`a` is stepped by 1/2 of the step, and it accepts only whole ones"),
    ("level's step", NESTED, plan(Times(2, turn("a", F(1, 2))), *B, Record()),
     "step 1.2: step a by 1/2 of it",
     "`a` is stepped by 1/2 of the step, and its own steps do not fit into that"),
    ("step when asked", LEVEL, plan(Admit(), *A, *B, Record(), output=(Admit(), *A, Record())),
     "output 3: step a", "`a` is stepped where the level is only asked for its outputs"),
    ("read before step", RING, plan(*A, Feed("b"), Read("b"), Step("b"), Read("b"), Record()),
     "step 5: read b", "`b` is read at 0 of the step, where it stands, and others are at 1 already"),
    ("read before step", Scenario({**LOOP.models, "c": CLOCK}, CROSSED),
     plan(Step("c"), Read("c"), EVALUATED[6], *EVALUATED),
     "step 3: solve the loop a.y, b.y",
     "`a` is read at 0 of the step, where it stands, and others are at 1 already"),
    ("never read", RING, plan(*A, *B[:2], Record()), "step 5: step b",
     "the outputs of `b` are not read after its step"),
    ("never read", RING, plan(*A, *turn("b", F(1, 2)), *turn("b", F(1, 2))[:2], Record()),
     "step 8: step b by 1/2 of it", "the outputs of `b` are not read after its step"),
    ("stale output", CHAIN, plan(*B, *A, Record(), outputs="consistent"), "step 3: read b",
     "`b.y` reacts to `a.y` at once, and is not evaluated under its newest value"),
    ("stale output", CHAIN, plan(*B, *A, Feed("b"), Record(), outputs="consistent"), "step 3: read b",
     "`b.y` reacts to `a.y` at once, and is not evaluated under its newest value"),
    ("stale output", THROUGH,
     plan(Admit(), *B, Record(), outputs="consistent", output=(Read("b"), Admit(), Record())),
     "output 1: read b",
     "`b.y` reacts to the inputs from outside at once, and is not evaluated under its newest value"),
    ("stale output", HELD,
     plan(Admit(), *B, Record(), outputs="consistent", output=(Admit(), *B[::2], Record())), "step 4: read b",
     "`b.y` reacts to the inputs from outside at once, and is not evaluated under its newest value"),
    ("stale loop", LOOP, plan(*A, *B, *A[::2], *B[::2], Record(), outputs="consistent"), "step 8: read a",
     "the algebraic loop a.y -> b.y -> a.y is read in turn but never solved"),
    ("never asked again", THROUGH, plan(Admit(), *B, Record(), outputs="consistent"), "step",
     "the output `y` of the level reacts to its inputs at once, and `output` is empty"),
    ("shared simulator", RING, plan(Together((A, (Feed("a"),))), *B, Record()), "step 1.2: feed a",
     "`a` is in two bodies that run together"),
    ("shared simulator", LOOP, plan(*A, *B, Together(((EVALUATED[6],), (Save(("b",)),))), Record()),
     "step 7.2: save b", "`b` is in two bodies that run together"),
    ("race", CHAIN, plan(*A[:2], Together(((Read("a"),), (Feed("b"),))), *B[1:], Record()),
     "step 3.2: feed b", "`b` is fed from `a`, which is read in a body that runs together"),
    ("not alone", RING, plan(*A, *B, Together(((Record(),), (Feed("a"),)))), "step 7.1: record",
     "`record` stands in one of several bodies that run together"),
    ("no turn", RING, plan(*A, *B, Next((B[::2],)), Record()), "step 7.1.1: feed b",
     "a body of a Next makes 0 steps"),
    ("no turn", RING, plan(Next(((*A, *B),)), Record()), "step 1.1.1: feed a",
     "a body of a Next makes 2 steps"),
    ("not in a turn", RING, plan(Next((A, (Times(1, B),))), Record()), "step 1.2.1: 1 times",
     "`1 times` stands in a body of a Next"),
    ("not in a turn", RING, plan(Next(((Save(("a",)), *A), B)), Record()), "step 1.1.1: save a",
     "`save a` stands in a body of a Next"),
    ("other in a turn", RING, plan(Next((A, (*B, Read("a")))), Record()), "step 1.2.4: read a",
     "`a` is in a body of a Next that steps `b`"),
    ("second turn", RING, plan(Next((A, B, B)), Record()), "step 1.3.2: step b",
     "`b` has two bodies of a Next"),
    ("uneven turns", RING, plan(Next((A, turn("b", F(2, 5)))), Record()), "step 1.2.2: step b by 2/5 of it",
     "`b` is stepped by 2/5 of the step at a time, and does not meet its end"),
    ("empty body", RING, plan(*A, *B, Next(()), Record()),
     "step 7: until all have made the step, the one furthest behind goes next",
     "a body without instructions"),
    ("unfed input", RING, plan(Next((A, turn("b", F(1, 3))[1:])), Record()),
     "step 1.2.1: step b by 1/3 of it", "`b` is stepped before its inputs are fed"),
    ("never read", RING, plan(Next((A, B[:2])), Record()), "step 1.2.2: step b",
     "the outputs of `b` are not read after its step"),
    ("unknown simulator", RING, plan(*A, *B, Next(((Step("c"),),)), Record()), "step 7.1.1: step c",
     "the plan names an unknown simulator `c`"),
    ("inexact step", RING, plan(Next((A, turn("b", 0.5))), Record()), "step 1.2.2: step b by 0.5 of it",
     "`b` is stepped by 0.5 of the step, which is not a fraction"),
    ("fixed step", FIXED, plan(Next((turn("a", F(1, 2)), B)), Record()), "step 1.1.2: step a by 1/2 of it",
     "`a` is stepped by 1/2 of the step, and it accepts only whole ones"),
    ("unknown port", LOOP, plan(*A, *B, Solve(BOTH, ("a.y", "b.z")), Record()),
     "step 7: solve the loop a.y, b.z", "the plan names `b.z`, and there is no such port"),
    ("no loop", CHAIN, plan(*A, *B, Solve(("b",), ("b.y",)), Record()), "step 7: solve the loop b.y",
     "`b.y` is to be solved for, and it does not react to itself at once"),
    ("part of a loop", LOOP, plan(*A, *B, Solve(BOTH, ("a.y",)), Record()), "step 7: solve the loop a.y",
     "`a.y` is solved for without the rest of its loop: b.y"),
    ("loop without simulator", LOOP, plan(*A, *B, Solve(("a",), ("a.y", "b.y")), Record()),
     "step 7: solve the loop a.y, b.y",
     "`b.y` is solved for, and `b` is not among the simulators that are evaluated"),
    ("loop apart", LOOP, plan(*A, *turn("b", F(1, 2)), EVALUATED[6], *turn("b", F(1, 2)), Record()),
     "step 7: solve the loop a.y, b.y",
     "a loop is solved while `a` stands at 1 of the step and `b` at 1/2"),
    ("loop before read", LOOP, plan(*A, *B[:2], EVALUATED[6], Record()), "step 6: solve the loop a.y, b.y",
     "a loop is solved before `b` is read: the guess would overwrite the sample of the old time"),
    ("no record", RING, plan(*A, *B), "step", "no row is ever kept"),
    ("early record", RING, plan(*A, Record(), *B), "step 4: record",
     "a row is kept before `step b`: it has values of the old time"),
    ("early record", CHAIN, plan(*B, *A, Record(), *B[::2], outputs="consistent"), "step 7: record",
     "a row is kept before `read b`: it has values of the old time"),
    ("second record", RING, plan(*A, *B, Record(), Record()), "step 8: record",
     "a row is kept twice in one step"),
    ("second record", RING, plan(Times(2, (*turn("a", F(1, 2)), *turn("b", F(1, 2)), Record()))),
     "step 1.7: record", "a row is kept twice in one step"),
    ("try in a try", RING, plan(Try((*A, Try(B), Record()))),
     "step 1.4: try; if one ends early, all roll back, meet it there, and go on",
     "a Try stands inside another"),
    ("try inside", RING, plan(Times(1, (Try((*A, *B)), Record()))),
     "step 1.1: try; if one ends early, all roll back, meet it there, and go on",
     "a Try stands inside another instruction: it goes on to the end of the step each time"),
    ("second try", RING, plan(Try(A), Try(B), Record()),
     "step 2: try; if one ends early, all roll back, meet it there, and go on",
     "a second Try in one step: each goes on to the end"),
    ("step outside try", RING, plan(*A, Try((*B, Record()))), "step 2: step a",
     "`a` is stepped outside of the Try: it would not roll back with the others"),
    ("early stop", STOPS, plan(*A, *B, Record()), "step 2: step a",
     "`a` may stop inside a step, at an event, and no Try is around it"),
    ("early stop", STUCK, plan(*A, *B, Record()), "step 2: step a",
     "`a` may stop inside a step, at an event, and no Try is around it"),
    ("unknown simulator", RING, plan(*A, *B, Record(), start=(Read("a"), Read("b"), Read("c"))),
     "start 3: read c", "the plan names an unknown simulator `c`"),
    ("not at the start", RING, plan(*A, *B, Record(), start=(Read("a"), Step("b"), Read("b"))),
     "start 2: step b", "the start has `step b`, and no time passes there"),
    ("unknown at start", RING, plan(*A, *B, Record(), start=(Read("a"),)), "start",
     "`b.y` has no value when the run starts"),
    ("unknown at start", CHAIN, plan(*A, *B, Record(), start=(Read("a"), Read("b"))), "start",
     "`b.y` has no value when the run starts: it follows `a.y`, and is not fed and read after that"),
    ("unknown at start", CHAIN, plan(*A, *B, Record(), start=(Feed("b"), Read("a"), Read("b"))), "start",
     "`b.y` has no value when the run starts: it follows `a.y`, and is not fed and read after that"),
    ("unknown at start", CHAIN,
     plan(*A, *B, Record(), start=(Together(((Read("a"),), (Feed("b"), Read("b")))),)), "start",
     "`b.y` has no value when the run starts: it follows `a.y`, and is not fed and read after that"),
    ("unknown at start", LOOP, plan(*A, *B, Record(), start=(Feed("a"), Read("a"), Feed("b"), Read("b"))),
     "start", "`a.y` has no value when the run starts: it is in an algebraic loop of `a.y`, `b.y`"),
    ("save in a repeat", RING,
     plan(Save(BOTH), Repeat((Restore(BOTH), Save(("a",)), *A, *B), None, 2), Record()),
     "step 2.2: save a",
     "`a` is saved inside the Repeat that repeats its steps: the place to roll back to moves along"),
    ("save without rollback", FIXED, plan(Save(("a",)), *A, *B, Record()), "step 1: save a",
     "`a` is to be saved, and it cannot roll back"),
    ("restore without save", RING, plan(Restore(("b",)), *A, *B, Record()), "step 1: restore b",
     "`b` is restored, and was not saved before"),
    ("repeat without save", RING,
     plan(Save(("b",)), Repeat((Restore(BOTH), *A, *B), 1e-9, 9), Record()),
     "step 2: repeat until the values agree to 1e-09, at most 9 times",
     "`a` is stepped in a Repeat, and was not saved before it"),
    ("repeat without restore", RING, plan(Save(BOTH), Repeat((*A, Restore(("b",)), *B), None, 2), Record()),
     "step 2.2: step a",
     "`a` is stepped in a Repeat without being restored first: each repetition goes further"),
    ("no repetitions", RING, plan(Save(BOTH), Repeat((Restore(BOTH), *A, *B), None, 0), Record()),
     "step 2: repeat 0 times", "a Repeat of at most 0 repetitions"),
    ("no tolerance", RING, plan(Save(BOTH), Repeat((Restore(BOTH), *A, *B), -1.0, 5), Record()),
     "step 2: repeat until the values agree to -1, at most 5 times",
     "a Repeat until the values agree to -1.0"),
    ("outside an instant", RING, plan(*A, *B, Record(), React("a")), "step 8: react a",
     "`a` takes part in an instant, and there is none"),
    ("react after commit", RING,
     plan(*A, *B, Record(), Instant((React("b"), Commit(("b",)), React("a")), 9)), "step 8.3: react a",
     "`a` reacts after others have committed: it is late by one instant"),
    ("commit without react", RING, plan(*A, *B, Record(), Instant((React("b"), Commit(BOTH)), 9)),
     "step 8.2: commit a, b", "`a` is committed and does not react before"),
    ("not in an instant", RING, plan(*A, *B, Record(), Instant((React("b"), Step("a")), 9)),
     "step 8.2: step a", "this cannot be done at an instant, in which no time passes"),
    ("unknown host", HOSTED, plan(SENT, RECEIVED, Send("here", "moon", ("a.y",)), *A, *B, Record()),
     "step 3: send from here to moon: a.y", "there is no host `moon`"),
    ("sent from elsewhere", HOSTED, plan(Send("here", "there", ("b.y",)), RECEIVED, *A, *B, Record()),
     "step 1: send from here to there: b.y", "`b.y` is sent from `here`, and `b` is on another host"),
    ("never sent", HOSTED, plan(RECEIVED, *A, *B, Record()), "step 1: receive at there from here: a.y",
     "`there` waits for a message from `here` that is not sent before"),
    ("never received", HOSTED, plan(SENT, *A, *B, Record()), "step",
     "what `here` sends to `there` is not received"),
]  # fmt: skip
ELSEWHERE = {
    "try without rollback",
    "try of fixed steps",
    "last may stop",
    "stop behind last",
    "race of texts",
    "quantum",
    "reactive input",
    "delayed input",
}
"""Kinds with a test of their own, below, in `test_single_ports` or in `engine/test_last_step`."""
TOGETHER = {
    "unknown host": "never received",
    "ends apart": "too little",
    "repeat without save": "restore without save",
}
"""What goes with another fault, which is found first."""


@pytest.mark.parametrize(
    ("kind", "scenario", "made", "where", "what"),
    WRONG,
    ids=[f"{n} {case[0]}" for n, case in enumerate(WRONG)],
)
def test_a_wrong_plan_is_refused_in_words(kind, scenario, made, where, what):
    faults = found(made, scenario)
    if kind in TOGETHER:
        assert {fault.kind for fault in faults} == {kind, TOGETHER[kind]}
        faults = [fault for fault in faults if fault.kind == kind]
    assert [(fault.kind, fault.where, fault.what) for fault in faults] == [(kind, where, what)]


def test_every_kind_has_its_wrong_plan():
    assert {case[0] for case in WRONG} | ELSEWHERE == set(KINDS)
    assert not {case[0] for case in WRONG} & ELSEWHERE


def test_every_kind_says_what_was_expected_and_what_to_try():
    assert all(all(kind) for kind in KINDS.values())
    assert len({kind.what for kind in KINDS.values()}) == len(KINDS)


@pytest.mark.parametrize(
    ("made", "scenario", "port", "hint"),
    [
        (plan(*A, *B, Feed("bb"), Record()), RING, "", "did you mean `b`?"),
        (plan(*A, *B[1:], Record()), RING, "b.u", "Feed('b') before it, for `b.u`"),
        (
            plan(*A[:2], *B, Read("a"), Record()),
            RING,
            "b.u",
            "Read('a') before it; or, if the delay is meant, feed `b` before `a` steps",
        ),
        (plan(*A, *B[:2], Record()), RING, "b.y", "Read('b')"),
        (plan(*A, *B, Solve(BOTH, ("a.y", "b.yy")), Record()), LOOP, "b.yy", "did you mean `b.y`?"),
        (
            plan(*A, *B, Record(), outputs="consistent"),
            LOOP,
            "a.y",
            "Solve(('a', 'b'), ('a.y', 'b.y')) after the last read; "
            'or outputs="stale", which breaks it by a delay',
        ),
        (plan(*A, Feed("b"), Read("b"), *B[1:], Record()), RING, "b.y", "Step('b') before it"),
    ],
)
def test_a_fault_names_its_port_and_what_to_try(made, scenario, port, hint):
    (fault,) = found(made, scenario)
    assert (fault.port, fault.hint) == (port, hint)
    assert fault.sim in fault.what


def test_what_may_stop_early_is_tried_or_its_end_is_told():
    """A level that cannot roll back says in its plan what becomes of an early end, as Jacobi does."""
    assert found(plan(Try((*A, *B, Record()))), STOPS) == []
    told = Note("`a` goes on alone", NoteKind.EARLY_END, "a")
    assert found(plan(*A, *B, Record(), notes=[told]), STUCK) == []
    (fault,) = found(plan(*A, *B, Record()), STUCK)
    assert fault.hint == "`b` cannot roll back or change its step, so no Try can be made: early_return=False"
    for level in (STOPS, STUCK):
        plan_tree(Composite(level, 1))


def test_a_start_that_knows_every_output_is_sound():
    for level in (RING, CHAIN, LOOP, FIXED, STUCK):
        made = plan_tree(Composite(level, 1)).plan
        assert found(made, level) == []
    for nested in (NESTED, Scenario({"deep": Composite(LOOP, 1), "a": LAG_AT_REST}, {"a.u": "deep.a.y"})):
        tree = plan_tree(Composite(nested, F(2)))
        assert verify_start(tree.plan.start, tree.leaves.wiring) == []
    first = Read("a"), Feed("b"), Read("b")
    assert found(plan(*A, *B, Record(), start=first), CHAIN) == []
    assert found(plan(*A, *B, Record(), start=[Solve(BOTH, ("a.y", "b.y"))]), LOOP) == []


def test_a_try_needs_simulators_that_go_back_and_shorten_their_steps():
    made = plan(Try((*A, *B, Record())))
    assert found(made, RING) == []
    faults = found(made, FIXED)
    assert [(fault.kind, fault.sim) for fault in faults] == [
        ("try without rollback", "a"),
        ("try of fixed steps", "a"),
    ]
    assert faults[0].what == "`a` cannot roll back, and a Try rolls all simulators back"
    crowd = Scenario({name: Python(Plain) for name in "abc"}, {**CROSSED, "c.u": "a.y"})
    faults = found(plan(Try((*A, *B, *turn("c"), Record()))), crowd)
    assert faults[1].what == "`a` and 2 more accepts only whole steps, and a Try makes them shorter"


@pytest.mark.parametrize(("inner", "hint"), [("3/4", 'quantum = "1/4"'), ("9/10", "step control inside it")])
def test_step_control_around_a_level_fits_its_steps(inner, hint):
    part = StateSpace([[-1]], [[1]], [[1]], inputs=["u"], outputs=["y"])
    level = Composite(Scenario({"part": part}), F(inner))
    wires = {"level.part.u": "one.y", "one.u": "level.part.y"}
    with pytest.raises(ScenarioError, match="those of the level `level` do not fit in") as caught:
        plan_tree(Composite(Scenario({"level": level, "one": part}, wires), 3, Adaptive()))
    assert hint in str(caught.value)


def test_a_text_is_taken_from_a_simulator_that_stands_still():
    """A text is asked of the simulator itself, so it may not step meanwhile."""
    scenario = Scenario({"a": Texting(), "b": Texting()}, {"b.heard": "a.said"})
    sound = plan(Feed("b"), Together(((Step("a"),), (Step("b"),))), Record())
    assert found(sound, scenario) == []
    racing = plan(Together(((Step("a"),), (Feed("b"), Step("b")))), Record())
    (fault,) = found(racing, scenario)
    assert fault.what == "`b` gets a text from `a`, which steps in a body that runs together"
    assert fault.where == "step 1.2.1: feed b"
    (fault,) = found(plan(Step("a"), Step("b"), Record()), scenario)
    assert (fault.kind, fault.hint) == ("unfed input", "Feed('b') before it, for its texts")


def test_a_repetition_of_fixed_length_does_not_make_loops_agree():
    made = plan(Save(BOTH), Repeat((Restore(BOTH), *A, *B), None, 3), Record(), outputs="consistent")
    assert [fault.kind for fault in found(made, LOOP)] == ["stale loop"]


def test_the_faults_of_a_plan_are_told_together_each_once():
    made = plan(Step("a"), Times(5, (Read("c"),)), *turn("b", F(3)), Feed("a"))
    assert [(fault.kind, fault.sim) for fault in found(made, RING)] == [
        ("unfed input", "a"),
        ("unknown simulator", "c"),
        ("never read", "a"),
        ("too much", "b"),
        ("ends apart", "b"),
        ("no record", ""),
    ]


class Written:
    """An orchestrator that hands out one plan."""

    def __init__(self, made):
        self.made = made

    def plan(self, scenario):
        return self.made


def test_a_plan_is_verified_before_every_run_at_every_level():
    inner = Composite(RING, 1, Written(plan(*A, *B[1:], Record())))
    outer = Composite(Scenario({"deep": inner}), 1, Written(plan(Step("deep"))))
    with pytest.raises(ScenarioError) as caught:
        plan_tree(outer)
    assert (
        str(caught.value)
        == """\
2 faults:
1. no row is ever kept
     where:    orchestrator, step
     expected: a Record
     try:      Record() at the end
2. `b` is stepped before its inputs are fed
     where:    deep.orchestrator, step 4: step b
     expected: a feed before each step: it says from when on the inputs count
     try:      Feed('b') before it, for `b.u`"""
    )
