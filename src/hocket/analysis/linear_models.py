"""What stands for models in the linear reading: linear models, leaps over micro steps, played sources.

In:  matrices, and the model that they stand for; a Composite of linear models, or with linear stand-ins
Out: models that carry columns; the same Composite with leaps, equal but for rounding, or with its sources
     played sample by sample beside z, able to show which of their samples went where
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from hocket.engine.simulator_calls import output_array
from hocket.errors import SimulatorError
from hocket.model.clock import Duration, format_duration, seconds
from hocket.model.composite import Composite
from hocket.model.extrapolators import shift_origin
from hocket.model.ports import Port
from hocket.model.protocols import Array, Capabilities, Model, text_ports
from hocket.planning.parameters import leaves, with_leaves
from hocket.planning.planner import plan_tree
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.methods import Maps, MethodName, micro_steps
from hocket.simulators.ode import Ode
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import StateSpace, StateSpaceSimulator


@dataclass(frozen=True, eq=False)
class ModelStandIn:
    """What stand-ins share: to an orchestrator they are the original."""

    stands_for: Model

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs of the original."""
        return self.stands_for.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs of the original, with their feedthrough."""
        return self.stands_for.outputs

    @property
    def capabilities(self) -> Capabilities:
        """Those of the original: the plan depends on them."""
        return self.stands_for.capabilities

    @property
    def texts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Strings and binaries are wired as they were, and not carried: no linear model has them."""
        return text_ports(self.stands_for)


class IgnoredTexts:
    """Ends of the wires that carry texts."""

    def text(self, port: int) -> bytes:
        """Return nothing."""
        return b""

    def set_text(self, port: int, value: bytes) -> None:
        """Take no notice."""


@dataclass(frozen=True, eq=False)
class Tangent(ModelStandIn):
    """x' = A x + B u + rate, y = C x + D u + shift, in the units of the original, from x0 on."""

    A: Array
    B: Array
    C: Array
    D: Array
    x0: Array
    rate: Array
    """What is left of f at the operating point: zero for a linear model."""
    shift: Array
    method: MethodName = "exact"
    step: Fraction | None = None
    leaps: bool = False
    """Whether many micro steps are made at once."""

    @staticmethod
    def static(stands_for: Model, D: Array | None = None, shift: Array | None = None) -> Tangent:
        """Return a model without states, y = D u + shift; what is left out is zero."""
        p, m, none = len(stands_for.outputs), len(stands_for.inputs), np.zeros(0)
        D = np.zeros((p, m)) if D is None else D
        shift = np.zeros(p) if shift is None else np.array(shift, dtype=float)
        return Tangent(stands_for, np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0)), D, none, none, shift)

    @cached_property
    def linear(self) -> StateSpace:
        """The same with a last input that is always one, and carries what is constant."""
        n, m, p = len(self.A), self.B.shape[1], len(self.C)
        return StateSpace(
            A=self.A.tolist(),
            B=np.hstack([self.B, self.rate.reshape(n, 1)]).tolist() if n else (),
            C=self.C.tolist() if n else (),
            D=np.hstack([self.D, self.shift.reshape(p, 1)]).tolist(),
            x0=self.x0.tolist(),
            inputs=[f"u{number}" for number in range(m + 1)],
            outputs=[f"y{number}" for number in range(p)],
            method=self.method,
            step=self.step,
        )

    def open(self) -> TangentSimulator:
        return TangentSimulator((LeapingSimulator if self.leaps else StateSpaceSimulator)(self.linear))


FEW = 3
"""Micro steps up to which they are made one by one."""


