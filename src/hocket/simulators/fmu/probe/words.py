"""Numbers, names and messages as the sentences of a probe tell them.

In:  what was counted, measured or heard
Out: text
"""

from __future__ import annotations

from collections.abc import Sequence


def count(number: int, thing: str) -> str:
    """Return such as `1 step`, `1,000 steps`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def list_names(names: Sequence[str], quote: str = "`") -> str:
    """Return the first four, and how many more there are."""
    shown = ", ".join(f"{quote}{name}{quote}" for name in names[:4])
    return shown + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def quote_messages(said: Sequence[str]) -> str:
    """Return what an FMU has said, to be appended."""
    return f"; it said {count(len(said), 'message')}, the first {said[0][:200]!r}" if said else ""


def format_seconds(value: float) -> str:
    """Return a duration in s, ms or µs."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"
