"""Systems that cross values at known times, with and without events of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocket as hk

ENGINES = ("interpreter", "native")
G = 9.81
BOUNCES = [0.4515236409857309, 1.083656738365754, 1.5261499065317704, 1.8358951242479819, 2.05271677664933]
"""sqrt(2 / g), and then intervals of 2 * 0.7^k * sqrt(2 / g)."""
LIMIT = 2.5586339656
"""sqrt(2 / g) * 1.7 / 0.3."""


def events(run: hk.Run, port: str) -> tuple[list[float], list[float]]:
    """Return when an event was present, and its values."""
    series = run[port]
    t, values = np.array(series.t), np.array(series.values)
    there = ~np.isnan(values)
    return t[there].tolist(), values[there].tolist()


def both_engines(composite: hk.Composite, stop: float, **how: Any) -> hk.Run:
    """Run on both engines, whose rows must be equal bit for bit; return one of the runs."""
    runs = [hk.run(composite, stop=stop, engine=engine, **how) for engine in ENGINES]
    one, other = runs
    for port in one.ports:
        for a, b in ((one[port].t, other[port].t), (one[port].values, other[port].values)):
            assert np.array_equal(np.array(a), np.array(b), equal_nan=True), port
    return other


def refusals(composite: hk.Composite, stop: float) -> str:
    """Run on both engines, which must refuse with the same words; return these."""
    words = []
    for engine in ENGINES:
        with pytest.raises(hk.SimulatorError) as caught:
            hk.run(composite, stop=stop, engine=engine)
        words.append(str(caught.value))
    assert words[0] == words[1]
    return words[0]


def oscillator() -> hk.StateSpace:
    """y = sin t."""
    return hk.StateSpace(A=[[0, 1], [-1, 0]], C=[[1, 0]], x0=[0.0, 1.0], outputs=["y"])


def lag() -> hk.StateSpace:
    """y' = u - y."""
    return hk.StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], x0=[0.0], inputs=["u"], outputs=["y"])


def integrator() -> hk.StateSpace:
    """x' = u from 1 on."""
    return hk.StateSpace(A=[[0.0]], B=[[1.0]], C=[[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])


def ball_ode(e: float = 0.7) -> hk.Ode:
    """A ball that finds its bounces itself."""
    return hk.Ode(
        lambda t, x, u: [x[1], -G],
        x0=[1.0, 0.0],
        outputs=["h", "v"],
        events=[hk.Event(lambda t, x, u: x[0], "falling", lambda t, x, u: [0.0, -e * x[1]])],
    )


def relay_ode(*, both: bool = False) -> hk.Ode:
    """x' = mode, and mode = -sgn x."""
    turn = hk.Event(lambda t, x, u: x[0], "both", lambda t, x, u: [x[0], -x[1]])
    falls = hk.Event(lambda t, x, u: x[0], "falling", lambda t, x, u: [x[0], 1.0])
    rises = hk.Event(lambda t, x, u: x[0], "rising", lambda t, x, u: [x[0], -1.0])
    return hk.Ode(
        lambda t, x, u: [x[1], 0.0],
        x0=[1.0, -1.0],
        outputs=["x", "mode"],
        events=[turn] if both else [falls, rises],
    )


class EventClass:
    """A Python class with an event input that is told when it is present."""

    inputs = (hk.Port("hit", start=0.0, event=True),)
    feedthrough: dict[str, list[str]] = {}  # noqa: RUF012
    rollback = events = True

    def start(self, t: float) -> None:
        self.x = list(self.x0)
        self.hit: float | None = None

    def output(self, t: float, u: Any) -> list[float]:
        return list(self.x)

    def save(self) -> Any:
        return list(self.x), self.hit

    def restore(self, state: Any) -> None:
        self.x, self.hit = list(state[0]), state[1]

    def due(self) -> None:
        return None

    def react(self, t: float, n: int, u: Any, present: Any) -> None:
        self.hit = float(u[0]) if present[0] else None


class Ball(EventClass):
    """A ball that is told of its bounces."""

    outputs = ("h", "v")
    x0 = (1.0, 0.0)

    def step(self, t: float, h: float, u: Any) -> None:
        height, speed = self.x
        self.x = [height + speed * h - G * h * h / 2, speed - G * h]

    def commit(self) -> bool:
        if self.hit is not None:
            self.x = [0.0, -0.7 * self.x[1]]
        return False


class Relay(EventClass):
    """Its output is the opposite of the direction of the newest crossing; -1 at first."""

    outputs = (hk.Port("mode", held=True),)
    x0 = (-1.0,)

    def step(self, t: float, h: float, u: Any) -> None:
        pass

    def commit(self) -> bool:
        if self.hit is not None:
            self.x = [-self.hit]
        return False


class Follower:
    """It takes what it is given, and cannot roll back."""

    inputs = ("u",)
    outputs = ("y",)
    feedthrough: dict[str, list[str]] = {}  # noqa: RUF012

    def start(self, t: float) -> None:
        self.y = 0.0

    def output(self, t: float, u: Any) -> list[float]:
        return [self.y]

    def step(self, t: float, h: float, u: Any) -> None:
        self.y = float(u[0, 0])
