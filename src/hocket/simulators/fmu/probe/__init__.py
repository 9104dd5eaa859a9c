"""Whether an FMU can do what it declares: it is loaded, stepped, and put to the test.

In:  an Fmu
Out: a Probe: for each ability a verdict, and a sentence with numbers

The checks run in a process of their own: an FMU that crashes or hangs there is a finding, not the end.
"""

from __future__ import annotations

from hocket.simulators.fmu.probe.bench import Bench
from hocket.simulators.fmu.probe.checks import CHECKS, checked
from hocket.simulators.fmu.probe.findings import Finding, Probe
from hocket.simulators.fmu.probe.process import apart
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.fmu.remaking import remade

__all__ = ["CHECKS", "Finding", "Probe", "probe"]


def probe(model: Fmu, *, here: bool = False) -> Probe:
    """Put an FMU to the test; with `here` in this process, which it may take down.

    Each check may take the `time_limit` of the model. Raises ScenarioError if it has no binary for this
    platform.
    """
    _ = model.binary
    plain, names = remade(model, isolate=False), tuple(CHECKS)
    found = checked(Bench(plain), names) if here else apart(plain, names)
    return Probe(str(model.file), tuple(found))
