"""The libraries that a binary needs, and whether this computer has them, found as the loader would, unloaded.

In:  the path of a shared library (ELF; others are not judged)
Out: what is missing: libraries and versions of them, with the Debian package that brings each, where known
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from hocket.simulators.fmu.elf_structure import find_damage

_MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRTAB, _RPATH, _RUNPATH = 1, 5, 15, 29
_VERDEF, _VERNEED = 0x6FFFFFFC, 0x6FFFFFFE
_CACHE, _CACHE_MAGIC = "/etc/ld.so.cache", b"glibc-ld.so.cache1.1"
_WEAK = 2
"""The flag of a version that may be missing."""
_AT_MOST = 10_000
"""Entries of a table that is believed."""

LFS_HEAD = b"version https://git-lfs"
LFS_HINT = "`git lfs pull` in the repository it comes from brings the file itself"


@dataclass(frozen=True, slots=True)
class Elf:
    """What the dynamic section of a 64-bit little-endian ELF file says."""

    machine: int
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    defined: frozenset[str] = frozenset()
    """The versions of symbols that it defines."""
    wanted: tuple[tuple[str, str], ...] = ()
    """The versions it needs, each with the library it is to come from."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A library, or a version of one, that a binary needs and that is not here."""

    name: str
    version: str = ""
    """Empty: the whole library."""
    newest: str = ""
    """The newest version of that kind that is here."""
    package: str = ""
    """The Debian package; empty: not known."""

    def __str__(self) -> str:
        if self.version:
            here = f" (here up to {self.newest})" if self.newest else ""
            return f"`{self.version}` of `{self.name}`{here}"
        return f"`{self.name}`" + (f" (Debian package {self.package})" if self.package else "")


def missing_libraries(binary: Path) -> tuple[Missing, ...]:
    """Return all that a binary, and the libraries it needs, would not find here; empty if not judged."""
    path, library_path = str(binary), os.environ.get("LD_LIBRARY_PATH", "")
    root = _read_elf(path) if sys.platform == "linux" else None
    if root is None:
        return ()
    paths = tuple(entry or "." for entry in re.split("[:;]", library_path)) if library_path else ()
    found: dict[str, str | None] = {**_loaded_libraries()}
    missing: dict[Missing, None] = {}
    waiting: list[tuple[Elf, str, tuple[str, ...]]] = [(root, path, ())]
    seen = {path}
    while waiting:
        elf, place, inherited = waiting.pop(0)
        origin = os.path.dirname(os.path.realpath(place))
        rpath = () if elf.runpath else (*_expand(elf.rpath, origin), *inherited)
        runpath = _expand(elf.runpath, origin)
        for name in elf.needed:
            if name not in found:
                found[name] = _search(name, (*rpath, *paths, *runpath), elf.machine)
            target = found[name]
            if target is None:
                missing[Missing(name, package=debian_package(name))] = None
            elif target not in seen:
                seen.add(target)
                inner = _read_elf(target)
                if inner is not None:
                    waiting.append((inner, target, rpath))
        for name, version in elf.wanted:
            provider = found.get(name)
            inner = _read_elf(provider) if provider is not None else None
            if inner is not None and inner.defined and version not in inner.defined:
                missing[Missing(name, version, _newest(version, inner.defined))] = None
    return tuple(missing)


def is_lfs_pointer(binary: Path) -> bool:
    """Return whether a file only stands for one that Git LFS has not brought."""
    with binary.open("rb") as file:
        return file.read(len(LFS_HEAD)) == LFS_HEAD


def describe_unfit_binary(binary: Path) -> str:
    """Return why a file cannot be loaded whatever libraries there are; empty: nothing speaks against it."""
    if is_lfs_pointer(binary):
        return "the file is a Git-LFS pointer, not the binary itself"
    with binary.open("rb") as file:
        head = file.read(64)
    if sys.platform != "linux":
        return ""
    if not head.startswith(b"\x7fELF"):
        return "the file is not a shared library of Linux (ELF)"
    own = _read_elf(sys.executable)
    machine = struct.unpack_from("<H", head, 18)[0] if len(head) >= 20 else 0
    if own is not None and machine != own.machine:
        names = (_MACHINES.get(number, f"machine {number}") for number in (machine, own.machine))
        return "it is for {}, and this Python for {}".format(*names)
    status = binary.stat()
    damage = find_damage(str(binary), status.st_mtime_ns, status.st_size)
    if not damage and _read_elf(str(binary)) is None:
        damage = "its dynamic section cannot be read"
    return f"the file is damaged: {damage}" if damage else ""


