"""Nonlinear, switched and sampled systems in parts, with references of the undivided system by SciPy.

Each was written to tune what `check` says along a trajectory: the reference knows nothing of hocket.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.integrate import solve_ivp

import hocket as hk

Equation = Callable[[float, Any, Any], Sequence[float]]


@dataclass(frozen=True)
class Part:
    """x' = f(t, x, u), y = g(t, x, u); without g the outputs are the states."""

    f: Equation
    x0: Sequence[float] = ()
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    g: Equation | None = None
    direct: bool = False
    """Whether the outputs depend on the inputs at once."""

    def output(self, t: float, x: Any, u: Any) -> Any:
        return x if self.g is None else np.asarray(self.g(t, x, u), dtype=float)


@dataclass(frozen=True)
class System:
    """Parts, wires, and two macro steps: the first one is of use, the second often is not."""

    name: str
    parts: Mapping[str, Part]
    wires: Mapping[str, str]
    stop: float
    steps: tuple[float, float]
    options: Mapping[str, Any] = field(default_factory=dict)
    boxed: Sequence[str] = ()
    """Parts that are black boxes in Python, which make one step of Heun's method per macro step."""
    relay: bool = False
    """One of the parts is a relay with a memory: the reference stops where it switches."""

    def composite(self, h: float) -> hk.Composite:
        models: dict[str, Any] = {}
        for name, part in self.parts.items():
            models[name] = self._box(part) if name in self.boxed else self._ode(part)
        if self.relay:
            models["relay"] = hk.Python(Relay)
        return hk.Composite(hk.Scenario(models, dict(self.wires)), h, **dict(self.options))

    @staticmethod
    def _ode(part: Part) -> Any:
        direct = None if part.direct or part.g is None else {}
        return hk.Ode(
            part.f, part.g, part.x0, list(part.inputs), list(part.outputs), feedthrough=direct, step=None
        )

    @staticmethod
    def _box(part: Part) -> Any:
        class Box:
            inputs, outputs = tuple(part.inputs), tuple(part.outputs)
            feedthrough: ClassVar = {y: list(part.inputs) if part.direct else [] for y in part.outputs}

            def start(self, t: float) -> None:
                self.x = np.array(part.x0, dtype=float)

            def output(self, t: float, u: Any) -> Any:
                return part.output(t, self.x, u[0])

            def step(self, t: float, h: float, u: Any) -> float:
                one = np.asarray(part.f(t, self.x, u[0]), dtype=float)
                other = np.asarray(part.f(t + h, self.x + h * one, u[0]), dtype=float)
                self.x = self.x + 0.5 * h * (one + other)
                return t + h

            def save(self) -> Any:
                return self.x.copy()

            def restore(self, state: Any) -> None:
                self.x = state.copy()

        return hk.Python(Box)

    def reference(self, times: Any) -> dict[str, Any]:
        """The outputs at these times."""
        return relay_reference(times) if self.relay else self._undivided(np.asarray(times, dtype=float))

    def _undivided(self, times: Any) -> dict[str, Any]:
        sizes = np.cumsum([0, *(len(part.x0) for part in self.parts.values())])
        spans = {name: slice(sizes[k], sizes[k + 1]) for k, name in enumerate(self.parts)}

        def outputs(t: float, x: Any) -> tuple[dict[str, float], dict[str, Any]]:
            known: dict[str, float] = {}
            inputs: dict[str, Any] = {}
            for _ in range(len(self.parts)):
                for name, part in self.parts.items():
                    u = [known.get(self.wires[f"{name}.{port}"], 0.0) for port in part.inputs]
                    inputs[name] = np.array(u)
                    y = part.output(t, x[spans[name]], inputs[name])
                    known |= {f"{name}.{port}": float(v) for port, v in zip(part.outputs, y, strict=True)}
            return known, inputs

        def rates(t: float, x: Any) -> Any:
            _, u = outputs(t, x)
            return np.concatenate(
                [np.asarray(part.f(t, x[spans[n]], u[n]), dtype=float) for n, part in self.parts.items()]
            )

        x0 = np.concatenate([np.asarray(part.x0, dtype=float) for part in self.parts.values()])
        longest = (times[-1] - times[0]) / 2000
        found = solve_ivp(
            rates, (times[0], times[-1]), x0, "LSODA", times, rtol=1e-9, atol=1e-11, max_step=longest
        )
        rows = [outputs(t, x)[0] for t, x in zip(times, found.y.T, strict=True)]
        return {port: np.array([row[port] for row in rows]) for port in rows[0]}

    def true_errors(self, h: float) -> dict[str, tuple[float, float]]:
        """Per port the largest error of a run and the peak of the reference; infinite if it fails."""
        try:
            run = hk.run(self.composite(h), self.stop)
        except hk.HocketError:
            return {"all": (math.inf, 1.0)}
        times = run[run.ports[0]].t
        truth = self.reference(times)
        with np.errstate(all="ignore"):
            return {
                port: (float(np.abs(run[port].values - values).max()), float(np.abs(values).max()))
                for port, values in truth.items()
            }

    def true_error(self, h: float, ports: Sequence[str] | None = None) -> float:
        """The largest error in relation to the peak."""
        found = self.true_errors(h)
        worst = [wrong / peak for port, (wrong, peak) in found.items() if ports is None or port in ports]
        worst = [math.inf if math.isnan(each) else each for each in worst]
        return max(worst)


