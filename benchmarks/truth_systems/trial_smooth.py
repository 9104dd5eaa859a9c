"""Smooth systems of a third trial: nested levels, several rates, iterations, step control, long runs, chaos.

In:  nothing
Out: systems in the catalogue; their references are composed of the equations of their parts
"""

from __future__ import annotations

import numpy as np

import hocket as hk
from truth_systems.parts import algebraic, mass, part
from truth_systems.system import System, system


@system("smooth")
def trial_flutter() -> System:
    """A wing section in wind: plunge and pitch with a hardening pitch spring, past the flutter speed."""
    return System(
        models={
            "plunge": part(
                lambda t, s, u: [s[1], -4.0 * s[0] - 0.1 * s[1] - 1.6 * u[0] - 0.2 * u[1]],
                [0.05, 0.0],
                "a w",
                "h v",
            ),
            "pitch": part(
                lambda t, s, u: [
                    s[1],
                    -9.0 * s[0] - 40.0 * s[0] ** 3 - 0.15 * s[1] + 6.0 * u[0] + 0.4 * u[1],
                ],
                [0.0, 0.0],
                "h v",
                "a w",
            ),
        },
        wires={"plunge.a": "pitch.a", "plunge.w": "pitch.w", "pitch.h": "plunge.h", "pitch.v": "plunge.v"},
        port="pitch.a",
        stop=20.0,
        steps=(0.002, 0.1),
        orchestrator="gauss-seidel",
    )


@system("smooth")
def trial_warm_motor() -> System:
    """A motor whose winding gets warm over a minute, while its current settles in milliseconds."""

    def resistance(T: float) -> float:
        return 0.8 * (1.0 + 0.004 * (T - 20.0))

    return System(
        models={
            "winding": part(
                lambda t, s, u: [(24.0 - resistance(u[1]) * s[0] - 0.3 * u[0]) / 0.004], [0.0], "w T", "i"
            ),
            "rotor": part(lambda t, s, u: [(0.3 * u[0] - 0.0006 * s[0] ** 2) / 0.02], [0.0], "i", "w"),
            "case": part(
                lambda t, s, u: [(resistance(s[0]) * u[0] ** 2 - 1.2 * (s[0] - 20.0)) / 40.0],
                [20.0],
                "i",
                "T",
            ),
        },
        wires={"winding.w": "rotor.w", "winding.T": "case.T", "rotor.i": "winding.i", "case.i": "winding.i"},
        port="rotor.w",
        stop=10.0,
        steps=(0.002, 0.04),
        orchestrator=hk.Multirate({"winding": 4, "rotor": 2}),
    )


@system("smooth")
def trial_chaotic_duffing() -> System:
    """A forced oscillator with two wells, in chaos: its spring is a simulator of its own."""
    return System(
        models={
            "mass": part(
                lambda t, s, u: [s[1], -0.25 * s[1] + u[0] + 0.4 * np.cos(t)], [0.1, 0.0], "F", "x v"
            ),
            "spring": algebraic(lambda t, s, u: [u[0] - u[0] ** 3], "x", "F"),
        },
        wires={"mass.F": "spring.F", "spring.x": "mass.x"},
        port="mass.x",
        stop=60.0,
        steps=(0.005, 0.25),
    )


@system("smooth")
def trial_rayleigh() -> System:
    """An oscillator of Rayleigh on its cycle, position and velocity apart."""
    return System(
        models={
            "x": part(lambda t, s, u: [u[0]], [2.0], "v", "x"),
            "v": part(lambda t, s, u: [3.0 * (1.0 - s[0] ** 2 / 3.0) * s[0] - u[0]], [0.0], "x", "v"),
        },
        wires={"x.v": "v.v", "v.x": "x.x"},
        port="x.x",
        stop=15.0,
        steps=(0.001, 0.2),
        extrapolation="linear",
    )


@system("smooth")
def trial_fusing_reaction() -> System:
    """Two species that help each other grow, shortly before they grow without bound."""
    return System(
        models={
            "a": part(lambda t, s, u: [0.4 * s[0] * u[0] - 0.1 * s[0]], [1.0], "b", "a"),
            "b": part(lambda t, s, u: [0.3 * s[0] * u[0] - 0.2 * s[0]], [1.2], "a", "b"),
        },
        wires={"a.b": "b.b", "b.a": "a.a"},
        port="a.a",
        stop=2.5,
        steps=(0.001, 0.1),
    )


