"""The files of an SSP: unpacked once, found by the references in them, read as XML with line numbers.

In:  the path of an .ssp, of a folder with the same content, or of an .ssd
Out: Nodes, by the names without prefix; faults that say what is there instead
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote
from xml.parsers import expat

from hocket.errors import Fault, FileError, HocketError, Place, suggest_nearest
from hocket.files.ssp.vocabulary import DEFAULT
from hocket.simulators.fmu.archive import doubled_files_note, unpack_archive

_DEEPEST = 200


class MalformedError(Exception):
    """The text is not XML, or not of a kind that is read here."""

    def __init__(self, reason: str, line: int):
        super().__init__(reason)
        self.line = line


T = TypeVar("T")


@dataclass(eq=False)
class ImportFindings:
    """Collects; nothing is raised before everything was looked at."""

    told: dict[Fault, None] = field(default_factory=dict)
    noted: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """By path in hocket: what the SSP calls an element that had to be renamed."""
    foreign: set[str] = field(default_factory=set)
    """The types of other tools' annotations, which are not read."""

    @property
    def faults(self) -> list[Fault]:
        """The faults, each once, as they were found."""
        return list(self.told)

    def fault(self, place: Place, what: str, expected: str = "", hint: str = "") -> None:
        """Note what is wrong, and where."""
        self.told[Fault(what, place, expected, hint)] = None

    def note(self, text: str) -> None:
        """Note what was assumed or left out."""
        self.noted.append(text)

    def raise_faults(self) -> None:
        """Raise all faults as one error, if there are any, as they stand in the files."""
        faults = self.faults
        files = list(dict.fromkeys(fault.place.file for fault in faults if fault.place.line is not None))
        if faults:
            raise FileError(sorted(faults, key=lambda fault: _rank(fault.place, files)))


def _rank(place: Place, files: list[str]) -> tuple[int, int]:
    """Return the place's file by number, and its line; what has no line comes last."""
    return (len(files), 0) if place.line is None else (files.index(place.file), place.line)


@dataclass(eq=False)
class Node:
    """An element; `file` is what messages call the file it stands in, `findings` are those of the import."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    findings: ImportFindings
    children: list[Node] = field(default_factory=list)
    text: str = ""

    @property
    def place(self) -> Place:
        return Place(file=self.file, line=self.line)

    def get(self, name: str) -> str:
        """Return an attribute without spaces around it; empty if it is not there."""
        return self.attributes.get(name, "").strip()

    def says(self, name: str) -> bool:
        """Return whether an attribute is true."""
        return self.get(name).lower() in ("true", "1")

    def child(self, tag: str) -> Node | None:
        return next((child for child in self.children if child.tag == tag), None)

    def all(self, *path: str) -> list[Node]:
        """Return what a path of names leads to: `system.all("Elements", "Component")`."""
        found = [self]
        for tag in path:
            found = [child for node in found for child in node.children if child.tag == tag]
        return found

    def walk(self) -> Iterator[Node]:
        """Yield everything in it, at any depth."""
        for child in self.children:
            yield child
            yield from child.walk()

    def fault(self, what: str, expected: str = "", hint: str = "") -> None:
        """Note what is wrong here."""
        self.findings.fault(self.place, what, expected, hint)

    def note(self, text: str) -> None:
        """Note what was assumed or left out."""
        self.findings.note(text)

    def attempt(self, make: Callable[[], T], about: str = "") -> T | None:
        """Return what is made; its faults are noted here, with what they are about in front."""
        try:
            return make()
        except HocketError as error:
            for fault in error.faults:
                # the path of an unpacked file says nothing to the author of the SSP
                inner = fault.where if "/" not in fault.where else ""
                place = replace(self.place, detail=inner)
                self.findings.told[replace(fault, what=f"{about}{fault.what}", place=place)] = None
        return None


def parse_xml(data: bytes, file: str, findings: ImportFindings) -> Node:
    """Return the outermost element; ValueError or LookupError: an encoding that cannot be read.

    Document types are refused, since entities in them can explode.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    outside = Node("", {}, file, 0, findings)
    open_nodes = [outside]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_nodes) > _DEEPEST:
            raise MalformedError(f"elements are nested more than {_DEEPEST} deep", parser.CurrentLineNumber)
        own = {key: value for key, value in attributes.items() if not key.startswith("xmlns")}
        plain = {_strip_prefix(key): value for key, value in own.items()}
        node = Node(_strip_prefix(name), plain, file, parser.CurrentLineNumber, findings)
        open_nodes[-1].children.append(node)
        open_nodes.append(node)

    def end(_: str) -> None:
        open_nodes.pop()

    def characters(text: str) -> None:
        open_nodes[-1].text += text

    def doctype(*_: object) -> None:
        raise MalformedError("it has a document type, which SSP files do not have", parser.CurrentLineNumber)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise MalformedError(expat.ErrorString(error.code) or "syntax error", error.lineno) from None
    return outside.children[0]


