"""Mechanics: springs, stops, play, friction, pendulums, orbits.

In:  nothing
Out: systems in the catalogue
"""

from __future__ import annotations

import numpy as np

import hocket as hk
from truth_systems.parts import algebraic, mass, part
from truth_systems.reference import Switch, smooth, switched
from truth_systems.system import System, system


@system("smooth")
def hardening_spring_struck() -> System:
    """A mass is struck from rest; its spring hardens by the cube: the tangent at rest shows none of it."""
    spring = algebraic(lambda t, x, u: [-u[0] - 400.0 * u[0] ** 3], "x", "F")
    return System(
        models={"mass": mass(1.0, 0.0, 3.0), "spring": spring},
        wires={"mass.F": "spring.F", "spring.x": "mass.x"},
        port="mass.x",
        stop=2.0,
        steps=(0.001, 0.1),
        reference=smooth(lambda t, y: [y[1], -y[0] * (1 + 400.0 * y[0] ** 2)], [0.0, 3.0], 0),
    )


@system("smooth")
def hardening_spring_linear_input() -> System:
    """The same with a damper, linear extrapolation and Gauss-Seidel."""
    spring = algebraic(lambda t, x, u: [-2.0 * u[0] - 50.0 * u[0] ** 3 - 0.3 * u[1]], "x v", "F")
    return System(
        models={"mass": mass(1.0, 0.0, 4.0), "spring": spring},
        wires={"mass.F": "spring.F", "spring.x": "mass.x", "spring.v": "mass.v"},
        port="mass.x",
        stop=4.0,
        steps=(0.01, 0.2),
        orchestrator="gauss-seidel",
        extrapolation="linear",
        reference=smooth(lambda t, y: [y[1], -0.3 * y[1] - 2.0 * y[0] - 50.0 * y[0] ** 3], [0.0, 4.0], 0),
    )


@system("smooth")
def softening_spring() -> System:
    """A spring that gives way: near the saddle of x - x^3/6 the motion is slow and sensitive."""
    wall = part(
        lambda t, s, u: [s[1], -4.0 * s[0] - 0.5 * s[1] + 0.1 * np.sin(u[0])],
        [0.2, 0.0],
        "x",
        "F",
        lambda t, s, u: [0.5 * s[0]],
    )
    body = mass(1.0, 1.8, 0.4, lambda t, x, v: -np.sin(x) - 0.05 * v)
    return System(
        models={"body": body, "wall": wall},
        wires={"body.F": "wall.F", "wall.x": "body.x"},
        port="body.x",
        stop=20.0,
        steps=(0.05, 2.0),
        reference=smooth(
            lambda t, y: [
                y[1],
                0.5 * y[2] - np.sin(y[0]) - 0.05 * y[1],
                y[3],
                0.1 * np.sin(y[0]) - 4 * y[2] - 0.5 * y[3],
            ],
            [1.8, 0.4, 0.2, 0.0],
            0,
        ),
    )


@system("switched")
def contact_stop() -> System:
    """A mass flies freely, then meets an elastic stop: at the start there is no coupling at all."""
    stop = algebraic(lambda t, x, u: [-2000.0 * (u[0] - 1.0) if u[0] > 1.0 else 0.0], "x", "F")
    return System(
        models={"mass": mass(1.0, 0.0, 2.0), "stop": stop},
        wires={"mass.F": "stop.F", "stop.x": "mass.x"},
        port="mass.x",
        stop=1.0,
        steps=(0.0005, 0.02),
        reference=smooth(
            lambda t, y: [y[1], -2000.0 * max(y[0] - 1.0, 0.0)], [0.0, 2.0], 0, max_step=1e-3, rtol=1e-9
        ),
    )


@system("switched")
def contact_stop_damped() -> System:
    """A sliding mass is pulled back by a spring to a wall with spring and damper, which only pushes."""

    def push(x: float, v: float) -> float:
        return max(-(800.0 * x + 10.0 * v), 0.0) if x < 0 else 0.0

    wall = algebraic(lambda t, s, u: [push(u[0], u[1])], "x v", "F")
    return System(
        models={"mass": mass(1.0, 1.0, 0.0, lambda t, x, v: -5.0 - 4.0 * x), "wall": wall},
        wires={"mass.F": "wall.F", "wall.x": "mass.x", "wall.v": "mass.v"},
        port="mass.x",
        stop=3.0,
        steps=(0.002, 0.06),
        extrapolation="linear",
        reference=switched(
            lambda t, y, m: [y[1], -5.0 - 4.0 * y[0] - m * (800.0 * y[0] + 10.0 * y[1])],
            [1.0, 0.0],
            0,
            {
                0: [Switch(lambda t, y: y[0], -1, 1)],
                1: [Switch(lambda t, y: 800.0 * y[0] + 10.0 * y[1], 1, 0)],
            },
            lambda t, y, m: y[0],
        ),
    )