class LeapingSimulator(StateSpaceSimulator):
    """A StateSpaceSimulator that makes all micro steps of a step at once, unless each is looked at."""

    def __init__(self, model: StateSpace):
        super().__init__(model)
        self.merged: dict[tuple[float, int, int], Array] = {}

    def step(self, t: float, h: float, u: Array) -> float:
        count = micro_steps(h, self.step_length)
        if count <= FEW or self.micro is not None or not self.size:
            return super().step(t, h, u)
        length, done = h / count, 0
        maps = self.maps(length, len(u) - 1)
        if maps.first is not None and self.last_h != length:
            super().step(t, length, u)
            done = 1
        coefficients = np.array(shift_origin(list(u), done * length))
        key = length, count - done, len(u)
        if key not in self.merged:
            self.merged[key] = _merged_step_matrix(maps, length, count - done)
        whole, size = self.merged[key], len(self.z)
        driven = coefficients.reshape(-1, *np.shape(self.z)[1:])
        self.z = whole[:, :size] @ self.z + whole[:, size:] @ driven
        self.last_h = length
        return t + h


def _merged_step_matrix(maps: Maps, length: float, count: int) -> Array:
    """Return what so many micro steps do, as a matrix that acts on [z, c_0, c_1, ...]."""
    powers, size, inputs = maps.Gamma.shape
    one = np.zeros((size + powers * inputs, size + powers * inputs))
    one[:size, :size] = maps.Phi
    one[:size, size:] = maps.Gamma.transpose(1, 0, 2).reshape(size, powers * inputs)
    shift = np.zeros((powers, powers))
    for k in range(powers):
        for j in range(k, powers):
            shift[k, j] = math.comb(j, k) * length ** (j - k)
    one[size:, size:] = np.kron(shift, np.eye(inputs))
    return np.asarray(np.linalg.matrix_power(one, count)[:size])


class LeapingModel(StateSpace):
    """A StateSpace whose simulators leap."""

    def open(self) -> StateSpaceSimulator:
        return LeapingSimulator(self)


def merge_micro_steps(composite: Composite) -> Composite:
    """Return the composite with leaps in place of the micro steps of its linear models."""
    changed: dict[str, Model] = {}
    for path, model in leaves(composite):
        if isinstance(model, Tangent) and model.step is not None:
            changed[path] = replace(model, leaps=True)
        elif type(model) is StateSpace and model.step is not None:
            changed[path] = leaping = object.__new__(LeapingModel)
            leaping.__dict__.update(vars(model))  # its matrices were checked before
    return with_leaves(composite, changed)


