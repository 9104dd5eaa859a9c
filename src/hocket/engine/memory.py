"""The exchange memory of a level: samples with their times, and what extrapolators keep between them.

In:  outputs as they are read
Out: polynomials for the inputs as they are fed
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from hocket.coupling.wiring import OWN, Drive, Wiring
from hocket.model.clock import Clock
from hocket.model.extrapolators import Hold, shift_origin
from hocket.model.protocols import Array, Extrapolator, Sample, Value

Ring: TypeAlias = deque[tuple[int, Value, Value]]
"""Samples of an output, oldest first: tick, value, slope."""


@dataclass(slots=True)
class FilterMemory:
    """The memory w of one connection: before and after the sample at tick `seen`."""

    seen: int
    before: Value
    after: Value


class ExchangeMemory:
    """Samples per output, filters per connection, polynomials per child.

    `deeper` samples are kept beyond what extrapolators look at.
    """

    def __init__(self, wiring: Wiring, clock: Clock, degrees: list[int], deeper: int = 0):
        self.wiring = wiring
        self.clock = clock
        self.degrees = degrees
        """Per child: the degree of its input polynomials."""
        self.depths = [[1] * len(model.outputs) for model in wiring.models]
        self.sloped = [False] * len(wiring.models)
        """Per child: whether its samples need slopes."""
        for drives in wiring.drives:
            for drive in drives:
                if drive is not None and drive.child != OWN:
                    wanted = drive.extrapolation or Hold()
                    depth = self.depths[drive.child]
                    depth[drive.port] = max(depth[drive.port], wanted.samples + deeper)
                    self.sloped[drive.child] |= wanted.slopes
        self.rings: list[list[Ring]] = [[deque(maxlen=depth) for depth in depths] for depths in self.depths]
        self.filters: dict[tuple[int, int], FilterMemory] = {}
        self.u: list[Array] = []
        self.base: list[int] = [0] * len(wiring.models)
        """Per child: the tick from which its polynomials count."""
        self.held: set[tuple[int, int]] = set()
        """The inputs that are overridden, child and number: they are not fed."""

    def clear(self, shape: tuple[int, ...] = ()) -> None:
        """Forget everything; numbers get this shape: () in a run, (columns,) in the linear reading."""
        self.filters.clear()
        for rings in self.rings:
            for ring in rings:
                ring.clear()
        self.u = []
        for model, degree in zip(self.wiring.models, self.degrees, strict=True):
            u = np.zeros((degree + 1, len(model.inputs), *shape))
            for index, port in enumerate(model.inputs):
                u[0, index] = port.start or 0.0
            self.u.append(u)

    def forget_past(self) -> None:
        """Keep only the newest samples: what was before a jump does not lead beyond it."""
        for rings in self.rings:
            for ring in rings:
                while len(ring) > 1:
                    ring.popleft()

    def forget_signal(self, child: int, port: int) -> None:
        """Keep only the newest sample of one output, and start anew what extrapolators have kept of it."""
        ring = self.rings[child][port]
        while len(ring) > 1:
            ring.popleft()
        for target, index in self.targets.get((child, port), ()):
            self.filters.pop((target, index), None)

    @cached_property
    def targets(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Per output: the inputs that it drives, child and number."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for target, drives in enumerate(self.wiring.drives):
            for index, drive in enumerate(drives):
                if drive is not None:
                    found.setdefault((drive.child, drive.port), []).append((target, index))
        return found

    def store(
        self, child: int, tick: int, y: Array, slopes: Array | None, ports: set[int] | None = None
    ) -> None:
        """Keep the outputs of a child at a tick, or some; a sample at the same tick is replaced."""
        for port in range(len(self.rings[child])) if ports is None else sorted(ports):
            self.put_sample(child, port, tick, y[port], None if slopes is None else slopes[port])

    def put_sample(self, child: int, port: int, tick: int, value: Value, slope: Value) -> None:
        """Keep one output of a child at a tick; what was kept of that time or later is gone."""
        ring = self.rings[child][port]
        while ring and ring[-1][0] >= tick:
            ring.pop()
        ring.append((tick, value, slope))

    def feed(
        self, child: int, tick: int, inputs: Array, inputs_base: int, ports: set[int] | None = None
    ) -> None:
        """Fit the polynomials of a child for a step that begins at tick, or those of some of its inputs."""
        u = self.u[child]
        if ports is not None and len(u) > 1 and self.base[child] != tick:
            u[:] = shift_origin(list(u), self.clock.span(tick - self.base[child]))
        self.base[child] = tick
        for index, drive in enumerate(self.wiring.drives[child]):
            if drive is None or (ports is not None and index not in ports) or (child, index) in self.held:
                continue
            coefficients = (
                self._pass_input(drive, tick, inputs, inputs_base)
                if drive.child == OWN
                else self._fit_samples(child, index, drive, tick)
            )
            if drive.gain != 1.0 or drive.offset != 0.0:
                coefficients = [drive.gain * c for c in coefficients]
                coefficients[0] = coefficients[0] + drive.offset
            for power in range(len(u)):
                u[power, index] = coefficients[power] if power < len(coefficients) else 0.0

    def _pass_input(self, drive: Drive, tick: int, inputs: Array, base: int) -> list[Value]:
        """Return an input of the level, seen from tick: the same curve, or held if so asked."""
        coefficients = shift_origin(list(inputs[:, drive.port]), self.clock.span(tick - base))
        return coefficients[:1] if isinstance(drive.extrapolation, Hold) else coefficients

    def _fit_samples(self, child: int, index: int, drive: Drive, tick: int) -> list[Value]:
        extrapolator: Extrapolator = drive.extrapolation or Hold()
        ring = self.rings[drive.child][drive.port]
        newest = [ring[-1]] if extrapolator.samples == 1 else list(ring)[-extrapolator.samples :]
        samples = [Sample(self.clock.span(at - tick), value, slope) for at, value, slope in newest]
        key = (child, index)
        memory = self.filters.get(key)
        if memory is None:
            w = extrapolator.start(samples[-1].value)
            memory = self.filters[key] = FilterMemory(newest[-1][0], w, w)
        elif memory.seen != newest[-1][0]:
            memory.seen, memory.before = newest[-1][0], memory.after
        coefficients, memory.after = extrapolator.fit(samples, memory.before)
        return coefficients

    def save(self) -> Any:
        """Return a copy of everything."""
        rings = [[list(ring) for ring in rings] for rings in self.rings]
        filters = {key: (f.seen, f.before, f.after) for key, f in self.filters.items()}
        return rings, filters, [u.copy() for u in self.u], list(self.base)

    def restore(self, state: Any) -> None:
        """Go back to a saved copy."""
        rings, filters, u, base = state
        for mine, saved in zip(self.rings, rings, strict=True):
            for ring, samples in zip(mine, saved, strict=True):
                ring.clear()
                ring.extend(samples)
        self.filters = {key: FilterMemory(*kept) for key, kept in filters.items()}
        self.u = [each.copy() for each in u]
        self.base = list(base)
