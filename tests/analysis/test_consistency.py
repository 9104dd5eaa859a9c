"""Relative consistency against the golden numbers; the defect of a run against published responses."""

import json

import numpy as np
import pytest

import hocket
from hocket import Composite, Connection, Hermite, Jacobi, Polynomial, Scenario, StateSpace
from hocket.analysis.consistency import (
    ADVICE,
    defects_from_columns,
    defects_from_starts,
    relative_consistency,
    run_defect,
)
from hocket.analysis.linear_reading import read_linear
from hocket.errors import ScenarioError
from systems import FILTERS, TWO, random_linear, three_masses, two_masses

DELTAS = [
    (name, int(key[-1]), norm, delta)
    for name, each in TWO["values"].items()
    if isinstance(each, dict)
    for key in each
    if key.startswith("delta_k")
    for norm, delta in each[key].items()
]
CONNECTIONS = {"one.x2": "two.x", "one.v2": "two.v", "two.F": "one.F"}


def coupling(name):
    """The coupling behind a name of the golden numbers."""
    given = TWO["values"][name]
    which, _, rest = name.partition("_")
    h = given["h"] if "h" in given else float(rest.rpartition("_")[2].removeprefix("h"))
    return two_masses(which, h, (*given["alpha"], 0.0) if "alpha" in given else None)


def test_all_of_them_are_there():
    assert len(DELTAS) == 168
    assert {norm for _, _, norm, _ in DELTAS} == {"fro", "two", "one", "inf"}


@pytest.mark.parametrize("name", dict.fromkeys(name for name, *_ in DELTAS))
def test_two_masses(name):
    composite = coupling(name)
    for which, k, norm, delta in DELTAS:
        if which == name:
            assert relative_consistency(composite, k, norm).delta == pytest.approx(delta, abs=1e-9)


def test_printed_values_come_out_by_default():
    """Glumac & Kovacic 2019, equations 70 and 71."""
    assert relative_consistency(two_masses("Control21", 9.11)).delta == pytest.approx(0.78, abs=0.005)
    assert relative_consistency(two_masses("Control12", 8.9)).delta == pytest.approx(1.1, abs=0.05)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("k", [0, 1, 2, 5])
def test_one_run_on_columns_is_many_starts_of_the_engine(name, k):
    composite = two_masses(name, 1.0)
    assert defects_from_columns(composite, k) == pytest.approx(defects_from_starts(composite, k), abs=1e-13)


@pytest.mark.parametrize("name", FILTERS)
def test_the_start_is_consistent(name):
    assert relative_consistency(two_masses(name, 1.0), k=0).delta <= 1e-14


@pytest.mark.parametrize("name", FILTERS)
def test_it_is_the_formula(name):
    """|| (S_u - L S_y) Phi^k Phi0 R_v ||, with y0 = C x0 + D u0 and u0 = L y0 written down by hand."""
    reading = read_linear(two_masses(name, 1.0))
    output = np.array([[1.0, 2, -1, -2], [0, 0, 1, 0], [0, 0, 0, 1]])  # F, x and v of the states
    outputs = {"one.F": output[0], "two.x": output[1], "two.v": output[2]}
    start = np.zeros((len(reading.cells), 4))
    for row, cell in enumerate(reading.cells):
        path = f"{cell.owner}.{cell.name}"
        if cell.kind == "state":
            start[row, 2 * (cell.owner == "two") + (cell.name == "x2")] = 1.0
        else:
            start[row] = outputs[path if cell.kind == "sample" else CONNECTIONS[path]]
    z = reading.Phi @ reading.Phi @ start
    inputs = {f"{c.owner}.{c.name}": row for row, c in enumerate(reading.cells) if c.kind == "input"}
    expected = [z[inputs[u]] - z[reading.newest[y]] for u, y in CONNECTIONS.items()]
    found = relative_consistency(reading)
    assert found.inputs == tuple(CONNECTIONS)
    assert found.states == ("one.x1", "one.x2", "two.x1", "two.x2")
    assert found.matrix == pytest.approx(np.array(expected), abs=1e-13)


