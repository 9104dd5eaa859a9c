"""Heat and flow: radiation, exchangers, thermostats, tanks, valves, pipes.

In:  nothing
Out: systems in the catalogue
"""

from __future__ import annotations

import numpy as np

import hocket as hk
from truth_systems.control import Relay
from truth_systems.parts import part
from truth_systems.reference import Switch, smooth, switched
from truth_systems.system import System, system


@system("smooth")
def radiation() -> System:
    """A hot and a cold plate that radiate: the exchange grows with the fourth power."""
    flow = 4e-10

    return System(
        models={
            "hot": part(lambda t, s, u: [-u[0]], [1200.0], "q", "T"),
            "cold": part(
                lambda t, s, u: [0.5 * flow * (u[0] ** 4 - s[0] ** 4) - 0.02 * (s[0] - 300.0)],
                [300.0],
                "T",
                "q C",
                lambda t, s, u: [flow * (u[0] ** 4 - s[0] ** 4), s[0]],
                through=True,
            ),
        },
        wires={"hot.q": "cold.q", "cold.T": "hot.T"},
        port="cold.C",
        stop=10.0,
        steps=(0.02, 1.0),
        reference=smooth(
            lambda t, y: [
                -flow * (y[0] ** 4 - y[1] ** 4),
                0.5 * flow * (y[0] ** 4 - y[1] ** 4) - 0.02 * y[1] + 6.0,
            ],
            [1200.0, 300.0],
            1,
        ),
    )


@system("smooth")
def heat_exchanger() -> System:
    """Two streams in an exchanger; a pump that is speeded up by heat multiplies flow and temperature."""
    return System(
        models={
            "hot": part(lambda t, s, u: [0.8 * (90.0 - s[0]) - 1.2 * (s[0] - u[0])], [20.0], "C", "H"),
            "cold": part(lambda t, s, u: [u[1] * (20.0 - s[0]) + 1.2 * (u[0] - s[0])], [20.0], "H m", "C"),
            "pump": part(
                lambda t, s, u: [0.5 * (0.1 * (u[0] - 30.0) - s[0]) if u[0] > 30 else -0.5 * s[0]],
                [0.2],
                "C",
                "m",
            ),
        },
        wires={"hot.C": "cold.C", "cold.H": "hot.H", "cold.m": "pump.m", "pump.C": "cold.C"},
        port="cold.C",
        stop=15.0,
        steps=(0.05, 1.5),
        reference=smooth(
            lambda t, y: [
                72.0 - 2.0 * y[0] + 1.2 * y[1],
                y[2] * (20.0 - y[1]) + 1.2 * (y[0] - y[1]),
                0.05 * max(y[1] - 30.0, 0.0) - 0.5 * y[2],
            ],
            [20.0, 20.0, 0.2],
            1,
            max_step=0.02,
        ),
    )


@system("switched")
def thermostat() -> System:
    """A heater with a thermostat and a room; the wall stores heat."""
    return System(
        models={
            "room": part(
                lambda t, s, u: [u[0] + 0.6 * (s[1] - s[0]), 0.2 * (s[0] - s[1]) + 0.1 * (5.0 - s[1])],
                [15.0, 12.0],
                "q",
                "T W",
            ),
            "thermostat": hk.Python(Relay, low=20.0, high=22.0, on=8.0, off=0.0),
        },
        wires={"room.q": "thermostat.u", "thermostat.y": "room.T"},
        port="room.W",
        stop=20.0,
        steps=(0.02, 1.0),
        orchestrator=hk.GaussSeidel(["room", "thermostat"]),
        extrapolation="linear",
        reference=switched(
            lambda t, y, m: [8.0 * m + 0.6 * (y[1] - y[0]), 0.2 * y[0] - 0.3 * y[1] + 0.5],
            [15.0, 12.0],
            1,
            {1: [Switch(lambda t, y: y[0] - 22.0, 1, 0)], 0: [Switch(lambda t, y: y[0] - 20.0, -1, 1)]},
            lambda t, y, m: y[1],
        ),
    )


@system("smooth")
def tanks_with_roots() -> System:
    """Two tanks, joined by a pipe whose flow is the root of the difference of levels, smooth about zero."""

    def pipe(d: float) -> float:
        return d / (d * d + 1e-4) ** 0.25

    return System(
        models={
            "upper": part(lambda t, s, u: [0.3 - u[0]], [2.0], "q", "h"),
            "lower": part(
                lambda t, s, u: [2.0 * pipe(u[0] - s[0]) - 0.7 * np.sqrt(max(s[0], 0.0))],
                [0.2],
                "h",
                "q l",
                lambda t, s, u: [pipe(u[0] - s[0]), s[0]],
                through=True,
            ),
        },
        wires={"upper.q": "lower.q", "lower.h": "upper.h"},
        port="lower.l",
        stop=8.0,
        steps=(0.02, 1.6),
        reference=smooth(
            lambda t, y: [
                0.3 - (y[0] - y[1]) / ((y[0] - y[1]) ** 2 + 1e-4) ** 0.25,
                2.0 * (y[0] - y[1]) / ((y[0] - y[1]) ** 2 + 1e-4) ** 0.25 - 0.7 * np.sqrt(max(y[1], 0.0)),
            ],
            [2.0, 0.2],
            1,
        ),
    )


