"""Control loops with limits: saturation, relay, quantiser, rate limiter, dead zone, schedules.

In:  nothing
Out: systems in the catalogue
"""

from __future__ import annotations

from typing import Any

import numpy as np

import hocket as hk
from truth_systems.parts import algebraic, part
from truth_systems.reference import Switch, smooth, switched
from truth_systems.system import System, system


def _limit(value: float, bound: float = 1.0) -> float:
    return min(max(value, -bound), bound)


@system("switched")
def saturated_actuator() -> System:
    """A PI controller of high gain drives a double lag through an actuator that saturates at the start."""
    return System(
        models={
            "plant": part(lambda t, s, u: [s[1], u[0] - s[1] - 0.5 * s[0]], [0.0, 0.0], "u", "y v"),
            "control": part(
                lambda t, s, u: [1.0 - u[0]],
                [0.0],
                "y v",
                "u",
                lambda t, s, u: [_limit(30.0 * (1.0 - u[0]) - 8.0 * u[1] + 10.0 * s[0])],
                through=True,
            ),
        },
        wires={"plant.u": "control.u", "control.y": "plant.y", "control.v": "plant.v"},
        port="plant.y",
        stop=8.0,
        steps=(0.01, 0.4),
        reference=smooth(
            lambda t, y: [
                y[1],
                float(np.clip(30.0 * (1.0 - y[0]) - 8.0 * y[1] + 10.0 * y[2], -1, 1)) - y[1] - 0.5 * y[0],
                1.0 - y[0],
            ],
            [0.0, 0.0, 0.0],
            0,
            max_step=0.01,
            rtol=1e-9,
        ),
    )


@system("switched")
def saturated_unstable_plant() -> System:
    """An unstable plant that a saturated controller can only just hold; a step too long loses it."""
    return System(
        models={
            "plant": part(lambda t, s, u: [s[0] + u[0]], [0.85], "u", "y"),
            "control": part(lambda t, s, u: [8.0 * (_limit(-6.0 * u[0]) - s[0])], [0.0], "y", "u"),
        },
        wires={"plant.u": "control.u", "control.y": "plant.y"},
        port="plant.y",
        stop=4.0,
        steps=(0.01, 0.2),
        orchestrator="gauss-seidel",
        reference=smooth(
            lambda t, y: [y[0] + y[1], 8.0 * (float(np.clip(-6.0 * y[0], -1.0, 1.0)) - y[1])],
            [0.85, 0.0],
            0,
            max_step=0.01,
            rtol=1e-9,
        ),
    )


class Relay:
    """Switches on below `low`, off above `high`; it looks at its input when a step ends."""

    inputs, outputs = ["y"], ["u"]
    hysteresis = True
    """For the reference only."""

    def __init__(self, low: float, high: float, on: float, off: float) -> None:
        self.low, self.high, self.levels = low, high, (off, on)

    def start(self, t: float) -> None:
        self.on = True

    def output(self, t: float) -> list[float]:
        return [self.levels[int(self.on)]]

    def step(self, t: float, h: float, u: Any) -> None:
        value = (h ** np.arange(len(u))) @ u[:, 0]
        self.on = bool(value < (self.high if self.on else self.low))

    def save(self) -> bool:
        return self.on

    def restore(self, state: bool) -> None:
        self.on = state


@system("switched")
def relay_hysteresis() -> System:
    """A relay with hysteresis holds a double lag: a limit cycle whose period depends on when it looks."""
    return System(
        models={
            "plant": part(lambda t, s, u: [u[0] - s[0], s[0] - s[1]], [0.0, 0.0], "u", "w y"),
            "relay": hk.Python(Relay, low=0.4, high=0.6, on=1.0, off=0.0),
        },
        wires={"plant.u": "relay.u", "relay.y": "plant.y"},
        port="plant.y",
        stop=8.0,
        steps=(0.01, 0.5),
        orchestrator=hk.GaussSeidel(["plant", "relay"]),
        reference=switched(
            lambda t, y, m: [m - y[0], y[0] - y[1]],
            [0.0, 0.0],
            1,
            {1: [Switch(lambda t, y: y[1] - 0.6, 1, 0)], 0: [Switch(lambda t, y: y[1] - 0.4, -1, 1)]},
            lambda t, y, m: y[1],
        ),
    )