def install_hint(missing: Iterable[Missing]) -> str:
    """Return what brings the missing libraries; empty: not known."""
    packages = sorted({each.package for each in missing if each.package})
    newer = "" if not any(each.version for each in missing) else "a newer system, or an export for this one"
    installed = f"on Debian: apt install {' '.join(packages)}" if packages else ""
    return "; ".join(text for text in (installed, newer) if text)


def _newest(version: str, defined: Iterable[str]) -> str:
    kind = version.rpartition("_")[0] + "_"
    alike = [one for one in defined if re.fullmatch(re.escape(kind) + r"[\d.]+", one)]
    return max(alike, key=lambda one: [int(n) for n in one.removeprefix(kind).split(".") if n], default="")


def _expand(entries: tuple[str, ...], origin: str) -> tuple[str, ...]:
    return tuple(re.sub(r"\$ORIGIN|\$\{ORIGIN\}", lambda _: origin, entry) for entry in entries if entry)


def _search(name: str, folders: Iterable[str], machine: int) -> str | None:
    """Return where the loader finds a library; one for another processor is passed over."""
    if "/" in name:
        return name if os.path.isfile(name) else None
    cached = _cached_libraries().get(name, ())
    usual = (os.path.join(folder, name) for folder in ("/lib", "/usr/lib", "/lib64", "/usr/lib64"))
    for place in (*(os.path.join(folder, name) for folder in folders), *cached, *usual):
        if os.path.isfile(place):
            elf = _read_elf(place)
            if elf is None or elf.machine == machine:
                return place
    return None


def _loaded_libraries() -> dict[str, str]:
    """Return the libraries of this process by name: the loader takes those first."""
    try:
        with open("/proc/self/maps") as file:
            places = {line.split(maxsplit=5)[5].strip() for line in file if line.count("/")}
    except (OSError, IndexError):
        return {}
    return {os.path.basename(place): place for place in places if ".so" in place and os.path.isfile(place)}


@cache
def _cached_libraries() -> dict[str, tuple[str, ...]]:
    """Return the loader's cache: places by name."""
    try:
        content = Path(_CACHE).read_bytes()
        begin = content.index(_CACHE_MAGIC)
        (count,) = struct.unpack_from("<I", content, begin + len(_CACHE_MAGIC))
        found: dict[str, tuple[str, ...]] = {}
        for number in range(count):
            key, value = struct.unpack_from("<II", content, begin + 48 + 24 * number + 4)
            name = _text_at(content, begin + key)
            found[name] = (*found.get(name, ()), _text_at(content, begin + value))
    except (OSError, ValueError, struct.error):
        return {}
    return found


def _text_at(content: bytes | mmap.mmap, place: int) -> str:
    end = content.find(b"\0", place)
    if not 0 <= place <= end:
        raise ValueError("a text outside of the file")
    return content[place:end].decode(errors="replace")


def _read_elf(path: str) -> Elf | None:
    """Return what a file says of itself; None if it is not such a file, or is damaged."""
    try:
        status = os.stat(path)
        return _read_elf_once(path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError, struct.error):
        return None


@lru_cache(maxsize=512)
def _read_elf_once(path: str, _changed: int, _size: int) -> Elf | None:
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return _parse_elf(content)


