"""The command line: one short verb per library function of the same name.

In:  what was typed
Out: the library's answer on the screen, and an exit code
"""

from hocket.cli.app import app, main

__all__ = ["app", "main"]
