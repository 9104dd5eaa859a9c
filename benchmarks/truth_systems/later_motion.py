"""Motion, flow and control, held out: written after `fresh` had been seen, without a look into the method.

In:  nothing
Out: systems in the catalogue; their references are composed of the equations of their parts
"""

from __future__ import annotations

from typing import Any

import numpy as np

import hocket as hk
from truth_systems.chaos_and_delay import DelayLine
from truth_systems.control import Relay
from truth_systems.parts import algebraic, box, mass, part
from truth_systems.reference import smooth
from truth_systems.sampled import _controller as sampled_law
from truth_systems.system import System, system


def _limit(value: float, bound: float = 1.0) -> float:
    return min(max(value, -bound), bound)


@system("smooth")
def later_rigid_body() -> System:
    """A body tumbles about its middle axis (Euler's equations), each component of its spin apart."""
    return System(
        models={
            "a": part(lambda t, s, u: [-0.5 * u[0] * u[1]], [0.1], "b c", "w"),
            "b": part(lambda t, s, u: [0.8 * u[0] * u[1]], [2.0], "a c", "w"),
            "c": part(lambda t, s, u: [-0.3 * u[0] * u[1]], [0.1], "a b", "w"),
        },
        wires={"a.b": "b.w", "a.c": "c.w", "b.a": "a.w", "b.c": "c.w", "c.a": "a.w", "c.b": "b.w"},
        port="b.w",
        stop=12.0,
        steps=(0.005, 0.3),
        reference=smooth(
            lambda t, y: [-0.5 * y[1] * y[2], 0.8 * y[0] * y[2], -0.3 * y[0] * y[1]], [0.1, 2.0, 0.1], 1
        ),
    )


@system("smooth")
def later_henon_heiles() -> System:
    """Two oscillators with a cubic potential between them; not chaotic at this energy."""
    return System(
        models={
            "x": part(lambda t, s, u: [s[1], -s[0] - 2.0 * s[0] * u[0]], [0.2, 0.1], "y", "x v"),
            "y": part(lambda t, s, u: [s[1], -s[0] - u[0] ** 2 + s[0] ** 2], [-0.1, 0.15], "x", "y v"),
        },
        wires={"x.y": "y.y", "y.x": "x.x"},
        port="y.y",
        stop=20.0,
        steps=(0.02, 1.0),
        orchestrator="gauss-seidel",
        reference=smooth(
            lambda t, y: [y[1], -y[0] - 2.0 * y[0] * y[2], y[3], -y[2] - y[0] ** 2 + y[2] ** 2],
            [0.2, 0.1, -0.1, 0.15],
            2,
        ),
    )


@system("smooth")
def later_drifting_charge() -> System:
    """A charge in a magnetic field that is stronger on one side; a simulator for each direction."""
    return System(
        models={
            "x": part(lambda t, s, u: [s[1], (3.0 + 0.8 * u[0]) * u[1]], [0.0, 1.0], "py pv", "x v"),
            "y": part(lambda t, s, u: [s[1], -(3.0 + 0.8 * s[0]) * u[0] + 0.1], [0.0, 0.0], "pv", "y v"),
        },
        wires={"x.py": "y.y", "x.pv": "y.v", "y.pv": "x.v"},
        port="x.x",
        stop=10.0,
        steps=(0.002, 0.05),
        extrapolation="linear",
    )


@system("switched")
def later_clutch() -> System:
    """An engine and a car; the force on their clutch rises, and the discs slip until they hold."""

    def friction(w: float) -> float:
        return _limit(w / 0.5)

    press = hk.Table([0.0, 0.5, 2.0, 6.0], {"p": [0.0, 0.0, 1.0, 1.0]})
    return System(
        models={
            "press": press,
            "engine": part(lambda t, s, u: [(30.0 - 0.3 * s[0] - u[0]) / 0.8], [90.0], "T", "w"),
            "clutch": algebraic(lambda t, s, u: [60.0 * u[0] * friction(u[1] - u[2])], "p e c", "T"),
            "car": part(lambda t, s, u: [(u[0] - 0.002 * s[0] ** 2 - 3.0) / 6.0], [10.0], "T", "w"),
        },
        wires={
            "engine.T": "clutch.T",
            "car.T": "clutch.T",
            "clutch.p": "press.p",
            "clutch.e": "engine.w",
            "clutch.c": "car.w",
        },
        port="car.w",
        stop=6.0,
        steps=(0.0005, 0.1),
    )


