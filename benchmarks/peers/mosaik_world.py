"""mosaik with a minimal adapter: each FMU, opened through FMPy, is a simulator within this process."""

from __future__ import annotations

from typing import Any

import mosaik
import mosaik_api_v3
from fmpy import extract
from fmpy_slaves import inputs, outputs, slave
from system import Meter, System, Unit, Wire, named

PACKAGE = "mosaik"


class Adapter(mosaik_api_v3.Simulator):
    """One FMU."""

    meter: Meter | None = None
    """Told of the very first step: until then mosaik looks at the graph."""

    def __init__(self) -> None:
        super().__init__({"type": "time-based", "models": {}})

    def init(self, sid: str, time_resolution: float, unit: Unit, folder: str, step: float) -> Any:
        self.step_size, self.unit = step, unit
        self.fmu, self.into, self.out = slave(unit, folder), inputs(unit), outputs(unit)
        attrs = [*unit.inputs, *unit.outputs]
        self.meta["models"] = {"Fmu": {"public": True, "params": [], "attrs": attrs}}
        return self.meta

    def create(self, num: int, model: str) -> Any:
        return [{"eid": "fmu", "type": model}]

    def step(self, time: int, given: Any, max_advance: int) -> int:
        if Adapter.meter is not None:
            Adapter.meter.loaded()
            Adapter.meter = None
        values = given["fmu"]
        self.fmu.setReal(self.into, [next(iter(values[name].values())) for name in self.unit.inputs])
        self.fmu.doStep(time * self.step_size, self.step_size)
        return time + 1

    def get_data(self, requested: Any) -> Any:
        values = dict(zip(self.unit.outputs, self.fmu.getReal(self.out), strict=True))
        return {"fmu": {name: values[name] for name in requested["fmu"]}}


class Collector(mosaik_api_v3.Simulator):
    """Keeps what it is given."""

    def __init__(self) -> None:
        meta = {"public": True, "any_inputs": True, "params": [], "attrs": []}
        super().__init__({"type": "event-based", "models": {"Rows": meta}})
        self.rows: list[Any] = []

    def create(self, num: int, model: str) -> Any:
        return [{"eid": "rows", "type": model}]

    def step(self, time: int, given: Any, max_advance: int) -> None:
        self.rows.append((time, given))

    def get_data(self, requested: Any) -> Any:
        return {}


def run(system: System, meter: Meter) -> dict[str, float]:
    """Run; what goes forward in a Gauss-Seidel order is handed on within the step, all else time-shifted."""
    Adapter.meter = meter
    known = {"Fmu": {"python": f"{__name__}:Adapter"}, "Rows": {"python": f"{__name__}:Collector"}}
    world = mosaik.World(known, skip_greetings=True, configure_logging=False)
    folders = {path: extract(path) for path in dict.fromkeys(unit.fmu for unit in system.units)}
    entities = {}
    for unit in system.units:
        factory = world.start("Fmu", sim_id=unit.name, unit=unit, folder=folders[unit.fmu], step=system.step)
        entities[unit.name] = factory.Fmu()
    starts = {unit.name: unit.starts for unit in system.units}
    order = [unit.name for unit in system.units]
    pairs: dict[tuple[str, str], list[Wire]] = {}
    for wire in system.wires:
        pairs.setdefault((wire.source, wire.target), []).append(wire)
    for (source, target), wires in pairs.items():
        forward = system.method == "gauss-seidel" and order.index(source) < order.index(target)
        first = {wire.output: starts[target][wire.input] for wire in wires}
        shift: dict[str, Any] = {} if forward else {"time_shifted": True, "initial_data": first}
        attrs = [(wire.output, wire.input) for wire in wires]
        world.connect(entities[source], entities[target], *attrs, **shift)
    if system.record:
        rows = world.start("Rows").Rows()
        for unit, output in system.places:
            world.connect(entities[unit], rows, output)
    world.run(until=system.steps, print_progress=False, shutdown=False)
    meter.done(system.steps)
    values = []
    for unit in system.units:
        values += [
            world.get_data([entities[unit.name]], name)[entities[unit.name]][name] for name in unit.outputs
        ]
    return named(system, values)
