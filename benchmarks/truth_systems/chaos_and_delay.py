"""Chaotic systems over a short time, oscillators on their cycle, and systems with a delay.

In:  nothing
Out: systems in the catalogue
"""

from __future__ import annotations

from typing import Any

import numpy as np

import hocket as hk
from truth_systems.parts import part
from truth_systems.reference import delayed, smooth
from truth_systems.system import System, system


def _lorenz(t: float, y: Any) -> list[float]:
    return [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]


def _lorenz_parts() -> tuple[dict[str, Any], dict[str, str]]:
    models = {
        "x": part(lambda t, s, u: [10.0 * (u[0] - s[0])], [1.0], "y", "x"),
        "yz": part(
            lambda t, s, u: [u[0] * (28.0 - s[1]) - s[0], u[0] * s[0] - 8.0 / 3.0 * s[1]],
            [1.0, 20.0],
            "x",
            "y z",
        ),
    }
    return models, {"x.y": "yz.y", "yz.x": "x.x"}


@system("smooth")
def lorenz() -> System:
    """Lorenz's equations over 2 s, inputs held."""
    models, wires = _lorenz_parts()
    reference = smooth(_lorenz, [1.0, 1.0, 20.0], 0)
    return System(models, wires, "x.x", stop=2.0, steps=(0.001, 0.04), reference=reference)


@system("smooth")
def lorenz_long() -> System:
    """The same over 8 s with linear extrapolation: what is small at first is all of it in the end."""
    models, wires = _lorenz_parts()
    reference = smooth(_lorenz, [1.0, 1.0, 20.0], 2, rtol=1e-12)
    return System(
        models, wires, "yz.z", stop=8.0, steps=(0.002, 0.02), reference=reference, extrapolation="linear"
    )


@system("smooth")
def roessler() -> System:
    """Roessler's equations: a slow spiral, and a simulator that is almost zero but for short pulses."""
    return System(
        models={
            "spiral": part(lambda t, s, u: [-s[1] - u[0], s[0] + 0.2 * s[1]], [1.0, 0.0], "z", "x y"),
            "fold": part(lambda t, s, u: [0.2 + s[0] * (u[0] - 5.7)], [0.0], "x", "z"),
        },
        wires={"spiral.z": "fold.z", "fold.x": "spiral.x"},
        port="spiral.x",
        stop=20.0,
        steps=(0.01, 0.5),
        reference=smooth(
            lambda t, y: [-y[1] - y[2], y[0] + 0.2 * y[1], 0.2 + y[2] * (y[0] - 5.7)], [1.0, 0.0, 0.0], 0
        ),
    )


@system("smooth")
def van_der_pol_on_cycle() -> System:
    """Van der Pol's oscillator, mu = 5, from a point of its cycle; position and speed are apart."""
    return System(
        models={
            "x": part(lambda t, s, u: [u[0]], [2.0], "v", "x"),
            "v": part(lambda t, s, u: [5.0 * (1.0 - u[0] ** 2) * s[0] - u[0]], [0.0], "x", "v"),
        },
        wires={"x.v": "v.v", "v.x": "x.x"},
        port="x.x",
        stop=15.0,
        steps=(0.001, 0.1),
        reference=smooth(lambda t, y: [y[1], 5.0 * y[1] - 5.0 * y[0] ** 2 * y[1] - y[0]], [2.0, 0.0], 0),
    )


@system("smooth")
def van_der_pol_pair() -> System:
    """Two oscillators of van der Pol joined by a damper: they come into step."""
    models = {
        name: part(
            lambda t, s, u, w=w: [s[1], (1.0 - s[0] ** 2) * s[1] - w * s[0] + 0.4 * (u[0] - s[1])],
            [x, 0.0],
            "other",
            "x v",
        )
        for name, x, w in (("one", 2.0, 1.0), ("two", -1.0, 1.5))
    }
    return System(
        models=models,
        wires={"one.other": "two.v", "two.other": "one.v"},
        port="one.x",
        stop=20.0,
        steps=(0.02, 0.5),
        reference=smooth(
            lambda t, y: [
                y[1],
                y[1] - y[0] ** 2 * y[1] - y[0] + 0.4 * (y[3] - y[1]),
                y[3],
                y[3] - y[2] ** 2 * y[3] - 1.5 * y[2] + 0.4 * (y[1] - y[3]),
            ],
            [2.0, 0.0, -1.0, 0.0],
            0,
        ),
    )


class DelayLine:
    """Hands on what it was given `delay` seconds ago, straight between samples; at first `before`."""

    inputs, outputs = ["u"], ["y"]
    delay_line = True
    """For the reference only."""

    def __init__(self, delay: float, before: float) -> None:
        self.delay, self.before = delay, before

    def start(self, t: float) -> None:
        self.times, self.values = [t - 1e-9], [self.before]

    def output(self, t: float) -> list[float]:
        if t < self.delay - 1e-9:
            return [self.before]
        return [float(np.interp(t - self.delay, self.times, self.values))]

    def step(self, t: float, h: float, u: Any) -> None:
        if t > self.times[-1]:
            self.times.append(t)
            self.values.append(float(u[0, 0]))

    def save(self) -> tuple[list[float], list[float]]:
        return list(self.times), list(self.values)

    def restore(self, state: tuple[list[float], list[float]]) -> None:
        self.times, self.values = list(state[0]), list(state[1])


@system("delayed")
def delayed_logistic() -> System:
    """Hutchinson's equation: growth is limited by the population of a while ago."""
    return System(
        models={
            "growth": part(lambda t, s, u: [1.8 * s[0] * (1.0 - u[0])], [0.3], "late", "x"),
            "past": hk.Python(DelayLine, delay=1.0, before=0.3),
        },
        wires={"growth.late": "past.y", "past.u": "growth.x"},
        port="growth.x",
        stop=12.0,
        steps=(0.02, 0.5),
        reference=delayed(lambda t, y, late: [1.8 * y[0] * (1.0 - late[0])], lambda t: [0.3], 1.0, 0),
    )


@system("delayed")
def mackey_glass() -> System:
    """Mackey and Glass: production of blood cells with a delay of 2, which oscillates."""
    return System(
        models={
            "cells": part(lambda t, s, u: [2.0 * u[0] / (1.0 + u[0] ** 8) - s[0]], [0.5], "late", "x"),
            "marrow": hk.Python(DelayLine, delay=2.0, before=0.5),
        },
        wires={"cells.late": "marrow.y", "marrow.u": "cells.x"},
        port="cells.x",
        stop=16.0,
        steps=(0.02, 0.8),
        extrapolation="linear",
        reference=delayed(
            lambda t, y, late: [2.0 * late[0] / (1.0 + late[0] ** 8) - y[0]], lambda t: [0.5], 2.0, 0
        ),
    )


@system("delayed")
def delayed_feedback() -> System:
    """A pendulum that a torque holds by its angle of 0.2 s ago."""
    return System(
        models={
            "rod": part(
                lambda t, s, u: [s[1], -4.0 * np.sin(s[0]) - 1.2 * s[1] - 2.0 * u[0]],
                [2.0, 0.0],
                "late",
                "a w",
            ),
            "wire": hk.Python(DelayLine, delay=0.2, before=2.0),
        },
        wires={"rod.late": "wire.y", "wire.u": "rod.a"},
        port="rod.a",
        stop=8.0,
        steps=(0.02, 0.2),
        reference=delayed(
            lambda t, y, late: [y[1], -4.0 * np.sin(y[0]) - 1.2 * y[1] - 2.0 * late[0]],
            lambda t: [2.0, 0.0],
            0.2,
            0,
        ),
    )
