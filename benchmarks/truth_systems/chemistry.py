"""Reactions: stiff, oscillating, exothermic; and a laser.

In:  nothing
Out: systems in the catalogue
"""

from __future__ import annotations

import numpy as np

from truth_systems.parts import part
from truth_systems.reference import smooth
from truth_systems.system import System, system


@system("smooth")
def robertson_mild() -> System:
    """Robertson's reactions with rates 0.04, 30 and 100: one simulator has A, the other B and C."""
    return System(
        models={
            "a": part(lambda t, s, u: [-0.04 * s[0] + 30.0 * u[0] * u[1]], [1.0], "b c", "a"),
            "bc": part(
                lambda t, s, u: [0.04 * u[0] - 30.0 * s[0] * s[1] - 100.0 * s[0] ** 2, 100.0 * s[0] ** 2],
                [0.0, 0.0],
                "a",
                "b c",
            ),
        },
        wires={"a.b": "bc.b", "a.c": "bc.c", "bc.a": "a.a"},
        port="bc.b",
        stop=40.0,
        steps=(0.05, 0.8),
        reference=smooth(
            lambda t, y: [
                -0.04 * y[0] + 30.0 * y[1] * y[2],
                0.04 * y[0] - 30.0 * y[1] * y[2] - 100.0 * y[1] ** 2,
                100.0 * y[1] ** 2,
            ],
            [1.0, 0.0, 0.0],
            1,
            method="Radau",
        ),
    )


@system("smooth")
def brusselator() -> System:
    """The Brusselator on its way to its cycle, a species in each simulator."""
    return System(
        models={
            "x": part(lambda t, s, u: [1.0 - 4.0 * s[0] + s[0] ** 2 * u[0]], [1.5], "y", "x"),
            "y": part(lambda t, s, u: [3.0 * u[0] - u[0] ** 2 * s[0]], [3.0], "x", "y"),
        },
        wires={"x.y": "y.y", "y.x": "x.x"},
        port="x.x",
        stop=12.0,
        steps=(0.01, 0.3),
        orchestrator="gauss-seidel",
        reference=smooth(
            lambda t, y: [1.0 + y[0] * (y[0] * y[1] - 4.0), y[0] * (3.0 - y[0] * y[1])], [1.5, 3.0], 0
        ),
    )


@system("smooth")
def oregonator() -> System:
    """The Oregonator with mild stiffness: three species in three simulators."""
    return System(
        models={
            "x": part(
                lambda t, s, u: [20.0 * (s[0] * (1 - s[0]) - u[1] * (s[0] - 0.02) / (s[0] + 0.02))],
                [0.5],
                "z f",
                "x",
            ),
            "z": part(lambda t, s, u: [u[0] - s[0]], [0.2], "x", "z"),
            "f": part(lambda t, s, u: [50.0 * (1.4 * u[0] - s[0])], [0.28], "z", "f"),
        },
        wires={"x.z": "z.z", "x.f": "f.f", "z.x": "x.x", "f.z": "z.z"},
        port="z.z",
        stop=12.0,
        steps=(0.005, 0.05),
        reference=smooth(
            lambda t, y: [
                20.0 * y[0] - 20.0 * y[0] ** 2 - 20.0 * y[2] * (y[0] - 0.02) / (y[0] + 0.02),
                y[0] - y[1],
                70.0 * y[1] - 50.0 * y[2],
            ],
            [0.5, 0.2, 0.28],
            1,
            method="Radau",
        ),
    )


@system("smooth")
def stirred_reactor() -> System:
    """An exothermic reaction after Arrhenius in a vessel, and its cooling jacket: it ignites."""
    return System(
        models={
            "vessel": part(
                lambda t, s, u: [
                    1.0 - s[0] - s[0] * np.exp(10.0 - 10.0 / max(s[1], 0.1)),
                    1.0 - s[1] + 0.6 * s[0] * np.exp(10.0 - 10.0 / max(s[1], 0.1)) + 1.5 * (u[0] - s[1]),
                ],
                [1.0, 1.0],
                "J",
                "c T",
            ),
            "jacket": part(lambda t, s, u: [4.0 * (u[0] - s[0]) + 3.0 * (0.9 - s[0])], [0.9], "T", "J"),
        },
        wires={"vessel.J": "jacket.J", "jacket.T": "vessel.T"},
        port="vessel.T",
        stop=8.0,
        steps=(0.02, 0.8),
        reference=smooth(
            lambda t, y: [
                1.0 - y[0] * (1.0 + np.exp(10.0 * (1.0 - 1.0 / y[1]))),
                1.0 + 1.5 * y[2] - 2.5 * y[1] + 0.6 * y[0] * np.exp(10.0 * (1.0 - 1.0 / y[1])),
                2.7 + 4.0 * y[1] - 7.0 * y[2],
            ],
            [1.0, 1.0, 0.9],
            1,
        ),
    )


