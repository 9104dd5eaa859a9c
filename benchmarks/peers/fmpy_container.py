"""FMPy's container FMU."""

from __future__ import annotations

from pathlib import Path

import container
from fmpy import read_model_description
from fmpy.container_fmu.cli import create_container_fmu
from fmpy.container_fmu.config import Component, Configuration, Connection
from fmpy.model_description import CoSimulation, ModelDescription, ModelVariable
from system import Meter, System

PACKAGE = "FMPy"


def run(system: System, meter: Meter) -> dict[str, float]:
    """Make a container, load it and step it."""
    system.refuse_unless("jacobi")
    return container.run(made(system), system, meter)


def made(system: System) -> Path:
    """Make the container.

    It hands on one connection after the other: the force first, before it follows the new inputs.
    """
    known = {fmu: read_model_description(fmu) for fmu in {unit.fmu for unit in system.units}}
    variables = {fmu: {v.name: v for v in found.modelVariables} for fmu, found in known.items()}
    components = {unit.name: Component(unit.name, Path(unit.fmu), known[unit.fmu]) for unit in system.units}
    kinds = {unit.name: variables[unit.fmu] for unit in system.units}
    connections = [
        Connection(
            components[wire.source],
            [real(kinds[wire.source][wire.output])],
            components[wire.target],
            [real(kinds[wire.target][wire.input])],
        )
        for wire in sorted(system.wires, key=lambda wire: wire.output != "force")
    ]
    description = ModelDescription(
        fmiVersion="2.0",
        modelName="container",
        instantiationToken="{container}",
        coSimulation=CoSimulation(modelIdentifier="container_fmu", fixedInternalStepSize=system.step),
    )
    mappings = {}
    for unit in system.units:
        for name, value in (unit.parameters | unit.starts).items():
            shown = ModelVariable(
                name=f"{unit.name}.{name}", type="Real", causality="parameter",
                variability="tunable", start=repr(value),
            )  # fmt: skip
            mappings[shown] = [(components[unit.name], kinds[unit.name][name])]
        for name in unit.outputs:
            shown = ModelVariable(
                name=f"{unit.name}.{name}", type="Real", causality="output",
                variability="continuous", initial="calculated",
            )  # fmt: skip
            mappings[shown] = [(components[unit.name], kinds[unit.name][name])]
    time = ModelVariable(name="time", type="Real", causality="independent", variability="continuous")
    description.modelVariables = [time, *mappings]  # what the container takes the reference 0 for
    folder, path = system.folder / "container", system.folder / "container.fmu"
    folder.mkdir()
    create_container_fmu(
        Configuration(False, description, list(components.values()), connections, mappings), folder, path
    )
    return path


def real(variable: ModelVariable) -> ModelVariable:
    """Return an end of a connection: the container wants the name that the type has in FMI 3."""
    return ModelVariable(name=variable.name, valueReference=variable.valueReference, type="Float64")
