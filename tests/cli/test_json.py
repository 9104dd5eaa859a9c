"""`--json` of every verb fits the schema that is published, and exit codes are those of the help."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import jsonschema
import pytest

import hocket as hk
from command_line import good, invoked, refused, without_loads
from fmus.build import build
from hocket.cli.json_documents import KEYS, VERSION, document_schema, document_schema_text, json_document
from systems import EXAMPLES, ROOT

SCHEMA = jsonschema.Draft7Validator(document_schema())
TANK = """step = "50 ms"

[run]
stop = "3 s"

[models]
valve = { type = "step", at = "0 s" }
tank = { type = "transfer-function", numerator = [1.0], denominator = [1.5, 1.0] }

[connections]
"tank.u" = "valve.y"
"""
MEASURED = "t [s],tank.y\n" + "".join(f"{t / 10},{2 * (1 - math.exp(-t / 15)):.4f}\n" for t in range(1, 31))
"""A tank of gain 2 and lag 1.5 s."""
WORDS = {
    "run": ("masses.toml", "--stop", "1"),
    "check": ("masses.toml", "--stop", "1"),
    "compare": ("runs/a", "runs/b"),
    "study": (
        "two_masses.toml",
        "--uncertain",
        "second.A[2,1]=uniform(-0.2, -0.1)",
        "--runs",
        "4",
        "--no-estimate",
    ),
    "fit": ("tank.toml", "--data", "measured.csv", "--parameter", "tank.numerator[1]=0.5:5"),
    "nest": ("tuned_masses.toml",),
    "compile": ("massless_link.toml", "--out", "compiled.toml"),
    "tune": ("two_masses.toml", "--budget", "6", "--workers", "1"),
    "capabilities": ("car.toml",),
    "sweep": ("two_masses.toml", "--vary", "second.A[2,1]=-0.2:-0.1:2", "--stop", "1"),
    "show": ("car.toml",),
    "plan": ("car.toml",),
    "describe": ("car.toml",),
    "probe": ("second.fmu",),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    build("second", 2, folder=folder)
    (folder / "tank.toml").write_text(TANK)
    (folder / "measured.csv").write_text(MEASURED)
    for name in ("a", "b"):
        hk.run(folder / "masses.toml", 1, folder=folder / "runs" / name)
    return folder


def test_every_verb_with_json_has_a_schema():
    helped = {verb for verb in _verbs() if "--json" in invoked(verb, "--help").stdout}
    assert helped == set(KEYS) == set(WORDS)


def _verbs():
    from hocket.cli.app import VERBS

    return VERBS


@pytest.mark.parametrize("verb", WORDS)
def test_what_is_written_fits_the_schema(place, monkeypatch, verb):
    monkeypatch.chdir(place)
    if verb == "compile":
        (place / "compiled.toml").unlink(missing_ok=True)
    done = invoked(verb, *WORDS[verb], "--json", "-")
    assert done.exit_code in (0, 1, 3), done.output
    document = json.loads(done.stdout)  # nothing else stands on standard output
    SCHEMA.validate(document)
    assert (document["hocket_json"], document["verb"]) == (VERSION, verb)
    odd = [key for key in _fixed_keys(document) if not re.fullmatch("[a-z][a-z0-9_]*", key)]
    assert odd == []


def _fixed_keys(value):
    """Yield keys that are not names of the user's."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield key
            if key not in ("parameters", "final", "limits", "now", "spectral_radius_of_levels"):
                yield from _fixed_keys(each)
    elif isinstance(value, list):
        for each in value:
            yield from (key for key in _fixed_keys(each) if "." not in key)


def test_the_schema_is_published():
    jsonschema.Draft7Validator.check_schema(document_schema())
    assert (ROOT / "docs" / "hocket.answers.schema.json").read_text() == document_schema_text(), (
        "`make lists`"
    )
    assert json.loads(good("schema", "--answers")) == document_schema()