class InnerAttribute:
    """An attribute of a simulator that stands before another one, `inner`, which has it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, simulator: Any, owner: type | None = None) -> Any:
        return getattr(simulator.inner, self.name)

    def __set__(self, simulator: Any, value: Any) -> None:
        setattr(simulator.inner, self.name, value)


class TangentSimulator(IgnoredTexts):
    """The simulator of a StateSpace whose last input is one."""

    z, last_h, micro = InnerAttribute(), InnerAttribute(), InnerAttribute()

    def __init__(self, inner: StateSpaceSimulator):
        self.inner, self.size = inner, inner.size
        self.start, self.save, self.restore, self.close = inner.start, inner.save, inner.restore, inner.close

    def step(self, t: float, h: float, u: Array) -> float:
        return self.inner.step(t, h, _append_unit_input(u))

    def output(self, t: float, u: Array) -> Array:
        return self.inner.output(t, _append_unit_input(u))

    def slope(self, t: float, u: Array) -> Array:
        return self.inner.slope(t, _append_unit_input(u))


def _append_unit_input(u: Array) -> Array:
    one = np.zeros((len(u), 1, *u.shape[2:]))
    one[0] = 1.0
    return np.concatenate([u, one], axis=1)


@dataclass(frozen=True, eq=False)
class StepResponse(ModelStandIn):
    """What was identified in steps of one length h: a state and matrices, whose shapes each kind tells."""

    h: Fraction
    F: Array
    G: Array
    C: Array
    D: Array
    x0: Array
    rate: Array
    shift: Array

    def count_steps(self, h: float) -> int:
        """Return how many of its steps a step of h seconds is; raises SimulatorError if they do not fit."""
        length = float(self.h)
        count = round(h / length)
        if h != 0.0 and (count < 1 or abs(h - count * length) > 1e-9 * h):
            what = f"it was identified for steps of {format_duration(self.h)}, and is stepped by {h:.9g} s"
            raise SimulatorError(what, hint="`linearise` of the composite with the steps it shall have")
        return count


@dataclass(frozen=True, eq=False)
class IdentifiedModel(StepResponse):
    """x' = F x + sum_k G[k] c_k + rate over one step h; y = C x + sum_k D[k] c_k + shift.

    c_k are the coefficients of the inputs. The rows of C, D and shift are the outputs, and below them their
    slopes where these were asked for. G has the shape (powers, states, inputs), D (powers, rows, inputs).
    """

    singular: Array = field(default_factory=lambda: np.zeros(0))
    """The singular values of the Hankel matrix: the order is where they fall."""

    def open(self) -> IdentifiedSimulator:
        return IdentifiedSimulator(self)


class IdentifiedSimulator(IgnoredTexts):
    """Steps of one length; a longer one is made of several."""

    def __init__(self, model: IdentifiedModel):
        self.model = model
        self.size = len(model.F)
        self.length = float(model.h)
        self.z: Array = np.zeros(0)
        self.last_h = None

    def start(self, t: float) -> None:
        self.z = self.model.x0.copy()

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h, a whole number of steps as they were identified."""
        model, count = self.model, self.model.count_steps(h)
        if count and np.any(u[len(model.G) :]):
            what = f"it was identified for inputs of degree {len(model.G) - 1}, and gets degree {len(u) - 1}"
            raise SimulatorError(what, hint="`linearise` of the composite with its extrapolation")
        for number in range(count):
            coefficients = shift_origin(list(u), number * self.length)
            self.z = _add_constant(model.F @ self.z, model.rate)
            for Gamma, c in zip(model.G, coefficients, strict=False):
                self.z = self.z + Gamma @ c
        return t + h

    def output(self, t: float, u: Array) -> Array:
        return self._output_rows(u)[: len(self.model.outputs)]

    def slope(self, t: float, u: Array) -> Array:
        count = len(self.model.outputs)
        if len(self.model.C) < 2 * count:
            raise SimulatorError("its output derivatives were not identified: no connection asked for them")
        return self._output_rows(u)[count:]

    def _output_rows(self, u: Array) -> Array:
        y = _add_constant(self.model.C @ self.z, self.model.shift)
        for D, c in zip(self.model.D, u, strict=False):
            y = y + D @ c
        return y

    def save(self) -> Array:
        return self.z.copy()

    def restore(self, state: Array) -> None:
        self.z = state.copy()

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, eq=False)
class PeriodicModel(StepResponse):
    """What makes fixed steps inside, at times of its own: linear over a period of `phases` steps h.

    x' = F x + sum_i G[i] c_i + rate over a period, c_i the coefficients of the inputs in step i, and
    y = C[j] x + sum_i D[j, i] c_i + shift[j], i up to j, before step j (theory, section 10). G has the shape
    (phases, powers, states, inputs), C (phases, outputs, states), D (phases, phases, powers, outputs,
    inputs).
    """

    @property
    def phases(self) -> int:
        """The number of steps in a period."""
        return len(self.C)

    def open(self) -> PeriodicSimulator:
        return PeriodicSimulator(self)


