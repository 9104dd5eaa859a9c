"""Systems of the last trial: written after the method was mended in sight of `trial`, run once.

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


@system("smooth")
def last_swinging_load() -> System:
    """A trolley pulls a load on a rope to a place and brakes: cart and rope apart, the drive a third."""
    return System(
        models={
            "trolley": part(
                lambda t, s, u: [s[1], (u[0] + 30.0 * np.sin(u[1]) - 8.0 * s[1]) / 20.0],
                [0.0, 0.0],
                "F a",
                "x v",
            ),
            "rope": part(
                lambda t, s, u: [s[1], -9.8 / 4.0 * np.sin(s[0]) - 0.2 * s[1] - 0.05 * u[0] * np.cos(s[0])],
                [0.05, 0.0],
                "F",
                "a w",
            ),
            "drive": part(
                lambda t, s, u: [10.0 * (25.0 * (3.0 - u[0]) - 40.0 * u[1] - s[0])], [0.0], "x v", "F"
            ),
        },
        wires={
            "trolley.F": "drive.F",
            "trolley.a": "rope.a",
            "rope.F": "drive.F",
            "drive.x": "trolley.x",
            "drive.v": "trolley.v",
        },
        port="rope.a",
        stop=10.0,
        steps=(0.004, 0.25),
        orchestrator="gauss-seidel",
    )


@system("smooth")
def last_stiff_and_slow() -> System:
    """A slow tank, whose level a fast valve follows, and a heater; three decades of time constants."""
    return System(
        models={
            "tank": part(
                lambda t, s, u: [0.05 * (1.0 + 0.3 * np.sin(0.5 * t) - u[0] * np.sqrt(s[0]))], [1.0], "v", "h"
            ),
            "valve": part(lambda t, s, u: [40.0 * (0.6 + 0.8 * u[0] ** 2 - s[0])], [1.0], "h", "v"),
            "heat": part(lambda t, s, u: [0.4 * (u[0] * 20.0 - s[0] * u[1])], [15.0], "h v", "T"),
        },
        wires={"tank.v": "valve.v", "valve.h": "tank.h", "heat.h": "tank.h", "heat.v": "valve.v"},
        port="heat.T",
        stop=20.0,
        steps=(0.01, 1.0),
        orchestrator=hk.Multirate({"valve": 10}),
    )


@system("smooth")
def last_roessler_pair() -> System:
    """Two oscillators of Roessler, weakly coupled: chaos for forty seconds."""

    def oscillator(w: float, x: float) -> hk.Ode:
        return part(
            lambda t, s, u: [
                -w * s[1] - s[2] + 0.05 * (u[0] - s[0]),
                w * s[0] + 0.2 * s[1],
                0.2 + s[2] * (s[0] - 7.0),
            ],
            [x, 0.0, 0.1],
            "o",
            "x y z",
        )

    return System(
        models={"a": oscillator(1.0, 4.0), "b": oscillator(1.03, -3.0)},
        wires={"a.o": "b.x", "b.o": "a.x"},
        port="a.x",
        stop=40.0,
        steps=(0.01, 0.5),
        extrapolation="linear",
    )


@system("smooth")
def last_bead_on_hoop() -> System:
    """A bead on a hoop that a motor turns: beyond a speed the bottom is no rest any more."""
    return System(
        models={
            "bead": part(
                lambda t, s, u: [s[1], (u[0] ** 2 * np.cos(s[0]) - 9.8) * np.sin(s[0]) - 0.4 * s[1]],
                [0.02, 0.0],
                "w",
                "a r",
            ),
            "motor": part(
                lambda t, s, u: [
                    (6.0 - s[0] - 0.4 * s[0] * np.sin(u[0]) ** 2) / (1.0 + 0.3 * np.sin(u[0]) ** 2)
                ],
                [0.0],
                "a",
                "w",
            ),
        },
        wires={"bead.w": "motor.w", "motor.a": "bead.a"},
        port="bead.a",
        stop=12.0,
        steps=(0.004, 0.25),
    )


@system("smooth")
def last_nested_reactors() -> System:
    """Two reactors in a cascade inside a level, whose cooling is shared outside."""

    def reactor(c: float, T: float) -> hk.Ode:
        def f(t: float, s: np.ndarray, u: np.ndarray) -> list[float]:
            rate = 3.0 * s[0] * np.exp(8.0 * (s[1] - 1.0) / s[1])
            return [u[0] - s[0] - rate, 1.0 - s[1] + 0.2 * rate - 0.8 * (s[1] - u[1])]

        return part(f, [c, T], "f J", "c T")

    return System(
        models={
            "first": reactor(0.5, 1.0),
            "second": reactor(0.3, 1.0),
            "jacket": part(
                lambda t, s, u: [2.0 * (0.95 + 0.1 * np.sin(t) - s[0]) + 0.5 * (u[0] + u[1] - 2.0 * s[0])],
                [1.0],
                "a b",
                "T",
            ),
            "feed": hk.Table([0.0, 2.0, 2.5, 20.0], {"c": [1.0, 1.0, 1.4, 1.4]}),
        },
        wires={
            "first.f": "feed.c",
            "first.J": "jacket.T",
            "second.f": "first.c",
            "second.J": "jacket.T",
            "jacket.a": "first.T",
            "jacket.b": "second.T",
        },
        port="second.T",
        stop=10.0,
        steps=(0.005, 0.5),
        levels={"cascade": (("first", "second"), 2)},
    )


@system("smooth")
def last_iterated_pendulums() -> System:
    """Two pendulums with a stiff torsion spring between; steps are iterated, inputs linear."""
    return System(
        models={
            "a": part(lambda t, s, u: [s[1], -9.8 * np.sin(s[0]) + u[0]], [1.2, 0.0], "T", "x v"),
            "b": part(lambda t, s, u: [s[1], -9.8 * np.sin(s[0]) - u[0]], [0.4, 0.0], "T", "x v"),
            "spring": algebraic(
                lambda t, s, u: [150.0 * (u[1] - u[0]) + 0.5 * (u[3] - u[2])], "x z v w", "T"
            ),
        },
        wires={
            "a.T": "spring.T",
            "b.T": "spring.T",
            "spring.x": "a.x",
            "spring.z": "b.x",
            "spring.v": "a.v",
            "spring.w": "b.v",
        },
        port="a.x",
        stop=8.0,
        steps=(0.005, 0.2),
        orchestrator=hk.Iterate(at_most=60),
        extrapolation="linear",
    )


@system("smooth")
def last_adaptive_oscillator() -> System:
    """A stiff oscillator of van der Pol under step control, with a strict and a loose tolerance."""
    return System(
        models={
            "x": part(lambda t, s, u: [u[0]], [2.0], "v", "x"),
            "v": part(lambda t, s, u: [4.0 * (1.0 - u[0] ** 2) * s[0] - u[0]], [0.0], "x", "v"),
        },
        wires={"x.v": "v.v", "v.x": "x.x"},
        port="x.x",
        stop=10.0,
        steps=(0.05, 0.5),
        orchestrator=lambda step: hk.Adaptive(tolerance=1e-3 if step < 0.1 else 5.0),
    )


@system("smooth")
def last_immune_response() -> System:
    """A virus, cells and defence: growth over six decades, then collapse."""
    return System(
        models={
            "cells": part(
                lambda t, s, u: [0.1 - 0.1 * s[0] - 2.0 * s[0] * u[0], 2.0 * s[0] * u[0] - s[1]],
                [1.0, 0.0],
                "V",
                "T I",
            ),
            "virus": part(lambda t, s, u: [8.0 * u[0] - 2.0 * s[0] - 6.0 * u[1] * s[0]], [1e-4], "I E", "V"),
            "defence": part(
                lambda t, s, u: [u[0] / (0.05 + u[0]) * s[0] * 0.8 - 0.1 * s[0]], [0.01], "I", "E"
            ),
        },
        wires={"cells.V": "virus.V", "virus.I": "cells.I", "virus.E": "defence.E", "defence.I": "cells.I"},
        port="virus.V",
        stop=20.0,
        steps=(0.005, 0.4),
    )


@system("smooth")
def last_pulsed_valve() -> System:
    """A pressure vessel with pulses of a table, and a spring-loaded relief that opens by a smooth law."""
    rows = [0.0, 0.9, 1.0, 1.3, 1.4, 2.9, 3.0, 3.3, 3.4, 6.0]
    return System(
        models={
            "source": hk.Table(rows, {"q": [0, 0, 6, 6, 0, 0, 9, 9, 0, 0]}),
            "vessel": part(
                lambda t, s, u: [2.0 * (u[0] - u[1] * np.sqrt(s[0] + 0.01) - 0.3 * s[0])], [0.2], "q a", "p"
            ),
            "relief": part(
                lambda t, s, u: [
                    s[1],
                    400.0 * (0.5 * (1.0 + np.tanh(4.0 * (u[0] - 1.5))) - s[0]) - 24.0 * s[1],
                ],
                [0.0, 0.0],
                "p",
                "a",
                lambda t, s, u: [2.0 * s[0]],
            ),
        },
        wires={"vessel.q": "source.q", "vessel.a": "relief.a", "relief.p": "vessel.p"},
        port="vessel.p",
        stop=6.0,
        steps=(0.002, 0.15),
    )


@system("switched")
def last_drop_hammer() -> System:
    """A hammer on a spring strikes a plate with a one-sided, damped contact, several times."""

    def contact(gap: float, speed: float) -> float:
        return max(3000.0 * gap + 20.0 * speed, 0.0) if gap > 0.0 else 0.0

    return System(
        models={
            "hammer": mass(1.0, 0.0, 0.0, lambda t, x, v: 9.8),
            "plate": mass(5.0, 0.0, 0.0, lambda t, x, v: -2000.0 * x - 30.0 * v),
            "contact": algebraic(
                lambda t, s, u: [
                    -contact(u[0] - u[1] - 0.5, u[2] - u[3]),
                    contact(u[0] - u[1] - 0.5, u[2] - u[3]),
                ],
                "x z v w",
                "F R",
            ),
        },
        wires={
            "hammer.F": "contact.F",
            "plate.F": "contact.R",
            "contact.x": "hammer.x",
            "contact.z": "plate.x",
            "contact.v": "hammer.v",
            "contact.w": "plate.v",
        },
        port="hammer.x",
        stop=1.2,
        steps=(0.0002, 0.02),
    )


@system("switched")
def last_charge_pump() -> System:
    """Two capacitors and two piecewise linear diodes under a sine: the second climbs to twice the peak."""

    def diode(v: float) -> float:
        return 2.0 * (v - 0.6) if v > 0.6 else 1e-4 * v

    return System(
        models={
            "first": part(
                lambda t, s, u: [(diode(-(8.0 * np.sin(20.0 * t) + s[0])) - u[0]) / 0.5], [0.0], "i", "v"
            ),
            "second": part(
                lambda t, s, u: [(diode(8.0 * np.sin(20.0 * t) + u[0] - s[0]) - 0.05 * s[0]) / 0.5],
                [0.0],
                "v",
                "v2 i",
                lambda t, s, u: [s[0], diode(8.0 * np.sin(20.0 * t) + u[0] - s[0])],
                through=True,
            ),
        },
        wires={"first.i": "second.i", "second.v": "first.v"},
        port="second.v2",
        stop=3.0,
        steps=(0.0005, 0.02),
    )


@system("switched")
def last_lamp_dimmer() -> System:
    """A lamp that warms behind a clipped sine, and a photocell with saturation that sets the angle."""
    return System(
        models={
            "lamp": part(
                lambda t, s, u: [3.0 * (max(u[0] * (1.0 + 0.5 * np.sin(8.0 * t)), 0.0) - s[0] ** 2)],
                [0.2],
                "p",
                "T",
            ),
            "cell": part(lambda t, s, u: [5.0 * (_limit(2.0 * (0.9 - u[0]), 0.6) - s[0])], [0.0], "T", "e"),
            "setter": part(
                lambda t, s, u: [1.5 * u[0]], [0.5], "e", "p", lambda t, s, u: [_limit(s[0], 1.2)]
            ),
        },
        wires={"lamp.p": "setter.p", "cell.T": "lamp.T", "setter.e": "cell.e"},
        port="lamp.T",
        stop=8.0,
        steps=(0.005, 0.4),
    )


@system("switched")
def last_cooler_with_relay() -> System:
    """A cold room with a compressor that has two temperatures to switch at; goods inside warm slowly."""
    return System(
        models={
            "room": part(
                lambda t, s, u: [0.4 * (20.0 - s[0]) + 0.8 * (u[1] - s[0]) - 18.0 * (1.0 - u[0])],
                [8.0],
                "on g",
                "T",
            ),
            "goods": part(lambda t, s, u: [0.1 * (u[0] - s[0])], [10.0], "T", "g"),
            "relay": hk.Python(Relay, inputs=["y"], outputs=["u"], low=3.0, high=6.0, on=1.0, off=0.0),
        },
        wires={"room.on": "relay.u", "room.g": "goods.g", "goods.T": "room.T", "relay.y": "room.T"},
        port="goods.g",
        stop=12.0,
        steps=(0.01, 0.3),
    )


@system("switched")
def last_rubbing_rotor() -> System:
    """A rotor that runs up touches its casing where its orbit is too wide."""

    def rub(x: float, y: float) -> float:
        r = np.hypot(x, y)
        return 300.0 * (r - 0.03) / r if r > 0.03 else 0.0

    return System(
        models={
            "x": part(
                lambda t, s, u: [s[1], -100.0 * s[0] - 1.5 * s[1] - u[0] * s[0] + 0.3 * t * np.cos(t**2)],
                [0.0, 0.0],
                "k",
                "x v",
            ),
            "y": part(
                lambda t, s, u: [s[1], -100.0 * s[0] - 1.5 * s[1] - u[0] * s[0] + 0.3 * t * np.sin(t**2)],
                [0.0, 0.0],
                "k",
                "y v",
            ),
            "casing": algebraic(lambda t, s, u: [rub(u[0], u[1])], "x y", "k"),
        },
        wires={"x.k": "casing.k", "y.k": "casing.k", "casing.x": "x.x", "casing.y": "y.y"},
        port="x.x",
        stop=8.0,
        steps=(0.001, 0.08),
    )


@system("sampled")
def last_sampled_crane() -> System:
    """A pendulum on a trolley whose force a controller sets every 50 ms, with a limit."""

    def law(u: np.ndarray, memory: float) -> tuple[float, float]:
        return _limit(4.0 * (1.0 - u[0]) - 5.0 * u[1] + 3.0 * u[2], 3.0), memory

    return System(
        models={
            "trolley": part(lambda t, s, u: [s[1], u[0] + 2.0 * np.sin(u[1])], [0.0, 0.0], "F a", "x v"),
            "rope": part(
                lambda t, s, u: [s[1], -4.9 * np.sin(s[0]) - 0.3 * s[1] - 0.5 * u[0] * np.cos(s[0])],
                [0.0, 0.0],
                "F",
                "a w",
            ),
            "law": sampled_law(law, "x v a", 0.05),
        },
        wires={
            "trolley.F": "law.u",
            "trolley.a": "rope.a",
            "rope.F": "law.u",
            "law.x": "trolley.x",
            "law.v": "trolley.v",
            "law.a": "rope.a",
        },
        port="rope.a",
        stop=8.0,
        steps=(0.01, 0.05),
    )


@system("sampled")
def last_sampled_growth() -> System:
    """A sampled integrator with a gain that is too large for its period and its lag."""
    return System(
        models={
            "plant": part(
                lambda t, s, u: [2.0 * (u[0] - s[0]), s[0] - 0.3 * s[1] ** 3], [0.0, 0.5], "u", "v x"
            ),
            "law": sampled_law(lambda u, m: (-3.0 * u[0], m), "x", 0.4, late=True),
        },
        wires={"plant.u": "law.u", "law.x": "plant.x"},
        port="plant.x",
        stop=8.0,
        steps=(0.02, 0.4),
    )


@system("delayed")
def last_delayed_population() -> System:
    """A population that grows by what it was a while ago, and a predator that follows."""
    return System(
        models={
            "prey": part(
                lambda t, s, u: [s[0] * (1.2 * (1.0 - u[0] / 2.0) - 0.4 * u[1])], [0.8], "past y", "x"
            ),
            "memory": hk.Python(DelayLine, delay=0.8, before=0.8),
            "hunter": part(lambda t, s, u: [s[0] * (0.5 * u[0] - 0.6)], [0.5], "x", "y"),
        },
        wires={"prey.past": "memory.y", "prey.y": "hunter.y", "memory.u": "prey.x", "hunter.x": "prey.x"},
        port="hunter.y",
        stop=24.0,
        steps=(0.01, 0.8),
    )


@system("black box")
def last_boxed_gyro() -> System:
    """Two boxes that hand torque and rate to each other, one of them with a hardening spring."""
    return System(
        models={
            "frame": box(
                lambda t, s, u: [s[1], -6.0 * s[0] - 20.0 * s[0] ** 3 - 0.1 * s[1] - u[0]],
                [0.8, 0.0],
                "T",
                "a w",
            ),
            "wheel": box(
                lambda t, s, u: [s[1], 4.0 * (u[0] - s[0]) - 0.2 * s[1]],
                [0.0, 0.0],
                "a",
                "T",
                lambda t, s, u: [2.0 * s[0]],
                rollback=True,
            ),
        },
        wires={"frame.T": "wheel.T", "wheel.a": "frame.a"},
        port="frame.a",
        stop=10.0,
        steps=(0.005, 0.25),
    )


@system("black box")
def last_boxed_network() -> System:
    """Three boxes with tanh in a ring that inhibits: they begin to oscillate from nearly nothing."""
    names = ["a", "b", "c"]
    return System(
        models={
            name: box(lambda t, s, u: [-s[0] - 3.0 * np.tanh(u[0])], [0.01 * (k + 1)], "u", "y")
            for k, name in enumerate(names)
        },
        wires={"a.u": "c.y", "b.u": "a.y", "c.u": "b.y"},
        port="a.y",
        stop=12.0,
        steps=(0.01, 0.4),
        orchestrator="gauss-seidel",
    )


@system("black box")
def last_boxed_valve_train() -> System:
    """A box with direct feedthrough between two bodies: a stiff one-sided spring."""
    return System(
        models={
            "cam": hk.Function(lambda t: [0.01 * (1.0 - np.cos(15.0 * t))], ["x"]),
            "pushrod": box(
                lambda t, s, u: [],
                [],
                "c x",
                "F",
                lambda t, s, u: [max(4000.0 * (u[0] - u[1]) + 5.0, 0.0)],
                through=True,
            ),
            "valve": part(
                lambda t, s, u: [s[1], (u[0] - 900.0 * s[0] - 4.0 * s[1] - 5.0) / 0.3], [0.0, 0.0], "F", "x v"
            ),
        },
        wires={"pushrod.c": "cam.x", "pushrod.x": "valve.x", "valve.F": "pushrod.F"},
        port="valve.x",
        stop=2.0,
        steps=(0.0002, 0.02),
    )
