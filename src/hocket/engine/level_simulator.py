"""A live level as a simulator: what others call when a co-simulation is a part of theirs.

In:  a level whose simulators are open
Out: start, output, step and slope, in seconds
"""

from __future__ import annotations

import numpy as np

from hocket.engine.initialise import initialise, levels_of
from hocket.engine.reference.level import Level
from hocket.model.clock import Clock, seconds
from hocket.model.protocols import Array


class LevelSimulator(Level):
    """A level that is started and stepped from outside; its clock counts the ticks of the whole tree."""

    def start(self, t: float) -> None:
        """Go to the initial state, consistent over all levels; own inputs have their start values."""
        clock = Clock(self.clock.tick, seconds(t))
        for level in levels_of(self):
            level.clock = level.memory.clock = clock
        initialise(self, t)

    def output(self, t: float, u: Array) -> Array:
        """Return the outputs at t; what was exchanged before is left alone."""
        before = [(level, level.memory.save(), level.inputs, level.offered) for level in levels_of(self)]
        try:
            return self.outputs_at(self.tick_at(t), self._pad_inputs(u))
        finally:
            for level, memory, inputs, offered in before:
                level.memory.restore(memory)
                level.inputs, level.offered = inputs, offered

    def step(self, t: float, h: float, u: Array) -> float:
        """Advance by h, a whole number of own steps."""
        tick = self.tick_at(t)
        self.advance(tick, self.tick_at(t + h) - tick, self._pad_inputs(u))
        return t + h

    def slope(self, t: float, u: Array) -> Array:
        """Return the slopes of the outputs at t."""
        return self.newest_outputs(2, np.shape(u)[2:])

    def _pad_inputs(self, u: Array) -> Array:
        padded = np.zeros((self.degree + 1, len(self.starts), *np.shape(u)[2:]))
        padded[: len(u)] = u
        return padded
