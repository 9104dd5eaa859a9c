"""`--algorithm` and `--extrapolation`: what is typed wins over the file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocket as hk
from command_line import good, refused
from systems import EXAMPLES

TWO = EXAMPLES / "two_masses.toml"
CAR = EXAMPLES / "car.toml"


def kept(folder: Path, *words: str) -> dict[str, Any]:
    """Return the scenario that a run with these options was made of."""
    good("run", *words, "--folder", folder)
    return tomllib.loads((folder / "scenario.toml").read_text())


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gauss-seidel", "gauss-seidel"),
        ("iterate()", "iterate"),
        (
            'iterate(tolerance=1e-6, accelerate="aitken")',
            {"type": "iterate", "tolerance": 1e-6, "accelerate": "aitken"},
        ),
        (
            "iterate(inner=gauss-seidel(order=[second, first]), accelerate=relax(factor=0.5))",
            {
                "type": "iterate",
                "inner": {"type": "gauss-seidel", "order": ["second", "first"]},
                "accelerate": {"type": "relax", "factor": 0.5},
            },
        ),
        ('{ type = "gauss-seidel", outputs = "stale" }', {"type": "gauss-seidel", "outputs": "stale"}),
        ("multirate(rates={first=4})", {"type": "multirate", "rates": {"first": 4}}),
        (
            "adaptive(inner=gauss-seidel, tolerance=1e-3, controller=PID, first=1/16)",
            {
                "type": "adaptive",
                "inner": "gauss-seidel",
                "tolerance": 1e-3,
                "controller": "PID",
                "first": "1/16",
            },
        ),
    ],
)
def test_the_folder_tells_what_was_run(tmp_path: Path, typed: str, meant: object) -> None:
    text = TWO.read_text()
    found = kept(tmp_path / "run", str(TWO), "--algorithm", typed, "--stop", "1")["orchestrator"]
    written = kept(tmp_path / "file", str(_with(tmp_path, text, meant)), "--stop", "1")["orchestrator"]
    assert found == written
    assert (found if isinstance(found, str) else found["type"]) == (
        meant if isinstance(meant, str) else meant["type"]  # type: ignore[index]
    )
    typed_run, file_run = hk.open_run(tmp_path / "run"), hk.open_run(tmp_path / "file")
    for port in file_run.ports:
        np.testing.assert_array_equal(typed_run[port].values, file_run[port].values)


def _with(folder: Path, text: str, meant: object) -> Path:
    """Return a file that says by itself what was typed for the other."""
    lines = [line for line in text.splitlines() if not line.startswith("orchestrator")]
    file = folder / "meant.toml"
    file.write_text("\n".join([f"orchestrator = {_toml(meant)}", *lines]))
    return file


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def test_levels_inside(tmp_path: Path) -> None:
    before = tomllib.loads(CAR.read_text())
    found = kept(
        tmp_path / "run", str(CAR), "--stop", "0.1", "--algorithm", "gauss-seidel",
        "--algorithm", "chassis.axle=gauss-seidel(outputs=stale)", "--extrapolation", "chassis=linear",
    )  # fmt: skip
    chassis = found["models"]["chassis"]
    assert found["orchestrator"] == "gauss-seidel"
    assert chassis["extrapolation"] == "linear"
    assert chassis["orchestrator"] == before["models"]["chassis"]["orchestrator"]
    assert chassis["models"]["axle"]["orchestrator"] == {"type": "gauss-seidel", "outputs": "stale"}


def test_other_verbs_take_it_too() -> None:
    assert "gauss-seidel (outputs = stale)" in good(
        "plan", TWO, "--algorithm", "gauss-seidel(outputs=stale)", "--extrapolation", "quadratic"
    )
    printed = good("check", TWO, "--algorithm", "iterate", "--no-robust")
    assert "iterations" in printed
    assert "iterations" not in good("check", TWO, "--algorithm", "jacobi", "--no-robust")


def test_an_extrapolation_changes_the_order() -> None:
    for word, order in (("hold", 1.0), ("linear", 2.0)):
        said = good("check", TWO, "--no-robust", "--extrapolation", word)
        measured = re.search(r"observed order ([0-9.]+)", said)
        assert measured is not None
        assert float(measured[1]) == pytest.approx(order, abs=0.05)


@pytest.mark.parametrize(
    ("option", "typed", "told"),
    [
        ("--algorithm", "gaus-seidel", ["no orchestrator `gaus-seidel`", "did you mean `gauss-seidel`?"]),
        ("--algorithm", "seventh", ["`jacobi`, `gauss-seidel`, `multirate`"]),
        ("--algorithm", "iterate(tolerence=1)", ["no key `tolerence`", "did you mean `tolerance`?"]),
        ("--algorithm", "iterate(tolerance=0)", ["a tolerance of 0.0 is never met"]),
        ("--algorithm", "iterate(tolerance=1e-6", ["cannot be read", "a bracket is not closed"]),
        ("--algorithm", "iterate(0.3)", ["cannot be read", "'iterate(tolerance=1e-6)'"]),
        ("--algorithm", "multirate(rates={firs=4})", ["a rate for `firs`", "did you mean `first`?"]),
        ("--algorithm", "gauss-seidel(order=[first])", ["the order leaves out `second`"]),
        ("--algorithm", "axle=jacobi", ["there is no level `axle`", "`--algorithm jacobi`"]),
        ("--extrapolation", "linaer", ["no extrapolation `linaer`", "did you mean `linear`?"]),
        ("--extrapolation", "polynomial", ["`degree` is missing"]),
    ],
)
def test_what_cannot_be_meant(option: str, typed: str, told: list[str]) -> None:
    said = refused("plan", TWO, option, typed)
    assert f"where:    {option} {typed}" in said
    assert all(part in said for part in told)


def test_all_faults_at_once_and_levels_offered() -> None:
    said = refused("plan", CAR, "--algorithm", "axle=jacobi", "--extrapolation", "linaer")
    assert "2 faults" in said
    assert "`chassis.axle`" in said


def test_steps_that_do_not_fit_are_told_of_what_was_typed() -> None:
    said = refused("plan", CAR, "--algorithm", "adaptive")
    assert "steps are chosen in parts of 1/1048576 of the step, and those of the level `chassis`" in said
    assert "where:    --algorithm adaptive" in said


def test_who_cannot_go_back_is_named() -> None:
    assert "`skyhook` cannot roll back" in refused("run", CAR, "--algorithm", "iterate")


def test_a_run_is_judged_as_it_was_run(tmp_path: Path) -> None:
    good("run", TWO, "--stop", "1", "--folder", tmp_path / "run")
    assert "`--algorithm` is for scenarios" in refused("check", tmp_path / "run", "--algorithm", "jacobi")
