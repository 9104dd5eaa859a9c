"""What a page is put together from: wires, thinned series, tables, cards; and pages of odd runs."""

import json
import os
from fractions import Fraction as F
from itertools import combinations

import numpy as np
import pytest

import hocket
from command_line import good, invoked, refused
from hocket import Composite, Jacobi, Ode, Scenario, StateSpace, open_run, run
from hocket.engine.recording import ArrowRecorder, SampleTable
from hocket.files.error_estimate import ErrorEstimate, write_estimate
from hocket.files.run_folder import RunFolder
from hocket.model.experiment import Experiment
from hocket.planning.planner import plan_tree
from hocket.report import report_page, write_report
from hocket.report.charts import (
    BUDGET,
    chart_data,
    select_curves,
    span_edges,
    thin_band,
    thin_times,
    thin_values,
)
from hocket.report.level_boxes import connection_rows, route_wires, stepping_order
from hocket.report.markup import esc, format_number, html_table, prose
from systems import FREE_LAG, rewrite_run


def design(scenario, orchestrator="jacobi"):
    return plan_tree(Composite(scenario, F(1), orchestrator))


def test_text_cannot_break_out():
    assert esc('<a href="x">\'&\x00') == "&lt;a href=&quot;x&quot;&gt;&#x27;&amp;�"
    assert prose("`a<b` is `c`") == "<code>a&lt;b</code> is <code>c</code>"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.997604, "0.997604"), (-2.5e-7, "−2.5e−7"), (3937.4, "3,937"), (1e9, "1e9"),
     (float("inf"), "∞"), (float("nan"), "–")],
)  # fmt: skip
def test_numbers(value, text):
    assert format_number(value) == text


def test_tables_put_numbers_to_the_right_and_leave_empty_columns_out():
    rows = [{"port": "x<y", "error": 0.25, "why": ""}, {"port": "z", "error": None, "why": ""}]
    text = html_table(rows)
    assert '<td class="n">0.25</td>' in text
    assert "<td>x&lt;y</td>" in text
    assert "why" not in text
    assert html_table([]) == ""
    long = html_table([{"n": k} for k in range(50)], most=10)
    assert "<summary>40 more</summary>" in long
    assert long.count("<td") == 50


def test_each_pair_has_a_wire_on_the_side_of_its_direction():
    names = ["a", "b", "c"]
    scenario = Scenario(dict.fromkeys(names, FREE_LAG), {"b.u": "a.y", "c.u": "a.y", "a.u": "c.y"})
    made = route_wires(design(scenario), [0, 1, 2])
    assert {(w.source, w.target): w.side for w in made} == {
        (1, 2): "right",
        (1, 3): "right",
        (3, 1): "left",
    }


def test_boxes_stand_in_the_order_of_the_steps():
    scenario = Scenario({"a": FREE_LAG, "b": FREE_LAG, "c": FREE_LAG})
    assert stepping_order(design(scenario, hocket.GaussSeidel(["c", "a", "b"]))) == [2, 0, 1]


def test_wires_of_two_sources_never_share_a_stretch_of_a_lane():
    dice = np.random.default_rng(3)
    names = [f"s{k}" for k in range(25)]
    drives = {f"{name}.u": f"s{dice.integers(25)}.y" for name in names}
    made = route_wires(design(Scenario(dict.fromkeys(names, FREE_LAG), drives)), list(range(25)))
    assert len(made) == 25
    spans_of = {}
    for wire in made:
        key = wire.side, wire.lane, wire.source
        low, high = spans_of.get(key, (99, 0))
        spans_of[key] = min(low, wire.source, wire.target), max(high, wire.source, wire.target)
    for (one, (a, b)), (other, (c, d)) in combinations(spans_of.items(), 2):
        if one[:2] == other[:2]:
            assert b < c or d < a


