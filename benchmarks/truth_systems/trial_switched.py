"""Switched, sampled, delayed systems and black boxes of a third trial.

In:  nothing
Out: systems in the catalogue; their references are composed of the equations of their parts
"""

from __future__ import annotations

import numpy as np

import hocket as hk
from truth_systems.chaos_and_delay import DelayLine
from truth_systems.control import Relay
from truth_systems.parts import algebraic, box, mass, part
from truth_systems.sampled import _controller as sampled_law
from truth_systems.system import System, system


def _limit(value: float, bound: float = 1.0) -> float:
    return min(max(value, -bound), bound)


@system("switched")
def trial_windup() -> System:
    """A PI controller whose integrator winds up behind a limited actuator; the plant is of third order."""
    return System(
        models={
            "plant": part(
                lambda t, s, u: [s[1], s[2], -s[2] * 3.0 - 3.0 * s[1] - s[0] + u[0]],
                [0.0, 0.0, 0.0],
                "u",
                "y",
                lambda t, s, u: [s[0]],
            ),
            "controller": part(
                lambda t, s, u: [1.0 - u[0]],
                [0.0],
                "y",
                "u",
                lambda t, s, u: [_limit(2.0 * (1.0 - u[0]) + 0.9 * s[0], 1.3)],
                through=True,
            ),
        },
        wires={"plant.u": "controller.u", "controller.y": "plant.y"},
        port="plant.y",
        stop=30.0,
        steps=(0.02, 1.2),
    )


@system("switched")
def trial_dead_zone_heater() -> System:
    """A room that is heated or cooled where it is more than half a degree off."""

    def power(T: float) -> float:
        return 3.0 if T < 19.5 else -3.0 if T > 20.5 else 0.0

    return System(
        models={
            "room": part(
                lambda t, s, u: [0.3 * (15.0 + 8.0 * np.sin(0.5 * t) - s[0]) + u[0]], [15.0], "P", "T"
            ),
            "unit": part(lambda t, s, u: [2.0 * (power(u[0]) - s[0])], [0.0], "T", "P"),
        },
        wires={"room.P": "unit.P", "unit.T": "room.T"},
        port="room.T",
        stop=20.0,
        steps=(0.01, 1.0),
    )


@system("switched")
def trial_schmitt() -> System:
    """An integrator and a comparator with two states: a triangle oscillator, followed by a filter."""
    return System(
        models={
            "ramp": part(lambda t, s, u: [1.5 * np.tanh(40.0 * u[0])], [0.0], "r", "y"),
            "comparator": part(lambda t, s, u: [30.0 * (s[0] - s[0] ** 3 - 0.6 * u[0])], [1.0], "y", "r"),
            "filter": part(lambda t, s, u: [2.0 * (u[0] - s[0])], [0.0], "y", "z"),
        },
        wires={"ramp.r": "comparator.r", "comparator.y": "ramp.y", "filter.y": "ramp.y"},
        port="filter.z",
        stop=10.0,
        steps=(0.001, 0.08),
    )


@system("switched")
def trial_two_point_tank() -> System:
    """A tank that a pump with hysteresis fills, and a second tank behind it."""
    return System(
        models={
            "first": part(lambda t, s, u: [u[0] - 0.7 * np.sqrt(max(s[0], 0.0))], [0.5], "q", "h"),
            "second": part(lambda t, s, u: [0.7 * np.sqrt(max(u[0], 0.0)) - 0.5 * s[0]], [0.2], "q", "h"),
            "pump": hk.Python(Relay, inputs=["y"], outputs=["u"], low=0.9, high=1.4, on=1.5, off=0.0),
        },
        wires={"first.q": "pump.u", "second.q": "first.h", "pump.y": "first.h"},
        port="second.h",
        stop=15.0,
        steps=(0.01, 0.5),
    )


