"""Do the inputs agree with the outputs that drive them? Before a run as a bound, after it as it was.

In:  a Reading or a Composite of linear models; or a Run
Out: a Consistency (relative consistency delta); a RunDefect (the connection defect of a run)

Delta follows the error while the step of one coupling varies, and badly across couplings at one step (figures
and the systems they were found on: theory, section 1): choose steps by it, not couplings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from hocket.analysis.exact_solution import exact_places, exact_solution
from hocket.analysis.linear_models import IdentifiedModel, named_leaves
from hocket.analysis.linear_reading import Reading, advance_ticks, period_ticks, scatter_state
from hocket.analysis.measure import Drawing, Measure, Rows
from hocket.engine.initialise import initialise, levels_of
from hocket.engine.opening import open_level
from hocket.engine.reference.level import Level
from hocket.errors import ScenarioError
from hocket.files.error_estimate import InputDefect
from hocket.files.formats import read
from hocket.files.plotting import Series, draw_series, new_figure, set_axes_title
from hocket.files.run_clearing import SCENARIO
from hocket.files.run_folder import Run
from hocket.model.composite import Composite
from hocket.model.extrapolators import value_at
from hocket.model.protocols import Array, state_count
from hocket.planning.clocks import clock_of
from hocket.planning.planner import plan_tree
from hocket.planning.tree import Leaves

NormName: TypeAlias = Literal["fro", "two", "one", "inf"]
_NORMS: dict[str, Any] = {"fro": "fro", "two": 2, "one": 1, "inf": np.inf}

ADVICE = "compare it between steps of one coupling, not between couplings"
"""What delta is good for; with which rank correlations stands in theory, section 1.6."""
FOREIGN = "the states of identified models have units of their own, so that other steps cannot be compared"


@dataclass(frozen=True, eq=False)
class Consistency(Measure):
    """Relative consistency (Glumac & Kovacic 2019, equation 59): the worst defect from states of size one.

    It ranks the steps of one coupling better than couplings at one step. It depends on units of states.
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
        return {"relative consistency": self.delta, "consistency of inputs": self.rows()}

    def draw(self) -> Any:
        """Draw the defect of each input per unit of each state."""
        figure, (axes,) = new_figure(3.5 + 0.4 * len(self.states), 1.8 + 0.3 * len(self.inputs))
        picture = axes.imshow(np.abs(self.matrix), cmap="Blues", aspect="auto", vmin=0.0)
        axes.set_xticks(np.arange(len(self.states)), self.states, rotation=90, fontsize="small")
        axes.set_yticks(np.arange(len(self.inputs)), self.inputs, fontsize="small")
        set_axes_title(axes, f"defect after {self.k} steps, delta = {self.delta:.3g} ({self.norm})")
        figure.colorbar(picture, label="defect per unit of a state")
        return figure


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
        wrong = f"there is no relative consistency for k = {k} in the norm `{norm}`"
        raise ScenarioError(wrong, "", expected)
    matrix = defects_from_columns(composite, k)
    if matrix is None:
        count = sum(state_count(model) or 0 for model in plan_tree(composite).leaves.wiring.models)
        if most is not None and count > most:
            many = f"it needs a start of the engine for each of {count:,} states"
            raise ScenarioError(many, hint="`hocket.analysis.consistency.relative_consistency`")
        matrix = defects_from_starts(composite, k)
    delta = float(np.linalg.norm(matrix, _NORMS[norm])) if matrix.size else 0.0
    leaves = named_leaves(composite)
    states = tuple(f"{name}.x{number + 1}" for name, model in leaves for number in range(len(model.x0)))
    inputs = tuple(link.target for link in leaf_connections(plan_tree(composite).leaves))
    note = (
        f"{ADVICE}; {FOREIGN}" if any(isinstance(model, IdentifiedModel) for _, model in leaves) else ADVICE
    )
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


def open_at_unit_states(composite: Composite) -> tuple[Level, Array] | None:
    """Return a live tree at its start, and z there from each unit state and from none, a column each.

    None: the start has a past or slopes. Without them it is known: y0 = (I - D L)^-1 C x0, u0 = L y0
    (equation 52).
    """
    solution, design = exact_solution(composite), plan_tree(composite)
    root = open_level(design, clock_of(design))
    initialise(root, 0.0)
    rings = [ring for level in levels_of(root) for rings in level.memory.rings for ring in rings]
    if any(len(ring) > 1 or ring[-1][2] is not None for ring in rings):
        root.close()
        return None
    here, n = exact_places(solution, root), len(solution.x0)
    start = np.where(here.moving[:, None], 0.0, here.weights)
    return root, start @ np.vstack([np.eye(n, n + 1), np.ones((1, n + 1))])


def defects_of_columns(root: Level, columns: Array, ticks: int, k: int) -> Array:
    """Return the defects after k times so many ticks, per unit of each state, from columns at the start."""
    scatter_state(root, columns)
    for _ in range(k):
        advance_ticks(root, ticks)
    after = connection_defects(root).reshape(-1, columns.shape[1])
    return np.asarray(after[:, :-1] - after[:, -1:])


