"""The binary of an FMU, compiled from the sources it brings; only where somebody has asked for it.

In:  an unpacked FMU with sources, and a C compiler
Out: a shared library for this platform, kept in the cache by the hash of what it is made of
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from xml.etree.ElementTree import Element

from hocket.errors import FileError
from hocket.simulators.fmu.archive import cache_folder
from hocket.simulators.fmu.binaries import LIBRARY_ENDING, exported_names
from hocket.simulators.fmu.description_xml import parse_xml
from hocket.simulators.fmu.variables import Description, FmuInterface

_TIME = 600.0
"""Seconds that a compiler may take for one file."""
_C, _CPP = (".c",), (".cc", ".cpp", ".cxx", ".c++")
_MESSAGE = 30
"""Lines of what a compiler said that are shown."""
_PLAIN = ("fmiGetVersion", "fmi2GetVersion", "fmi3GetVersion")


@dataclass(frozen=True)
class SourceSet:
    """Files that are compiled with the same options."""

    files: tuple[str, ...]
    definitions: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def build_binary(folder: Path, description: Description, interface: FmuInterface, where: str) -> Path:
    """Return the library made of the FMU's sources, compiled once; the compiler's words are in the error."""
    sources = folder / "sources"
    if not sources.is_dir():
        raise FileError("it brings no sources to build it from", where, "a folder `sources`")
    sets, libraries = _read_build(folder, description, interface, where)
    command = _compilers(sets, where)
    digest = hashlib.sha256(repr((sets, libraries, command, description.version)).encode())
    for file in sorted(path for path in sources.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(sources)).encode() + b"\0" + file.read_bytes())
    place = cache_folder("builds") / digest.hexdigest() / (interface.identifier + LIBRARY_ENDING)
    if place.is_file():
        return place
    with tempfile.TemporaryDirectory(dir=place.parent.parent, prefix=".new-") as scratch:
        result = _compile(sources, sets, libraries, command, Path(scratch), description, where)
        _check_names(result, description, interface, where)
        place.parent.mkdir(exist_ok=True)
        os.replace(result, place)
    return place


def _compile(
    sources: Path,
    sets: tuple[SourceSet, ...],
    libraries: tuple[str, ...],
    command: dict[str, str],
    scratch: Path,
    description: Description,
    where: str,
) -> Path:
    objects: list[str] = []
    # a library has the plain names: the prefix is for those who link several FMUs into one program
    plain = [f"-DFMI{description.major}_OVERRIDE_FUNCTION_PREFIX", "-DDISABLE_PREFIX"]
    headers = importlib.util.find_spec("fmpy")
    own = Path(headers.origin).parent / "c-code" if headers is not None and headers.origin else None
    for each in sets:
        folders = [
            sources,
            *(_inside(sources, name, where) for name in each.include),
            *([own] if own else []),
        ]
        options = [*plain, *(f"-D{name}" for name in each.definitions), *each.options]
        options += [word for place in folders for word in ("-I", str(place))]
        for name in each.files:
            file = _inside(sources, name, where)
            if not file.is_file():
                raise FileError(f"its source file `{name}` is not there", where, "all files that it lists")
            target = str(scratch / f"{len(objects)}.o")
            compiler = command["c++" if file.suffix.lower() in _CPP else "c"]
            _run([compiler, "-c", "-fPIC", "-O2", *options, str(file), "-o", target], sources, name, where)
            objects.append(target)
    result = scratch / "library"
    # its own functions, not those of the same names (`step` is one) that the C library has
    own_names = ["-Wl,-Bsymbolic"] if sys.platform == "linux" else []
    linked = [*own_names, *(f"-l{library}" for library in libraries)]
    compiler = command.get("c++", command.get("c", ""))
    _run([compiler, "-shared", *objects, *linked, "-lm", "-o", str(result)], sources, "linking", where)
    return result


def _run(command: list[str], folder: Path, what: str, where: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=_TIME, check=False
        )
    except subprocess.TimeoutExpired:
        raise FileError(f"its sources were not compiled in {_TIME:.0f} s ({what})", where) from None
    except OSError as error:
        raise FileError(f"the compiler `{command[0]}` does not start: {error.strerror}", where) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        said = "\n".join(lines[:_MESSAGE]) or f"exit code {done.returncode}"
        raise FileError(f"its sources do not compile ({what}): {said}", where, "sources that compile")


def _compilers(sets: tuple[SourceSet, ...], where: str) -> dict[str, str]:
    """Return the compiler for each language that is used; $CC and $CXX come first."""
    endings = {Path(name).suffix.lower() for each in sets for name in each.files}
    languages = {"c": ("CC", ("cc", "gcc", "clang")), "c++": ("CXX", ("c++", "g++", "clang++"))}
    found: dict[str, str] = {}
    for language, (variable, names) in languages.items():
        if language == "c++" and not endings.intersection(_CPP):
            continue
        chosen = os.environ.get(variable)
        places = (shutil.which(name) for name in ([chosen] if chosen else names))
        place = next((place for place in places if place is not None), None)
        if place is None:
            what = f"its sources cannot be compiled: there is no {language.upper()} compiler"
            raise FileError(
                what, where, f"`{names[0]}`, or ${variable}", "on Debian: apt install build-essential"
            )
        found[language] = place
    return found


def _inside(sources: Path, name: str, where: str) -> Path:
    """Return a path within the sources; raises FileError for one that leads out of them."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts:
        raise FileError(
            f"its sources name `{name}`, which leads out of their folder", where, "relative paths"
        )
    return sources / parts