@system("switched")
def trial_bouncing_pair() -> System:
    """Two carts on springs, with buffers on both that meet now and then."""

    def buffer(gap: float, speed: float) -> float:
        return 400.0 * gap + 4.0 * speed if gap > 0.0 else 0.0

    return System(
        models={
            "left": mass(1.0, -1.0, 0.0, lambda t, x, v: -4.0 * (x + 0.2)),
            "right": mass(1.5, 0.6, 0.0, lambda t, x, v: -9.0 * (x - 0.2)),
            "buffer": algebraic(
                lambda t, s, u: [
                    -max(buffer(u[0] - u[2], u[1] - u[3]), 0.0),
                    max(buffer(u[0] - u[2], u[1] - u[3]), 0.0),
                ],
                "p v q w",
                "l r",
            ),
        },
        wires={
            "left.F": "buffer.l",
            "right.F": "buffer.r",
            "buffer.p": "left.x",
            "buffer.v": "left.v",
            "buffer.q": "right.x",
            "buffer.w": "right.v",
        },
        port="left.x",
        stop=6.0,
        steps=(0.0005, 0.03),
    )


@system("switched")
def trial_lookup_table() -> System:
    """A pump with a curve from a table, feeding a tank whose outflow is a table too."""
    curve = ([0.0, 1.0, 2.0, 3.0, 4.0], [8.0, 7.5, 6.0, 3.0, 0.0])
    drain = ([0.0, 1.0, 3.0, 6.0, 10.0], [0.0, 1.0, 1.8, 2.4, 3.0])
    return System(
        models={
            "pump": part(
                lambda t, s, u: [3.0 * (np.interp(s[0], *curve) - u[0] - 0.2 * s[0])], [0.0], "h", "q"
            ),
            "tank": part(lambda t, s, u: [2.0 * (u[0] - np.interp(s[0], *drain))], [0.5], "q", "h"),
        },
        wires={"pump.h": "tank.h", "tank.q": "pump.q"},
        port="tank.h",
        stop=10.0,
        steps=(0.005, 0.5),
    )


@system("switched")
def trial_two_brakes() -> System:
    """Two flywheels with dry friction (steep, not ideal) on a soft shaft."""

    def friction(w: float) -> float:
        return 3.0 * _limit(w / 0.05)

    return System(
        models={
            "one": part(
                lambda t, s, u: [(6.0 * np.sin(1.3 * t) - friction(s[0]) - u[0]) / 0.5], [0.0], "T", "w"
            ),
            "shaft": part(lambda t, s, u: [u[0] - u[1]], [0.0], "a b", "T", lambda t, s, u: [20.0 * s[0]]),
            "other": part(lambda t, s, u: [(u[0] - 0.5 * friction(s[0])) / 0.8], [0.0], "T", "w"),
        },
        wires={"one.T": "shaft.T", "other.T": "shaft.T", "shaft.a": "one.w", "shaft.b": "other.w"},
        port="other.w",
        stop=12.0,
        steps=(0.002, 0.25),
        orchestrator="gauss-seidel",
    )


@system("sampled")
def trial_sampled_pair_of_rates() -> System:
    """A nonlinear plant under a fast inner and a slow outer sampled controller."""

    def inner(u: np.ndarray, memory: float) -> tuple[float, float]:
        return 8.0 * (u[0] - u[1]), memory

    def outer(u: np.ndarray, memory: float) -> tuple[float, float]:
        memory = memory + 0.05 * (1.0 - u[0])
        return _limit(1.5 * (1.0 - u[0]) + memory, 2.0), memory

    return System(
        models={
            "plant": part(
                lambda t, s, u: [u[0] - s[0] - 0.5 * s[0] ** 3, 0.8 * s[0]], [0.0, 0.0], "u", "v x"
            ),
            "inner": sampled_law(inner, "r v", 0.02),
            "outer": sampled_law(outer, "x", 0.1),
        },
        wires={"plant.u": "inner.u", "inner.r": "outer.u", "inner.v": "plant.v", "outer.x": "plant.x"},
        port="plant.x",
        stop=8.0,
        steps=(0.005, 0.02),
    )


