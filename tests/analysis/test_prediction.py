"""Predicted errors against the thesis, against runs of the engine, and against steps worked out by hand."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import expm

import hocket
from hocket import Composite, Hermite, Hold, Jacobi, Nepce, Ode, Polynomial, Scenario, StateSpace
from hocket.analysis.consistency import relative_consistency
from hocket.analysis.error_prediction import (
    ErrorOrder,
    PortError,
    PredictedError,
    compare_orders,
    predicted_error,
    predicted_order,
)
from hocket.analysis.linear_models import IdentifiedModel
from hocket.analysis.linear_reading import read_linear
from hocket.analysis.linearisation import linearise
from hocket.analysis.measure import Outcome
from hocket.errors import ScenarioError
from systems import THREE, random_linear, three_masses, two_masses

A = np.array([[-0.5]])
B = np.array([[0.0, 1.0], [-2.0, -0.3]])
START = np.array([1.0, 0.5, -1.0])


def pair(extrapolation, step, start="window", method="exact", own=None):
    """x' = -x / 2 + y with an oscillator y'' = -2 y - 0.3 y' + x, all smooth and without feedthrough."""
    how = {"C": [[1]], "x0": START[:1], "inputs": ["u"], "outputs": ["y [m]"], "method": method, "step": own}
    a = StateSpace(A=A, B=[[1]], **how)
    b = StateSpace(A=B, B=[[0], [1]], **{**how, "C": [[1, 0]], "x0": START[1:]})
    scenario = Scenario({"a": a, "b": b}, {"a.u": "b.y", "b.u": "a.y"})
    return Composite(scenario, step, Jacobi(), extrapolation, start)


def truth(t):
    """The states of the pair as one system."""
    whole = np.array([[-0.5, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, -2.0, -0.3]])
    return np.array([expm(whole * each) @ START for each in t])


def named(row):
    return f"scenario {row['scenario']} to {row['t_end']} s, H {'/'.join(map(str, row['H']))}"


@pytest.mark.parametrize("row", THREE["tables"], ids=named)
def test_the_tables_of_the_thesis(row):
    """All 84 numbers of tables 6.2 and 6.4, to every digit: six are known."""
    found = predicted_error(
        three_masses(row["scenario"], *(f"{H} s" for H in row["H"])), row["t_end"], micro=True, measure=False
    )
    level = "pair." if len(row["H"]) > 1 else ""
    ports = [f"{mass}.{port}" for mass in ("first", f"{level}second", f"{level}third") for port in "xv"]
    errors = [found[port].largest for port in ports]
    assert errors == pytest.approx(row["max_error_x1_v1_x2_v2_x3_v3"], rel=5e-6, abs=0)


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
def test_runs_of_the_engine_are_as_predicted(seed):
    """Rows of every level, to a relative 1e-8, whatever the orchestrators, extrapolators and starts."""
    composite = random_linear(seed)
    stop = 20 * composite.step
    found = predicted_error(composite, stop, trajectories=True, measure=False)
    run = hocket.run(composite, stop)
    for each in found.ports:
        t, values, exact = each.series
        ours, theirs = run[each.port]
        assert ours == pytest.approx(t, abs=1e-12)
        scale = max(np.abs(theirs).max(), np.abs(exact).max())
        assert np.abs(theirs - values).max() <= 1e-8 * scale
        largest = np.abs(theirs - exact).max()
        assert each.largest == pytest.approx(largest, rel=1e-8, abs=1e-11 * scale)


@pytest.mark.parametrize("seed", [2, 3, 6, 8, 11])
def test_micro_steps_of_the_engine_are_as_predicted(seed):
    composite = random_linear(seed)
    stop = 12 * composite.step
    found = predicted_error(composite, stop, micro=True, trajectories=True, measure=False)
    run = hocket.run(composite, stop, every="micro")
    for each in found.ports:
        table = run.table(f"{each.port.rpartition('.')[0]}@micro")
        t, values, exact = each.series
        theirs = table.column(each.port).to_numpy()
        assert table.column(0).to_numpy() == pytest.approx(t, abs=1e-12)
        assert np.abs(theirs - values).max() <= 1e-8 * max(np.abs(theirs).max(), np.abs(exact).max())


def test_the_largest_error_and_its_time_are_those_of_a_run():
    composite = two_masses("Control21", 0.5)
    found = predicted_error(composite, 30, measure=False)
    run = hocket.run(composite, 30)
    p = {"c1": 1, "d1": 1, "ck": 1, "dk": 2, "c2": 1, "d2": 2}
    whole = np.array(
        [
            [0, 1, 0, 0],
            [-p["c1"] - p["ck"], -p["d1"] - p["dk"], p["ck"], p["dk"]],
            [0, 0, 0, 1],
            [p["ck"], p["dk"], -p["c2"] - p["ck"], -p["d2"] - p["dk"]],
        ],
        dtype=float,
    )
    whole[1::2] /= 10
    t, x = run["two.x"]
    exact = np.array([(expm(whole * each) @ [0.1, 0.1, 0.2, 0.1])[2] for each in t])
    wrong = np.abs(x - exact)
    assert found["two.x"].largest == pytest.approx(wrong.max(), rel=1e-8)
    assert found["two.x"].at == t[np.argmax(wrong)]
    assert found["two.x"].scale == pytest.approx(np.abs(exact).max(), rel=1e-10)


def test_one_step_from_an_exact_past_is_that_of_the_held_inputs():
    h, stop = 0.1, 3.0
    found = predicted_error(pair(Hold(), "0.1 s"), stop, measure=False)
    first = expm(h * np.block([[A, np.ones((1, 1))], [np.zeros((1, 2))]]))
    second = expm(h * np.block([[B, np.array([[0.0], [1.0]])], [np.zeros((1, 3))]]))
    t = h * np.arange(1, 30)
    now, after = truth(t), truth(t + h)
    x = now[:, :1] * first[0, 0] + now[:, 1:2] * first[0, 1]
    y = (np.hstack([now[:, 1:], now[:, :1]]) @ second.T)[:, :1]
    assert found["a.y"].local == pytest.approx(np.abs(x - after[:, :1]).max(), rel=1e-9)
    assert found["b.y"].local == pytest.approx(np.abs(y - after[:, 1:2]).max(), rel=1e-9)


def test_one_step_from_an_exact_past_uses_the_samples_of_the_past():
    """A parabola through three exact samples, integrated exactly."""
    h = 0.1
    found = predicted_error(pair(Polynomial(2), "0.1 s"), 3, measure=False)
    chain = np.zeros((4, 4))
    chain[0, :2] = A[0, 0], 1.0
    chain[1, 2] = chain[2, 3] = 1.0
    flow = expm(h * chain)
    t = h * np.arange(2, 30)
    u, earlier, earliest = (truth(t - back * h)[:, 1] for back in range(3))
    slope, curve = (3 * u - 4 * earlier + earliest) / (2 * h), (u - 2 * earlier + earliest) / h**2
    x = np.column_stack([truth(t)[:, 0], u, slope, curve]) @ flow[0]
    wrong = np.abs(x - truth(t + h)[:, 0])
    assert found["a.y"].local == pytest.approx(wrong.max(), rel=1e-7)


@pytest.mark.parametrize("degree", range(4))
@pytest.mark.parametrize("method", ["exact", "heun", "rk4"])
def test_one_step_falls_by_one_order_more_than_the_run(degree, method):
    """O(H^min(p + 1, q + 2)) against O(H^min(p, q + 1)) (formulas, section 4)."""
    order = min(degree + 1, {"exact": 9, "heun": 2, "rk4": 4}[method])
    errors = [
        predicted_error(pair(Polynomial(degree), Fraction(1, n), method=method), 4, measure=False)["a.y"]
        for n in (40, 80)
    ]
    assert np.log2(errors[0].local / errors[1].local) == pytest.approx(order + 1, abs=0.1)
    assert np.log2(errors[0].largest / errors[1].largest) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize(
    ("extrapolation", "start", "method", "order"),
    [
        (Hold(), "window", "exact", 1),
        (Nepce(0.3), "window", "exact", 1),
        (Polynomial(1), "cold", "exact", 2),
        (Polynomial(2), "window", "exact", 3),
        (Polynomial(2), "cold", "exact", 2),
        (Polynomial(3), "window", "rk4", 4),
        (Polynomial(3), "cold", "rk4", 2),
        (Polynomial(2), "window", "euler", 1),
        (Polynomial(2), "window", "ab2", 2),
        (Hermite(1), "cold", "exact", 2),
        (Hermite(2), "cold", "exact", 3),
    ],
)
def test_the_order_is_measured_as_predicted(extrapolation, start, method, order):
    composite = pair(extrapolation, Fraction(1, 40), start, method)
    found = predicted_error(composite, 4).order
    assert found.predicted == order
    assert found.measured == pytest.approx(order, abs=0.12)
    assert "matches the expected order" in found.words
    assert predicted_order(composite) == (order, found.why)


def decay(t, x, u):
    return [-x[0]]


@pytest.mark.parametrize("own", [Fraction(1, 10), Fraction(1, 40), Fraction(1, 50)], ids=str)
def test_the_order_of_equations_with_fixed_steps_is_observed(own):
    """Euler's method in steps h for x' = -x: x(n h) = (1 - h)^n, whatever the macro step is."""
    level = Composite(Scenario({"it": Ode(decay, x0=[1.0], method="euler", step=own)}), "100 ms")
    found = predicted_error(linearise(level).composite, 1)
    errors = [
        max(abs((1 - h) ** round(k / h) - math.exp(-k)) for k in np.arange(0, 1.001, 0.1 / part))
        for part in (1, 2, 4)
        for h in (float(own) / part,)
    ]
    assert found.worst.largest == pytest.approx(errors[0], rel=1e-9)
    assert found.order.measured == pytest.approx(math.log2(errors[1] / errors[2]), abs=1e-6)
    assert "matches the expected order 1" in found.order.words


def test_the_order_says_why():
    assert predicted_order(pair(Hold(), 1))[1] == "`a.u` is extrapolated with degree 0"
    assert predicted_order(pair(Polynomial(3), 1, method="heun"))[1] == "`a` is integrated with order 2"
    assert "starts cold" in predicted_order(pair(Polynomial(3), 1, "cold"))[1]
    lonely = StateSpace(A=[[-1]], C=[[1]], x0=[1], outputs=["y"])
    assert predicted_order(Composite(Scenario({"it": lonely}), 1)) == (None, "every step is exact")


def test_nested_levels_have_the_lowest_order_of_all():
    """A hold inside a level with parabolas around it: first order (Hafner 2021, theorem 6.9)."""
    inside = pair(Hold(), Fraction(1, 80)).scenario
    free = StateSpace(A=[[-1]], B=[[1]], C=[[1]], x0=[1], inputs=["u"], outputs=["y"])
    scenario = Scenario({"level": Composite(inside, "12.5 ms"), "c": free}, {"c.u": "level.a.y"})
    found = predicted_error(Composite(scenario, "25 ms", extrapolation=Polynomial(2)), 2).order
    assert found.predicted == 1
    assert found.why == "`level.a.u` is extrapolated with degree 0"
    assert found.measured == pytest.approx(1, abs=0.1)


def test_words_where_the_orders_differ():
    assert compare_orders([8.0, 2.0, 0.5], 2) == (2.0, "observed order 2.00 matches the expected order 2")
    assert "too long for the asymptotic order" in compare_orders([8.0, 7.0, 5.0], 2)[1]
    assert "too small to be seen" in compare_orders([64.0, 8.0, 1.0], 2)[1]
    assert "reduces the order" in compare_orders([4.0, 2.0, 1.0], 2)[1]
    assert compare_orders([1e-15, 1e-16, 1e-16], 2)[0] is None
    assert compare_orders([np.inf, np.inf, 1.0], 1)[0] is None


def test_a_step_too_long_shows_no_order():
    """Scenario 2 grows with stale outputs at 0.1 s: halving the steps changes everything."""
    found = predicted_error(three_masses(2, "0.1 s"), 400).order
    assert found.predicted == 1
    assert "too long" in found.words


def test_a_run_that_grows_beyond_all_numbers_is_infinitely_wrong():
    found = predicted_error(three_masses(3, "1 s"), 5000)
    assert found.worst.largest == np.inf
    assert all(each.scale < 1e3 for each in found.ports)
    assert all(np.isfinite(each.local) for each in found.ports)
    assert found.order.measured is None


def test_a_system_that_itself_grows_beyond_all_numbers_is_unknown():
    a = StateSpace(A=[[2.0]], B=[[1]], C=[[1]], x0=[1], inputs=["u"], outputs=["y"])
    scenario = Scenario({"a": a, "b": pair(Hold(), 1).scenario.models["b"]}, {"a.u": "b.y", "b.u": "a.y"})
    found = predicted_error(Composite(scenario, "0.5 s"), 3000, measure=False)
    assert found.worst.largest == found.worst.relative == np.inf


def test_the_start_phase_is_told_as_it_is():
    composite = pair(Polynomial(3), "0.1 s", "cold")
    reading = read_linear(composite)
    assert reading.since > Fraction(1, 5)
    found = predicted_error(reading, "0.2 s", trajectories=True, measure=False)
    run = hocket.run(composite, "0.2 s")
    t, values, exact = found["b.y"].series
    assert t == pytest.approx([0.0, 0.1, 0.2], abs=1e-15)
    assert values == pytest.approx(run["b.y"].values, rel=1e-13)
    assert exact == pytest.approx(truth(t)[:, 1], rel=1e-12)


def test_a_longer_step_that_the_stop_cuts_off_is_not_shown():
    """A level with steps of 0.3 s inside one of 0.1 s: at 1 s it stands where it was at 0.9 s."""
    slow = Composite(pair(Hold(), 1).scenario, "0.3 s")
    lag = StateSpace(A=[[-1]], B=[[1]], C=[[1]], x0=[1], inputs=["u"], outputs=["y"])
    composite = Composite(Scenario({"slow": slow, "lag": lag}, {"lag.u": "slow.a.y"}), "0.1 s")
    found, run = predicted_error(composite, 1, trajectories=True, measure=False), hocket.run(composite, 1)
    for port, last in (("slow.a.y", 0.9), ("lag.y", 1.0)):
        t, values, _ = found[port].series
        assert t[-1] == pytest.approx(last)
        assert t == pytest.approx(run[port].t, abs=1e-12)
        assert values == pytest.approx(run[port].values, abs=1e-12)


def test_a_stop_before_the_first_step_is_refused():
    with pytest.raises(ScenarioError, match="no step before the stop"):
        predicted_error(pair(Hold(), "0.1 s"), "50 ms")


@pytest.mark.parametrize("h", [0.1, 1.0, 3.0])
def test_identified_models_predict_the_errors_of_the_originals(h):
    """Well within a factor of two: these were identified without any error."""
    composite = two_masses("Seidel12", h)
    stand_ins = {}
    for name, model in composite.scenario.models.items():
        n, m = np.shape(model.B)
        step = expm(h * np.vstack([np.hstack([model.A, model.B]), np.zeros((m, n + m))]))
        D = np.reshape(model.D, (1, len(model.outputs), m))
        constants = np.array(model.x0), np.zeros(n), np.zeros(len(model.outputs))
        stand_ins[name] = IdentifiedModel(
            model, composite.step, step[:n, :n], step[None, :n, n:], np.array(model.C), D, *constants
        )
    made = composite.with_scenario(composite.scenario.with_models(stand_ins))
    stop = 20 * composite.step
    found, truly = (predicted_error(each, stop) for each in (made, composite))
    for each in truly.ports:
        assert found[each.port].largest == pytest.approx(each.largest, rel=1e-8)
    assert truly.order.measured == pytest.approx(1, abs=0.25) or "too long" in truly.order.words
    assert found.order.measured is None
    assert found.order.words == "order not observed: no prediction with shorter steps"
    delta = relative_consistency(made)
    assert "identified models" in delta.note
    assert delta.delta == pytest.approx(relative_consistency(composite).delta, rel=1e-9)


def test_a_scenario_without_outputs_has_no_error():
    sink = StateSpace(A=[[-1]], B=[[1]], x0=[1], inputs=["u = 1"])
    with pytest.raises(ScenarioError, match="no outputs"):
        predicted_error(Composite(Scenario({"it": sink}), 1), 5)


def test_tables_and_pictures(tmp_path):
    found = predicted_error(pair(Hold(), "0.1 s"), 2, trajectories=True, measure=False)
    rows = json.loads(json.dumps(found.rows()))
    assert [row["port"] for row in rows] == [each.port for each in found.ports]
    assert rows[0]["of peak"] == found.worst.relative >= found.ports[-1].relative
    assert rows[0]["unit"] == "m"
    found.plot(tmp_path / "lines.png")
    predicted_error(pair(Hold(), "0.1 s"), 2, measure=False).plot(tmp_path / "dots.svg")
    assert (tmp_path / "lines.png").stat().st_size > 10_000
    assert "largest error" in (tmp_path / "dots.svg").read_text()
    with pytest.raises(ScenarioError, match=r"`c.y`"):
        found["c.y"]


@pytest.mark.parametrize(
    ("error", "decides", "outcome"),
    [
        (0.1, False, Outcome.GOOD),
        (0.101, False, Outcome.CAUTION),
        (0.19, False, Outcome.CAUTION),
        (999.0, True, Outcome.CAUTION),
        (1001.0, True, Outcome.BAD),
        (1001.0, False, Outcome.CAUTION),
        (math.inf, True, Outcome.BAD),
    ],
)
def test_a_predicted_error_above_a_tenth_is_a_caution(error, decides, outcome):
    port = PortError("a.y", "", 0.0, error, 0.5, scale=1.0)
    assert PredictedError((port,), 1.0, 0.1, ErrorOrder(1, "", None, ""), decides).outcome is outcome
