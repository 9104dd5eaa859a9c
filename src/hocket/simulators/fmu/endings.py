"""How the process of an isolated FMU has ended, in words.

In:  the door to it, as it was left
Out: an error
"""

from __future__ import annotations

import signal
from fractions import Fraction
from typing import Any

from hocket.clock import format_duration
from hocket.errors import SimulatorError

_DOING = {
    "open": ("loading it", "while it was loaded"),
    "start": ("its start", "during its start"),
    "ready": ("its initialisation", "during its initialisation"),
    "step": ("a step", "during a step"),
    "output": ("evaluating its outputs", "while its outputs were evaluated"),
    "slope": ("evaluating its slopes", "while its slopes were evaluated"),
    "jacobian": ("evaluating its derivatives", "while its derivatives were evaluated"),
    "save": ("saving its state", "while its state was saved"),
    "restore": ("restoring its state", "while its state was restored"),
    "text": ("getting a text", "while a text was got"),
    "set_text": ("setting a text", "while a text was set"),
    "close": ("closing it", "while it was closed"),
}
_LONGER = "if it may take that long, a greater `time_limit` of the FMU"
_MEMORY = "the system does this when memory runs out"


def process_end_error(door: Any, limit: Fraction) -> SimulatorError:
    """Return the error for a process that is gone; `limit` is what the last call was allowed, in seconds."""
    if door.end == "closed":
        return SimulatorError("it is closed")
    subject, during = _DOING.get(door.asked, ("a call", "during a call"))
    function = door.function.decode(errors="replace")
    said = door.said.decode(errors="replace")
    if door.end == "late":
        what = f"{subject} took longer than {format_duration(limit)}"
        what += f": {function} did not return" if function else ""
        return SimulatorError(what, hint=_LONGER)
    what = f"its process ended: {_cause(door.end, door.code)} {f'in {function}' if function else during}"
    killed = door.end == "signalled" and door.code == signal.SIGKILL
    return SimulatorError(f"{what}: {said}" if said else what, hint=_MEMORY if killed else "")


def _cause(end: str, code: int) -> str:
    if end == "exited":
        return f"exit code {code}"
    if end == "vanished":
        return "nobody knows how,"
    return describe_signal(code)


def describe_signal(code: int) -> str:
    """Return words for a signal, such as `segmentation fault (SIGSEGV)`."""
    words = (signal.strsignal(code) or "a signal").lower()
    try:
        return f"{words} ({signal.Signals(code).name})"
    except ValueError:
        return f"{words} (signal {code})"
