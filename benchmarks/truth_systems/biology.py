"""Living things: populations, epidemics, nerves, genes.

In:  nothing
Out: systems in the catalogue
"""

from __future__ import annotations

import numpy as np

from truth_systems.parts import part
from truth_systems.reference import smooth
from truth_systems.system import System, system


@system("smooth")
def predator_prey() -> System:
    """Lotka and Volterra: explicit coupling drives the cycle outwards."""
    return System(
        models={
            "prey": part(lambda t, s, u: [s[0] * (1.0 - u[0])], [2.0], "y", "x"),
            "predator": part(lambda t, s, u: [s[0] * (u[0] - 1.0)], [1.0], "x", "y"),
        },
        wires={"prey.y": "predator.y", "predator.x": "prey.x"},
        port="prey.x",
        stop=12.0,
        steps=(0.01, 0.4),
        reference=smooth(lambda t, y: [y[0] - y[0] * y[1], y[0] * y[1] - y[1]], [2.0, 1.0], 0),
    )


@system("smooth")
def predator_prey_sequential() -> System:
    """A larger cycle of Lotka and Volterra, Gauss-Seidel and linear extrapolation."""
    return System(
        models={
            "prey": part(lambda t, s, u: [s[0] * (2.0 / 3.0 - 4.0 / 3.0 * u[0])], [1.8], "y", "x"),
            "predator": part(lambda t, s, u: [s[0] * (u[0] - 1.0)], [1.8], "x", "y"),
        },
        wires={"prey.y": "predator.y", "predator.x": "prey.x"},
        port="predator.y",
        stop=16.0,
        steps=(0.02, 0.5),
        orchestrator="gauss-seidel",
        extrapolation="linear",
        reference=smooth(
            lambda t, y: [2.0 / 3.0 * y[0] - 4.0 / 3.0 * y[0] * y[1], (y[0] - 1.0) * y[1]], [1.8, 1.8], 1
        ),
    )


@system("smooth")
def paradox_of_enrichment() -> System:
    """Rosenzweig and MacArthur: predators that become satiated, on a relaxation cycle."""
    return System(
        models={
            "prey": part(
                lambda t, s, u: [s[0] * (1 - s[0] / 3.0) - s[0] * u[0] / (0.5 + s[0])], [1.0], "y", "x"
            ),
            "predator": part(
                lambda t, s, u: [0.8 * s[0] * u[0] / (0.5 + u[0]) - 0.4 * s[0]], [1.0], "x", "y"
            ),
        },
        wires={"prey.y": "predator.y", "predator.x": "prey.x"},
        port="prey.x",
        stop=40.0,
        steps=(0.05, 1.0),
        reference=smooth(
            lambda t, y: [
                y[0] - y[0] ** 2 / 3.0 - y[1] * (y[0] / (0.5 + y[0])),
                y[1] * (0.8 * (y[0] / (0.5 + y[0])) - 0.4),
            ],
            [1.0, 1.0],
            0,
        ),
    )


@system("smooth")
def fitzhugh_nagumo() -> System:
    """The nerve of FitzHugh and Nagumo fires again and again; voltage and recovery are apart."""
    return System(
        models={
            "voltage": part(lambda t, s, u: [5.0 * (s[0] - s[0] ** 3 / 3.0 - u[0] + 0.5)], [-1.0], "w", "v"),
            "recovery": part(lambda t, s, u: [0.4 * (u[0] + 0.7 - 0.8 * s[0])], [-0.5], "v", "w"),
        },
        wires={"voltage.w": "recovery.w", "recovery.v": "voltage.v"},
        port="voltage.v",
        stop=20.0,
        steps=(0.01, 0.2),
        extrapolation="linear",
        reference=smooth(
            lambda t, y: [
                5.0 * y[0] - 5.0 / 3.0 * y[0] ** 3 - 5.0 * y[1] + 2.5,
                0.4 * y[0] + 0.28 - 0.32 * y[1],
            ],
            [-1.0, -0.5],
            0,
        ),
    )


@system("smooth")
def nerve_at_rest() -> System:
    """The same nerve rests until a ramp of current passes the threshold: the start shows a stable point."""
    return System(
        models={
            "voltage": part(
                lambda t, s, u: [10.0 * (s[0] - s[0] ** 3 / 3.0 - u[0] + 0.05 * t)], [-1.2], "w", "v"
            ),
            "recovery": part(lambda t, s, u: [u[0] + 0.7 - 0.8 * s[0]], [-0.624], "v", "w"),
        },
        wires={"voltage.w": "recovery.w", "recovery.v": "voltage.v"},
        port="voltage.v",
        stop=12.0,
        steps=(0.005, 0.15),
        reference=smooth(
            lambda t, y: [
                10.0 * (y[0] - y[1] + 0.05 * t) - 10.0 / 3.0 * y[0] ** 3,
                y[0] - 0.8 * y[1] + 0.7,
            ],
            [-1.2, -0.624],
            0,
        ),
    )


