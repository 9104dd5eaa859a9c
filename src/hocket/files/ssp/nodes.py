"""XML with line numbers, whatever the namespaces are called.

In:  the bytes of a file
Out: Nodes, by the names without prefix; or a MalformedError with the line
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar
from xml.parsers import expat

from hocket.errors import Fault, FileError, HocketError

_DEEPEST = 200


class MalformedError(Exception):
    """The text is not XML, or not of a kind that is read here."""

    def __init__(self, reason: str, line: int):
        super().__init__(reason)
        self.line = line


@dataclass(eq=False)
class Node:
    """An element; `file` is what messages call the file it stands in."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    children: list[Node] = field(default_factory=list)
    text: str = ""

    @property
    def where(self) -> str:
        return f"{self.file}, line {self.line}"

    def get(self, name: str) -> str:
        """Return an attribute without spaces around it; empty if it is not there."""
        return self.attributes.get(name, "").strip()

    def child(self, tag: str) -> Node | None:
        return next((child for child in self.children if child.tag == tag), None)

    def all(self, *path: str) -> Iterator[Node]:
        """Yield what a path of names leads to: `system.all("Elements", "Component")`."""
        for child in self.children:
            if child.tag == path[0]:
                if len(path) > 1:
                    yield from child.all(*path[1:])
                else:
                    yield child


def parse_xml(data: bytes, file: str) -> Node:
    """Return the outermost element; ValueError or LookupError: an encoding that cannot be read.

    Document types are refused, since entities in them can explode.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    outside = Node("", {}, file, 0)
    open_nodes = [outside]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_nodes) > _DEEPEST:
            raise MalformedError(f"elements are nested more than {_DEEPEST} deep", parser.CurrentLineNumber)
        own = {key: value for key, value in attributes.items() if not key.startswith("xmlns")}
        plain = {_strip_prefix(key): value for key, value in own.items()}
        node = Node(_strip_prefix(name), plain, file, parser.CurrentLineNumber)
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


T = TypeVar("T")
_PLACE = re.compile(r"(.*), line (\d+)")


@dataclass(eq=False)
class ImportFindings:
    """Collects; nothing is raised before everything was looked at."""

    told: dict[Fault, None] = field(default_factory=dict)
    noted: dict[str, None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """By path in hocket: what the SSP calls an element that had to be renamed."""
    foreign: Counter[str] = field(default_factory=Counter)
    """The types of other tools' annotations, which are not read."""

    @property
    def faults(self) -> list[Fault]:
        """The faults, each once, as they were found."""
        return list(self.told)

    def fault(self, at: Node | str, what: str, expected: str = "", hint: str = "") -> None:
        """Note what is wrong, and where."""
        where = at if isinstance(at, str) else at.where
        self.told[Fault(what, where, expected, hint)] = None

    def note(self, text: str) -> None:
        """Note what was assumed or left out."""
        self.noted[text] = None

    def attempt(self, at: Node, make: Callable[[], T], about: str = "") -> T | None:
        """Return what is made; its faults are noted here, with what they are about in front."""
        try:
            return make()
        except HocketError as error:
            for fault in error.faults:
                # the path of an unpacked file says nothing to the author of the SSP
                inner = f" ({fault.where})" if fault.where and "/" not in fault.where else ""
                self.told[replace(fault, what=f"{about}{fault.what}", where=f"{at.where}{inner}")] = None
        return None

    def raise_faults(self) -> None:
        """Raise all faults as one error, if there are any, as they stand in the files."""
        faults = self.faults
        places = [_PLACE.match(fault.where) for fault in faults]
        files = list(dict.fromkeys(place[1] if place else "" for place in places))
        lines = [(files.index(place[1]), int(place[2])) if place else (len(files), 0) for place in places]
        ordered = sorted(range(len(lines)), key=lambda number: lines[number])
        if ordered:
            raise FileError([faults[number] for number in ordered])
