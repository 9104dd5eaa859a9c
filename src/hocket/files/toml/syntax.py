"""From a path to a table: whatever can be wrong with a file before its keys are looked at.

In:  the path of a TOML file, or its text
Out: the FilePlace of its outermost table; or faults with lines
"""

from __future__ import annotations

import datetime
import os.path
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from hocket.errors import Fault, HocketError, Place, suggest_nearest

Keys: TypeAlias = tuple[str | int, ...]
"""The way to a value: names of tables, numbers of the items in arrays."""

_TOKEN = re.compile(
    r'"""(?:\\.|(?!""").)*"{3,5}'
    r"|'''(?:(?!''').)*'{3,5}"
    r'|"(?:\\[^\n]|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|\n|[][{}=,.]|[^][{}=,.#\s\"']+|[\"']",
    re.DOTALL,
)
_ENDS = frozenset(("", "\n", ",", "]", "}"))


class RepeatedKey(NamedTuple):
    """A key that is given twice."""

    keys: Keys
    first: int
    second: int


class KeyLines:
    """The lines of a text, counted from 1."""

    def __init__(self, text: str):
        self._tokens = _split_tokens(text)
        self._token, self._line = next(self._tokens)
        self._lines: dict[Keys, int] = {}
        self._given: dict[Keys, int] = {}
        self._last: dict[Keys, int] = {}
        """Of each array of tables: the number of its newest table."""
        self.repeated: list[RepeatedKey] = []
        self._walk_document()

    def of(self, keys: Sequence[str | int]) -> int | None:
        """Return the line of a key, else of the nearest table around it; None: the whole text."""
        for size in range(len(keys), 0, -1):
            if (line := self._lines.get(tuple(keys[:size]))) is not None:
                return line
        return None

    def _advance(self) -> None:
        self._token, self._line = next(self._tokens, ("", self._line))

    def _walk_document(self) -> None:
        base: Keys = ()
        while self._token:
            if self._token == "[":
                base = self._walk_header()
            elif self._token != "\n":
                self._walk_pair(base)
            while self._token not in ("", "\n"):
                self._advance()
            self._advance()

    def _walk_header(self) -> Keys:
        line = self._line
        self._advance()
        of_array = self._token == "["
        if of_array:
            self._advance()
        keys = self._walk_key()
        base: Keys = ()
        for key in keys[:-1]:
            base = (*base, key)
            self._lines.setdefault(base, line)
            base = (*base, self._last[base]) if base in self._last else base
        base = (*base, *keys[-1:])
        if of_array:
            self._lines.setdefault(base, line)
            self._last[base] = number = self._last.get(base, -1) + 1
            base = (*base, number)
        elif base in self._last:
            base = (*base, self._last[base])
        self._note_line(base, line)
        return base

    def _walk_key(self) -> list[str]:
        keys: list[str] = []
        while self._token not in _ENDS and self._token not in ("=", "[", "{"):
            if self._token != ".":
                keys.append(_unquote_key(self._token))
            self._advance()
        return keys

    def _walk_pair(self, base: Keys) -> None:
        line, path = self._line, base
        for key in self._walk_key():
            self._lines.setdefault(path, line)
            path = (*path, key)
        if path != base and self._token == "=":
            self._note_line(path, line)
            self._advance()
            self._walk_value(path)

    def _walk_value(self, path: Keys) -> None:
        opening = self._token
        self._advance()
        if opening not in ("[", "{"):
            while opening not in _ENDS and self._token not in _ENDS:
                self._advance()
            return
        number = 0
        while self._token not in ("", "]" if opening == "[" else "}"):
            if self._token in ("\n", ","):
                self._advance()
            elif opening == "[":
                self._note_line((*path, number), self._line)
                self._walk_value((*path, number))
                number += 1
            else:
                self._walk_pair(path)
                while self._token not in ("", "\n", ",", "}"):
                    self._advance()
        self._advance()

    def _note_line(self, path: Keys, line: int) -> None:
        if path in self._given:
            self.repeated.append(RepeatedKey(path, self._given[path], line))
            return
        self._given[path] = line
        self._lines[path] = line


def _split_tokens(text: str) -> Iterator[tuple[str, int]]:
    line = 1
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token[0] != "#":
            yield token, line
        line += token.count("\n")
    yield "", line