@system("smooth")
def morris_lecar() -> System:
    """The membrane of Morris and Lecar (after Hodgkin and Huxley), its potassium gate apart."""

    def calcium(v: float) -> float:
        return 0.5 * (1.0 + np.tanh((v + 1.2) / 18.0))

    return System(
        models={
            "membrane": part(
                lambda t, s, u: [
                    (
                        90.0
                        - 2.0 * (s[0] + 60.0)
                        - 4.4 * calcium(s[0]) * (s[0] - 120.0)
                        - 8.0 * u[0] * (s[0] + 84.0)
                    )
                    / 20.0
                ],
                [-30.0],
                "n",
                "v",
            ),
            "gate": part(
                lambda t, s, u: [
                    0.04 * np.cosh((u[0] - 2.0) / 60.0) * (0.5 * (1.0 + np.tanh((u[0] - 2.0) / 30.0)) - s[0])
                ],
                [0.1],
                "v",
                "n",
            ),
        },
        wires={"membrane.n": "gate.n", "gate.v": "membrane.v"},
        port="membrane.v",
        stop=150.0,
        steps=(0.1, 10.0),
        orchestrator="gauss-seidel",
        reference=smooth(
            lambda t, y: [
                4.5
                - 0.1 * (y[0] + 60.0)
                - 0.11 * (1.0 + np.tanh((y[0] + 1.2) / 18.0)) * (y[0] - 120.0)
                - 0.4 * y[1] * (y[0] + 84.0),
                0.04 * np.cosh((y[0] - 2.0) / 60.0) * (0.5 + 0.5 * np.tanh((y[0] - 2.0) / 30.0) - y[1]),
            ],
            [-30.0, 0.1],
            0,
        ),
    )


@system("smooth")
def epidemic_in_two_cities() -> System:
    """An epidemic (susceptible, infected) that travels: nothing happens for long in the second city."""
    models = {
        name: part(
            lambda t, s, u: [
                -0.6 * s[0] * (s[1] + 0.02 * u[0]),
                0.6 * s[0] * (s[1] + 0.02 * u[0]) - 0.2 * s[1],
            ],
            [1.0 - sick, sick],
            "j",
            "s i",
        )
        for name, sick in (("first", 1e-3), ("second", 0.0))
    }
    return System(
        models=models,
        wires={"first.j": "second.i", "second.j": "first.i"},
        port="second.i",
        stop=60.0,
        steps=(0.25, 4.0),
        reference=smooth(
            lambda t, y: [
                -0.6 * y[0] * (y[1] + 0.02 * y[3]),
                0.6 * y[0] * (y[1] + 0.02 * y[3]) - 0.2 * y[1],
                -0.6 * y[2] * (y[3] + 0.02 * y[1]),
                0.6 * y[2] * (y[3] + 0.02 * y[1]) - 0.2 * y[3],
            ],
            [1.0 - 1e-3, 1e-3, 1.0, 0.0],
            3,
        ),
    )


@system("smooth")
def susceptible_and_infected() -> System:
    """An epidemic whose susceptible and infected people are apart: the product couples them."""
    return System(
        models={
            "susceptible": part(lambda t, s, u: [-1.5 * s[0] * u[0]], [0.999], "i", "s"),
            "infected": part(lambda t, s, u: [(1.5 * u[0] - 0.4) * s[0]], [0.001], "s", "i"),
        },
        wires={"susceptible.i": "infected.i", "infected.s": "susceptible.s"},
        port="infected.i",
        stop=25.0,
        steps=(0.05, 1.0),
        reference=smooth(
            lambda t, y: [-1.5 * y[0] * y[1], 1.5 * y[0] * y[1] - 0.4 * y[1]], [0.999, 0.001], 1
        ),
    )


@system("smooth")
def repressilator() -> System:
    """Three genes that repress each other in a ring: a delay of a step lengthens the cycle."""
    start = {"a": 1.0, "b": 0.2, "c": 2.5}
    models = {
        name: part(lambda t, s, u: [10.0 / (1.0 + u[0] ** 4) - s[0]], [value], "r", "p")
        for name, value in start.items()
    }
    return System(
        models=models,
        wires={"a.r": "c.p", "b.r": "a.p", "c.r": "b.p"},
        port="a.p",
        stop=12.0,
        steps=(0.02, 0.4),
        reference=smooth(lambda t, y: 10.0 / (1.0 + np.roll(y, 1) ** 4) - y, [1.0, 0.2, 2.5], 0),
    )


@system("smooth")
def chemostat() -> System:
    """Bacteria and their food (Monod) with a flow between: growth is exponential, then the food is gone."""
    return System(
        models={
            "food": part(
                lambda t, s, u: [0.3 * (5.0 - s[0]) - 2.0 * u[0] * s[0] / (0.3 + s[0])], [5.0], "x", "s"
            ),
            "cells": part(lambda t, s, u: [s[0] * (u[0] / (0.3 + u[0]) - 0.3)], [0.01], "s", "x"),
        },
        wires={"food.x": "cells.x", "cells.s": "food.s"},
        port="food.s",
        stop=20.0,
        steps=(0.02, 0.5),
        orchestrator="gauss-seidel",
        reference=smooth(
            lambda t, y: [
                1.5 - 0.3 * y[0] - 2.0 * y[1] * (y[0] / (0.3 + y[0])),
                y[1] * (y[0] / (0.3 + y[0])) - 0.3 * y[1],
            ],
            [5.0, 0.01],
            0,
        ),
    )


@system("smooth")
def kuramoto() -> System:
    """Three clocks of different pace that pull each other by sines."""
    pace = {"a": 1.0, "b": 1.6, "c": 2.3}
    names = list(pace)
    models = {
        name: part(
            lambda t, s, u, w=w: [w + 1.5 * (np.sin(u[0] - s[0]) + np.sin(u[1] - s[0]))],
            [0.0],
            "p q",
            "phase",
        )
        for name, w in pace.items()
    }
    wires = {
        f"{name}.{port}": f"{names[(k + shift) % 3]}.phase"
        for k, name in enumerate(names)
        for port, shift in (("p", 1), ("q", 2))
    }
    speeds = np.array(list(pace.values()))
    return System(
        models=models,
        wires=wires,
        port="a.phase",
        stop=6.0,
        steps=(0.02, 0.75),
        reference=smooth(
            lambda t, y: speeds + 1.5 * np.sin(y[None, :] - y[:, None]).sum(axis=1), [0.0] * 3, 0
        ),
    )
