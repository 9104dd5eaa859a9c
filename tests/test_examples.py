"""Every example runs, and its numbers are right."""

import runpy
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import hocket
from command_line import good, invoked
from fmus.build import build
from hocket.planning.compiler.distribution import Distribution
from systems import EXAMPLES, ROOT


def test_every_example_is_tested():
    tested = {"three_masses.py", "two_fmus.py", "two_masses.toml", "thermostat.py", "car.toml", "skyhook.py"}
    tested |= {"spring_mass.toml", "two_hosts.toml", "massless_link.toml", "tuned_masses.toml", "masses.toml"}
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} == tested


def test_three_masses_prints_the_thesis_and_draws(tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / "three_masses.py", tmp_path], capture_output=True, text=True, check=True
    )
    rows = {line[2:30].strip(): line[30:].split() for line in done.stdout.splitlines() if ", H = " in line}
    # tables 6.4: largest errors of x1, x2, x3 after 100 s
    assert rows["flat, H = 0.1"][:3] == ["0.2371", "5.3824", "0.5355"]
    assert rows["nested, H = 0.1 / 0.025"][:3] == ["0.0257", "0.2897", "0.0686"]
    assert rows["nested, H = 0.2 / 0.05"][:3] == ["0.0581", "0.6956", "0.1064"]
    assert (tmp_path / "three_masses.png").stat().st_size > 10_000


def test_two_masses_follow_the_matrix_exponential():
    experiment = hocket.read(EXAMPLES / "two_masses.toml")
    run = hocket.run(experiment.composite, experiment.stop)
    # x1, v1, x2, v2 of the whole system
    A = np.array([[0, 1, 0, 0], [-0.2, -0.3, 0.1, 0.2], [0, 0, 0, 1], [0.1, 0.2, -0.2, -0.4]])
    propagator, state = expm(A * 0.1), np.array([0.1, 0.1, 0.2, 0.1])
    exact = [state]
    for _ in range(500):
        exact.append(propagator @ exact[-1])
    error = np.abs(run["second.x"].values - np.array(exact)[:, 2]).max()
    assert error < 1e-4


def test_the_readme_prints_what_check_says_of_the_masses_and_the_run_is_that_wrong():
    said = invoked("check", EXAMPLES / "masses.toml").stdout.splitlines()
    shown = (ROOT / "README.md").read_text().split("$ hocket check examples/masses.toml\n")[1].splitlines()
    assert [line.strip() for line in shown[:4]] == said[:4]
    experiment = hocket.read(EXAMPLES / "masses.toml")
    run = hocket.run(experiment.composite, experiment.stop)
    # x, v of a, then of b: the force is 10 (xb - xa) + (vb - va)
    A = [[0, 1, 0, 0], [-1.1, -0.11, 1, 0.1], [0, 0, 0, 1], [1, 0.1, -11, -0.3]]
    exact = [np.array([1.0, 0.0, 2.0, 0.0])]
    for _ in range(250):
        exact.append(expm(np.array(A) * 0.1) @ exact[-1])
    error = np.abs(run["a.x"].values - np.array(exact)[:, 0]).max()
    assert error == pytest.approx(1.77415, rel=1e-4)
    assert error / np.abs(np.array(exact)[:, 0]).max() == pytest.approx(1.72, abs=0.01)


def test_spring_and_mass_gain_what_the_hold_invents():
    experiment = hocket.read(EXAMPLES / "spring_mass.toml")
    run = hocket.run(experiment)
    # a hold makes 1 + (omega H)^2 of the energy in each step, (1 + 0.5^2) / 2 J at first
    made = 0.625 * (1.04**100 - 1.0)
    assert run.info["bonds"]["joint"]["gained"] == pytest.approx(made, rel=1e-9)
    stored = (run["spring.force"].values ** 2 + run["mass.speed"].values ** 2) / 2.0
    assert stored[-1] - stored[0] == pytest.approx(made, rel=1e-9)


def test_two_fmus_follow_the_matrix_exponential(tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / "two_fmus.py", tmp_path], capture_output=True, text=True, check=True
    )
    A = np.array([[0, 1, 0, 0], [-0.2, -0.3, 0.1, 0.2], [0, 0, 0, 1], [0.1, 0.2, -0.2, -0.4]])
    exact = (expm(A * 50.0) @ [0.1, 0.1, 0.2, 0.1])[2]
    assert float(done.stdout.split(" is at ")[1].split()[0]) == pytest.approx(exact, abs=1e-4)
    assert (tmp_path / "two_fmus.png").stat().st_size > 10_000


def test_the_thermostat_keeps_the_room_between_its_limits():
    house = runpy.run_path(str(EXAMPLES / "thermostat.py"))["house"]
    run = hocket.run(house, "4 h")
    t, kelvin = run["room.temperature"]
    settled = kelvin[t > 3600] - 273.15
    # a limit is noticed up to a minute late and answered a minute later; until then the room cools at
    # 15 K * 60 W/K / 200 kJ/K = 4.5 mK/s, or warming at (1500 - 960) W / 200 kJ/K = 2.7 mK/s
    assert 19.5 - 120 * 4.6e-3 < settled.min() < 19.5 - 60 * 4.2e-3
    assert 21.0 + 60 * 2.4e-3 < settled.max() < 21.0 + 120 * 2.8e-3
    heat = run["thermostat.heat"]
    assert set(heat.values) == {0.0, 1500.0}
    switched = heat.t[1:][np.diff(heat.values) != 0]
    assert len(switched) > 4
    assert np.allclose(switched % 60, switched[0] % 60)


