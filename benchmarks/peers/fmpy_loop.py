"""FMPy as its users couple FMUs: a loop in Python over FMU2Slave objects."""

from __future__ import annotations

from fmpy_slaves import inputs, opened, outputs
from system import Meter, System, named

PACKAGE = "FMPy"


def run(system: System, meter: Meter) -> dict[str, float]:
    """Set, step and get each unit in turn."""
    fmus = opened(system)
    first = 0
    loop = []
    for fmu, unit, sources in zip(fmus, system.units, system.sources(), strict=True):
        last = first + len(unit.outputs)
        loop.append((fmu, inputs(unit), outputs(unit), sources, slice(first, last)))
        first = last
    y = [value for fmu, _, references, _, _ in loop for value in fmu.getReal(references)]
    rows: list[list[float]] = []
    h, jacobi = system.step, system.method == "jacobi"
    meter.loaded()
    for k in range(system.steps):
        t = k * h
        old = list(y) if jacobi else y
        for fmu, into, out, sources, place in loop:
            fmu.setReal(into, [old[source] for source in sources])
            fmu.doStep(t, h)
            y[place] = fmu.getReal(out)
        if system.record:
            rows.append([t, *y])
    meter.done(system.steps)
    return named(system, y)
