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
    "execution", "analysis", "search", "report", "testing", "cli",
]  # fmt: skip
"""What stands at the top; each imports only from those before it."""

FORBIDDEN = {"utils", "common", "helpers", "core", "base", "manager"}
TO_DO = {
    "lines of Python": "52,900: two rounds over all rooms found no more that could go without capability",
}
"""Limits that do not hold: strict, so that whoever keeps one must strike it out here."""


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


@pytest.mark.parametrize(
    "measure",
    [
        pytest.param(
            title, marks=pytest.mark.xfail(strict=True, reason=TO_DO[title]) if title in TO_DO else ()
        )
        for title in tools().MEASURES
    ],
)
def test_the_house_keeps_its_limits(measure):
    """The limits stand in `tools/house.py`; `python tools/house.py --list MEASURE` names what was counted."""
    count, at_most = tools().MEASURES[measure].count, tools().MEASURES[measure].at_most
    found = count(house())
    assert at_most is None or len(found) <= at_most, found[:40]


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
    assert len(hocket.__all__) <= 41
    assert all(hasattr(hocket, name) for name in hocket.__all__)


def test_tests_stand_where_the_source_does():
    """A folder of tests is named after a room, or after what it shows about several of them."""
    across = {"laws", "scenarios", "order", "native", "energy", "fuzz"}
    material = {"fmus", "golden", "plugin"}
    rooms = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert rooms - across - material <= set(ORDER)
