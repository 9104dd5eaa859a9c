"""Sources in the linear reading: what depends on time alone is played, sample by sample, beside z.

In:  a Composite whose models have linear stand-ins
Out: the same Composite in which sources are themselves again, able to show which of their samples went where
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from hocket.analysis.linear_models import IgnoredTexts, ModelStandIn
from hocket.analysis.linear_reading import named_leaves
from hocket.engine.simulator_calls import output_array
from hocket.model.clock import Duration, seconds
from hocket.model.composite import Composite
from hocket.model.protocols import Array, Model
from hocket.planning.parameters import leaves, with_leaves
from hocket.planning.planner import plan_tree
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.ode import Ode
from hocket.simulators.sources import Csv, Function, Table
from hocket.simulators.state_space import StateSpace

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

    def open(self) -> PlayedSourceSimulator:
        """Make a live source."""
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

    def start(self, t: float) -> None:
        """Start the source."""
        self.live.start(t)

    def step(self, t: float, h: float, u: Array) -> float:
        """Time passes, nothing is kept."""
        return t + h

    def output(self, t: float, u: Array) -> Array:
        """Return the values at a time."""
        return self._answer("output", t)

    def slope(self, t: float, u: Array) -> Array:
        """Return the time derivatives at a time."""
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

    def save(self) -> None:
        """Nothing is kept."""

    def restore(self, state: None) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Close the source."""
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
        first = _first_outputs(original, times[:1] if known else times)
        if first is not None:
            changed[path] = PlayedSource(original, first, begin)
    return with_leaves(composite, changed)


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
