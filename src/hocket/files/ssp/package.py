"""The files of an SSP: unpacked once, found by the references in them, nothing read from outside an archive.

In:  the path of an .ssp, of a folder with the same content, or of an .ssd
Out: paths of the files it refers to; or faults that say what is there instead
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from hocket.errors import FileError, suggest_nearest
from hocket.files.ssp.nodes import ImportFindings, MalformedError, Node, parse_xml
from hocket.files.ssp.vocabulary import DEFAULT
from hocket.simulators.fmu.archive import unpack_archive

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://)?")


@dataclass(frozen=True)
class Package:
    """A folder of files that refer to each other."""

    folder: Path
    name: str
    """As messages call it; empty: the files have names of their own."""
    closed: bool
    """An archive: references must stay inside."""

    def display_name(self, path: Path) -> str:
        """Return what messages call one of the files."""
        try:
            inside = path.relative_to(self.folder).as_posix()
        except ValueError:
            return str(path)
        return f"{self.name}: {inside}" if self.name else inside

    def find(self, source: str, at: Node, base: Path, findings: ImportFindings) -> Path | None:
        """Return the file a reference leads to, from the folder `base`; None after noting why not."""
        scheme = _SCHEME.match(source)
        if scheme and scheme[1].lower() != "file":
            findings.fault(at, f"`{source}` is not a file: hocket does not fetch `{scheme[1]}:`", "a path")
            return None
        plain = unquote(source[scheme.end() :] if scheme else source).replace("\\", "/")
        try:
            path = (base / plain).resolve()
            there = path.exists()
        except (OSError, RuntimeError, ValueError) as error:
            findings.fault(
                at, f"`{source}` is not a path: {getattr(error, 'strerror', '') or error}", "a path"
            )
            return None
        if self.closed and not path.is_relative_to(self.folder.resolve()):
            hint = "unpack the archive and open its folder, if you trust it"
            findings.fault(at, f"`{source}` leads out of the archive", "a path inside", hint)
            return None
        found = path if there else _spelt_otherwise(path)
        if found is None:
            known = sorted(self._similar_files(path, base))
            findings.fault(at, f"there is no file `{source}`", "", suggest_nearest(plain, known))
        elif found != path:
            meant = f"`{source}` is taken to be `{found.name}`"
            findings.note(f"{meant}, which is written differently ({at.where})")
        return found

    def _similar_files(self, path: Path, base: Path) -> list[str]:
        files = [file for file in base.rglob("*") if file.is_file()] if self.closed else []
        files = files or (list(path.parent.iterdir()) if path.parent.is_dir() else [])
        alike = [file for file in files if file.name.endswith(path.suffix) and file.is_relative_to(base)]
        return [file.relative_to(base).as_posix() for file in alike]

    def root(self, path: Path, tag: str, at: Node | None, findings: ImportFindings) -> Node | None:
        """Return the outermost element of an XML file; None after noting what is wrong with it."""
        shown = self.display_name(path)
        try:
            node = parse_xml(path.read_bytes(), shown)
        except OSError as error:
            where = at.where if at else shown
            findings.fault(where, f"`{shown}` cannot be read: {error.strerror or error}")
            return None
        except (ValueError, LookupError) as error:
            findings.fault(shown, f"`{path.name}` cannot be read: {error}", "an encoding such as UTF-8")
            return None
        except MalformedError as error:
            findings.fault(f"{shown}, line {error.line}", f"`{path.name}` is not well-formed XML: {error}")
            return None
        if node.tag != tag:
            findings.fault(node, f"`{path.name}` holds a <{node.tag}>", f"a <{tag}>")
            return None
        return node


def _spelt_otherwise(path: Path) -> Path | None:
    """Return a file whose name differs in upper and lower case only: made where that makes no difference."""
    if not path.parent.is_dir():
        return None
    meant = [file for file in path.parent.iterdir() if file.name.lower() == path.name.lower()]
    return meant[0] if len(meant) == 1 else None


def open_package(path: Path, variant: str = "") -> tuple[Package, Path]:
    """Return the files of an SSP and the path of its .ssd; raises FileError."""
    wanted = variant or DEFAULT
    if path.suffix.lower() in (".ssd", ".xml") and path.is_file():
        return Package(path.parent.resolve(), "", closed=False), path.resolve()
    try:
        folder = unpack_archive(path, wanted).resolve()
    except FileError as error:
        if not variant or not path.exists():
            raise
        beside = unpack_archive(path, DEFAULT)
        known = sorted(file.name for file in beside.glob("*.ssd"))
        what, hint = f"`{path.name}` holds no `{variant}`", suggest_nearest(variant, known)
        raise FileError(what, str(path), "", hint) from error
    archive = path.is_file()
    return Package(folder, path.name if archive else "", closed=archive), folder / wanted