def defects_from_columns(composite: Composite, k: int) -> Array | None:
    """Return the defects from unit states, all in one run on columns; None if the start has a past."""
    try:
        opened = open_at_unit_states(composite)
    except ScenarioError:
        return None  # no states between the steps are known
    if opened is None:
        return None
    root, columns = opened
    try:
        return defects_of_columns(root, columns, period_ticks(root), k)
    finally:
        root.close()


def defects_from_starts(composite: Composite, k: int) -> Array:
    """Return the defects after k steps from each unit state: the engine starts with each, and with zero.

    It holds for every extrapolator and every kind of start, and takes longer.
    """
    design = plan_tree(composite)
    root = open_level(design, clock_of(design))
    levels = {level.path: level for level in levels_of(root)}
    simulators: list[Any] = [levels[path].children[child] for path, child in design.leaves.places]
    first = np.cumsum([0, *(simulator.size for simulator in simulators)])
    states = np.zeros(first[-1])
    for begin, simulator in zip(first, simulators, strict=False):
        x = states[begin : begin + simulator.size]
        simulator.start = partial(_start_at_state, simulator, simulator.start, x)

    def defects_from_state(chosen: int | None) -> Array:
        states[:] = np.arange(len(states)) == chosen
        initialise(root, 0.0)
        for _ in range(k):
            advance_ticks(root, period_ticks(root))
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
    simulator.z = np.concatenate([x, simulator.z[len(x) :]])


@dataclass(frozen=True, eq=False)
class RunDefect(Drawing):
    """The connection defect |u - L y| of a run (Glumac & Kovacic 2019, equation 53, corrected)."""

    connections: tuple[InputDefect, ...]
    """The largest in relation to the values first."""
    courses: tuple[Series, ...]
    """The same over time, wherever both ends were recorded."""
    missing: tuple[str, ...]
    """Inputs and outputs that were not recorded: their connections are left out."""

    def rows(self) -> Rows:
        return [each.row() for each in self.connections]

    def draw(self) -> Any:
        """Draw the defects over time."""
        return draw_series(self.courses, "connection defect")


def run_defect(run: Run, composite: Composite | None = None) -> RunDefect:
    """Return how far the inputs of a run were from the outputs that drive them.

    The connections are those of the scenario in the run folder, unless a composite is given. Inputs are
    recorded only if they are asked for by name: `record=["*", "two.F"]`.
    """
    leaves = plan_tree(composite or read(run.path / SCENARIO).composite).leaves
    links = leaf_connections(leaves)
    ends = [end for link in links for end in zip((link.target, link.source), link.ends, strict=True)]
    ports = {port: leaves.places[leaf][0] for port, (leaf, _) in ends}
    known = {port: _values_at_steps(run, port, level) for port, level in ports.items() if port in run}
    found = [
        measure_defect(known[link.target], known[link.source], link.gain, link.offset)
        for link in links
        if link.target in known and link.source in known
    ]
    if not found:
        some = ", ".join(f'"{link.target}"' for link in links[:3])
        raise ScenarioError(
            "the run has no connection with both its input and its output recorded",
            where=repr(run),
            expected="inputs recorded by name",
            hint=f'record=["*", {some}]' if some else "there are no connections",
        )
    found.sort(key=lambda each: -each[0].relative)
    defects, courses = zip(*found, strict=True)
    return RunDefect(defects, courses, tuple(sorted(ports.keys() - known.keys())))


def measure_defect(u: Series, y: Series, gain: float, offset: float) -> tuple[InputDefect, Series]:
    """Return how far an input was from gain y + offset, at worst and wherever both have a row."""
    times, here, there = np.intersect1d(u.t[::-1], y.t[::-1], return_indices=True)
    seen = gain * y.values[::-1][there] + offset  # of rows with one time the last counts
    wrong = np.abs(u.values[::-1][here] - seen)
    course = Series(times, wrong, u.unit, u.name)
    return worst_defect(course, y.name, float(np.abs(seen).max(initial=0.0))), course


def worst_defect(course: Series, source: str, scale: float) -> InputDefect:
    """Return the largest of the defects of an input, beside the largest value that it should have had."""
    worst = int(np.argmax(course.values)) if len(course) else None
    largest, at = (0.0, 0.0) if worst is None else (float(course.values[worst]), float(course.t[worst]))
    mean = float(course.values.mean()) if len(course) else 0.0
    relative = largest / scale if scale > 0.0 else math.inf if largest > 0.0 else 0.0
    return InputDefect(course.name, source, course.unit, largest, at, mean, relative)


def _values_at_steps(run: Run, port: str, level: str) -> Series:
    """Return a port at the steps of its level: between them nothing is exchanged."""
    for table in run.tables:
        if table.name == level and port in table.columns:
            arrow, unit = run.table(level), table.units[table.columns.index(port)]
            return Series(arrow.column(0).to_numpy(), arrow.column(port).to_numpy(), unit, port)
    return run[port]
