"""Random hybrid scenarios: jumps, samples, events that are found, announced or emitted, in levels.

`draw_hybrid(rng)` returns a composite. Signals are bounded: states decay, events set them to small numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

import hocket as hk


class Base:
    """What classes in Python share: the state is the object's attributes."""

    def start(self, t: float) -> None: ...

    def step(self, t: float, h: float, u: Any) -> None: ...

    def save(self) -> Any:
        return dict(vars(self))

    def restore(self, state: Any) -> None:
        vars(self).clear()
        vars(self).update(state)


class Controller(Base):
    """A state that follows its input, and an output that may have direct feedthrough."""

    inputs: ClassVar = ["x"]
    outputs: ClassVar = ["u"]

    def __init__(self, k: float):
        self.k, self.s = k, 0.1

    def output(self, t: float, u: Any) -> list[float]:
        return [self.s - self.k * float(u[0, 0])]

    def step(self, t: float, h: float, u: Any) -> None:
        self.s = 0.5 * self.s + 0.1 * float(u[0, 0])


class SlowController(Controller):
    """Its output follows from its state alone."""

    def output(self, t: float) -> list[float]:  # type: ignore[override]
        return [self.s]


class Reactor(Base):
    """Looks at its inputs now and then and when one is present; emits, and holds what it saw."""

    inputs: ClassVar = ["x", hk.Port("hit", event=True, start=0.0)]
    outputs: ClassVar = [hk.Port("y", held=True), hk.Port("e", event=True), "ramp"]
    feedthrough: ClassVar[dict[str, list[str]]] = {}

    def __init__(self, every: float, limit: float):
        self.every, self.limit = every, limit
        self.y = self.emitted = self.ramp = 0.0
        self.count, self.again = 0, False
        self.next_y = 0.0

    def output(self, t: float) -> list[float]:
        return [self.y, self.emitted, self.ramp]

    def step(self, t: float, h: float, u: Any) -> None:
        self.ramp += h * (self.y - self.ramp)

    def due(self) -> float:
        return self.every * (self.count + 1)

    def react(self, t: float, n: int, u: Any, present: Any) -> list[bool]:
        self.due_now = t >= self.every * (self.count + 1) - 1e-9
        seen = 0.5 * float(u[0]) + (0.25 * float(u[1]) if present[1] else 0.0)
        self.next_y = max(-1.0, min(1.0, seen))
        self.emitted = 0.5 * self.next_y + 0.125
        self.shows = self.due_now and abs(self.next_y) < self.limit
        return [False, self.shows, False]

    def commit(self) -> bool:
        self.y = self.next_y
        again = self.due_now and self.count % 3 == 0
        self.count += self.due_now
        return bool(again)


class Handing(Base):
    """Hands an event on in the same instant."""

    inputs: ClassVar = [hk.Port("x", event=True, start=0.0)]
    outputs: ClassVar = [hk.Port("y", event=True)]

    def output(self, t: float, u: Any) -> list[float]:
        return [0.5 * float(u[0, 0]) + 0.1]

    def due(self) -> None: ...

    def react(self, t: float, n: int, u: Any, present: Any) -> Any:
        return [bool(present[0])]

    def commit(self) -> bool:
        return False


class Holding(Base):
    """Holds the newest event."""

    inputs: ClassVar = [hk.Port("x", event=True, start=0.0)]
    outputs: ClassVar = [hk.Port("y", held=True)]
    feedthrough: ClassVar[dict[str, list[str]]] = {}

    def __init__(self) -> None:
        self.y = self.next = 0.0

    def output(self, t: float) -> list[float]:
        return [self.y]

    def due(self) -> None: ...

    def react(self, t: float, n: int, u: Any, present: Any) -> None:
        self.next = float(u[0])

    def commit(self) -> bool:
        self.y = 0.75 * self.next + 0.125 * self.y
        return False


class Generator(hk.Atomic):
    """Emits values at intervals that come round."""

    outputs: ClassVar = ["y", hk.Port("level")]

    def __init__(self, values: Any, intervals: Any):
        self.values, self.intervals, self.count = list(values), list(intervals), 0

    def time_advance(self) -> Any:
        return self.intervals[self.count % len(self.intervals)]

    def output(self) -> dict[str, float]:
        value = self.values[self.count % len(self.values)]
        return {"y": value, "level": 0.5 * value}

    def internal(self) -> None:
        self.count += 1


