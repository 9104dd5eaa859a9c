"""Blocks: models that are formulas, run by either engine with the same bits.

In:  formulas of a state, of inputs and of time: how it moves, what it shows, when something happens and what
Out: a Model, and the simulator that is the specification of its native twin
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from hocket.model.crossings import Direction
from hocket.model.extrapolators import shift_origin
from hocket.model.ports import Port
from hocket.model.protocols import Array, Capabilities, Model, Simulator
from hocket.simulators.formulas import Number, Program, Tape, Term
from hocket.simulators.methods import TABLEAUX, micro_steps

if TYPE_CHECKING:
    from hocket.simulators.ode import Ode


class Watch(NamedTuple):
    """Where an input of a block crosses a value: planning makes a crossing of what drives it."""

    input: str
    direction: Direction
    at: float
    """In the unit of the input."""


class Remade:
    """A model whose attributes are named as what it is made with: changed by path, it is made anew."""

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was made with, by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def remake(self, arguments: Mapping[str, Any]) -> Model:
        """Return one made with other arguments."""
        made: Model = type(self)(**arguments)  # type: ignore[assignment]
        return made


class Block(Remade):
    """A model that is formulas; a block is a frozen dataclass whose fields are its parameters.

    It overrides what it needs of `advance` or `rates`, `show`, `next` and `react`. Formulas are written with
    operators on terms, and must not branch on their values.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    states: ClassVar[int] = 0
    degree: ClassVar[int | None] = None
    """The highest power of time in its inputs that its motion honours; None: it has no motion."""
    moves: ClassVar[bool] = False
    is_smooth: ClassVar[bool] = True
    """Whether `rates` and `show` tell all of it, so that it can be read as equations."""
    switches: ClassVar[str] = ""
    """Why no linear model holds for it; empty: one may."""
    announces: ClassVar[bool] = False
    """Whether `next` tells when something happens."""
    events: ClassVar[tuple[()]] = ()
    """It has no events as equations have them."""
    reacts: ClassVar[bool] = False
    """Whether something happens in it at events: `announces`, or events among its inputs."""

    # what blocks say of themselves

    @property
    def initial_state(self) -> tuple[float, ...]:
        """The numbers at the start."""
        return (0.0,) * self.states

    @property
    def longest(self) -> float | None:
        """The longest micro step in seconds; None: one per step."""
        return None

    def begin(self, t: float) -> tuple[float, ...]:
        """Return the state at the start of a run, at t seconds."""
        return self.initial_state

    def advance(self, t: Term, h: Term, x: Sequence[Term], u: Sequence[Sequence[Term]]) -> Sequence[Number]:
        """Return the state after a micro step from t by h; `u` has a row per power of time.

        Where only `rates` are known, this is a step of the classical Runge-Kutta method.
        """
        tableau = TABLEAUX["rk4"]
        slopes: list[Sequence[Number]] = []
        for row, c in zip(tableau.a, tableau.c, strict=True):
            at: list[Any] = list(x)
            for a, slope in zip(row, slopes, strict=False):
                if a:
                    at = [value + h * a * rate for value, rate in zip(at, slope, strict=True)]
            s = h * c
            seen = list(u[0])
            for power in range(1, len(u)):
                seen = [
                    value + coefficient * _power(s, power)
                    for value, coefficient in zip(seen, u[power], strict=True)
                ]
            slopes.append(self.rates(t + s, at, seen))
        end: list[Any] = list(x)
        for b, slope in zip(tableau.b, slopes, strict=True):
            end = [value + h * b * rate for value, rate in zip(end, slope, strict=True)]
        return end

    def rates(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        """Return the time derivatives of the state."""
        return []

    def show(self, t: Term, x: Sequence[Term], u: Sequence[Term]) -> Sequence[Number]:
        """Return the outputs."""
        raise NotImplementedError

    def next(self, x: Sequence[Term]) -> Number:
        """Return the time of the next event in seconds; infinite: there is none."""
        return math.inf

    def react(
        self, t: Term, due: Term, x: Sequence[Term], u: Sequence[Term], present: Sequence[Term]
    ) -> Sequence[Number]:
        """Return the state after an event; `due` and `present` are 1 or 0."""
        return list(x)

    @property
    def watched(self) -> Mapping[str, Watch]:
        """Crossings that it is to be told of, by the event input that tells it."""
        return {}

    # what follows

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            rollback=True,
            input_degree=self.degree if self.moves else None,
            order=4 if self.moves and type(self).advance is Block.advance else None,
            events=self.reacts,
            catches_up=self.announces,
        )

    def open(self) -> Simulator:
        return EventBlockSimulator(self) if self.reacts else BlockSimulator(self)

    @property
    def rows(self) -> int:
        """How many coefficients of each input its motion takes."""
        return 1 + (self.degree or 0)

    @cached_property
    def programs(self) -> Mapping[str, Program]:
        """Its formulas as programs, by what they tell."""
        n, m = self.states, len(self.inputs)
        made = {}
        if self.moves:
            tape = Tape(2 + n + m * self.rows)
            t, h, *rest = tape.given
            rows = [rest[n + m * k : n + m * (k + 1)] for k in range(self.rows)]
            made["advance"] = tape.program(self.advance(t, h, rest[:n], rows))
        tape = Tape(1 + n + m)
        t, *rest = tape.given
        made["show"] = tape.program(self.show(t, rest[:n], rest[n:]))
        if self.reacts:
            tape = Tape(2 + n + 2 * m)
            t, due, *rest = tape.given
            state, u, present = rest[:n], rest[n : n + m], rest[n + m :]
            made["react"] = tape.program(self.react(t, due, state, u, present))
        if self.announces:
            tape = Tape(n)
            made["next"] = tape.program([self.next(tape.given)])
        return made

    @cached_property
    def native_programs(self) -> Mapping[str, Any]:
        """The same as compiled code takes them."""
        import hocket._native as _native

        return {
            name: _native.Program(
                given=each.given, constants=each.constants, operations=each.operations, results=each.results
            )
            for name, each in self.programs.items()
        }

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _MADE}

    @cached_property
    def ode(self) -> Ode | None:
        """The block as equations, to be read before the run; None: they do not tell all of it."""
        if self.reacts or not self.is_smooth:
            return None
        from hocket.simulators.ode import Ode

        n, m = self.states, len(self.inputs)
        tape = Tape(1 + n + m)
        t, *rest = tape.given
        rates = tape.program(self.rates(t, rest[:n], rest[n:]))
        return Ode(
            _Equation(rates),
            _Equation(self.programs["show"]),
            x0=self.initial_state,
            inputs=self.inputs,
            outputs=[replace(port, feedthrough=()) for port in self.outputs],
            feedthrough={port.name: list(port.feedthrough) for port in self.outputs},
            method="adaptive",  # its micro steps are short enough to be read as exact
        )


