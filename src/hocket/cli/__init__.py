"""The command line: one short verb per library function of the same name.

In:  what was typed
Out: the library's answer on the screen, and an exit code
"""

import os

os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")
"""Threads of NumPy and SciPy that wait for work do so awake for 2^20 cycles in place of 2^26: they would take
longer than a short run. It is read when NumPy is loaded."""

from hocket.cli.app import app, main  # noqa: E402

__all__ = ["app", "main"]
