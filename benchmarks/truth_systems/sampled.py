"""Sampled controllers: proportional, with integral, late by a period, switching, with limits.

In:  nothing
Out: systems in the catalogue; periods stay when the macro step changes
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import hocket as hk
from truth_systems.parts import part
from truth_systems.reference import sampled
from truth_systems.system import System, system

Law = Callable[[Any, float], tuple[float, float]]
"""From inputs and memory to output and new memory."""


def _controller(law: Law, inputs: str, period: float, *, late: bool = False) -> hk.Python:
    """Return a sampled controller; its output follows the sample at once, or a period later."""
    sample = law

    class Late:
        law, prompt = staticmethod(sample), False  # for the reference

        def start(self, t: float) -> None:
            self.memory, self.shown = 0.0, 0.0

        def output(self, t: float) -> list[float]:
            return [self.shown]

        def step(self, t: float, h: float, u: Any) -> None:
            self.shown, self.memory = law(u[0], self.memory)

    class Prompt(Late):
        prompt = True

        def output(self, t: float, u: Any) -> list[float]:  # type: ignore[override]
            return [law(u[0], self.memory)[0]]

    return hk.Python(Late if late else Prompt, inputs=inputs.split(), outputs=["u"], period=period)


@system("sampled")
def sampled_p() -> System:
    """A sampled proportional controller of a tank whose outflow is a root."""
    return System(
        models={
            "tank": part(lambda t, s, u: [u[0] - 0.8 * np.sqrt(max(s[0], 0.0))], [0.2], "u", "y"),
            "control": _controller(lambda u, m: (max(4.0 * (1.0 - u[0]), 0.0), m), "y", 0.2),
        },
        wires={"tank.u": "control.u", "control.y": "tank.y"},
        port="tank.y",
        stop=6.0,
        steps=(0.1, 0.6),
        reference=sampled(
            lambda t, y, held: [held - 0.8 * np.sqrt(max(y[0], 0.0))],
            [0.2],
            lambda t, y, m: (max(4.0 - 4.0 * y[0], 0.0), m),
            None,
            0.2,
            0,
        ),
    )


@system("sampled")
def sampled_p_late() -> System:
    """The same kind of loop about a cubic plant; what the controller computes acts a period later."""
    return System(
        models={
            "plant": part(lambda t, s, u: [s[1], u[0] - s[0] ** 3 - 0.5 * s[1]], [1.5, 0.0], "u", "y v"),
            "control": _controller(lambda u, m: (-2.0 * u[0] - 1.0 * u[1], m), "y v", 0.1, late=True),
        },
        wires={"plant.u": "control.u", "control.y": "plant.y", "control.v": "plant.v"},
        port="plant.y",
        stop=8.0,
        steps=(0.05, 0.4),
        reference=sampled(
            lambda t, y, held: [y[1], held - y[0] ** 3 - 0.5 * y[1]],
            [1.5, 0.0],
            lambda t, y, m: (-2.0 * y[0] - y[1], m),
            None,
            0.1,
            0,
            late=0.0,
        ),
    )


@system("sampled")
def sampled_pi() -> System:
    """A sampled PI controller of a pendulum that is turned to 120 degrees."""
    return System(
        models={
            "rod": part(
                lambda t, s, u: [s[1], u[0] - 4.0 * np.sin(s[0]) - 2.0 * s[1]], [0.0, 0.0], "T", "a w"
            ),
            "control": _controller(lambda u, m: (3.0 * (2.1 - u[0]) + m, m + 0.25 * (2.1 - u[0])), "a", 0.1),
        },
        wires={"rod.T": "control.u", "control.a": "rod.a"},
        port="rod.a",
        stop=10.0,
        steps=(0.05, 0.5),
        orchestrator="gauss-seidel",
        reference=sampled(
            lambda t, y, held: [y[1], held - 4.0 * np.sin(y[0]) - 2.0 * y[1]],
            [0.0, 0.0],
            lambda t, y, m: (3.0 * (2.1 - y[0]) + m, m + 0.25 * (2.1 - y[0])),
            0.0,
            0.1,
            0,
        ),
    )


@system("sampled")
def sampled_pi_limited() -> System:
    """A late PI controller whose output is limited, about a heater with radiation."""

    def law(u: Any, m: float) -> tuple[float, float]:
        raw = 0.4 * (4.0 - u[0]) + m
        out = min(max(raw, 0.0), 3.0)
        return out, m + (0.05 * (4.0 - u[0]) if raw == out else 0.0)

    return System(
        models={
            "oven": part(lambda t, s, u: [u[0] - 0.01 * (s[0] ** 4 - 1.0)], [1.0], "u", "T"),
            "control": _controller(law, "T", 0.5, late=True),
        },
        wires={"oven.u": "control.u", "control.T": "oven.T"},
        port="oven.T",
        stop=20.0,
        steps=(0.25, 1.0),
        reference=sampled(
            lambda t, y, held: [held - 0.01 * (y[0] ** 4 - 1.0)],
            [1.0],
            lambda t, y, m: law([y[0]], m),
            0.0,
            0.5,
            0,
            late=0.0,
        ),
    )


@system("sampled")
def sampled_bang_bang() -> System:
    """A sampled switching controller brings a double integrator home and chatters there."""

    def law(u: Any, m: float) -> tuple[float, float]:
        return (-1.0 if u[0] + 0.5 * u[1] * abs(u[1]) + 0.3 * u[1] > 0 else 1.0), m

    return System(
        models={
            "body": part(lambda t, s, u: [s[1], u[0] - 0.1 * s[1]], [1.5, 0.0], "F", "x v"),
            "control": _controller(law, "x v", 0.05),
        },
        wires={"body.F": "control.u", "control.x": "body.x", "control.v": "body.v"},
        port="body.x",
        stop=6.0,
        steps=(0.05, 0.6),
        reference=sampled(
            lambda t, y, held: [y[1], held - 0.1 * y[1]], [1.5, 0.0], lambda t, y, m: law(y, m), 0.0, 0.05, 0
        ),
    )


@system("sampled")
def sampled_quantised() -> System:
    """A sampled controller that sees its input in steps of 0.1."""

    def law(u: Any, m: float) -> tuple[float, float]:
        seen = 0.1 * np.floor(u[0] / 0.1 + 0.5)
        return 2.0 * (0.75 - seen) + m, m + 0.1 * (0.75 - seen)

    return System(
        models={
            "plant": part(lambda t, s, u: [u[0] - s[0] - 0.3 * s[0] ** 3], [0.0], "u", "y"),
            "control": _controller(law, "y", 0.1),
        },
        wires={"plant.u": "control.u", "control.y": "plant.y"},
        port="plant.y",
        stop=5.0,
        steps=(0.05, 0.5),
        reference=sampled(
            lambda t, y, held: [held - y[0] - 0.3 * y[0] ** 3], [0.0], lambda t, y, m: law(y, m), 0.0, 0.1, 0
        ),
    )


@system("sampled")
def sampled_sharp() -> System:
    """A gain near the limit of the period: stable, marginal with one period more of delay."""
    return System(
        models={
            "plant": part(lambda t, s, u: [u[0] - 0.2 * np.sinh(s[0])], [1.0], "u", "y"),
            "control": _controller(lambda u, m: (-8.0 * u[0], m), "y", 0.1),
        },
        wires={"plant.u": "control.u", "control.y": "plant.y"},
        port="plant.y",
        stop=4.0,
        steps=(0.05, 0.4),
        reference=sampled(
            lambda t, y, held: [held - 0.2 * np.sinh(y[0])],
            [1.0],
            lambda t, y, m: (-8.0 * y[0], m),
            0.0,
            0.1,
            0,
        ),
    )


@system("sampled")
def sampled_cascade() -> System:
    """A fast inner and a slow outer sampled controller about a motor with dry friction."""
    inner, outer = 0.05, 0.2

    def inner_law(u: Any, m: float) -> tuple[float, float]:
        return 5.0 * (u[1] - u[0]), m

    def law(t: float, y: Any, m: tuple[int, float]) -> tuple[float, tuple[int, float]]:
        wanted = 2.0 * (1.0 - y[0]) if m[0] % 4 == 0 else m[1]
        return 5.0 * (wanted - y[1]), (m[0] + 1, wanted)

    return System(
        models={
            "motor": part(lambda t, s, u: [s[1], u[0] - 0.5 * np.tanh(s[1] / 0.05)], [0.0, 0.0], "u", "a w"),
            "speed": _controller(inner_law, "w wanted", inner),
            "angle": _controller(lambda u, m: (2.0 * (1.0 - u[0]), m), "a", outer),
        },
        wires={"motor.u": "speed.u", "speed.w": "motor.w", "speed.wanted": "angle.u", "angle.a": "motor.a"},
        port="motor.a",
        stop=4.0,
        steps=(0.05, 0.4),
        reference=sampled(
            lambda t, y, held: [y[1], held - 0.5 * np.tanh(y[1] / 0.05)], [0.0, 0.0], law, (0, 0.0), inner, 0
        ),
    )
