"""What differs between two scenarios, as lines of a file; and a file with only these lines changed.

In:  an Experiment and another one; the text of the first one's file
Out: the lines that change, table by table; the text of the second one's file, comments and all
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hocket.errors import HocketError
from hocket.files.toml import layout, loads
from hocket.files.toml.codec import FILE
from hocket.files.toml.syntax import FilePlace, Source, TomlFindings
from hocket.files.toml.table_kinds import Section
from hocket.model.experiment import Experiment

_HEADER = re.compile(r"\s*\[(?P<keys>[^\[\]]+)\]\s*(#.*)?$")
_ASSIGNED = re.compile(r"(?P<before>\s*(?P<keys>[^=#\[\]]+?)\s*=\s*)(?P<rest>\S.*)$")


@dataclass(frozen=True)
class LineChange:
    """One line of a table; without an old one it is new, without a new one it is dropped."""

    table: str
    key: str
    old: str | None
    new: str | None

    def diff_lines(self) -> Iterator[str]:
        """Yield it as people write differences."""
        yield from (f"-{line}" for line in (self.old or "").splitlines())
        yield from (f"+{line}" for line in (self.new or "").splitlines())


def scenario_tables(experiment: Experiment, folder: Path | str = "") -> Section:
    """Return a scenario as the tables of its file; what has no name in a file is told in words."""
    return Section(FILE.write(experiment, FilePlace(TomlFindings(), Source(folder=str(folder)))))


def line_changes(before: Mapping[str, Any], after: Mapping[str, Any], table: str = "") -> list[LineChange]:
    """Return what differs between two of these tables, in the order of a file."""
    found: list[LineChange] = []
    inner: list[LineChange] = []
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old or new, Section):
            inner += line_changes(old or Section(), new or Section(), _join_keys(table, key))
        else:
            texts = (None if each is None else layout.format_assignment(key, each) for each in (old, new))
            found.append(LineChange(table, key, *texts))
    return [*found, *inner]


def rewrite_text(
    text: str, wanted: Sequence[LineChange], after: Experiment, folder: Path | str
) -> str | None:
    """Return the text of a file with only these lines changed; None if that is not possible.

    What is returned was read again, and is the scenario that was wanted.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end)
    for change in wanted:
        made = _apply_change(lines, change)
        if made is None:
            return None
        lines = made
    found = end.join(lines)
    try:
        same = loads(found, folder=folder)
    except HocketError:
        return None
    return found if same == replace(after, name=same.name) else None


def changes_in_text(text: str, wanted: Sequence[LineChange]) -> list[LineChange]:
    """Return changes as they look in a text: the lines as they stand there, with what else is on them."""
    lines = text.splitlines()
    found = []
    for change in wanted:
        at = _assignment_line(lines, change)
        if at is not None:
            new = None if change.new is None else _replace_value(lines[at], change.new).strip()
            found.append(replace(change, old=lines[at].strip(), new=new))
        elif change.new is not None:  # what is not written down cannot be changed: it is added
            found.append(change if f"{change.key} =" in text else replace(change, old=None))
    return found


def _apply_change(lines: Sequence[str], change: LineChange) -> list[str] | None:
    at = _assignment_line(lines, change)
    if at is not None:
        here = [] if change.new is None else [_replace_value(lines[at], change.new)]
        return [*lines[:at], *here, *lines[at + 1 :]]
    if change.new is None:
        return list(lines) if change.old is None else None
    end = _table_end(lines, change.table)
    return None if end is None else [*lines[:end], change.new, *lines[end:]]


def _assignment_line(lines: Sequence[str], change: LineChange) -> int | None:
    """Return the number of the one line that assigns a key."""
    wanted = _join_keys(change.table, change.key)
    found = [at for at, table, key in _keyed_lines(lines) if key and _join_keys(table, key) == wanted]
    return found[0] if len(found) == 1 else None


def _table_end(lines: Sequence[str], table: str) -> int | None:
    """Return where a line can be added to a table: behind its last assignment, or its header."""
    return max((at + 1 for at, there, _ in _keyed_lines(lines) if there == table), default=None)


def _keyed_lines(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the numbers of headers and of whole assignments in one line, with table and key, if any."""
    table = ""
    for at, line in enumerate(lines):
        if head := _HEADER.match(line):
            table = _dotted_keys(head["keys"])
            yield at, table, ""
        elif (found := _ASSIGNED.match(line)) and _is_whole_assignment(line):
            yield at, table, _dotted_keys(found["keys"])


def _join_keys(table: str, key: str) -> str:
    return f"{table}.{key}" if table else key


def _is_whole_assignment(line: str) -> bool:
    try:
        tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _dotted_keys(keys: str) -> str:
    """Return keys without their quotes and blanks."""
    return ".".join(part.strip().strip("\"'") for part in keys.split("."))


def _replace_value(line: str, new: str) -> str:
    """Return a line with another value; its key and its comment stay."""
    found = _ASSIGNED.match(line)
    assert found is not None
    value = new.partition(" = ")[2]
    rest = found["rest"]
    for at in (each.start() for each in re.finditer("#", rest)):
        if _is_whole_assignment(f"x = {rest[:at]}"):
            return f"{found['before']}{value} {rest[at:]}"
    return f"{found['before']}{value}"