def _parse_elf(content: mmap.mmap) -> Elf | None:
    if content[:6] != b"\x7fELF\x02\x01":
        return None
    (machine,) = struct.unpack_from("<H", content, 18)
    (offset,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", content, offset + size * k) for k in range(count)]
    dynamic = next((segment for segment in segments if segment[0] == _DYNAMIC), None)
    if dynamic is None:
        return Elf(machine)
    entries = []
    for number in range(min(dynamic[5] // 16, _AT_MOST)):
        tag, value = struct.unpack_from("<QQ", content, dynamic[2] + 16 * number)
        if tag == 0:
            break
        entries.append((tag, value))
    known = dict(entries)

    def file_offset(address: int) -> int:
        for kind, _, at, begin, _, length, *_ in segments:
            if kind == _LOAD and begin <= address < begin + length:
                return int(address - begin + at)
        raise ValueError("an address outside of the file")

    texts = file_offset(known[_STRTAB]) if _STRTAB in known else 0

    def paths(tag: int) -> tuple[str, ...]:
        return tuple(_text_at(content, texts + known[tag]).split(":")) if tag in known else ()

    return Elf(
        machine,
        tuple(_text_at(content, texts + value) for tag, value in entries if tag == _NEEDED),
        paths(_RPATH),
        paths(_RUNPATH),
        frozenset(_defined_versions(content, texts, file_offset(known[_VERDEF])))
        if _VERDEF in known
        else frozenset(),
        tuple(_wanted_versions(content, texts, file_offset(known[_VERNEED]))) if _VERNEED in known else (),
    )


def _defined_versions(content: mmap.mmap, texts: int, place: int) -> Iterator[str]:
    for _ in range(_AT_MOST):
        inner, step = struct.unpack_from("<II", content, place + 12)
        (name,) = struct.unpack_from("<I", content, place + inner)
        yield _text_at(content, texts + name)
        if not step:
            return
        place += step


def _wanted_versions(content: mmap.mmap, texts: int, place: int) -> Iterator[tuple[str, str]]:
    for _ in range(_AT_MOST):
        count, file, inner, step = struct.unpack_from("<HIII", content, place + 2)
        entry = place + inner
        for _ in range(min(count, _AT_MOST)):
            flags, _, name, onward = struct.unpack_from("<HHII", content, entry + 4)
            if not flags & _WEAK:
                yield _text_at(content, texts + file), _text_at(content, texts + name)
            entry += onward
        if not step:
            return
        place += step


_PACKAGES = {
    "libasound.so.2": "libasound2",
    "libblas.so.3": "libblas3",
    "libc++.so.1": "libc++1",
    "libcrypt.so.1": "libcrypt1",
    "libcrypto.so.1.1": "libssl1.1",
    "libcrypto.so.3": "libssl3",
    "libcurl.so.4": "libcurl4",
    "libexpat.so.1": "libexpat1",
    "libffi.so.8": "libffi8",
    "libgcc_s.so.1": "libgcc-s1",
    "libgfortran.so.3": "libgfortran3",
    "libgfortran.so.4": "libgfortran4",
    "libgfortran.so.5": "libgfortran5",
    "libGL.so.1": "libgl1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgmp.so.10": "libgmp10",
    "libgomp.so.1": "libgomp1",
    "libgsl.so.27": "libgsl27",
    "libjpeg.so.62": "libjpeg62-turbo",
    "libjsoncpp.so.25": "libjsoncpp25",
    "liblapack.so.3": "liblapack3",
    "libltdl.so.7": "libltdl7",
    "libncurses.so.5": "libncurses5",
    "libncurses.so.6": "libncurses6",
    "libnsl.so.1": "libnsl1",
    "libnsl.so.2": "libnsl2",
    "libomp.so.5": "libomp5",
    "libopenblas.so.0": "libopenblas0",
    "libpng16.so.16": "libpng16-16",
    "libprotobuf.so.32": "libprotobuf32",
    "libquadmath.so.0": "libquadmath0",
    "libreadline.so.8": "libreadline8",
    "libsqlite3.so.0": "libsqlite3-0",
    "libssl.so.1.1": "libssl1.1",
    "libssl.so.3": "libssl3",
    "libstdc++.so.6": "libstdc++6",
    "libtbb.so.2": "libtbb2",
    "libtbb.so.12": "libtbb12",
    "libtinfo.so.5": "libtinfo5",
    "libtinfo.so.6": "libtinfo6",
    "libtirpc.so.3": "libtirpc3",
    "libuuid.so.1": "libuuid1",
    "libX11.so.6": "libx11-6",
    "libxml2.so.2": "libxml2",
    "libyaml-cpp.so.0.7": "libyaml-cpp0.7",
    "libz.so.1": "zlib1g",
    "libzip.so.4": "libzip4",
    "libzmq.so.5": "libzmq5",
}
_FAMILIES = (
    (re.compile(r"libpython(3\.\d+)m?\.so\.1\.0"), r"libpython\1"),
    (re.compile(r"libboost_([a-z_]+)\.so\.(\d+\.\d+\.\d+)"), r"libboost-\1\2"),
    (re.compile(r"libopenmodelica\w*\.so|libSimulationRuntimeC\.so|libOpenModelicaRuntimeC\.so"), "omc"),
    (re.compile(r"lib(?:jvm|jawt|java)\.so"), "default-jre-headless"),
)


def debian_package(library: str) -> str:
    """Return the Debian package that brings a library; empty: not known."""
    if library in _PACKAGES:
        return _PACKAGES[library]
    for pattern, package in _FAMILIES:
        if found := pattern.fullmatch(library):
            return found.expand(package).replace("_", "-")
    return ""
