"""Electrical, thermal, chemical and living systems, written after the method was first tuned.

In:  nothing
Out: systems in the catalogue; their references are composed of the equations of their parts
"""

from __future__ import annotations

from typing import Any

import numpy as np

import hocket as hk
from truth_systems.chaos_and_delay import DelayLine
from truth_systems.control import Relay
from truth_systems.parts import algebraic, box, part
from truth_systems.sampled import _controller as sampled_law
from truth_systems.system import System, system


@system("switched")
def fresh_buck_with_diode() -> System:
    """A converter at 10 kHz, duty ratio 0.3, with a diode that blocks: the coil's current stops at zero."""
    edges = [(k * 1e-4 + part, level) for k in range(30) for part, level in ((0.0, 1.0), (3e-5, 0.0))]
    gate = hk.Table(
        [round(t, 6) for t, _ in edges], {"s": [level for _, level in edges]}, interpolation="hold"
    )

    def voltage(s: float, i: float, v: float) -> float:
        return 20.0 - v if s > 0.5 else (-v - 0.3) * np.tanh(max(i, 0.0) / 1e-3)

    return System(
        models={
            "gate": gate,
            "coil": part(lambda t, x, u: [voltage(u[0], x[0], u[1]) / 2e-4], [0.0], "s v", "i"),
            "load": part(lambda t, x, u: [(u[0] - x[0] / 20.0) / 2e-5], [0.0], "i", "v"),
        },
        wires={"coil.s": "gate.s", "coil.v": "load.v", "load.i": "coil.i"},
        port="load.v",
        stop=0.003,
        steps=(5e-6, 1e-4),
    )


@system("smooth")
def fresh_harvested_prey() -> System:
    """Prey with a limit and a harvest, predators that grow sated."""
    return System(
        models={
            "prey": part(
                lambda t, s, u: [s[0] * (2.0 - s[0]) - s[0] * u[0] / (0.4 + s[0]) - 0.1 * s[0]],
                [0.8],
                "p",
                "x",
            ),
            "predator": part(lambda t, s, u: [s[0] * (1.2 * u[0] / (0.4 + u[0]) - 0.5)], [0.5], "x", "p"),
        },
        wires={"prey.p": "predator.p", "predator.x": "prey.x"},
        port="prey.x",
        stop=25.0,
        steps=(0.02, 1.0),
    )


@system("smooth")
def fresh_oregonator() -> System:
    """The oscillating reaction of Belousov and Zhabotinsky, scaled; two fast species apart from the slow."""
    return System(
        models={
            "fast": part(
                lambda t, s, u: [(s[0] * (1.0 - s[0]) - u[0] * (s[0] - 0.02) / (s[0] + 0.02)) / 0.1],
                [0.5],
                "z",
                "x",
            ),
            "slow": part(lambda t, s, u: [u[0] - s[0]], [0.1], "x", "z"),
        },
        wires={"fast.z": "slow.z", "slow.x": "fast.x"},
        port="fast.x",
        stop=8.0,
        steps=(0.005, 0.25),
    )


@system("smooth")
def fresh_radiating_plates() -> System:
    """Three plates exchange heat by radiation, the first is heated; temperatures in units of 300 K."""
    return System(
        models={
            "hot": part(lambda t, s, u: [4.0 - 0.6 * (s[0] ** 4 - u[0] ** 4)], [1.0], "m", "T"),
            "middle": part(
                lambda t, s, u: [0.9 * (u[0] ** 4 - s[0] ** 4) - 0.9 * (s[0] ** 4 - u[1] ** 4)],
                [1.0],
                "a b",
                "T",
            ),
            "cold": part(
                lambda t, s, u: [0.4 * (u[0] ** 4 - s[0] ** 4) - 2.0 * (s[0] - 1.0)], [1.0], "m", "T"
            ),
        },
        wires={"hot.m": "middle.T", "middle.a": "hot.T", "middle.b": "cold.T", "cold.m": "middle.T"},
        port="middle.T",
        stop=3.0,
        steps=(0.005, 0.15),
    )


