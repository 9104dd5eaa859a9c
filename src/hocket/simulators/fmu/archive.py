"""Archives become folders: unpacked once, kept by the hash of their content, nothing written elsewhere.

In:  the path of a zip archive such as an .fmu, or of a folder that holds the same
Out: a folder, complete, not to be written to
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import hashlib
import lzma
import os
import re
import shutil
import stat
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from hocket.errors import FileError, list_names, suggest_nearest
from hocket.simulators.fmu.libraries import LFS_HEAD, LFS_HINT

DESCRIPTION = "modelDescription.xml"

_CHUNK = 1 << 20
_known: dict[tuple[str, int, int, str], Path] = {}


@dataclass(frozen=True, slots=True)
class Limits:
    """What an archive may hold: a small file can otherwise fill a disk."""

    size: int = 4 << 30
    """Bytes in all."""
    files: int = 100_000
    ratio: int = 1000
    """Bytes per byte of the archive, once there are more than `unsuspicious`."""
    unsuspicious: int = 100_000_000

    def largest_size(self, archive: Path) -> int:
        """Return how many bytes an archive may unpack to."""
        return min(self.size, max(self.unsuspicious, self.ratio * archive.stat().st_size))


LIMITS = Limits()


def unpack_archive(path: Path, holds: str = DESCRIPTION) -> Path:
    """Return the folder an archive is unpacked in; a folder that `holds` the file is used as it is."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        suffix = path.suffix or ".fmu"
        beside = sorted(file.name for file in path.parent.glob(f"*{suffix}")) if path.parent.is_dir() else []
        raise FileError(f"there is no file `{path}`", "", "", suggest_nearest(path.name, beside)) from None
    except OSError as error:
        raise FileError(f"`{path}` cannot be read: {error.strerror}", str(path)) from None
    if stat.S_ISDIR(status.st_mode):
        if not (path / holds).is_file():
            expected = f"an archive, or a folder with `{holds}`"
            raise FileError(f"the folder holds no `{holds}`", str(path), expected)
        return path
    key = str(path), status.st_mtime_ns, status.st_size, holds
    kept = _known.get(key)
    if kept is None or not (kept / holds).is_file():
        kept = _known[key] = _unpack_into_cache(path, holds)
    return kept


def _unpack_into_cache(path: Path, holds: str) -> Path:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"`{path}` cannot be read: {error.strerror}", str(path)) from None
    place = cache_folder() / digest
    with _open_archive(path) as archive:
        entries = _safe_entries(archive, path, LIMITS)
        _check_holds(entries, path, holds)
    if _is_complete(place, entries):
        return place
    try:
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=place.parent))
    except OSError as error:
        what = f"it cannot be unpacked: {error}"
        raise FileError(what, str(path), "a folder to write to", _SPACE) from None
    try:
        extract_archive(path, fresh / "content")
        return _move_into_place(fresh / "content", place, entries)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


_SPACE = "set HOCKET_CACHE to a folder with space"


def _move_into_place(fresh: Path, place: Path, entries: dict[str, zipfile.ZipInfo]) -> Path:
    """Give a folder its name in one stroke; if another process was first, its folder serves."""
    for _ in range(2):
        try:
            fresh.rename(place)
            return place
        except OSError:
            if _is_complete(place, entries):
                return place
            # files have been removed from it: it makes room
            with contextlib.suppress(OSError):
                place.rename(fresh.parent / "broken")
    what = f"`{place}` is damaged and cannot be replaced"
    raise FileError(what, str(place), "", "remove it, and try again")


def _is_complete(place: Path, entries: dict[str, zipfile.ZipInfo]) -> bool:
    """Return whether all files are there, with the content that the archive has checksums of.

    Cleaners of caches take single files, a power cut leaves zeros, and a program may have written there.
    """
    for name, entry in entries.items():
        try:
            status = (place / name).stat()
            regular = stat.S_ISREG(status.st_mode)
            if regular and (status.st_size, _crc(place / name)) != (entry.file_size, entry.CRC):
                return False
        except OSError:
            return False
    return True


def _crc(path: Path) -> int:
    crc = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


def extract_archive(archive: Path, folder: Path, limits: Limits = LIMITS) -> None:
    """Unpack an archive into a new folder; raises FileError, and leaves what was written to the caller.

    The bytes are counted as they come: the sizes an archive declares are not believed.
    """
    with _open_archive(archive) as opened:
        entries = _safe_entries(opened, archive, limits)
        allowed, written = limits.largest_size(archive), 0
        folder.mkdir(parents=True)
        for name, entry in entries.items():
            target = folder / name
            if _is_folder(entry):
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with opened.open(entry) as source, target.open("xb") as file:
                while chunk := source.read(_CHUNK):
                    written += len(chunk)
                    if written > allowed:
                        raise _too_large(archive, allowed, limits)
                    file.write(chunk)
            if entry.external_attr >> 16 & 0o111:
                target.chmod(0o755)


