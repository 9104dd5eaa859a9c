"""On which line of a TOML text a key stands.

In:  the text, valid or not
Out: the line of every key path, and the keys that are given twice

`tomllib` forgets lines, so the text is walked a second time, when a fault is found. Its values are skipped.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

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
        self._tokens = list(_split_tokens(text))
        self._at = 0
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

    @property
    def _token(self) -> str:
        return self._tokens[self._at][0]

    @property
    def _line(self) -> int:
        return self._tokens[self._at][1]

    def _advance(self) -> None:
        self._at = min(self._at + 1, len(self._tokens) - 1)

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
            before = self._at
            if self._token in ("\n", ","):
                self._advance()
            elif opening == "[":
                self._note_line((*path, number), self._line)
                self._walk_value((*path, number))
                number += 1
            else:
                self._walk_pair(path)
                if self._at == before:
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
