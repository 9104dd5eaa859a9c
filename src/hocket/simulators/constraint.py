"""An artificial simulator that keeps equations true: it finds the inputs that nothing else provides.

In:  outputs of the simulators that the equations couple, and the inputs they were given in the last iteration
Out: those inputs, better ones; and what the equations are short of

It works in a level that iterates, after those it couples: where nothing changes any more, the equations hold
at the end of the step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hocket.errors import Fault, ScenarioError, raise_faults, suggest_nearest
from hocket.model.arguments import set_fields
from hocket.model.equations import Equation
from hocket.model.extrapolators import shift_origin
from hocket.model.ports import Port, parse_ports
from hocket.model.protocols import Array, Capabilities, Value
from hocket.simulators.methods import EntryError, apply_matrix, matrix, vector

GIVEN = "given."
"""What precedes the name of a determined input where it is fed back."""


@dataclass(frozen=True)
class Coupler:
    """Determines inputs u such that the equations g(y, u) = 0 hold at the end of each step.

    u becomes u - W s, where W is the inverse of how s reacts to u `over` so many seconds, the step; in others
    it reacts in proportion. `degrees` tells on what u acts. Accelerations (2): s = g' + mu g, the sliding
    manifold of Gu & Asada (2001); see Baumgarte (1972). Speeds (1): s = g. Directly (0): s = g too, with what
    is in the list `middle` taken in the middle of the step, for u is held over all of it. g' follows from the
    ports in `rates`, else from the slopes of what it `reads`. `start` is u before the first step. `laws` are
    weights of g, g' and g'' per equation in place of g' + mu g; g'' is the change of g' over the step, and
    `start_rates` are g' before the first one (of degree 1: g). `once`: it works in no iteration, and corrects
    u for the next step, at whose end s is what it would be if g' (of degree 1: g) went on as in the last one.

    Ports have the paths of those they stand for. The outputs `gap`, or `gap1`, `gap2` ..., are the residuals
    g as they are; of degree 0, as they were in the last step, and at the start as they are.
    """

    equations: Sequence[str]
    reads: Sequence[Port]
    determines: Sequence[Port]
    W: Sequence[Sequence[float]]
    degrees: Sequence[int] = ()
    mu: Sequence[float] = ()
    rates: Mapping[str, str] = field(default_factory=dict)
    middle: Sequence[str] = ()
    start: Sequence[float] = ()
    over: float | None = None
    laws: Sequence[Sequence[float]] = ()
    start_rates: Sequence[float] = ()
    once: bool = False

    def __post_init__(self) -> None:
        read, found, count = parse_ports(self.reads), parse_ports(self.determines), len(self.equations)
        width = len(found)
        try:
            set_fields(
                self,
                equations=tuple(self.equations),
                reads=read,
                determines=found,
                W=matrix(self.W, "W", (width, count)),
                degrees=tuple(self.degrees or (1,) * count),
                mu=vector(self.mu if np.size(self.mu) else [0.0] * count, "mu", count),
                rates=dict(self.rates),
                middle=tuple(self.middle),
                start=vector(self.start if np.size(self.start) else [0.0] * width, "start", width),
                laws=matrix(self.laws, "laws", (count, 3)) if np.size(self.laws) else (),
                start_rates=vector(
                    self.start_rates if np.size(self.start_rates) else [0.0] * count, "start_rates", count
                ),
            )
        except EntryError as error:
            expected = "W with a row per input and a column per equation, mu per equation, start per input"
            raise ScenarioError(f"a Coupler cannot be built: {error}", error.name, expected) from None
        raise_faults(self._faults())

    def __hash__(self) -> int:
        return hash((self.equations, self.reads, self.determines, self.W, self.degrees, self.mu, self.start))

    def _faults(self) -> list[Fault]:
        known = [port.name for port in (*self.reads, *self.determines)]
        faults = [
            Fault(f"`{path}` is neither read nor determined", "equations", "", suggest_nearest(path, known))
            for equation in self.parsed_equations
            for path in equation.paths
            if path not in known
        ]
        faults += [
            Fault(f"`{path}` is not read", "rates, middle", "", suggest_nearest(path, known))
            for path in (*self.rates, *self.rates.values(), *self.middle)
            if path not in {port.name for port in self.reads}
        ]
        if self.over is not None and not 0.0 < self.over < math.inf:
            faults.append(Fault(f"`over` is {self.over!r}", "over", "a number of seconds above 0"))
        if len(self.degrees) != len(self.equations) or not set(self.degrees) <= {0, 1, 2}:
            faults.append(Fault(f"`degrees` is {self.degrees}", "degrees", "0, 1 or 2 for each equation"))
        return faults

    @cached_property
    def parsed_equations(self) -> tuple[Equation, ...]:
        return tuple(map(Equation.of, self.equations))

    @property
    def linear(self) -> bool:
        """Whether its simulators carry rows: all equations are linear."""
        return all(equation.linear for equation in self.parsed_equations)

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """What it reads, and what was given in the last iteration."""
        return (*self.reads, *(Port(f"{GIVEN}{port.name}", port.unit) for port in self.determines))

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """The inputs it determines, and the residuals, which have direct feedthrough."""
        known = {port.name for port in self.reads}
        names = gap_names(len(self.equations))
        gaps = [
            Port(name, feedthrough=tuple(p if p in known else f"{GIVEN}{p}" for p in equation.paths))
            for name, equation in zip(names, self.parsed_equations, strict=True)
        ]
        return (*(Port(port.name, port.unit) for port in self.determines), *gaps)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(rollback=True)

    def open(self) -> CouplerSimulator:
        return CouplerSimulator(self)

    def sigma(
        self,
        values: Mapping[str, Value],
        slopes: Mapping[str, Value],
        middle: Mapping[str, Value],
        before: Sequence[Value],
        h: float,
    ) -> list[Value]:
        """Return s of each equation, from values and slopes at a step's end, and values in its middle.

        `before` is g' at its start, for laws with g''.
        """
        found = []
        halfway = {**values, **{path: middle[path] for path in self.middle}}
        rates = self.residual_rates(values, slopes)
        for number, (equation, degree, mu) in enumerate(
            zip(self.parsed_equations, self.degrees, self.mu, strict=True)
        ):
            if degree < 2:
                found.append(equation.residual(values if degree else halfway))
                continue
            g, rate = rates[number]
            if not self.laws:
                found.append(rate + mu * g)
                continue
            first, second, third = self.laws[number]
            s = second * rate + first * g
            found.append(s + third * (rate - before[number]) / h if third else s)
        return found

    def residual_rates(
        self, values: Mapping[str, Value], slopes: Mapping[str, Value]
    ) -> dict[int, tuple[Value, Value]]:
        """Return g and g' of the equations that inputs act on through accelerations, by number."""
        found = {}
        for number, (equation, degree) in enumerate(zip(self.parsed_equations, self.degrees, strict=True)):
            if degree == 2:
                moving = {
                    p: values[self.rates[p]] if p in self.rates else slopes.get(p, 0.0)
                    for p in equation.paths
                }
                found[number] = equation.residual_and_rate(values, moving)
        return found