@contextlib.contextmanager
def _open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive; what can go wrong inside becomes a FileError."""
    where = str(path)
    try:
        with path.open("rb") as file:
            first = file.read(4)
            if first[:2] != b"PK":
                if (first + file.read(len(LFS_HEAD))).startswith(LFS_HEAD):
                    what = "the file is a Git-LFS pointer, not the archive itself"
                    raise FileError(what, where, "the archive", LFS_HINT)
                what = "the file is empty" if not first else "the file is not a zip archive"
                kind = ".ssp" if path.suffix.lower() == ".ssp" else ".fmu"
                raise FileError(what, where, f"a zip archive, as every {kind} is")
            with zipfile.ZipFile(file) as archive:
                yield archive
    except FileError:
        raise
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, ValueError) as error:
        hint = "copy or export the file again"
        raise FileError(f"the archive is damaged: {error}", where, "a whole zip archive", hint) from None
    except (NotImplementedError, RuntimeError) as error:
        raise FileError(f"the archive cannot be unpacked: {error}", where, "a plain zip archive") from None
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
        hint = _SPACE if full else ""
        raise FileError(f"the archive cannot be unpacked: {error}", where, "", hint) from None


def _safe_entries(archive: zipfile.ZipFile, path: Path, limits: Limits) -> dict[str, zipfile.ZipInfo]:
    """Return the entries by safe relative names; raises FileError for any that is not."""
    listed = archive.infolist()
    where = str(path)
    if len(listed) > limits.files:
        raise FileError(f"the archive holds {len(listed):,} files", where, f"at most {limits.files:,}")
    allowed = limits.largest_size(path)
    if sum(entry.file_size for entry in listed) > allowed:
        raise _too_large(path, allowed, limits)
    entries: dict[str, zipfile.ZipInfo] = {}
    doubled: dict[str, None] = {}
    for entry in listed:
        name = _safe_name(entry, where)
        if name in entries and not _is_folder(entry):
            if not _same_content(archive, entries[name], entry):
                raise FileError(f"the archive holds two files named `{name}`", where, "names that differ")
            doubled[name] = None
        elif name:
            entries[name] = entry
    _doubled[where] = tuple(doubled)
    return entries


_doubled: dict[str, tuple[str, ...]] = {}
"""By path of an archive that was opened: the files that it holds more than once."""


def doubled_files_note(path: Path) -> str:
    """Return a note of files that an archive holds more than once, each time the same; empty: none."""
    names = _doubled.get(str(path), ())
    return f"the archive holds {list_names(names, 3)} more than once, each time the same" if names else ""


def _same_content(archive: zipfile.ZipFile, one: zipfile.ZipInfo, other: zipfile.ZipInfo) -> bool:
    if one.file_size != other.file_size or _is_folder(one):
        return False
    with archive.open(one) as first, archive.open(other) as second:
        while chunk := first.read(_CHUNK):
            if chunk != second.read(len(chunk)):
                return False
    return True


def _safe_name(entry: zipfile.ZipInfo, where: str) -> str:
    """Return the name of an entry with plain slashes; raises FileError if it leads out of the folder."""
    name = entry.filename.replace("\\", "/")  # some Windows tools write them so
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", name):
        what = f"the archive holds `{entry.filename}`, which leads out of its folder"
        raise FileError(what, where, "relative paths without `..`", "do not trust this file")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        word = "a link" if stat.S_ISLNK(kind) else "a device"
        raise FileError(f"the archive holds `{entry.filename}`, {word}", where, "files and folders only")
    if entry.flag_bits & 0x1:
        raise FileError(f"`{entry.filename}` is encrypted", where, "an archive without a password")
    return "/".join(part for part in parts if part != ".")


def _is_folder(entry: zipfile.ZipInfo) -> bool:
    return entry.filename.endswith(("/", "\\"))


def _too_large(path: Path, allowed: int, limits: Limits) -> FileError:
    what = f"the archive unpacks to more than {allowed:,} bytes"
    expected, hint = f"at most {limits.size:,} bytes", "unpack it yourself, and name the folder"
    if allowed < limits.size:
        expected = f"at most {limits.ratio} times its own size"
        hint = "do not trust this file: a zip bomb?"
    return FileError(what, str(path), expected, hint)


def _check_holds(entries: dict[str, zipfile.ZipInfo], path: Path, holds: str) -> None:
    if holds in entries:
        return
    deeper = [name for name in entries if name.endswith(f"/{holds}")]
    hint = ""
    if deeper:
        folder = deeper[0].removesuffix(f"/{holds}")
        hint = f"it is in the folder `{folder}`: zip what is in that folder, not the folder"
    raise FileError(f"the archive holds no `{holds}`", str(path), f"`{holds}` at the top", hint)


def cache_folder(kind: str = "fmus") -> Path:
    """Return a folder for unpacked archives: $HOCKET_CACHE, else the user's cache, else a temporary one."""
    return _cache_folder(os.environ.get("HOCKET_CACHE", ""), kind)


@cache
def _cache_folder(named: str, kind: str) -> Path:
    for temporary in (False, True):
        try:
            place = (_temporary() if temporary else Path(named) if named else _user_cache()) / kind
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryFile(dir=place):
                return place.resolve()
        except (OSError, RuntimeError):  # the latter: a user without a home
            continue
    return _own_temporary()


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "hocket"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "hocket"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hocket"


def _temporary() -> Path:
    """Return a folder of this user's own: binaries that others can write must not be run."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    place = Path(tempfile.gettempdir()) / f"hocket-{user}"
    place.mkdir(mode=0o700, exist_ok=True)
    status = place.lstat()
    if stat.S_ISDIR(status.st_mode) and status.st_uid == user and not status.st_mode & 0o022:
        return place
    return _own_temporary()


def _own_temporary() -> Path:
    """Return a folder that goes with this process."""
    place = Path(tempfile.mkdtemp(prefix="hocket-")).resolve()
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place
