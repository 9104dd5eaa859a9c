"""The undivided system of a coupling: the equations of all its parts, solved together by SciPy.

In:  models and wires of a System: equations, boxes of `parts.box`, sources, sampled laws, delay lines, relays
Out: the true values of every output at given times; hocket's engine has no part in them

Each hand-written reference of a judged port is compared with what comes out of this (`--references`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import hocket as hk

Vector = NDArray[np.float64]
RTOL, ATOL = 1e-10, 1e-12
PATIENCE = 300_000
"""Evaluations after which the system is taken for stiff, and an implicit solver is asked."""
HAIR = 1e-10
"""Seconds by which a state goes on beyond an event that was just met."""
EDGE = 1e-9
"""Of a period, or seconds: how close times count as the same."""


class _StiffError(Exception):
    """Too many evaluations for an explicit solver."""


@dataclass
class _Part:
    """One model: its equations, where its states, inputs and outputs are; held values of what is sampled."""

    name: str
    model: Any
    states: slice
    inputs: list[int]
    outputs: slice
    f: Callable[..., Any] | None = None
    g: Callable[..., Any] | None = None
    through: bool = False
    guard: Callable[..., float] | None = None
    """Crosses zero in `direction` where `act(t, x, u)` is due."""
    direction: int = 0
    act: Callable[..., Any] | None = None
    held: Vector = field(default_factory=lambda: np.zeros(0))
    """Of what is sampled, or switches: outputs until the next sample."""
    memory: Any = None
    past: list[tuple[float, Any]] = field(default_factory=list)
    """Of a delay line: pieces of what it was given, with their ends."""


class Monolith:
    """A coupling as one system of equations."""

    def __init__(self, models: Mapping[str, Any], wires: Mapping[str, str], longest: float) -> None:
        self.longest = longest
        self.ports = [f"{name}.{port.name}" for name, model in models.items() for port in model.outputs]
        place = {port: k for k, port in enumerate(self.ports)}
        self.parts: list[_Part] = []
        start: list[float] = []
        at = 0
        for name, model in models.items():
            equations = _equations(model)
            x0 = [] if equations is None else list(equations[2])
            inputs = [place[wires[f"{name}.{port.name}"]] for port in model.inputs]
            here = slice(len(start), len(start) + len(x0))
            made = _Part(name, model, here, inputs, slice(at, at + len(model.outputs)))
            if equations is not None:
                made.f, made.g = equations[:2]
                made.through = any(port.feedthrough for port in model.outputs)
            start, at = [*start, *x0], at + len(model.outputs)
            _prepare(made)
            self.parts.append(made)
        self.start = np.array(start)
        self.order = self._sort()

    def _sort(self) -> list[_Part]:
        """Return the parts so that each with direct feedthrough comes after those it depends on."""
        owner = {k: part for part in self.parts for k in range(part.outputs.start, part.outputs.stop)}
        done, order = set(), [part for part in self.parts if not part.through]
        done |= {part.name for part in order}
        while len(order) < len(self.parts):
            ready = [
                part
                for part in self.parts
                if part.name not in done and all(owner[k].name in done for k in part.inputs)
            ]
            if not ready:
                raise ArithmeticError("an algebraic loop: it has no composed reference")
            order += ready
            done |= {part.name for part in ready}
        return order

    def outputs(self, t: float, x: Vector) -> Vector:
        """Return all outputs."""
        y = np.zeros(len(self.ports))
        for part in self.order:
            own = x[part.states]
            if len(part.held):
                y[part.outputs] = part.held
            elif part.past:
                y[part.outputs] = _recall(part, t)
            elif part.g is not None:
                y[part.outputs] = part.g(t, own, y[part.inputs])
            else:
                y[part.outputs] = own
        return y

    def rates(self, t: float, x: Vector) -> Vector:
        """Return the derivatives of all states."""
        y, found = self.outputs(t, x), np.zeros(len(x))
        for part in self.parts:
            if part.f is not None and part.states.stop > part.states.start:
                found[part.states] = part.f(t, x[part.states], y[part.inputs])
        return found

    def solve(self, times: Vector) -> dict[str, Vector]:
        """Return the values of each output at times; where something jumps, after the jump."""
        found = np.full((len(times), len(self.ports)), np.nan)
        t, x, end = 0.0, self.start.copy(), float(times[-1])
        while True:
            self._sample(t, x)
            until = min(end, self._next_break(t))
            x, t, piece = self._flow(t, x, until)
            here = (times >= piece[0] - EDGE) & (times <= t + EDGE)
            for k in np.flatnonzero(here):
                s = min(max(times[k], piece[0]), t)
                found[k] = self.outputs(s, piece[1](s) if len(x) else x)
            if t >= end - EDGE:
                return dict(zip(self.ports, found.T, strict=True))

    def _flow(self, t: float, x: Vector, until: float) -> tuple[Vector, float, Any]:
        """Solve to `until` or the next event; act there. Return state, time and the piece."""
        watchers = [part for part in self.parts if part.guard is not None]
        guards = [self._guard(part) for part in watchers]
        if not len(x):
            return x, until, (t, lambda s: x)
        piece = self._integrate(t, x, until, guards)
        end, x = float(piece.t[-1]), piece.y[:, -1]
        for part in self.parts:
            if isinstance(part.memory, tuple) and part.memory[0] == "delay":
                source = piece.sol
                part.past.append(
                    (end, lambda s, source=source, part=part: self.outputs(s, source(s))[part.inputs])
                )
        if piece.status == 1:
            for part, met in zip(watchers, piece.t_events, strict=True):
                if len(met) and part.act is not None:
                    y = self.outputs(end, x)
                    x = x.copy()
                    x[part.states] = part.act(end, x[part.states], y[part.inputs])
            rates = self.rates(end, x)
            x, end = x + HAIR * rates, end + HAIR
        return x, end, (t, piece.sol)

    def _integrate(self, t: float, x: Vector, until: float, guards: Sequence[Any]) -> Any:
        count = 0

        def rates(s: float, z: Vector) -> Vector:
            nonlocal count
            count += 1
            if count > PATIENCE:
                raise _StiffError
            return self.rates(s, z)

        options: dict[str, Any] = {"rtol": RTOL, "atol": ATOL, "dense_output": True, "max_step": self.longest}
        options["events"] = list(guards) or None
        try:
            made = solve_ivp(rates, (t, until), x, method="DOP853", **options)
        except _StiffError:
            made = solve_ivp(self.rates, (t, until), x, method="Radau", **options)
        if made.status < 0:
            raise ArithmeticError(f"no reference: {made.message}")
        return made

    def _guard(self, part: _Part) -> Any:
        def guard(t: float, x: Vector) -> float:
            assert part.guard is not None
            return float(part.guard(t, x[part.states], self.outputs(t, x)[part.inputs]))

        guard.terminal, guard.direction = True, part.direction  # type: ignore[attr-defined]
        return guard

    def _next_break(self, t: float) -> float:
        """Return the next time at which something jumps by itself."""
        found = [float("inf")]
        for part in self.parts:
            period = getattr(part.model, "period", None)
            if period is not None:
                found.append((np.floor(t / float(period) + EDGE) + 1) * float(period))
            if isinstance(part.model, hk.Table):
                later = part.model.times[part.model.times > t + EDGE]
                found += [float(later[0])] if len(later) else []
            if isinstance(part.memory, tuple) and part.memory[0] == "delay":
                found.append(t + part.memory[1])
        return min(found)

    def _sample(self, t: float, x: Vector) -> None:
        """Sample what is due, in the order of direct feedthrough; late ones show what they found before."""
        due = [
            part
            for part in self.order
            if getattr(part.model, "period", None) is not None
            and abs(t / float(part.model.period) - round(t / float(part.model.period))) < EDGE * 10
        ]
        late = [part for part in due if not part.through]
        for part in late:
            part.held = np.atleast_1d(np.asarray(part.memory[2], float))
        for part in [each for each in due if each.through]:
            y = self.outputs(t, x)
            law, memory = part.memory[1], part.memory[3]
            value, memory = law(y[part.inputs], memory)
            part.held, part.memory = np.array([value]), ("law", law, value, memory)
        for part in late:
            y = self.outputs(t, x)
            law, memory = part.memory[1], part.memory[3]
            value, memory = law(y[part.inputs], memory)
            part.memory = ("law", law, value, memory)


def _equations(model: Any) -> tuple[Any, Any, Sequence[float]] | None:
    """Return f, g and the start of equations, a source or a box; None: it has none."""
    if isinstance(model, hk.Ode):
        return model.function(model.f), model.g and model.function(model.g), model.x0
    if isinstance(model, hk.Function):
        return None, lambda t, x, u: np.atleast_1d(model.f(t)), ()
    if isinstance(model, hk.Table):
        return None, lambda t, x, u: _look_up(model, t), ()
    found = getattr(getattr(model, "cls", None), "equations", None)
    if found is not None:
        return found  # type: ignore[no-any-return]
    return None


def _look_up(table: hk.Table, t: float) -> Vector:
    if table.interpolation == "hold":
        row = max(int(np.searchsorted(table.times, t + EDGE * 0.01, side="right")) - 1, 0)
        return np.asarray(table.values[row])
    return np.array([np.interp(t, table.times, column) for column in table.values.T])


def _prepare(part: _Part) -> None:
    """Give a part what it needs beyond equations: events, laws that are sampled, delays, relays."""
    model = part.model
    if isinstance(model, hk.Ode):
        if model.events:
            (event,) = model.events
            part.guard, part.act = event.g, event.action
            part.direction = {"falling": -1, "rising": 1, "both": 0}[event.direction]
        return
    if not isinstance(model, hk.Python):
        return
    cls, values = model.cls, dict(model.values)
    if hasattr(cls, "law"):
        part.memory, part.through = ("law", cls.law, 0.0, 0.0), cls.prompt
        part.held = np.zeros(1)
    elif hasattr(cls, "delay_line"):
        before = values["before"]
        part.memory = ("delay", values["delay"])
        part.past = [(0.0, lambda s: np.array([before]))]
    elif hasattr(cls, "hysteresis"):
        _prepare_relay(part, values)


def _prepare_relay(part: _Part, values: dict[str, float]) -> None:
    part.held, part.direction = np.array([values["on"]]), 0

    def guard(t: float, x: Vector, u: Vector) -> float:
        on = part.held[0] == values["on"]
        return float(u[0] - values["high"] if on else values["low"] - u[0])

    def act(t: float, x: Vector, u: Vector) -> Vector:
        on = part.held[0] == values["on"]
        part.held = np.array([values["off"] if on else values["on"]])
        return x

    part.guard, part.act, part.direction = guard, act, 1


def _recall(part: _Part, t: float) -> Any:
    """Return what a delay line was given so long ago."""
    asked = t - part.memory[1]
    if asked <= EDGE:
        return part.past[0][1](asked) if asked < EDGE or len(part.past) == 1 else part.past[1][1](asked)
    for end, source in part.past[1:]:
        if asked <= end + EDGE:
            return source(min(asked, end))
    return part.past[-1][1](part.past[-1][0])
