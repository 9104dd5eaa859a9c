"""Coupled systems whose true solution is known: nonlinear, switched, sampled, black boxes.

In:  nothing
Out: `CATALOGUE`, a function by name that makes a `System`; all modules of this package add to it
"""

from truth_systems import (
    biology,
    black_box,
    chaos_and_delay,
    chemistry,
    control,
    electrical,
    fresh_flows,
    fresh_mechanics,
    last_mixed,
    later_fields,
    later_motion,
    machines,
    mechanics,
    sampled,
    thermal_and_fluid,
    trial_smooth,
    trial_switched,
)
from truth_systems.system import CATALOGUE, System

__all__ = [
    "CATALOGUE",
    "System",
    "biology",
    "black_box",
    "chaos_and_delay",
    "chemistry",
    "control",
    "electrical",
    "fresh_flows",
    "fresh_mechanics",
    "last_mixed",
    "later_fields",
    "later_motion",
    "machines",
    "mechanics",
    "sampled",
    "thermal_and_fluid",
    "trial_smooth",
    "trial_switched",
]
