"""Keeping pace with the clock: steps are released when their time has come, and what is late is counted.

In:  a way to make steps, and how long each may take
Out: steps at their times; how often, and by how much, they were late
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter, sleep
from typing import Any

RELEASE_INTERVAL = 1e-3
"""Seconds of real time in which steps are released together."""
SLICE = 0.05
"""Seconds of sleep between two looks at the keyboard."""


class RealTimePacer:
    """Keeps simulated time from running ahead of the clock; what is late is not slept off but caught up."""

    def __init__(self, factor: float, step: float):
        self.factor = factor
        self.step = step / factor
        """Real seconds that a step is given."""
        self.chunk = max(1, int(RELEASE_INTERVAL / self.step))
        self.begin: float | None = None
        self.done = 0
        self.overruns = 0
        self.largest_lag = 0.0

    def run(
        self, run: Callable[[int, float], int], steps: int, seconds: float, interrupted: threading.Event
    ) -> int:
        """Run up to so many steps for about so many real seconds; return how many were done."""
        now = perf_counter()
        if self.begin is None:
            self.begin = now
        until, before = now + seconds, self.done
        while self.done - before < steps and now < until and not interrupted.is_set():
            left = steps - (self.done - before)
            made = run(min(left, self.chunk), seconds)
            if not made:
                break
            self.done += made
            now = self._wait(self.begin + self.done * self.step, interrupted)
        return self.done - before

    def _wait(self, due: float, interrupted: threading.Event) -> float:
        """Sleep until an instant, or until Ctrl-C; return the time."""
        now = perf_counter()
        lag = now - due
        self.largest_lag = max(self.largest_lag, lag)
        self.overruns += lag > self.step + RELEASE_INTERVAL
        while now < due and not interrupted.is_set():
            sleep(min(due - now, SLICE))
            now = perf_counter()
        return now

    @property
    def facts(self) -> dict[str, Any]:
        """How it went; the lag is in seconds."""
        return {"factor": self.factor, "overruns": self.overruns, "largest_lag": self.largest_lag}
