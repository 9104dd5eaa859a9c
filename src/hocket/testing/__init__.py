"""The laws that simulators and extrapolators obey, for those who write them.

In:  a Model or an Extrapolator
Out: nothing, or a LawBroken that names the law and what was seen instead
"""

from hocket.testing.laws import EXTRAPOLATOR_LAWS, LAWS, LawBroken, check_extrapolator, check_simulator

__all__ = ["EXTRAPOLATOR_LAWS", "LAWS", "LawBroken", "check_extrapolator", "check_simulator"]