class PeriodicSimulator(IgnoredTexts):
    """A state at the start of a period, and the inputs of the steps since then."""

    def __init__(self, model: PeriodicModel):
        self.model = model
        self.length = float(model.h)
        self.phase = 0
        self.z: Array = np.zeros(0)
        self.last_h = None
        self.size = len(model.F) + math.prod(model.G.shape[:2]) * model.G.shape[3]

    def start(self, t: float) -> None:
        self.phase = 0
        self.z = np.concatenate([self.model.x0, np.zeros(self.size - len(self.model.F))])

    def _past(self) -> Array:
        """Return the coefficients of the inputs since the period began, by phase and power."""
        phases, powers, _, inputs = self.model.G.shape
        return self.z[len(self.model.F) :].reshape(phases, powers, inputs, *self.z.shape[1:])

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h, a whole number of steps as they were identified."""
        model, count = self.model, self.model.count_steps(h)
        for number in range(count):
            self.z = self.z.copy()
            past = self._past()
            for power, c in enumerate(shift_origin(list(u), number * self.length)[: past.shape[1]]):
                past[self.phase, power] = c
            self.phase += 1
            if self.phase == model.phases:
                x = _add_constant(model.F @ self.z[: len(model.F)], model.rate)
                x = x + np.einsum("ikxu,iku...->x...", model.G, past)
                self.z = np.concatenate([x, np.zeros_like(self.z[len(model.F) :])])
                self.phase = 0
        return t + h

    def output(self, t: float, u: Array) -> Array:
        model, phase = self.model, self.phase
        y = _add_constant(model.C[phase] @ self.z[: len(model.F)], model.shift[phase])
        y = y + np.einsum("ikyu,iku...->y...", model.D[phase, :phase], self._past()[:phase])
        for D, c in zip(model.D[phase, phase], u, strict=False):
            y = y + D @ c
        return np.asarray(y)

    def slope(self, t: float, u: Array) -> Array:
        """Refuse: slopes are not those of a period."""
        raise SimulatorError("its output derivatives were not identified: it makes fixed steps inside")

    def save(self) -> Any:
        return self.z.copy(), self.phase

    def restore(self, state: Any) -> None:
        self.z, self.phase = state[0].copy(), state[1]

    def close(self) -> None:
        """Nothing is held."""


def _add_constant(columns: Array, constant: Array) -> Array:
    return columns + (constant if columns.ndim == 1 else constant[:, None])


LOOKS = 2000
"""Steps over which something without inputs is watched, to see whether it depends on time alone."""

Key = tuple[str, float]
"""Which call, output or slope, at what time."""


@dataclass(frozen=True, eq=False)
class PlayedSource(ModelStandIn):
    """A source: a function of time without state, so that it needs no linear model."""

    first: Array
    """Its outputs at the start."""
    began: Fraction = Fraction(0)
    """When the run starts, in seconds."""

    @property
    def jumps(self) -> bool:
        """Whether it announces jumps."""
        return isinstance(self.stands_for, (Table, Csv)) and self.stands_for.capabilities.events

    def open(self) -> PlayedSourceSimulator:
        return PlayedSourceSimulator(self)


class PlayedSourceSimulator(IgnoredTexts):
    """The source itself; or, while a step is read as a matrix, columns in place of its samples."""

    size = 0
    last_h = None

    def __init__(self, model: PlayedSource):
        self.model, self.count = model, len(model.outputs)
        self.live: Any = model.stands_for.open()
        self.z = np.zeros(0)
        self.asked: dict[Key, None] | None = None
        """The calls that were made, in order; None: nobody wants to know."""
        self.rows: dict[Key, Array] | None = None
        """What to answer with in place of numbers."""
        self.announces = False
        """Whether steps end where it jumps. In the matrix of a step they do not: it is that of all steps."""

    def start(self, t: float) -> None:
        self.live.start(t)

    def step(self, t: float, h: float, u: Array) -> float:
        """Let time pass; what announces its jumps shows the values before one until it is committed."""
        if self.announces:
            self.live.step(t, h, u)
        return t + h

    def announce_jumps(self, event_grid: float) -> None:
        """Let steps end where it jumps from now on, in a level whose instants are so many seconds apart."""
        self.announces, self.live.event_grid = True, event_grid

    def due(self) -> Fraction | None:
        """Return the time of the next jump."""
        due: Fraction | None = self.live.due() if self.announces else None
        return due

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> None:
        """Wait for the end of the instant."""
        self.live.react(t, n, u, present)

    def commit(self) -> bool:
        """Go over to the values after the jump."""
        return bool(self.live.commit())

    def output(self, t: float, u: Array) -> Array:
        return self._answer("output", t)

    def slope(self, t: float, u: Array) -> Array:
        return self._answer("slope", t)

    def _answer(self, call: str, t: float) -> Array:
        if self.asked is not None:
            self.asked[(call, t)] = None
        return self.sample_at(t, call) if self.rows is None else self.rows[(call, t)]

    @property
    def knots(self) -> list[float]:
        """When a table jumps or bends; of others that is not known."""
        return list(self.live.times) if isinstance(self.model.stands_for, (Table, Csv)) else []

    def sample_at(self, t: float, call: str = "output") -> Array:
        """Return the source's own numbers."""
        return output_array(getattr(self.live, call)(t, np.zeros((1, 0))), self.count)

    def jump_times(self, first: Fraction, last: Fraction) -> list[Fraction]:
        """Return when it jumps after a time, and not after another."""
        if not self.model.jumps:
            return []
        self.live.start(float(first))
        found: list[Fraction] = []
        while (due := self.live.due()) is not None and due <= last:
            found.append(due)
            self.live.start(float(due))
        self.live.start(float(first))
        return found

    def save(self) -> Any:
        return self.live.save() if self.announces else None

    def restore(self, state: Any) -> None:
        if self.announces:
            self.live.restore(state)

    def close(self) -> None:
        self.live.close()