@system("delayed")
def trial_delayed_steering() -> System:
    """A boat that a helmsman steers with a delay of half a second; rudder effect is limited by a sine."""
    return System(
        models={
            "boat": part(
                lambda t, s, u: [s[1], 1.5 * np.sin(u[0]) - 0.8 * s[1] - 0.4 * s[1] ** 3],
                [0.8, 0.0],
                "d",
                "a r",
            ),
            "helm": part(lambda t, s, u: [2.0 * (-1.2 * u[0] - s[0])], [0.0], "a", "d"),
            "nerves": hk.Python(DelayLine, delay=0.5, before=0.8),
        },
        wires={"boat.d": "helm.d", "helm.a": "nerves.y", "nerves.u": "boat.a"},
        port="boat.a",
        stop=15.0,
        steps=(0.01, 0.25),
    )


@system("black box")
def trial_boxed_rayleigh() -> System:
    """A black box that oscillates by itself, loaded by another."""
    return System(
        models={
            "drive": box(
                lambda t, s, u: [s[1], 2.0 * (1.0 - s[1] ** 2) * s[1] - s[0] - u[0]], [0.1, 0.0], "F", "x v"
            ),
            "load": box(
                lambda t, s, u: [s[1], 6.0 * (u[0] - s[0]) - 0.5 * s[1]],
                [0.0, 0.0],
                "x",
                "F",
                lambda t, s, u: [1.5 * s[0]],
            ),
        },
        wires={"drive.F": "load.F", "load.x": "drive.x"},
        port="drive.x",
        stop=20.0,
        steps=(0.005, 0.4),
    )


@system("black box")
def trial_boxed_pneumatics() -> System:
    """Two vessels behind an orifice whose flow goes with the root of the difference; black boxes."""

    def flow(d: float) -> float:
        return d / np.sqrt(abs(d) + 0.02)

    return System(
        models={
            "first": box(
                lambda t, s, u: [1.0 + 0.5 * np.sin(2.0 * t) - u[0]], [1.0], "q", "p", rollback=True
            ),
            "orifice": algebraic(lambda t, s, u: [2.0 * flow(u[0] - u[1])], "a b", "q"),
            "second": box(lambda t, s, u: [2.0 * (u[0] - 0.8 * s[0])], [0.0], "q", "p", rollback=True),
        },
        wires={
            "first.q": "orifice.q",
            "second.q": "orifice.q",
            "orifice.a": "first.p",
            "orifice.b": "second.p",
        },
        port="second.p",
        stop=10.0,
        steps=(0.002, 0.125),
    )


@system("black box")
def trial_boxed_unstable_growth() -> System:
    """An inverted pendulum as a black box, balanced by another with a gain that is hardly enough."""
    return System(
        models={
            "pendulum": box(
                lambda t, s, u: [s[1], 9.0 * np.sin(s[0]) - u[0] * np.cos(s[0])], [0.2, 0.0], "F", "a w"
            ),
            "balance": box(lambda t, s, u: [20.0 * (14.0 * u[0] + 5.0 * u[1] - s[0])], [0.0], "a w", "F"),
        },
        wires={"pendulum.F": "balance.F", "balance.a": "pendulum.a", "balance.w": "pendulum.w"},
        port="pendulum.a",
        stop=8.0,
        steps=(0.002, 0.2),
    )


@system("black box")
def trial_boxed_slow_and_fast() -> System:
    """A slow black box with a cube in it, and a fast one with direct feedthrough."""
    return System(
        models={
            "slow": box(lambda t, s, u: [u[0] - 0.2 * s[0] ** 3], [2.0], "q", "x"),
            "fast": box(
                lambda t, s, u: [30.0 * (u[0] - s[0])], [0.0], "x", "q", lambda t, s, u: [-0.6 * s[0]]
            ),
        },
        wires={"slow.q": "fast.q", "fast.x": "slow.x"},
        port="slow.x",
        stop=8.0,
        steps=(0.004, 0.5),
    )
