"""What an FMU is put through: a grid of steps, and inputs that change.

In:  what its model description says of the default experiment and of its inputs
Out: times and values
"""

from __future__ import annotations

import math

from hocket.model import Port
from hocket.simulators.fmu.facts import FmuVariable
from hocket.simulators.fmu.recipe import Fmu


def step_grid(model: Fmu) -> tuple[float, float, int, float | None]:
    """Return where steps begin, how long and how many they are, and where they end if that is declared."""
    description, fixed = model.description, model.interface_used.fixed_step
    start = description.start or 0.0
    stop = description.stop if description.stop is not None and description.stop > start else None
    h = description.step or (0.01 if stop is None else (stop - start) / 100)
    if fixed and not model.interface_used.variable_step:
        h = fixed * max(1, round(h / fixed))
    fits = 0 if stop is None else math.floor((stop - start) / h + 1e-6)
    return (start, h, min(fits, 1000), stop) if fits >= 10 else (start, h, 10, None)


def alternative_value(port: Port, variable: FmuVariable) -> float:
    """Return a value of an input other than its start value, within its limits."""
    start = port.start or 0.0
    low = -math.inf if variable.minimum is None else float(variable.minimum)
    high = math.inf if variable.maximum is None else float(variable.maximum)
    if port.type == "boolean":
        return 1.0 - start
    if port.type == "enumeration":
        return next((float(item) for item in variable.items.values() if item != start), start)
    if port.type == "integer":
        return start + 1 if start + 1 <= high else max(start - 1, low)
    nudge = 0.1 * max(abs(start), variable.nominal or 1.0)
    if high - low < math.inf:
        nudge = min(nudge, 0.25 * (high - low))
    return start + nudge if start + nudge <= high else max(start - nudge, low)
