"""What FMUs say arrives in Python's logging, under `hocket.fmu`.

In:  messages that the native side has kept
Out: log records, each with the instance that spoke
"""

from __future__ import annotations

import logging

from hocket import _native

LOGGER = logging.getLogger("hocket.fmu")
_LEVELS = (logging.INFO, logging.WARNING, logging.WARNING, logging.ERROR, logging.CRITICAL)


def deliver() -> None:
    """Hand over every message that waits; called between steps and around the calls from Python."""
    for name, status, category, text in _native.take_log():
        level = _LEVELS[status] if 0 <= status < len(_LEVELS) else logging.WARNING
        LOGGER.log(level, "%s: %s", name, text, extra={"instance": name, "category": category})