class Relay:
    """On below 19, off above 21, with a memory."""

    inputs, outputs = ("T",), ("heat",)
    feedthrough: ClassVar = {"heat": ["T"]}

    def start(self, t: float) -> None:
        self.on = True

    def output(self, t: float, u: Any) -> Any:
        return np.array([60.0 if self._next(u) else 0.0])

    def _next(self, u: Any) -> bool:
        T = float(u[0][0])
        return False if T > 21.0 else True if T < 19.0 else self.on

    def step(self, t: float, h: float, u: Any) -> float:
        self.on = self._next(u)
        return t + h

    def save(self) -> Any:
        return self.on

    def restore(self, state: Any) -> None:
        self.on = state


def relay_reference(times: Any) -> dict[str, Any]:
    """T' = (10 - T + heat / 2) / 10 piece by piece: an exponential towards 40 or 10, in closed form."""
    found, heat, t0, T0, on = [], [], float(times[0]), 15.0, True
    for t in times:
        while True:
            goal, edge = (40.0, 21.0) if on else (10.0, 19.0)
            switch = t0 + 10.0 * math.log((goal - T0) / (goal - edge))
            if switch > t:
                break
            t0, T0, on = switch, edge, not on
        found.append(goal + (T0 - goal) * math.exp(-(t - t0) / 10.0))
        heat.append(60.0 if on else 0.0)
    return {"room.T": np.array(found), "relay.heat": np.array(heat)}


def mass(x: float, v: float, m: float = 1.0, c: float = 0.0) -> Part:
    return Part(lambda t, x, u: [x[1], (u[0] - c * x[1]) / m], [x, v], ["f"], ["x", "v"])


def law(function: Callable[..., float], inputs: Sequence[str], output: str) -> Part:
    return Part(lambda t, x, u: [], [], inputs, [output], lambda t, x, u: [function(t, *u)], direct=True)


SPRING_WIRES = {"mass.f": "spring.f", "spring.x": "mass.x", "spring.v": "mass.v"}


def spring(name: str, function: Callable[..., float], x: float, v: float, stop: float, *steps: float, **more):
    parts = {"mass": mass(x, v), "spring": law(lambda t, x, v: function(x, v), ["x", "v"], "f")}
    return System(name, parts, SPRING_WIRES, stop, steps, **more)


def van_der_pol(name: str, mu: float, x0: float, v0: float, stop: float, *steps: float, **more) -> System:
    parts = {
        "position": Part(lambda t, x, u: [u[0]], [x0], ["v"], ["x"]),
        "speed": Part(lambda t, x, u: [mu * (1 - u[0] ** 2) * x[0] - u[0]], [v0], ["x"], ["v"]),
    }
    wires = {"position.v": "speed.v", "speed.x": "position.x"}
    return System(name, parts, wires, stop, steps, **more)