def with_sources(composite: Composite, stop: Duration, start: Duration = 0) -> Composite:
    """Return the composite with its sources played: what has no inputs and depends on time alone.

    That is so for tables and functions, and for other black boxes that show the same at a time whether they
    were stepped there or not. `stop` is the length of the run and `start` when it starts, in seconds.
    """
    begin, step = seconds(start), composite.step
    steps = min(int(seconds(stop) / step) + 1, LOOKS)
    times = [float(begin + number * step) for number in range(steps + 1)]
    sampled = {level.path for level in plan_tree(composite).levels() if level.composite.sampled}
    changed: dict[str, Model] = {}
    for path, model in leaves(composite):
        original = model.stands_for if isinstance(model, ModelStandIn) else model
        if path.rpartition(".")[0] in sampled:
            continue  # it moves by its period, and its stand-in does so too
        known = isinstance(original, (Table, Csv, Function))
        if original.inputs or isinstance(original, (StateSpace, Ode, Fmu)):
            continue
        if original.capabilities.events and not known:
            continue  # what it does at instants is not a function of time that could be asked for
        first = _first_outputs(original, times[:1] if known else times)
        if first is not None:
            changed[path] = PlayedSource(original, first, begin)
    return with_leaves(composite, changed)


def named_leaves(composite: Composite) -> list[tuple[str, Any]]:
    """Return the models at the ends of the tree, as it will run, each with its path."""
    wiring = plan_tree(composite).leaves.wiring
    return list(zip(wiring.names, wiring.models, strict=True))


def played_sources(composite: Composite) -> tuple[tuple[str, PlayedSource], ...]:
    """Return what is played, by path, in the order of the leaves."""
    return tuple((name, model) for name, model in named_leaves(composite) if isinstance(model, PlayedSource))


def _first_outputs(model: Any, times: list[float]) -> Array | None:
    """Return the outputs at the start of what depends on time alone; None: it matters that it is stepped."""
    none, opened = np.zeros((1, 0)), []
    try:
        for _ in range(2):
            opened.append(model.open())
            opened[-1].start(times[0])
        first = output_array(opened[0].output(times[0], none), len(model.outputs)).copy()
        for t, end in pairwise(times):
            opened[0].step(t, end - t, none)
            stepped, other = (output_array(each.output(end, none), len(first)) for each in opened)
            if not np.array_equal(stepped, other):
                return None
        return first
    finally:
        for each in opened:
            with suppress(Exception):
                each.close()
