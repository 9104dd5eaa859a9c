"""The container FMU of Renault's fmu_manipulation_toolbox: one call of fmi2DoStep for the whole run."""

from __future__ import annotations

import toolbox_container
from system import Meter, System, Unable

PACKAGE = "fmu_manipulation_toolbox"


def run(system: System, meter: Meter) -> dict[str, float]:
    """Make a container, load it and step it."""
    if system.record:
        raise Unable("within one call nothing can be recorded")
    return toolbox_container.run(system, meter, at_once=True)
