"""A crane: its boom swings, and oil in a cylinder carries it. Oil is stiff; how do the two talk?

python examples/gallery/hydraulic_crane.py [FOLDER]
"""

from __future__ import annotations

import math
from pathlib import Path

from drawing import chosen_folder, draw

import hocket as hk

LOAD, BOOM, ARM, GRAVITY = 500.0, 4.0, 0.5, 9.81
"""kg at the tip, m to the tip, m from the joint to the cylinder."""
AREA, BULK, VOLUME, LEAK, PUMP, FRICTION = 5e-3, 8e8, 2e-3, 2e-11, 5e-4, 2e3
"""m2, Pa, m3, m3/(s Pa), m3/s, N m s: piston, oil, its volume, leakage, what the pump gives, the joint."""
INERTIA = LOAD * BOOM**2
PRESSURE = LOAD * GRAVITY * BOOM / (AREA * ARM)
"""Pa that carry the boom while it is level."""


def boom_rate(t, x, u):
    """Return the slopes of angle and angular speed: the force of the cylinder against weight and friction."""
    torque = u[0] * ARM - LOAD * GRAVITY * BOOM * math.cos(x[0]) - FRICTION * x[1]
    return [x[1], torque / INERTIA]


def oil_rate(t, x, u):
    """Return the slope of the pressure: the pump runs for 2 s, the piston makes room, a little leaks."""
    pumped = PUMP if 0.5 <= t < 2.5 else 0.0
    return [BULK / VOLUME * (pumped - LEAK * (x[0] - PRESSURE) - AREA * u[0])]


def crane(step: str, algorithm: str = "jacobi", extrapolation: str = "hold") -> hk.Composite:
    """Return boom and cylinder: a force the one way, a speed the other, and a power bond of both."""
    models = {
        "boom": hk.Ode(
            boom_rate, lambda t, x, u: [x[0], ARM * x[1]], x0=[0.0, 0.0], feedthrough={}, step="2 ms",
            inputs=["force [N]"], outputs=["angle [rad]", "speed [m/s]"],
        ),
        "cylinder": hk.Ode(
            oil_rate, lambda t, x, u: [AREA * x[0]], x0=[PRESSURE], feedthrough={}, step="2 ms",
            inputs=["speed [m/s]"], outputs=["force [N]"],
        ),
    }  # fmt: skip
    wires = {"boom.force": "cylinder.force", "cylinder.speed": "boom.speed"}
    bonds = {"rod": hk.Bond("boom.force", "cylinder.speed")}
    return hk.Composite(hk.Scenario(models, wires, bonds=bonds), step, algorithm, extrapolation)


def main(folder: Path) -> None:
    """Lift the boom with four couplings."""
    curves = {}
    for name, level in {
        "Jacobi, 40 ms": crane("40 ms"),
        "Jacobi, 2 ms": crane("2 ms"),
        "Gauss-Seidel, 40 ms, linear": crane("40 ms", "gauss-seidel", "linear"),
        "iterated, 40 ms, linear": crane("40 ms", "iterate", "linear"),
    }.items():
        found = hk.check(level, stop="4 s", pilot_seconds=30.0).verdict()[0].split(":")[0]
        run = hk.run(level, "4 s", folder=None)
        end = math.degrees(run.final("boom.angle"))
        gained = run.info["bonds"]["rod"]["gained"]
        print(f"{name}: {found}; {end:.2f} degrees after 4 s; the coupling made {gained:.0f} J")
        t, angle = run["boom.angle"]
        curves[name] = (t, [math.degrees(each) for each in angle])
    panels = [{"label": "boom [degrees]", "curves": curves}]
    draw(folder / "hydraulic_crane.png", "A stiff oil spring between two simulators", panels)


if __name__ == "__main__":
    main(chosen_folder())
