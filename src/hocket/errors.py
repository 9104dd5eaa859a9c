"""The error tree, by who must act; every message says what, where, what was expected, what to try.

In:  a fault found anywhere
Out: an exception whose text a user can act on
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self

SECTIONS = frozenset(
    [
        *(
            "models",
            "connections",
            "bonds",
            "constraints",
            "crossings",
            "hosts",
            "inputs",
            "outputs",
            "orchestrator",
        ),
        *("parameters", "tune", "objectives", "limits"),
    ]
)
"""The parts of a scenario whose entries have names: `connections.left.force`."""


_LINE = re.compile(r"(?:(.+), )?line (\d+)")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fault is, as far as that is known; decisions are made on its fields, `str` is for people."""

    level: str = ""
    """The path of the level, `car.axle`; empty: the outermost."""
    section: str = ""
    """The part of the level's description, `connections`."""
    key: str = ""
    """The entry of the section, `wheel.force`; without a section an argument, `tolerance`."""
    file: str = ""
    line: int | None = None
    option: str = ""
    """The option of the command line, with what was typed after it."""
    detail: str = ""
    """What else helps to find it: a call, a time, a line of the user's own code."""

    @classmethod
    def of(cls, written: str | Place) -> Place:
        """Return a place written as `section.key`, `key`, `--option`, `file, line 3` or in words."""
        if isinstance(written, Place):
            return written
        if found := _LINE.fullmatch(written):
            return cls(file=found[1] or "", line=int(found[2]))
        address, _, detail = written.partition(", ")
        section, _, key = address.replace("[", ".[", 1).partition(".")
        if section in SECTIONS:
            return cls(section=section, key=key, detail=detail)
        if address.startswith("--"):
            return cls(option=address, detail=detail)
        return cls(key=address, detail=detail) if address.isidentifier() else cls(detail=written)

    @property
    def address(self) -> str:
        """The place in the scenario: `car.axle.connections.wheel.force`."""
        return ".".join(part for part in (self.level, self.section, self.key) if part).replace(".[", "[")

    def within(self, level: str) -> Place:
        """Return the same place as seen from outside of a level, whose path may end with a dot."""
        path = ".".join(part for part in (level.rstrip("."), self.level) if part)
        return replace(self, level=path)

    def __str__(self) -> str:
        line = "" if self.line is None else f"line {self.line}"
        found = ", ".join(part for part in (self.file, line) if part)
        if found:
            return found + (f" ({self.detail})" if self.detail else "")
        argument = self.key == self.address  # which the message names
        address = "" if argument and self.detail else self.address
        return ", ".join(part for part in (self.option, address, self.detail) if part)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong; its place may be written as a text, see `Place.of`."""

    what: str
    place: Place = Place()
    expected: str = ""
    hint: str = ""

    def __init__(self, what: str, place: Place | str = "", expected: str = "", hint: str = ""):
        for name, value in (
            ("what", what),
            ("place", Place.of(place)),
            ("expected", expected),
            ("hint", hint),
        ):
            object.__setattr__(self, name, value)

    @property
    def where(self) -> str:
        """The place in words."""
        return str(self.place)

    def within(self, level: str) -> Self:
        """Return the fault as seen from outside of a level."""
        return replace(self, place=self.place.within(level))

    def __str__(self) -> str:
        lines = [self.what]
        for label, text in (("where", self.where), ("expected", self.expected), ("try", self.hint)):
            if text:
                lines.append(f"  {label + ':':<10}{text}")
        return "\n".join(lines)


class HocketError(Exception):
    """Anything hocket reports."""

    def __init__(
        self, what: str | Sequence[Fault], where: Place | str = "", expected: str = "", hint: str = ""
    ):
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


class EndRequestError(SimulatorError):
    """A simulator asks to end the simulation inside a step: nobody must act, the run ends there."""

    by = ""
    """Its path, once that is known."""


class ConvergenceError(HocketError):
    """An iteration did not converge: where, residuals, what to try."""


class HostError(HocketError):
    """Who looks after the hosts must act: which one is gone or late, at which exchange, what to do."""

    host = ""
    """The host that it is about."""
    status = ""
    """How its run ended, where it said so when it left: `stopped`, `failed`."""


class InternalError(HocketError):
    """A fault of hocket's own: please report it."""


def raise_faults(faults: Iterable[Fault]) -> None:
    """Raise ScenarioError with all the faults, if there are any."""
    if found := list(faults):
        raise ScenarioError(found)


@contextmanager
def collect_faults(faults: list[Fault], level: str = "") -> Iterator[None]:
    """Add the faults of a ScenarioError to a list, to be reported with others; `level` is where they are."""
    try:
        yield
    except ScenarioError as error:
        faults += [fault.within(level) for fault in error.faults]


def suggest_nearest(name: object, names: Iterable[str], listing: bool = True) -> str:
    """Return `did you mean ...?` with the nearest name; where none is near, a list of them or nothing."""
    known = list(names)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"one of {list_names(known, 8)}" if known and listing else ""


def list_names(names: Iterable[str], most: int, quote: str = "`") -> str:
    """Return the first names, quoted, and how many more there are."""
    known = list(names)
    shown = ", ".join(f"{quote}{name}{quote}" for name in known[:most])
    return shown + (f" and {len(known) - most} more" if len(known) > most else "")


_SUBJECT = re.compile(r"`([^`]*)`")
_ALIKE = 3
"""Notes that differ in their subject only and are not merged yet."""


def merge_notes(notes: Iterable[str]) -> list[str]:
    """Return notes for people: identical ones, and many that differ in the name they begin with, are one."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for note in notes:
        subject = _SUBJECT.match(note)
        rest = note[subject.end() :] if subject else note
        groups.setdefault((subject is not None, rest), []).append(note)
    merged: list[str] = []
    for group in groups.values():
        counts = Counter(group)
        if len(counts) > _ALIKE:
            names = [found[1] for found in map(_SUBJECT.match, counts) if found]
            merged.append(f"{group[0]} (the same of {len(counts) - 1} more: {list_names(names[1:], 3)})")
        else:
            merged += [text if times == 1 else f"{text} ({times} times)" for text, times in counts.items()]
    return merged


def join_names(names: Sequence[str], quote: str = "`") -> str:
    """Return names, quoted, with commas and a last `and`."""
    quoted = [f"{quote}{name}{quote}" for name in names]
    return " and ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))


def count(number: int, thing: str) -> str:
    """Return such as `1 step`, `1,000 steps`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