def _read_build(
    folder: Path, description: Description, interface: FmuInterface, where: str
) -> tuple[tuple[SourceSet, ...], tuple[str, ...]]:
    """Return what is to be compiled, and the libraries to link."""
    if description.major == 3:
        return _read_build_description(folder / "sources" / "buildDescription.xml", interface, where)
    files: tuple[str, ...] = ()
    if description.major == 2:
        root = parse_xml(folder / "modelDescription.xml", where)
        kind = "ModelExchange" if interface is description.me else "CoSimulation"
        files = tuple(element.get("name", "") for element in root.findall(f"{kind}/SourceFiles/File"))
    if not files:
        there = sorted(
            path.name for path in (folder / "sources").iterdir() if path.suffix.lower() in _C + _CPP
        )
        files = ("all.c",) if "all.c" in there else tuple(there)
    if not files:
        raise FileError("it lists no source files", where, "`SourceFiles` in its model description")
    return (SourceSet(tuple(dict.fromkeys(files))),), ()


def _read_build_description(
    file: Path, interface: FmuInterface, where: str
) -> tuple[tuple[SourceSet, ...], tuple[str, ...]]:
    if not file.is_file():
        raise FileError("its sources have no `buildDescription.xml`, which FMI 3 demands", where)
    root = parse_xml(file, where)
    mine = [
        element
        for element in root.findall("BuildConfiguration")
        if element.get("modelIdentifier") == interface.identifier and _fits(element.get("platform"))
    ]
    if not mine:
        what = f"`buildDescription.xml` has no configuration for `{interface.identifier}` on this platform"
        raise FileError(what, where, "a `BuildConfiguration`")
    chosen = mine[0]
    sets = tuple(_read_set(element) for element in chosen.findall("SourceFileSet"))
    outside = [e for e in chosen.findall("Library") if e.get("external") in ("true", "1")]
    return sets, tuple(element.get("name", "").removeprefix("lib") for element in outside)


def _fits(platform: str | None) -> bool:
    return platform is None or (sys.platform in platform) or platform.endswith(f"-{sys.platform}")


def _read_set(element: Element) -> SourceSet:
    def definition(found: Element) -> str:
        value = found.get("value")
        return found.get("name", "") + ("" if value is None else f"={value}")

    def names(tag: str) -> Iterator[str]:
        return (found.get("name", "") for found in element.findall(tag))

    foreign = element.get("compiler") not in (None, "", "gcc", "clang", "cc", "g++")
    return SourceSet(
        tuple(names("SourceFile")),
        # the others are only offered
        tuple(
            definition(found)
            for found in element.findall("PreprocessorDefinition")
            if found.get("optional") not in ("true", "1")
        ),
        tuple(names("IncludeDirectory")),
        () if foreign else tuple(shlex.split(element.get("compilerOptions", ""))),
    )


def _check_names(library: Path, description: Description, interface: FmuInterface, where: str) -> None:
    name = _PLAIN[description.major - 1]
    prefix = f"{interface.identifier}_"
    wanted = prefix + name if description.major == 1 else name
    found = exported_names(library, (name, prefix + name))
    if wanted not in found:
        there = f"it exports `{found.pop()}` instead" if found else "its sources may be those of a part only"
        raise FileError(f"its sources make a library without `{wanted}`", where, f"`{wanted}`", there)
