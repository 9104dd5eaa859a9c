"""Looks after a run while a step lasts: rows are handed out and a request to stop is heard within a step.

In:  looks from every instruction that a level executes, and while an isolated simulator is waited for
Out: about once per interval a call of `attend`; a StoppedError once it says that the run does not go on
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeAlias

Attend: TypeAlias = Callable[[bool], bool]
"""Called within a long step: with whether rows may be taken; returns whether the run goes on."""


class StoppedError(BaseException):
    """The run was asked to stop within a step: nobody's fault, and caught by the engine alone."""


class Watch:
    """Reads the clock, and calls `attend` when an interval is over."""

    def __init__(self, attend: Attend, seconds: float):
        self.attend = attend
        self.seconds = seconds
        self.due = perf_counter() + seconds

    def look(self) -> None:
        """Call `attend` if it is time; raises StoppedError where the run does not go on."""
        if perf_counter() < self.due:
            return
        if not self.attend(True):
            raise StoppedError
        self.due = perf_counter() + self.seconds
