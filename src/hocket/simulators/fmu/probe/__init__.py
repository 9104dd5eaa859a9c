"""Whether an FMU can do what it declares: it is loaded, stepped, and put to the test.

In:  an Fmu
Out: a Probe: for each capability a verdict, and a sentence with numbers

The checks run in a process of their own: an FMU that crashes or hangs there is a finding, not the end.
"""

from hocket.simulators.fmu.probe.driver import Finding, Probe
from hocket.simulators.fmu.probe.process import CHECKS, probe

__all__ = ["CHECKS", "Finding", "Probe", "probe"]
