"""Classes and functions named by text: "package.module:Name" or "path/to/file.py:Name".

In:  a name
Out: the thing itself, or a ScenarioError that says where to look
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from hocket.errors import HocketError, ScenarioError, suggest_nearest

_files: dict[Path, tuple[int, ModuleType]] = {}


def qualified_name(thing: Any) -> str:
    """Return the text that `load` reads back: "module:Name"; a text is returned as it is."""
    if isinstance(thing, str):
        return thing
    name = getattr(thing, "__qualname__", None)
    return f"{thing.__module__}:{name}" if name else repr(thing)


def load(written: str, folder: str = "") -> Any:
    """Return what "package.module:Name" or "path/to/file.py:Name" names.

    Paths start in `folder`, else in the working directory; modules are looked for there last.
    """
    place, _, name = written.rpartition(":")
    if not place or not name:
        expected = '"package.module:Name" or "path/to/file.py:Name"'
        raise ScenarioError(f"`{written}` does not say what to load and from where", expected=expected)
    found: Any = (
        _from_file(Path(folder) / place, written)
        if place.endswith(".py")
        else _from_name(place, folder, written)
    )
    for part in name.split("."):
        if not hasattr(found, part):
            known = [name for name in dir(found) if not name.startswith("_")]
            raise ScenarioError(f"`{place}` has no `{part}`", written, "", suggest_nearest(part, known))
        found = getattr(found, part)
    return found


def _from_file(path: Path, written: str) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        beside = sorted(file.name for file in path.parent.glob("*.py")) if path.parent.is_dir() else []
        raise ScenarioError(
            f"there is no file `{path}`", written, "a Python file", suggest_nearest(path.name, beside)
        )
    changed = path.stat().st_mtime_ns
    if path in _files and _files[path][0] == changed:
        return _files[path][1]
    # one name per path: files of the same name in two folders must not meet
    name = f"{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _importable_folder(path.parent), _report_load_errors(str(path)):
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    _files[path] = changed, module
    return module


def _from_name(name: str, folder: str, written: str) -> ModuleType:
    with _importable_folder(Path(folder).resolve()), _report_load_errors(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            hint = "give a file: `path/to/file.py:Name`, or install the package"
            raise ScenarioError(f"there is no module `{error.name}`", written, "", hint) from None


@contextmanager
def _importable_folder(folder: Path) -> Iterator[None]:
    """Let imports find the modules of a folder, after all others."""
    importlib.invalidate_caches()
    added = str(folder) not in sys.path
    if added:
        sys.path.append(str(folder))
    try:
        yield
    finally:
        if added and str(folder) in sys.path:
            sys.path.remove(str(folder))


@contextmanager
def _report_load_errors(place: str) -> Iterator[None]:
    try:
        yield
    except HocketError:
        raise
    except Exception as error:
        raise ScenarioError(
            f"`{place}` cannot be loaded: {type(error).__name__}: {error}", place_of(error)
        ) from error


def place_of(error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}, line {frame.lineno}"
