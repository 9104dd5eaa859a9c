"""Pulses of sources that fall between two samples: their level steps over them and never sees them.

In:  a PlanTree, start and stop of its run
Out: a MissedPulse for each output of a table, a file or a function that moves within a macro step only
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocket.errors import HocketError
from hocket.model.composite import traits_of
from hocket.model.protocols import Array
from hocket.planning.tree import PlanTree
from hocket.simulators.sources import Csv, Function, Table

PULSE = 0.25
"""Of its range: an output that leaves the values at both ends of a step by more has a pulse within it."""
LOOKS = 8
"""How often a function is asked within a macro step."""
MOST = 20_000
"""How often it is asked in all: in the steps after that its pulses are not noticed."""


@dataclass(frozen=True)
class MissedPulse:
    """An output of a source that moves between two samples and is back at the next one."""

    port: str
    at: float
    """The first time, in seconds."""
    width: float
    """How long the first one lasts at most, in seconds."""
    step: float
    """Of its level, in seconds."""

    def __str__(self) -> str:
        return (
            f"`{self.port}` has a pulse at {self.at:.6g} s that lasts {self.width:.3g} s, between two "
            f"samples of the macro step {self.step:g} s: the others do not see it; shorten the step, or "
            'announce the pulse by jumps (a `Table` with repeated times or interpolation="hold")'
        )


def missed_pulses(design: PlanTree, start: float, stop: float) -> Iterator[MissedPulse]:
    """Yield the outputs of sources with pulses between samples; jumps that are announced are met."""
    for level in design.levels():
        if traits_of(level.composite.orchestrator).adaptive:
            continue
        step = float(level.composite.step)
        for child, model in enumerate(level.wiring.models):
            if isinstance(model, (Table, Csv, Function)):
                yield from _source_pulses(model, level.name(child), start, stop, step)


def _source_pulses(model: Any, name: str, start: float, stop: float, step: float) -> Iterator[MissedPulse]:
    steps = int((stop - start) / step + 1e-6)
    try:
        source = model.open()
        source.start(start)
        if isinstance(model, Function):
            steps = min(steps, MOST // LOOKS)
            inside: Array = start + step / LOOKS * np.arange(steps * LOOKS + 1, dtype=float)
            jumps: list[float] = []
        else:
            inside = np.array([t for t in source.times if start <= t <= start + steps * step])
            jumps = [source.times[row] for row in source.jumps]
        grid: Array = start + step * np.arange(steps + 1, dtype=float)
        whole = np.clip(((inside - start) / step).astype(int), 0, max(steps - 1, 0))
        # between its rows a table has no values beyond theirs: it is asked around them only
        asked = np.unique(np.concatenate([[0, steps], whole, np.minimum(whole + 1, steps)]))
        ends, between = (_outputs(source, times) for times in (grid[asked], inside))
    except (HocketError, ArithmeticError, TypeError, ValueError, LookupError):
        return  # the run itself says what is wrong with it
    if not len(between) or not np.isfinite(ends).all() or not np.isfinite(between).all():
        return
    met = {int((t - start) / step) for t in jumps}
    free = np.array([index not in met for index in whole])
    for column, port in enumerate(model.outputs):
        held = not isinstance(model, Function) and model.interpolation == "hold"
        if port.discrete or held or steps < 1:
            continue
        both = [ends[np.searchsorted(asked, index), column] for index in (whole, whole + 1)]
        own = between[:, column]
        height = np.maximum(own - np.maximum(*both), np.minimum(*both) - own)
        span = max(float(np.ptp(own)), float(np.ptp(ends[:, column])))
        seen = np.flatnonzero(free & (height > PULSE * span)) if span > 0.0 else np.zeros(0, dtype=int)
        if len(seen):
            first = int(seen[0])
            last = first
            while last + 1 < len(inside) and last + 1 in seen and whole[last + 1] == whole[first]:
                last += 1
            begin = inside[first - 1] if first else grid[whole[first]]
            end = inside[last + 1] if last + 1 < len(inside) else grid[whole[first] + 1]
            begin, end = max(begin, grid[whole[first]]), min(end, grid[whole[first] + 1])
            yield MissedPulse(f"{name}.{port.name}", float(inside[first]), float(end - begin), step)


def _outputs(source: Any, times: Array) -> Array:
    rows = [np.atleast_1d(np.asarray(source.output(float(t), np.zeros(0)), dtype=float)) for t in times]
    return np.array(rows)
