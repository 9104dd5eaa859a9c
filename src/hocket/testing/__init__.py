"""The laws that simulators and extrapolators obey, for those who write them.

In:  a Model or an Extrapolator
Out: nothing, or a LawBroken that names the law and what was seen instead
"""

from hocket.testing.capability_laws import CAPABILITY_LAWS, LAWS, check_simulator
from hocket.testing.laws import EXTRAPOLATOR_LAWS, LawBroken, check_extrapolator

__all__ = [
    "CAPABILITY_LAWS",
    "EXTRAPOLATOR_LAWS",
    "LAWS",
    "LawBroken",
    "check_extrapolator",
    "check_simulator",
]
