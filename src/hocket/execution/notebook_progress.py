"""Progress bars in notebooks: what takes longer than a second says how far it is.

In:  the notebook that this process serves, if any; what was done, and of how much
Out: a bar below the cell, gone when all is done
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any

PATIENCE, PAUSE = 1.0, 0.2
"""Seconds before a bar is shown, and between two pictures of it."""


def notebook_progress(what: str) -> Callable[[float, float], None] | None:
    """Return what shows a bar in the notebook that this process serves; None where there is no notebook."""
    known = sys.modules.get("IPython")
    shell = known.get_ipython() if known is not None else None
    return NotebookBar(what) if getattr(shell, "kernel", None) is not None else None


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
        from IPython.display import HTML, display

        self.shown = passed
        drawn = HTML("" if ended else self._draw(done, total, passed))
        if self.display is None:
            self.display = display(drawn, display_id=True)
        else:
            self.display.update(drawn)

    def _draw(self, done: float, total: float, passed: float) -> str:
        part = done / total if total > 0.0 else 0.0
        left = f", {passed / part - passed:.0f} s left" if part > 0.0 else ""
        said = f"{escape(self.what)}: {done:.6g} of {total:.6g} ({part:.0%}{left})"
        return f"<progress value='{part:.4f}' max='1' style='width: 20em'></progress> {said}"
