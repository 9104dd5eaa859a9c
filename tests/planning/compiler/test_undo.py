"""From 100 random scenarios, compiled and written, the text they were made from comes back, byte for byte."""

from dataclasses import replace
from pathlib import Path

import pytest

import hocket as hk
from command_line import good
from hocket.files import toml
from hocket.model.experiment import Experiment
from hocket.planning.compiler.accuracy import Accuracy
from hocket.planning.compiler.compiler import compile_level
from hocket.planning.compiler.distribution import Distribution
from hocket.planning.compiler.loop_pass import Loops
from hocket.planning.compiler.modularity import Modularity
from planning.compiler.random_links import links
from planning.compiler.random_scenes import hosted, orders, scene
from systems import SEED_BLOCKS

REMARKS = [
    "# as found",
    "# \"quoted\" and 'quoted', \\n is no new line, \\",
    "# '''three''' and \"\"\"three\"\"\"\n\n",
    "# Gänge: 3 µs, ½, 拍, \t tab",
    "#",
]


def drawn(seed):
    """A scenario of some kind, and the passes that are for it."""
    how = ("hold", "linear", "quadratic")[seed % 3]
    match seed % 5:
        case 0:
            return orders(scene(seed, loops=1 + seed % 2).level("50 ms", extrapolation=how), seed), [
                Loops("steps")
            ]
        case 1:
            return orders(scene(seed, loops=1).level("50 ms", extrapolation=how), seed), [Loops("outputs")]
        case 2:
            return links(seed).level("50 ms", ["jacobi", "gauss-seidel"][seed % 2]), None
        case 3:
            level = orders(scene(seed, deep=0.0).level("50 ms", extrapolation=how), seed)
            return hosted(level, seed), [Distribution("25 ms", how, [None, 2, 1e-6][seed % 3])]
    level = scene(seed, deep=0.0).level("50 ms", extrapolation=how)
    return level, [Accuracy(1, 1e-3, estimate=("richardson", "copy", "defect")[seed % 3])]


def remarked(level, seed):
    """The text of a scenario as somebody might have it: with remarks, and a name."""
    lines = toml.dumps(Experiment(level, stop=seed + 1)).splitlines()
    remark, last = REMARKS[seed % len(REMARKS)], ["", "\n", "\n# the end", "\n\n\t\n"][seed % 4]
    return "\n".join([remark, *lines]) + last


@pytest.mark.parametrize("seeds", SEED_BLOCKS, ids=str)
def test_the_text_and_the_compiled_scenario_come_back(seeds):
    for seed in seeds:
        level, passes = drawn(seed)
        text = remarked(level, seed)
        experiment = toml.loads(text)
        assert experiment.composite == level, seed
        made = compile_level(experiment.composite, passes)
        assert made.chapters
        assert made.original == level
        written = toml.dumps(replace(experiment, composite=made.level, original=text))
        again = toml.loads(written)
        assert again.original == text, seed
        assert again.composite == made.level, seed
        assert again.stop == seed + 1
        assert toml.dumps(again) == written, seed
        assert toml.loads(again.original).composite == level, seed


WORDS = {0: ["--pass", "loops(how=steps)"], 1: [], 2: [], 3: [], 4: ["--pass", "accuracy(stop=1)"]}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_on_the_command_line_too(seed, ends, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    level, _ = drawn(seed)
    before = remarked(level, seed).replace("\n", ends).encode()
    Path("car.toml").write_bytes(before)
    good("compile", "car.toml", *WORDS[seed % 5])
    good("compile", "car.compiled.toml", "--undo", "--out", "back.toml")
    assert Path("back.toml").read_bytes() == before
    assert hk.read("back.toml").composite == level
    good("compile", "car.compiled.toml", "--undo")
    assert Path("car.toml").read_bytes() == before


def test_needed_passes_are_found_without_being_named():
    level, _ = drawn(7)
    assert [chapter.by for chapter in compile_level(level).chapters] == ["modularity"]
    level, _ = drawn(8)
    assert [chapter.by for chapter in compile_level(level).chapters] == ["distribution"]
    level, _ = drawn(6)
    assert [chapter.by for chapter in compile_level(level).chapters] == ["loops"]
    assert Modularity().reasons(level) == []
