"""How fast events follow each other: whether they pile up before some time, or never get on.

In:  the times of the events of one simulator, as they are met
Out: whether they pile up (Zeno) or chatter, and the time before which they all are

The native engine repeats every operation here in the same order (`native/engine/event_pace.hpp`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from hocket.model.plain_state import is_record


class Pace(Enum):
    """How events follow each other."""

    FINE = "at intervals of their own"
    ZENO = "at intervals that shrink by a stable ratio: infinitely many in a finite time"
    CHATTERING = "as close together as time can tell"


INTERVALS = 8
"""So many intervals must shrink alike."""
SHRINKING = 0.995
"""The ratio of an interval to the one before it is below this,"""
STABLE = 0.01
"""and changes by no more than this part of it."""
NEAR = 2.0**-13
"""What is left to the limit, as a part of the time since the intervals began to shrink."""
CROWD = 64
"""So many within one macro step are enough."""
MANY = 32
"""So many short intervals in a row are chattering."""
SPACING = 2.0**-8
"""Past the limit, events are at least this part of the macro step apart."""


@is_record
@dataclass
class EventPace:
    """The events of one simulator. Times are ticks, or seconds; those at or after a new one are forgotten."""

    step: float
    """The macro step."""
    times: list[float] = field(default_factory=list)
    """Since the intervals began to shrink or to be short."""
    left: float = 0.0
    """Of events that pile up: the time from the newest event to their limit."""

    def count(self, time: float, short: float) -> Pace:
        """Take the time of an event; return how they follow each other. Intervals up to `short` are short."""
        times = self.times
        while times and times[-1] >= time:
            times.pop()
        times.append(time)
        if len(times) < 3:
            return Pace.FINE
        now, before = times[-1] - times[-2], times[-2] - times[-3]
        if now > short and float(now) > SHRINKING * float(before):
            del times[:-2]
            return Pace.FINE
        if self._chatters(short):
            return Pace.CHATTERING
        return Pace.ZENO if self._piles_up() else Pace.FINE

    def _chatters(self, short: float) -> bool:
        times = self.times
        if len(times) <= MANY:
            return False
        return all(times[-k] - times[-k - 1] <= short for k in range(1, MANY + 1))

    def _piles_up(self) -> bool:
        times, least, most, ratio = self.times, 1.0, 0.0, 1.0
        if len(times) <= INTERVALS:
            return False
        for k in range(INTERVALS - 1, 0, -1):
            ratio = float(times[-k] - times[-k - 1]) / float(times[-k - 1] - times[-k - 2])
            least, most = min(least, ratio), max(most, ratio)
        if most > SHRINKING or most - least > STABLE * most:
            return False
        self.left = float(times[-1] - times[-2]) * ratio / (1.0 - ratio)
        crowded = len(times) > CROWD and times[-1] - times[-CROWD - 1] <= self.step
        return crowded or self.left <= NEAR * float(times[-1] - times[0])


def shortest_interval(step: int, place: int) -> int:
    """Return up to which interval events are as close together as their places, in ticks."""
    return max(place, min(2**12 * place, step // 2**20))


ROUNDINGS = 2.0**-42
"""Of a time: intervals up to this part of it are not much more than roundings."""


def describe_pace(pace: Pace, name: str, t: float, limit: float) -> str:
    """Return what events do that do not get on."""
    if pace is Pace.ZENO:
        return (
            f"the events of {name} pile up (Zeno): their intervals shrink by a stable ratio, and all of them "
            f"are before t = {limit:.11g} s; it got to t = {t:.11g} s"
        )
    return (
        f"the events of {name} chatter at t = {t:.11g} s: {MANY} of them in a row are as close together as "
        "time can tell"
    )
