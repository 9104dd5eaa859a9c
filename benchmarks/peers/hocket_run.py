"""hocket itself, through `hocket.run`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from system import Meter, System

import hocket as hk
from hocket.execution.session import Execution

PACKAGE = "hocket"


def run(system: System, meter: Meter) -> dict[str, float]:
    """Run twice: once for the time, once for the values at the end where nothing is to be recorded."""
    models = {unit.name: hk.Fmu(unit.fmu, unit.parameters) for unit in system.units}
    wires = {f"{wire.target}.{wire.input}": f"{wire.source}.{wire.output}" for wire in system.wires}
    names = [unit.name for unit in system.units]
    jacobi = system.method == "jacobi"
    orchestrator = hk.Jacobi(outputs="stale") if jacobi else hk.GaussSeidel(names, outputs="stale")
    composite = hk.Composite(
        hk.Scenario(models, wires), step=Fraction(system.step), orchestrator=orchestrator
    )
    stop = Fraction(system.step) * system.steps
    proceed = Execution.proceed

    def noted(*arguments: Any) -> bool:
        Execution.proceed = proceed  # type: ignore[method-assign]
        meter.loaded()
        return proceed(*arguments)

    Execution.proceed = noted  # type: ignore[method-assign]
    result = hk.run(composite, stop=stop, record=None if system.record else [], folder=system.folder / "run")
    meter.done(system.steps)
    meter.steps = result.info["timings"]["phases"]["steps"]  # as run.json has it
    if not system.record:
        result = hk.run(composite, stop=stop, every=stop)
    return {
        f"{unit.name}.{output}": result.final(f"{unit.name}.{output}")
        for unit in system.units
        for output in unit.outputs
    }
