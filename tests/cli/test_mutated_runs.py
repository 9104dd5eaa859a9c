"""Mutated run folders through every verb that reads them: an answer or an error in words, and no crash."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hocket as hk
from command_line import good, invoked
from files.test_damaged_runs import DAMAGES, damage
from hocket.files.run_facts import seal
from systems import EXAMPLES, rewrite_run

JUNK = [
    None,
    True,
    -1,
    0,
    10**30,
    1e300,
    float("nan"),
    "",
    "x" * 300,
    "\x1b[2J<b>",
    [],
    [[]],
    {},
    {"a": {"b": [1]}},
]


def mutate_values(value, dice):
    """Return JSON with one value somewhere in it replaced, removed or doubled."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key = dice.choice(sorted(value))
        if dice.random() < 0.2:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: mutate_values(value[key], dice)}
    if isinstance(value, list) and value and dice.random() < 0.7:
        place = dice.randrange(len(value))
        return [*value[:place], mutate_values(value[place], dice), *value[place + dice.choice([0, 1]) :]]
    return dice.choice(JUNK)


def mutate(folder, number):
    """Damage a run folder: bytes of any file, or values of its JSON files with checksums that fit."""
    dice = random.Random(number)
    if number % 3 == 0:
        return damage(folder, DAMAGES[number // 3 % len(DAMAGES)], dice)
    if number % 3 == 1:
        file = folder / dice.choice(["run.json", "run.json", "trust.json"])
        facts = mutate_values(json.loads(file.read_text()), dice)
        file.write_text(seal(facts) if isinstance(facts, dict) else json.dumps(facts))
        return f"values of {file.name}"
    text = (folder / "scenario.toml").read_text()
    lines = text.splitlines()
    del lines[dice.randrange(len(lines))]
    (folder / "scenario.toml").write_text("\n".join(lines))
    rewrite_run(
        folder, **{dice.choice(["tables", "notes", "counts", "bonds", "stop", "engine"]): dice.choice(JUNK)}
    )
    return "scenario and facts"


def check_mutants(tmp_path, numbers, timeout):
    whole = tmp_path / "whole"
    good("run", EXAMPLES / "spring_mass.toml", "--stop", "2", "--ledger", "--folder", whole)
    invoked("check", whole)
    jobs, about = [], {}
    for number in numbers:
        folder = tmp_path / f"run{number}"
        shutil.copytree(whole, folder)
        about[str(folder)] = mutate(folder, number)
        for words in (("export", folder, tmp_path / "x.csv"), ("report", folder), ("check", folder)):
            jobs.append([str(word) for word in words])
        if number % 5 == 0:
            jobs.append(["plot", str(folder), "--out", str(tmp_path / "p.png")])
    driver = Path(__file__).with_name("hostile_driver.py")
    paths = [str(Path(__file__).parents[1]), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, str(driver)],
        input=json.dumps(jobs),
        capture_output=True, text=True, timeout=timeout,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{jobs[len(answers)]}: {done.stderr[-2000:]}"
    assert len(answers) == len(jobs)
    for answer in answers:
        story = f"{answer['words']} ({about[answer['words'][1]]}): {answer['said']}"
        assert answer["crash"] == "", story
        assert "This is a fault of hocket's own" not in answer["said"], story
        assert "Traceback" not in answer["said"], story
        assert answer["took"] < 30, story
    assert {answer["code"] for answer in answers} >= {0, 2}


def test_mutated_runs(tmp_path):
    check_mutants(tmp_path, range(12), 200)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 600, 100))
def test_many_mutated_runs(tmp_path, first):
    check_mutants(tmp_path, range(first, first + 100), 1500)


def test_python_reads_mutated_runs_or_says_why_not(tmp_path):
    whole = tmp_path / "whole"
    good("run", EXAMPLES / "spring_mass.toml", "--stop", "2", "--folder", whole)
    invoked("check", whole)
    for number in range(60):
        folder = tmp_path / "run"
        shutil.copytree(whole, folder)
        mutate(folder, 1000 + number)
        try:
            run = hk.open_run(folder)
            _ = run.status, repr(run), run.ports, run.tables, run.size_text, run.integrity_notes
            for port in run.ports:
                _ = run[port], run.final(port)
        except hk.HocketError as error:
            told = str(error)
            assert told
        shutil.rmtree(folder)
