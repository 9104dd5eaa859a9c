"""Errors say what happened, where, what was expected and what to try."""

import pickle

import pytest

from hocket.errors import (
    ConvergenceError,
    Fault,
    FileError,
    HocketError,
    InternalError,
    ScenarioError,
    SimulatorError,
    suggest_nearest,
)


def test_a_fault_prints_what_it_knows_in_aligned_lines():
    fault = Fault("the tank leaks", "models.tank", "a dry floor", "a plug")
    assert (
        str(fault)
        == """\
the tank leaks
  where:    models.tank
  expected: a dry floor
  try:      a plug"""
    )


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("it leaks"), "it leaks"),
        (Fault("it leaks", hint="a plug"), "it leaks\n  try:      a plug"),
        (Fault("it leaks", expected="a dry floor"), "it leaks\n  expected: a dry floor"),
    ],
)
def test_what_is_not_known_takes_no_line(fault, text):
    assert str(fault) == text


def test_one_fault_is_not_numbered():
    assert str(ScenarioError("it leaks", "tank")) == str(ScenarioError([Fault("it leaks", "tank")]))
    assert str(ScenarioError("it leaks", "tank")) == "it leaks\n  where:    tank"


def test_several_faults_are_numbered_and_indented():
    error = ScenarioError([Fault("it leaks", "tank"), Fault("it rusts", hint="paint"), Fault("it hums")])
    assert (
        str(error)
        == """\
3 faults:
1. it leaks
     where:    tank
2. it rusts
     try:      paint
3. it hums"""
    )
    assert [fault.what for fault in error.faults] == ["it leaks", "it rusts", "it hums"]


def test_whoever_must_act_can_be_caught_alone():
    branches = (ScenarioError, SimulatorError, ConvergenceError, InternalError)
    for branch in branches:
        assert issubclass(branch, HocketError)
        assert not any(issubclass(branch, other) for other in branches if other is not branch)
    assert issubclass(FileError, ScenarioError)


def test_an_error_survives_the_way_from_another_process():
    error = SimulatorError([Fault("it leaks", "tank", "a dry floor", "a plug"), Fault("it rusts")])
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is SimulatorError
    assert (back.faults, str(back)) == (error.faults, str(error))


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("sprung", ["mass", "spring"], "did you mean `spring`?"),
        ("Force", ["forces", "x", "force"], "did you mean `force`?"),
        ("zzz", ["left", "right"], "one of `left`, `right`"),
        ("zzz", "abcdefgh", "one of `a`, `b`, `c`, `d`, `e`, `f`, `g`, `h`"),
        ("zzz", "abcdefghij", "one of `a`, `b`, `c`, `d`, `e`, `f`, `g`, `h` and 2 more"),
        ("zzz", [], ""),
    ],
)
def test_the_nearest_name_is_offered_or_else_the_first_few(name, known, hint):
    assert suggest_nearest(name, iter(known)) == hint
