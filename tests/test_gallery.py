"""The gallery: each script prints what its page says, and its numbers are those of the whole system."""

from __future__ import annotations

import importlib
import math
import re
import sys
from types import ModuleType

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import hocket as hk
from systems import EXAMPLES, ROOT

GALLERY = EXAMPLES / "gallery"
NAMES = sorted(path.stem for path in GALLERY.glob("*.py") if path.stem not in ("drawing", "weather"))
LONG = ("building", "hydraulic_crane", "thesis_masses", "pid_with_delay")
"""Whose numbers are tested in the fast suite, with less to run."""


@pytest.fixture
def load(monkeypatch, tmp_path):
    """Return what imports a script of the gallery as it would be run."""

    def load_script(name: str) -> ModuleType:
        monkeypatch.syspath_prepend(str(GALLERY))
        for known in {"drawing", "weather", name} & set(sys.modules):
            monkeypatch.delitem(sys.modules, known)
        return importlib.import_module(name)

    before = list(sys.path)
    yield load_script
    sys.path[:] = before
    for name in {"drawing", "weather", *NAMES} & set(sys.modules):
        del sys.modules[name]


def test_twelve_systems_have_a_page_each_with_picture_and_lesson():
    assert len(NAMES) == 12
    index = (ROOT / "docs/gallery/index.md").read_text()
    nav = (ROOT / "mkdocs.yml").read_text()
    for name in NAMES:
        page = (ROOT / f"docs/gallery/{name}.md").read_text()
        assert f"](../pictures/gallery/{name}.png)" in page
        assert "## The lesson" in page
        assert (ROOT / f"docs/pictures/gallery/{name}.png").stat().st_size > 10_000
        assert f"({name}.md)" in index
        assert f"gallery/{name}.md" in nav


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.slow if each in LONG else ()) for each in NAMES]
)
def test_a_script_prints_what_its_page_says_and_draws(name, load, tmp_path, capsys):
    load(name).main(tmp_path)
    page = (ROOT / f"docs/gallery/{name}.md").read_text()
    (shown,) = re.findall(r'```text title="prints"\n(.*?)\n```', page, re.S)
    assert capsys.readouterr().out.rstrip() == shown
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_a_signal_is_a_step_late_where_the_fmu_was_set_before_its_source_stepped(load, tmp_path):
    names = vars(load("two_fmus"))
    run = hk.run(names["chain"](tmp_path, hk.Jacobi(outputs="stale")), "4 s")
    y = [0.0]  # the explicit Euler step of the FMU, T = 1 s, by hand
    for k in range(40):
        y.append(y[-1] + 0.1 * (math.sin(math.pi * 0.1 * k) - y[-1]))
    assert run["lag.y"].values == pytest.approx(y, abs=1e-12)
    assert run["gain.y"].values[1:] == pytest.approx(y[:-1], abs=1e-12)


def test_the_truck_follows_the_whole_system_and_its_account_is_the_energy(load, tmp_path):
    names = vars(load("quarter_car"))
    # chassis v, x; wheel v, x: 400 and 40 kg, 15 and 150 kN/m, 1 kN s/m, a kerb of 0.1 m
    c, w, d = 15e3, 150e3, 1e3
    A = np.array(
        [
            [-d / 400, -c / 400, d / 400, c / 400],
            [1, 0, 0, 0],
            [d / 40, c / 40, -d / 40, -(c + w) / 40],
            [0, 0, 1, 0],
        ]
    )
    B = np.array([0, 0, w * 0.1 / 40, 0])
    rest = np.linalg.solve(A, -B)
    flow = expm(A * 1e-3)
    z, exact = np.zeros(4), [0.0]
    for _ in range(4000):
        z = rest + flow @ (z - rest)
        exact.append(z[1])
    found = {}
    for step, rows in (("10 ms", 10), ("5 ms", 5)):
        run = hk.run(names["truck"](tmp_path, step), 4, ledger=True)
        found[step] = np.abs(run["chassis.position"].values - exact[::rows]).max()
    assert found["5 ms"] == pytest.approx(found["10 ms"] / 2.0, rel=0.15)
    # the account, from both sides of the last run: what the chassis took less what the wheel gave
    velocity, force = run["chassis.velocity"].values, run["wheel.force"].values
    held, h = velocity[:-1], 5e-3
    taken = (force[:-1] * np.diff(run["chassis.position"].values)).sum()
    step = expm(
        np.array(
            [
                [0, 0, 0, 1, 0, 0],
                [0, 0, 1, 0, 0, 0],
                [c / 40, -(c + w) / 40, -d / 40, d / 40, w * 0.1 / 40, 0],
                [0] * 6,
                [0] * 6,
                [-c, c, d, -d, 0, 0],
            ]
        )
        * h
    )
    given, inside = (
        0.0,
        np.zeros(6),
    )  # place, x, v of the wheel, the held velocity, 1, the impulse of the force
    inside[4] = 1.0
    for each in held:
        inside[3], inside[5] = each, 0.0
        inside = step @ inside
        given += inside[5] * each
    assert run.info["bonds"]["strut"]["gained"] == pytest.approx(taken - given, rel=0.05)


