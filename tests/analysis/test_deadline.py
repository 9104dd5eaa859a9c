"""Deadlines: bounds from declared execution times, and what is said of measured ones."""

from __future__ import annotations

import time
from typing import Any

import pytest

import hocket as hk
from command_line import good, invoked
from hocket.analysis.deadline import Deadline
from hocket.analysis.measure import Outcome
from hocket.files.toml import dumps, loads
from systems import lag


def ring(orchestrator: Any = "jacobi", step: str = "10 ms") -> hk.Composite:
    """Return two lags that drive each other."""
    scenario = hk.Scenario({"plant": lag(), "rig": lag()}, {"plant.u": "rig.y", "rig.u": "plant.y"})
    return hk.Composite(scenario, step, orchestrator)


def judged(composite: hk.Composite, deadline: float = 1.0, **wcet: str) -> Deadline:
    """Return the measure of a composite whose execution times are declared."""
    made = hk.check(hk.Experiment(composite, wcet=wcet), deadline=deadline, advise=False)
    found = made.get(Deadline)
    assert found is not None
    assert made.outcome >= found.outcome
    return found


def test_a_step_of_20_ms_in_a_level_of_10_ms_is_late() -> None:
    found = judged(ring(), plant="20 ms", rig="1 ms")
    assert found.worst == pytest.approx(21e-3)
    assert found.is_proven
    assert found.outcome == Outcome.BAD
    assert found.verdict() == [
        "real-time factor 0.476 in the worst case: deadline missed by `plant`, 0.02 s of each 0.01 s"
    ]


def test_what_is_in_time_is_told() -> None:
    found = judged(ring(), plant="2 ms", rig="3 ms")
    assert found.verdict() == ["real-time factor 2 in the worst case: every deadline of 0.01 s is kept"]
    assert found.outcome == Outcome.GOOD
    assert judged(ring(), 2.0, plant="2 ms", rig="3 ms").outcome == Outcome.GOOD
    assert judged(ring(), 2.01, plant="2 ms", rig="3 ms").outcome == Outcome.BAD


@pytest.mark.parametrize(
    ("orchestrator", "steps"),
    [
        ("gauss-seidel", {"plant": 1, "rig": 1}),
        (hk.Multirate({"rig": 4}), {"plant": 1, "rig": 4}),
        (hk.Iterate(tolerance=None, at_most=3), {"plant": 3, "rig": 3}),
        (hk.Iterate(tolerance=1e-6, at_most=7), {"plant": 7, "rig": 7}),
    ],
)
def test_every_step_counts_and_iterations_to_their_bound(orchestrator: Any, steps: dict[str, int]) -> None:
    found = judged(ring(orchestrator), plant="1 ms", rig="0.1 ms")
    assert {cost.path: cost.steps for cost in found.costs} == steps
    assert found.worst == pytest.approx(steps["plant"] * 1e-3 + steps["rig"] * 1e-4)


def test_levels_inside_count_as_often_as_they_step() -> None:
    pair = hk.Composite(hk.Scenario({"a": lag(), "b": lag()}, {"a.u": "b.y", "b.u": "a.y"}), "2 ms")
    outer = hk.Composite(hk.Scenario({"pair": pair, "slow": lag()}, {"slow.u": "pair.a.y"}), "10 ms")
    found = judged(outer, **{"pair.a": "1 ms", "pair.b": "0.5 ms", "slow": "1 ms"})
    assert found.worst == pytest.approx(5 * 1.5e-3 + 1e-3)
    assert found.late.path == "pair.a"


def test_steps_that_are_chosen_have_no_bound() -> None:
    found = judged(ring(hk.Adaptive(hk.Jacobi(), tolerance=1e-3)), plant="1 ms", rig="1 ms")
    assert found.outcome == Outcome.NOT_JUDGED
    assert not found.is_proven
    assert "not judged: the outermost level chooses its steps" in found.verdict()[0]


class Slow:
    """A simulator that takes 4 ms for each step."""

    def start(self, t: float) -> None:
        self.y = 0.0

    def step(self, t: float, h: float, u: Any) -> None:
        time.sleep(4e-3)

    def output(self, t: float, u: Any) -> Any:
        return [self.y]


def test_what_is_not_declared_is_measured_and_no_bound() -> None:
    slow = hk.Python(Slow, inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"slow": slow, "lag": lag()}, {"slow.u": "lag.y", "lag.u": "slow.y"})
    made = hk.check(hk.Composite(scenario, "2 ms"), deadline=1, advise=False, pilot=False)
    found = made.get(Deadline)
    assert found is not None
    assert not found.is_proven
    assert found.is_missed
    assert found.late.path == "slow"
    assert found.expected is not None
    assert found.expected >= 4e-3  # it sleeps for so long
    assert "that is no bound" in found.notes()[0]


def test_a_run_never_takes_longer_than_declared() -> None:
    """The bound of 400 steps that sleep: declared with room, it is never exceeded."""
    slow = hk.Python(Slow, inputs=["u"], outputs=["y"])
    scenario = hk.Scenario({"slow": slow, "lag": lag()}, {"slow.u": "lag.y", "lag.u": "slow.y"})
    found = judged(hk.Composite(scenario, "1/2"), slow="400 ms", lag="50 ms")
    assert found.worst == pytest.approx(0.45)
    assert found.outcome == Outcome.GOOD


def test_files_declare_execution_times(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = dumps(hk.Experiment(ring(), stop=1, wcet={"plant": "20 ms", "rig": "1 ms"}))
    assert 'plant = "20 ms"' in text
    again = loads(text)
    assert again.wcet == hk.Experiment(ring(), wcet={"plant": 0.02, "rig": "1 ms"}).wcet
    (tmp_path / "ring.toml").write_text(text)
    result = invoked("check", "ring.toml", "--deadline", "1")
    assert result.exit_code == 1
    assert "deadline missed by `plant`" in result.stdout
    assert "deadline" not in good("check", "ring.toml")
    (tmp_path / "wrong.toml").write_text(text.replace("20 ms", "soon"))
    said = invoked("check", "wrong.toml")
    assert said.exit_code == 2
    assert "wrong.toml, line" in said.stderr


@pytest.mark.parametrize(
    ("wcet", "deadline", "message"),
    [
        ({"plnt": "1 ms"}, 1.0, "there is no simulator `plnt`"),
        ({"plant": "0 ms"}, 1.0, "is not an execution time"),
        ({"plant": "-1 ms"}, 1.0, "is not an execution time"),
        ({"plant": []}, 1.0, "is not an execution time"),
        (3, 1.0, "wcet"),
        ({}, 0, "deadline"),
        ({}, "soon", "deadline"),
        ({}, float("nan"), "deadline"),
    ],
)
def test_what_is_wrong_is_said(wcet: Any, deadline: Any, message: str) -> None:
    with pytest.raises(hk.ScenarioError, match=message):
        hk.check(hk.Experiment(ring(), wcet=wcet), deadline=deadline)
