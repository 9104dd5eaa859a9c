"""A search that is watched: how many couplings were judged, and what the best are so far.

In:  what a search tells while it searches
Out: one line on a terminal, gone when it ends; the answer so far where it is stopped
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import Progress as Bar
from rich.progress import TaskID, TextColumn

from hocket.cli.progress import progress_bar
from hocket.cli.screen import is_terminal, print_err

if TYPE_CHECKING:
    from hocket.tuning.tuned import TuningResult

EVERY = 1.0
"""Seconds between two early results."""
SELDOM = 30.0
"""Seconds between two lines, where no bar is drawn."""


class SearchMonitor:
    """What is known of a search while it goes on."""

    def __init__(self, bar: Bar | None, task: TaskID | None, writes: bool = False):
        self.done, self.total = 0, 0
        self._writes = writes
        """Whether a line is written now and then, where no bar is drawn."""
        self.stopped = False
        self._bar, self._task = bar, task
        self._latest: TuningResult | None = None
        self._shown = time.monotonic()

    def report_progress(self, done: float, total: float) -> None:
        """Be told how many of how many were judged."""
        self.done, self.total = int(done), int(total)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total, done=f"{self.done:,} of {self.total:,}")
        elif self._writes and time.monotonic() - self._shown >= SELDOM:
            self._shown = time.monotonic()
            print_err(f"{self.done:,} of {self.total:,} couplings are judged")

    def report_early(self, tuned: TuningResult) -> None:
        """Be told what was judged so far; the best of it is shown now and then."""
        self._latest = tuned
        if self._bar is None or self._task is None or time.monotonic() - self._shown < EVERY:
            return
        self._shown = time.monotonic()
        self._bar.update(self._task, best=_best_so_far(tuned))

    def stop_search(self) -> TuningResult | None:
        """Return the answer so far: the search was stopped."""
        self.stopped = True
        return self._latest


def _best_so_far(tuned: TuningResult) -> str:
    if not tuned.front:
        return "none within limits"
    numbers = tuned.numbers[tuned.front[tuned.knee]]
    told = ", ".join(
        f"{each.name} {value:.2g}" for each, value in zip(tuned.wanted[: tuned.goals], numbers, strict=False)
    )
    return f"best: {told}"


@contextmanager
def watch_search(name: str, quiet: bool) -> Iterator[SearchMonitor]:
    """Give what a search tells its progress to; it draws a bar if somebody looks."""
    if quiet or not is_terminal(stderr=True):
        yield SearchMonitor(None, None, writes=not quiet)
        return
    with progress_bar(
        TextColumn("{task.fields[done]} couplings"), TextColumn("{task.fields[best]}", style="dim")
    ) as bar:
        yield SearchMonitor(bar, bar.add_task(name, total=None, done="0", best=""))
