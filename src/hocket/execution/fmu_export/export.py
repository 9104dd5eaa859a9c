"""`hocket.export`: a whole co-simulation becomes one FMU that runs in any tool, without Python.

In:  a Composite, an Fmu, or the path of a file; the name of an .fmu
Out: that file: a model description, the library that runs it, its plan
"""

from __future__ import annotations

import platform
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hocket._native as _native
from hocket._native import VariableKind
from hocket.coupling.level_ports import with_open_inputs
from hocket.errors import FileError, ScenarioError
from hocket.execution.fmu_export.exported_plan import ExportedPlan, export_plan
from hocket.execution.fmu_export.exported_variables import ExportedVariable
from hocket.execution.run import prepare_job
from hocket.files.atomic_files import replace_file
from hocket.files.experiments import ExperimentLike, as_experiment, vary_experiment
from hocket.files.fmu_description import DescribedVariable, FmiVersion, FmuFacts, write_description
from hocket.model.arguments import as_path, expect, expect_texts
from hocket.model.clock import Duration
from hocket.model.experiment import Experiment
from hocket.model.scenario import Connections
from hocket.planning.prepare import without_constraints

PLAN = "resources/plan.hocket"
LIBRARY = "libhocket.so"
_PLATFORMS = {"2.0": {"Linux": "linux64"}, "3.0": {"Linux": "x86_64-linux"}}
_VERSIONS: Mapping[str, FmiVersion] = {"2": "2.0", "2.0": "2.0", "3": "3.0", "3.0": "3.0"}
_CAUSALITIES: Mapping[VariableKind, Any] = {
    VariableKind.time: "independent",
    VariableKind.input: "input",
    VariableKind.output: "output",
    VariableKind.seen: "output",
    VariableKind.initial: "parameter",
    VariableKind.parameter: "parameter",
}


def export(
    what: ExperimentLike,
    file: Path | str,
    *,
    fmi: str = "2.0",
    connections: Connections = (),
    start: Duration | None = None,
    stop: Duration | None = None,
    step: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    record: Iterable[str] | None = None,
    name: str = "",
) -> Path:
    """Write a co-simulation as an FMU for co-simulation, and return the path of the file.

    `what` and what follows up to `parameters` are those of `hocket.run`; `record` chooses the ports that
    become outputs, in place of those that the scenario records. `fmi` is "2.0" or "3.0". The inputs that
    nothing drives become inputs. What cannot be exported is refused by name before anything is written.
    """
    expect_texts(name=name, fmi=fmi)
    expect(fmi in _VERSIONS, "fmi", fmi, '"2.0" or "3.0"')
    target = as_path(file)
    if target.suffix.lower() != ".fmu":
        raise FileError(f"cannot write a `{target.suffix}` file", str(file), "a name that ends in .fmu")
    experiment = as_experiment(what, connections, start=start, stop=stop, step=step, done="exported")
    experiment = vary_experiment(experiment, {} if parameters is None else parameters)
    return write_fmu(experiment, target, _VERSIONS[fmi], record, name or experiment.name or target.stem)


def write_fmu(
    experiment: Experiment, target: Path, fmi: FmiVersion, record: Iterable[str] | None, name: str
) -> Path:
    """Write an experiment as an FMU."""
    library = find_library()
    composite = without_constraints(experiment.composite)  # inputs that equations determine are not open
    experiment = replace(experiment, composite=composite.with_scenario(with_open_inputs(composite.scenario)))
    folder = _platform_folder(fmi)
    default_stop = experiment.stop
    if experiment.stop is None:  # nothing says when a run ends: it is planned for one step
        experiment = replace(experiment, stop=experiment.start + experiment.composite.step)
    job = prepare_job(experiment, record, ledger=False, driven=False)
    identifier = _identifier(target.stem)
    plan = export_plan(job, name)
    facts = FmuFacts(
        name=name,
        identifier=identifier,
        token=plan.token,
        description=f"a co-simulation of {len(job.design.leaves.places)} simulators",
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        tool=f"hocket {version('hocket')}",
        start=float(experiment.start),
        stop=None if default_stop is None else float(default_stop),
        step=float(job.design.composite.step),
        saves=plan.saves,
        adaptive=plan.adaptive,
    )
    described = write_description(facts, [_describe(each) for each in plan.variables], fmi)
    _write_archive(target, described, f"binaries/{folder}/{identifier}.so", library, plan)
    return target


def _describe(variable: ExportedVariable) -> DescribedVariable:
    causality = _CAUSALITIES[variable.kind]
    return DescribedVariable(
        variable.name,
        causality,
        variable.type.name,  # type: ignore[arg-type]
        variable.unit,
        variable.start if causality in ("input", "parameter") else None,
        variable.discrete,
        variable.depends,
    )


def _write_archive(target: Path, described: bytes, binary: str, library: Path, plan: ExportedPlan) -> None:
    with (
        replace_file(target, FileError) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.writestr("modelDescription.xml", described)
        archive.writestr(PLAN, plan.data)
        archive.writestr(binary, library.read_bytes())
        for place, source in plan.files:
            archive.write(source, f"resources/{place}")


def find_library() -> Path:
    """Return the library that exported FMUs bring: it is made beside the native module."""
    found = Path(_native.__file__).with_name(LIBRARY)
    if not found.is_file():
        what = "this hocket was built without the library of exported FMUs"
        raise ScenarioError(what, str(found), "a wheel of hocket, or one built on Linux")
    return found


def _platform_folder(fmi: FmiVersion) -> str:
    folder = _PLATFORMS[fmi].get(platform.system())
    if folder is None or platform.machine() not in ("x86_64", "AMD64"):
        machine = f"{sys.platform} on {platform.machine()}"
        raise ScenarioError(f"FMUs are exported on Linux x86-64 only, this is {machine}", "export")
    return folder


def _identifier(stem: str) -> str:
    """Return a name that C allows."""
    name = re.sub(r"\W", "_", stem, flags=re.ASCII)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"