@pytest.mark.parametrize("composite", [three_masses(2, "0.1 s"), three_masses(2, "0.2 s", "0.05 s")])
def test_levels_count_as_their_leaves(composite):
    found = relative_consistency(composite)
    assert len(found.inputs) == len(found.states) == 6
    assert found.matrix == pytest.approx(defects_from_starts(composite, 2), abs=1e-13)


@pytest.mark.parametrize("seed", [2, 8, 21, 33])
def test_both_ways_agree_on_random_scenarios(seed):
    composite = random_linear(seed)
    columns = defects_from_columns(composite, 2)
    if columns is not None:
        assert columns == pytest.approx(defects_from_starts(composite, 2), rel=1e-9, abs=1e-12)


def lags(extrapolation, **how):
    """Two lags that follow each other; x0 of the second is far away, and must not matter."""
    one = StateSpace(A=[[-1]], B=[[1]], C=[[1]], x0=[1], inputs=["u"], outputs=["y"])
    two = StateSpace(A=[[-2]], B=[[2]], C=[[1]], x0=[50], inputs=["u"], outputs=["y"])
    wires = [Connection("two.y", "one.u", gain=0.5, offset=3.0), Connection("one.y", "two.u")]
    return Composite(Scenario({"one": one, "two": two}, wires), "0.1 s", Jacobi(), extrapolation, **how)


def test_offsets_do_not_matter_and_gains_do():
    """After one step by hand: u = L y0, y = e^-h x0 + (1 - e^-h) u."""
    a, b = np.exp(-0.1), np.exp(-0.2)
    expected = np.array([[-(1 - b) * 0.5, 0.5 - 0.5 * b], [1 - a, -(1 - a) * 0.5]])
    assert relative_consistency(lags("hold"), k=1).matrix == pytest.approx(expected, abs=1e-14)


def by_hand(x, steps, h=0.1):
    """The defects of the two lags with lines through the last two samples, from a cold start."""
    rate, gain = np.array([1.0, 2.0]), np.array([[0.0, 0.5], [1.0, 0.0]])
    decay = np.exp(-rate * h)
    x, u, slope, end = np.array(x, dtype=float), gain @ x, np.zeros(2), np.zeros(2)
    for _ in range(steps):
        before, end = gain @ x, u + slope * h
        x = decay * x + (1 - decay) * u + (h - (1 - decay) / rate) * slope
        u, slope = gain @ x, (gain @ x - before) / h
    return end - gain @ x


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_lines_from_a_cold_start(k):
    expected = np.column_stack([by_hand([1, 0], k), by_hand([0, 1], k)])
    composite = lags(Polynomial(1), start="cold")
    assert relative_consistency(composite, k).matrix == pytest.approx(expected, abs=1e-13)
    assert defects_from_starts(composite, k) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("extrapolation", [Polynomial(1), Hermite(1)])
def test_a_line_is_more_consistent_than_a_hold(extrapolation):
    assert defects_from_columns(lags(extrapolation), 3) is None
    held = relative_consistency(lags("hold"), k=3).delta
    assert relative_consistency(lags(extrapolation), k=3).delta < 0.3 * held


def test_delta_is_smaller_with_a_smaller_step():
    deltas = [relative_consistency(two_masses("Seidel12", h)).delta for h in (0.02, 0.04, 0.08, 0.16)]
    assert deltas == sorted(deltas)
    assert deltas[1] / deltas[0] == pytest.approx(2, rel=0.1)


