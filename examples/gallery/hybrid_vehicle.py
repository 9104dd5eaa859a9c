"""A hybrid vehicle over a drive cycle: a battery, a motor, and an engine that a switch turns on and off.

python examples/gallery/hybrid_vehicle.py [FOLDER]
"""

from __future__ import annotations

from pathlib import Path

from drawing import chosen_folder, draw

import hocket as hk

MASS, DRAG, ROLLING = 1500.0, 0.4, 150.0
"""kg, N s2/m2, N."""
CAPACITY, ENGINE, GAIN = 3.6e6, 30e3, 2000.0
"""J of the battery, W of the engine, N s/m of the driver."""
CYCLE = ([0, 30, 150, 180, 300, 320, 480, 540, 600], [0, 14, 14, 8, 25, 25, 25, 0, 0])
"""s, m/s."""


def vehicle_rate(t, x, u):
    """Return the slope of the speed: the driver's force, drag and rolling resistance."""
    return [(u[0] - DRAG * x[0] * abs(x[0]) - ROLLING * min(1.0, max(-1.0, 10.0 * x[0]))) / MASS]


def battery_rate(t, x, u):
    """Return the slope of the state of charge, from the power of the motor and that of the engine."""
    return [(u[1] - u[0]) / CAPACITY]


def vehicle(step: str = "0.5 s") -> hk.Composite:
    """Return the vehicle; the engine runs from a charge of 0.45 on until it is 0.55."""
    models = {
        "cycle": hk.Table(CYCLE[0], {"speed [m/s]": CYCLE[1]}),
        "driver": hk.Sum("wanted [m/s]", "speed [m/s]", gains=[GAIN, -GAIN], unit="N"),
        "body": hk.Ode(vehicle_rate, x0=[0.0], inputs=["force [N]"], outputs=["speed [m/s]"]),
        "motor": hk.blocks.Product(["force [N]", "speed [m/s]"], unit="W"),
        "switch": hk.blocks.Relay(0.45, 0.55, off=ENGINE, on=0.0, out="W", starts_on=True),
        "battery": hk.Ode(battery_rate, x0=[0.5], inputs=["motor [W]", "engine [W]"], outputs=["charge"]),
    }
    wires = {
        "driver.wanted": "cycle.speed", "driver.speed": "body.speed", "body.force": "driver.y",
        "motor.force": "driver.y", "motor.speed": "body.speed",
        "battery.motor": "motor.y", "battery.engine": "switch.y", "switch.u": "battery.charge",
    }  # fmt: skip
    return hk.Composite(hk.Scenario(models, wires), step, extrapolation="linear")


def switching_times(run: hk.Run) -> list[float]:
    """Return when the engine is turned on or off."""
    t, power = run["switch.y"]
    return [float(t[k]) for k in range(1, len(t)) if power[k] != power[k - 1]]


def main(folder: Path) -> None:
    """Drive the cycle."""
    run = hk.run(vehicle(), "600 s", folder=None)
    print(hk.check(vehicle(), stop="600 s").verdict()[0].split(";")[0])
    print("the engine is turned on or off at", *(f"{t:.2f} s" for t in switching_times(run)))
    print(f"charge at the end: {run.final('battery.charge'):.4f}")
    panels = [
        {"label": "m/s", "curves": {"wanted": (*run["cycle.speed"], "exact"), "driven": run["body.speed"]}},
        {"label": "charge", "curves": {"battery": run["battery.charge"]}},
        {"label": "W", "curves": {"engine": run["switch.y"], "motor": run["motor.y"]}},
    ]
    draw(
        folder / "hybrid_vehicle.png",
        "The engine is turned on where the charge is 0.45, not at a step",
        panels,
    )


if __name__ == "__main__":
    main(chosen_folder())