@system("smooth")
def draining_tanks() -> System:
    """Three tanks in a row, each with an outflow that is a root: signals run one way."""

    def out(level: float) -> float:
        return np.sqrt(max(level, 1e-12))

    models = {
        name: part(lambda t, s, u: [u[0] - out(s[0])], [level], "q", "h o", lambda t, s, u: [s[0], out(s[0])])
        for name, level in (("b", 1.0), ("c", 0.5))
    }
    models["a"] = part(lambda t, s, u: [-out(s[0])], [4.0], "", "h o", lambda t, s, u: [s[0], out(s[0])])
    return System(
        models=models,
        wires={"b.q": "a.o", "c.q": "b.o"},
        port="c.h",
        stop=3.0,
        steps=(0.02, 0.3),
        orchestrator="gauss-seidel",
        reference=smooth(lambda t, y: np.append(0.0, np.sqrt(y[:2])) - np.sqrt(y), [4.0, 1.0, 0.5], 2),
    )


@system("switched")
def valve_with_saturation() -> System:
    """A level controller with a valve between shut and open, and a product of opening and root of level."""
    return System(
        models={
            "tank": part(lambda t, s, u: [0.5 - u[0] * np.sqrt(max(s[0], 0.0))], [0.2], "o", "h"),
            "valve": part(
                lambda t, s, u: [5.0 * (min(max(6.0 * (u[0] - 1.0), 0.0), 1.0) - s[0])], [0.0], "h", "o"
            ),
        },
        wires={"tank.o": "valve.o", "valve.h": "tank.h"},
        port="tank.h",
        stop=10.0,
        steps=(0.02, 0.5),
        reference=smooth(
            lambda t, y: [
                0.5 - y[1] * np.sqrt(max(y[0], 0.0)),
                5.0 * (float(np.clip(6 * y[0] - 6, 0, 1)) - y[1]),
            ],
            [0.2, 0.0],
            0,
            max_step=0.02,
            rtol=1e-9,
        ),
    )


@system("smooth")
def surge_tank() -> System:
    """A gate shuts a long pipe: water swings in the surge tank, damped by the square of its speed."""
    return System(
        models={
            "pipe": part(lambda t, s, u: [-0.5 * u[0] - 0.2 * s[0] * abs(s[0])], [2.0], "h", "q"),
            "tank": part(lambda t, s, u: [2.0 * (u[0] - 2.0 * np.exp(-5.0 * t))], [0.0], "q", "h"),
        },
        wires={"pipe.h": "tank.h", "tank.q": "pipe.q"},
        port="tank.h",
        stop=15.0,
        steps=(0.02, 0.6),
        reference=smooth(
            lambda t, y: [-0.5 * y[1] - 0.2 * y[0] * abs(y[0]), 2.0 * y[0] - 4.0 * np.exp(-5.0 * t)],
            [2.0, 0.0],
            1,
        ),
    )


@system("smooth")
def gas_vessels() -> System:
    """Gas flows from a full into an empty vessel: choked at first, then below the speed of sound."""

    def flow(p: float, q: float) -> float:
        ratio = min(max(q / p, 0.0), 1.0)
        return p * (1.0 if ratio < 0.5 else 2.0 * np.sqrt(max(ratio * (1.0 - ratio), 1e-9)))

    return System(
        models={
            "full": part(lambda t, s, u: [-0.5 * u[0]], [8.0], "m", "p"),
            "empty": part(
                lambda t, s, u: [0.5 * flow(u[0], s[0]) - 0.1 * s[0]],
                [1.0],
                "p",
                "m q",
                lambda t, s, u: [flow(u[0], s[0]), s[0]],
                through=True,
            ),
        },
        wires={"full.m": "empty.m", "empty.p": "full.p"},
        port="empty.q",
        stop=1.6,
        steps=(0.005, 0.4),
        orchestrator="gauss-seidel",
        reference=smooth(
            lambda t, y: [-0.5 * flow(y[0], y[1]), 0.5 * flow(y[0], y[1]) - 0.1 * y[1]],
            [8.0, 1.0],
            1,
            max_step=2e-3,
        ),
    )


