"""Errors say what happened, where, what was expected and what to try."""

import pickle

import pytest

from hocket.errors import (
    ConvergenceError,
    Fault,
    FileError,
    HocketError,
    InternalError,
    Place,
    ScenarioError,
    SimulatorError,
    merge_notes,
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


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("connections.left.force", Place(section="connections", key="left.force")),
        ("models", Place(section="models")),
        ("parameters[2], `left`", Place(section="parameters", key="[2]", detail="`left`")),
        ("tolerance", Place(key="tolerance")),
        ("--set left.k=2", Place(option="--set left.k=2")),
        ("car.toml, line 3", Place(file="car.toml", line=3)),
        ("line 3", Place(line=3)),
        ("the outermost level", Place(detail="the outermost level")),
        ("", Place()),
    ],
)
def test_a_place_is_read_as_it_is_written(written, place):
    assert Place.of(written) == place
    assert str(place) == written


def test_a_place_is_seen_from_outside_of_its_level():
    fault = Fault("it leaks", "connections.left.force").within("axle.").within("car")
    assert fault.place == Place("car.axle", "connections", "left.force")
    assert fault.where == "car.axle.connections.left.force"
    assert Fault("it leaks").within("car").where == "car"


def test_a_line_of_other_code_is_kept_beside_the_line_of_the_file():
    assert (
        str(Place(file="car.toml", line=4, detail="plant.py, line 2"))
        == "car.toml, line 4 (plant.py, line 2)"
    )


def test_notes_that_repeat_are_one_with_a_count():
    same = ["the start is cold"] * 40
    alike = [f"`m{k}` cannot be run here: no binary" for k in range(40)]
    few = ["`a` follows", "`b` follows"]
    assert merge_notes([*same, *alike, *few, "`a` leads"]) == [
        "the start is cold (40 times)",
        "`m0` cannot be run here: no binary (the same of 39 more: `m1`, `m2`, `m3` and 36 more)",
        *few,
        "`a` leads",
    ]
