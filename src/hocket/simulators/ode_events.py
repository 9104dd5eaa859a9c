"""Events of an `Ode`: a function of the state crosses zero, and the state jumps.

In:  event functions g(t, x, u), the direction in which they count, and what becomes of the state
Out: a simulator that ends its steps right behind a crossing, and jumps there
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hocket.model.event_pace import ROUNDINGS, EventPace, Pace, describe_pace
from hocket.model.extrapolators import shift_origin, value_at
from hocket.model.protocols import (
    Array,
    OutputDerivativeSimulator,
    StoredEnergySimulator,
    hand_on,
)
from hocket.simulators.methods import micro_steps

PIECES = 8
"""Places where crossings are looked for in a step of a method that has no micro steps of its own."""
HALVINGS = 60
CLOSE = 4.0
"""How many roundings of the time apart the two sides of a crossing are at the end."""


class EventOde:
    """A solver whose steps end right behind the crossings of its event functions.

    `early`: the level handles steps that end early; else it jumps by itself and goes on to the end.
    `event_grid`: the seconds between two places for events.
    """

    early = False
    event_grid = 0.0

    def __init__(self, model: Any, solver: Any):
        self.model, self.solver = model, solver
        self.events: tuple[Any, ...] = model.events
        self.g = [model.function(event.g) for event in self.events]
        self.actions = [None if each.action is None else model.function(each.action) for each in self.events]
        self.before: list[float] | None = None
        """The values of the event functions at the time reached; None: not known."""
        self.crossed: frozenset[int] = frozenset()
        """The events that have just happened: their functions are about zero, and move away from it."""
        self.pending: tuple[int, ...] = ()
        """The events at the time reached that are not handled yet."""
        self.reached = 0.0
        self.blind: float | None = None
        """Until when it does not look at its event functions;"""
        self.held: list[float] | None = None
        """on which side of zero they were when that began."""
        self.spacing, self.lumped = 0.0, 0
        self.pace = EventPace(0.0)
        hand_on(solver, self, (OutputDerivativeSimulator, StoredEnergySimulator))

    @property
    def x(self) -> Array:
        """The state."""
        x: Array = self.solver.x
        return x

    @property
    def micro(self) -> Callable[[float, Array], None] | None:
        """What is told of micro steps."""
        micro: Callable[[float, Array], None] | None = self.solver.micro
        return micro

    @micro.setter
    def micro(self, micro: Callable[[float, Array], None] | None) -> None:
        self.solver.micro = micro

    def start(self, t: float) -> None:
        self.solver.start(t)
        self.before, self.crossed, self.pending, self.reached = None, frozenset(), (), t
        self.blind = self.held = None
        self.pace = EventPace(0.0)

    def output(self, t: float, u: Array) -> Array:
        y: Array = self.solver.output(t, u)
        return y

    def close(self) -> None:
        self.solver.close()

    def save(self) -> Any:
        known = self.before, self.crossed, self.pending, self.reached, self.blind, self.held
        return self.solver.save(), known

    def restore(self, state: Any) -> None:
        kept, (self.before, self.crossed, self.pending, self.reached, self.blind, self.held) = state
        self.solver.restore(kept)

    # steps

    def step(self, t: float, h: float, u: Array) -> float:
        if h == 0.0:
            return t
        if self.pending and self.early and h <= self.event_grid:
            return t + h  # the next part of a step that cannot be shorter: the instants at its end handle it
        if not self.pending and self.before is not None and self.blind is None:
            # an input has jumped where values are exchanged, and no instant tells of it: the state jumps
            # here, since a shorter step would not find the place either
            self.pending = tuple(self._crossings(self.before, self._values(t, value_at(u, 0.0))))
        s = 0.0
        while s < h:
            if self.pending:  # nobody has handled it: the level cannot
                self._mind_pace(t + s, h)
                self._jump(t + s, value_at(u, s))
            s = self._advance(t, s, h, u)
            if self.pending and self.early:
                return t + s if s < h else t + h
        return t + h

    def _advance(self, t: float, s: float, h: float, u: Array) -> float:
        """Go on from s seconds into the step to the first crossing, or to the end; return how far it came."""
        if self.blind is not None:
            return self._advance_blind(t, s, h, u, self.blind)
        longest = self.solver.longest
        count = PIECES if longest is None and self.model.method in ("adaptive", "cvode") else 0
        count = count or micro_steps(h - s, longest)
        length = (h - s) / count
        sides = self._sides(t + s, value_at(u, s), length)
        for number in range(count):
            begin = s + number * length
            end = h if number == count - 1 else s + (number + 1) * length
            saved = self.solver.save()
            self._move(t + begin, end - begin, u, begin)
            after = self._values(t + end, value_at(u, end))
            found = self._crossings(sides, after)
            if found:
                end, after = self._locate(t, begin, end, u, saved, sides)
                self.pending = tuple(self._crossings(sides, after))
            self.reached, self.before, self.crossed = t + end, after, frozenset()
            if found:
                return end
            sides = after
        return h

    def _advance_blind(self, t: float, s: float, h: float, u: Array, until: float) -> float:
        """Go on to where it may look at its event functions again, or to the end."""
        end = min(h, until - t)
        if end > s:
            if self.held is None:
                self.held = self._sides(t + s, value_at(u, s), end - s)
            self._move(t + s, end - s, u, s)
        after = self._values(t + end, value_at(u, end))
        if end < h or t + h >= until:
            self.pending = tuple(self._crossings(self.held or after, after))
            self.lumped += bool(self.pending)
            self.blind = self.held = None
        self.reached, self.before, self.crossed = t + end, after, frozenset()
        return max(end, s)

    def _mind_pace(self, t: float, h: float) -> None:
        """Refuse events within a step that pile up or chatter; the level counts those that it handles."""
        self.pace.step = h
        found = self.pace.count(t, max(h * 2.0**-28, ROUNDINGS * abs(t)))
        if found is not Pace.FINE and not self.spacing:
            raise ValueError(describe_pace(found, "this simulator", t, t + self.pace.left))

    def space_events(self, interval: float) -> None:
        """Let events be at least so many seconds apart."""
        self.spacing = interval

    def notes(self) -> list[str]:
        """Say how many events were put together."""
        if not self.lumped:
            return []
        late = f"met at intervals of {self.spacing:.4g} s, and late by at most that"
        return [f"its events piled up: {self.lumped} of them were {late}"]

    def _move(self, t: float, h: float, u: Array, s: float) -> None:
        shifted = u if s == 0.0 else np.array(shift_origin(list(u), s))
        self.solver.step(t, h, shifted)

    def _locate(
        self, t: float, begin: float, end: float, u: Array, saved: Any, sides: list[float]
    ) -> tuple[float, list[float]]:
        """Return the first time right behind a crossing, and the event functions there; the state follows."""
        from scipy.optimize import brentq

        micro, self.solver.micro = self.solver.micro, None

        def values_at(s: float) -> list[float]:
            self.solver.restore(saved)
            self._move(t + begin, s - begin, u, begin)
            return self._values(t + s, value_at(u, s))

        def distance(s: float) -> float:
            """Return how far the nearest of them is from crossing; below zero behind it."""
            values = values_at(s)
            crossing = self._crossings(sides, values)
            ahead = [abs(value) for k, value in enumerate(values) if k in found]
            return -max(abs(values[k]) for k in crossing) if crossing else min(ahead)

        found = self._crossings(sides, values_at(end))
        low, high = begin, end
        for halving in range(1, HALVINGS):  # right behind an event that has just happened it may hide
            low = begin + (end - begin) * 2.0**-halving
            if distance(low) > 0.0:
                break
            high = low
        near = np.spacing(max(abs(t + high), high - begin))
        root: float = brentq(distance, low, high, xtol=near, rtol=CLOSE * 2.0**-52) if low < high else high
        root = min(end, max(root, begin + CLOSE * near))  # time must get on
        while not self._crossings(sides, after := values_at(root)):
            root, near = min(root + near, high), 2.0 * near
        self.solver.micro = micro
        return root, after

    def _crossings(self, before: Sequence[float], after: Sequence[float]) -> list[int]:
        return [k for k, event in enumerate(self.events) if event.counts(before[k], after[k])]

    def _values(self, t: float, u: Array) -> list[float]:
        x = self.solver.x.view()
        x.flags.writeable = False
        values = [float(g(t, x, u)) for g in self.g]
        for number, value in enumerate(values):
            if value != value:
                raise ValueError(f"the function of event {number}, counted from 0, is nan at t = {t!r} s")
        return values

    def _sides(self, t: float, u: Array, length: float) -> list[float]:
        """Return on which side of zero the event functions are: those that just crossed, where they go."""
        values = self._values(t, u)
        if not self.crossed and 0.0 not in values:
            return values
        saved = self.solver.save()
        micro, self.solver.micro = self.solver.micro, None
        ahead = values
        for power in (40, 20, 10):
            self.solver.restore(saved)
            self._move(t, length * 2.0**-power, u[None, :], 0.0)
            ahead = self._values(t + length * 2.0**-power, u)
            if all(ahead[k] != values[k] for k in range(len(values)) if k in self.crossed or not values[k]):
                break
        self.solver.restore(saved)
        self.solver.micro = micro
        # one that counts both ways has crossed back where it returns to the other side
        just = {k for k in self.crossed if self.events[k].direction != "both"}
        return [
            ahead[k] - values[k] if k in just or values[k] == 0.0 else values[k] for k in range(len(values))
        ]

    # instants

    def due(self) -> float | None:
        """Return the time of the crossing that was found, until it is handled."""
        return self.reached if self.pending else None

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> None:
        """Look whether inputs that jump have moved an event function across zero."""
        values = self._values(t, u)
        if not self.pending and self.before is not None:
            self.pending = tuple(self._crossings(self.before, values))
        self.before, self.reached = values, t
        self.inputs = np.array(u)

    def commit(self) -> bool:
        """Let the state jump."""
        if self.pending:
            self._jump(self.reached, self.inputs)
        return False

    def _jump(self, t: float, u: Array) -> None:
        for number in self.pending:
            action = self.actions[number]
            if action is not None:
                x = self.solver.x.view()
                x.flags.writeable = False
                changed = np.array(action(t, x, u), dtype=float).reshape(-1)
                if changed.shape != self.solver.x.shape:
                    raise ValueError(
                        f"the action of an event returned {changed.size} numbers, expected"
                        f" {self.solver.x.size}, one for each state"
                    )
                if not np.isfinite(changed).all():
                    raise ValueError(
                        f"the action of an event returned {changed.tolist()}, expected finite numbers"
                    )
                self.solver.x, self.solver.memory = changed, None
        self.crossed, self.pending = frozenset(self.pending), ()
        self.blind, self.held = (t + self.spacing if self.spacing else None), None
        self.before = self._values(t, u)
