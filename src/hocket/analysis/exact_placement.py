"""Where the exact solution would stand in z: every state, sample and polynomial as if no step had been wrong.

In:  an Exact or a Driven, and the cells of a tree of levels
Out: z as a function of the exact state, now and a little before
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hocket.analysis.exact_solution import ExactSolution
from hocket.analysis.forced_response import DrivenSolution
from hocket.analysis.linear_reading import Cell
from hocket.coupling.wiring import OWN, Drive
from hocket.engine.initialise import levels_of
from hocket.engine.reference.level import Level
from hocket.model.protocols import Array


@dataclass(frozen=True, eq=False)
class ExactPlaces:
    """What the exact solution puts into z: row i of `weights`, acting on [x, 1, ...] at `ago[i]` before."""

    weights: Array
    ago: Array
    """Seconds."""
    moving: Array
    """Whether a number is about motion (a slope, a power of time, a history) and is none at a cold start."""

    def states_at(self, solution: ExactSolution | DrivenSolution, times: Array) -> Array:
        """Return z at each of these times, a row each, as if all of the past had been exact."""
        z = np.zeros((len(times), len(self.ago)))
        for ago in np.unique(self.ago):
            chosen = self.ago == ago
            z[:, chosen] = solution.trajectory(times - ago) @ self.weights[chosen].T
        return z


def exact_places(
    solution: ExactSolution | DrivenSolution, root: Level, cells: tuple[Cell, ...]
) -> ExactPlaces:
    """Return what each number of z is in the exact solution; the tree tells how old each one is."""
    finder = _CellFinder(solution, root)
    found = [finder.place(cell) for cell in cells]
    weights = np.array([row for row, _, _ in found]).reshape(len(found), solution.width)
    ago = np.array([root.clock.span(root.now - tick) + more for _, (tick, more), _ in found])
    return ExactPlaces(weights, ago, np.array([moving for _, _, moving in found], dtype=bool))


_Found = tuple[Array, tuple[int, float], bool]
"""The row, the tick with seconds before it, and whether it is about motion."""


class _CellFinder:
    """Looks up cells in a tree."""

    def __init__(self, solution: ExactSolution | DrivenSolution, root: Level):
        self.solution, self.root = solution, root
        self.rows: dict[int, Array] = {}
        self.number = {port: row for row, port in enumerate(solution.ports)}
        self.state = {name: row for row, name in enumerate(solution.states)}
        self.levels = {level.path: level for level in levels_of(root)}
        self.home = {
            level.name(child): (level, child)
            for level in self.levels.values()
            for child in range(len(level.children))
        }

    def place(self, cell: Cell) -> _Found:
        now = self.root.now
        if cell.kind == "state":
            row = np.zeros(self.solution.width)
            row[self.state[f"{cell.owner}.{cell.name}"]] = 1.0
            return row, (now, 0.0), False
        level, child = self.home[cell.owner]
        simulator: Any = level.children[child]
        if cell.kind == "history":
            row = self.solution.generator[self.state[f"{cell.owner}.{cell.name}"]]
            return row, (now, simulator.last_h or 0.0), True
        if cell.kind == "outside":
            index = [port.name for port in level.wiring.models[child].inputs].index(cell.name)
            which, power = divmod(cell.back, simulator.degree + 1)
            tick = (simulator.inputs, simulator.offered)[which][0]
            return self.input(level, child, index, power), (tick, 0.0), power > 0
        if cell.kind in ("sample", "slope"):
            port = [port.name for port in level.wiring.models[child].outputs].index(cell.name)
            tick = level.memory.rings[child][port][-1 - cell.back][0]
            moving = cell.kind == "slope"
            return self.output(level, child, port, int(moving)), (tick, 0.0), moving
        index = [port.name for port in level.wiring.models[child].inputs].index(cell.name)
        if cell.kind == "input":
            row = self.input(level, child, index, cell.back)
            return row, (level.memory.base[child], 0.0), cell.back > 0
        drive: Any = level.wiring.drives[child][index]
        tick = level.memory.filters[(child, index)].seen - cell.back * level.length
        return self.output(level, drive.child, drive.port), (tick, 0.0), False

    def output(self, level: Level, child: int, port: int, derivative: int = 0) -> Array:
        """Return an output of a child, which may be a level, as a row that acts on [x, 1]."""
        simulator = level.children[child]
        if isinstance(simulator, Level):
            return self._drive_row(simulator, simulator.wiring.outputs[port], derivative)
        if derivative not in self.rows:
            self.rows[derivative] = self.solution.weights(derivative)
        name = f"{level.name(child)}.{level.wiring.models[child].outputs[port].name}"
        return np.asarray(self.rows[derivative][self.number[name]])

    def input(self, level: Level, child: int, index: int, power: int) -> Array:
        """Return the coefficient of a power of time in what drives an input."""
        drive = level.wiring.drives[child][index]
        if drive is None:
            return self._constant_row(level.wiring.models[child].inputs[index].start, power)
        factorial = float(np.prod(np.arange(1, power + 1)))
        return self._drive_row(level, drive, power) / factorial

    def _drive_row(self, level: Level, drive: Drive, derivative: int) -> Array:
        if drive.extrapolation is not None and derivative > drive.extrapolation.degree:
            return self._constant_row(0.0, derivative)
        if drive.child != OWN:
            row = self.output(level, drive.child, drive.port, derivative)
        elif level is self.root:
            row = self._constant_row(level.starts[drive.port], derivative)
        else:
            parent, child = self.home[level.path]
            above = parent.wiring.drives[child][drive.port]
            if above is None:
                row = self._constant_row(level.tree.composite.inputs[drive.port].start, derivative)
            else:
                row = self._drive_row(parent, above, derivative)
        row = drive.gain * row
        if derivative == 0:
            row[len(self.solution.x0)] += drive.offset
        return np.asarray(row)

    def _constant_row(self, value: float | None, derivative: int) -> Array:
        row = np.zeros(self.solution.width)
        row[len(self.solution.x0)] = (value or 0.0) if derivative == 0 else 0.0
        return row