@system("smooth")
def trial_pulsed_laser_diode() -> System:
    """A laser with a saturable absorber, fed by short current pulses of a table."""
    pulse = hk.Table(
        [0.0, 1.0, 1.02, 1.08, 1.1, 4.0, 4.02, 4.08, 4.1, 9.0], {"I": [0, 0, 8, 8, 0, 0, 8, 8, 0, 0]}
    )
    return System(
        models={
            "source": pulse,
            "carriers": part(lambda t, s, u: [1.0 + u[1] - s[0] - s[0] * u[0]], [1.0], "P I", "N"),
            "light": part(
                lambda t, s, u: [5.0 * (u[0] - 1.3 / (1.0 + s[0])) * s[0] + 0.01], [0.05], "N", "P"
            ),
        },
        wires={"carriers.P": "light.P", "carriers.I": "source.I", "light.N": "carriers.N"},
        port="light.P",
        stop=8.0,
        steps=(0.004, 0.4),
    )


@system("smooth")
def trial_clocks_on_a_wall() -> System:
    """Two pendulums with drives hang on one beam for two hundred seconds."""

    def drive(angle: float, rate: float) -> float:
        return 0.08 * rate * (1.0 - 30.0 * angle**2)

    def clock(angle: float) -> hk.Ode:
        return part(
            lambda t, s, u: [s[1], -9.0 * np.sin(s[0]) + drive(s[0], s[1]) - u[0]], [angle, 0.0], "a", "x v"
        )

    return System(
        models={
            "one": clock(0.2),
            "other": clock(-0.1),
            "beam": part(
                lambda t, s, u: [s[1], -90.0 * s[0] - 3.0 * s[1] + 2.0 * (np.sin(u[0]) + np.sin(u[1]))],
                [0.0, 0.0],
                "p q",
                "x a",
                lambda t, s, u: [s[0], 0.3 * s[1]],
            ),
        },
        wires={"one.a": "beam.a", "other.a": "beam.a", "beam.p": "one.x", "beam.q": "other.x"},
        port="one.x",
        stop=200.0,
        steps=(0.01, 0.4),
        orchestrator="gauss-seidel",
    )


@system("smooth")
def trial_nested_suspension() -> System:
    """A car body over a wheel, whose level has steps of its own; the damper goes with the square of speed."""

    def damper(v: float) -> float:
        return 900.0 * v + 1500.0 * v * abs(v)

    return System(
        models={
            "body": mass(300.0, 0.0, 0.0),
            "link": algebraic(
                lambda t, s, u: [15000.0 * (u[2] - u[0]) + damper(u[3] - u[1])], "x v z w", "F"
            ),
            "wheel": part(
                lambda t, s, u: [
                    s[1],
                    (150000.0 * (0.05 * np.sin(6.0 * t) - s[0]) - 200.0 * s[1] - u[0]) / 40.0,
                ],
                [0.0, 0.0],
                "F",
                "x v",
            ),
        },
        wires={
            "body.F": "link.F",
            "wheel.F": "link.F",
            "link.x": "body.x",
            "link.v": "body.v",
            "link.z": "wheel.x",
            "link.w": "wheel.v",
        },
        port="body.x",
        stop=4.0,
        steps=(0.002, 0.04),
        levels={"axle": (("link", "wheel"), 4)},
        orchestrator="gauss-seidel",
    )


@system("smooth")
def trial_hertz_iterated() -> System:
    """Two balls pressed together by springs, touching by Hertz' law; the step is iterated."""
    return System(
        models={
            "left": part(lambda t, s, u: [s[1], -20.0 * s[0] - u[0] - 0.3 * s[1]], [0.3, 0.0], "F", "x v"),
            "right": part(
                lambda t, s, u: [s[1], (-30.0 * s[0] + u[0] - 0.3 * s[1]) / 2.0], [-0.2, 0.0], "F", "x v"
            ),
            "touch": algebraic(lambda t, s, u: [200.0 * max(u[0] - u[1], 0.0) ** 1.5], "p q", "F"),
        },
        wires={"left.F": "touch.F", "right.F": "touch.F", "touch.p": "left.x", "touch.q": "right.x"},
        port="left.x",
        stop=6.0,
        steps=(0.005, 0.25),
        orchestrator=hk.Iterate(at_most=100),
        extrapolation="linear",
    )


