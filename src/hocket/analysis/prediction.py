"""How wrong it will be: the step as a matrix, applied again and again, against the exact coupled system.

In:  a Reading, or a Composite of linear models, and a stop time
Out: a PredictedError: per output the error that one step adds and the largest of the run; the order
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hocket.analysis.exact import Exact, exact, orbit
from hocket.analysis.lasting import place
from hocket.analysis.linear import Reading, read_linear
from hocket.analysis.order import Order, order_of
from hocket.analysis.pictures import saved
from hocket.analysis.places import places
from hocket.analysis.variants import scaled
from hocket.clock import Duration, seconds, written
from hocket.engine.blueprint import clock_of, opened
from hocket.engine.composite import Composite
from hocket.engine.initialise import initialise, levels_of
from hocket.engine.interpreter import Level
from hocket.errors import HocketError, ScenarioError
from hocket.files.drawing import Series, drawn, extra
from hocket.model import Array

LARGEST = 2**23
"""How many numbers of z are held at a time."""

Seen = dict[str, dict[float, Any]]
"""Per leaf and time: its outputs, as numbers or as rows."""


@dataclass(frozen=True)
class PortError:
    """One output: how far from the exact solution it will be."""

    port: str
    unit: str
    local: float
    """The largest error that one step makes when all of its past is exact."""
    largest: float
    """The largest error of the run, at the time `at` in seconds from the start."""
    at: float
    scale: float
    """The largest exact value."""
    series: tuple[Array, Array, Array] | None = None
    """Times, predicted values and exact values, if trajectories were asked for."""

    @property
    def relative(self) -> float:
        """The largest error over the largest value; of an output that should stay zero, infinite or zero."""
        if self.scale > 0.0 and math.isfinite(self.largest):
            return self.largest / self.scale
        return math.inf if self.largest > 0.0 else 0.0


@dataclass(frozen=True)
class PredictedError:
    """How wrong a run will be, port by port, the worst in relation to its values first."""

    ports: tuple[PortError, ...]
    stop: float
    step: float
    """Seconds of the step that `local` is about: the outermost, or the least multiple with longer ones."""
    micro: bool
    order: Order

    @property
    def worst(self) -> PortError:
        """The port with the largest error in relation to its values."""
        return self.ports[0]

    def __getitem__(self, port: str) -> PortError:
        for each in self.ports:
            if each.port == port:
                return each
        raise ScenarioError(f"no error of `{port}` was predicted", hint=f"`{self.ports[0].port}`, for one")

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each port."""
        return [
            {
                "port": each.port,
                "unit": each.unit,
                "error of one step": each.local,
                "largest error": each.largest,
                "at [s]": each.at,
                "of the largest value": each.relative,
            }
            for each in self.ports
        ]

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the errors over time if trajectories were asked for, else what one step adds and the run."""
        kept = [(each, each.series) for each in self.ports if each.series is not None]
        if not kept:
            return _dots(self, path)
        lines = [Series(t, values - truth, each.unit, each.port) for each, (t, values, truth) in kept]
        return drawn(lines, "predicted error", path)


def predicted_error(
    what: Reading | Composite,
    stop: Duration,
    micro: bool = False,
    trajectories: bool = False,
    measure: bool = True,
) -> PredictedError:
    """Return how wrong a run to `stop` (seconds from its start) will be, without running it.

    Errors are taken where a run keeps rows: at the steps of each level, or with `micro` at the micro steps of
    each simulator. `measure` also measures the order, from two more readings with shorter steps. The error is
    that of the linear models: what stands for others adds how badly it fits.
    """
    reading = what if isinstance(what, Reading) else read_linear(what)
    span = seconds(stop)
    if span < reading.composite.step:
        hint = f"at least one step, {written(reading.composite.step)}"
        raise ScenarioError(f"there is no step before the stop at {written(span)}", "stop", hint=hint)
    with np.errstate(over="ignore", invalid="ignore"):  # what is unstable may grow beyond all numbers
        solution = exact(reading.composite)
        if not solution.ports:
            raise ScenarioError("there are no outputs whose error could be predicted")
        found = _global(reading, solution, span, micro, trajectories)
        errors = [overall(found)] if measure else []
        try:
            for part in (2, 4) if measure else ():
                shorter = read_linear(scaled(reading.composite, Fraction(1, part), own=True))
                errors.append(overall(_global(shorter, solution, span, micro, False, local=False)))
        except HocketError:
            errors = []  # some stand-ins are good for one step only
    order = order_of(reading.composite, errors)
    return PredictedError(tuple(found), float(span), float(reading.period), micro, order)


def overall(found: Sequence[PortError]) -> float:
    """Return the largest error in relation to the values; outputs that should stay zero have none."""
    return max((each.relative for each in found if each.scale > 0.0), default=0.0)


# the run


def _global(
    reading: Reading, solution: Exact, span: Fraction, micro: bool, keep: bool, local: bool = True
) -> list[PortError]:
    """Return the errors of the run, the worst first."""
    alone = _local(reading, solution, span) if local else dict.fromkeys(solution.ports, math.nan)
    units = dict(zip(solution.ports, _units(reading), strict=True))
    tallies = {port: _Tally() for port in solution.ports}
    weights = dict(zip(solution.ports, solution.weights(), strict=True))
    before, truth = np.zeros(0), np.zeros((0, 0))
    for ports, t, values in _pieces(reading, span, micro):
        if not np.array_equal(t, before):
            before, truth = t, solution.along(t)
        for column, port in enumerate(ports):
            tallies[port].add(t, values[:, column], truth @ weights[port], keep)
    found = [
        PortError(
            port, units[port], alone[port], tally.largest, round(tally.at, 12), tally.scale, tally.series()
        )
        for port, tally in tallies.items()
    ]
    return sorted(found, key=lambda each: -each.relative)


def _units(reading: Reading) -> list[str]:
    models = reading.composite.blueprint.leaves.wiring.models
    return [port.unit for model in models for port in model.outputs]


class _Tally:
    """The largest error so far of one port."""

    def __init__(self) -> None:
        self.largest, self.at, self.scale = -1.0, 0.0, 0.0
        self.kept: list[tuple[Array, Array, Array]] = []

    def add(self, t: Array, values: Array, truth: Array, keep: bool) -> None:
        if not len(t):
            return
        wrong = np.abs(values - truth)
        wrong[np.isnan(wrong)] = np.inf
        worst = int(np.argmax(wrong))
        if wrong[worst] > self.largest:
            self.largest, self.at = float(wrong[worst]), float(t[worst])
        self.scale = max(self.scale, float(np.abs(truth).max()))
        if keep:
            self.kept.append((t, values, truth))

    def series(self) -> tuple[Array, Array, Array] | None:
        if not self.kept:
            return None
        t, values, truth = (np.concatenate(parts) for parts in zip(*self.kept, strict=True))
        return t, values, truth


def _pieces(reading: Reading, span: Fraction, micro: bool) -> Iterator[tuple[list[str], Array, Array]]:
    """Yield outputs over time, leaf by leaf: the start phase as it is, then by powers of Phi."""
    early, inside = _observed(reading, micro)
    wiring = reading.composite.blueprint.leaves.wiring
    ports = {
        name: [f"{name}.{port.name}" for port in model.outputs]
        for name, model in zip(wiring.names, wiring.models, strict=True)
        if model.outputs
    }
    end = float(span) * (1.0 + 1e-12)
    for name in ports:
        t = np.array([at for at in early[name] if at <= end])
        yield ports[name], t, np.array(list(early[name].values()))[: len(t)]
    whole, z = affine(reading), np.append(reading.z, 1.0)
    periods = max(0, math.ceil((span - reading.since) / reading.period))
    width = max(1, LARGEST // len(z))
    for start in range(0, periods, width):
        steps = orbit(whole, z, min(width, periods - start))
        z = steps[-1]
        begins = float(reading.since) + float(reading.period) * np.arange(start, start + len(steps) - 1)
        for name in ports:
            offsets, rows = inside[name]
            t = (begins[:, None] + offsets).ravel()
            values = (steps[:-1] @ rows.reshape(-1, len(z)).T).reshape(-1, len(ports[name]))
            yield ports[name], t[t <= end], values[t <= end]


def affine(reading: Reading) -> Array:
    """Return Phi and c as one matrix that acts on [z, 1]."""
    size = len(reading.z)
    whole = np.zeros((size + 1, size + 1))
    whole[:size, :size], whole[:size, size], whole[size, size] = reading.Phi, reading.c, 1.0
    return whole


def _observed(reading: Reading, micro: bool) -> tuple[Seen, dict[str, tuple[Array, Array]]]:
    """Return the start phase; and of one period the times inside it, with outputs as rows on [z, 1]."""
    design = reading.composite.blueprint
    root = opened(design, clock_of(design))
    try:
        initialise(root, 0.0)
        ticks = root.clock.ticks(reading.period)
        seen = _watched(root, micro)
        _keep(root, seen)
        while root.now < root.clock.ticks(reading.since):
            root.advance(root.now, ticks, root.inputs[1])
        early: Seen = {name: dict(rows) for name, rows in seen.items()}
        if not micro and all(level.length == ticks for level in levels_of(root)):
            return early, _ends(reading)
        for rows in seen.values():
            rows.clear()
        return early, _inside(root, seen, len(reading.z), ticks)
    finally:
        root.close()


def _ends(reading: Reading) -> dict[str, tuple[Array, Array]]:
    """Return the outputs at the end of a period: the newest samples are a part of z."""
    newest, wiring = _newest(reading), reading.composite.blueprint.leaves.wiring
    whole, end = affine(reading), np.array([float(reading.period)])
    return {
        name: (end, whole[[newest[f"{name}.{port.name}"] for port in model.outputs]][None])
        for name, model in zip(wiring.names, wiring.models, strict=True)
    }


def _newest(reading: Reading) -> dict[str, int]:
    """Return where in z the newest sample of each output is."""
    return {
        f"{cell.owner}.{cell.name}": index
        for index, cell in enumerate(reading.cells)
        if cell.kind == "sample" and cell.back == 0
    }


def _inside(root: Level, seen: Seen, size: int, ticks: int) -> dict[str, tuple[Array, Array]]:
    """Run one period on the identity, and on zero for what does not depend on z."""
    place(root, np.hstack([np.eye(size), np.zeros((size, 1))]))
    now = root.clock.time(root.now)
    root.advance(root.now, ticks, root.inputs[1])
    found = {}
    for name, rows in seen.items():
        outputs = np.array([np.broadcast_to(each, (len(each), size + 1)) for each in rows.values()])
        outputs[:, :, :size] -= outputs[:, :, size:]
        found[name] = np.array(list(rows)) - now, outputs
    return found


class _Watch:
    """Stands where a level keeps its rows, and keeps the outputs of its leaves by time."""

    count = 0

    def __init__(self, seen: Seen):
        self.seen = seen

    def keep(self, level: Level, tick: int) -> None:
        """Keep the outputs at a tick; they replace those of the same time."""
        for child in range(len(level.children)):
            if level.name(child) in self.seen:
                newest = [ring[-1][1] for ring in level.memory.rings[child]]
                self.seen[level.name(child)][level.clock.time(tick)] = np.array(newest)

    def drop(self, count: int) -> None:
        """What is repeated replaces what was kept."""


def _watched(root: Level, micro: bool) -> Seen:
    """Let levels, or simulators with micro steps, report outputs from now on; return where they will be."""
    seen: Seen = {}
    for level in levels_of(root):
        coarse: Seen = {}
        for child, simulator in enumerate(level.children):
            if isinstance(simulator, Level):
                continue
            kept = seen[level.name(child)] = {}
            if micro and hasattr(simulator, "micro"):
                live: Any = simulator
                live.micro = kept.__setitem__
            else:
                coarse[level.name(child)] = kept
        watch: Any = _Watch(coarse)
        level.rows = watch
    return seen


def _keep(root: Level, seen: Seen) -> None:
    """Keep the outputs at the start."""
    watch = _Watch(seen)
    for level in levels_of(root):
        watch.keep(level, 0)


# one step


def _local(reading: Reading, solution: Exact, span: Fraction) -> dict[str, float]:
    """Return the largest error of one step from an exact past, per output, along the exact solution.

    The values at the beginning of the step are exact (Hafner 2021, equation 6.18), and so is the past.
    """
    past = places(solution, reading.root, reading.cells)
    period = float(reading.period)
    first = max(1, math.ceil(float(past.ago.max(initial=0.0)) / period - 1e-9))
    count = max(1, int(span / reading.period) - first)
    newest = _newest(reading)
    chosen = [newest[port] for port in solution.ports]
    Phi, c = reading.Phi[chosen], reading.c[chosen]
    largest = np.zeros(len(chosen))
    width = max(1, LARGEST // max(1, len(reading.cells)))
    for start in range(0, count, width):
        times = np.array(
            [period * number for number in range(first + start, first + min(start + width, count))]
        )
        after = past.filled(solution, times) @ Phi.T + c
        wrong = np.abs(after - solution.outputs(times + period))
        largest = np.maximum(largest, np.where(np.isnan(wrong), np.inf, wrong).max(axis=0))
    return dict(zip(solution.ports, largest.tolist(), strict=True))


def _dots(found: PredictedError, path: Path | str | None) -> Any:
    shown = found.ports[:30][::-1]
    size = 9, 1.4 + 0.28 * len(shown)
    figure = extra("matplotlib.figure", "plot").Figure(figsize=size, layout="constrained")
    axes, at = figure.subplots(), np.arange(len(shown))
    axes.plot([each.largest for each in shown], at, "o", color="#D55E00", label=f"over {found.stop:g} s")
    axes.plot(
        [each.local for each in shown], at, "d", color="#0072B2", label=f"of one step, {found.step:g} s"
    )
    axes.set_xscale("log")
    axes.set_yticks(at, [f"{each.port} [{each.unit or '-'}]" for each in shown], fontsize="small")
    axes.set_xlabel("largest error")
    axes.set_title("predicted error, the worst port first", loc="left", fontsize="medium", fontweight="bold")
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.03))
    return saved(figure, path)
