"""FMPy's `simulate_ssp`. It always records; every connector is 0 in the first step."""

from __future__ import annotations

from types import SimpleNamespace

import fmpy.ssp.simulation as ssp
from ssp_file import written
from system import Meter, System

PACKAGE = "FMPy"


def run(system: System, meter: Meter) -> dict[str, float]:
    """Run; loading ends with the last FMU instantiated, stepping with the first one freed."""
    system.refuse_unless("jacobi")
    path = written(system)
    values = [
        SimpleNamespace(name=f"{unit.name}.{name}", value=value)
        for unit in system.units
        for name, value in unit.parameters.items()
    ]
    left = [len(system.units)]
    instantiate, free = ssp.instantiate_fmu, ssp.free_fmu

    def instantiated(*arguments: object) -> None:
        instantiate(*arguments)
        left[0] -= 1
        if not left[0]:
            meter.loaded()

    def freed(component: object) -> None:
        if not meter.stepped:
            meter.done(system.steps)
        free(component)

    ssp.instantiate_fmu, ssp.free_fmu = instantiated, freed
    meter.begin()
    rows = ssp.simulate_ssp(
        str(path),
        stop_time=system.step * system.steps,
        step_size=system.step,
        parameter_set=SimpleNamespace(parameters=values),
    )
    return {f"{unit}.{output}": float(rows[-1][f"{unit}.{output}"]) for unit, output in system.places}