def _strip_prefix(name: str) -> str:
    return name.rpartition(":")[2]


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://)?")


@dataclass(frozen=True)
class Package:
    """A folder of files that refer to each other."""

    folder: Path
    name: str
    """As messages call it; empty: the files have names of their own."""
    closed: bool
    """An archive: references must stay inside."""
    findings: ImportFindings

    def display_name(self, path: Path) -> str:
        """Return what messages call one of the files."""
        try:
            inside = path.relative_to(self.folder).as_posix()
        except ValueError:
            return str(path)
        return f"{self.name}: {inside}" if self.name else inside

    def find(self, source: str, at: Node, base: Path) -> Path | None:
        """Return the file a reference leads to, from the folder `base`; None after noting why not."""
        scheme = _SCHEME.match(source)
        if scheme and scheme[1].lower() != "file":
            at.fault(f"`{source}` is not a file: hocket does not fetch `{scheme[1]}:`", "a path")
            return None
        plain = unquote(source[scheme.end() :] if scheme else source).replace("\\", "/")
        try:
            path = (base / plain).resolve()
            there = path.exists()
        except (OSError, RuntimeError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else "") or error
            at.fault(f"`{source}` is not a path: {why}", "a path")
            return None
        if self.closed and not path.is_relative_to(self.folder.resolve()):
            hint = "unpack the archive and open its folder, if you trust it"
            at.fault(f"`{source}` leads out of the archive", "a path inside", hint)
            return None
        found = path if there else _spelt_otherwise(path)
        if found is None:
            known = sorted(self._similar_files(path, base))
            at.fault(f"there is no file `{source}`", "", suggest_nearest(plain, known))
        elif found != path:
            at.note(f"`{source}` is taken to be `{found.name}`, which is written differently ({at.place})")
        return found

    def _similar_files(self, path: Path, base: Path) -> list[str]:
        files = [file for file in base.rglob("*") if file.is_file()] if self.closed else []
        files = files or (list(path.parent.iterdir()) if path.parent.is_dir() else [])
        alike = [file for file in files if file.name.endswith(path.suffix) and file.is_relative_to(base)]
        return [file.relative_to(base).as_posix() for file in alike]

    def root(self, path: Path, tag: str, at: Node | None = None) -> Node | None:
        """Return the outermost element of an XML file; None after noting what is wrong with it."""
        shown, fault = self.display_name(path), self.findings.fault
        try:
            node = parse_xml(path.read_bytes(), shown, self.findings)
        except OSError as error:
            fault(
                at.place if at else Place(file=shown), f"`{shown}` cannot be read: {error.strerror or error}"
            )
        except (ValueError, LookupError) as error:
            fault(Place(file=shown), f"`{path.name}` cannot be read: {error}", "an encoding such as UTF-8")
        except MalformedError as error:
            fault(Place(file=shown, line=error.line), f"`{path.name}` is not well-formed XML: {error}")
        else:
            if node.tag == tag:
                return node
            node.fault(f"`{path.name}` holds a <{node.tag}>", f"a <{tag}>")
        return None


def _spelt_otherwise(path: Path) -> Path | None:
    """Return a file whose name differs in upper and lower case only: made where that makes no difference."""
    if not path.parent.is_dir():
        return None
    meant = [file for file in path.parent.iterdir() if file.name.lower() == path.name.lower()]
    return meant[0] if len(meant) == 1 else None


def open_package(path: Path, findings: ImportFindings, variant: str = "") -> tuple[Package, Path]:
    """Return the files of an SSP and the path of its .ssd; raises FileError."""
    wanted = variant or DEFAULT
    if path.suffix.lower() in (".ssd", ".xml") and path.is_file():
        return Package(path.parent.resolve(), "", False, findings), path.resolve()
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
    if archive and (told := doubled_files_note(path)):
        findings.note(told)
    return Package(folder, path.name if archive else "", archive, findings), folder / wanted