def test_connections_are_told_from_simulator_to_simulator():
    inner = Scenario({"p": FREE_LAG, "q": FREE_LAG}, {"q.u": "p.y", "p.u": "in"}, ["in"])
    whole = Scenario({"n": Composite(inner, F(1, 2)), "b": FREE_LAG}, {"n.in": "b.y", "b.u": "n.q.y"})
    found = {(row["from"], row["to"]) for row in connection_rows(design(whole))}
    assert found == {("b.y", "n.p.u"), ("n.p.y", "n.q.u"), ("n.q.y", "b.u")}


def test_thinning_keeps_every_extreme():
    dice = np.random.default_rng(1)
    values = dice.standard_normal(100_003)
    values[31_415], values[92_653] = 50.0, -60.0
    edges = span_edges(len(values), 2000)
    kept = thin_values(values, edges)
    assert len(kept) <= 2000
    assert kept.max() == 50.0
    assert kept.min() == -60.0
    assert set(kept) <= set(values)
    times = thin_times(np.arange(len(values)) * 0.1, edges)
    assert len(times) == len(kept)
    assert (np.diff(times) >= 0).all()
    at = int(np.argmax(kept)) // 2
    assert times[2 * at] <= 3141.5 <= times[2 * at + 1]
    for span in range(0, len(edges) - 1, 97):
        part = values[edges[span] : edges[span + 1]]
        assert sorted(kept[2 * span : 2 * span + 2]) == [part.min(), part.max()]


def test_thinning_keeps_the_order_and_bears_what_is_no_number():
    falling = np.array([3.0, 2.0, 1.0, 0.0, 5.0, 6.0, 7.0, np.nan])
    kept = thin_values(falling, np.array([0, 4]))
    assert kept.tolist() == [3.0, 0.0, 5.0, 7.0]
    low, high = thin_band(falling, np.ones(8), np.array([0, 4]))
    assert low.tolist() == [-1.0, -1.0, 4.0, 4.0]
    assert high.tolist() == [4.0, 4.0, 8.0, 8.0]
    assert span_edges(10, 10) is None
    assert thin_values(falling, None) is falling