class Delay(hk.Atomic):
    """Emits what it gets later; what comes while it waits is added up."""

    inputs: ClassVar = [hk.Port("x", event=True, start=0.0)]
    outputs: ClassVar = ["y"]

    def __init__(self, delay: Any):
        self.delay, self.left, self.value = delay, None, 0.0

    def time_advance(self) -> Any:
        return self.left

    def output(self) -> dict[str, float]:
        return {"y": self.value}

    def internal(self) -> None:
        self.left, self.value = None, 0.0

    def external(self, elapsed: float, inputs: Any) -> None:
        self.value = max(-1.0, min(1.0, self.value + 0.5 * inputs["x"]))
        self.left = self.delay if self.left is None else max(0.0, self.left - elapsed)


class Watching(hk.Atomic):
    """Takes values that jump."""

    inputs: ClassVar = [hk.Port("x")]
    outputs: ClassVar = [hk.Port("y"), "e"]

    def __init__(self) -> None:
        self.seen, self.left = 0.0, None

    def time_advance(self) -> Any:
        return self.left

    def output(self) -> dict[str, float]:
        return {"y": self.seen, "e": -self.seen}

    def internal(self) -> None:
        self.left = None

    def external(self, elapsed: float, inputs: Any) -> None:
        self.seen, self.left = 0.5 * inputs["x"], 0


class Once:
    """Cannot roll back."""

    inputs: ClassVar = ["x"]
    outputs: ClassVar = ["y"]
    feedthrough: ClassVar[dict[str, list[str]]] = {}

    def start(self, t: float) -> None:
        self.y = 0.3

    def output(self, t: float) -> list[float]:
        return [self.y]

    def step(self, t: float, h: float, u: Any) -> None:
        self.y += h * (0.5 * float(u[0, 0]) - self.y)


def oscillator(width: float, kick: float, direction: str) -> hk.Ode:
    """Return a damped oscillator that is kicked where it crosses a value that its input moves."""
    return hk.Ode(
        lambda t, x, u: [x[1], -width * width * x[0] - 0.1 * x[1] + 0.3 * u[0]],
        x0=[1.0, 0.0],
        inputs=["u"],
        outputs=["x", "v"],
        method="rk4",
        events=[
            hk.Event(lambda t, x, u: x[0] - 0.2, direction, lambda t, x, u: [x[0], kick * x[1] + 0.05]),  # type: ignore[arg-type]
            hk.Event(lambda t, x, u: u[0] - 0.35, "both", lambda t, x, u: [0.9 * x[0], x[1]]),
        ],
    )


def clock_line(env: Any, ports: Any, every: float) -> None:
    """Start a process that counts, and one that waits for what arrives."""

    def beats() -> Any:
        while True:
            yield env.timeout(every)
            ports["y"].value = 0.5 * math.sin(3.0 * env.now) + 0.1 * ports["x"].value
            ports["e"].put(0.5)

    def listens() -> Any:
        while True:
            value = yield ports["hit"].wait()
            ports["y"].value = 0.5 * value

    env.process(beats())
    env.process(listens())


@dataclass
class Parts:
    """A level while it is drawn: models, and what can be connected: values and events."""

    models: dict[str, Any] = field(default_factory=dict)
    values: list[str] = field(default_factory=list)
    """Outputs that always have a value."""
    smooth: list[str] = field(default_factory=list)
    """Those of them that may be watched for crossings."""
    events: list[str] = field(default_factory=list)
    wants: list[str] = field(default_factory=list)
    """Inputs that need a value."""
    hears: list[str] = field(default_factory=list)
    """Inputs of events."""
    direct: set[str] = field(default_factory=set)
    """Ports of direct feedthrough."""


