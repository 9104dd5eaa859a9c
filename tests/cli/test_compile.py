"""hocket compile on the command line: the file it writes, the story, the differences, and the way back."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from command_line import good, refused
from hocket.cli.command_arguments import parse_kind
from hocket.files.toml.pass_options import PASSES
from hocket.planning.compiler.accuracy import Accuracy
from planning.compiler.joined import error, joined
from systems import EXAMPLES

LINK = EXAMPLES / "massless_link.toml"
TWO_MASSES = LINK.with_name("two_masses.toml")


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hk.write(joined(1, 2, "0.1"), "joined.toml")
    text = "# two masses, rigidly joined\n" + Path("joined.toml").read_text()
    Path("joined.toml").write_text(text)
    return Path("joined.toml")


def test_it_writes_what_runs(file):
    told = good("compile", file)
    assert "loops: 1 inserted" in told
    made = hk.read("joined.compiled.toml")
    assert error(made.composite, 1, 2) == pytest.approx(0.2096, rel=2e-3)


def test_the_way_back_gives_the_text_again(file):
    good("compile", file, "--pass", "loops(how=steps)", "--out", "simple.toml")
    before = file.read_bytes()
    assert "wrote back.toml" in good("compile", "simple.toml", "--undo", "--out", "back.toml")
    assert Path("back.toml").read_bytes() == before


def test_the_way_back_does_not_write_over_another_text(file):
    good("compile", file)
    file.write_text("step = 1\n")
    assert "is there, and differs" in refused("compile", "joined.compiled.toml", "--undo")
    assert file.read_text() == "step = 1\n"


def test_a_file_that_was_not_compiled_has_no_way_back(file):
    assert "was not compiled" in refused("compile", file, "--undo")


def test_the_story_is_told_and_nothing_is_written(file):
    told = good("compile", file, "--explain")
    assert "because `one.a` and `two.F` depend on each other at once" in told
    assert "modularity: nothing to do" in told
    assert not Path("joined.compiled.toml").exists()


def test_the_differences_are_shown(file):
    told = good("compile", file, "--diff", "--pass", "loops(how=steps)")
    assert '-orchestrator = "jacobi"' in told
    assert '+orchestrator = { type = "iterate"' in told
    assert "+[inserted]" in told
    assert not Path("joined.compiled.toml").exists()


def test_the_story_as_json(file):
    facts = json.loads(good("compile", file, "--json", "-"))
    assert facts["inserted"][0]["pass"] == "loops"
    assert facts["idle"] == ["modularity"]


def test_a_link_is_compiled_told_and_undone(file):
    good("compile", LINK, "--out", "link.toml")
    made = hk.read("link.toml").composite
    assert not made.scenario.constraints
    assert any(note.by == "modularity" for note in made.scenario.inserted.values())
    good("compile", "link.toml", "--undo", "--out", "again.toml")
    assert Path("again.toml").read_bytes() == LINK.read_bytes()


def test_controlled_steps_take_the_stop_of_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = re.sub("(?m)^orchestrator = .*$", 'orchestrator = "jacobi"', TWO_MASSES.read_text())
    Path("masses.toml").write_text(text)
    told = good("compile", "masses.toml", "--pass", "accuracy(tolerance=1e-2)", "--out", "controlled.toml")
    assert "hocket run controlled.toml --stop" in told
    run = hk.run(hk.read("controlled.toml").composite, 3000)
    stop = float(hk.read(TWO_MASSES).stop)
    assert np.max(run["clock.t"]) == pytest.approx(stop, rel=1e-12)
    good("compile", "controlled.toml", "--undo", "--out", "again.toml")
    assert Path("again.toml").read_text() == text


def test_a_pass_takes_the_options_of_its_class():
    text = 'accuracy(stop="1 s", first="1 ms", watch=["left.*"], tolerances={"left.x" = 1e-3})'
    made = parse_kind(PASSES, text, "pass", "--pass")
    assert made == Accuracy("1 s", first="1 ms", watch=("left.*",), tolerances={"left.x": 1e-3})


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--pass", "loop"), "did you mean `loops`"),
        (("--pass", "loops(how=stepz)"), "did you mean `steps`"),
        (("--pass", "loops(how=steps"), "a bracket is not closed"),
        (("--pass", "modularity"), "the scenario is not trivial"),
        (("--pass", "modularity(gap=nan)"), "`gap` is nan"),
        (("--out", "nowhere/x.toml"), "there is no folder"),
        (("--json", "nowhere/x.json"), "there is no folder"),
        (("--out", "joined.ssp"), "`joined.ssp` is not a name for a scenario"),
        (("--out", "../{}/joined.toml"), "`joined.toml` is the scenario itself"),
    ],
)
def test_what_is_wrong_is_said(file, words, told):
    before = file.read_bytes()
    assert told in refused("compile", file, *(word.format(Path.cwd().name) for word in words))
    assert file.read_bytes() == before


def test_messages_of_a_compiled_scenario_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wanted = "distribution(small_step='20 ms', extrapolation=cubic)"
    good("compile", LINK.with_name("two_hosts.toml"), "--pass", wanted, "--out", "hosts.toml")
    told = good("run", "hosts.toml")
    assert "sent: lab to plant, 54 messages (4 to start)" in told
    assert "sent: plant to lab, 54 messages (4 to start)" in told
