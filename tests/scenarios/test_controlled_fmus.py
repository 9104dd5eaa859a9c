"""Step control on FMUs: a quarter truck by energy beside ECCO, and a tank whose steps end at its limits."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from fmus.build import build
from hocket.plan.plan import NoteKind
from hocket.planning.planner import plan_tree

# The quarter truck of Sadjina et al. 2017: chassis, and a wheel with suspension that meets a step of the road

CHASSIS, WHEEL, SPRING, DAMPER, TYRE, ROAD = 400.0, 40.0, 15e3, 1e3, 150e3, 0.1
END = 4
WHOLE = np.array(
    [
        [-DAMPER / CHASSIS, -SPRING / CHASSIS, SPRING / CHASSIS, DAMPER / CHASSIS, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 0, 1, 0],
        [DAMPER / WHEEL, SPRING / WHEEL, -(SPRING + TYRE) / WHEEL, -DAMPER / WHEEL, TYRE * ROAD / WHEEL],
        [0, 0, 0, 0, 0],
    ]
)
"""Of the chassis' velocity and position, the wheel's position and velocity, and one: solved as a whole."""
PORTS = ("chassis.velocity", "chassis.position", "wheel.position", "wheel.speed")


def motion_error(t, found) -> float:
    """Return the largest error of a port, as a part of its largest value, against the matrix exponential."""
    x, rows, known = np.array([0, 0, 0, 0, 1.0]), [], {}
    for h in np.diff(t, prepend=0.0).round(15):
        known[h] = known[h] if h in known else expm(WHOLE * h)
        x = known[h] @ x
        rows.append(x)
    true = np.array(rows)
    return max(np.abs(found[:, k] - true[:, k]).max() / np.abs(true[:, k]).max() for k in range(4))


@cache
def ecco(tolerance: float) -> tuple[int, float, float]:
    """Return steps, error of motion and energy residual of ECCO, written down anew from the paper.

    Jacobi with held inputs, a PI controller of the energy residual, nothing is taken back; the halves are
    solved exactly. Gains, limits and first step are those that the public example of libcosim has.
    """
    p_gain, i_gain, safety, least, most = 0.2, 0.15, 0.99, 0.2, 1.5
    first, smallest, largest = 1e-4, 1e-5, 1e-2
    half = np.zeros((6, 6))  # the chassis as the wheel sees it, position, speed; given; integral; one
    half[0, 3], half[1, 2], half[4, 1] = 1, 1, 1
    half[2] = [SPRING, -(SPRING + TYRE), -DAMPER, DAMPER, 0, TYRE * ROAD]
    half[2] /= WHEEL
    z, v, wheel, force, given = 0.0, 0.0, np.zeros(3), 0.0, 0.0
    t, h, before, residual = [0.0], first, 0.0, 0.0
    rows = [[0.0] * 4]
    while t[-1] < END - 1e-12:
        h = min(h, END - t[-1])
        moved = expm(half * h) @ [*wheel, given, 0.0, 1.0]
        impulse = TYRE * (ROAD * h - moved[4]) - WHEEL * (moved[2] - wheel[2])
        dz = h * (v + h / 2 * force / CHASSIS)
        residual += abs(force * dz - given * impulse)
        z, v, wheel = z + dz, v + h * force / CHASSIS, moved[:3]
        new = SPRING * (wheel[1] - wheel[0]) + DAMPER * (wheel[2] - given)
        gained = abs(force * v - given * new) * h
        error = gained / (tolerance + tolerance * gained)
        t.append(t[-1] + h)
        rows.append([v, z, wheel[1], wheel[2]])
        force, given = new, v
        if len(t) > 2:
            if before and error:
                rate = safety * error ** (-i_gain - p_gain) * before**p_gain
                h = min(largest, max(smallest, h * min(most, max(least, rate))))
            before = error
    return len(t) - 1, motion_error(t, np.array(rows)), residual


@pytest.fixture(scope="module")
def truck(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("truck")
    parts: dict[str, Path] = {name: build(name, 2, folder=folder) for name in ("chassis", "wheel")}
    wires = {"chassis.force": "wheel.force", "wheel.velocity": "chassis.velocity"}
    bonds = {"joint": hk.Bond("chassis.force", "wheel.velocity")}

    def judge(way: hk.Orchestrator, step: str, **options: Any) -> tuple[int, float, float]:
        """Return steps, those taken back included, the error of motion and the energy residual."""
        models = {name: hk.Fmu(path, **options) for name, path in parts.items()}
        composite = hk.Composite(hk.Scenario(models, wires, bonds=bonds), step, way, "hold")
        run = hk.run(composite, END, ledger=True)
        found = np.array([run[port].values for port in PORTS]).T
        adapted = run.info["counts"].get("adapted", {"": {"rejected": 0}})[""]
        gained = np.abs(np.diff(run["joint.gained"].values)).sum()
        t = run[PORTS[0]].t
        return len(t) - 1 + adapted["rejected"], motion_error(t, found), gained

    return judge


@pytest.mark.parametrize(
    ("of_ecco", "step", "tolerance", "of_jacobi"),
    [
        (1e-2, "100 ms", 4.9e-3, 0.8e-2),
        (1e-3, "100 ms", 5.8e-4, 0.9e-3),
        (1e-2, "10 ms", 8.3e-3, None),
        (1e-3, "10 ms", 6.9e-4, None),
    ],
)
def test_energy_control_by_default_beside_ecco(truck, of_ecco, step, tolerance, of_jacobi):
    """With no more steps less error of motion, and a smaller energy residual."""
    theirs = ecco(of_ecco)
    steps, motion, gained = truck(hk.Adaptive(tolerance=tolerance, estimate="energy"), step)
    fixed = truck(hk.Jacobi(), f"1/{-(-steps // END)} s")
    rows = {"default": (steps, motion, gained), "ECCO": theirs, "fixed": fixed}
    if of_jacobi is not None:
        rows["Jacobi"] = truck(hk.Adaptive(hk.Jacobi(), of_jacobi, "energy"), step)
        assert rows["Jacobi"][0] <= theirs[0]
        assert rows["Jacobi"][1] < theirs[1]
        assert rows["Jacobi"][2] < 1.08 * theirs[2]
    for name, each in rows.items():
        print(f"{name}: {each[0]} steps, motion {each[1]:.2e}, residual {each[2]:.3g} J")
    assert steps <= theirs[0]
    assert motion < 0.4 * theirs[1]
    assert gained < 0.85 * theirs[2]
    assert gained < fixed[2] / 4
    assert motion < fixed[1] / 5


# A tank that fills through a valve and drains by itself


class Valve:
    """Opens at the lower limit and closes at the upper one."""

    def start(self, t):
        self.open = True

    def _look(self, u):
        if u[0, 0] >= 2.0 - 1e-9:
            self.open = False
        elif u[0, 0] <= 1.0 + 1e-9:
            self.open = True

    def step(self, t, h, u):
        self._look(u)

    def output(self, t, u):
        self._look(u)
        return [float(self.open)]

    def save(self):
        return self.open

    def restore(self, state):
        self.open = state


def exact_level(t):
    """A sawtooth: 0.3 m/s up to 2 m, 0.2 m/s down to 1 m, from 1.5 m."""
    s = (t - 0.5 / 0.3) % (1 / 0.3 + 5)
    return np.where(t < 0.5 / 0.3, 1.5 + 0.3 * t, np.where(s < 5, 2 - 0.2 * s, 1 + 0.3 * (s - 5)))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("adaptive", [False, True])
def test_a_tank_discards_steps_and_its_limits_are_met(tmp_path, version, adaptive):
    tank = hk.Fmu(build("tank", version, folder=tmp_path), early_return=True)
    valve = hk.Python(Valve, inputs=["level"], outputs=[hk.Port("valve", feedthrough=("level",), held=True)])
    wires = {"tank.valve": "valve.valve", "valve.level": "tank.level"}
    order = hk.GaussSeidel(["tank", "valve"])
    way = hk.Adaptive(order, 1e-3) if adaptive else order
    run = hk.run(hk.Composite(hk.Scenario({"tank": tank, "valve": valve}, wires), "0.7 s", way), 28)
    t, level = run["tank.level"].t, run["tank.level"].values
    assert level == pytest.approx(exact_level(t), abs=1e-9)
    turns = [0.5 / 0.3 + n * (1 / 0.3 + 5) + (5 if late else 0) for n in range(3) for late in (False, True)]
    assert all(np.abs(t - turn).min() < 1e-9 for turn in turns)
    assert level.max() == pytest.approx(2.0, abs=1e-9)
    assert level.min() == pytest.approx(1.0, abs=1e-9)


# what step control does not see


def test_reals_of_a_tool_that_declares_all_discrete_are_controlled(tmp_path):
    """Without them the estimate is zero, and steps grow to the longest: an error of 100 %."""
    discrete = {name: {"variability": "discrete"} for name in ("force", "velocity")}
    body, wheel = (build(name, 2, folder=tmp_path, variables=discrete) for name in ("chassis", "wheel"))
    wires = {"chassis.force": "wheel.force", "wheel.velocity": "chassis.velocity"}
    models = {"chassis": hk.Fmu(body), "wheel": hk.Fmu(wheel)}
    composite = hk.Composite(hk.Scenario(models, wires), "100 ms", hk.Adaptive(tolerance=0.05))
    notes = plan_tree(composite).plan.all_notes()
    assert any("declared discrete" in note and note.kind is NoteKind.STEP_CONTROL for note in notes)
    run = hk.run(composite, END)
    found = np.array([run[port].values for port in PORTS]).T
    assert motion_error(run[PORTS[0]].t, found) < 0.1