def pair(name: str, f: Equation, g: Equation, x0: float, y0: float, stop: float, *steps: float, **more):
    """x' = f(t, [x], [y]), y' = g(t, [y], [x])."""
    parts = {
        "a": Part(lambda t, x, u: [f(t, x, u)], [x0], ["y"], ["x"]),
        "b": Part(lambda t, x, u: [g(t, x, u)], [y0], ["x"], ["y"]),
    }
    return System(name, parts, {"a.y": "b.y", "b.x": "a.x"}, stop, steps, **more)


def clip(value: float, limit: float) -> float:
    return max(-limit, min(limit, value))


def gap(value: float, half: float) -> float:
    return value - clip(value, half)


GAUSS_SEIDEL = {"orchestrator": "gauss-seidel"}


def sliding(x: float, v: float) -> float:
    return -5 * (x - 1) - 2 * math.tanh(50 * v)


SYSTEMS: tuple[System, ...] = (
    spring("hardening spring", lambda x, v: -20 * x - 400 * x**3, 0.0, 8.0, 2.0, 0.002, 0.05),
    spring("contact stop", lambda x, v: -400 * max(0.0, x - 1) - x - 0.5 * v, 0.0, 4.0, 3.0, 0.002, 0.05),
    spring("cubic spring from rest", lambda x, v: -(x**3) - 0.2 * v, 0.0, 1.0, 10.0, 0.01, 0.5),
    System(
        "saturated controller",
        {
            "plant": Part(lambda t, x, u: [x[1], -x[1] + u[0]], [0.0, 0.0], ["u"], ["y", "v"]),
            "control": law(lambda t, y, v: clip(40 * (1 - y) - 8 * v, 2.0), ["y", "v"], "u"),
        },
        {"plant.u": "control.u", "control.y": "plant.y", "control.v": "plant.v"},
        5.0,
        (0.01, 0.25),
    ),
    System(
        "diode",
        {
            "source": law(lambda t: 10 * math.sin(10 * t), [], "e"),
            "diode": law(lambda t, e, v: max(0.0, e - v) / 0.5, ["e", "v"], "i"),
            "capacitor": Part(lambda t, x, u: [(u[0] - x[0] / 20) / 0.1], [0.0], ["i"], ["v"]),
        },
        {"diode.e": "source.e", "diode.v": "capacitor.v", "capacitor.i": "diode.i"},
        2.0,
        (0.002, 0.1),
    ),
    System(
        "backlash",
        {
            "motor": Part(
                lambda t, x, u: [x[1], 3 * math.sin(2 * t) - u[0] - 0.5 * x[1]], [0, 0], ["f"], ["x", "v"]
            ),
            "load": Part(lambda t, x, u: [x[1], (u[0] - 0.3 * x[1]) / 2], [0, 0], ["f"], ["x", "v"]),
            "gear": law(lambda t, a, b: 200 * gap(a - b, 0.1), ["a", "b"], "f"),
        },
        {"motor.f": "gear.f", "load.f": "gear.f", "gear.a": "motor.x", "gear.b": "load.x"},
        6.0,
        (0.002, 0.1),
    ),
    pair(
        "laser",
        lambda t, x, u: 2.0 - x[0] - x[0] * u[0],
        lambda t, y, u: 30 * (u[0] - 1) * y[0] + 1e-3,
        0.0,
        1e-3,
        8.0,
        0.002,
        0.1,
    ),
    pair(
        "FitzHugh-Nagumo",
        lambda t, x, u: x[0] - x[0] ** 3 / 3 - u[0] + 0.5,
        lambda t, y, u: 0.08 * (u[0] + 0.7 - 0.8 * y[0]),
        -1.0,
        1.0,
        100.0,
        0.02,
        1.0,
    ),
    van_der_pol("Van der Pol on its cycle", 1.0, 2.0, 0.0, 20.0, 0.005, 0.2),
    van_der_pol(
        "Van der Pol, Gauss-Seidel", 1.0, 0.1, 0.0, 20.0, 0.02, 0.4, options={"orchestrator": "gauss-seidel"}
    ),
    pair(
        "predator and prey",
        lambda t, x, u: x[0] * (1 - u[0]),
        lambda t, y, u: y[0] * (u[0] - 1),
        2.0,
        1.0,
        15.0,
        0.005,
        0.2,
    ),
    System(
        "relay",
        {"room": Part(lambda t, x, u: [(10 - x[0] + u[0] / 2) / 10], [15.0], ["heat"], ["T"])},
        {"room.heat": "relay.heat", "relay.T": "room.T"},
        30.0,
        (0.01, 1.0),
        relay=True,
    ),
    System(
        "quantiser",
        {
            "plant": Part(lambda t, x, u: [x[1], -2 * x[1] + u[0]], [0.0, 0.0], ["u"], ["y", "v"]),
            "control": law(lambda t, y: 4 * (1 - math.floor(y / 0.05) * 0.05), ["y"], "u"),
        },
        {"plant.u": "control.u", "control.y": "plant.y"},
        6.0,
        (0.005, 0.4),
    ),
    pair(
        "pendulum",
        lambda t, x, u: u[0],
        lambda t, y, u: -9.81 * math.sin(u[0]),
        2.5,
        0.0,
        6.0,
        0.002,
        0.05,
        options={"extrapolation": hk.Polynomial(1)},
    ),
    System(
        "Kepler",
        {
            "x": Part(lambda t, x, u: [x[1], u[0]], [0.4, 0.0], ["a"], ["p", "v"]),
            "y": Part(lambda t, x, u: [x[1], u[0]], [0.0, 2.0], ["a"], ["p", "v"]),
            "sun": Part(
                lambda t, x, u: [],
                [],
                ["x", "y"],
                ["ax", "ay"],
                lambda t, x, u: [-u[0] / math.hypot(*u) ** 3, -u[1] / math.hypot(*u) ** 3],
                direct=True,
            ),
        },
        {"x.a": "sun.ax", "y.a": "sun.ay", "sun.x": "x.p", "sun.y": "y.p"},
        6.2,
        (0.002, 0.05),
        {"extrapolation": hk.Polynomial(1)},
    ),
    System(
        "Robertson",
        {
            "one": Part(lambda t, x, u: [-0.04 * x[0] + 1e4 * u[0] * u[1]], [1.0], ["b", "c"], ["a"]),
            "two": Part(
                lambda t, x, u: [0.04 * u[0] - 1e4 * x[0] * x[1] - 3e7 * x[0] ** 2, 3e7 * x[0] ** 2],
                [0.0, 0.0],
                ["a"],
                ["b", "c"],
            ),
        },
        {"one.b": "two.b", "one.c": "two.c", "two.a": "one.a"},
        1.0,
        (0.0002, 0.05),
    ),
    System(
        "propeller",
        {
            "motor": Part(lambda t, x, u: [(2 * (12 - x[0]) - u[0]) / 0.05], [0.0], ["load"], ["w"]),
            "propeller": law(lambda t, w: 0.3 * w * abs(w), ["w"], "load"),
        },
        {"motor.load": "propeller.load", "propeller.w": "motor.w"},
        0.5,
        (0.0005, 0.025),
    ),
    System(
        "forced Duffing",
        {
            "mass": mass(0.0, 0.0, c=0.3),
            "spring": law(lambda t, x, e: -(-x + x**3) + e, ["x", "e"], "f"),
            "shaker": law(lambda t: 0.37 * math.cos(1.2 * t), [], "e"),
        },
        {"mass.f": "spring.f", "spring.x": "mass.x", "spring.e": "shaker.e"},
        15.0,
        (0.01, 0.3),
    ),
    van_der_pol("Van der Pol in boxes", 2.0, 2.0, 0.0, 10.0, 0.005, 0.1, boxed=("position", "speed")),
    spring(
        "stick and slip in a box",
        lambda x, v: -5 * (x - 1) - 2 * math.tanh(50 * v),
        0.0,
        0.0,
        8.0,
        0.002,
        0.1,
        boxed=("mass",),
    ),
    System(
        "Lorenz",
        {
            "x": Part(lambda t, x, u: [10 * (u[0] - x[0])], [1.0], ["y"], ["x"]),
            "yz": Part(
                lambda t, x, u: [u[0] * (28 - x[1]) - x[0], u[0] * x[0] - 8 / 3 * x[1]],
                [1.0, 1.0],
                ["x"],
                ["y", "z"],
            ),
        },
        {"x.y": "yz.y", "yz.x": "x.x"},
        3.0,
        (0.0005, 0.02),
    ),
)
