"""FMUs opened through FMPy's fmi2 API: shared by the tools that have no importer of their own.

In:  a System
Out: an FMU2Slave for each unit, initialised, with its start values
"""

from __future__ import annotations

from fmpy import extract
from fmpy.fmi2 import FMU2Slave
from system import System, Unit


def opened(system: System) -> list[FMU2Slave]:
    """Return all units, ready for the first step."""
    folders = {path: extract(path) for path in dict.fromkeys(unit.fmu for unit in system.units)}
    return [slave(unit, folders[unit.fmu]) for unit in system.units]


def slave(unit: Unit, folder: str) -> FMU2Slave:
    """Return one unit, ready for the first step."""
    fmu = FMU2Slave(
        guid=unit.guid, unzipDirectory=folder, modelIdentifier=unit.identifier, instanceName=unit.name
    )
    fmu.instantiate()
    put(fmu, unit, unit.parameters)
    fmu.setupExperiment(startTime=0.0)
    fmu.enterInitializationMode()
    put(fmu, unit, unit.starts)
    fmu.exitInitializationMode()
    return fmu


def put(fmu: FMU2Slave, unit: Unit, values: dict[str, float]) -> None:
    """Set variables by name."""
    if values:
        fmu.setReal([unit.references[name] for name in values], list(values.values()))


def outputs(unit: Unit) -> list[int]:
    """Return the references of the outputs."""
    return [unit.references[name] for name in unit.outputs]


def inputs(unit: Unit) -> list[int]:
    """Return the references of the inputs."""
    return [unit.references[name] for name in unit.inputs]
