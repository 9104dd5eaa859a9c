"""Code that a file names: whether it may be loaded, and what is told of it.

In:  what is about to be loaded, and from where
Out: a refusal, or nothing; what was loaded, told to whoever listens

Scenario files, run folders and FMUs may bring programs. All of them pass here before they are loaded. The
refusal is kept in the environment: threads and processes that are started meanwhile keep to it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hocket.errors import ScenarioError

VARIABLE = "HOCKET_NO_CODE"
"""Set to anything, it refuses code for a whole session."""
_WITHOUT = "load it if you trust whoever wrote it: without `no_code()`, `--no-code` and HOCKET_NO_CODE"

_hints: list[str] = []
_before: str | None = None
"""What the environment said before the first of those that refuse code now."""
_lock = threading.Lock()
_listeners: list[Callable[[str, str], None]] = []


@contextmanager
def no_code(hint: str = _WITHOUT) -> Iterator[None]:
    """Refuse to load what files name (Python code, packages' entry points, FMUs), as long as this lasts."""
    global _before
    with _lock:
        if not _hints:
            _before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = "1"
        _hints.append(hint)
    try:
        yield
    finally:
        with _lock:
            _hints.remove(hint)
            if not _hints and _before is None:  # the last of several threads
                os.environ.pop(VARIABLE, None)
            elif not _hints:
                os.environ[VARIABLE] = str(_before)


@contextmanager
def code_announced(listener: Callable[[str, str], None]) -> Iterator[None]:
    """Call the listener with what is loaded and from where, before that happens."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def is_code_refused() -> bool:
    """Return whether code that files name is not loaded now."""
    return bool(os.environ.get(VARIABLE))


def permit_code(what: str, source: str, *, announced: bool = True) -> None:
    """Raise ScenarioError if no code is loaded now; else tell of it, if that is not said elsewhere."""
    if is_code_refused():
        hint = _hints[-1] if _hints else _WITHOUT
        raise ScenarioError(f"`{what}` is code, and code is not loaded", source, "", hint)
    for listener in _listeners if announced else ():
        listener(what, source)
