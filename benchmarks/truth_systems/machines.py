"""Machines: motors, vehicles, suspensions, falling bodies.

In:  nothing
Out: systems in the catalogue
"""

from __future__ import annotations

import numpy as np

import hocket as hk
from truth_systems.parts import algebraic, mass, part
from truth_systems.reference import smooth
from truth_systems.system import System, system


@system("smooth")
def propeller_motor() -> System:
    """An electric motor and a propeller whose torque grows with the square of its speed."""
    motor = part(
        lambda t, s, u: [(24.0 - 0.1 * s[1] - 0.5 * s[0]) / 0.01, (0.1 * s[0] - u[0]) / 0.002],
        [0.0, 0.0],
        "T",
        "i w",
    )
    propeller = algebraic(lambda t, s, u: [2e-4 * u[0] * abs(u[0])], "w", "T")
    return System(
        models={"motor": motor, "propeller": propeller},
        wires={"motor.T": "propeller.T", "propeller.w": "motor.w"},
        port="motor.w",
        stop=0.5,
        steps=(0.001, 0.1),
        reference=smooth(
            lambda t, y: [
                2400.0 - 10.0 * y[1] - 50.0 * y[0],
                50.0 * y[0] - 0.1 * y[1] * abs(y[1]),
            ],
            [0.0, 0.0],
            1,
        ),
    )


@system("smooth")
def propeller_spin_up() -> System:
    """The same torque on a shaft of constant power: the tangent is loose at rest and tight at speed."""
    shaft = part(lambda t, s, u: [200.0 / (s[0] + 2.0) - u[0]], [0.0], "T", "w")
    propeller = part(
        lambda t, s, u: [20.0 * (u[0] - s[0])], [0.0], "w", "T", lambda t, s, u: [0.15 * s[0] ** 2]
    )
    return System(
        models={"shaft": shaft, "propeller": propeller},
        wires={"shaft.T": "propeller.T", "propeller.w": "shaft.w"},
        port="shaft.w",
        stop=3.0,
        steps=(0.01, 0.25),
        orchestrator="gauss-seidel",
        reference=smooth(
            lambda t, y: [200.0 / (y[0] + 2.0) - 0.15 * y[1] ** 2, 20.0 * (y[0] - y[1])], [0.0, 0.0], 0
        ),
    )


@system("smooth")
def tyre_slip() -> System:
    """A wheel brakes a car through a tyre whose force saturates with slip (shape of Pacejka's formula)."""

    def grip(speed: float, wheel: float) -> float:
        slip = (0.3 * wheel - speed) / (abs(speed) + 1.0)
        return 3000.0 * np.sin(1.5 * np.arctan(10.0 * slip))

    wheel = part(
        lambda t, s, u: [(-700.0 * (1 - np.exp(-t / 0.1)) - 0.3 * grip(u[0], s[0])) / 1.2],
        [80.0],
        "v",
        "F w",
        lambda t, s, u: [grip(u[0], s[0]), s[0]],
        through=True,
    )
    return System(
        models={"car": part(lambda t, s, u: [u[0] / 400.0], [24.0], "F", "v"), "wheel": wheel},
        wires={"car.F": "wheel.F", "wheel.v": "car.v"},
        port="car.v",
        stop=2.0,
        steps=(0.002, 0.1),
        orchestrator="gauss-seidel",
        reference=smooth(
            lambda t, y: [
                grip(y[0], y[1]) / 400.0,
                -(700.0 * (1 - np.exp(-10 * t)) + 0.3 * grip(y[0], y[1])) / 1.2,
            ],
            [24.0, 80.0],
            0,
            method="LSODA",
        ),
    )


@system("switched")
def quarter_car_bump_stop() -> System:
    """A quarter of a car over a step of the road; behind 0.05 m of travel a stiff bump stop acts."""

    def stiff(d: float) -> float:
        return 15e3 * d + (4e5 * (d - 0.05) if d > 0.05 else 4e5 * (d + 0.05) if d < -0.05 else 0.0)

    road = hk.Table([0.0, 0.5, 0.55, 3.0], {"z": [0.0, 0.0, 0.12, 0.12]})
    wheel = part(lambda t, s, u: [s[1], (2e5 * (u[1] - s[0]) - u[0]) / 40.0], [0.0, 0.0], "F z", "x v")
    body = part(
        lambda t, s, u: [s[1], (stiff(u[0] - s[0]) + 1200.0 * (u[1] - s[1])) / 300.0],
        [0.0, 0.0],
        "x v",
        "F h",
        lambda t, s, u: [stiff(u[0] - s[0]) + 1200.0 * (u[1] - s[1]), s[0]],
        through=True,
    )

    def rhs(t: float, y: list[float]) -> list[float]:
        z = 0.12 * min(max((t - 0.5) / 0.05, 0.0), 1.0)
        d = y[0] - y[2]
        force = 15e3 * d + 4e5 * (d - min(max(d, -0.05), 0.05)) + 1200.0 * (y[1] - y[3])
        return [y[1], (2e5 * (z - y[0]) - force) / 40.0, y[3], force / 300.0]

    return System(
        models={"road": road, "wheel": wheel, "body": body},
        wires={"wheel.z": "road.z", "wheel.F": "body.F", "body.x": "wheel.x", "body.v": "wheel.v"},
        port="body.h",
        stop=2.0,
        steps=(0.001, 0.02),
        reference=smooth(rhs, [0.0] * 4, 2, max_step=1e-3, rtol=1e-9),
    )


