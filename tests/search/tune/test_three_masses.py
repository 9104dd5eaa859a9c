"""The three masses of Hafner's thesis, scenario 2, with exact leaves: tuned from the file alone."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import expm

import hocket
from hocket.files import toml
from hocket.files.formats import read
from hocket.model.experiment import Experiment
from hocket.planning.cost import plan_work
from hocket.planning.parameters import leaves, with_leaves
from hocket.planning.planner import plan_tree
from hocket.search.tune.tune import tune
from hocket.search.tune.tuning_result import check_prediction
from systems import THREE, three_masses

STOP = Fraction(25)
SIX = ("first.x", "first.v", "pair.second.x", "pair.second.v", "pair.third.x", "pair.third.v")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """The thesis' best nested setting: Jacobi, hold, stale, 0.1 and 0.025; written and read again."""
    made = three_masses(2, "100 ms", "25 ms")
    made = with_leaves(made, {path: replace(m, method="exact", step=None) for path, m in leaves(made)})
    made = made.with_scenario(made.scenario.with_changes(record=["*.x", "*.v"]))
    file = tmp_path_factory.mktemp("three") / "three.toml"
    file.write_text(toml.dumps(Experiment(made, stop=STOP)))
    return read(file)


@pytest.fixture(scope="module")
def tuned(experiment):
    return tune(experiment.composite, stop=experiment.stop, budget=100, workers=1)


def matrix():
    """The three masses as one system; states x1 v1 x2 v2 x3 v3 (Hafner 2021, equation 6.76, corrected)."""
    c1, c12, c23, c3 = THREE["parameters"]["c1_c12_c23_c3"]["2"]
    d1, d12, d23, d3 = THREE["parameters"]["d1_d12_d23_d3"]
    A = np.zeros((6, 6))
    A[0, 1] = A[2, 3] = A[4, 5] = 1.0
    A[1] = [-(c1 + c12), -(d1 + d12), c12, d12, 0, 0]
    A[3] = [c12, d12, -(c12 + c23), -(d12 + d23), c23, d23]
    A[5] = [0, 0, c23, d23, -(c23 + c3), -(d23 + d3)]
    A[1::2] /= 10.0
    return A


def error_of(composite):
    """Return the 2-norm of the six largest errors of a run over 25 s, against the matrix exponential."""
    run = hocket.run(composite, STOP, record=["*"])
    A, start = matrix(), np.array([1.0, 0, 2, 0, 3, 0])
    largest = []
    for number, name in enumerate(SIX):
        t, values = run[name].t, run[name].values
        step = expm(A * (t[1] - t[0]))
        x, worst = start.copy(), 0.0
        for value in values:
            worst = max(worst, abs(value - x[number]))
            x = step @ x
        largest.append(worst)
    return float(np.linalg.norm(largest))


def test_the_best_of_the_thesis_has_an_error_of_0_39(experiment, tuned):
    assert error_of(experiment.composite) == pytest.approx(0.39, abs=0.005)
    assert tuned.now[0] == pytest.approx(0.39, abs=0.005)


def test_the_proposal_has_at_most_0_002_for_no_more_work(experiment, tuned):
    chosen = tuned.composite_of(tuned.knee)
    found = error_of(chosen)
    assert found <= 0.002
    now, then = plan_work(plan_tree(experiment.composite)), plan_work(plan_tree(chosen))
    assert then.steps <= now.steps
    assert then.exchanges <= now.exchanges


def test_it_is_what_was_predicted(tuned):
    chosen = tuned.composite_of(tuned.knee)
    found, predicted = error_of(chosen), tuned.numbers[tuned.front[tuned.knee]][0]
    assert 0.5 * found <= predicted <= 2.0 * found
    told = check_prediction(chosen, STOP)
    assert told.ports == 6
    assert told.found == pytest.approx(found, rel=1e-6)
    assert told.predicted == pytest.approx(predicted, rel=1e-9)


def test_the_run_counts_no_more_steps(experiment, tuned):
    counts = [
        hocket.run(each, STOP).info["counts"]
        for each in (experiment.composite, tuned.composite_of(tuned.knee))
    ]
    steps = [
        sum(each["steps"].values()) if isinstance(each["steps"], dict) else each["steps"] for each in counts
    ]
    assert steps[1] <= steps[0]


def test_nothing_proposed_grows(tuned):
    rho = [each.name for each in tuned.wanted].index("rho")
    assert tuned.wanted[rho].limit is not None
    assert all(tuned.numbers[k][rho] <= 1.0 + 1e-6 for k in tuned.front)


def test_the_words_say_what_is_gained(tuned):
    text = "\n".join(tuned.words())
    assert "error" in text
    assert "extrapolation = " in text
