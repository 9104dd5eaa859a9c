"""Electrical networks: diodes, converters, oscillators, memory elements.

In:  nothing
Out: systems in the catalogue
"""

from __future__ import annotations

import numpy as np

import hocket as hk
from truth_systems.parts import algebraic, part
from truth_systems.reference import Switch, sampled, smooth, switched
from truth_systems.system import System, system


def _diode(v: float) -> float:
    """Return the current of a diode that conducts 2 A/V above 0.6 V."""
    return 2.0 * (v - 0.6) if v > 0.6 else 0.0


@system("switched")
def diode_rectifier() -> System:
    """A source of 10 V behind an inductor, a diode, a smoothing capacitor with its load."""
    return System(
        models={
            "source": hk.Function(lambda t: 10.0 * np.sin(2 * np.pi * 50 * t), ["e"]),
            "line": part(lambda t, s, u: [(u[0] - s[0]) / 1e-3 - u[1] / 1e-3], [0.0], "e i", "v"),
            "load": part(
                lambda t, s, u: [(_diode(u[0] - s[0]) - s[0] / 20.0) / 2e-3],
                [0.0],
                "v",
                "i out",
                lambda t, s, u: [_diode(u[0] - s[0]), s[0]],
                through=True,
            ),
        },
        wires={"line.e": "source.e", "line.i": "load.i", "load.v": "line.v"},
        port="load.out",
        stop=0.06,
        steps=(2e-5, 3e-3),
        reference=smooth(
            lambda t, y: [
                1e3 * (10.0 * np.sin(100 * np.pi * t) - y[0] - 2.0 * max(y[0] - y[1] - 0.6, 0.0)),
                (2.0 * max(y[0] - y[1] - 0.6, 0.0) - 0.05 * y[1]) / 2e-3,
            ],
            [0.0, 0.0],
            1,
            max_step=2e-5,
            rtol=1e-9,
        ),
    )


@system("switched")
def diode_starts_off() -> System:
    """A capacitor at -2 V is charged slowly; when it passes 0.6 V a diode couples it strongly to another."""
    return System(
        models={
            "left": part(lambda t, s, u: [2.0 - 0.1 * s[0] - 10.0 * u[0]], [-2.0], "i", "v"),
            "right": part(
                lambda t, s, u: [4.0 * _diode(u[0] - s[0]) - 0.5 * s[0]],
                [0.0],
                "v",
                "i w",
                lambda t, s, u: [_diode(u[0] - s[0]), s[0]],
                through=True,
            ),
        },
        wires={"left.i": "right.i", "right.v": "left.v"},
        port="left.v",
        stop=4.0,
        steps=(0.005, 0.125),
        reference=switched(
            lambda t, y, m: [
                2.0 - 0.1 * y[0] - m * 20.0 * (y[0] - y[1] - 0.6),
                m * 8.0 * (y[0] - y[1] - 0.6) - 0.5 * y[1],
            ],
            [-2.0, 0.0],
            0,
            {
                0: [Switch(lambda t, y: y[0] - y[1] - 0.6, 1, 1)],
                1: [Switch(lambda t, y: y[0] - y[1] - 0.6, -1, 0)],
            },
            lambda t, y, m: y[0],
        ),
    )


@system("smooth")
def shockley_clipper() -> System:
    """A driven RC circuit whose voltage two exponential diodes limit."""

    def current(v: float) -> float:
        return 1e-3 * np.sinh(v / 0.15)

    return System(
        models={
            "circuit": part(
                lambda t, s, u: [(3.0 * np.sin(2 * np.pi * t) - s[0]) / 0.05 - 20.0 * u[0]], [0.0], "i", "v"
            ),
            "diodes": algebraic(lambda t, s, u: [current(u[0])], "v", "i"),
        },
        wires={"circuit.i": "diodes.i", "diodes.v": "circuit.v"},
        port="circuit.v",
        stop=2.0,
        steps=(0.001, 0.02),
        reference=smooth(
            lambda t, y: [20.0 * (3.0 * np.sin(2 * np.pi * t) - y[0]) - 0.02 * np.sinh(y[0] / 0.15)],
            [0.0],
            0,
            method="Radau",
        ),
    )


