"""Mechanics and control, written after the method was first tuned: the third half, which nobody tuned to.

In:  nothing
Out: systems in the catalogue; their references are composed of the equations of their parts
"""

from __future__ import annotations

from typing import Any

import numpy as np

import hocket as hk
from truth_systems.control import Relay
from truth_systems.parts import algebraic, box, mass, part
from truth_systems.sampled import _controller as sampled_law
from truth_systems.system import System, system


def _limit(value: float, bound: float = 1.0) -> float:
    return min(max(value, -bound), bound)


@system("smooth")
def fresh_stribeck_table() -> System:
    """A motor moves a table over a lead screw; friction of the table has a peak at low speed."""

    def friction(v: float) -> float:
        return (1.0 + 0.8 * np.exp(-((v / 0.1) ** 2))) * np.tanh(v / 0.01) + 0.5 * v

    return System(
        models={
            "drive": part(
                lambda t, s, u: [s[1], 8.0 * (0.4 * np.sin(2.0 * t) - s[0]) - 3.0 * s[1] - 0.2 * u[0]],
                [0.0, 0.0],
                "F",
                "x v",
            ),
            "table": part(
                lambda t, s, u: [s[1], 300.0 * (u[0] - s[0]) + 5.0 * (u[1] - s[1]) - friction(s[1])],
                [0.0, 0.0],
                "x v",
                "F y w",
                lambda t, s, u: [300.0 * (u[0] - s[0]) + 5.0 * (u[1] - s[1]), s[0], s[1]],
                through=True,
            ),
        },
        wires={"drive.F": "table.F", "table.x": "drive.x", "table.v": "drive.v"},
        port="table.y",
        stop=5.0,
        steps=(0.002, 0.1),
    )


@system("switched")
def fresh_cylinder_with_overlap() -> System:
    """A hydraulic cylinder, its valve with overlap, a proportional controller of the position."""

    def flow(s: float, p: float) -> float:
        opening = s - 0.05 if s > 0.05 else s + 0.05 if s < -0.05 else 0.0
        drop = 100.0 - np.sign(opening) * p
        return 0.6 * opening * np.sign(drop) * np.sqrt(abs(drop))

    return System(
        models={
            "valve": part(lambda t, s, u: [(_limit(4.0 * u[0]) - s[0]) / 0.02], [0.0], "e", "s"),
            "cylinder": part(
                lambda t, s, u: [40.0 * (flow(u[0], s[0]) - s[2]), s[2], (s[0] - 15.0 * s[2]) / 3.0],
                [0.0, 0.0, 0.0],
                "s",
                "p x v",
            ),
            "sensor": algebraic(lambda t, s, u: [1.0 - u[0] if t < 2.0 else 0.3 - u[0]], "x", "e"),
        },
        wires={"valve.e": "sensor.e", "cylinder.s": "valve.s", "sensor.x": "cylinder.x"},
        port="cylinder.x",
        stop=4.0,
        steps=(0.002, 0.05),
    )


@system("switched")
def fresh_cart_bang_bang() -> System:
    """A cart with a hanging load; a relay with hysteresis pushes the cart to and fro."""
    return System(
        models={
            "cart": part(
                lambda t, s, u: [
                    s[1],
                    u[0] + 2.0 * np.sin(s[2]) - 0.5 * s[1],
                    s[3],
                    -9.81 * np.sin(s[2]) - (u[0] - 0.5 * s[1]) * np.cos(s[2]) - 0.1 * s[3],
                ],
                [-0.6, 0.0, 0.0, 0.0],
                "F",
                "x v a w",
            ),
            "line": algebraic(lambda t, s, u: [u[0] + 0.6 * u[1]], "x v", "s"),
            "relay": hk.Python(Relay, low=-0.1, high=0.1, on=1.5, off=-1.5),
        },
        wires={"cart.F": "relay.u", "line.x": "cart.x", "line.v": "cart.v", "relay.y": "line.s"},
        port="cart.x",
        stop=6.0,
        steps=(0.005, 0.3),
    )


