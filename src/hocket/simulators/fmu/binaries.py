"""The shared library of an FMU for this platform, and what it exports, without loading it.

In:  an unpacked FMU
Out: a path; names of functions
"""

from __future__ import annotations

import mmap
import platform
import struct
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

from hocket.errors import FileError
from hocket.simulators.fmu.libraries import is_lfs_pointer
from hocket.simulators.fmu.variables import SIZED, Description, FmuInterface

_SYSTEMS = {"Linux": ("linux", ".so"), "Windows": ("windows", ".dll"), "Darwin": ("darwin", ".dylib")}
_SHORT = {"linux": "linux", "windows": "win", "darwin": "darwin"}
_DYNSYM = 11
_MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}


@cache
def platforms(major: int) -> tuple[str, ...]:
    """Return the folder names for this computer, the one the standard wants first.

    FMI 1 and 2 count bits (linux64), FMI 3 names the processor (x86_64-linux); tools mix them up.
    """
    system, _ = _system()
    bits = 8 * struct.calcsize("P")
    machine = _MACHINES.get(platform.machine().lower(), platform.machine().lower())
    if bits == 32 and machine in ("x86_64", "i386", "i586", "i686"):
        machine = "x86"
    new = f"{machine}-{system}"
    old = f"{_SHORT[system]}{bits}"
    if machine.startswith("x86"):
        return (new, old) if major == 3 else (old, new)
    # FMI 1 and 2 have no word for other processors; on a Mac one file may hold several
    return (new, old) if system == "darwin" else (new,)


def _system() -> tuple[str, str]:
    return _SYSTEMS.get(platform.system(), ("linux", ".so"))


LIBRARY_ENDING = _system()[1]
"""Of shared libraries on this computer."""


def find_binary(folder: Path, description: Description, interface: FmuInterface, where: str = "") -> Path:
    """Return the shared library for this platform; raises FileError that says what is there instead."""
    wanted = platforms(description.major)
    name = interface.identifier + _system()[1]
    for platform_name in wanted:
        place = folder / "binaries" / platform_name / name
        if place.is_file():
            return place
    looked = f"binaries/{wanted[0]}/{name}"
    beside = folder / "binaries" / wanted[0]
    there = ", ".join(f"`{name}`" for name in description.platforms)
    if beside.is_dir():
        files = ", ".join(sorted(f"`{file.name}`" for file in beside.iterdir())) or "nothing"
        hint = f"that folder holds {files}: the file must be named after the modelIdentifier"
    elif (folder / "sources").is_dir():
        hint = "it brings its source code: `--build`, or Fmu(..., build=True), compiles it"
    elif description.platforms and all(
        name.startswith(("win", "x86_64-win")) for name in description.platforms
    ):
        hint = f"it is for Windows only ({there}): run it there, or ask its author for `{wanted[0]}`"
        if _system()[0] == "linux" and "win64" in description.platforms:
            bridge = "fmpy.util.add_remoting(file, 'linux64', 'win64')"
            hint += f"; with Wine a copy of it runs here that `{bridge}` of FMPy has changed"
    elif description.platforms:
        hint = f"there are binaries for {there}: ask its author for `{wanted[0]}`"
    else:
        hint = "ask its author for an export with binaries"
    raise FileError("the FMU has no binary for this platform", where or str(folder), f"`{looked}`", hint)


def exported_names(binary: Path, names: Iterable[str]) -> set[str]:
    """Return those of the names that a binary exports, without loading it."""
    status = binary.stat()
    return set(_scan_exports(str(binary), status.st_mtime_ns, status.st_size, tuple(names)))


def exported_functions(
    binary: Path, description: Description, interface: FmuInterface, names: Iterable[str]
) -> set[str]:
    """Return those of the functions of FMI that a binary exports; in FMI 1 it has the model before each.

    A Git-LFS pointer in its place says nothing of that: the description is believed.
    """
    if is_lfs_pointer(binary):
        return set(names)
    prefix = f"{interface.identifier}_" if description.major == 1 else ""
    found = exported_names(binary, [prefix + name for name in names])
    return {name.removeprefix(prefix) for name in found}


@lru_cache(maxsize=256)
def _scan_exports(path: str, _changed: int, size: int, names: tuple[str, ...]) -> frozenset[str]:
    if not size:
        return frozenset()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = _dynamic_symbols(content)
        if found is not None:
            return frozenset(names) & found
        # not an ELF file, or one without sections: its table of exports ends each name with a NUL
        return frozenset(name for name in names if content.find(name.encode() + b"\0") >= 0)