@system("smooth")
def fresh_two_cells() -> System:
    """Two cells with the Brusselator inside, joined by diffusion: they fall out of step, then in."""
    return System(
        models={
            name: part(
                lambda t, s, u, b=b: [
                    1.0 - (b + 1.0) * s[0] + s[0] ** 2 * s[1] + 0.3 * (u[0] - s[0]),
                    b * s[0] - s[0] ** 2 * s[1],
                ],
                [x, 2.0],
                "o",
                "x y",
            )
            for name, x, b in (("left", 1.0, 2.5), ("right", 2.0, 2.8))
        },
        wires={"left.o": "right.x", "right.o": "left.x"},
        port="left.x",
        stop=12.0,
        steps=(0.01, 0.6),
        orchestrator="gauss-seidel",
    )


@system("switched")
def fresh_tanks_and_pump() -> System:
    """Two tanks in a row with outflows that are roots; a pump with a limit holds the second level."""
    return System(
        models={
            "upper": part(lambda t, s, u: [u[0] - np.sqrt(max(s[0], 0.0))], [0.1], "q", "h"),
            "lower": part(
                lambda t, s, u: [np.sqrt(max(u[0], 0.0)) - 0.8 * np.sqrt(max(s[0], 0.0))], [0.1], "h", "l"
            ),
            "pump": algebraic(lambda t, s, u: [min(max(6.0 * (1.0 - u[0]), 0.0), 2.0)], "l", "q"),
        },
        wires={"upper.q": "pump.q", "lower.h": "upper.h", "pump.l": "lower.l"},
        port="lower.l",
        stop=12.0,
        steps=(0.02, 0.8),
    )


@system("smooth")
def fresh_battery() -> System:
    """A battery with a curve of its open voltage feeds a load of constant power over a line."""

    def open_voltage(soc: float) -> float:
        return 3.2 + 0.8 * soc - 0.3 * np.exp(-20.0 * max(soc, 0.0)) + 0.1 * np.tanh(5.0 * (soc - 0.9))

    return System(
        models={
            "battery": part(
                lambda t, s, u: [-u[0] / 60.0, (u[0] * 0.03 - s[1]) / 2.0],
                [0.7, 0.0],
                "i",
                "v soc",
                lambda t, s, u: [open_voltage(s[0]) - s[1], s[0]],
            ),
            "load": part(
                lambda t, s, u: [
                    (u[0] - 0.1 * s[0] - s[1]) / 0.05,
                    (s[0] - 8.0 / max(s[1], 1.0) - s[1]) / 2.0,
                ],
                [5.0, 3.6],
                "v",
                "i w",
            ),
        },
        wires={"battery.i": "load.i", "load.v": "battery.v"},
        port="load.w",
        stop=10.0,
        steps=(0.01, 0.5),
    )


@system("switched")
def fresh_heat_pump() -> System:
    """A heat pump with hysteresis, its output depends on the temperature; a floor stores the heat."""
    return System(
        models={
            "floor": part(
                lambda t, s, u: [u[0] * (1.2 - 0.01 * s[0]) - 0.3 * (s[0] - u[1])], [22.0], "q T", "F"
            ),
            "room": part(
                lambda t, s, u: [0.15 * (u[0] - s[0]) - 0.05 * (s[0] - 5.0 * np.cos(0.3 * t))],
                [20.0],
                "F",
                "T",
            ),
            "pump": hk.Python(Relay, low=20.0, high=21.0, on=6.0, off=0.0),
        },
        wires={"floor.q": "pump.u", "floor.T": "room.T", "room.F": "floor.F", "pump.y": "room.T"},
        port="room.T",
        stop=40.0,
        steps=(0.1, 2.0),
    )


@system("smooth")
def fresh_wind_turbine() -> System:
    """A rotor whose power depends on its tip speed ratio, a generator that follows it, gusts."""

    def torque(w: float, v: float) -> float:
        ratio = max(w / v, 0.05)
        return 2.0 * v**2 * (0.22 * (11.6 / ratio - 5.0) * np.exp(-1.25 / ratio * 2.0) + 0.01) / ratio

    return System(
        models={
            "wind": hk.Function(lambda t: 8.0 + 1.5 * np.sin(1.3 * t), ["v"]),
            "rotor": part(lambda t, s, u: [(torque(s[0], u[1]) - u[0]) / 4.0], [6.0], "T v", "w"),
            "generator": part(lambda t, s, u: [5.0 * (0.25 * u[0] ** 2 - s[0])], [5.0], "w", "T"),
        },
        wires={"rotor.T": "generator.T", "rotor.v": "wind.v", "generator.w": "rotor.w"},
        port="rotor.w",
        stop=10.0,
        steps=(0.02, 1.0),
    )


