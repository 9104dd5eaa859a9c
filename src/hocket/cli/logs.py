"""What FMUs say while they run, on stderr: warnings, each kind once, unless all was asked for.

In:  the log records of `hocket.fmu`
Out: one line each
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from hocket.cli.screen import print_err
from hocket.errors import HocketError
from hocket.simulators.fmu.logs import LOGGER, deliver

_NUMBER = re.compile(r"[-+]?\d[\d.]*(?:[eE][-+]?\d+)?")


class _LogPrinter(logging.Handler):
    """Prints records; of those that differ by numbers only the first, and counts the others."""

    def __init__(self, everything: bool):
        super().__init__()
        self.everything = everything
        self.counts: dict[str, int] = {}
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = " ".join(record.getMessage().split())
        kind = _NUMBER.sub("#", text)
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.everything:
            print_err(f"{text}  ({record.levelname.lower()})")
        elif record.levelno >= logging.ERROR:
            self.errors.append(text)  # the error that ends the run most often says the same
        elif self.counts[kind] == 1:
            print_err(text)

    def finish(self, said: Iterable[str]) -> None:
        """Say what was held back, unless it was said otherwise."""
        failures = [" ".join(text.split()) for text in said]
        for text in dict.fromkeys(self.errors):
            if not any(text.partition(": ")[2] in failure for failure in failures):
                print_err(text)
        more = sum(self.counts.values()) - len(self.counts) - len(self.errors)
        if more > 0 and not self.everything:
            print_err(f"({more:,} more such messages: --log shows all)")


@contextmanager
def relay_fmu_logs(everything: bool) -> Iterator[list[str]]:
    """Print what FMUs say, while a verb is at work; to the list it adds what it tells about errors itself."""
    ear, level = _LogPrinter(everything), LOGGER.level
    said: list[str] = []
    LOGGER.addHandler(ear)
    LOGGER.setLevel(logging.INFO if everything else logging.WARNING)
    try:
        yield said
    except HocketError as error:
        said.append(str(error))
        raise
    finally:
        deliver()
        LOGGER.removeHandler(ear)
        LOGGER.setLevel(level)
        ear.finish(said)
