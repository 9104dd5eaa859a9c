"""What the tests of wrappers share: two halves of a system, one that reacts at once, one that is stuck."""

from __future__ import annotations

import numpy as np

import hocket as hk

COUPLED = np.array([[0, 1, 0, 0], [-2, -0.4, 1, 0], [0, 0, 0, 1], [1, 0, -3, -0.4]])
"""Both halves as one system."""
X0 = [1.0, 0.0, 0.0, 0.5]


def half(k, x0):
    return hk.StateSpace(
        [[0, 1], [-k, -0.4]], [[0], [1]], [[1, 0]], x0=x0, inputs=["u"], outputs=["x"], method="exact"
    )


def halves(wrap=lambda model: model):
    models = {"a": wrap(half(2, X0[:2])), "b": wrap(half(3, X0[2:]))}
    return hk.Scenario(models, {"a.u": "b.x", "b.u": "a.x"})


def reacting():
    A, B = [[0, 1], [-2, -0.4]], [[0, 0.1], [1, 0.5]]
    D = [[0.5, 0], [0, 0]]
    return hk.StateSpace(A, B, np.eye(2), D, [1, -0.5], inputs=["p", "q"], outputs=["x", "v"])


class Stuck:
    """x' = u - x by Euler; it cannot roll back."""

    inputs, outputs = ("u",), ("y",)

    def __init__(self, gain=1.0):
        self.gain = gain

    def start(self, t):
        self.x = 0.5

    def output(self, t):
        return [self.gain * self.x]

    def step(self, t, h, u):
        self.x += h * (u[0, 0] - self.x)


class Fixed(Stuck):
    variable_step = False
