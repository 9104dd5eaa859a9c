"""The controller of car.toml: it damps the body against the sky."""


class Skyhook:
    """Answers a force against the speed it was shown at the last sample."""

    inputs = ("speed [m/s]",)
    outputs = ("force [N]",)
    feedthrough = {"force": ["speed"]}  # noqa: RUF012

    def __init__(self, damping: float):
        self.damping = damping

    def start(self, t: float) -> None:
        """Nothing to prepare."""

    def output(self, t: float, u) -> list[float]:
        """Return the force for the speed at t."""
        return [-self.damping * u[0, 0]]

    def step(self, t: float, h: float, u) -> float:
        """Keep no state."""
        return t + h
