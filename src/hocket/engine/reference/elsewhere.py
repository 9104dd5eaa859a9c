"""What a level does about children that live on other hosts: it keeps their time and leaves room.

In:  the instructions of the plan about these children
Out: their clocks, and samples without a value at the right times; messages bring the values

Every host goes through the same plan, so that all agree on what is sent when; only what is its own is done.
A value that is used before its message has come is not a number, and never an old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import nan
from typing import Any

import numpy as np

from hocket.engine.protocol import LiveLevel
from hocket.model.composite import as_level
from hocket.model.protocols import Array
from hocket.plan.messages import Node


class Elsewhere:
    """In the place of a simulator that lives on another host."""

    def __init__(self, outputs: int):
        self.outputs = outputs

    def start(self, t: float) -> None:
        """It is started where it lives."""

    def output(self, t: float, u: Array) -> Array:
        """Return no numbers: messages bring them."""
        return np.full(self.outputs, nan)

    def step(self, t: float, h: float, u: Array) -> float:
        """It makes its steps where it lives."""
        return t + h

    def save(self) -> None:
        """It is saved where it lives."""

    def restore(self, state: object) -> None:
        """It is rolled back where it lives."""

    def close(self) -> None:
        """It is closed where it lives."""


def step_elsewhere(level: LiveLevel, child: int, ticks: int | Fraction) -> None:
    """Let time pass for a child that makes its step on another host."""
    tick, model = level.ticks[child], level.wiring.models[child]
    level.ticks[child] = tick + ticks  # type: ignore[assignment]  # parts of ticks exist where steps end early
    if level.traffic is not None:
        level.traffic.step(child)
    if as_level(model) is None:
        return
    inner: Any = level.children[child]
    end = tick + ticks
    if inner.adaptive or inner.instants.around or ticks % inner.length == 0:
        inner.now = end // inner.length * inner.length if inner.instants.around else end
    elif end == inner.now + inner.length:
        inner.now = end


def read_elsewhere(level: LiveLevel, child: int, chosen: set[int] | None, fresh: set[Node]) -> None:
    """Leave room for the samples of a child that is read on another host; what is not `fresh` stays."""
    tick = level.ticks[child]
    inner: Any = level.children[child]
    at = tick if as_level(level.wiring.models[child]) is None else min(tick, inner.now)
    count = len(level.wiring.models[child].outputs)
    for port in range(count) if chosen is None else sorted(chosen):
        if (child, port) in fresh or level.memory.rings[child][port][-1][0] != at:
            level.memory.put_sample(child, port, at, nan, None)


def solve_elsewhere(level: LiveLevel, children: Sequence[int], ports: Iterable[str]) -> None:
    """Take note of a loop that is solved on another host."""
    if level.traffic is not None:
        nodes = [level.wiring.output_places[path] for path in ports]
        level.traffic.solve(children, nodes)
        every = {
            (child, port) for child in children for port in range(len(level.wiring.models[child].outputs))
        }
        for child in children:
            read_elsewhere(level, child, None, every)
