"""SSP: systems of FMUs as other tools exchange them, versions 1.0 and 2.0.

In:  an .ssp, a folder with the same content, or an .ssd; or an Experiment whose models are FMUs
Out: an Experiment with notes of what was assumed on the way; or an .ssp
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hocket.errors import FileError, Place, ScenarioError, merge_notes
from hocket.files.fmus import StepChoice, StepWish, default_step, fmu_step_wish
from hocket.files.ssp.annotation import read_annotation
from hocket.files.ssp.assignments import assign_values
from hocket.files.ssp.directions import direct_connections
from hocket.files.ssp.document import Component, Document, System, SystemReader, read_document
from hocket.files.ssp.foreign_annotations import experiment_step
from hocket.files.ssp.level_builder import LevelBuilder
from hocket.files.ssp.package import ImportFindings, open_package
from hocket.files.ssp.unit_definitions import AffineMap
from hocket.files.ssp.vocabulary import DEFAULT
from hocket.files.ssp.writer import write_ssp
from hocket.model.clock import format_duration, seconds
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.ports import Port
from hocket.model.scenario import Scenario
from hocket.model.units import conversion
from hocket.planning.planner import plan_tree
from hocket.simulators.fmu.recipe import Fmu

__all__ = ["SspImport", "import_ssp", "read_ssp", "write_ssp"]


def _settle_inputs(
    composite: Composite, driven: Collection[str], findings: ImportFindings, path: str = ""
) -> Composite:
    """Return a composite in which no open input is without a start value; `driven` are those not open."""
    scenario = composite.scenario
    ports: list[Port] = []
    for port in scenario.inputs:
        if port.name in driven or port.start is not None:
            ports.append(port)
            continue
        starts = set(_starts(scenario, port))
        if len(starts) == 1 and None not in starts:
            ports.append(replace(port, start=starts.pop()))
        elif starts:
            what = f"nothing drives the input `{path}{port.name}`"
            findings.note(f"{what}, and what it leads to starts at different values: it is left out")
    kept = {port.name for port in ports}
    gone = {port.name for port in scenario.inputs} - kept
    connections = [c for c in scenario.connections if c.source not in gone]
    models = dict(scenario.models)
    for name, model in scenario.models.items():
        if isinstance(model, Composite):
            inside = {c.target[len(name) + 1 :] for c in connections if c.target.startswith(f"{name}.")}
            models[name] = _settle_inputs(model, inside, findings, f"{path}{name}.")
    changed = scenario.with_changes(models=models, connections=connections, inputs=ports)
    return composite.with_scenario(changed)


def _starts(scenario: Scenario, port: Port) -> Iterator[float | None]:
    """Yield the value of a port that would leave each of the inputs it leads to where it starts."""
    for connection in scenario.connections:
        if connection.source != port.name:
            continue
        owner, _, name = connection.target.partition(".")
        model = scenario.models.get(owner)
        target = next((p for p in model.inputs if p.name == name), None) if model else None
        if model is None or target is None:
            continue
        inner = {target.start}
        if target.start is None and isinstance(model, Composite):
            inner = set(_starts(model.scenario, target))
        units = AffineMap(*conversion(port.unit, target.unit))
        line = units.then(AffineMap(connection.gain, connection.offset))
        for start in inner:
            back = None if start is None or not line.gain else line.inverse().at(start)
            yield None if back is None else float(f"{back:.14g}")


def _step_wishes(system: System, path: str = "") -> Iterator[StepWish]:
    """Yield what FMUs say of their steps, in levels that have none of their own."""
    for part in system.parts.values():
        name = f"{path}{part.name}"
        if isinstance(part, System) and part.level.get("step") is None:
            yield from _step_wishes(part, f"{name}.")
        elif isinstance(part, Component) and part.fmu is not None:
            exchange = part.options.get("interface") == "model-exchange"
            wish = fmu_step_wish(name, part.fmu, part.fmu.description.me if exchange else None)
            yield wish if part.asked_step is None else wish._replace(asked=float(part.asked_step))


def _inner_steps(system: System, path: str = "") -> Iterator[tuple[str, Fraction]]:
    """Yield the outermost of the levels inside that have steps of their own."""
    for part in system.parts.values():
        if isinstance(part, System) and part.level.get("step") is not None:
            yield f"{path}{part.name}", part.level["step"]
        elif isinstance(part, System):
            yield from _inner_steps(part, f"{path}{part.name}.")


def _settle_step(system: System, start: Fraction, stop: Fraction | None) -> tuple[Fraction, Fraction | None]:
    """Return the step of the outermost level, and where the run stops: a whole number of steps away.

    What the SSP does not say itself is told in notes.
    """
    told = system.level.get("step")
    if told is not None:
        return told, stop
    span = stop - start if stop is not None and stop > start else None
    if system.asked_step is not None:
        choice = StepChoice(system.asked_step, "", not system.varies_step)
    else:
        choice = default_step(_step_wishes(system), span, dict(_inner_steps(system)))
    if not choice.tied and span is not None and (span / choice.step).denominator != 1:
        reason = f"{choice.reason}, shortened to divide the run"
        choice = StepChoice(span / (span / choice.step).__ceil__(), reason, False)
    if system.asked_step is None:
        system.node.note(f"the SSP tells no step: it is {format_duration(choice.step)}, {choice.reason}")
    if span is None or (span / choice.step).denominator == 1 or span < choice.step:
        return choice.step, stop
    end = start + choice.step * (span / choice.step).__floor__()
    why = (
        f"the last that steps of {format_duration(choice.step)} reach before {format_duration(start + span)}"
    )
    system.node.note(f"the run stops at {format_duration(end)}: {why}")
    return choice.step, end


@dataclass(frozen=True)
class SspImport:
    """What an SSP holds, and what a user may want to know of how it was read."""

    experiment: Experiment
    """Its notes tell what was assumed, ignored or renamed."""
    names: dict[str, str] = field(default_factory=dict)
    """By path in hocket: what the SSP calls an element that had to be renamed."""


def read_ssp(path: Path | str, ssd: str = "") -> Experiment:
    """Return the experiment an SSP holds; raises FileError with every reason why it cannot be run.

    `ssd` chooses another description in the archive than `SystemStructure.ssd`. The notes of the experiment
    tell what was assumed on the way; `import_ssp` keeps the names that had to be changed.
    """
    return import_ssp(path, ssd).experiment


def import_ssp(path: Path | str, ssd: str = "") -> SspImport:
    """Return what an SSP holds, with the names that had to be changed; see `read_ssp`."""
    file = Path(path)
    findings = ImportFindings()
    document = read_document(*open_package(file, findings, ssd))
    system = SystemReader().outermost(document) if document else None
    experiment = _build_experiment(document, system, findings) if document and system else None
    findings.raise_faults()
    assert experiment is not None, "what could not be read has faults"
    if findings.foreign:
        listed = ", ".join(f"`{name}`" for name in sorted(findings.foreign))
        findings.note(f"annotations of other tools are not read: {listed}")
    name = experiment.name or (file.parent if file.name == DEFAULT else file).stem
    notes = tuple(merge_notes(findings.noted))
    return SspImport(replace(experiment, name=name, path=file.absolute(), notes=notes), findings.names)


def _build_experiment(document: Document, system: System, findings: ImportFindings) -> Experiment | None:
    direct_connections(system)
    assign_values(system)
    start, stop, every, origin = _run_times(document)
    node = document.root.child("DefaultExperiment")
    if asked := experiment_step(node):
        system.asked_step, system.varies_step = asked, False
    step, stop = _settle_step(system, start, stop)
    if "orchestrator" not in system.level:
        findings.note("the SSP tells no algorithm: it is jacobi, extrapolation is hold")
    _note_binaries(system)
    composite = LevelBuilder(system, "").composite(step)
    if composite is None:
        if not findings.faults:
            system.node.fault(f"there is nothing in the system `{system.name}`", "an FMU")
        return None
    composite = _settle_inputs(composite, (), findings)
    if not findings.faults:
        _check_scenario(composite, document, findings)
    return Experiment(composite, start, stop, every, document.root.get("name"), origin=origin)


def _run_times(document: Document) -> tuple[Fraction, Fraction | None, Fraction | None, str]:
    node = document.root.child("DefaultExperiment")
    told: dict[str, Any] = {}
    for name in ("start", "stop"):
        text = node.get(f"{name}Time") if node else ""
        try:
            told |= {name: seconds(float(text))} if text else {}
        except ValueError:
            assert node is not None
            node.fault(f"the {name}Time is `{text}`", "a time in seconds")
    told |= read_annotation(node, "Run")
    start, stop = told.get("start", Fraction(0)), told.get("stop")
    if node is not None and stop is not None and stop <= start:
        node.fault(f"the run stops at {stop} s and starts at {start} s", "a stop after the start")
    return start, stop, told.get("every"), told.get("origin", "")


def _check_scenario(composite: Composite, document: Document, findings: ImportFindings) -> None:
    """Note what hocket itself finds wrong with the scenario."""
    try:
        _ = plan_tree(composite)
    except ScenarioError as error:
        shown = document.package.display_name(document.path)
        for fault in error.faults:
            place = Place(detail=", ".join(filter(None, (shown, fault.where))))
            findings.fault(place, fault.what, fault.expected, fault.hint)


def _note_binaries(system: System) -> None:
    """Note the FMUs that cannot be run on this computer; they can still be looked at."""
    missing: dict[Fmu, str] = {}
    for component in system.components():
        fmu = component.fmu
        if fmu is not None and fmu not in missing:
            try:
                _ = fmu.binary
                missing[fmu] = ""
            except FileError as error:
                missing[fmu] = error.faults[0].what
        if fmu is not None and missing[fmu]:
            component.node.note(f"`{component.name}` cannot be run here: {missing[fmu]}")
