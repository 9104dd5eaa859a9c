"""The layout of the source, read off it: imports go upwards, modules form no cycle, names name something."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from functools import cache

import pytest

import hocket
from systems import ROOT

ORDER = [
    "errors", "model", "coupling", "plan", "orchestrators", "simulators", "planning", "engine", "files",
    "execution", "analysis", "blocks", "search", "report", "testing", "cli",
]  # fmt: skip
"""What stands at the top; each imports only from those before it."""

FORBIDDEN = {"utils", "common", "helpers", "core", "base", "manager"}


@cache
def tools():
    """Return `tools/house.py`, which counts what is measured here."""
    spec = importlib.util.spec_from_file_location("house", ROOT / "tools" / "house.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["house"] = module
    spec.loader.exec_module(module)
    return module


@cache
def house():
    return tools().House(ROOT)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_entry_at_the_top_stands_in_the_order():
    tops = {name.removesuffix(".py") for name in tools().top_entries(house())}
    assert tops == set(ORDER)
    assert not {part for name in house().modules for part in name.split(".")} & FORBIDDEN


def test_modules_import_only_from_above():
    """At the top, in functions and for the type checker: all count."""
    rank = {name: number for number, name in enumerate(ORDER)}
    assert not [
        f"{name} imports {other}"
        for name, others in house().imports.items()
        for other in sorted(others)
        if room(name) in rank and room(other) in rank and rank[room(other)] > rank[room(name)]
    ]


@pytest.mark.parametrize("title", tools().MEASURES)
def test_the_house_keeps_its_limits(title):
    """The limits stand in `tools/house.py`; `python tools/house.py --list MEASURE` names what was counted."""
    measure = tools().MEASURES[title]
    found = measure.count(house())
    assert measure.holds(measure.sum_up(found)), found[:40]


def test_weight_is_measured_as_it_is(tmp_path):
    """Two modules: what is too long, or written twice, is named; what is not code does not count."""
    block = [f"    total += part_{number}(total)" for number in range(8)]
    words = [f"    line {number} of a docstring" for number in range(90)]
    once = ["def once(total):", *block, "    return total"]
    short = [
        "def told(total):",
        '    """Say it.',
        *words,
        '    """',
        *block[:7],
        "",
        "    # why",
        "    return 1",
    ]
    long = ["def long(total):", *[f"    total = {number}" for number in range(81)]]
    source = tmp_path / "src" / "hocket"
    source.mkdir(parents=True)
    (source / "first.py").write_text("\n".join([*once, *short]) + "\n")
    (source / "second.py").write_text("\n".join([*once, *long, *["limit = 1"] * 518]) + "\n")
    small = tools().House(tmp_path)
    assert tools().long_functions(small) == ["81 hocket.second: long"]
    assert tools().module_sizes(small) == ["610 hocket.second", "113 hocket.first"]
    assert tools().long_modules(small) == ["610 hocket.second"]
    assert tools().mean(tools().module_sizes(small)) == 362  # 361.5, to the even one
    assert tools().repeated_blocks(small)[:1] == ["hocket.second:1 as hocket.first:1"]


def test_every_module_says_what_goes_in_and_out():
    docstrings = {name: ast.get_docstring(tree) or "" for name, tree in house().trees.items()}
    assert not [name for name, text in docstrings.items() if "In:" not in text or "Out:" not in text]


def test_the_architecture_lists_every_module():
    """`python tools/house.py --modules` prints what stands at its end."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert text.endswith(tools().module_list(house())), "run `make lists`"


def test_native_code_names_python_files_that_exist():
    named = [
        (path.name, match)
        for path in sorted((ROOT / "native").rglob("*.?pp"))
        for match in re.findall(r"[a-z_/]+\.py\b", path.read_text())
    ]
    assert len(named) > 20
    assert not [each for each in named if not (ROOT / "src" / "hocket" / each[1]).exists()]


def test_few_public_names():
    # came with: events 5, studies 1, error budgets 1, stepping 2, schedules and comparisons 2, fits 1,
    # environments and control 2, semi-implicit coupling 2, hosts 2, waveforms 1, residual form 1
    assert len(hocket.__all__) <= 64
    assert all(hasattr(hocket, name) for name in hocket.__all__)


def test_tests_stand_where_the_source_does():
    """A folder of tests is named after a room, or after what it shows about several of them."""
    across = {"laws", "scenarios", "order", "native", "energy", "fuzz", "stories"}
    material = {"fmus", "golden", "plugin"}
    rooms = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert rooms - across - material <= set(ORDER)