def test_what_lacks_a_key_does_not_fit():
    assert SCHEMA.is_valid(json_document("check", {"good": True, "outcome": "good", "verdict": []}))
    assert not SCHEMA.is_valid(json_document("check", {"good": True, "verdict": []}))
    assert not SCHEMA.is_valid({"verb": "check", "good": True, "outcome": "good", "verdict": []})


def test_names_of_the_user_stay_as_they_are():
    facts = {
        "spectral radius of levels": {"my-level": 0.5},
        "points": [{"My gain": 1.0, "spectral radius": float("inf")}],
        "front": [{"my-axle.step": 0.1, "of peak": 0.2}],
        "names": ["My gain"],
    }
    assert json_document("check", facts) == {
        "hocket_json": VERSION,
        "verb": "check",
        "spectral_radius_of_levels": {"my-level": 0.5},
        "points": [{"My gain": 1.0, "spectral_radius": None}],
        "front": [{"my-axle.step": 0.1, "of_peak": 0.2}],
        "names": ["My gain"],
    }


def test_a_table_on_standard_output(place, monkeypatch):
    monkeypatch.chdir(place)
    done = invoked("run", "masses.toml", "--stop", "1", "--csv", "-", "--folder", "runs/csv")
    assert (done.exit_code, without_loads(done.stderr)) == (0, "runs/csv\n")
    hk.open_run("runs/csv").to_csv("file.csv")
    assert done.stdout == Path("file.csv").read_text()
    assert good("export", "runs/csv", "-") == done.stdout
    swept = invoked(
        "sweep", "two_masses.toml", "--vary", "second.A[2,1]=-0.2,-0.1", "--stop", "1", "--csv", "-"
    )
    assert [line.split(",")[0] for line in swept.stdout.splitlines()] == ["run", "001", "002"]
    refused("run", "masses.toml", "--stop", "1", "--csv", "-", "--json", "-")


def test_exit_codes(place, monkeypatch):
    monkeypatch.chdir(place)
    assert invoked("check", "masses.toml").exit_code == 1
    assert invoked("check", "masses.toml", "--stop", "1", "--step", "1 ms").exit_code == 0
    assert invoked("run", "nowhere.toml").exit_code == 2
    assert invoked("compare", "runs/a", "nowhere").exit_code == 2
    assert invoked("compare", "runs/a", "runs/b").exit_code == 0


def test_a_run_keeps_the_hashes_of_its_files(place, monkeypatch):
    import hashlib

    monkeypatch.chdir(place)
    Path("drive.csv").write_text("time,x\n0,1\n")
    level = hk.Composite(
        hk.Scenario({"log": hk.Csv("drive.csv"), "f": hk.Fmu("second.fmu")}, {"f.force": "log.x"}), "10 ms"
    )
    run = hk.run(level, "20 ms", folder="runs/hashed")
    told = {each["model"]: each["sha256"] for each in run.info["sources"]}
    assert told == {
        "log": hashlib.sha256(b"time,x\n0,1\n").hexdigest(),
        "f": hashlib.sha256(Path("second.fmu").read_bytes()).hexdigest(),
    }
    hk.run("car.toml", "20 ms", folder="runs/code")
    (code,) = hk.open_run("runs/code").info["sources"]
    assert code["model"] == "skyhook"
    assert code["sha256"] == hashlib.sha256(Path("skyhook.py").read_bytes()).hexdigest()


def test_the_origin_of_a_file_reaches_its_run(place, monkeypatch, tmp_path):
    monkeypatch.chdir(place)
    text = Path("masses.toml").read_text()
    assert "[run]\n" in text
    (tmp_path / "dated.toml").write_text(text.replace("[run]\n", '[run]\norigin = "2024-01-01"\n', 1))
    run = hk.run(tmp_path / "dated.toml", 1, folder=tmp_path / "dated")
    assert str(run.to_pandas().index[0]) == "2024-01-01 00:00:00"
    assert str(hk.open_run(tmp_path / "dated").resample("day").index[0]) == "2024-01-01 00:00:00"
    (tmp_path / "odd.toml").write_text(text.replace("[run]\n", '[run]\norigin = "soon"\n', 1))
    assert "`soon` is not a moment" in refused("run", tmp_path / "odd.toml")
