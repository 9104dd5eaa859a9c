"""Electrical, thermal, chemical and living systems, held out: written without a look into the method.

In:  nothing
Out: systems in the catalogue; their references are composed of the equations of their parts
"""

from __future__ import annotations

from typing import Any

import numpy as np

import hocket as hk
from truth_systems.chaos_and_delay import DelayLine
from truth_systems.parts import algebraic, box, part
from truth_systems.reference import smooth
from truth_systems.sampled import _controller as sampled_law
from truth_systems.system import System, system


@system("smooth")
def later_hodgkin_huxley() -> System:
    """A membrane fires under a steady current; its gates are another simulator. Milliseconds."""

    def rate(v: float, scale: float, middle: float, width: float) -> float:
        z = (v - middle) / width
        return scale * width * (1.0 + z / 2.0 if abs(z) < 1e-6 else z / (1.0 - np.exp(-z)))

    def gates(t: float, s: Any, u: Any) -> list[float]:
        v = u[0]
        m, h, n = s
        return [
            rate(v, 0.1, -40.0, 10.0) * (1.0 - m) - 4.0 * np.exp(-(v + 65.0) / 18.0) * m,
            0.07 * np.exp(-(v + 65.0) / 20.0) * (1.0 - h) - h / (1.0 + np.exp(-(v + 35.0) / 10.0)),
            rate(v, 0.01, -55.0, 10.0) * (1.0 - n) - 0.125 * np.exp(-(v + 65.0) / 80.0) * n,
        ]

    return System(
        models={
            "membrane": part(
                lambda t, s, u: [
                    10.0
                    - 120.0 * u[0] ** 3 * u[1] * (s[0] - 50.0)
                    - 36.0 * u[2] ** 4 * (s[0] + 77.0)
                    - 0.3 * (s[0] + 54.4)
                ],
                [-65.0],
                "m h n",
                "v",
            ),
            "gates": part(gates, [0.053, 0.6, 0.318], "v", "m h n"),
        },
        wires={
            "membrane.m": "gates.m",
            "membrane.h": "gates.h",
            "membrane.n": "gates.n",
            "gates.v": "membrane.v",
        },
        port="membrane.v",
        stop=30.0,
        steps=(0.01, 0.2),
    )


@system("smooth")
def later_food_chain() -> System:
    """Grass, hares and foxes in three simulators: Hastings and Powell's chain, before chaos sets in."""

    def eaten(x: float, a: float, b: float) -> float:
        return a * x / (1.0 + b * x)

    return System(
        models={
            "grass": part(
                lambda t, s, u: [s[0] * (1.0 - s[0]) - eaten(s[0], 5.0, 3.0) * u[0]], [0.8], "y", "x"
            ),
            "hares": part(
                lambda t, s, u: [eaten(u[0], 5.0, 3.0) * s[0] - eaten(s[0], 0.1, 2.0) * u[1] - 0.4 * s[0]],
                [0.2],
                "x z",
                "y",
            ),
            "foxes": part(lambda t, s, u: [eaten(u[0], 0.1, 2.0) * s[0] - 0.01 * s[0]], [8.0], "y", "z"),
        },
        wires={"grass.y": "hares.y", "hares.x": "grass.x", "hares.z": "foxes.z", "foxes.y": "hares.y"},
        port="hares.y",
        stop=60.0,
        steps=(0.1, 4.0),
        reference=smooth(
            lambda t, y: [
                y[0] * (1 - y[0]) - 5.0 * y[0] * y[1] / (1 + 3.0 * y[0]),
                5.0 * y[0] * y[1] / (1 + 3.0 * y[0]) - 0.1 * y[1] * y[2] / (1 + 2.0 * y[1]) - 0.4 * y[1],
                0.1 * y[1] * y[2] / (1 + 2.0 * y[1]) - 0.01 * y[2],
            ],
            [0.8, 0.2, 8.0],
            1,
        ),
    )


