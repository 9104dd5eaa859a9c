"""What FMUs log: it waits in compiled code until somebody has time for it.

In:  messages of FMUs in this process
Out: records of the logger `hocket.fmu`

It stands alone, so that runs without FMUs need nothing else of this package.
"""

from __future__ import annotations

import logging

import hocket._native as _native

LOGGER = logging.getLogger("hocket.fmu")
_LEVELS = (logging.INFO, logging.WARNING, logging.WARNING, logging.ERROR, logging.CRITICAL)


def deliver() -> None:
    """Hand over every message that waits; called between steps and around the calls from Python."""
    for name, status, category, text in _native.take_log():
        level = _LEVELS[status] if 0 <= status < len(_LEVELS) else logging.WARNING
        LOGGER.log(level, "%s: %s", name, text, extra={"instance": name, "category": category})
