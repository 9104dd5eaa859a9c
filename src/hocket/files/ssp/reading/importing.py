"""An SSP as a study, with what was assumed on the way.

In:  the path of an .ssp, of its folder, or of an .ssd
Out: an SspImport: the Study, with notes, and the names that had to be changed
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from hocket.clock import seconds
from hocket.engine.composite import Composite
from hocket.errors import FileError, ScenarioError
from hocket.files.ssp.annotation import read_annotation
from hocket.files.ssp.findings import ImportFindings
from hocket.files.ssp.reading.assigning import assign_values
from hocket.files.ssp.reading.directions import direct_connections
from hocket.files.ssp.reading.document import SystemReader, read_document
from hocket.files.ssp.reading.levels import LevelBuilder
from hocket.files.ssp.reading.package import open_package
from hocket.files.ssp.reading.parts import Document, System
from hocket.files.ssp.reading.settling import settle_inputs
from hocket.files.ssp.reading.steps import default_step
from hocket.files.ssp.terms import DEFAULT
from hocket.files.study import Experiment
from hocket.simulators.fmu.recipe import Fmu


@dataclass(frozen=True)
class SspImport:
    """What an SSP holds, and what a user may want to know of how it was read."""

    study: Experiment
    """Its notes tell what was assumed, ignored or renamed."""
    names: dict[str, str] = field(default_factory=dict)
    """By path in hocket: what the SSP calls an element that had to be renamed."""


def import_ssp(path: Path | str, ssd: str = "") -> SspImport:
    """Return what an SSP holds; raises FileError with every reason why it cannot be run.

    `ssd` chooses another description in the archive than `SystemStructure.ssd`.
    """
    file = Path(path)
    findings = ImportFindings()
    package, inside = open_package(file, ssd)
    document = read_document(package, inside, None, findings)
    system = SystemReader(findings).outermost(document) if document else None
    if document is None or system is None:
        findings.raise_faults()
        raise AssertionError("a document that could not be read has faults")
    study = _build_study(document, system, findings)
    findings.raise_faults()
    assert study is not None
    _note_foreign(findings)
    name = study.name or (file.parent if file.name == DEFAULT else file).stem
    notes = tuple(findings.noted)
    return SspImport(replace(study, name=name, path=file.absolute(), notes=notes), findings.names)


def _build_study(document: Document, system: System, findings: ImportFindings) -> Experiment | None:
    direct_connections(system, findings)
    assign_values(system, findings)
    start, stop, every = _run_times(document, findings)
    step, why = default_step(system, start, stop)
    if "step" not in system.level:
        findings.note(why)
    if "orchestrator" not in system.level:
        findings.note("the SSP tells no algorithm: it is jacobi, extrapolation is hold")
    _note_binaries(system, findings)
    composite = LevelBuilder(system, "", findings).composite(step)
    if composite is None:
        if not findings.faults:
            findings.fault(system.node, f"there is nothing in the system `{system.name}`", "an FMU")
        return None
    composite = settle_inputs(composite, (), findings)
    if not findings.faults:
        _check_scenario(composite, document, findings)
    return Experiment(composite, start, stop, every, document.root.get("name"))


def _run_times(
    document: Document, findings: ImportFindings
) -> tuple[Fraction, Fraction | None, Fraction | None]:
    """Return when the run starts and stops, and the time between rows."""
    node = document.root.child("DefaultExperiment")
    told: dict[str, Fraction] = {}
    for name in ("start", "stop"):
        text = node.get(f"{name}Time") if node else ""
        try:
            told |= {name: seconds(float(text))} if text else {}
        except ValueError:
            assert node is not None
            findings.fault(node, f"the {name}Time is `{text}`", "a time in seconds")
    told |= read_annotation(node, "Run", findings)
    start, stop = told.get("start", Fraction(0)), told.get("stop")
    if node is not None and stop is not None and stop <= start:
        findings.fault(node, f"the run stops at {stop} s and starts at {start} s", "a stop after the start")
    return start, stop, told.get("every")


def _check_scenario(composite: Composite, document: Document, findings: ImportFindings) -> None:
    """Note what hocket itself finds wrong with the scenario."""
    try:
        _ = composite.blueprint
    except ScenarioError as error:
        shown = document.package.display_name(document.path)
        for fault in error.faults:
            where = f"{shown}, {fault.where}" if fault.where else shown
            findings.fault(where, fault.what, fault.expected, fault.hint)


def _note_foreign(findings: ImportFindings) -> None:
    if findings.foreign:
        listed = ", ".join(f"`{name}`" for name in sorted(findings.foreign))
        findings.note(f"annotations of other tools are not read: {listed}")


def _note_binaries(system: System, findings: ImportFindings) -> None:
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
            findings.note(f"`{component.name}` cannot be run here: {missing[fmu]}")
