"""Black boxes: classes with a solver of their own, with rollback and without.

In:  nothing
Out: systems in the catalogue
"""

from __future__ import annotations

import numpy as np

from truth_systems.parts import algebraic, box, part
from truth_systems.reference import smooth
from truth_systems.system import System, system


@system("black box")
def boxed_hardening_spring() -> System:
    """Two masses in boxes; the second hangs on the first by a spring that hardens."""

    def spring(d: float) -> float:
        return 4.0 * d + 200.0 * d**3

    return System(
        models={
            "one": box(lambda t, s, u: [s[1], -20.0 * s[0] - 0.4 * s[1] + u[0]], [0.0, 2.0], "F", "x v"),
            "two": box(
                lambda t, s, u: [s[1], spring(u[0] - s[0]) - 0.2 * s[1]],
                [0.0, 0.0],
                "x",
                "F y",
                lambda t, s, u: [spring(s[0] - u[0]), s[0]],
                through=True,
            ),
        },
        wires={"one.F": "two.F", "two.x": "one.x"},
        port="two.y",
        stop=5.0,
        steps=(0.005, 0.2),
        reference=smooth(
            lambda t, y: [
                y[1],
                -20.0 * y[0] - 0.4 * y[1] - 4.0 * (y[0] - y[2]) - 200.0 * (y[0] - y[2]) ** 3,
                y[3],
                4.0 * (y[0] - y[2]) + 200.0 * (y[0] - y[2]) ** 3 - 0.2 * y[3],
            ],
            [0.0, 2.0, 0.0, 0.0],
            2,
        ),
    )


@system("black box")
def boxed_predator_prey() -> System:
    """Lotka and Volterra in boxes with rollback."""
    return System(
        models={
            "prey": box(lambda t, s, u: [s[0] * (1.5 - u[0])], [1.0], "y", "x", rollback=True),
            "predator": box(lambda t, s, u: [s[0] * (u[0] - 2.0)], [1.0], "x", "y", rollback=True),
        },
        wires={"prey.y": "predator.y", "predator.x": "prey.x"},
        port="predator.y",
        stop=10.0,
        steps=(0.01, 0.25),
        reference=smooth(lambda t, y: [1.5 * y[0] - y[0] * y[1], y[0] * y[1] - 2.0 * y[1]], [1.0, 1.0], 1),
    )


@system("black box")
def boxed_van_der_pol() -> System:
    """Van der Pol's oscillator as a box with rollback, and a filter as equations that feeds it back."""
    return System(
        models={
            "oscillator": box(
                lambda t, s, u: [s[1], 2.0 * (1.0 - s[0] ** 2) * s[1] - s[0] + u[0]],
                [1.0, 0.0],
                "f",
                "x v",
                rollback=True,
            ),
            "filter": part(lambda t, s, u: [3.0 * (u[0] - s[0])], [0.0], "x", "f"),
        },
        wires={"oscillator.f": "filter.f", "filter.x": "oscillator.x"},
        port="oscillator.x",
        stop=12.0,
        steps=(0.02, 1.0),
        orchestrator="gauss-seidel",
        extrapolation="linear",
        reference=smooth(
            lambda t, y: [y[1], 2.0 * y[1] - 2.0 * y[0] ** 2 * y[1] - y[0] + y[2], 3.0 * (y[0] - y[2])],
            [1.0, 0.0, 0.0],
            0,
        ),
    )


@system("black box")
def boxed_motor_and_pendulum() -> System:
    """A motor as a box without rollback turns a pendulum over the top."""
    return System(
        models={
            "motor": box(lambda t, s, u: [(6.0 - 0.5 * u[0] - s[0]) / 0.1], [0.0], "w", "T"),
            "rod": part(
                lambda t, s, u: [s[1], u[0] - 5.0 * np.sin(s[0]) - 0.1 * s[1]], [0.0, 0.0], "T", "a w"
            ),
        },
        wires={"motor.w": "rod.w", "rod.T": "motor.T"},
        port="rod.w",
        stop=6.0,
        steps=(0.01, 0.6),
        reference=smooth(
            lambda t, y: [10.0 * (6.0 - 0.5 * y[2] - y[0]), y[2], y[0] - 5.0 * np.sin(y[1]) - 0.1 * y[2]],
            [0.0, 0.0, 0.0],
            2,
        ),
    )


