"""Where a value stands, in which file, on which line, at which level; and what was found wrong so far.

In:  the keys that are walked through while a file is read or a composite is written
Out: faults with file and line
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

from hocket.errors import Fault, HocketError
from hocket.files.toml.lines import Keys, Lines

T = TypeVar("T")


class Mark(Enum):
    """Stands for a value that could not be read; the fault is already noted."""

    WRONG = "wrong"


WRONG: Final = Mark.WRONG
Wrong: TypeAlias = Literal[Mark.WRONG]


@dataclass(frozen=True, eq=False)
class Source:
    """One file, or a text that stands for one."""

    name: str = ""
    """As messages name it."""
    text: str = ""
    folder: str = ""
    """Where relative paths in it start."""
    chain: tuple[Path, ...] = ()
    """The files that include each other down to this one, itself last."""
    table: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def lines(self) -> Lines:
        """Looked for when the first fault is found."""
        return Lines(self.text)


@dataclass
class Findings:
    """What is known after a read beside the result."""

    check: bool = True
    """Whether code that is named is loaded, and the scenario's own faults are looked for."""
    faults: list[tuple[Place, Fault]] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    """By the `where` of a scenario's own fault: `axle.connections.wheel.force`."""
    broken: list[str] = field(default_factory=list)
    """The paths of models that could not be read: what is said about their ports means nothing."""

    def in_order(self) -> list[Fault]:
        """Return the faults as they stand in the files."""
        sources = list(dict.fromkeys(place.source for place, _ in self.faults))
        ranked = sorted(self.faults, key=lambda found: (sources.index(found[0].source), found[0].line or 0))
        return list(dict.fromkeys(fault for _, fault in ranked))


@dataclass(frozen=True)
class Place:
    """A value's place; `place / key` goes into a table or an array."""

    findings: Findings
    source: Source
    keys: Keys = ()
    level: str = ""
    """The path of the level it belongs to, with a dot at the end; empty: the outermost."""
    at_line: int | None = None
    """Where the line is known and the keys are not."""

    def __truediv__(self, key: str | int) -> Place:
        return Place(self.findings, self.source, (*self.keys, key), self.level)

    @property
    def line(self) -> int | None:
        """None: the whole file, or there is no file."""
        if self.at_line is not None or not self.source.text:
            return self.at_line
        return self.source.lines.of(self.keys)

    @property
    def where(self) -> str:
        """File and line; without a file the keys."""
        line = "" if self.line is None else f"line {self.line}"
        return ", ".join(part for part in (self.source.name, line) if part) or ".".join(map(str, self.keys))

    @property
    def label(self) -> str:
        """The key with the numbers after it: `A[1][0]`."""
        name = ""
        for key in self.keys:
            name = f"{name}[{key}]" if isinstance(key, int) else key
        return f"`{name}`"

    def beside(self, key: str) -> Any:
        """Return the value of another key of the same table; None if it has none."""
        table: Any = self.source.table
        for name in self.keys[:-1]:
            table = table[name]
        return table.get(key)

    def fault(self, what: str, expected: str = "", hint: str = "") -> Wrong:
        """Note a fault here."""
        self.findings.faults.append((self, Fault(what, self.where, expected, hint)))
        return WRONG

    def unexpected(self, value: Any, expected: str, hint: str = "") -> Wrong:
        """Note that the value is not what it should be."""
        return self.fault(f"{self.label} is {found(value)}", expected, hint)

    def unwritable(self, value: Any, hint: str = "") -> str:
        """Note that a value cannot be written; return words that tell a reader what was there."""
        what = f"`{_short(getattr(value, '__name__', repr(value)))}` cannot be written to a file"
        self.findings.faults.append((self, Fault(what, self.where, "", hint)))
        return _short(repr(value), 200)

    def tried(self, make: Callable[[], T], table: Mapping[str, Any] | None = None) -> T | Wrong:
        """Return what is made; its faults are noted at the key of the table they name, else here."""
        try:
            return make()
        except HocketError as error:
            for fault in error.faults:
                place = self._named(fault, table or {})
                # a line in another file (of code, of measurements) is worth keeping
                beyond = f" ({fault.where})" if ", line " in fault.where else ""
                place.findings.faults.append((place, replace(fault, where=place.where + beyond)))
        except (TypeError, ValueError, OSError) as error:
            self.fault(str(error))
        return WRONG

    def _named(self, fault: Fault, table: Mapping[str, Any]) -> Place:
        words: list[str] = [fault.where.strip("`"), *re.findall(r"`([^`]+)`", fault.what)]
        for word in words:
            if word in table:
                return self / word
            for key, inner in table.items():
                if isinstance(inner, dict) and word in inner:
                    return self / key / word
        named = [key for key, value in table.items() if value == fault.where]
        return self / named[0] if named else self


def found(value: Any) -> str:
    """Return what a value of a TOML file is, in words."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'the text "{_short(value)}"'
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return "a table" if value else "an empty table"
        case datetime.date() | datetime.time():
            return f"the date or time {value}"
    return _short(repr(value))


def _short(text: str, size: int = 60) -> str:
    return text if len(text) <= size else text[: size - 3] + "..."