def _unquote_key(token: str) -> str:
    """Return a key as `tomllib` reads it."""
    if token[0] not in "\"'":
        return token
    try:
        return next(iter(tomllib.loads(f"{token} = 0")))
    except tomllib.TOMLDecodeError:
        return token.strip("\"'")


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
    def place(self) -> Place:
        """File and line; without a file the keys."""
        if self.source.name or self.line is not None:
            return Place(file=self.source.name, line=self.line)
        return Place(key=".".join(map(str, self.keys)))

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
        self.findings.faults.append((self, Fault(what, self.place, expected, hint)))
        return WRONG

    def report_unexpected(self, value: Any, expected: str, hint: str = "") -> Wrong:
        """Note that the value is not what it should be."""
        return self.fault(f"{self.label} is {describe_value(value)}", expected, hint)

    def report_unwritable(self, value: Any, hint: str = "") -> str:
        """Note that a value cannot be written; return words that tell a reader what was there."""
        what = f"`{_shorten(getattr(value, '__name__', repr(value)))}` cannot be written to a file"
        self.findings.faults.append((self, Fault(what, self.place, "", hint)))
        return _shorten(repr(value), 200)

    def attempt(self, make: Callable[[], T], table: Mapping[str, Any] | None = None) -> T | Wrong:
        """Return what is made; its faults are noted at the key of the table they name, else here."""
        try:
            return make()
        except HocketError as error:
            for fault in error.faults:
                here = self._place_of_fault(fault, table or {})
                # a line in another file (of code, of measurements) is worth keeping
                beyond = fault.where if fault.place.line is not None else ""
                place = replace(here.place, detail=beyond)
                here.findings.faults.append((here, replace(fault, place=place)))
        except (TypeError, ValueError, OSError) as error:
            self.fault(str(error))
        return WRONG

    def _place_of_fault(self, fault: Fault, table: Mapping[str, Any]) -> FilePlace:
        wanted = fault.place.key
        if fault.place.section and (known := self.findings.places.get(self.level + fault.place.address)):
            return known
        if wanted in table:
            return self / wanted
        for key, inner in table.items():
            if isinstance(inner, dict) and wanted in inner:
                return self / key / wanted
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


_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_DURATION = re.compile(r"=\s*([0-9.]+\s*(?:ns|us|ms|s|min|h|d))\s*(?:#.*)?$")


def open_document(path: Path, findings: TomlFindings, around: FilePlace | None = None) -> FilePlace | Wrong:
    """Return the place of the outermost table of a file; `around` is where another file includes it."""
    chain = (*(around.source.chain if around else ()), path.resolve())
    shown = os.path.relpath(chain[-1], chain[0].parent)
    here = around or FilePlace(findings, Source(shown))
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        beside = sorted(file.name for file in path.parent.glob("*.toml")) if path.parent.is_dir() else []
        return here.fault(f"there is no file `{path}`", "", suggest_nearest(path.name, beside))
    except OSError as error:
        if path.is_dir():
            return here.fault(f"`{path}` is a folder", "a TOML file")
        return here.fault(f"`{path}` cannot be read: {error.strerror or error}")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        broken = FilePlace(findings, Source(shown), at_line=line)
        what = f"`{shown}` is not UTF-8 text: byte 0x{error.object[error.start]:02x}"
        return broken.fault(what, "UTF-8", "save it as UTF-8 in your editor")
    folder = os.path.dirname(os.path.abspath(path))
    return parse_document(Source(shown, text, folder, chain), findings, around.level if around else "")


def parse_document(source: Source, findings: TomlFindings, level: str = "") -> FilePlace | Wrong:
    """Return the place of the outermost table of a text."""
    try:
        table = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        place = FilePlace(findings, source)
        for repeated in source.lines.repeated:
            _report_repeated_key(repeated, place)
        line = _line_of(error, source.text)
        if line not in [repeated.second for repeated in source.lines.repeated]:
            _report_syntax_error(error, place, line)
        return WRONG
    except RecursionError:
        return FilePlace(findings, Source(source.name)).fault("tables or lists are nested too deeply")
    except ValueError:  # more digits than Python converts
        return FilePlace(findings, Source(source.name)).fault("a number has too many digits to be read")
    return FilePlace(findings, replace(source, table=table), (), level)


def _report_repeated_key(repeated: RepeatedKey, place: FilePlace) -> None:
    here = replace(place, at_line=repeated.second)
    target = ".".join(map(str, _connection_target(repeated.keys)))
    lines = f"in line {repeated.first} and line {repeated.second}"
    if target:
        hint = "add them in a model of type `sum` and connect that"
        here.fault(f"`{target}` has two sources, {lines}", "one source per input", hint)
    else:
        here.fault(f"`{'.'.join(map(str, repeated.keys))}` is given twice, {lines}", "each key once")


def _connection_target(keys: Keys) -> Iterator[str | int]:
    """Yield the keys of a connection's target; nothing if they lead elsewhere."""
    rest = list(keys)
    while len(rest) > 2 and rest[0] == "models":
        rest = rest[2:]
    if rest[0] == "connections":
        yield from rest[1:]


def _line_of(error: tomllib.TOMLDecodeError, text: str) -> int:
    """Return the line of a syntax error: `tomllib` tells it in its message only."""
    position = _POSITION.search(str(error))
    return int(position[1]) if position and position[1] else text.count("\n") + 1


def _report_syntax_error(error: tomllib.TOMLDecodeError, place: FilePlace, number: int) -> None:
    lines = place.source.text.split("\n")
    line = lines[number - 1].strip() if number <= len(lines) else ""
    message = _POSITION.sub("", str(error))
    message = message[:1].lower() + message[1:]
    hint = ""
    if duration := _DURATION.search(line):
        hint = f'put the duration in quotes: "{duration[1]}"'
    elif message == "invalid value":
        hint = "text stands in quotes"
    here = replace(place, at_line=number)
    here.fault(f"this is not TOML, {message}: `{line}`" if line else f"this is not TOML, {message}", "", hint)
