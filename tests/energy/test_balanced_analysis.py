"""The analysis of balanced bonds tells of what is in the scenario, not of what the bonds tell each other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hocket as hk
from energy.systems import spring_mass
from hocket.analysis.bond_energy import run_bond_trial
from hocket.analysis.classification import classify
from hocket.analysis.defect_estimate import connection_gaps, uncovered_errors
from hocket.analysis.error_prediction import predicted_order
from hocket.analysis.posedness import posedness
from hocket.analysis.run_error import estimate_run_error
from hocket.model.experiment import Experiment
from systems import spring

STOP = Fraction(4)
FORMS = ("energy", "inversion")


def mass(*inputs: str) -> Any:
    return hk.StateSpace(
        [[0.0]], [[1.0] * len(inputs)], [[1.0]], x0=[0.5], energy=[[1.0]],
        inputs=[f"{name} [N]" for name in inputs], outputs=["v [m/s]"],
    )  # fmt: skip


def chain(balance: Any, how: Any = "linear", step: str = "0.1") -> hk.Composite:
    """A mass between two springs: with all that balanced bonds tell each other."""
    models = {"left": spring(energy=1.0), "mass": mass("a", "b"), "right": spring(energy=1.0)}
    wired = {"mass.a": "left.f", "left.v": "mass.v", "mass.b": "right.f", "right.v": "mass.v"}
    ends = {"one": ("mass.a", "left.v"), "two": ("mass.b", "right.v")}
    bonds = {name: hk.Bond(*each, balance=balance) for name, each in ends.items()}
    return hk.Composite(hk.Scenario(models, wired, bonds=bonds), step, extrapolation=how)


def in_a_level(balance: Any) -> hk.Composite:
    """The mass in a level with shorter steps, so that connections go through its border."""
    inner = hk.Composite(hk.Scenario({"mass": mass("f")}), "0.05", extrapolation="linear")
    wired = {"axle.mass.f": "spring.f", "spring.v": "axle.mass.v"}
    bonds = {"joint": hk.Bond("axle.mass.f", "spring.v", balance=balance)}
    return hk.Composite(
        hk.Scenario({"axle": inner, "spring": spring(energy=1.0)}, wired, bonds=bonds),
        "0.1",
        extrapolation="linear",
    )


@pytest.mark.parametrize("balance", FORMS)
@pytest.mark.parametrize("made", [chain, in_a_level])
def test_what_is_told_before_a_run_is_that_of_the_scenario(made: Any, balance: str) -> None:
    plain, balanced = made(None), made(balance)
    assert posedness(balanced) == posedness(plain)
    assert classify(balanced) == classify(plain)
    assert classify(balanced)["hybrid"] == "no"
    assert predicted_order(balanced) == predicted_order(plain)


@pytest.mark.parametrize(("how", "order"), [("linear", 2), (hk.Hermite(), 2)])
def test_the_order_that_is_promised_is_seen(how: Any, order: int, tmp_path: Path) -> None:
    """Lines and tangents: of second order, as the accounts of bonds say nothing of the motion."""
    experiment = Experiment(chain("energy", how, "0.01"), stop=STOP, name="chain")
    assert predicted_order(experiment.composite)[0] == order
    found = estimate_run_error(hk.run(experiment.composite, STOP, folder=tmp_path / "run"))
    assert found.predicted == order
    assert found.good, found.doubts
    assert found.unseen == ()
    assert found["mass.v"].order == pytest.approx(order, abs=0.3)


@pytest.mark.parametrize("balance", FORMS)
@pytest.mark.parametrize("made", [chain, in_a_level])
def test_defects_are_those_of_connections(made: Any, balance: str) -> None:
    known, missing = connection_gaps(hk.run(made(balance), STOP), Experiment(made(balance), stop=STOP))
    written = {each.target for each in made(None).scenario.connections}
    assert {gap.input for gap in known} | set(missing) == written


def test_what_is_integrated_inside() -> None:
    """The inversion puts its law into the equations, and integrates those of an exact simulator too."""
    assert list(uncovered_errors(Experiment(chain("energy")))) == []
    (said,) = uncovered_errors(Experiment(chain("inversion")))
    assert said.startswith("what is integrated inside `left` and 2 more")
    level, euler = chain("inversion"), replace(spring(energy=1.0), method="euler", step=Fraction(1, 20))
    models = {**level.scenario.models, "left": euler, "right": euler}
    (said,) = uncovered_errors(Experiment(level.with_scenario(level.scenario.with_models(models))))
    assert said.startswith("what is integrated inside `mass`:")


class Fails:
    """A mass that breaks as soon as it moves."""

    inputs, outputs = ("f [N]",), ("v [m/s]",)

    def start(self, t: float) -> None:
        pass

    def output(self, t: float, u: Any) -> list[float]:
        return [0.5]

    def step(self, t: float, h: float, u: Any) -> float:
        raise ValueError("broken")


def test_a_trial_that_fails_is_told_where_nothing_else_can_be_judged() -> None:
    models = {"spring": spring(energy=1.0), "mass": hk.Python(Fails)}
    wired = {"mass.f": "spring.f", "spring.v": "mass.v"}
    bonds = {"joint": hk.Bond("mass.f", "spring.v")}
    found = hk.check(hk.Composite(hk.Scenario(models, wired, bonds=bonds), "0.1"), 1)
    assert any(leaf.how == "refused" for leaf in found.leaves)
    assert any(line.startswith("not judged: energy residual:") for line in found.verdict())


@pytest.mark.parametrize("how", ["hold", "linear"])
def test_a_trial_counts_as_a_run_does(how: str) -> None:
    level = hk.Composite(spring_mass().scenario(), "0.2", extrapolation=how)
    run = hk.run(level, 20)
    (gain,) = run_bond_trial(level, 100, Fraction(0)).gains
    facts = run.info["bonds"][gain.bond]
    assert (gain.gained, gain.moved, gain.unit) == (facts["gained"], facts["moved"], facts["unit"])
    assert gain.share == facts["gained"] / facts["moved"]
    assert gain.per_step == pytest.approx(facts["gained"] / 100)
