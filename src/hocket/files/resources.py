"""FMUs out of an archive, beside the scenario file that names them: where they were unpacked nobody else has.

In:  a Study, and the scenario file that it is to be written to
Out: the Study with copies of these FMUs, in a folder beside that file
"""

from __future__ import annotations

import copy
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from hocket.engine.composite import Composite
from hocket.engine.recording import write_error
from hocket.files.names import free_name
from hocket.files.study import Experiment
from hocket.simulators.emulating import is_emulation
from hocket.simulators.fmu.archive import cache_folder
from hocket.simulators.fmu.recipe import Fmu
from hocket.simulators.timed import Timed


def resource_folder(file: Path) -> Path:
    """Return the folder of the FMUs of a scenario file: car.resources for car.toml."""
    return file.with_name(f"{file.stem}.resources")


def with_resources(study: Experiment, file: Path) -> Experiment:
    """Return the study with FMUs out of archives copied to the resources of a file; raises FileError."""
    copies = _FmuCopies(resource_folder(file.absolute()))
    composite: Composite = copies.move_fmus(study.composite)
    return replace(study, composite=composite) if copies.names else study


class _FmuCopies:
    """The FMUs in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.names: dict[Path, str] = {}
        """In the folder, by what they are copies of."""

    def move_fmus(self, model: Any) -> Any:
        """Return a model whose FMUs are in the folder, and no longer in the cache."""
        if isinstance(model, Composite):
            models = {name: self.move_fmus(inner) for name, inner in model.scenario.models.items()}
            return model.with_scenario(model.scenario.with_models(models))
        if is_emulation(model) or isinstance(model, Timed):
            wrapper: Any = model
            return replace(wrapper, model=self.move_fmus(wrapper.model))
        if not isinstance(model, Fmu) or not model.file.is_relative_to(cache_folder()):
            return model
        made = copy.copy(model)
        object.__setattr__(made, "path", f"{self.folder.name}/{self._copy_file(model.file)}")
        object.__setattr__(made, "folder", str(self.folder.parent))
        return made

    def _copy_file(self, file: Path) -> str:
        if file not in self.names:
            used = {Path(name).stem for name in self.names.values()}
            name = self.names[file] = f"{free_name(file.stem, used)}{file.suffix}"
            try:
                self.folder.mkdir(exist_ok=True)
                if file.is_dir():
                    shutil.copytree(file, self.folder / name, dirs_exist_ok=True)
                else:
                    shutil.copyfile(file, self.folder / name)
            except OSError as error:
                raise write_error(self.folder, error) from error
        return self.names[file]
