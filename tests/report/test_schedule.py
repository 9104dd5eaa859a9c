"""Plans laid out on lanes: order, side by side, sub-steps, loops, and where samples come from."""

from fractions import Fraction as F
from itertools import pairwise
from typing import get_args

import pytest

from hocket import Composite, GaussSeidel, Jacobi, Scenario
from hocket.plan import Feed, Plan, Read, Record, Repeat, Restore, Save, Step, Times, Together
from hocket.planning.planner import plan_tree
from hocket.report.schedule import MOST_LANES, WIDE, MarkKind, lay_out_step
from hocket.report.timeline import _MARKS, timeline_section
from plan.levels import APART, LEVEL, LOOP, RING, turn
from systems import LAG_AT_REST


class Written:
    """An orchestrator that hands out a plan."""

    def __init__(self, *step):
        self.step = step

    def plan(self, scenario):
        return Plan(self.step, outputs="stale")


def laid(scenario, orchestrator, step=F(1)):
    return lay_out_step(plan_tree(Composite(scenario, step, orchestrator)), "whole")


def leaves(made):
    return [bar for bar in made.bars if not bar.lane.level]


def crosses(one, other):
    return one.x < other.x + other.width and other.x < one.x + one.width


def test_jacobi_steps_side_by_side_from_past_samples():
    made = laid(RING, Jacobi(outputs="stale"))
    assert [lane.path for lane in made.lanes] == ["", "a", "b"]
    a, b = leaves(made)
    assert (a.x, a.width) == (b.x, b.width)
    assert [(arrow.source.path, arrow.target.path, arrow.past) for arrow in made.arrows] == [
        ("b", "a", True),
        ("a", "b", True),
    ]
    feeds, reads = ([m.x for m in made.marks if m.kind == kind] for kind in ("feed", "read"))
    assert max(feeds) < a.x < a.x + a.width <= min(reads)
    together = [frame for frame in made.frames if frame.kind == "together"]
    assert len(together) == 3
    assert all(frame.bottom - frame.top == 60 for frame in together)


def test_gauss_seidel_takes_turns_and_the_second_knows_the_first():
    made = laid(RING, GaussSeidel(["b", "a"], outputs="stale"))
    assert [lane.path for lane in made.lanes] == ["", "b", "a"]
    b, a = sorted(leaves(made), key=lambda bar: bar.x)
    assert (b.lane.path, a.lane.path) == ("b", "a")
    assert not crosses(b, a)
    assert {arrow.target.path: arrow.past for arrow in made.arrows} == {"b": True, "a": False}
    known = next(arrow for arrow in made.arrows if not arrow.past)
    read = next(mark for mark in made.marks if mark.kind == "read" and mark.lane.path == "b")
    assert known.x0 == read.x < known.x1


@pytest.mark.parametrize(("ratio", "drawn"), [(1, 1), (4, 4), (5, 3), (1000, 3)])
def test_sub_steps_fill_the_step_around_them(ratio, drawn):
    inner = Composite(LEVEL, F(1, ratio))
    made = laid(Scenario({"n": inner, "b": LAG_AT_REST}, {"n.u": "b.y", "b.u": "n.y"}), Jacobi())
    around = next(bar for bar in made.bars if bar.lane.path == "n")
    steps = [bar for bar in made.bars if bar.lane.path == "n.a"]
    assert len(steps) == drawn
    assert all(around.x <= bar.x and bar.x + bar.width <= around.x + around.width for bar in steps)
    assert not any(crosses(one, other) for one, other in pairwise(steps))
    gaps = [frame.label for frame in made.frames if frame.kind == "gap"]
    assert gaps == ([f"{ratio - drawn} more"] if ratio > drawn else [])
    beside = next(bar for bar in made.bars if bar.lane.path == "b")
    assert (beside.x, beside.width) == (around.x, around.width)
    lane = next(lane for lane in made.lanes if lane.path == "n")
    inside = [lane for lane in made.lanes if lane.path.startswith("n.")]
    assert all(lane.top < each.top and each.bottom <= lane.bottom for each in inside)


def test_a_loop_has_its_tolerance():
    both = ("a", "b")
    sweep = (Restore(both), *turn("a"), *turn("b"))
    made = laid(RING, Written(Save(both), Repeat(sweep, 1e-6, 20), Record()))
    (loop,) = [frame for frame in made.frames if frame.kind == "repeat"]
    assert loop.label == "↻ until 1e-06, at most 20"
    assert "until the values agree to 1e-06, at most 20 times" in loop.words
    inside = [mark for mark in made.marks if loop.x < mark.x < loop.x + loop.width]
    assert {mark.kind for mark in inside} == {"restore", "feed", "read"}
    outside = [mark.kind for mark in made.marks if mark not in inside]
    assert outside == ["save", "save", "record"]


def test_parts_of_a_step_are_told_apart():
    half = (Feed("a"), Step("a", F(1, 2)), Read("a"))
    made = laid(RING, Written(Feed("b"), Times(2, half), Step("b"), Read("b"), Record()), F(1, 5))
    first, second = [bar for bar in made.bars if bar.lane.path == "a"]
    assert first.label == second.label == "0.1 s"
    assert first.words.endswith("t to t + 0.1 s")
    assert second.words.endswith("t + 0.1 s to t + 0.2 s")


def test_a_solved_loop_is_marked_at_all_who_take_part():
    made = laid(LOOP, Jacobi())
    solved = [mark for mark in made.marks if mark.kind == "solve"]
    assert {mark.lane.path for mark in solved} == {"a", "b"}
    assert len({mark.x for mark in solved}) == 1


def test_bodies_of_several_instructions_run_side_by_side():
    made = laid(APART, Written(Together((turn("a")[1:], turn("b")[1:])), Record()))
    a, b = leaves(made)
    assert a.x == b.x


def test_a_crowd_is_cut_and_said_so():
    names = [f"s{number}" for number in range(200)]
    scenario = Scenario(dict.fromkeys(names, LAG_AT_REST), {f"{name}.u": "s0.y" for name in names})
    made = laid(scenario, GaussSeidel(names))
    assert len(made.lanes) == MOST_LANES + 1
    assert made.left_out == 200 - MOST_LANES
    root = plan_tree(Composite(scenario, F(1)))
    assert f"{200 - MOST_LANES} more lanes are not drawn" in timeline_section(root, "crowd")


def test_deep_and_fast_levels_do_not_make_it_endless():
    level = Composite(LEVEL, F(1, 1000))
    for step in (F(1, 100), F(1, 10)):
        inside = {"a.u": "u", "n.u": "a.y", "y": "n.y"}
        level = Composite(Scenario({"a": LAG_AT_REST, "n": level}, inside, ["u"], ["y"]), step)
    made = laid(Scenario({"n": level, "b": LAG_AT_REST}, {"n.u": "b.y", "b.u": "n.y"}), GaussSeidel())
    assert made.width <= WIDE
    assert len([frame for frame in made.frames if frame.kind == "gap"]) >= 3


def test_every_mark_has_a_shape():
    assert set(_MARKS) == set(get_args(MarkKind))