@system("smooth")
def parachute() -> System:
    """A falling body opens a parachute: drag grows with the square of its speed and by 50 within a second."""

    def area(t: float) -> float:
        return 0.02 + 1.0 / (1.0 + np.exp(-8.0 * (t - 5.0)))

    return System(
        models={
            "body": part(lambda t, s, u: [s[1], 9.81 - u[0] / 80.0], [0.0, 0.0], "F", "h v"),
            "canopy": part(
                lambda t, s, u: [area(t) - s[0]],
                [0.02],
                "v",
                "F",
                lambda t, s, u: [20.0 * s[0] * u[0] ** 2],
                through=True,
            ),
        },
        wires={"body.F": "canopy.F", "canopy.v": "body.v"},
        port="body.v",
        stop=10.0,
        steps=(0.02, 0.5),
        reference=smooth(
            lambda t, y: [y[1], 9.81 - 0.25 * y[2] * y[1] ** 2, area(t) - y[2]], [0.0, 0.0, 0.02], 1
        ),
    )


@system("smooth")
def two_machines_swing() -> System:
    """Two synchronous machines after a fault: they exchange power by the sine of the angle between them."""
    power = [(1.2, 6.0), (-1.2, 9.0)]
    models = {
        name: part(
            lambda t, s, u, p=p, m=m: [s[1], (p - 2.0 * np.sin(s[0] - u[0]) - 0.4 * s[1]) * 30.0 / m],
            [angle, 0.0],
            "other",
            "angle speed",
        )
        for name, angle, (p, m) in (("north", 1.6, power[0]), ("south", 0.0, power[1]))
    }
    return System(
        models=models,
        wires={"north.other": "south.angle", "south.other": "north.angle"},
        port="north.angle",
        stop=6.0,
        steps=(0.01, 1.0),
        extrapolation="linear",
        reference=smooth(
            lambda t, y: [
                y[1],
                5.0 * (1.2 - 2 * np.sin(y[0] - y[2]) - 0.4 * y[1]),
                y[3],
                10.0 / 3.0 * (-1.2 + 2 * np.sin(y[0] - y[2]) - 0.4 * y[3]),
            ],
            [1.6, 0.0, 0.0, 0.0],
            0,
        ),
    )


@system("smooth")
def robot_joint() -> System:
    """An arm in gravity on an elastic gear whose stiffness grows with its twist."""

    def twist(d: float) -> float:
        return 50.0 * d + 4000.0 * d**3

    return System(
        models={
            "drive": part(
                lambda t, s, u: [s[1], (30.0 * (1.5 - s[0]) - 8.0 * s[1] - u[0]) / 0.4],
                [0.0, 0.0],
                "T",
                "a w",
            ),
            "arm": part(
                lambda t, s, u: [s[1], (twist(u[0] - s[0]) - 10.0 * np.sin(s[0]) - 0.5 * s[1]) / 1.5],
                [0.0, 0.0],
                "a",
                "T b",
                lambda t, s, u: [twist(u[0] - s[0]), s[0]],
                through=True,
            ),
        },
        wires={"drive.T": "arm.T", "arm.a": "drive.a"},
        port="arm.b",
        stop=4.0,
        steps=(0.005, 0.1),
        reference=smooth(
            lambda t, y: [
                y[1],
                75.0 * (1.5 - y[0])
                - 20.0 * y[1]
                - 2.5 * (50.0 + 4000.0 * (y[0] - y[2]) ** 2) * (y[0] - y[2]),
                y[3],
                ((50.0 + 4000.0 * (y[0] - y[2]) ** 2) * (y[0] - y[2]) - 10.0 * np.sin(y[2]) - 0.5 * y[3])
                / 1.5,
            ],
            [0.0] * 4,
            2,
        ),
    )


@system("smooth")
def heave_on_waves() -> System:
    """A buoy on waves with a mooring line that hardens exponentially."""
    return System(
        models={
            "buoy": mass(2.0, 0.0, 0.0, lambda t, x, v: -20.0 * (x - 0.8 * np.sin(1.5 * t)) - 2.0 * v),
            "mooring": algebraic(lambda t, s, u: [-0.2 * (np.exp(4.0 * u[0]) - 1.0)], "x", "F"),
        },
        wires={"buoy.F": "mooring.F", "mooring.x": "buoy.x"},
        port="buoy.x",
        stop=10.0,
        steps=(0.01, 1.0),
        extrapolation="linear",
        reference=smooth(
            lambda t, y: [
                y[1],
                10.0 * (0.8 * np.sin(1.5 * t) - y[0]) - y[1] - 0.1 * np.expm1(4.0 * y[0]),
            ],
            [0.0, 0.0],
            0,
        ),
    )