def _dynamic_symbols(content: mmap.mmap) -> set[str] | None:
    """Return the names in the dynamic symbol table of a 64-bit ELF file that are defined in it."""
    if content[:6] != b"\x7fELF\x02\x01" or len(content) < 64:
        return None
    offset, size, count = struct.unpack_from("<Q10xHH", content, 40)
    if not offset or size < 64 or offset + size * count > len(content):
        return None
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, offset + size * k) for k in range(count)]
    for _, kind, _, _, at, length, link, _, _, entry in sections:
        if kind == _DYNSYM and entry and link < count:
            texts, texts_length = sections[link][4:6]
            names = set()
            for place in range(at, min(at + length, len(content) - 23), entry):
                name, _, _, section = struct.unpack_from("<IBBH", content, place)
                if section and name < texts_length:
                    end = content.find(b"\0", texts + name)
                    names.add(content[texts + name : end].decode(errors="replace"))
            return names
    return None


STATE: dict[int, tuple[str, ...]] = {
    1: (),
    2: ("fmi2GetFMUstate", "fmi2SetFMUstate", "fmi2FreeFMUstate"),
    3: ("fmi3GetFMUState", "fmi3SetFMUState", "fmi3FreeFMUState"),
}
INPUT_SLOPES: dict[int, tuple[str, ...]] = {
    1: ("fmiSetRealInputDerivatives",),
    2: ("fmi2SetRealInputDerivatives",),
    3: (),
}
OUTPUT_SLOPES = {
    1: "fmiGetRealOutputDerivatives",
    2: "fmi2GetRealOutputDerivatives",
    3: "fmi3GetOutputDerivatives",
}
DIRECTIONAL = {2: "fmi2GetDirectionalDerivative", 3: "fmi3GetDirectionalDerivative"}

_OLD_TYPES = ("Real", "Integer", "Boolean", "String")
_TYPES = {1: _OLD_TYPES, 2: _OLD_TYPES, 3: (*SIZED, "Boolean", "String", "Binary", "Clock")}
_INITIAL = "FreeInstance Terminate Reset EnterInitializationMode ExitInitializationMode"
_STATUS = "GetStatus GetRealStatus GetIntegerStatus GetBooleanStatus GetStringStatus"
_SLOPES = "SetRealInputDerivatives GetRealOutputDerivatives"
_SOLVING = (
    "SetTime SetContinuousStates GetContinuousStates GetEventIndicators GetNominalsOfContinuousStates "
    "EnterContinuousTimeMode CompletedIntegratorStep"
)
_ALWAYS = {
    1: "GetVersion SetDebugLogging",
    2: f"GetVersion SetDebugLogging GetTypesPlatform Instantiate SetupExperiment {_INITIAL} "
    "GetFMUstate SetFMUstate FreeFMUstate SerializedFMUstateSize SerializeFMUstate DeSerializeFMUstate "
    "GetDirectionalDerivative",
    3: f"GetVersion SetDebugLogging {_INITIAL} EnterEventMode EvaluateDiscreteStates UpdateDiscreteStates "
    "GetFMUState SetFMUState FreeFMUState SerializedFMUStateSize SerializeFMUState DeserializeFMUState "
    "GetDirectionalDerivative GetAdjointDerivative EnterConfigurationMode ExitConfigurationMode "
    "GetNumberOfVariableDependencies GetVariableDependencies GetIntervalDecimal GetIntervalFraction "
    "SetIntervalDecimal SetIntervalFraction GetShiftDecimal GetShiftFraction SetShiftDecimal "
    "SetShiftFraction",
}
_STEPPING = {
    1: "GetTypesPlatform InstantiateSlave InitializeSlave TerminateSlave ResetSlave FreeSlaveInstance DoStep "
    f"CancelStep {_SLOPES} {_STATUS}",
    2: f"DoStep CancelStep {_SLOPES} {_STATUS}",
    3: "InstantiateCoSimulation EnterStepMode DoStep GetOutputDerivatives",
}
_EXCHANGE = {
    1: "GetModelTypesPlatform InstantiateModel FreeModelInstance SetTime SetContinuousStates "
    "CompletedIntegratorStep Initialize GetDerivatives GetEventIndicators EventUpdate GetContinuousStates "
    "GetNominalContinuousStates GetStateValueReferences Terminate",
    2: f"EnterEventMode NewDiscreteStates GetDerivatives {_SOLVING}",
    3: f"InstantiateModelExchange GetContinuousStateDerivatives GetNumberOfEventIndicators "
    f"GetNumberOfContinuousStates {_SOLVING}",
}


def required_functions(major: int, exchange: bool) -> list[str]:
    """Return the functions that FMI wants in a binary."""
    access = [f"{verb}{kind}" for verb in ("Get", "Set") for kind in _TYPES[major]]
    own = (_EXCHANGE if exchange else _STEPPING)[major]
    prefix = "fmi" if major == 1 else f"fmi{major}"
    return [prefix + name for name in (*_ALWAYS[major].split(), *own.split(), *access)]
