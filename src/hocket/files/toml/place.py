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
from hocket.files.toml.lines import KeyLines, Keys

T = TypeVar("T")


class InvalidValue(Enum):
    """Stands for a value that could not be read; the fault is already noted."""

    WRONG = "wrong"


WRONG: Final = InvalidValue.WRONG
Wrong: TypeAlias = Literal[InvalidValue.WRONG]


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
    def lines(self) -> KeyLines:
        """Looked for when the first fault is found."""
        return KeyLines(self.text)


@dataclass
class TomlFindings:
    """What is known after a read beside the result."""

    check: bool = True
    """Whether code that is named is loaded, and the scenario's own faults are looked for."""
    faults: list[tuple[FilePlace, Fault]] = field(default_factory=list)
    places: dict[str, FilePlace] = field(default_factory=dict)
    """By the `where` of a scenario's own fault: `axle.connections.wheel.force`."""
    broken: list[str] = field(default_factory=list)
    """The paths of models that could not be read: what is said about their ports means nothing."""

    def sorted_faults(self) -> list[Fault]:
        """Return the faults as they stand in the files."""
        sources = list(dict.fromkeys(place.source for place, _ in self.faults))
        ranked = sorted(self.faults, key=lambda found: (sources.index(found[0].source), found[0].line or 0))
        return list(dict.fromkeys(fault for _, fault in ranked))


@dataclass(frozen=True)
class FilePlace:
    """A value's place; `place / key` goes into a table or an array."""

    findings: TomlFindings
    source: Source
    keys: Keys = ()
    level: str = ""
    """The path of the level it belongs to, with a dot at the end; empty: the outermost."""
    at_line: int | None = None
    """Where the line is known and the keys are not."""

    def __truediv__(self, key: str | int) -> FilePlace:
        return FilePlace(self.findings, self.source, (*self.keys, key), self.level)

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

    def sibling_value(self, key: str) -> Any:
        """Return the value of another key of the same table; None if it has none."""
        table: Any = self.source.table
        for name in self.keys[:-1]:
            table = table[name]
        return table.get(key)

    def fault(self, what: str, expected: str = "", hint: str = "") -> Wrong:
        """Note a fault here."""
        self.findings.faults.append((self, Fault(what, self.where, expected, hint)))
        return WRONG

    def report_unexpected(self, value: Any, expected: str, hint: str = "") -> Wrong:
        """Note that the value is not what it should be."""
        return self.fault(f"{self.label} is {describe_value(value)}", expected, hint)

    def report_unwritable(self, value: Any, hint: str = "") -> str:
        """Note that a value cannot be written; return words that tell a reader what was there."""
        what = f"`{_shorten(getattr(value, '__name__', repr(value)))}` cannot be written to a file"
        self.findings.faults.append((self, Fault(what, self.where, "", hint)))
        return _shorten(repr(value), 200)

    def attempt(self, make: Callable[[], T], table: Mapping[str, Any] | None = None) -> T | Wrong:
        """Return what is made; its faults are noted at the key of the table they name, else here."""
        try:
            return make()
        except HocketError as error:
            for fault in error.faults:
                place = self._place_of_fault(fault, table or {})
                # a line in another file (of code, of measurements) is worth keeping
                beyond = f" ({fault.where})" if ", line " in fault.where else ""
                place.findings.faults.append((place, replace(fault, where=place.where + beyond)))
        except (TypeError, ValueError, OSError) as error:
            self.fault(str(error))
        return WRONG

    def _place_of_fault(self, fault: Fault, table: Mapping[str, Any]) -> FilePlace:
        words: list[str] = [fault.where.strip("`"), *re.findall(r"`([^`]+)`", fault.what)]
        for word in words:
            if word in table:
                return self / word
            for key, inner in table.items():
                if isinstance(inner, dict) and word in inner:
                    return self / key / word
        named = [key for key, value in table.items() if value == fault.where]
        return self / named[0] if named else self


def describe_value(value: Any) -> str:
    """Return what a value of a TOML file is, in words."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'the text "{_shorten(value)}"'
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list" if value else "an empty list"
        case dict():
            return "a table" if value else "an empty table"
        case datetime.date() | datetime.time():
            return f"the date or time {value}"
    return _shorten(repr(value))


def _shorten(text: str, size: int = 60) -> str:
    return text if len(text) <= size else text[: size - 3] + "..."
