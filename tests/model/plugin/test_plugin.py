"""A package with entry points adds an algorithm, an extrapolator, a simulator and an accelerator by name."""

import importlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import hocket as hk
from hocket.files.toml import dumps, loads
from hocket.files.toml.codec import schema
from hocket.model import registry
from hocket.planning.planner import plan_tree

HERE = Path(__file__).parent
SCENARIO = """
step = "0.1 s"
orchestrator = { type = "alphabetical", reverse = true }
extrapolation = { type = "damped-line", part = 0.25 }
[run]
stop = 1
[models.a]
type = "decay"
rate = 2
[models.b]
type = "decay"
rate = 1
x0 = 0.5
label = "slow"
[connections]
a.u = "b.x"
b.u = "a.x"
"""


def install(folder: Path) -> None:
    """Install the package as pip does: its module, and a folder with metadata and entry points."""
    shutil.copy(HERE / "hocket_plugin.py", folder)
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    info = folder / f"hocket_plugin-{project['version']}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(head)
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in points.items())])
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n\n".join(groups) + "\n")


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder)
    monkeypatch.syspath_prepend(folder)
    registry._entry_points.cache_clear()
    yield importlib.import_module("hocket_plugin")
    sys.modules.pop("hocket_plugin")
    registry._entry_points.cache_clear()


def test_a_file_uses_them(plugin: Any) -> None:
    experiment = loads(SCENARIO)
    assert experiment.composite.orchestrator == plugin.Alphabetical(reverse=True)
    assert experiment.composite.extrapolation == plugin.DampedLine(0.25)
    assert experiment.composite.scenario.models["b"] == plugin.Decay(1.0, 0.5, "slow")
    assert loads(dumps(experiment)) == experiment


def test_it_runs_as_it_would_with_hockets_own(plugin: Any) -> None:
    theirs = hk.run(loads(SCENARIO))
    own = loads(SCENARIO).composite.with_changes(orchestrator=hk.GaussSeidel(["b", "a"]))
    assert list(theirs["a.x"].values) == list(hk.run(own, stop=1)["a.x"].values)
    because = "the extrapolator DampedLine is written in Python"
    assert (theirs.info["engine"], theirs.info["why_interpreted"]) == ("interpreter", because)


def test_both_engines_agree_where_the_extrapolator_is_known(plugin: Any) -> None:
    experiment = loads(SCENARIO.replace('{ type = "damped-line", part = 0.25 }', '"linear"'))
    native, interpreter = (hk.run(experiment, engine=engine) for engine in ("native", "interpreter"))
    assert native.info["engine"] == "native"
    assert list(native["b.x"].values) == list(interpreter["b.x"].values)


def test_an_accelerator(plugin: Any) -> None:
    text = SCENARIO.replace(
        '{ type = "alphabetical", reverse = true }',
        '{ type = "iterate", inner = "alphabetical", accelerate = "halved" }',
    ).replace('{ type = "damped-line", part = 0.25 }', '"linear"')
    experiment = loads(text)
    run = hk.run(experiment)
    assert run.info["why_interpreted"] == "the accelerator Halved is written in Python"
    plain = experiment.composite.with_changes(orchestrator=hk.Iterate(plugin.Alphabetical()))
    assert run["a.x"].values == pytest.approx(hk.run(plain, stop=1)["a.x"].values, rel=1e-6)
    assert loads(dumps(experiment)) == experiment
    assert "led by Halved" in str(plan_tree(experiment.composite).plan)


def test_words_in_calls(plugin: Any) -> None:
    models = {"a": plugin.Decay(1.0), "b": plugin.Decay(2.0)}
    scenario = hk.Scenario(models, {"a.u": ("b.x", "damped-line"), "b.u": "a.x"})
    level = hk.Composite(scenario, "0.1 s", registry.look_up("orchestrators", "alphabetical"))
    assert hk.run(level, stop=1).status == "finished"


def test_the_schema_has_their_keys(plugin: Any) -> None:
    jsonschema.validate(tomllib.loads(SCENARIO), schema(), jsonschema.Draft7Validator)
    wrong = tomllib.loads(SCENARIO.replace("rate = 2", "rat = 2"))
    assert not jsonschema.Draft7Validator(schema()).is_valid(wrong)
    assert "whether z comes first" in json.dumps(schema())


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("reverse = true", "revers = true", "did you mean `reverse`?"),
        ("reverse = true", 'reverse = "yes"', "true or false"),
        ("reverse = true", 'last = ["c"]', "the order names `c`, which is not a model"),
        ("rate = 2", "", "`rate` is missing in `decay`"),
        ("rate = 2", 'rate = "fast"', "a number"),
        ('type = "decay"', 'type = "decai"', "did you mean `decay`?"),
        ('"alphabetical", reverse = true', '"broken"', "`broken` of the package `hocket-plugin` cannot be"),
    ],
)
def test_faults(plugin: Any, old: str, new: str, told: str) -> None:
    with pytest.raises(hk.ScenarioError) as caught:
        loads(SCENARIO.replace(old, new, 1))
    assert told in str(caught.value)


def test_without_the_package_they_are_not_known() -> None:
    registry._entry_points.cache_clear()
    with pytest.raises(hk.ScenarioError, match="there is no orchestrator `alphabetical`"):
        loads(SCENARIO)


def test_the_command_line_knows_them(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install(site)
    text = SCENARIO.replace('{ type = "alphabetical", reverse = true }', '"jacobi"')
    (tmp_path / "decay.toml").write_text(text)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    options = ["--algorithm", "alphabetical(reverse=true)", "--extrapolation", "damped-line(part=0.1)"]
    done = subprocess.run(
        [sys.executable, "-m", "hocket", "run", "decay.toml", *options],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "run by the interpreter, because the extrapolator DampedLine is written in Python" in done.stdout
    written = (tmp_path / "runs" / "decay-001" / "scenario.toml").read_text()
    assert 'orchestrator = { type = "alphabetical", reverse = true }' in written
    assert 'extrapolation = { type = "damped-line", part = 0.1 }' in written
