"""The simulator behind a crossing: it watches an output, and ends the step right behind where it crosses.

In:  the value of the output at the end of each step that was tried
Out: the time where all are to step to in its place, until the crossing is enclosed; an event there

It steps after the output was read. A step that crosses is made again, shorter or longer, until its end is
right behind the crossing: the next end to try is the root of a polynomial through what was seen so far.
Where the level cannot roll back, the crossing is predicted the same way, and met late if that fails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hocket.model.crossings import Crossing
from hocket.model.plain_state import is_record
from hocket.model.ports import Port
from hocket.model.protocols import Array, Capabilities, Simulator

INPUT, EVENT = "u", "event"
PROBE = 2.0**-10
"""The first step behind an event, as a part of the longest: it shows where the output goes."""
FLIGHT = 2.0**-3
"""The same as a part of the time since the event before it, if that is shorter,"""
SHORTEST = 2.0**-30
"""and at least this part of the longest."""
NEXT = 2.0**-16
"""The shortest step to a crossing that is predicted, as a part of the longest."""
ROUNDINGS = 16.0
"""How many roundings of the time apart two ends of a step are at least."""
HALVINGS = 60
SPARE = 6
"""How many more ends than by halving alone may be tried until a crossing is enclosed."""
EPSILON = 2.0**-52


@dataclass(frozen=True)
class Detector:
    """The model of a crossing."""

    crossing: Crossing
    heard: bool = True
    """Whether something is connected to its event: then the output may turn around there."""
    repeated: bool = False
    """Whether a level around makes steps again under other inputs: then only shorter steps are asked for."""

    inputs = (Port(INPUT),)
    outputs = (Port(EVENT, event=True),)
    capabilities = Capabilities(
        rollback=True, stops_early=True, events=True, observes=True, initial_inputs="once"
    )

    def open(self) -> Simulator:
        return CrossingDetector(self)


@is_record
class _State(NamedTuple):
    """Where a detector stands."""

    reached: float = 0.0
    value: float = 0.0
    """Of the output less the value that is crossed."""
    side: int = 0
    """1: it has been above the band, -1: below it; 0: it began in the band."""
    past: tuple[tuple[float, float], ...] = ()
    """Times and values before, the newest last; none from before an event."""
    pending: int = 0
    """The direction of the crossing at the time reached that is not handled yet."""
    look: float | None = None
    """When it wants to see the output next."""
    longest: float = 0.0
    shown: int = 0
    fresh: bool = True
    """Whether nothing has happened since the start."""
    blind: float = -math.inf
    """Until when it does not look, where events piled up."""
    newest: float = -math.inf
    """The time of the newest event."""
    late: tuple[int, float] = (0, 0.0)
    """How many crossings were met late, and by how much at most."""


@dataclass
class _Search:
    """Ends of steps that were tried from one start: their values, by the time since the start."""

    start: _State
    points: dict[float, float] = field(default_factory=dict)
    asked: float | None = None
    """The end that it has asked for."""
    closed: float | None = None
    """The end before which there is no other place, right behind the crossing."""
    suspected: bool = False
    """Whether it has looked within the step already."""
    tries: int = 0
    """How many ends were tried since the crossing is enclosed,"""
    most: int = 0
    """and how many it may be."""


class CrossingDetector:
    """Watches one value. `early`: the level handles steps that end elsewhere than asked for.

    `event_grid`: how far apart the ends are that can be asked for.
    """

    early = False
    event_grid = 0.0
    z, size, last_h = np.zeros(0), 0, None  # the linear reading finds nothing in it

    def __init__(self, model: Detector):
        crossing = model.crossing
        self.model, self.at, self.direction = model, crossing.at, crossing.direction
        self.band = crossing.hysteresis / 2.0
        self.tolerance = 0.0 if crossing.tolerance is None else float(crossing.tolerance)
        self.state = _State()
        self.next = _State()
        self.search = _Search(self.state)
        self.spacing = 0.0

    def start(self, t: float) -> None:
        self.state = _State(reached=t)
        self.search = _Search(self.state)

    def close(self) -> None:
        pass

    def save(self) -> _State:
        self._begin(self.state)
        return self.state

    def restore(self, state: _State) -> None:
        self.state = state
        self._begin(state)

    def _begin(self, state: _State) -> None:
        """Search from a state on; what was tried from there before is still known."""
        if self.search.start is not state:
            self.search = _Search(state, {0.0: state.value})

    def output(self, t: float, u: Array) -> Array:
        if u.ndim > 2:  # in the linear reading nothing happens
            return np.zeros((1, *u.shape[2:]))
        if self.state.fresh:
            value = float(u[0, 0]) - self.at
            self.state = self.state._replace(value=value, side=self._pass(0, value)[0])
        return np.array([float(self.state.shown)])

    def space_events(self, interval: float) -> None:
        """Let crossings be at least so many seconds apart."""
        self.spacing = interval

    def notes(self) -> list[str]:
        """Say how late crossings were met."""
        count, most = self.state.late
        if self.spacing:
            return [f"its events piled up: from then on they are at least {self.spacing:.4g} s apart"]
        if not count:
            return []
        times = "one crossing" if count == 1 else f"{count} crossings"
        return [f"it met {times} late, by at most {most:.4g} s: the level cannot roll back"]

    # steps

    def step(self, t: float, h: float, u: Array) -> float:
        """Look at the end of a step; return it, or the end that all are to step to in its place."""
        if u.ndim > 2 or h == 0.0:
            return t + h
        value = float(u[0, 0]) - self.at
        if t < self.state.blind:
            return self._wait(t, h, value)
        end = self._search(t, h, value) if self.early else None
        if end is not None:
            return self.search.start.reached + end
        side, passed = self._pass(self.state.side, value)
        counts = self._counts(passed)
        self._arrive(t, h, value, side, passed if counts else 0)
        if not self.early:
            self._predict(h, counts)
        return t + h

    def _wait(self, t: float, h: float, value: float) -> float:
        """Look again once the time has come: what has crossed counts, and what has only gone further."""
        state = self.state
        if t + h < state.blind - NEXT * self.spacing:
            self._arrive(t, h, value, state.side, 0)
            return t + h
        side, passed = self._pass(state.side, value)
        further = side * value > max(self.band, side * state.value)
        found = side if self._counts(side) and (passed or further) else 0
        self._arrive(t, h, value, side, found)
        returning = not found and self._counts(side) and side * value > self.band
        again = t + h + self.spacing if returning else -math.inf
        self.state = self.state._replace(blind=again, look=again if returning else None)
        return t + h

    def _pass(self, side: int, value: float) -> tuple[int, int]:
        """Return the side that a value is on, coming from another one, and the direction if it has passed."""
        if value > self.band:
            return 1, 1 if side < 0 else 0
        if value < -self.band:
            return -1, -1 if side > 0 else 0
        return side, 0

    def _counts(self, passed: int) -> bool:
        return passed != 0 and self.direction != ("falling" if passed > 0 else "rising")

    def _arrive(self, t: float, h: float, value: float, side: int, pending: int) -> None:
        state, end = self.state, t + h
        longest = max(state.longest, h)
        # a step that is shorter than the rounding of the time says nothing about where the output goes
        past = state.past if end <= t else (*state.past[-1:], (t, state.value))
        look = state.look
        if look is not None and end >= look - NEXT * longest:
            look = None
        self.state = state._replace(
            reached=end,
            value=value,
            side=side,
            past=past,
            pending=pending or state.pending,  # what has not been handled yet is still to be shown
            look=look,
            longest=longest,
            fresh=False,
        )

    # where the level rolls back

    def _search(self, t: float, h: float, value: float) -> float | None:
        """Return where the step is to end in place of t + h, since the start; None: where it ends."""
        search, grid, rounding = self.search, self.event_grid, EPSILON * abs(t + h)
        here = (t - search.start.reached) + h
        seen = [each for each in search.points if abs(each - here) <= max(0.5 * grid, 2.0 * rounding)]
        here = seen[0] if seen else here
        if not seen or self._crosses(value) <= self._crosses(search.points[here]):
            search.points[here] = value
        place = max(grid, ROUNDINGS * rounding)
        own = search.asked is not None and here >= search.asked - 0.25 * place
        if own:
            search.asked = None
        bracket = self._bracket()
        if bracket is None:
            longest = max(search.points)
            if own and here < longest and not self.model.repeated:
                return longest - 0.5 * grid
            search.asked = self._extremum(t, h, value)
            return search.asked
        a, b, direction = bracket
        if own and seen and here == b:
            search.closed = b  # asked for an earlier end, the level came here: there is no place before it
        enclosed = b - a <= max(self.tolerance, 1.5 * grid, place) or search.closed == b
        if here == b and enclosed:
            return None
        if here < b and (not own or self.model.repeated):
            return None  # others end the step before the crossing; or it goes on from here
        # asked for b itself, the level might come to the place behind it: by a rounding of the time
        search.asked = b - 0.5 * grid if enclosed else self._next_end(a, b, direction, place)
        return search.asked

    def _crosses(self, value: float) -> bool:
        """Return whether a value has crossed, as seen from where the search began.

        An end is tried again in steps of other lengths, in which the output is interpolated in other ways: a
        value that is zero but for rounding may have crossed in some of them. That it had not is believed.
        """
        return self._counts(self._pass(self.search.start.side, value)[1])

    def _next_end(self, a: float, b: float, direction: int, place: float) -> float:
        """Return the end to try next between two that enclose a crossing more loosely than is asked for.

        It aims at the last end before the crossing, and from there at the first one behind it: only when both
        were seen is it known where the crossing is. A level steps to the first place not before the end.
        """
        search, tolerance = self.search, self.tolerance
        root = self._root(a, b, direction)
        if tolerance <= 4.0 * place:
            aim = root if root - a <= place else root - place
        elif root - a <= 0.5 * tolerance:
            aim = min(root + 0.25 * tolerance, a + 0.75 * tolerance)
        else:
            aim = root - 0.25 * tolerance
        width, finest, middle = b - a, max(tolerance, place), 0.5 * (a + b)
        if not search.tries:
            search.most = max(1, math.ceil(math.log2(width / finest))) + SPARE
        search.tries += 1
        # so near the middle that halving from here on still ends in time (Oliveira and Takahashi 2020, ITP)
        off = max(finest * 2.0 ** max(search.most - search.tries, 0) - 0.5 * width, 0.0)
        aim = min(max(aim, middle - off), middle + off)
        first, last = a + 0.5 * place, b - self.event_grid - 0.5 * place
        return min(max(aim, first), last) if first <= last else middle

    def _bracket(self) -> tuple[float, float, int] | None:
        """Return the two ends between which the first crossing that counts is, and its direction."""
        side, before = self.search.start.side, 0.0
        for end in sorted(self.search.points)[1:]:
            side, passed = self._pass(side, self.search.points[end])
            if self._counts(passed):
                return before, end, passed
            before = end
        return None

    def _extremum(self, t: float, h: float, value: float) -> float | None:
        """Return where within a step the output may have been on the other side; looked at once.

        It is where the parabola through three values has its vertex, if that is beyond the band.
        """
        search, now = self.search, self.state.value
        if search.suspected or not self.state.past:
            return None
        before, earlier = self.state.past[-1]
        if t <= before:
            return None
        first, second = (now - earlier) / (t - before), (value - now) / h
        curve = (second - first) / (t + h - before)
        if curve == 0.0:
            return None
        vertex = 0.5 * (h - second / curve)
        if not 0.01 * h < vertex < 0.99 * h:
            return None
        extreme = now + vertex * (second + curve * (vertex - h))
        if not self.state.side or self._pass(self.state.side, extreme)[0] == self.state.side:
            return None
        search.suspected = True
        return (t - search.start.reached) + vertex

    def _root(self, a: float, b: float, direction: int) -> float:
        """Return where the polynomial through the four values around a bracket leaves the band."""
        threshold = direction * self.band
        start, points = self.search.start, self.search.points
        known = [*points.items(), *((time - start.reached, value) for time, value in start.past)]
        others = sorted((each for each in known if each[0] not in (a, b)), key=lambda each: abs(each[0] - a))
        nodes = [(a, points[a]), (b, points[b]), *others[:2]]
        x, c = [node for node, _ in nodes], [value - threshold for _, value in nodes]
        low, high = a, b
        for order in range(1, len(x)):
            for k in range(len(x) - 1, order - 1, -1):
                c[k] = (c[k] - c[k - 1]) / (x[k] - x[k - order])

        def polynomial(s: float) -> float:
            p = c[-1]
            for k in range(len(x) - 2, -1, -1):
                p = p * (s - x[k]) + c[k]
            return p

        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            # as in _pass, a value on the threshold has not crossed it: at the end before, it may be there
            low, high = (low, middle) if direction * polynomial(middle) > 0.0 else (middle, high)
        return high

    # where it does not

    def _predict(self, h: float, late: bool) -> None:
        """Announce where the output will cross, as far as its values tell; count what is met late."""
        state = self.state
        if late:
            count, most = state.late
            self.state = state._replace(late=(count + 1, max(most, h)))
            return
        ahead = self._next_root()
        if ahead is not None and ahead <= state.longest:
            ahead = max(ahead, NEXT * state.longest)
            self.state = state._replace(look=state.reached + ahead)
        else:
            self.state = state._replace(look=None)

    def _next_root(self) -> float | None:
        """Return in how many seconds the parabola through the newest values passes the band; None: never."""
        state = self.state
        threshold = -state.side * self.band
        if not state.side or not self._counts(-state.side):
            return None
        (t1, y1), y0 = state.past[-1], state.value
        slope, curve = (y0 - y1) / (state.reached - t1), 0.0
        if len(state.past) > 1:
            t2, y2 = state.past[-2]
            curve = (slope - (y1 - y2) / (t1 - t2)) / (state.reached - t2)
            slope += curve * (state.reached - t1)
        gap = y0 - threshold  # gap + slope * s + curve * s * s = 0
        root = slope * slope - 4.0 * curve * gap
        if root < 0.0:
            return None
        q = -0.5 * (slope + math.copysign(math.sqrt(root), slope))
        found = [
            s for s in (q / curve if curve else math.inf, gap / q if q else math.inf) if 0.0 < s < math.inf
        ]
        return min(found, default=None)

    # instants

    def due(self) -> float | None:
        """Return the time of the crossing until it is handled, or when it wants to see the output."""
        return self.state.reached if self.state.pending else self.state.look

    def react(self, t: float, n: int, u: Array, present: Sequence[bool]) -> list[bool]:
        """Show the crossing that was found, or that a jump has made."""
        state, value = self.state, float(u[0]) - self.at
        side, passed = (state.pending, state.pending) if state.pending else self._pass(state.side, value)
        shown = passed if self._counts(passed) else 0
        look = t + self._probe(t) if shown and (self.model.heard or self.spacing) else state.look
        self.next = state._replace(
            reached=t,
            value=value,
            side=side,
            past=() if shown or value != state.value else state.past,
            pending=0,
            look=look,
            blind=t + self.spacing if shown and self.spacing else state.blind,
            newest=t if shown else state.newest,
            fresh=False,
        )
        self.state = state._replace(shown=shown)
        return [shown != 0]

    def _probe(self, t: float) -> float:
        """Return how long after an event it looks at the output again."""
        longest = self.state.longest
        soon = min(PROBE * longest, FLIGHT * (t - self.state.newest))
        return self.spacing or max(soon, SHORTEST * longest)

    def commit(self) -> bool:
        """Take what react() has found; a jump back across the value is another event."""
        side, passed = self._pass(self.next.side, self.next.value)
        again = self._counts(passed)
        self.state = self.next if again else self.next._replace(side=side)
        return again