def gap_names(count: int) -> list[str]:
    """Return the names of the residuals of so many equations."""
    return ["gap"] if count == 1 else [f"gap{number}" for number in range(1, count + 1)]


class CouplerSimulator:
    """Its state z are the inputs it determines, and the residuals of equations that they act on directly.

    Numbers may be rows where all equations are linear.
    """

    def __init__(self, model: Coupler):
        self.model = model
        self.read = [port.name for port in model.reads]
        self.found = [port.name for port in model.determines]
        self.W = np.array(model.W, dtype=float).reshape(len(model.determines), len(model.equations))
        self.holding = [number for number, degree in enumerate(model.degrees) if degree == 0]
        self.moving = [
            number
            for number, degree in enumerate(model.degrees)
            if model.once or (degree == 2 and model.laws and model.laws[number][2] != 0.0)
        ]
        """Equations of which g' is kept from step to step, or g of degree 1."""
        self.size = len(self.found) + len(self.holding) + len(self.moving)
        self.z: Array = np.zeros(0)
        self.stepped = False
        """Whether there is a last step: before it the residuals are those of the values at the start."""

    def start(self, t: float) -> None:
        kept = [self.model.start_rates[number] for number in self.moving]
        self.z = np.array([*self.model.start, *[0.0] * len(self.holding), *kept], dtype=float)
        self.stepped = False

    def step(self, t: float, h: float, u: Array) -> float:
        """Improve what was given by what the equations are short of."""
        if h == 0.0:
            return t
        ahead = shift_origin(u, h)
        slopes = dict(zip(self.read, _floats_or_rows(ahead[1]), strict=False)) if len(ahead) > 1 else {}
        middle = self._values_by_path(shift_origin(u, 0.5 * h)[0]) if self.model.middle else {}
        values = self._values_by_path(ahead[0])
        last = dict(zip(self.moving, self.z[len(self.found) + len(self.holding) :], strict=True))
        before = [last.get(number, 0.0) for number in range(len(self.model.equations))]
        s = np.array(self.model.sigma(values, slopes, middle, before, h), dtype=float)
        given = np.array(ahead[0][len(self.read) :], dtype=float)
        part = 1.0 if self.model.over is None else self.model.over / h
        rates = self.model.residual_rates(values, slopes)
        kept = [rates[number][1] if number in rates else s[number] for number in self.moving]
        if self.model.once:
            s = np.array(self._ahead(s, rates, before, h), dtype=float).reshape(s.shape)
        weighed = np.array([each if number in self.holding else part * each for number, each in enumerate(s)])
        found = given - apply_matrix(self.W, weighed.reshape(s.shape))
        self.z = np.concatenate(
            [found, s[self.holding], np.array(kept, dtype=float).reshape(-1, *s.shape[1:])]
        )
        self.stepped = True
        return t + h

    def _ahead(
        self, s: Array, rates: Mapping[int, tuple[Value, Value]], before: Sequence[Value], h: float
    ) -> list[Value]:
        """Return s at the end of the next step, if inputs stay as they are: what moves goes on as it did."""
        found: list[Value] = list(s)
        for number, degree in enumerate(self.model.degrees):
            if degree == 1:
                found[number] = 2.0 * s[number] - before[number]
            elif degree == 2:
                g, rate = rates[number]
                first, second, _ = (
                    self.model.laws[number] if self.model.laws else (self.model.mu[number], 1.0, 0)
                )
                change = rate - before[number]
                found[number] = second * (rate + change) + first * (g + h * rate + 0.5 * h * change)
        return found

    def output(self, t: float, u: Array) -> Array:
        values, count = self._values_by_path(u[0]), len(self.found)
        kept = dict(zip(self.holding, self.z[count : count + len(self.holding)], strict=True))
        gaps = [
            kept[number] if number in kept and self.stepped else equation.residual(values)
            for number, equation in enumerate(self.model.parsed_equations)
        ]
        return np.concatenate([self.z[:count], np.array(gaps, dtype=float).reshape(-1, *self.z.shape[1:])])

    def _values_by_path(self, numbers: Sequence[Value]) -> dict[str, Value]:
        return dict(zip((*self.read, *self.found), _floats_or_rows(numbers), strict=True))

    def save(self) -> tuple[Array, bool]:
        return self.z.copy(), self.stepped

    def restore(self, state: tuple[Array, bool]) -> None:
        z, self.stepped = state
        self.z = z.copy()

    def close(self) -> None:
        """Nothing is held."""


def _floats_or_rows(numbers: Any) -> list[Value]:
    return [float(n) if np.ndim(n) == 0 else n for n in numbers]