@system("switched")
def fresh_encoder() -> System:
    """A motor whose angle an encoder of 64 lines measures, a controller with a filter and a limit."""
    line = 2.0 * np.pi / 64.0
    return System(
        models={
            "motor": part(lambda t, s, u: [s[1], (u[0] - s[1]) / 0.3], [0.0, 0.0], "u", "a w"),
            "encoder": algebraic(lambda t, s, u: [line * np.floor(u[0] / line)], "a", "n"),
            "control": part(
                lambda t, s, u: [(u[0] - s[0]) / 0.03],
                [0.0],
                "n",
                "u",
                lambda t, s, u: [_limit(6.0 * (1.5 - s[0]), 5.0)],
            ),
        },
        wires={"motor.u": "control.u", "encoder.a": "motor.a", "control.n": "encoder.n"},
        port="motor.a",
        stop=3.0,
        steps=(0.001, 0.075),
    )


@system("smooth")
def fresh_tyre_brake() -> System:
    """A wheel is braked; its tyre's force has a peak over slip, and the car slows down."""

    def slip_force(w: float, v: float) -> float:
        slip = (v - 0.3 * w) / max(abs(v), 0.5)
        return 3500.0 * np.sin(1.6 * np.arctan(12.0 * slip))

    return System(
        models={
            "wheel": part(
                lambda t, s, u: [(0.3 * u[0] - 900.0 * (1.0 - np.exp(-4.0 * t))) / 1.2], [80.0], "F", "w"
            ),
            "car": part(lambda t, s, u: [-u[0] / 400.0 - 0.001 * s[0] ** 2], [24.0], "F", "v"),
            "tyre": algebraic(lambda t, s, u: [slip_force(u[0], u[1])], "w v", "F"),
        },
        wires={"wheel.F": "tyre.F", "car.F": "tyre.F", "tyre.w": "wheel.w", "tyre.v": "car.v"},
        port="wheel.w",
        stop=1.5,
        steps=(0.001, 0.02),
    )


@system("smooth")
def fresh_elastic_pendulum() -> System:
    """A pendulum on a soft spring: radius in one simulator, angle in the other."""
    return System(
        models={
            "radius": part(
                lambda t, s, u: [s[1], s[0] * u[1] ** 2 + 9.81 * np.cos(u[0]) - 60.0 * (s[0] - 1.0)],
                [1.3, 0.0],
                "a w",
                "r q",
            ),
            "angle": part(
                lambda t, s, u: [s[1], -(9.81 * np.sin(s[0]) + 2.0 * u[1] * s[1]) / max(u[0], 0.2)],
                [1.2, 0.0],
                "r q",
                "a w",
            ),
        },
        wires={"radius.a": "angle.a", "radius.w": "angle.w", "angle.r": "radius.r", "angle.q": "radius.q"},
        port="angle.a",
        stop=4.0,
        steps=(0.002, 0.08),
        extrapolation="linear",
    )


@system("switched")
def fresh_anti_windup() -> System:
    """A PI controller with back-calculation, its actuator limited in rate and range, a lag of order two."""
    return System(
        models={
            "plant": part(lambda t, s, u: [u[0] - s[0], 2.0 * (s[0] - s[1])], [0.0, 0.0], "u", "f y"),
            "actuator": part(
                lambda t, s, u: [_limit(20.0 * (_limit(u[0], 1.2) - s[0]), 3.0)], [0.0], "c", "u"
            ),
            "control": part(
                lambda t, s, u: [
                    2.0 * (1.0 - u[0])
                    + 4.0 * (_limit(4.0 * (1.0 - u[0]) + s[0], 1.2) - 4.0 * (1.0 - u[0]) - s[0])
                ],
                [0.0],
                "y",
                "c",
                lambda t, s, u: [4.0 * (1.0 - u[0]) + s[0]],
                through=True,
            ),
        },
        wires={"plant.u": "actuator.u", "actuator.c": "control.c", "control.y": "plant.y"},
        port="plant.y",
        stop=6.0,
        steps=(0.01, 0.3),
    )


