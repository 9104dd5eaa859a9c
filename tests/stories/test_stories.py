"""Five kinds of users, from an empty folder to what they wanted to know: each script as a stranger would."""

from __future__ import annotations

import csv
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from command_line import good
from fmus.build import build
from systems import EXAMPLES

HERE = Path(__file__).parent
WEATHER = runpy.run_path(str(EXAMPLES / "gallery/weather.py"))
LINES = {"engineer.sh": 10, "control.py": 32, "building.py": 29, "student.py": 22, "ci.sh": 7}
"""What each of them has to type: lines that are neither empty nor a comment."""


def tell(name: str, folder: Path) -> str:
    """Run a script in a folder, as its user would; return what it prints."""
    shell = [sys.executable] if name.endswith(".py") else ["bash", "-e"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "200", "HOCKET_CACHE": str(folder / "cache")}
    words = [*shell, str(shutil.copy(HERE / name, folder))]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", LINES)
def test_stories_are_as_long_as_we_say(name):
    lines = [line.strip() for line in (HERE / name).read_text().splitlines()]
    assert sum(bool(line) and not line.startswith("#") for line in lines) == LINES[name]


def test_an_engineer_learns_how_far_to_believe_two_fmus(tmp_path):
    for name in ("first", "second"):
        build(name, 2, folder=tmp_path)
    said = tell("engineer.sh", tmp_path)
    assert "stable: spectral radius 0.992475" in said
    # x1, v1, x2, v2 of the whole system
    A = np.array([[0, 1, 0, 0], [-0.2, -0.3, 0.1, 0.2], [0, 0, 0, 1], [0.1, 0.2, -0.2, -0.4]])

    def off(run: hk.Run) -> float:
        t, x = run["second.x"]
        exact = [(expm(A * each) @ [0.1, 0.1, 0.2, 0.1])[2] for each in t[:: max(1, len(t) // 200)]]
        return float(np.abs(x[:: max(1, len(t) // 200)] - exact).max())

    coarse, fine = (hk.open_run(tmp_path / "runs" / name) for name in ("coarse", "fine"))
    assert off(fine) < off(coarse) / 5.0
    estimate = json.loads((tmp_path / "estimate.json").read_text())
    worst = max(row["estimated_error"] for row in estimate["estimated_errors"] if row["port"] == "second.x")
    assert worst == pytest.approx(off(coarse), rel=0.1)
    page = (tmp_path / "coarse.html").read_text()
    assert "second.x" in page
    assert (tmp_path / "apart.png").stat().st_size > 10_000
    with (tmp_path / "motion.csv").open() as file:
        assert len(list(csv.reader(file))) == 5002


def overshoot(period: float, late: float) -> float:
    """Return by how much the motor goes too far under the sampled controller of the story, by matrices."""
    motor = np.array([[0, 1, 0], [0, -4, 4], [0, 0, 0]])
    K, Td, N, h = 6.0, 0.1, 20.0, period
    flows = [expm(motor * late), expm(motor * (period - late))]
    fine = [expm(motor * part / 200) for part in (late, period - late)]
    z, derivative, before, most = np.zeros(3), 0.0, 0.0, 0.0
    for _ in range(round(4.0 / period)):
        derivative = (Td * derivative - K * Td * N * (z[0] - before)) / (Td + N * h)
        before = z[0]
        control = K * (1.0 - z[0]) + derivative
        for number in range(2):
            if number or not late:
                z[2] = control
            if not late and not number:
                continue
            w = z.copy()
            for _ in range(200):
                w = fine[number] @ w
                most = max(most, w[0])
            z = flows[number] @ z
    return 100.0 * (most - 1.0)


def test_a_control_engineer_learns_what_sampling_costs(tmp_path):
    lines = tell("control.py", tmp_path).splitlines()
    said = dict(line.split(": ") for line in lines if ": " in line)
    # the open loop at s = iw: 4 K (1 + Td s / (1 + s Td / N)) / (s (s + 4))
    w = np.linspace(1.0, 20.0, 400_001)
    s = 1j * w
    loop = 24.0 * (1.0 + 0.1 * s / (1.0 + s * 0.005)) / (s * (s + 4.0))
    k = int(np.argmin(np.abs(np.abs(loop) - 1.0)))
    phase = 180.0 + np.degrees(np.angle(loop[k]))
    first = lines[0].replace(",", "").split()
    assert float(first[2]) == pytest.approx(phase, abs=0.01)
    assert float(first[6]) == pytest.approx(np.radians(phase) / w[k], abs=1e-4)
    assert float(said["sampled"].split()[1]) == pytest.approx(overshoot(0.05, 0.0), abs=2e-2)
    assert float(said["sampled, late"].split()[1]) == pytest.approx(overshoot(0.05, 0.02), abs=2e-2)
    assert float(said["late by 100 ms"].split()[0]) == pytest.approx(1.0, abs=1e-3)
    assert abs(float(said["late by 400 ms"].split()[0])) > 10.0  # beyond the delay margin
    assert (tmp_path / "gains.png").stat().st_size > 10_000


def test_a_building_researcher_gets_the_heat_of_each_month_in_a_line(tmp_path):
    WEATHER["write_weather"](tmp_path / "weather.epw")
    printed = tell("building.py", tmp_path)
    months = [float(line.split()[1]) for line in printed.splitlines() if line[:4] in ("2024", "2025")]
    assert len(months) == 12
    run = hk.open_run(tmp_path / "runs/year")
    year = 365 * 86400.0
    # what was heated went outside, or is still there: no coupling loses a joule over the year
    inside = run.aggregate("zone*.T")["mean"].to_numpy()
    outside = np.array([WEATHER["temperature"](hour) for hour in range(8761)])
    outside[0] = outside[-1]
    mean = float(np.trapezoid(outside, dx=3600.0)) / year
    ends = np.array([run.final(f"zone{k}.T") for k in range(20)])
    lost = (80.0 * (inside - mean) * year + 5e6 * (ends - 17.0)).sum() / 3.6e6
    assert sum(months) == pytest.approx(lost, rel=2e-3)
    # one zone of twenty equal ones, which exchange nothing, over January: by Heun's method

    def rate(t, T):
        weekday = (t / 86400.0) % 7 < 5  # 2024 begins on a Monday
        wanted = 21.0 if weekday and 6 <= (t / 3600.0) % 24 < 20 else 17.0
        heat = min(max(2.0 * (wanted - T), 0.0), 4.0)
        hour = int(t / 3600.0)
        air = outside[hour] + (t / 3600.0 - hour) * (outside[hour + 1] - outside[hour])
        return (1e3 * heat - 80.0 * (T - air)) / 5e6, heat

    T, heated, h = 17.0, 0.0, 120.0
    for k in range(31 * 720):
        one = rate(k * h, T)
        two = rate((k + 1) * h - 1e-6, T + h * one[0])
        T, heated = T + h * (one[0] + two[0]) / 2.0, heated + h * (one[1] + two[1]) / 2.0
    assert months[0] == pytest.approx(20.0 * heated / 3600.0, rel=0.01)
    assert (tmp_path / "zone0.parquet").stat().st_size > 100_000


def test_a_student_learns_whether_an_algorithm_is_worth_it(tmp_path):
    lines = tell("student.py", tmp_path).rstrip().splitlines()
    found = {
        line.split(":")[0]: float(line.split("radius ")[1].split(",")[0])
        for line in lines
        if "radius" in line
    }
    assert len(found) == 4
    for name, step in (("50 ms", 0.05), ("25 ms", 0.025)):
        assert found[f"gauss-seidel {name}"] == pytest.approx(radius(step, corrected=False), abs=1e-7)
        assert found[f"corrected {name}"] == pytest.approx(radius(step, corrected=True), abs=1e-7)
    assert lines[-10:] == [f"    {word}" for word in PLANNED]


PLANNED = [
    "step left", "read left", "feed right", "step right", "read right",
    "restore left", "feed left", "step left", "read left", "record",
]  # fmt: skip


def radius(h: float, corrected: bool) -> float:
    """Return the spectral radius of the student's step of (x, v, z1, z2, force), inputs held."""

    def held(A, B):
        size, width = B.shape
        whole = np.zeros((size + width, size + width))
        whole[:size, :size], whole[:size, size:] = A, B
        flow = expm(whole * h)
        return flow[:size, :size], flow[:size, size:]

    F, G = held(np.array([[0.0, 1.0], [-1.0, -0.1]]), np.array([[0.0], [1.0]]))
    P, Q = held(np.array([[0.0, 1.0], [-11.0, -1.1]]), np.array([[0.0, 0.0], [10.0, 1.0]]))
    C, D = np.array([[10.0, 1.0]]), np.array([[-10.0, -1.0]])
    left, right, force = np.eye(5)[:2], np.eye(5)[2:4], np.eye(5)[4:]
    moved = F @ left + G @ force
    other = P @ right + Q @ moved
    pull = C @ other + D @ moved
    if corrected:
        moved = F @ left + G @ pull
    return float(np.abs(np.linalg.eigvals(np.vstack([moved, other, pull]))).max())


def test_somebody_who_runs_things_in_ci_needs_exit_codes_and_documents(tmp_path):
    good_once(tmp_path)
    tell("ci.sh", tmp_path)
    compared = json.loads((tmp_path / "compared.json").read_text())
    assert (compared["verb"], compared["good"]) == ("compare", True)
    assert json.loads((tmp_path / "verdict.json").read_text())["good"] is True
    assert json.loads((tmp_path / "run.json").read_text())["status"] == "finished"
    assert "verdict" in (tmp_path / "page.html").read_text()
    # somebody breaks the model: the same script ends at the comparison, with 1
    text = (tmp_path / "reference.csv").read_text()
    (tmp_path / "reference.csv").write_text(re.sub(r",(\d)", r",9\1", text, count=1))
    shutil.rmtree(tmp_path / "runs")
    (tmp_path / "plant.toml").unlink()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    words = ["bash", str(tmp_path / "ci.sh")]
    done = subprocess.run(
        words, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert json.loads((tmp_path / "compared.json").read_text())["good"] is False


def good_once(folder: Path) -> None:
    """Write the reference that the repository keeps: the rows of a run that was looked at."""
    good("new", folder / "plant.toml")
    good(
        "run",
        folder / "plant.toml",
        "--folder",
        folder / "reference",
        "--csv",
        folder / "reference.csv",
        "--quiet",
    )
    (folder / "plant.toml").unlink()