@system("smooth")
def trial_adaptive_brusselator() -> System:
    """A brusselator whose level chooses its steps, to a strict and to a loose tolerance."""
    return System(
        models={
            "x": part(lambda t, s, u: [1.0 + s[0] ** 2 * u[0] - 4.0 * s[0]], [1.2], "y", "x"),
            "y": part(lambda t, s, u: [3.0 * u[0] - u[0] ** 2 * s[0]], [3.1], "x", "y"),
        },
        wires={"x.y": "y.y", "y.x": "x.x"},
        port="x.x",
        stop=20.0,
        steps=(0.1, 0.8),
        orchestrator=lambda step: hk.Adaptive(tolerance=1e-3 if step < 0.2 else 3.0),
    )


@system("smooth")
def trial_ring_of_nerves() -> System:
    """Eight excitable cells in a ring, each coupled to two; a wave goes around."""
    names = [f"c{k}" for k in range(8)]

    def cell(k: int) -> hk.Ode:
        return part(
            lambda t, s, u: [
                s[0] - s[0] ** 3 / 3.0 - s[1] + 0.8 * (u[0] + u[1] - 2.0 * s[0]),
                0.08 * (s[0] + 0.7 - 0.8 * s[1]),
            ],
            [1.5 if k < 2 else -1.2, 0.4 if k == 7 else -0.6],
            "l r",
            "v w",
        )

    return System(
        models={name: cell(k) for k, name in enumerate(names)},
        wires={f"c{k}.l": f"c{(k - 1) % 8}.v" for k in range(8)}
        | {f"c{k}.r": f"c{(k + 1) % 8}.v" for k in range(8)},
        port="c3.v",
        stop=60.0,
        steps=(0.05, 1.5),
    )


@system("smooth")
def trial_water_hammer() -> System:
    """Two reservoirs, a pipe with friction that goes with the square of flow, a valve that closes."""

    def opening(t: float) -> float:
        return max(0.02, 1.0 - t) if t < 1.0 else 0.02

    return System(
        models={
            "pipe": part(lambda t, s, u: [4.0 * (30.0 - u[0] - 0.8 * s[0] * abs(s[0]))], [5.0], "h", "q"),
            "vessel": part(
                lambda t, s, u: [6.0 * (u[0] - opening(t) * 1.2 * np.sqrt(max(s[0], 0.0)))], [10.0], "q", "h"
            ),
        },
        wires={"pipe.h": "vessel.h", "vessel.q": "pipe.q"},
        port="vessel.h",
        stop=6.0,
        steps=(0.001, 0.3),
    )


@system("smooth")
def trial_mathieu_pair() -> System:
    """Two oscillators whose stiffness is modulated: the exact system grows by parametric resonance."""

    def oscillator(k: float, x: float) -> hk.Ode:
        return part(
            lambda t, s, u: [s[1], -k * (1.0 + 0.3 * np.cos(2.0 * t)) * s[0] - 0.02 * s[1] + 0.2 * u[0]],
            [x, 0.0],
            "y",
            "x v",
        )

    return System(
        models={"a": oscillator(1.0, 0.1), "b": oscillator(1.1, 0.0)},
        wires={"a.y": "b.x", "b.y": "a.x"},
        port="a.x",
        stop=30.0,
        steps=(0.01, 0.75),
        extrapolation="linear",
    )


@system("smooth")
def trial_bouc_wen() -> System:
    """A frame with a hysteretic spring (Bouc and Wen) under a shaking that grows and fades."""
    return System(
        models={
            "frame": part(
                lambda t, s, u: [
                    s[1],
                    -0.3 * s[1] - 10.0 * u[0] + 6.0 * np.sin(3.0 * t) * np.exp(-((t - 5.0) ** 2) / 8.0),
                ],
                [0.0, 0.0],
                "z",
                "x v",
            ),
            "hysteresis": part(
                lambda t, s, u: [u[0] - 4.0 * abs(u[0]) * s[0] * abs(s[0]) - 1.5 * u[0] * s[0] ** 2],
                [0.0],
                "v",
                "z",
            ),
        },
        wires={"frame.z": "hysteresis.z", "hysteresis.v": "frame.v"},
        port="frame.x",
        stop=15.0,
        steps=(0.005, 0.5),
    )


