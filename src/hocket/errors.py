"""The error tree, by who must act; every message says what, where, what was expected, what to try.

In:  a fault found anywhere
Out: an exception whose text a user can act on
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. `where` is a place in the scenario (`models.left.step`) or in a file."""

    what: str
    where: str = ""
    expected: str = ""
    hint: str = ""

    def __str__(self) -> str:
        lines = [self.what]
        for label, text in (("where", self.where), ("expected", self.expected), ("try", self.hint)):
            if text:
                lines.append(f"  {label + ':':<10}{text}")
        return "\n".join(lines)


class HocketError(Exception):
    """Anything hocket reports."""

    def __init__(self, what: str | Sequence[Fault], where: str = "", expected: str = "", hint: str = ""):
        self.faults = (Fault(what, where, expected, hint),) if isinstance(what, str) else tuple(what)
        super().__init__(self.text())

    def text(self) -> str:
        """Return the whole message; several faults are numbered."""
        if len(self.faults) == 1:
            return str(self.faults[0])
        blocks = (str(fault).replace("\n", "\n   ") for fault in self.faults)
        listing = "\n".join(f"{number}. {block}" for number, block in enumerate(blocks, 1))
        return f"{len(self.faults)} faults:\n{listing}"


class ScenarioError(HocketError):
    """The author of the scenario must act."""


class FileError(ScenarioError):
    """A scenario file cannot be read or written; `where` has file and line."""


class SimulatorError(HocketError):
    """The author of a simulator must act: which one, at what time, in which call."""


class ConvergenceError(HocketError):
    """The numbers did not settle: where, residuals, what to try."""


class InternalError(HocketError):
    """A fault of hocket's own: please report it."""


def raise_faults(faults: Iterable[Fault]) -> None:
    """Raise ScenarioError with all the faults, if there are any."""
    if found := list(faults):
        raise ScenarioError(found)


@contextmanager
def collect_faults(faults: list[Fault]) -> Iterator[None]:
    """Add the faults of a ScenarioError to a list, so that they can be reported with others."""
    try:
        yield
    except ScenarioError as error:
        faults += error.faults


def suggest_nearest(name: str, names: Iterable[str], listing: bool = True) -> str:
    """Return `did you mean ...?` with the nearest name; where none is near, a list of them or nothing."""
    known = list(names)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"one of {list_names(known, 8)}" if known and listing else ""


def list_names(names: Iterable[str], most: int, quote: str = "`") -> str:
    """Return the first names, quoted, and how many more there are."""
    known = list(names)
    shown = ", ".join(f"{quote}{name}{quote}" for name in known[:most])
    return shown + (f" and {len(known) - most} more" if len(known) > most else "")


def join_names(names: Sequence[str], quote: str = "`") -> str:
    """Return names, quoted, with commas and a last `and`."""
    quoted = [f"{quote}{name}{quote}" for name in names]
    return " and ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))


def count(number: int, thing: str) -> str:
    """Return such as `1 step`, `1,000 steps`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
