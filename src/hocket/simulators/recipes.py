"""What recipes share: equality whatever they hold, declared feedthrough, durations above zero.

In:  fields and ports as users write them
Out: the same, checked
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from hocket.errors import Fault, HocketError, Place, ScenarioError, raise_faults, suggest_nearest
from hocket.model.arguments import as_texts, expect
from hocket.model.clock import Duration, seconds
from hocket.model.code_loading import permit_code
from hocket.model.ports import Port

_files: dict[Path, tuple[int, ModuleType]] = {}


def qualified_name(thing: Any) -> str:
    """Return the text that `load` reads back: "module:Name"; a text is returned as it is."""
    if isinstance(thing, str):
        return thing
    name, module = getattr(thing, "__qualname__", None), getattr(thing, "__module__", None)
    return f"{module}:{name}" if name and module else repr(thing)


def load(written: str, folder: str = "") -> Any:
    """Return what "package.module:Name" or "path/to/file.py:Name" names.

    Paths start in `folder`, else in the working directory; modules are looked for there last.
    """
    place, name = locate(written, folder)
    found = _from_name(place, folder, written) if isinstance(place, str) else _from_file(place, written)
    for part in name.split("."):
        if not hasattr(found, part):
            known = [name for name in dir(found) if not name.startswith("_")]
            at = written.rpartition(":")[0]
            raise ScenarioError(f"`{at}` has no `{part}`", written, "", suggest_nearest(part, known))
        found = getattr(found, part)
    return found


def locate(written: str, folder: str = "") -> tuple[Path | str, str]:
    """Return the file, or the name of the module, and the name in it that a text means; nothing is loaded."""
    place, _, name = written.rpartition(":")
    if not place or not name:
        expected = '"package.module:Name" or "path/to/file.py:Name"'
        raise ScenarioError(f"`{written}` does not say what to load and from where", expected=expected)
    if not place.endswith(".py"):
        return place, name
    path = (Path(folder) / place).resolve()
    if not path.is_file():
        beside = sorted(file.name for file in path.parent.glob("*.py")) if path.parent.is_dir() else []
        hint = suggest_nearest(path.name, beside)
        raise ScenarioError(f"there is no file `{path}`", written, "a Python file", hint)
    return path, name


def _from_file(path: Path, written: str) -> ModuleType:
    changed = path.stat().st_mtime_ns
    known = path in _files and _files[path][0] == changed
    permit_code(written, str(path), announced=not known)
    if known:
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
    permit_code(written, f"the module `{name}`", announced=name not in sys.modules)
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
        what = f"`{place}` cannot be loaded: {type(error).__name__}: {error}"
        raise ScenarioError(what, place_of(error)) from error


def place_of(error: Exception) -> Place:
    """Return the line of code that raised an error."""
    if isinstance(error, SyntaxError) and error.filename:
        return Place(file=error.filename, line=error.lineno)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return Place(file=frame.filename, line=frame.lineno)


Feedthrough: TypeAlias = Mapping[str, str | Iterable[str]]


class Recipe:
    """Equality and hash for frozen dataclasses whose fields may hold lists and arrays."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = self.__dataclass_fields__  # type: ignore[attr-defined]
        return all(_values_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        names = self.__dataclass_fields__  # type: ignore[attr-defined]
        return hash(tuple(_hash_key(getattr(self, name)) for name in names))


def _values_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)
    if isinstance(one, (tuple, list)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_values_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_values_equal(one[name], other[name]) for name in one)
    return bool(one == other)


def _hash_key(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_hash_key, value))
    try:
        return hash(value)
    except TypeError:
        return None


def with_feedthrough(
    outputs: tuple[Port, ...], inputs: tuple[Port, ...], feedthrough: Feedthrough | None, where: str
) -> tuple[Port, ...]:
    """Return the outputs with the inputs that have direct feedthrough to them.

    Without a declaration an output keeps what its port says, and if that says nothing every input has direct
    feedthrough to it: too many is slower, too few is wrong.
    """
    knowns = tuple(port.name for port in inputs), tuple(port.name for port in outputs)
    faults = [
        Fault(f"two {role}s are named `{name}`", where, "names that differ")
        for role, names in zip(("input", "output"), knowns, strict=True)
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    expected = 'names of inputs by output, such as {"y": ["u"]}'
    fits = feedthrough is None or isinstance(feedthrough, Mapping)
    expect(fits, "feedthrough", feedthrough, expected, where=where)
    given = {} if feedthrough is None else feedthrough
    declared = {y: as_texts(u, "feedthrough", expected) for y, u in given.items()}
    for y in declared:
        if y not in knowns[1]:
            what = f"feedthrough names `{y}`, which is not an output"
            faults.append(Fault(what, where, "", suggest_nearest(y, knowns[1])))
    for y, reacts in declared.items() if declared else ((port.name, port.feedthrough) for port in outputs):
        for u in reacts:
            if u not in knowns[0]:
                what = f"feedthrough of `{y}` names `{u}`, which is not an input"
                faults.append(Fault(what, where, "", suggest_nearest(u, knowns[0])))
    raise_faults(faults)
    if feedthrough is None:
        return tuple(replace(port, feedthrough=port.feedthrough or knowns[0]) for port in outputs)
    return tuple(replace(port, feedthrough=declared.get(port.name, ())) for port in outputs)


def parse_seconds(duration: Duration, name: str) -> Fraction:
    """Return a duration or a time in seconds; `name` is that of the argument."""
    try:
        return seconds(duration)
    except ValueError as error:
        raise ScenarioError(str(error), name) from None


def positive_duration(duration: Duration, name: str) -> Fraction:
    length = parse_seconds(duration, name)
    if length <= 0:
        raise ScenarioError(f"`{name}` is {duration}", name, "a duration above zero")
    return length
