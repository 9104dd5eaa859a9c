"""Every example runs, and its numbers are right."""

import math
import re
import runpy
import shlex
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
    tested |= {"bouncing_ball.py", "sampled_pid.py", "can_bus.py", "production_line.py", "house.toml"}
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
    assert 'recommended change: orchestrator "gauss-seidel" and extrapolation "linear"' in said[3]
    better = hocket.Composite(experiment.composite.scenario, "0.1 s", "gauss-seidel", extrapolation="linear")
    off = np.abs(hocket.run(better, experiment.stop)["a.x"].values - np.array(exact)[:, 0]).max()
    assert off / np.abs(np.array(exact)[:, 0]).max() == pytest.approx(0.025, abs=0.001)


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


def switching_times(stop: float) -> list[float]:
    """Return when the heater switches: T' = -3e-4 (T - goal), so each stretch is a logarithm."""
    low, high, t, kelvin, heats, found = 292.65, 294.15, 0.0, 288.15, True, []
    while True:
        goal, limit = (278.15 + 1500.0 / 60.0, high) if heats else (278.15, low)
        t += math.log((kelvin - goal) / (limit - goal)) / 3e-4
        if t > stop:
            return found
        kelvin, heats = limit, not heats
        found.append(t)


@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_the_thermostat_switches_when_the_room_is_at_its_limits(engine):
    script = runpy.run_path(str(EXAMPLES / "thermostat.py"))["house"]
    file = hocket.read(EXAMPLES / "house.toml").composite
    for house in (script, file):
        run = hocket.run(house, "4 h", engine=engine)
        heat = run["thermostat.heat"]
        switched = heat.t[1:][np.diff(heat.values) != 0]
        assert switched == pytest.approx(switching_times(14400.0), abs=1e-8, rel=0.0)
        t, kelvin = run["room.temperature"]
        assert kelvin[t > switched[0]].min() == pytest.approx(292.65, abs=1e-12, rel=0.0)
        assert kelvin.max() == pytest.approx(294.15, abs=1e-12, rel=0.0)


def test_ball_and_table_meet_when_a_monolithic_solution_says():
    names = runpy.run_path(str(EXAMPLES / "bouncing_ball.py"))
    run = hocket.run(names["experiment"], "1.8 s")
    met = [t for t, value in zip(*run["impact.event"], strict=True) if value == -1.0]

    def rate(t, z):
        return [z[1], -9.81, z[3], -(200.0 * z[2] + 4.0 * z[3]) / 2.0]

    def gap(t, z):
        return z[0] - z[2]

    gap.terminal, gap.direction = True, -1
    t, z, exact = 0.0, np.array([1.0, 0.0, 0.0, 0.0]), []
    while True:
        part = solve_ivp(rate, (t, 1.8), z, events=gap, rtol=1e-11, atol=1e-13)
        if not part.t_events[0].size:
            break
        t, z = part.t[-1], part.y[:, -1].copy()
        exact.append(t)
        common = (0.5 * z[1] + 2.0 * z[3]) / 2.5  # the speed of both if they stuck together
        z[1], z[3] = common - 0.7 * (z[1] - common), common - 0.7 * (z[3] - common)
        z[0] = z[2] + 1e-15
    assert met[0] == pytest.approx(math.sqrt(2.0 / 9.81), abs=1e-11)
    assert len(met) == len(exact) == 7
    assert met == pytest.approx(exact, abs=1e-7)


def test_the_sampled_pid_follows_a_loop_by_hand():
    loop = runpy.run_path(str(EXAMPLES / "sampled_pid.py"))["loop"]
    run = hocket.run(loop("20 ms"), "4 s")
    whole = np.array([[0, 1, 0], [0, -4, 4], [0, 0, 0]])  # angle, speed, voltage
    late, rest = expm(whole * 0.02), expm(whole * 0.03)
    z, total, before, angles = np.array([0.0, 0.0, 6.0]), 0.0, 1.0, []
    for _ in range(80):
        error = 1.0 - z[0]
        angles.append(z[0])
        voltage = 6.0 * error + 2.0 * total + 0.6 * (error - before) / 0.05
        total, before = total + 0.05 * error, error
        z = late @ z
        z[2] = voltage
        z = rest @ z
    t, angle = run["motor.angle"]
    at_samples = [angle[np.abs(t - 0.05 * k) < 1e-9][0] for k in range(80)]
    assert at_samples == pytest.approx(angles, abs=1e-9)


