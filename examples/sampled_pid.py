"""A motor under a sampled PID controller: it measures every 50 ms, and needs 20 ms to compute.

Run it with `python examples/sampled_pid.py [FOLDER]`: it draws sampled_pid.png, and says how far the motor
goes beyond what was wanted, without and with the delay.
"""

import sys
from pathlib import Path

import hocket as hk


class Pid:
    """Turns the angle towards 1 rad; what it computes from a sample is its output until the next one."""

    inputs = ("angle [rad]",)
    outputs = ("voltage [V]",)
    feedthrough = {"voltage": ["angle"]}  # noqa: RUF012

    def __init__(self, kp: float = 6.0, ki: float = 2.0, kd: float = 0.6, period: float = 0.05):
        self.gains, self.length = (kp, ki, kd), period

    def start(self, t: float) -> None:
        self.sum, self.before = 0.0, 1.0

    def output(self, t: float, u) -> list[float]:
        error = 1.0 - u[0, 0]
        kp, ki, kd = self.gains
        return [kp * error + ki * self.sum + kd * (error - self.before) / self.length]

    def step(self, t: float, h: float, u) -> float:
        self.before = 1.0 - u[0, 0]
        self.sum += h * self.before
        return t + h

    def save(self) -> tuple[float, float]:
        return self.sum, self.before

    def restore(self, state: tuple[float, float]) -> None:
        self.sum, self.before = state


def loop(delay: str) -> hk.Composite:
    """Return the loop with a delay of the controller."""
    # 0.25 s until the motor turns as fast as its voltage says
    motor = hk.StateSpace(
        [[0.0, 1.0], [0.0, -4.0]], [[0.0], [4.0]], [[1.0, 0.0]],
        inputs=["voltage [V]"], outputs=["angle [rad]"],
    )  # fmt: skip
    pid = hk.Python(Pid, period="50 ms", delay=delay)
    wires = {"motor.voltage": "pid.voltage", "pid.angle": "motor.angle"}
    return hk.Composite(hk.Scenario({"motor": motor, "pid": pid}, wires), step="25 ms")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    for delay in ("0 s", "20 ms"):
        run = hk.run(loop(delay), stop="4 s")
        print(f"delay {delay}: {100.0 * (max(run['motor.angle'].values) - 1.0):.1f} % too far")
    run.plot("motor.angle", "pid.voltage", path=folder / "sampled_pid.png")