@system("smooth")
def later_reactor_kinetics() -> System:
    """Neutrons with one group of delayed ones; their power heats the fuel, heat slows the reaction."""
    return System(
        models={
            "core": part(
                lambda t, s, u: [
                    (0.6 * (1.0 - np.exp(-2.0 * t)) - 0.4 * u[0] - 1.0) * 5.0 * s[0] + 5.0 * s[1],
                    0.1 * (s[0] - s[1]) * 5.0,
                ],
                [1.0, 1.0],
                "T",
                "n c",
            ),
            "fuel": part(lambda t, s, u: [0.8 * (u[0] - 1.0) - 0.3 * s[0]], [0.0], "n", "T"),
        },
        wires={"core.T": "fuel.T", "fuel.n": "core.n"},
        port="core.n",
        stop=12.0,
        steps=(0.01, 1.0),
    )


@system("smooth")
def later_kinase_cascade() -> System:
    """Three stages of a signal with a feedback from the last to the first."""

    def stage(t: float, s: Any, u: Any) -> list[float]:
        return [2.0 * u[0] * (1.0 - s[0]) / (0.1 + 1.0 - s[0]) - 0.8 * s[0] / (0.1 + s[0])]

    first = part(
        lambda t, s, u: [
            1.2 / (1.0 + (u[0] / 0.3) ** 4) * (1.0 - s[0]) / (1.1 - s[0]) - 0.5 * s[0] / (0.1 + s[0])
        ],
        [0.1],
        "z",
        "x",
    )
    return System(
        models={"one": first, "two": part(stage, [0.1], "u", "x"), "three": part(stage, [0.1], "u", "x")},
        wires={"one.z": "three.x", "two.u": "one.x", "three.u": "two.x"},
        port="three.x",
        stop=20.0,
        steps=(0.02, 1.0),
    )


@system("smooth")
def later_transistor_stage() -> System:
    """An amplifier with one transistor: its collector feeds back to its base; signal of 100 Hz. Volts, ms."""

    def collector(v: float) -> float:
        return 0.1 * np.log1p(np.exp(min((v - 0.6) / 0.03, 60.0)))

    return System(
        models={
            "base": part(
                lambda t, s, u: [
                    4.0 * (0.4 * np.sin(0.628 * t) - s[0] + 0.6) + 0.5 * (u[0] - s[0]) - 1.0 * collector(s[0])
                ],
                [0.6],
                "c",
                "b",
            ),
            "collector": part(
                lambda t, s, u: [(5.0 - s[0]) / 0.8 - 20.0 * collector(u[0]) * np.tanh(s[0] / 0.2)],
                [5.0],
                "b",
                "c",
            ),
        },
        wires={"base.c": "collector.c", "collector.b": "base.b"},
        port="collector.c",
        stop=20.0,
        steps=(0.01, 0.8),
    )


@system("switched")
def later_bridge_rectifier() -> System:
    """A bridge of ideal diodes between a coil and a load with a capacitor; mains of 50 Hz."""

    def through(v: float) -> float:
        return max(abs(v) - 1.2, 0.0)

    return System(
        models={
            "mains": hk.Function(lambda t: 20.0 * np.sin(314.159265 * t), ["v"]),
            "bridge": part(
                lambda t, s, u: [
                    (through(u[0]) - s[0] * 1.0 - u[1]) / 0.01
                    if s[0] > 0.0 or through(u[0]) > u[1]
                    else -2000.0 * s[0]
                ],
                [0.0],
                "v c",
                "i",
            ),
            "load": part(lambda t, s, u: [(u[0] - s[0] / 10.0) / 2e-3], [0.0], "i", "c"),
        },
        wires={"bridge.v": "mains.v", "bridge.c": "load.c", "load.i": "bridge.i"},
        port="load.c",
        stop=0.06,
        steps=(5e-5, 2e-3),
    )


