"""The documentation: blocks of Python run and print what stands below them; commands have their options."""

import io
import re
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from command_line import invoked
from fmus.build import build
from systems import EXAMPLES, ROOT

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
_BLOCK = re.compile(r'^```python\n(.*?)^```\n(?:\n```text title="prints"\n(.*?)^```)?', re.S | re.M)
_COMMAND = re.compile(r"^ {4}(?:\$ )?hocket ([a-z]+)([^#\n]*)", re.M)


def _without_hosts(name: str) -> dict[str, Any]:
    scenario = hk.read(name).composite.scenario
    plain = replace(scenario, hosts=None)
    return {"scenario": plain, "wires": scenario.connections, **scenario.models}


def _couple_bond() -> dict[str, Any]:
    mass = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], inputs=["f [N]"], outputs=["v [m/s]"])
    spring = hk.StateSpace([[0.0]], [[1.0]], [[1.0]], inputs=["v [m/s]"], outputs=["f [N]"])
    return {
        "models": {"mass": mass, "spring": spring},
        "connections": {"mass.f": "spring.f", "spring.v": "mass.v"},
    }


def _keep_car() -> dict[str, Any]:
    return {"run": hk.run("car.toml", folder="runs/car-001"), "experiment": hk.read("car.toml")}


def _new_file() -> dict[str, Any]:
    invoked("new", "demo.toml")
    return {}


SETTINGS: dict[str, Callable[[], dict[str, Any]]] = {
    "accuracy_pass.md": lambda: _without_hosts("two_hosts.toml"),
    "check.md": _keep_car,
    "constraints.md": lambda: _without_hosts("massless_link.toml"),
    "distribution.md": lambda: _without_hosts("two_hosts.toml"),
    "energy.md": _couple_bond,
    "README.md": _new_file,
    "nesting.md": lambda: {"composite": hk.read("tuned_masses.toml").composite},
    "report.md": _keep_car,
    "results.md": _keep_car,
}
"""What the text of a page speaks of before its code does."""
FOREIGN = {"fmus.md": "bus.fmu", "ssp.md": "Rain.ssd"}
"""Files that only somebody else has: a block that reads one is compiled, and not run."""


def blocks(page: Path) -> list[tuple[int, str, str | None]]:
    text = page.read_text()
    return [(text[: found.start()].count("\n") + 1, found[1], found[2]) for found in _BLOCK.finditer(text)]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_code_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    for name in ("first", "second"):
        if f"{name}.fmu" in page.read_text():
            build(name, 2, folder=tmp_path)
    composite = hk.read("masses.toml").composite
    names = {"hk": hk, "composite": composite, "scenario": composite.scenario, "__name__": "page"}
    names |= SETTINGS.get(page.name, dict)()
    for line, code, printed in blocks(page):
        program = compile(code, f"{page.name}:{line}", "exec")
        if FOREIGN.get(page.name, page.name) in code:
            continue
        output = io.StringIO()
        with redirect_stdout(output):
            exec(program, names)
        if printed is not None:
            assert output.getvalue() == printed, f"{page.name}, line {line}"


def test_pages_show_what_their_code_prints():
    """Of tutorials: whoever reads them sees the result."""
    for page in (ROOT / "docs/tutorials").glob("*.md"):
        assert all(printed or "print(" not in code for _, code, printed in blocks(page)), page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_exist(page):
    for verb, words in _COMMAND.findall(page.read_text()):
        shown = invoked(verb, "--help").output
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", words):
            assert option in shown, f"hocket {verb} has no {option}"