def recorded(folder, ports, rows):
    """A finished run without a scenario."""
    output = RunFolder.create(folder, "wide")
    names = tuple(f"p{k}" for k in range(ports))
    tables = [SampleTable("", names)]
    output.begin(tables, scenario="# not written: a lambda\n", plan="", engine="native", start=0, stop=rows)
    recorder = ArrowRecorder(folder)
    recorder.open(tables)
    block = np.random.default_rng(2).standard_normal((rows, ports + 1))
    block[:, 0] = np.arange(rows)
    block[:, 1] = 4.0  # the first port never moves
    block[rows // 2, 2] = 1e3
    recorder.write(0, block)
    recorder.close()
    return output.end("finished", reached=rows, counts={"steps": rows}), names


def test_a_wide_run_stays_small_and_says_what_is_left_out(tmp_path):
    made, names = recorded(tmp_path / "run", 1000, 1200)
    chosen = select_curves(made, None)
    assert sum(len(curve.v) for curve in chosen.curves) <= BUDGET
    assert {curve.name for curve in chosen.curves} | set(chosen.left_out) == set(names)
    assert "p0" in chosen.left_out  # what does not move goes first
    page = report_page(made)
    assert len(page) < 4e6
    assert f"{len(chosen.left_out)} of 1,000 ports are left out to keep the page small" in page
    data = chart_data(chosen)
    assert max(data["ports"][0]["v"]) == 1e3
    assert len(data["times"]) == 1


def test_the_data_is_json_even_where_numbers_are_not(tmp_path):
    made, _ = recorded(tmp_path / "run", 3, 50)
    text = report_page(made).partition('id="data">')[2].partition("</script>")[0]
    data = json.loads(text)
    assert [port["name"] for port in data["ports"]] == ["p1", "p2", "p0"]
    assert data["ports"][2]["v"] == [4.0] * 50


def test_without_a_scenario_the_page_says_why_and_keeps_the_rest(tmp_path):
    decay = Ode(lambda t, x, u: [-x[0]], x0=[1.0], outputs=["x [m]"])
    whole = Composite(Scenario({"decay": decay}), F(1, 10))
    made = run(whole, stop=1, folder=tmp_path / "run")
    page = report_page(made)
    assert "the scenario kept in the run folder cannot be read again" in page
    assert 'id="ports"' in page
    assert 'id="timeline"' not in page
    told = report_page(made, Experiment(whole, stop=F(1)))
    assert 'id="timeline"' in told
    assert "cannot be read again" not in told


def test_a_check_that_fails_does_not_lose_the_page(tmp_path, monkeypatch):
    made = run(Composite(Scenario({"a": FREE_LAG}), F(1, 10)), stop=1, folder=tmp_path / "run")

    def broken(*_):
        raise ZeroDivisionError("by <zero>")

    monkeypatch.setattr("hocket.report.page.check", broken)
    page = report_page(made)
    assert "the coupling could not be judged: ZeroDivisionError: by &lt;zero&gt;" in page
    assert 'id="timeline"' in page


def test_an_estimate_that_cannot_be_read_is_said(tmp_path):
    made = run(Composite(Scenario({"a": FREE_LAG}), F(1, 10)), stop=1, folder=tmp_path / "run")
    assert "estimates it from runs with shorter steps" in report_page(made)
    write_estimate(made.path, ErrorEstimate((), ("nothing to estimate",), None))
    assert "nothing to estimate" in report_page(made)
    (made.path / "trust.json").write_text("{")
    assert "the estimate kept in the run folder cannot be read" in report_page(made)


@pytest.mark.parametrize("status", ["stopped", "running"])
def test_runs_that_did_not_end(tmp_path, status):
    output = RunFolder.create(tmp_path / "run", "early")
    output.begin([], scenario="", plan="", engine="native", start=0, stop=1)
    if status == "stopped":
        output.end("stopped", reached=0.25)
    page = report_page(open_run(tmp_path / "run"))
    assert '<article class="card warn wide">' in page
    assert ("stopped at 0.25 of 1 s" if status == "stopped" else "it is still running") in page
    assert "Nothing was recorded." in page


@pytest.mark.skipif(os.name != "posix", reason="a gone process is seen on POSIX only")
def test_a_killed_run(tmp_path):
    RunFolder.create(tmp_path / "run", "gone")
    rewrite_run(tmp_path / "run", process=2**22 + 1)  # above the largest there can be
    page = report_page(open_run(tmp_path / "run"))
    assert '<article class="card bad wide">' in page
    assert "its process ended without a word" in page


def test_unstable_runs_are_called_so(tmp_path):
    mass = StateSpace([[0, 1], [-1, 0]], [[0], [1]], [[1, 0]], x0=[1, 0], inputs=["u"], outputs=["y"])
    pair = Scenario({"a": mass, "b": mass}, {"a.u": "b.y", "b.u": "a.y"})
    made = run(Composite(pair, F(1), Jacobi(outputs="stale")), stop=30, folder=tmp_path / "run")
    page = write_report(made, tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<article class="card bad"><h2>Before the run' in page
    assert "unstable: spectral radius " in page
    assert "least-damped modes" in page


def test_the_command(tmp_path):
    run(Composite(Scenario({"a": FREE_LAG}), F(1, 10)), stop=1, folder=tmp_path / "run")
    assert good("report", tmp_path / "run").startswith(f"wrote {tmp_path / 'run' / 'report.html'} (")
    assert (tmp_path / "run" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert good("report", tmp_path / "run" / "run.json") == good("report", tmp_path / "run")
    assert "Example: hocket report runs/car-001 --open" in invoked("report", "--help").stdout
    assert "there is no `nowhere`" in refused("report", tmp_path / "nowhere")
    assert "there is no folder" in refused("report", tmp_path / "run", "-o", tmp_path / "no" / "page.html")
