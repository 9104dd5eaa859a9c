"""The laws that simulators, extrapolators and orchestrators obey, for those who write them.

In:  a Model, an Extrapolator, or an Orchestrator and a Scenario
Out: nothing, or a LawBroken that names the law and what was seen instead
"""

from hocket.testing.capability_laws import CAPABILITY_LAWS, LAWS, check_simulator
from hocket.testing.laws import (
    EXTRAPOLATOR_LAWS,
    ORCHESTRATOR_LAWS,
    LawBroken,
    check_extrapolator,
    check_orchestrator,
)

__all__ = [
    "CAPABILITY_LAWS",
    "EXTRAPOLATOR_LAWS",
    "LAWS",
    "ORCHESTRATOR_LAWS",
    "LawBroken",
    "check_extrapolator",
    "check_orchestrator",
    "check_simulator",
]
