"""A ball that bounces on a table, and the table stands on a spring.

Run it with `python examples/bouncing_ball.py [FOLDER]`: it says when they meet, and draws ball_on_table.png.

Neither of the two knows when they meet: a crossing of the gap between them is found by rollback. At that
instant each looks at the other's speed before the impact, and both change their own: momentum is kept, and
the relative speed is turned around with a restitution of 0.7.
"""

import math
import sys
from pathlib import Path

import hocket as hk

BALL, TABLE, STIFFNESS, DAMPING, GRAVITY, RESTITUTION = 0.5, 2.0, 200.0, 4.0, 9.81, 0.7


class Body:
    """Something with a height and a speed that is hit."""

    inputs = ["partner [m/s]", hk.Port("hit", event=True)]  # noqa: RUF012
    outputs = ["height [m]", "speed [m/s]"]  # noqa: RUF012
    mass, other, height, speed = 1.0, 1.0, 0.0, 0.0

    def start(self, t: float) -> None:
        self.wanted = self.speed

    def output(self, t: float) -> list[float]:
        return [self.height, self.speed]

    def due(self) -> None:
        """Announce nothing: it is hit when the crossing says so."""

    def react(self, t: float, n: int, u, present) -> None:
        """Look at the partner's speed before the impact."""
        self.wanted = self.speed
        if present[1]:
            share = self.other / (self.mass + self.other)
            self.wanted -= (1.0 + RESTITUTION) * share * (self.speed - u[0])

    def commit(self) -> bool:
        self.speed = self.wanted
        return False

    def save(self) -> tuple[float, float]:
        return self.height, self.speed

    def restore(self, state: tuple[float, float]) -> None:
        self.height, self.speed = state


class Ball(Body):
    """Falls freely."""

    mass, other, height = BALL, TABLE, 1.0

    def step(self, t: float, h: float, u) -> float:
        self.height += h * self.speed - h * h * GRAVITY / 2.0
        self.speed -= h * GRAVITY
        return t + h


class Table(Body):
    """Swings about its rest at height 0: the exact solution of m x'' + d x' + k x = 0."""

    mass, other = TABLE, BALL

    def step(self, t: float, h: float, u) -> float:
        decay = DAMPING / (2.0 * TABLE)
        omega = math.sqrt(STIFFNESS / TABLE - decay * decay)
        c, s, scale = math.cos(omega * h), math.sin(omega * h) / omega, math.exp(-decay * h)
        x, v = self.height, self.speed
        self.height = scale * (x * c + (v + decay * x) * s)
        self.speed = scale * (v * c - (decay * v + STIFFNESS / TABLE * x) * s)
        return t + h


scenario = hk.Scenario(
    {"ball": hk.Python(Ball), "table": hk.Python(Table), "gap": hk.Sum("ball", "table", gains=[1.0, -1.0])},
    {
        "ball.partner": "table.speed", "ball.hit": "impact.event",
        "table.partner": "ball.speed", "table.hit": "impact.event",
        "gap.ball": "ball.height", "gap.table": "table.height",
    },
    crossings={"impact": hk.Crossing("gap.y", "falling")},
)  # fmt: skip
experiment = hk.Composite(scenario, step="10 ms")

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    run = hk.run(experiment, stop="1.8 s")
    hits = run["impact.event"]
    print("they meet at", *(f"{t:.9f} s" for t, value in zip(*hits, strict=True) if value == -1.0))
    run.plot("ball.height", "table.height", "ball.speed", path=folder / "ball_on_table.png")
