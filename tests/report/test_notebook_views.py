"""What objects show of themselves in notebooks."""

import math

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.model.html import MOST_ROWS, html_curve, html_table
from hocket.planning.planner import plan_tree
from systems import EXAMPLES

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def car():
    return hk.read(EXAMPLES / "car.toml")


def test_a_run_shows_every_port_with_its_range(car):
    run = hk.run(car)
    shown = run._repr_html_()
    for port in run.ports:
        assert f"<td style='text-align:left'>{port}</td>" in shown
        assert f"{float(run[port].values.max()):.6g}" in shown
    assert "finished" in shown
    assert shown.count("<polyline") == len(run.ports) == 7


def test_levels_models_and_connections_are_shown(car):
    shown = car._repr_html_()
    for part in ("4 s", "10 ms", "chassis", "axle", "wheel", "skyhook", "StateSpace"):
        assert part in shown, part
    assert repr(car).count("\n") == 0
    assert len(repr(car)) < 300
    assert "connections" in car.composite.scenario._repr_html_()
    assert "Jacobi" in car.composite._repr_html_()


def test_plans_verdicts_and_results_of_searches_are_shown(car):
    assert "feed skyhook" in plan_tree(car.composite).plan._repr_html_()
    found = hk.check(EXAMPLES / "masses.toml")
    shown = found._repr_html_()
    assert found.verdict()[0].split(";")[0] in shown
    assert "least-damped modes" in shown
    tuned = hk.tune(EXAMPLES / "two_masses.toml", budget=8, workers=1)
    assert tuned._repr_html_().count("<tr>") == len(tuned.front) + 1


def test_an_fmu_shows_its_ports(tmp_path):
    shown = hk.Fmu(build("second", 2, folder=tmp_path))._repr_html_()
    assert "force" in shown
    assert "output" in shown


def test_what_comes_from_outside_is_escaped():
    shown = html_table([{HOSTILE: HOSTILE}])
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    level = hk.Composite(hk.Scenario({"a": hk.Gain(2.0)}), 1)
    assert "<script>" not in hk.Experiment(level, name=HOSTILE)._repr_html_()


def test_long_tables_say_how_much_is_left_out():
    shown = html_table([{"k": k} for k in range(MOST_ROWS + 3)])
    assert shown.count("<tr>") == MOST_ROWS + 1
    assert "and 3 more" in shown


def test_curves_leave_out_what_is_not_finite():
    assert html_curve([0.0, 1.0], [math.nan, 1.0]) == ""
    t = np.linspace(0.0, 1.0, 5).tolist()
    assert "points='0.0,23.0 30.0,1.0 60.0,23.0 120.0,1.0'" in html_curve(t, [0.0, 1.0, 0.0, math.inf, 1.0])