def test_the_thesis_has_the_same_errors(load):
    names = vars(load("thesis_masses"))
    for level, published in ((names["flat"]("100 ms"), 5.3824), (names["nested"]("200 ms", "50 ms"), 0.6956)):
        run = hk.run(level, 100, every="micro")
        t, x = run[next(port for port in run.ports if port.endswith("middle.x"))]
        assert np.abs(x - names["exact"](t)[2]).max() == pytest.approx(published, abs=5e-5)


def test_the_building_needs_the_heat_of_a_monolithic_solution(load, tmp_path):
    names = vars(load("building"))
    run = names["main"](tmp_path, 21)
    outside = np.array([names["write_weather"].__globals__["temperature"](hour) for hour in range(505)])
    outside[0] = names["write_weather"].__globals__["temperature"](8760)
    outer = np.where(np.arange(20) < 10, 80.0, 40.0)

    def rate(t, T):
        wanted = 21.0 if t / 86400.0 % 7 < 5 and 6 <= t / 3600.0 % 24 < 20 else 17.0  # it begins on a Monday
        heat = np.clip(2.0 * (wanted - T), 0.0, 4.0)
        hour = int(t / 3600.0)
        air = outside[hour] + (t / 3600.0 - hour) * (outside[hour + 1] - outside[hour])
        walls = 150.0 * (np.roll(T, 1) + np.roll(T, -1) - 2.0 * T)
        return (1e3 * heat - outer * (T - air) + walls) / 5e6, heat.sum()

    T, heated, h = np.full(20, 17.0), 0.0, 120.0
    for k in range(21 * 720):  # Heun's method
        one = rate(k * h, T)
        two = rate((k + 1) * h - 1e-6, T + h * one[0])
        T, heated = T + h * (one[0] + two[0]) / 2.0, heated + h * (one[1] + two[1]) / 2.0
    assert run.aggregate("heater*.y")["integral"].sum() == pytest.approx(heated, rel=0.01)
    ends = [run.final(f"zone{k}.T") for k in range(20)]
    assert ends == pytest.approx(T, abs=0.05)


def test_the_grid_swings_as_a_monolithic_solution_does(load):
    names = vars(load("dc_microgrid"))
    limit = names["largest_power"]()
    volts = 200.0 + math.sqrt(200.0**2 - 0.2 * limit)
    assert limit == pytest.approx(2e-3 * volts**2 * 0.2 / 1e-3, rel=1e-4)
    start = 200.0 + math.sqrt(200.0**2 - 0.2 * 35e3)
    for surge in (5e3, 25e3):
        run = hk.run(names["grid"]("20 us", 35e3, surge, "gauss-seidel", "linear"), "0.15 s")

        def rate(t, z, power):
            drawn = power * min(1.0, (z[1] / 200.0) ** 2) / z[1]
            return [(400.0 - 0.2 * z[0] - z[1]) / 1e-3, (z[0] - drawn) / 2e-3]

        z = [35e3 / start, start]
        part = solve_ivp(rate, (0.05, 0.15), z, args=(35e3 + surge,), rtol=1e-9, atol=1e-9, dense_output=True)
        t, found = run["bus.voltage"]
        late = t > 0.05
        exact = part.sol(t[late])[1]
        assert np.abs(found[late] - exact).max() < 0.005 * np.ptp(exact)


