"""A class that scenario files in tests name: a thermostat that looks at the room once per step."""


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