def test_the_car_follows_a_monolithic_solution():
    experiment = hocket.read(EXAMPLES / "car.toml")
    run = hocket.run(experiment.composite, experiment.stop)
    body, wheel, spring, damper, tyre, sky = 400.0, 40.0, 16e3, 1e3, 160e3, 1500.0

    def rate(t, z, control):
        xb, vb, xw, vw = z
        strut = spring * (xw - xb) + damper * (vw - vb)
        road = np.interp(t, [0.5, 0.52], [0.0, 0.05])
        return [vb, (strut + control) / body, vw, (tyre * (road - xw) - strut) / wheel]

    z, times, exact = np.zeros(4), [0.0], [0.0]
    for sample in range(200):  # the controller holds its force for 20 ms
        begin = sample * 0.02
        points = [begin + 0.01, begin + 0.02]
        part = solve_ivp(
            rate, (begin, begin + 0.02), z, t_eval=points, args=(-sky * z[1],), rtol=1e-9, max_step=2e-3
        )
        z = part.y[:, -1]
        times += points
        exact += list(part.y[0])
    t, x = run["chassis.body.x"]
    outer = x[np.isin(np.round(t, 6), np.round(times, 6))]
    error = np.abs(outer - exact).max()
    # the road is held for 10 ms, so the kerb comes up to 10 ms late at some 0.2 m/s
    assert error < 0.2 * 0.015
    assert run.final("chassis.body.x") == pytest.approx(0.05, abs=1e-4)
    assert run.final("chassis.axle.wheel.x") == pytest.approx(50.0, abs=0.1)  # in mm


def test_the_readme_runs(tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text()
    fmus, code = (block.split("```")[0] for block in text.split("```python\n")[1:])
    assert len(code.strip().splitlines()) <= 12
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second"):
        build(name, 2, folder=tmp_path)
    exec(fmus, {})
    Path("masses.png").unlink()
    names: dict = {}
    exec(code, names)
    # golden two_mass: exact x2 at t = 50 is -0.000304456633298077
    assert names["run"].final("mass.x") == pytest.approx(-0.000304456633298077, abs=5e-6)
    assert Path("masses.png").exists()


def test_two_hosts_need_few_messages():
    """As its comment says, against the matrix exponential."""
    experiment = hocket.read(EXAMPLES / "two_hosts.toml")
    run = hocket.run(
        Distribution("20 ms", "cubic").apply(experiment.composite), experiment.stop, engine="interpreter"
    )
    whole = np.array([[0, 1, 0, 0], [-2, -1, 1, 0.5], [0, 0, 0, 1], [1, 0.5, -2, -1]])
    series = run["plant.left.x"]
    exact = np.array([(expm(whole * t) @ [1.0, 0, 0, 0])[0] for t in series.t])
    assert np.abs(series.values - exact).max() < 1.25e-3
    assert sum(link["messages"] for link in run.info["counts"]["messages"].values()) == 108


def test_the_massless_link_moves_both_masses_as_one():
    experiment = hocket.read(EXAMPLES / "massless_link.toml")
    run = hocket.run(experiment.composite, experiment.stop)
    joined = np.array([[0.0, 1.0], [-3.0 / 2.0, -0.8 / 2.0]])  # masses, springs and dampers add up
    flow, state, exact = expm(joined * 0.025), np.array([1.0, 0.0]), []
    for _ in run["left.x"].t:
        exact.append(state[0])
        state = flow @ state
    for port in ("left.x", "right.x"):
        assert np.abs(np.array(run[port].values) - exact).max() < 1e-6
    assert np.abs(np.array(run["link.gap1"].values)).max() < 1.6e-6


def test_tuned_masses_are_fifty_times_better_at_the_same_work(tmp_path):
    file = EXAMPLES / "tuned_masses.toml"
    good("tune", file, "--workers", "1", "--out", tmp_path / "tuned.toml")
    # Hafner's thesis, equation 6.76 with its entry (4, 5) corrected, scenario 2
    A = np.zeros((6, 6))
    A[0::2, 1::2] = np.eye(3)
    A[1::2, 0::2] = np.array([[-0.101, 0.1, 0], [0.1, -10.1, 10], [0, 10, -110]]) / 10.0
    A[1::2, 1::2] = np.array([[-0.5, 0.4, 0], [0.4, -1.4, 1], [0, 1, -3]]) / 10.0
    off = []
    for scenario in (file, tmp_path / "tuned.toml"):
        experiment = hocket.read(scenario)
        assert experiment.composite.step == Fraction(1, 10)
        run = hocket.run(experiment)
        exact = np.array([expm(A * t) @ [1, 0, 2, 0, 3, 0] for t in run["first.x"].t])
        names = ("first.x", "first.v", "second.x", "second.v", "third.x", "third.v")
        off.append(max(np.abs(run[name].values - exact[:, n]).max() for n, name in enumerate(names)))
    assert off[1] < off[0] / 50.0