def test_it_says_what_it_is_good_for(tmp_path):
    found = relative_consistency(two_masses("Seidel12", 1.0))
    rows = json.loads(json.dumps(found.rows()))
    assert found.notes()[0].startswith(f"delta = {found.delta:.4g} (k = 2, norm fro, ")
    assert found.notes()[0].endswith(ADVICE)
    assert found.facts()["relative consistency"] == found.delta
    assert "0." not in ADVICE  # correlations that were found on other systems are no facts about this one
    assert {row["input"] for row in rows} == set(CONNECTIONS)
    assert sum(row["contribution"] ** 2 for row in rows) == pytest.approx(found.delta**2)
    found.plot(tmp_path / "delta.png")
    assert (tmp_path / "delta.png").stat().st_size > 5_000


@pytest.mark.parametrize(("k", "norm"), [(-1, "fro"), (2, "max")])
def test_unknown_norms_are_refused(k, norm):
    with pytest.raises(ScenarioError, match="no relative consistency"):
        relative_consistency(two_masses("Seidel12", 1.0), k, norm)


@pytest.mark.parametrize("name", FILTERS)
def test_the_defect_of_a_run(name, tmp_path):
    """From published inputs and outputs: |u - L y| (Glumac & Kovacic 2019, figure 2)."""
    run = hocket.run(two_masses(name, 1.0), 50, record=["*", *CONNECTIONS])
    found = run_defect(run)
    assert not found.missing
    courses = {each.name: each for each in found.courses}
    assert set(courses) == set(CONNECTIONS)
    for step, expected in TWO["values"]["fig2_response_h1"][name].items():
        y = dict(zip(("one.F", "two.x", "two.v"), expected["y"], strict=True))
        for target, u in zip(CONNECTIONS, expected["u"], strict=True):
            wrong = abs(u - y[CONNECTIONS[target]])
            assert courses[target].values[int(step)] == pytest.approx(wrong, abs=1e-10)
    for each in found.connections:
        values = courses[each.input].values
        assert each.output == CONNECTIONS[each.input]
        assert each.largest == values.max() == values[int(each.at)]
        assert each.mean == pytest.approx(values.mean())
    assert found.connections[0].relative >= found.connections[-1].relative
    assert json.loads(json.dumps(found.rows()))[0]["input"] == found.connections[0].input
    found.plot(tmp_path / "defect.svg")
    assert "connection defect" in (tmp_path / "defect.svg").read_text()


def test_the_defect_counts_gains_offsets_and_levels():
    """A hold lags behind by one step: u(t) = L y(t - h)."""
    composite = lags("hold")
    run = hocket.run(composite, 2, record=["*", "one.u", "two.u"])
    each = next(each for each in run_defect(run, composite).courses if each.name == "one.u")
    y = run["two.y"].values
    assert each.values[1:] == pytest.approx(0.5 * np.abs(np.diff(y)), abs=1e-12)
    assert each.values[0] == 0.0
    nested = three_masses(1, "0.2 s", "0.05 s")
    inputs = ["first.force", "pair.second.x1", "pair.third.x2"]
    found = run_defect(hocket.run(nested, 4, record=["*", *inputs], every="micro"), nested)
    lengths = {each.name: len(each.t) for each in found.courses}
    assert lengths == {"first.force": 21, "pair.second.x1": 21, "pair.third.x2": 81}
    assert set(found.missing) == {"pair.second.v1", "pair.second.force", "pair.third.v2"}


def test_a_run_without_inputs_says_what_to_record():
    run = hocket.run(two_masses("Seidel12", 1.0), 3)
    with pytest.raises(ScenarioError, match=r'record=\["\*", "one.x2", "one.v2", "two.F"\]'):
        run_defect(run)


def test_a_negative_filter_beats_the_hold_at_a_small_step():
    """Formulas, section 1: alpha of about -0.5 is better in delta."""
    held = relative_consistency(two_masses("Seidel21", 0.1)).delta
    filtered = relative_consistency(two_masses("Control21", 0.1, (0.0, 0.0, -0.5))).delta
    assert filtered < held