@system("smooth")
def buck_averaged() -> System:
    """A step-down converter, averaged; a controller sets the duty ratio: voltage times duty is a product."""
    return System(
        models={
            "stage": part(
                lambda t, s, u: [(24.0 * u[0] - s[1]) / 1e-3, (s[0] - s[1] / 5.0) / 1e-3],
                [0.0, 0.0],
                "d",
                "i v",
            ),
            "control": part(
                lambda t, s, u: [200.0 * (12.0 - u[0])],
                [0.0],
                "v",
                "d",
                lambda t, s, u: [0.5 + 0.5 * np.tanh(0.05 * (12.0 - u[0]) + 0.02 * s[0])],
                through=True,
            ),
        },
        wires={"stage.d": "control.d", "control.v": "stage.v"},
        port="stage.v",
        stop=0.02,
        steps=(2e-5, 1e-3),
        reference=smooth(
            lambda t, y: [
                1e3 * (12.0 + 12.0 * np.tanh(0.05 * (12.0 - y[1]) + 0.02 * y[2]) - y[1]),
                1e3 * y[0] - 200.0 * y[1],
                200.0 * (12.0 - y[1]),
            ],
            [0.0, 0.0, 0.0],
            1,
        ),
    )


@system("switched")
def buck_switched() -> System:
    """A converter switched at 5 kHz, duty ratio 0.4: on for 80 us, off for 120 us."""
    edges = [
        (round(k * 2e-4 + part, 6), level) for k in range(20) for part, level in ((0.0, 1.0), (8e-5, 0.0))
    ]
    bridge = hk.Table([t for t, _ in edges], {"s": [level for _, level in edges]}, interpolation="hold")
    return System(
        models={
            "bridge": bridge,
            "coil": part(lambda t, s, u: [(24.0 * u[0] - u[1]) / 1e-3], [0.0], "s v", "i"),
            "load": part(lambda t, s, u: [(u[0] - s[0] / 5.0 - 0.02 * s[0] ** 2) / 1e-4], [0.0], "i", "v"),
        },
        wires={"coil.s": "bridge.s", "coil.v": "load.v", "load.i": "coil.i"},
        port="load.v",
        stop=0.004,
        steps=(1e-5, 2e-4),
        orchestrator="gauss-seidel",
        reference=sampled(
            lambda t, y, on: [24e3 * on - 1e3 * y[1], 1e4 * y[0] - 2e3 * y[1] - 200.0 * y[1] ** 2],
            [0.0, 0.0],
            lambda t, y, k: (1.0 if k % 5 < 2 else 0.0, k + 1),
            0,
            4e-5,
            1,
        ),
    )


@system("smooth")
def constant_power_load() -> System:
    """A filter feeds a load that takes constant power: it acts as a negative resistance and oscillates."""
    return System(
        models={
            "filter": part(
                lambda t, s, u: [(48.0 - s[1] - 0.4 * s[0]) / 1e-3, (s[0] - u[0]) / 1e-3],
                [0.0, 48.0],
                "i",
                "a v",
            ),
            "load": part(
                lambda t, s, u: [(200.0 - s[0]) / 2e-3],
                [0.0],
                "v",
                "i",
                lambda t, s, u: [s[0] / max(u[0], 5.0)],
                through=True,
            ),
        },
        wires={"filter.i": "load.i", "load.v": "filter.v"},
        port="filter.v",
        stop=0.03,
        steps=(5e-5, 3e-3),
        reference=smooth(
            lambda t, y: [
                1e3 * (48.0 - y[1]) - 400.0 * y[0],
                1e3 * (y[0] - y[2] / max(y[1], 5.0)),
                500.0 * (200.0 - y[2]),
            ],
            [0.0, 48.0, 0.0],
            1,
        ),
    )


@system("switched")
def chua() -> System:
    """Chua's circuit with its piecewise linear diode apart; over a time in which chaos grows by little."""

    def branch(x: float) -> float:
        return -0.714 * x - 0.2145 * (abs(x + 1.0) - abs(x - 1.0))

    def rhs(t: float, y: list[float]) -> list[float]:
        bend = y[0] - np.clip(y[0], -1.0, 1.0)
        return [
            15.6 * (y[1] - y[0] + 1.143 * np.clip(y[0], -1.0, 1.0) + 0.714 * bend),
            y[0] - y[1] + y[2],
            -28.0 * y[1],
        ]

    return System(
        models={
            "diode": part(lambda t, s, u: [15.6 * (u[0] - s[0] - branch(s[0]))], [0.7], "y", "x"),
            "tank": part(lambda t, s, u: [u[0] - s[0] + s[1], -28.0 * s[0]], [0.0, 0.0], "x", "y z"),
        },
        wires={"diode.y": "tank.y", "tank.x": "diode.x"},
        port="diode.x",
        stop=5.0,
        steps=(0.001, 0.05),
        extrapolation="linear",
        reference=smooth(rhs, [0.7, 0.0, 0.0], 0, max_step=5e-3, rtol=1e-9),
    )