@system("switched")
def backlash() -> System:
    """A motor drives a load through play of 0.1 rad: in the middle of the play nothing is transmitted."""

    def play(d: float) -> float:
        return 60.0 * (d - 0.05 if d > 0.05 else d + 0.05 if d < -0.05 else 0.0)

    motor = part(
        lambda t, s, u: [s[1], (2.0 * np.cos(2.0 * t) - 0.2 * s[1] - u[0]) / 0.5], [0.0, 0.0], "T", "a w"
    )
    load = part(
        lambda t, s, u: [s[1], play(u[0] - s[0]) - 0.4 * s[1]],
        [0.0, 0.0],
        "d",
        "T a",
        lambda t, s, u: [play(u[0] - s[0]), s[0]],
        through=True,
    )
    return System(
        models={"motor": motor, "load": load},
        wires={"motor.T": "load.T", "load.d": "motor.a"},
        port="load.a",
        stop=4.0,
        steps=(0.002, 0.05),
        reference=smooth(
            lambda t, y: [
                y[1],
                4.0 * np.cos(2.0 * t)
                - 0.4 * y[1]
                - 120.0 * np.sign(y[0] - y[2]) * max(abs(y[0] - y[2]) - 0.05, 0),
                y[3],
                60.0 * np.sign(y[0] - y[2]) * max(abs(y[0] - y[2]) - 0.05, 0) - 0.4 * y[3],
            ],
            [0.0, 0.0, 0.0, 0.0],
            2,
            max_step=5e-3,
            rtol=1e-9,
        ),
    )


@system("smooth")
def coulomb_friction() -> System:
    """A block on a driven sledge; friction is the tangent hyperbolic of the sliding speed."""
    sledge = part(lambda t, s, u: [s[1], -9.0 * s[0] - 0.1 * s[1] - 0.2 * u[0]], [1.0, 0.0], "F", "x v")
    block = part(
        lambda t, s, u: [3.0 * np.tanh((u[0] - s[0]) / 0.2)],
        [0.0],
        "w",
        "v F",
        lambda t, s, u: [s[0], 3.0 * np.tanh((u[0] - s[0]) / 0.2)],
        through=True,
    )
    return System(
        models={"sledge": sledge, "block": block},
        wires={"sledge.F": "block.F", "block.w": "sledge.v"},
        port="block.v",
        stop=6.0,
        steps=(0.005, 0.15),
        orchestrator="gauss-seidel",
        reference=smooth(
            lambda t, y: [
                y[1],
                -9.0 * y[0] - 0.1 * y[1] - 0.6 * np.tanh((y[1] - y[2]) / 0.2),
                3.0 * np.tanh((y[1] - y[2]) / 0.2),
            ],
            [1.0, 0.0, 0.0],
            2,
        ),
    )


@system("smooth")
def stick_slip() -> System:
    """A block on a moving belt, held by a spring; friction falls with speed: it sticks and slips."""

    def friction(v: float) -> float:
        return 2.0 * np.tanh(v / 0.05) / (1.0 + 0.8 * abs(v))

    belt = algebraic(lambda t, s, u: [friction(1.0 - u[0])], "v", "F")
    return System(
        models={"block": mass(1.0, 0.0, 0.0, lambda t, x, v: -4.0 * x - 0.05 * v), "belt": belt},
        wires={"block.F": "belt.F", "belt.v": "block.v"},
        port="block.x",
        stop=10.0,
        steps=(0.002, 0.1),
        reference=smooth(
            lambda t, y: [y[1], friction(1.0 - y[1]) - 4.0 * y[0] - 0.05 * y[1]], [0.0, 0.0], 0, max_step=0.02
        ),
    )


