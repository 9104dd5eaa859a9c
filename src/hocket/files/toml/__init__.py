"""Scenario files: a co-simulation as TOML.

In:  the path of a scenario file, or its text
Out: an Experiment; and from an Experiment or a Composite the file again

A fault of the scenario says where in the scenario it is (`axle.connections.wheel.force`); the reader has kept
the place of each of these names, in whichever file.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hocket.coupling.wiring import PortFault
from hocket.errors import Fault, FileError, ScenarioError
from hocket.files.toml.codec import FILE
from hocket.files.toml.syntax import (
    WRONG,
    FilePlace,
    Source,
    TomlFindings,
    Wrong,
    open_document,
    parse_document,
)
from hocket.model.code_loading import is_code_refused
from hocket.model.composite import Composite, levels
from hocket.model.experiment import Experiment


def read(path: Path | str, *, check: bool = True) -> Experiment:
    """Return what a scenario file holds; raises FileError with every fault in it, each with its line.

    Relative paths in the file start in its folder. With `check=False` code that the file names is not
    loaded, and names are not looked up: what is wrong with them shows when it is run.
    """
    findings = TomlFindings(check)
    file = Path(path)
    experiment = _read_experiment(open_document(file, findings), findings)
    return replace(experiment, path=file.absolute(), name=experiment.name or file.stem)


def loads(text: str, *, folder: Path | str = "", check: bool = True) -> Experiment:
    """Return what the text of a scenario file holds; relative paths in it start in `folder`."""
    findings = TomlFindings(check)
    source = Source("", text, str(folder), (Path(folder).resolve() / "text",))
    return _read_experiment(parse_document(source, findings), findings)


def write(what: Composite | Experiment, path: Path | str) -> None:
    """Write a scenario file that `read` turns into an equal composite; see `dumps`.

    FMUs out of an SSP are copied to a folder beside the file. Raises FileError if it cannot be written; what
    was there before is then kept.
    """
    from hocket.files.atomic_files import write_text
    from hocket.files.fmus import with_resources

    file = Path(path)
    experiment = with_resources(_as_experiment(what), file)
    named = replace(experiment, name="") if experiment.name == file.stem else experiment
    write_text(file, dumps(named, folder=file.absolute().parent), FileError)


def dumps(what: Composite | Experiment, *, folder: Path | str = "", strict: bool = True) -> str:
    """Return the text of a scenario file for a file in `folder`.

    Raises ScenarioError for what has no name in a file: a lambda, a model of one's own. With `strict=False`
    such things are described in words: a record for people, which `loads` refuses.
    """
    from hocket.files.toml.layout import format_document
    from hocket.files.toml.table_kinds import Section

    findings = TomlFindings()
    place = FilePlace(findings, Source(folder=str(folder)))
    table = FILE.write(_as_experiment(what), place)
    if findings.faults and strict:
        raise ScenarioError(findings.sorted_faults())
    return format_document(Section(table))


def _as_experiment(what: Composite | Experiment) -> Experiment:
    return Experiment(what) if isinstance(what, Composite) else what


def _read_experiment(place: FilePlace | Wrong, findings: TomlFindings) -> Experiment:
    experiment = place if place is WRONG else FILE.read(place.source.table, place)
    if place is not WRONG and experiment is not WRONG and findings.check:
        _check_scenario(_known_parts(experiment), place)
    if findings.faults:
        raise FileError(findings.sorted_faults())
    assert isinstance(experiment, Experiment)
    return experiment


def _known_parts(experiment: Experiment) -> Composite:
    """Return the composite as far as it is known: where no code is loaded, with stand-ins for it."""
    if not is_code_refused():
        return experiment.composite
    from hocket.planning.unloaded import without_code

    return without_code(experiment).composite


def _check_scenario(composite: Composite, place: FilePlace) -> None:
    """Note every fault that can be known before a model is opened; `place` is that of the whole file.

    After faults of the file, only what is wrong with connections between models that could be read.
    """
    from hocket.planning.planner import draft_tree
    from hocket.planning.prepare import prepare_composite

    findings = place.findings
    findings.places[""] = place
    whole = not findings.faults
    only_bonds = all("bonds" in spot.keys for spot, _ in findings.faults)
    try:
        _ = draft_tree(composite) if whole else prepare_composite(composite, tries=False)
    except ScenarioError as error:
        for fault in error.faults:
            if only_bonds or _concerns_readable_models(fault, composite, findings):
                here = _find_place(fault.place.address, findings) or place
                findings.faults.append((here, replace(fault, place=here.place)))


def _concerns_readable_models(fault: Fault, composite: Composite, findings: TomlFindings) -> bool:
    """Return whether a fault is about a connection, and not about a model that could not be read."""
    place = fault.place
    if place.section != "connections":
        return False
    inside = f"{place.level}." if place.level else ""
    connections = dict(levels(composite))[inside].scenario.connections
    ends = [place.key, *(each.source for each in connections if each.target == place.key)]
    ends = [fault.port] if isinstance(fault, PortFault) else ends
    return not any(f"{inside}{end}.".startswith(f"{path}.") for end in ends for path in findings.broken)


def _find_place(where: str, findings: TomlFindings) -> FilePlace | None:
    """Return the place that a scenario calls `where`; None: it is not known."""
    places = findings.places
    if found := places.get(where):
        return found
    level, dot, key = where.rpartition(".")
    if inside := places.get(level + dot):
        return inside / key
    return _find_place(level, findings) if level else None