@system("smooth")
def later_colpitts() -> System:
    """Colpitts' oscillator with an exponential transistor, started near its rest."""

    def on(x: float) -> float:
        return np.exp(min(-x, 40.0)) - 1.0

    return System(
        models={
            "tank": part(
                lambda t, s, u: [1.6 * (s[1] - 0.0) - 1.0 * on(u[0]), -0.6 * (s[0] + u[0]) - 0.7 * s[1]],
                [0.1, 0.0],
                "e",
                "c i",
            ),
            "emitter": part(lambda t, s, u: [1.6 * u[0]], [0.05], "i", "e"),
        },
        wires={"tank.e": "emitter.e", "emitter.i": "tank.i"},
        port="emitter.e",
        stop=15.0,
        steps=(0.005, 0.3),
    )


@system("smooth")
def later_three_machines() -> System:
    """Three machines on a network that is algebraic; a short drop of power in one of them."""

    def machine(inertia: float, push: float, drop: float) -> hk.Ode:
        return part(
            lambda t, s, u: [
                s[1],
                (push - drop * np.exp(-(((t - 0.5) / 0.2) ** 2)) - u[0] - 0.3 * s[1]) / inertia,
            ],
            [0.0, 0.0],
            "P",
            "d w",
        )

    def network(t: float, s: Any, u: Any) -> list[float]:
        ab, bc, ca = 2.0 * np.sin(u[0] - u[1]), 1.5 * np.sin(u[1] - u[2]), np.sin(u[2] - u[0])
        return [ab - ca, bc - ab, ca - bc]

    return System(
        models={
            "a": machine(0.3, 0.5, 1.5),
            "b": machine(0.2, -0.8, 0.0),
            "c": machine(0.5, 0.3, 0.0),
            "net": algebraic(network, "a b c", "A B C"),
        },
        wires={
            "a.P": "net.A",
            "b.P": "net.B",
            "c.P": "net.C",
            "net.a": "a.d",
            "net.b": "b.d",
            "net.c": "c.d",
        },
        port="b.d",
        stop=8.0,
        steps=(0.002, 0.1),
    )


@system("smooth")
def later_runaway_cells() -> System:
    """Two cells of a battery side by side; one has a fault that heats it, heat speeds their reactions."""

    def heat(T: float, c: float) -> float:
        return 40.0 * c * np.exp(-8.0 / max(T, 0.3))

    def cell(fault: float) -> hk.Ode:
        return part(
            lambda t, s, u: [
                fault + 2.0 * heat(s[0], s[1]) + 0.8 * (u[0] - s[0]) - 0.3 * (s[0] - 1.0),
                -heat(s[0], s[1]),
            ],
            [1.0, 1.0],
            "o",
            "T c",
        )

    return System(
        models={"left": cell(0.6), "right": cell(0.0)},
        wires={"left.o": "right.T", "right.o": "left.T"},
        port="right.T",
        stop=12.0,
        steps=(0.02, 1.0),
    )


@system("smooth")
def later_rikitake() -> System:
    """Two discs in each other's magnetic fields: a dynamo that reverses; short enough to be followed."""
    return System(
        models={
            "one": part(
                lambda t, s, u: [-1.0 * s[0] + s[1] * u[0], 1.0 - s[0] * u[0]], [1.0, 2.0], "y", "x a"
            ),
            "two": part(lambda t, s, u: [-1.0 * s[0] + (u[1] - 3.0) * u[0]], [0.5], "x a", "y"),
        },
        wires={"one.y": "two.y", "two.x": "one.x", "two.a": "one.a"},
        port="two.y",
        stop=12.0,
        steps=(0.005, 0.25),
        orchestrator="gauss-seidel",
    )


