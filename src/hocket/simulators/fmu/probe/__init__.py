"""Whether an FMU can do what it declares: it is loaded, stepped, and put to the test.

In:  an Fmu
Out: a Probe: for each capability a verdict, and a sentence with numbers

The checks run in a process of their own: an FMU that crashes or hangs there is a finding, not the end.
"""

from __future__ import annotations

from hocket.simulators.fmu.probe.driver import Finding, Probe, ProbeBench
from hocket.simulators.fmu.probe.process import CHECKS, probe_in_process, run_checks
from hocket.simulators.fmu.recipe import Fmu, remake_fmu

__all__ = ["CHECKS", "Finding", "Probe", "probe"]


def probe(model: Fmu, *, here: bool = False) -> Probe:
    """Put an FMU to the test; with `here` in this process, which it may take down.

    Each check may take the `time_limit` of the model. Raises ScenarioError if it has no binary for this
    platform.
    """
    _ = model.binary
    plain, names = remake_fmu(model, isolate=False), tuple(CHECKS)
    found = run_checks(ProbeBench(plain), names) if here else probe_in_process(plain, names)
    return Probe(str(model.file), tuple(found))
