"""The container FMU of Renault's fmu_manipulation_toolbox."""

from __future__ import annotations

from pathlib import Path

import container
from fmu_manipulation_toolbox.container import FMUContainer
from system import Meter, System

PACKAGE = "fmu_manipulation_toolbox"


def run(system: System, meter: Meter) -> dict[str, float]:
    """Make a container, load it and step it."""
    return container.run(made(system), system, meter)


def made(system: System) -> Path:
    """Make the container; its sequential mode is Gauss-Seidel."""
    box = FMUContainer("box", Path(system.units[0].fmu).parent, fmi_version=2)
    names = {unit.name: f"{unit.name}.fmu" for unit in system.units}
    for unit in system.units:
        box.get_fmu(Path(unit.fmu).name, name=names[unit.name])
    for wire in system.wires:
        box.add_link(names[wire.source], wire.output, names[wire.target], wire.input)
    for unit in system.units:
        for name, value in (unit.parameters | unit.starts).items():
            box.add_start_value(names[unit.name], name, repr(value))
        for name in unit.outputs:
            box.add_output(names[unit.name], name, f"{unit.name}.{name}")
    path = system.folder / "box.fmu"
    box.make_fmu(path, step_size=system.step, sequential=system.method == "gauss-seidel")
    return path
