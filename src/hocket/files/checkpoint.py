"""Checkpoints: the state of a whole co-simulation in one file, written whole or not at all.

In:  a header and bytes of a state
Out: a file with its checksum, the one before it beside it; read back, or an error that says what is damaged

    the line `hocket checkpoint 1`
    8 bytes: the length of the header, then the header: JSON in UTF-8
    8 bytes: the length of the state, then the state (model/plain_state.py)
    8 bytes: the length of the rows that wait, then these, in the same form
    32 bytes: SHA-256 of all before it

Lengths are unsigned whole numbers, the least significant byte first. Nothing in the file is ever run.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from hocket.errors import FileError
from hocket.files.atomic_files import replace_file

CHECKPOINT, PREVIOUS, NEXT = "checkpoint", "checkpoint.previous", "checkpoint.next"
"""Their names in the folder of a run."""
FORMAT = 1
_MARK = b"hocket checkpoint %d\n"
_LENGTH = struct.Struct("<Q")
_DIGEST = 32
_EXPECTED = "a checkpoint as hocket wrote it"


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint says."""

    header: Mapping[str, Any]
    state: bytes
    rows: bytes
    path: Path

    @property
    def time(self) -> Fraction:
        """When it was written, in seconds of simulated time."""
        return Fraction(*self.header["time"])


def write_checkpoint(
    path: Path, header: Mapping[str, Any], state: bytes, rows: bytes, sync: bool = True
) -> None:
    """Write a checkpoint; one that is there becomes the previous one. On the disk when this returns."""
    told = json.dumps({"format": FORMAT, **header}, indent=1).encode()
    parts = [_MARK % FORMAT]
    for each in (told, state, rows):
        parts += [_LENGTH.pack(len(each)), each]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    previous, following = (
        path.with_name(path.name + name.removeprefix(CHECKPOINT)) for name in (PREVIOUS, NEXT)
    )
    with replace_file(following, FileError, sync) as file:
        for part in (*parts, digest.digest()):
            file.write(part)
    # between the two there is none of its name, but the previous one is: readers look for both
    with suppress(FileNotFoundError):
        os.replace(path, previous)
    os.replace(following, path)


def read_checkpoint(path: Path) -> Checkpoint:
    """Return what a checkpoint says; raises FileError if it is damaged, torn, or not one at all."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read `{path.name}`: {error.strerror or error}", str(path)) from error
    mark = _MARK % FORMAT
    if not content.startswith(mark):
        if content.startswith(_MARK[:18]):
            what, hint = f"`{path.name}` was written by a newer hocket", "pip install --upgrade hocket"
            raise FileError(what, str(path), hint=hint)
        raise FileError(f"`{path.name}` is not a checkpoint", str(path), _EXPECTED)
    if hashlib.sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
        raise _damage(path, "its checksum is another: it is torn, or was changed")
    parts, at = [], len(mark)
    for _ in range(3):
        if at + _LENGTH.size > len(content) - _DIGEST:
            raise _damage(path, "a part is missing")
        (length,) = _LENGTH.unpack_from(content, at)
        at += _LENGTH.size
        if length > len(content) - _DIGEST - at:
            raise _damage(path, "a part is longer than the file")
        parts.append(content[at : at + length])
        at += length
    if at != len(content) - _DIGEST:
        raise _damage(path, "it has more parts than it should")
    try:
        header = json.loads(parts[0])
        fits = isinstance(header, dict) and all(check(header.get(key)) for key, check in _SHAPE.items())
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        raise _damage(path, "its header is not as it should be")
    return Checkpoint(header, parts[1], parts[2], path)


def checkpoints_of(folder: Path) -> Iterator[Path]:
    """Yield the checkpoints of a run that are there, the newest first."""
    yield from (each for name in (CHECKPOINT, PREVIOUS) if (each := folder / name).is_file())


def _damage(path: Path, what: str) -> FileError:
    return FileError(
        f"`{path.name}` is damaged: {what}", str(path), _EXPECTED, "the one before it, if there is one"
    )


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _is_fraction(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_whole, value)) and value[1] > 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list_of(item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(item, value))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_position(value: Any) -> bool:
    return value is None or (_is_list_of(_is_whole)(value) and all(each >= 0 for each in value))


_SHAPE: dict[str, Callable[[Any], bool]] = {
    "hocket": _is_text,
    "engine": lambda value: value in ("native", "interpreter"),
    "condensed": lambda value: isinstance(value, bool),
    "time": _is_fraction,
    "stop": lambda value: value is None or _is_fraction(value),
    "every": lambda value: value is None or value == "micro" or (_is_fraction(value) and value[0] > 0),
    "tick": _is_whole,
    "clock": lambda value: isinstance(value, list) and len(value) == 4 and all(map(_is_fraction, value)),
    "plan": _is_text,
    "scenario": _is_text,
    "overrides": lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
    "record": lambda value: value is None or _is_list_of(_is_text)(value),
    "ledger": lambda value: isinstance(value, bool),
    "stored": lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
    "position": _is_position,
}
"""What each entry of the header must be."""
