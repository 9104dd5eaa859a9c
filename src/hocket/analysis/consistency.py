"""Do the inputs agree with the outputs that drive them? Before a run as a bound, after it as it was.

In:  a Reading or a Composite of linear models; or a Run
Out: a Consistency (relative consistency delta); a Defect (the connection defect of a run)

Delta follows the error well while the step of one coupling varies (rank correlation 0.93 to 0.999), and badly
across couplings at one step (0.35 to 0.57; theory, section 1): choose steps by it, not couplings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from hocket.analysis.exact_placement import exact_places
from hocket.analysis.exact_solution import exact_solution
from hocket.analysis.linear_reading import Reading, list_cells, scatter_state
from hocket.analysis.measure import Measure, Rows
from hocket.engine.initialise import initialise, levels_of
from hocket.engine.opening import open_level
from hocket.engine.reference.level import Level
from hocket.errors import ScenarioError
from hocket.files.formats import read
from hocket.files.plotting import Series, draw_series, new_figure, save_figure, set_axes_title
from hocket.files.run_folder import SCENARIO, Run
from hocket.model.composite import Composite
from hocket.model.extrapolators import value_at
from hocket.model.protocols import Array
from hocket.model.units import Share
from hocket.planning.planner import plan_tree
from hocket.planning.tree import Leaves, clock_of

NormName: TypeAlias = Literal["fro", "two", "one", "inf"]
_NORMS: dict[str, Any] = {"fro": "fro", "two": 2, "one": 1, "inf": np.inf}

ADVICE = "ranks the steps of one coupling well (0.93 to 0.999), couplings at one step badly (0.35 to 0.57)"
"""What rank correlation with the true error was found (theory, section 1)."""
FOREIGN = "the states of identified models have units of their own, so that other steps cannot be compared"


# before a run


@dataclass(frozen=True, eq=False)
class Consistency(Measure):
    """Relative consistency (Glumac & Kovacic 2019, equation 59): the worst defect from states of size one.

    It ranks the steps of one coupling well (rank correlation with the true error 0.93 to 0.999), and
    couplings at one step badly (0.35 to 0.57). It depends on the units of the states.
    """

    delta: float
    k: int
    norm: NormName
    inputs: tuple[str, ...]
    states: tuple[str, ...]
    matrix: Array
    """(S_u - L S_y) Phi^k Phi0 R_v: the defect of each input after k steps, per unit of each state."""
    note: str = ADVICE

    title = "relative consistency (Glumac and Kovacic)"

    def rows(self) -> Rows:
        """Return the contribution of each input, the largest first."""
        parts = np.linalg.norm(self.matrix, axis=1)
        order = np.argsort(-parts, kind="stable")
        return [{"input": self.inputs[row], "contribution": float(parts[row])} for row in order]

    def notes(self) -> list[str]:
        """Return delta with what it is good for."""
        norm = f"k = {self.k}, norm {self.norm}, in the units of the states"
        return [f"delta = {self.delta:.4g} ({norm}): {self.note}"]

    def facts(self) -> dict[str, Any]:
        """Return delta and the contributions."""
        return {"relative consistency": self.delta, "consistency of inputs": self.rows()}

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the defect of each input per unit of each state."""
        size = 3.5 + 0.4 * len(self.states), 1.8 + 0.3 * len(self.inputs)
        figure, (axes,) = new_figure(*size)
        picture = axes.imshow(np.abs(self.matrix), cmap="Blues", aspect="auto", vmin=0.0)
        axes.set_xticks(np.arange(len(self.states)), self.states, rotation=90, fontsize="small")
        axes.set_yticks(np.arange(len(self.inputs)), self.inputs, fontsize="small")
        title = f"defect after {self.k} steps, delta = {self.delta:.3g} ({self.norm})"
        set_axes_title(axes, title)
        figure.colorbar(picture, label="defect per unit of a state")
        return save_figure(figure, path)


