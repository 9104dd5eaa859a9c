"""Instants: what happens at one time, while no time passes.

In:  a level whose simulators stand at the time of an event
Out: the same level after the event: states changed, and no sample from before it where a signal has jumped

The native engine repeats every operation here in the same order, so that the bits agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Real
from typing import Any, TypeGuard

from hocket.coupling.wiring import OWN
from hocket.engine.protocol import LiveLevel
from hocket.engine.simulator_calls import blame, read_only
from hocket.errors import SimulatorError
from hocket.model.clock import Clock
from hocket.model.event_pace import ROUNDINGS, SPACING, EventPace, Pace, describe_pace, shortest_interval
from hocket.model.protocols import Array, EventSimulator, Model, SpacedEventSimulator, provides
from hocket.plan import Commit, Instant, React, Record, Solve, Try, walk

NEVER_DUE = 2**63 - 1
"""A tick beyond those of any run, in 64 bits."""


class InstantState:
    """What a level knows of its instants: which of its signals have jumped, and which of them were heard of.

    A signal counts its jumps, and so does an input of the level; an input of a simulator remembers which one
    it was told of last.
    """

    def __init__(self, level: LiveLevel):
        models = level.wiring.models
        found = [each for _, each in walk(level.plan.step) if isinstance(each, Instant)]
        self.instruction: Instant | None = found[0] if found else None
        self.flexible = any(isinstance(each, Try) and each.announced for _, each in walk(level.plan.step))
        """Whether its steps may be of any length."""
        self.jumps = [[0] * len(model.outputs) for model in models]
        self.own_jumps = [0] * len(level.starts)
        self.heard = [[0] * len(model.inputs) for model in models]
        self.taking: list[int] = []
        """The children that take part in instants."""
        self.eager: set[int] = set()
        """Those that have asked for another instant."""
        self.reacted: set[int] = set()
        """Those that have reacted in the instant under way."""
        self.floors: dict[int, tuple[int, int]] = {}
        """Per child: the tick of its last instant, and the tick before which it announces nothing there."""
        self.shown: set[tuple[int, int]] = set()
        """The events that are present in the instant under way: child and output."""
        self.places = level.clock.quantum <= level.length >> 20
        """Whether places for events are so close that a step to the next one is as good as exact."""
        self.paces: dict[int, EventPace] = {}
        """Per child: how its events follow each other."""
        self.spaced: set[int] = set()
        """Those that were asked to go on with fewer events."""
        self.n = 0
        """Which instant of this time it is; 0: none."""
        self.taken = -1
        """The tick of the newest instants."""
        self.around = False
        """Whether there is a level around that has instants too."""
        self.longest = 0
        """The ticks of a step of the level around."""
        self.asked: int | None = None
        """The tick that the level around has asked for; None: there is none around."""

    def bind(self, level: LiveLevel) -> None:
        """Find out which children take part, when they are open."""
        if self.instruction is not None:
            self.taking = [
                child
                for child, simulator in enumerate(level.children)
                if is_level(simulator) or provides(simulator, EventSimulator)
            ]
        for simulator in level.children if self.instruction is not None else ():
            inner = instants_of(simulator)
            if inner is not None:
                inner.around, inner.longest = True, level.length

    def show(self, child: int) -> None:
        """Begin a new instant with the first child that reacts in it."""
        if not self.reacted:
            self.shown.clear()
        self.reacted.add(child)


class InstantLevel:
    """What makes a level known as one here: the base of `hocket.engine.reference.level.Level`."""

    instants: InstantState


def instants_of(simulator: Any) -> InstantState | None:
    """Return what a level knows of its instants; None: it is not a level."""
    return simulator.instants if isinstance(simulator, InstantLevel) else None


def is_level(simulator: Any) -> TypeGuard[LiveLevel]:
    """Return whether a simulator is a level with instants of its own; a sampled one has none."""
    state = instants_of(simulator)
    return state is not None and state.instruction is not None


def due_tick(level: LiveLevel, child: int) -> int | None:
    """Return the tick of the next event of a child; None: it announces none."""
    simulator = level.children[child]
    if is_level(simulator):
        return next_due(simulator)
    t = level.clock.time(level.ticks[child])
    with blame(level.name(child), "due", t):
        time = simulator.due()
        return None if time is None else announced_tick(level.clock, time)


def announced_tick(clock: Clock, time: Any) -> int:
    """Return the tick of what due() returned; raises ValueError for what is not a time."""
    if isinstance(time, bool) or not isinstance(time, Real) or not math.isfinite(time):
        raise ValueError(f"due() returned {time!r:.60}, expected a finite time in seconds, or None")
    tick = clock.event_tick(time if isinstance(time, Fraction) else float(time))
    return max(-NEVER_DUE, min(tick, NEVER_DUE))


def next_due(level: LiveLevel) -> int | None:
    """Return the tick of the earliest event that one inside announces; None: there is none."""
    dues = [due for child in level.instants.taking if (due := due_tick(level, child)) is not None]
    return min(dues, default=None)


def end_before(level: LiveLevel, start: int, end: int) -> int:
    """Return where a step from start ends: at the next event that is announced, at the end at the latest."""
    due = next_due(level)
    return end if due is None or due <= start else min(end, due)


def run_instant(level: LiveLevel, instruction: Instant) -> None:
    """Take the instants of the time reached, if something is due; the level around takes those at its end."""
    state = level.instants
    if state.asked is None or level.reached < state.asked:
        take_instants(level, instruction)


def take_first_instants(level: LiveLevel) -> None:
    """Take the instants that follow initialisation."""
    if level.instants.instruction is not None:
        take_instants(level, level.instants.instruction)


def take_instants(level: LiveLevel, instruction: Instant) -> None:
    """Take instant after instant until nothing is present or due."""
    state, tick = level.instants, level.reached
    due = next_due(level)
    if (due is None or due > tick) and not state.eager:
        return
    if level.rows is not None:
        level.rows.keep(level, tick, due=True)
    state.taken = tick
    try:
        for state.n in range(1, instruction.at_most + 1):
            state.reacted.clear()
            level.run(instruction.body)
            if not state.reacted:
                break
        else:
            name = level.name(min(state.reacted))
            raise too_many_instants(level, instruction.at_most, name, level.clock.time(tick))
    finally:
        state.n = 0
    state.shown.clear()
    level.end_jump()


def too_many_instants(level: LiveLevel, at_most: int, name: str, t: float) -> SimulatorError:
    """Return the error for an event that is followed by others without end."""
    return SimulatorError(
        f"{at_most} instants follow each other at t = {t!r} s, and `{name}` takes part in another",
        where=f"`{level.path}`" if level.path else "",
        expected="an event iteration that ends",
        hint="due() must be later than the time reached once commit() has returned",
    )


def refuse_past_event(name: str, due: float, t: float) -> SimulatorError:
    """Return the error for an event that is announced at the start, or after commit(), and is over then."""
    return SimulatorError(
        f"`{name}` announces an event at t = {due!r} s, which is over: t = {t!r} s is reached",
        where=f"`{name}`, due() at t = {t!r} s",
        expected="from start() and from commit() on: a time that is not before the one reached, or None",
        hint="let start(t) pass over events before t, and commit() move on to the next one",
    )


def react_child(level: LiveLevel, child: int) -> None:
    """Let a child react to what is present or due; without events of its own it follows inputs that jump."""
    state, simulator, tick = level.instants, level.children[child], level.reached
    present = presence(level, child)
    takes_part = child in state.taking
    due = due_tick(level, child) if takes_part else None
    happens = due is not None and due <= tick
    if due is not None and child not in state.eager | state.reacted and not is_level(simulator):
        _refuse_past(level, child, due)
    called = takes_part and (child in state.eager or happens) and child not in state.reacted
    if not called and not any(present):
        return
    if called and happens and not is_level(simulator):
        mind_pace(level, child)
    hear(level, child)
    level.feed(child)
    model = level.wiring.models[child]
    if not takes_part:
        if _follows(model, present):
            level.store_jumps(child, whole=False)
        return
    state.eager.discard(child)
    if not is_level(simulator):
        # an event that is met late may be followed by another one that is late
        floor = due + 1 if due is not None and due < tick else tick - _rounding(level)
        state.floors[child] = (level.ticks[child], floor)
    state.show(child)
    u = level.inputs_since(child, level.ticks[child])
    shown = (
        react_level(simulator, tick, state.n, u, present)
        if is_level(simulator)
        else _call_react(level, child, u, present)
    )
    events = called or any(there and port.event for there, port in zip(present, model.inputs, strict=True))
    level.store_jumps(child, whole=events and not is_level(simulator), present=shown)


def _rounding(level: LiveLevel) -> int:
    """Return by how many ticks a time that is announced may miss the time reached, and mean it."""
    clock = level.clock
    return clock.quantum + int(ROUNDINGS * abs(clock.time(level.reached)) / clock.span(1))


def _refuse_past(level: LiveLevel, child: int, due: int) -> None:
    """Refuse an event before the time of the last instant: no step has been made since that could find it."""
    stood, floor = level.instants.floors.get(child, (0, -_rounding(level)))
    if level.ticks[child] == stood and due < floor:
        times = (level.clock.time(tick) for tick in (due, level.reached))
        raise refuse_past_event(level.name(child), *times)


def mind_pace(level: LiveLevel, child: int) -> None:
    """Count an event of a child; raises SimulatorError where they pile up or chatter, unless it can go on."""
    state, clock, tick, simulator = level.instants, level.clock, level.reached, level.children[child]
    if child in state.spaced:
        return
    pace = state.paces.setdefault(child, EventPace(level.length))
    t, one = clock.time(tick), clock.span(1)
    short = max(shortest_interval(level.length, clock.quantum), int(ROUNDINGS * abs(t) / one))
    found = pace.count(tick, short)
    if found is Pace.FINE:
        return
    if state.instruction is None or not state.instruction.continues:
        raise piled_events(level, found, level.name(child), t, t + pace.left * one)
    state.spaced.add(child)
    if provides(simulator, SpacedEventSimulator):
        with blame(level.name(child), "space_events", t):
            simulator.space_events(SPACING * clock.span(level.length))


def piled_events(level: LiveLevel, pace: Pace, name: str, t: float, limit: float) -> SimulatorError:
    """Return the error for events that time cannot pass."""
    on = '`on_zeno = "continue"` for events that are at least 1/256 of the step apart'
    rest = "let the simulator come to rest where it moves too little, stop the run before that time"
    band = "give it a hysteresis; where it slides along the surface, let its equations say so"
    return SimulatorError(
        describe_pace(pace, f"`{name}`", t, limit),
        where=f"`{level.path}`" if level.path else "",
        expected="finitely many events in a finite time",
        hint=f"{rest if pace is Pace.ZENO else band}; or {on}",
    )


def followed_inputs(model: Model) -> list[bool]:
    """Return which inputs have direct feedthrough to an output that can be evaluated again."""
    followed = {name for port in model.outputs for name in port.feedthrough}
    return [model.capabilities.reevaluates and port.name in followed for port in model.inputs]


def _follows(model: Model, present: Sequence[bool]) -> bool:
    """Return whether outputs follow at once where one of these inputs has jumped."""
    return any(there and at_once for there, at_once in zip(present, followed_inputs(model), strict=True))


def _call_react(level: LiveLevel, child: int, u: Array, present: list[bool]) -> Sequence[bool] | None:
    t, outputs = level.clock.time(level.ticks[child]), level.wiring.models[child].outputs
    with blame(level.name(child), "react", t):
        shown: Any = level.children[child].react(t, level.instants.n, read_only(u[0]), present)
        if shown is not None and len(shown) != len(outputs):
            raise ValueError(f"react() returned {len(shown)} flags, expected {len(outputs)}, one per output")
        return None if shown is None else [bool(each) for each in shown]


def presence(level: LiveLevel, child: int) -> list[bool]:
    """Return which inputs of a child are present, or have jumped, since it was told last."""
    state = level.instants
    return [
        drive is not None
        and drive.child >= OWN
        and (child, index) not in level.memory.held
        and _jump_count(level, drive.child, drive.port) != state.heard[child][index]
        for index, drive in enumerate(level.wiring.drives[child])
    ]


def hear(level: LiveLevel, child: int) -> None:
    """Take what is present at the inputs of a child as told."""
    heard = level.instants.heard[child]
    for index, drive in enumerate(level.wiring.drives[child]):
        if drive is not None and drive.child >= OWN:
            heard[index] = _jump_count(level, drive.child, drive.port)


def _jump_count(level: LiveLevel, child: int, port: int) -> int:
    state = level.instants
    count: int = state.own_jumps[port] if child == OWN else state.jumps[child][port]
    return count


def solve_jump(level: LiveLevel, sims: tuple[str, ...], solve: Any) -> None:
    """Solve an algebraic loop anew at an instant, if one of its inputs has jumped."""
    children = [level.number[sim] for sim in sims]
    if not any(any(presence(level, child)) for child in children):
        return
    before = [[ring[-1] for ring in level.memory.rings[child]] for child in children]
    for child in children:
        hear(level, child)
    solve()
    for child, samples in zip(children, before, strict=True):
        level.note_jumps(child, samples)
        hear(level, child)


def commit_children(level: LiveLevel, sims: tuple[str, ...]) -> None:
    """End the instant for those that have reacted; what they put out after it is seen in the next one."""
    state = level.instants
    for child in [level.number[sim] for sim in sims]:
        if child not in state.reacted:
            continue
        simulator = level.children[child]
        if is_level(simulator):
            again = commit_level(simulator)
        else:
            with blame(level.name(child), "commit", level.clock.time(level.ticks[child])):
                again = bool(simulator.commit())
        if again:
            state.eager.add(child)
    for child in [level.number[sim] for sim in sims]:
        if child in state.reacted:
            level.store_jumps(child, whole=False)


# a level as one that takes part in the instants of the level around it


def react_level(level: Any, tick: int, n: int, u: Array, present: Sequence[bool]) -> list[bool]:
    """Let those inside a level react; return which of its outputs are present."""
    state: InstantState = level.instants
    assert state.instruction is not None
    if level.now < tick:
        level.catch_up(tick)
    level.offered = level.inputs = (tick, u.copy())
    for port, there in enumerate(present):
        if there:
            state.own_jumps[port] += 1
    if (state.n, state.taken) != (n, tick):  # else once more in the same instant
        level.reached, state.n = tick, 0
        if n == 1 and level.rows is not None:
            level.rows.keep(level, tick, due=True)
        state.n, state.taken = n, tick
        state.reacted.clear()
    before = [state.jumps[drive.child][drive.port] for drive in level.wiring.outputs]
    level.run(tuple(each for each in state.instruction.body if isinstance(each, (React, Solve))))
    now = [state.jumps[drive.child][drive.port] for drive in level.wiring.outputs]
    return [count != earlier for count, earlier in zip(now, before, strict=True)]


def commit_level(level: Any) -> bool:
    """End the instant for those inside a level; return whether they ask for another."""
    state: InstantState = level.instants
    assert state.instruction is not None
    level.run(tuple(each for each in state.instruction.body if isinstance(each, (Commit, Record))))
    state.n = 0
    state.shown.clear()
    level.end_jump()
    return bool(state.eager) or any(
        any(presence(level, child)) for child in range(len(level.children)) if _listens(level, child)
    )


def _listens(level: Any, child: int) -> bool:
    """Return whether what a child has not heard of may change anything at this time."""
    return child in level.instants.taking or _follows(level.wiring.models[child], presence(level, child))