@system("switched")
def later_bilinear_suspension() -> System:
    """A body on a damper that is hard in rebound and soft in compression, over a wheel that may lift."""

    def damper(v: float) -> float:
        return 900.0 * v if v < 0.0 else 2400.0 * v

    def road(t: float) -> float:
        return 0.03 * np.sin(9.0 * t) if t > 0.3 else 0.0

    return System(
        models={
            "body": mass(250.0, 0.0, 0.0),
            "strut": algebraic(
                lambda t, s, u: [
                    -(16e3 * (u[0] - u[2]) + damper(u[1] - u[3])),
                    16e3 * (u[0] - u[2]) + damper(u[1] - u[3]),
                ],
                "x v y w",
                "up down",
            ),
            "wheel": mass(
                30.0,
                0.0,
                0.0,
                lambda t, x, v: 1.6e5 * max(road(t) - x, -0.02),
            ),
        },
        wires={
            "body.F": "strut.up",
            "wheel.F": "strut.down",
            "strut.x": "body.x",
            "strut.v": "body.v",
            "strut.y": "wheel.x",
            "strut.w": "wheel.v",
        },
        port="body.x",
        stop=2.0,
        steps=(0.0005, 0.02),
    )


@system("smooth")
def later_platoon() -> System:
    """Four cars behind each other, each aims at a speed that depends on its gap; the first one brakes."""

    def wanted(gap: float) -> float:
        return 12.0 * (np.tanh((gap - 12.0) / 6.0) + np.tanh(2.0))

    def follow(t: float, s: Any, u: Any) -> list[float]:
        return [s[1], 1.2 * (wanted(u[0] - s[0]) - s[1])]

    names = ("second", "third", "fourth")
    leader = part(
        lambda t, s, u: [s[1], 0.8 * (18.0 - 8.0 * np.exp(-(((t - 4.0) / 1.5) ** 2)) - s[1])],
        [60.0, 18.0],
        "",
        "x v",
    )
    models: dict[str, Any] = {"first": leader}
    wires = {}
    for k, name in enumerate(names):
        models[name] = part(follow, [40.0 - 20.0 * k, 18.0], "ahead", "x v")
        wires[f"{name}.ahead"] = f"{('first', *names)[k]}.x"
    return System(models=models, wires=wires, port="fourth.v", stop=12.0, steps=(0.05, 1.5))


@system("switched")
def later_ship_autopilot() -> System:
    """A ship turns by a rudder whose rate and angle are limited; yaw damping is nonlinear."""
    return System(
        models={
            "ship": part(
                lambda t, s, u: [s[1], (0.5 * u[0] - s[1] - 6.0 * s[1] ** 3) / 4.0], [0.0, 0.0], "d", "a r"
            ),
            "rudder": part(lambda t, s, u: [_limit(2.0 * (_limit(u[0], 0.6) - s[0]), 0.1)], [0.0], "c", "d"),
            "pilot": algebraic(lambda t, s, u: [2.0 * (0.8 - u[0]) - 5.0 * u[1]], "a r", "c"),
        },
        wires={"ship.d": "rudder.d", "rudder.c": "pilot.c", "pilot.a": "ship.a", "pilot.r": "ship.r"},
        port="ship.a",
        stop=40.0,
        steps=(0.1, 2.0),
    )


@system("switched")
def later_pneumatic_cylinder() -> System:
    """Air flows into a cylinder through an orifice, choked while its pressure is low; a piston moves."""

    def flow(p: float) -> float:
        ratio = p / 6.0
        if ratio < 0.5:
            return 1.0
        return np.sign(1.0 - ratio) * np.sqrt(max(1.0 - ((abs(ratio) - 0.5) / 0.5) ** 2, 0.0))

    return System(
        models={
            "air": part(
                lambda t, s, u: [(8.0 * flow(s[0]) - s[0] * u[1]) / max(0.2 + u[0], 0.05)],
                [1.0],
                "x v",
                "p",
            ),
            "piston": part(
                lambda t, s, u: [s[1], 3.0 * (u[0] - 1.0) - 6.0 * s[1] - 2.0 * np.tanh(s[1] / 0.05)],
                [0.0, 0.0],
                "p",
                "x v",
            ),
        },
        wires={"air.x": "piston.x", "air.v": "piston.v", "piston.p": "air.p"},
        port="piston.x",
        stop=1.5,
        steps=(0.001, 0.06),
    )