def relative_consistency(
    what: Reading | Composite, k: int = 2, norm: NormName = "fro", most: int | None = None
) -> Consistency:
    """Return delta = || (S_u - L S_y) Phi^k Phi0 R_v || after k steps from a consistent start.

    Glumac & Kovacic 2019, equation 59, as corrected in the theory, section 1: u - L y, and R_v takes the
    states to z. k = 2 and the Frobenius norm give the printed values. Steps are those of the outermost level,
    or of the longest one inside if that is longer. Where the start has a past or slopes, the engine starts
    once for each state: with more than `most` of them that is refused.
    """
    composite = what.composite if isinstance(what, Reading) else what
    if norm not in _NORMS or k < 0:
        expected = f"k of 0 or more, and one of {', '.join(_NORMS)}"
        raise ScenarioError(
            f"there is no relative consistency for k = {k} in the norm `{norm}`", "", expected
        )
    matrix = defects_from_columns(composite, k)
    if matrix is None:
        count = sum(len(getattr(model, "x0", ())) for model in plan_tree(composite).leaves.wiring.models)
        if most is not None and count > most:
            raise ScenarioError(
                f"it needs a start of the engine for each of {count:,} states",
                hint="`hocket.analysis.consistency.relative_consistency`",
            )
        matrix = defects_from_starts(composite, k)
    delta = float(np.linalg.norm(matrix, _NORMS[norm])) if matrix.size else 0.0
    leaves = plan_tree(composite).leaves
    models: tuple[Any, ...] = leaves.wiring.models
    named = zip(leaves.wiring.names, models, strict=True)
    states = tuple(f"{name}.x{number + 1}" for name, model in named for number in range(len(model.x0)))
    inputs = tuple(link.target for link in leaf_connections(leaves))
    note = f"{ADVICE}; {FOREIGN}" if any(hasattr(model, "F") for model in models) else ADVICE
    return Consistency(delta, k, norm, inputs, states, matrix, note)


@dataclass(frozen=True)
class LeafConnection:
    """A connection between leaves, through whatever levels: u = gain y + offset."""

    target: str
    source: str
    gain: float
    offset: float
    ends: tuple[tuple[int, int], tuple[int, int]]
    """Leaf and input, leaf and output, by number."""


def leaf_connections(leaves: Leaves) -> list[LeafConnection]:
    """Return every input of a leaf that another leaf drives in the end."""
    wiring = leaves.wiring
    found = []
    for leaf, drives in enumerate(wiring.drives):
        for index, drive in enumerate(drives):
            if drive is not None and drive.child >= 0:
                target = f"{wiring.names[leaf]}.{wiring.models[leaf].inputs[index].name}"
                source = f"{wiring.names[drive.child]}.{wiring.models[drive.child].outputs[drive.port].name}"
                ends = (leaf, index), (drive.child, drive.port)
                found.append(LeafConnection(target, source, drive.gain, drive.offset, ends))
    return found


def connection_defects(root: Level) -> Array:
    """Return u - L y now, for every connection: inputs as last used, outputs as last read."""
    leaves: Leaves = root.tree.leaves
    levels = {level.path: level for level in levels_of(root)}
    found = []
    for link in leaf_connections(leaves):
        (leaf, index), (origin, port) = link.ends
        path, child = leaves.places[leaf]
        level = levels[path]
        s = level.clock.span(root.now - level.memory.base[child])
        u = value_at(list(level.memory.u[child][:, index]), s)
        path, child = leaves.places[origin]
        y = levels[path].memory.rings[child][port][-1][1]
        found.append(u - (link.gain * y + link.offset))
    return np.array(found)


def _advance_periods(root: Level, k: int) -> None:
    """Advance by k periods."""
    lengths = [root.clock.ticks(level.composite.step) for level in root.tree.levels()]
    for _ in range(k):
        root.advance(root.now, math.lcm(*lengths), root.inputs[1])


def defects_from_columns(composite: Composite, k: int) -> Array | None:
    """Return the defects from unit states, all in one run on columns; None if the start has a past.

    Without a past and without slopes the start is known: y0 = (I - D L)^-1 C x0, u0 = L y0 (equation 52).
    """
    design = plan_tree(composite)
    try:
        solution = exact_solution(composite)
    except ScenarioError:
        return None  # no states between the steps are known
    root = open_level(design, clock_of(design))
    try:
        initialise(root, 0.0)
        rings = [ring for level in levels_of(root) for rings in level.memory.rings for ring in rings]
        if any(len(ring) > 1 or ring[-1][2] is not None for ring in rings):
            return None
        here = exact_places(solution, root, tuple(list_cells(root)))
        start = np.where(here.moving[:, None], 0.0, here.weights)
        n = len(solution.x0)
        scatter_state(root, start @ np.vstack([np.eye(n, n + 1), np.ones((1, n + 1))]))
        _advance_periods(root, k)
        after = connection_defects(root).reshape(-1, n + 1)
    finally:
        root.close()
    return np.asarray(after[:, :n] - after[:, n:])


def defects_from_starts(composite: Composite, k: int) -> Array:
    """Return the defects after k steps from each unit state: the engine starts with each, and with zero.

    It holds for every extrapolator and every kind of start, and takes longer.
    """
    design = plan_tree(composite)
    root = open_level(design, clock_of(design))
    levels = {level.path: level for level in levels_of(root)}
    simulators: list[Any] = [levels[path].children[child] for path, child in design.leaves.places]
    sizes = [simulator.size for simulator in simulators]
    states = np.zeros(sum(sizes))
    first = np.cumsum([0, *sizes])
    for begin, simulator in zip(first, simulators, strict=False):
        simulator.start = partial(
            _start_at_state, simulator, simulator.start, states[begin : begin + simulator.size]
        )

    def defects_from_state(chosen: int | None) -> Array:
        states[:] = 0.0
        if chosen is not None:
            states[chosen] = 1.0
        initialise(root, 0.0)
        _advance_periods(root, k)
        return connection_defects(root)

    try:
        nothing = defects_from_state(None)
        units = [defects_from_state(state) - nothing for state in range(len(states))]
    finally:
        root.close()
    return np.array(units).reshape(len(states), len(nothing)).T


