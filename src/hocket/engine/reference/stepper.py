"""Stepping by hand in the interpreter: steps, ports that are read and overridden, states of the whole tree.

In:  a Level after its start
Out: the same bits as those of the native engine
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, TypeVar

from hocket.engine.initialise import levels_of
from hocket.engine.protocol import LiveLevel
from hocket.engine.reference.engine import InterpreterEngine
from hocket.engine.reference.instants import InstantState, is_level
from hocket.engine.reference.level import Level
from hocket.engine.reference.rollback import SavedTree, level_rows
from hocket.engine.rows import input_value
from hocket.model.plain_state import StateError, is_record
from hocket.model.protocols import Array
from hocket.plan import Adapt, Instruction, Repeat, walk

Found = TypeVar("Found", bound=Instruction)

INSTANTS = (
    "jumps", "own_jumps", "heard", "eager", "reacted", "floors", "shown", "paces", "spaced",
    "n", "taken", "asked",
)  # fmt: skip
"""What lasts of the instants of a level, from step to step."""
MESSAGES = ("sent", "known", "versions", "given", "due", "aged", "samples", "passed")
"""What lasts of the messages between hosts."""


@is_record
class LastingState(NamedTuple):
    """What lasts of a level beside the state that a rollback within a step needs."""

    last: Any
    """The state of the simulator that is never rolled back within a step; None: there is none."""
    instants: dict[str, Any]
    sweeps: Any
    steps: Any
    messages: dict[str, Any]


@is_record
class WholeState(NamedTuple):
    """The state of a whole tree between two steps."""

    tree: Any
    lasting: list[LastingState]
    """Per level, the outermost first."""


def save_whole(root: Level) -> WholeState:
    """Return all that lasts of a tree between two steps."""
    return WholeState(root.save(), [_save_lasting(level) for level in levels_of(root)])


def restore_whole(root: Level, state: WholeState) -> None:
    """Bring a tree back to a state, also after a step that failed."""
    for level in levels_of(root):  # what is made when it is first used: the state may be a later one
        _make_all(level)
    root.restore(state.tree)
    for level, lasting in zip(levels_of(root), state.lasting, strict=True):
        if level.last is not None:
            level.call_child("restore", level.last, lasting.last)
        vars(level.instants).update(copy.deepcopy(lasting.instants))
        level.sweeps, level.steps = copy.copy(lasting.sweeps), copy.copy(lasting.steps)
        if level.traffic is not None:
            vars(level.traffic).update(copy.deepcopy(lasting.messages))
        level.reached, level.span = level.now, level.length
        level.under_way, level.repeating = False, 0
        level.restorable.clear()
        level.kept.clear()


def _make_all(level: Level) -> None:
    """Make the step controller and the accelerators of a level; those that a state lacks go again."""
    for each in _of_kind(level, Repeat):
        level.accelerator_of(each)
    for adapt in _of_kind(level, Adapt):
        level.controller_of(adapt)


def _of_kind(level: Level, kind: type[Found]) -> list[Found]:
    """Return the instructions of a kind, in the order of the plan."""
    found = (each for _, each in walk((*level.plan.step, *level.plan.output)))
    return list(dict.fromkeys(each for each in found if isinstance(each, kind)))


def whole_to_file(root: Level, state: WholeState) -> WholeState:
    """Return a state as it stands in a file: accelerators by their numbers in the plan, and no rows."""
    return _translate(root, state, to_file=True)


def whole_from_file(root: Level, state: Any) -> WholeState:
    """Return a state that stood in a file as that of this tree; raises StateError if it is of another."""
    if not isinstance(state, WholeState) or len(state.lasting) != len(list(levels_of(root))):
        raise StateError("it is not the state of these levels")
    return _translate(root, state, to_file=False)


def _translate(root: Level, state: WholeState, to_file: bool) -> WholeState:
    lasting = [
        each
        if level.last is None or not isinstance(inner := level.children[level.last], Level)
        else each._replace(last=_translate_tree(inner, each.last, to_file))
        for level, each in zip(levels_of(root), state.lasting, strict=True)
    ]
    return WholeState(_translate_tree(root, state.tree, to_file), lasting)


def _translate_tree(level: Level, tree: Any, to_file: bool) -> SavedTree:
    if not isinstance(tree, SavedTree) or len(tree.children) != len(level.children):
        raise StateError(f"it is not the state of {level.path or 'this level'}")
    children = [
        _translate_tree(child, kept, to_file) if isinstance(child, Level) and kept is not None else kept
        for child, kept in zip(level.children, tree.children, strict=True)
    ]
    repeats = _of_kind(level, Repeat)
    numbers = {id(each): number for number, each in enumerate(repeats)}
    keys = numbers if to_file else {number: key for key, number in numbers.items()}
    led = {keys[key]: each for key, each in tree.accelerators.items()}
    rows = [] if to_file else [each.mark() for each in level_rows(level)]
    return tree._replace(children=children, accelerators=led, rows=rows)


def _save_lasting(level: Level) -> LastingState:
    return LastingState(
        None if level.last is None else level.call_child("save", level.last),
        copy.deepcopy({name: vars(level.instants)[name] for name in INSTANTS}),
        copy.copy(level.sweeps),
        copy.copy(level.steps),
        {}
        if level.traffic is None
        else copy.deepcopy({name: vars(level.traffic)[name] for name in MESSAGES}),
    )


class InterpreterStepper:
    """Steps a started tree by hand, in Python."""

    name = "interpreter"

    def __init__(self, root: Level):
        self.root = root
        self.engine = InterpreterEngine(root, [])

    def advance(self, steps: int) -> int:
        """Make so many steps; return how many: fewer where a simulator has asked to end the simulation."""
        return self.engine.run(steps, float("inf"))

    @property
    def ended_by(self) -> str:
        """The path of the simulator that has asked to end the simulation."""
        return self.engine.ended_by

    @property
    def now(self) -> int:
        """The tick reached."""
        return self.root.now

    @property
    def within_step(self) -> bool:
        """Whether a step has failed, or was interrupted."""
        return self.root.under_way

    def place(self, level: Level) -> Level:
        """Return what stands for a level where a port of it is meant."""
        return level

    def value(self, level: Level, child: int, port: int, is_input: bool) -> float:
        """Return the newest output, or the input, of a child at the time reached."""
        if is_input:
            return input_value(level, child, port, level.now)
        return float(level.memory.rings[child][port][-1][1])

    def set_own_input(self, port: int, value: float) -> None:
        """Set an input of the outermost level, held from now on."""
        u: Array = self.root.offered[1].copy()
        u[:, port] = 0.0
        u[0, port] = value
        self.root.offered = (self.root.now, u)

    def set_input(self, level: Level, child: int, port: int, value: float) -> None:
        """Override what an input of a child gets."""
        level.memory.held.add((child, port))
        u = level.memory.u[child]
        u[:, port] = 0.0
        u[0, port] = value

    def release_input(self, level: Level, child: int, port: int) -> None:
        """Let an input of a child be driven again."""
        level.memory.held.discard((child, port))
        _hear_source(level, child, port)

    def set_output(self, level: Level, child: int, port: int, value: float) -> None:
        """Override what an output of a child shows: a jump."""
        level.replaced.setdefault(child, {})[port] = value
        _store_jump(level, child, port, value, 0.0)

    def release_output(self, level: Level, child: int, port: int, evaluate: bool = True) -> None:
        """Let an output show again what it is: a jump. Not evaluated, its memory is going to be restored."""
        overrides = level.replaced.get(child, {})
        overrides.pop(port, None)
        if not overrides:
            level.replaced.pop(child, None)
        if not evaluate:
            return
        tick = level.ticks[child]
        simulator: Any = level.children[child]
        u = level.inputs_since(child, tick)
        evaluated = is_level(simulator)
        y = simulator.newest_outputs(1) if evaluated else level.outputs_of(child, tick, u)
        slope = level.slopes_of(child, tick, u)[port] if level.memory.sloped[child] else 0.0
        _store_jump(level, child, port, float(y[port]), float(slope))

    def save(self) -> WholeState:
        """Return the state of the whole tree."""
        return save_whole(self.root)

    def restore(self, state: WholeState) -> None:
        """Bring the whole tree back to a state."""
        restore_whole(self.root, state)
        self.engine.ended_by = ""


def _store_jump(level: LiveLevel, child: int, port: int, value: float, slope: float) -> None:
    """Let the newest sample of an output have a value; what was before it does not lead beyond it."""
    ring = level.memory.rings[child][port]
    tick, _, before = ring.pop()
    ring.append((tick, value, None if before is None else slope))
    level.memory.forget_signal(child, port)


def _hear_source(level: Level, child: int, port: int) -> None:
    """Take what the source of an input did, while it was overridden, as told."""
    state: InstantState = level.instants
    drive = level.wiring.drives[child][port]
    if drive is not None and drive.child >= -1:
        jumps = state.own_jumps[drive.port] if drive.child < 0 else state.jumps[drive.child][drive.port]
        state.heard[child][port] = jumps
