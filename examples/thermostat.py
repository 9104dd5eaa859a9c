"""A simulator written in Python, in 30 lines: a thermostat that switches the heater of a room.

Run it with `python examples/thermostat.py`.
"""

import hocket as hk


class Thermostat:
    """Switches on below the lower limit and off above the upper one."""

    inputs = ("temperature [degC]",)
    outputs = ("heat [W]",)

    def __init__(self, low: float = 19.0, high: float = 21.0, power: float = 1500.0):
        self.low, self.high, self.power = low, high, power

    def start(self, t: float) -> None:
        self.on = False

    def output(self, t: float) -> list[float]:  # without inputs: it has no direct feedthrough
        return [self.power if self.on else 0.0]

    def step(self, t: float, h: float, u) -> float:
        temperature = u[0, 0]  # u[0]: values at t, u[1]: slopes, ...
        self.on = temperature < (self.high if self.on else self.low)
        return t + h


# 5 K outside; the room loses 60 W per kelvin and stores 200 kJ per kelvin
room = hk.StateSpace(
    [[-60 / 200e3]], [[1e3 / 200e3, 60 / 200e3]], [[1]], x0=[288.15],
    inputs=["heat [kW]", "outside [K] = 278.15"], outputs=["temperature [K]"],
)  # fmt: skip
scenario = hk.Scenario(
    {"room": room, "thermostat": hk.Python(Thermostat, low=19.5, period="1 min")},
    {"thermostat.temperature": "room.temperature", "room.heat": "thermostat.heat"},
)
house = hk.Composite(scenario, step="10 s")

if __name__ == "__main__":
    run = hk.run(house, stop="4 h")
    run.plot("room.temperature", "thermostat.heat", path="thermostat.png")
    print(run, "-> thermostat.png")