@system("switched")
def later_spiking_pair() -> System:
    """Two neurons that fire when a threshold is reached and start anew; they inhibit each other."""

    def neuron(current: float) -> hk.Ode:
        return hk.Ode(
            lambda t, s, u: [current - s[0] - 0.8 * u[0], -s[1] / 2.0, (s[1] - s[2]) / 0.5],
            lambda t, s, u: [s[2]],
            x0=[0.0, 0.0, 0.0],
            inputs=["o"],
            outputs=["g"],
            feedthrough={},
            events=[hk.Event(lambda t, s, u: s[0] - 1.0, "rising", lambda t, s, u: [0.0, s[1] + 0.5, s[2]])],
        )

    return System(
        models={"left": neuron(1.8), "right": neuron(2.0)},
        wires={"left.o": "right.g", "right.o": "left.g"},
        port="left.g",
        stop=15.0,
        steps=(0.02, 0.75),
    )


@system("switched")
def later_freezer() -> System:
    """A freezer whose goods melt and freeze: heat capacity jumps; a compressor works within its limits."""

    def temperature(H: float) -> float:
        return H + 1.0 if H < -1.0 else 0.0 if H < 1.0 else H - 1.0

    return System(
        models={
            "goods": part(
                lambda t, s, u: [0.8 * (u[0] - temperature(s[0]))],
                [3.0],
                "A",
                "T",
                lambda t, s, u: [temperature(s[0])],
            ),
            "air": part(
                lambda t, s, u: [2.0 * (0.3 * (2.0 - s[0]) + 0.8 * (u[0] - s[0]) - u[1])], [2.0], "T q", "A"
            ),
            "compressor": part(
                lambda t, s, u: [(min(max(0.8 * (u[0] + 2.0), 0.0), 2.0) - s[0]) / 0.5], [0.0], "A", "q"
            ),
        },
        wires={"goods.A": "air.A", "air.T": "goods.T", "air.q": "compressor.q", "compressor.A": "air.A"},
        port="air.A",
        stop=15.0,
        steps=(0.02, 1.5),
    )


@system("sampled")
def later_sampled_dosing() -> System:
    """A pump doses a base once a period by a pH that is a steep curve; its stroke is limited."""

    def law(u: Any, m: float) -> tuple[float, float]:
        return float(np.clip(0.5 * (7.0 - u[0]), 0.0, 1.5)), m

    return System(
        models={
            "vessel": part(
                lambda t, s, u: [u[0] - 0.4 * (s[0] + 0.3)],
                [-1.0],
                "q",
                "pH",
                lambda t, s, u: [7.0 + 2.0 * np.arcsinh(8.0 * s[0])],
            ),
            "pump": part(lambda t, s, u: [3.0 * (u[0] - s[0])], [0.0], "c", "q"),
            "law": sampled_law(law, "pH", 0.3),
        },
        wires={"vessel.q": "pump.q", "pump.c": "law.u", "law.pH": "vessel.pH"},
        port="vessel.pH",
        stop=9.0,
        steps=(0.15, 0.9),
    )


@system("sampled")
def later_sampled_inverter() -> System:
    """A sampled PI law holds the current of an inverter on a grid through a coil that saturates."""

    def law(u: Any, m: float) -> tuple[float, float]:
        off = 1.0 - u[0]
        return 1.5 * off + m, m + 0.15 * off

    return System(
        models={
            "coil": part(
                lambda t, s, u: [u[0] - u[1] - 0.2 * s[0]],
                [0.0],
                "v g",
                "i",
                lambda t, s, u: [s[0] + 0.5 * s[0] ** 3],
            ),
            "grid": part(lambda t, s, u: [4.0 * (0.5 * u[0] - s[0])], [0.0], "i", "g"),
            "law": sampled_law(law, "i", 0.1, late=True),
        },
        wires={"coil.v": "law.u", "coil.g": "grid.g", "grid.i": "coil.i", "law.i": "coil.i"},
        port="coil.i",
        stop=5.0,
        steps=(0.05, 0.5),
    )