@system("switched")
def melting_ice() -> System:
    """A heater warms ice: while it melts its temperature stands still, though its enthalpy grows."""

    def temperature(h: float) -> float:
        return h / 2.0 if h < 0 else max(0.0, (h - 30.0) / 4.0)

    return System(
        models={
            "heater": part(lambda t, s, u: [20.0 - 2.0 * (s[0] - u[0])], [-10.0], "T", "H"),
            "ice": part(
                lambda t, s, u: [2.0 * (u[0] - temperature(s[0]))],
                [-20.0],
                "H",
                "T",
                lambda t, s, u: [temperature(s[0])],
            ),
        },
        wires={"heater.T": "ice.T", "ice.H": "heater.H"},
        port="heater.H",
        stop=6.0,
        steps=(0.01, 0.5),
        reference=switched(
            lambda t, y, m: [
                20.0 - 2.0 * (y[0] - (y[1] / 2.0, 0.0, (y[1] - 30.0) / 4.0)[m]),
                2.0 * (y[0] - (y[1] / 2.0, 0.0, (y[1] - 30.0) / 4.0)[m]),
            ],
            [-10.0, -20.0],
            0,
            {
                0: [Switch(lambda t, y: y[1], 1, 1)],
                1: [Switch(lambda t, y: y[1] - 30.0, 1, 2), Switch(lambda t, y: y[1], -1, 0)],
                2: [Switch(lambda t, y: y[1] - 30.0, -1, 1)],
            },
            lambda t, y, m: y[0],
        ),
    )


@system("smooth")
def pump_with_curve() -> System:
    """A pump whose head rises, then falls with its flow: it surges in a loop with a vessel."""
    return System(
        models={
            "pump": part(
                lambda t, s, u: [4.0 * (0.4 + 1.5 * s[0] - 2.0 * s[0] ** 3 - u[0])], [0.6], "p", "q"
            ),
            "vessel": part(lambda t, s, u: [u[0] - 0.2 * np.sqrt(max(s[0], 0.0))], [0.6], "q", "p"),
        },
        wires={"pump.p": "vessel.p", "vessel.q": "pump.q"},
        port="pump.q",
        stop=16.0,
        steps=(0.02, 0.4),
        reference=smooth(
            lambda t, y: [
                1.6 + 6.0 * y[0] - 8.0 * y[0] ** 3 - 4.0 * y[1],
                y[0] - 0.2 * np.sqrt(max(y[1], 0.0)),
            ],
            [0.6, 0.6],
            0,
        ),
    )


@system("smooth")
def fin_with_convection() -> System:
    """A fin of four cells and the air about it, which rises faster the hotter it is (power 1.25)."""
    cells = 4

    def lost(T: float, air: float) -> float:
        return 0.3 * abs(T - air) ** 1.25 * np.sign(T - air)

    def fin(t: float, s: np.ndarray, u: np.ndarray) -> np.ndarray:
        chain = np.concatenate([[100.0], s, s[-1:]])
        return 2.0 * np.diff(chain, 2) - np.array([lost(T, u[0]) for T in s])

    def rhs(t: float, y: np.ndarray) -> list[float]:
        left = [100.0, y[0], y[1], y[2]]
        right = [y[1], y[2], y[3], y[3]]
        heat = [
            0.3 * max(y[k] - y[4], 0.0) ** 1.25 - 0.3 * max(y[4] - y[k], 0.0) ** 1.25 for k in range(cells)
        ]
        return [
            *(2.0 * (left[k] + right[k] - 2.0 * y[k]) - heat[k] for k in range(cells)),
            0.2 * sum(heat) - 0.5 * (y[4] - 20.0),
        ]

    return System(
        models={
            "fin": part(
                fin,
                [20.0] * cells,
                "air",
                "q tip",
                lambda t, s, u: [sum(lost(T, u[0]) for T in s), s[-1]],
                through=True,
            ),
            "air": part(lambda t, s, u: [0.2 * u[0] - 0.5 * (s[0] - 20.0)], [20.0], "q", "T"),
        },
        wires={"fin.air": "air.T", "air.q": "fin.q"},
        port="air.T",
        stop=6.0,
        steps=(0.02, 0.5),
        reference=smooth(rhs, [20.0] * 5, 4),
    )


@system("smooth")
def orifice_and_spring() -> System:
    """A relief valve: pressure lifts a plate against a spring, flow is lift times the root of pressure."""
    return System(
        models={
            "chamber": part(lambda t, s, u: [3.0 * (1.0 - u[0])], [0.0], "q", "p"),
            "plate": part(
                lambda t, s, u: [s[1], 80.0 * (u[0] - 0.5 - 2.0 * s[0]) - 6.0 * s[1]],
                [0.0, 0.0],
                "p",
                "q x",
                lambda t, s, u: [2.5 * max(s[0], 0.0) * np.sqrt(max(u[0], 0.0)), s[0]],
                through=True,
            ),
        },
        wires={"chamber.q": "plate.q", "plate.p": "chamber.p"},
        port="chamber.p",
        stop=4.0,
        steps=(0.005, 0.4),
        orchestrator="gauss-seidel",
        reference=smooth(
            lambda t, y: [
                3.0 - 7.5 * max(y[1], 0.0) * np.sqrt(max(y[0], 0.0)),
                y[2],
                80.0 * y[0] - 40.0 - 160.0 * y[1] - 6.0 * y[2],
            ],
            [0.0, 0.0, 0.0],
            0,
            max_step=5e-3,
        ),
    )
