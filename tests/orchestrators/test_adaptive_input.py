"""Step control: what is refused, what files keep, what is told, and what the linear reading says."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import hocket
from command_line import good
from fmus.build import build
from hocket import (
    Composite,
    ConvergenceError,
    Fmu,
    GaussSeidel,
    Iterate,
    Jacobi,
    Scenario,
    ScenarioError,
    Table,
)
from hocket.analysis.linear_reading import read_linear
from hocket.files.toml import dumps, loads
from hocket.model.clock import seconds
from hocket.orchestrators.adaptive import Adaptive
from hocket.planning.planner import plan_tree
from orchestrators.test_adaptive import PAIR, steps
from systems import ENGINES, lag

# what cannot be done


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tolerance_that_no_step_meets(engine):
    control = Adaptive(Jacobi(), 1e-6, quantum="1/64", on_jump="stop")
    jump = Scenario(
        {"jump": Table([0, 1, 1.001, 2], {"y": [0, 0, 1, 1]}), "a": lag(1.0, 1.0, 0.0)}, {"a.u": "jump.y"}
    )
    with pytest.raises(ConvergenceError) as caught:
        hocket.run(Composite(jump, 1, control), 2, engine=engine)
    text = str(caught.value)
    assert "the error is 1e+06 times the tolerance with the smallest step of 0.015625 s" in text
    assert "step from t = 1.0 s" in text
    assert "an error of 1e-06" in text
    assert "a larger tolerance, or a smaller `quantum`" in text
    assert 'on_jump = "pass"' in text


def jumping(control, times=(1,), step=1, rise=1e-9):
    """A lag behind a source that is 0, then 1, then 0 ...: x = 1 - exp(1 - t) behind the first jump."""
    table, y = [0.0], [0.0]
    for number, t in enumerate(times):
        table += [t, t + rise]
        y += [number % 2, (number + 1) % 2]
    source = Table([*table, 4], {"y": [*y, y[-1]]})
    return Composite(Scenario({"jump": source, "a": lag(1.0, 1.0, 0.0)}, {"a.u": "jump.y"}), step, control)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_jump_is_passed_and_noted(engine):
    control = Adaptive(Jacobi(), 1e-4, quantum="1/16384")
    run = hocket.run(jumping(control), 4, engine=engine)
    assert run.final("a.y") == pytest.approx(1 - math.exp(-3), abs=3e-4)
    counted = run.info["counts"]["adapted"][""]
    assert 1 <= counted["passed"] <= 4
    assert abs(counted["passed_at"] - 1) <= 2 / 16384
    (note,) = [note for note in run.info["notes"] if "on_jump" in note]
    assert f"at t = {counted['passed_at']!r} s" in note


@pytest.mark.parametrize("engine", ENGINES)
def test_several_jumps_are_passed_one_after_the_other(engine):
    run = hocket.run(
        jumping(Adaptive(Jacobi(), 1e-3, quantum="1/4096"), (1, 1.7, 2.2), 0.25), 4, engine=engine
    )
    exact = (1 - math.exp(-0.7)) * math.exp(-2.3) + 1 - math.exp(-1.8)
    assert run.final("a.y") == pytest.approx(exact, abs=3e-3)
    assert run.info["counts"]["adapted"][""]["passed"] >= 3


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_that_stays_is_not_a_jump(engine):
    """Oscillators that no smallest step follows: the run ends, whatever is done at jumps."""
    with pytest.raises(ConvergenceError, match="the smallest step"):
        hocket.run(Composite(PAIR, 1, Adaptive(Jacobi(), 1e-9, quantum="1/64")), 2, engine=engine)


def test_both_engines_pass_jumps_with_the_same_bits():
    control = Adaptive(Jacobi(), 1e-4, quantum="1/16384")
    one, other = (hocket.run(jumping(control, (1, 2.5)), 4, engine=engine) for engine in ENGINES)
    assert one["a.y"].values.tolist() == other["a.y"].values.tolist()
    assert one.info["counts"]["adapted"] == other.info["counts"]["adapted"]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"tolerance": 0}, "a tolerance of 0 is never met"),
        ({"tolerance": -1e-3}, "a tolerance of -0.001 is never met"),
        ({"tolerance": float("nan")}, "a tolerance of nan is never met"),
        ({"tolerance": "small"}, "a tolerance of 'small' is never met"),
        ({"quantum": 1 / 3.5}, "a quantum of 2/7 of the step"),
        ({"quantum": 0}, "a quantum of 0 of the step"),
        ({"quantum": "1 ms"}, "a quantum of 1 ms of the step"),
        ({"quantum": "1/100", "first": "1/64"}, "a first step of 1/64 of the level's"),
        ({"first": 2}, "a first step of 2 of the level's"),
        ({"estimate": "defects"}, "did you mean `defect`?"),
        ({"controller": "PD"}, "`controller` cannot be 'PD'"),
        ({"per": "second"}, '"unit" or "step"'),
        ({"inner": "jacobi"}, "is not an orchestrator"),
        ({"inner": Adaptive()}, "a step control of a step control"),
        ({"estimate": "orders", "rejects": True}, "nothing is rejected"),
    ],
)
def test_bad_input(how, said):
    with pytest.raises(ScenarioError) as caught:
        Adaptive(**how)
    assert said in str(caught.value)


def test_all_faults_are_told_at_once():
    with pytest.raises(ScenarioError, match="4 faults"):
        Adaptive(tolerance=0, estimate="x", per="y", quantum=0)


def test_parts_may_be_written_as_people_do():
    assert Adaptive(quantum="1/1024", first=0.125) == Adaptive(
        quantum=Fraction(1, 1024), first=Fraction(1, 8)
    )
    assert Adaptive(quantum=0.1, first=0.1).quantum == Fraction(1, 10)


def test_a_fixed_step_fmu_is_refused(tmp_path):
    fmu = Fmu(build("rigid", 3, folder=tmp_path))
    assert not fmu.capabilities.variable_step
    with pytest.raises(ScenarioError, match=r"`rigid`.*accepts only whole ones") as caught:
        plan_tree(Composite(Scenario({"rigid": fmu}), 1, Adaptive()))
    assert "variable_step" in str(caught.value)


def test_an_fmu_that_stops_at_an_event_is_met_there(tmp_path):
    """A ball falls from 1 m and keeps 0.7 of its speed, whoever else makes which steps."""
    composite = Composite(Scenario({"ball": Fmu(build("ball", 3, folder=tmp_path))}), "0.1 s", Adaptive())
    bounce = (2 / 9.81) ** 0.5
    s = 1.0 - bounce
    expected = 0.7 * 9.81 * bounce * s - 9.81 / 2 * s**2
    run = hocket.run(composite, 1)
    assert run.final("ball.h") == pytest.approx(expected, abs=1e-12)
    assert np.abs(run["ball.h"].t - bounce).min() < 1e-12


# files and the linear reading


@pytest.mark.parametrize(
    "control",
    [
        Adaptive(),
        Adaptive(
            GaussSeidel(["b", "a"]), 1e-6, "richardson", "PID", "step", Fraction(1, 729), Fraction(1, 27)
        ),
        Adaptive(Iterate(GaussSeidel(), 1e-9, 9, "aitken"), estimate="orders", rejects=False),
        Adaptive(rejects=True),
    ],
)
def test_a_file_keeps_it(control):
    composite = Composite(PAIR, "0.5 s", control)
    assert loads(dumps(composite)).composite == composite


def test_the_file_of_the_documentation():
    written = (
        'orchestrator = { type = "adaptive", inner = "gauss-seidel", tolerance = 1e-6, first = "1/128" }'
    )
    experiment = loads(f"step = 1\n{written}\n[models]", check=False)
    assert experiment.composite.orchestrator == Adaptive(GaussSeidel(), 1e-6, first=Fraction(1, 128))


def test_the_command_line_tells_how_many_steps_there_were(tmp_path):
    file = tmp_path / "pair.toml"
    file.write_text(dumps(Composite(PAIR, "0.5 s", Adaptive(Jacobi(), 1e-2, quantum="1/1000", first="1/10"))))
    counted = steps(hocket.run(hocket.read(file), 5))
    said = good("run", file, "--stop", "5 s", "--folder", tmp_path / "run")
    (told,) = (line for line in said.splitlines() if line.startswith("adapted: "))
    how_many, _, how_long = told.rpartition(", ")
    assert how_many == f"adapted: outermost, {counted['accepted']} steps, {counted['rejected']} rejected"
    lengths = how_long.split(" to ")
    expected = [counted["shortest"], counted["longest"]]
    assert [float(seconds(each)) for each in lengths] == pytest.approx(expected, rel=5e-3)
    assert all(1 <= float(each.split()[0]) < 1000 for each in lengths), "in the unit that suits it"


@pytest.mark.parametrize("extrapolation", ["hold", "linear"])
@pytest.mark.parametrize("estimate", ["defect", "orders", "richardson"])
def test_the_linear_reading_is_that_of_the_first_step(estimate, extrapolation):
    """Eight steps of an eighth, and the samples that the control keeps beside them count for nothing."""
    control = Adaptive(GaussSeidel(["a", "b"]), 1e-3, estimate, first=Fraction(1, 8))
    frozen = read_linear(Composite(PAIR, 1, control, extrapolation))
    fixed = read_linear(Composite(PAIR, Fraction(1, 8), control.inner, extrapolation))
    found, expected = (
        np.sort_complex(np.linalg.eigvals(Phi)) for Phi in (frozen.Phi, np.linalg.matrix_power(fixed.Phi, 8))
    )
    assert found[np.abs(found) > 1e-9] == pytest.approx(expected[np.abs(expected) > 1e-9], rel=1e-9)
    whole = read_linear(Composite(PAIR, 1, replace(control, first=Fraction(1)), extrapolation))
    other = read_linear(Composite(PAIR, 1, control.inner, extrapolation))
    assert np.abs(np.linalg.eigvals(whole.Phi)).max() == pytest.approx(
        np.abs(np.linalg.eigvals(other.Phi)).max(), rel=1e-9
    )
