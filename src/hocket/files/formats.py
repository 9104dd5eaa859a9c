"""Files by their endings: a scenario as TOML or SSP, or an FMU by itself.

In:  the path of a .toml, .ssp, .ssd or .fmu
Out: an Experiment; and from an Experiment or a Composite a .toml or .ssp
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hocket.errors import FileError, suggest_nearest

if TYPE_CHECKING:
    from hocket.model.composite import Composite
    from hocket.model.experiment import Experiment

ENDINGS = (".toml", ".ssp", ".ssd", ".fmu")
_WHOLE = {"SystemStructure.ssd": ".ssp", "modelDescription.xml": ".fmu"}
"""What an unpacked archive is known by."""


def read(path: Path | str) -> Experiment:
    """Return what a file holds: a scenario (.toml, .ssp, .ssd), or one FMU under its default experiment.

    Archives may be folders. Raises FileError with every fault.
    """
    file = Path(path)
    kind = _file_kind(file)
    if kind == ".toml":
        from hocket.files.toml import read as read_toml

        return read_toml(file)
    if not file.exists():
        raise _missing_file(path)
    if kind == ".fmu":
        from hocket.files.fmus import read_fmu

        return read_fmu(file)
    if kind in (".ssp", ".ssd"):
        from hocket.files.ssp import read_ssp

        return read_ssp(file)
    from hocket.files.run_folder import FACTS

    hint = f"it holds a run: `hocket report {path}`" if (file / FACTS).is_file() else ""
    raise FileError(_describe_unknown_file(file), str(path), _list_endings(ENDINGS), hint)


def write(what: Composite | Experiment, path: Path | str) -> None:
    """Write a scenario as .toml or .ssp, so that `read` gives the same again; an SSP holds FMUs only."""
    file = Path(path)
    kind = file.suffix.lower()
    if kind == ".toml":
        from hocket.files.toml import write as write_toml

        write_toml(what, file)
    elif kind == ".ssp":
        from hocket.files.ssp.package_writer import write_ssp

        write_ssp(what, file)
    else:
        raise FileError(
            f"`{file.name}` is no name for a scenario", str(path), _list_endings((".toml", ".ssp"))
        )


def _file_kind(file: Path) -> str:
    if file.is_dir():
        return next((kind for name, kind in _WHOLE.items() if (file / name).is_file()), "")
    return file.suffix.lower()


def _missing_file(path: Path | str) -> FileError:
    file = Path(path)
    beside = file.absolute().parent
    names = sorted(f.name for f in beside.iterdir() if f.suffix in ENDINGS) if beside.is_dir() else []
    return FileError(f"there is no file `{path}`", str(path), "", suggest_nearest(file.name, names))


def _describe_unknown_file(file: Path) -> str:
    if file.is_dir():
        return f"`{file.name}` is a folder, and holds no {' or '.join(_WHOLE)}"
    return f"`{file.name}` is no scenario and no FMU: its name does not say so"


def _list_endings(endings: tuple[str, ...]) -> str:
    return f"a name that ends in {', '.join(endings[:-1])} or {endings[-1]}"