def _start_at_state(simulator: Any, start: Callable[[float], None], x: Array, t: float) -> None:
    """Start a simulator, and move it to other states."""
    start(t)
    z = simulator.z.copy()
    z[: len(x)] = x
    simulator.z = z


# after a run


@dataclass(frozen=True, eq=False)
class ConnectionDefect:
    """How far an input was from the output that drives it, wherever both were recorded."""

    target: str
    source: str
    unit: str
    largest: float
    at: float
    """Seconds."""
    mean: float
    scale: float
    """The largest value of the output, as the input sees it."""
    t: Array
    values: Array

    @property
    def relative(self) -> float:
        """The largest defect over the largest value."""
        return self.largest / self.scale if self.scale > 0.0 else (math.inf if self.largest > 0.0 else 0.0)


@dataclass(frozen=True, eq=False)
class RunDefect:
    """The connection defect |u - L y| of a run (Glumac & Kovacic 2019, equation 53, corrected)."""

    connections: tuple[ConnectionDefect, ...]
    """The largest in relation to the values first."""
    missing: tuple[str, ...]
    """Inputs and outputs that were not recorded: their connections are left out."""

    def rows(self) -> Rows:
        """Return a row for each connection."""
        return [
            {
                "input": each.target,
                "output": each.source,
                "unit": each.unit,
                "largest defect": each.largest,
                "at [s]": each.at,
                "mean": each.mean,
                "of peak": Share(each.relative),
            }
            for each in self.connections
        ]

    def plot(self, path: Path | str | None = None) -> Any:
        """Draw the defects over time."""
        lines = [Series(each.t, each.values, each.unit, each.target) for each in self.connections]
        return draw_series(lines, "connection defect", path)


def run_defect(run: Run, composite: Composite | None = None) -> RunDefect:
    """Return how far the inputs of a run were from the outputs that drive them.

    The connections are those of the scenario in the run folder, unless a composite is given. Inputs are
    recorded only if they are asked for by name: `record=["*", "two.F"]`.
    """
    composite = composite or _composite_of_run(run)
    leaves = plan_tree(composite).leaves
    found, missing = [], set()
    for link in leaf_connections(leaves):
        absent = {port for port in (link.target, link.source) if port not in run}
        missing |= absent
        if not absent:
            found.append(_connection_defect(run, leaves, link))
    if not found:
        some = ", ".join(f'"{link.target}"' for link in leaf_connections(leaves)[:3])
        raise ScenarioError(
            "the run has no connection with both its input and its output recorded",
            where=repr(run),
            expected="inputs recorded by name",
            hint=f'record=["*", {some}]' if some else "there are no connections",
        )
    found.sort(key=lambda each: -each.relative)
    return RunDefect(tuple(found), tuple(sorted(missing)))


def _composite_of_run(run: Run) -> Composite:
    read_again = read(run.path / SCENARIO)
    return read_again.composite


def _connection_defect(run: Run, leaves: Leaves, link: LeafConnection) -> ConnectionDefect:
    (leaf, _), (origin, _) = link.ends
    t, u, unit = _recorded_values(run, link.target, leaves.places[leaf][0])
    at, y, _ = _recorded_values(run, link.source, leaves.places[origin][0])
    times, here, there = np.intersect1d(t[::-1], at[::-1], return_indices=True)
    u, y = u[::-1][here], y[::-1][there]  # of rows with one time the last counts
    seen = link.gain * y + link.offset
    wrong = np.abs(u - seen)
    worst = int(np.argmax(wrong)) if len(wrong) else 0
    return ConnectionDefect(
        link.target,
        link.source,
        unit,
        float(wrong[worst]) if len(wrong) else 0.0,
        float(times[worst]) if len(wrong) else 0.0,
        float(wrong.mean()) if len(wrong) else 0.0,
        float(np.abs(seen).max(initial=0.0)),
        times,
        wrong,
    )


def _recorded_values(run: Run, port: str, level: str) -> tuple[Array, Array, str]:
    """Return times, values and unit at the steps of the port's level: between them nothing is exchanged."""
    for table in run.tables:
        if table.name == level and port in table.columns:
            arrow = run.table(level)
            unit = table.units[table.columns.index(port)]
            return arrow.column(0).to_numpy(), arrow.column(port).to_numpy(), unit
    series = run[port]
    return series.t, series.values, series.unit
