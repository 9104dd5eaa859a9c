"""What is printed: answers, errors, tables of measures, progress, and what FMUs log while they run.

In:  lines, rows, measures; the log records of `hocket.fmu`
Out: text on stdout and stderr, in few digits, as wide as the terminal
"""

from __future__ import annotations

import logging
import math
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TextIO

from hocket.analysis.measure import Measure, verdict_lines, worst_outcome
from hocket.errors import HocketError, merge_notes
from hocket.model.clock import Duration, seconds
from hocket.model.units import Share

if TYPE_CHECKING:  # slow, and not needed where nobody looks
    from rich.console import Console, RenderableType
    from rich.padding import Padding
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn
    from rich.table import Table

    from hocket.execution.session import Progress
    from hocket.model.experiment import Experiment

LATE = 1.0
"""Seconds after which it is shown what an answer waits for."""
UNBROKEN = 1000
"""Columns of what is not a terminal."""

_HEAD = re.compile(r" *(?:\d+\. |((?:where|expected|try): *))?")
_NAME = re.compile(r"`[^`\n]+`")


def is_terminal(stderr: bool = False) -> bool:
    """Return whether the stream is a terminal, at which somebody looks."""
    return (sys.stderr if stderr else sys.stdout).isatty()


_UNSEEN = re.compile(r"\x1b(?!\[[0-9;]*m)|[\0-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What moves the cursor, renames the window or turns the direction of writing: a colour does not."""


def as_visible(text: str) -> str:
    """Return a text in which control characters are written out: a name in a file may hold any."""
    return _UNSEEN.sub(lambda found: repr(found[0])[1:-1], text)


class _VisibleStream:
    """A stream on which control characters of names and messages are written out."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def write(self, text: str) -> int:
        return self.stream.write(as_visible(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def console(stderr: bool = False, moving: bool = False) -> Console:
    """Return a console for the stream as it is now; one that is `moving` draws over what it has drawn."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    file: Any = stream if moving else _VisibleStream(stream)
    return Console(file=file, highlight=False, width=None if is_terminal(stderr) else UNBROKEN)


def print_out(*lines: RenderableType) -> None:
    """Print an answer; texts are taken as they are, without markup."""
    if not is_terminal() and all(isinstance(line, str) for line in lines):
        for text in (part for line in lines for part in str(line).splitlines() or [""]):
            print(as_visible(text.rstrip()))
        return
    screen = console()
    if is_terminal():
        for line in lines:
            screen.print(line, markup=False, emoji=False)
        return
    with screen.capture() as captured:
        for line in lines:
            screen.print(line, markup=False, emoji=False)
    for line in captured.get().splitlines():  # without the spaces that fill a table
        print(as_visible(line.rstrip()))


def print_err(*lines: str) -> None:
    """Print on stderr."""
    if not is_terminal(stderr=True):
        print(*map(as_visible, lines), sep="\n", end="\n" if lines else "", file=sys.stderr)
        return
    for line in lines:
        console(stderr=True).print(line, markup=False, emoji=False, soft_wrap=True)


def print_failure(message: str) -> None:
    """Print the message of an error on stderr; on a terminal its lines are broken between words."""
    if not is_terminal(stderr=True):
        print_err(message)
        return
    from rich.table import Table
    from rich.text import Text

    screen = console(stderr=True)
    for line in message.splitlines():
        head, label = _HEAD.match(line).group(0, 1)  # type: ignore[union-attr]
        body = Text(line[len(head) :], "" if label else "bold red", overflow="fold")
        body.highlight_regex(_NAME, "cyan")
        grid = Table.grid()
        grid.add_row(*([Text(head, "dim")] if head else []), body)
        screen.print(grid)


_NUMBER = re.compile(r"[-+]?\d[\d.]*(?:[eE][-+]?\d+)?")


class _LogPrinter(logging.Handler):
    """Prints records; of those that differ by numbers only the first, and counts the others."""

    def __init__(self, everything: bool):
        super().__init__()
        self.everything = everything
        self.counts: dict[str, int] = {}
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = " ".join(record.getMessage().split())
        kind = _NUMBER.sub("#", text)
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.everything:
            print_err(f"{text}  ({record.levelname.lower()})")
        elif record.levelno >= logging.ERROR:
            self.errors.append(text)  # the error that ends the run most often says the same
        elif self.counts[kind] == 1:
            print_err(text)

    def finish(self, said: Iterable[str]) -> None:
        """Say what was held back, unless it was said otherwise."""
        failures = [" ".join(text.split()) for text in said]
        for text in dict.fromkeys(self.errors):
            if not any(text.partition(": ")[2] in failure for failure in failures):
                print_err(text)
        more = sum(self.counts.values()) - len(self.counts) - len(self.errors)
        if more > 0 and not self.everything:
            print_err(f"({more:,} more such messages: --log shows all)")


@contextmanager
def relay_fmu_logs(everything: bool) -> Iterator[list[str]]:
    """Print what FMUs say, while a verb is at work; to the list it adds what it tells about errors itself."""
    from hocket.simulators.fmu.log_messages import LOGGER, deliver

    ear, level = _LogPrinter(everything), LOGGER.level
    said: list[str] = []
    LOGGER.addHandler(ear)
    LOGGER.setLevel(logging.INFO if everything else logging.WARNING)
    try:
        yield said
    except HocketError as error:
        said.append(str(error))
        raise
    finally:
        deliver()
        LOGGER.removeHandler(ear)
        LOGGER.setLevel(level)
        ear.finish(said)


def format_significant(number: float) -> str:
    """Return a number with three digits that mean something: 0.0213, 1.24, 35,700."""
    rounded = float(f"{number:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def format_with_prefix(number: float) -> str:
    """Return a number in few signs: 950, 1.20k, 34.0M."""
    for scale, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:#.3g}".rstrip(".") + sign
    return f"{number:#.3g}".rstrip(".")


@contextmanager
def count_progress(name: str, what: str, quiet: bool, total: int = 1) -> Iterator[Progress | None]:
    """Give what is called with how many of how many are done; None where nobody would see it."""
    if quiet or not is_terminal(stderr=True):
        yield None
        return
    from rich.progress import TextColumn

    with progress_bar(TextColumn(f"{{task.fields[done]}} of {{task.total:g}} {what}")) as bar:
        task = bar.add_task(name, total=total, done=0)
        yield lambda done, wanted: bar.update(task, completed=done, total=wanted, done=int(done))


@contextmanager
def stage_progress(name: str, quiet: bool) -> Iterator[Callable[[str], None] | None]:
    """Give what is called with the stage that begins; it is shown after a second, where somebody sees it."""
    if quiet or not is_terminal(stderr=True):
        yield None
        return
    from rich.text import Text

    line = console(stderr=True, moving=True).status("")
    late = threading.Timer(LATE, line.start)
    late.daemon = True
    late.start()
    try:
        yield lambda stage: line.update(Text.assemble((name, "bold"), f": {stage}"))
    finally:
        late.cancel()
        line.stop()


@contextmanager
def run_progress(
    experiment: Experiment, quiet: bool, start: Duration | None = None
) -> Iterator[Progress | None]:
    """Give what `run` calls to show its progress; None where nobody would see it."""
    if quiet or not is_terminal(stderr=True):
        yield None
        return
    from rich.progress import TextColumn

    begin = float(seconds(start or experiment.start))
    length = float(experiment.composite.step)
    columns = TextColumn("{task.fields[reached]}"), TextColumn("{task.fields[rate]}", style="dim")
    with progress_bar(*columns) as bar:
        task = bar.add_task(experiment.name, total=1.0, reached="", rate="starting")

        def update(t: float, stop: float) -> None:
            decimals = max(0, 3 - math.ceil(math.log10(abs(stop) or 1.0)))
            reached = f"{t:.{decimals}f}/{stop:g} s"
            bar.update(task, total=stop - begin, completed=t - begin, reached=reached)
            if speed := bar.tasks[task].speed:
                steps = format_with_prefix(speed / length)
                bar.update(task, rate=f"{format_with_prefix(speed)} s/s  {steps} steps/s")

        yield update


def progress_bar(*columns: ProgressColumn) -> Bar:
    """Return a bar with these columns beside it."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description}", style="bold"),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
        *columns,
        TimeRemainingColumn(compact=True),
        console=console(stderr=True, moving=True),
        transient=True,
        expand=True,
        redirect_stdout=is_terminal(),
    )


def print_measures(
    measures: Sequence[Measure], most: int | None, more: str = "--all", remark: str = ""
) -> None:
    """Print the verdict, a remark, and `most` rows of each table; `more` is how to see the others."""
    from rich.text import Text

    good = worst_outcome(measures).exit_code == 0
    first, *rest = verdict_lines(measures) or ["nothing to judge"]
    print_out(Text(first, "bold" if good else "bold red"), *rest, *filter(None, [remark]))
    for each in measures:
        rows, notes = each.rows(), each.notes()
        print_out(*titled_table(each.title, rows, most, more), *([""] if notes and not rows else []), *notes)


def titled_table(
    title: str, rows: Sequence[Mapping[str, object]], most: int | None, more: str = "--all"
) -> Iterator[RenderableType]:
    """Yield rows as a table under a title; `most` of them."""
    from rich.text import Text

    if not rows:
        return
    grid = plain_table()
    for head, value in rows[0].items():
        justify: Literal["left", "right"] = "left" if isinstance(value, (str, Text)) else "right"
        grid.add_column(head, justify=justify, overflow="fold")
    for row in rows[:most]:
        grid.add_row(*(value if isinstance(value, Text) else format_cell(value) for value in row.values()))
    yield from ("", Text(title, "cyan"), grid)
    if most is not None and len(rows) > most:
        yield f"and {len(rows) - most} more: {more}"


def plain_table(*heads: str, **how: Any) -> Table:
    """Return a table without lines, and with columns under these heads; `how` Rich lays them out."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for head in heads:
        table.add_column(head, **how)
    return table


def indent(content: RenderableType, columns: int = 2) -> Padding:
    """Return what is printed, so far to the right."""
    from rich.padding import Padding

    return Padding(content, (0, 0, 0, columns), expand=False)


def label_grid(pairs: Iterable[tuple[str, RenderableType]]) -> Padding:
    """Return facts beside their labels, indented."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in pairs:
        grid.add_row(label, text)
    return indent(grid)


def print_notes(notes: Iterable[str]) -> None:
    """Print what was noted on the way."""
    from rich.text import Text

    print_out(*(Text(f"note: {note}", "yellow") for note in merge_notes(notes)))


def format_cell(value: object) -> str:
    """Return a value in few digits; near one in more."""
    if isinstance(value, float) and not isinstance(value, Share):
        return f"{value:.6g}" if 0.5 < abs(value) < 2.0 else f"{value:.3g}"
    return "" if value is None else str(value)