class HybridPen:
    """Draws from one generator and remembers what it used."""

    def __init__(self, rng: np.random.Generator):
        self.rng, self.features = rng, set[str]()
        self.repeatable = rng.random() < 0.8
        """Whether all can roll back."""

    def one(self, *among: Any) -> Any:
        return among[int(self.rng.integers(len(among)))]

    def number(self, low: float, high: float) -> float:
        return round(float(self.rng.uniform(low, high)), 3)

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def add(self, parts: Parts, kind: str, name: str) -> None:
        """Add a model of a kind to a level."""
        made = getattr(self, f"_{kind}")()
        model, values, smooth, events, wants, hears = made
        self.features.add(kind)
        parts.models[name] = model
        parts.values += [f"{name}.{each}" for each in values]
        parts.smooth += [f"{name}.{each}" for each in smooth]
        parts.events += [f"{name}.{each}" for each in events]
        parts.wants += [f"{name}.{each}" for each in wants]
        parts.hears += [f"{name}.{each}" for each in hears]
        parts.direct |= {f"{name}.{each}" for each in "xy"} if kind == "handing" else set()

    def _lag(self) -> Any:
        rate = self.number(0.5, 4.0)
        model = hk.StateSpace(
            [[-rate]], [[0.7 * rate]], [[1.0]], x0=[self.number(-1, 1)], inputs=["u"], outputs=["y"]
        )
        return model, ["y"], ["y"], [], ["u"], []

    def _gain(self) -> Any:
        return hk.Gain(self.number(-0.8, 0.8)), ["y"], [], [], ["u"], []

    def _table(self) -> Any:
        times = sorted(self.number(0.01, 0.99) for _ in range(int(self.rng.integers(1, 4))))
        times = [0.0, *(each for time in times for each in (time, time)), 5.0]
        values = [self.number(-1, 1) for _ in times]
        how = self.one("linear", "hold")
        if how == "hold":
            times, values = times[::2], values[::2]
        return hk.Table(times, {"y": values}, interpolation=how), ["y"], [], [], [], []

    def _sampled(self) -> Any:
        options: dict[str, Any] = {"period": self.one("1/10 s", "1/3 s", "0.07 s", "0.25 s", "1/20 s")}
        if self.chance(0.5) or options["period"] in ("1/3 s", "0.07 s"):
            options["offset"] = self.one("0.013 s", "1/30 s", 0, "0.1 s")
        if self.chance(0.6):
            options["delay"] = self.one(0, "0.02 s", "1/10 s", "0.31 s")
        if self.chance(0.4):
            options["jitter"] = self.one({"uniform": "10 ms"}, {"normal": "8 ms"})
            options["seed"] = int(self.rng.integers(100))
        self.features |= {f"sampled {each}" for each in options}
        cls = self.one(Controller, SlowController)
        return hk.Python(cls, k=self.number(0.1, 0.6), **options), ["u"], [], [], ["x"], []

    def _ode(self) -> Any:
        model = oscillator(self.number(3, 15), self.number(0.3, 0.9), self.one("rising", "falling", "both"))
        return model, ["x", "v"], ["x"], [], ["u"], []

    def _reactor(self) -> Any:
        model = hk.Python(Reactor, every=self.one(0.1, 0.05, 0.0731, 0.3), limit=self.number(0.2, 1.1))
        return model, ["y", "ramp"], ["ramp"], ["e"], ["x"], ["hit"]

    def _handing(self) -> Any:
        return hk.Python(Handing), [], [], ["y"], [], ["x"]

    def _holding(self) -> Any:
        return hk.Python(Holding), ["y"], [], [], [], ["x"]

    def _generator(self) -> Any:
        intervals = [self.one("1/10", "1/3", "0.07", "1/20", 0.25, 0.0537) for _ in range(2)]
        if self.chance(0.3):
            intervals.append(0)
        values = [self.number(-1, 1) for _ in range(3)]
        return hk.Devs(Generator, values=values, intervals=intervals), ["level"], [], ["y"], [], []

    def _delay(self) -> Any:
        return hk.Devs(Delay, delay=self.one(0.1, 0.033, 0.25, 0)), [], [], ["y"], [], ["x"]

    def _watching(self) -> Any:
        return hk.Devs(Watching), ["y"], [], ["e"], ["x"], []

    def _once(self) -> Any:
        return hk.Python(Once), ["y"], ["y"], [], ["x"], []

    def _simpy(self) -> Any:
        ports = ["x", hk.Port("hit", event=True, start=0.0)]
        outputs = [hk.Port("y"), hk.Port("e", event=True)]
        model = hk.SimPy(clock_line, ports, outputs, every=self.one(0.1, 0.037, 0.25))
        return model, ["y"], [], ["e"], ["x"], ["hit"]

    KINDS = ("lag", "lag", "gain", "table", "sampled", "sampled", "ode", "reactor", "handing", "holding",
             "generator", "delay", "watching")  # fmt: skip

    def level(self, depth: int, step: Fraction, outermost: bool) -> tuple[hk.Composite, Parts]:
        """Return a level, and what can be connected to it from outside."""
        parts, outside = Parts(), Parts()
        names = [f"m{number}" for number in self.rng.permutation(20)]
        kinds = [self.one(*self.KINDS) for _ in range(int(self.rng.integers(3, 7)))]
        if not self.repeatable and self.chance(0.7):
            kinds.append(self.one("once", "simpy"))
        for kind in kinds:
            self.add(parts, kind, names.pop())
        if depth > 1:
            inner_step = step * self.one(1, Fraction(1, 2), Fraction(1, 2), 1, 2)
            self.features.add(
                f"inner step {'same' if inner_step == step else 'shorter' if inner_step < step else 'longer'}"
            )
            name = names.pop()
            composite, ports = self.level(depth - 1, inner_step, outermost=False)
            parts.models[name] = composite
            for mine, theirs in (
                (parts.values, ports.values), (parts.events, ports.events),
                (parts.wants, ports.wants), (parts.hears, ports.hears),
            ):  # fmt: skip
                mine += [f"{name}.{each}" for each in theirs]
            parts.direct |= {f"{name}.{each}" for each in (*ports.events, *ports.hears)}
        wires, crossings, inputs, outputs = {}, {}, [], []
        if parts.smooth and self.chance(0.5):
            for number in range(int(self.rng.integers(1, 3))):
                cross = f"c{number}"
                crossings[cross] = hk.Crossing(
                    self.one(*parts.smooth), self.one("rising", "falling", "both"),
                    at=self.number(-0.4, 0.6), hysteresis=self.one(0.0, 0.05),
                )  # fmt: skip
                parts.events.append(f"{cross}.event")
                self.features.add("crossing")
        for want in parts.wants:
            if not outermost and (not parts.values or self.chance(0.3)):
                inputs.append(hk.Port(f"i{len(inputs)}", start=0.1))
                wires[want] = inputs[-1].name
                outside.wants.append(inputs[-1].name)
            else:
                wires[want] = self.one(*parts.values) if parts.values else None
        for hear in parts.hears:
            if not outermost and self.chance(0.3):
                inputs.append(hk.Port(f"i{len(inputs)}", event=True, start=0.0))
                wires[hear] = inputs[-1].name
                outside.hears.append(inputs[-1].name)
            else:  # what hands events on is not driven by another that does: no circle of these
                among = [
                    each for each in parts.events if hear not in parts.direct or each not in parts.direct
                ]
                if among and self.chance(0.9):
                    wires[hear] = self.one(*among)
        if not outermost:
            for each in parts.values[:3]:
                outputs.append(hk.Port(f"o{len(outputs)}"))
                wires[outputs[-1].name] = each
                outside.values.append(outputs[-1].name)
            for each in parts.events[:2]:
                outputs.append(hk.Port(f"o{len(outputs)}", event=True))
                wires[outputs[-1].name] = each
                outside.events.append(outputs[-1].name)
        if any(source is None for source in wires.values()):
            self.add(parts, "table", names.pop())
            wires = {target: source or parts.values[0] for target, source in wires.items()}
        scenario = hk.Scenario(parts.models, wires, inputs=inputs, outputs=outputs, crossings=crossings)
        algorithm, how = self.algorithm(list(parts.models)), self.one("hold", "hold", "linear", "quadratic")
        return hk.Composite(scenario, step, algorithm, extrapolation=how), outside

    def algorithm(self, names: list[str]) -> Any:
        kinds = ["jacobi", "gauss-seidel", "ordered", "iterate", "multirate", "compound", "asynchronous"]
        # step control within step control takes long, and says nothing about events
        kind = self.one(*kinds, *(["adaptive"] if "adaptive" not in self.features else []))
        rates = {name: int(self.rng.integers(1, 5)) for name in names if self.chance(0.6)}
        nested = {name: self.one(1, 2, 4) for name in names if self.chance(0.6)}
        self.features.add(kind)
        match kind:
            case "jacobi":
                return hk.Jacobi()
            case "gauss-seidel":
                return hk.GaussSeidel()
            case "ordered":
                return hk.GaussSeidel([str(each) for each in self.rng.permutation(names)])
            case "iterate":
                return self.one(
                    hk.Iterate(tolerance=None, at_most=3, accelerate=None), hk.Iterate(tolerance=1e-9)
                )
            case "multirate":
                return hk.Multirate(nested or {names[0]: 2})
            case "compound":
                return hk.Multirate(nested or {names[0]: 2}, "compound")
            case "asynchronous":
                return hk.Asynchronous(rates or {names[0]: 3})
            case _:
                return hk.Adaptive(tolerance=self.one(0.2, 0.05))


def draw_hybrid(seed: int) -> tuple[hk.Composite, set[str]]:
    """Return a random hybrid scenario, and what is in it."""
    pen = HybridPen(np.random.default_rng(seed))
    depth = int(pen.rng.integers(1, 4))
    composite, _ = pen.level(depth, Fraction(1, pen.one(10, 20, 7)), outermost=True)
    pen.features.add(f"depth {depth}")
    return composite, pen.features
