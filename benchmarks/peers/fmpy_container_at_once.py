"""FMPy's container FMU: one call of fmi2DoStep for the whole run, so that nothing is left to Python."""

from __future__ import annotations

import fmpy_container
from system import Meter, System, Unable

PACKAGE = "FMPy"


def run(system: System, meter: Meter) -> dict[str, float]:
    """Make a container, load it and step it."""
    if system.record:
        raise Unable("within one call nothing can be recorded")
    return fmpy_container.run(system, meter, at_once=True)
