"""Stepping by hand in compiled code: steps, ports that are read and overridden, states of the whole tree.

In:  a Level after its start
Out: the same bits as those of a run
"""

from __future__ import annotations

from typing import Any, NamedTuple

import hocket._native as _native
from hocket.engine.initialise import levels_of
from hocket.engine.native.engine import NativeEngine
from hocket.engine.reference.level import Level
from hocket.model.protocols import native_twin


class NativeState(NamedTuple):
    """The state of a whole tree between two steps."""

    tree: _native.SavedState
    isolated: list[Any]
    """Of simulators in processes of their own: Python keeps these."""


class NativeStepper:
    """Steps a started tree by hand, in compiled code."""

    name = "native"

    def __init__(self, root: Level, threads: int | None):
        self.engine = NativeEngine(root, [], threads, condense=False)
        self.hand = self.engine.engine
        self.numbers = {id(level): number for number, level in enumerate(self.engine.levels)}
        """Of levels, as compiled code knows them."""
        self.isolated = [
            (level, child)
            for level in levels_of(root)
            for child, each in enumerate(level.children)
            if not isinstance(each, Level) and isinstance(native_twin(each), _native.Isolated)
        ]

    def advance(self, steps: int) -> int:
        """Make so many steps; return how many: fewer where a simulator has asked to end the simulation."""
        done = self.hand.advance(steps)
        return done if done >= 0 else self.explain(done)

    def explain(self, done: int) -> int:
        """Return how many steps were made where there is more to know; raises what has failed."""
        if self.hand.failure() is not None:
            raise self.engine.blame_failure()
        self.engine.look_for_end()
        return -1 - done

    @property
    def ended_by(self) -> str:
        """The path of the simulator that has asked to end the simulation."""
        return self.engine.ended_by

    @property
    def now(self) -> int:
        """The tick reached."""
        return self.hand.now

    @property
    def within_step(self) -> bool:
        """Whether a step has failed, or was interrupted."""
        return self.hand.within_step

    def place(self, level: Level) -> int:
        """Return what stands for a level where a port of it is meant."""
        return self.numbers[id(level)]

    def value(self, level: int, child: int, port: int, is_input: bool) -> float:
        """Return the newest output, or the input, of a child at the time reached."""
        return self.hand.value(level, child, port, is_input)

    def set_own_input(self, port: int, value: float) -> None:
        """Set an input of the outermost level, held from now on."""
        self.hand.set_own_input(port, value)

    def set_input(self, level: int, child: int, port: int, value: float) -> None:
        """Override what an input of a child gets."""
        self.hand.set_input(level, child, port, value)

    def release_input(self, level: int, child: int, port: int) -> None:
        """Let an input of a child be driven again."""
        self.hand.release_input(level, child, port)

    def set_output(self, level: int, child: int, port: int, value: float) -> None:
        """Override what an output of a child shows: a jump."""
        self.hand.set_output(level, child, port, value)

    def release_output(self, level: int, child: int, port: int, evaluate: bool = True) -> None:
        """Let an output show again what it is: a jump. Not evaluated, its memory is going to be restored."""
        if not self.hand.release_output(level, child, port, evaluate):
            self._raise_failure()

    def save(self) -> NativeState:
        """Return the state of the whole tree."""
        tree = self.hand.save()
        if tree is None:
            self._raise_failure()
            raise AssertionError
        return NativeState(tree, [level.call_child("save", child) for level, child in self.isolated])

    def restore(self, state: NativeState) -> None:
        """Bring the whole tree back to a state, also after a step that failed."""
        for (level, child), kept in zip(self.isolated, state.isolated, strict=True):
            level.call_child("restore", child, kept)
        if not self.hand.restore(state.tree):
            self._raise_failure()
        self.engine.ended_by = ""

    def _raise_failure(self) -> None:
        """Raise what a call between two steps has failed with; the tree is as it was."""
        error = self.engine.blame_failure()
        self.hand.forget_failures()
        raise error
