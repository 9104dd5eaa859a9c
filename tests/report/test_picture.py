"""Plans drawn as files by themselves: what they show, that they need nothing else, that docs has new ones."""

import runpy
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction as F
from xml.etree import ElementTree

import pytest
from matplotlib.image import imread

from command_line import good, refused
from hocket import Composite, GaussSeidel, Iterate, Jacobi, Scenario
from hocket.errors import FileError
from hocket.plan import Adapt, Feed, Next, Plan, Read, Record, Step, Times
from hocket.plan.instructions import Control
from hocket.planning.planner import plan_tree
from hocket.report.schedule import lay_out_step
from hocket.report.timeline import DENSE, svg_style, timeline_svg, write_timeline_svg
from plan.levels import LEVEL, RING, turn
from report.browser import painted
from systems import LAG_AT_REST, ROOT

PICTURES = ROOT / "docs" / "pictures"
DRAWN = runpy.run_path(str(PICTURES / "draw.py"))
SVG = "{http://www.w3.org/2000/svg}"


def parsed(composite, name="whole"):
    return ElementTree.fromstring(timeline_svg(plan_tree(composite), name))


def having(svg, *classes):
    """The elements with exactly these classes, but those of the key."""
    inside = {id(each) for key in svg.iter(f"{SVG}g") if key.get("class") == "key" for each in key.iter()}
    return [
        each
        for each in svg.iter()
        if set(each.get("class", "").split()) == set(classes) and id(each) not in inside
    ]


def words(svg):
    return [each.text for each in svg.iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("name", "steps", "known", "past"),
    [
        ("jacobi", 3, 0, 4),  # four connections, nobody has made the step
        ("gauss-seidel", 3, 2, 2),  # those down the chain know it, those up do not
        ("iterate", 6, 4, 4),  # the second iteration knows where the first one ended
        ("predictor-corrector", 6, 4, 4),
    ],
)
def test_each_algorithm_shows_who_knows_what(name, steps, known, past):
    composite = Composite(DRAWN["CHAIN"], "10 ms", DRAWN["ALGORITHMS"][name])
    svg = parsed(composite, name)
    assert len(having(svg, "bar")) == steps
    assert (len(having(svg, "flow")), len(having(svg, "flow", "past"))) == (known, past)
    assert [each.text for each in having(svg, "name", "head")] == [name]
    assert [each.text for each in having(svg, "name")] == ["engine", "gearbox", "wheel"]
    key = {"step", "feed: fit its inputs", "read: its outputs", "record a row"}
    assert key <= set(words(svg))
    assert ("extrapolated from the past" in words(svg)) == (past > 0)
    assert ("a sample of a step that is made" in words(svg)) == (known > 0)


@pytest.mark.parametrize(
    ("at_most", "until", "labels"),
    [
        (1, None, ["↻ 1 times"]),
        (2, None, ["first iteration", "second iteration", "↻ 2 times"]),
        (5, None, ["first iteration", "each further iteration", "↻ 5 times"]),
        (9, 1e-6, ["first iteration", "each further iteration", "↻ until 1e-06, at most 9"]),
    ],
)
def test_iterations_are_named(at_most, until, labels):
    svg = parsed(Composite(RING, F(1), Iterate(Jacobi(), until, at_most)))
    said = [word for word in words(svg) if "iteration" in word or "↻" in word]
    assert sorted(said) == sorted(labels)
    assert len(having(svg, "mark", "restore")) == 2 * min(at_most, 2)


class Written:
    """An orchestrator that hands out a plan."""

    def __init__(self, *step):
        self.step = step

    def plan(self, scenario):
        return Plan(self.step, outputs="stale")


def test_who_is_furthest_behind_goes_next():
    """By hand: a to 1/2, b to 1/3, b to 2/3, a to 1, b to 1; a source that has come as far is known."""
    bodies = tuple((Feed(sim), Step(sim, part), Read(sim)) for sim, part in (("a", F(1, 2)), ("b", F(1, 3))))
    made = lay_out_step(plan_tree(Composite(RING, F(6), Written(Next(bodies), Record()))), "whole")
    bars = [(bar.lane.path, bar.label) for bar in made.bars if not bar.lane.level]
    assert bars == [("a", "3 s"), ("b", "2 s"), ("b", "2 s"), ("a", "3 s"), ("b", "2 s")]
    assert [arrow.past for arrow in made.arrows] == [True, False, True, True, False]


def test_of_many_turns_the_first_are_drawn():
    """By hand: 30 turns of a and 1 of b, of which 12 have room: 11 are drawn."""
    bodies = tuple((Feed(sim), Step(sim, part), Read(sim)) for sim, part in (("a", F(1, 30)), ("b", F(1))))
    made = lay_out_step(plan_tree(Composite(RING, F(6), Written(Next(bodies), Record()))), "whole")
    bars = [bar.lane.path for bar in made.bars if not bar.lane.level]
    assert bars == ["a", "b", *["a"] * (len(bars) - 2)]
    assert [frame.label for frame in made.frames if frame.kind == "gap"] == [f"{31 - len(bars)} more"]


