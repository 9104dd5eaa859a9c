"""Processes of this machine that live as long as they are wanted: their standard input keeps them alive.

In:  the function that a process runs
Out: a process that is gone a moment after whoever began it, however that went
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

GRACE = 3.0
"""Seconds that a process may take to end once it is asked to."""


def start_process(module: str, function: str) -> subprocess.Popen[bytes]:
    """Begin a process that runs a function of a module; its standard input is what keeps it alive."""
    path = [entry for entry in sys.path if isinstance(entry, str)]
    code = f"import sys; sys.path[:] = {path!r}; import {module} as it; it.{function}()"
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,  # Ctrl-C at the terminal is for the process of the user only
    )


def end_process(process: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """End a process whose standard input keeps it alive."""
    for pipe in (process.stdin,):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def live_while_wanted() -> threading.Event:
    """Return an event that is set by a request to terminate."""
    stopping = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    return stopping


def watch_standard_input(stopping: threading.Event) -> None:
    """Stop when standard input ends: nobody wants this process any more."""

    def watch() -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        stopping.set()
        time.sleep(GRACE)
        os._exit(1)  # it hangs, and nobody waits for it

    threading.Thread(target=watch, daemon=True).start()
