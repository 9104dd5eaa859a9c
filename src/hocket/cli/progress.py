"""The progress bar: how far, how fast, how long still.

In:  the time reached, about ten times a second
Out: one line on a terminal, gone when the run ends
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from hocket.cli.screen import console, is_terminal
from hocket.cli.words import format_with_prefix
from hocket.clock import Duration, seconds
from hocket.execution import Progress


class _RateColumn(ProgressColumn):
    """Simulated seconds and steps per second of real time."""

    def __init__(self, step: Duration):
        self.step = step
        super().__init__()

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("starting", style="dim")
        steps = speed / float(seconds(self.step))
        return Text(f"{format_with_prefix(speed)} s/s  {format_with_prefix(steps)} steps/s", style="dim")


@contextmanager
def count_progress(name: str, what: str, quiet: bool, total: int = 1) -> Iterator[Progress | None]:
    """Give what is called with how many of how many are done; None where nobody would see it."""
    if quiet or not is_terminal(stderr=True):
        yield None
        return
    with progress_bar(TextColumn(f"{{task.fields[done]}} of {{task.total:g}} {what}")) as bar:
        task = bar.add_task(name, total=total, done=0)
        yield lambda done, wanted: bar.update(task, completed=done, total=wanted, done=int(done))


@contextmanager
def run_progress(name: str, start: Duration, step: Duration, quiet: bool) -> Iterator[Progress | None]:
    """Give what `run` calls to show its progress; None where nobody would see it."""
    if quiet or not is_terminal(stderr=True):
        yield None
        return
    with progress_bar(TextColumn("{task.fields[reached]}"), _RateColumn(step)) as bar:
        task = bar.add_task(name, total=1.0, reached="")

        def update(t: float, stop: float) -> None:
            begin = float(seconds(start))
            decimals = max(0, 3 - math.ceil(math.log10(abs(stop) or 1.0)))
            reached = f"{t:.{decimals}f}/{stop:g} s"
            bar.update(task, total=stop - begin, completed=t - begin, reached=reached)

        yield update


def progress_bar(*columns: ProgressColumn) -> Bar:
    """Return a bar with these columns beside it."""
    return Bar(
        TextColumn("{task.description}", style="bold"),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
        *columns,
        TimeRemainingColumn(compact=True),
        console=console(stderr=True),
        transient=True,
        expand=True,
        redirect_stdout=is_terminal(),
    )
