"""A CAN bus of three nodes: the smallest identifier is sent first, and no frame is interrupted.

Run it with `python examples/can_bus.py [FOLDER]`: it prints how long frames of each node wait at most, and
draws can_bus.png. Nodes and bus are atomic DEVS models; frames are events whose value is the identifier.
"""

import sys
from fractions import Fraction
from pathlib import Path

import hocket as hk

FRAME = Fraction(135, 500_000)  # 135 bits, at 500 kbit/s
PERIODS = {1: Fraction(1, 1000), 2: Fraction(3, 2000), 3: Fraction(7, 4000)}


class Node(hk.Atomic):
    """Sends a frame every period, the first one at once, and counts those that it hears of others."""

    inputs = ["heard"]  # noqa: RUF012
    outputs = ["frame", hk.Port("count")]  # noqa: RUF012

    def __init__(self, identifier: int = 1):
        self.identifier, self.count, self.left = identifier, 0, Fraction(0)

    def time_advance(self) -> Fraction:
        return self.left

    def output(self) -> dict[str, float]:
        return {"frame": self.identifier, "count": self.count}

    def internal(self) -> None:
        self.left = PERIODS[self.identifier]

    def external(self, elapsed: float, inputs: dict[str, float]) -> None:
        self.left -= Fraction(elapsed).limit_denominator(10**9)
        self.count += inputs["heard"] != self.identifier


class Bus(hk.Atomic):
    """Carries one frame at a time; of those that wait, the one with the smallest identifier is next."""

    inputs = ["frame1", "frame2", "frame3"]  # noqa: RUF012
    outputs = ["delivered", hk.Port("waiting")]  # noqa: RUF012

    def __init__(self) -> None:
        self.waiting: list[float] = []
        self.sending: float | None = None
        self.left: Fraction | None = None

    def time_advance(self) -> Fraction | None:
        return self.left

    def output(self) -> dict[str, float]:
        return {"delivered": self.sending or 0.0, "waiting": len(self.waiting)}

    def internal(self) -> None:
        self.sending, self.left = None, None
        self.begin()

    def external(self, elapsed: float, inputs: dict[str, float]) -> None:
        if self.left is not None:
            self.left -= Fraction(elapsed).limit_denominator(10**9)
        self.waiting = sorted([*self.waiting, *inputs.values()])
        self.begin()

    def begin(self) -> None:
        """Begin with the next frame where the bus is free."""
        if self.sending is None and self.waiting:
            self.sending, *self.waiting = self.waiting
            self.left = FRAME


nodes = {f"node{number}": hk.Devs(Node, identifier=number) for number in PERIODS}
wires = {f"bus.frame{number}": f"node{number}.frame" for number in PERIODS}
wires |= {f"node{number}.heard": "bus.delivered" for number in PERIODS}
network = hk.Composite(hk.Scenario({**nodes, "bus": hk.Devs(Bus)}, wires), step="1 ms")


def deliveries(run: hk.Run) -> list[tuple[float, int]]:
    """Return when which frame was delivered."""
    pairs = zip(*run["bus.delivered"], strict=True)
    return [(float(t), int(value)) for t, value in pairs if value == value]


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    run = hk.run(network, stop="12 ms")
    for number, period in PERIODS.items():
        times = [t for t, each in deliveries(run) if each == number]
        longest = max(t - k * float(period) for k, t in enumerate(times))
        print(f"node {number}: {len(times)} frames, delivered after at most {1e3 * longest:.2f} ms")
    run.plot("bus.delivered", "bus.waiting", "node1.count", path=folder / "can_bus.png")
