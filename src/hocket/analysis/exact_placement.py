"""Where the exact solution would stand in z: every state, sample and polynomial as if no step had been wrong.

In:  an ExactSolution, and a live tree of levels
Out: z as a function of the exact state, now and a little before
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocket.analysis.exact_solution import ExactSolution
from hocket.analysis.linear_reading import Place, list_places
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

    def states_at(self, solution: ExactSolution, times: Array) -> Array:
        """Return z at each of these times, a row each, as if all of the past had been exact."""
        z = np.zeros((len(times), len(self.ago)))
        for ago in np.unique(self.ago):
            chosen = self.ago == ago
            z[:, chosen] = solution.trajectory(times - ago) @ self.weights[chosen].T
        return z


def exact_places(solution: ExactSolution, root: Level) -> ExactPlaces:
    """Return what each number of z is in the exact solution; the tree tells how old each one is."""
    finder = _PlaceFinder(solution, root)
    found = [finder.find(place) for place in list_places(root)]
    weights = np.array([row for row, _, _ in found]).reshape(len(found), solution.width)
    ago, moving = (
        np.array([ago for _, ago, _ in found]),
        np.array([moves for _, _, moves in found], dtype=bool),
    )
    return ExactPlaces(weights, ago, moving)


class _PlaceFinder:
    """Looks up in a tree what the places of z show."""

    def __init__(self, solution: ExactSolution, root: Level):
        self.solution, self.root = solution, root
        self.rows: dict[int, Array] = {}
        self.number = {port: row for row, port in enumerate(solution.ports)}
        self.state = {name: row for row, name in enumerate(solution.states)}
        self.home = {
            level.name(child): (level, child)
            for level in levels_of(root)
            for child in range(len(level.children))
        }

    def find(self, place: Place) -> tuple[Array, float, bool]:
        """Return the row, how many seconds before now it holds, and whether the number is about motion."""
        kind, level, child, index, back = place
        memory = level.memory
        if kind in ("state", "history"):
            state = self.state[f"{place.cell.owner}.{place.cell.name}"]
            if kind == "state":
                return np.eye(1, self.solution.width, state)[0], 0.0, False
            simulator: Any = level.children[child]
            return self.solution.generator[state], simulator.last_h or 0.0, True
        if kind in ("sample", "slope"):
            tick, moving = memory.rings[child][index][-1 - back][0], kind == "slope"
            return self.output(level, child, index, int(moving)), self._ago(tick), moving
        if kind == "memory":
            drive: Any = level.wiring.drives[child][index]
            tick = memory.filters[child, index].seen - back * level.length
            return self.output(level, drive.child, drive.port), self._ago(tick), False
        if kind == "input":
            return self.input(level, child, index, back), self._ago(memory.base[child]), back > 0
        which, power = divmod(back, level.degree + 1)
        row = self.input(*self.home[level.path], index, power)
        return row, self._ago((level.inputs, level.offered)[which][0]), power > 0

    def _ago(self, tick: int) -> float:
        return self.root.clock.span(self.root.now - tick)

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
        return self._input_row(level, child, index, power) / float(math.factorial(power))

    def _input_row(self, level: Level, child: int, index: int, derivative: int) -> Array:
        drive = level.wiring.drives[child][index]
        if drive is None:
            return self._constant_row(level.wiring.models[child].inputs[index].start, derivative)
        return self._drive_row(level, drive, derivative)

    def _drive_row(self, level: Level, drive: Drive, derivative: int) -> Array:
        if drive.extrapolation is not None and derivative > drive.extrapolation.degree:
            return self._constant_row(0.0, derivative)
        if drive.child != OWN:
            row = self.output(level, drive.child, drive.port, derivative)
        elif level is self.root:
            row = self._constant_row(level.starts[drive.port], derivative)
        else:
            row = self._input_row(*self.home[level.path], drive.port, derivative)
        row = drive.gain * row
        if derivative == 0:
            row[len(self.solution.x0)] += drive.offset
        return np.asarray(row)

    def _constant_row(self, value: float | None, derivative: int) -> Array:
        row = np.zeros(self.solution.width)
        row[len(self.solution.x0)] = (value or 0.0) if derivative == 0 else 0.0
        return row