@system("smooth")
def pendulum_on_cart() -> System:
    """A cart on a spring and a pendulum that swings far; each knows the mass matrix of both."""

    def cart(a: float, w: float, x: float, v: float) -> float:
        push = -8.0 * x - 0.2 * v + 0.5 * np.sin(a) * (w * w + 9.81 * np.cos(a))
        return push / (1.0 + 0.5 * np.sin(a) ** 2)

    models = {
        "cart": part(lambda t, s, u: [s[1], cart(u[0], u[1], s[0], s[1])], [0.0, 0.0], "a w", "x v"),
        "rod": part(
            lambda t, s, u: [
                s[1],
                -np.cos(s[0]) * cart(s[0], s[1], u[0], u[1]) - 9.81 * np.sin(s[0]) - 0.1 * s[1],
            ],
            [2.0, 0.0],
            "x v",
            "a w",
        ),
    }

    def rhs(t: float, y: list[float]) -> list[float]:
        x, v, a, w = y
        force = 0.5 * w**2 * np.sin(a) + 0.5 * 9.81 * np.sin(a) * np.cos(a) - 8.0 * x - 0.2 * v
        pull = force / (1.5 - 0.5 * np.cos(a) ** 2)
        return [v, pull, w, -pull * np.cos(a) - 9.81 * np.sin(a) - 0.1 * w]

    return System(
        models=models,
        wires={"cart.a": "rod.a", "cart.w": "rod.w", "rod.x": "cart.x", "rod.v": "cart.v"},
        port="rod.a",
        stop=5.0,
        steps=(0.005, 0.25),
        extrapolation="linear",
        reference=smooth(rhs, [0.0, 0.0, 2.0, 0.0], 2),
    )


@system("smooth")
def double_pendulum() -> System:
    """Two rods of length and mass one, split between them; here for a short while."""

    def upper(a: float, w: float, b: float, q: float) -> float:
        d = a - b
        top = -9.81 * (3 * np.sin(a) + np.sin(a - 2 * b)) - 2 * np.sin(d) * (q * q + w * w * np.cos(d))
        return top / (3 - np.cos(2 * d))

    def lower(a: float, w: float, b: float, q: float) -> float:
        d = a - b
        top = 2 * np.sin(d) * (2 * w * w + 2 * 9.81 * np.cos(a) + q * q * np.cos(d))
        return top / (3 - np.cos(2 * d))

    def rhs(t: float, y: list[float]) -> list[float]:
        a, b, w, q = y
        inertia = np.array([[2.0, np.cos(a - b)], [np.cos(a - b), 1.0]])
        load = np.array(
            [-np.sin(a - b) * q**2 - 2 * 9.81 * np.sin(a), np.sin(a - b) * w**2 - 9.81 * np.sin(b)]
        )
        return [w, q, *np.linalg.solve(inertia, load)]

    return System(
        models={
            "one": part(lambda t, s, u: [s[1], upper(s[0], s[1], u[0], u[1])], [1.5, 0.0], "b q", "a w"),
            "two": part(lambda t, s, u: [s[1], lower(u[0], u[1], s[0], s[1])], [1.0, 0.0], "b q", "a w"),
        },
        wires={"one.b": "two.a", "one.q": "two.w", "two.b": "one.a", "two.q": "one.w"},
        port="two.a",
        stop=3.0,
        steps=(0.002, 0.3),
        orchestrator="gauss-seidel",
        extrapolation="linear",
        reference=smooth(rhs, [1.5, 1.0, 0.0, 0.0], 1),
    )


@system("smooth")
def kepler() -> System:
    """An orbit of eccentricity 0.4; one simulator has x, the other y."""

    def pull(own: float, other: float) -> float:
        return -own / (own * own + other * other) ** 1.5

    return System(
        models={
            "east": part(lambda t, s, u: [s[1], pull(s[0], u[0])], [0.6, 0.0], "y", "x v"),
            "north": part(lambda t, s, u: [s[1], pull(s[0], u[0])], [0.0, np.sqrt(1.4 / 0.6)], "x", "y v"),
        },
        wires={"east.y": "north.y", "north.x": "east.x"},
        port="east.x",
        stop=12.0,
        steps=(0.02, 0.3),
        extrapolation="linear",
        reference=smooth(
            lambda t, y: [y[2], y[3], *(-y[:2] / np.linalg.norm(y[:2]) ** 3)],
            [0.6, 0.0, 0.0, np.sqrt(1.4 / 0.6)],
            0,
        ),
    )


