"""A container FMU, made by whatever tool, driven through FMPy.

In:  the path of the container and the references of the outputs it shows
Out: stepped from Python, one call for each step or one for all
"""

from __future__ import annotations

from pathlib import Path

from fmpy import extract, read_model_description
from fmpy.fmi2 import FMU2Slave
from system import Meter, System, UnableError, named


def run(path: Path, system: System, meter: Meter) -> dict[str, float]:
    """Step a container that holds the whole system."""
    if system.record and system.at_once:
        raise UnableError("within one call nothing can be recorded")
    meter.begin()  # making it is not loading it
    description = read_model_description(str(path), validate=False)
    references = {variable.name: variable.valueReference for variable in description.modelVariables}
    shown = [references[f"{unit}.{output}"] for unit, output in system.places]
    fmu = FMU2Slave(
        guid=description.guid,
        unzipDirectory=extract(str(path)),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="container",
    )
    fmu.instantiate()
    fmu.setupExperiment(startTime=0.0)
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    rows: list[list[float]] = []
    h = system.step
    meter.loaded()
    if system.at_once:
        fmu.doStep(0.0, h * system.steps)
    else:
        for k in range(system.steps):
            fmu.doStep(k * h, h)
            if system.record:
                rows.append(fmu.getReal(shown))
    meter.done(system.steps)
    return named(system, fmu.getReal(shown))
