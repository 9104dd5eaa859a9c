"""A DC microgrid: a constant-power load behind a line. Is it the coupling that oscillates, or the grid?

python examples/gallery/dc_microgrid.py [FOLDER]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from drawing import chosen_folder, draw

import hocket as hk

SOURCE, RESISTANCE, INDUCTANCE, CAPACITANCE = 400.0, 0.2, 1e-3, 2e-3
"""V, ohm, H, F: the source, the line, the capacitors of the bus."""


def bus_rate(t: float, x: np.ndarray, u: np.ndarray, power: float, surge: float) -> list[float]:
    """Return the slope of the voltage: a load draws constant power, and below 200 V as a resistor does."""
    drawn = (power + (surge if t >= 0.05 else 0.0)) * min(1.0, (x[0] / 200.0) ** 2)
    return [(u[0] - drawn / x[0]) / CAPACITANCE]


def grid(
    step: str, power: float, surge: float, algorithm: str = "jacobi", extrapolation: str = "hold"
) -> hk.Composite:
    """Return the line, which takes the voltage of the bus, and the bus, which takes its current."""
    volts = settled_voltage(power)
    line = hk.StateSpace(
        A=[[-RESISTANCE / INDUCTANCE]],
        B=[[1.0 / INDUCTANCE, -1.0 / INDUCTANCE]],
        C=[[1.0]],
        x0=[power / volts],
        inputs=[f"source [V] = {SOURCE}", "bus [V]"],
        outputs=["current [A]"],
    )
    bus = hk.Ode(
        bus_rate,
        x0=[volts],
        inputs=["current [A]"],
        outputs=["voltage [V]"],
        step="20 us",
        power=power,
        surge=surge,
    )
    wires = {"line.bus": "bus.voltage", "bus.current": "line.current"}
    bonds = {"feeder": hk.Bond("line.bus", "bus.current")}
    scenario = hk.Scenario({"line": line, "bus": bus}, wires, bonds=bonds)
    return hk.Composite(scenario, step, algorithm, extrapolation)


def settled_voltage(power: float) -> float:
    """Return the voltage of the bus where the line loses RESISTANCE i^2: the upper root."""
    return SOURCE / 2.0 + float(np.sqrt(SOURCE**2 / 4.0 - RESISTANCE * power))


def largest_power() -> float:
    """Return the power above which the grid itself oscillates: P / (C V^2) = R / L, with V of that power."""
    powers = np.linspace(1e3, 199e3, 200_000)
    volts = SOURCE / 2.0 + np.sqrt(SOURCE**2 / 4.0 - RESISTANCE * powers)
    return float(powers[np.argmax(powers / (CAPACITANCE * volts**2) >= RESISTANCE / INDUCTANCE)])


def main(folder: Path) -> None:
    """Run a load below the limit, coupled coarsely and finely, and one above it."""
    print(f"the grid itself is stable up to {largest_power() / 1e3:.1f} kW")
    curves = {}
    for name, (level, stop) in {
        "40 kW, 0.5 ms, Jacobi": (grid("0.5 ms", 35e3, 5e3), "0.15 s"),
        "40 kW, 0.5 ms, Gauss-Seidel, linear": (
            grid("0.5 ms", 35e3, 5e3, "gauss-seidel", "linear"),
            "0.15 s",
        ),
        "40 kW, 20 us": (grid("20 us", 35e3, 5e3, "gauss-seidel", "linear"), "0.15 s"),
        "60 kW, 20 us": (grid("20 us", 35e3, 25e3, "gauss-seidel", "linear"), "0.15 s"),
    }.items():
        run = hk.run(level, stop, folder=None)
        t, volts = run["bus.voltage"]
        late = volts[t > 0.1]
        print(f"{name}: the voltage swings by {late.max() - late.min():.1f} V at the end")
        curves[name] = (t, volts)
    draw(folder / "dc_microgrid.png", "A load of constant power", [{"label": "bus [V]", "curves": curves}])


if __name__ == "__main__":
    main(chosen_folder())