@system("smooth")
def memristor() -> System:
    """A resistance that remembers its charge, in series with an inductor and a source."""
    return System(
        models={
            "source": part(lambda t, s, u: [(np.sin(2.0 * t) - u[0]) / 0.2], [0.0], "v", "i"),
            "memory": part(
                lambda t, s, u: [4.0 * u[0]],
                [0.1],
                "i",
                "v q",
                lambda t, s, u: [u[0] * (0.2 + 4.0 / (1.0 + np.exp(6.0 * s[0]))), s[0]],
                through=True,
            ),
        },
        wires={"source.v": "memory.v", "memory.i": "source.i"},
        port="memory.q",
        stop=8.0,
        steps=(0.01, 0.32),
        reference=smooth(
            lambda t, y: [
                5.0 * np.sin(2.0 * t) - y[0] * (1.0 + 20.0 / (1.0 + np.exp(6.0 * y[1]))),
                4.0 * y[0],
            ],
            [0.0, 0.1],
            1,
        ),
    )


@system("smooth")
def tunnel_diode_oscillator() -> System:
    """A coil and a tunnel diode, whose current falls where its voltage rises: relaxation oscillations."""
    return System(
        models={
            "coil": part(lambda t, s, u: [0.5 * (0.3 - u[0] - 0.1 * s[0])], [0.0], "v", "i"),
            "diode": part(
                lambda t, s, u: [20.0 * (u[0] - (s[0] - 0.3) ** 3 * 12.0 + 0.9 * (s[0] - 0.3) - 0.2)],
                [0.1],
                "i",
                "v",
            ),
        },
        wires={"coil.v": "diode.v", "diode.i": "coil.i"},
        port="diode.v",
        stop=20.0,
        steps=(0.01, 0.2),
        extrapolation="linear",
        reference=smooth(
            lambda t, y: [
                0.15 - 0.5 * y[1] - 0.05 * y[0],
                20.0 * y[0] - 240.0 * (y[1] - 0.3) ** 3 + 18.0 * (y[1] - 0.3) - 4.0,
            ],
            [0.0, 0.1],
            1,
            method="Radau",
        ),
    )


@system("smooth")
def saturating_inductor() -> System:
    """An inductor with a core that saturates, and a capacitor: the frequency depends on the amplitude."""
    return System(
        models={
            "coil": part(lambda t, s, u: [u[0]], [0.0], "v", "i", lambda t, s, u: [s[0] + 3.0 * s[0] ** 5]),
            "capacitor": part(lambda t, s, u: [-u[0] - 0.05 * s[0]], [1.5], "i", "v"),
        },
        wires={"coil.v": "capacitor.v", "capacitor.i": "coil.i"},
        port="capacitor.v",
        stop=6.0,
        steps=(0.005, 0.25),
        orchestrator="gauss-seidel",
        reference=smooth(lambda t, y: [y[1], -y[0] - 3.0 * y[0] ** 5 - 0.05 * y[1]], [0.0, 1.5], 1),
    )


@system("smooth")
def phase_locked_loop() -> System:
    """A loop pulls in a frequency beyond its tangent: it slips cycles, then locks."""
    return System(
        models={
            "detector": part(lambda t, s, u: [5.0 - u[0]], [0.0], "w", "e", lambda t, s, u: [np.sin(s[0])]),
            "filter": part(
                lambda t, s, u: [1.2 * u[0]],
                [0.0],
                "e",
                "w",
                lambda t, s, u: [3.5 * u[0] + s[0]],
                through=True,
            ),
        },
        wires={"detector.w": "filter.w", "filter.e": "detector.e"},
        port="filter.w",
        stop=10.0,
        steps=(0.01, 0.2),
        reference=smooth(
            lambda t, y: [5.0 - 3.5 * np.sin(y[0]) - y[1], 1.2 * np.sin(y[0])],
            [0.0, 0.0],
            lambda t, y: 3.5 * np.sin(y[0]) + y[1],
        ),
    )


@system("smooth")
def josephson_pair() -> System:
    """Two Josephson junctions that share a current: one rotates, the other swings."""
    models = {
        name: part(
            lambda t, s, u, bias=bias: [s[1], bias - np.sin(s[0]) - 0.2 * s[1] + 0.5 * (u[0] - s[1])],
            [0.0, 0.0],
            "other",
            "phase rate",
        )
        for name, bias in (("one", 1.6), ("two", 0.3))
    }
    return System(
        models=models,
        wires={"one.other": "two.rate", "two.other": "one.rate"},
        port="one.rate",
        stop=15.0,
        steps=(0.02, 1.5),
        reference=smooth(
            lambda t, y: [
                y[1],
                1.6 - np.sin(y[0]) - 0.7 * y[1] + 0.5 * y[3],
                y[3],
                0.3 - np.sin(y[2]) - 0.7 * y[3] + 0.5 * y[1],
            ],
            [0.0] * 4,
            1,
        ),
    )
