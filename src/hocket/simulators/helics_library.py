"""The HELICS library, as far as it is used here: loaded when it is needed, called where it may block.

In:  the package `helics` (an extra of hocket)
Out: the library; calls that may hang are made in a thread, so that whoever waits can give up
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from hocket.errors import HostError

T = TypeVar("T")
LARGEST = 1 << 24
"""Bytes of a message that brokers and cores are told to expect."""
OPTIONS = f"--maxsize={LARGEST} --loglevel=no_print"
_LOOK = 0.05


@cache
def load_helics() -> Any:
    """Return the package; raises HostError where it is missing."""
    try:
        import helics
    except (ImportError, OSError) as error:
        what = f"the package `helics` cannot be loaded: {error}"
        raise HostError(what, "helics", "HELICS 3", "pip install 'hocket[helics]'") from None
    return helics


class PatientCaller:
    """Makes calls in a thread of its own, one after the other; a call that hangs is given up with it."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._waiting = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                self._answers.put((True, call()))
            except Exception as error:
                self._answers.put((False, error))

    def call(self, function: Callable[[], T], look: Callable[[], None]) -> T:
        """Return what a function returns; `look` is called while it lasts, and may end the wait."""
        if self._waiting:
            raise RuntimeError("a call that was given up still lasts")
        self._calls.put(function)
        self._waiting = True
        while True:
            try:
                good, answer = self._answers.get(timeout=_LOOK)
            except queue.Empty:
                look()
                continue
            self._waiting = False
            if good:
                found: T = answer
                return found
            raise answer

    @property
    def is_stuck(self) -> bool:
        """Whether a call was given up, and lasts."""
        return self._waiting

    def close(self) -> None:
        """Let the thread end when its calls have."""
        self._calls.put(None)