@system("delayed")
def later_delayed_hormone() -> System:
    """A gland answers a hormone's level of a while ago; blood and tissue exchange it."""
    return System(
        models={
            "blood": part(
                lambda t, s, u: [4.0 / (1.0 + u[0] ** 4) - 1.2 * s[0] + 0.5 * (u[1] - s[0])],
                [0.5],
                "late m",
                "x",
            ),
            "tissue": part(lambda t, s, u: [0.7 * (u[0] - s[0])], [0.5], "x", "m"),
            "past": hk.Python(DelayLine, delay=0.8, before=0.5),
        },
        wires={"blood.late": "past.y", "blood.m": "tissue.m", "tissue.x": "blood.x", "past.u": "blood.x"},
        port="blood.x",
        stop=12.0,
        steps=(0.02, 0.4),
    )


@system("black box")
def later_boxed_glider() -> System:
    """A glider's speed and path in boxes that can go back: phugoid with drag."""
    return System(
        models={
            "speed": box(lambda t, s, u: [-np.sin(u[0]) - 0.1 * s[0] ** 2], [1.4], "a", "v", rollback=True),
            "path": box(
                lambda t, s, u: [u[0] - np.cos(s[0]) / max(u[0], 0.1)], [0.2], "v", "a", rollback=True
            ),
        },
        wires={"speed.a": "path.a", "path.v": "speed.v"},
        port="speed.v",
        stop=12.0,
        steps=(0.02, 0.6),
    )


@system("black box")
def later_boxed_gene() -> System:
    """A gene that switches itself on beyond a threshold, and its product's store, in boxes."""
    return System(
        models={
            "gene": box(
                lambda t, s, u: [
                    0.1 + 3.0 * u[0] ** 4 / (1.0 + u[0] ** 4) + 1.5 * np.exp(-((t - 3.0) ** 2)) - s[0]
                ],
                [0.1],
                "p",
                "m",
            ),
            "store": box(lambda t, s, u: [0.8 * u[0] - 0.7 * s[0]], [0.1], "m", "p"),
        },
        wires={"gene.p": "store.p", "store.m": "gene.m"},
        port="store.p",
        stop=15.0,
        steps=(0.02, 1.5),
    )


@system("switched")
def later_lockdown() -> System:
    """An epidemic in two districts; beyond a share of the ill contacts are fewer, the more the iller."""

    def contacts(i: float) -> float:
        return 2.5 if i < 0.03 else max(2.5 - 40.0 * (i - 0.03), 0.6)

    def district(i0: float) -> hk.Ode:
        return part(
            lambda t, s, u: [
                -contacts(s[1]) * s[0] * (0.85 * s[1] + 0.15 * u[0]),
                contacts(s[1]) * s[0] * (0.85 * s[1] + 0.15 * u[0]) - 0.8 * s[1],
            ],
            [1.0 - i0, i0],
            "o",
            "S I",
        )

    return System(
        models={"east": district(0.005), "west": district(0.0)},
        wires={"east.o": "west.I", "west.o": "east.I"},
        port="west.I",
        stop=20.0,
        steps=(0.05, 2.5),
    )


@system("smooth")
def later_ring_oscillator() -> System:
    """Three saturating inverters in a ring, started from a small difference."""
    models = {
        name: part(lambda t, s, u: [-s[0] - 2.5 * np.tanh(1.5 * u[0])], [x], "u", "y")
        for name, x in (("a", 0.3), ("b", -0.1), ("c", 0.0))
    }
    return System(
        models=models,
        wires={"a.u": "c.y", "b.u": "a.y", "c.u": "b.y"},
        port="c.y",
        stop=15.0,
        steps=(0.01, 0.3),
        reference=smooth(
            lambda t, y: [-y[k] - 2.5 * np.tanh(1.5 * y[k - 1]) for k in range(3)], [0.3, -0.1, 0.0], 2
        ),
    )