@system("smooth")
def kepler_held() -> System:
    """An orbit of eccentricity 0.2 with three simulators and inputs held: it spirals outwards."""
    return System(
        models={
            "east": part(lambda t, s, u: [s[1], -s[0] * u[0]], [0.8, 0.0], "k", "x v"),
            "north": part(lambda t, s, u: [s[1], -s[0] * u[0]], [0.0, np.sqrt(1.5)], "k", "y v"),
            "sun": algebraic(lambda t, s, u: [(u[0] ** 2 + u[1] ** 2) ** -1.5], "x y", "k"),
        },
        wires={"east.k": "sun.k", "north.k": "sun.k", "sun.x": "east.x", "sun.y": "north.y"},
        port="north.y",
        stop=12.0,
        steps=(0.02, 0.5),
        reference=smooth(
            lambda t, y: [y[2], y[3], *(-y[:2] / np.linalg.norm(y[:2]) ** 3)],
            [0.8, 0.0, 0.0, np.sqrt(1.5)],
            1,
        ),
    )


@system("smooth")
def coupled_pendulums() -> System:
    """Two pendulums far from rest, joined by a stiff rod of rubber."""
    models = {
        name: part(
            lambda t, s, u: [s[1], -9.81 * np.sin(s[0]) - 40.0 * np.sin(s[0] - u[0])],
            [angle, 0.0],
            "b",
            "a w",
        )
        for name, angle in (("left", 2.5), ("right", 2.0))
    }
    return System(
        models=models,
        wires={"left.b": "right.a", "right.b": "left.a"},
        port="left.a",
        stop=3.0,
        steps=(0.001, 0.1),
        reference=smooth(
            lambda t, y: [
                y[1],
                -9.81 * np.sin(y[0]) + 40.0 * np.sin(y[2] - y[0]),
                y[3],
                -9.81 * np.sin(y[2]) + 40.0 * np.sin(y[0] - y[2]),
            ],
            [2.5, 0.0, 2.0, 0.0],
            0,
        ),
    )


@system("smooth")
def forced_duffing() -> System:
    """The oscillator of Duffing with two wells, driven by a source, its spring a part of its own."""
    return System(
        models={
            "body": part(lambda t, s, u: [s[1], u[0] + 0.3 * u[1] - 0.3 * s[1]], [1.0, 0.0], "F d", "x v"),
            "spring": algebraic(lambda t, s, u: [u[0] - u[0] ** 3], "x", "F"),
            "drive": hk.Function(lambda t: np.cos(1.2 * t), ["d"]),
        },
        wires={"body.F": "spring.F", "body.d": "drive.d", "spring.x": "body.x"},
        port="body.x",
        stop=15.0,
        steps=(0.01, 0.5),
        orchestrator="gauss-seidel",
        reference=smooth(
            lambda t, y: [y[1], y[0] - y[0] ** 3 - 0.3 * y[1] + 0.3 * np.cos(1.2 * t)], [1.0, 0.0], 0
        ),
    )


@system("switched")
def ball_on_table() -> System:
    """A ball bounces on a table that swings on springs and does not feel the ball; bounces are events."""
    ball = hk.Ode(
        lambda t, s, u: [s[1], -9.81],
        x0=[0.5, 0.0],
        inputs=["y", "v"],
        outputs=["h", "w"],
        events=[
            hk.Event(
                lambda t, s, u: s[0] - u[0],
                "falling",
                lambda t, s, u: [max(s[0], u[0]), u[1] - 0.8 * (s[1] - u[1])],
            )
        ],
    )
    table = part(lambda t, s, u: [s[1], -100.0 * s[0]], [0.02, 0.0], "", "y v")
    return System(
        models={"ball": ball, "table": table},
        wires={"ball.y": "table.y", "ball.v": "table.v"},
        port="ball.h",
        stop=1.2,
        steps=(0.01, 0.12),
        extrapolation="linear",
        reference=switched(
            lambda t, y, m: [y[1], -9.81],
            [0.5, 0.0],
            0,
            {
                0: [
                    Switch(
                        lambda t, y: y[0] - 0.02 * np.cos(10 * t),
                        -1,
                        0,
                        lambda t, y: [y[0], 1.8 * -0.2 * np.sin(10 * t) - 0.8 * y[1]],
                    )
                ]
            },
            lambda t, y, m: y[0],
        ),
    )
