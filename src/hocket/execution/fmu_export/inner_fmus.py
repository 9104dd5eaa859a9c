"""FMUs inside an exported co-simulation: their files go along, and they are started without Python.

In:  live FMUs
Out: where their files lie in `resources`; what each is told of it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import hocket._native as _native
from hocket.model.protocols import native_twin
from hocket.simulators.fmu.live import CoSimulation
from hocket.simulators.fmu.recipe import Fmu

FOLDER = "fmus"


def is_inner_fmu(simulator: Any) -> TypeGuard[CoSimulation]:
    """Return whether a simulator is an FMU that compiled code loads, starts and steps."""
    return isinstance(simulator, CoSimulation) and isinstance(native_twin(simulator), _native.Fmu)


@dataclass
class InnerFmus:
    """FMUs by the folders they are unpacked in; equal ones share their files."""

    places: dict[Path, str] = field(default_factory=dict)
    """Per unpacked folder: its name below `resources`."""
    models: list[Fmu] = field(default_factory=list)

    def add(self, simulator: CoSimulation) -> None:
        """Tell an FMU where its files will lie."""
        model = simulator.model
        folder = model.unpacked_folder
        if folder not in self.places:
            self.places[folder] = f"{FOLDER}/{len(self.places) + 1}"
            self.models.append(model)
        simulator.tell_origin(self.places[folder], _binary_place(model))

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield the files that go along: where each lies below `resources`, and where it is now."""
        for model in self.models:
            folder = model.unpacked_folder
            place = self.places[folder]
            yield f"{place}/modelDescription.xml", folder / "modelDescription.xml"
            for part in ("resources", "licenses", "documentation/licenses"):
                for file in sorted((folder / part).rglob("*")):
                    if file.is_file():
                        yield f"{place}/{file.relative_to(folder).as_posix()}", file
            beside = model.binary.parent if model.binary.is_relative_to(folder) else None
            binaries = [model.binary] if beside is None else sorted(beside.rglob("*"))
            for file in binaries:
                if file.is_file():
                    where = _binary_place(model).rpartition("/")[0]
                    inside = file.name if beside is None else file.relative_to(beside).as_posix()
                    yield f"{place}/{where}/{inside}", file


def _binary_place(model: Fmu) -> str:
    """Return where the binary lies in the folder of its FMU; one that was compiled here lay elsewhere."""
    folder = model.unpacked_folder
    if model.binary.is_relative_to(folder):
        return model.binary.relative_to(folder).as_posix()
    return f"binaries/built/{model.binary.name}"
