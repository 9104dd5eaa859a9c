"""The double oscillator of requirements.md 1.2: m = 1, c1 = c2 = cc = 1, d = 0.5 each, x1(0) = 1, T = 10."""

import numpy as np
import pytest
from scipy.linalg import expm

import hocket as hk
from hocket.planning.compiler.accuracy import Accuracy, accepted_steps

WHOLE = np.array([[0, 1, 0, 0], [-2, -1, 1, 0.5], [0, 0, 0, 1], [1, 0.5, -2, -1.0]])
SEEN = ("left.x", "left.v", "right.x", "right.v")
LEFT = hk.StateSpace(
    [[0, 1], [-1, -0.5]], [[0], [1]], np.eye(2), x0=[1, 0], inputs=["force [N]"], outputs=["x [m]", "v [m/s]"]
)
RIGHT = hk.StateSpace(
    [[0, 1], [-2, -1]],
    [[0, 0], [1, 0.5]],
    [[1, 0], [0, 1], [1, 0.5]],
    [[0, 0], [0, 0], [-1, -0.5]],
    inputs=["x1 [m]", "v1 [m/s]"],
    outputs=["x [m]", "v [m/s]", "force [N]"],
)
WIRES = {"left.force": "right.force", "right.x1": "left.x", "right.v1": "left.v"}


class Mass:
    """The left one as a black box: exact for a held force, and it cannot roll back."""

    inputs = ("force [N]",)
    outputs = ("x [m]", "v [m/s]")
    input_degree = 0

    def start(self, t):
        self.z, self.t = np.array([1.0, 0.0]), t

    def output(self, t):
        return self.z

    def step(self, t, h, u):
        assert t == pytest.approx(self.t, abs=1e-12)
        phi = expm(np.array([[0, 1, 0], [-1, -0.5, 1], [0, 0, 0.0]]) * h)
        self.z, self.t = phi[:2, :2] @ self.z + phi[:2, 2] * u[0, 0], t + h


def oscillator(left=LEFT, right=RIGHT, **level):
    return hk.Composite(hk.Scenario({"left": left, "right": right}, WIRES), 1, **level)


def compiled(level=None, tolerance=1e-3, **options):
    options = {"first": 0.01, "watch": ("*.x", "*.v")} | options
    return Accuracy(10, tolerance, **options).apply(level or oscillator())


def run(level, steps, **how):
    found = accepted_steps(hk.run(level, stop=steps, **how))
    assert found.finished
    assert found.t[-1] == 10.0
    return found


def error(found, ports=SEEN):
    exact = np.array([expm(WHOLE * t)[:, 0] for t in found.t])
    return float(np.max(np.abs(np.array([found[port] for port in ports]).T - exact)))


def bare(level):
    """Return a level without the reasons of what was inserted."""
    models = {
        name: bare(model) if isinstance(model, hk.Composite) else model
        for name, model in level.scenario.models.items()
    }
    return level.with_changes(scenario=level.scenario.with_changes(models=models, inserted={}))


LAGGED = hk.StateSpace([[-1]], [[1]], [[1]], x0=[1], inputs=["u"], outputs=["y"])
