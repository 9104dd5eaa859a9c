"""Builds the test FMUs: one C source for each model, one frame for each version of FMI.

`python tests/fmus/build.py OUT [names...]` builds all, or those named, into OUT/fmi1, OUT/fmi2 and OUT/fmi3.
"""

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

HERE = Path(__file__).resolve().parent
if str(HERE.parent) not in sys.path:  # as when run as a script
    sys.path.append(str(HERE.parent))

from fmus.description import describe  # noqa: E402
from fmus.table import Model, header, read, sources, versions  # noqa: E402

NAMES = tuple(sources())
FLAGS = ("-std=gnu2x", "-O2", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
PLATFORM = {1: "linux64", 2: "linux64", 3: "x86_64-linux"}


def build(
    name: str,
    version: int = 2,
    *,
    folder: Path,
    interfaces: Iterable[str] | None = None,
    trace: bool = False,
    **overrides: Any,
) -> Path:
    """Builds `folder/name.fmu`, with all the interfaces ("cs", "me") that the model knows unless told which.

    Overrides make variants and malformed FMUs: `platform` (the folder below binaries), `binary` (bytes, or
    None for none at all), `file` (the name of the FMU), `defines` (more macros), `lacks` (patterns of
    functions not to export), `variables` (options for new or known ones), `resources` (contents by name),
    `terminals` (the text of `terminalsAndIcons.xml`), `xml` (a text, or a function of the text). Any other
    names an attribute of the model description (of its root, of DefaultExperiment, or else of the
    interfaces), which None removes.
    """
    model = read(name, version, overrides.pop("variables", {}))
    defines = (*model.options.get("defines", ()), *overrides.pop("defines", ()), *(["TRACE"] * trace))
    lacks = (*model.options.get("lacks", ()), *overrides.pop("lacks", ()))
    platform = overrides.pop("platform", PLATFORM[version])
    binary = overrides.pop("binary", ...)
    file = overrides.pop("file", f"{name}.fmu")
    resources = overrides.pop("resources", {"about.txt": f"{name}: {model.options['description']}\n"})
    terminals = overrides.pop("terminals", None)
    xml = overrides.pop("xml", None)
    chosen = tuple(interfaces or model.options.get("interfaces", ("cs",)))
    if version == 1:  # an archive is for one of them
        chosen = chosen[:1]
        defines += ("MODEL_EXCHANGE",) * (chosen == ("me",))
    text = xml if isinstance(xml, str) else describe(model, chosen, overrides)
    if callable(xml):
        text = xml(text)
    if binary is ...:
        binary = _compile(model, defines, lacks)
    path = Path(folder) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", text)
        if binary is not None:
            archive.writestr(f"binaries/{platform}/{name}.{'dll' if 'win' in platform else 'so'}", binary)
        if terminals is not None:
            archive.writestr("terminalsAndIcons/terminalsAndIcons.xml", terminals)
        for entry, content in resources.items():
            archive.writestr(f"resources/{entry}", content)
    return path


def build_all(folder: Path, names: Iterable[str] = NAMES) -> list[Path]:
    """Builds models in every version they know, into the folders fmi1, fmi2 and fmi3."""
    jobs = [(name, version) for name in names for version in versions(name)]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda job: build(*job, folder=Path(folder) / f"fmi{job[1]}"), jobs))


def _compile(model: Model, defines: tuple[str, ...], lacks: tuple[str, ...]) -> bytes:
    return _binary(model.name, model.version, model.source, header(model), defines, lacks)


@cache
def _binary(
    name: str, version: int, source: Path, table: str, defines: tuple[str, ...], lacks: tuple[str, ...]
) -> bytes:
    """The library of an FMU, compiled once however many tests ask for it."""
    with tempfile.TemporaryDirectory() as folder:
        frame, result = (Path(folder) / file for file in ("frame.o", "model.so"))
        (Path(folder) / "table.h").write_text(table)
        with _frame_lock:
            frame.write_bytes(_frame(version, defines))
        if version == 1 or lacks:
            _rename(frame, f"{name}_" if version == 1 else "", lacks)
        flags = (*FLAGS, f"-DFMI={version}", "-I", HERE, "-I", folder, "-shared")
        _run("gcc", *flags, source, frame, "-lm", "-o", result)
        return result.read_bytes()


def _rename(frame: Path, prefix: str, lacks: tuple[str, ...]) -> None:
    """Puts the prefix of FMI 1 before the functions, and hides those that are to be lacking."""
    symbols = _run("nm", "--defined-only", "--extern-only", "--format=just-symbols", frame).split()
    changes = []
    for symbol in (s for s in symbols if s.startswith("fmi")):
        if any(fnmatch(symbol, pattern) for pattern in lacks):
            changes.append(f"--localize-symbol={symbol}")
        elif prefix:
            changes.append(f"--redefine-sym={symbol}={prefix}{symbol}")
    _run("objcopy", *changes, frame)


_frame_lock = Lock()


@cache
def _frame(version: int, defines: tuple[str, ...]) -> bytes:
    """The object code of a frame, which all models share."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "frame.o"
        macros = (f"-DFMI={version}", *(f"-D{d}" for d in defines))
        _run("gcc", *FLAGS, *macros, "-I", HERE, "-c", HERE / f"frame{version}.c", "-o", target)
        return target.read_bytes()


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    build_all(Path(sys.argv[1]), sys.argv[2:] or NAMES)