@system("switched")
def fresh_hertz_balls() -> System:
    """Two balls on threads strike each other: Hertz' contact, force with the power 3/2."""

    def contact(d: float) -> float:
        return 4000.0 * d**1.5 if d > 0.0 else 0.0

    return System(
        models={
            "left": mass(0.5, -0.2, 0.0, lambda t, x, v: -5.0 * x),
            "right": mass(0.8, 0.05, 0.0, lambda t, x, v: -8.0 * (x - 0.05)),
            "gap": algebraic(lambda t, s, u: [-contact(u[0] - u[1]), contact(u[0] - u[1])], "a b", "L R"),
        },
        wires={"left.F": "gap.L", "right.F": "gap.R", "gap.a": "left.x", "gap.b": "right.x"},
        port="left.x",
        stop=2.0,
        steps=(0.0005, 0.02),
    )


@system("smooth")
def fresh_maglev() -> System:
    """A ball under a magnet: force with the square of current over gap; PD with a lag in the coil."""
    return System(
        models={
            "ball": part(
                lambda t, s, u: [s[1], 9.81 - 9.81 * (u[0] / max(s[0], 0.2)) ** 2], [1.1, 0.0], "i", "x v"
            ),
            "coil": part(
                lambda t, s, u: [60.0 * (1.0 + 4.0 * (u[0] - 1.0) + 0.8 * u[1] - s[0])], [1.0], "x v", "i"
            ),
        },
        wires={"ball.i": "coil.i", "coil.x": "ball.x", "coil.v": "ball.v"},
        port="ball.x",
        stop=2.0,
        steps=(0.002, 0.0625),
    )


@system("switched")
def fresh_slack_rope() -> System:
    """A winch lifts a load with a rope that only pulls: it goes slack and taut."""

    def pull(d: float, w: float) -> float:
        return max(900.0 * d + 6.0 * w, 0.0) if d > 0.0 else 0.0

    return System(
        models={
            "winch": part(
                lambda t, s, u: [s[1], 30.0 * (1.0 + np.sin(3.0 * t) - s[1]) - u[0] / 50.0],
                [0.0, 0.0],
                "F",
                "x v",
            ),
            "load": mass(5.0, 0.0, 0.0, lambda t, x, v: -49.05),
            "rope": algebraic(lambda t, s, u: [pull(u[0] - u[2], u[1] - u[3])], "a b c d", "F"),
        },
        wires={
            "winch.F": "rope.F",
            "load.F": "rope.F",
            "rope.a": "winch.x",
            "rope.b": "winch.v",
            "rope.c": "load.x",
            "rope.d": "load.v",
        },
        port="load.x",
        stop=3.0,
        steps=(0.002, 0.06),
    )


@system("smooth")
def fresh_crane() -> System:
    """A trolley with a load that sways, driven by a controller whose force saturates smoothly."""
    return System(
        models={
            "crane": part(
                lambda t, s, u: [
                    s[1],
                    u[0] + 3.0 * s[2] - 0.5 * s[1],
                    s[3],
                    -6.0 * np.sin(s[2]) - u[0] * np.cos(s[2]) - 0.2 * s[3],
                ],
                [0.0, 0.0, 0.0, 0.0],
                "F",
                "x v a w",
            ),
            "drive": algebraic(
                lambda t, s, u: [2.0 * np.tanh(0.8 * (2.0 - u[0]) - 1.6 * u[1] + 1.5 * u[2])], "x v a", "F"
            ),
        },
        wires={"crane.F": "drive.F", "drive.x": "crane.x", "drive.v": "crane.v", "drive.a": "crane.a"},
        port="crane.x",
        stop=8.0,
        steps=(0.01, 0.4),
    )


