"""Building a large tree makes millions of objects and no garbage: the collector need not look meanwhile.

In:  a block of building
Out: the same, about a third faster for a hundred thousand simulators
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collector() -> Iterator[None]:
    """Pause Python's garbage collector, if it is on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
