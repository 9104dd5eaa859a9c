"""Progress bars in notebooks: what takes longer than a second says how far it is.

In:  the notebook that this process serves, if any; what was done, and of how much
Out: a bar below the cell, gone when all is done
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import Any

PATIENCE, PAUSE = 1.0, 0.2
"""Seconds before a bar is shown, and between two pictures of it."""


def notebook_progress(what: str) -> Callable[[float, float], None] | None:
    """Return what shows a bar in the notebook that this process serves; None where there is no notebook."""
    known = sys.modules.get("IPython")
    if known is None or "ipykernel" not in sys.modules or known.get_ipython() is None:
        return None
    return NotebookBar(what)


class NotebookBar:
    """Called with what was done, and of how much; where that ends early the bar stays and says so."""

    def __init__(self, what: str):
        self.what = what
        self.begin = time.monotonic()
        self.shown = -PAUSE
        self.display: Any = None

    def __call__(self, done: float, total: float) -> None:
        passed = time.monotonic() - self.begin
        ended = done >= total
        if self.display is None and (ended or passed < PATIENCE):
            return
        if not ended and passed - self.shown < PAUSE:
            return
        pages: Any = import_module("IPython.display")
        self.shown = passed
        drawn = pages.HTML("" if ended else self._draw(done, total, passed))
        if self.display is None:
            self.display = pages.display(drawn, display_id=True)
        else:
            self.display.update(drawn)

    def _draw(self, done: float, total: float, passed: float) -> str:
        part = done / total if total > 0.0 else 0.0
        left = f", {passed / part - passed:.0f} s left" if part > 0.0 else ""
        said = f"{escape(self.what)}: {done:.6g} of {total:.6g} ({part:.0%}{left})"
        return f"<progress value='{part:.4f}' max='1' style='width: 20em'></progress> {said}"
