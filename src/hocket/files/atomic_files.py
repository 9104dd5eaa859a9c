"""Files that are seen whole or not at all.

In:  a path and what it shall hold
Out: the file, or an error that says why not
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hocket.engine.recording import write_error
from hocket.errors import FileError, HocketError
from hocket.model.arguments import as_path


@contextmanager
def replace_file(
    path: Path | str, failure: type[HocketError] = HocketError, sync: bool = False
) -> Iterator[IO[bytes]]:
    """Write a file so that nobody sees half of it; a link stays one, a pipe or device is written into.

    With `sync` it is on the disk, and not only with the system, when this returns. Raises `failure` if it
    cannot be written.
    """
    target = as_path(path)
    try:
        kind = _kind_of(target)
        if kind is not None and not stat.S_ISREG(kind) and target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        whole = target.resolve() if kind is not None and stat.S_ISLNK(kind) else target
        with _replace_when_written(whole, sync) as file:
            yield file
    except OSError as error:
        raise failure(write_error(target, error).faults) from error


def _kind_of(path: Path) -> int | None:
    """Return what stands at a path, links not followed; None: nothing."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return None


@contextmanager
def _replace_when_written(whole: Path, sync: bool) -> Iterator[IO[bytes]]:
    half = whole.with_name(whole.name + ".new")
    try:
        with half.open("wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(half, whole)
        if sync and os.name == "posix":
            folder = os.open(whole.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except BaseException:
        with suppress(OSError):
            half.unlink()
        raise


def write_text(
    path: Path, text: str, failure: type[HocketError] = HocketError, *, sync: bool = False
) -> None:
    """Write a text as UTF-8, whole or not at all."""
    try:
        written = text.encode()
    except UnicodeEncodeError as error:
        what = f"`{Path(path).name}` cannot be written: text with a lone surrogate {text[error.start]!a}"
        raise failure(what, str(path), "text that UTF-8 can hold") from None
    with replace_file(path, failure, sync) as file:
        file.write(written)


def read_text(path: Path) -> str:
    """Return the UTF-8 text of a file; raises FileError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot read `{path.name}`: {error.strerror or error}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise FileError(f"cannot read `{path.name}`: it is not a text in UTF-8", where=str(path)) from error