def test_the_crane_lifts_as_a_monolithic_solution_does(load):
    names = vars(load("hydraulic_crane"))

    def rate(t, z):
        torque = z[2] * 5e-3 * 0.5 - 500.0 * 9.81 * 4.0 * math.cos(z[0]) - 2e3 * z[1]
        pumped = 5e-4 if 0.5 <= t < 2.5 else 0.0
        level = 500.0 * 9.81 * 4.0 / (5e-3 * 0.5)
        return [z[1], torque / 8000.0, 8e8 / 2e-3 * (pumped - 2e-11 * (z[2] - level) - 5e-3 * 0.5 * z[1])]

    z = np.array([0.0, 0.0, 500.0 * 9.81 * 4.0 / (5e-3 * 0.5)])
    for begin, end in ((0.0, 0.5), (0.5, 2.5), (2.5, 4.0)):
        z = solve_ivp(rate, (begin, end - 1e-12), z, method="Radau", rtol=1e-9, atol=1e-9).y[:, -1]
    for level in (
        names["crane"]("40 ms", "gauss-seidel", "linear"),
        names["crane"]("40 ms", "iterate", "linear"),
    ):
        assert hk.run(level, 4).final("boom.angle") == pytest.approx(z[0], abs=2e-3)
    assert abs(hk.run(names["crane"]("40 ms"), 4).final("boom.angle") - z[0]) > 1.0


def test_balls_bounce_when_they_should(load):
    names = vars(load("bouncing_balls"))
    run = hk.run(names["balls"], "2.5 s")
    for name, left in names["RESTITUTIONS"].items():
        first = math.sqrt(2.0 / 9.81)
        exact, flight = [first], 2.0 * first * left
        while exact[-1] + flight < 2.5:
            exact.append(exact[-1] + flight)
            flight *= left
        assert names["bounces"](run, name) == pytest.approx(exact, abs=1e-9)


def test_the_engine_is_turned_on_where_a_monolithic_solution_says(load):
    names = vars(load("hybrid_vehicle"))
    found = names["switching_times"](hk.run(names["vehicle"]("0.1 s"), "200 s"))
    t_cycle, speeds = names["CYCLE"]

    def rate(t, z, engine):
        force = 2000.0 * (np.interp(t, t_cycle, speeds) - z[0])
        roll = 150.0 * min(1.0, max(-1.0, 10.0 * z[0]))
        return [(force - 0.4 * z[0] * abs(z[0]) - roll) / 1500.0, (engine - force * z[0]) / 3.6e6]

    # it starts turned on: `off` is its power while the charge is low, and 0 that above 0.55
    t, z, exact = 0.0, [0.0, 0.5], []
    low = hk.run(names["vehicle"]("0.1 s"), "1 s").final("switch.y") > 0.0
    while t < 200.0:

        def crossing(t, z, engine):
            return z[1] - (0.55 if engine else 0.45)

        crossing.terminal = True
        part = solve_ivp(
            rate, (t, 200.0), z, args=(30e3 * low,), events=crossing, rtol=1e-8, atol=1e-10, max_step=1.0
        )
        t, z = part.t[-1], part.y[:, -1]
        if part.t_events[0].size:
            exact.append(t)
            low = not low
    assert found == pytest.approx(exact, abs=0.05)


def test_the_hall_is_as_warm_as_its_machines_make_it(load):
    names = vars(load("factory"))
    run = hk.run(hk.Composite(names["factory"].scenario, "10 min"), "8 h")
    t, heat = run["line.heat"]
    exact = [291.15]
    for k in range(1, len(t)):
        rest = 288.15 + heat[k - 1] * 1e3 / 600.0
        exact.append(rest + (exact[-1] - rest) * math.exp(-600.0 / 4e6 * (t[k] - t[k - 1])))
    assert run["hall.temperature"].values == pytest.approx(exact, abs=1e-8)


def test_late_controllers_overshoot_as_a_loop_by_matrices_does(load):
    names = vars(load("pid_with_delay"))
    motor = np.array([[0, 1, 0], [0, -4, 4], [0, 0, 0]])
    for late in (0.01, 0.04):
        parts = [(expm(motor * late / 50), late), (expm(motor * (0.05 - late) / 50), 0.05 - late)]
        z, total, before, most = np.array([0.0, 0.0, 6.0]), 0.0, 1.0, 0.0
        for _ in range(80):
            error = 1.0 - z[0]
            voltage = 6.0 * error + 2.0 * total + 0.6 * (error - before) / 0.05
            total, before = total + 0.05 * error, error
            for flow, _ in parts:
                for _ in range(50):
                    z = flow @ z
                    most = max(most, z[0])
                z[2] = voltage
        run = hk.run(names["loop"](f"{1000 * late:g} ms"), "4 s", step="1 ms")
        assert max(run["motor.angle"].values) == pytest.approx(most, abs=1e-4)