@system("black box")
def fresh_epidemic_boxes() -> System:
    """Two towns with an epidemic each, in boxes without rollback; people travel."""
    return System(
        models={
            name: box(
                lambda t, s, u, r=r: [
                    -r * s[0] * (0.9 * s[1] + 0.1 * u[0]),
                    r * s[0] * (0.9 * s[1] + 0.1 * u[0]) - 0.5 * s[1],
                ],
                [1.0 - i, i],
                "other",
                "S I",
            )
            for name, i, r in (("north", 0.01, 2.0), ("south", 0.0, 3.0))
        },
        wires={"north.other": "south.I", "south.other": "north.I"},
        port="south.I",
        stop=20.0,
        steps=(0.05, 2.0),
    )


@system("smooth")
def fresh_chemostat() -> System:
    """Bacteria in a chemostat, with inhibition by substrate, and a feed that follows them."""
    return System(
        models={
            "broth": part(
                lambda t, s, u: [
                    s[0] * (1.2 * s[1] / (0.2 + s[1] + 2.0 * s[1] ** 2) - u[0]),
                    u[0] * (1.0 - s[1]) - 2.0 * s[0] * 1.2 * s[1] / (0.2 + s[1] + 2.0 * s[1] ** 2),
                ],
                [0.1, 0.8],
                "D",
                "x s",
            ),
            "feed": part(lambda t, s, u: [2.0 * (0.8 * u[0] - s[0])], [0.1], "x", "D"),
        },
        wires={"broth.D": "feed.D", "feed.x": "broth.x"},
        port="broth.x",
        stop=25.0,
        steps=(0.05, 2.5),
    )


@system("smooth")
def fresh_exothermic_tank() -> System:
    """A reaction that heats itself in a stirred tank, its jacket apart."""

    def rate(c: float, T: float) -> float:
        return c * np.exp(20.0 - 20.0 / max(T, 0.5))

    return System(
        models={
            "tank": part(
                lambda t, s, u: [
                    1.0 - s[0] - 0.8 * rate(s[0], s[1]),
                    1.0 - s[1] + 0.8 * 0.35 * rate(s[0], s[1]) - 1.5 * (s[1] - u[0]),
                ],
                [0.9, 1.0],
                "J",
                "c T",
            ),
            "jacket": part(lambda t, s, u: [6.0 * (u[0] - s[0]) + 6.0 * (0.98 - s[0])], [1.0], "T", "J"),
        },
        wires={"tank.J": "jacket.J", "jacket.T": "tank.T"},
        port="tank.T",
        stop=10.0,
        steps=(0.01, 0.4),
    )


@system("switched")
def fresh_peak_detector() -> System:
    """An oscillating circuit charges a capacitor over a diode that is ideal above 0.6 V."""

    def diode(v: float) -> float:
        return 5.0 * (v - 0.6) if v > 0.6 else 0.0

    return System(
        models={
            "tank": part(lambda t, s, u: [s[1] - u[0] - 0.02 * s[0], -9.0 * s[0]], [3.0, 0.0], "i", "v j"),
            "detector": part(
                lambda t, s, u: [0.5 * diode(u[0] - s[0]) - 0.1 * s[0]],
                [0.0],
                "v",
                "i out",
                lambda t, s, u: [diode(u[0] - s[0]), s[0]],
                through=True,
            ),
        },
        wires={"tank.i": "detector.i", "detector.v": "tank.v"},
        port="detector.out",
        stop=6.0,
        steps=(0.005, 0.2),
    )