_MADE = ("programs", "native_programs", "ode")


def _power(s: Term, power: int) -> Term:
    value = s
    for _ in range(power - 1):
        value = value * s
    return value


@dataclass(frozen=True)
class _Equation:
    """Rates or outputs of a block as a function of an `Ode`."""

    program: Program

    def __call__(self, t: float, x: Array, u: Array) -> list[float]:
        return self.program([t, *map(float, x), *map(float, u)])


class BlockSimulator:
    """Runs the programs of a block; `native` is its twin, in the state reached."""

    instants = False

    def __init__(self, model: Block):
        self.model = model
        self.programs = model.programs
        self.state: list[float] = list(model.initial_state)

    @property
    def x(self) -> Array:
        """The state, for a linear model of it."""
        import numpy as np

        return np.array(self.state)

    @property
    def native(self) -> Any:
        """The twin in compiled code, in the state reached."""
        import hocket._native as _native

        model, programs = self.model, self.model.native_programs
        return _native.Block(
            inputs=len(model.inputs),
            outputs=len(model.outputs),
            degree=model.rows - 1,
            longest=model.longest or 0.0,
            instants=self.instants,
            takes_part=model.reacts,
            advance=programs.get("advance"),
            show=programs["show"],
            next=programs.get("next"),
            react=programs.get("react"),
            state=self.state,
        )

    def start(self, t: float) -> None:
        self.state = list(self.model.begin(t))

    def step(self, t: float, h: float, u: Array) -> float:
        if h != 0.0 and self.model.moves:
            count = micro_steps(h, self.model.longest)
            length = h / count
            wanted = self.model.rows * len(self.model.inputs)
            rows = u.tolist()
            for k in range(count):
                s = k * length
                # each input by itself: shift_origin takes a column
                columns = [shift_origin(list(column), s) for column in zip(*rows, strict=True)]
                moved = [value for row in zip(*columns, strict=True) for value in row]
                moved = [*moved, *[0.0] * wanted][:wanted]
                self.state = self.programs["advance"]([t + s, length, *self.state, *moved])
        return t + h

    def output(self, t: float, u: Array) -> Any:
        return self.programs["show"]([t, *self.state, *u[0].tolist()])

    def save(self) -> list[float]:
        return self.state.copy()

    def restore(self, state: list[float]) -> None:
        self.state = state.copy()

    def close(self) -> None:
        """Nothing is held."""


class EventBlockSimulator(BlockSimulator):
    """A block in which something happens at single instants.

    `event_grid` is above 0 where its level takes instants; elsewhere it meets its events in its steps.
    """

    event_grid = 0.0

    def __init__(self, model: Block):
        super().__init__(model)
        self.following = self.state
        """The state after the instant."""

    @property
    def instants(self) -> bool:  # type: ignore[override]
        """Whether its level takes instants."""
        return self.event_grid > 0.0

    def start(self, t: float) -> None:
        super().start(t)
        self._catch_up(t, [0.0] * len(self.model.inputs))

    def step(self, t: float, h: float, u: Array) -> float:
        if h == 0.0:
            return t
        self._catch_up(t, u[0].tolist())
        super().step(t, h, u)
        if not self.instants:
            self._catch_up(t + h, u[0].tolist())
        return t + h

    def _catch_up(self, limit: float, u: list[float]) -> None:
        """Let happen what nobody has let it react to, as in a sampled level."""
        if self.model.announces:
            while (next_time := self._next()) <= limit:
                self.state = self._reaction(next_time, True, u, [False] * len(u))

    def _next(self) -> float:
        return self.programs["next"](self.state)[0] if self.model.announces else math.inf

    def _reaction(self, t: float, due: bool, u: list[float], present: Sequence[bool]) -> list[float]:
        return self.programs["react"]([t, float(due), *self.state, *u, *map(float, present)])

    def due(self) -> float | None:
        """Return the time of the next event."""
        time = self._next()
        return time if math.isfinite(time) else None

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> None:
        """Find the state after the instant."""
        # a time that is announced may be rounded: without anything present it is the reason of this call
        due = not any(present) or self._next() <= t
        self.following = self._reaction(t, due, u.tolist(), present)

    def commit(self) -> bool:
        """Go over to the state after the instant."""
        self.state = self.following
        return False
