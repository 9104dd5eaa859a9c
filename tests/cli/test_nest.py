"""`hocket nest`: verdicts, tables, files, pictures, JSON and exit codes."""

import json
from fractions import Fraction

import pytest

import hocket
from command_line import good, invoked, refused
from hocket.files.toml import read, write
from hocket.model.experiment import Experiment
from systems import three_masses


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The three scenarios of the thesis, flat at 0.1 s, to run for ten seconds."""
    made = tmp_path_factory.mktemp("three")
    for number in (1, 2, 3):
        write(Experiment(three_masses(number, "0.1 s"), stop=Fraction(10)), made / f"three{number}.toml")
    return made


def test_the_verdict_the_tables_and_the_file(folder, tmp_path):
    out, picture = tmp_path / "nested.toml", tmp_path / "clusters.png"
    lines = good("nest", folder / "three2.toml", "--out", out, "--plot", picture).splitlines()
    assert lines[0].startswith("nesting helps: {first, {second, third}} at ")
    assert lines[1].startswith("as it is: an error of ")
    assert "coupling strengths" in lines
    assert "compared" in lines
    assert any(line.startswith("nested, chosen") for line in lines)
    assert any(line.startswith("flat, now") for line in lines)
    assert lines[-2:] == [f"wrote {picture}", f"wrote {out}"]
    assert picture.stat().st_size > 10_000
    experiment = read(out)
    assert list(experiment.composite.scenario.models) == ["first", "second_third"]
    assert experiment.composite.scenario.inserted["second_third"].by == "nesting"
    assert experiment.stop == 10
    run = hocket.run(out)
    assert "second_third.third.x" in run.ports


def test_where_nesting_does_not_help(folder):
    lines = good("nest", folder / "three3.toml").splitlines()
    assert lines[0].startswith("nesting does not help: ")
    assert lines[1].startswith("what helps: flat at ")
    assert "unstable" in lines[2]


def test_nothing_better_is_nothing_written(folder, tmp_path):
    out = tmp_path / "nested.toml"
    done = invoked("nest", folder / "three3.toml", "--keep", "--out", out)
    assert done.exit_code == 1
    assert "nothing that was tried is better than the scenario as it is" in done.stdout
    assert "nothing was written" in done.stderr
    assert not out.exists()


def test_a_tolerance_and_the_facts_as_json(folder):
    facts = json.loads(
        good(
            "nest",
            folder / "three2.toml",
            "--tolerance",
            "0.1",
            "--algorithm",
            "gauss-seidel",
            "--keep",
            "--json",
            "-",
        )
    )
    assert facts["tolerance"] == 0.1
    assert facts["clusters"] == [["first"], ["second", "third"]]
    assert any(line.startswith("the tolerance 0.1 is kept with ") for line in facts["verdict"])
    chosen = [row for row in facts["compared"] if row["chosen"].endswith("chosen")]
    assert len(chosen) == 1
    assert chosen[0]["error"] <= 0.1
    assert {row["connection"] for row in facts["strengths"]} >= {"second.x -> third.x2"}


def test_more_work_makes_it_better(folder):
    def chosen(*words):
        facts = json.loads(good("nest", folder / "three2.toml", "--keep", "--json", "-", *words))
        return next(row for row in facts["compared"] if row["chosen"].endswith("chosen"))

    least, more = chosen(), chosen("--work", "2")
    assert least["exchanges_1_s"] <= 60
    assert 60 < more["exchanges_1_s"] <= 120
    assert more["error"] < least["error"]


def test_refusals(folder, tmp_path):
    flat = folder / "three1.toml"
    assert "a tolerance of -1.0 cannot be kept" in refused("nest", flat, "--tolerance", "-1")
    assert "is the scenario itself" in refused("nest", flat, "--out", flat)
    assert "is not a name for a scenario" in refused("nest", flat, "--out", tmp_path / "x.ssp")
    assert "there is no folder" in refused("nest", flat, "--out", tmp_path / "none" / "x.toml")
    assert "three simulators at least" in refused("nest", "examples/two_masses.toml")
    assert "is not a duration" in refused("nest", flat, "--stop", "soon")
    for option, value in (("--tolerance", "nan"), ("--work", "0"), ("--stop", "0")):
        assert f"where:    {option}\n" in refused("nest", flat, option, value)