@system("smooth")
def trial_boost_converter() -> System:
    """An averaged boost converter with a slow integrator that bends its duty; the load is a step."""

    def duty(z: float) -> float:
        return 0.45 + 0.35 * np.tanh(z)

    return System(
        models={
            "coil": part(
                lambda t, s, u: [(12.0 - 0.2 * s[0] - (1.0 - duty(u[1])) * u[0]) / 2e-3], [1.0], "v d", "i"
            ),
            "output": part(
                lambda t, s, u: [((1.0 - duty(u[1])) * u[0] - s[0] / (20.0 if t < 0.05 else 10.0)) / 1e-3],
                [12.0],
                "i d",
                "v",
            ),
            "control": part(lambda t, s, u: [4.0 * (24.0 - u[0])], [0.0], "v", "d"),
        },
        wires={
            "coil.v": "output.v",
            "coil.d": "control.d",
            "output.i": "coil.i",
            "output.d": "control.d",
            "control.v": "output.v",
        },
        port="output.v",
        stop=0.12,
        steps=(2e-5, 2e-3),
    )


@system("smooth")
def trial_seasons() -> System:
    """Hares and lynxes with seasons that a function announces to both."""
    return System(
        models={
            "season": hk.Function(lambda t: [1.0 + 0.4 * np.sin(0.9 * t)], ["s"]),
            "hare": part(lambda t, s, u: [s[0] * (u[1] - 0.1 * s[0] - 0.5 * u[0])], [4.0], "y s", "x"),
            "lynx": part(lambda t, s, u: [u[0] * s[0] * 0.25 * u[1] - 0.6 * s[0]], [1.0], "x s", "y"),
        },
        wires={"hare.y": "lynx.y", "hare.s": "season.s", "lynx.x": "hare.x", "lynx.s": "season.s"},
        port="lynx.y",
        stop=40.0,
        steps=(0.01, 0.5),
    )


@system("smooth")
def trial_stiff_enzyme() -> System:
    """Substrate and complex of an enzyme: fast binding, slow turnover; each that controls steps."""
    return System(
        models={
            "substrate": part(
                lambda t, s, u: [-50.0 * (1.0 - u[0]) * s[0] + 20.0 * u[0] + 0.05],
                [1.0],
                "c",
                "s",
                method="adaptive",
            ),
            "complex": part(
                lambda t, s, u: [50.0 * (1.0 - s[0]) * u[0] - 22.0 * s[0]], [0.0], "s", "c", method="adaptive"
            ),
        },
        wires={"substrate.c": "complex.c", "complex.s": "substrate.s"},
        port="substrate.s",
        stop=3.0,
        steps=(0.0005, 0.04),
    )


@system("smooth")
def trial_three_bodies() -> System:
    """Three masses that attract one another in the plane, softened; each a simulator."""

    def body(x: float, y: float, vx: float, vy: float) -> hk.Ode:
        def f(t: float, s: np.ndarray, u: np.ndarray) -> list[float]:
            a = np.zeros(2)
            for k in (0, 2):
                d = u[k : k + 2] - s[:2]
                a += d / (d @ d + 0.1) ** 1.5
            return [s[2], s[3], *a]

        return part(f, [x, y, vx, vy], "ax ay bx by", "x y", lambda t, s, u: [s[0], s[1]])

    wires = {}
    for me, one, two in (("p", "q", "r"), ("q", "p", "r"), ("r", "p", "q")):
        wires |= {
            f"{me}.ax": f"{one}.x",
            f"{me}.ay": f"{one}.y",
            f"{me}.bx": f"{two}.x",
            f"{me}.by": f"{two}.y",
        }
    return System(
        models={
            "p": body(1.0, 0.0, 0.0, 0.6),
            "q": body(-0.5, 0.8, -0.5, -0.3),
            "r": body(-0.5, -0.8, 0.5, -0.3),
        },
        wires=wires,
        port="p.x",
        stop=12.0,
        steps=(0.002, 0.3),
        extrapolation="quadratic",
    )
