"""libcosim through libcosimpy: its fixed-step algorithm, which uses all cores."""

from __future__ import annotations

from libcosimpy.CosimEnums import CosimVariableType
from libcosimpy.CosimExecution import CosimExecution
from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
from libcosimpy.CosimObserver import CosimObserver
from libcosimpy.CosimSlave import CosimLocalSlave
from system import Meter, System, named

PACKAGE = "libcosimpy"


def run(system: System, meter: Meter) -> dict[str, float]:
    """Step all but once without an observer, then once with one: it would cost more than the stepping."""
    system.refuse_unless("jacobi")
    log_output_level(CosimLogLevel.ERROR)
    execution = CosimExecution.from_step_size(round(system.step * 1e9))
    slaves = [CosimLocalSlave(unit.fmu, unit.name) for unit in system.units]
    places = {
        unit.name: execution.add_local_slave(slave) for unit, slave in zip(system.units, slaves, strict=True)
    }
    references = {unit.name: unit.references for unit in system.units}
    for unit in system.units:
        for name, value in unit.parameters.items():
            execution.real_initial_value(places[unit.name], unit.references[name], value)
    for wire in system.wires:
        execution.connect_real_variables(
            places[wire.source],
            references[wire.source][wire.output],
            places[wire.target],
            references[wire.target][wire.input],
        )
    if system.record:
        series = CosimObserver.create_time_series(buffer_size=system.steps)
        execution.add_observer(series)
        for unit, output in system.places:
            series.start_time_series(places[unit], references[unit][output], CosimVariableType.REAL)
    execution.step(1)  # initialises everything first
    meter.loaded()
    assert execution.step(system.steps - 2)
    meter.done(system.steps - 2)
    observer = CosimObserver.create_last_value()
    execution.add_observer(observer)
    execution.step(1)
    values = [
        observer.last_real_values(places[unit], [references[unit][output]])[0]
        for unit, output in system.places
    ]
    return named(system, values)