@system("black box")
def boxed_contact() -> System:
    """A hammer falls on a plate; both are boxes, contact is a one-sided stiff spring."""

    def contact(gap: float) -> float:
        return -3000.0 * gap if gap < 0.0 else 0.0

    return System(
        models={
            "hammer": box(lambda t, s, u: [s[1], -9.81 + u[0]], [0.3, 0.0], "F", "x v"),
            "plate": box(
                lambda t, s, u: [s[1], -2000.0 * s[0] - 5.0 * s[1] - contact(u[0] - s[0])],
                [0.0, 0.0],
                "x",
                "F y",
                lambda t, s, u: [contact(u[0] - s[0]), s[0]],
                through=True,
            ),
        },
        wires={"hammer.F": "plate.F", "plate.x": "hammer.x"},
        port="hammer.x",
        stop=0.6,
        steps=(0.0005, 0.02),
        reference=smooth(
            lambda t, y: [
                y[1],
                -9.81 + 3000.0 * max(y[2] - y[0], 0.0),
                y[3],
                -2000.0 * y[2] - 5.0 * y[3] - 3000.0 * max(y[2] - y[0], 0.0),
            ],
            [0.3, 0.0, 0.0, 0.0],
            0,
            max_step=5e-4,
            rtol=1e-9,
        ),
    )


@system("black box")
def boxed_saturation() -> System:
    """A controller with a limited output about a plant, both boxes: beyond the limit the loop is open."""
    return System(
        models={
            "plant": box(lambda t, s, u: [s[1], 4.0 * u[0] - 0.5 * s[1]], [3.0, 0.0], "u", "y v"),
            "control": box(
                lambda t, s, u: [10.0 * (u[0] + 0.8 * u[1] - s[0])],
                [0.0],
                "y v",
                "u",
                lambda t, s, u: [-min(max(3.0 * s[0], -1.0), 1.0)],
            ),
        },
        wires={"plant.u": "control.u", "control.y": "plant.y", "control.v": "plant.v"},
        port="plant.y",
        stop=8.0,
        steps=(0.01, 0.5),
        reference=smooth(
            lambda t, y: [
                y[1],
                -4.0 * float(np.clip(3.0 * y[2], -1.0, 1.0)) - 0.5 * y[1],
                10.0 * (y[0] + 0.8 * y[1] - y[2]),
            ],
            [3.0, 0.0, 0.0],
            0,
            max_step=0.01,
            rtol=1e-9,
        ),
    )


@system("black box")
def boxed_heat() -> System:
    """Radiation between a box and equations; the box has rollback and a coarse solver."""
    return System(
        models={
            "oven": box(
                lambda t, s, u: [6.0 - s[0] ** 4 + u[0] ** 4], [0.5], "w", "T", rollback=True, substeps=2
            ),
            "work": part(lambda t, s, u: [0.5 * (u[0] ** 4 - s[0] ** 4) - 0.4 * s[0]], [0.5], "T", "w"),
        },
        wires={"oven.w": "work.w", "work.T": "oven.T"},
        port="work.w",
        stop=3.0,
        steps=(0.005, 0.1),
        reference=smooth(
            lambda t, y: [6.0 - y[0] ** 4 + y[1] ** 4, 0.5 * y[0] ** 4 - 0.5 * y[1] ** 4 - 0.4 * y[1]],
            [0.5, 0.5],
            1,
        ),
    )


@system("black box")
def boxed_epidemic() -> System:
    """Two boxes without rollback exchange infected people; linear extrapolation."""
    models = {
        name: box(
            lambda t, s, u: [
                -0.9 * s[0] * (s[1] + 0.1 * u[0]),
                0.9 * s[0] * (s[1] + 0.1 * u[0]) - 0.3 * s[1],
            ],
            [1.0 - sick, sick],
            "j",
            "s i",
        )
        for name, sick in (("east", 0.02), ("west", 0.0))
    }

    def rhs(t: float, y: list[float]) -> list[float]:
        east, west = 0.9 * y[0] * (y[1] + 0.1 * y[3]), 0.9 * y[2] * (y[3] + 0.1 * y[1])
        return [-east, east - 0.3 * y[1], -west, west - 0.3 * y[3]]

    return System(
        models=models,
        wires={"east.j": "west.i", "west.j": "east.i"},
        port="west.i",
        stop=20.0,
        steps=(0.1, 2.0),
        extrapolation="linear",
        reference=smooth(rhs, [0.98, 0.02, 1.0, 0.0], 3),
    )


@system("black box")
def boxed_friction() -> System:
    """A box with dry friction, pulled by a spring whose other end moves steadily."""
    return System(
        models={
            "block": box(
                lambda t, s, u: [s[1], u[0] - 1.5 * np.tanh(s[1] / 0.02)], [0.0, 0.0], "F", "x v", substeps=20
            ),
            "spring": algebraic(lambda t, s, u: [10.0 * (0.5 * t - u[0])], "x", "F"),
        },
        wires={"block.F": "spring.F", "spring.x": "block.x"},
        port="block.x",
        stop=4.0,
        steps=(0.005, 0.1),
        reference=smooth(
            lambda t, y: [y[1], 5.0 * t - 10.0 * y[0] - 1.5 * np.tanh(50.0 * y[1])],
            [0.0, 0.0],
            0,
            method="Radau",
        ),
    )
