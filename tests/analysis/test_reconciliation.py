"""Predicted and estimated errors side by side: agreement says nothing, a factor of more than 2 is a doubt."""

from dataclasses import replace
from fractions import Fraction

import pytest

import hocket as hk
from hocket.analysis.measure import Outcome, join_facts, worst_outcome
from hocket.analysis.reconciliation import add_prediction
from hocket.analysis.run_error import estimate_error
from hocket.analysis.run_measures import Reconciliation, run_measures
from hocket.files.error_estimate import read_estimate, write_estimate
from hocket.model.experiment import Experiment
from hocket.report.page import report_page
from systems import two_masses


@pytest.fixture(scope="module")
def judged():
    composite = two_masses("Seidel12", 0.0625)
    experiment = Experiment(composite, stop=Fraction(20), name="it")
    run = hk.run(composite, 20)
    return experiment, run, add_prediction(estimate_error(experiment, run), experiment)


def test_linear_systems_agree(judged):
    _, run, found = judged
    assert len(found.prediction) == 3
    (both,) = (each for each in run_measures(run, found) if isinstance(each, Reconciliation))
    assert both.outcome is Outcome.GOOD
    assert both.verdict() == []
    assert max(each.factor for each in both.ports) < 1.2


def test_a_factor_above_two_is_a_doubt_everywhere(judged):
    experiment, run, found = judged
    wrong = replace(found, prediction=tuple((port, error / 5.0) for port, error in found.prediction))
    measures = run_measures(run, wrong)
    facts = join_facts(measures)
    assert worst_outcome(measures) is Outcome.UNRELIABLE
    assert not facts["good"]
    assert any("doubt: predicted and estimated error" in line for line in facts["verdict"])
    # in the report the estimate is another than what is predicted there
    large = replace(found, ports=tuple(replace(each, error=5.0 * each.error) for each in found.ports))
    write_estimate(run.path, large)
    assert read_estimate(run.path).prediction == found.prediction
    page = report_page(run, experiment)
    assert page.count("doubt: predicted and estimated error") == 2
    write_estimate(run.path, found)
    assert "doubt: predicted and estimated error" not in report_page(run, experiment)


def test_a_check_that_predicts_nothing_leaves_the_kept_prediction(judged, monkeypatch):
    experiment, run, found = judged
    wrong = replace(found, prediction=tuple((port, error / 5.0) for port, error in found.prediction))
    write_estimate(run.path, wrong)
    monkeypatch.setattr("hocket.report.page.predicted_errors", lambda check: ())
    monkeypatch.setattr("hocket.analysis.reconciliation.predicted_errors", lambda check: ())
    assert "doubt: predicted and estimated error" in report_page(run, experiment)
    assert add_prediction(wrong, experiment).prediction == wrong.prediction
    write_estimate(run.path, found)