def test_inputs_of_who_is_only_read_again_are_not_the_past():
    body = (
        Feed("a"),
        Step("a", F(1, 2)),
        Read("a"),
        Feed("b"),
        Step("b", F(1, 2)),
        Read("b"),
        Feed("a"),
        Read("a"),
    )
    made = lay_out_step(plan_tree(Composite(RING, F(1), Written(Times(2, body), Record()))), "whole")
    assert [arrow.past for arrow in made.arrows] == [True, False, False] * 2


def test_steps_as_long_as_errors_allow():
    control = Control(1e-3, "defect", True, (0.7, 0.4, 0.0), F(1, 64), F(1, 8), F(1), rejects=False)
    plan = Written(Adapt((*turn("a"), *turn("b")), control), Record())
    made = lay_out_step(replace(plan_tree(Composite(RING, F(1))), plan=plan.plan(RING)), "whole")
    (frame,) = [each for each in made.frames if each.kind == "try"]
    assert frame.label == "steps as long as errors allow"
    assert len([bar for bar in made.bars if not bar.lane.level]) == 2


def test_levels_stand_in_levels():
    inner = Composite(LEVEL, F(1, 2))
    svg = parsed(Composite(Scenario({"n": inner, "b": LAG_AT_REST}, {"n.u": "b.y", "b.u": "n.y"}), F(1)))
    assert [each.text for each in having(svg, "name", "head")] == ["whole", "n"]
    assert len(having(svg, "frame", "substep")) == 2
    assert len(having(svg, "box")) == 2


def test_it_needs_nothing_else():
    text = timeline_svg(plan_tree(Composite(RING, F(1))), "<script>evil()</script> & co")
    assert "<script>" not in text
    assert "var(" not in text
    assert "url(" not in text
    assert "href" not in text
    assert "@import" not in text
    assert "<script>evil()</script> & co" not in text
    svg = ElementTree.fromstring(text)
    assert [each.text for each in having(svg, "name", "head")] == ["<script>evil()</script> &…"]
    assert svg.get("viewBox") == f"0 0 {svg.get('width')} {svg.get('height')}"


def test_every_class_has_its_style():
    svg = parsed(Composite(RING, F(1), Iterate(GaussSeidel())))
    classes = {name for each in svg.iter() for name in each.get("class", "").split()}
    assert [name for name in sorted(classes) if f".{name}" not in svg_style()] == []


def test_a_crowd_has_no_arrows_and_says_so():
    names = [f"s{number}" for number in range(DENSE + 1)]
    scenario = Scenario(dict.fromkeys(names, LAG_AT_REST), {f"{name}.u": "s0.y" for name in names})
    few = parsed(Composite(scenario, F(1)))
    assert any("more lanes are not drawn" in word for word in words(few))
    ring = {f"n{n}": Composite(LEVEL, F(1, 4), Iterate()) for n in range(40)}
    wires = {f"n{n}.u": f"n{(n + 1) % 40}.y" for n in range(40)}
    crowd = parsed(Composite(Scenario(ring, wires), F(1)))
    assert not having(crowd, "flow")
    assert not having(crowd, "flow", "past")
    assert "more arrows than can be told apart: none is drawn" in words(crowd)


def test_the_command_draws(tmp_path):
    good("new", tmp_path / "demo.toml")
    said = good("plan", tmp_path / "demo.toml", "--plot", tmp_path / "plan.svg")
    assert said.splitlines()[-1] == f"wrote {tmp_path / 'plan.svg'}"
    assert said.startswith("demo: steps of ")
    assert ElementTree.parse(tmp_path / "plan.svg").getroot().tag == f"{SVG}svg"


@pytest.mark.parametrize("ending", [".png", ".pdf", ""])
def test_other_endings_are_refused(tmp_path, ending):
    good("new", tmp_path / "demo.toml")
    said = refused("plan", tmp_path / "demo.toml", "--plot", tmp_path / f"plan{ending}")
    assert f"a plan is not drawn as `plan{ending}`" in said
    assert "expected: a file that ends in .svg" in said
    assert "`plan.svg`" in said
    assert "there is no folder" in refused(
        "plan", tmp_path / "demo.toml", "--plot", tmp_path / "no" / "p.svg"
    )
    with pytest.raises(FileError, match="is not drawn as"):
        write_timeline_svg(plan_tree(Composite(RING, F(1))), "ring", tmp_path / f"ring{ending}")


def test_the_pictures_in_docs_are_current(tmp_path):
    subprocess.run([sys.executable, PICTURES / "draw.py", tmp_path], check=True)
    drawn = {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir()}
    kept = {file.name: file.read_text(encoding="utf-8") for file in (PICTURES / "algorithms").glob("*.svg")}
    assert drawn.keys() == kept.keys()
    stale = [name for name in drawn if drawn[name] != kept[name]]
    assert stale == [], "run `python docs/pictures/draw.py`"


def test_it_is_on_white_in_a_browser(tmp_path):
    write_timeline_svg(plan_tree(Composite(RING, F(1), GaussSeidel())), "ring", tmp_path / "ring.svg")
    pixels = imread(painted(tmp_path / "ring.svg", tmp_path, dark=True))[..., :3]
    assert (pixels[2, 2] == 1.0).all()
    blue = (abs(pixels - [47 / 255, 111 / 255, 176 / 255]).max(axis=2) < 0.02).sum()
    assert blue > 1000  # two steps
