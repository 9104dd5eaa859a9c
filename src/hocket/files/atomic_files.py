"""Files that are seen whole or not at all.

In:  a path and what it shall hold
Out: the file, or a FileError that says why not
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hocket.engine.recording import write_error
from hocket.errors import FileError


@contextmanager
def replace_file(path: Path | str) -> Iterator[IO[bytes]]:
    """Write a file so that nobody sees half of it; a link stays one, a pipe or device is written into."""
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        with _replace_when_written(target.resolve()) as file:
            yield file
    except OSError as error:
        raise write_error(target, error) from error


@contextmanager
def _replace_when_written(whole: Path) -> Iterator[IO[bytes]]:
    half = whole.with_name(whole.name + ".new")
    try:
        with half.open("wb") as file:
            yield file
        os.replace(half, whole)
    finally:
        with suppress(OSError):
            half.unlink()


def write_text(path: Path, text: str) -> None:
    with replace_file(path) as file:
        file.write(text.encode())


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot read `{path.name}`: {error.strerror or error}", where=str(path)) from error
