"""A house whose thermostat switches at events: the very moment when the room is too cold, or warm enough.

Run it with `python examples/thermostat.py`: it draws thermostat.png. The thermostat is a class of 30 lines.
"""

import hocket as hk


class Thermostat:
    """Switches the heater on when `cold` happens and off when `warm` does."""

    inputs = [hk.Port("cold", event=True), hk.Port("warm", event=True)]  # noqa: RUF012
    outputs = ("heat [W]",)

    def __init__(self, power: float = 1500.0):
        self.power = power

    def start(self, t: float) -> None:
        self.on = self.wanted = True

    def output(self, t: float) -> list[float]:  # without inputs: it has no direct feedthrough
        return [self.power if self.on else 0.0]

    def step(self, t: float, h: float, u) -> float:  # nothing happens between events
        return t + h

    def due(self) -> None:
        """Announce nothing: it waits for others."""

    def react(self, t: float, n: int, u, present) -> None:
        cold, warm = present
        self.wanted = cold or (self.on and not warm)

    def commit(self) -> bool:
        self.on = self.wanted
        return False

    def save(self) -> bool:
        return self.on

    def restore(self, state: bool) -> None:
        self.on = self.wanted = state


# 5 degC outside; the room loses 60 W per kelvin and stores 200 kJ per kelvin
room = hk.StateSpace(
    [[-60 / 200e3]], [[1e3 / 200e3, 60 / 200e3]], [[1]], x0=[288.15],
    inputs=["heat [kW]", "outside [K] = 278.15"], outputs=["temperature [K]"],
)  # fmt: skip
scenario = hk.Scenario(
    {"room": room, "thermostat": hk.Python(Thermostat)},
    {"thermostat.cold": "cold.event", "thermostat.warm": "warm.event", "room.heat": "thermostat.heat"},
    crossings={
        "cold": hk.Crossing("room.temperature", "falling", at=292.65),  # 19.5 degC
        "warm": hk.Crossing("room.temperature", "rising", at=294.15),  # 21 degC
    },
)
house = hk.Composite(scenario, step="1 min")

if __name__ == "__main__":
    run = hk.run(house, stop="4 h")
    run.plot("room.temperature", "thermostat.heat", path="thermostat.png")
    print(run, "-> thermostat.png")
