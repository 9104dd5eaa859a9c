"""`--log-file` and `--verbose`; and exit codes: 0 good, 1 bad or failed, 2 wrong input, 3 not judged."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from command_line import good, invoked
from hocket.cli.app import VERBS
from systems import EXAMPLES

_DATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d (\w+) +(.*)")


def entries(path: Path) -> list[tuple[str, str]]:
    found = [_DATED.fullmatch(line) for line in path.read_text().splitlines()]
    assert all(found)
    return [(each[1], each[2]) for each in found if each]


def test_the_log_has_what_was_said_and_how_it_ended(folder):
    said = good("run", EXAMPLES / "two_masses.toml", "--log-file", "all.log", "--folder", "kept")
    kept = entries(folder / "all.log")
    assert kept[0][0] == "begin"
    assert [text for kind, text in kept if kind == "out"] == [line.strip() for line in said.splitlines()]
    assert any(
        kind == "info" and re.fullmatch(r"two_masses: steps took [\d.]+ s", text) for kind, text in kept
    )
    assert re.fullmatch(r"exit code 0 after [\d.]+ s", kept[-1][1])
    assert invoked("run", "none.toml", "--log-file", "all.log").exit_code == 2
    kept = entries(folder / "all.log")
    assert sum(kind == "begin" for kind, _ in kept) == 2  # one file for several commands
    assert ("err", "there is no file `none.toml`") in kept
    assert kept[-1][1].startswith("exit code 2 ")


def test_verbose_says_what_takes_how_long_on_stderr_only(folder):
    quiet = invoked("run", EXAMPLES / "two_masses.toml", "--quiet", "--folder", "one")
    loud = invoked("run", EXAMPLES / "two_masses.toml", "--quiet", "--folder", "two", "-v")
    assert (quiet.stderr, quiet.stdout.strip()) == ("", "one")
    assert loud.stdout.strip() == "two"
    assert re.fullmatch(r"two_masses: start took [\d.]+ s\ntwo_masses: steps took [\d.]+ s\n", loud.stderr)


@pytest.mark.parametrize("target", ["none/all.log", "."])
def test_a_log_that_cannot_be_written_is_refused_before_anything_runs(folder, target):
    done = invoked("run", EXAMPLES / "two_masses.toml", "--log-file", target)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert not (folder / "runs").exists()


READS_A_FILE = [verb for verb in VERBS if verb not in ("new", "schema", "compare", "fit", "sweep")]
MORE = {
    "compare": ("other.csv",),
    "fit": ("--data", "d.csv", "--parameter", "a=1"),
    "sweep": ("--vary", "k=1,2"),
}


@pytest.mark.parametrize("verb", [*READS_A_FILE, *MORE])
def test_a_file_that_is_not_there_is_wrong_input_for_every_verb(folder, verb):
    done = invoked(verb, "none.toml", *MORE.get(verb, ()))
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "schema"])
def test_an_option_that_is_not_there_is_wrong_input_for_every_verb(folder, verb):
    assert invoked(verb, "--no-such-option").exit_code == 2


def test_verbs_that_look_end_well(folder):
    shutil.copy(EXAMPLES / "two_masses.toml", folder)
    good("run", "two_masses.toml", "--folder", "kept")
    for words in (
        ("plan", "two_masses.toml"),
        ("show", "two_masses.toml"),
        ("describe", "two_masses.toml"),
        ("capabilities", "two_masses.toml"),
        ("compile", "two_masses.toml"),
        ("export", "kept", "rows.csv"),
        ("compare", "kept", "kept"),
        ("plot", "kept"),
        ("report", "kept"),
        ("schema",),
    ):
        assert invoked(*words).exit_code == 0, words


def test_verdicts_are_1_where_they_are_bad_and_3_where_there_is_none(folder):
    assert invoked("check", EXAMPLES / "masses.toml").exit_code == 1
    (folder / "relay.toml").write_text(
        'step = "10 ms"\n[run]\nstop = "1 s"\n'
        '[models.switch]\ntype = "relay"\nlow = 0.4\nhigh = 0.6\noff = 1.0\non = 0.0\n'
        '[models.lag]\ntype = "transfer-function"\nnumerator = [1.0]\ndenominator = [0.1, 1.0]\n'
        '[connections]\nlag.u = "switch.y"\nswitch.u = "lag.y"\n'
    )
    assert invoked("check", "relay.toml").exit_code == 3
    good("run", EXAMPLES / "two_masses.toml", "--folder", "fine")
    good("run", EXAMPLES / "two_masses.toml", "--folder", "coarse", "--step", "0.5 s")
    assert invoked("compare", "fine", "coarse").exit_code == 1
    (folder / "other.csv").write_text("time,none\n0,1\n50,1\n")
    assert invoked("compare", "other.csv", "fine").exit_code == 3


def test_a_run_that_fails_is_1_and_keeps_its_rows(folder):
    (folder / "plant.py").write_text(
        "class Plant:\n"
        "    inputs, outputs = [], ['y']\n"
        "    def start(self, t): pass\n"
        "    def output(self, t): return [t]\n"
        "    def step(self, t, h, u):\n"
        "        if t > 0.5: raise ValueError('too far')\n"
    )
    (folder / "plant.toml").write_text(
        'step = "0.1 s"\n[run]\nstop = "1 s"\n[models.p]\ntype = "python"\nclass = "plant.py:Plant"\n'
    )
    done = invoked("run", "plant.toml", "--folder", "kept", "--log-file", "run.log")
    assert done.exit_code == 1
    assert "too far" in done.stderr
    assert len(good("export", "kept", "-").splitlines()) > 5
    assert entries(folder / "run.log")[-1][1].startswith("exit code 1 ")