@system("switched")
def later_stepper_motor() -> System:
    """A stepper of 50 teeth follows commanded steps through a soft shaft to a fan."""
    times = [0.0, *(0.05 + 0.02 * k for k in range(12))]
    steps = hk.Table([round(t, 6) for t in times], {"n": [float(k) for k in range(13)]}, interpolation="hold")
    tooth = 2.0 * np.pi / 50.0
    return System(
        models={
            "drive": steps,
            "rotor": part(
                lambda t, s, u: [
                    s[1],
                    4000.0 * np.sin(50.0 * (u[0] * tooth / 4.0 - s[0])) - 40.0 * s[1] - 500.0 * u[1],
                ],
                [0.0, 0.0],
                "n T",
                "a w",
            ),
            "fan": part(
                lambda t, s, u: [s[1], 2.0 * (20.0 * (u[0] - s[0])) - 3.0 * s[1] - 0.2 * s[1] * abs(s[1])],
                [0.0, 0.0],
                "r",
                "T a",
                lambda t, s, u: [0.2 * (u[0] - s[0]), s[0]],
                through=True,
            ),
        },
        wires={"rotor.n": "drive.n", "rotor.T": "fan.T", "fan.r": "rotor.a"},
        port="fan.a",
        stop=0.4,
        steps=(0.0005, 0.01),
    )


@system("delayed")
def later_teleoperation() -> System:
    """A hand leads a pendulum far away; the force that is felt comes late."""
    return System(
        models={
            "hand": part(
                lambda t, s, u: [s[1], 10.0 * (0.8 * np.sin(1.5 * t) - s[0]) - 4.0 * s[1] - 0.8 * u[0]],
                [0.0, 0.0],
                "F",
                "x v",
            ),
            "line": hk.Python(DelayLine, delay=0.2, before=0.0),
            "remote": part(
                lambda t, s, u: [s[1], 12.0 * (u[0] - s[0]) - 2.0 * s[1] - 5.0 * np.sin(s[0])],
                [0.0, 0.0],
                "x",
                "F a",
                lambda t, s, u: [12.0 * (u[0] - s[0]), s[0]],
                through=True,
            ),
        },
        wires={"hand.F": "remote.F", "remote.x": "line.y", "line.u": "hand.x"},
        port="remote.a",
        stop=8.0,
        steps=(0.01, 0.2),
    )


@system("switched")
def later_current_hysteresis() -> System:
    """A relay keeps the current of a motor within a band while the motor speeds up."""
    return System(
        models={
            "coil": part(lambda t, s, u: [(u[0] - 1.0 * s[0] - 0.5 * u[1]) / 0.05], [0.0], "V w", "i"),
            "rotor": part(lambda t, s, u: [(0.5 * u[0] - 0.02 * s[0] ** 2) / 0.2], [0.0], "i", "w"),
            "relay": hk.Python(Relay, low=1.6, high=2.4, on=12.0, off=0.0),
        },
        wires={"coil.V": "relay.u", "coil.w": "rotor.w", "rotor.i": "coil.i", "relay.y": "coil.i"},
        port="rotor.w",
        stop=1.5,
        steps=(0.0005, 0.02),
    )


@system("sampled")
def later_sampled_drone() -> System:
    """A drone climbs; a sampled law of its height and speed, thrust limited; drag is quadratic."""

    def law(u: Any, m: float) -> tuple[float, float]:
        return float(np.clip(9.81 + 6.0 * (1.0 - u[0]) - 4.0 * u[1], 0.0, 16.0)), m

    return System(
        models={
            "body": part(
                lambda t, s, u: [s[1], u[0] - 9.81 - 0.3 * s[1] * abs(s[1])], [0.0, 0.0], "T", "z v"
            ),
            "rotor": part(lambda t, s, u: [15.0 * (u[0] - s[0])], [0.0], "c", "T"),
            "law": sampled_law(law, "z v", 0.05),
        },
        wires={"body.T": "rotor.T", "rotor.c": "law.u", "law.z": "body.z", "law.v": "body.v"},
        port="body.z",
        stop=4.0,
        steps=(0.025, 0.1),
    )


@system("sampled")
def later_sampled_two_rates() -> System:
    """A cascade of sampled laws, the inner one three times as often, about a motor with a pendulum."""
    return System(
        models={
            "arm": part(
                lambda t, s, u: [s[1], u[0] - 6.0 * np.sin(s[0]) - 0.5 * s[1]], [0.0, 0.0], "T", "a w"
            ),
            "inner": sampled_law(lambda u, m: (4.0 * (u[0] - u[1]), m), "r w", 0.05),
            "outer": sampled_law(
                lambda u, m: (2.0 * (1.0 - u[0]) + m, m + 0.3 * (1.0 - u[0])), "a", 0.15, late=True
            ),
        },
        wires={"arm.T": "inner.u", "inner.r": "outer.u", "inner.w": "arm.w", "outer.a": "arm.a"},
        port="arm.a",
        stop=6.0,
        steps=(0.025, 0.3),
    )