def test_the_can_bus_delivers_by_priority():
    names = runpy.run_path(str(EXAMPLES / "can_bus.py"))
    run = hocket.run(names["network"], "12 ms")
    frame, stop = names["FRAME"], Fraction(12, 1000)
    asked = sorted((k * period, who) for who, period in names["PERIODS"].items() for k in range(20))
    free, waiting, exact = Fraction(0), [], []
    while True:
        waiting += [who for t, who in asked if t <= free]
        asked = [each for each in asked if each[0] > free]
        if not waiting:
            free = asked[0][0]
            continue
        waiting.sort()
        free += frame
        if free > stop:
            break
        exact.append((float(free), waiting.pop(0)))
    found = names["deliveries"](run)
    assert [who for _, who in found] == [who for _, who in exact]
    assert [t for t, _ in found] == pytest.approx([t for t, _ in exact], abs=1e-12)


def test_the_hall_follows_the_heat_of_the_production_line():
    pytest.importorskip("simpy")
    run = hocket.run(runpy.run_path(str(EXAMPLES / "production_line.py"))["factory"], "8 h")
    t, heat = run["line.heat"]
    _, kelvin = run["hall.temperature"]
    exact = [291.15]
    for k in range(1, len(t)):  # between rows the heat is that of the row before
        rest = 288.15 + heat[k - 1] * 1e3 / 600.0
        exact.append(rest + (exact[-1] - rest) * math.exp(-600.0 / 4e6 * (t[k] - t[k - 1])))
    assert kelvin == pytest.approx(exact, abs=1e-8)
    begins = np.flatnonzero(np.diff(heat) > 0) + 1
    assert kelvin.max() > 299.15
    assert all(kelvin[begins] <= 299.15 + 1e-9)  # no machine begins while it is too warm


def test_the_page_on_events_runs(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "events.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 6
    monkeypatch.chdir(tmp_path)
    names: dict = {"hk": hocket}
    for block in blocks:
        exec(block, names)
    heater = next(block for block in blocks if "class Heater" in block).split("\nroom =")[0]
    (tmp_path / "house.py").write_text("import hocket as hk\n" + heater)
    (file,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "house.toml").write_text(file)
    run = hocket.run(hocket.read(tmp_path / "house.toml"))
    heat = run["heater.heat"]
    switched = heat.t[1:][np.diff(heat.values) != 0]
    assert switched == pytest.approx(switching_times(7200.0), abs=0.02)  # a crossing with a tolerance of 1 ms


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


def test_the_readme_runs_in_three_lines_and_once_more_with_fmus(tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text()
    three, fmus = (block.split("```")[0] for block in text.split("```python\n")[1:])
    assert len(three.strip().splitlines()) == len(fmus.strip().splitlines()) == 3
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second"):
        build(name, 2, folder=tmp_path)
    good("new", "demo.toml")
    names: dict = {}
    exec(three, names)
    exec(fmus, names)
    assert Path("demo.png").stat().st_size > 10_000
    assert Path("masses.png").stat().st_size > 10_000
    (command,) = [line for line in text.splitlines() if "hocket run first.fmu" in line]
    good(*shlex.split(command)[1:], "--csv", "masses.csv")
    rows = np.genfromtxt("masses.csv", delimiter=",", names=True)
    A = np.array([[0, 1, 0, 0], [-0.2, -0.3, 0.1, 0.2], [0, 0, 0, 1], [0.1, 0.2, -0.2, -0.4]])
    exact = (expm(A * 10.0) @ [0.1, 0.1, 0.2, 0.1])[2]
    (column,) = [name for name in rows.dtype.names if name.startswith("secondx")]
    assert rows[column][-1] == pytest.approx(exact, abs=5e-4)  # held inputs, 10 ms


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