@system("switched")
def fresh_gear_rattle() -> System:
    """Two gears with play, boxes: the driven one rattles between the flanks."""

    def tooth(d: float) -> float:
        return 500.0 * (d - 0.02 if d > 0.02 else d + 0.02 if d < -0.02 else 0.0)

    return System(
        models={
            "driver": box(
                lambda t, s, u: [s[1], 20.0 * (np.sin(8.0 * t) - s[1]) - u[0]], [0.0, 0.0], "T", "a w"
            ),
            "driven": box(
                lambda t, s, u: [s[1], tooth(u[0] - s[0]) / 0.5 - 0.5 * s[1]],
                [0.0, 0.0],
                "a",
                "T b",
                lambda t, s, u: [tooth(u[0] - s[0]), s[0]],
                through=True,
            ),
        },
        wires={"driver.T": "driven.T", "driven.a": "driver.a"},
        port="driven.b",
        stop=3.0,
        steps=(0.001, 0.03),
    )


@system("black box")
def fresh_duffing_boxes() -> System:
    """Two oscillators with hard springs in boxes, joined by a soft spring."""
    return System(
        models={
            name: box(
                lambda t, s, u: [s[1], -s[0] - 5.0 * s[0] ** 3 - 0.05 * s[1] + 2.0 * (u[0] - s[0])],
                [x, 0.0],
                "y",
                "x v",
            )
            for name, x in (("one", 1.0), ("two", -0.2))
        },
        wires={"one.y": "two.x", "two.y": "one.x"},
        port="two.x",
        stop=8.0,
        steps=(0.005, 0.25),
    )


@system("sampled")
def fresh_sampled_maglev() -> System:
    """The ball under a magnet, its current set by a sampled PD law."""

    def law(u: Any, m: float) -> tuple[float, float]:
        return max(1.0 + 3.0 * (u[0] - 1.0) + 0.5 * u[1], 0.0), m

    return System(
        models={
            "ball": part(
                lambda t, s, u: [s[1], 9.81 - 9.81 * (u[0] / max(s[0], 0.2)) ** 2], [1.1, 0.0], "i", "x v"
            ),
            "law": sampled_law(law, "x v", 0.02),
        },
        wires={"ball.i": "law.u", "law.x": "ball.x", "law.v": "ball.v"},
        port="ball.x",
        stop=1.5,
        steps=(0.02, 0.1),
    )


@system("sampled")
def fresh_sampled_pendulum() -> System:
    """A rod held upright by a sampled law that acts a period late and is limited."""

    def law(u: Any, m: float) -> tuple[float, float]:
        return _limit(-18.0 * u[0] - 6.0 * u[1], 8.0), m

    return System(
        models={
            "rod": part(lambda t, s, u: [s[1], 9.81 * np.sin(s[0]) + u[0]], [0.3, 0.0], "T", "a w"),
            "law": sampled_law(law, "a w", 0.02, late=True),
        },
        wires={"rod.T": "law.u", "law.a": "rod.a", "law.w": "rod.w"},
        port="rod.a",
        stop=3.0,
        steps=(0.02, 0.2),
    )


@system("switched")
def fresh_cruise() -> System:
    """A car with drag up a hill; a PI cruise control whose throttle is limited to 0 and 1."""
    return System(
        models={
            "car": part(
                lambda t, s, u: [4.0 * u[0] - 0.004 * s[0] ** 2 - 0.1 - (1.0 if t > 10.0 else 0.0)],
                [15.0],
                "throttle",
                "v",
            ),
            "control": part(
                lambda t, s, u: [0.1 * (25.0 - u[0]) if -0.5 < s[0] < 1.5 else 0.0],
                [0.3],
                "v",
                "throttle",
                lambda t, s, u: [min(max(0.5 * (25.0 - u[0]) + s[0], 0.0), 1.0)],
                through=True,
            ),
        },
        wires={"car.throttle": "control.throttle", "control.v": "car.v"},
        port="car.v",
        stop=20.0,
        steps=(0.05, 2.0),
    )
