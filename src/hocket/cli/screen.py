"""The two consoles: answers go to stdout, everything else to stderr.

In:  text, and what Rich can draw
Out: colours and the width of the window on a terminal; plain, unbroken lines in a pipe or a file
"""

from __future__ import annotations

import re
import sys

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

UNBROKEN = 1000
"""Columns of what is not a terminal."""

_HEAD = re.compile(r" *(?:\d+\. |((?:where|expected|try): *))?")
_NAME = re.compile(r"`[^`\n]+`")


def is_terminal(stderr: bool = False) -> bool:
    """Return whether the stream is a terminal, at which somebody looks."""
    return (sys.stderr if stderr else sys.stdout).isatty()


def console(stderr: bool = False) -> Console:
    """Return a console for the stream as it is now."""
    return Console(stderr=stderr, highlight=False, width=None if is_terminal(stderr) else UNBROKEN)


def print_out(*lines: RenderableType) -> None:
    """Print an answer; texts are taken as they are, without markup."""
    screen = console()
    if is_terminal():
        for line in lines:
            screen.print(line, markup=False, emoji=False)
        return
    with screen.capture() as captured:
        for line in lines:
            screen.print(line, markup=False, emoji=False)
    for line in captured.get().splitlines():  # without the spaces that fill a table
        print(line.rstrip())


def print_err(*lines: str) -> None:
    """Print on stderr."""
    for line in lines:
        console(stderr=True).print(line, markup=False, emoji=False, soft_wrap=True)


def print_failure(message: str) -> None:
    """Print the message of an error on stderr; on a terminal its lines are broken between words."""
    if not is_terminal(stderr=True):
        print_err(message)
        return
    screen = console(stderr=True)
    for line in message.splitlines():
        head, label = _HEAD.match(line).group(0, 1)  # type: ignore[union-attr]
        body = Text(line[len(head) :], "" if label else "bold red", overflow="fold")
        body.highlight_regex(_NAME, "cyan")
        grid = Table.grid()
        grid.add_row(*([Text(head, "dim")] if head else []), body)
        screen.print(grid)
