"""Ecos through ecospy: its fixed-step algorithm, which uses all cores; rows become a CSV file.

Its wheel lacks libtbb, which the package `tbb` has, in a place that no loader looks at.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from system import Meter, System, named

ctypes.CDLL(str(Path(sys.prefix) / "lib" / "libtbb.so.12"), ctypes.RTLD_GLOBAL)

from ecospy import EcosLib, EcosSimulation, EcosSimulationStructure  # noqa: E402

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
    values = {
        f"{unit.name}::{name}": float(v) for unit in system.units for name, v in unit.parameters.items()
    }
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
