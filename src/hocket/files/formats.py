"""Files by their endings: a scenario as TOML or SSP, or an FMU by itself.

In:  the path of a .toml, .ssp, .ssd or .fmu
Out: an Experiment; and from an Experiment or a Composite a .toml or .ssp
"""

from __future__ import annotations

from pathlib import Path

from hocket.errors import FileError, suggest_nearest
from hocket.model.arguments import as_path, expect
from hocket.model.composite import Composite
from hocket.model.experiment import Experiment
from hocket.model.registry import load_place

_READERS = {
    ".toml": "hocket.files.toml:read",
    ".ssp": "hocket.files.ssp:read_ssp",
    ".ssd": "hocket.files.ssp:read_ssp",
    ".fmu": "hocket.files.fmus:read_fmu",
}
_WRITERS = {".toml": "hocket.files.toml:write", ".ssp": "hocket.files.ssp:write_ssp"}
_WHOLE = {"SystemStructure.ssd": ".ssp", "modelDescription.xml": ".fmu"}
"""What an unpacked archive is known by."""
ENDINGS = tuple(_READERS)


def read(path: Path | str) -> Experiment:
    """Return what a file holds: a scenario (.toml, .ssp, .ssd), or one FMU under its default experiment.

    Archives may be folders. Raises FileError with every fault.
    """
    file = as_path(path)
    kind = _file_kind(file)
    if kind != ".toml" and not file.exists():
        beside = file.absolute().parent
        names = sorted(f.name for f in beside.iterdir() if f.suffix in ENDINGS) if beside.is_dir() else []
        hint = suggest_nearest(file.name, names)
        raise FileError(f"there is no file `{path}`", str(path), "", hint)
    if kind not in _READERS:
        from hocket.files.run_facts import FACTS

        what = f"`{file.name}` is neither a scenario nor an FMU: its name does not say so"
        if file.is_dir():
            what = f"`{file.name}` is a folder, and holds no {' or '.join(_WHOLE)}"
        hint = f"it holds a run: `hocket report {path}`" if (file / FACTS).is_file() else ""
        raise FileError(what, str(path), _list_endings(ENDINGS), hint)
    experiment: Experiment = load_place(_READERS[kind])(file)
    return experiment


def write(what: Composite | Experiment, path: Path | str) -> None:
    """Write a scenario as .toml or .ssp, so that `read` gives the same again; an SSP holds FMUs only."""
    fits = isinstance(what, (Composite, Experiment))
    expect(fits, "what", what, "a Composite or an Experiment")
    file = as_path(path)
    kind = file.suffix.lower()
    if kind not in _WRITERS:
        fault = f"`{file.name}` is not a name for a scenario"
        raise FileError(fault, str(path), _list_endings(tuple(_WRITERS)))
    load_place(_WRITERS[kind])(what, file)


def _file_kind(file: Path) -> str:
    if file.is_dir():
        return next((kind for name, kind in _WHOLE.items() if (file / name).is_file()), "")
    return file.suffix.lower()


def _list_endings(endings: tuple[str, ...]) -> str:
    return f"a name that ends in {', '.join(endings[:-1])} or {endings[-1]}"
