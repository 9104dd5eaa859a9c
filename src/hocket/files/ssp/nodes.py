"""XML with line numbers, whatever the namespaces are called.

In:  the bytes of a file
Out: Nodes, by the names without prefix; or a MalformedError with the line
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

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
        """File and line."""
        return f"{self.file}, line {self.line}"

    def get(self, name: str) -> str:
        """Return an attribute without spaces around it; empty if it is not there."""
        return self.attributes.get(name, "").strip()

    def child(self, tag: str) -> Node | None:
        """Return the first child of that name."""
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
        plain = {
            _strip_prefix(key): value for key, value in attributes.items() if not key.startswith("xmlns")
        }
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
