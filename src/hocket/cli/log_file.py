"""What is kept of a command beside its answer: `--log-file` and `--verbose`.

In:  the streams of the process, the records of the logger `hocket`
Out: a file that grows: the command, when what was said, how it ended; steps of the work on stderr
"""

from __future__ import annotations

import logging
import re
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import typer

from hocket.cli.output_files import check_file
from hocket.engine.recording import write_error

_DRAWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\r(?!\n)")
"""What moves the cursor: a progress bar, of which a file keeps nothing."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class _Diary:
    """A file of lines with dates; several commands may follow each other in it."""

    def __init__(self, path: Path):
        try:
            self.file = path.open("a", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise write_error(path, error) from error

    def add(self, kind: str, text: str) -> None:
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        for line in text.splitlines():
            self.file.write(f"{now} {kind:<8}{line}\n")
        self.file.flush()


class _Copy:
    """A stream whose whole lines go into the diary, too."""

    def __init__(self, stream: TextIO, diary: _Diary, kind: str):
        self.stream, self.diary, self.kind = stream, diary, kind
        self.begun = ""

    def write(self, text: str) -> int:
        if not _DRAWN.search(text):
            *lines, self.begun = (self.begun + _COLOUR.sub("", text)).split("\n")
            for line in lines:
                self.diary.add(self.kind, line)
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Printer(logging.Handler):
    """Writes records to a stream, or into the diary."""

    def __init__(self, diary: _Diary | None):
        super().__init__(logging.INFO)
        self.diary, self.stream = diary, sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        if self.diary is not None:
            self.diary.add(record.levelname.lower(), record.getMessage())
        elif not record.name.startswith("hocket.fmu"):  # these are printed by who relays them
            print(record.getMessage(), file=self.stream)


def keep_log(path: Path | None, verbose: bool) -> AbstractContextManager[None]:
    """Keep what a command says in a file, and print what it is at if asked to, while it works.

    Raises HocketError at once where the file cannot be written.
    """
    if path is not None:
        check_file(path)
    return _kept_log(None if path is None else _Diary(path), verbose)


@contextmanager
def _kept_log(diary: _Diary | None, verbose: bool) -> Iterator[None]:
    logger = logging.getLogger("hocket")
    printers = [_Printer(None)] * verbose + ([] if diary is None else [_Printer(diary)])
    level, streams, begin = logger.level, (sys.stdout, sys.stderr), time.perf_counter()
    for printer in printers:
        logger.addHandler(printer)
    logger.setLevel(logging.INFO)
    if diary is not None:
        import hocket

        diary.add("begin", f"hocket {hocket.__version__}: {shlex.join(sys.argv[1:])}")
        sys.stdout, sys.stderr = _Copy(sys.stdout, diary, "out"), _Copy(sys.stderr, diary, "err")
    code = 1
    try:
        yield
        code = 0
    except typer.Exit as done:
        code = done.exit_code
        raise
    finally:
        sys.stdout, sys.stderr = streams
        logger.setLevel(level)
        for printer in printers:
            logger.removeHandler(printer)
        if diary is not None:
            diary.add("end", f"exit code {code} after {time.perf_counter() - begin:.3f} s")
            diary.file.close()