@system("sampled")
def later_sampled_docking() -> System:
    """Thrusters with three levels, chosen once a period by a switching line: a craft docks."""

    def law(u: Any, m: float) -> tuple[float, float]:
        line = u[0] + 1.5 * u[1]
        return -1.0 if line > 0.1 else 1.0 if line < -0.1 else 0.0, m

    return System(
        models={
            "craft": part(lambda t, s, u: [s[1], 0.4 * u[0]], [2.0, 0.0], "F", "x v"),
            "law": sampled_law(law, "x v", 0.2, late=True),
        },
        wires={"craft.F": "law.u", "law.x": "craft.x", "law.v": "craft.v"},
        port="craft.x",
        stop=10.0,
        steps=(0.1, 1.0),
    )


@system("switched")
def later_filling_valve() -> System:
    """A tank is filled through a valve with two positions, an event each; a second tank hangs on it."""
    upper = hk.Ode(
        lambda t, s, u: [0.6 * s[1] - 0.4 * (s[0] - u[0]), 0.0],
        lambda t, s, u: [s[0]],
        x0=[0.0, 1.0],
        inputs=["l"],
        outputs=["h"],
        feedthrough={},
        events=[
            hk.Event(
                lambda t, s, u: s[0] - 1.5 if s[1] > 0.5 else 1.0 - s[0],
                "rising",
                lambda t, s, u: [s[0], 1.0 - s[1]],
            )
        ],
    )
    return System(
        models={
            "upper": upper,
            "lower": part(
                lambda t, s, u: [0.4 * (u[0] - s[0]) - 0.25 * np.sqrt(max(s[0], 0.0))], [0.1], "h", "l"
            ),
        },
        wires={"upper.l": "lower.l", "lower.h": "upper.h"},
        port="lower.l",
        stop=30.0,
        steps=(0.05, 2.0),
    )


@system("black box")
def later_boxed_escapement() -> System:
    """A pendulum in a box that can go back, a spring barrel in one that cannot; a push near the middle."""
    return System(
        models={
            "pendulum": box(
                lambda t, s, u: [
                    s[1],
                    -9.0 * np.sin(s[0]) - 0.3 * s[1] + u[0] * np.exp(-((s[0] / 0.1) ** 2)),
                ],
                [0.4, 0.0],
                "M",
                "a w",
                rollback=True,
            ),
            "barrel": box(
                lambda t, s, u: [-0.02 * abs(u[0])],
                [2.0],
                "w",
                "M",
                lambda t, s, u: [s[0] * np.tanh(20.0 * u[0]) if u is not None else 0.0],
                through=True,
            ),
        },
        wires={"pendulum.M": "barrel.M", "barrel.w": "pendulum.w"},
        port="pendulum.a",
        stop=8.0,
        steps=(0.005, 0.1),
    )


@system("black box")
def later_boxed_hydraulics() -> System:
    """Two tanks in boxes without rollback, flows are roots of level differences, both ways."""

    def root(d: float) -> float:
        return float(np.sign(d) * np.sqrt(abs(d) + 1e-4) - np.sign(d) * 1e-2)

    return System(
        models={
            "left": box(lambda t, s, u: [0.8 * np.sin(t) ** 2 - root(s[0] - u[0])], [1.0], "o", "h"),
            "right": box(lambda t, s, u: [2.0 * (root(u[0] - s[0]) - 0.6 * root(s[0]))], [0.2], "o", "h"),
        },
        wires={"left.o": "right.h", "right.o": "left.h"},
        port="right.h",
        stop=10.0,
        steps=(0.01, 0.5),
    )


@system("smooth")
def later_whirling_rotor() -> System:
    """A rotor with unbalance on bearings that grow stiffer; run-up through its critical speed."""
    return System(
        models={
            "shaft": part(
                lambda t, s, u: [
                    s[1],
                    -(s[0] - u[0]) * 400.0 - 2.0 * s[1] + 0.02 * (4.0 * t) ** 2 * np.sin(2.0 * t**2),
                ],
                [0.0, 0.0],
                "p",
                "x v",
            ),
            "bearing": part(
                lambda t, s, u: [
                    s[1],
                    (400.0 * (u[0] - s[0]) - 300.0 * s[0] * (1.0 + 40.0 * s[0] ** 2) - 20.0 * s[1]) / 2.0,
                ],
                [0.0, 0.0],
                "p",
                "x v",
            ),
        },
        wires={"shaft.p": "bearing.x", "bearing.p": "shaft.x"},
        port="bearing.x",
        stop=6.0,
        steps=(0.001, 0.05),
    )
