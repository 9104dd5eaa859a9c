"""Modes of an Ode: kinks are told from what bends smoothly, and from what fades far away."""

from __future__ import annotations

import numpy as np
import pytest

import hocket as hk
from hocket.analysis.switched_modes import modes_of_ode

SMOOTH = {
    "softened gravity": lambda u: u / (u * u + 0.1) ** 1.5,
    "bell": lambda u: np.exp(-u * u),
    "tanh": np.tanh,
    "steep tanh": lambda u: np.tanh(20.0 * u),
    "root": lambda u: u / np.sqrt(1.0 + u * u),
    "Hill": lambda u: u**4 / (1.0 + u**4),
}
KINKED = {
    "saturation": (lambda u: min(max(u, -1.0), 1.0), 3),
    "diode": (lambda u: max(u, 0.0), 2),
    "dead zone": (lambda u: u - min(max(u, -0.5), 0.5), 3),
    "stop": (lambda u: 400.0 * max(u - 0.3, 0.0), 2),
}


def modes(law, u=0.2):
    """Return the modes of a lag whose input goes through a law."""
    model = hk.Ode(lambda t, x, u: [law(float(u[0])) - x[0]], x0=[0.1], inputs=["u"], outputs=["y"])
    return modes_of_ode(model, np.array([0.1]), np.array([u]), 0.0)


@pytest.mark.parametrize("name", SMOOTH)
def test_what_is_smooth_has_one_mode(name):
    assert modes(SMOOTH[name]) is None


@pytest.mark.parametrize("name", KINKED)
def test_kinks_part_modes(name):
    law, count = KINKED[name]
    assert len(modes(law).tangents) == count


def test_two_bodies_that_attract_each_other_are_not_called_switched():
    """The force fades with distance, and is nearly constant a hundred units away: that is not a mode."""

    def body(x, v):
        def f(t, s, u):
            d = np.asarray(u) - s[:2]
            return [s[2], s[3], *(d / (d @ d + 0.05) ** 1.5)]

        return hk.Ode(
            f,
            lambda t, s, u: [s[0], s[1]],
            x0=[x, 0.0, 0.0, v],
            inputs=["a", "b"],
            outputs=["x", "y"],
            feedthrough={},
        )

    models = {"p": body(1.0, 0.4), "q": body(-1.0, -0.4)}
    wires = {"p.a": "q.x", "p.b": "q.y", "q.a": "p.x", "q.b": "p.y"}
    found = hk.check(hk.Composite(hk.Scenario(models, wires), "20 ms", extrapolation="linear"), 2.0)
    assert found.switched is None
    assert found.judgement == "sound"
