"""From an experiment to an SSP.

In:  an Experiment whose models are FMUs
Out: an .ssp
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

from hocket.coupling.level_ports import with_level_ports
from hocket.coupling.wiring import scenario_faults
from hocket.errors import Fault, FileError, ScenarioError
from hocket.files.atomic_files import replace_file
from hocket.files.fmus import free_name
from hocket.files.ssp.annotation import NAMESPACE
from hocket.files.ssp.package import ImportFindings, MalformedError, parse_xml
from hocket.files.ssp.system_writer import SystemWriter, foldable
from hocket.files.ssp.vocabulary import DEFAULT, SSD, register_prefixes
from hocket.model.clock import seconds
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.scenario import Scenario
from hocket.simulators.fmu.recipe import Fmu

_WHEN = (2000, 1, 1, 0, 0, 0)
"""The same experiment gives the same bytes."""


def write_ssp(what: Experiment | Composite, path: Path | str) -> None:
    """Write an SSP, 1.0 unless something in it needs 2.0; raises ScenarioError for what is not an FMU.

    Connections that reach into a level get connectors there. A factor (`Gain`) becomes a part of its
    connection. What SSP has no words for stands in annotations, which `read_ssp` reads back.
    """
    file = Path(path)
    experiment = what if isinstance(what, Experiment) else Experiment(what)
    scenario = with_level_ports(experiment.composite.scenario)
    faults = [*_unsupported_models(scenario), *scenario_faults(scenario)]
    if faults:
        raise ScenarioError(faults)
    composite = experiment.composite.with_scenario(scenario)
    sources = _sources(scenario)
    text = ssd_text(replace(experiment, composite=composite, name=experiment.name or file.stem), sources)
    with replace_file(file, FileError) as fresh, zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(DEFAULT, _WHEN), text, zipfile.ZIP_DEFLATED)
        for fmu, name in sources.items():
            _add_fmu(archive, fmu, name)


def _unsupported_models(scenario: Scenario, path: str = "") -> Iterator[Fault]:
    """Yield the models that an SSP cannot hold."""
    driven = {connection.target for connection in scenario.connections}
    for name, model in scenario.models.items():
        if isinstance(model, Composite):
            yield from _unsupported_models(model.scenario, f"{path}{name}.")
        elif not isinstance(model, Fmu) and not foldable(name, model, driven):
            what = f"`{path}{name}` is a {type(model).__name__}, and an SSP holds FMUs"
            yield Fault(what, f"models.{path}{name}", "an FMU, or a level of FMUs")


def _fmus(scenario: Scenario) -> Iterator[Fmu]:
    for model in scenario.models.values():
        if isinstance(model, Composite):
            yield from _fmus(model.scenario)
        elif isinstance(model, Fmu):
            yield model


def _sources(scenario: Scenario) -> dict[Path, str]:
    """Return the place of each FMU in the archive, by its file."""
    sources: dict[Path, str] = {}
    for fmu in _fmus(scenario):
        if fmu.file not in sources:
            used = {Path(name).stem for name in sources.values()}
            sources[fmu.file] = f"resources/{free_name(fmu.file.stem, used)}.fmu"
    return sources


def _add_fmu(archive: zipfile.ZipFile, fmu: Path, name: str) -> None:
    if fmu.is_file():
        archive.writestr(zipfile.ZipInfo(name, _WHEN), fmu.read_bytes(), zipfile.ZIP_STORED)
        return
    with archive.open(zipfile.ZipInfo(name, _WHEN), "w") as inner, zipfile.ZipFile(inner, "w") as packed:
        for file in sorted(fmu.rglob("*")):
            if file.is_file():
                entry = zipfile.ZipInfo(file.relative_to(fmu).as_posix(), _WHEN)
                packed.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)


def ssd_text(experiment: Experiment, sources: dict[Path, str]) -> bytes:
    register_prefixes(NAMESPACE)
    writer = SystemWriter(sources)
    root = ElementTree.Element(f"{SSD}SystemStructureDescription", name=experiment.name)
    root.set("generationTool", "hocket")
    writer.needs.versioned.append(root)
    writer.write_system(root, "root", experiment.composite)
    writer.terms.write(root)
    element = ElementTree.SubElement(
        root, f"{SSD}DefaultExperiment", startTime=_format_time(experiment.start)
    )
    run = {"every": experiment.every, "start": _inexact_time(experiment.start), "stop": None}
    if experiment.stop is not None:
        element.set("stopTime", _format_time(experiment.stop))
        run["stop"] = _inexact_time(experiment.stop)
    writer.annotate(element, "Run", SimpleNamespace(**run), "run")
    if writer.faults:
        raise ScenarioError(writer.faults)
    writer.needs.finish()
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    try:
        parse_xml(text, DEFAULT, ImportFindings())
    except MalformedError as error:
        line = text.split(b"\n")[error.line - 1].decode().strip()
        raise ScenarioError(f"a name or text cannot be written as XML: {line!r:.80}") from None
    return text


def _format_time(value: Fraction) -> str:
    return repr(float(value))


def _inexact_time(value: Fraction) -> Fraction | None:
    """Return a time that its decimal does not tell."""
    return None if seconds(float(value)) == value else value
