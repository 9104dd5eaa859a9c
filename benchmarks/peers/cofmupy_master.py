"""CoFmuPy, installed as cofmpy: its master, which steps FMUs through FMPy."""

from __future__ import annotations

from cofmupy import Coordinator
from system import Meter, System, named

PACKAGE = "cofmupy"


def run(system: System, meter: Meter) -> dict[str, float]:
    """Step."""
    gauss_seidel = system.method == "gauss-seidel"
    configuration = {
        "fmus": [
            {
                "id": unit.name,
                "name": unit.name,
                "path": unit.fmu,
                "initialization": unit.parameters | unit.starts,
            }
            for unit in system.units
        ],
        "connections": [
            {
                "source": {"id": wire.source, "variable": wire.output, "unit": ""},
                "target": {"id": wire.target, "variable": wire.input, "unit": ""},
            }
            for wire in system.wires
        ],
        "cosim_method": "gauss_seidel" if gauss_seidel else "jacobi",
        "iterative": False,
    }
    coordinator = Coordinator()
    coordinator.start(configuration)
    master = coordinator.master
    master.sequence_order = [[unit.name for unit in system.units]]  # the order within a loop is random
    meter.loaded()
    for _ in range(system.steps):
        last = master.do_step(system.step, record_outputs=system.record)
    meter.done(system.steps)
    return named(system, [last[unit][output][0] for unit, output in system.places])
