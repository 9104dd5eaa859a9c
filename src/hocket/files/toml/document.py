"""From a path to a table: whatever can be wrong with a file before its keys are looked at.

In:  the path of a TOML file, or its text
Out: the FilePlace of its outermost table; or faults with lines
"""

from __future__ import annotations

import os.path
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hocket.errors import suggest_nearest
from hocket.files.toml.lines import Keys, RepeatedKey
from hocket.files.toml.place import WRONG, FilePlace, Source, TomlFindings, Wrong

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
        if not (source.lines.repeated and str(error).startswith("Cannot ")):
            _report_syntax_error(error, place)
        return WRONG
    except RecursionError:
        return FilePlace(findings, Source(source.name)).fault("tables or lists are nested too deeply")
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


def _report_syntax_error(error: tomllib.TOMLDecodeError, place: FilePlace) -> None:
    message = str(error)
    position = _POSITION.search(message)
    lines = place.source.text.split("\n")
    number = int(position[1]) if position and position[1] else len(lines)
    line = lines[number - 1].strip() if number <= len(lines) else ""
    message = _POSITION.sub("", message)
    message = message[:1].lower() + message[1:]
    hint = ""
    if duration := _DURATION.search(line):
        hint = f'put the duration in quotes: "{duration[1]}"'
    elif message == "invalid value":
        hint = "text stands in quotes"
    here = replace(place, at_line=number)
    here.fault(f"this is not TOML, {message}: `{line}`" if line else f"this is not TOML, {message}", "", hint)
