"""Code that a file names: whether it may be loaded, and who hears of it.

In:  what is about to be loaded, and from where
Out: a refusal, or nothing; what was loaded, told to whoever listens

Scenario files, run folders and FMUs may bring programs. All of them pass here before they are loaded. The
refusal is kept in the environment: threads and processes that are started meanwhile keep to it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hocket.errors import ScenarioError

VARIABLE = "HOCKET_NO_CODE"
"""Set to anything, it refuses code for a whole session."""
_WITHOUT = "load it if you trust whoever wrote it: without `no_code()`, `--no-code` and HOCKET_NO_CODE"

_hints: list[str] = []
_listeners: list[Callable[[str, str], None]] = []


@contextmanager
def no_code(hint: str = _WITHOUT) -> Iterator[None]:
    """Refuse to load what files name (Python code, packages' entry points, FMUs), as long as this lasts."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "1"
    _hints.append(hint)
    try:
        yield
    finally:
        _hints.pop()
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


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
