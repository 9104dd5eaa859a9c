"""Whole curves in place of values: a model that is given and shows samples over a window of many steps.

In:  a Model, which of its inputs and outputs are curves, and how many samples a window has
Out: a Model whose step is the window: it makes one step from sample to sample

The ports `u@0` ... `u@n` take the samples of the input `u`, `y@0` ... `y@n` show those of the output `y`; `y`
itself shows the last one. Between samples inputs are polynomials through the nearest ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hocket.errors import Fault, SimulatorError, raise_faults
from hocket.model.arguments import is_whole
from hocket.model.extrapolators import interpolate_samples, value_at
from hocket.model.ports import Port
from hocket.model.protocols import (
    Array,
    Capabilities,
    InitialisationSimulator,
    Model,
    RunEndSimulator,
    Sample,
    Simulator,
    period_of,
)
from hocket.simulators.wrappers.emulation import (
    LiveWrapper,
    ModelWrapper,
    check_wrapped,
    outputs_of,
    shift_inputs,
)


def sample_ports(port: Port, samples: int) -> Iterator[Port]:
    """Yield the ports of the samples of a curve: one more than there are steps in the window."""
    return (Port(f"{port.name}@{k}", port.unit, start=port.start) for k in range(samples + 1))


@dataclass(frozen=True)
class Windowed(ModelWrapper):
    """A model that steps by windows of `samples` steps, and exchanges the curves of some of its ports.

    `degree` is that of the polynomials through the samples of an input. Values inside a window are told as
    micro steps.
    """

    model: Model
    samples: int
    taken: tuple[str, ...] = ()
    """Inputs that are curves."""
    given: tuple[str, ...] = ()
    """Outputs that are curves too."""
    degree: int = 3

    def __post_init__(self) -> None:
        check_wrapped(self.model, "Windowed", "stepped by windows")
        raise_faults(self._faults())

    def _faults(self) -> Iterator[Fault]:
        if not is_whole(self.samples, 1):
            yield Fault(f"`samples` is {self.samples!r}", "samples", "a whole number from 1 on")
        if not is_whole(self.degree) or self.degree > 8:
            yield Fault(f"`degree` is {self.degree!r}", "degree", "0 to 8")
        able, name = self.model.capabilities, type(self.model).__name__
        why = "a window is made again until its curves agree"
        if not able.rollback:
            yield Fault(f"{why}, and `{name}` cannot roll back", "Windowed", "save() and restore()")
        if not able.variable_step:
            yield Fault(f"a window has many steps, and `{name}` accepts one length only", "Windowed")
        if able.stops_early or able.events or period_of(self.model) is not None:
            what = f"`{name}` has events or samples of its own, and curves have no jumps"
            yield Fault(what, "Windowed", "a simulator whose outputs are smooth within a window")

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs, samples in the place of those that are curves."""
        found: list[Port] = []
        for port in self.model.inputs:
            found += sample_ports(port, self.samples) if port.name in self.taken else [port]
        return tuple(found)

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs at the end of the window, and the samples of those that are curves.

        Direct feedthrough counts at the start, of first samples: what a sample leads to later is known when
        the window was made.
        """
        ends = [replace(port, feedthrough=self._reacts(port)) for port in self.model.outputs]
        samples = [
            replace(sample, feedthrough=self._reacts(port))
            for port in self.model.outputs
            if port.name in self.given
            for sample in sample_ports(port, self.samples)
        ]
        return (*ends, *samples)

    def _reacts(self, port: Port) -> tuple[str, ...]:
        return tuple(f"{name}@0" if name in self.taken else name for name in port.feedthrough)

    @property
    def bookkeeping(self) -> frozenset[str]:
        """The samples: what they show is told as micro steps."""
        own = {port.name for port in (*self.model.inputs, *self.model.outputs)}
        return frozenset(port.name for port in (*self.inputs, *self.outputs) if port.name not in own)

    @property
    def capabilities(self) -> Capabilities:
        inner = self.model.capabilities
        return replace(
            inner, slopes=False, slopeless=(), micro=True, order=None, resumes=False, reevaluates=False
        )

    def open(self) -> Simulator:
        return WindowedSimulator(self)


class WindowedSimulator(LiveWrapper):
    """A simulator that has made a window, and the samples of its outputs in it."""

    def __init__(self, recipe: Windowed):
        super().__init__(recipe.model, RunEndSimulator, InitialisationSimulator)
        self.recipe = recipe
        held = recipe.model.capabilities.input_degree
        self.degree = recipe.degree if held is None else min(recipe.degree, held)
        self.holds = held == 0 and recipe.degree > 0
        names = [port.name for port in recipe.model.outputs]
        self.shown = [names.index(name) for name in names if name in recipe.given]
        self.curves: Array | None = None
        """Outputs at the samples of the window that was made, a row per sample; None: none was."""
        self.micro: Callable[[float, Array], None] | None = None

    def start(self, t: float) -> None:
        super().start(t)
        self.curves = None

    def output(self, t: float, u: Array) -> Array:
        curves = self.curves
        if curves is None:
            y = np.array(outputs_of(self.inner, t, self._inputs_between(u, 0, 1.0)), dtype=float)
            curves = np.repeat(y[None, :], self.recipe.samples + 1, axis=0)
        return np.concatenate([curves[-1], *(curves[:, number] for number in self.shown)])

    def step(self, t: float, h: float, u: Array) -> float:
        """Make the steps of a window under the curves that were given."""
        count = self.recipe.samples
        length = h / count
        rows = []
        for k in range(count):
            begun = t + h * k / count
            given = self._inputs_between(u, k, length)
            if k == 0:
                rows.append(outputs_of(self.inner, t, given))
            end = t + h * (k + 1) / count
            returned = self.inner.step(begun, end - begun, given)
            if returned is not None and abs(float(returned) - end) > 1e-9 * length:
                what = f"a step of a window ended early, at t = {float(returned)!r} s"
                raise SimulatorError(what, expected="simulators without events")
            rows.append(outputs_of(self.inner, end, shift_inputs(given, end - begun)))
            if self.micro is not None:
                self.micro(end, self._told(rows[-1]))
        self.curves = np.array(rows, dtype=float)
        return t + h

    def _told(self, row: list[float]) -> Array:
        """Return outputs at a sample, as they stand among all: those of curves say what is known so far."""
        curves = [value for number in self.shown for value in [row[number]] * (self.recipe.samples + 1)]
        return np.array([*row, *curves], dtype=float)

    def _inputs_between(self, u: Array, k: int, length: float) -> Array:
        """Return polynomials in powers of the time since sample k, up to the next one."""
        count = self.recipe.samples
        columns: list[list[float]] = []
        place = 0
        for port in self.recipe.model.inputs:
            if port.name in self.recipe.taken:
                columns.append(self._curve_between(u[0, place : place + count + 1], k, length))
                place += count + 1
            else:
                columns.append([float(each) for each in shift_inputs(u, k * length)[:, place]])
                place += 1
        rows = max((len(column) for column in columns), default=1)
        found = np.zeros((rows, len(columns)))
        for number, column in enumerate(columns):
            found[: len(column), number] = column
        return found

    def _curve_between(self, samples: Array, k: int, length: float) -> list[float]:
        degree = min(self.recipe.degree, self.recipe.samples)
        first = min(max(0, k - (degree - 1) // 2), self.recipe.samples - degree)
        nodes = range(first, first + degree + 1)
        fitted = interpolate_samples([Sample((n - k) * length, float(samples[n]), 0.0) for n in nodes])
        if self.holds:
            return [float(value_at(fitted, 0.5 * length))]
        return [float(each) for each in fitted]

    def save(self) -> tuple[Any, Array | None]:
        return self.inner.save(), self.curves

    def restore(self, state: tuple[Any, Array | None]) -> None:
        inner, self.curves = state
        self.inner.restore(inner)