@system("switched")
def relay_ideal() -> System:
    """A relay without hysteresis as an algebraic part, about a triple lag: a limit cycle."""
    return System(
        models={
            "plant": part(
                lambda t, s, u: [u[0] - s[0], s[0] - s[1], s[1] - s[2]], [1.0, 0.5, 0.8], "u", "a b y"
            ),
            "relay": algebraic(lambda t, s, u: [-1.0 if u[0] > 0.0 else 1.0], "y", "u"),
        },
        wires={"plant.u": "relay.u", "relay.y": "plant.y"},
        port="plant.y",
        stop=8.0,
        steps=(0.01, 0.4),
        reference=switched(
            lambda t, y, m: [m - y[0], y[0] - y[1], y[1] - y[2]],
            [1.0, 0.5, 0.8],
            -1,
            {-1: [Switch(lambda t, y: y[2], -1, 1)], 1: [Switch(lambda t, y: y[2], 1, -1)]},
            lambda t, y, m: y[2],
        ),
    )


@system("switched")
def quantiser() -> System:
    """A measurement in steps of 0.25 feeds an integrating controller: the tangent of a quantiser is zero."""
    grid = np.arange(-1.5, 3.0, 0.25)

    def coarse(y: float) -> float:
        return 0.25 * np.floor(y / 0.25 + 0.5)

    def mode_of(y: float) -> int:
        return int(np.floor(y / 0.25 + 0.5))

    switches = {
        m: [
            Switch(lambda t, y, m=m: y[1] - 0.25 * (m + 0.5), 1, m + 1),
            Switch(lambda t, y, m=m: y[1] - 0.25 * (m - 0.5), -1, m - 1),
        ]
        for m in range(mode_of(grid[0]), mode_of(grid[-1]))
    }
    return System(
        models={
            "plant": part(lambda t, s, u: [u[0] - s[0], s[0] - s[1]], [0.0, 0.0], "u", "w y"),
            "control": part(
                lambda t, s, u: [1.06 - coarse(u[0])], [0.0], "y", "u", lambda t, s, u: [1.5 * s[0]]
            ),
        },
        wires={"plant.u": "control.u", "control.y": "plant.y"},
        port="plant.y",
        stop=6.0,
        steps=(0.005, 0.25),
        reference=switched(
            lambda t, y, m: [1.5 * y[2] - y[0], y[0] - y[1], 1.06 - 0.25 * m],
            [0.0, 0.0, 0.0],
            0,
            switches,
            lambda t, y, m: y[1],
        ),
    )


@system("switched")
def rate_limiter() -> System:
    """An actuator whose rate is limited to 1 per second follows a controller of an oscillating plant."""
    return System(
        models={
            "plant": part(lambda t, s, u: [s[1], 2.0 * u[0] - 0.4 * s[1] - s[0]], [0.0, 0.0], "u", "y v"),
            "actuator": part(
                lambda t, s, u: [_limit(12.0 * (2.0 * (1.0 - u[0]) - s[0]), 1.5)], [0.0], "y", "u"
            ),
        },
        wires={"plant.u": "actuator.u", "actuator.y": "plant.y"},
        port="plant.y",
        stop=6.0,
        steps=(0.005, 0.15),
        reference=smooth(
            lambda t, y: [
                y[1],
                2.0 * y[2] - 0.4 * y[1] - y[0],
                float(np.clip(24.0 * (1.0 - y[0]) - 12.0 * y[2], -1.5, 1.5)),
            ],
            [0.0, 0.0, 0.0],
            0,
            max_step=0.005,
            rtol=1e-9,
        ),
    )


@system("switched")
def dead_zone() -> System:
    """A valve with a dead zone of 0.3: at the start the loop is open, its tangent says so."""

    def beyond(e: float) -> float:
        return 20.0 * (e - 0.3) if e > 0.3 else 20.0 * (e + 0.3) if e < -0.3 else 0.0

    return System(
        models={
            "plant": part(lambda t, s, u: [s[1], u[0] + 0.4 - 0.6 * s[1]], [0.0, 0.0], "u", "y v"),
            "valve": algebraic(lambda t, s, u: [beyond(-u[0])], "y", "u"),
        },
        wires={"plant.u": "valve.u", "valve.y": "plant.y"},
        port="plant.y",
        stop=8.0,
        steps=(0.005, 0.2),
        extrapolation="linear",
        reference=smooth(
            lambda t, y: [y[1], 0.4 - 0.6 * y[1] - 20.0 * (y[0] - float(np.clip(y[0], -0.3, 0.3)))],
            [0.0, 0.0],
            0,
            max_step=0.01,
            rtol=1e-9,
        ),
    )