@system("smooth")
def fresh_hindmarsh_rose() -> System:
    """A neuron that bursts: the membrane apart from its slow current."""
    return System(
        models={
            "membrane": part(
                lambda t, s, u: [
                    s[1] + 3.0 * s[0] ** 2 - s[0] ** 3 - u[0] + 3.0,
                    1.0 - 5.0 * s[0] ** 2 - s[1],
                ],
                [-1.0, 0.0],
                "z",
                "x y",
            ),
            "current": part(lambda t, s, u: [0.02 * (4.0 * (u[0] + 1.6) - s[0])], [2.0], "x", "z"),
        },
        wires={"membrane.z": "current.z", "current.x": "membrane.x"},
        port="membrane.x",
        stop=40.0,
        steps=(0.05, 2.0),
    )


@system("smooth")
def fresh_toggle() -> System:
    """Two genes that repress each other; a signal tips them over."""
    return System(
        models={
            "one": part(
                lambda t, s, u: [3.0 / (1.0 + u[0] ** 3) - s[0] + (1.5 if 4.0 < t < 7.0 else 0.0)],
                [0.2],
                "r",
                "p",
            ),
            "two": part(lambda t, s, u: [3.0 / (1.0 + u[0] ** 3) - s[0]], [2.8], "r", "p"),
        },
        wires={"one.r": "two.p", "two.r": "one.p"},
        port="one.p",
        stop=14.0,
        steps=(0.02, 1.0),
    )


@system("black box")
def fresh_fan_network() -> System:
    """A fan in a box with rollback and a duct whose drop is quadratic, over a volume that stores air."""
    return System(
        models={
            "fan": box(
                lambda t, s, u: [10.0 * (4.0 + 1.5 * s[0] - 0.6 * s[0] ** 3 - u[0])],
                [0.2],
                "p",
                "q",
                rollback=True,
            ),
            "duct": box(
                lambda t, s, u: [0.5 * (u[0] - np.sign(s[0]) * np.sqrt(abs(s[0])))],
                [0.5],
                "q",
                "p",
                rollback=True,
            ),
        },
        wires={"fan.p": "duct.p", "duct.q": "fan.q"},
        port="fan.q",
        stop=8.0,
        steps=(0.01, 0.32),
    )


@system("delayed")
def fresh_delayed_prey() -> System:
    """Predators grow by the prey of a while ago."""
    return System(
        models={
            "prey": part(lambda t, s, u: [s[0] * (1.0 - 0.3 * s[0] - u[0])], [1.0], "p", "x"),
            "predator": part(lambda t, s, u: [s[0] * (0.8 * u[0] - 0.6)], [0.6], "late", "p"),
            "past": hk.Python(DelayLine, delay=0.5, before=1.0),
        },
        wires={"prey.p": "predator.p", "predator.late": "past.y", "past.u": "prey.x"},
        port="prey.x",
        stop=10.0,
        steps=(0.02, 0.5),
    )


@system("sampled")
def fresh_sampled_heater() -> System:
    """A sampled law that switches a heater between three levels; heat is lost by radiation."""

    def law(u: Any, m: float) -> tuple[float, float]:
        return 0.75 * float(np.clip(np.round(3.0 * (1.8 - u[0])), 0.0, 2.0)), m

    return System(
        models={
            "oven": part(lambda t, s, u: [2.0 * u[0] - 0.15 * (s[0] ** 4 - 1.0)], [1.0], "q", "T"),
            "law": sampled_law(law, "T", 0.25),
        },
        wires={"oven.q": "law.u", "law.T": "oven.T"},
        port="oven.T",
        stop=10.0,
        steps=(0.125, 1.0),
    )


@system("smooth")
def fresh_exciter() -> System:
    """A generator swings against a grid; its exciter holds the voltage and saturates smoothly."""
    return System(
        models={
            "machine": part(
                lambda t, s, u: [s[1], 20.0 * (0.8 - u[0] * np.sin(s[0]) - 0.1 * s[1])],
                [0.6, 1.5],
                "E",
                "d w",
            ),
            "exciter": part(
                lambda t, s, u: [3.0 * (1.2 + 0.8 * np.tanh(3.0 * (1.0 - np.cos(u[0]))) - s[0])],
                [1.4],
                "d",
                "E",
            ),
        },
        wires={"machine.E": "exciter.E", "exciter.d": "machine.d"},
        port="machine.d",
        stop=5.0,
        steps=(0.01, 0.5),
        extrapolation="linear",
    )