@system("smooth")
def thermal_explosion() -> System:
    """Fuel and heat of a reaction that runs away: hardly anything happens, then everything at once."""
    return System(
        models={
            "heat": part(
                lambda t, s, u: [u[0] * np.exp(s[0] / (1 + 0.2 * s[0])) - 0.3 * s[0]], [0.0], "f", "T"
            ),
            "fuel": part(lambda t, s, u: [-0.05 * s[0] * np.exp(u[0] / (1 + 0.2 * u[0]))], [1.0], "T", "f"),
        },
        wires={"heat.f": "fuel.f", "fuel.T": "heat.T"},
        port="heat.T",
        stop=4.0,
        steps=(0.02, 0.8),
        orchestrator="gauss-seidel",
        extrapolation="linear",
        reference=smooth(
            lambda t, y: [
                y[1] * np.exp(y[0] / (1 + 0.2 * y[0])) - 0.3 * y[0],
                -0.05 * y[1] * np.exp(y[0] / (1 + 0.2 * y[0])),
            ],
            [0.0, 1.0],
            0,
            method="Radau",
        ),
    )


@system("smooth")
def laser() -> System:
    """Photons and inversion of a laser that is switched on: dark at first, then spikes."""
    return System(
        models={
            "photons": part(lambda t, s, u: [50.0 * s[0] * (u[0] - 1.0) + 1e-3], [1e-4], "n", "p"),
            "inversion": part(lambda t, s, u: [2.5 - s[0] - s[0] * u[0]], [0.0], "p", "n"),
        },
        wires={"photons.n": "inversion.n", "inversion.p": "photons.p"},
        port="photons.p",
        stop=3.0,
        steps=(0.001, 0.02),
        reference=smooth(
            lambda t, y: [50.0 * y[0] * y[1] - 50.0 * y[0] + 1e-3, 2.5 - y[1] * (1.0 + y[0])], [1e-4, 0.0], 0
        ),
    )


@system("smooth")
def laser_linear_input() -> System:
    """The same rate equations near their working point, with linear extrapolation: damped ringing."""
    return System(
        models={
            "photons": part(lambda t, s, u: [20.0 * s[0] * (u[0] - 1.0)], [0.6], "n", "p"),
            "inversion": part(lambda t, s, u: [2.0 - s[0] - s[0] * u[0]], [1.3], "p", "n"),
        },
        wires={"photons.n": "inversion.n", "inversion.p": "photons.p"},
        port="inversion.n",
        stop=4.0,
        steps=(0.005, 0.4),
        extrapolation="linear",
        reference=smooth(lambda t, y: [20.0 * (y[0] * y[1] - y[0]), 2.0 - y[1] - y[0] * y[1]], [0.6, 1.3], 1),
    )


@system("smooth")
def glycolysis() -> System:
    """Sel'kov's model of glycolysis on its cycle."""
    return System(
        models={
            "adp": part(lambda t, s, u: [-s[0] + 0.08 * u[0] + s[0] ** 2 * u[0]], [1.2], "f", "a"),
            "sugar": part(lambda t, s, u: [0.6 - 0.08 * s[0] - u[0] ** 2 * s[0]], [1.2], "a", "f"),
        },
        wires={"adp.f": "sugar.f", "sugar.a": "adp.a"},
        port="sugar.f",
        stop=25.0,
        steps=(0.05, 0.5),
        extrapolation="linear",
        reference=smooth(
            lambda t, y: [(0.08 + y[0] ** 2) * y[1] - y[0], 0.6 - (0.08 + y[0] ** 2) * y[1]], [1.2, 1.2], 1
        ),
    )
