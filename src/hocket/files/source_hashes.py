"""The files that the models of a scenario come from, with what tells whether they are still the same.

In:  a composite
Out: for each FMU, table and class in a file: the model, the path, the SHA-256
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from hocket.errors import HocketError
from hocket.model.composite import Composite
from hocket.planning.parameters import leaves
from hocket.simulators.recipes import locate
from hocket.simulators.wrappers.emulation import innermost_model


def hash_sources(composite: Composite) -> list[dict[str, str]]:
    """Return the files of all models, each once for each model; what cannot be read is left to the run."""
    found = []
    for path, model in leaves(composite):
        for file in _files_of(innermost_model(model)):
            with suppress(OSError):
                found.append({"model": path, "path": str(file), "sha256": _hash(file)})
    return found


CODE = ("cls", "f", "g", "factory", "atomic")
"""Arguments of models that name code: `plant.py:Controller`."""


def _files_of(model: Any) -> list[Path]:
    """Return the file of an FMU or a table, or the Python file that a model names."""
    recipe = {name: getattr(model, name, None) for name in ("file", "folder", *CODE)}
    if isinstance(recipe["file"], Path):
        return [recipe["file"]]
    named = [recipe[name] for name in CODE]
    found: list[Path] = []
    for text in named:
        if isinstance(text, str):
            with suppress(HocketError):
                place = locate(text, str(recipe["folder"] or ""))[0]
                found += [place] if isinstance(place, Path) else []
    return list(dict.fromkeys(found))


def _hash(file: Path) -> str:
    """Return the hash of a file; of an unpacked archive that of its files with their names, in order."""
    if not file.is_dir():
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    whole = hashlib.sha256()
    for each in sorted(path for path in file.rglob("*") if path.is_file()):
        whole.update(f"{each.relative_to(file).as_posix()}\0{_hash(each)}\n".encode())
    return whole.hexdigest()
