"""Ecos through ecospy: its fixed-step algorithm, which uses all cores; recorded are CSV files."""

from __future__ import annotations

from ecospy import EcosLib, EcosSimulation, EcosSimulationStructure
from system import Meter, System, named

PACKAGE = "ecospy"


def run(system: System, meter: Meter) -> dict[str, float]:
    """Step."""
    system.refuse_unless("jacobi")
    EcosLib.set_log_level("off")
    structure = EcosSimulationStructure()
    for unit in system.units:
        structure.add_model(unit.name, unit.fmu)
    for wire in system.wires:
        structure.make_real_connection(f"{wire.source}::{wire.output}", f"{wire.target}::{wire.input}")
    values = {f"{unit.name}::{name}": float(v) for unit in system.units for name, v in unit.parameters.items()}
    structure.add_parameter_set("start", values)
    simulation = EcosSimulation(system.step, structure=structure)
    if system.record:
        names = [f"{unit}::{output}" for unit, output in system.places]
        simulation.add_csv_writer(str(system.folder / "rows.csv"), identifiers=names)
    simulation.init(parameter_set="start")
    meter.loaded()
    simulation.step(system.steps)
    meter.done(system.steps)
    return named(system, [simulation.get_real(f"{unit}::{output}") for unit, output in system.places])