@system("smooth")
def gain_schedule() -> System:
    """The gain grows with the level it controls: gentle at the start, sharp at the set point."""
    return System(
        models={
            "plant": part(lambda t, s, u: [0.5 * (u[0] - s[0]), s[0] - 0.3 * s[1]], [0.0, 0.2], "u", "f y"),
            "control": algebraic(lambda t, s, u: [(0.2 + 2.0 * u[0] ** 2) * (2.0 - u[0]) + 0.5], "y", "u"),
        },
        wires={"plant.u": "control.u", "control.y": "plant.y"},
        port="plant.y",
        stop=12.0,
        steps=(0.02, 0.75),
        reference=smooth(
            lambda t, y: [
                0.25 + (0.1 + y[1] ** 2) * (2.0 - y[1]) - 0.5 * y[0],
                y[0] - 0.3 * y[1],
            ],
            [0.0, 0.2],
            1,
        ),
    )


@system("smooth")
def sliding_mode() -> System:
    """A sliding controller with a boundary layer of 0.05: gain 60 near the line, saturated elsewhere."""
    return System(
        models={
            "plant": part(
                lambda t, s, u: [s[1], u[0] + 0.5 * np.sin(3.0 * t) - 0.2 * s[1]], [1.0, 0.0], "u", "y v"
            ),
            "control": algebraic(lambda t, s, u: [-3.0 * np.tanh((u[1] + 1.5 * u[0]) / 0.05)], "y v", "u"),
        },
        wires={"plant.u": "control.u", "control.y": "plant.y", "control.v": "plant.v"},
        port="plant.v",
        stop=4.0,
        steps=(0.002, 0.4),
        reference=smooth(
            lambda t, y: [y[1], 0.5 * np.sin(3 * t) - 0.2 * y[1] - 3.0 * np.tanh(20.0 * y[1] + 30.0 * y[0])],
            [1.0, 0.0],
            1,
            method="Radau",
        ),
    )


@system("switched")
def inverted_pendulum() -> System:
    """A rod held upright by a torque that is limited; the coupling delays it by a step."""
    return System(
        models={
            "rod": part(lambda t, s, u: [s[1], 9.81 * np.sin(s[0]) + u[0]], [0.35, 0.0], "T", "a w"),
            "motor": algebraic(lambda t, s, u: [_limit(-40.0 * u[0] - 10.0 * u[1], 6.0)], "a w", "T"),
        },
        wires={"rod.T": "motor.T", "motor.a": "rod.a", "motor.w": "rod.w"},
        port="rod.a",
        stop=3.0,
        steps=(0.005, 0.5),
        reference=smooth(
            lambda t, y: [y[1], 9.81 * np.sin(y[0]) - float(np.clip(40.0 * y[0] + 10.0 * y[1], -6.0, 6.0))],
            [0.35, 0.0],
            0,
            max_step=5e-3,
            rtol=1e-9,
        ),
    )


@system("switched")
def adaptive_control() -> System:
    """A controller learns its gain from the error (the rule of MIT): products of signals everywhere."""
    return System(
        models={
            "plant": part(lambda t, s, u: [-s[0] + 2.0 * u[0]], [0.0], "u", "y"),
            "control": part(
                lambda t, s, u: [
                    -2.0 * (u[0] - s[1]) * s[1],
                    -2.0 * s[1] + 2.0 * (1.0 if np.sin(1.0 * t) >= 0 else -1.0),
                ],
                [0.1, 0.0],
                "y",
                "u theta",
                lambda t, s, u: [s[0] * (1.0 if np.sin(1.0 * t) >= 0 else -1.0), s[0]],
            ),
        },
        wires={"plant.u": "control.u", "control.y": "plant.y"},
        port="control.theta",
        stop=12.0,
        steps=(0.02, 0.5),
        orchestrator="gauss-seidel",
        reference=switched(
            lambda t, y, m: [2.0 * y[1] * m - y[0], 2.0 * (y[2] - y[0]) * y[2], 2.0 * (m - y[2])],
            [0.0, 0.1, 0.0],
            1,
            {
                1: [Switch(lambda t, y: np.sin(t) if t > 0.1 else 1.0, -1, -1)],
                -1: [Switch(lambda t, y: np.sin(t), 1, 1)],
            },
            lambda t, y, m: y[1],
        ),
    )
