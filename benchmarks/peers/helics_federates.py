"""HELICS: each FMU, opened through FMPy, is a federate; all share one core and one broker in this process.

The federates live in one thread and ask for time asynchronously, so that no thread of Python waits.
"""

from __future__ import annotations

import helics as h
from fmpy_slaves import inputs, opened, outputs
from system import Meter, System, named

PACKAGE = "helics"


def run(system: System, meter: Meter) -> dict[str, float]:
    """Publish, ask for time, step; a value that is published at a time is received at the next."""
    system.refuse_unless("jacobi")
    fmus = opened(system)
    core = h.helicsCreateCore("inproc", "core", f"--autobroker -f {len(system.units)} --loglevel=error")
    federates, publications, subscriptions = [], [], []
    sources = {(wire.target, wire.input): f"{wire.source}.{wire.output}" for wire in system.wires}
    for unit in system.units:
        info = h.helicsCreateFederateInfo()
        h.helicsFederateInfoSetCoreName(info, h.helicsCoreGetIdentifier(core))
        h.helicsFederateInfoSetCoreTypeFromString(info, "inproc")
        h.helicsFederateInfoSetTimeProperty(info, h.helics_property_time_period, system.step)
        federate = h.helicsCreateValueFederate(unit.name, info)
        publications.append(
            [
                h.helicsFederateRegisterGlobalTypePublication(federate, f"{unit.name}.{name}", "double", "")
                for name in unit.outputs
            ]
        )
        subscriptions.append(
            [
                h.helicsFederateRegisterSubscription(federate, sources[unit.name, name], "")
                for name in unit.inputs
            ]
        )
        federates.append(federate)
    for federate in federates:
        h.helicsFederateEnterInitializingModeAsync(federate)
    for unit, fmu, federate, published in zip(system.units, fmus, federates, publications, strict=True):
        h.helicsFederateEnterInitializingModeComplete(federate)
        for publication, value in zip(published, fmu.getReal(outputs(unit)), strict=True):
            h.helicsPublicationPublishDouble(publication, value)
    for federate in federates:
        h.helicsFederateEnterExecutingModeAsync(federate)
    for federate in federates:
        h.helicsFederateEnterExecutingModeComplete(federate)
    loop = [
        (fmu, inputs(unit), outputs(unit), published, subscribed)
        for unit, fmu, published, subscribed in zip(
            system.units, fmus, publications, subscriptions, strict=True
        )
    ]
    rows: list[list[float]] = []
    meter.loaded()
    for k in range(system.steps):
        row: list[float] = []
        for fmu, into, out, published, subscribed in loop:
            fmu.setReal(into, [h.helicsInputGetDouble(subscription) for subscription in subscribed])
            fmu.doStep(k * system.step, system.step)
            values = fmu.getReal(out)
            for publication, value in zip(published, values, strict=True):
                h.helicsPublicationPublishDouble(publication, value)
            row += values
        for federate in federates:
            h.helicsFederateRequestTimeAsync(federate, (k + 1) * system.step)
        for federate in federates:
            h.helicsFederateRequestTimeComplete(federate)
        if system.record:
            rows.append(row)
    meter.done(system.steps)
    return named(system, row)
